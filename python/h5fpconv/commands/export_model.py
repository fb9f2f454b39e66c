"""The command export: a safetensors file of an HDF5 file.

SPDX-License-Identifier: MIT
"""
import argparse
import dataclasses
import math
from collections.abc import Iterator

import fpconv
import numpy
from h5py import h5d, h5f, h5g, h5l, h5p, h5t

from h5fpconv.commands import add_command
from h5fpconv.hdf5.attributes import attribute_names, read_text
from h5fpconv.hdf5.boxes import Box, box_shape, boxes, spaces, work_through
from h5fpconv.hdf5.tensors import Source
from h5fpconv.hdf5.walk import Kind, Object, path_text
from h5fpconv.safetensors import dtypes
from h5fpconv.safetensors.file import Header, SafetensorsError, Writer
from h5fpconv.safetensors.names import NAME_ATTRIBUTE, name_of
from h5fpconv.user.console import Advance, Console, add_output_arguments, format_bytes
from h5fpconv.user.output import check_distinct, complete_file, reason
from h5fpconv.user.select import Selection, add_selection_arguments, selection_of
from h5fpconv.user.status import InputError, OutputError, Status

PART_BYTES = 4 << 20
CHUNK_CACHE_BYTES = 64 << 20


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_command(
        subparsers, "export", "Make a safetensors file of an HDF5 file's arrays of numbers.",
        [("Datasets /a/b/c as tensors a.b.c", "h5fpconv export model.h5 model.safetensors"),
         ("Without what is not for it",
          "h5fpconv export model.h5 model.safetensors --skip '/optimizer/**'")])
    parser.add_argument("input", metavar="IN.h5", help="an HDF5 file; it is only read")
    parser.add_argument("output", metavar="OUT.safetensors",
                        help="the file to make; it appears when it is complete")
    add_selection_arguments(parser, targets=False)
    add_output_arguments(parser)
    parser.set_defaults(run=run)


@dataclasses.dataclass(frozen=True)
class Export:
    """A dataset that becomes a tensor.  Not the open dataset: there may be very many."""

    name: str
    object: Object
    dtype: str
    shape: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Slab:
    """A part of an open dataset; reading it as `kind` gives the dtype's bytes."""

    export: Export
    dataset: h5d.DatasetID
    kind: h5t.TypeID
    box: Box


def run(arguments: argparse.Namespace) -> Status:
    """Runs the command."""
    console = Console(arguments)
    selection = selection_of(arguments)
    check_distinct([arguments.input], arguments.output)
    with Source(arguments.input) as source:
        exports = list(find_exports(source, selection))
        console.warn_of_unused(selection.unused(
            o.names for o in source.objects.values() if o.kind is Kind.DATASET), source.path)
        metadata = read_metadata(source.id)
        warn_of_losses(console, source, exports, metadata)
        with complete_file(arguments.output) as temporary:
            header = write_file(temporary, arguments, source, exports, metadata, console)
    total = sum(tensor.nbytes for tensor in header.tensors)
    console.say(f"{arguments.output}: {len(exports)} tensors, {format_bytes(total)}")
    console.print_json({"input": arguments.input, "output": arguments.output,
                        "tensors": len(exports), "bytes": total, "metadata": len(metadata)})
    return Status.OK


def write_file(path: str, arguments: argparse.Namespace, source: Source, exports: list[Export],
               metadata: dict[str, str], console: Console) -> Header:
    try:
        with open(path, "wb") as file:
            writer = Writer(file, [(e.name, e.dtype, e.shape) for e in exports], metadata or None)
            by_name = {export.name: export for export in exports}
            tensors = writer.header.tensors
            with console.progress(sum(t.nbytes for t in tensors), "exporting") as advance:
                write_tensors(writer, source, [by_name[t.name] for t in tensors], advance)
            writer.close()
            return writer.header
    except SafetensorsError as error:
        raise InputError(f"{arguments.input}: {error}") from None
    except OSError as error:
        raise OutputError(f"cannot write {arguments.output}: {error.strerror}") from None


