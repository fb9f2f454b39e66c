"""h5fpconv inspect: what the values of a file are like, and what to store them as.

SPDX-License-Identifier: MIT

docs/inspect.md defines every number that this prints.
"""
import argparse
import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import fpconv
import numpy as np

from h5fpconv.analysis.conversions import find_obstacle
from h5fpconv.analysis.inspection import Inspected, Inspection
from h5fpconv.analysis.matrices import Matrix
from h5fpconv.analysis.recommend import (Budget, Recommendation, map_text, parse_budget, recommend,
                                         text_bits, text_sqnr)
from h5fpconv.analysis.results import Result, combine, measure
from h5fpconv.analysis.survey import EXPONENTS, LOWEST_EXPONENT, Counts, survey
from h5fpconv.commands import add_command
from h5fpconv.commands.convert import reason_to_keep
from h5fpconv.hdf5.tensors import ScaledTensor, Source, Tensor
from h5fpconv.hdf5.walk import Kind
from h5fpconv.report.text import show
from h5fpconv.rewriting.needed import needed_datasets
from h5fpconv.user.console import Advance, Console, add_output_arguments
from h5fpconv.user.output import check_distinct, complete_file
from h5fpconv.user.select import KEEP, Selection, add_selection_arguments, find_scheme, selection_of
from h5fpconv.user.status import InputError, OutputError, Status, UsageError
from h5fpconv.user.targets import SCALE_RULES, TARGET_NAMES, Storage, Target, find_target

