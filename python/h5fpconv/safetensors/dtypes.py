"""The dtypes of safetensors as HDF5 datatypes, and back.

SPDX-License-Identifier: MIT

A tensor's bytes go into the dataset as they are and come out again: nothing is
converted.  The elements of F4 and F6, packed there, have a byte each here, as the
formats e2m1, e2m3 and e3m2 do everywhere in HDF5.  Dtypes for which HDF5 and fpconv
have no number are unsigned bytes, with the dtype in an attribute.
"""
import fpconv
import fpconv.h5
import numpy
from h5py import h5d, h5s, h5t

from h5fpconv.hdf5.attributes import read_text
from h5fpconv.safetensors.file import DTYPES

DTYPE_ATTRIBUTE = b"safetensors_dtype"
COMPLEX = 11  # the class H5T_COMPLEX of HDF5 2, which h5py 3.7 has no name for

#: The formats of fpconv among the dtypes; hif8 is none of them.
FORMATS = {"F64": "f64", "F32": "f32", "F16": "f16", "BF16": "bf16", "F8_E5M2": "e5m2",
           "F8_E4M3": "e4m3", "F6_E3M2": "e3m2", "F6_E2M3": "e2m3", "F4": "e2m1"}
#: The dtypes that are kept as unsigned bytes.
BYTES = ("F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ")

_NUMPY = {"BOOL": "?", "C64": "<c8", "I8": "i1", "U8": "u1", "I16": "<i2", "U16": "<u2",
          "I32": "<i4", "U32": "<u4", "I64": "<i8", "U64": "<u8"}
_DTYPE_OF_FORMAT = {format: dtype for dtype, format in FORMATS.items()}
_DTYPE_OF_NUMPY = {numpy.dtype(name): dtype for dtype, name in _NUMPY.items()}


class NoDtype(ValueError):
    """A datatype that no dtype of safetensors stands for."""


def is_packed(dtype: str) -> bool:
    return DTYPES[dtype] < 8


def element_bytes(dtype: str) -> int:
    """The bytes of an element in HDF5."""
    return max(8, DTYPES[dtype]) // 8


def elements_to_a_byte(dtype: str) -> int:
    """The least number of elements that end at a byte in safetensors."""
    return {4: 2, 6: 4}.get(DTYPES[dtype], 1)


def hdf5_type(dtype: str) -> h5t.TypeID:
    """The datatype by which a dtype's bytes are stored: little-endian, as they are."""
    if dtype in FORMATS:
        kind = fpconv.h5.dtype(FORMATS[dtype]).id.copy()
        kind.set_order(h5t.ORDER_LE)
        return kind
    return h5t.py_create(numpy.dtype("u1" if dtype in BYTES else _NUMPY[dtype]))


def dtype_of(dataset: h5d.DatasetID) -> tuple[str, h5t.TypeID]:
    """A dataset's dtype, and the datatype as which reading it gives the dtype's bytes.

    Raises NoDtype, saying what the dataset holds.
    """
    kind = dataset.get_type()
    if dataset.get_space().get_simple_extent_type() == h5s.NULL:
        raise NoDtype("it has no values, not even an empty array of them")
    marked = read_text(dataset, DTYPE_ATTRIBUTE)
    if marked in BYTES and kind.get_class() == h5t.INTEGER and kind.get_size() == 1:
        return marked, kind
    format = fpconv.h5.format_of(kind)
    if format in _DTYPE_OF_FORMAT:
        dtype = _DTYPE_OF_FORMAT[format]
        return dtype, hdf5_type(dtype)
    if format is None:
        number = _number_type(kind)
        found = _DTYPE_OF_NUMPY.get(number) if number is not None else None
        if found == "BOOL":
            return found, kind
        if found is not None:
            return found, hdf5_type(found)
    raise NoDtype(f"safetensors has no dtype for {_described(kind, format)}")


def _number_type(kind: h5t.TypeID) -> numpy.dtype | None:
    """The numpy dtype, little-endian, of integers, booleans and complex numbers."""
    if kind.get_class() not in (h5t.INTEGER, h5t.ENUM, h5t.COMPOUND, COMPLEX):
        return None
    try:
        found = kind.dtype
    except TypeError:
        return None
    return found.newbyteorder("<") if found.kind in "iubc" and found.metadata is None else None


def _described(kind: h5t.TypeID, format: str | None) -> str:
    if format:
        return f"{format}, which h5fpconv back decodes"
    names = {h5t.INTEGER: "these integers", h5t.FLOAT: "these floating-point numbers",
             h5t.STRING: "strings", h5t.BITFIELD: "bit fields", h5t.OPAQUE: "opaque values",
             h5t.COMPOUND: "compounds", h5t.REFERENCE: "references", h5t.ENUM: "enumerations",
             h5t.VLEN: "sequences of variable length", h5t.ARRAY: "arrays as elements"}
    what = names.get(kind.get_class(), "values of this class")
    return f"{what} of {kind.get_size()} bytes"
