"""compare_ml_dtypes.py - scaled conversions against ml_dtypes and numpy

SPDX-License-Identifier: MIT

usage: compare_ml_dtypes.py LIBFPCONV [WEIGHTS.h5]

Quantizes random matrices, and every float dataset of WEIGHTS.h5 if there is such a
file, through ctypes.  Scales are worked out in numpy.  A quotient in float64 is on
the same side of every element's midpoints as the exact one (24 by 28 bits), and
a cast from it by ml_dtypes gives the code; products are exact in float64.
"""
import ctypes
import sys

import h5py
import ml_dtypes
import numpy as np

F32, F16, BF16 = 1, 2, 3
ELEMENTS = {  # format's number, ml_dtypes' type, exponent of the largest, the largest
    "e5m2": (4, ml_dtypes.float8_e5m2, 15, 57344.0),
    "e4m3": (5, ml_dtypes.float8_e4m3fn, 8, 448.0),
    "e3m2": (6, ml_dtypes.float6_e3m2fn, 4, 28.0),
    "e2m3": (7, ml_dtypes.float6_e2m3fn, 2, 7.5),
    "e2m1": (8, ml_dtypes.float4_e2m1fn, 2, 6.0),
}
MX, NVFP4, PER_TENSOR, PER_ROW, PER_COLUMN = range(5)
FLOOR, CEIL, AMAX = range(3)


class Scheme(ctypes.Structure):
    _fields_ = [
        ("scaling", ctypes.c_int),
        ("element", ctypes.c_int),
        ("rule", ctypes.c_int),
        ("tensor_scale", ctypes.c_float),
        ("dot_length", ctypes.c_size_t),
    ]


library, network = ctypes.CDLL(sys.argv[1]), sys.argv[2]
size, pointer = ctypes.c_size_t, ctypes.c_void_p
library.fpconv_quantize.argtypes = [
    ctypes.POINTER(Scheme), size, size, pointer, size, pointer, ctypes.c_int, pointer, size]
library.fpconv_dequantize.argtypes = [
    ctypes.POINTER(Scheme), size, size, ctypes.c_int, pointer, size, pointer, size, pointer]


def cast(values, dtype):
    """ml_dtypes rounds float64 to float32 first, and then again: hence to odd the
    first time, cut with the last bit set where something was cut."""
    single = values.astype(np.float32)
    bits = single.view(np.uint32)
    bits = bits - (np.abs(single.astype(np.float64)) > np.abs(values))
    bits = bits.astype(np.uint32) | (single.astype(np.float64) != values)
    return bits.astype(np.uint32).view(np.float32).astype(dtype)


def unpack(packed, width, columns):
    if width == 8:
        return packed
    bits = np.unpackbits(packed, axis=-1, bitorder="little")[..., : width * columns]
    return (bits.reshape(-1, columns, width) @ (1 << np.arange(width))).astype(np.uint8)


def run(scheme, width, scale_type, scale_count, x):
    """Codes, scales and the dequantized matrix."""
    rows, columns = x.shape
    stride = (columns * width + 7) // 8
    packed = np.zeros((rows, stride), np.uint8)
    scales = np.zeros(scale_count, scale_type)
    back = np.zeros_like(x)
    status = library.fpconv_quantize(
        scheme, rows, columns, packed.ctypes.data, stride, scales.ctypes.data, F32, x.ctypes.data,
        x.strides[0])
    assert status == 0, status
    status = library.fpconv_dequantize(
        scheme, rows, columns, F32, back.ctypes.data, back.strides[0], packed.ctypes.data, stride,
        scales.ctypes.data)
    assert status == 0, status
    return unpack(packed, width, columns), scales, back


def check(name, x, result, scale, element):
    """scale: float64, of the shape of x"""
    codes, _, back = result
    _, dtype, _, largest = ELEMENTS[element]
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.where(scale == 0, np.copysign(0.0, x), x.astype(np.float64) / scale)
    elements = cast(np.clip(quotient, -largest, largest), dtype)
    want = elements.view(np.uint8)
    assert np.array_equal(codes, want), (name, element, np.argwhere(codes != want)[:3])
    product = (elements.astype(np.float64) * scale).astype(np.float32)
    assert np.array_equal(back.view(np.uint32), product.view(np.uint32)), (name, element)