EXAMPLES = (
    ("What is in a file, and what each format would make of it", "h5fpconv inspect in.h5"),
    ("What keeps 40 dB in the fewest bits, as a page and as a map for convert",
     "h5fpconv inspect in.h5 --budget 40dB --html report.html --map in.map"),
    ("The conversion that was recommended", "h5fpconv convert in.h5 out.h5 --map in.map"),
)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the command `inspect`."""
    parser = add_command(subparsers, "inspect",
                         "What the values of a file are like, and what to store them as.", EXAMPLES)
    parser.add_argument("input", metavar="IN.h5", help="an HDF5 file; it is only read")
    add_selection_arguments(parser, targets=False)
    group = parser.add_argument_group("targets")
    group.add_argument("--to", metavar="TARGET", action="append", choices=TARGET_NAMES,
                       help="try only this target; may be given more than once (default: all)")
    group.add_argument("--scale", metavar="RULE", choices=SCALE_RULES,
                       help="how MX schemes choose their scales, as for convert")
    group.add_argument("--policy", choices=fpconv.POLICIES, default="ocp",
                       help="rounding, overflow and NaN of formats without scales, as for "
                            "convert (default: %(default)s)")
    group = parser.add_argument_group("recommendation")
    group.add_argument("--budget", metavar="BUDGET", type=parse_budget,
                       help="recommend the fewest bits that keep so much signal to noise (40dB), "
                            "or the highest signal to noise in so many bits a value (8bits)")
    group.add_argument("--map", metavar="FILE",
                       help="write the recommendations as a map for convert (needs --budget)")
    group = parser.add_argument_group("extent")
    group.add_argument("--sample", metavar="N", type=parse_count,
                       help="look at about N values of each larger dataset, from evenly spaced "
                            "places, instead of at all")
    group.add_argument("--summary", action="store_true",
                       help="one line for each dataset, and the table of the whole file")
    group.add_argument("--html", metavar="FILE",
                       help="write a page with charts, in one file that needs nothing else")
    add_output_arguments(parser)
    parser.set_defaults(run=run)


def parse_count(text: str) -> int:
    """A positive number of values."""
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of values")
    return int(text)


def run(arguments: argparse.Namespace) -> Status:
    """Runs the command."""
    console = Console(arguments)
    if arguments.map and not arguments.budget:
        raise UsageError("--map needs a --budget to recommend something for")
    for path in (arguments.map, arguments.html):
        if path:
            check_distinct([arguments.input], path)
    inspection = inspect(arguments, console)
    if not inspection.inspected:
        console.warn(f"{arguments.input}: no float dataset is selected")
    if arguments.map:
        write_text(arguments.map, map_of(inspection))
    if arguments.html:
        from h5fpconv.report.page import render
        write_text(arguments.html, render(as_json(inspection)))
    console.print_json(as_json(inspection))
    show(inspection, console, arguments.summary)
    return Status.OK


def write_text(path: str, text: str) -> None:
    """Writes a file, all of it or nothing."""
    with complete_file(path) as temporary:
        try:
            with open(temporary, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise OutputError(f"cannot write {path}: {error.strerror}") from None


# ---------------------------------------------------------------------------
# The inspection
# ---------------------------------------------------------------------------


def chosen_targets(arguments: argparse.Namespace) -> list[Target]:
    """Those that are tried, in the order of TARGET_NAMES."""
    return [find_scheme(name, arguments.scale) for name in TARGET_NAMES
            if not arguments.to or name in arguments.to]


def inspect(arguments: argparse.Namespace, console: Console) -> Inspection:
    """Reads the file, and says what each target would make of it."""
    selection = selection_of(argparse.Namespace(**{**vars(arguments), "map": None, "to": None}))
    targets = chosen_targets(arguments)
    budget, policy = arguments.budget, arguments.policy
    with Source(arguments.input, policy) as source:
        tensors = source.tensors()
        console.warn_of_unused(selection.unused(t.names for t in tensors), source.path)
        chosen = [t for t in tensors if selection.includes(t.names, t.value_bytes)]
        known = {t.object.address for t in tensors}
        skipped = [o.name for o in source.objects.values() if o.kind is Kind.DATASET
                   and not o.in_scaled and o.address not in known
                   and selection.includes(o.names, selection.min_bytes)]
        matrices = [Matrix(t, arguments.sample) for t in chosen]
        total = 2 * sum(box.size * m.tensor.dtype.itemsize for m in matrices for box in m.boxes)
        with console.progress(total, "inspecting") as advance:
            needed = needed_datasets(source) if budget else {}
            inspected = [inspect_tensor(t, m, targets, policy, budget, needed, advance)
                         for t, m in zip(chosen, matrices)]
        file_bytes = os.stat(arguments.input).st_size
    kept = combine([i.kept for i in inspected])
    # What cannot become a target stays what it is.
    whole = {t.name: combine([i.results.get(t.name, i.kept) for i in inspected]) for t in targets
             if any(t.name in i.results for i in inspected)}
    stored = {i.stored for i in inspected}
    return Inspection(
        path=arguments.input, file_bytes=file_bytes, policy=policy, rule=arguments.scale,
        budget=budget, sample=arguments.sample, targets=targets, inspected=inspected,
        skipped=skipped, whole=whole, kept=kept,
        recommendation=recommend(whole, budget, stored.pop() if len(stored) == 1 else None,
                                 kept.bits) if budget and inspected else None,
        mixed=combine([i.chosen() for i in inspected]))


def inspect_tensor(tensor: Tensor, matrix: Matrix, targets: Sequence[Target], policy: str,
                   budget: Budget | None, needed: dict[int, str], advance: Advance) -> Inspected:
    """One tensor of a file; `needed` is of needed_datasets."""
    try:
        found, amax = survey(matrix, advance)
        kept, results = measure(matrix, find_target(tensor.target), targets, policy, found, amax,
                                advance)
    except OSError as error:
        raise InputError(f"cannot read {tensor.name!r}: {error}") from None
    matrix.held = None
    is_scaled = isinstance(tensor, ScaledTensor)
    return Inspected(
        names=tensor.names, shape=tensor.shape, stored=tensor.target, survey=found,
        subnormals=0 if is_scaled else found.below(
            fpconv.format_info(tensor.format).smallest_normal),
        is_sampled=matrix.is_sampled, kept=kept, results=results,
        obstacles={t.name: reason for t in targets if (reason := find_obstacle(t, matrix))},
        recommendation=recommend_tensor(tensor, kept, results, budget, needed) if budget else None)


def recommend_tensor(tensor: Tensor, kept: Result, results: dict[str, Result], budget: Budget,
                     needed: dict[int, str]) -> Recommendation:
    """What to make of a tensor, among what convert does make of it."""
    reasons = {name: reason_to_keep(tensor, find_target(name), Selection(), needed)
               for name in results if name != tensor.target}
    possible = {name: results[name] for name, reason in reasons.items() if not reason}
    if not possible and any(reasons.values()):
        return Recommendation(KEEP, f"convert leaves it as it is: {next(iter(reasons.values()))}")
    return recommend(possible, budget, tensor.target, kept.bits)


# ---------------------------------------------------------------------------
# The map, and JSON
# ---------------------------------------------------------------------------


def convert_options(inspection: Inspection) -> str:
    """The options with which convert gives the results of this inspection."""
    rule = f" --scale {inspection.rule}" if inspection.rule else ""
    return f"--policy {inspection.policy}{rule}"


def map_of(inspection: Inspection) -> str:
    """The recommendations as a map for convert."""
    total = combine([i.kept for i in inspection.inspected])
    comments = [
        f"recommended by h5fpconv inspect for {inspection.budget}: {text_sqnr(inspection.mixed.sqnr)}, "
        f"{text_bits(inspection.mixed.bits)} a value instead of {text_bits(total.bits)}",
        f"for h5fpconv convert {convert_options(inspection)}"]
    return map_text(((i.name, i.recommendation) for i in inspection.inspected
                     if i.recommendation), comments)


def result_json(result: Result) -> dict[str, Any]:
    """A result; sqnr_db is null where `exact` is true, or where there is no finite value."""
    finite = max(result.finite, 1)
    return {
        "bytes": result.bytes,
        "bits": result.bits,
        "sqnr_db": result.sqnr,
        "exact": result.noise == 0 and result.keeps_all,
        "worst_relative_error": result.worst,
        "overflow": result.overflow / finite,
        "underflow": result.underflow / finite,
        "finite_to_nonfinite": result.lost,
        "nonfinite_changed": result.changed,
    }


def recommendation_json(recommendation: Recommendation | None) -> dict[str, Any] | None:
    return dataclasses.asdict(recommendation) if recommendation else None


def exponents_json(counts: Counts) -> dict[str, Any]:
    """The number of values of each exponent from `first` on."""
    used = counts.nonzero()[0]
    if not used.size:
        return {"first": 0, "counts": []}
    return {"first": int(used[0]) + LOWEST_EXPONENT,
            "counts": counts[used[0]:used[-1] + 1].tolist()}


def inspected_json(item: Inspected) -> dict[str, Any]:
    """One dataset."""
    found = item.survey
    count = max(found.count, 1)
    return {
        "name": item.name,
        "other_names": list(item.names[1:]),
        "shape": list(item.shape),
        "stored": item.stored,
        "bytes": item.kept.bytes,
        "bits": item.kept.bits,
        "values": item.kept.values,
        "values_looked_at": found.count,
        "minimum": found.minimum,
        "maximum": found.maximum,
        "smallest_magnitude": found.smallest,
        "zeros": found.zeros / count,
        "subnormals": item.subnormals / count,
        "nan": found.nan / count,
        "inf": found.infinite / count,
        "exponents": exponents_json(found.exponents),
        "results": {name: result_json(r) for name, r in item.results.items()},
        "impossible": item.obstacles,
        "recommendation": recommendation_json(item.recommendation),
    }


def target_json(target: Target) -> dict[str, Any]:
    family = {Storage.PLAIN: "cast", Storage.PACKED: "cast"}.get(target.storage) or \
        target.scheme.scaling  # type: ignore[union-attr]
    return {"name": target.name, "family": family, "element": target.format,
            "rule": target.scheme.rule if target.scheme else None}


def format_json(name: str) -> dict[str, Any]:
    info = fpconv.format_info(name)
    return {"name": name, "bits": info.bits, "max": info.max,
            "smallest_normal": info.smallest_normal,
            "smallest_subnormal": info.smallest_subnormal}


def as_json(inspection: Inspection) -> dict[str, Any]:
    """All of an inspection, as numbers; shares are parts of 1."""
    return {
        "file": inspection.path,
        "file_bytes": inspection.file_bytes,
        "fpconv": fpconv.__version__,
        "policy": inspection.policy,
        "scale_rule": inspection.rule,
        "budget": dataclasses.asdict(inspection.budget) if inspection.budget else None,
        "sample": inspection.sample,
        "formats": [format_json(name) for name in fpconv.FORMATS],
        "targets": [target_json(t) for t in inspection.targets],
        "whole_file": {
            "values": inspection.kept.values,
            "bytes": inspection.kept.bytes,
            "bits": inspection.kept.bits,
            "exponents": exponents_json(sum(
                (i.survey.exponents for i in inspection.inspected), np.zeros(EXPONENTS, np.int64))),
            "results": {name: result_json(r) for name, r in inspection.whole.items()},
            "recommendation": recommendation_json(inspection.recommendation),
            "all_recommendations": result_json(inspection.mixed),
        },
        "datasets": [inspected_json(item) for item in inspection.inspected],
        "skipped": list(inspection.skipped),
    }
