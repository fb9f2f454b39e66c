"""h5fpconv diff

SPDX-License-Identifier: MIT
"""
import argparse
import dataclasses
import math
from typing import Any

from h5py import h5d, h5s

from h5fpconv.analysis.distance import Bounds, Distance, measure, step_of
from h5fpconv.commands import add_command
from h5fpconv.hdf5 import calls
from h5fpconv.hdf5.boxes import box_shape, boxes, spaces
from h5fpconv.hdf5.references import holds_pointers, holds_references
from h5fpconv.hdf5.tensors import Source, Tensor
from h5fpconv.hdf5.walk import Kind, Object
from h5fpconv.user.console import Advance, Console, add_output_arguments
from h5fpconv.user.select import Selection, add_selection_arguments, selection_of
from h5fpconv.user.status import Status
from h5fpconv.user.targets import add_policy_argument

EXAMPLES = (
    ("How far a converted file is from the original", "h5fpconv diff model.h5 small.h5"),
    ("Fail unless every value is rounded correctly",
     "h5fpconv diff model.h5 small.h5 --max-ulps 0.5"),
    ("Fail below 40 dB, and say where, for a program",
     "h5fpconv diff model.h5 small.h5 --min-sqnr 40 --json"),
)
RAW_BYTES = 1 << 20


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_command(
        subparsers, "diff", "Compare two files value by value, whatever format each value is in.",
        EXAMPLES)
    parser.add_argument("a", help="the reference")
    parser.add_argument("b", help="the file that is compared with it")
    group = parser.add_argument_group(
        "bounds", "Without any, every difference counts.  Differences in structure and of NaN "
        "and Inf always do.")
    group.add_argument("--atol", metavar="X", type=parse_bound,
                       help="bound |b - a| by X + rtol * |a|")
    group.add_argument("--rtol", metavar="X", type=parse_bound,
                       help="bound |b - a| by atol + X * |a|")
    group.add_argument("--max-ulps", metavar="N", type=parse_bound,
                       help="bound |b - a| by N units in the last place, at a, of the coarser "
                            "format (float32 where one is scaled): 0.5 is correct rounding")
    group.add_argument("--max-rms", metavar="X", type=parse_bound,
                       help="bound the root mean square of b - a, per dataset")
    group.add_argument("--min-sqnr", metavar="DB", type=parse_number,
                       help="signal to quantization noise that a dataset must have, in dB")
    add_policy_argument(parser.add_argument_group("conversion"))
    add_selection_arguments(parser, targets=False)
    add_output_arguments(parser)
    parser.set_defaults(run=run)


def parse_number(text: str) -> float:
    """A number that others can be compared with: not NaN."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return number


def parse_bound(text: str) -> float:
    """A number that magnitudes are compared with."""
    bound = parse_number(text)
    if bound < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is negative, as no difference is")
    return bound


def run(arguments: argparse.Namespace) -> Status:
    """Runs the command."""
    bounds = Bounds(arguments.atol, arguments.rtol, arguments.max_ulps, arguments.max_rms,
                    arguments.min_sqnr)
    console = Console(arguments)
    with Source(arguments.a, arguments.policy) as a, Source(arguments.b, arguments.policy) as b:
        selection = selection_of(arguments)
        for pattern in selection.unused(o.names for f in (a, b) for o in f.objects.values()):
            console.warn(f"nothing in {a.path} or {b.path} fits the pattern {pattern!r}")
        found = compare(a, b, selection, bounds, console)
    found.report(console, arguments)
    return Status.OK if found.is_good else Status.DIFFERENT


@dataclasses.dataclass
class Comparison:
    """Two files' differences: of structure, of other datasets, and of tensors."""

    structure: list[str]
    entries: list[dict[str, Any]]

    @property
    def is_good(self) -> bool:
        return not self.structure and not any(e["violations"] for e in self.entries)

    def report(self, console: Console, arguments: argparse.Namespace) -> None:
        console.print_json({"a": arguments.a, "b": arguments.b, "equal_within_bounds": self.is_good,
                            "structure": self.structure, "datasets": self.entries})
        columns = ("dataset", "a", "b", "max abs", "max rel", "RMS", "SQNR, dB", "ULPs", "of", "at")
        rows = [row(e) for e in self.entries]
        if rows:
            console.table(columns, rows, left=(0, 1, 2, 8, 9))
        for line in self.structure:
            console.say(line)
        for e in self.entries:
            for violation in e["violations"]:
                console.say(f"{e['dataset']}: {violation}")
        console.say("no difference beyond the bounds" if self.is_good else "the files differ")


