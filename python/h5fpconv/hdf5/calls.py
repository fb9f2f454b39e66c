"""Calls of HDF5 that h5py does not offer, made to the library that h5py uses.

SPDX-License-Identifier: MIT

Raw buffers go in and out: data in the memory form of their own datatype, without a
conversion.  That is how every kind of value, also those that numpy has no type
for, is carried from one file to another.
"""
import contextlib
import ctypes
import sys
from collections.abc import Callable, Iterator
from typing import Any

import h5py.defs  # noqa: F401  (the extension that is linked with libhdf5)
from h5py import h5a, h5d, h5p, h5s, h5t
from h5py._objects import ObjectID, phil

_hid = ctypes.c_int64
_herr = ctypes.c_int
_pointer = ctypes.c_void_p

OBJECT_REFERENCE_SIZE = 8
REGION_REFERENCE_SIZE = 12
_OBJECT, _REGION = 0, 1  # H5R_type_t
DEFAULT = 0
ALL = 0

_library = ctypes.CDLL(sys.modules["h5py.defs"].__file__)


def _function(name: str, result: Any, *arguments: Any) -> Callable[..., int]:
    """A function of HDF5, as an exception where it returns a negative value."""
    function = getattr(_library, name)
    function.restype, function.argtypes = result, arguments

    def call(*values: Any) -> int:
        with phil:
            returned = function(*values)
        if returned < 0:
            raise OSError(f"{name} failed")
        return returned

    return call


_attribute_create = _function("H5Acreate2", _hid, _hid, ctypes.c_char_p, _hid, _hid, _hid, _hid)
_attribute_list = _function("H5Aget_create_plist", _hid, _hid)
_commit = _function("H5Tcommit_anon", _herr, _hid, _hid, _hid, _hid)
_attribute_read = _function("H5Aread", _herr, _hid, _hid, _pointer)
_attribute_write = _function("H5Awrite", _herr, _hid, _hid, _pointer)
_read = _function("H5Dread", _herr, _hid, _hid, _hid, _hid, _hid, _pointer)
_write = _function("H5Dwrite", _herr, _hid, _hid, _hid, _hid, _hid, _pointer)
_reclaim = _function("H5Dvlen_reclaim", _herr, _hid, _hid, _hid, _pointer)
_comment = _function("H5Oget_comment", ctypes.c_ssize_t, _hid, ctypes.c_char_p, ctypes.c_size_t)
_chunk_bytes = _function("H5Dget_chunk_storage_size", _herr, _hid, _pointer, _pointer)
_get_fill = _function("H5Pget_fill_value", _herr, _hid, _hid, _pointer)
_set_fill = _function("H5Pset_fill_value", _herr, _hid, _hid, _pointer)
_link_settings = [(_function("H5Pget_" + name, _herr, _hid, _pointer, _pointer),
                   _function("H5Pset_" + name, _herr, _hid, ctypes.c_uint, ctypes.c_uint))
                  for name in ("link_phase_change", "est_link_info")]
_reference_create = _function("H5Rcreate", _herr, _pointer, _hid, ctypes.c_char_p, ctypes.c_int,
                              _hid)
_dereference = _function("H5Rdereference2", _hid, _hid, _hid, ctypes.c_int, _pointer)
_region = _function("H5Rget_region", _hid, _hid, ctypes.c_int, _pointer)


def buffer(size: int) -> "ctypes.Array[ctypes.c_char]":
    """Zeroed memory for raw values; never of 0 bytes."""
    return ctypes.create_string_buffer(max(size, 1))


def address(data: "ctypes.Array[ctypes.c_char]") -> int:
    return ctypes.addressof(data)


def commit(file: ObjectID, datatype: h5t.TypeID, properties: ObjectID) -> None:
    """Makes a datatype one of the file, without a link."""
    _commit(file.id, datatype.id, properties.id, DEFAULT)


