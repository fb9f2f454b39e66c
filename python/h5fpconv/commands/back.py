"""h5fpconv back

SPDX-License-Identifier: MIT
"""
import argparse

from h5fpconv.commands import add_command
from h5fpconv.hdf5.tensors import ScaledTensor, Source, Tensor
from h5fpconv.rewriting.change import PlainChange
from h5fpconv.rewriting.file import Decision, add_file_arguments, report, rewrite
from h5fpconv.rewriting.properties import StorageOptions, add_storage_arguments, storage_of
from h5fpconv.rewriting.scale import UnscaleChange
from h5fpconv.user.console import Console, add_output_arguments
from h5fpconv.user.select import Selection, add_selection_arguments, selection_of
from h5fpconv.user.status import Status
from h5fpconv.user.targets import Target, add_policy_argument, find_target

EXAMPLES = (
    ("All of a converted file as float32", "h5fpconv back small.h5 wide.h5"),
    ("Some of it as float64", "h5fpconv back small.h5 wide.h5 --to f64 --only '/decoder/**'"),
)
WIDE = ("f32", "f64")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_command(
        subparsers, "back", "Decode datasets of few bits, and scaled tensors, to float32 or "
        "float64.", EXAMPLES)
    add_file_arguments(parser)
    group = parser.add_argument_group("conversion")
    group.add_argument("--to", choices=WIDE, default="f32",
                       help="the format of the decoded values (default: %(default)s)")
    add_policy_argument(group)
    add_selection_arguments(parser, targets=False)
    add_storage_arguments(parser)
    add_output_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> Status:
    """Runs the command."""
    selection, options = selection_of(arguments), storage_of(arguments)
    console = Console(arguments)
    with Source(arguments.input, arguments.policy) as source:
        decisions = [decide(tensor, selection, find_target(arguments.to), arguments.policy, options)
                     for tensor in source.tensors()]
        console.warn_of_unused(selection.unused(d.tensor.names for d in decisions), source.path)
        if not arguments.dry_run:
            rewrite(source, arguments.output, decisions, console)
    report(arguments, decisions, console)
    return Status.OK


def decide(tensor: Tensor, selection: Selection, target: Target, policy: str,
           options: StorageOptions) -> Decision:
    """What becomes of a tensor, and why."""
    if not selection.includes(tensor.names, tensor.value_bytes):
        return Decision(tensor, reason="not chosen")
    if isinstance(tensor, ScaledTensor):
        if tensor.holds_more:
            return Decision(tensor, reason="its group holds more than codes and scales")
        return Decision(tensor, UnscaleChange(tensor, target, options))
    if tensor.format in WIDE:
        return Decision(tensor, reason="wide already")
    if tensor.obstacle:
        return Decision(tensor, reason=tensor.obstacle)
    return Decision(tensor, PlainChange(tensor, target, policy, options))
