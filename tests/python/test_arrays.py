"""encode, decode, convert: values against exact arithmetic, and every kind of array

SPDX-License-Identifier: MIT
"""
import array
import doctest
import itertools
import math
import threading
import time

import exact
import numpy
import pytest

import fpconv
import fpconv._arrays
import fpconv._formats

STORAGE = {"f64": numpy.float64, "f32": numpy.float32, "f16": numpy.uint16, "bf16": numpy.uint16}
RANDOM = numpy.random.default_rng(20261130)


def storage(name):
    return numpy.dtype(STORAGE.get(name, numpy.uint8))


def numbers(*shape, dtype=numpy.float32):
    return (RANDOM.standard_normal(shape) * 3).astype(dtype)


def want_codes(x, name, policy="ocp"):
    codes = [exact.encode(name, float(v), policy) for v in x.ravel()]
    return numpy.array(codes, storage(name)).reshape(x.shape)


def want_values(codes, name):
    values = [exact.decode(name, int(code)) for code in codes.ravel()]
    return numpy.array(values, numpy.float32).reshape(codes.shape)


# ---------------------------------------------------------------------------
# Formats
# ---------------------------------------------------------------------------


def test_names():
    assert fpconv.FORMATS == ("f64", "f32", "f16", "bf16", "e5m2", "e4m3", "e3m2", "e2m3", "e2m1",
                              "hif8")
    assert fpconv.POLICIES == ("hdf5", "ocp", "ocp_sat")
    assert fpconv.__version__ == "0.1.0"
    assert fpconv.cpu_name() in ("portable", "sse2", "avx2", "avx512", "neon")


# bits, exponent bits, fraction bits, bias, max, smallest normal, smallest subnormal, Inf, NaN
FORMAT_TABLE = {
    "f64": (64, 11, 52, 1023, 1.7976931348623157e308, 2.0**-1022, 5e-324, True, True),
    "f32": (32, 8, 23, 127, 3.4028234663852886e38, 2.0**-126, 2.0**-149, True, True),
    "f16": (16, 5, 10, 15, 65504.0, 2.0**-14, 2.0**-24, True, True),
    "bf16": (16, 8, 7, 127, 255 * 2.0**120, 2.0**-126, 2.0**-133, True, True),
    "e5m2": (8, 5, 2, 15, 57344.0, 2.0**-14, 2.0**-16, True, True),
    "e4m3": (8, 4, 3, 7, 448.0, 2.0**-6, 2.0**-9, False, True),
    "e3m2": (6, 3, 2, 3, 28.0, 2.0**-2, 2.0**-4, False, False),
    "e2m3": (6, 2, 3, 1, 7.5, 1.0, 2.0**-3, False, False),
    "e2m1": (4, 2, 1, 1, 6.0, 1.0, 0.5, False, False),
    "hif8": (8, 4, 3, 0, 32768.0, 2.0**-15, 2.0**-22, True, True),
}


@pytest.mark.parametrize("name", fpconv.FORMATS)
def test_format_info(name):
    info = fpconv.format_info(name)
    assert (info.bits, info.exponent_bits, info.fraction_bits, info.bias, info.max,
            info.smallest_normal, info.smallest_subnormal, info.has_inf,
            info.has_nan) == FORMAT_TABLE[name]
    assert info.name == name and info.storage == storage(name)
    with pytest.raises(AttributeError):
        info.bits = 3


def test_format_info_unknown():
    for wrong in ("e4m4", "", None, 3, ["e4m3"]):
        with pytest.raises(ValueError, match="no format .*; there are f64, f32"):
            fpconv.format_info(wrong)


