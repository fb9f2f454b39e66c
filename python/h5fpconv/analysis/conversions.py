"""Values converted to a target and back, and compared with what they were.

SPDX-License-Identifier: MIT

Values are compared as float64, which holds those of every format, so that nothing but
sums is rounded here.
"""
import dataclasses
import functools
import math
from typing import Any

import fpconv
import numpy as np

from h5fpconv.analysis.matrices import Array, Doubles, Matrix, Slab, count_nonzero
from h5fpconv.analysis.survey import Amax, Survey
from h5fpconv.user.targets import Target


LEAST_NOISE = math.ulp(0.0)  # where there is any, however small its square


@dataclasses.dataclass(frozen=True)
class OverflowLimit:
    """The magnitudes that round to more than a format's largest finite value."""

    value: float
    is_inclusive: bool

    def count(self, magnitudes: Doubles, scales: Doubles | float = 1.0) -> int:
        """How many magnitudes are beyond the limit times their scale."""
        # The product is exact: both factors have few bits.
        limits = self.value * scales
        beyond = magnitudes >= limits if self.is_inclusive else magnitudes > limits
        return int(np.count_nonzero(beyond))


def overflow_limit(format_name: str, policy: str) -> OverflowLimit:
    """Half a step above the largest value, where ties to even may stay below."""
    info = fpconv.format_info(format_name)
    if policy == "hdf5" and format_name not in ("f64", "f32", "hif8"):
        return OverflowLimit(2.0 ** (2**info.exponent_bits - 1 - info.bias), True)
    fraction_bits = 1 if format_name == "hif8" else info.fraction_bits  # tapered: at the top
    step = math.ldexp(1.0, math.frexp(info.max)[1] - 1 - fraction_bits)
    is_odd = (info.max / step) % 2 == 1
    return OverflowLimit(info.max + step / 2, is_odd or format_name == "hif8")


@dataclasses.dataclass
class Tally:
    """What a target made of a number of values; squares are those times 4^-shift."""

    noise: list[float] = dataclasses.field(default_factory=list)
    square: list[float] = dataclasses.field(default_factory=list)
    worst: float = 0.0
    overflow: int = 0
    underflow: int = 0
    lost: int = 0
    changed: int = 0

    def add(self, other: "Tally") -> None:
        """Takes in those of more values."""
        self.noise += other.noise
        self.square += other.square
        self.worst = max(self.worst, other.worst)
        self.overflow += other.overflow
        self.underflow += other.underflow
        self.lost += other.lost
        self.changed += other.changed


class Tile:
    """Values of a slab, and what all targets need of them."""

    def __init__(self, slab: Slab, shift: int) -> None:
        self.rows, self.column = slab.rows, slab.column
        self.values = np.ascontiguousarray(slab.values)
        self.shift = shift
        self.exact = slab.values.astype(np.float64)
        self.magnitudes = np.abs(self.exact)
        self.finite = np.isfinite(self.exact)
        self.is_finite = bool(self.finite.all())
        self.zeros = self.exact.size - count_nonzero(self.exact)
        self.finite_magnitudes = self.magnitudes if self.is_finite \
            else np.where(self.finite, self.magnitudes, 0)
        # The error of a zero is 0, whatever it is divided by.
        divisors = np.where(self.magnitudes > 0, self.magnitudes, 1) if self.zeros \
            else self.magnitudes
        # Multiplying by reciprocals is faster, but those of float64's subnormals are not finite.
        self.is_wide = self.values.dtype == np.float64
        self.divisors = divisors if self.is_wide else 1 / divisors
        self.square = self.square_sum(self.finite_magnitudes)
        self.stored = np.empty_like(self.exact)
        self.difference = np.empty_like(self.exact)

    @functools.cached_property
    def row_amax(self) -> Doubles:
        """The largest finite magnitude of each row, in one column."""
        return self.finite_magnitudes.max(axis=1, keepdims=True)

    def block_amax(self, block: int) -> Doubles:
        """The largest magnitude of each block, NaN where there is one."""
        starts = np.arange(0, self.exact.shape[1], block)
        return np.maximum.reduceat(self.magnitudes, starts, axis=1)

    def square_sum(self, values: Doubles) -> float:
        """The sum of the squares of the values times 2^-shift."""
        scaled = np.ldexp(values, -self.shift) if self.shift else values
        return float(np.einsum("ij,ij->", scaled, scaled))

    def compare(self, stored: Doubles) -> Tally:
        """All of a tally but its overflow, for what the values became."""
        found = Tally()
        difference = np.subtract(stored, self.exact, out=self.difference)
        noise = self.square_sum(difference)
        square = self.square
        if math.isfinite(noise):
            found.underflow = stored.size - count_nonzero(stored) - self.zeros
        else:
            kept = np.isfinite(difference)
            lost = self.finite & ~kept
            same = (stored == self.exact) | (np.isnan(stored) & np.isnan(self.exact))
            found.lost = int(np.count_nonzero(lost))
            found.changed = int(np.count_nonzero(~self.finite & ~same))
            found.underflow = int(np.count_nonzero((stored == 0) & (self.exact != 0) & kept))
            square = self.square_sum(np.where(kept, self.exact, 0))
            difference[~kept] = 0
            noise = self.square_sum(difference)
        if noise or difference.any():
            np.abs(difference, out=difference)
            if self.is_wide:
                np.divide(difference, self.divisors, out=difference)
            else:
                np.multiply(difference, self.divisors, out=difference)
            found.worst = float(np.fmax.reduce(difference, axis=None))
            noise = max(noise, LEAST_NOISE)
        found.noise.append(noise)
        found.square.append(square)
        return found


