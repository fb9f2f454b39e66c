"""A tensor that becomes a group of codes and scales, and one that comes back.

SPDX-License-Identifier: MIT

The layout is that of docs/scaled.md.  Scales that depend on more than a box of the
tensor (NVFP4's of the tensor; per tensor; per column; per row of cut rows) take a
pass of their own over the values, for the largest magnitudes.
"""
import dataclasses
from collections.abc import Iterator

import fpconv
import fpconv.h5
import numpy
from h5py import h5a, h5d, h5g, h5o, h5p, h5s, h5t

from h5fpconv.hdf5 import calls
from h5fpconv.hdf5.attributes import attribute_names
from h5fpconv.hdf5.boxes import Box, box_shape, boxes, work_through
from h5fpconv.hdf5.tensors import (CODES, LAYOUT_ATTRIBUTES, SCALED_VERSION, SCALES, PlainTensor,
                                   ScaledTensor, code_shape, code_type, code_units, column_unit,
                                   scale_box, scale_shape, scale_type)
from h5fpconv.hdf5.writing import ArrayWriter
from h5fpconv.rewriting.carry import Copy
from h5fpconv.rewriting.losses import Losses
from h5fpconv.rewriting.properties import (StorageOptions, chosen_chunk, chosen_filters, chunk_of,
                                           make_properties)
from h5fpconv.user.console import Advance
from h5fpconv.user.targets import Target

PIECE_BYTES = 1 << 20
FILL_VALUE = b"fpconv_fill_value"  # the dataset's, for the way back
GROUP_ATTRIBUTES = (*LAYOUT_ATTRIBUTES, FILL_VALUE)
UNLIMITED = h5s.UNLIMITED

# A box, its codes and scales as far as they are still to be written, its bytes of values
Done = tuple[Box, numpy.ndarray | None, numpy.ndarray | None, int]


# ---------------------------------------------------------------------------
# Scales of the whole
# ---------------------------------------------------------------------------


def largest(values: numpy.ndarray, axes: tuple[int, ...]) -> numpy.ndarray:
    """The largest finite magnitudes along axes; 0 where there is none."""
    magnitudes = numpy.abs(values)
    if not numpy.isfinite(magnitudes.max(initial=0)):
        magnitudes = numpy.where(numpy.isfinite(magnitudes), magnitudes, 0)
    return magnitudes.max(axis=axes, initial=0)


class WholeScales:
    """What must be known of the whole tensor before a box of it can be quantized."""

    def __init__(self, tensor: PlainTensor, scheme: fpconv.Scheme, box: tuple[int, ...]) -> None:
        self.scaling, rank = scheme.scaling, len(tensor.shape)
        self.by_column = self.scaling in ("per_column", "pow2_column")
        self.by_row = self.scaling in ("per_row", "pow2_row")
        is_cut = bool(box) and box[-1] < tensor.shape[-1]
        self.is_needed = self.by_column or self.scaling in ("nvfp4", "per_tensor") or \
            self.by_row and is_cut
        self.axes = tuple(range(rank - 1)) if self.by_column else \
            (rank - 1,) if self.by_row else tuple(range(rank))
        self.shape = tuple(n for axis, n in enumerate(tensor.shape) if axis not in self.axes)

    def find(self, tensor: PlainTensor, parts: Iterator[Box], advance: Advance) -> None:
        """One pass over the values."""
        self.amax = numpy.zeros(self.shape, tensor.dtype)

        def keep(found: tuple[Box, numpy.ndarray]) -> None:
            box, amax = found
            where = tuple(slice(s, s + n) for axis, (s, n) in enumerate(zip(box.start, box.count))
                          if axis not in self.axes)
            self.amax[where] = numpy.maximum(self.amax[where], amax)
            advance(box.size * tensor.dtype.itemsize)

        work_through(parts, lambda box: (box, largest(tensor.read(box), self.axes)), keep)

    def scheme(self, scheme: fpconv.Scheme) -> fpconv.Scheme:
        """The scheme with its tensor scale, if that is a part of it."""
        if self.scaling != "nvfp4":
            return scheme
        scale = fpconv.tensor_scale(self.amax.reshape(1, 1))
        return dataclasses.replace(scheme, tensor_scale=scale)

    def scales(self, scheme: fpconv.Scheme) -> numpy.ndarray | None:
        """The scales, if they are those of the whole: an amax has the scale of its values."""
        if not self.is_needed or self.scaling == "nvfp4":
            return None
        matrix = self.amax.reshape(1, -1) if self.by_column else self.amax.reshape(-1, 1)
        return fpconv.quantize(matrix, scheme).scales.reshape(self.amax.shape)

    def part(self, scales: numpy.ndarray | None, box: Box) -> numpy.ndarray | None:
        """The scales for a box."""
        if scales is None:
            return None
        where = tuple(slice(s, s + n) for axis, (s, n) in enumerate(zip(box.start, box.count))
                      if axis not in self.axes)
        return numpy.array(scales[where], order="C")