# ---------------------------------------------------------------------------
# Values
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("policy", exact.POLICIES)
@pytest.mark.parametrize("name", exact.NARROW)
def test_every_code_decodes(name, policy):
    codes = numpy.arange(2 * exact.sign_bit(name)).astype(storage(name))
    want = numpy.array([exact.decode(name, int(code), policy) for code in codes])
    for dtype in (numpy.float32, numpy.float64):
        got = fpconv.decode(codes, name, dtype, policy=policy)
        assert got.dtype == dtype
        numpy.testing.assert_array_equal(got, want)
        numbers = ~numpy.isnan(want)
        assert (numpy.signbit(got) == numpy.signbit(want))[numbers].all()


@pytest.mark.parametrize("policy", exact.POLICIES)
@pytest.mark.parametrize("name", exact.NARROW)
def test_encode_is_exact(name, policy):
    values = exact.interesting_values(name) + list(RANDOM.standard_normal(500) * 10)
    for dtype in (numpy.float64, numpy.float32):
        with numpy.errstate(over="ignore", under="ignore"):
            x = numpy.array(values, dtype)
        got = fpconv.encode(x, name, policy=policy)
        assert got.dtype == storage(name)
        numpy.testing.assert_array_equal(got, want_codes(x, name, policy))


# value, format, codes under hdf5, ocp, ocp_sat: known by hand
KNOWN_VALUES = [
    (0.3, "e4m3", (0x2a, 0x2a, 0x2a)),
    (7.98, "bf16", (0x40ff, 0x40ff, 0x40ff)),
    (7.99, "bf16", (0x4100, 0x4100, 0x4100)),
    (15.7, "e4m3", (0x58, 0x58, 0x58)),
    (0.75, "e2m1", (0x2, 0x2, 0x2)),
    (255.99, "e4m3", (0x77, 0x78, 0x78)),
    (256.0, "e4m3", (0x78, 0x78, 0x78)),
    (464.0, "e4m3", (0x78, 0x7e, 0x7e)),
    (1e300, "e4m3", (0x78, 0x7f, 0x7e)),
    (-math.inf, "e4m3", (0xf8, 0xff, 0xfe)),
    (61440.0, "e5m2", (0x7b, 0x7c, 0x7b)),
    (65520.0, "f16", (0x7bff, 0x7c00, 0x7bff)),
    (-1e9, "e3m2", (0x3c, 0x3f, 0x3f)),
    (3.99, "e2m3", (0x17, 0x18, 0x18)),
    (5.0, "e2m1", (0x6, 0x6, 0x6)),
    (2.5, "e2m1", (0x5, 0x4, 0x4)),
    (-0.0, "e2m1", (0x8, 0x8, 0x8)),
    (-0.0, "hif8", (0x00, 0x00, 0x00)),
    (0.5, "hif8", (0x18, 0x18, 0x18)),
    (2.7180e-05, "hif8", (0x7e, 0x7e, 0x7e)),
    (-1e300, "hif8", (0xee, 0xee, 0xee)),
    # doubles that become a tie when they are rounded to float first
    (1.0625 + 2.0**-40, "e4m3", (0x39, 0x39, 0x39)),
    (1.0625 - 2.0**-40, "e4m3", (0x38, 0x38, 0x38)),
]


@pytest.mark.parametrize("value, name, want", KNOWN_VALUES)
def test_known_values(value, name, want):
    for policy, code in zip(exact.POLICIES, want):
        assert fpconv.encode(numpy.float64([value]), name, policy=policy).tolist() == [code]


# source format, code, format, codes under hdf5, ocp, ocp_sat: NaN, and formats read
KNOWN_CODES = [
    ("f32", 0x7f800001, "f16", (0x7fff, 0x7e00, 0x7e00)),
    ("f32", 0x7f812345, "bf16", (0x7fff, 0x7fc1, 0x7fc1)),
    ("f32", 0xff800001, "e4m3", (0xff, 0xff, 0xff)),
    ("f32", 0xff800001, "hif8", (0x80, 0x80, 0x80)),
    ("f32", 0xffc00000, "e2m1", (0xf, 0x7, 0x7)),
    ("f16", 0x7c01, "f32", (0x7fffffff, 0x7fc02000, 0x7fc02000)),
    ("e4m3", 0x7e, "f32", (0x7fffffff, 0x43e00000, 0x43e00000)),
    ("e4m3", 0x78, "f32", (0x7f800000, 0x43800000, 0x43800000)),
    ("e2m1", 0xf2, "f32", (0x3f800000, 0x3f800000, 0x3f800000)),
    ("e5m2", 0xfc, "f16", (0xfc00, 0xfc00, 0xfbff)),
    ("hif8", 0xef, "f32", (0xff800000, 0xff800000, 0xff800000)),
]


