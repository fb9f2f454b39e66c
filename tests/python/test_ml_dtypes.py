"""ml_dtypes' dtypes accepted and returned, and its values against ours

SPDX-License-Identifier: MIT
"""
import ml_dtypes
import numpy
import pytest

import fpconv

DTYPES = {
    "bf16": ml_dtypes.bfloat16,
    "e5m2": ml_dtypes.float8_e5m2,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}
RANDOM = numpy.random.default_rng(11)


def codes_of(name):
    bits = fpconv.format_info(name).bits
    return numpy.arange(1 << bits).astype(fpconv.format_info(name).storage)


def values(n):
    return RANDOM.standard_normal(n) * 2.0 ** RANDOM.integers(-20, 12, n)


@pytest.mark.parametrize("name", DTYPES)
def test_every_code_decodes_to_the_same(name):
    """Their decoders: written by others."""
    codes = codes_of(name)
    theirs = codes.view(DTYPES[name]).astype(numpy.float32)
    numpy.testing.assert_array_equal(fpconv.decode(codes, name), theirs)
    numpy.testing.assert_array_equal(fpconv.decode(codes.view(DTYPES[name])), theirs)


@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float64])
@pytest.mark.parametrize("name", DTYPES)
def test_encodes_to_the_same(name, dtype):
    x = values(20_000).astype(dtype)
    table = fpconv.decode(codes_of(name), name, dtype)
    table = numpy.sort(table[numpy.isfinite(table)])[::max(1, len(table) // 500)]
    with numpy.errstate(over="ignore", invalid="ignore"):
        middles = (table[:-1] + table[1:]) / 2
        x = numpy.concatenate([x, table, middles, numpy.nextafter(middles, dtype(numpy.inf)),
                               numpy.nextafter(middles, dtype(-numpy.inf))])
        # They make a float32 of a double first: only such as that does not change are the same.
        x = x.astype(numpy.float32).astype(dtype)
        # What is too large for FP6 and FP4 saturates here and there; e4m3's becomes NaN.
        theirs = x.astype(DTYPES[name])
    ours = fpconv.encode(x, DTYPES[name])
    assert ours.dtype == DTYPES[name]
    storage = fpconv.format_info(name).storage
    numpy.testing.assert_array_equal(ours.view(storage), fpconv.encode(x, name))
    is_nan = numpy.isnan(ours.astype("f4"))
    numpy.testing.assert_array_equal(is_nan, numpy.isnan(theirs.astype("f4")))
    numpy.testing.assert_array_equal(ours.view(storage)[~is_nan], theirs.view(storage)[~is_nan])


@pytest.mark.parametrize("name", DTYPES)
def test_arguments_and_results(name):
    typed = fpconv.encode(values(60).reshape(3, 20), DTYPES[name])
    assert typed.dtype == DTYPES[name] and typed.shape == (3, 20)
    storage = fpconv.format_info(name).storage
    for same in (typed, typed.view(storage), numpy.asfortranarray(typed), typed[:, ::-1][:, ::-1]):
        numpy.testing.assert_array_equal(fpconv.decode(same, name), typed.astype("f4"))
    assert fpconv.decode(typed, dtype=ml_dtypes.bfloat16).dtype == ml_dtypes.bfloat16
    numpy.testing.assert_array_equal(
        fpconv.convert(typed, "e5m2"), fpconv.convert(typed.view(storage), "e5m2", DTYPES[name]))
    for out in (numpy.zeros((3, 20), DTYPES[name]), numpy.zeros((3, 20), storage)):
        assert fpconv.encode(typed.astype("f4"), name, out=out) is out
        numpy.testing.assert_array_equal(out.view(storage), typed.view(storage))
    with pytest.raises(TypeError, match=f"x has the dtype {typed.dtype}; elements of hif8"):
        fpconv.decode(typed, "hif8")


@pytest.mark.parametrize("name", ["e3m2", "e2m3", "e2m1"])
def test_packed(name):
    typed = fpconv.encode(values(33), DTYPES[name])
    packed = fpconv.pack(typed, DTYPES[name])
    assert packed.tobytes() == fpconv.pack(typed.view("u1"), name).tobytes()
    back = fpconv.unpack(packed, DTYPES[name], 33)
    assert back.dtype == DTYPES[name] and (back == typed).all()


def test_others_are_refused():
    for dtype in (ml_dtypes.float8_e4m3b11fnuz, ml_dtypes.float8_e5m2fnuz, ml_dtypes.float8_e8m0fnu,
                  ml_dtypes.int4):
        with pytest.raises(TypeError, match="dst is"):
            fpconv.encode([1.0], dtype)
        with pytest.raises(TypeError, match="x has the dtype"):
            fpconv.decode(numpy.zeros(3, dtype))


def test_scaled_bfloat16():
    x = values(320).reshape(4, 80).astype(ml_dtypes.bfloat16)
    want = fpconv.quantize(x.astype("f4"), "mxfp8_e4m3")
    got = fpconv.quantize(x, "mxfp8_e4m3")
    numpy.testing.assert_array_equal(got.codes, want.codes)
    numpy.testing.assert_array_equal(got.scales, want.scales)
    back = fpconv.dequantize(got, ml_dtypes.bfloat16)
    assert back.dtype == ml_dtypes.bfloat16
    numpy.testing.assert_array_equal(back, fpconv.dequantize(want).astype(ml_dtypes.bfloat16))
    # elements of their FP8 dtype, times their E8M0 scales
    elements = got.codes.view(ml_dtypes.float8_e4m3fn).astype("f8").reshape(4, 80)
    scales = got.scales.view(ml_dtypes.float8_e8m0fnu).astype("f8")
    numpy.testing.assert_array_equal(fpconv.dequantize(got, "f64"),
                                     elements * numpy.repeat(scales, 32, axis=1)[:, :80])


def test_hifloat8():
    x = values(100).astype(ml_dtypes.bfloat16)
    codes = fpconv.encode_to_hifloat8(x)
    numpy.testing.assert_array_equal(codes, fpconv.encode_to_hifloat8(x.astype("f4")))
    back = fpconv.decode_from_hifloat8(codes, ml_dtypes.bfloat16)
    assert back.dtype == ml_dtypes.bfloat16
    numpy.testing.assert_array_equal(back.astype("f4"), fpconv.decode_from_hifloat8(codes))
