"""encode, decode, convert

SPDX-License-Identifier: MIT

Memory goes to the library as it lies: arrays that are contiguous in the same order
in one call, strided ones row by row where rows are long, others by way of a copy.
"""
from __future__ import annotations

from typing import Any

import numpy
from numpy.typing import DTypeLike

from . import _dlpack
from ._core import ffi, lib
from ._formats import (FormatLike, check, format_index, format_info, format_of_dtype, policy_index,
                       resolve)

# Elements of a strided row from which on a call of its own costs less than copying it:
# a microsecond and a half against a nanosecond or two an element, and with room to spare.
_LONG_ROW = 1024


# ---------------------------------------------------------------------------
# What comes in
# ---------------------------------------------------------------------------


def _is_number_of_python(x: Any) -> bool:
    return isinstance(x, (int, float, list, tuple)) and not isinstance(x, (bool, numpy.generic))


def _as_array(x: Any, argument: str) -> tuple[numpy.ndarray, str | None]:
    """x as an array, on the same memory if it has any, and the format that its type says."""
    if isinstance(x, numpy.ma.MaskedArray):
        raise TypeError(f"{argument} is a masked array; say what to store where it has no values, "
                        "with its method filled()")
    if isinstance(x, numpy.ndarray):
        return x.view(numpy.ndarray), format_of_dtype(x.dtype)
    if hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__"):
        array, format = _dlpack.import_array(x, argument)
        return array, format or format_of_dtype(array.dtype)
    if isinstance(x, (bytes, bytearray)):
        x = memoryview(x)
    array = numpy.asarray(x)
    return array, format_of_dtype(array.dtype)


def _numbers_as_codes(array: numpy.ndarray, format: str, argument: str) -> numpy.ndarray:
    storage = format_info(format).storage
    if storage.kind == "u" and array.size:
        largest = numpy.iinfo(storage).max
        if array.min() < 0 or array.max() > largest:
            raise ValueError(f"{argument} has codes outside of 0 to {largest}")
    return array.astype(storage)


def as_source(x: Any, format: str | None, argument: str) -> tuple[numpy.ndarray, str]:
    """x as an array of a format's storage dtype, in the machine's byte order, and the format.

    That is `format`, or else what the dtype says.  Codes may be signed or unsigned.
    """
    array, own_format = _as_array(x, argument)
    if _is_number_of_python(x) and (array.dtype.kind in "iu" or array.size == 0):
        if format is None:
            array, own_format = array.astype(numpy.float64), "f64"
        else:
            array, own_format = _numbers_as_codes(array, format, argument), format
    if format is None:
        if own_format is None:
            hint = ("; where these are codes, say of which format: convert(x, dst, src)"
                    if array.dtype.kind in "iu" else "")
            raise TypeError(f"{argument} has the dtype {array.dtype}, which is not that of a "
                            f"floating-point format{hint}")
        format = own_format
    storage = format_info(format).storage
    is_code = array.dtype.kind in "iu" and storage.kind == "u" and (
        array.dtype.itemsize == storage.itemsize)
    if own_format != format and not (is_code and own_format is None):
        raise TypeError(f"{argument} has the dtype {array.dtype}; elements of {format} have "
                        f"{storage}")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array.view(storage), format


def as_destination(out: Any, format: str, shape: tuple[int, ...]) -> numpy.ndarray:
    """The caller's `out` as an array of the format's storage dtype; in a foreign byte order as it is."""
    if not isinstance(out, numpy.ndarray) or isinstance(out, numpy.ma.MaskedArray):
        raise TypeError(f"out is a {type(out).__name__}, not a numpy.ndarray")
    storage = format_info(format).storage
    native = out.dtype.newbyteorder("=")
    is_code = native.kind in "iu" and storage.kind == "u" and native.itemsize == storage.itemsize
    if not is_code and format_of_dtype(native) != format:
        raise TypeError(f"out has the dtype {out.dtype}; elements of {format} have {storage}")
    if out.shape != shape:
        raise ValueError(f"out has the shape {out.shape}, the result {shape}")
    if not out.flags.writeable:
        raise ValueError("out is read-only")
    if not out.flags.c_contiguous and _overlaps_itself(out):
        raise ValueError("elements of out share memory with each other")
    out = out.view(numpy.ndarray)
    return out.view(storage) if out.dtype.isnative else out.view(storage.newbyteorder("S"))


def _overlaps_itself(array: numpy.ndarray) -> bool:
    """Whether elements may overlap: true for a few odd layouts in which they do not."""
    if array.size < 2:
        return False
    reach = array.itemsize
    for stride, n in sorted((abs(s), n) for s, n in zip(array.strides, array.shape) if n > 1):
        if stride < reach:
            return True
        reach += stride * (n - 1)
    return False


