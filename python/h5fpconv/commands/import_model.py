"""The command import: an HDF5 file of a safetensors file.

SPDX-License-Identifier: MIT
"""
import argparse
import dataclasses
import os
from collections.abc import Iterator

import fpconv
import numpy
from h5py import h5d, h5f, h5g, h5p, h5s, h5t

from h5fpconv.commands import add_command
from h5fpconv.commands.convert import decide
from h5fpconv.hdf5.attributes import write_text
from h5fpconv.hdf5.boxes import Box, box_shape, boxes, spaces, work_through
from h5fpconv.hdf5.tensors import Source
from h5fpconv.rewriting.file import rewrite
from h5fpconv.rewriting.properties import StorageOptions, add_storage_arguments, storage_of
from h5fpconv.safetensors import dtypes
from h5fpconv.safetensors.file import DTYPES, METADATA_KEY, Header, Reader, SafetensorsError, Tensor
from h5fpconv.safetensors.names import NAME_ATTRIBUTE, UnusableName, name_of, paths_of
from h5fpconv.user.console import Advance, Console, add_output_arguments, format_bytes
from h5fpconv.user.output import check_distinct, complete_file, create, reason, temporary_file
from h5fpconv.user.select import Selection, add_selection_arguments, selection_of
from h5fpconv.user.status import InputError, OutputError, Status, UsageError
from h5fpconv.user.targets import add_target_arguments

PART_BYTES = 4 << 20
MAX_RANK = 32  # H5S_MAX_RANK
MAX_SIZE = 2**63  # of a dimension: hsize_t has 64 bits, h5py takes them as signed
MAX_KEY_BYTES = 65_000


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_command(
        subparsers, "import", "Make an HDF5 file of a safetensors file.",
        [("Tensors a.b.c as datasets /a/b/c", "h5fpconv import model.safetensors model.h5"),
         ("Under their own names", "h5fpconv import model.safetensors model.h5 --names flat"),
         ("With the weights in MXFP4", "h5fpconv import model.safetensors model.h5 --to mxfp4 "
          "--only '**/weight'")])
    parser.add_argument("input", metavar="IN.safetensors", help="the file to read")
    parser.add_argument("output", metavar="OUT.h5",
                        help="the file to make; it appears when it is complete")
    parser.add_argument("--names", choices=("groups", "flat"), default="groups",
                        help="cut tensors' names at dots, into groups, or keep them whole "
                             "(default: %(default)s)")
    add_target_arguments(parser, required=False)
    add_selection_arguments(parser, targets=True)
    add_storage_arguments(parser)
    add_output_arguments(parser)
    parser.set_defaults(run=run)


@dataclasses.dataclass(frozen=True)
class Part:
    """Some of a tensor's elements, in one piece, on their way to its dataset."""

    tensor: Tensor
    dataset: h5d.DatasetID
    box: Box
    first: int


def run(arguments: argparse.Namespace) -> Status:
    """Runs the command."""
    selection, options = selection_of(arguments), storage_of(arguments)
    is_converted = bool(arguments.to or arguments.map)
    if not is_converted and (selection != Selection() or options != StorageOptions()):
        raise UsageError("options of selection and storage are for what --to or --map converts")
    check_distinct([arguments.input], arguments.output)
    console = Console(arguments)
    try:
        with Reader(arguments.input) as reader:
            paths = paths_of([tensor.name for tensor in reader.header.tensors],
                             groups=arguments.names == "groups")
            check_limits(reader.header)
            if is_converted:
                converted = write_converted(arguments, selection, options, reader, paths, console)
            else:
                converted = 0
                with complete_file(arguments.output) as temporary:
                    write_file(temporary, arguments.output, reader, paths, console)
    except OSError as error:
        raise InputError(f"cannot read {arguments.input}: {error.strerror}") from None
    except (SafetensorsError, UnusableName) as error:
        raise InputError(f"{arguments.input}: {error}") from None
    report(arguments, reader.header, converted, console)
    return Status.OK


def write_converted(arguments: argparse.Namespace, selection: Selection, options: StorageOptions,
                    reader: Reader, paths: dict[str, str], console: Console) -> int:
    """An import to a file that is then converted into the output; the tensors converted."""
    with temporary_file(os.path.realpath(arguments.output)) as scratch:
        create(scratch, 0o600)
        write_file(scratch, arguments.output, reader, paths, console)
        with Source(scratch, arguments.policy) as source:
            decisions = decide(source, selection, arguments.policy, options)
            rewrite(source, arguments.output, decisions, console)
    return sum(1 for decision in decisions if decision.change)


def report(arguments: argparse.Namespace, header: Header, converted: int,
           console: Console) -> None:
    total = sum(tensor.nbytes for tensor in header.tensors)
    console.say(f"{arguments.output}: {len(header.tensors)} tensors, {format_bytes(total)}" +
                (f", {converted} of them converted" if converted else ""))
    console.print_json({"input": arguments.input, "output": arguments.output,
                        "tensors": len(header.tensors), "bytes": total, "converted": converted,
                        "metadata": len(header.metadata or {})})


