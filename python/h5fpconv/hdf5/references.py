"""References in raw values, rewritten to the objects of another file.

SPDX-License-Identifier: MIT

A datatype is laid out once: where in its memory form there are references, and
variable-length sequences that hold more.  Then values are rewritten in place.
"""
import ctypes
import dataclasses
import math
from collections.abc import Callable

from h5py import h5t

from h5fpconv.hdf5 import calls
from h5fpconv.user.status import InputError

Rewrite = Callable[[bytes], bytes]


class Sequence(ctypes.Structure):
    """HDF5's hvl_t: a variable-length sequence in memory."""

    _fields_ = [("length", ctypes.c_size_t), ("data", ctypes.c_void_p)]


@dataclasses.dataclass(frozen=True)
class Slot:
    """A reference of `size` bytes, or a sequence of elements of the layout `base`."""

    offset: int
    size: int
    base: "Layout | None" = None


@dataclasses.dataclass(frozen=True)
class Layout:
    """An element's size and its slots."""

    size: int
    slots: tuple[Slot, ...]


def layout_of(datatype: h5t.TypeID) -> Layout:
    """Where the references are.  Raises InputError for a kind that is not known."""
    return Layout(datatype.get_size(), tuple(find_slots(datatype, 0)))


def find_slots(datatype: h5t.TypeID, offset: int) -> list[Slot]:
    kind = datatype.get_class()
    if kind == h5t.REFERENCE:
        return [Slot(offset, reference_size(datatype))]
    if kind == h5t.COMPOUND:
        return [slot for i in range(datatype.get_nmembers())
                for slot in find_slots(datatype.get_member_type(i),
                                       offset + datatype.get_member_offset(i))]
    if kind == h5t.ARRAY:
        base = datatype.get_super()
        return [dataclasses.replace(slot, offset=slot.offset + i * base.get_size())
                for slot in find_slots(base, offset)
                for i in range(math.prod(datatype.get_array_dims()))]
    if kind == h5t.VLEN:
        base_layout = layout_of(datatype.get_super())
        return [Slot(offset, ctypes.sizeof(Sequence), base_layout)] if base_layout.slots else []
    return []


def reference_size(datatype: h5t.TypeID) -> int:
    if datatype.equal(h5t.STD_REF_OBJ):
        return calls.OBJECT_REFERENCE_SIZE
    if datatype.equal(h5t.STD_REF_DSETREG):
        return calls.REGION_REFERENCE_SIZE
    raise InputError("a reference of the kind H5T_STD_REF, which h5py cannot handle")


def holds_references(datatype: h5t.TypeID) -> bool:
    """Whether values of the datatype hold references, however deep."""
    return bool(datatype.detect_class(h5t.REFERENCE))


def holds_pointers(datatype: h5t.TypeID) -> bool:
    """Whether values of the datatype lie elsewhere, being of variable length."""
    kind = datatype.get_class()
    if kind == h5t.COMPOUND:
        members = map(datatype.get_member_type, range(datatype.get_nmembers()))
        return any(map(holds_pointers, members))
    if kind == h5t.ARRAY:
        return holds_pointers(datatype.get_super())
    return kind == h5t.VLEN or kind == h5t.STRING and datatype.is_variable_str()


def rewrite_values(address: int, count: int, layout: Layout, rewrite: Rewrite) -> None:
    """Rewrites the references of `count` elements in memory."""
    for i in range(count):
        for slot in layout.slots:
            rewrite_slot(address + i * layout.size + slot.offset, slot, rewrite)


def rewrite_slot(address: int, slot: Slot, rewrite: Rewrite) -> None:
    if slot.base:
        sequence = Sequence.from_address(address)
        if sequence.length:
            rewrite_values(sequence.data, sequence.length, slot.base, rewrite)
        return
    reference = ctypes.string_at(address, slot.size)
    if any(reference):  # all zeros: it points nowhere
        ctypes.memmove(address, rewrite(reference), slot.size)
