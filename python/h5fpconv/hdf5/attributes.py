"""Names of attributes, and attributes that are one string each.

SPDX-License-Identifier: MIT
"""
import h5py
import numpy
from h5py import h5, h5a, h5d, h5g, h5p, h5s, h5t


def write_text(owner: h5g.GroupID | h5d.DatasetID, name: bytes, value: str) -> None:
    """An attribute of variable length, as those of fixed length end at 64 KiB."""
    kind = h5t.py_create(h5py.string_dtype(), logical=True)
    attribute = h5a.create(owner, name, kind, h5s.create(h5s.SCALAR))
    attribute.write(numpy.array(value.encode(), dtype=h5py.string_dtype()))


def read_text(owner: h5g.GroupID | h5d.DatasetID, name: bytes) -> str | None:
    """The attribute's text; None if there is none, or it is not one string of UTF-8."""
    if not h5a.exists(owner, name):
        return None
    attribute = h5a.open(owner, name)
    if (attribute.get_type().get_class() != h5t.STRING or
            attribute.get_space().get_simple_extent_type() != h5s.SCALAR):
        return None
    value = numpy.empty((), attribute.dtype)
    attribute.read(value)
    try:
        return bytes(value[()]).decode()
    except UnicodeDecodeError:
        return None


def attribute_names(owner: h5g.GroupID | h5d.DatasetID | h5t.TypeID) -> list[bytes]:
    """In order of creation where that is kept; in linear time, unlike asking for each by number."""
    tracked = owner.get_create_plist().get_attr_creation_order() & h5p.CRT_ORDER_TRACKED
    names: list[bytes] = []
    h5a.iterate(owner, names.append,
                index_type=h5.INDEX_CRT_ORDER if tracked else h5.INDEX_NAME)
    return names
