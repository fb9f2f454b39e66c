"""What a format cannot hold, counted while values are converted.

SPDX-License-Identifier: MIT
"""
import dataclasses

import fpconv
import numpy


@dataclasses.dataclass
class Losses:
    """`beyond`: values, Inf included where the format has none, that are larger in
    magnitude than the format's largest.  `nan`: NaN, where the format has none."""

    beyond: int = 0
    nan: int = 0

    def add(self, other: "Losses") -> None:
        self.beyond += other.beyond
        self.nan += other.nan


def can_lose(source: str, destination: str) -> bool:
    """Whether there are values of the one format that the other cannot hold."""
    old, new = fpconv.format_info(source), fpconv.format_info(destination)
    return (old.max > new.max or old.has_inf and not new.has_inf
            or old.has_nan and not new.has_nan)


def count_losses(values: numpy.ndarray, format: str) -> Losses:
    """The losses of floating-point values in a format.

    The largest and smallest of them, which cost a small part of the conversion, say
    whether there is anything to count.
    """
    info = fpconv.format_info(format)
    if values.size == 0 or max(values.max(), -values.min()) <= info.max:
        return Losses()
    magnitudes = numpy.abs(values)
    beyond = numpy.count_nonzero(magnitudes > info.max)
    if info.has_inf:
        beyond -= numpy.count_nonzero(numpy.isinf(magnitudes))
    return Losses(beyond, 0 if info.has_nan else numpy.count_nonzero(numpy.isnan(magnitudes)))