# ---------------------------------------------------------------------------
# There
# ---------------------------------------------------------------------------


class ScaleChange:
    """A dataset that becomes a group of codes and scales."""

    def __init__(self, tensor: PlainTensor, target: Target, options: StorageOptions) -> None:
        self.tensor, self.target, self.options = tensor, target, options
        self.scheme = complete(target.scheme, tensor.shape)
        self.losses: Losses | None = None  # saturation is a part of the schemes
        self.stored_bytes = 0
        self.chunk = self.choose_chunk()
        self.whole = WholeScales(tensor, self.scheme, self.box_count())
        passes = 2 if self.whole.is_needed else 1
        self.work_bytes = passes * tensor.size * tensor.dtype.itemsize

    def choose_chunk(self) -> tuple[int, ...] | None:
        """The codes' chunk in elements of the tensor: whole blocks and bytes of columns."""
        chunk = chosen_chunk(self.tensor.properties, self.tensor.shape, self.tensor.dtype.itemsize,
                             self.options, needed=False)
        if not chunk:
            return None
        return (*chunk[:-1], whole_units(self.scheme, chunk[-1]))

    def boxes(self) -> Iterator[Box]:
        return boxes(self.tensor.shape, self.box_count())

    def box_count(self) -> tuple[int, ...]:
        unit = self.chunk or self.tensor.unit
        unit = (*unit[:-1], whole_units(self.scheme, unit[-1]))
        return box_shape(self.tensor.shape, unit, PIECE_BYTES // self.tensor.dtype.itemsize)

    def make(self, copy: Copy, group: h5g.GroupID, name: bytes, links: h5p.PropLCID) -> None:
        properties = h5p.create(h5p.GROUP_CREATE)
        properties.set_attr_creation_order(self.tensor.properties.get_attr_creation_order())
        self.group = h5g.create(group, name, lcpl=links, gcpl=properties)
        self.advance = copy.advance
        if self.whole.is_needed:
            self.whole.find(self.tensor, self.boxes(), self.advance)
        self.scheme = self.whole.scheme(self.scheme)
        self.given = self.whole.scales(self.scheme)
        self.codes, self.scales = self.make_codes(copy.fd), self.make_scales(copy.fd)
        self.codes.prepare()
        work_through(self.boxes(), self.quantize_box, self.write_box)
        if self.given is not None:
            box = Box((0,) * len(self.scales.shape), self.scales.shape)
            self.scales.finish(box, self.given.reshape(box.count))
        write_layout(self.group, self.scheme, self.tensor)
        self.stored_bytes = sum(a.dataset.get_storage_size() for a in (self.codes, self.scales))

    def make_codes(self, fd: int) -> ArrayWriter:
        shape, limits = self.tensor.shape, self.tensor.dataset.get_space().get_simple_extent_dims(True)
        last = limits[-1] if limits[-1] == UNLIMITED else code_units(self.scheme, limits[-1])
        limits = (*limits[:-1], last) if self.chunk else code_shape(self.scheme, shape)
        chunk = self.chunk and within(code_shape(self.scheme, self.chunk), limits)
        space = h5s.create_simple(code_shape(self.scheme, shape), limits)
        return ArrayWriter(self.group, CODES, code_type(self.scheme), space,
                           self.make_list(chunk), fd)

    def make_scales(self, fd: int) -> ArrayWriter:
        """As the codes where there are blocks; few as they are else, in one piece."""
        chunk, shape = None, scale_shape(self.scheme, self.tensor.shape)
        if self.chunk and self.scheme.block:
            chunk = within(scale_shape(self.scheme, self.chunk), shape)
        space = h5s.create_simple(shape)
        return ArrayWriter(self.group, SCALES, scale_type(self.scheme), space,
                           self.make_list(chunk), fd)

    def make_list(self, chunk: tuple[int, ...] | None) -> h5p.PropDCID:
        filters = chosen_filters(self.tensor.properties, self.options)
        return make_properties(self.tensor.properties, chunk, filters)

    def quantize_box(self, box: Box) -> Done:
        values = self.tensor.read(box)
        given = self.whole.part(self.given, box)
        scaled = fpconv.quantize(values, self.scheme, scales=given)
        codes, scales = scaled.codes, None if given is not None else scaled.scales
        if self.codes.write(self.code_box(box), codes):
            codes = None
        return box, codes, scales, values.nbytes

    def code_box(self, box: Box) -> Box:
        start, count = (code_units(self.scheme, n) for n in (box.start[-1], box.count[-1]))
        return Box((*box.start[:-1], start), (*box.count[:-1], count))

    def write_box(self, done: Done) -> None:
        box, codes, scales, count = done
        if codes is not None:
            self.codes.finish(self.code_box(box), codes)
        if scales is not None:
            where = scale_box(self.scheme, box)
            self.scales.finish(where, scales.reshape(where.count))
        self.advance(count)

    def carry_attributes(self, copy: Copy) -> None:
        """On the group; on the codes those with a name that the layout has, too."""
        old = h5o.open(copy.source.id, self.tensor.object.path)
        for name in attribute_names(old):
            new = self.codes.dataset if name in GROUP_ATTRIBUTES else self.group
            copy.copy_attribute(old, new, name)


def whole_units(scheme: fpconv.Scheme, columns: int) -> int:
    """Columns rounded up to whole blocks and bytes."""
    step = column_unit(scheme)
    return -(-columns // step) * step


def within(chunk: tuple[int, ...], limits: tuple[int, ...]) -> tuple[int, ...]:
    """A chunk that is no larger than a dataset of fixed size."""
    return tuple(c if n == UNLIMITED else min(c, n) for c, n in zip(chunk, limits))


def complete(scheme: fpconv.Scheme, shape: tuple[int, ...]) -> fpconv.Scheme:
    """The scheme with the rule and dot length that it would have for this tensor."""
    rule = scheme.rule or ("floor" if scheme.scaling == "mx" else "amax")
    length = scheme.dot_length
    if scheme.scaling == "pow2_row":
        length = length or shape[-1]
    if scheme.scaling == "pow2_column":
        length = length or int(numpy.prod(shape[:-1], dtype=int))
    return dataclasses.replace(scheme, rule=rule, dot_length=length)


def write_attribute(group: h5g.GroupID, name: bytes, datatype: h5t.TypeID,
                    value: numpy.ndarray) -> None:
    space = h5s.create_simple(value.shape) if value.shape else h5s.create(h5s.SCALAR)
    h5a.create(group, name, datatype, space).write(value)


def write_text(group: h5g.GroupID, name: bytes, text: str) -> None:
    datatype = h5t.C_S1.copy()
    datatype.set_size(len(text) + 1)
    write_attribute(group, name, datatype, numpy.array(text.encode(), f"S{len(text) + 1}"))


def write_layout(group: h5g.GroupID, scheme: fpconv.Scheme, tensor: PlainTensor) -> None:
    """The group's attributes; the version last, so that a group that has it is complete."""

    def write_numbers(name: bytes, value: "int | tuple[int, ...]") -> None:
        write_attribute(group, name, h5t.STD_U64LE, numpy.array(value, numpy.uint64))

    write_text(group, b"scheme", scheme.scaling)
    write_text(group, b"element", scheme.element)
    write_text(group, b"scale_rule", scheme.rule)
    write_numbers(b"shape", tensor.shape)
    write_numbers(b"axis", len(tensor.shape) - 1)
    write_numbers(b"block", scheme.block)
    if scheme.scaling == "nvfp4":
        write_attribute(group, b"tensor_scale", h5t.IEEE_F32LE, numpy.array(scheme.tensor_scale, "f4"))
    if scheme.element == "f16":
        write_numbers(b"dot_length", scheme.dot_length)
    if tensor.properties.fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED:
        datatype = h5t.IEEE_F64LE if tensor.format == "f64" else h5t.IEEE_F32LE
        value = fpconv.decode(tensor.fill_value(), tensor.format, tensor.dtype)
        write_attribute(group, FILL_VALUE, datatype, value.reshape(()))
    write_numbers(b"fpconv_scaled_version", SCALED_VERSION)


# ---------------------------------------------------------------------------
# And back
# ---------------------------------------------------------------------------


class UnscaleChange:
    """A group of codes and scales that becomes a dataset of float32 or float64."""

    def __init__(self, tensor: ScaledTensor, target: Target, options: StorageOptions) -> None:
        self.tensor, self.target = tensor, target
        self.losses: Losses | None = None
        self.stored_bytes = 0
        self.work_bytes = tensor.size * fpconv.format_info(tensor.format).bits // 8
        self.dtype = fpconv.format_info(target.format).storage
        self.properties = self.make_properties(options)

    def make_properties(self, options: StorageOptions) -> h5p.PropDCID:
        old = self.tensor.codes.get_create_plist()
        chunk = chosen_chunk(old, self.tensor.shape, self.dtype.itemsize, options, needed=False)
        if chunk and chunk == chunk_of(old):
            chunk = within(self.tensor.unit, self.limits())
        made = make_properties(old, chunk, chosen_filters(old, options))
        if h5a.exists(self.tensor.group, FILL_VALUE):
            value = numpy.empty((), self.dtype)
            h5a.open(self.tensor.group, FILL_VALUE).read(value)
            calls.set_fill_value(made, self.datatype(), value.tobytes())
        return made

    def datatype(self) -> h5t.TypeID:
        return fpconv.h5.dtype(self.target.format).id

    def make(self, copy: Copy, group: h5g.GroupID, name: bytes, links: h5p.PropLCID) -> None:
        self.writer = ArrayWriter(group, name, self.datatype(), self.space(), self.properties,
                                  copy.fd, links)
        self.advance = copy.advance
        self.writer.prepare()
        work_through(self.tensor.boxes(PIECE_BYTES), self.decode_box, self.write_box)
        self.stored_bytes = self.writer.dataset.get_storage_size()

    def space(self) -> h5s.SpaceID:
        limits = self.tensor.shape if chunk_of(self.properties) is None else self.limits()
        return h5s.create_simple(self.tensor.shape, limits)

    def limits(self) -> tuple[int, ...]:
        """The tensor's maximal shape, as far as its codes can grow."""
        shape = self.tensor.shape
        limits = self.tensor.codes.get_space().get_simple_extent_dims(True)
        last = limits[-1]
        if last == self.tensor.codes.shape[-1]:
            last = shape[-1]
        elif last != UNLIMITED:
            bits = fpconv.format_info(self.tensor.format).bits
            last = last * 8 * code_type(self.tensor.scheme).get_size() // bits
        return (*limits[:-1], last)

    def decode_box(self, box: Box) -> tuple[Box, numpy.ndarray | None]:
        values = self.tensor.read(box, self.dtype)
        return box, None if self.writer.write(box, values) else values

    def write_box(self, done: tuple[Box, numpy.ndarray | None]) -> None:
        box, values = done
        if values is not None:
            self.writer.finish(box, values)
        self.advance(self.code_bytes(box))

    def code_bytes(self, box: Box) -> int:
        return box.size * fpconv.format_info(self.tensor.format).bits // 8

    def carry_attributes(self, copy: Copy) -> None:
        """Those of the group that are not the layout's, and those of the codes."""
        path = self.tensor.object.path
        new = self.writer.dataset
        group, codes = (h5o.open(copy.source.id, p) for p in (path, path + b"/" + CODES))
        for name in attribute_names(group):
            if name not in GROUP_ATTRIBUTES:
                copy.copy_attribute(group, new, name)
        for name in attribute_names(codes):
            copy.copy_attribute(codes, new, name)
