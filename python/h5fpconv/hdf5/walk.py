"""The objects of a file and how they are linked, each object once.

SPDX-License-Identifier: MIT

An object is known by the address of its header: hard links to one object, and
cycles of groups, lead to the same one.
"""
import dataclasses
import enum
from collections import deque

from h5py import h5, h5a, h5f, h5g, h5l, h5o, h5p
from h5py._objects import ObjectID

from h5fpconv.user.status import InputError

SCALED_VERSION = b"fpconv_scaled_version"  # the attribute that marks a scaled tensor's group


class Kind(enum.Enum):
    """What an object is."""

    GROUP = h5o.TYPE_GROUP
    DATASET = h5o.TYPE_DATASET
    TYPE = h5o.TYPE_NAMED_DATATYPE


@dataclasses.dataclass(frozen=True)
class Link:
    """A link in a group: hard with an `address`, else soft or external with a `value`."""

    name: bytes
    kind: int
    char_set: int
    address: int = 0
    value: bytes | tuple[bytes, bytes] = b""


@dataclasses.dataclass
class Object:
    """An object with all paths to it, the first being the one it was found by.

    `links` are a group's, in the order in which they were created where the group
    keeps that order.  `in_scaled` marks what belongs to a scaled tensor's group.
    """

    address: int
    kind: Kind
    paths: list[bytes]
    links: list[Link] = dataclasses.field(default_factory=list)
    is_scaled: bool = False
    in_scaled: bool = False

    @property
    def path(self) -> bytes:
        return self.paths[0]

    @property
    def names(self) -> list[str]:
        """The paths as text; bytes that are not UTF-8 as surrogates."""
        return [path_text(path) for path in self.paths]

    @property
    def name(self) -> str:
        return path_text(self.path)


def path_text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def address_of(location: ObjectID, name: bytes = b".") -> int:
    """The address of an object's header."""
    return h5o.get_info(location, name).addr


def keeps_link_order(group: h5g.GroupID) -> bool:
    return bool(group.get_create_plist().get_link_creation_order() & h5p.CRT_ORDER_TRACKED)


def list_links(group: h5g.GroupID) -> list[bytes]:
    """The names of a group's links, in order of creation if that is kept."""
    names: list[bytes] = []
    order = h5.INDEX_CRT_ORDER if keeps_link_order(group) else h5.INDEX_NAME
    group.links.iterate(names.append, idx_type=order)
    return names


def read_link(group: h5g.GroupID, name: bytes) -> Link:
    # Not from links.iterate, which hands the same object to each call.
    info = group.links.get_info(name)
    if info.type == h5l.TYPE_HARD:
        return Link(name, info.type, info.cset, address=address_of(group, name))
    if info.type in (h5l.TYPE_SOFT, h5l.TYPE_EXTERNAL):
        return Link(name, info.type, info.cset, value=group.links.get_val(name))
    raise InputError(f"the link {path_text(name)!r} is of a kind that only its maker knows")


def join(group: bytes, name: bytes) -> bytes:
    return group.rstrip(b"/") + b"/" + name


def walk(file: h5f.FileID) -> dict[int, Object]:
    """All objects by address, groups before what they hold, breadth first."""
    root = Object(address_of(file), Kind.GROUP, [b"/"])
    objects = {root.address: root}
    waiting = deque([root])
    while waiting:
        parent = waiting.popleft()
        group = h5g.open(file, parent.path)
        parent.is_scaled = h5a.exists(group, SCALED_VERSION)
        parent.links = [read_link(group, name) for name in list_links(group)]
        for link in parent.links:
            if link.kind != h5l.TYPE_HARD:
                continue
            path = join(parent.path, link.name)
            known = objects.get(link.address)
            if known:
                known.paths.append(path)
                continue
            kind = Kind(h5o.get_info(group, link.name).type)
            child = Object(link.address, kind, [path], in_scaled=parent.is_scaled)
            objects[link.address] = child
            if kind is Kind.GROUP:
                waiting.append(child)
    return objects
