"""quantize, dequantize: codes that share scales

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import dataclasses
import math
import operator
from typing import Any

import numpy

from ._arrays import address, as_destination, as_source
from ._core import ffi, lib
from ._formats import FormatLike, check, format_index, format_info, resolve
from ._packed import packed_size

_SCALINGS = tuple(ffi.string(lib.fpconv_scaling_name(i)).decode()
                  for i in range(lib.FPCONV_SCALING_COUNT))
_RULES = tuple(ffi.string(lib.fpconv_scale_rule_name(i)).decode()
               for i in range(lib.FPCONV_SCALE_RULE_COUNT))

#: The formats that are quantized, and dequantized to.
_WIDE = ("f64", "f32", "f16", "bf16")


@dataclasses.dataclass(frozen=True)
class Scheme:
    """How a tensor is quantized; `docs/scaled.md` defines the schemes.

    A value is its code's value times its scale (nvfp4: times the tensor scale, too).
    ValueError: there is no such scheme.

    >>> Scheme("mx", "e2m1").rule
    'floor'
    """

    #: "mx", "nvfp4", "per_tensor", "per_row", "per_column", "pow2_row" or "pow2_column"
    scaling: str
    #: The format of the codes.
    element: str
    #: How scales are chosen: "floor" or "ceil" (mx), "amax" (the others), or "given".
    #: None stands for "floor" or "amax".
    rule: str | None = None
    #: nvfp4: the f32 scale of the whole; 0 stands for what `tensor_scale` says of the tensor.
    tensor_scale: float = 0.0
    #: pow2_row, pow2_column: the terms of the dot products that must not overflow; 0 stands for
    #: the length of a row, or of a column.
    dot_length: int = 0

    def __post_init__(self) -> None:
        if self.scaling not in _SCALINGS:
            raise ValueError(f"no scaling {self.scaling!r}; there are {', '.join(_SCALINGS)}")
        format_info(self.element)
        if self.rule is None:
            object.__setattr__(self, "rule", "floor" if self.scaling == "mx" else "amax")
        if self.rule not in _RULES:
            raise ValueError(f"no rule {self.rule!r}; there are {', '.join(_RULES)}")
        if self.tensor_scale != 0:
            with numpy.errstate(over="ignore", under="ignore"):
                rounded = float(numpy.float32(self.tensor_scale))
            if not (math.isfinite(rounded) and rounded > 0):
                raise ValueError(f"tensor_scale is {self.tensor_scale}; as an f32 it has to be "
                                 "finite and positive")
            object.__setattr__(self, "tensor_scale", rounded)
        object.__setattr__(self, "dot_length", operator.index(self.dot_length))
        if not 0 <= self.dot_length < 1 << 63:
            raise ValueError(f"dot_length is {self.dot_length}; it has to be a number of elements")
        # With no rows the library says only whether there is such a scheme.
        status = lib.fpconv_quantize(self._c(0, 0, self.tensor_scale or 1.0), 0, 0, ffi.NULL, 0,
                                     ffi.NULL, lib.FPCONV_F32, ffi.NULL, 0)
        if status == lib.FPCONV_ERROR_UNSUPPORTED:
            raise ValueError(f"the scaling {self.scaling} has no elements of {self.element}")
        if status == lib.FPCONV_ERROR_SCHEME:
            raise ValueError(f"the scaling {self.scaling} has no rule {self.rule}")
        check(status)

    @property
    def block(self) -> int:
        """Columns that share a scale: 32, 16, or 0 where a block is no fixed number."""
        return lib.fpconv_scaling_block(_SCALINGS.index(self.scaling))

    @property
    def scale_dtype(self) -> numpy.dtype:
        """Of a stored scale: uint8 (mx: E8M0; nvfp4: e4m3), float32, or int16 exponents of two."""
        if self.block:
            return numpy.dtype(numpy.uint8)
        return numpy.dtype(numpy.int16 if self.scaling.startswith("pow2") else numpy.float32)

    def codes_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Of the codes of a tensor of `shape`: packed along the last axis."""
        width = packed_size(self.element, shape[-1])
        return (*shape[:-1], width // format_info(self.element).storage.itemsize)

    def scales_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Of the scales of a tensor of `shape`: blocks along the last axis, or one, a row, a column."""
        if self.block:
            return (*shape[:-1], -(-shape[-1] // self.block))
        if self.scaling.endswith("tensor"):
            return ()
        return shape[:-1] if self.scaling.endswith("row") else shape[-1:]

    def _c(self, rows: int, columns: int, tensor_scale: float | None = None) -> Any:
        """The library's struct, for a matrix of that size."""
        default_length = rows if self.scaling == "pow2_column" else columns
        return ffi.new("fpconv_scheme *", {
            "scaling": _SCALINGS.index(self.scaling),
            "element": format_index(self.element),
            "rule": _RULES.index(self.rule),
            "tensor_scale": self.tensor_scale if tensor_scale is None else tensor_scale,
            "dot_length": self.dot_length or max(1, default_length)})


@dataclasses.dataclass(frozen=True)
class Scaled:
    """A quantized tensor, as `quantize` returns it and `dequantize` takes it."""

    #: scheme.codes_shape(shape), of uint8; uint16 for elements of f16
    codes: numpy.ndarray
    #: scheme.scales_shape(shape), of scheme.scale_dtype
    scales: numpy.ndarray
    #: With the tensor scale of nvfp4 that was used.
    scheme: Scheme
    #: Of the tensor, in elements.
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of codes and scales, the tensor scale of nvfp4 included."""
        return self.codes.nbytes + self.scales.nbytes + 4 * (self.scheme.scaling == "nvfp4")


def _named_schemes() -> dict[str, Scheme]:
    schemes = {
        "mxfp8_e4m3": Scheme("mx", "e4m3"),
        "mxfp8_e5m2": Scheme("mx", "e5m2"),
        "mxfp6_e3m2": Scheme("mx", "e3m2"),
        "mxfp6_e2m3": Scheme("mx", "e2m3"),
        "mxfp4": Scheme("mx", "e2m1"),
        "nvfp4": Scheme("nvfp4", "e2m1"),
    }
    for group in ("tensor", "row", "column"):
        for element in ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "hif8"):
            schemes[f"{group}_{element}"] = Scheme(f"per_{group}", element)
    for group in ("row", "column"):
        schemes[f"pow2_{group}"] = Scheme(f"pow2_{group}", "f16")
    return schemes


_SCHEMES = _named_schemes()

#: The names that `scheme` knows: "mxfp4", "nvfp4", "tensor_e4m3", "pow2_row", ...
SCHEMES: tuple[str, ...] = tuple(_SCHEMES)


def scheme(name: str, **changes: Any) -> Scheme:
    """The scheme of a name in `SCHEMES`, with members of `Scheme` changed.

    ValueError: there is no such scheme.

    >>> scheme("mxfp4", rule="ceil")
    Scheme(scaling='mx', element='e2m1', rule='ceil', tensor_scale=0.0, dot_length=0)
    """
    if not isinstance(name, str) or name not in _SCHEMES:
        raise ValueError(f"no scheme {name!r}; there are {', '.join(SCHEMES)}")
    return dataclasses.replace(_SCHEMES[name], **changes)


def _resolve(which: str | Scheme) -> Scheme:
    if isinstance(which, Scheme):
        return which
    if isinstance(which, str):
        return scheme(which)
    raise TypeError(f"scheme is a {type(which).__name__}, neither a Scheme nor a name")


def _as_matrix(x: Any) -> tuple[numpy.ndarray, str, tuple[int, ...]]:
    """x as rows of contiguous elements, their format, and the shape of x."""
    source, format = as_source(x, None, "x")
    if format not in _WIDE:
        raise TypeError(f"x has elements of {format}; those of {', '.join(_WIDE)} are scaled")
    if source.ndim == 0:
        raise ValueError("x has no axis")
    shape = source.shape
    matrix = source.reshape(math.prod(shape[:-1]), shape[-1])
    if matrix.strides[1] != matrix.itemsize:
        matrix = numpy.ascontiguousarray(matrix)
    return matrix, format, shape


def _measure(matrix: numpy.ndarray, format: str) -> float:
    result = ffi.new("float *")
    check(lib.fpconv_tensor_scale(result, *matrix.shape, format_index(format), address(matrix),
                                  matrix.strides[0]))
    return result[0]


def tensor_scale(x: Any) -> float:
    """The tensor scale that nvfp4 uses: the largest finite magnitude / (6 * 448), as an f32.

    x: as for `quantize`.  1 if all of it is zero.

    >>> tensor_scale(numpy.float32([1.0, -2688.0]))
    1.0
    """
    return _measure(*_as_matrix(x)[:2])


def _given_scales(scales: Any, which: Scheme, shape: tuple[int, ...]) -> numpy.ndarray:
    array = numpy.asarray(scales)
    if array.dtype.newbyteorder("=") != which.scale_dtype:
        raise TypeError(f"scales have the dtype {array.dtype}, those of {which.scaling} are "
                        f"{which.scale_dtype}")
    if array.shape != which.scales_shape(shape):
        raise ValueError(f"scales have the shape {array.shape}; a tensor of the shape {shape} has "
                         f"{which.scales_shape(shape)} under {which.scaling}")
    return numpy.array(array, which.scale_dtype, order="C")


def _is_lacking_tensor_scale(which: Scheme) -> bool:
    return which.scaling == "nvfp4" and which.tensor_scale == 0


def quantize(x: Any, scheme: str | Scheme, *, scales: Any = None) -> Scaled:
    """Quantizes a tensor: chooses scales, divides by them and rounds, once, to the nearest code.

    x: float64, float32, float16 or bfloat16, of at least one axis, as for `fpconv.convert`; a
        matrix of its last axis by all the others.  Without a copy where rows are contiguous.
    scheme: a name of `SCHEMES`, or a `Scheme`.
    scales: these are used, of the shape and dtype that Scheme.scales_shape() and scale_dtype
        say, instead of such as the scheme chooses.

    TypeError: another dtype.  ValueError: no such scheme, or scales of another shape.

    >>> q = quantize(numpy.float32([[1.0, -6.0, 0.3, 3.0]]), "mxfp4")
    >>> q.codes, q.scales
    (array([[242,  81]], dtype=uint8), array([[127]], dtype=uint8))
    >>> dequantize(q)
    array([[ 1. , -6. ,  0.5,  3. ]], dtype=float32)
    """
    which = _resolve(scheme)
    matrix, format, shape = _as_matrix(x)
    if _is_lacking_tensor_scale(which):
        which = dataclasses.replace(which, tensor_scale=_measure(matrix, format))
    if scales is not None:
        which = dataclasses.replace(which, rule="given")
        scales = _given_scales(scales, which, shape)
    elif which.rule == "given":
        raise ValueError("the scheme's rule is given, but no scales are")
    elif matrix.size:
        scales = numpy.empty(which.scales_shape(shape), which.scale_dtype)
    else:  # the scale of nothing but zeros
        one = which.scale_dtype == numpy.float32
        scales = numpy.full(which.scales_shape(shape), int(one), which.scale_dtype)
    codes = numpy.empty(which.codes_shape(shape), format_info(which.element).storage)
    rows, columns = matrix.shape
    if matrix.size:
        check(lib.fpconv_quantize(which._c(rows, columns), rows, columns, address(codes),
                                  packed_size(which.element, columns), address(scales),
                                  format_index(format), address(matrix), matrix.strides[0]))
    return Scaled(codes, scales, which, shape)


def dequantize(scaled: Scaled, dtype: FormatLike = numpy.float32, *,
               out: numpy.ndarray | None = None) -> numpy.ndarray:
    """The values of a quantized tensor: code times scale, exact, rounded once to `dtype`.

    scaled: as `quantize` returns it, or made of stored codes and scales.
    dtype: float64, float32, float16 or bfloat16.
    out: receives the values: of that dtype and the tensor's shape, of any strides.

    Returns out, or a new array in C order.

    TypeError: a dtype is another one.  ValueError: codes, scales or out have another shape, or
    the tensor scale of nvfp4 is missing.
    """
    format, result_dtype = resolve(dtype, "dtype")
    if format not in _WIDE:
        raise TypeError(f"dtype is {dtype!r}; values are those of {', '.join(_WIDE)}")
    which, shape = scaled.scheme, tuple(scaled.shape)
    if not shape:
        raise ValueError("the tensor has no axis")
    codes = as_source(scaled.codes, which.element, "scaled.codes")[0]
    if codes.shape != which.codes_shape(shape):
        raise ValueError(f"scaled.codes has the shape {codes.shape}; a tensor of the shape {shape} "
                         f"has {which.codes_shape(shape)} under {which.scaling}")
    scales = _given_scales(scaled.scales, which, shape)
    if _is_lacking_tensor_scale(which):
        raise ValueError("scaled.scheme lacks its tensor_scale")
    storage = format_info(format).storage
    target = values = None
    if out is not None:
        target = as_destination(out, format, shape)
        if (target.flags.c_contiguous and target.dtype.isnative
                and not numpy.may_share_memory(target, codes)):
            values = target
    if values is None:
        values = numpy.empty(shape, storage)
    if values.size:
        codes = numpy.ascontiguousarray(codes)
        rows, columns = math.prod(shape[:-1]), shape[-1]
        check(lib.fpconv_dequantize(which._c(rows, columns), rows, columns, format_index(format),
                                    address(values), columns * values.itemsize, address(codes),
                                    packed_size(which.element, columns), address(scales)))
    if out is None:
        values = values.view(result_dtype.newbyteorder("="))
        return values if result_dtype.isnative else values.astype(result_dtype)
    if target is not None and target is not values:
        target[...] = values
    return out
