"""quantize and dequantize against exact arithmetic

SPDX-License-Identifier: MIT
"""
import dataclasses
import doctest
import math
from fractions import Fraction

import exact
import numpy
import pytest

import fpconv
import fpconv._scaled

RANDOM = numpy.random.default_rng(6)
LARGEST = {"e4m3": 448, "e5m2": 57344, "e3m2": 28, "e2m3": Fraction(15, 2), "e2m1": 6, "hif8": 32768}
E_MAX = {"e4m3": 8, "e5m2": 15, "e3m2": 4, "e2m3": 2, "e2m1": 2}
BITS = {"e4m3": 8, "e5m2": 8, "e3m2": 6, "e2m3": 6, "e2m1": 4, "hif8": 8, "f16": 16}


def tensor(*shape):
    """Values of many magnitudes, with a few zeros."""
    x = RANDOM.standard_normal(shape) * 2.0 ** RANDOM.integers(-12, 6, shape)
    x[RANDOM.random(shape) < 0.05] = 0
    return x.astype(numpy.float32)


def exponent_of(value):
    """floor(log2) of a positive rational"""
    exponent = 0
    while Fraction(2) ** exponent > value:
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= value:
        exponent += 1
    return exponent


def amax(values):
    return max((abs(Fraction(float(v))) for v in values if math.isfinite(v)), default=Fraction(0))


def quotient_code(value, scale, element):
    """The nearest code of value / scale, which is rounded once."""
    if scale == 0:
        return exact.sign_bit(element) if math.copysign(1, value) < 0 else 0
    if value == 0:
        return exact.encode(element, float(value), "ocp_sat")
    policy = "ocp" if element == "f16" else "ocp_sat"
    return exact.encode(element, Fraction(float(value)) / scale, policy)


def want_mx(row, element, rule):
    codes, scales = [], []
    for start in range(0, len(row), 32):
        block = row[start:start + 32]
        largest = amax(block)
        exponent = -127
        if largest:
            exponent = exponent_of(largest) - E_MAX[element]
            if rule == "ceil":
                quotient = largest / LARGEST[element]
                exponent = exponent_of(quotient)
                exponent += Fraction(2) ** exponent < quotient
        exponent = min(max(exponent, -127), 127)
        scales.append(exponent + 127)
        codes += [quotient_code(v, Fraction(2) ** exponent, element) for v in block]
    return codes, scales


def want_nvfp4(row, whole):
    codes, scales = [], []
    for start in range(0, len(row), 16):
        block = row[start:start + 16]
        scale = exact.encode("e4m3", amax(block) / (6 * whole), "ocp_sat")
        scales.append(scale)
        value = Fraction(exact.decode("e4m3", scale))
        codes += [quotient_code(v, value * whole, "e2m1") for v in block]
    return codes, scales


def f32_scale(values, element):
    largest = amax(values)
    return max(exact.round_f32(largest / LARGEST[element]), 2.0**-126) if largest else 1.0


def pow2_exponent(values, dot_length):
    t = 0
    while dot_length * Fraction(4) ** (t + 1) <= 65504:
        t += 1
    while dot_length * Fraction(4) ** t > 65504:
        t -= 1
    if not amax(values):
        return 0
    e = exponent_of(amax(values)) - t - 2
    while True:
        codes = [quotient_code(v, Fraction(2) ** e, "f16") for v in values]
        if all(abs(exact.decode("f16", code)) < 2.0**t for code in codes):
            return e
        e += 1


def pack_rows(codes, element):
    return [list(exact.pack(row, BITS[element])) for row in codes]


