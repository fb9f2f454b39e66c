"""Arrays that other packages expose by the DLPack protocol

SPDX-License-Identifier: MIT

numpy.from_dlpack refuses bfloat16 and FP8, which are what we are here for.  The
capsule's layout is fixed by the DLPack specification, version 0.8 and later.
"""
from __future__ import annotations

import ctypes
from typing import Any

import numpy

from ._formats import FORMATS, format_info


class _Tensor(ctypes.Structure):
    """DLTensor of dlpack.h, which a capsule's DLManagedTensor begins with."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("type_code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


# DLDeviceType: memory that the CPU can read.
_CPU, _CUDA_HOST = 1, 3

# DLDataTypeCode and bits: a numpy dtype, or one of our formats.
_DTYPES = {
    (0, 8): "i1", (0, 16): "i2", (0, 32): "i4", (0, 64): "i8",
    (1, 8): "u1", (1, 16): "u2", (1, 32): "u4", (1, 64): "u8",
    (2, 16): "f2", (2, 32): "f4", (2, 64): "f8",
    (4, 16): "bf16",
    (10, 8): "e4m3", (12, 8): "e5m2",
    (15, 6): "e2m3", (16, 6): "e3m2", (17, 4): "e2m1",
}

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class _Memory:
    """The memory of a capsule, which is freed with the last array that uses it."""

    def __init__(self, capsule: Any, interface: dict[str, Any]) -> None:
        self.capsule = capsule
        self.__array_interface__ = interface


def import_array(x: Any, argument: str) -> tuple[numpy.ndarray, str | None]:
    """x as an array on the same memory, and its format where that is none of numpy's dtypes.

    TypeError if it is on another device, or of a type that has no place here.
    """
    device = x.__dlpack_device__()
    if device[0] not in (_CPU, _CUDA_HOST):
        raise TypeError(f"{argument} is on the device {tuple(map(int, device))}, not in the CPU's "
                        "memory; copy it there first")
    capsule = x.__dlpack__()
    tensor = _Tensor.from_address(_get_pointer(capsule, b"dltensor"))
    name = _DTYPES.get((tensor.type_code, tensor.bits))
    # FP6 and FP4 are packed there where a byte has several lanes.
    if name is None or tensor.lanes != 1:
        raise TypeError(f"{argument} has the DLPack type (code {tensor.type_code}, {tensor.bits} "
                        f"bits, {tensor.lanes} lanes), which is none of the formats'")
    format = name if name in FORMATS else None
    dtype = format_info(name).storage if format else numpy.dtype(name)
    shape = tuple(tensor.shape[:tensor.ndim])
    interface = {
        "version": 3,
        "shape": shape,
        "typestr": dtype.str,
        "data": ((tensor.data or 0) + tensor.byte_offset, False),
        "strides": (tuple(stride * dtype.itemsize for stride in tensor.strides[:tensor.ndim])
                    if tensor.strides else None),
    }
    if 0 in shape:
        return numpy.empty(shape, dtype), format
    return numpy.asarray(_Memory(capsule, interface)), format