class Exact:
    """What holds every value."""

    def tally(self, tile: Tile) -> Tally:
        """Converts nothing."""
        return Tally(square=[tile.square])


class Cast:
    """A format without scales."""

    def __init__(self, format_name: str, policy: str, amax: float) -> None:
        self.format, self.policy = format_name, policy
        self.limit = overflow_limit(format_name, policy)
        self.may_overflow = amax >= self.limit.value

    def tally(self, tile: Tile) -> Tally:
        """Converts a tile."""
        codes = fpconv.encode(tile.values, self.format, policy=self.policy)
        stored = fpconv.decode(codes, self.format, np.float64, policy=self.policy, out=tile.stored)
        found = tile.compare(stored)
        if self.may_overflow:
            found.overflow = self.limit.count(tile.finite_magnitudes)
        return found


class Scaled:
    """A scheme, with those scales given that more than a tile shares."""

    def __init__(self, scheme: fpconv.Scheme, matrix: Matrix, found: Survey, amax: Amax) -> None:
        changes: dict[str, Any] = {}
        if scheme.scaling == "nvfp4":
            changes["tensor_scale"] = fpconv.tensor_scale(np.array([[found.amax]]))
        elif scheme.scaling.startswith("pow2"):
            is_row = scheme.scaling == "pow2_row"
            changes["dot_length"] = matrix.columns if is_row else matrix.rows
        self.scheme = dataclasses.replace(scheme, **changes)
        self.policy = "ocp" if scheme.scaling.startswith("pow2") else "ocp_sat"
        self.limit = overflow_limit(scheme.element, "ocp")
        self.scales: Array | None = None
        if scheme.scaling == "per_tensor":
            self.scales = self.scales_of(np.array([[found.amax]]))
        elif scheme.scaling.endswith("_column") and amax.columns is not None:
            self.scales = self.scales_of(amax.columns[None, :])
        elif scheme.scaling.endswith("_row") and amax.rows is not None:
            self.scales = self.scales_of(amax.rows[:, None])

    def scales_of(self, amax: Doubles) -> Array:
        """The scales of groups with these largest magnitudes, each a row or a column."""
        return fpconv.quantize(amax, self.scheme).scales

    def scales_for(self, tile: Tile) -> Array:
        """The scales of a tile, in the shape in which they are stored."""
        if self.scheme.block:
            return self.scales_of(tile.block_amax(self.scheme.block).reshape(-1, 1)).reshape(
                len(tile.exact), -1)
        if self.scales is None:  # whole rows
            return self.scales_of(tile.row_amax)
        if self.scheme.scaling == "per_tensor":
            return self.scales
        if self.scheme.scaling.endswith("_row"):
            return self.scales[tile.rows]
        return self.scales[tile.column:tile.column + tile.exact.shape[1]]

    def tally(self, tile: Tile) -> Tally:
        """Converts a tile."""
        if self.scheme.scaling == "mx" or tile.is_wide:
            given = None if self.scheme.block else self.scales_for(tile)
            scaled = fpconv.quantize(tile.values, self.scheme, scales=given)
            scales = self.expand(scaled.scales, tile)
            stored = fpconv.dequantize(scaled, np.float64)
        else:
            scales = self.expand(self.scales_for(tile), tile)
            stored = self.there_and_back(tile, scales)
        found = tile.compare(stored)
        # Where the scale is 0 nothing overflows, and where it is NaN neither.
        found.overflow = self.limit.count(self.grouped(tile.finite_magnitudes),
                                          np.where(scales > 0, scales, math.inf))
        return found

    def there_and_back(self, tile: Tile, scales: Doubles) -> Doubles:
        """What fpconv.quantize and fpconv.dequantize return, some ten times as fast.

        The quotient of a value and a scale, rounded to float64, rounds on to the same
        code as the exact one: a value has 24 bits, a scale 28, a boundary between two
        codes times a scale 40 at most, so that a quotient that is not on the boundary
        is apart from it by 2^-40 of it, and float64 resolves 2^-53.  The product of a
        code and its scale is exact.
        """
        stored = self.grouped(tile.stored)
        np.divide(self.grouped(tile.exact), scales, out=stored)
        codes = fpconv.encode(tile.stored, self.scheme.element, policy=self.policy)
        fpconv.decode(codes, self.scheme.element, np.float64, out=tile.stored)
        np.multiply(stored, scales, out=stored)
        return tile.stored

    def grouped(self, values: Doubles) -> Doubles:
        """A view with the values of a block along an axis of their own, where blocks are whole."""
        rows, columns = values.shape
        block = self.scheme.block
        return values.reshape(rows, -1, block) if block and columns % block == 0 else values

    def expand(self, stored: Array, tile: Tile) -> Doubles:
        """Stored scales as numbers that go with grouped values."""
        scales = scale_values(stored, self.scheme)
        if self.scheme.block:
            columns = tile.exact.shape[1]
            return scales[:, :, None] if columns % self.scheme.block == 0 \
                else np.repeat(scales, self.scheme.block, axis=1)[:, :columns]
        return scales[:, None] if self.scheme.scaling.endswith("_row") else scales


