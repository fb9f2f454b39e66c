"""quantize, dequantize: codes that share scales

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import dataclasses
import math

import numpy

from ._arrays import address, as_source
from ._core import ffi, lib
from ._formats import FORMATS, check, format_index, format_info, resolve
from ._packed import packed_size

_SCALINGS = tuple(ffi.string(lib.fpconv_scaling_name(i)).decode()
                  for i in range(lib.FPCONV_SCALING_COUNT))
_RULES = tuple(ffi.string(lib.fpconv_scale_rule_name(i)).decode()
               for i in range(lib.FPCONV_SCALE_RULE_COUNT))
_SCALE_DTYPES = {"mx": numpy.uint8, "nvfp4": numpy.uint8, "per_tensor": numpy.float32,
                 "per_row": numpy.float32, "per_column": numpy.float32, "pow2_row": numpy.int16,
                 "pow2_column": numpy.int16}


@dataclasses.dataclass(frozen=True)
class Scheme:
    """How a tensor is quantized."""

    #: "mx", "nvfp4", "per_tensor", "per_row", "per_column", "pow2_row" or "pow2_column"
    scaling: str
    #: The format of the codes.
    element: str
    #: "floor" or "ceil" (mx), "amax" (the others), "given"; None for "floor" or "amax"
    rule: str | None = None
    #: nvfp4: the f32 scale of the whole; 0 for that of `tensor_scale`
    tensor_scale: float = 0.0
    #: pow2: the terms of the dot product; 0 for the length of a row or column
    dot_length: int = 0

    @property
    def block(self) -> int:
        """Columns that share a scale: 32, 16, or 0 where a block is no fixed number."""
        return lib.fpconv_scaling_block(_SCALINGS.index(self.scaling))

    def _c(self, rows: int, columns: int):
        dot_length = self.dot_length or max(1, rows if self.scaling == "pow2_column" else columns)
        rule = self.rule or ("floor" if self.scaling == "mx" else "amax")
        return ffi.new("fpconv_scheme *", (
            _SCALINGS.index(self.scaling), format_index(self.element), _RULES.index(rule),
            self.tensor_scale, dot_length))


@dataclasses.dataclass(frozen=True)
class Scaled:
    """A quantized tensor."""

    #: packed along the last axis: shape[:-1] + (packed_size(element, shape[-1]),) bytes;
    #: uint16 of the tensor's shape for f16 elements
    codes: numpy.ndarray
    #: shape[:-1] + (blocks,) uint8 (mx, nvfp4); () , shape[:-1] or shape[-1:], float32 (per_tensor,
    #: per_row, per_column) or int16 exponents of two (pow2)
    scales: numpy.ndarray
    scheme: Scheme
    shape: tuple[int, ...]


_SCHEMES = {
    "mxfp8_e4m3": Scheme("mx", "e4m3"),
    "mxfp8_e5m2": Scheme("mx", "e5m2"),
    "mxfp6_e3m2": Scheme("mx", "e3m2"),
    "mxfp6_e2m3": Scheme("mx", "e2m3"),
    "mxfp4": Scheme("mx", "e2m1"),
    "nvfp4": Scheme("nvfp4", "e2m1"),
    **{f"{group}_{element}": Scheme(f"per_{group}", element)
       for group in ("tensor", "row", "column")
       for element in ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "hif8")},
    "pow2_row": Scheme("pow2_row", "f16"),
    "pow2_column": Scheme("pow2_column", "f16"),
}

#: The names that `scheme` knows.
SCHEMES: tuple[str, ...] = tuple(_SCHEMES)


def scheme(name: str, **changes) -> Scheme:
    """A scheme by its name in `SCHEMES`, with members changed: scheme("mxfp4", rule="ceil")."""
    try:
        return dataclasses.replace(_SCHEMES[name], **changes)
    except KeyError:
        raise ValueError(f"no scheme {name!r}; there are {', '.join(SCHEMES)}") from None


def _matrix(x, argument: str):
    source, format = as_source(x, None, argument)
    if source.ndim == 0:
        raise ValueError(f"{argument} has no axes; a tensor has at least one")
    source = numpy.ascontiguousarray(source)
    return source, format, math.prod(source.shape[:-1]), source.shape[-1]


def _scales_shape(scaling: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    block = lib.fpconv_scaling_block(_SCALINGS.index(scaling))
    if block:
        return (*shape[:-1], -(-shape[-1] // block))
    return {"tensor": (), "row": shape[:-1], "column": shape[-1:]}[scaling.split("_")[1]]


def quantize(x, scheme: str | Scheme, *, scales=None) -> Scaled:
    """Quantizes a tensor of f64, f32, f16 or bf16, a matrix of its last axis by all the others."""
    which = _SCHEMES[scheme] if isinstance(scheme, str) else scheme
    source, format, rows, columns = _matrix(x, "x")
    if which.scaling == "nvfp4" and not which.tensor_scale:
        which = dataclasses.replace(which, tensor_scale=tensor_scale(source.view(x.dtype)))
    info = format_info(which.element)
    width = packed_size(which.element, columns)
    codes = numpy.empty((*source.shape[:-1], width // info.storage.itemsize), info.storage)
    scales_shape = _scales_shape(which.scaling, source.shape)
    if scales is None:
        scales = numpy.empty(scales_shape, _SCALE_DTYPES[which.scaling])
    else:
        which = dataclasses.replace(which, rule="given")
    if source.size:
        check(lib.fpconv_quantize(
            which._c(rows, columns), rows, columns, address(codes), width, address(scales),
            format_index(format), address(source), columns * source.itemsize))
    return Scaled(codes, scales, which, source.shape)


def dequantize(scaled: Scaled, dtype=numpy.float32) -> numpy.ndarray:
    """The values of a quantized tensor: code times scale, rounded once to `dtype`."""
    format, dtype = resolve(dtype, "dtype")
    storage = format_info(format).storage
    rows, columns = math.prod(scaled.shape[:-1]), scaled.shape[-1]
    out = numpy.empty(scaled.shape, storage)
    if out.size:
        codes = numpy.ascontiguousarray(scaled.codes)
        check(lib.fpconv_dequantize(
            scaled.scheme._c(rows, columns), rows, columns, format_index(format), address(out),
            columns * out.itemsize, address(codes), packed_size(scaled.scheme.element, columns),
            address(numpy.ascontiguousarray(scaled.scales))))
    return out.view(dtype)


def tensor_scale(x) -> float:
    """The scale of the whole tensor that nvfp4 uses: amax / (6 * 448), rounded to f32."""
    source, format, rows, columns = _matrix(x, "x")
    result = ffi.new("float *", 1.0)
    check(lib.fpconv_tensor_scale(result, rows, columns, format_index(format), address(source),
                                  columns * source.itemsize))
    return result[0]
