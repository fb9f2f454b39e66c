"""The table of formats and the policies, as the library has them

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from typing import Any

import numpy
from numpy.typing import DTypeLike

from ._core import ffi, lib


#: A format's name, or the dtype of its elements.
FormatLike = str | DTypeLike


def _text(string: Any) -> str:
    return ffi.string(string).decode()


#: The formats' names, widest first.
FORMATS: tuple[str, ...] = tuple(
    _text(lib.fpconv_format_name(i)) for i in range(lib.FPCONV_FORMAT_COUNT))

#: The policies' names; `docs/formats-and-policies.md` says what they mean.
POLICIES: tuple[str, ...] = tuple(
    _text(lib.fpconv_policy_name(i)) for i in range(lib.FPCONV_POLICY_COUNT))


@dataclasses.dataclass(frozen=True)
class FormatInfo:
    """One format.  Values are those of the specifications (policies ocp and ocp_sat)."""

    name: str
    #: Bits that carry information; below 8 they are the low ones of a byte.
    bits: int
    #: The numpy dtype of one stored element: a code, or for f32 and f64 the number itself.
    storage: numpy.dtype
    #: Bits of the exponent and the fraction; hif8's are tapered, these are its widest.
    exponent_bits: int
    fraction_bits: int
    bias: int
    #: The largest finite value.
    max: float
    smallest_normal: float
    smallest_subnormal: float
    has_inf: bool
    has_nan: bool


_STORAGE = {"f64": numpy.float64, "f32": numpy.float32}


def _make_info(index: int) -> FormatInfo:
    row = lib.fp_formats[index]
    name = FORMATS[index]
    exponents, fractions, bias = row.exponent_bits, row.fraction_bits, row.bias
    if row.specials == lib.SPECIALS_TAPERED:
        largest, normal, subnormal = 2.0**15, 2.0**-15, 2.0**-22
    else:
        # The all-ones exponent is that of a finite value but in IEEE's formats; e4m3 has
        # its NaN where the largest value would be.
        is_ieee = row.specials == lib.SPECIALS_IEEE
        missing = 2 if row.specials == lib.SPECIALS_NAN_ONLY else 1
        largest = math.ldexp((2 << fractions) - missing, 2**exponents - 1 - is_ieee - bias - fractions)
        normal = math.ldexp(1, 1 - bias)
        subnormal = math.ldexp(1, 1 - bias - fractions)
    return FormatInfo(
        name=name,
        bits=lib.fpconv_format_bits(index),
        storage=numpy.dtype(_STORAGE.get(name) or f"u{lib.fpconv_format_size(index)}"),
        exponent_bits=exponents,
        fraction_bits=fractions,
        bias=bias,
        max=largest,
        smallest_normal=normal,
        smallest_subnormal=subnormal,
        has_inf=row.specials in (lib.SPECIALS_IEEE, lib.SPECIALS_TAPERED),
        has_nan=row.specials != lib.SPECIALS_NONE)


_INFO = {name: _make_info(index) for index, name in enumerate(FORMATS)}
_INDEX = {name: index for index, name in enumerate(FORMATS)}

# The dtypes whose elements are a format's, by name: numpy's own and ml_dtypes', which need
# not be installed.
_NAME_OF_DTYPE = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e5m2": "e5m2",
    "float8_e4m3fn": "e4m3",
    "float6_e3m2fn": "e3m2",
    "float6_e2m3fn": "e2m3",
    "float4_e2m1fn": "e2m1",
}


def format_info(format: str) -> FormatInfo:
    """The properties of a format, given by its name in `FORMATS`.

    ValueError if there is no such format.

    >>> format_info("e4m3").max, format_info("e4m3").bits
    (448.0, 8)
    """
    try:
        return _INFO[format]
    except (KeyError, TypeError):
        raise ValueError(f"no format {format!r}; there are {', '.join(FORMATS)}") from None


def cpu_name() -> str:
    """The instruction set in use: "portable", "sse2", "avx2", "avx512" or "neon"."""
    return _text(lib.fpconv_cpu_name())


def version() -> str:
    return f"{lib.FPCONV_VERSION_MAJOR}.{lib.FPCONV_VERSION_MINOR}.{lib.FPCONV_VERSION_PATCH}"


@functools.cache  # numpy makes up a dtype's name at each look
def format_of_dtype(dtype: numpy.dtype) -> str | None:
    """The format whose elements an array of this dtype holds; None for integers and others."""
    return _NAME_OF_DTYPE.get(dtype.name)


def resolve(format: FormatLike, argument: str) -> tuple[str, numpy.dtype]:
    """A format given by name or by a numpy dtype: its name, and the dtype of its arrays."""
    if isinstance(format, str) and format in _INFO:
        return format, _INFO[format].storage
    dtype = name = None
    if format is not None:  # which numpy takes for float64
        with contextlib.suppress(TypeError):
            dtype = numpy.dtype(format)
            name = format_of_dtype(dtype)
    if dtype is None or name is None:
        kind = ValueError if isinstance(format, str) else TypeError
        raise kind(f"{argument} is {format!r}; it has to be one of {', '.join(FORMATS)}, "
                   "or the dtype of such a format")
    return name, dtype


def policy_index(policy: str) -> int:
    try:
        return POLICIES.index(policy)
    except ValueError:
        raise ValueError(f"no policy {policy!r}; there are {', '.join(POLICIES)}") from None


def format_index(name: str) -> int:
    return _INDEX[name]


def check(status: int) -> None:
    """Raises what a status says.  The callers' own checks leave none that a user can cause."""
    if status != lib.FPCONV_OK:
        raise ValueError(_text(lib.fpconv_strerror(status)))
