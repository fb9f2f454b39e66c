"""Values on their way into a dataset, box by box.

SPDX-License-Identifier: MIT
"""
import math
import os

import numpy
from h5py import h5d, h5g, h5p, h5s, h5t

from h5fpconv.hdf5 import calls
from h5fpconv.hdf5.boxes import Box, flat_range, spaces

SMALL_BYTES = 1 << 16  # below that, HDF5's own way costs less than a second opening


class ArrayWriter:
    """A new dataset; `fd` is its file.

    Where `prepare` has assigned contiguous storage, any thread can write boxes at their
    offset; all else goes through HDF5 by `finish`.
    """

    def __init__(self, group: h5g.GroupID, name: bytes, datatype: h5t.TypeID, space: h5s.SpaceID,
                 properties: h5p.PropDCID, fd: int, links: h5p.PropLCID | None = None) -> None:
        self.dataset = h5d.create(group, name, datatype, space, dcpl=properties, lcpl=links)
        self.group, self.name = group, name
        self.datatype, self.shape, self.fd = datatype, self.dataset.shape, fd
        self.item_size = datatype.get_size()
        self.is_big = datatype.get_class() != h5t.OPAQUE and datatype.get_order() == h5t.ORDER_BE
        self.is_contiguous = properties.get_layout() == h5d.CONTIGUOUS
        self.offset: int | None = None

    def prepare(self) -> None:
        """To be called before all of the values are written."""
        if self.is_contiguous and math.prod(self.shape) * self.item_size >= SMALL_BYTES:
            self.assign_storage()

    def assign_storage(self) -> None:
        """Writing one element makes HDF5 assign all.  Closing empties its buffers, which
        would otherwise be written over ours later."""
        memory, file = spaces(self.dataset.get_space(), Box((0,) * len(self.shape),
                                                            (1,) * len(self.shape)))
        calls.write_dataset(self.dataset, self.datatype, memory, file, calls.buffer(self.item_size))
        self.dataset.close()
        self.dataset = h5d.open(self.group, self.name)
        self.offset = self.dataset.get_offset()

    def write(self, box: Box, values: numpy.ndarray) -> bool:
        """Writes a box, from any thread, if that is possible without HDF5."""
        part = flat_range(self.shape, box) if self.offset is not None else None
        if part is None:
            return False
        values = self.in_file_order(values)
        write_exactly(self.fd, values, self.offset + part[0] * self.item_size)
        return True

    def finish(self, box: Box, values: numpy.ndarray) -> None:
        """Writes a box through HDF5."""
        if box.size:
            memory, file = spaces(self.dataset.get_space(), box)
            values = numpy.ascontiguousarray(self.in_file_order(values))
            self.dataset.write(memory, file, values, mtype=self.datatype)

    def in_file_order(self, values: numpy.ndarray) -> numpy.ndarray:
        order = ">" if self.is_big else "<"
        return values.astype(values.dtype.newbyteorder(order), copy=False)


def write_exactly(fd: int, values: numpy.ndarray, offset: int) -> None:
    view = memoryview(numpy.ascontiguousarray(values).reshape(-1).view(numpy.uint8))
    while view:
        count = os.pwrite(fd, view, offset)
        view, offset = view[count:], offset + count
