"""Which target to take for a budget of noise or of bits, and why.

SPDX-License-Identifier: MIT
"""
import argparse
import dataclasses
import math
import re
from collections.abc import Iterable, Mapping

from h5fpconv.analysis.results import Result
from h5fpconv.user.select import KEEP


@dataclasses.dataclass(frozen=True)
class Budget:
    """At least `decibels` of SQNR, or at most `bits` a value: one of them is given."""

    decibels: float | None = None
    bits: float | None = None

    def __str__(self) -> str:
        return f"{self.decibels:g} dB" if self.decibels is not None else f"{self.bits:g} bits"

    def allows(self, result: Result) -> bool:
        """Whether a target of this result may be taken."""
        if not result.keeps_all:
            return False
        if self.decibels is not None:
            return result.sqnr >= self.decibels
        assert self.bits is not None
        return result.bits <= self.bits

    def rank(self, result: Result) -> tuple[float, float]:
        """The best result has the least."""
        order = (result.bits, -result.sqnr)
        return order if self.decibels is not None else (order[1], order[0])


def parse_budget(text: str) -> Budget:
    """40dB, 8bits, 6.25 bits."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(dB|bits?)", text.strip(), re.IGNORECASE)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not a budget such as 40dB or 8bits")
    number = float(found[1])
    return Budget(decibels=number) if found[2].lower() == "db" else Budget(bits=number)


@dataclasses.dataclass(frozen=True)
class Recommendation:
    """A target's name, or KEEP, with the reason in a sentence."""

    target: str
    reason: str


def text_sqnr(decibels: float) -> str:
    """An SQNR for people."""
    if math.isnan(decibels):
        return "no finite value"
    return "exact" if decibels == math.inf else f"{decibels:.1f} dB"


def text_bits(bits: float) -> str:
    """Bits a value for people."""
    return f"{bits:.2f}".rstrip("0").rstrip(".") + " bits"


def describe(name: str, result: Result) -> str:
    return f"{name} ({text_sqnr(result.sqnr)}, {text_bits(result.bits)})"


def recommend(results: Mapping[str, Result], budget: Budget, stored: str | None,
              stored_bits: float) -> Recommendation:
    """The best of the results within the budget.

    `stored` names what the values are in now, of `stored_bits` a value; only a target that
    takes less than that is worth a conversion.  With a budget of dB the target of the
    fewest bits is taken, with one of bits that of the highest SQNR; where these are equal
    the other decides, and then the order of the results.
    """
    if not any(r.count for r in results.values()):
        return Recommendation(KEEP, "there are no values")
    if all(math.isnan(r.sqnr) for r in results.values()):
        return Recommendation(KEEP, "there is no finite value to measure an error of")
    if budget.bits is not None and stored_bits <= budget.bits:
        return Recommendation(KEEP, f"{stored or 'the file'} takes {text_bits(stored_bits)} already")
    smaller = {n: r for n, r in results.items() if r.bits < stored_bits and n != stored}
    allowed = {n: r for n, r in smaller.items() if budget.allows(r)}
    if not allowed:
        return Recommendation(KEEP, why_none(smaller, budget))
    name = min(allowed, key=lambda n: budget.rank(allowed[n]))
    return Recommendation(name, why(name, smaller, allowed, budget))


def why(name: str, smaller: Mapping[str, Result], allowed: Mapping[str, Result],
        budget: Budget) -> str:
    """The reason for a target: its own numbers, and the next one's."""
    result = smaller[name]
    numbers = f"{text_sqnr(result.sqnr)} at {text_bits(result.bits)} a value"
    if budget.decibels is not None:
        reason = f"{numbers}, the fewest that keep {budget}"
        below = best_sqnr((n, r) for n, r in smaller.items() if r.bits < result.bits)
        if below:
            reason += f"; with fewer the best is {describe(below, smaller[below])}"
        return reason + lost_text(smaller, budget)
    reason = f"{numbers}, the highest SQNR within {budget}"
    others = {n: r for n, r in allowed.items() if r.sqnr < result.sqnr}
    second = best_sqnr(others.items())
    if second:
        reason += f"; next is {describe(second, others[second])}"
    return reason + lost_text(smaller, budget)


def why_none(smaller: Mapping[str, Result], budget: Budget) -> str:
    """The reason to keep what there is."""
    if not smaller:
        return "no target takes fewer bits"
    best = best_sqnr(smaller.items())
    if budget.decibels is not None:
        reason = f"no target with fewer bits keeps {budget}"
        if best:
            reason += f"; the best is {describe(best, smaller[best])}"
    else:
        reason = f"no target fits {budget}"
        least = min(smaller, key=lambda n: smaller[n].bits)
        reason += f"; the smallest is {describe(least, smaller[least])}"
    return reason + lost_text(smaller, budget)


def best_sqnr(results: Iterable[tuple[str, Result]]) -> str | None:
    """The name with the highest SQNR among those that keep all values; None without any."""
    kept = [(r.sqnr, -r.bits, n) for n, r in results if r.keeps_all and not math.isnan(r.sqnr)]
    return max(kept)[2] if kept else None


def lost_text(results: Mapping[str, Result], budget: Budget) -> str:
    """Which targets are out of the question for what they do to Inf, NaN and overflow."""
    names = [n for n, r in results.items() if not r.keeps_all]
    if not names:
        return ""
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f" ({shown} would turn values into Inf or NaN, or these into others)"


def pattern_of(path: str) -> str:
    """The pattern of a map that fits a path, and hardly another."""
    escaped = re.sub(r"[*?\[]", lambda found: f"[{found[0]}]", path)
    # In a map `#` begins a comment, blanks at an end are taken off, and bytes that are not
    # UTF-8 cannot be written.
    return re.sub(r"[#\n\r\udc80-\udcff]|\s(?=\s*$)", "?", escaped)


def map_text(recommendations: Iterable[tuple[str, Recommendation]], comments: Iterable[str]) -> str:
    """The lines of a --map file."""
    lines = [f"# {comment}" for comment in comments]
    pairs = [(pattern_of(path), chosen.target) for path, chosen in recommendations]
    # the first pattern that fits decides: those with a wildcard come last
    pairs.sort(key=lambda pair: "?" in pair[0].replace("[?]", ""))
    return "\n".join([*lines, *(f"{pattern} {target}" for pattern, target in pairs), ""])
