"""An input file rewritten into an output file: what convert and back have in common.

SPDX-License-Identifier: MIT
"""
import argparse
import dataclasses
import errno
import os
from typing import Any

from h5py import h5d, h5f, h5g, h5p

from h5fpconv.hdf5.tensors import Source, Tensor
from h5fpconv.hdf5.walk import Kind
from h5fpconv.rewriting.carry import Change, Copy, group_properties
from h5fpconv.user.console import Console, format_bytes
from h5fpconv.user.output import check_distinct, complete_file
from h5fpconv.user.status import CommandError, InputError, OutputError

COPY_BYTES = 1 << 20


@dataclasses.dataclass
class Decision:
    """What is done about a tensor: a change, or a reason to keep it."""

    tensor: Tensor
    change: Change | None = None
    reason: str = ""


def add_file_arguments(parser: argparse.ArgumentParser) -> None:
    """The two files and --dry-run."""
    parser.add_argument("input", help="an HDF5 file; it is only read")
    parser.add_argument("output", help="the file to make; it appears when it is complete")
    parser.add_argument("--dry-run", action="store_true",
                        help="say what would be done and write nothing")


# ---------------------------------------------------------------------------
# The file
# ---------------------------------------------------------------------------


def superblock_version(source: Source) -> int:
    offset = source.id.get_create_plist().get_userblock()
    return os.pread(source.fd, 9, offset)[8]


def access_list(source: Source) -> h5p.PropFAID:
    """Objects in the versions of HDF5's format that the source's superblock goes with."""
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_fclose_degree(h5f.CLOSE_STRONG)
    version = superblock_version(source)
    low = {0: h5f.LIBVER_EARLIEST, 1: h5f.LIBVER_EARLIEST, 2: h5f.LIBVER_V18}.get(
        version, h5f.LIBVER_V110)
    access.set_libver_bounds(low, h5f.LIBVER_LATEST)
    return access


def create_file(source: Source, path: str) -> h5f.FileID:
    """An empty file with the source's creation properties, and its root's."""
    properties = source.id.get_create_plist()
    group_properties(h5g.open(source.id, b"/"), properties)
    return h5f.create(os.fsencode(path), h5f.ACC_TRUNC, properties, access_list(source))


def copy_user_block(source: Source, fd: int) -> None:
    """The bytes before HDF5's part of the file, which belong to others."""
    size = source.id.get_create_plist().get_userblock()
    for offset in range(0, size, COPY_BYTES):
        os.pwrite(fd, os.pread(source.fd, min(COPY_BYTES, size - offset), offset), offset)


def write_file(source: Source, path: str, changes: dict[int, Change], console: Console) -> None:
    fd = os.open(path, os.O_RDWR)
    try:
        file = create_file(source, path)
        try:
            name = os.path.basename(source.path)
            with console.progress(total_bytes(source, changes), name) as advance:
                Copy(source, file, fd, changes, advance).run()
            file.close()
        except BaseException:
            abandon(file)
            raise
        copy_user_block(source, fd)
    finally:
        os.close(fd)


def abandon(file: h5f.FileID) -> None:
    """Closes a file that is not wanted any more, whatever state its disk is in.

    HDF5 insists on writing what it holds, and crashes at the end of the program if it
    could not: it writes to memory instead.
    """
    if not file.valid:
        return
    memory = os.memfd_create("abandoned")
    os.dup2(memory, file.get_vfd_handle())
    os.close(memory)
    file.close()


def total_bytes(source: Source, changes: dict[int, Change]) -> int:
    """The bytes that the copy will report."""
    changed = {source.objects[address].path for address in changes}
    kept = sum(h5d.open(source.id, object.path).get_storage_size()
               for object in source.objects.values() if object.kind is Kind.DATASET
               and not changed.intersection((object.path, object.path.rpartition(b"/")[0])))
    return kept + sum(change.work_bytes for change in changes.values())


def rewrite(source: Source, output: str, decisions: list[Decision], console: Console) -> None:
    """Writes the output.  OutputError if that fails; then there is none."""
    check_distinct([source.path], output)
    changes = {d.tensor.object.address: d.change for d in decisions if d.change}
    with complete_file(output) as temporary:
        try:
            write_file(source, temporary, changes, console)
        except CommandError:
            raise
        except (OSError, RuntimeError, ValueError, KeyError) as error:
            if is_about_writing(error):
                raise OutputError(f"cannot write {output}: {error}") from error
            raise InputError(f"cannot copy {source.path}: {error}") from error


def is_about_writing(error: Exception) -> bool:
    """Whether the system refused to write, or HDF5 says that it did."""
    refusals = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
    said = str(error)
    return getattr(error, "errno", None) in refusals or "write failed" in said or "extend" in said


# ---------------------------------------------------------------------------
# The report
# ---------------------------------------------------------------------------


def entry(decision: Decision, *, is_done: bool) -> dict[str, Any]:
    """One tensor of the report, as JSON has it."""
    tensor, change = decision.tensor, decision.change
    found: dict[str, Any] = {"dataset": tensor.name, "shape": list(tensor.shape),
                             "from": tensor.target, "bytes_before": tensor.stored_bytes}
    if change is None:
        return {**found, "kept": decision.reason}
    found["to"] = change.target.name
    if is_done:
        found["bytes_after"] = change.stored_bytes
        if change.losses is not None:
            found["beyond_range"] = change.losses.beyond
            found["nan_lost"] = change.losses.nan
    return found


def report(arguments: argparse.Namespace, decisions: list[Decision], console: Console) -> None:
    """The table, or JSON, of what was done or, with --dry-run, would be."""
    is_done = not arguments.dry_run
    entries = [entry(d, is_done=is_done) for d in decisions]
    result: dict[str, Any] = {"input": arguments.input, "output": arguments.output,
                              "dry_run": arguments.dry_run, "datasets": entries,
                              "file_bytes_before": os.path.getsize(arguments.input)}
    if is_done:
        result["file_bytes_after"] = os.path.getsize(arguments.output)
    console.print_json(result)
    columns = ("dataset", "shape", "from", "to", "before", "after", "beyond range")
    console.table(columns, [row(e) for e in entries], left=(0, 2, 3))
    if is_done:
        console.say(f"{arguments.input}: {format_bytes(result['file_bytes_before'])}   "
                    f"{arguments.output}: {format_bytes(result['file_bytes_after'])}")


def row(found: dict[str, Any]) -> tuple[str, ...]:
    shape = "x".join(map(str, found["shape"])) or "scalar"
    start = (found["dataset"], shape, found["from"])
    if "kept" in found:
        return (*start, f"kept: {found['kept']}", format_bytes(found["bytes_before"]), "", "")
    lost = found.get("beyond_range")
    nan = f", {found['nan_lost']} NaN" if found.get("nan_lost") else ""
    after = format_bytes(found["bytes_after"]) if "bytes_after" in found else ""
    return (*start, found["to"], format_bytes(found["bytes_before"]), after,
            "" if lost is None else f"{lost}{nan}")