def address(array: numpy.ndarray) -> Any:
    return ffi.cast("void *", array.__array_interface__["data"][0])


# ---------------------------------------------------------------------------
# Conversion
# ---------------------------------------------------------------------------


def _run_rows(dst_format: int, dst: numpy.ndarray, src_format: int, src: numpy.ndarray,
              policy: int) -> bool:
    """Converts row by row without copies; False, and nothing is done, where rows are short."""
    with numpy.nditer([dst, src], flags=["external_loop"],
                      op_flags=[["writeonly"], ["readonly"]]) as rows:
        if rows.itersize > len(rows[0]) and len(rows[0]) < _LONG_ROW:
            return False
        for to, of in rows:
            check(lib.fpconv_convert_strided(dst_format, address(to), to.strides[0], src_format,
                                             address(of), of.strides[0], to.size, policy))
    return True


def run(dst_format: str, dst: numpy.ndarray, src_format: str, src: numpy.ndarray,
        policy: int) -> None:
    """Converts src into dst, which have the same shape and do not overlap, or begin at one
    address and are both contiguous."""
    if src.size == 0:
        return
    formats = format_index(dst_format), format_index(src_format)
    if not (dst.flags.c_contiguous and src.flags.c_contiguous):
        # The same elements in the order in which dst has them in memory
        axes = sorted(range(dst.ndim), key=lambda axis: -abs(dst.strides[axis]))
        dst, src = dst.transpose(axes), src.transpose(axes)
        if not (dst.flags.c_contiguous and src.flags.c_contiguous):
            if _run_rows(formats[0], dst, formats[1], src, policy):
                return
            src = numpy.ascontiguousarray(src)
            if not dst.flags.c_contiguous:
                whole = numpy.empty(dst.shape, dst.dtype)
                run(dst_format, whole, src_format, src, policy)
                dst[...] = whole
                return
    check(lib.fpconv_convert(formats[0], address(dst), formats[1], address(src), src.size, policy))


def _run_into(dst_format: str, out: numpy.ndarray, src_format: str, src: numpy.ndarray,
              policy: int) -> None:
    """run() into an array of the caller's, whatever that overlaps."""
    if not out.dtype.isnative:
        native = numpy.empty(out.shape, out.dtype.newbyteorder("="))
        run(dst_format, native, src_format, src, policy)
        out[...] = native
        return
    if numpy.may_share_memory(out, src):
        is_in_place = (out.flags.c_contiguous and src.flags.c_contiguous
                       and address(out) == address(src))
        if not is_in_place:
            src = src.copy()
    run(dst_format, out, src_format, src, policy)


def convert(x: Any, dst: FormatLike, src: FormatLike | None = None, *, policy: str = "ocp",
            out: numpy.ndarray | None = None) -> numpy.ndarray:
    """Converts an array of one format into another.

    Each element is the exact source value, rounded once; it depends on that value and the
    policy alone.  The GIL is released meanwhile.

    x: the elements, of any shape and strides, in either byte order: a numpy array, anything
        with `__dlpack__` (in the CPU's memory), `__array__` or a buffer, or Python's numbers.
        Without a copy where its memory can be used: in the machine's byte order, and
        contiguous in some order of its axes or of long rows.
    dst: the wanted format, a name of `FORMATS` or a dtype (numpy.float16, one of ml_dtypes).
    src: the format of x, where x holds codes; else its dtype says it.
    policy: a name of `POLICIES`.
    out: receives the elements: of the shape of x, of the dtype of dst or its codes, of any
        strides and either byte order.  It may overlap x in any way; where both are contiguous
        and begin at the same address, the conversion is in place.

    Returns out, or a new array of the shape of x, in its order in memory; of the dtype `dst`,
    or where that is a name of the format's storage dtype (uint8, uint16, float32, float64).

    TypeError: a dtype is not that of the format, or x is not in the CPU's memory.
    ValueError: an unknown format or policy, or an out of another shape, read-only or whose
    elements share memory.

    >>> convert(numpy.uint8([0x38, 0x7e]), "e5m2", "e4m3")      # 1 and 448
    array([60, 95], dtype=uint8)
    >>> convert(numpy.float32([1.0009765, 1e6]), numpy.float16)
    array([1.001,   inf], dtype=float16)
    """
    policy_number = policy_index(policy)
    dst_format, dst_dtype = resolve(dst, "dst")
    src_format = None if src is None else resolve(src, "src")[0]
    source, src_format = as_source(x, src_format, "x")
    if out is None:
        result = numpy.empty_like(source, format_info(dst_format).storage)
        run(dst_format, result, src_format, source, policy_number)
        result = result.view(dst_dtype.newbyteorder("="))
        return result if dst_dtype.isnative else result.astype(dst_dtype)
    _run_into(dst_format, as_destination(out, dst_format, source.shape), src_format, source,
              policy_number)
    return out


