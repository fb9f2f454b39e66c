"""The safetensors file format: a strict reader and a writer, without HDF5.

SPDX-License-Identifier: MIT

A file is an unsigned little-endian 64-bit length N, N bytes of a JSON object in
UTF-8, and the tensors' bytes, row-major and little-endian, one after another
without a hole:

    {"__metadata__": {"format": "pt"},
     "weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}

The rules are those of the reference implementation (the safetensors crate, 0.8):
a header of at most 100,000,000 bytes, white space allowed around its object,
offsets that cover the data exactly, no product that overflows 64 bits, and
tensors of 4-bit and 6-bit elements that end at a byte.  Duplicate names and
unknown keys, which the format forbids and that implementation lets pass, are
refused here as well.

The order of elements within a byte is not part of the format.  Here, as in
PyTorch's float4_e2m1fn_x2 and in fpconv/pack.h, the first element is in the least
significant bits.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

MAX_HEADER_BYTES = 100_000_000
#: Not the format's limit but ours, on what takes memory once it is read: a hostile
#: 100 MB of "[],[],[]" would become gigabytes.  400,000 tensors stay below it.
MAX_HEADER_ITEMS = 4_000_000
METADATA_KEY = "__metadata__"
_LENGTH_BYTES = 8
_U64 = 2**64

#: Bits of an element, by dtype, in increasing alignment: the order in which the
#: reference implementation compares dtypes, and writes them, the last ones first.
DTYPES: Mapping[str, int] = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8,
    "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16,
    "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64,
    "U64": 64,
}
_ALIGNMENT_ORDER = {dtype: order for order, dtype in enumerate(DTYPES)}


class SafetensorsError(ValueError):
    """A file that breaks the format's rules, or a tensor that the format cannot hold."""


@dataclass(frozen=True)
class Tensor:
    """A tensor's entry in the header; its bytes are [start, stop) of the data."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int

    @property
    def elements(self) -> int:
        return _elements(self.name, self.shape)

    @property
    def nbytes(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class Header:
    """What a file holds: its tensors in the order of their bytes, and its metadata.

    metadata is None where there is none, which is not the same as an empty one.
    """

    tensors: tuple[Tensor, ...]
    metadata: dict[str, str] | None
    data_start: int


class Reader:
    """An open file.  Raises SafetensorsError unless all of its header is right."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = open(path, "rb", buffering=0)
        try:
            self.header = self._read_header()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _read_header(self) -> Header:
        size = os.fstat(self._file.fileno()).st_size
        if size < _LENGTH_BYTES:
            raise SafetensorsError(
                f"{size} bytes are too few: a file begins with the 8 of its header's length")
        length = int.from_bytes(self._read(0, _LENGTH_BYTES), "little")
        if length > MAX_HEADER_BYTES:
            raise SafetensorsError(
                f"the header's length, {length} bytes, is over the format's limit of "
                f"{MAX_HEADER_BYTES}")
        data_start = _LENGTH_BYTES + length
        if data_start > size:
            raise SafetensorsError(
                f"the header's length, {length} bytes, is beyond the end of the file, "
                f"which has {size}")
        return parse_header(self._read(_LENGTH_BYTES, length), size - data_start)

    def _read(self, offset: int, size: int) -> bytearray:
        buffer = bytearray(size)
        self._read_into(offset, memoryview(buffer))
        return buffer

    def _read_into(self, offset: int, buffer: memoryview) -> None:
        done = 0
        while done < len(buffer):
            got = os.preadv(self._file.fileno(), [buffer[done:]], offset + done)
            if got == 0:
                raise SafetensorsError(f"the file ends at byte {offset + done}: it became shorter")
            done += got

    def read_into(self, tensor: Tensor, offset: int, buffer: memoryview) -> None:
        """Fills buffer, of bytes, with those of the tensor from its byte offset on."""
        if offset < 0 or offset + len(buffer) > tensor.nbytes:
            raise IndexError(f"bytes {offset} to {offset + len(buffer)} of {tensor.nbytes}")
        self._read_into(self.header.data_start + tensor.start + offset, buffer)


class Writer:
    """Writes a file's header at once, and then its tensors' bytes, piece by piece.

    tensors gives name, dtype and shape of each.  The layout is the reference
    implementation's: dtypes by decreasing alignment, then names, and data that begin
    at a multiple of 8 bytes.  `header.tensors` says in which order write() expects
    the bytes; close() raises if any are missing.
    """

    def __init__(self, file: BinaryIO, tensors: Iterable[tuple[str, str, tuple[int, ...]]],
                 metadata: Mapping[str, str] | None = None) -> None:
        self._file = file
        self._written = 0
        text, self.header = make_header(tensors, metadata)
        file.write(len(text).to_bytes(_LENGTH_BYTES, "little"))
        file.write(text)

    def write(self, piece: memoryview | bytes | bytearray) -> None:
        self._written += len(piece)
        self._file.write(piece)

    def close(self) -> None:
        expected = self.header.tensors[-1].stop if self.header.tensors else 0
        if self._written != expected:
            raise SafetensorsError(f"{self._written} bytes were written, of {expected}")


