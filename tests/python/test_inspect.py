"""h5fpconv inspect: its numbers against exact arithmetic, and what it recommends

SPDX-License-Identifier: MIT

The reference below knows the formats from their specifications and rounds fractions;
it shares nothing with fpconv.
"""
import bisect
import json
import math
import os
import pty
import subprocess
import sys
from fractions import Fraction

import fpconv
import fpconv.h5
import h5py
import numpy as np
import pytest
from h5fpconv.analysis import conversions, matrices
from h5fpconv.analysis.matrices import Matrix, Slab
from h5fpconv.analysis.recommend import (Budget, map_text, parse_budget, pattern_of, Recommendation,
                                         recommend)
from h5fpconv.analysis.results import Result, combine, measure
from h5fpconv.analysis.survey import LOWEST_EXPONENT, survey
from h5fpconv.hdf5.boxes import Box
from h5fpconv.report.text import histogram
from h5fpconv.user.select import matches
from h5fpconv.user.targets import PACKED_NAMES, TARGET_NAMES, find_target

# ---------------------------------------------------------------------------
# The reference
# ---------------------------------------------------------------------------

# exponent bits, fraction bits, bias, finite codes without sign
FIELDS = {"f16": (5, 10, 15, 0x7c00), "bf16": (8, 7, 127, 0x7f80), "e5m2": (5, 2, 15, 0x7c),
          "e4m3": (4, 3, 7, 0x7f), "e3m2": (3, 2, 3, 0x20), "e2m3": (2, 3, 1, 0x20),
          "e2m1": (2, 1, 1, 0x8)}
BITS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16, "e5m2": 8, "e4m3": 8, "e3m2": 6, "e2m3": 6,
        "e2m1": 4, "hif8": 8}
BECOMES_NONFINITE = ("f16", "bf16", "e5m2", "e4m3")  # finite overflow, policy ocp


def power(exponent):
    return Fraction(2) ** exponent


def grid_of(name):
    """The finite magnitudes in ascending order, and the next step above them."""
    if name == "hif8":
        grid = {Fraction(0)} | {power(m - 23) for m in range(1, 8)}
        for e in range(-15, 16):
            bits = 3 if abs(e) < 4 else 2 if abs(e) < 8 else 1
            grid |= {power(e) * (1 + Fraction(m, 2**bits)) for m in range(2**bits)}
        grid.remove(power(15) * Fraction(3, 2))  # that code is Inf
        return sorted(grid), power(14)
    _, fraction_bits, bias, codes = FIELDS[name]
    grid = []
    for code in range(codes):
        x, m = code >> fraction_bits, code & (2**fraction_bits - 1)
        grid.append(m * power(1 - bias - fraction_bits) if x == 0
                    else (2**fraction_bits + m) * power(x - bias - fraction_bits))
    return grid, grid[-1] - grid[-2]


GRIDS = {name: grid_of(name) for name in (*FIELDS, "hif8")}


def round_to(name, value):
    """The nearest value of a format, saturated, and whether it rounds beyond the largest."""
    grid, step = GRIDS[name]
    sign, magnitude = (-1, -value) if value < 0 else (1, value)
    if magnitude > grid[-1]:
        middle = grid[-1] + step / 2
        is_odd = (len(grid) - 1) % 2 == 1
        beyond = magnitude > middle or (magnitude == middle and (is_odd or name == "hif8"))
        return sign * grid[-1], beyond
    i = bisect.bisect_left(grid, magnitude)
    if grid[i] != magnitude:
        below, above = magnitude - grid[i - 1], grid[i] - magnitude
        is_up = above < below or (above == below and (i % 2 == 0 or name == "hif8"))
        i = i if is_up else i - 1
    return sign * grid[i], False


def floor_log2(value):
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent if power(exponent) <= value else exponent - 1


def round_f32(value):
    """The nearest normal float32 of a positive fraction, ties to even."""
    step = power(floor_log2(value) - 23)
    return round(value / step) * step


