"""An inspection for a terminal: tables, and histograms made of block characters.

SPDX-License-Identifier: MIT
"""
import math
from collections.abc import Sequence

import fpconv
import numpy as np

from h5fpconv.analysis.inspection import Inspected, Inspection
from h5fpconv.analysis.recommend import Recommendation, text_bits, text_sqnr
from h5fpconv.analysis.results import Result
from h5fpconv.analysis.survey import LOWEST_EXPONENT, Survey
from h5fpconv.user.console import Console, format_bytes
from h5fpconv.user.select import KEEP

HEIGHT = 4  # lines of a histogram
WIDTH = 64  # columns of one, and exponents where there are no more
LEVELS = " ▁▂▃▄▅▆▇█"
NORMAL, SUBNORMAL = "━", "╌"
RANGES = ("f16", "bf16", "e5m2", "e4m3", "e3m2", "e2m3", "e2m1", "hif8")


def show(inspection: Inspection, console: Console, is_summary: bool) -> None:
    """Prints an inspection."""
    if console.quiet or console.json:
        return
    if is_summary:
        show_summary(inspection, console)
    else:
        for item in inspection.inspected:
            show_dataset(item, console)
    if inspection.inspected:
        show_whole(inspection, console)
    if inspection.skipped:
        console.say(f"\nwithout floating-point numbers, not inspected: {len(inspection.skipped)} "
                    f"dataset{'s' if len(inspection.skipped) > 1 else ''}")


def number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.6g}"


def share(part: int, of: int) -> str:
    """A part in per cent that is 0 only where there is none, and 100 only for all."""
    if not of or part in (0, of):
        return "100 %" if of and part else "0 %"
    percent = 100 * part / of
    if percent < 0.01:
        return "<0.01 %"
    return f"{min(percent, 99.99):.2f} %" if percent > 99.9 else f"{percent:.3g} %"


def relative(error: float) -> str:
    return "0" if not error else f"{error:.3g}"


def shape_text(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape)) or "scalar"


# ---------------------------------------------------------------------------
# Histogram
# ---------------------------------------------------------------------------