@pytest.mark.parametrize("src, code, dst, want", KNOWN_CODES)
def test_known_codes(src, code, dst, want):
    unsigned = {1: numpy.uint8, 2: numpy.uint16, 4: numpy.uint32}
    x = numpy.array([code], unsigned[storage(src).itemsize]).view(storage(src))
    for policy, result in zip(exact.POLICIES, want):
        got = fpconv.convert(x, dst, src, policy=policy)
        assert got.dtype == storage(dst)
        assert got.view(unsigned[got.itemsize]).tolist() == [result]


@pytest.mark.parametrize("src, dst", list(itertools.permutations(exact.NARROW, 2)))
def test_between_narrow_formats(src, dst):
    codes = numpy.arange(2 * exact.sign_bit(src)).astype(storage(src))
    values = numpy.array([exact.decode(src, int(code)) for code in codes])
    is_number = ~numpy.isnan(values)
    if storage(src).itemsize > 1:
        is_number &= RANDOM.random(len(codes)) < 0.03  # Fractions take their time
    got = fpconv.convert(codes, dst, src)
    numpy.testing.assert_array_equal(got[is_number], want_codes(values[is_number], dst))


def test_wide_formats():
    x = numpy.float64([1 + 2.0**-24, 1 + 3 * 2.0**-24, 1e39, -1e-50, 2.0**-150])
    with numpy.errstate(over="ignore", under="ignore"):
        want = x.astype(numpy.float32)
    for policy in exact.POLICIES:
        got = fpconv.encode(x, "f32", policy=policy)
        assert got.dtype == numpy.float32
        assert got.tobytes() == want.tobytes()
        assert fpconv.convert(want, "f64", policy=policy).tobytes() == want.astype("f8").tobytes()


# ---------------------------------------------------------------------------
# Shapes and strides
# ---------------------------------------------------------------------------