def group_of(scheme, row, column):
    """What shares a scale with an element."""
    return {"mx": (row, column // 32), "nvfp4": (row, column // 16), "per_tensor": 0,
            "per_row": row, "pow2_row": row, "per_column": column,
            "pow2_column": column}[scheme.scaling]


def scale_of(scheme, amax, tensor_amax, rows, columns):
    """The scale of a group with this largest magnitude."""
    largest = GRIDS[scheme.element][0][-1]
    if scheme.scaling == "mx":
        return power(max(-127, floor_log2(amax) - floor_log2(largest))) if amax else power(-127)
    if scheme.scaling == "nvfp4":
        tensor = round_f32(tensor_amax / 2688) if tensor_amax else Fraction(1)
        return round_to("e4m3", amax / (6 * tensor))[0] * tensor
    if scheme.scaling.startswith("per"):
        return round_f32(amax / largest) if amax else Fraction(1)
    length = columns if scheme.scaling == "pow2_row" else rows
    t = max(t for t in range(-10, 10) if length * power(2 * t) <= 65504)
    if not amax:
        return Fraction(1)
    e = floor_log2(amax) - t - 2
    while round_to("f16", amax / power(e))[0] >= power(t) or amax / power(e) > 65504:
        e += 1
    return power(e)


def reference(values, target):
    """noise, worst relative error, overflows, underflows, finite values lost; all exact."""
    rows, columns = values.shape
    exact = [[Fraction(float(v)) for v in row] for row in values]
    scales = {}
    if target.scheme:
        groups = {}
        for i in range(rows):
            for j in range(columns):
                groups.setdefault(group_of(target.scheme, i, j), []).append(abs(exact[i][j]))
        tensor_amax = max(max(group) for group in groups.values())
        scales = {key: scale_of(target.scheme, max(group), tensor_amax, rows, columns)
                  for key, group in groups.items()}
    noise, signal, worst, overflows, underflows, lost = Fraction(0), Fraction(0), Fraction(0), 0, 0, 0
    for i in range(rows):
        for j in range(columns):
            x = exact[i][j]
            if target.format in ("f32", "f64"):
                y, beyond = x, False
            elif target.scheme:
                scale = scales[group_of(target.scheme, i, j)]
                y, beyond = round_to(target.format, x / scale) if scale else (Fraction(0), False)
                y *= scale
            else:
                y, beyond = round_to(target.format, x)
                if beyond and target.format in BECOMES_NONFINITE:
                    overflows, lost = overflows + 1, lost + 1
                    continue
            overflows += beyond
            underflows += x != 0 and y == 0
            noise += (y - x) ** 2
            signal += x**2
            worst = max(worst, abs(y - x) / abs(x) if x else 0)
    return noise, signal, worst, overflows, underflows, lost


# ---------------------------------------------------------------------------
# Tensors
# ---------------------------------------------------------------------------


class ArrayTensor:
    """An array in the place of a tensor of a file."""

    def __init__(self, values, unit=None):
        self.values = np.asarray(values)
        self.shape, self.dtype = self.values.shape, self.values.dtype
        self.unit = unit or (1,) * self.values.ndim

    def read(self, box: Box):
        part = tuple(slice(s, s + c) for s, c in zip(box.start, box.count))
        return np.array(self.values[part])


ALL = [find_target(name) for name in TARGET_NAMES]


def examine(values, targets=ALL, policy="ocp", unit=None, sample=None):
    matrix = Matrix(ArrayTensor(values, unit), sample)
    found, amax = survey(matrix)
    stored = find_target({"float64": "f64", "float16": "f16"}.get(str(np.asarray(values).dtype), "f32"))
    kept, results = measure(matrix, stored, targets, policy, found, amax)
    return found, kept, results


def sample_matrix(kind):
    random = np.random.default_rng(len(kind))
    values = random.standard_normal((5, 40)) * np.exp2(random.integers(-14, 6, (5, 40)))
    if kind == "zeros":
        values *= random.integers(0, 2, values.shape)
        values[2] = 0
        values[:, 7] = 0
        values[3, :16] = 0
    elif kind == "large":
        values *= 2.0**14
    elif kind == "small":
        values *= 2.0**-24
    elif kind == "ties":  # halves between the codes of many formats, and beyond the largest
        values = (random.integers(0, 64, values.shape) * np.exp2(random.integers(-12, 4, values.shape))
                  * random.choice([-1.0, 1.0], values.shape))
        values[0, :6] = [464, 464.5, 7, 29.999, 30, 7.75]
        values[1, :4] = [40960, 65519.99, 65520, 61440]
    return values


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["wide", "zeros", "large", "small", "ties"])
def test_numbers_are_those_of_exact_arithmetic(kind, dtype):
    values = sample_matrix(kind).astype(dtype)
    found, _, results = examine(values)
    assert set(results) == set(TARGET_NAMES)
    for target in ALL:
        if target.format == "f32" and dtype == "float64":
            continue  # no grid of float32 above
        noise, signal, worst, overflows, underflows, lost = reference(values, target)
        result = results[target.name]
        got = (result.overflow, result.underflow, result.lost, result.changed)
        assert got == (overflows, underflows, lost, 0), target.name
        assert result.worst == pytest.approx(float(worst), rel=1e-15), target.name
        assert result.noise == pytest.approx(float(noise), rel=1e-13), target.name
        assert result.square == pytest.approx(float(signal), rel=1e-13), target.name
        if noise:
            expected = 10 * (math.log10(signal) - math.log10(noise))
            assert result.sqnr == pytest.approx(expected, abs=1e-11), target.name
        else:
            assert result.sqnr == math.inf
    assert found.zeros == np.count_nonzero(values == 0)