def check_limits(header: Header) -> None:
    """Raises SafetensorsError for what safetensors can hold and HDF5 cannot."""
    for tensor in header.tensors:
        where = f"tensor {tensor.name!r:.99}"
        if len(tensor.shape) > MAX_RANK:
            raise SafetensorsError(f"{where}: {len(tensor.shape)} dimensions; HDF5 has up to "
                                   f"{MAX_RANK}")
        if any(size >= MAX_SIZE for size in tensor.shape):
            raise SafetensorsError(f"{where}: a dimension of {max(tensor.shape)} is too large for "
                                   "HDF5")
    for key, value in (header.metadata or {}).items():
        where = f"{METADATA_KEY} {key!r:.99}"
        if not key or "\0" in key or len(key.encode()) > MAX_KEY_BYTES:
            raise SafetensorsError(f"{where}: an attribute of HDF5 has a name of 1 to "
                                   f"{MAX_KEY_BYTES} bytes, none of them 0")
        if "\0" in value:
            raise SafetensorsError(f"{where}: its value has a NUL character, where strings of HDF5 "
                                   "end")


def write_file(path: str, output: str, reader: Reader, paths: dict[str, str],
               console: Console) -> None:
    """The whole import, to a path that stands for the output."""
    properties = h5p.create(h5p.FILE_CREATE)
    properties.set_attr_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_fclose_degree(h5f.CLOSE_STRONG)  # with all that an exception's frames hold
    total = sum(tensor.nbytes for tensor in reader.header.tensors)
    try:
        file = h5f.create(os.fsencode(path), h5f.ACC_TRUNC, properties, access)
        try:
            write_metadata(file, reader.header.metadata or {})
            with console.progress(total, "importing") as advance:
                write_tensors(file, reader, paths, advance)
        finally:
            file.close()
    except OSError as error:
        raise OutputError(f"cannot write {output}: {reason(error)}") from None


def write_metadata(file: h5f.FileID, metadata: dict[str, str]) -> None:
    root = h5g.open(file, b"/")
    for key, value in metadata.items():
        write_text(root, key.encode(), value)


def create_dataset(file: h5f.FileID, tensor: Tensor, path: str) -> h5d.DatasetID:
    links = h5p.create(h5p.LINK_CREATE)
    links.set_create_intermediate_group(True)
    links.set_char_encoding(h5t.CSET_UTF8)
    space = h5s.create_simple(tensor.shape) if tensor.shape else h5s.create(h5s.SCALAR)
    properties = h5p.create(h5p.DATASET_CREATE)
    properties.set_obj_track_times(False)
    dataset = h5d.create(file, path.encode(), dtypes.hdf5_type(tensor.dtype), space, properties,
                         lcpl=links)
    if tensor.dtype in dtypes.BYTES:
        write_text(dataset, dtypes.DTYPE_ATTRIBUTE, tensor.dtype)
    if name_of(path) != tensor.name:
        write_text(dataset, NAME_ATTRIBUTE, tensor.name)
    return dataset


def parts_of(tensor: Tensor, dataset: h5d.DatasetID) -> Iterator[Part]:
    """The tensor in pieces of at most PART_BYTES."""
    elements = PART_BYTES // dtypes.element_bytes(tensor.dtype)
    count = box_shape(tensor.shape, (1,) * len(tensor.shape), elements)
    first = 0
    for box in boxes(tensor.shape, count):
        yield Part(tensor, dataset, box, first)
        first += box.size


def read_part(reader: Reader, part: Part) -> numpy.ndarray:
    """The part's bytes as HDF5 has them."""
    dtype, first, n = part.tensor.dtype, part.first, part.box.size
    unit = dtypes.elements_to_a_byte(dtype)
    begin, end = first // unit * unit, -(-(first + n) // unit) * unit
    data = numpy.empty((end - begin) * DTYPES[dtype] // 8, numpy.uint8)
    reader.read_into(part.tensor, begin * DTYPES[dtype] // 8, data.data)
    if not dtypes.is_packed(dtype):
        return data
    codes = fpconv.unpack(data, dtypes.FORMATS[dtype], end - begin)
    return codes[first - begin:first - begin + n]


def write_part(part: Part, data: numpy.ndarray) -> None:
    memory, selected = spaces(part.dataset.get_space(), part.box)
    element = f"V{dtypes.element_bytes(part.tensor.dtype)}"
    part.dataset.write(memory, selected, data.view(element).reshape(part.box.count),
                       mtype=part.dataset.get_type())


def write_tensors(file: h5f.FileID, reader: Reader, paths: dict[str, str],
                  advance: Advance) -> None:
    def all_parts() -> Iterator[Part]:
        for tensor in reader.header.tensors:
            yield from parts_of(tensor, create_dataset(file, tensor, paths[tensor.name]))

    def write(result: tuple[Part, numpy.ndarray]) -> None:
        write_part(*result)
        advance(result[1].nbytes)

    work_through(all_parts(), lambda part: (part, read_part(reader, part)), write)
