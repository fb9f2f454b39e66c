"""The first pass over a tensor: what its values are like.

SPDX-License-Identifier: MIT

It also finds the amax of the scales that more than a slab shares.
"""
import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from h5fpconv.analysis.matrices import Array, Doubles, Matrix, Slab, count_nonzero, tiles
from h5fpconv.user.console import Advance

Counts = npt.NDArray[np.int64]

LOWEST_EXPONENT = -1074  # of a float64
EXPONENTS = 2098  # from there to 1023
SAFE_EXPONENT = 480  # squares of 2^480 and 2^-480, and sums of them, are normal


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
        self.rows = np.zeros(matrix.rows) if matrix.cuts_rows else None
        self.columns = np.zeros(matrix.columns) if matrix.rows != 1 else None

    def add(self, rows: npt.NDArray[np.intp], column: int, of_rows: Doubles,
            of_columns: Doubles) -> None:
        """Takes in those of a part of the matrix."""
        if self.rows is not None:
            self.rows[rows] = np.maximum(self.rows[rows], of_rows)
        if self.columns is not None:
            part = self.columns[column:column + len(of_columns)]
            np.maximum(part, of_columns, out=part)


# Rows and first column of a tile, and the largest magnitude of each row and column in it
Largest = tuple[npt.NDArray[np.intp], int, Doubles, Doubles]


def survey_slab(slab: Slab) -> tuple[Survey, list[Largest], int]:
    """The slab's values, its largest magnitudes, and its bytes."""
    found, largest = Survey(), []
    with np.errstate(invalid="ignore"):  # signalling NaN
        for tile in tiles(slab):
            part, magnitudes = survey_tile(tile.values)
            found.add(part)
            largest.append((tile.rows, tile.column, magnitudes.max(axis=1),
                            magnitudes.max(axis=0)))
    return found, largest, slab.values.nbytes


def survey(matrix: Matrix, advance: Advance = lambda count: None) -> tuple[Survey, Amax]:
    """The first pass; `advance` is told the bytes of each slab that is done."""
    total, amax = Survey(), Amax(matrix)

    def finish(done: tuple[Survey, list[Largest], int]) -> None:
        found, largest, size = done
        total.add(found)
        for part in largest:
            amax.add(*part)
        advance(size)

    matrix.work_through(survey_slab, finish)
    return total, amax