def test_bytes_are_those_of_the_layout():
    _, _, results = examine(np.ones((6, 50), np.float32))
    expected = {
        "f64": 2400, "f32": 1200, "bf16": 600, "e4m3": 300, "e2m1": 300, "hif8": 300,
        "e2m1_packed": 150, "e3m2_packed": 225, "mxfp8_e4m3": 6 * (50 + 2),
        "mxfp6_e2m3": 6 * (38 + 2), "mxfp4": 6 * (25 + 2), "nvfp4": 6 * (25 + 4) + 4,
        "tensor_e4m3": 304, "row_e2m3": 6 * (38 + 4), "column_e2m1": 6 * 25 + 200,
        "pow2_row": 600 + 12, "pow2_column": 600 + 100}
    assert {name: results[name].bytes for name in expected} == expected
    assert results["mxfp4"].bits == 8 * 162 / 300


def test_scaled_conversion_equals_the_library():
    random = np.random.default_rng(1)
    bits = random.integers(0, 2**32, (40, 96), dtype=np.uint64).astype(np.uint32)
    values = bits.view(np.float32)
    values[10:] = random.standard_normal((30, 96)) * np.exp2(random.integers(-30, 30, (30, 96)))
    values[12, 5], values[13, 40], values[14] = np.nan, -np.inf, 0
    for width in (96, 75):
        part = np.ascontiguousarray(values[:, :width])
        matrix = Matrix(ArrayTensor(part))
        found, amax = survey(matrix)
        for name in fpconv.SCHEMES:
            scaled = conversions.Scaled(fpconv.scheme(name), matrix, found, amax)
            with np.errstate(all="ignore"):
                tile = conversions.Tile(Slab(np.arange(40), 0, part), 0)
                scales = scaled.expand(scaled.scales_for(tile), tile) \
                    if scaled.scheme.scaling != "mx" else None
                if scales is None:
                    continue
                got = scaled.there_and_back(tile, scales)
            want = fpconv.dequantize(fpconv.quantize(part, name), np.float64)
            same = (got == want) | (np.isnan(got) & np.isnan(want))
            assert same.all(), (name, width, part[~same], got[~same], want[~same])


@pytest.mark.parametrize("shape, unit", [((7, 11, 70), None), ((7, 11, 70), (2, 3, 20)),
                                         ((700,), None), ((2, 900), (1, 50)), ((300, 3), None)])
def test_parts_do_not_matter(monkeypatch, shape, unit):
    random = np.random.default_rng(2)
    values = (random.standard_normal(shape) * np.exp2(random.integers(-8, 8, shape))).astype(np.float32)
    values.flat[5] = 0
    found, _, results = examine(values)
    monkeypatch.setattr(matrices, "SLAB", 256)
    monkeypatch.setattr(matrices, "TILE", 64)
    monkeypatch.setattr(matrices, "HELD", 3)
    again, _, parts = examine(values, unit=unit)
    assert (again.count, again.zeros, again.minimum, again.maximum, again.smallest) == \
        (found.count, found.zeros, found.minimum, found.maximum, found.smallest)
    assert np.array_equal(again.exponents, found.exponents)
    assert parts.keys() == results.keys()
    for name, result in results.items():
        part = parts[name]
        assert (part.worst, part.overflow, part.underflow, part.lost, part.bytes) == \
            (result.worst, result.overflow, result.underflow, result.lost, result.bytes), name
        assert part.noise == pytest.approx(result.noise, rel=1e-13), name


