"""The second pass over a tensor: what each target would make of it.

SPDX-License-Identifier: MIT

docs/inspect.md defines every number.  A slab is converted by one thread; sums are added
up in the order of slabs, so that results do not depend on the number of threads.
"""
import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import fpconv
import numpy as np

from h5fpconv.analysis.conversions import (Cast, Exact, Scaled, Tally, Tile, find_obstacle,
                                           make_conversion)
from h5fpconv.analysis.matrices import Matrix, Slab, tiles
from h5fpconv.analysis.survey import Amax, Survey
from h5fpconv.user.console import Advance
from h5fpconv.user.select import KEEP
from h5fpconv.user.targets import Storage, Target


@dataclasses.dataclass(frozen=True, slots=True)
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

    def work(slab: Slab) -> tuple[int, dict[Any, Tally]]:
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

    matrix.work_through(work, finish)
    return (result_of(stored, matrix, found, tallies[KEEP]),
            {t.name: result_of(t, matrix, found, tallies[keys[t.name]]) for t in possible})


def result_of(target: Target, matrix: Matrix, found: Survey, tally: Tally) -> Result:
    """A tally with what it refers to."""
    return Result(
        count=found.count, finite=found.finite,
        bytes=target_bytes(target, matrix.rows, matrix.columns), values=matrix.count,
        noise=math.fsum(tally.noise), square=math.fsum(tally.square),
        shift=found.shift, worst=tally.worst, overflow=tally.overflow,
        underflow=tally.underflow, lost=tally.lost, changed=tally.changed)
