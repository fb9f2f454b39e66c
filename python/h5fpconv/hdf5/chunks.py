"""Chunks as they lie in a file, decoded and encoded outside of HDF5.

SPDX-License-Identifier: MIT

HDF5 runs its filters in one thread.  For the commonest ones, byte shuffling and
deflate, this does the same in as many as there are.
"""
import dataclasses
import zlib

import numpy
from h5py import h5p, h5z


@dataclasses.dataclass(frozen=True)
class Codec:
    """A dataset's filters, in the order in which they are applied when writing."""

    filters: tuple[tuple[int, tuple[int, ...]], ...]
    item_size: int

    def decode(self, raw: bytes, mask: int, size: int) -> numpy.ndarray:
        """A chunk's `size` bytes; the bits of `mask` say which filters were left out.

        ValueError if that is not what the chunk holds.
        """
        for i, (code, _) in reversed(list(enumerate(self.filters))):
            if not mask >> i & 1:
                raw = inflate(raw, size) if code == h5z.FILTER_DEFLATE \
                    else self.shuffle(raw, reverse=True)
        if len(raw) != size:
            raise ValueError(f"a chunk has {len(raw)} bytes instead of {size}")
        return numpy.frombuffer(raw, numpy.uint8)

    def encode(self, values: numpy.ndarray) -> bytes:
        raw = values.tobytes()
        for code, parameters in self.filters:
            raw = zlib.compress(raw, parameters[0]) if code == h5z.FILTER_DEFLATE \
                else self.shuffle(raw, reverse=False)
        return raw

    def shuffle(self, raw: bytes, *, reverse: bool) -> bytes:
        """All first bytes of the elements, then all second ones, ..."""
        shape = (self.item_size, -1) if reverse else (-1, self.item_size)
        return numpy.frombuffer(raw, numpy.uint8).reshape(shape).T.tobytes()


def inflate(raw: bytes, size: int) -> bytes:
    """Undoes deflate; never to more than a byte beyond `size`, which shows that it is wrong."""
    try:
        return zlib.decompressobj().decompress(raw, size + 1)
    except zlib.error as error:
        raise ValueError(f"a chunk cannot be decompressed: {error}") from None


def codec_of(properties: h5p.PropDCID, item_size: int) -> Codec | None:
    """The codec of a chunked dataset; None if it has filters that only HDF5 knows."""
    filters = [properties.get_filter(i) for i in range(properties.get_nfilters())]
    if any(code not in (h5z.FILTER_DEFLATE, h5z.FILTER_SHUFFLE) for code, *_ in filters):
        return None
    return Codec(tuple((code, tuple(values)) for code, _, values, _ in filters), item_size)
