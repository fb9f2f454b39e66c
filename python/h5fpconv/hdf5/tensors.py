"""The floating-point arrays of a file, plain or scaled, as values.

SPDX-License-Identifier: MIT

A tensor is a dataset of one of fpconv's formats, or a group in the layout of
docs/scaled.md.  `Source` is an input file with its objects and tensors; nothing is
ever written to it.
"""
import contextlib
import math
import mmap
import os
from collections.abc import Iterator
from types import TracebackType
from typing import NoReturn

import fpconv
import fpconv.h5
import numpy
from h5py import h5a, h5d, h5f, h5g, h5p, h5s, h5t, h5z

from h5fpconv.hdf5 import calls
from h5fpconv.hdf5.boxes import Box, box_shape, boxes, flat_range, spaces
from h5fpconv.hdf5.walk import Kind, Object, walk
from h5fpconv.user.status import InputError

CODES, SCALES = b"codes", b"scales"
SCALED_VERSION = 1
LAYOUT_ATTRIBUTES = (b"fpconv_scaled_version", b"scheme", b"element", b"scale_rule", b"shape",
                     b"axis", b"block", b"tensor_scale", b"dot_length")


class Tensor:
    """An array of values in a file.

    `name` is its path, `names` all of them; `format` is that of the values or of a
    scheme's elements; `target` is the name of its format or scheme; `stored_bytes`
    is the room that its values take up in the file.
    """

    object: Object
    shape: tuple[int, ...]
    format: str
    target: str
    stored_bytes: int

    @property
    def name(self) -> str:
        return self.object.name

    @property
    def names(self) -> list[str]:
        return self.object.names

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def value_bytes(self) -> int:
        """The bytes of all values in their format, packed or not."""
        return -(-self.size * fpconv.format_info(self.format).bits // 8)

    @property
    def dtype(self) -> numpy.dtype:
        """What holds every value exactly: float64, or float32 where that is enough."""
        raise NotImplementedError

    @property
    def unit(self) -> tuple[int, ...]:
        """A box of elements that lie together in the file: a chunk, or one element."""
        raise NotImplementedError

    def boxes(self, max_bytes: int) -> Iterator[Box]:
        """The tensor in parts of at most so many bytes of values, or of one unit."""
        count = box_shape(self.shape, self.unit, max_bytes // self.dtype.itemsize)
        return boxes(self.shape, count)

    def read(self, box: Box, dtype: numpy.dtype | None = None) -> numpy.ndarray:
        """The values of a box, in `dtype` (default: `self.dtype`).  Any thread may call it."""
        raise NotImplementedError


class PlainTensor(Tensor):
    """A dataset of one of fpconv's formats."""

    def __init__(self, source: "Source", object: Object, dataset: h5d.DatasetID, format: str) -> None:
        self.object, self.dataset, self.format = object, dataset, format
        self.target = format
        self.shape = dataset.shape
        self.datatype = dataset.get_type()
        self.properties = dataset.get_create_plist()
        self.policy = source.policy
        self.storage = fpconv.format_info(format).storage
        is_big = self.datatype.get_class() == h5t.FLOAT and self.datatype.get_order() == h5t.ORDER_BE
        self.file_storage = self.storage.newbyteorder(">" if is_big else "<")
        self.stored_bytes = dataset.get_storage_size()
        self.fd, self.is_in_memory = source.fd, source.is_in_memory
        self.offset = contiguous_offset(dataset, self.properties)

    @property
    def dtype(self) -> numpy.dtype:
        return numpy.dtype(numpy.float64 if self.format == "f64" else numpy.float32)

    @property
    def chunk(self) -> tuple[int, ...] | None:
        return self.properties.get_chunk() if self.properties.get_layout() == h5d.CHUNKED else None

    @property
    def unit(self) -> tuple[int, ...]:
        return self.chunk or (1,) * len(self.shape)

    @property
    def obstacle(self) -> str:
        """Why the dataset cannot be replaced by another one; "" if it can."""
        if self.properties.get_layout() == h5d.VIRTUAL:
            return "virtual, it shows other datasets"
        codes = [self.properties.get_filter(i)[0] for i in range(self.properties.get_nfilters())]
        missing = [str(code) for code in codes if not h5z.filter_avail(code)]
        return f"its filter {missing[0]} is not there" if missing else ""

    @property
    def is_written(self) -> bool:
        """Whether there is more than the fill value."""
        return self.stored_bytes > 0

    def fill_value(self) -> numpy.ndarray:
        """The code of the fill value, an array of one."""
        raw = calls.get_fill_value(self.properties, self.datatype)
        return numpy.frombuffer(raw, self.file_storage).astype(self.storage)

    def read(self, box: Box, dtype: numpy.dtype | None = None) -> numpy.ndarray:
        codes = self.read_codes(box)
        wanted = numpy.dtype(dtype or self.dtype)
        if codes.dtype == wanted and self.format in ("f32", "f64"):
            return codes
        return fpconv.decode(codes, self.format, wanted, policy=self.policy)

    def map_codes(self, box: Box) -> numpy.ndarray | None:
        """The codes of a box without a copy, read-only; None where that is not possible.

        Only of files in memory, where the copy is all that reading costs: on a disk a
        mapped page that cannot be read would end the program.
        """
        if not self.is_in_memory or self.offset is None or not self.file_storage.isnative:
            return None
        part = flat_range(self.shape, box)
        if not part or not part[1]:
            return None
        first = self.offset + part[0] * self.storage.itemsize
        rest = first % mmap.ALLOCATIONGRANULARITY
        size = rest + part[1] * self.storage.itemsize
        if first - rest + size > os.fstat(self.fd).st_size:
            return None  # read_codes will say so
        mapped = mmap.mmap(self.fd, size, access=mmap.ACCESS_READ, offset=first - rest)
        return numpy.frombuffer(mapped, self.storage, part[1], rest).reshape(box.count)

    def read_codes(self, box: Box, into: numpy.ndarray | None = None) -> numpy.ndarray:
        """The codes of a box as they are stored, in the machine's byte order.

        `into`, if given, has the box's size at least; the result is a part of it.
        """
        if into is None:
            into = numpy.empty(box.size, self.storage)
        codes = into[:box.size].view(self.file_storage)
        part = flat_range(self.shape, box) if self.offset is not None else None
        if part:
            read_exactly(self.fd, codes, self.offset + part[0] * codes.itemsize, self.name)
        elif box.size:
            memory, file = spaces(self.dataset.get_space(), box)
            with reading(self.name):
                self.dataset.read(memory, file, codes.reshape(box.count), mtype=self.datatype)
        if not codes.dtype.isnative:
            codes = codes.byteswap(inplace=True).view(self.storage)
        return codes.view(self.storage).reshape(box.count)


class ScaledTensor(Tensor):
    """A group of codes and scales in the layout of docs/scaled.md."""

    def __init__(self, object: Object, group: h5g.GroupID) -> None:
        self.object, self.group = object, group
        layout = LayoutReader(group, object.name)
        self.scheme, self.shape = layout.scheme, layout.shape
        self.format = self.scheme.element
        self.target = scheme_name(self.scheme)
        self.codes = layout.open(CODES, code_shape(self.scheme, self.shape), code_type(self.scheme))
        self.scales = layout.open(SCALES, scale_shape(self.scheme, self.shape),
                                  scale_type(self.scheme))
        self.stored_bytes = self.codes.get_storage_size() + self.scales.get_storage_size()

    @property
    def dtype(self) -> numpy.dtype:
        return numpy.dtype(numpy.float32)

    @property
    def unit(self) -> tuple[int, ...]:
        properties = self.codes.get_create_plist()
        if properties.get_layout() != h5d.CHUNKED:
            return (1,) * (len(self.shape) - 1) + (column_unit(self.scheme),)
        *chunk, units = properties.get_chunk()
        columns = units * 8 * code_type(self.scheme).get_size() // code_bits(self.scheme)
        step = column_unit(self.scheme)
        return (*chunk, max(step, columns // step * step))

    def read(self, box: Box, dtype: numpy.dtype | None = None) -> numpy.ndarray:
        wide = self.widen(box)
        shape = wide.count
        with reading(self.name):
            codes = read_native(self.codes, self.code_box(wide))
            scales = read_native(self.scales, self.scale_box(wide))
        if self.scales_are_single:
            scales = scales.reshape(())
        values = fpconv.dequantize(fpconv.Scaled(codes, scales, self.scheme, shape),
                                   dtype or self.dtype)
        first = box.start[-1] - wide.start[-1]
        return values[..., first:first + box.count[-1]]

    @property
    def holds_more(self) -> bool:
        """Whether the group has other members than the layout's."""
        return self.group.get_num_objs() > 2

    @property
    def scales_are_single(self) -> bool:
        """Whether one scale is for all; the file has an axis of one for it."""
        return self.scheme.scaling == "per_tensor" or (
            self.scheme.scaling in ("per_row", "pow2_row") and len(self.shape) == 1)

    def widen(self, box: Box) -> Box:
        """The box with its columns to whole blocks and bytes, as far as there are any."""
        step, columns = column_unit(self.scheme), self.shape[-1]
        first = box.start[-1] // step * step
        last = min(-(-(box.start[-1] + box.count[-1]) // step) * step, columns)
        return Box((*box.start[:-1], first), (*box.count[:-1], last - first))

    def code_box(self, box: Box) -> Box:
        first, count = (code_units(self.scheme, n) for n in (box.start[-1], box.count[-1]))
        return Box((*box.start[:-1], first), (*box.count[:-1], count))

    def scale_box(self, box: Box) -> Box:
        return scale_box(self.scheme, box)


# ---------------------------------------------------------------------------
# The layout of a scaled tensor
# ---------------------------------------------------------------------------


def scheme_name(scheme: fpconv.Scheme) -> str:
    """The name among fpconv.SCHEMES, whatever rule chose the scales."""
    for name in fpconv.SCHEMES:
        known = fpconv.scheme(name)
        if (known.scaling, known.element) == (scheme.scaling, scheme.element):
            return name
    return f"{scheme.scaling}_{scheme.element}"


def code_bits(scheme: fpconv.Scheme) -> int:
    return fpconv.format_info(scheme.element).bits


def code_units(scheme: fpconv.Scheme, columns: int) -> int:
    """Stored units, bytes but for f16, that the codes of so many columns take up."""
    size = fpconv.format_info(scheme.element).storage.itemsize
    return fpconv.packed_size(scheme.element, columns) // size


def column_unit(scheme: fpconv.Scheme) -> int:
    """Columns that codes and scales can be cut at: whole blocks and whole bytes."""
    return scheme.block or 4


def code_type(scheme: fpconv.Scheme) -> h5t.TypeID:
    return h5t.STD_U16LE if scheme.element == "f16" else h5t.STD_U8LE


def scale_type(scheme: fpconv.Scheme) -> h5t.TypeID:
    return {"mx": h5t.STD_U8LE, "nvfp4": h5t.STD_U8LE, "pow2_row": h5t.STD_I16LE,
            "pow2_column": h5t.STD_I16LE}.get(scheme.scaling, h5t.IEEE_F32LE)


def code_shape(scheme: fpconv.Scheme, shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-1], code_units(scheme, shape[-1]))


def scale_shape(scheme: fpconv.Scheme, shape: tuple[int, ...]) -> tuple[int, ...]:
    return scale_box(scheme, Box((0,) * len(shape), shape)).count


def scale_box(scheme: fpconv.Scheme, box: Box) -> Box:
    """Where the scales of a box of the tensor are; its columns begin at a block."""
    if scheme.block:
        blocks = -(-box.count[-1] // scheme.block)
        return Box((*box.start[:-1], box.start[-1] // scheme.block), (*box.count[:-1], blocks))
    if scheme.scaling in ("per_column", "pow2_column"):
        return Box(box.start[-1:], box.count[-1:])
    if scheme.scaling in ("per_row", "pow2_row") and len(box.count) > 1:
        return Box(box.start[:-1], box.count[:-1])
    return Box((0,), (1,))


class LayoutReader:
    """Reads and checks the attributes and datasets of a scaled tensor's group."""

    def __init__(self, group: h5g.GroupID, name: str) -> None:
        self.group, self.name = group, name
        version = self.number(b"fpconv_scaled_version")
        if version != SCALED_VERSION:
            self.fail(f"its layout is version {version}, and only version {SCALED_VERSION} is known")
        self.scheme = self.read_scheme()
        self.shape = tuple(map(int, self.value(b"shape").reshape(-1)))
        if self.number(b"axis") != len(self.shape) - 1:
            self.fail("its axis is not the last one")
        if self.number(b"block") != self.scheme.block:
            self.fail("its blocks are of another size than its scheme's")

    def fail(self, message: str) -> NoReturn:
        raise InputError(f"the scaled tensor {self.name!r}: {message}")

    def value(self, name: bytes) -> numpy.ndarray:
        if not h5a.exists(self.group, name):
            self.fail(f"there is no attribute {name.decode()!r}")
        attribute = h5a.open(self.group, name)
        if attribute.get_type().get_class() not in (h5t.INTEGER, h5t.FLOAT, h5t.STRING):
            self.fail(f"the attribute {name.decode()!r} has an unexpected type")
        if attribute.get_space().get_simple_extent_type() == h5s.NULL:
            self.fail(f"the attribute {name.decode()!r} is empty")
        value = numpy.empty(attribute.shape, attribute.dtype)
        attribute.read(value)
        if value.size == 0:
            self.fail(f"the attribute {name.decode()!r} is empty")
        return value

    def number(self, name: bytes) -> int:
        value = self.value(name)
        if value.size != 1 or value.dtype.kind not in "ui":
            self.fail(f"the attribute {name.decode()!r} is not one integer")
        return int(value.reshape(-1)[0])

    def text(self, name: bytes) -> str:
        value = self.value(name)
        if value.size != 1 or value.dtype.kind != "S":
            self.fail(f"the attribute {name.decode()!r} is not a string")
        return value.reshape(-1)[0].decode("ascii", "replace")

    def read_scheme(self) -> fpconv.Scheme:
        scaling, element = self.text(b"scheme"), self.text(b"element")
        rule = self.text(b"scale_rule")
        scale, length = 0.0, 0
        if scaling == "nvfp4":
            scale = float(self.value(b"tensor_scale").reshape(-1)[0])
        if scaling in ("pow2_row", "pow2_column"):
            length = self.number(b"dot_length")
        try:  # whether they go together, the library knows
            return fpconv.Scheme(scaling, element, rule, scale, length)
        except ValueError as error:
            self.fail(f"scheme {scaling!r}, element {element!r}, rule {rule!r}: {error}")

    def open(self, name: bytes, shape: tuple[int, ...], datatype: h5t.TypeID) -> h5d.DatasetID:
        try:
            dataset = h5d.open(self.group, name)
        except (KeyError, OSError):
            self.fail(f"there is no dataset {name.decode()!r}")
        found = dataset.get_type()
        if found.get_class() != datatype.get_class() or found.get_size() != datatype.get_size():
            self.fail(f"the dataset {name.decode()!r} is of another type")
        if dataset.shape != shape:
            self.fail(f"the dataset {name.decode()!r} is of the shape {dataset.shape}, not {shape}")
        return dataset


# ---------------------------------------------------------------------------
# Files
# ---------------------------------------------------------------------------


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """Turns what h5py raises into an InputError about something by its name."""
    try:
        yield
    except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"cannot read {name}: {error}") from error


def contiguous_offset(dataset: h5d.DatasetID, properties: h5p.PropDCID) -> int | None:
    """Where in the file the values are, if they are in one piece and unfiltered."""
    if properties.get_layout() != h5d.CONTIGUOUS or properties.get_external_count():
        return None
    return dataset.get_offset()


def is_in_memory(fd: int) -> bool:
    """Whether a file is in a file system that has no disk (tmpfs, as in /dev/shm)."""
    device = os.fstat(fd).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    with contextlib.suppress(OSError), open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        for line in mounts:
            if line.split()[2] == number:
                return line.partition(" - ")[2].split()[0] in ("tmpfs", "ramfs")
    return False


def read_exactly(fd: int, into: numpy.ndarray, offset: int, name: str) -> None:
    """Fills an array from a file; InputError if the file ends before."""
    view = memoryview(into.view(numpy.uint8))
    while view:
        count = os.preadv(fd, [view], offset)
        if count == 0:
            raise InputError(f"the dataset {name!r} reaches beyond the end of the file")
        view, offset = view[count:], offset + count


def read_native(dataset: h5d.DatasetID, box: Box) -> numpy.ndarray:
    """A box of a dataset of integers or floats, in the machine's byte order."""
    values = numpy.empty(box.count, dataset.dtype.newbyteorder("="))
    if box.size:
        memory, file = spaces(dataset.get_space(), box)
        dataset.read(memory, file, values)
    return values


class Source:
    """An input file: its objects by address, and its tensors.

    `policy` says what codes mean (only "hdf5" differs, in the largest exponents).
    """

    def __init__(self, path: str, policy: str = "ocp") -> None:
        self.path, self.policy = path, policy
        try:
            self.fd = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise InputError(f"cannot open {path}: {error.strerror}") from None
        try:
            self.id = h5f.open(os.fsencode(path), h5f.ACC_RDONLY)
        except OSError as error:
            os.close(self.fd)
            raise InputError(f"cannot open {path} as an HDF5 file: {error}") from None
        self.is_in_memory = is_in_memory(self.fd)
        with reading(path):
            self.objects = walk(self.id)

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.id.close()
        os.close(self.fd)

    def tensors(self) -> list[Tensor]:
        """All tensors, in the order in which the walk finds them."""
        found = []
        for object in self.objects.values():
            with reading(object.name):
                found.append(self.tensor(object))
        return [tensor for tensor in found if tensor is not None]

    def tensor(self, object: Object) -> Tensor | None:
        """The tensor that an object is, if it is one."""
        if object.is_scaled:
            return ScaledTensor(object, h5g.open(self.id, object.path))
        if object.kind is not Kind.DATASET or object.in_scaled:
            return None
        dataset = h5d.open(self.id, object.path)
        format = fpconv.h5.format_of(dataset.get_type())
        if format is None or dataset.get_space().get_simple_extent_type() == h5s.NULL:
            return None
        return PlainTensor(self, object, dataset, format)
