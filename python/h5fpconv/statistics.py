"""What the values of a tensor are like, and what each target would make of them.

SPDX-License-Identifier: MIT

docs/inspect.md defines every number.  Values are compared as float64, which holds
those of every format, so that nothing but sums is rounded here.  The tensor is read
twice, in slabs: the first pass finds the range and the amax of scales that more than
a slab shares, the second one converts there and back.  A slab is converted by one
thread, in tiles that stay in its core's cache through all targets; sums are added up
in the order of slabs, so that results do not depend on the number of threads.
"""
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import fpconv
import numpy as np
import numpy.typing as npt

from h5fpconv.boxes import Box, box_shape, boxes, work_through
from h5fpconv.select import KEEP
from h5fpconv.targets import Storage, Target

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Advance = Callable[[int], None]

SLAB = 1 << 20  # values that a thread reads at a time
HELD = 16  # slabs of a tensor that are kept from the first pass to the second
TILE = 32768  # values: four arrays of float64 are 1 MiB, which a core's L2 cache holds
ALIGNMENT = 32  # columns: the longest block that shares a scale
LOWEST_EXPONENT = -1074  # of a float64
EXPONENTS = 2098  # from there to 1023
SAFE_EXPONENT = 480  # squares of 2^480 and 2^-480, and sums of them, are normal
SAMPLED_PLACES = 64


class Tensor(Protocol):
    """What is asked of a tensor here; h5fpconv.tensors has those of files."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def unit(self) -> tuple[int, ...]: ...

    def read(self, box: Box) -> Array: ...


@dataclasses.dataclass(frozen=True)
class Slab:
    """A part of a matrix: some rows, and columns from a multiple of ALIGNMENT on."""

    rows: npt.NDArray[np.intp]
    column: int
    values: Array  # of two dimensions


class Matrix:
    """A tensor, or a sample of it, as its last axis by all the others, in slabs.

    A sample is at most about `sample` values, from evenly spaced places.
    """

    def __init__(self, tensor: Tensor, sample: int | None = None) -> None:
        self.tensor = tensor
        self.shape = tensor.shape
        self.count = math.prod(self.shape)
        self.columns = self.shape[-1] if self.shape else 1
        self.rows = math.prod(self.shape[:-1])
        self.is_sampled = sample is not None and sample < self.count
        self.boxes = list(self.cut(SLAB))
        if sample is not None and self.is_sampled:
            self.boxes = thin_out(list(self.cut(max(ALIGNMENT, sample // SAMPLED_PLACES))), sample)
        self.held: dict[Box, Slab] | None = {} if len(self.boxes) <= HELD else None

    def cut(self, size: int) -> Iterator[Box]:
        """All of the tensor in boxes of about `size` values, of whole chunks if those are not
        much larger."""
        ones = (1,) * len(self.shape)
        for unit in (self.tensor.unit, ones):
            aligned = tuple(map(min, (*unit[:-1], *(math.lcm(u, ALIGNMENT) for u in unit[-1:])),
                                self.shape))
            if math.prod(aligned) <= 4 * size:
                break
        return boxes(self.shape, box_shape(self.shape, tuple(max(1, u) for u in aligned), size))

    def read(self, box: Box) -> Slab:
        """One of the boxes; those of a small tensor are read from the file only once."""
        if self.held is not None and box in self.held:
            return self.held[box]
        rows = np.zeros((1,) * len(box.count[:-1]), np.intp)
        for axis, (start, count) in enumerate(zip(box.start[:-1], box.count)):
            stride = math.prod(self.shape[axis + 1:-1])
            along = (start + np.arange(count)) * stride
            rows = rows + along.reshape([-1 if a == axis else 1 for a in range(rows.ndim)])
        values = self.tensor.read(box).reshape(-1, box.count[-1] if box.count else 1)
        slab = Slab(rows.ravel(), box.start[-1] if box.start else 0, values)
        if self.held is not None:
            self.held[box] = slab
        return slab


def thin_out(parts: list[Box], size: int) -> list[Box]:
    """Evenly spaced ones of the boxes, of about `size` values in all, at least one."""
    total = sum(part.size for part in parts)
    wanted = max(1, size * len(parts) // total)
    return [parts[(2 * i + 1) * len(parts) // (2 * wanted)] for i in range(wanted)]


def count_nonzero(values: Doubles) -> int:
    """As numpy's, ten times as fast."""
    return int(np.count_nonzero(values != 0))


