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


def is_lossless(codes: numpy.ndarray, format: str) -> bool:
    """Whether converted values show that none was lost; False where that takes a closer look.

    Codes of whole bytes are sign and magnitude.  No magnitude is larger than the union
    of all bits, which is all that most weights, being below 2, need.  Else the largest as a
    signed integer is the largest positive one, and as an unsigned integer that of the
    largest magnitude below zero.
    """
    info = fpconv.format_info(format)
    if format == "hif8" or info.bits < 8 or codes.size == 0:
        return codes.size == 0
    if codes.dtype.kind == "f":
        return bool(max(codes.max(), -codes.min()) < info.max)
    largest = int(fpconv.encode(numpy.float64([info.max]), format)[0])
    sign = 1 << info.bits - 1
    union = int(numpy.bitwise_or.reduce(codes, axis=None))
    if union & sign - 1 < largest:
        return True
    return (int(codes.view(f"i{codes.itemsize}").max()) < largest
            and int(codes.max()) < sign + largest)


def count_losses(values: numpy.ndarray, format: str) -> Losses:
    """The losses of floating-point values in a format."""
    info = fpconv.format_info(format)
    magnitudes = numpy.abs(values)
    beyond = numpy.count_nonzero(magnitudes > info.max)
    if info.has_inf:
        beyond -= numpy.count_nonzero(numpy.isinf(magnitudes))
    lost_nan = 0 if info.has_nan else numpy.count_nonzero(numpy.isnan(magnitudes))
    return Losses(int(beyond), int(lost_nan))