def create_attribute(owner: ObjectID, name: bytes, datatype: h5t.TypeID, space: h5s.SpaceID,
                     like: h5a.AttrID) -> h5a.AttrID:
    """An attribute with the creation properties (the name's character set) of another."""
    properties = ObjectID(_attribute_list(like.id))
    return h5a.AttrID(_attribute_create(owner.id, name, datatype.id, space.id, properties.id,
                                        DEFAULT))


@contextlib.contextmanager
def values_of(owner: h5d.DatasetID | h5a.AttrID, memory: h5s.SpaceID,
              file: h5s.SpaceID | None = None) -> Iterator["ctypes.Array[ctypes.c_char]"]:
    """An attribute's values, or those of a dataset that are selected in `file`; what
    variable-length ones point to is freed at the end."""
    datatype = owner.get_type()
    data = buffer(memory.get_select_npoints() * datatype.get_size())
    if file is None:
        _attribute_read(owner.id, datatype.id, data)
    else:
        _read(owner.id, datatype.id, memory.id, file.id, DEFAULT, data)
    try:
        yield data
    finally:
        _reclaim(datatype.id, memory.id, DEFAULT, data)


def write_attribute(attribute: h5a.AttrID, datatype: h5t.TypeID, data: ctypes.Array) -> None:
    _attribute_write(attribute.id, datatype.id, data)


def write_dataset(dataset: h5d.DatasetID, datatype: h5t.TypeID, memory: h5s.SpaceID,
                  file: h5s.SpaceID, data: ctypes.Array) -> None:
    _write(dataset.id, datatype.id, memory.id, file.id, DEFAULT, data)


def comment(object: ObjectID) -> bytes:
    """The comment of an object; b"" for none.  (h5py returns noise for none.)"""
    size = _comment(object.id, None, 0)
    text = buffer(size + 1)
    _comment(object.id, text, size + 1)
    return text.value


def has_chunk(dataset: h5d.DatasetID, start: tuple[int, ...]) -> bool:
    """Whether there is a chunk at an index; False as well if HDF5 cannot tell."""
    size = ctypes.c_uint64(0)
    with contextlib.suppress(OSError):  # which 1.10 returns for a chunk that is not there
        _chunk_bytes(dataset.id, (ctypes.c_uint64 * len(start))(*start), ctypes.byref(size))
    return size.value > 0


def get_fill_value(properties: h5p.PropDCID, datatype: h5t.TypeID) -> bytes:
    """The fill value in the memory form of a datatype."""
    data = buffer(datatype.get_size())
    _get_fill(properties.id, datatype.id, data)
    return data.raw[:datatype.get_size()]


def set_fill_value(properties: h5p.PropDCID, datatype: h5t.TypeID, value: bytes) -> None:
    _set_fill(properties.id, datatype.id, value)


def copy_link_settings(source: ObjectID, destination: ObjectID) -> None:
    """How many links a group holds in its header, and how many it expects, from one
    property list to another."""
    for get, set in _link_settings:
        one, two = ctypes.c_uint(), ctypes.c_uint()
        get(source.id, ctypes.byref(one), ctypes.byref(two))
        set(destination.id, one, two)


def object_reference(root: ObjectID, path: bytes) -> bytes:
    """The reference to an object by its path in a file."""
    data = buffer(OBJECT_REFERENCE_SIZE)
    _reference_create(data, root.id, path, _OBJECT, -1)
    return data.raw[:OBJECT_REFERENCE_SIZE]


def region_reference(root: ObjectID, path: bytes, region: ObjectID) -> bytes:
    """The reference to a selection of a dataset by its path in a file."""
    data = buffer(REGION_REFERENCE_SIZE)
    _reference_create(data, root.id, path, _REGION, region.id)
    return data.raw[:REGION_REFERENCE_SIZE]


def dereference(file: ObjectID, reference: bytes) -> ObjectID:
    """The object that a reference, of either kind, points to."""
    kind = _OBJECT if len(reference) == OBJECT_REFERENCE_SIZE else _REGION
    return ObjectID(_dereference(file.id, DEFAULT, kind, reference))


def region_of(file: ObjectID, reference: bytes) -> ObjectID:
    """The selection of a region reference, as a dataspace."""
    return ObjectID(_region(file.id, _REGION, reference))