def test_survey_by_hand():
    values = np.array([0, -0.0, 1, -1.5, 3.99, 4, 2.0**-149, -2.0**-127, np.nan, np.inf, -np.inf], np.float32)
    found, _, _ = examine(values, [])
    assert (found.count, found.finite, found.zeros, found.nan, found.infinite) == (11, 8, 2, 1, 2)
    assert (found.minimum, found.maximum, found.smallest) == (-1.5, 4, 2.0**-149)
    assert found.below(2.0**-126) == 2  # float32's subnormals
    counts = {int(i) + LOWEST_EXPONENT: int(found.exponents[i])
              for i in found.exponents.nonzero()[0]}
    assert counts == {-149: 1, -127: 1, 0: 2, 1: 1, 2: 1}


def test_overflow_and_underflow_by_hand():
    # 464 lies half way from e4m3's 448 to what would be 480, and rounds to 448, which is even;
    # 2^-10 lies half way from 0 to the smallest value, and rounds to 0.
    values = np.array([464, -464, 464.5, -1e6, 448, 2.0**-10, -2.0**-10, 2.0**-9, 0, 0.001], np.float32)
    found, _, results = examine(values, [find_target("e4m3")], "ocp_sat")
    e4m3 = results["e4m3"]
    assert (e4m3.overflow, e4m3.underflow, e4m3.lost, e4m3.changed) == (2, 2, 0, 0)
    assert e4m3.worst == 1
    _, _, results = examine(values, [find_target("e4m3")], "ocp")
    e4m3 = results["e4m3"]
    assert (e4m3.overflow, e4m3.underflow, e4m3.lost) == (2, 2, 2)
    # without the two that became NaN
    assert e4m3.square == pytest.approx(float(np.sum(values.astype(float)[[0, 1, 4, 5, 6, 7, 9]] ** 2)))
    # HDF5 keeps the largest exponent: from 256 on all is Inf, and 255 is 240
    values = np.array([239, 255, 256, -400], np.float32)
    _, _, results = examine(values, [find_target("e4m3")], "hdf5")
    assert (results["e4m3"].overflow, results["e4m3"].lost) == (2, 2)
    assert results["e4m3"].worst == 15 / 255


def test_known_sqnr():
    # 1 + 1/16 becomes 1 in e4m3: signal 2 + 1/8 + 1/256, noise 1/256
    values = np.array([1, 1.0625], np.float32)
    _, _, results = examine(values, [find_target("e4m3")])
    assert results["e4m3"].sqnr == pytest.approx(10 * math.log10((1 + 1.0625**2) * 256))
    assert results["e4m3"].worst == pytest.approx(0.0625 / 1.0625)


def test_special_values():
    values = np.array([[1, np.nan, -2, 3, np.inf, -np.inf, 0, 5]], np.float32)
    _, _, results = examine(values)
    changed = {name: (r.lost, r.changed) for name, r in results.items()}
    assert changed["bf16"] == changed["f16"] == changed["e5m2"] == changed["hif8"] == (0, 0)
    assert changed["e4m3"] == (0, 2)  # Inf becomes NaN
    assert changed["e2m1"] == (0, 3)  # and there NaN becomes 6, too
    assert changed["mxfp4"] == (5, 2)  # NaN makes the block NaN: five finite values, and both Inf
    assert changed["pow2_row"] == (0, 0)
    assert not results["e4m3"].keeps_all and results["bf16"].keeps_all


def test_nothing_to_measure():
    for values in (np.zeros((0, 4), np.float32), np.full(3, np.nan, np.float32),
                   np.full(3, -np.inf, np.float32)):
        found, kept, results = examine(values)
        assert math.isnan(found.minimum) and math.isnan(found.smallest) and not found.exponents.any()
        assert all(math.isnan(r.sqnr) for r in results.values())
        chosen = recommend(results, Budget(decibels=20), "f32", 32)
        assert chosen.target == "keep"


