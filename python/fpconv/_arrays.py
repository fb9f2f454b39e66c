"""encode, decode, convert

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from typing import Any

import numpy

from ._core import ffi, lib
from ._formats import check, format_index, format_info, format_of_dtype, policy_index, resolve


def address(array: numpy.ndarray):
    return ffi.cast("void *", array.__array_interface__["data"][0])


def as_array(x: Any, argument: str) -> numpy.ndarray:
    """x as an array, without a copy where it is one or exposes its memory."""
    if isinstance(x, numpy.ndarray):
        return x.view(numpy.ndarray)
    if isinstance(x, (bytes, bytearray)):
        x = memoryview(x)
    array = numpy.asarray(x)
    # Numbers of Python are numbers; an array of integers is one of codes, or a mistake.
    if array.dtype.kind in "iu" and isinstance(x, (int, list, tuple)):
        array = array.astype(numpy.float64)
    return array


def as_source(x: Any, format: str | None, argument: str) -> tuple[numpy.ndarray, str]:
    """x as an array of the storage dtype, and its format: the one given, or what its dtype says."""
    array = as_array(x, argument)
    dtype_format = format_of_dtype(array.dtype)
    if format is None:
        if dtype_format is None:
            raise TypeError(f"{argument} has the dtype {array.dtype}, which does not say a format")
        format = dtype_format
    storage = format_info(format).storage
    if dtype_format != format and array.dtype.newbyteorder("=") != storage:
        raise TypeError(f"{argument} has the dtype {array.dtype}; elements of {format} are {storage}")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array.view(storage), format


def run(dst_format: str, dst: numpy.ndarray, src_format: str, src: numpy.ndarray, policy: int) -> None:
    if src.size == 0:
        return
    formats = format_index(dst_format), format_index(src_format)
    if not (src.flags.c_contiguous and dst.flags.c_contiguous
            or src.flags.f_contiguous and dst.flags.f_contiguous):
        src = numpy.ascontiguousarray(src)
        whole = numpy.empty(src.shape, dst.dtype)
        check(lib.fpconv_convert(formats[0], address(whole), formats[1], address(src), src.size, policy))
        dst[...] = whole
        return
    check(lib.fpconv_convert(formats[0], address(dst), formats[1], address(src), src.size, policy))


def convert(x, dst, src=None, *, policy: str = "ocp", out=None) -> numpy.ndarray:
    """Converts an array of one format into another.

    `x` has any shape.  `src` is its format; without it the dtype says it (float32, ...).
    `dst` is the wanted format.  Both are names of `fpconv.FORMATS` or dtypes.
    """
    policy_number = policy_index(policy)
    dst_format, dst_dtype = resolve(dst, "dst")
    source, src_format = as_source(x, None if src is None else resolve(src, "src")[0], "x")
    if out is None:
        result = numpy.empty_like(source, format_info(dst_format).storage, order="K", subok=False)
        run(dst_format, result, src_format, source, policy_number)
        return result.view(dst_dtype)
    run(dst_format, out.view(format_info(dst_format).storage), src_format, source, policy_number)
    return out


def encode(x, format, *, policy: str = "ocp", out=None) -> numpy.ndarray:
    """The codes in `format` of an array of floating-point numbers.

    >>> encode(numpy.float32([0.3, -448, 1e9]), "e4m3", policy="ocp_sat")
    array([ 42, 254, 126], dtype=uint8)
    """
    return convert(x, format, policy=policy, out=out)


def decode(codes, format=None, dtype=numpy.float32, *, policy: str = "ocp", out=None) -> numpy.ndarray:
    """The values of codes.

    >>> decode(numpy.uint8([0x2a, 0x7e, 0x7f]), "e4m3")
    array([3.125e-01, 4.480e+02,       nan], dtype=float32)
    """
    return convert(codes, dtype, format, policy=policy, out=out)


def encode_to_hifloat8(x) -> numpy.ndarray:
    return encode(x, "hif8")


def decode_from_hifloat8(codes, dtype=numpy.float32) -> numpy.ndarray:
    return decode(codes, "hif8", dtype)