def tiles(slab: Slab) -> Iterator[Slab]:
    """The slab in parts of about TILE values, with the same properties."""
    rows, columns = slab.values.shape
    width = min(columns, TILE)
    height = max(1, TILE // max(1, width))
    for i in range(0, rows, height):
        for j in range(0, columns, TILE):
            yield Slab(slab.rows[i:i + height], slab.column + j,
                       slab.values[i:i + height, j:j + TILE])


# ---------------------------------------------------------------------------
# First pass: the values
# ---------------------------------------------------------------------------


@dataclasses.dataclass
class Survey:
    """The values of a tensor.

    `minimum` and `maximum` are those of the finite values, `smallest` the smallest
    magnitude that is not zero; all NaN where there is none.  `exponents[i]` counts the
    finite values with floor(log2 |x|) = LOWEST_EXPONENT + i.
    """

    count: int = 0
    nan: int = 0
    infinite: int = 0
    zeros: int = 0
    minimum: float = math.nan
    maximum: float = math.nan
    smallest: float = math.nan
    exponents: Counts = dataclasses.field(default_factory=lambda: np.zeros(EXPONENTS, np.int64))

    @property
    def finite(self) -> int:
        """The number of finite values."""
        return self.count - self.nan - self.infinite

    @property
    def amax(self) -> float:
        """The largest finite magnitude; 0 where there is none."""
        return float(np.fmax(0.0, np.fmax(-self.minimum, self.maximum)))

    @property
    def shift(self) -> int:
        """Errors and values are multiplied by 2^-shift before they are squared."""
        exponent = math.frexp(self.amax)[1]
        return exponent if abs(exponent) > SAFE_EXPONENT else 0

    def below(self, smallest_normal: float) -> int:
        """How many values are not zero, and subnormal in a format."""
        first = round(math.log2(smallest_normal)) - LOWEST_EXPONENT
        return int(self.exponents[:max(first, 0)].sum())

    def add(self, other: "Survey") -> None:
        """Takes in the values of another part of the tensor."""
        self.count += other.count
        self.nan += other.nan
        self.infinite += other.infinite
        self.zeros += other.zeros
        self.minimum = float(np.fmin(self.minimum, other.minimum))
        self.maximum = float(np.fmax(self.maximum, other.maximum))
        self.smallest = float(np.fmin(self.smallest, other.smallest))
        self.exponents += other.exponents


def exponent_counts(magnitudes: Doubles) -> Counts:
    """How many of the magnitudes, which are finite, have each exponent."""
    fields = np.bincount((magnitudes.view(np.int64) >> 52).ravel(), minlength=2047)
    counts = np.zeros(EXPONENTS, np.int64)
    counts[-2046:] = fields[1:]
    if fields[0]:  # zeros and subnormals, whose exponents are in their fractions
        small = magnitudes[(magnitudes > 0) & (magnitudes < 2.0**-1022)]
        counts += np.bincount(np.frexp(small)[1] - 1 - LOWEST_EXPONENT, minlength=EXPONENTS)
    return counts


def survey_tile(values: Array) -> tuple[Survey, Doubles]:
    """The tile's values, and their magnitudes with 0 for those that are not finite."""
    magnitudes = np.abs(values.astype(np.float64))
    found = Survey(count=values.size)
    finite: Any = np.isfinite(values)
    if not finite.all():
        found.nan = int(np.count_nonzero(np.isnan(values)))
        found.infinite = values.size - found.nan - int(np.count_nonzero(finite))
        magnitudes[~finite] = 0
    else:
        finite = True
    found.exponents = exponent_counts(magnitudes)
    if found.finite:
        found.zeros = found.finite - count_nonzero(magnitudes)
        found.minimum = float(values.min(where=finite, initial=math.inf))
        found.maximum = float(values.max(where=finite, initial=-math.inf))
    if found.finite > found.zeros:
        nonzero: Any = magnitudes > 0 if found.count > found.finite - found.zeros else True
        found.smallest = float(magnitudes.min(where=nonzero, initial=math.inf))
    return found, magnitudes


class Amax:
    """The largest finite magnitude of each row and of each column, where scales that a
    tile does not choose by itself come from them: of rows that are not in one slab or
    tile, and of columns unless there is one row."""

    def __init__(self, matrix: Matrix) -> None:
        is_cut = matrix.columns > TILE or any(box.count[-1:] != matrix.shape[-1:]
                                              for box in matrix.boxes)
        self.rows = np.zeros(matrix.rows) if is_cut else None
        self.columns = np.zeros(matrix.columns) if matrix.rows != 1 else None

    def add(self, rows: npt.NDArray[np.intp], column: int, of_rows: Doubles,
            of_columns: Doubles) -> None:
        """Takes in those of a part of the matrix."""
        if self.rows is not None:
            self.rows[rows] = np.maximum(self.rows[rows], of_rows)
        if self.columns is not None:
            part = self.columns[column:column + len(of_columns)]
            np.maximum(part, of_columns, out=part)


def survey_slab(slab: Slab) -> tuple[Survey, Slab, Doubles, Doubles]:
    """The slab's values, and the largest magnitudes of its rows and columns."""
    found = Survey()
    rows, columns = np.zeros(slab.values.shape[0]), np.zeros(slab.values.shape[1])
    first = 0
    for tile in tiles(slab):
        height, width = tile.values.shape
        with np.errstate(invalid="ignore"):  # signalling NaN
            part, magnitudes = survey_tile(tile.values)
        found.add(part)
        begin = tile.column - slab.column
        for all_of_them, start, new in ((rows, first, magnitudes.max(axis=1)),
                                        (columns, begin, magnitudes.max(axis=0))):
            mine = all_of_them[start:start + len(new)]
            np.maximum(mine, new, out=mine)
        if begin + width == len(columns):
            first += height
    return found, slab, rows, columns


def survey(matrix: Matrix, advance: Advance = lambda count: None) -> tuple[Survey, Amax]:
    """The first pass; `advance` is told the bytes of each slab that is done."""
    total, amax = Survey(), Amax(matrix)

    def finish(done: tuple[Survey, Slab, Doubles, Doubles]) -> None:
        found, slab, rows, columns = done
        total.add(found)
        amax.add(slab.rows, slab.column, rows, columns)
        advance(slab.values.nbytes)

    work_through(matrix.boxes, lambda box: survey_slab(matrix.read(box)), finish)
    return total, amax


# ---------------------------------------------------------------------------
# Second pass: there and back
# ---------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class OverflowLimit:
    """The magnitudes that round to more than a format's largest finite value."""

    value: float
    is_inclusive: bool

    def count(self, magnitudes: Doubles, scales: Doubles | float = 1.0) -> int:
        """How many magnitudes are beyond the limit times their scale."""
        # The product is exact: both factors have few bits.
        beyond = np.greater_equal if self.is_inclusive else np.greater
        return int(np.count_nonzero(beyond(magnitudes, self.value * scales)))


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
        # Multiplying is faster; but the reciprocals of float64's subnormals are not finite.
        self.is_wide = self.values.dtype == np.float64
        self.divide = (np.divide, divisors) if self.is_wide else (np.multiply, 1 / divisors)
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
        found.noise.append(noise)
        found.square.append(square)
        if noise:
            np.abs(difference, out=difference)
            divide, by = self.divide
            divide(difference, by, out=difference)
            found.worst = float(np.fmax.reduce(difference, axis=None))
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
        elif scheme.scaling.endswith("_column"):
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


@dataclasses.dataclass(frozen=True)
class Result:
    """What a target makes of one tensor, or of many.

    `values` take `bytes`; `count` of them, all but for a sample, have been looked at.
    `noise` and `square` are sums over the values that are finite before and after, times
    4^-`shift`: of the squared errors, and of the squared values.  `lost` finite values
    become Inf or NaN, `changed` ones of Inf and NaN become something else.
    """

    values: int
    bytes: int
    count: int
    finite: int
    noise: float
    square: float
    shift: int
    worst: float
    overflow: int
    underflow: int
    lost: int
    changed: int

    @property
    def sqnr(self) -> float:
        """Signal to quantization noise in dB; Inf where nothing is changed, NaN where there is
        no finite value."""
        if not self.finite - self.lost:
            return math.nan
        if not self.noise:
            return math.inf
        return 10 * (math.log10(self.square) - math.log10(self.noise)) if self.square else -math.inf

    @property
    def bits(self) -> float:
        """Bits that a value takes, scales included."""
        return 8 * self.bytes / self.values if self.values else math.nan

    @property
    def keeps_all(self) -> bool:
        """Whether finite values stay finite, and Inf and NaN what they are."""
        return not self.lost and not self.changed


def extrapolate(result: Result) -> Result:
    """The result of a sample as if all values had been looked at."""
    weight = result.values / result.count if result.count else 1.0
    return result if weight == 1.0 else dataclasses.replace(
        result, count=result.values, noise=result.noise * weight, square=result.square * weight,
        **{name: round(getattr(result, name) * weight)
           for name in ("finite", "overflow", "underflow", "lost", "changed")})


def combine(results: Sequence[Result]) -> Result:
    """The result of all values of some tensors together."""
    results = [extrapolate(r) for r in results]
    shift = max((r.shift for r in results if r.square), default=0)

    def total(name: str) -> int:
        return sum(getattr(r, name) for r in results)

    def total_square(name: str) -> float:
        return math.fsum(math.ldexp(getattr(r, name), 2 * (r.shift - shift)) for r in results)

    return Result(
        values=total("values"), bytes=total("bytes"), count=total("count"),
        finite=total("finite"), noise=total_square("noise"), square=total_square("square"),
        shift=shift, worst=max((r.worst for r in results), default=0.0),
        overflow=total("overflow"), underflow=total("underflow"), lost=total("lost"),
        changed=total("changed"))


def find_obstacle(target: Target, matrix: Matrix) -> str | None:
    """Why a tensor cannot become the target; None if it can."""
    if target.scheme is None:
        return None
    if not matrix.shape:
        return "a scalar has no axis to scale along"
    if target.scheme.scaling.endswith("_column") and matrix.rows == 1:
        return "there is one row: each value would have a scale of its own"
    return None


def target_bytes(target: Target, rows: int, columns: int) -> int:
    """What rows * columns values take as a target, scales included; file metadata, padding
    of chunks and filters are not counted."""
    count = rows * columns
    info = fpconv.format_info(target.format)
    if target.scheme is None:
        packed = target.storage is Storage.PACKED
        return fpconv.packed_size(target.format, count) if packed else count * info.storage.itemsize
    scaling, block = target.scheme.scaling, target.scheme.block
    codes = rows * fpconv.packed_size(target.format, columns)
    if block:
        return codes + rows * -(-columns // block) + (4 if scaling == "nvfp4" else 0)
    groups = {"tensor": 1, "row": rows, "column": columns}[scaling.split("_")[1]]
    return codes + groups * (2 if scaling.startswith("pow2") else 4)


def is_exact(target: Target, dtype: np.dtype[Any]) -> bool:
    """Whether a target holds each value of a floating-point dtype by definition."""
    return target.format in ("f64", "f32") and \
        fpconv.format_info(target.format).storage.itemsize >= dtype.itemsize


def measure(matrix: Matrix, stored: Target, targets: Sequence[Target], policy: str,
            found: Survey, amax: Amax,
            advance: Advance = lambda count: None) -> tuple[Result, dict[str, Result]]:
    """The second pass: the result of leaving the tensor as what it is stored as, and those
    of the targets that it can become, by name."""
    possible = [t for t in targets if not find_obstacle(t, matrix)]
    # A format and its packed form store the same values.
    keys = {t.name: t.scheme or t.format for t in possible}
    conversions: dict[Any, Exact | Cast | Scaled] = {KEEP: Exact()}
    for target in possible:
        key = keys[target.name]
        if key not in conversions:
            conversions[key] = make_conversion(target, matrix, policy, found, amax)
    tallies = {key: Tally() for key in conversions}

    def work(box: Box) -> tuple[int, dict[Any, Tally]]:
        slab = matrix.read(box)
        parts = {key: Tally() for key in conversions}
        with np.errstate(all="ignore"):
            for part in tiles(slab):
                tile = Tile(part, found.shift)
                for key, conversion in conversions.items():
                    parts[key].add(conversion.tally(tile))
        return slab.values.nbytes, parts

    def finish(done: tuple[int, dict[Any, Tally]]) -> None:
        size, parts = done
        for key, part in parts.items():
            tallies[key].add(part)
        advance(size)

    work_through(matrix.boxes, work, finish)
    return (result_of(stored, matrix, found, tallies[KEEP]),
            {t.name: result_of(t, matrix, found, tallies[keys[t.name]]) for t in possible})


def make_conversion(target: Target, matrix: Matrix, policy: str, found: Survey,
                    amax: Amax) -> Exact | Cast | Scaled:
    """The conversion of a tensor to a target that it can become."""
    if matrix.count == 0 or is_exact(target, matrix.tensor.dtype):
        return Exact()
    if target.scheme:
        return Scaled(target.scheme, matrix, found, amax)
    return Cast(target.format, policy, found.amax)


def result_of(target: Target, matrix: Matrix, found: Survey, tally: Tally) -> Result:
    """A tally with what it refers to."""
    return Result(
        count=found.count, finite=found.finite,
        bytes=target_bytes(target, matrix.rows, matrix.columns), values=matrix.count,
        noise=math.fsum(tally.noise), square=math.fsum(tally.square),
        shift=found.shift, worst=tally.worst, overflow=tally.overflow,
        underflow=tally.underflow, lost=tally.lost, changed=tally.changed)
