"""The safetensors format: what is read, what is refused and with which words, what is written.

SPDX-License-Identifier: MIT
"""
import io
import json
import pathlib
import random
import re

import pytest

from h5fpconv.safetensors.file import (DTYPES, MAX_HEADER_BYTES, Reader, SafetensorsError, Writer,
                                       parse_header)

# A file made by hand from the format's description: length, header, data.  4-bit codes
# 1, 2, 3, 4 are the bytes 21 43; 6-bit codes 1, 2, 3, 63 are the bits 111111 000011
# 000010 000001, that is the bytes 81 30 fc.
HAND_MADE_HEADER = (
    b'{"__metadata__":{"format":"pt","note":"gr\xc3\xbc\xc3\x9fe"},'
    b'"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},'
    b'"six":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[8,11]},'
    b'"four":{"dtype":"F4","shape":[2,2],"data_offsets":[11,13]},'
    b'"none":{"dtype":"I64","shape":[0,3],"data_offsets":[13,13]},'
    b'"scalar":{"dtype":"BOOL","shape":[],"data_offsets":[13,14]}}')
HAND_MADE_DATA = bytes.fromhex("0000803f 000080bf" "8130fc" "2143" "" "01")
HAND_MADE = len(HAND_MADE_HEADER).to_bytes(8, "little") + HAND_MADE_HEADER + HAND_MADE_DATA


