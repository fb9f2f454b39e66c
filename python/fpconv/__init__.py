"""Exact and fast conversion between floating-point formats, for numpy arrays

SPDX-License-Identifier: MIT

float64 and float32 to and from float16, bfloat16, FP8, FP6, FP4 and HiFloat8, with
and without scales.  A result depends on the input value and a named policy alone.

>>> import numpy, fpconv
>>> codes = fpconv.encode(numpy.float32([0.3, -1.0, 1000.0]), "e4m3", policy="ocp_sat")
>>> codes
array([ 42, 184, 126], dtype=uint8)
>>> fpconv.decode(codes, "e4m3")
array([ 3.125e-01, -1.000e+00,  4.480e+02], dtype=float32)

`fpconv.h5` puts the conversions into h5py.
"""
from ._arrays import convert, decode, decode_from_hifloat8, encode, encode_to_hifloat8
from ._formats import FORMATS, POLICIES, FormatInfo, cpu_name, format_info, version
from ._packed import pack, packed_size, unpack
from ._scaled import SCHEMES, Scaled, Scheme, dequantize, quantize, scheme, tensor_scale

__version__ = version()

__all__ = [
    "FORMATS", "POLICIES", "SCHEMES", "FormatInfo", "Scaled", "Scheme", "convert", "cpu_name",
    "decode", "decode_from_hifloat8", "dequantize", "encode", "encode_to_hifloat8",
    "format_info", "pack", "packed_size", "quantize", "scheme", "tensor_scale", "unpack",
]
