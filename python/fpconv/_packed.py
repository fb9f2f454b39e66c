"""pack, unpack: FP4 and FP6 without unused bits

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy

from ._arrays import address, as_source
from ._core import lib
from ._formats import FormatLike, check, format_index, format_info, resolve


def packed_size(format: FormatLike, n: int) -> int:
    """The bytes that `n` packed elements occupy: n * bits / 8, rounded up.

    >>> packed_size("e2m3", 5)
    4
    """
    n = operator.index(n)
    if n < 0:
        raise ValueError(f"n is {n}; a number of elements is not negative")
    return -(-n * format_info(resolve(format, "format")[0]).bits // 8)


def _destination(out: Any, shape: tuple[int, ...], dtype: numpy.dtype,
                 source: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The caller's out, checked, or a new array; and source, copied where they overlap."""
    if out is None:
        return numpy.empty(shape, dtype), source
    if not isinstance(out, numpy.ndarray) or out.dtype != dtype:
        raise TypeError(f"out is not a numpy.ndarray of {dtype}")
    if out.shape != shape:
        raise ValueError(f"out has the shape {out.shape}, the result {shape}")
    if not (out.flags.writeable and out.flags.c_contiguous):
        raise ValueError("out is read-only or not contiguous")
    if numpy.may_share_memory(out, source) and address(out) != address(source):
        source = source.copy()
    return out, source


def pack(codes: Any, format: FormatLike, *, out: numpy.ndarray | None = None) -> numpy.ndarray:
    """Packs codes, one to a byte, into as few bytes as their bits need.

    The array is packed as a whole, in C order: the result is 1-D.  Element i of a format of w
    bits occupies bits w*i to w*i + w - 1, bit 0 being the least significant one of byte 0, the
    layout of packed FP4 and FP6 arrays elsewhere.  The bits after the last element are zero.

    codes: of any shape, as for `fpconv.convert`; bits above the format's own are ignored.
    format: theirs.  One of whole bytes is its own packed form.
    out: receives the bytes: uint8, 1-D, contiguous; it may begin where codes do, or overlap
        them in any way.

    Returns out, or a new array, of packed_size(format, codes.size) bytes.

    TypeError, ValueError: codes, format or out are of a wrong kind or size.

    >>> pack(numpy.uint8([1, 2, 3]), "e2m1")
    array([33,  3], dtype=uint8)
    """
    name = resolve(format, "format")[0]
    source = numpy.ascontiguousarray(as_source(codes, name, "codes")[0])
    size = packed_size(name, source.size)
    packed, source = _destination(out, (size,), numpy.dtype(numpy.uint8), source)
    if size:
        check(lib.fpconv_pack(format_index(name), address(packed), address(source), source.size))
    return packed


def unpack(packed: Any, format: FormatLike, shape: int | Sequence[int], *,
           out: numpy.ndarray | None = None) -> numpy.ndarray:
    """The inverse of `pack`: codes, one to a byte.

    packed: packed_size(format, n) bytes, for the n elements of `shape`: uint8 of any shape, in
        C order, or bytes.
    format: that of the codes, a name of `FORMATS`, or a dtype, which the result then has.
    shape: of the result, an int or several.
    out: receives the codes: of that shape and of the format's storage dtype, contiguous; it
        may overlap packed in any way.

    Returns out, or a new array.

    TypeError: packed or out have another dtype.  ValueError: packed has another size, out
    another shape.

    >>> unpack(numpy.uint8([33, 3]), "e2m1", 3)
    array([1, 2, 3], dtype=uint8)
    """
    name, dtype = resolve(format, "format")
    try:
        lengths: tuple[int, ...] = (operator.index(shape),)  # type: ignore[arg-type]
    except TypeError:
        lengths = tuple(map(operator.index, shape))  # type: ignore[arg-type]
    n = math.prod(lengths)
    source = numpy.ascontiguousarray(as_source(packed, "e4m3", "packed")[0])
    if source.size != packed_size(name, n):
        raise ValueError(f"packed has {source.size} bytes; {n} elements of {name} take "
                         f"{packed_size(name, n)}")
    codes, source = _destination(out, lengths, format_info(name).storage, source)
    if n:
        check(lib.fpconv_unpack(format_index(name), address(codes), address(source), n))
    if out is not None:
        return codes
    codes = codes.view(dtype.newbyteorder("="))
    return codes if dtype.isnative else codes.astype(dtype)