SHAPES = [(1,), (7,), (3, 70), (2, 3, 40), (4, 1)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rule", ["floor", "ceil"])
@pytest.mark.parametrize("name", ["mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4"])
def test_mx(name, rule, shape):
    x = tensor(*shape)
    scheme = fpconv.scheme(name, rule=rule)
    got = fpconv.quantize(x, scheme)
    rows = x.reshape(-1, shape[-1])
    want = [want_mx(row, scheme.element, rule) for row in rows]
    blocks = -(-shape[-1] // 32)
    assert got.scales.dtype == numpy.uint8 and got.scales.shape == (*shape[:-1], blocks)
    assert got.scales.reshape(-1, blocks).tolist() == [scales for _, scales in want]
    assert got.codes.reshape(len(rows), -1).tolist() == pack_rows([c for c, _ in want], scheme.element)
    assert got.shape == shape and got.scheme == scheme

    values = [[exact.decode(scheme.element, c) * 2.0 ** (scales[i // 32] - 127)
               for i, c in enumerate(codes)] for codes, scales in want]
    numpy.testing.assert_array_equal(fpconv.dequantize(got), numpy.reshape(values, shape))


@pytest.mark.parametrize("shape", SHAPES)
def test_nvfp4(shape):
    x = tensor(*shape)
    got = fpconv.quantize(x, "nvfp4")
    whole = max(exact.round_f32(amax(x.ravel()) / 2688), 2.0**-126) if x.any() else 1.0
    assert got.scheme.tensor_scale == whole == fpconv.tensor_scale(x)
    rows = x.reshape(-1, shape[-1])
    want = [want_nvfp4(row, Fraction(whole)) for row in rows]
    assert got.scales.reshape(len(rows), -1).tolist() == [scales for _, scales in want]
    assert got.codes.reshape(len(rows), -1).tolist() == pack_rows([c for c, _ in want], "e2m1")
    values = [[exact.decode("e2m1", c) * exact.decode("e4m3", scales[i // 16]) * whole
               for i, c in enumerate(codes)] for codes, scales in want]
    numpy.testing.assert_array_equal(fpconv.dequantize(got, numpy.float64), numpy.reshape(values, shape))
    assert got.nbytes == got.codes.size + got.scales.size + 4
    twice = fpconv.scheme("nvfp4", tensor_scale=2 * whole)
    assert fpconv.quantize(x, twice).scheme.tensor_scale == 2 * whole


@pytest.mark.parametrize("element", LARGEST)
@pytest.mark.parametrize("group", ["tensor", "row", "column"])
def test_f32_scales(group, element):
    x = tensor(3, 2, 9)
    got = fpconv.quantize(x, f"{group}_{element}")
    rows = x.reshape(6, 9)
    if group == "tensor":
        scales = numpy.float32(f32_scale(x.ravel(), element))
        each = numpy.full((6, 9), scales)
    elif group == "row":
        scales = numpy.float32([f32_scale(row, element) for row in rows])
        each = numpy.repeat(scales, 9).reshape(6, 9)
        scales = scales.reshape(3, 2)
    else:
        scales = numpy.float32([f32_scale(column, element) for column in rows.T])
        each = numpy.tile(scales, (6, 1))
    assert got.scales.dtype == numpy.float32
    numpy.testing.assert_array_equal(got.scales, scales)
    assert got.scales.shape == scales.shape
    codes = [[quotient_code(v, Fraction(float(s)), element) for v, s in zip(*pair)]
             for pair in zip(rows, each)]
    assert got.codes.reshape(6, -1).tolist() == pack_rows(codes, element)
    values = [[numpy.float32(exact.decode(element, c) * float(s)) for c, s in zip(*pair)]
              for pair in zip(codes, each)]  # a product of 4 and 24 bits is exact in a double
    numpy.testing.assert_array_equal(fpconv.dequantize(got).reshape(6, 9), values)


@pytest.mark.parametrize("dot_length", [0, 1, 4096, 10**6])
@pytest.mark.parametrize("group", ["row", "column"])
def test_pow2(group, dot_length):
    x = tensor(5, 12)
    got = fpconv.quantize(x, fpconv.scheme(f"pow2_{group}", dot_length=dot_length))
    vectors = x if group == "row" else x.T
    want = [pow2_exponent(v, dot_length or vectors.shape[1]) for v in vectors]
    assert got.scales.dtype == numpy.int16 and got.scales.tolist() == want
    exponents = numpy.float64(want)[:, None] if group == "row" else numpy.float64(want)[None, :]
    codes = [[quotient_code(v, Fraction(2) ** int(e), "f16") for v, e in zip(*pair)]
             for pair in zip(x, numpy.broadcast_to(exponents, x.shape))]
    assert got.codes.dtype == numpy.uint16 and got.codes.tolist() == codes
    values = numpy.array([[exact.decode("f16", c) for c in row] for row in codes]) * 2.0**exponents
    numpy.testing.assert_array_equal(fpconv.dequantize(got, numpy.float64), values)


def test_special_values():
    x = numpy.zeros((4, 40), numpy.float32)
    x[0, 3], x[1, 35], x[2, 0], x[2, 1] = numpy.nan, numpy.inf, 1.0, -0.0
    got = fpconv.quantize(x, "mxfp8_e4m3")
    assert got.scales.tolist() == [[255, 0], [0, 128 - 8 + 127], [0 - 8 + 127, 0], [0, 0]]
    back = fpconv.dequantize(got)
    assert numpy.isnan(back[0, :32]).all() and not numpy.isnan(back[0, 32:]).any()
    assert back[1, 35] == numpy.inf and back[2, 0] == 1.0 and numpy.signbit(back[2, 1])
    assert fpconv.quantize(x[3:], "tensor_e4m3").scales == 1


@pytest.mark.parametrize("name", fpconv.SCHEMES)
@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (2, 0, 3)])
def test_empty(name, shape):
    got = fpconv.quantize(numpy.zeros(shape, "f4"), name)
    assert got.scales.shape == got.scheme.scales_shape(shape)
    assert (got.scales == (got.scales.dtype == numpy.float32)).all()
    assert fpconv.dequantize(got).shape == shape


@pytest.mark.parametrize("name", fpconv.SCHEMES)
def test_layouts_and_dtypes(name):
    x = fpconv.decode(fpconv.encode(tensor(4, 6, 50), "bf16"), "bf16").astype("f4")
    want = fpconv.quantize(x, name)
    wide = numpy.zeros((4, 6, 80), numpy.float32)
    wide[..., 10:60] = x
    spread = numpy.zeros((4, 6, 100), numpy.float32)
    spread[..., ::2] = x
    for same in (numpy.asfortranarray(x), wide[..., 10:60], spread[..., ::2], x[::-1][::-1],
                 x.astype(">f4"), x.astype("f8"), x.tolist()):
        got = fpconv.quantize(same, name)
        numpy.testing.assert_array_equal(got.codes, want.codes)
        numpy.testing.assert_array_equal(got.scales, want.scales)
        assert got.scheme == want.scheme
    whole = fpconv.dequantize(want)
    for dtype in ("f8", ">f4", "f2", "bf16"):
        numpy.testing.assert_array_equal(
            fpconv.dequantize(want, dtype),
            fpconv.convert(fpconv.dequantize(want, "f64"), dtype), err_msg=dtype)
    for out in (numpy.zeros(x.shape, "f4"), numpy.zeros((*x.shape, 2), "f4")[..., 1],
                numpy.zeros(x.shape, ">f4"), numpy.zeros(x.shape, "f4", order="F")):
        assert fpconv.dequantize(want, out=out) is out
        numpy.testing.assert_array_equal(out, whole)
    strided = dataclasses.replace(want, codes=numpy.repeat(want.codes, 2, axis=0)[::2],
                                  scales=want.scales.astype(want.scales.dtype.newbyteorder("S")))
    numpy.testing.assert_array_equal(fpconv.dequantize(strided), whole)


def test_bfloat16_codes():
    """There is no dtype for them in numpy: DLPack and ml_dtypes have one."""
    with pytest.raises(TypeError, match="x has the dtype uint16"):
        fpconv.quantize(numpy.zeros(3, "u2"), "mxfp4")


def test_given_scales():
    x = tensor(4, 64)
    scales = numpy.full((4, 2), 127, numpy.uint8)
    got = fpconv.quantize(x, "mxfp8_e4m3", scales=scales)
    assert got.scheme.rule == "given" and (got.scales == scales).all()
    assert got.codes.tolist() == [[quotient_code(v, 1, "e4m3") for v in row] for row in x]
    assert not numpy.shares_memory(got.scales, scales)
    row = fpconv.quantize(x, "row_e4m3", scales=numpy.float32([1, 2, 0.5, 4]))
    want = [[quotient_code(v, Fraction(s), "e4m3") for v in r] for r, s in zip(x, [1, 2, 0.5, 4])]
    assert row.codes.tolist() == want
    numpy.testing.assert_array_equal(fpconv.dequantize(got), fpconv.decode(got.codes, "e4m3"))


def test_schemes():
    assert len(fpconv.SCHEMES) == 26 == len(set(fpconv.SCHEMES))
    mx = fpconv.scheme("mxfp4")
    assert (mx.scaling, mx.element, mx.rule, mx.block, mx.scale_dtype) == (
        "mx", "e2m1", "floor", 32, numpy.uint8)
    nv = fpconv.scheme("nvfp4", tensor_scale=0.1)
    assert (nv.block, nv.rule, nv.tensor_scale) == (16, "amax", float(numpy.float32(0.1)))
    assert fpconv.scheme("tensor_hif8") == fpconv.Scheme("per_tensor", "hif8")
    assert fpconv.scheme("pow2_row").scale_dtype == numpy.int16
    for name in fpconv.SCHEMES:
        assert fpconv.scheme(name) == dataclasses.replace(fpconv.scheme(name))


def test_scheme_errors():
    cases = [
        (lambda: fpconv.scheme("mxfp5"), "no scheme 'mxfp5'; there are mxfp8_e4m3"),
        (lambda: fpconv.scheme(None), "no scheme None"),
        (lambda: fpconv.Scheme("mxx", "e4m3"), "no scaling 'mxx'; there are mx, nvfp4"),
        (lambda: fpconv.Scheme("mx", "e4m4"), "no format 'e4m4'"),
        (lambda: fpconv.Scheme("mx", "f16"), "the scaling mx has no elements of f16"),
        (lambda: fpconv.Scheme("mx", "hif8"), "the scaling mx has no elements of hif8"),
        (lambda: fpconv.Scheme("nvfp4", "e4m3"), "the scaling nvfp4 has no elements of e4m3"),
        (lambda: fpconv.Scheme("pow2_row", "bf16"), "the scaling pow2_row has no elements of bf16"),
        (lambda: fpconv.Scheme("mx", "e4m3", "amax"), "the scaling mx has no rule amax"),
        (lambda: fpconv.Scheme("per_row", "e4m3", "floor"), "the scaling per_row has no rule floor"),
        (lambda: fpconv.Scheme("per_row", "e4m3", "largest"), "no rule 'largest'; there are floor"),
        (lambda: fpconv.scheme("nvfp4", tensor_scale=-1), "tensor_scale is -1; as an f32"),
        (lambda: fpconv.scheme("nvfp4", tensor_scale=math.nan), "tensor_scale is nan"),
        (lambda: fpconv.scheme("nvfp4", tensor_scale=1e39), "tensor_scale is 1e"),
        (lambda: fpconv.scheme("nvfp4", tensor_scale=1e-60), "tensor_scale is 1e-60"),
        (lambda: fpconv.scheme("pow2_row", dot_length=-1), "dot_length is -1"),
        (lambda: fpconv.scheme("pow2_row", dot_length=2**70), f"dot_length is {2**70}"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError):
        fpconv.scheme("pow2_row", dot_length=1.5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        fpconv.scheme("mxfp4").rule = "ceil"


def test_errors():
    x = tensor(4, 64)
    good = fpconv.quantize(x, "mxfp8_e4m3")
    change = dataclasses.replace
    cases = [
        (lambda: fpconv.quantize(x, "mxfp5"), ValueError, "no scheme 'mxfp5'"),
        (lambda: fpconv.quantize(x, None), TypeError, "scheme is a NoneType"),
        (lambda: fpconv.quantize(1.0, "mxfp4"), ValueError, "x has no axis"),
        (lambda: fpconv.quantize(good.codes, "mxfp4"), TypeError, "x has the dtype uint8"),
        (lambda: fpconv.quantize(x, fpconv.scheme("mxfp4", rule="given")), ValueError,
         "the scheme's rule is given, but no scales are"),
        (lambda: fpconv.quantize(x, "mxfp4", scales=[[1.0, 2.0]] * 4), TypeError,
         "scales have the dtype float64, those of mx are uint8"),
        (lambda: fpconv.quantize(x, "mxfp4", scales=good.scales[:2]), ValueError,
         r"scales have the shape \(2, 2\); a tensor of the shape \(4, 64\) has \(4, 2\) under mx"),
        (lambda: fpconv.tensor_scale(good.codes), TypeError, "x has the dtype uint8"),
        (lambda: fpconv.dequantize(good, "e4m3"), TypeError, "dtype is 'e4m3'"),
        (lambda: fpconv.dequantize(change(good, codes=good.codes[:, :63])), ValueError,
         r"scaled.codes has the shape \(4, 63\); .* has \(4, 64\) under mx"),
        (lambda: fpconv.dequantize(change(good, codes=x)), TypeError, "scaled.codes has the dtype float32"),
        (lambda: fpconv.dequantize(change(good, scales=good.scales[:, :1])), ValueError,
         r"scales have the shape \(4, 1\)"),
        (lambda: fpconv.dequantize(change(good, scales=x)), TypeError, "scales have the dtype float32"),
        (lambda: fpconv.dequantize(change(good, shape=(4, 65))), ValueError, "scaled.codes has the shape"),
        (lambda: fpconv.dequantize(change(good, shape=())), ValueError, "no axis"),
        (lambda: fpconv.dequantize(change(fpconv.quantize(x, "nvfp4"), scheme=fpconv.scheme("nvfp4"))),
         ValueError, "lacks its tensor_scale"),
        (lambda: fpconv.dequantize(good, out=numpy.zeros((4, 63), "f4")), ValueError, "out has the shape"),
        (lambda: fpconv.dequantize(good, out=numpy.zeros((4, 64), "f8")), TypeError, "out has the dtype"),
    ]
    for call, error, message in cases:
        with pytest.raises(error, match=message):
            call()


def test_doctests():
    result = doctest.testmod(fpconv._scaled)
    assert result.failed == 0 and result.attempted > 0