def encode(x: Any, format: FormatLike, *, policy: str = "ocp",
           out: numpy.ndarray | None = None) -> numpy.ndarray:
    """The codes in `format` of an array of numbers: convert(x, format).

    x: numbers of float64, float32, float16 or a dtype of ml_dtypes, of any shape, as for
        `convert`.  Python's numbers count as float64.
    format: the wanted one, a name of `FORMATS`, or a dtype, which the result then has.

    Returns uint8 or uint16 codes of the shape of x (for f32 and f64 the numbers themselves).
    e3m2, e2m3 and e2m1 are in the low bits of a byte each; `pack` takes out the unused ones.

    Errors, `policy` and `out` as for `convert`.

    >>> encode(numpy.float32([0.3, -448, 1e9, numpy.nan]), "e4m3", policy="ocp_sat")
    array([ 42, 254, 126, 127], dtype=uint8)
    >>> encode([[1, 2], [3, 4]], "bf16")
    array([[16256, 16384],
           [16448, 16512]], dtype=uint16)
    """
    return convert(x, format, policy=policy, out=out)


def decode(codes: Any, format: FormatLike | None = None, dtype: FormatLike = numpy.float32, *,
           policy: str = "ocp", out: numpy.ndarray | None = None) -> numpy.ndarray:
    """The numbers that codes stand for: convert(codes, dtype, format).

    codes: integers of the format's size, of any shape, as for `convert`; or elements of one of
        ml_dtypes' dtypes, which needs no `format`.  Bits above the format's own are ignored.
    dtype: of the result.  f32 and f64 hold every value of the narrower formats.
    policy: with "hdf5" the all-ones exponent of every format means Inf and NaN.

    Errors and `out` as for `convert`.

    >>> decode(numpy.uint8([0x2a, 0x7e, 0x7f]), "e4m3")
    array([3.125e-01, 4.480e+02,       nan], dtype=float32)
    >>> decode(numpy.uint8([0x2a, 0x7e, 0x7f]), "e4m3", policy="hdf5")
    array([0.3125,    nan,    nan], dtype=float32)
    """
    return convert(codes, dtype, format, policy=policy, out=out)


# ---------------------------------------------------------------------------
# HiFloat8 under the names, and with the checks, that its users know
# ---------------------------------------------------------------------------


def _check_hifloat8_array(array: numpy.ndarray, argument: str) -> None:
    if array.size == 0:
        raise ValueError(f"{argument} is empty")
    if not array.flags.c_contiguous:
        raise ValueError(f"{argument} is not contiguous")


def encode_to_hifloat8(x: Any) -> numpy.ndarray:
    """The HiFloat8 codes of a contiguous array that is not empty: encode(x, "hif8") with checks.

    x: float64, float32, float16 or bfloat16, of any shape, in C order.
    Returns uint8 of the same shape.

    TypeError: another dtype.  ValueError: x is empty or not contiguous.

    >>> encode_to_hifloat8(numpy.float32([0.5, -1.0, 1e9]))
    array([ 24, 136, 110], dtype=uint8)
    """
    source, format = as_source(x, None, "x")
    if format not in ("f64", "f32", "f16", "bf16"):
        raise TypeError(f"x has elements of {format}; HiFloat8 codes are made of float64, "
                        "float32, float16 or bfloat16")
    _check_hifloat8_array(source, "x")
    return convert(source, "hif8", format)


def decode_from_hifloat8(codes: Any, dtype: DTypeLike = numpy.float32) -> numpy.ndarray:
    """The numbers of a contiguous array of HiFloat8 codes that is not empty.

    codes: uint8, of any shape, in C order.
    dtype: of the result: float64, float32, float16 or bfloat16.

    TypeError: codes are not uint8, or dtype is another one.  ValueError: codes are empty or
    not contiguous.

    >>> decode_from_hifloat8(numpy.uint8([24, 136, 110]))
    array([ 5.0000e-01, -1.0000e+00,  3.2768e+04], dtype=float32)
    """
    wide, _ = resolve(dtype, "dtype")
    if wide not in ("f64", "f32", "f16", "bf16"):
        raise TypeError(f"dtype is {dtype!r}; HiFloat8 is decoded to float64, float32, float16 or "
                        "bfloat16")
    array, _ = _as_array(codes, "codes")
    if array.dtype != numpy.uint8:
        raise TypeError(f"codes have the dtype {array.dtype}, not uint8")
    _check_hifloat8_array(array, "codes")
    return convert(array, dtype, "hif8")
