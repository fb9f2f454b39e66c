"""How a converted dataset is stored: layout, filters and the rest of its creation list.

SPDX-License-Identifier: MIT
"""
import argparse
import dataclasses
from collections.abc import Iterable

from h5py import h5d, h5p, h5z

from h5fpconv.hdf5.boxes import box_shape
from h5fpconv.user.select import parse_size
from h5fpconv.user.status import UsageError

DEFAULT_CHUNK_BYTES = 1 << 20
Filter = tuple[int, int, tuple[int, ...]]  # code, flags, parameters


@dataclasses.dataclass(frozen=True)
class StorageOptions:
    """What the user wants otherwise than it was."""

    gzip: int | None = None
    shuffle: bool = False
    chunk_bytes: int | None = None
    contiguous: bool = False


def add_storage_arguments(parser: argparse.ArgumentParser) -> None:
    """--gzip, --shuffle, --chunks and --contiguous."""
    group = parser.add_argument_group(
        "storage", "Of the converted datasets; without these, chunks and filters stay.")
    group.add_argument("--gzip", metavar="LEVEL", type=int, choices=range(1, 10),
                       help="compress by deflate, level 1 to 9")
    group.add_argument("--shuffle", action="store_true", help="shuffle bytes before compressing")
    layout = group.add_mutually_exclusive_group()
    layout.add_argument("--chunks", metavar="SIZE", type=parse_size,
                        help="chunks of about SIZE bytes (64K, 1M), of whole rows if they fit")
    layout.add_argument("--contiguous", action="store_true", help="no chunks, no filters")


def storage_of(arguments: argparse.Namespace) -> StorageOptions:
    """Raises UsageError for what cannot be together."""
    if arguments.contiguous and (arguments.gzip is not None or arguments.shuffle):
        raise UsageError("--contiguous goes without filters, and --gzip and --shuffle are some")
    if arguments.chunks == 0:
        raise UsageError("--chunks 0: a chunk has at least one element")
    return StorageOptions(arguments.gzip, arguments.shuffle, arguments.chunks, arguments.contiguous)


def filters_of(properties: h5p.PropDCID) -> list[Filter]:
    filters = [properties.get_filter(i) for i in range(properties.get_nfilters())]
    return [(code, flags, tuple(values)) for code, flags, values, _ in filters]


def chunk_of(properties: h5p.PropDCID) -> tuple[int, ...] | None:
    return properties.get_chunk() if properties.get_layout() == h5d.CHUNKED else None


def chosen_chunk(properties: h5p.PropDCID, shape: tuple[int, ...], item_size: int,
                 options: StorageOptions, *, needed: bool) -> tuple[int, ...] | None:
    """The chunk of a dataset like one with `properties`; None for one without chunks."""
    if options.contiguous and not needed or not shape:
        return None
    old = chunk_of(properties)
    wants = needed or options.gzip is not None or options.shuffle
    if options.chunk_bytes is None and (old or not wants):
        return old
    elements = max(1, (options.chunk_bytes or DEFAULT_CHUNK_BYTES) // item_size)
    return tuple(max(1, n) for n in box_shape(shape, (1,) * len(shape), elements))


def chosen_filters(properties: h5p.PropDCID, options: StorageOptions) -> list[Filter]:
    """The old filters with the wanted ones; those that are about float32's own bits go."""
    bound = {h5z.FILTER_NBIT, h5z.FILTER_SCALEOFFSET}
    filters = [f for f in filters_of(properties) if f[0] not in bound]
    codes = [code for code, *_ in filters]
    if options.shuffle and h5z.FILTER_SHUFFLE not in codes:
        filters.insert(0, (h5z.FILTER_SHUFFLE, h5z.FLAG_OPTIONAL, ()))
    if options.gzip is not None:
        filters = [f for f in filters if f[0] != h5z.FILTER_DEFLATE]
        filters.append((h5z.FILTER_DEFLATE, h5z.FLAG_OPTIONAL, (options.gzip,)))
    return filters


def make_properties(like: h5p.PropDCID, chunk: tuple[int, ...] | None,
                    filters: Iterable[Filter]) -> h5p.PropDCID:
    """A creation list with this chunk and these filters, in all else like another.

    Not taken over are the fill value, which has the old type, and external files, which
    hold the old values.
    """
    made = h5p.create(h5p.DATASET_CREATE)
    made.set_fill_time(like.get_fill_time())
    made.set_attr_creation_order(like.get_attr_creation_order())
    made.set_attr_phase_change(*like.get_attr_phase_change())
    made.set_obj_track_times(like.get_obj_track_times())
    if chunk:
        made.set_chunk(chunk)
        for code, flags, parameters in filters:
            made.set_filter(code, flags, parameters)
    elif like.get_layout() == h5d.COMPACT:
        made.set_layout(h5d.COMPACT)
    if bool(chunk) == (like.get_layout() == h5d.CHUNKED) and not like.get_external_count():
        made.set_alloc_time(like.get_alloc_time())
    return made