def test_zeros_and_constants():
    _, kept, results = examine(np.zeros((4, 64), np.float32))
    assert all(r.sqnr == math.inf and r.worst == 0 and r.keeps_all for r in results.values())
    assert recommend(results, Budget(decibels=99), "f32", 32).target == "e2m1_packed"
    found, _, results = examine(np.full((4, 64), -3, np.float32))
    assert found.minimum == found.maximum == -3
    assert results["e2m1"].sqnr == results["mxfp4"].sqnr == math.inf


def test_scalar_and_vector():
    _, _, results = examine(np.float32(1.1))
    assert results.keys() == {*fpconv.FORMATS, *PACKED_NAMES}  # a scalar has no axis to scale along
    _, _, results = examine(np.float32([1.1, 2]))
    assert not any("column" in name for name in results) and "row_e4m3" in results


def test_wide_range_of_float64():
    for factor in (1e300, 1e-310):
        values = np.array([[1.0, -0.7, 0.3333, 1e-5]]) * factor
        found, _, results = examine(values)
        assert results["f64"].sqnr == math.inf
        assert results["bf16"].worst == (0 if factor > 1 else 1)
        assert results["bf16"].lost == (4 if factor > 1 else 0)
        assert results["mxfp8_e4m3"].overflow == (4 if factor > 1 else 0)
    values = np.array([[1.0, 1.0625]]) * 2.0**700
    _, _, results = examine(values, [find_target("f64"), find_target("hif8")])
    assert results["hif8"].overflow == 2 and results["hif8"].sqnr == pytest.approx(0, abs=1e-9)


def test_an_error_too_small_to_square_is_not_exact():
    values = np.array([[1.0, 2.0**-600]])
    _, _, results = examine(values, [find_target("e4m3")])
    assert results["e4m3"].underflow == 1 and results["e4m3"].worst == 1
    assert 3000 < results["e4m3"].sqnr < math.inf


def test_float16():
    values = np.array([65504, 6e-8, 0.1], np.float16)
    found, kept, results = examine(values.astype(np.float32), [find_target("f16"), find_target("e5m2")])
    assert results["f16"].sqnr == math.inf
    assert results["e5m2"].overflow == results["e5m2"].lost == 1  # 65504 rounds to 2^16


def test_sample_is_evenly_spaced_and_only_on_demand():
    values = np.arange(1, 100001, dtype=np.float32)
    found, kept, results = examine(values)
    assert found.count == 100000
    found, kept, sampled = examine(values, sample=5000)
    assert 4000 <= found.count <= 6000 and found.minimum < 2000 and found.maximum > 98000
    assert sampled["e4m3"].bytes == 100000  # of all values
    assert combine([sampled["bf16"]]).count == 100000
    assert sampled["bf16"].sqnr == pytest.approx(results["bf16"].sqnr, abs=0.5)
    found, _, _ = examine(values, sample=100000)
    assert found.count == 100000


def test_whole_file_adds_up():
    a, b = np.float32([[1, 1.0625]]), np.float32([[3, 3.1]])
    results = [examine(x, [find_target("e4m3")])[2]["e4m3"] for x in (a, b)]
    both = combine(results)
    error = sum(r.noise for r in results)
    signal = float(np.sum(a.astype(float) ** 2) + np.sum(b.astype(float) ** 2))
    assert both.sqnr == pytest.approx(10 * math.log10(signal / error))
    assert both.bytes == 4 and both.worst == max(r.worst for r in results)


# ---------------------------------------------------------------------------
# Recommendations
# ---------------------------------------------------------------------------


def result(bits, sqnr, lost=0):
    noise = 0.0 if sqnr == math.inf else 10 ** (-sqnr / 10)
    return Result(values=800, bytes=int(100 * bits), count=800, finite=800, noise=noise, square=1.0,
                  shift=0, worst=0.1, overflow=0, underflow=0, lost=lost, changed=0)


RESULTS = {"f32": result(32, math.inf), "bf16": result(16, 55), "e4m3": result(8, 31),
           "row_e4m3": result(8.25, 33), "e5m2": result(8, 26), "x": result(6, 40, lost=1),
           "mxfp4": result(4.25, 18)}


@pytest.mark.parametrize("budget, target", [
    ("30dB", "e4m3"), ("31.5 dB", "row_e4m3"), ("40dB", "bf16"), ("18db", "mxfp4"), ("60dB", "keep"),
    ("8bits", "e4m3"), ("8.5 bits", "row_e4m3"), ("16bits", "bf16"), ("4bit", "keep"),
    ("7bits", "mxfp4"), ("32bits", "keep")])
