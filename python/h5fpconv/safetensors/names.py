"""Tensors' names as paths in an HDF5 file, and back.

SPDX-License-Identifier: MIT

A name is cut at dots, so that layers become groups: `encoder.0.weight` is
/encoder/0/weight.  Joining a path's links by dots gives the name back wherever the
cuts are, and therefore a dot may stay where cutting at it would not do:

- next to another dot, or at an end of the name, where it would leave an empty link;
- after what is a tensor itself: with a tensor `a`, `a.b.c` is the dataset c of the
  group /a.b, since /a cannot be a group;
- after the first MAX_DEPTH - 1 dots.

A slash can be in no link's name and always cuts.  Joining by dots does not give such
a name back: it has to be kept beside the dataset.
"""
import itertools
import re
from collections.abc import Collection, Iterable

#: The attribute of a dataset whose path does not give its tensor's name.
NAME_ATTRIBUTE = b"safetensors_name"
MAX_DEPTH = 32
# A link is a message of an object header, which ends at 65,535 bytes.
MAX_NAME_BYTES = 65_000

_DOT_BETWEEN = re.compile(r"(?<=[^./])\.(?=[^./])")


class UnusableName(ValueError):
    """A name that HDF5 cannot hold, or that has no place beside another."""


def name_of(path: str) -> str:
    """The name of a tensor at this path, unless another is kept beside it."""
    return path.strip("/").replace("/", ".")


def path_of(name: str, names: Collection[str], *, groups: bool) -> str:
    """The path for a name among all names; without `groups` only slashes cut."""
    if len(name.encode()) > MAX_NAME_BYTES:
        raise UnusableName(f"it has more than {MAX_NAME_BYTES} bytes")
    if "\0" in name:
        raise UnusableName("HDF5 has no names with a NUL character")
    dots = _DOT_BETWEEN.finditer(name) if groups else iter(())
    pieces, begin = [], 0
    for dot in itertools.islice(dots, MAX_DEPTH - 1):
        if name[:dot.start()] not in names:
            pieces.append(name[begin:dot.start()])
            begin = dot.end()
    links = "/".join([*pieces, name[begin:]]).split("/")
    if len(links) > 2 * MAX_DEPTH:
        raise UnusableName(f"its path would be {len(links)} names deep, more than {2 * MAX_DEPTH}")
    for link in links:
        if link in ("", "."):
            raise UnusableName(f'a path of HDF5 cannot have the name "{link}" in it')
    return "/" + "/".join(links)


def paths_of(names: Iterable[str], *, groups: bool) -> dict[str, str]:
    """A path for each name, no two alike and none the group of another."""
    names = dict.fromkeys(names)
    owner: dict[str, str] = {}
    for name in names:
        try:
            path = path_of(name, names, groups=groups)
        except UnusableName as error:
            raise UnusableName(f"tensor {name!r:.99}: {error}") from None
        if path in owner:
            raise UnusableName(f"tensors {owner[path]!r:.99} and {name!r:.99} would both be "
                               f"the dataset {path!r:.99}")
        owner[path] = name
    for path, name in owner.items():
        for slash in re.finditer("/", path[1:]):
            group = owner.get(path[:1 + slash.start()])
            if group is not None:
                raise UnusableName(f"tensor {group!r:.99} would be the group of tensor "
                                   f"{name!r:.99}")
    return {name: path for path, name in owner.items()}