def row(e: dict[str, Any]) -> tuple[str, ...]:
    where = "" if e["where"] is None else "[" + ", ".join(map(str, e["where"])) + "]"
    return (e["dataset"], e["a"], e["b"], *(f"{e[key]:.3g}" for key in ("max_abs", "max_rel", "rms")),
            f"{e['sqnr']:.2f}", f"{e['max_ulps']:.3g}", e["ulps_of"], where)


def entry(a: Tensor, b: Tensor, distance: Distance, bounds: Bounds) -> dict[str, Any]:
    """A pair of tensors in the report; `where` is the largest error's index."""
    return {"dataset": a.name, "a": a.target, "b": b.target, "values": distance.count,
            "different": distance.different, "nonfinite_different": distance.nonfinite,
            "max_abs": distance.absolute.value, "max_rel": distance.relative.value,
            "rms": distance.rms, "sqnr": distance.sqnr, "max_ulps": distance.ulps.value,
            "ulps_of": step_of(a, b).name,
            "where": distance.first_nonfinite or distance.absolute.where,
            "where_rel": distance.relative.where, "where_ulps": distance.ulps.where,
            "violations": distance.violations(bounds)}


def named_objects(source: Source) -> dict[str, Object]:
    """What is compared, under every path: all but the parts of scaled tensors."""
    return {name: object for object in source.objects.values() if not object.in_scaled
            for name in object.names}


def compare(a: Source, b: Source, selection: Selection, bounds: Bounds,
            console: Console) -> Comparison:
    """Compares all objects that are chosen by their path in the first file or the second."""
    found = Comparison([], [])
    mine, other = named_objects(a), named_objects(b)
    for files, these, those in ((("a", "b"), mine, other), (("b", "a"), other, mine)):
        found.structure += [f"{name}: in {files[0]} only" for name in these
                            if name not in those and selection.includes([name], selection.min_bytes)]
    pairs = [(object, other[object.name]) for object in mine.values() if object.name in other]
    pairs = list({first.address: (first, second) for first, second in pairs}.values())
    tensors = {t.object.address: t for t in a.tensors()}, {t.object.address: t for t in b.tensors()}
    total = sum(t.size * t.dtype.itemsize for t in tensors[0].values())
    with console.progress(total, "comparing") as advance:
        for first, second in pairs:
            compare_pair(a, b, first, second, tensors, selection, bounds, found, advance)
    return found


def compare_pair(a: Source, b: Source, first: Object, second: Object,
                 tensors: tuple[dict[int, Tensor], dict[int, Tensor]], selection: Selection,
                 bounds: Bounds, found: Comparison, advance: Advance) -> None:
    """Two objects of one path."""
    x, y = tensors[0].get(first.address), tensors[1].get(second.address)
    size = x.value_bytes if x else selection.min_bytes
    if not selection.includes(first.names, size):
        return
    if x and y:
        if x.shape != y.shape:
            found.structure.append(f"{first.name}: the shape is {x.shape} and {y.shape}")
        else:
            found.entries.append(entry(x, y, measure(x, y, bounds, advance), bounds))
    elif x or y or first.kind is not second.kind:
        found.structure.append(f"{first.name}: {describe(first, x)} and {describe(second, y)}")
    elif first.kind is Kind.DATASET:
        difference = compare_raw(h5d.open(a.id, first.path), h5d.open(b.id, second.path))
        found.structure += [f"{first.name}: {difference}"] if difference else []


def describe(object: Object, tensor: Tensor | None) -> str:
    return f"{tensor.target} values" if tensor else f"a {object.kind.name.lower()} without such"


def compare_raw(a: h5d.DatasetID, b: h5d.DatasetID) -> str:
    """How two datasets of other types differ; "" if they do not, or point elsewhere."""
    datatype = a.get_type()
    if not datatype.equal(b.get_type()):
        return "the datatypes differ"
    if a.shape != b.shape:
        return f"the shape is {a.shape} and {b.shape}"
    if (holds_pointers(datatype) or holds_references(datatype)
            or a.get_space().get_simple_extent_type() == h5s.NULL):
        return ""
    size = datatype.get_size()
    for box in boxes(a.shape, box_shape(a.shape, (1,) * len(a.shape), max(1, RAW_BYTES // size))):
        memory, file = spaces(a.get_space(), box)
        with calls.values_of(a, memory, file) as x, calls.values_of(b, memory, file) as y:
            if x.raw != y.raw:
                return "the values differ"
    return ""