def file_of(header: object, data: bytes = b"") -> bytes:
    """A file with this header: bytes as they are, anything else as JSON."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype: object = "F32", shape: object = [2], offsets: object = [0, 8]) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "model.safetensors"


def test_hand_made_file(path: pathlib.Path) -> None:
    path.write_bytes(HAND_MADE)
    with Reader(path) as reader:
        header = reader.header
        assert header.metadata == {"format": "pt", "note": "grüße"}
        assert [(t.name, t.dtype, t.shape, t.nbytes) for t in header.tensors] == [
            ("w", "F32", (1, 2), 8), ("six", "F6_E2M3", (4,), 3), ("four", "F4", (2, 2), 2),
            ("none", "I64", (0, 3), 0), ("scalar", "BOOL", (), 1)]
        buffer = bytearray(2)
        reader.read_into(header.tensors[1], 1, memoryview(buffer))
        assert buffer == bytes.fromhex("30fc")
        with pytest.raises(IndexError):
            reader.read_into(header.tensors[1], 2, memoryview(buffer))


def test_dtypes_and_their_order() -> None:
    # As of safetensors 0.8.
    assert " ".join(f"{name}:{bits}" for name, bits in DTYPES.items()) == (
        "BOOL:8 F4:4 F6_E2M3:6 F6_E3M2:6 U8:8 I8:8 F8_E5M2:8 F8_E4M3:8 F8_E8M0:8 F8_E4M3FNUZ:8 "
        "F8_E5M2FNUZ:8 I16:16 U16:16 F16:16 BF16:16 I32:32 U32:32 F32:32 C64:64 F64:64 I64:64 "
        "U64:64")


def test_written_bytes() -> None:
    file = io.BytesIO()
    writer = Writer(file, [("b", "F32", (1,)), ("four", "F4", (2,)), ("a", "F32", (1,)),
                           ("long", "F64", ())], {"ключ": 'a"\\\n\x01\x7f'})
    assert [t.name for t in writer.header.tensors] == ["long", "a", "b", "four"]
    for piece in (b"8 bytes.", b"aaaabb", b"bb", b"4"):
        writer.write(piece)
    writer.close()
    header = ('{"__metadata__":{"ключ":"a\\"\\\\\\n\\u0001\x7f"},'
              '"long":{"dtype":"F64","shape":[],"data_offsets":[0,8]},'
              '"a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},'
              '"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]},'
              '"four":{"dtype":"F4","shape":[2],"data_offsets":[16,17]}}').encode()
    padding = -len(header) % 8
    assert file.getvalue() == ((len(header) + padding).to_bytes(8, "little") + header +
                               b" " * padding + b"8 bytes.aaaabbbb4")


def test_writer_counts_the_bytes() -> None:
    writer = Writer(io.BytesIO(), [("a", "U8", (3,))])
    writer.write(b"12")
    with pytest.raises(SafetensorsError, match="2 bytes were written, of 3"):
        writer.close()


@pytest.mark.parametrize("tensors, message", [
    ([("a", "U8", ()), ("a", "F32", ())], 'two tensors would have the name "a"'),
    ([("__metadata__", "U8", ())], 'no tensor may have the name "__metadata__"'),
    ([("a", "F4", (3,))], 'tensor "a": 3 elements of 4 bits do not end at a byte'),
    ([("a", "F6_E3M2", (2, 3))], 'tensor "a": 6 elements of 6 bits do not end at a byte'),
    ([("a", "F128", ())], 'tensor "a": unknown dtype "F128"'),
])
def test_writer_refuses(tensors: list[tuple[str, str, tuple[int, ...]]], message: str) -> None:
    with pytest.raises(SafetensorsError, match=re.escape(message)):
        Writer(io.BytesIO(), tensors)


ACCEPTED = {
    "no tensor": file_of({}),
    "white space around the object": file_of(b"\t\n{}\r "),
    "no data in a wide shape": file_of({"a": entry(shape=[0, 2**63], offsets=[0, 0])}),
    "any order": file_of({"b": entry(offsets=[8, 16]), "a": entry()}, bytes(16)),
    "an empty tensor between": file_of({"c": entry(offsets=[8, 16]), "a": entry(),
                                        "b": entry(shape=[0], offsets=[8, 8])}, bytes(16)),
    "only metadata": file_of({"__metadata__": {}}),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(path: pathlib.Path, name: str) -> None:
    path.write_bytes(ACCEPTED[name])
    with Reader(path) as reader:
        end = 0
        for tensor in reader.header.tensors:
            assert tensor.start == end
            end = tensor.stop


# What is wrong, and what the message has to say about it.
MALFORMED = {
    "empty file": (b"", "0 bytes are too few"),
    "cut in the length": (bytes(7), "7 bytes are too few"),
    "length beyond the file": (b"\x05" + bytes(7) + b"{}", "header's length, 5 bytes, is beyond"),
    "length of 2^64 - 1": (b"\xff" * 8 + b"{}", "is over the format's limit of 100000000"),
    "length over the limit": ((MAX_HEADER_BYTES + 1).to_bytes(8, "little"), "100000001 bytes"),
    "no header": (file_of(b""), "not JSON: Expecting value at character 0"),
    "not UTF-8": (file_of(b'{"a\xff":{}}'), "not UTF-8: byte 0xff at 3"),
    "not JSON": (file_of(b"{"), "not JSON"),
    "not JSON's NaN": (file_of(b'{"a": NaN}'), "not JSON: NaN is no JSON value"),
    "a control character": (file_of(b'{"a\n":{}}'), "not JSON: Invalid control character"),
    "an array": (file_of([]), "not a JSON object"),
    "a string": (file_of(b'"{}"'), "not a JSON object"),
    "two objects": (file_of(b"{} {}"), 'but more follows: "{}"'),
    "a null at the end": (file_of(b"{}\0"), 'but more follows: "\\u0000"'),
    "nested arrays": (file_of(b'{"a":' + b"[" * 1_000_000), "nested too deeply"),
    "nested objects": (file_of(b'{"a":' * 1_000_000), "nested too deeply"),
    "millions of items": (file_of(b'{"a":[' + b"[]," * 2_000_001), "4000004 brackets and commas"),
    "a lone surrogate": (file_of(b'{"\\ud800": {}}'), 'name "\\ud800" holds a lone surrogate'),
    "a name twice": (file_of(b'{"a": 1, "b": 2, "a": 3}'), 'the header has "a" twice'),
    "metadata twice": (file_of(b'{"__metadata__": {}, "__metadata__": {}}'),
                       'has "__metadata__" twice'),
    "a key twice": (file_of(b'{"a": {"dtype": "U8", "dtype": "I8"}}'),
                    'tensor "a" has "dtype" twice'),
    "metadata no object": (file_of({"__metadata__": ["a"]}), "__metadata__ is not a JSON object"),
    "metadata no string": (file_of({"__metadata__": {"a": "", "b": 1}}),
                           '__metadata__: the value of "b" is not a string'),
    "metadata key twice": (file_of(b'{"__metadata__": {"k": "1", "k": "2"}}'),
                           '__metadata__ has "k" twice'),
    "no object": (file_of({"a": [1]}), 'tensor "a": its entry is not a JSON object'),
    "unknown key": (file_of({"a": entry() | {"strides": [1]}}), 'tensor "a": unknown key "strides"'),
    "no dtype": (file_of({"a": {"shape": [], "data_offsets": [0, 4]}}),
                 'tensor "a": dtype is missing'),
    "no shape": (file_of({"a": {"dtype": "F32", "data_offsets": [0, 4]}}),
                 'tensor "a": shape is missing'),
    "no offsets": (file_of({"a": {"dtype": "F32", "shape": []}}),
                   'tensor "a": data_offsets is missing'),
    "dtype no string": (file_of({"a": entry(dtype=32)}), 'tensor "a": dtype is not a string'),
    "unknown dtype": (file_of({"a": entry(dtype="F7")}), 'tensor "a": unknown dtype "F7"'),
    "shape no array": (file_of({"a": entry(shape=2)}), 'tensor "a": shape is not an array'),
    "shape an object": (file_of({"a": entry(shape={})}), 'tensor "a": shape is not an array'),
    "negative size": (file_of({"a": entry(shape=[-2])}), 'tensor "a": shape holds "-2"'),
    "negative zero": (file_of(b'{"a":{"dtype":"U8","shape":[-0],"data_offsets":[0,0]}}'),
                      'tensor "a": shape holds "-0"'),
    "a fraction": (file_of({"a": entry(shape=[2.0])}), 'tensor "a": shape holds "2.0"'),
    "a truth": (file_of({"a": entry(shape=[True])}), 'tensor "a": shape holds "bool"'),
    "a size of 2^64": (file_of({"a": entry(shape=[2**64])}), 'holds "18446744073709551616"'),
    "a size of a million digits": (file_of(b'{"a":{"dtype":"U8","shape":[' + b"9" * 1_000_000 +
                                           b'],"data_offsets":[0,1]}}'), 'shape holds "999'),
    "elements overflow": (file_of({"a": entry(shape=[2, 2**64 - 2])}), "overflows 64 bits"),
    "elements overflow before a 0": (file_of({"a": entry(shape=[2**63, 4, 0], offsets=[0, 0])}),
                                     "overflows 64 bits"),
    "bits overflow": (file_of({"a": entry(shape=[2**59])}), "overflows 64 bits"),
    "one offset": (file_of({"a": entry(offsets=[0])}), 'tensor "a": data_offsets has 1 numbers'),
    "three offsets": (file_of({"a": entry(offsets=[0, 8, 8])}),
                      'tensor "a": data_offsets has 3 numbers'),
    "negative offset": (file_of({"a": entry(offsets=[-8, 0])}), 'data_offsets holds "-8"'),
    "end before start": (file_of({"a": entry(offsets=[8, 0])}),
                         'tensor "a": it ends at byte 0, before its beginning at 8'),
    "wrong number of bytes": (file_of({"a": entry(shape=[3])}, bytes(8)),
                              'tensor "a": F32 of shape [3] takes 12 bytes, but data_offsets 0 to 8 '
                              "are 8"),
    "half a byte": (file_of({"a": entry(dtype="F4", shape=[3], offsets=[0, 2])}, bytes(2)),
                    'tensor "a": 3 elements of 4 bits do not end at a byte'),
    "three quarters of a byte": (
        file_of({"a": entry(dtype="F6_E3M2", shape=[3], offsets=[0, 3])}, bytes(3)),
        'tensor "a": 3 elements of 6 bits do not end at a byte'),
    "overlap": (file_of({"a": entry(), "b": entry(offsets=[4, 12])}, bytes(12)),
                'tensor "b": its bytes, 4 to 12, overlap those of "a", 0 to 8'),
    "the same bytes": (file_of({"a": entry(), "b": entry()}, bytes(8)),
                       'tensor "b": its bytes, 0 to 8, overlap those of "a", 0 to 8'),
    "an empty tensor within": (file_of({"a": entry(), "b": entry(shape=[0], offsets=[4, 4])},
                                       bytes(8)), 'tensor "b": its bytes, 4 to 4, overlap'),
    "hole": (file_of({"a": entry(), "b": entry(offsets=[9, 17])}, bytes(17)),
             'tensor "b": it begins at byte 9, and bytes 8 to 9 of the data belong to no tensor'),
    "hole at the beginning": (file_of({"a": entry(offsets=[4, 12])}, bytes(12)),
                              'tensor "a": it begins at byte 4, and bytes 0 to 4'),
    "truncated": (file_of({"a": entry()}, bytes(7)),
                  'tensor "a": it ends at byte 8 of the data, but the file has only 7'),
    "trailing bytes": (file_of({"a": entry()}, bytes(9)),
                       "1 bytes after the last tensor belong to none"),
    "data without a tensor": (file_of({}, bytes(3)), "3 bytes after the last tensor"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(path: pathlib.Path, name: str) -> None:
    contents, message = MALFORMED[name]
    path.write_bytes(contents)
    with pytest.raises(SafetensorsError, match=re.escape(message)) as caught:
        Reader(path)
    assert len(str(caught.value)) < 400 and "\n" not in str(caught.value)


def test_a_header_of_the_largest_length(path: pathlib.Path) -> None:
    with open(path, "wb") as file:
        file.write(MAX_HEADER_BYTES.to_bytes(8, "little") + b"{}")
        file.write(b" " * (MAX_HEADER_BYTES - 2))
    with Reader(path) as reader:
        assert reader.header.tensors == ()


def mutated(rng: random.Random, text: bytes) -> bytes:
    """The text with one to four small changes of the kinds that break files."""
    pieces = [b'"', b"{", b"}", b"[", b"]", b",", b":", b"-", b"0", b"9" * 25, b"1e5", b"null",
              b"\\u0000", b"\\ud800", b"\xff", b"\0", b'"dtype":"F4",', b'"a":{}', b"true"]
    result = bytearray(text)
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(result) + 1)
        stop = min(len(result), start + rng.choice([0, 0, 1, 1, 2, 8, 40]))
        kind = rng.randrange(4)
        if kind == 0:
            result[start:stop] = rng.choice(pieces)
        elif kind == 1:
            result[start:stop] = b""
        elif kind == 2:
            result[start:start] = result[rng.randrange(len(result) + 1):][:rng.randint(1, 60)]
        elif start < len(result):
            result[start] = rng.randrange(256)
    return bytes(result)


def test_mutated_headers() -> None:
    """Each of 20000 broken headers is either right after all or refused with a message."""
    rng = random.Random(6)
    outcomes = {True: 0, False: 0}
    for _ in range(20_000):
        text = mutated(rng, HAND_MADE_HEADER)
        try:
            header = parse_header(text, len(HAND_MADE_DATA))
        except SafetensorsError as error:
            assert str(error) and "\n" not in str(error)
            outcomes[False] += 1
            continue
        outcomes[True] += 1
        assert sum(tensor.nbytes for tensor in header.tensors) == len(HAND_MADE_DATA)
    # Renamed tensors and changed metadata are right; most others are not.
    assert outcomes[True] > 500 and outcomes[False] > 15_000