def tensor_bytes(name: str, dtype: str, shape: tuple[int, ...]) -> int:
    """The bytes of a tensor; raises where the format cannot hold it."""
    if dtype not in DTYPES:
        raise SafetensorsError(f"tensor {_quoted(name)}: unknown dtype {_quoted(dtype)}")
    bits = _elements(name, shape) * DTYPES[dtype]
    if bits >= _U64:
        raise SafetensorsError(f"tensor {_quoted(name)}: shape {list(shape)} overflows 64 bits")
    if bits % 8 != 0:
        raise SafetensorsError(
            f"tensor {_quoted(name)}: {bits // DTYPES[dtype]} elements of {DTYPES[dtype]} bits "
            "do not end at a byte, which the format asks for")
    return bits // 8


def make_header(tensors: Iterable[tuple[str, str, tuple[int, ...]]],
                metadata: Mapping[str, str] | None) -> tuple[bytes, Header]:
    """The header's text, padded, and its contents."""
    entries: dict[str, Any] = {}
    if metadata is not None:
        entries[METADATA_KEY] = dict(metadata)
    laid_out: list[Tensor] = []
    offset = 0
    for name, dtype, shape in sorted(
            tensors, key=lambda entry: (-_ALIGNMENT_ORDER.get(entry[1], 0), entry[0])):
        if name == METADATA_KEY:
            raise SafetensorsError(f"no tensor may have the name {_quoted(name)}")
        if name in entries:
            raise SafetensorsError(f"two tensors would have the name {_quoted(name)}")
        stop = offset + tensor_bytes(name, dtype, shape)
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, stop]}
        laid_out.append(Tensor(name, dtype, tuple(shape), offset, stop))
        offset = stop
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % _LENGTH_BYTES)
    if len(text) > MAX_HEADER_BYTES:
        raise SafetensorsError(f"the header would have {len(text)} bytes; the format's limit is "
                               f"{MAX_HEADER_BYTES}")
    return text, Header(tuple(laid_out), dict(metadata) if metadata is not None else None,
                        _LENGTH_BYTES + len(text))


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as read, so that duplicates can be told with their place."""


class _OtherNumber(str):
    """A JSON number that is no size: negative, with a fraction, or 2^64 and more."""


def _parse_size(text: str) -> int | _OtherNumber:
    # A length first: int() of a million digits would take its time.
    if len(text) > 20 or text.startswith("-") or int(text) >= _U64:
        return _OtherNumber(text)
    return int(text)


def _refuse_constant(text: str) -> None:
    raise SafetensorsError(f"the header is not JSON: {text} is no JSON value")


_DECODER = json.JSONDecoder(object_pairs_hook=_Pairs, parse_int=_parse_size,
                            parse_float=_OtherNumber, parse_constant=_refuse_constant)
_JSON_SPACE = re.compile(r"[ \t\n\r]*")


def parse_header(text: bytes | bytearray, data_bytes: int) -> Header:
    """Reads a header's text and checks it against the number of bytes that follow it."""
    items = text.count(b"[") + text.count(b"{") + text.count(b",")
    if items > MAX_HEADER_ITEMS:
        raise SafetensorsError(f"the header has {items} brackets and commas; no more than "
                               f"{MAX_HEADER_ITEMS} are read")
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SafetensorsError(
            f"the header is not UTF-8: byte 0x{text[error.start]:02x} at {error.start}") from None
    try:
        value, end = _DECODER.raw_decode(decoded, _JSON_SPACE.match(decoded).end())  # type: ignore
    except json.JSONDecodeError as error:
        raise SafetensorsError(
            f"the header is not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise SafetensorsError("the header is nested too deeply") from None
    rest = _JSON_SPACE.match(decoded, end).end()  # type: ignore[union-attr]
    if rest != len(decoded):
        raise SafetensorsError(f"the header's object ends at character {end}, but more follows: "
                               f"{_quoted(decoded[rest:])}")
    if not isinstance(value, _Pairs):
        raise SafetensorsError("the header is not a JSON object")

    metadata = None
    tensors = []
    for name, entry in _without_duplicates(value, "the header").items():
        if name == METADATA_KEY:
            metadata = _metadata(entry)
        else:
            tensors.append(_tensor(name, entry))
    tensors.sort(key=lambda tensor: (tensor.start, tensor.stop))
    _check_layout(tensors, data_bytes)
    return Header(tuple(tensors), metadata, _LENGTH_BYTES + len(text))


def _quoted(text: str) -> str:
    """For messages: on one line, not too long, whatever it holds."""
    return json.dumps(text if len(text) <= 80 else text[:77] + "...")


def _check_text(text: str, what: str) -> None:
    # JSON can spell half of a pair, \ud800, which is no character.
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise SafetensorsError(
            f"{what} {_quoted(text)} holds a lone surrogate, which is no text") from None


def _without_duplicates(pairs: _Pairs, where: str) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in pairs:
        _check_text(name, f"{where}: the name")
        if name in result:
            raise SafetensorsError(f"{where} has {_quoted(name)} twice")
        result[name] = value
    return result


def _metadata(entry: Any) -> dict[str, str]:
    if not isinstance(entry, _Pairs):
        raise SafetensorsError(f"{METADATA_KEY} is not a JSON object")
    result = _without_duplicates(entry, METADATA_KEY)
    for key, value in result.items():
        if type(value) is not str:
            raise SafetensorsError(f"{METADATA_KEY}: the value of {_quoted(key)} is not a string")
        _check_text(value, f"{METADATA_KEY}: the value of {_quoted(key)},")
    return result


_TENSOR_KEYS = ("dtype", "shape", "data_offsets")


def _tensor(name: str, entry: Any) -> Tensor:
    where = f"tensor {_quoted(name)}"
    if not isinstance(entry, _Pairs):
        raise SafetensorsError(f"{where}: its entry is not a JSON object")
    values = _without_duplicates(entry, where)
    for key in values:
        if key not in _TENSOR_KEYS:
            raise SafetensorsError(f"{where}: unknown key {_quoted(key)}")
    for key in _TENSOR_KEYS:
        if key not in values:
            raise SafetensorsError(f"{where}: {key} is missing")
    dtype = values["dtype"]
    if type(dtype) is not str:
        raise SafetensorsError(f"{where}: dtype is not a string")
    shape = _sizes(where, "shape", values["shape"])
    offsets = _sizes(where, "data_offsets", values["data_offsets"])
    if len(offsets) != 2:
        raise SafetensorsError(f"{where}: data_offsets has {len(offsets)} numbers, not two")
    start, stop = offsets
    if stop < start:
        raise SafetensorsError(f"{where}: it ends at byte {stop}, before its beginning at {start}")
    size = tensor_bytes(name, dtype, shape)
    if stop - start != size:
        raise SafetensorsError(f"{where}: {dtype} of shape {_shape_text(shape)} takes {size} bytes, "
                               f"but data_offsets {start} to {stop} are {stop - start}")
    return Tensor(name, dtype, shape, start, stop)


def _sizes(where: str, key: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or isinstance(value, _Pairs):
        raise SafetensorsError(f"{where}: {key} is not an array")
    for item in value:
        if type(item) is not int:
            text = str(item) if isinstance(item, _OtherNumber) else type(item).__name__
            raise SafetensorsError(f"{where}: {key} holds {_quoted(text)}, which is not a size")
    return tuple(value)


def _shape_text(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(map(str, shape[:8])) + (", ...]" if len(shape) > 8 else "]")


def _elements(name: str, shape: tuple[int, ...]) -> int:
    # In order, as the reference implementation multiplies: an overflow is one even
    # if a 0 follows.
    product = 1
    for size in shape:
        product *= size
        if product >= _U64:
            raise SafetensorsError(
                f"tensor {_quoted(name)}: shape {_shape_text(shape)} overflows 64 bits")
    return product


def _check_layout(tensors: list[Tensor], data_bytes: int) -> None:
    """tensors is sorted by offset."""
    end = 0
    before = None
    for tensor in tensors:
        where = f"tensor {_quoted(tensor.name)}"
        if tensor.start < end and before is not None:
            raise SafetensorsError(f"{where}: its bytes, {tensor.start} to {tensor.stop}, overlap "
                                   f"those of {_quoted(before.name)}, {before.start} to "
                                   f"{before.stop}")
        if tensor.start > end:
            raise SafetensorsError(f"{where}: it begins at byte {tensor.start}, and bytes {end} to "
                                   f"{tensor.start} of the data belong to no tensor")
        if tensor.stop > data_bytes:
            raise SafetensorsError(f"{where}: it ends at byte {tensor.stop} of the data, but the "
                                   f"file has only {data_bytes}: is it truncated?")
        end = tensor.stop
        before = tensor
    if end != data_bytes:
        raise SafetensorsError(f"{data_bytes - end} bytes after the last tensor belong to none")
