"""A file carried into another one, but for the objects that are changed on the way.

SPDX-License-Identifier: MIT

Objects that stay are copied by HDF5 without decoding them.  Three things it does not
carry from file to file are done here: references, which are rewritten to the new
objects; committed datatypes, which stay shared; and links of all kinds.
"""
from collections.abc import Iterator
from typing import Protocol

from h5py import h5a, h5d, h5f, h5g, h5l, h5o, h5p, h5s, h5t
from h5py._objects import ObjectID

from h5fpconv.hdf5 import calls
from h5fpconv.hdf5.attributes import attribute_names
from h5fpconv.hdf5.boxes import Box, box_shape, boxes, spaces
from h5fpconv.hdf5.references import (Layout, holds_pointers, holds_references, layout_of,
                                      rewrite_values)
from h5fpconv.hdf5.tensors import Source
from h5fpconv.hdf5.walk import Kind, Link, Object, address_of, join, path_text
from h5fpconv.rewriting.properties import chunk_of
from h5fpconv.user.console import Advance
from h5fpconv.user.status import InputError

RAW_BYTES = 1 << 20  # of values at a time, where they go through memory


class Change(Protocol):
    """Another object in the place of one of the source.

    `work_bytes` is what its making will report to `Copy.advance` altogether.
    """

    work_bytes: int

    def make(self, copy: "Copy", group: h5g.GroupID, name: bytes, links: h5p.PropLCID) -> None:
        """Creates the object under a name in the destination, with its values."""

    def carry_attributes(self, copy: "Copy") -> None:
        """Gives the new object the old one's attributes, once all objects exist."""