LAYOUTS = {
    "0-d": lambda: numbers(1)[0:1].reshape(()),
    "one": lambda: numbers(1),
    "empty": lambda: numbers(0),
    "empty 3-D": lambda: numbers(4, 0, 3),
    "1-D": lambda: numbers(1000),
    "C": lambda: numbers(7, 5, 11),
    "Fortran": lambda: numpy.asfortranarray(numbers(7, 5, 11)),
    "permuted": lambda: numbers(7, 5, 11).transpose(1, 2, 0),
    "every third": lambda: numbers(9000)[::3],
    "backwards": lambda: numbers(3000)[::-1],
    "all backwards": lambda: numbers(40, 50)[::-1, ::-1],
    "column": lambda: numbers(3000, 3)[:, 1],
    "short rows": lambda: numbers(500, 7)[:, 2:5],
    "long rows": lambda: numbers(5, 4000)[:, 100:3000],
    "long rows with gaps": lambda: numbers(5, 9000)[:, 100:8000:3],
    "transposed long rows": lambda: numbers(5, 4000)[:, 100:3000].T,
    "alternating": lambda: numbers(6, 5, 2000)[::2, :, 1:],
    "repeated": lambda: numpy.broadcast_to(numbers(1, 2000), (4, 2000)),
    "repeated value": lambda: numpy.broadcast_to(numbers(1), (30, 20)),
    "unaligned": lambda: numpy.frombuffer(b"x" + numbers(99).tobytes(), "f4", offset=1),
    "big-endian": lambda: numbers(33, 5).astype(">f4"),
    "big-endian with gaps": lambda: numbers(33, 5).astype(">f8")[::2, ::2],
    "little-endian": lambda: numbers(33, 5).astype("<f8"),
    "read-only": lambda: (x := numbers(8), x.setflags(write=False))[0],
    "subclass": lambda: numbers(4, 4).view(numpy.matrix),
    "record field": lambda: numpy.array([(1, 2.5), (2, -0.3)], [("a", "i1"), ("b", "f4")])["b"],
    "17 axes": lambda: numbers(2**8).reshape([2, 1] * 8 + [1]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["e4m3", "bf16"])
def test_layouts(layout, name):
    x = LAYOUTS[layout]()
    before = x.tobytes()
    want = want_codes(numpy.asarray(x), name)
    got = fpconv.encode(x, name)
    assert type(got) is numpy.ndarray
    assert got.shape == x.shape and got.dtype == storage(name)
    numpy.testing.assert_array_equal(got, want)
    assert x.tobytes() == before

    back = fpconv.decode(got, name)
    assert back.shape == x.shape
    numpy.testing.assert_array_equal(back, want_values(want, name))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_out_with_gaps(layout):
    """An array of each layout into one with gaps, whose bytes between stay what they are."""
    x = LAYOUTS[layout]()
    whole = numpy.full((*x.shape, 3), 0x55, numpy.uint8)
    out = whole[..., 1]
    assert fpconv.encode(x, "e4m3", out=out) is out
    numpy.testing.assert_array_equal(out, want_codes(numpy.asarray(x), "e4m3"))
    assert (whole[..., 0] == 0x55).all() and (whole[..., 2] == 0x55).all()


@pytest.mark.parametrize("layout", ["Fortran", "permuted", "every third", "backwards", "column",
                                    "all backwards", "short rows", "long rows", "alternating",
                                    "long rows with gaps", "transposed long rows", "0-d", "17 axes"])
def test_layouts_of_out(layout):
    """A contiguous array into one of each layout."""
    out = LAYOUTS[layout]().view(numpy.uint32)
    x = fpconv.decode(fpconv.encode(numbers(*out.shape), "bf16"), "bf16")
    fpconv.encode(x, "f32", out=out.view(numpy.float32))
    numpy.testing.assert_array_equal(out.view(numpy.float32), x)
    small = numpy.zeros((*out.shape, 2), numpy.uint8)[..., 0]
    like = numpy.lib.stride_tricks.as_strided(
        numpy.zeros(out.nbytes * 20, numpy.uint8)[out.nbytes * 10:], out.shape, out.strides)
    fpconv.encode(x, "e4m3", out=like)
    fpconv.encode(x, "e4m3", out=small)
    numpy.testing.assert_array_equal(like, want_codes(x, "e4m3"))
    numpy.testing.assert_array_equal(small, like)


def test_result_keeps_the_order_in_memory():
    x = numbers(7, 5, 11)
    assert fpconv.encode(x, "e4m3").flags.c_contiguous
    assert fpconv.encode(numpy.asfortranarray(x), "e4m3").flags.f_contiguous
    permuted = fpconv.encode(x.transpose(1, 2, 0), "e4m3")
    assert permuted.transpose(2, 0, 1).flags.c_contiguous


@pytest.mark.parametrize("order", ["C", "F"])
def test_contiguous_arrays_are_not_copied(order, monkeypatch):
    """Neither is the input, nor an out, nor a strided array of long rows."""
    def refuse(*_):
        raise AssertionError("a copy was made")
    monkeypatch.setattr(numpy, "ascontiguousarray", refuse)
    x = numpy.array(numbers(40, 50), order=order)
    out = numpy.empty((40, 50), numpy.uint8, order=order)
    fpconv.encode(x, "e4m3", out=out)
    numpy.testing.assert_array_equal(out, want_codes(x, "e4m3"))
    wide = numbers(4, 6000)[:, ::2]
    numpy.testing.assert_array_equal(fpconv.encode(wide, "e4m3"), want_codes(wide, "e4m3"))
    with pytest.raises(AssertionError, match="a copy was made"):
        fpconv.encode(numbers(100, 8)[:, :3], "e4m3")


@pytest.mark.parametrize("dst", [">u2", "<u2"])
@pytest.mark.parametrize("src", [">f4", "<f4", ">f8", "<f8", ">f2", "<f2"])
def test_byte_orders(src, dst):
    x = numbers(50).astype(src)
    out = numpy.zeros(50, dst)
    assert fpconv.encode(x, "bf16", out=out) is out
    numpy.testing.assert_array_equal(out, want_codes(x.astype("f8"), "bf16"))
    numpy.testing.assert_array_equal(fpconv.decode(out, "bf16"), fpconv.decode(out.astype("=u2"), "bf16"))


def test_result_in_a_foreign_byte_order():
    for dtype in (">f4", "<f4", ">f8"):
        got = fpconv.decode(numpy.uint8([0x2a, 0xb8]), "e4m3", dtype)
        assert got.dtype == numpy.dtype(dtype)
        assert got.tolist() == [0.3125, -1.0]


# ---------------------------------------------------------------------------
# What is accepted
# ---------------------------------------------------------------------------


def test_pythons_numbers():
    assert fpconv.encode(0.3, "e4m3") == 0x2a
    assert fpconv.encode(0.3, "e4m3").shape == ()
    assert fpconv.encode([1, 2], "e4m3").tolist() == [0x38, 0x40]
    assert fpconv.encode(((1, 2.5), (-3, 4)), "e4m3").tolist() == [[0x38, 0x42], [0xc4, 0x48]]
    assert fpconv.encode([], "e4m3").shape == (0,)
    # as doubles, not as floats
    assert fpconv.encode([1.0625 + 2.0**-40], "e4m3").tolist() == [0x39]
    assert fpconv.decode([0x2a, 0x7e], "e4m3").tolist() == [0.3125, 448.0]
    assert fpconv.decode(0x2a, "e4m3") == 0.3125
    assert fpconv.decode([], "e4m3").shape == (0,)
    assert fpconv.decode([0x3f80], "bf16").tolist() == [1.0]
    for wrong in ([256], [-1], 1000):
        with pytest.raises(ValueError, match="codes has codes outside of 0 to 255|x has codes outside"):
            fpconv.decode(wrong, "e4m3")


def test_numpy_scalars():
    assert fpconv.encode(numpy.float32(0.3), "e4m3") == 0x2a
    assert fpconv.decode(numpy.uint8(0x2a), "e4m3") == 0.3125


def test_buffers():
    assert fpconv.encode(memoryview(numbers(3)), "e4m3").shape == (3,)
    floats = array.array("f", [0.3, -1.0])
    assert fpconv.encode(floats, "e4m3").tolist() == [0x2a, 0xb8]
    assert fpconv.encode(memoryview(floats)[::-1], "e4m3").tolist() == [0xb8, 0x2a]
    for codes in (b"\x2a\x7e", bytearray(b"\x2a\x7e"), memoryview(b"\x2a\x7e")):
        assert fpconv.decode(codes, "e4m3").tolist() == [0.3125, 448.0]


def test_array_interface():
    class Container:
        def __array__(self, dtype=None, copy=None):
            return numpy.float32([0.3, -1.0])
    assert fpconv.encode(Container(), "e4m3").tolist() == [0x2a, 0xb8]


class Exporter:
    """Any package's array: numpy's own export behind a class of its own."""

    def __init__(self, x, device=None):
        self.x = x
        self.device = device

    def __dlpack__(self, **_):
        return self.x.__dlpack__()

    def __dlpack_device__(self):
        return self.device or self.x.__dlpack_device__()


def test_dlpack():
    for x in (numbers(6, 5), numbers(6, 5).T, numbers(60)[::3], numbers(4, 0), numbers(5)[0:1].reshape(()),
              numbers(30, dtype=numpy.float64), numbers(30, dtype=numpy.float16)):
        got = fpconv.encode(Exporter(x), "e4m3")
        assert got.shape == x.shape
        numpy.testing.assert_array_equal(got, want_codes(x.astype("f8"), "e4m3"))
    codes = numpy.uint8([0x2a, 0x7e])
    assert fpconv.decode(Exporter(codes), "e4m3").tolist() == [0.3125, 448.0]
    assert fpconv.decode(Exporter(codes.view("i1")), "e4m3").tolist() == [0.3125, 448.0]


def test_dlpack_memory_lives_long_enough():
    source, format = fpconv._arrays.as_source(Exporter(numpy.full(1000, 0.3, "f4")), None, "x")
    junk = [numpy.full(1000, i, "f4") for i in range(50)]
    assert format == "f32" and (source == numpy.float32(0.3)).all() and len(junk) == 50


def test_dlpack_refused():
    with pytest.raises(TypeError, match=r"x is on the device \(2, 0\), not in the CPU's memory"):
        fpconv.encode(Exporter(numbers(3), device=(2, 0)), "e4m3")
    with pytest.raises(TypeError, match=r"DLPack type \(code 5, 64 bits, 1 lanes\)"):
        fpconv.encode(Exporter(numpy.zeros(3, "c8")), "e4m3")


def test_codes_may_be_signed():
    codes = numpy.uint8([0x2a, 0xfe])
    assert fpconv.decode(codes.view("i1"), "e4m3").tolist() == [0.3125, -448.0]
    assert fpconv.decode(numpy.uint16([0xbf80]).view("i2"), "bf16").tolist() == [-1.0]
    out = numpy.zeros(1, "i2")
    fpconv.encode([-1.0], "bf16", out=out)
    assert out.tolist() == [0xbf80 - 0x10000]


def test_float16_is_f16():
    x = numbers(20, dtype=numpy.float16)
    numpy.testing.assert_array_equal(fpconv.encode(x, "e4m3"), want_codes(x.astype("f8"), "e4m3"))
    got = fpconv.encode(numpy.float64([1.0009765, 1e6]), numpy.float16)
    assert got.dtype == numpy.float16 and got.tolist() == [1.0009765625, math.inf]
    assert fpconv.decode(x, "f16").tolist() == fpconv.decode(x).tolist() == x.astype("f4").tolist()
    assert fpconv.encode([1.0], "f16").dtype == numpy.uint16
    out = numpy.zeros(1, "f2")
    assert fpconv.encode([1.5], "f16", out=out).tolist() == [1.5]


# ---------------------------------------------------------------------------
# out
# ---------------------------------------------------------------------------


def test_in_place():
    buffer = numbers(1000)
    want = want_codes(buffer, "e4m3")
    codes = buffer.view(numpy.uint8)[:1000]
    assert fpconv.encode(buffer, "e4m3", out=codes) is codes
    numpy.testing.assert_array_equal(codes, want)
    values = fpconv.decode(codes, "e4m3")
    assert fpconv.decode(codes, "e4m3", out=buffer) is buffer
    numpy.testing.assert_array_equal(buffer, values)


@pytest.mark.parametrize("shift", [1, 3, 4, 100, 400])
def test_out_that_overlaps(shift):
    memory = numpy.zeros(8000, numpy.uint8)
    x = memory[:4000].view("f4")
    x[:] = numbers(1000)
    want = want_codes(x, "e4m3")
    for out in (memory[shift:shift + 1000], memory[shift:shift + 2000:2],
                memory[shift + 999:shift - 1:-1]):
        kept = x.copy()
        fpconv.encode(x, "e4m3", out=out)
        numpy.testing.assert_array_equal(out, want)
        x[:] = kept
    square = numbers(50, 50)
    want = square.T.copy()
    assert fpconv.convert(square.T, "f32", out=square) is square
    numpy.testing.assert_array_equal(square, want)


def test_out_is_checked():
    x = numbers(4, 5)
    good = numpy.empty((4, 5), numpy.uint8)
    read_only = good.copy()
    read_only.setflags(write=False)
    repeated = numpy.lib.stride_tricks.as_strided(good, (4, 5), (0, 1))
    overlapping = numpy.lib.stride_tricks.as_strided(numpy.zeros(99, "u2"), (4, 5), (2, 2))
    cases = [
        (good[:3], ValueError, r"out has the shape \(3, 5\), the result \(4, 5\)"),
        (good.ravel(), ValueError, r"out has the shape \(20,\)"),
        (good.astype("u2"), TypeError, "out has the dtype uint16; elements of e4m3 have uint8"),
        (good.astype("f4"), TypeError, "out has the dtype float32"),
        (read_only, ValueError, "out is read-only"),
        (repeated, ValueError, "elements of out share memory"),
        ([0] * 20, TypeError, "out is a list, not a numpy.ndarray"),
        (numpy.ma.masked_array(good), TypeError, "out is a MaskedArray"),
    ]
    for out, error, message in cases:
        with pytest.raises(error, match=message):
            fpconv.encode(x, "e4m3", out=out)
    with pytest.raises(ValueError, match="elements of out share memory"):
        fpconv.encode(x, "bf16", out=overlapping)
    with pytest.raises(TypeError, match="out has the dtype uint8; elements of f32 have float32"):
        fpconv.decode(good, "e4m3", out=good)


# ---------------------------------------------------------------------------
# Errors
# ---------------------------------------------------------------------------


def test_errors():
    x = numbers(3)
    codes = numpy.zeros(3, numpy.uint8)
    cases = [
        (lambda: fpconv.encode(x, "e4m4"), ValueError, "dst is 'e4m4'; it has to be one of f64, f32"),
        (lambda: fpconv.encode(x, None), TypeError, "dst is None"),
        (lambda: fpconv.encode(x, numpy.int8), TypeError, "dst is <class 'numpy.int8'>"),
        (lambda: fpconv.encode(x, "e4m3", policy="nearest"), ValueError,
         "no policy 'nearest'; there are hdf5, ocp, ocp_sat"),
        (lambda: fpconv.encode(x, "e4m3", policy=None), ValueError, "no policy None"),
        (lambda: fpconv.encode(codes, "e4m3"), TypeError, "x has the dtype uint8, .* say of which format"),
        (lambda: fpconv.encode(x.astype("c8"), "e4m3"), TypeError, "x has the dtype complex64"),
        (lambda: fpconv.encode(x.astype("i8"), "e4m3"), TypeError, "x has the dtype int64"),
        (lambda: fpconv.encode(x.astype("O"), "e4m3"), TypeError, "x has the dtype object"),
        (lambda: fpconv.encode(["a"], "e4m3"), TypeError, "x has the dtype <U1"),
        (lambda: fpconv.encode([True], "e4m3"), TypeError, "x has the dtype bool"),
        (lambda: fpconv.encode(x.astype(numpy.longdouble), "e4m3"), TypeError, "x has the dtype"),
        (lambda: fpconv.encode(numpy.ma.masked_array(x, [0, 1, 0]), "e4m3"), TypeError, "masked"),
        (lambda: fpconv.decode(x, "e4m3"), TypeError,
         "x has the dtype float32; elements of e4m3 have uint8"),
        (lambda: fpconv.decode(codes.astype("u2"), "e4m3"), TypeError, "x has the dtype uint16"),
        (lambda: fpconv.decode(codes, "bf16"), TypeError, "elements of bf16 have uint16"),
        (lambda: fpconv.decode(codes), TypeError, "say of which format"),
        (lambda: fpconv.decode(codes, "e4m3", numpy.int32), TypeError, "dst is .*int32"),
        (lambda: fpconv.convert(x.astype("f2"), "e4m3", "bf16"), TypeError,
         "x has the dtype float16; elements of bf16 have uint16"),
        (lambda: fpconv.convert(x, "e4m3", "f64"), TypeError, "elements of f64 have float64"),
    ]
    for call, error, message in cases:
        with pytest.raises(error, match=message):
            call()


# ---------------------------------------------------------------------------
# HiFloat8
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [numpy.float64, numpy.float32, numpy.float16])
def test_hifloat8(dtype):
    x = numbers(3, 40, dtype=dtype)
    codes = fpconv.encode_to_hifloat8(x)
    assert codes.dtype == numpy.uint8 and codes.shape == x.shape
    numpy.testing.assert_array_equal(codes, want_codes(x.astype("f8"), "hif8"))
    back = fpconv.decode_from_hifloat8(codes, dtype)
    assert back.dtype == dtype
    assert back.tolist() == [[exact.decode("hif8", int(c)) for c in row] for row in codes]