def spread(scales, block, columns):
    return np.repeat(scales, block, axis=-1)[..., :columns]


def amax_of_blocks(x, block):
    padded = np.pad(np.abs(x).astype(np.float64), ((0, 0), (0, -x.shape[1] % block)))
    return padded.reshape(x.shape[0], -1, block).max(axis=-1)


def check_mx(name, x, element, rule):
    number, dtype, e_max, largest = ELEMENTS[element]
    width = {"e5m2": 8, "e4m3": 8, "e3m2": 6, "e2m3": 6, "e2m1": 4}[element]
    amax = amax_of_blocks(x, 32)
    fraction, exponent = np.frexp(amax)  # 0.5 <= fraction < 1
    if rule == FLOOR:
        e = exponent - 1 - e_max
    else:
        largest_fraction, largest_exponent = np.frexp(largest)
        e = exponent - largest_exponent + (fraction > largest_fraction)
    want = np.where(amax == 0, 0, np.clip(e, -127, 127) + 127).astype(np.uint8)
    result = run(Scheme(MX, number, rule, 0, 0), width, np.uint8, want.size, x)
    assert np.array_equal(result[1], want.reshape(-1)), (name, element, "scales")
    scale = want.view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    check(name, x, result, spread(scale, 32, x.shape[1]), element)


def check_nvfp4(name, x):
    amax = np.abs(x).max().astype(np.float64)
    tensor_scale = np.float32(amax / (6 * 448)) if amax else np.float32(1)
    unit = 6 * np.float64(tensor_scale)
    quotient = np.minimum(amax_of_blocks(x, 16) / unit, 448.0)
    want = cast(quotient, ml_dtypes.float8_e4m3fn)
    scheme = Scheme(NVFP4, ELEMENTS["e2m1"][0], AMAX, tensor_scale, 0)
    result = run(scheme, 4, np.uint8, want.size, x)
    assert np.array_equal(result[1], want.view(np.uint8).reshape(-1)), (name, "nvfp4 scales")
    scale = want.astype(np.float64) * np.float64(tensor_scale)
    check(name, x, result, spread(scale, 16, x.shape[1]), "e2m1")


def check_f32_scale(name, x, scaling, element):
    number, _, _, largest = ELEMENTS[element]
    magnitude = np.abs(x).astype(np.float64)
    axis = {PER_TENSOR: None, PER_ROW: 1, PER_COLUMN: 0}[scaling]
    amax = magnitude.max(axis=axis, keepdims=True)
    want = np.maximum((amax / largest).astype(np.float32), np.float32(2.0**-126))
    want = np.where(amax == 0, np.float32(1), want)
    result = run(Scheme(scaling, number, AMAX, 0, 0), 8, np.float32, want.size, x)
    assert np.array_equal(result[1], want.reshape(-1)), (name, element, "scales")
    check(name, x, result, np.broadcast_to(want.astype(np.float64), x.shape), element)


def check_all(name, x):
    x = np.ascontiguousarray(x, np.float32)
    for element in ELEMENTS:
        check_mx(name, x, element, FLOOR)
        check_mx(name, x, element, CEIL)
    check_nvfp4(name, x)
    for element in ("e5m2", "e4m3"):
        for scaling in (PER_TENSOR, PER_ROW, PER_COLUMN):
            check_f32_scale(name, x, scaling, element)


def main():
    random = np.random.default_rng(1)
    checked = 0
    for spread_bits in (1, 8, 30, 100):
        for shape in ((1, 1), (3, 45), (17, 128), (64, 1040)):
            x = random.standard_normal(shape) * np.exp2(random.integers(-spread_bits, 8, shape))
            x[random.random(shape) < 0.05] = 0
            check_all(f"random {spread_bits} {shape}", x)
            checked += x.size
    if network:
        with h5py.File(network, "r") as file:

            def visit(name, item):
                nonlocal checked
                if isinstance(item, h5py.Dataset) and item.dtype.kind == "f" and item.size:
                    x = item[...].reshape(item.shape[0] if item.ndim > 1 else 1, -1)
                    check_all(name, x)
                    checked += x.size

            file.visititems(visit)
    print(checked, "values in 17 schemes agree with ml_dtypes", ml_dtypes.__version__)


main()