def test_recommendation(budget, target):
    chosen = recommend(RESULTS, parse_budget(budget), "f32", 32)
    assert chosen.target == target
    assert len(chosen.reason) > 20


def test_reasons():
    reason = recommend(RESULTS, parse_budget("30dB"), "f32", 32).reason
    assert reason == ("31.0 dB at 8 bits a value, the fewest that keep 30 dB; with fewer the best is "
                      "mxfp4 (18.0 dB, 4.25 bits) (x would turn values into Inf or NaN, or these "
                      "into others)")
    reason = recommend(RESULTS, parse_budget("8bits"), "f32", 32).reason
    assert reason.startswith("31.0 dB at 8 bits a value, the highest SQNR within 8 bits; "
                             "next is e5m2 (26.0 dB, 8 bits)")
    assert "keeps 60 dB; the best is bf16" in recommend(RESULTS, parse_budget("60dB"), "f32", 32).reason


@pytest.mark.parametrize("text", ["40", "dB", "-3dB", "40 dBm", "8 bytes", ""])
def test_wrong_budget(text):
    with pytest.raises(Exception, match="budget"):
        parse_budget(text)


@pytest.mark.parametrize("path", ["/a/b", "/a*b/c?d", "/[x]/y", "/with blank/#1", "/tail ", "/\udcff",
                                  "/new\nline", "/[!a]", "/a]b"])
def test_map_patterns_fit_their_paths_only(path, tmp_path):
    pattern = pattern_of(path)
    assert matches(path, [pattern])
    assert not matches(path + "x", [pattern]) and not matches("/z" + path[1:], [pattern])
    assert not matches("/q" + path, [pattern])
    assert "#" not in pattern and pattern == pattern.strip() and "\n" not in pattern
    pattern.encode()


def test_map_has_exact_paths_first():
    text = map_text([("/a#b", Recommendation("e4m3", "")), ("/aXb", Recommendation("bf16", ""))], ["c"])
    assert text == "# c\n/aXb bf16\n/a?b e4m3\n"


# ---------------------------------------------------------------------------
# The command
# ---------------------------------------------------------------------------


