"""How far two tensors are apart.

SPDX-License-Identifier: MIT
"""
import dataclasses
import math
import operator

import fpconv
import numpy

from h5fpconv.hdf5.boxes import Box, work_through
from h5fpconv.hdf5.tensors import PlainTensor, Tensor
from h5fpconv.user.console import Advance

PIECE_BYTES = 1 << 20
SAFE_EXPONENT = 480  # squares of 2^480 and 2^-480, and sums of them, are normal float64


@dataclasses.dataclass(frozen=True)
class Step:
    """The format that ULPs are counted in: its fraction bits and least exponent."""

    name: str
    fraction_bits: int
    least_exponent: int

    def size(self, values: numpy.ndarray) -> numpy.ndarray:
        """The unit in the last place at each value, float64."""
        exponents = numpy.frexp(values)[1] - 1
        exponents = numpy.where(values == 0, self.least_exponent, exponents)
        return numpy.ldexp(1.0, numpy.maximum(exponents, self.least_exponent) - self.fraction_bits)


def step_of(a: Tensor, b: Tensor) -> Step:
    """That of the coarser of two formats.

    Where one has no step of its own, being scaled or tapered, it is float32's.
    """
    names = [t.format if isinstance(t, PlainTensor) and t.format != "hif8" else "f32" for t in (a, b)]
    infos = [fpconv.format_info(name) for name in names]
    coarser = min(infos, key=lambda info: info.fraction_bits)
    least = max(info.smallest_normal for info in infos)
    return Step(coarser.name, coarser.fraction_bits, math.frexp(least)[1] - 1)


@dataclasses.dataclass(frozen=True)
class Bounds:
    """What is allowed.  `atol` and `rtol` bound |b - a| by atol + rtol * |a|."""

    atol: float | None = None
    rtol: float | None = None
    max_ulps: float | None = None
    max_rms: float | None = None
    min_sqnr: float | None = None

    @property
    def any(self) -> bool:
        return any(value is not None for value in dataclasses.astuple(self))


@dataclasses.dataclass
class Peak:
    """The largest of some values, and the index where it was met first."""

    value: float = 0.0
    where: tuple[int, ...] | None = None

    def add(self, other: "Peak") -> None:
        if other.value > self.value:
            self.value, self.where = other.value, other.where


def peak_of(values: numpy.ndarray, box: Box) -> Peak:
    if values.size == 0:
        return Peak()
    i = int(values.argmax())
    inside = numpy.unravel_index(i, box.count) if box.count else ()
    value = float(values.reshape(-1)[i])
    return Peak(value, tuple(int(s + k) for s, k in zip(box.start, inside))) if value > 0 else Peak()


@dataclasses.dataclass
class Distance:
    """From the values of one tensor, a, to those of another, b.

    `nonfinite` counts the places where one is NaN or an Inf and the other is not the
    same; they take no part in the rest.  `beyond` counts those beyond atol + rtol * |a|.
    `signal` and `noise` are the sums of a^2 and (b - a)^2, long double where float64 is too
    narrow for them.
    """

    count: int = 0
    different: int = 0
    nonfinite: int = 0
    beyond: int = 0
    signal: float = 0.0
    noise: float = 0.0
    absolute: Peak = dataclasses.field(default_factory=Peak)
    relative: Peak = dataclasses.field(default_factory=Peak)
    ulps: Peak = dataclasses.field(default_factory=Peak)
    first_nonfinite: tuple[int, ...] | None = None

    @property
    def rms(self) -> float:
        return float(numpy.sqrt(self.noise / self.count)) if self.count else 0.0

    @property
    def sqnr(self) -> float:
        """Signal to quantization noise in dB; Inf where nothing differs."""
        if self.noise == 0:
            return math.inf
        if self.signal == 0 or numpy.isinf(self.noise):
            return -math.inf
        return 10 * float(numpy.log10(self.signal) - numpy.log10(self.noise))

    def add(self, other: "Distance") -> None:
        for name in ("count", "different", "nonfinite", "beyond", "signal", "noise"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("absolute", "relative", "ulps"):
            getattr(self, name).add(getattr(other, name))
        self.first_nonfinite = self.first_nonfinite or other.first_nonfinite

    def violations(self, bounds: Bounds) -> list[str]:
        """Which bounds do not hold; without any bounds, that there is a difference."""
        found = []
        if self.nonfinite:
            found.append(f"{self.nonfinite} NaN or Inf differ")
        if not bounds.any and self.different:
            found.append(f"{self.different} values differ")
        if self.beyond:
            found.append(f"{self.beyond} values beyond atol + rtol * |a|")
        for name, value, bound, is_bad in (
                ("ULPs", self.ulps.value, bounds.max_ulps, operator.gt),
                ("RMS", self.rms, bounds.max_rms, operator.gt),
                ("SQNR", self.sqnr, bounds.min_sqnr, operator.lt)):
            if bound is not None and is_bad(value, bound):
                found.append(f"{name} {value:.6g}, the bound is {bound:.6g}")
        return found


def square_sum(values: numpy.ndarray) -> float:
    """The sum of squares, which neither overflows nor vanishes; values are not negative."""
    largest = values.max(initial=0.0)
    if largest and abs(math.frexp(largest)[1]) > SAFE_EXPONENT:
        values = values.astype(numpy.longdouble)
    return numpy.square(values).sum()


# Signalling NaN, and differences and quotients beyond float64, are what is to be reported.
@numpy.errstate(all="ignore")
def measure_box(a: numpy.ndarray, b: numpy.ndarray, box: Box, step: Step, bounds: Bounds) -> Distance:
    """The distance of two boxes of values."""
    a, b = a.astype(numpy.float64), b.astype(numpy.float64)
    same = (a == b) | (numpy.isnan(a) & numpy.isnan(b))
    if same.all():
        return Distance(count=a.size, signal=square_sum(numpy.abs(a[numpy.isfinite(a)])))
    nonfinite = ~same & ~(numpy.isfinite(a) & numpy.isfinite(b))
    a, b = (numpy.where(numpy.isfinite(x) & ~nonfinite, x, 0) for x in (a, b))
    error, magnitude = numpy.abs(b - a), numpy.abs(a)
    relative = numpy.where(error > 0, error / magnitude, 0)
    found = Distance(
        count=a.size, different=int(numpy.count_nonzero(~same)),
        nonfinite=int(numpy.count_nonzero(nonfinite)),
        signal=square_sum(magnitude), noise=square_sum(error),
        absolute=peak_of(error, box), relative=peak_of(relative, box),
        ulps=peak_of(error / step.size(a), box),
        first_nonfinite=peak_of(nonfinite.astype(float), box).where)
    if bounds.atol is not None or bounds.rtol is not None:
        allowed = (bounds.atol or 0) + (bounds.rtol or 0) * magnitude
        found.beyond = int(numpy.count_nonzero(error > allowed))
    return found


def measure(a: Tensor, b: Tensor, bounds: Bounds, advance: Advance) -> Distance:
    """The distance of two tensors of the same shape, in boxes of bounded size."""
    total, step = Distance(), step_of(a, b)

    def compare(box: Box) -> tuple[Box, Distance]:
        return box, measure_box(a.read(box), b.read(box), box, step, bounds)

    def keep(found: tuple[Box, Distance]) -> None:
        total.add(found[1])
        advance(found[0].size * a.dtype.itemsize)

    work_through(a.boxes(PIECE_BYTES), compare, keep)
    return total