def test_hifloat8_checks():
    x = numbers(4, 6)
    codes = fpconv.encode_to_hifloat8(x)
    cases = [
        (lambda: fpconv.encode_to_hifloat8(x.T), ValueError, "x is not contiguous"),
        (lambda: fpconv.encode_to_hifloat8(x[:, ::2]), ValueError, "x is not contiguous"),
        (lambda: fpconv.encode_to_hifloat8(x[:0]), ValueError, "x is empty"),
        (lambda: fpconv.encode_to_hifloat8(codes), TypeError, "x has the dtype uint8"),
        (lambda: fpconv.encode_to_hifloat8(x.astype("i4")), TypeError, "x has the dtype int32"),
        (lambda: fpconv.decode_from_hifloat8(codes.T), ValueError, "codes is not contiguous"),
        (lambda: fpconv.decode_from_hifloat8(codes[:, :0]), ValueError, "codes is empty"),
        (lambda: fpconv.decode_from_hifloat8(x), TypeError, "codes have the dtype float32, not uint8"),
        (lambda: fpconv.decode_from_hifloat8(codes.view("i1")), TypeError, "int8, not uint8"),
        (lambda: fpconv.decode_from_hifloat8(codes, numpy.int32), TypeError, "dtype is"),
        (lambda: fpconv.decode_from_hifloat8(codes, "e4m3"), TypeError, "dtype is 'e4m3'"),
    ]
    for call, error, message in cases:
        with pytest.raises(error, match=message):
            call()


