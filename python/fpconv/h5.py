"""fpconv in h5py: FP8 and the other formats as datatypes, and as HDF5's own conversion

SPDX-License-Identifier: MIT

There are two ways to store numbers in a narrow format.  `create_dataset`, `write` and `read`
convert in fpconv and move codes: they work with any h5py.

>>> import h5py, numpy, tempfile
>>> import fpconv.h5
>>> path = tempfile.mkdtemp() + "/weights.h5"
>>> with h5py.File(path, "w") as file:
...     dataset = fpconv.h5.create_dataset(file, "w", numpy.float32([[0.3, -1.0]]), "e4m3")
...     fpconv.h5.read(dataset)
array([[ 0.3125, -1.    ]], dtype=float32)

`register` puts the conversions into the HDF5 library that h5py uses, so that all that h5py
reads and writes goes through fpconv, under a profile (docs/hdf5.md).

>>> with fpconv.h5.registered("ocp"), h5py.File(path, "a") as file:
...     v = file.create_dataset("v", data=numpy.float32([448.0, 0.1]), dtype=fpconv.h5.dtype("e4m3"))
...     v[...]
array([4.4800e+02, 1.0156e-01], dtype=float16)
"""
from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import math
import operator
import types
from collections.abc import Iterator
from typing import Any

# First: the plugin has to find the libhdf5 of h5py in the process.
import h5py
import numpy
from h5py import h5s, h5t
from h5py._objects import phil

from ._arrays import as_destination, as_source, convert, decode, encode
from ._formats import FORMATS, FormatLike, format_info, resolve

#: The profiles' names; docs/hdf5.md says what they mean.
PROFILES: tuple[str, ...] = ("repaired", "identical", "ocp", "ocp_sat")


class RegistrationError(RuntimeError):
    """The converters could not be registered with the HDF5 library that h5py uses."""


# ---------------------------------------------------------------------------
# Registration
# ---------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class PairReport:
    """What a registration found about one ordered pair of datatypes."""

    src: str
    dst: str
    #: "<" or ">"; "|" for hif8, which has no byte order
    src_order: str
    dst_order: str
    #: Converted by fpconv; else left to HDF5, for the reason given.
    registered: bool
    reason: str
    #: Values that went through HDF5's conversion and ours, and how many gave other bits.
    probes: int
    differed: int
    #: Bugs of HDF5 that the probes met: "lost carry", "sticky carry".
    bugs: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Report:
    """What a registration found and did."""

    profile: str
    #: Of the HDF5 library that h5py and fpconv use: major, minor, release.
    library_version: tuple[int, int, int]
    pairs: tuple[PairReport, ...]

    @property
    def registered_count(self) -> int:
        return sum(pair.registered for pair in self.pairs)


@functools.cache
def _plugin() -> types.ModuleType:
    try:
        return importlib.import_module("._plugin", __package__)
    except ImportError as error:
        raise RegistrationError(
            f"fpconv's plugin for HDF5 cannot be loaded: {error}; it was built without HDF5, or "
            "the libhdf5 that it was built with is not installed") from error


def _check(status: int) -> None:
    if status < 0:
        plugin = _plugin()
        message = plugin.ffi.string(plugin.lib.fpconv_h5_last_error()).decode()
        raise RegistrationError(
            f"cannot register with HDF5: {message}. This needs an h5py that uses the system's "
            "libhdf5: Debian's python3-h5py, or pip install --no-binary=h5py h5py. "
            "fpconv.h5.read and write work without" if "private copy" in message else
            f"cannot register with HDF5: {message}")


def _make_report(plugin: types.ModuleType, c_report: Any) -> Report:
    lib = plugin.lib
    orders = {lib.H5T_ORDER_LE: "<", lib.H5T_ORDER_BE: ">", lib.H5T_ORDER_NONE: "|"}
    bugs = {lib.FPCONV_H5_BUG_LOST_CARRY: "lost carry",
            lib.FPCONV_H5_BUG_STICKY_CARRY: "sticky carry"}
    pairs = c_report.pairs[0:c_report.pair_count]
    major, minor, release = c_report.library_version
    return Report(
        PROFILES[c_report.profile], (major, minor, release),
        tuple(PairReport(
            FORMATS[pair.src], FORMATS[pair.dst], orders[pair.src_order], orders[pair.dst_order],
            bool(pair.registered),
            plugin.ffi.string(lib.fpconv_h5_reason_text(pair.reason)).decode(), pair.probes,
            pair.differed, tuple(name for bit, name in bugs.items() if pair.bugs & bit))
            for pair in pairs))


_last_report: Report | None = None
_current_profile: str | None = None


