"""Datasets that have to stay datasets, since something else in their file needs them.

SPDX-License-Identifier: MIT
"""
import os
from collections.abc import Callable, Iterator

from h5py import h5a, h5d, h5o, h5s, h5t

from h5fpconv.hdf5 import calls
from h5fpconv.hdf5.attributes import attribute_names
from h5fpconv.hdf5.boxes import spaces
from h5fpconv.hdf5.references import Layout, holds_references, layout_of, rewrite_values
from h5fpconv.hdf5.tensors import Source, reading
from h5fpconv.hdf5.walk import Kind, address_of
from h5fpconv.rewriting.carry import RAW_BYTES, written_boxes
from h5fpconv.user.status import InputError


def needed_datasets(source: Source) -> dict[int, str]:
    """By the address of a dataset, why it cannot become a group."""
    address_of_path = {name: object.address
                       for object in source.objects.values() for name in object.names}
    with reading(source.path):
        needed = {address: "a region reference points into it"
                  for address in targets_of_regions(source)}
        for path in shown_by_virtual(source):
            if path in address_of_path:
                needed[address_of_path[path]] = "a virtual dataset shows it"
    return needed


def shown_by_virtual(source: Source) -> set[str]:
    """The paths in this file that its virtual datasets show."""
    shown: set[str] = set()
    for dataset in datasets_of(source):
        properties = dataset.get_create_plist()
        if properties.get_layout() != h5d.VIRTUAL:
            continue
        for i in range(properties.get_virtual_count()):
            if is_same_file(source.path, properties.get_virtual_filename(i)):
                shown.add("/" + properties.get_virtual_dsetname(i).strip("/"))
    return shown


def is_same_file(path: str, name: str) -> bool:
    return name == "." or os.path.basename(name) == os.path.basename(path)


def datasets_of(source: Source) -> Iterator[h5d.DatasetID]:
    return (h5d.open(source.id, object.path) for object in source.objects.values()
            if object.kind is Kind.DATASET)


def targets_of_regions(source: Source) -> set[int]:
    """The addresses of what the region references in datasets and attributes point into."""
    found: set[int] = set()

    def note(reference: bytes) -> bytes:
        if len(reference) == calls.REGION_REFERENCE_SIZE:
            try:
                found.add(address_of(calls.dereference(source.id, reference)))
            except OSError:  # it points to nothing any more
                pass
        return reference

    for dataset in datasets_of(source):
        layout = layout_with_references(dataset.get_type())
        properties = dataset.get_create_plist()
        is_here = properties.get_layout() != h5d.VIRTUAL and not properties.get_external_count()
        if layout and is_here and dataset.get_storage_size():
            visit_dataset(dataset, layout, note)
    for object in source.objects.values():
        owner = h5o.open(source.id, object.path)
        for name in attribute_names(owner):
            attribute = h5a.open(owner, name)
            layout = layout_with_references(attribute.get_type())
            if layout and attribute.get_space().get_simple_extent_type() != h5s.NULL:
                visit_attribute(attribute, layout, note)
    return found


def layout_with_references(datatype: h5t.TypeID) -> Layout | None:
    """Where a datatype's references are; None without any, or with some that h5py lacks."""
    if not holds_references(datatype):
        return None
    try:
        return layout_of(datatype)
    except InputError:
        return None


def visit_dataset(dataset: h5d.DatasetID, layout: Layout, note: Callable[[bytes], bytes]) -> None:
    for box in written_boxes(dataset, max(1, RAW_BYTES // dataset.get_type().get_size())):
        memory, file = spaces(dataset.get_space(), box)
        with calls.values_of(dataset, memory, file) as data:
            rewrite_values(calls.address(data), box.size, layout, note)


def visit_attribute(attribute: h5a.AttrID, layout: Layout, note: Callable[[bytes], bytes]) -> None:
    space = attribute.get_space()
    with calls.values_of(attribute, space) as data:
        rewrite_values(calls.address(data), space.get_simple_extent_npoints(), layout, note)