def scale_values(scales: Array, scheme: fpconv.Scheme) -> Doubles:
    """Stored scales as numbers."""
    if scheme.scaling == "mx":
        return np.where(scales == 255, math.nan, np.ldexp(1.0, scales.astype(np.int64) - 127))
    if scheme.scaling == "nvfp4":
        return fpconv.decode(scales, "e4m3", np.float64) * scheme.tensor_scale
    if scheme.scaling.startswith("pow2"):
        return np.ldexp(1.0, scales)
    return scales.astype(np.float64)


def find_obstacle(target: Target, matrix: Matrix) -> str | None:
    """Why a tensor cannot become the target; None if it can."""
    if target.scheme is None:
        return None
    if not matrix.shape:
        return "a scalar has no axis to scale along"
    if target.scheme.scaling.endswith("_column") and matrix.rows == 1:
        return "there is one row: each value would have a scale of its own"
    return None


def is_exact(target: Target, dtype: np.dtype[Any]) -> bool:
    """Whether a target holds each value of a floating-point dtype by definition."""
    return target.format in ("f64", "f32") and \
        fpconv.format_info(target.format).storage.itemsize >= dtype.itemsize


def make_conversion(target: Target, matrix: Matrix, policy: str, found: Survey,
                    amax: Amax) -> Exact | Cast | Scaled:
    """The conversion of a tensor to a target that it can become."""
    if matrix.count == 0 or is_exact(target, matrix.tensor.dtype):
        return Exact()
    if target.scheme:
        return Scaled(target.scheme, matrix, found, amax)
    return Cast(target.format, policy, found.amax)