def register(profile: str = "repaired") -> None:
    """From here on HDF5 converts through fpconv, in all that h5py reads and writes.

    profile: of `PROFILES`: "repaired", what HDF5 means to return; "identical", what it does
        return; "ocp" and "ocp_sat", the formats as specified.  In place of one registered before.

    Register before the first file is opened: HDF5 keeps conversions of array datatypes that it
    has looked up.  `report` says what was found.

    ValueError: no such profile.  RegistrationError: h5py has a libhdf5 of its own, as the
    packages of pip do, or another one than fpconv was built with; the message says which.
    """
    global _last_report, _current_profile
    if profile not in PROFILES:
        raise ValueError(f"no profile {profile!r}; there are {', '.join(PROFILES)}")
    with phil:  # h5py's lock: HDF5 is not entered twice
        plugin = _plugin()
        c_report = plugin.ffi.new("fpconv_h5_report *")
        _check(plugin.lib.fpconv_h5_register_profile(PROFILES.index(profile), c_report))
        _last_report = _make_report(plugin, c_report)
        _current_profile = profile


def unregister() -> None:
    """Gives the conversions back to HDF5; fine to repeat."""
    global _current_profile
    with phil:
        if _current_profile is not None:
            _check(_plugin().lib.fpconv_h5_unregister())
        _current_profile = None


@contextlib.contextmanager
def registered(profile: str = "repaired") -> Iterator[Report]:
    """`register` for the length of a with statement; afterwards what was before it.

    >>> with registered("ocp") as report:
    ...     report.profile
    'ocp'
    """
    with phil:
        before = _current_profile
        register(profile)
        found = _last_report
    assert found is not None
    try:
        yield found
    finally:
        if before is None:
            unregister()
        else:
            register(before)


def report() -> Report | None:
    """What the last `register` found and did; None if there was none."""
    return _last_report


# ---------------------------------------------------------------------------
# Datatypes
# ---------------------------------------------------------------------------

# FPCONV_H5_HIF8_TAG
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


class FormatDatatype(h5py.Datatype):
    """The HDF5 datatype of a format, for the `dtype` argument of h5py's create_dataset."""

    @property
    def dtype(self) -> numpy.dtype:
        """float64, so that h5py leaves the numbers that it is given to HDF5.

        h5py takes a type that fits in a float16 for one, and converts numbers to float16 itself
        before HDF5 rounds them a second time.
        """
        return numpy.dtype(numpy.float64)


def dtype(format: FormatLike) -> FormatDatatype:
    """The HDF5 datatype of a format, for the `dtype` argument of h5py's create_dataset.

    HDF5's predefined one where it has one (2.0), else one of equal structure; in the machine's
    byte order.  hif8 is an opaque type of one byte.

    To write to such a dataset give h5py arrays: what it makes of lists is a float16 array, which
    is rounded twice.  h5py reads it as float16 or float32, which hold every value (but hif8 as
    one-byte void elements).

    >>> format_of(dtype("bf16"))
    'bf16'
    """
    return FormatDatatype(_type(resolve(format, "format")[0]))


def format_of(x: h5py.Dataset | h5py.Datatype | h5t.TypeID | Any) -> str | None:
    """The format of a dataset, or of a type; None if it is none of fpconv's.

    x: an h5py Dataset, Datatype, or low-level TypeID, DatasetID or AttrID.

    Types are compared by structure, in either byte order: whoever wrote the file.
    """
    kind = x.id if isinstance(x, h5py.HLObject) else x
    if not isinstance(kind, h5t.TypeID):
        if not hasattr(kind, "get_type"):
            raise TypeError(f"x is a {type(x).__name__}, neither a dataset nor a datatype")
        kind = kind.get_type()
    if isinstance(kind, h5t.TypeOpaqueID):
        return "hif8" if kind.get_size() == 1 and kind.get_tag() == _HIF8_TAG else None
    if not isinstance(kind, h5t.TypeFloatID) or kind.get_order() not in (h5t.ORDER_LE,
                                                                         h5t.ORDER_BE):
        return None
    for format in FORMATS:
        if format == "hif8" or format_info(format).storage.itemsize != kind.get_size():
            continue
        ours = _type(format)
        ours.set_order(kind.get_order())
        if kind.equal(ours):
            return format
    return None


# ---------------------------------------------------------------------------
# Reading and writing codes
# ---------------------------------------------------------------------------


def _format_and_codes(dataset: h5py.Dataset) -> tuple[str, numpy.dtype]:
    """The format of a dataset, and the dtype of its elements as they lie in the file."""
    format = format_of(dataset)
    if format is None:
        raise TypeError(f"the dataset {dataset.name!r} has the datatype {dataset.dtype}, which is "
                        "none of the formats'")
    kind = dataset.id.get_type()
    is_big = isinstance(kind, h5t.TypeFloatID) and kind.get_order() == h5t.ORDER_BE
    return format, format_info(format).storage.newbyteorder(">" if is_big else "<")