def exponent_columns(found: Survey) -> tuple[int, int, list[int]]:
    """The first exponent, exponents a column, and the values in each column."""
    used = found.exponents.nonzero()[0]
    if not used.size:
        return 0, 1, []
    first, last = int(used[0]), int(used[-1])
    step = -(-(last - first + 1) // WIDTH)
    counts = found.exponents[first:last + 1]
    padded = np.pad(counts, (0, -len(counts) % step))
    return first + LOWEST_EXPONENT, step, padded.reshape(-1, step).sum(axis=1).tolist()


def histogram(found: Survey) -> list[str]:
    """Lines of bars over exponents, an axis, and the ranges of the formats."""
    first, step, counts = exponent_columns(found)
    if not counts:
        return []
    eighths = [math.ceil(8 * HEIGHT * count / max(counts)) for count in counts]
    lines = []
    for line in reversed(range(HEIGHT)):
        lines.append("    " + "".join(LEVELS[min(max(e - 8 * line, 0), 8)] for e in eighths))
    per_column = f" (a column is {step} exponents)" if step > 1 else ""
    last = first + step * len(counts) - 1
    left, right = f"2^{first}", f"2^{last}"
    gap = " " * max(1, len(counts) - len(left) - len(right))
    lines.append(f"    {left}{gap}{right if last > first else ''}  magnitude{per_column}")
    for name in RANGES:
        lines.append("    " + format_range(name, first, step, len(counts)))
    return [line.rstrip() for line in lines]


def format_range(name: str, first: int, step: int, columns: int) -> str:
    """Where a format has normal and subnormal values, under a histogram's columns."""
    info = fpconv.format_info(name)
    ends = [math.frexp(v)[1] - 1 for v in (info.smallest_subnormal, info.smallest_normal, info.max)]
    line = ""
    for column in range(columns):
        exponent = first + column * step + step // 2
        line += NORMAL if ends[1] <= exponent <= ends[2] else \
            SUBNORMAL if ends[0] <= exponent < ends[1] else " "
    return f"{line}  {name}"


# ---------------------------------------------------------------------------
# Datasets, and the whole file
# ---------------------------------------------------------------------------

# In 80 columns: errors are relative, overflow and underflow in per cent.
RESULT_COLUMNS = ("target", "bits", "size", "SQNR, dB", "worst", "over %", "under %")


def result_row(name: str, result: Result) -> list[str]:
    """A row of RESULT_COLUMNS."""
    sqnr = text_sqnr(result.sqnr).removesuffix(" dB")
    if math.isfinite(result.sqnr):
        sqnr = f"{result.sqnr:.2f}"
    return [name, text_bits(result.bits).removesuffix(" bits"), format_bytes(result.bytes), sqnr,
            relative(result.worst), *(share(part, result.finite).removesuffix(" %")
                                      for part in (result.overflow, result.underflow))]


def show_results(results: dict[str, Result], console: Console) -> None:
    columns = list(RESULT_COLUMNS)
    rows = [result_row(name, r) for name, r in results.items()]
    lost = [r.lost + r.changed for r in results.values()]
    if any(lost):  # values that became, or were, Inf or NaN
        columns.append("lost")
        rows = [[*row, str(n)] for row, n in zip(rows, lost)]
    console.table(columns, rows)


def show_dataset(item: Inspected, console: Console) -> None:
    """All of one dataset."""
    found = item.survey
    console.say(f"{item.name}: {shape_text(item.shape)}, {item.stored}, "
                f"{format_bytes(item.kept.bytes)}")
    if not found.count:
        console.say("  no values")
        return
    if item.is_sampled:
        console.say(f"  a sample: {found.count} of {item.kept.values} values")
    console.say(f"  minimum {number(found.minimum)}, maximum {number(found.maximum)}, "
                f"smallest magnitude above 0 {number(found.smallest)}")
    console.say(f"  zeros {share(found.zeros, found.count)}, subnormals "
                f"{share(item.subnormals, found.count)}, NaN {share(found.nan, found.count)}, "
                f"Inf {share(found.infinite, found.count)}")
    for line in histogram(found):
        console.say(line)
    show_results(item.results, console)
    for reason in sorted(set(item.obstacles.values())):
        names = ", ".join(n for n, r in item.obstacles.items() if r == reason)
        console.say(f"  not {names}: {reason}")
    if item.recommendation:
        console.say("  " + recommendation_text(item.recommendation))
    console.say("")


def recommendation_text(recommendation: Recommendation) -> str:
    if recommendation.target == KEEP:
        return f"recommended: keep it; {recommendation.reason}"
    return f"recommended: {recommendation.target}; {recommendation.reason}"


def spark_line(found: Survey) -> str:
    """A histogram of one line."""
    _, _, counts = exponent_columns(found)
    step = -(-len(counts) // 24) if counts else 1
    sums = [sum(counts[i:i + step]) for i in range(0, len(counts), step)]
    return "".join(LEVELS[math.ceil(8 * s / max(sums))] for s in sums)


def show_summary(inspection: Inspection, console: Console) -> None:
    """A line for each dataset."""
    rows = []
    for item in inspection.inspected:
        found = item.survey
        chosen = item.chosen()
        row = [item.name, shape_text(item.shape), item.stored, number(found.smallest),
               number(found.amax), spark_line(found)]
        if item.recommendation:
            row += [item.recommendation.target, text_sqnr(chosen.sqnr), text_bits(chosen.bits)]
        rows.append(row)
    columns = ["dataset", "shape", "stored", "smallest", "largest", "magnitudes"]
    if inspection.budget:
        columns += ["recommended", "SQNR", "a value"]
    console.table(columns, rows, left=(0, 1, 2, 5, 6))


def show_whole(inspection: Inspection, console: Console) -> None:
    """The table of the whole file, and what is recommended for it."""
    kept = inspection.kept
    count = len(inspection.inspected)
    console.say(f"whole file: {count} dataset{'s' if count > 1 else ''}, {kept.values} values, "
                f"{format_bytes(kept.bytes)}")
    if inspection.sample and any(i.is_sampled for i in inspection.inspected):
        console.say("  from samples; see the datasets")
    show_results(inspection.whole, console)
    if not inspection.recommendation:
        return
    mixed = inspection.mixed
    console.say(f"budget {inspection.budget}")
    console.say(f"  one target for all, {recommendation_text(inspection.recommendation)}")
    console.say(f"  each dataset its own, as --map writes it: {text_sqnr(mixed.sqnr)}, "
                f"{text_bits(mixed.bits)} a value, {format_bytes(mixed.bytes)} instead of "
                f"{format_bytes(kept.bytes)}")