def h5fpconv(*arguments, status=0):
    """Runs the command; its standard output."""
    done = subprocess.run([sys.executable, "-m", "h5fpconv", *map(str, arguments)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if status == 0 else done.stderr


def inspect_json(*arguments):
    return json.loads(h5fpconv("inspect", *arguments, "--json"))


@pytest.fixture
def model(tmp_path):
    """A file with all kinds of datasets."""
    path = tmp_path / "model.h5"
    random = np.random.default_rng(3)
    with h5py.File(path, "w") as file:
        file["encoder/weight"] = random.standard_normal((64, 96)).astype(np.float32)
        file["encoder/bias"] = random.standard_normal(64).astype(np.float32)
        file.create_dataset("chunked", data=random.standard_normal((70, 50)), chunks=(16, 20),
                            compression="gzip")
        file["half"] = random.standard_normal((8, 33)).astype(np.float16)
        file["big_endian"] = np.array([1, 2.5], ">f4")
        file["scalar"] = np.float32(0.1)
        file["empty"] = np.zeros((0, 3), np.float32)
        file["nothing"] = h5py.Empty("f4")
        file["zeros"] = np.zeros((4, 32), np.float32)
        file["nan"] = np.full(5, np.nan, np.float32)
        file["counts"] = np.arange(10)
        file["text"] = "abc"
        file["record"] = np.zeros(3, [("a", "f4")])
        file["same"] = file["encoder/bias"]
        kind = fpconv.h5.dtype("e4m3")
        dataset = h5py.h5d.create(file.id, b"narrow", kind.id, h5py.h5s.create_simple((16,)))
        codes = np.arange(0x38, 0x48, dtype=np.uint8)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, codes, mtype=kind.id)
    return path


def test_which_datasets(model):
    report = inspect_json(model)
    by_name = {d["name"]: d for d in report["datasets"]}
    assert by_name.keys() >= {"/encoder/weight", "/chunked", "/half", "/big_endian", "/scalar",
                              "/empty", "/zeros", "/nan", "/narrow"}
    assert len(by_name) == 10
    assert set(report["skipped"]) == {"/counts", "/text", "/record", "/nothing"}
    bias = next(d for d in report["datasets"] if "bias" in " ".join([d["name"], *d["other_names"]]))
    assert {bias["name"], *bias["other_names"]} == {"/same", "/encoder/bias"}
    assert [by_name[n]["stored"] for n in ("/chunked", "/half", "/narrow")] == ["f64", "f16", "e4m3"]
    assert by_name["/big_endian"]["maximum"] == 2.5
    assert by_name["/narrow"]["minimum"] == 1 and by_name["/narrow"]["maximum"] == 3.75
    assert by_name["/narrow"]["results"]["e4m3"]["exact"] is True
    assert by_name["/empty"]["results"]["e4m3"]["sqnr_db"] is None
    assert by_name["/nan"]["nan"] == 1 and by_name["/zeros"]["zeros"] == 1
    assert set(by_name["/scalar"]["impossible"]) == set(fpconv.SCHEMES)
    weight = by_name["/encoder/weight"]
    with h5py.File(model) as file:
        values = file["encoder/weight"][...].astype(np.float64)
    stored = fpconv.decode(fpconv.encode(values, "e2m3"), "e2m3", np.float64)
    expected = 10 * np.log10(np.sum(values**2) / np.sum((stored - values) ** 2))
    assert weight["results"]["e2m3"]["sqnr_db"] == pytest.approx(expected)
    assert weight["results"]["e2m3_packed"]["bytes"] == 64 * 96 * 6 // 8


def test_selection(model):
    names = {d["name"] for d in inspect_json(model, "--only", "/encoder/*", "--skip", "bias")["datasets"]}
    assert names == {"/encoder/weight"}
    names = {d["name"] for d in inspect_json(model, "--min-size", "10K")["datasets"]}
    assert names == {"/encoder/weight", "/chunked"}
    report = inspect_json(model, "--to", "bf16", "--to", "mxfp4", "--only", "/half")
    assert report["datasets"][0]["results"].keys() == {"bf16", "mxfp4"}
    assert "no float dataset" in subprocess.run(
        [sys.executable, "-m", "h5fpconv", "inspect", model, "--only", "none"],
        capture_output=True, text=True, check=True).stderr


def test_scale_rule(model):
    floor = inspect_json(model, "--only", "/encoder/weight")["datasets"][0]["results"]["mxfp8_e4m3"]
    ceil = inspect_json(model, "--only", "/encoder/weight", "--scale", "ceil")["datasets"][0]
    assert floor["overflow"] > 0 and ceil["results"]["mxfp8_e4m3"]["overflow"] == 0


@pytest.mark.parametrize("budget", ["30dB", "6bits", "100dB"])
def test_inspect_then_convert(model, tmp_path, budget):
    """What inspect promises is what convert writes."""
    report = inspect_json(model, "--budget", budget, "--map", tmp_path / "map")
    h5fpconv("convert", model, tmp_path / "small.h5", "--map", tmp_path / "map")
    h5fpconv("back", tmp_path / "small.h5", tmp_path / "back.h5", "--to", "f64")
    now = {d["name"]: d for d in inspect_json(tmp_path / "small.h5")["datasets"]}
    targets = set()
    with h5py.File(model) as old, h5py.File(tmp_path / "back.h5") as new:
        for dataset in report["datasets"]:
            name, chosen = dataset["name"], dataset["recommendation"]["target"]
            assert dataset["recommendation"]["reason"]
            if chosen == "keep":
                assert now[name]["stored"] == dataset["stored"]
                continue
            targets.add(chosen)
            assert now[name]["stored"] == chosen.removesuffix("_packed")
            assert now[name]["bytes"] == dataset["results"][chosen]["bytes"] or "_packed" in chosen
            if name == "/narrow":
                continue  # h5py has no type for it
            x, y = (f[name][...].astype(np.float64) for f in (old, new))
            promised = dataset["results"][chosen]
            noise = float(np.sum((y - x) ** 2))
            assert (noise == 0) == promised["exact"]
            if noise:
                sqnr = 10 * math.log10(float(np.sum(x**2)) / noise)
                assert sqnr == pytest.approx(promised["sqnr_db"], abs=1e-6)
    assert len(targets) >= 1


def test_scaled_group_is_inspected_and_kept(model, tmp_path):
    h5fpconv("convert", model, tmp_path / "small.h5", "--to", "mxfp4", "--only", "/encoder/weight")
    report = inspect_json(tmp_path / "small.h5", "--only", "/encoder/weight", "--budget", "5dB")
    (weight,) = report["datasets"]
    assert weight["stored"] == "mxfp4" and weight["bits"] == 4.25 and weight["shape"] == [64, 96]
    assert weight["results"]["mxfp4"]["exact"] and weight["recommendation"]["target"] == "keep"
    assert "scaled already" in weight["recommendation"]["reason"]


def test_terminal(model):
    text = h5fpconv("inspect", model, "--budget", "30dB", "--only", "/encoder/weight")
    assert "/encoder/weight: 64 × 96, f32, 24.0 KiB" in text
    assert "█" in text and "━" in text and "recommended: " in text and "whole file: 1 dataset" in text
    for name in TARGET_NAMES:
        assert f" {name} " in text
    summary = h5fpconv("inspect", model, "--summary")
    assert "magnitudes" in summary and len(summary) < 12000
    assert h5fpconv("inspect", model, "--quiet") == ""


@pytest.mark.parametrize("columns", [40, 80])
def test_terminal_of_few_columns(model, columns):
    """No column is left out, however narrow the terminal is."""
    code = ("import os, pty, sys, fcntl, termios, struct\n"
            "fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 24, int(sys.argv[1]), 0, 0))\n"
            "os.execv(sys.executable, [sys.executable, '-m', 'h5fpconv', *sys.argv[2:]])")
    output = b""
    leader, follower = pty.openpty()
    command = [sys.executable, "-c", code, str(columns), "inspect", str(model), "--only", "/half"]
    with subprocess.Popen(command, stdin=follower, stdout=follower, stderr=subprocess.DEVNULL,
                          env={**os.environ, "TERM": "dumb", "COLUMNS": ""}) as process:
        os.close(follower)
        try:
            while part := os.read(leader, 65536):
                output += part
        except OSError:  # the other end is closed
            pass
    os.close(leader)
    assert process.returncode == 0
    lines = output.decode().splitlines()
    for name in TARGET_NAMES:
        assert any(line.split()[:1] == [name] and len(line.split()) >= 7 for line in lines), name
    assert columns < 80 or max(map(len, lines)) <= 80


def test_histogram_by_hand():
    found, _, _ = examine(np.float32([0.25, 1, 1.5, 1, 1, 2, 3]), [])
    lines = histogram(found)
    # 1, 0, 4 and 2 values: a quarter, nothing, all and half of four lines
    assert lines[:4] == ["      █", "      █", "      ██", "    █ ██"]
    assert lines[4].split() == ["2^-2", "2^1", "magnitude"]
    assert next(line for line in lines if "e2m1" in line) == "     ╌━━  e2m1"


def test_terminal_without_block_characters(model):
    done = subprocess.run([sys.executable, "-m", "h5fpconv", "inspect", model, "--only", "/half"],
                          capture_output=True, check=True,
                          env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert b"8 x 33" in done.stdout and b"#" in done.stdout


def test_errors(model, tmp_path):
    assert "needs a --budget" in h5fpconv("inspect", model, "--map", tmp_path / "m", status=2)
    before = model.read_bytes()
    assert "is the input" in h5fpconv("inspect", model, "--html", model, status=2)
    assert model.read_bytes() == before
    h5fpconv("inspect", model, "--html", tmp_path / "no" / "page.html", status=4)
    h5fpconv("inspect", tmp_path / "none.h5", status=3)
    h5fpconv("inspect", model, "--budget", "8 apples", status=2)
    h5fpconv("inspect", model, "--sample", "0", status=2)
    (tmp_path / "text.h5").write_text("no HDF5")
    h5fpconv("inspect", tmp_path / "text.h5", status=3)


def test_damaged_chunk(tmp_path):
    path = tmp_path / "damaged.h5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("x", data=np.arange(4096, dtype=np.float32), chunks=(4096,),
                                      compression="gzip", fletcher32=True)
        where = dataset.id.get_chunk_info(0)
    data = bytearray(path.read_bytes())
    data[where.byte_offset + 20] ^= 0xff
    path.write_bytes(data)
    assert "/x" in h5fpconv("inspect", path, status=3)