def find_exports(source: Source, selection: Selection) -> Iterator[Export]:
    """The chosen datasets, one that has several paths under each of them."""
    for object in source.objects.values():
        if object.kind is not Kind.DATASET:
            continue
        dataset = h5d.open(source.id, object.path)
        if not selection.includes(object.names, stored_size(dataset)):
            continue
        where = f"{source.path}: dataset {object.name!r}"
        if object.in_scaled:
            raise InputError(f"{where}: it is a part of a scaled tensor, which safetensors does not "
                             "have: decode it by h5fpconv back, or leave it out by --skip")
        try:
            dtype, _ = dtypes.dtype_of(dataset)
        except dtypes.NoDtype as error:
            raise InputError(f"{where}: {error}; --skip leaves it out") from None
        for path in object.paths:
            yield Export(tensor_name(source, dataset, object, path), object, dtype, dataset.shape)


def stored_size(dataset: h5d.DatasetID) -> int:
    return dataset.get_space().get_simple_extent_npoints() * dataset.get_type().get_size()


def tensor_name(source: Source, dataset: h5d.DatasetID, object: Object, path: bytes) -> str:
    """The name that import kept beside the dataset, or the path's."""
    kept = read_text(dataset, NAME_ATTRIBUTE) if path == object.path else None
    name = kept if kept is not None else name_of(path_text(path))
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InputError(f"{source.path}: dataset {path!r}: its name is not UTF-8") from None
    return name


def read_metadata(file: h5f.FileID) -> dict[str, str]:
    """The root group's attributes that are one string each, in the order of their creation."""
    root = h5g.open(file, b"/")
    found = {name: read_text(root, name) for name in attribute_names(root)}
    return {name.decode(): value for name, value in found.items()
            if value is not None and is_text(name)}


def is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def warn_of_losses(console: Console, source: Source, exports: list[Export],
                   metadata: dict[str, str]) -> None:
    """Says what safetensors has no place for."""
    left_out = len(attribute_names(h5g.open(source.id, b"/"))) - len(metadata)
    if left_out:
        console.warn(f"left out: {left_out} attributes of the root group that are not one string "
                     "each")
    known = {dtypes.DTYPE_ATTRIBUTE, NAME_ATTRIBUTE}
    paths = {export.object.path for export in exports}
    owners = sum(1 for path in paths if set(attribute_names(h5d.open(source.id, path))) - known)
    if owners:
        console.warn(f"left out: the attributes of {owners} datasets")
    links = sum(1 for object in source.objects.values() for link in object.links
                if link.kind != h5l.TYPE_HARD)
    if links:
        console.warn(f"left out: {links} soft and external links")


def slabs(source: Source, export: Export) -> Iterator[Slab]:
    """The dataset in pieces that follow each other in C order, of whole chunks if possible."""
    access = h5p.create(h5p.DATASET_ACCESS)
    access.set_chunk_cache(12421, CHUNK_CACHE_BYTES, 1.0)
    dataset = h5d.open(source.id, export.object.path, access)
    _, kind = dtypes.dtype_of(dataset)
    elements = PART_BYTES // dtypes.element_bytes(export.dtype)
    unit = [1] * len(export.shape)
    properties = dataset.get_create_plist()
    if properties.get_layout() == h5d.CHUNKED:
        rows = properties.get_chunk()[0]
        if rows * math.prod(export.shape[1:]) <= elements:
            unit[0] = rows
    for box in boxes(export.shape, box_shape(export.shape, unit, elements)):
        yield Slab(export, dataset, kind, box)


def read_slab(slab: Slab) -> numpy.ndarray:
    """The slab's elements, unpacked, as bytes."""
    data = numpy.empty(slab.box.count, f"V{dtypes.element_bytes(slab.export.dtype)}")
    memory, selected = spaces(slab.dataset.get_space(), slab.box)
    try:
        slab.dataset.read(memory, selected, data, mtype=slab.kind)
    except OSError as error:
        raise InputError(
            f"cannot read the dataset {slab.export.object.name!r}: {reason(error)}") from None
    return data.reshape(-1).view(numpy.uint8)


def write_tensors(writer: Writer, source: Source, exports: list[Export],
                  advance: Advance) -> None:
    rest = numpy.empty(0, numpy.uint8)  # elements since the last whole byte

    def write(result: tuple[str, numpy.ndarray]) -> None:
        nonlocal rest
        dtype, data = result
        if dtypes.is_packed(dtype):
            codes = numpy.concatenate([rest, data])
            whole = codes.size - codes.size % dtypes.elements_to_a_byte(dtype)
            rest = codes[whole:]
            data = fpconv.pack(codes[:whole], dtypes.FORMATS[dtype])
        writer.write(data.data)
        advance(data.nbytes)

    parts = (slab for export in exports for slab in slabs(source, export))
    work_through(parts, lambda slab: (slab.export.dtype, read_slab(slab)), write)