# ---------------------------------------------------------------------------
# Threads and documents
# ---------------------------------------------------------------------------


def test_gil_is_released():
    """Another thread runs while a long conversion does."""
    x = numpy.zeros(40_000_000, numpy.float32)
    out = numpy.empty(x.shape, numpy.uint8)
    ticks, is_done = [], threading.Event()

    def tick():
        while not is_done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    during = 0
    try:
        for _ in range(20):
            start = time.perf_counter()
            fpconv.encode(x, "e4m3", out=out)
            end = time.perf_counter()
            margin = (end - start) / 10
            during += sum(start + margin < t < end - margin for t in ticks)
            if during > 10:
                break
    finally:
        is_done.set()
        thread.join()
    assert during > 10


def test_threads():
    inputs = [numbers(100_000) for _ in range(4)]
    results = [None] * 4

    def work(i):
        for _ in range(10):
            results[i] = fpconv.encode(inputs[i], "e4m3")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for x, got in zip(inputs, results):
        numpy.testing.assert_array_equal(got[:500], want_codes(x[:500], "e4m3"))
        numpy.testing.assert_array_equal(got, fpconv.encode(x, "e4m3"))


@pytest.mark.parametrize("module", [fpconv, fpconv._arrays, fpconv._formats])
def test_doctests(module):
    result = doctest.testmod(module)
    assert result.failed == 0 and result.attempted > 0
