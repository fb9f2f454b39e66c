"""Parts of an array, and the threads that work on them.

SPDX-License-Identifier: MIT

HDF5 is entered by one thread at a time (h5py sees to that), but reading and writing
bytes at a known offset, converting and compressing run at the same time in several.
"""
import dataclasses
import itertools
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from h5py import h5s

Part = TypeVar("Part")
Result = TypeVar("Result")

MAX_THREADS = 8
MAX_PIECE_BYTES = 8 << 20
ALL_PIECES_BYTES = 32 << 20


@dataclasses.dataclass(frozen=True)
class Box:
    """A block of an array: the first index and the count along each axis."""

    start: tuple[int, ...]
    count: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.count)


def box_shape(shape: Sequence[int], unit: Sequence[int], max_elements: int) -> tuple[int, ...]:
    """The largest box of whole units, or to the array's end, within `max_elements`.

    The last axes are kept whole as long as possible, so that a box is in one piece
    where the array is.  A box is never less than a unit.
    """
    box = list(shape)
    for axis in range(len(shape)):
        rest = math.prod(box[:axis]) * math.prod(box[axis + 1:])
        if box[axis] * rest <= max_elements:
            break
        units = max(1, max_elements // max(rest, 1) // unit[axis])
        box[axis] = min(box[axis], units * unit[axis])
    return tuple(box)


def boxes(shape: Sequence[int], count: Sequence[int]) -> Iterator[Box]:
    """The array cut into boxes of this count, those at its end smaller; row-major."""
    axes = [range(0, size, step) if step else range(0) for size, step in zip(shape, count)]
    for start in itertools.product(*axes):
        yield Box(start, tuple(min(c, n - s) for s, c, n in zip(start, count, shape)))


def flat_range(shape: Sequence[int], box: Box) -> tuple[int, int] | None:
    """First element and number of elements of a box that is in one piece; else None."""
    offset, whole_after = 0, True
    for axis in reversed(range(len(shape))):
        if box.count[axis] != 1 and not whole_after:
            return None
        whole_after = whole_after and box.count[axis] == shape[axis]
    stride = 1
    for axis in reversed(range(len(shape))):
        offset += box.start[axis] * stride
        stride *= shape[axis]
    return offset, box.size


def spaces(space: h5s.SpaceID, box: Box) -> tuple[h5s.SpaceID, h5s.SpaceID]:
    """The memory's dataspace of a box, and the file's with the box selected."""
    if not box.count:
        return h5s.create(h5s.SCALAR), space
    selected = space.copy()
    selected.select_hyperslab(box.start, box.count)
    return h5s.create_simple(box.count), selected


def thread_count() -> int:
    """One for each core that this process may use, as long as memory and HDF5's lock keep up."""
    return min(len(os.sched_getaffinity(0)), MAX_THREADS)


def piece_bytes() -> int:
    """What a thread takes at a time: large enough for Python not to count, small enough
    for all threads together to stay within a part of 200 MiB."""
    return min(MAX_PIECE_BYTES, ALL_PIECES_BYTES // thread_count())


def work_through(parts: Iterable[Part], work: Callable[[Part], Result],
                 finish: Callable[[Result], None]) -> None:
    """`work` on parts in several threads, `finish` on the results in order, in this one.

    No more parts are begun than two a thread beyond those finished, so that
    memory stays bounded.  The first exception ends it, after the parts at work.
    """
    # loaded only where there is work to do
    from concurrent.futures import Future, ThreadPoolExecutor

    threads = thread_count()
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for part in parts:
                if len(waiting) >= 2 * threads:
                    finish(waiting.popleft().result())
                waiting.append(pool.submit(work, part))
            while waiting:
                finish(waiting.popleft().result())
        finally:
            for future in waiting:
                future.cancel()
