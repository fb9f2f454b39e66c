"""fpconv as the datatype conversion of h5py's HDF5

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import contextlib
import ctypes
import functools
import pathlib
from collections.abc import Iterator

# The plugin has to find h5py's libhdf5 loaded.
import h5py
from h5py import h5t

from ._formats import FORMATS, format_index, format_info

#: The profiles' names; `docs/hdf5.md` says what they mean.
PROFILES: tuple[str, ...] = ("repaired", "identical", "ocp", "ocp_sat")


class RegistrationError(RuntimeError):
    """The converters cannot be registered with the HDF5 library that h5py uses."""


@functools.cache
def _plugin() -> ctypes.CDLL:
    path = pathlib.Path(__file__).with_name("_plugin.so")
    try:
        plugin = ctypes.CDLL(str(path))
    except OSError as error:
        raise RegistrationError(f"cannot load fpconv's plugin for HDF5: {error}") from None
    plugin.fpconv_h5_last_error.restype = ctypes.c_char_p
    plugin.fpconv_h5_register_profile.argtypes = [ctypes.c_int, ctypes.c_void_p]
    return plugin


def _check(status: int) -> None:
    if status < 0:
        raise RegistrationError(_plugin().fpconv_h5_last_error().decode())


def register(profile: str = "repaired") -> None:
    """From here on h5py converts through fpconv, under a profile of `PROFILES`."""
    if profile not in PROFILES:
        raise ValueError(f"no profile {profile!r}; there are {', '.join(PROFILES)}")
    _check(_plugin().fpconv_h5_register_profile(PROFILES.index(profile), None))


def unregister() -> None:
    """Gives the conversions back to HDF5; fine to repeat."""
    _check(_plugin().fpconv_h5_unregister())


@contextlib.contextmanager
def registered(profile: str = "repaired") -> Iterator[None]:
    """`register` for the length of a with statement."""
    register(profile)
    try:
        yield
    finally:
        unregister()


_HIF8_TAG = b"fpconv:hif8"


def _type(format: str) -> h5t.TypeID:
    info = format_info(format)
    if format == "hif8":
        kind = h5t.create(h5t.OPAQUE, 1)
        kind.set_tag(_HIF8_TAG)
        return kind
    kind = h5t.NATIVE_DOUBLE.copy()
    kind.set_fields(info.bits - 1, info.fraction_bits, info.exponent_bits, 0, info.fraction_bits)
    kind.set_precision(info.bits)
    kind.set_size(info.storage.itemsize)
    kind.set_ebias(info.bias)
    if info.storage.itemsize == 1:
        kind.set_order(h5t.ORDER_LE)
    return kind


def dtype(format: str) -> h5py.Datatype:
    """The HDF5 datatype of a format, for the `dtype` argument of h5py's create_dataset."""
    return h5py.Datatype(_type(format))


def format_of(x) -> str | None:
    """The format of an h5py dataset, attribute type, Datatype or TypeID; None if it is none of fpconv's.

    Types are compared by structure, in either byte order.
    """
    kind = x if isinstance(x, h5t.TypeID) else x.id
    if isinstance(x, h5py.Dataset):
        kind = kind.get_type()
    for format in FORMATS:
        ours = _type(format)
        if kind.get_class() != ours.get_class() or kind.get_size() != ours.get_size():
            continue
        if ours.get_class() == h5t.OPAQUE:
            if kind.get_tag() == ours.get_tag():
                return format
            continue
        ours.set_order(kind.get_order())
        if kind.equal(ours):
            return format
    return None