def _select(dataset: h5py.Dataset, selection: Any) -> tuple[h5s.SpaceID, tuple[int, ...]]:
    """A dataspace with the selection of integers and slices, and the shape of what it holds."""
    if dataset.shape is None:
        raise ValueError(f"the dataset {dataset.name!r} has no dataspace to select from")
    space = dataset.id.get_space()
    parts = selection if isinstance(selection, tuple) else (selection,)
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        missing = len(dataset.shape) - len(parts) + 1
        parts = (*parts[:at], *[slice(None)] * missing, *parts[at + 1:])
    if len(parts) > len(dataset.shape):
        raise IndexError(f"{len(parts)} indices into {len(dataset.shape)} axes")
    parts = (*parts, *[slice(None)] * (len(dataset.shape) - len(parts)))
    start, count, step, shape = [], [], [], []
    for part, length in zip(parts, dataset.shape):
        if isinstance(part, slice):
            first, stop, stride = part.indices(length)
            if stride < 1:
                raise IndexError(f"a step of {stride}; HDF5 goes forwards")
            n = len(range(first, stop, stride))
            shape.append(n)
        else:
            first, stride, n = operator.index(part), 1, 1
            if not -length <= first < length:
                raise IndexError(f"index {first} into an axis of {length}")
            first %= length
        start.append(first)
        count.append(n)
        step.append(stride)
    if 0 in count:
        space.select_none()
    elif dataset.shape:
        space.select_hyperslab(tuple(start), tuple(count), tuple(step))
    return space, tuple(shape)


def _memory_space(shape: tuple[int, ...]) -> h5s.SpaceID:
    return h5s.create_simple(shape) if shape else h5s.create(h5s.SCALAR)


def create_dataset(parent: h5py.Group, name: str | None, x: Any, format: FormatLike, *,
                   policy: str = "ocp", **options: Any) -> h5py.Dataset:
    """Stores numbers in a format: a new dataset with the shape and the nearest codes of x.

    parent: a group or file, open for writing.
    x: numbers, as for `fpconv.encode`.
    format: a name of `fpconv.FORMATS`, or a dtype.
    policy: of `fpconv.POLICIES`.
    options: h5py's, for the dataset: chunks, compression, ...

    Nothing need be registered.  Errors as for `fpconv.encode`, and those of h5py.
    """
    name_of_format = resolve(format, "format")[0]
    codes = encode(x, name_of_format, policy=policy)
    dataset = parent.create_dataset(name, codes.shape, dtype(name_of_format), **options)
    write(dataset, codes, src=name_of_format, policy=policy)
    return dataset


def write(dataset: h5py.Dataset, x: Any, selection: Any = (), *, src: FormatLike | None = None,
          policy: str = "ocp") -> None:
    """Converts numbers to the format of a dataset, and writes the codes.

    x: numbers, or codes of the format `src`, as for `fpconv.convert`: of the selection's shape.
    selection: integers and slices, as between brackets: numpy.s_[0:10, 3].

    Nothing need be registered.  TypeError: the dataset has no format of fpconv's, or another
    error of `fpconv.convert`.  ValueError: x has another shape.  IndexError: no such selection.
    """
    format, file_dtype = _format_and_codes(dataset)
    space, shape = _select(dataset, selection)
    source_format = None if src is None else resolve(src, "src")[0]
    source, source_format = as_source(x, source_format, "x")
    if source.shape != shape:
        raise ValueError(f"x has the shape {source.shape}, the selection {shape}")
    if source_format == format:
        codes = source
    else:
        codes = convert(source, format, source_format, policy=policy)
    if math.prod(shape):
        codes = numpy.ascontiguousarray(codes, file_dtype)
        dataset.id.write(_memory_space(shape), space, codes, dataset.id.get_type())


def read(dataset: h5py.Dataset, dtype: FormatLike = numpy.float32, selection: Any = (), *,
         policy: str = "ocp", out: numpy.ndarray | None = None) -> numpy.ndarray:
    """The numbers of a dataset in one of the formats.

    dtype: of the result; the dataset's own format gives its codes as they are stored.
    selection: integers and slices, as between brackets: numpy.s_[0:10, 3].
    policy: of `fpconv.POLICIES`; with "hdf5" the all-ones exponent means Inf and NaN.
    out: receives the numbers, as in `fpconv.decode`.

    Nothing need be registered.  TypeError: the dataset has no format of fpconv's.  IndexError:
    no such selection.
    """
    format, file_dtype = _format_and_codes(dataset)
    space, shape = _select(dataset, selection)
    result_format, result_dtype = resolve(dtype, "dtype")
    codes = numpy.empty(shape, file_dtype)
    if codes.size:
        dataset.id.read(_memory_space(shape), space, codes, dataset.id.get_type())
    if result_format != format:
        return decode(codes, format, dtype, policy=policy, out=out)
    codes = codes.astype(file_dtype.newbyteorder("="), copy=False)
    if out is None:
        return codes.view(result_dtype.newbyteorder("=")).astype(result_dtype, copy=False)
    as_destination(out, format, shape)[...] = codes
    return out
