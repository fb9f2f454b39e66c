"""One dataset in another format, on its way from file to file.

SPDX-License-Identifier: MIT

Values are read in boxes, converted and written: by several threads where the bytes
lie at a known offset of the file, through HDF5 otherwise.
"""
import math
import threading
from collections.abc import Iterator

import fpconv
import fpconv.h5
import numpy
from h5py import h5d, h5g, h5p, h5s, h5z

from h5fpconv.hdf5 import calls
from h5fpconv.hdf5.boxes import Box, box_shape, boxes, piece_bytes, work_through
from h5fpconv.hdf5.chunks import codec_of
from h5fpconv.hdf5.tensors import PlainTensor, reading
from h5fpconv.hdf5.writing import ArrayWriter
from h5fpconv.rewriting.carry import Copy, written_boxes
from h5fpconv.rewriting.losses import Losses, can_lose, count_losses, is_lossless
from h5fpconv.rewriting.properties import (StorageOptions, chosen_chunk, chosen_filters, chunk_of,
                                           make_properties)
from h5fpconv.user.targets import Storage, Target

# A box, its losses, its bytes in the source, and what is still to be written
Done = tuple[Box, Losses, int, bytes | numpy.ndarray | None]


class PlainChange:
    """A dataset that becomes one of another format.

    Where nothing but the format changes, chunks that were never written stay so.
    """

    def __init__(self, tensor: PlainTensor, target: Target, policy: str,
                 options: StorageOptions) -> None:
        self.tensor, self.target, self.policy = tensor, target, policy
        self.losses = Losses()
        self.stored_bytes = 0
        self.work_bytes = tensor.size * tensor.storage.itemsize
        self.counts = can_lose(tensor.format, target.format)
        self.storage = fpconv.format_info(target.format).storage
        self.properties = self.make_properties(options)
        self.local = threading.local()

    def make_properties(self, options: StorageOptions) -> h5p.PropDCID:
        old, is_packed = self.tensor.properties, self.target.storage is Storage.PACKED
        chunk = chosen_chunk(old, self.tensor.shape, self.storage.itemsize, options,
                             needed=is_packed)
        filters = chosen_filters(old, options)
        if is_packed:
            filters.insert(0, (h5z.FILTER_NBIT, h5z.FLAG_MANDATORY, ()))
        made = make_properties(old, chunk, filters)
        if old.fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED:
            value = self.tensor.fill_value()
            codes = fpconv.convert(value, self.target.format, self.tensor.format, policy=self.policy)
            calls.set_fill_value(made, fpconv.h5.dtype(self.target.format).id, codes.tobytes())
        return made

    # Creating

    def make(self, copy: Copy, group: h5g.GroupID, name: bytes, links: h5p.PropLCID) -> None:
        space = self.tensor.dataset.get_space()
        if chunk_of(self.properties) is None and space.shape:
            space = h5s.create_simple(space.shape)
        self.writer = ArrayWriter(group, name, fpconv.h5.dtype(self.target.format).id, space,
                                  self.properties, copy.fd, links)
        self.advance = copy.advance
        if self.tensor.is_written:
            if self.recodes_chunks():
                work_through(written_boxes(self.tensor.dataset, 0), self.recode_chunk, self.write_chunk)
            else:
                self.writer.prepare()
                work_through(self.boxes(), self.convert_box, self.write_box)
        self.stored_bytes = self.writer.dataset.get_storage_size()

    def carry_attributes(self, copy: Copy) -> None:
        copy.carry_attributes(self.tensor.object)

    def count(self, old: numpy.ndarray, new: numpy.ndarray) -> Losses:
        if not self.counts or is_lossless(new, self.target.format):
            return Losses()
        is_float = self.tensor.format in ("f32", "f64")
        values = old if is_float else fpconv.decode(old, self.tensor.format)
        return count_losses(values, self.target.format)

    def convert(self, codes: numpy.ndarray, out: numpy.ndarray | None = None) -> numpy.ndarray:
        return fpconv.convert(codes, self.target.format, self.tensor.format, policy=self.policy,
                              out=out)

    # By boxes

    def boxes(self) -> Iterator[Box]:
        unit = chunk_of(self.properties) or self.tensor.unit
        count = box_shape(self.tensor.shape, unit, piece_bytes() // self.tensor.storage.itemsize)
        return boxes(self.tensor.shape, count)

    def convert_box(self, box: Box) -> Done:
        """A box read and converted; written, too, where no HDF5 is needed for it."""
        size = box.size
        codes = self.tensor.map_codes(box)
        if codes is None:
            codes = self.tensor.read_codes(box, self.scratch("old", size, self.tensor.storage))
        can_reuse = self.writer.offset is not None
        out = self.scratch("new", size, self.storage)[:size].reshape(box.count) if can_reuse else None
        converted = self.convert(codes, out)
        losses = self.count(codes, converted)
        if self.writer.write(box, converted):
            return box, losses, codes.nbytes, None
        return box, losses, codes.nbytes, converted.copy() if can_reuse else converted

    def scratch(self, name: str, size: int, dtype: numpy.dtype) -> numpy.ndarray:
        """This thread's memory for a purpose, kept from box to box."""
        known = getattr(self.local, name, None)
        if known is None or known.size < size:
            known = numpy.empty(size, dtype)
            setattr(self.local, name, known)
        return known

    def write_box(self, done: Done) -> None:
        box, losses, count, codes = done
        if codes is not None:
            self.writer.finish(box, codes)
        self.losses.add(losses)
        self.advance(count)

    # By chunks, decoded and encoded here

    def recodes_chunks(self) -> bool:
        chunk = chunk_of(self.properties)
        self.decoder = codec_of(self.tensor.properties, self.tensor.storage.itemsize)
        self.encoder = codec_of(self.properties, self.storage.itemsize)
        return bool(chunk and chunk == self.tensor.chunk and self.decoder and self.encoder)

    def recode_chunk(self, box: Box) -> Done:
        """A chunk read, decoded, converted and encoded; also what lies beyond the end."""
        chunk = self.tensor.chunk
        with reading(self.tensor.name):
            mask, raw = self.tensor.dataset.read_direct_chunk(box.start)
            raw = self.decoder.decode(raw, mask, math.prod(chunk) * self.tensor.storage.itemsize)
        codes = raw.view(self.tensor.file_storage).astype(self.tensor.storage).reshape(chunk)
        converted = self.convert(codes)
        old, new = (numpy.ascontiguousarray(a[tuple(map(slice, box.count))])
                    for a in (codes, converted))
        encoded = self.encoder.encode(self.writer.in_file_order(converted))
        return box, self.count(old, new), old.nbytes, encoded

    def write_chunk(self, done: Done) -> None:
        box, losses, count, raw = done
        self.writer.dataset.write_direct_chunk(box.start, raw)
        self.losses.add(losses)
        self.advance(count)
