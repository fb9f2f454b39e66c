"""h5fpconv convert

SPDX-License-Identifier: MIT
"""
import argparse

from h5py import h5a, h5ds

from h5fpconv.commands import add_command
from h5fpconv.hdf5.tensors import PlainTensor, Source, Tensor
from h5fpconv.rewriting.carry import Change
from h5fpconv.rewriting.change import PlainChange
from h5fpconv.rewriting.file import Decision, add_file_arguments, report, rewrite
from h5fpconv.rewriting.needed import needed_datasets
from h5fpconv.rewriting.properties import StorageOptions, add_storage_arguments, storage_of
from h5fpconv.rewriting.scale import ScaleChange
from h5fpconv.user.console import Console, add_output_arguments
from h5fpconv.user.select import Selection, add_selection_arguments, selection_of
from h5fpconv.user.status import Status, UsageError
from h5fpconv.user.targets import Storage, Target, add_target_arguments

EXAMPLES = (
    ("Every float dataset to bfloat16", "h5fpconv convert model.h5 small.h5 --to bf16"),
    ("Weights of 64 KiB and more to MXFP8, the rest as it is",
     "h5fpconv convert model.h5 small.h5 --to mxfp8_e4m3 --only '**/weight' --min-size 64K"),
    ("Compressed, with a scale rule that never saturates",
     "h5fpconv convert model.h5 small.h5 --to mxfp4 --scale ceil --gzip 4"),
    ("What would be done", "h5fpconv convert model.h5 small.h5 --map formats.txt --dry-run"),
)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_command(
        subparsers, "convert", "Convert float datasets to a format of fewer bits.", EXAMPLES)
    add_file_arguments(parser)
    add_target_arguments(parser, required=False)
    add_selection_arguments(parser, targets=True)
    add_storage_arguments(parser)
    add_output_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> Status:
    """Runs the command."""
    if not arguments.to and not arguments.map:
        raise UsageError("convert needs --to TARGET or --map FILE")
    selection, options = selection_of(arguments), storage_of(arguments)
    console = Console(arguments)
    with Source(arguments.input, arguments.policy) as source:
        decisions = decide(source, selection, arguments.policy, options)
        console.warn_of_unused(selection.unused(d.tensor.names for d in decisions), source.path)
        if not arguments.dry_run:
            rewrite(source, arguments.output, decisions, console)
    report(arguments, decisions, console)
    return Status.OK


def decide(source: Source, selection: Selection, policy: str,
           options: StorageOptions) -> list[Decision]:
    """For each tensor of the file what becomes of it, and why."""
    needed = needed_datasets(source)
    decisions = []
    for tensor in source.tensors():
        target = selection.target(tensor.names, tensor.value_bytes)
        reason = reason_to_keep(tensor, target, selection, needed)
        change = None if reason else change_to(tensor, target, policy, options)
        decisions.append(Decision(tensor, change, reason))
    return decisions


def change_to(tensor: Tensor, target: Target, policy: str, options: StorageOptions) -> Change:
    if target.storage is Storage.SCALED:
        return ScaleChange(tensor, target, options)
    return PlainChange(tensor, target, policy, options)


def reason_to_keep(tensor: Tensor, target: Target | None, selection: Selection,
                   needed: dict[int, str]) -> str:
    """Why a tensor stays what it is; "" if it does not.  `needed` is of needed_datasets."""
    if target is None:
        return "not chosen"
    if not isinstance(tensor, PlainTensor):
        return "scaled already"
    if tensor.obstacle:
        return tensor.obstacle
    if target.storage is Storage.PLAIN and target.format == tensor.format:
        return "already"
    if is_dimension_scale(tensor) and not selection.is_named(tensor.names):
        return "a dimension scale, not named"
    if target.storage is Storage.SCALED:
        if tensor.size == 0 or not tensor.shape:
            return "a scalar or empty"
        if tensor.object.address in needed:
            return needed[tensor.object.address]
    if target.storage is Storage.PACKED and not tensor.shape:
        return "a scalar"
    return ""


def is_dimension_scale(tensor: PlainTensor) -> bool:
    return h5a.exists(tensor.dataset, b"CLASS") and h5ds.is_scale(tensor.dataset)
