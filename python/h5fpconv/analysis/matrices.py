"""A tensor as a matrix of its last axis by all the others, in parts.

SPDX-License-Identifier: MIT

A slab is what a thread reads at a time, a tile the part of it that stays in a core's
cache while every target converts it.
"""
import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from h5fpconv.hdf5.boxes import Box, box_shape, boxes, work_through

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]
Result = TypeVar("Result")

SLAB = 1 << 20  # values that a thread reads at a time
HELD = 16  # slabs of a tensor that are kept from the first pass to the second
TILE = 32768  # values: four arrays of float64 are 1 MiB, which a core's L2 cache holds
ALIGNMENT = 32  # columns: the longest block that shares a scale
SAMPLED_PLACES = 64


class Tensor(Protocol):
    """What is asked of a tensor here; h5fpconv.hdf5.tensors has those of files."""

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

    @property
    def cuts_rows(self) -> bool:
        """Whether a row may lie in more than one tile."""
        return self.columns > TILE or any(b.count[-1:] != self.shape[-1:] for b in self.boxes)

    def cut(self, size: int) -> Iterator[Box]:
        """All of the tensor in boxes of about `size` values, of whole chunks if those are not
        much larger."""
        unit = self.align(self.tensor.unit)
        if math.prod(unit) > 4 * size:
            unit = self.align((1,) * len(self.shape))
        return boxes(self.shape, box_shape(self.shape, unit, size))

    def align(self, unit: tuple[int, ...]) -> tuple[int, ...]:
        """The unit with its columns a multiple of ALIGNMENT, within the shape."""
        columns = [math.lcm(u, ALIGNMENT) for u in unit[-1:]]
        return tuple(max(1, min(u, n)) for u, n in zip((*unit[:-1], *columns), self.shape))

    def work_through(self, work: Callable[[Slab], Result],
                     finish: Callable[[Result], None]) -> None:
        """`work` on each slab in several threads, `finish` on the results in order."""
        if len(self.boxes) == 1:  # of many files, nearly all: no thread has to be started
            finish(work(self.read(self.boxes[0])))
        else:
            work_through(self.boxes, lambda box: work(self.read(box)), finish)

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