class Copy:
    """One source on its way to a destination.

    `where` has the path in the destination of each object that is made, by its
    address in the source.  `fd` is the destination once more, for bytes at
    offsets that HDF5 has assigned.
    """

    def __init__(self, source: Source, destination: h5f.FileID, fd: int,
                 changes: dict[int, Change], advance: Advance) -> None:
        self.source, self.destination, self.fd = source, destination, fd
        self.changes, self.advance = changes, advance
        self.where: dict[int, bytes] = {}
        self.rewritten: dict[bytes, bytes] = {}
        self.types: dict[int, h5t.TypeID] = {}
        self.with_references: list[Object] = []

    def run(self) -> None:
        """Makes all objects, then what can refer to any of them."""
        source = self.source
        root = next(iter(source.objects.values()))
        self.where[root.address] = b"/"
        for object in source.objects.values():
            if object.kind is Kind.TYPE:  # before the datasets that are of it
                self.types[object.address] = self.commit(h5t.open(source.id, object.path))
        for object in source.objects.values():
            if object.kind is Kind.GROUP and self.is_carried(object):
                self.make_links(object)
        for object in self.with_references:
            self.copy_values(object)
        for address, object in source.objects.items():
            if address in self.changes:
                self.changes[address].carry_attributes(self)
            elif address in self.where:
                self.carry_attributes(object)

    def is_carried(self, object: Object) -> bool:
        return object.address in self.where and object.address not in self.changes

    # Links

    def make_links(self, parent: Object) -> None:
        """A group's links, in order, with the objects that are met for the first time."""
        group = h5g.open(self.destination, self.where[parent.address])
        for link in parent.links:
            properties = h5p.create(h5p.LINK_CREATE)
            properties.set_char_encoding(link.char_set)
            if link.kind == h5l.TYPE_SOFT:
                group.links.create_soft(link.name, link.value, lcpl=properties)
            elif link.kind == h5l.TYPE_EXTERNAL:
                group.links.create_external(link.name, *link.value, lcpl=properties)
            else:
                self.make_hard_link(parent, group, link, properties)

    def make_hard_link(self, parent: Object, group: h5g.GroupID, link: Link,
                       properties: h5p.PropLCID) -> None:
        known = self.where.get(link.address)
        if known is not None:
            group.links.create_hard(link.name, self.destination, known, lcpl=properties)
            return
        self.where[link.address] = join(self.where[parent.address], link.name)
        change = self.changes.get(link.address)
        if change:
            change.make(self, group, link.name, properties)
        else:
            self.make_object(self.source.objects[link.address], group, link.name, properties)

    # Objects

    def make_object(self, object: Object, group: h5g.GroupID, name: bytes,
                    links: h5p.PropLCID) -> None:
        if object.kind is Kind.TYPE:
            h5o.link(self.types[object.address], group, name, lcpl=links)
        elif object.kind is Kind.GROUP:
            old = h5g.open(self.source.id, object.path)
            new = h5g.create(group, name, lcpl=links, gcpl=group_properties(old))
            copy_comment(old, new)
        elif self.is_made_anew(object):
            self.make_dataset(object, group, name, links)
        else:
            properties = h5p.create(h5p.OBJECT_COPY)
            properties.set_copy_object(h5o.COPY_WITHOUT_ATTR_FLAG)
            h5o.copy(self.source.id, object.path, group, name, copypl=properties, lcpl=links)
            self.advance(h5d.open(self.source.id, object.path).get_storage_size())

    def commit(self, old: h5t.TypeID) -> h5t.TypeID:
        """The destination's twin of a committed datatype, without a link as yet."""
        new = old.copy()
        calls.commit(self.destination, new, old.get_create_plist())
        return new

    def is_made_anew(self, object: Object) -> bool:
        """Whether HDF5's copy of a dataset would lose something: a reference, a shared
        datatype, or a fill value that points to memory."""
        dataset = h5d.open(self.source.id, object.path)
        datatype = dataset.get_type()
        fill = dataset.get_create_plist().fill_value_defined()
        return (datatype.committed() or holds_references(datatype)
                or fill == h5d.FILL_VALUE_USER_DEFINED and holds_pointers(datatype))

    def make_dataset(self, object: Object, group: h5g.GroupID, name: bytes,
                     links: h5p.PropLCID) -> None:
        old = h5d.open(self.source.id, object.path)
        new = h5d.create(group, name, self.datatype(old.get_type()), old.get_space(),
                         dcpl=old.get_create_plist(), lcpl=links)
        copy_comment(old, new)
        if holds_references(old.get_type()):
            self.with_references.append(object)
        else:
            self.copy_values(object)

    def datatype(self, datatype: h5t.TypeID) -> h5t.TypeID:
        """The destination's committed datatype for one of the source's; others are the same."""
        if not datatype.committed():
            return datatype
        address = address_of(datatype)
        if address not in self.types:  # no link leads to it any more
            self.types[address] = self.commit(datatype)
        return self.types[address]

    # Values that go through memory in the form of their datatype

    def copy_values(self, object: Object) -> None:
        old = h5d.open(self.source.id, object.path)
        new = h5d.open(self.destination, self.where[object.address])
        properties, datatype = old.get_create_plist(), old.get_type()
        if properties.get_layout() == h5d.VIRTUAL or properties.get_external_count():
            return  # the values are elsewhere
        if old.get_space().get_simple_extent_type() == h5s.NULL or not old.get_storage_size():
            return
        layout = layout_of(datatype) if holds_references(datatype) else None
        if chunk_of(properties) and not holds_pointers(datatype) and not layout:
            self.copy_chunks(old, new)
            return
        for box in written_boxes(old, max(1, RAW_BYTES // datatype.get_size())):
            self.copy_box(old, new, datatype, layout, box)
            self.advance(box.size * datatype.get_size())

    def copy_chunks(self, old: h5d.DatasetID, new: h5d.DatasetID) -> None:
        """Chunks as they lie in the file."""
        for box in written_boxes(old, 0):
            mask, raw = old.read_direct_chunk(box.start)
            new.write_direct_chunk(box.start, raw, mask)
            self.advance(len(raw))

    def copy_box(self, old: h5d.DatasetID, new: h5d.DatasetID, datatype: h5t.TypeID,
                 layout: Layout | None, box: Box) -> None:
        memory, file = spaces(old.get_space(), box)
        with calls.values_of(old, memory, file) as data:
            if layout:
                rewrite_values(calls.address(data), box.size, layout, self.rewrite)
            calls.write_dataset(new, datatype, memory, file, data)

    # Attributes

    def carry_attributes(self, object: Object) -> None:
        old = h5o.open(self.source.id, object.path)
        new = h5o.open(self.destination, self.where[object.address])
        for name in attribute_names(old):
            self.copy_attribute(old, new, name)

    def copy_attribute(self, old: ObjectID, new: ObjectID, name: bytes) -> None:
        attribute = h5a.open(old, name)
        datatype, space = attribute.get_type(), attribute.get_space()
        copy = calls.create_attribute(new, name, self.datatype(datatype), space, attribute)
        if space.get_simple_extent_type() == h5s.NULL:
            return
        with calls.values_of(attribute, space) as data:
            if holds_references(datatype):
                try:
                    rewrite_values(calls.address(data), space.get_simple_extent_npoints(),
                                   layout_of(datatype), self.rewrite)
                except InputError as error:
                    raise InputError(f"the attribute {path_text(name)!r}: {error}") from None
            calls.write_attribute(copy, datatype, data)

    # References

    def rewrite(self, reference: bytes) -> bytes:
        """The same reference in the destination; all zeros if what it meant is not there."""
        known = self.rewritten.get(reference)
        if known is None:
            known = self.rewritten[reference] = self.rewrite_new(reference)
        return known

    def rewrite_new(self, reference: bytes) -> bytes:
        try:
            target = calls.dereference(self.source.id, reference)
        except OSError:
            return bytes(len(reference))
        address = address_of(target)
        path = self.where.get(address)
        if path is None:
            return bytes(len(reference))
        if len(reference) == calls.OBJECT_REFERENCE_SIZE:
            return calls.object_reference(self.destination, path)
        region = calls.region_of(self.source.id, reference)
        return calls.region_reference(self.destination, path, region)


def written_boxes(dataset: h5d.DatasetID, max_elements: int) -> Iterator[Box]:
    """A dataset in boxes: the chunks that are there, or what it is else in parts."""
    chunk = chunk_of(dataset.get_create_plist())
    if not chunk:
        yield from boxes(dataset.shape, box_shape(dataset.shape, (1,) * len(dataset.shape),
                                                  max_elements))
        return
    missing = dataset.get_num_chunks()
    for box in boxes(dataset.shape, chunk):
        if calls.has_chunk(dataset, box.start):
            missing -= 1
            yield box
    if missing:
        raise InputError(f"{missing} chunks of a dataset are not where its index says")


def group_properties(group: h5g.GroupID, properties: ObjectID | None = None) -> ObjectID:
    """A group's creation properties, added to a list or in one of their own.

    Not the list that HDF5 returns for the group: in that are the addresses of its links.
    """
    old, new = group.get_create_plist(), properties or h5p.create(h5p.GROUP_CREATE)
    new.set_link_creation_order(old.get_link_creation_order())
    new.set_attr_creation_order(old.get_attr_creation_order())
    new.set_attr_phase_change(*old.get_attr_phase_change())
    new.set_obj_track_times(old.get_obj_track_times())
    calls.copy_link_settings(old, new)
    return new


def copy_comment(old: ObjectID, new: ObjectID) -> None:
    comment = calls.comment(old)
    if comment:
        h5o.set_comment(new, comment)
