"""pack, unpack: FP4 and FP6 without unused bits

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import math
import operator

import numpy

from ._arrays import address, as_source
from ._core import lib
from ._formats import check, format_index, format_info


def packed_size(format: str, n: int) -> int:
    """The bytes that `n` packed elements occupy: n * bits / 8, rounded up."""
    bits = format_info(format).bits
    return -(-n * bits // 8)


def pack(codes, format: str, *, out=None) -> numpy.ndarray:
    """Packs codes, one to a byte, into as few bytes as their bits need.

    The array is packed as a whole, in C order: the result is a 1-D array of
    packed_size(format, codes.size) bytes.  Element i occupies bits w*i to w*i + w - 1, the
    least significant bit of a byte being bit 0.

    >>> pack(numpy.uint8([1, 2, 3]), "e2m1")
    array([33,  3], dtype=uint8)
    """
    source, _ = as_source(codes, format, "codes")
    source = numpy.ascontiguousarray(source)
    size = packed_size(format, source.size)
    if out is None:
        out = numpy.empty(size, numpy.uint8)
    if source.size:
        check(lib.fpconv_pack(format_index(format), address(out), address(source), source.size))
    return out


def unpack(packed, format: str, shape, *, out=None) -> numpy.ndarray:
    """The inverse of `pack`: the codes, an array of `shape` (an int or a tuple).

    >>> unpack(numpy.uint8([33, 3]), "e2m1", 3)
    array([1, 2, 3], dtype=uint8)
    """
    try:
        shape = (operator.index(shape),)
    except TypeError:
        shape = tuple(map(operator.index, shape))
    source = numpy.ascontiguousarray(packed)
    n = math.prod(shape)
    if source.nbytes != packed_size(format, n):
        raise ValueError(f"packed has {source.nbytes} bytes; {n} elements of {format} take "
                         f"{packed_size(format, n)}")
    if out is None:
        out = numpy.empty(shape, format_info(format).storage)
    if n:
        check(lib.fpconv_unpack(format_index(format), address(out), address(source), n))
    return out
