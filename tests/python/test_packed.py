"""pack and unpack

SPDX-License-Identifier: MIT
"""
import doctest

import exact
import numpy
import pytest

import fpconv
import fpconv._packed

BITS = {"e2m1": 4, "e3m2": 6, "e2m3": 6, "e4m3": 8, "hif8": 8}
RANDOM = numpy.random.default_rng(4)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 7, 8, 63, 1000])
@pytest.mark.parametrize("name", BITS)
def test_layout(name, n):
    codes = RANDOM.integers(0, 1 << BITS[name], n, dtype=numpy.uint8)
    want = exact.pack(codes, BITS[name])
    packed = fpconv.pack(codes, name)
    assert packed.dtype == numpy.uint8 and packed.tobytes() == want
    assert fpconv.packed_size(name, n) == len(want)
    numpy.testing.assert_array_equal(fpconv.unpack(packed, name, n), codes)
    numpy.testing.assert_array_equal(fpconv.unpack(want, name, (n,)), codes)


def test_arrays_are_packed_as_a_whole():
    codes = RANDOM.integers(0, 16, (3, 5, 7), dtype=numpy.uint8)
    for array in (codes, codes.transpose(2, 0, 1), codes[::-1, ::2], codes[:, :, 1]):
        packed = fpconv.pack(array, "e2m1")
        assert packed.tobytes() == exact.pack(array.ravel(), 4)
        numpy.testing.assert_array_equal(fpconv.unpack(packed, "e2m1", array.shape), array)


def test_unused_bits():
    assert fpconv.pack(numpy.uint8([0xf1, 0x82]), "e2m1").tolist() == [0x21]
    assert fpconv.unpack(numpy.uint8([0xf1]), "e2m1", 1).tolist() == [1]


def test_formats_of_whole_bytes():
    codes = numpy.uint16([0x3f80, 0xff81])
    packed = fpconv.pack(codes, "bf16")
    assert packed.tobytes() == codes.tobytes()
    assert fpconv.unpack(packed, "bf16", 2).tolist() == codes.tolist()
    x = numpy.float32([1.5, -2])
    assert fpconv.unpack(fpconv.pack(x, "f32"), "f32", 2).tolist() == [1.5, -2]
    assert fpconv.unpack(fpconv.pack(codes.astype(">u2"), "bf16"), "bf16", 2).tolist() == codes.tolist()
    half = fpconv.unpack(numpy.float16([1.5]).tobytes(), numpy.float16, 1)
    assert half.dtype == numpy.float16 and half.tolist() == [1.5]
    half = fpconv.unpack(numpy.float16([1.5]).tobytes(), ">f2", 1)
    assert half.dtype == numpy.dtype(">f2") and half.tolist() == [1.5]


def test_out():
    codes = numpy.arange(64, dtype=numpy.uint8) % 16
    out = numpy.empty(32, numpy.uint8)
    assert fpconv.pack(codes, "e2m1", out=out) is out
    assert out.tobytes() == exact.pack(codes, 4)
    back = numpy.empty((8, 8), numpy.uint8)
    assert fpconv.unpack(out, "e2m1", (8, 8), out=back) is back
    numpy.testing.assert_array_equal(back.ravel(), codes)
    for start in (0, 1, 20):  # over itself
        memory = numpy.zeros(200, numpy.uint8)
        memory[:64] = codes
        fpconv.pack(memory[:64], "e2m1", out=memory[start:start + 32])
        assert memory[start:start + 32].tobytes() == exact.pack(codes, 4)
        fpconv.unpack(memory[start:start + 32], "e2m1", 64, out=memory[:64])
        numpy.testing.assert_array_equal(memory[:64], codes)


def test_errors():
    codes = numpy.zeros(4, numpy.uint8)
    read_only = numpy.zeros(2, numpy.uint8)
    read_only.setflags(write=False)
    cases = [
        (lambda: fpconv.pack(codes, "e2m2"), ValueError, "format is 'e2m2'"),
        (lambda: fpconv.pack(codes.astype("f4"), "e2m1"), TypeError, "codes has the dtype float32"),
        (lambda: fpconv.pack(codes.astype("u2"), "e2m1"), TypeError, "elements of e2m1 have uint8"),
        (lambda: fpconv.pack(codes, "e2m1", out=codes), ValueError, r"out has the shape \(4,\), the result \(2,\)"),
        (lambda: fpconv.pack(codes, "e2m1", out=codes[::2]), ValueError, "not contiguous"),
        (lambda: fpconv.pack(codes, "e2m1", out=read_only), ValueError, "read-only"),
        (lambda: fpconv.pack(codes, "e2m1", out=codes[:2].view("i1")), TypeError, "uint8"),
        (lambda: fpconv.unpack(codes, "e2m1", 9), ValueError, "packed has 4 bytes; 9 elements of e2m1 take 5"),
        (lambda: fpconv.unpack(codes, "e2m1", 6), ValueError, "packed has 4 bytes; 6 .* take 3"),
        (lambda: fpconv.unpack(codes, "e2m1", -1), ValueError, "n is -1"),
        (lambda: fpconv.unpack(codes, "e2m1", (-2, -4)), ValueError, "negative"),
        (lambda: fpconv.unpack(codes, "e2m1", 2.5), TypeError, "float"),
        (lambda: fpconv.unpack(codes.astype("f8"), "e2m1", 8), TypeError, "packed has the dtype float64"),
        (lambda: fpconv.packed_size("e2m1", -1), ValueError, "n is -1"),
    ]
    for call, error, message in cases:
        with pytest.raises(error, match=message):
            call()


def test_doctests():
    result = doctest.testmod(fpconv._packed)
    assert result.failed == 0 and result.attempted > 0
