"""h5fpconv diff against numpy, and what it returns to a script.

SPDX-License-Identifier: MIT
"""
import json
import math

import fpconv
import fpconv.h5
import h5py
import numpy
import pytest
import specimens
from command import converted, errors, run


def write(path, **datasets):
    with h5py.File(path, "w") as file:
        for name, values in datasets.items():
            file[name] = values
    return path


@pytest.fixture
def pair(tmp_path):
    """Two files with one dataset each, and what diff says about them."""

    def compare(a, b, *options, status: int = 1) -> dict:
        paths = write(tmp_path / "a.h5", w=a), write(tmp_path / "b.h5", w=b)
        found = json.loads(run("diff", *paths, "--json", *options, status=status))
        assert found["equal_within_bounds"] is (status == 0)
        return found

    return compare


def test_measures(pair):
    """In numpy, in long double: another way to the same figures."""
    random = numpy.random.default_rng(1)
    a = random.standard_normal((40, 50)).astype("f4")
    b = (a * (1 + random.standard_normal(a.shape) / 1e4)).astype("f4")
    b[3, 7] += 0.5
    found = pair(a, b)["datasets"][0]
    x, y = a.astype(numpy.longdouble), b.astype(numpy.longdouble)
    error = abs(y - x)
    assert found["max_abs"] == pytest.approx(float(error.max()), rel=1e-12)
    assert found["max_rel"] == pytest.approx(float((error / abs(x)).max()), rel=1e-12)
    assert found["rms"] == pytest.approx(float((error**2).mean()) ** 0.5, rel=1e-9)
    assert found["sqnr"] == pytest.approx(10 * math.log10((x**2).sum() / (error**2).sum()), rel=1e-9)
    assert found["where"] == [3, 7] and found["values"] == 2000
    assert found["different"] == int((a != b).sum())
    ulps = (error / numpy.spacing(abs(a))).max()
    assert found["ulps_of"] == "f32" and found["max_ulps"] == pytest.approx(float(ulps), rel=1e-12)


def test_equal_files(pair):
    values = numpy.array([1, -0.0, numpy.nan, numpy.inf, -numpy.inf, 1e-45], "f4")
    found = pair(values, values.astype("f8"), status=0)["datasets"][0]
    assert (found["max_abs"], found["max_rel"], found["rms"], found["different"]) == (0, 0, 0, 0)
    assert found["sqnr"] is None  # infinite, which JSON lacks
    pair(numpy.float32([0.0]), numpy.float32([-0.0]), status=0)


@pytest.mark.parametrize("a, b", [(1, numpy.nan), (numpy.nan, 1), (numpy.inf, -numpy.inf), (1e30, numpy.inf)])
def test_nan_and_inf_always_count(pair, a, b):
    bounds = ["--atol", "1e39", "--rtol", "1", "--max-ulps", "1e30", "--min-sqnr=-100"]
    found = pair(numpy.float32([5, a, 5]), numpy.float32([5, b, 5]), *bounds)["datasets"][0]
    assert found["nonfinite_different"] == 1 and found["where"] == [1]


@pytest.mark.parametrize("format", [f for f in fpconv.FORMATS if f not in ("f64", "f32", "hif8")])
def test_half_an_ulp_is_correct_rounding(tmp_path, format):
    """Of the coarser format, subnormals and all; one code further is more."""
    info = fpconv.format_info(format)
    random = numpy.random.default_rng(2)
    magnitudes = 2.0 ** random.uniform(math.log2(info.smallest_subnormal) - 2, math.log2(info.max), 4000)
    values = (magnitudes * random.choice([-1, 1], 4000)).astype("f4")
    source, output = write(tmp_path / "a.h5", w=values), tmp_path / "b.h5"
    run("convert", source, output, "--to", format)
    found = json.loads(run("diff", source, output, "--max-ulps", "0.5", "--json"))["datasets"][0]
    assert found["ulps_of"] == format and 0.4 < found["max_ulps"] <= 0.5
    codes = fpconv.encode(values, format)
    codes[index_in_the_middle(values, info)] += 1
    write(output, w=fpconv.decode(codes, format))
    with h5py.File(output, "r+") as file:
        del file["w"]
        data = h5py.h5d.create(file.id, b"w", fpconv.h5.dtype(format).id, h5py.h5s.create_simple((4000,)))
        data.write(h5py.h5s.ALL, h5py.h5s.ALL, codes, mtype=data.get_type())
    run("diff", source, output, "--max-ulps", "0.5", status=1)


def index_in_the_middle(values, info) -> int:
    """A value in the middle of the format's range, whose next code is a number too."""
    return int(numpy.argmin(abs(abs(values) - info.smallest_normal * 1.2)))


def test_bounds(pair):
    a = numpy.float32([1, 2, 4, 1000])
    b = numpy.float32([1.01, 2, 4, 1001])
    for options, status in ((["--rtol", "0.011"], 0), (["--rtol", "0.005"], 1), (["--atol", "1"], 0),
                            (["--atol", "0.5"], 1), (["--atol", "0.01", "--rtol", "0.001"], 0),
                            (["--min-sqnr", "59"], 0), (["--min-sqnr", "61"], 1), (["--max-rms", "0.51"], 0),
                            (["--max-rms", "0.49"], 1), (["--max-ulps", "2e5"], 0), (["--max-ulps", "1e3"], 1)):
        pair(a, b, *options, status=status)


def test_every_format_against_the_original(tmp_path):
    """Scaled groups and packed datasets are compared by their values."""
    specimens.network(str(tmp_path / "a.h5"))
    for target, least in (("bf16", 54), ("e4m3", 20), ("e2m1_packed", -1), ("mxfp8_e4m3", 28), ("nvfp4", 15),
                          ("row_e4m3", 28), ("pow2_row", 60), ("hif8", 24)):
        run("convert", tmp_path / "a.h5", tmp_path / "b.h5", "--to", target)
        found = json.loads(run("diff", tmp_path / "a.h5", tmp_path / "b.h5", "--json",
                               f"--min-sqnr={least}"))
        assert len(found["datasets"]) == 8 and not found["structure"]
        with h5py.File(tmp_path / "a.h5") as file:
            for entry in found["datasets"]:
                values = file[entry["dataset"]][...].astype("f8")
                back = values_of(file[entry["dataset"]][...], target)
                noise = numpy.square(values - back).sum()
                assert entry["sqnr"] == pytest.approx(10 * math.log10(numpy.square(values).sum() / noise))


def values_of(values, target):
    return converted(values.astype("f4") if target in fpconv.SCHEMES else values, target).astype("f8")


def test_structure(tmp_path):
    a = write(tmp_path / "a.h5", same=numpy.ones(3, "f4"), only_a=1.0, shape=numpy.ones(4), kind=numpy.ones(2),
              whole=numpy.arange(4), text="x")
    b = write(tmp_path / "b.h5", same=numpy.ones(3), only_b=1.0, shape=numpy.ones(5), kind=numpy.ones(2, "i4"),
              whole=numpy.arange(4) * 2, text="x")
    found = json.loads(run("diff", a, b, "--json", status=1))
    assert sorted(line.split(":")[0] for line in found["structure"]) == \
        ["/kind", "/only_a", "/only_b", "/shape", "/whole"]
    assert [e["dataset"] for e in found["datasets"]] == ["/same"]
    run("diff", a, b, "--only", "/same", status=0)
    run("diff", a, b, "--skip", "only_*", "--skip", "shape", "--skip", "kind", "--skip", "whole", status=0)
    text = run("diff", a, b, status=1)
    assert "/only_a: in a only" in text and "the files differ" in text
    assert run("diff", a, b, "--quiet", status=1) == ""


def test_large_tensors_in_several_boxes(pair):
    """The index of the largest error, and sums, over the borders of boxes."""
    a = numpy.ones((3, 700_001), "f4")
    b = a.copy()
    b[2, 699_999] = 3
    b[0, 5] = 2.5
    found = pair(a, b)["datasets"][0]
    assert found["where"] == [2, 699_999] and found["max_abs"] == 2 and found["different"] == 2
    assert found["rms"] == pytest.approx(math.sqrt((4 + 2.25) / a.size))


def test_scalars_and_empty(pair):
    assert pair(numpy.float32(2), numpy.float32(3))["datasets"][0]["where"] == []
    assert pair(numpy.zeros((0, 3), "f4"), numpy.zeros((0, 3)), status=0)["datasets"][0]["values"] == 0


@pytest.mark.parametrize("scale", [1e300, 1e-300, 5e-324])
def test_squares_beyond_float64(pair, scale):
    """Noise that float64 cannot square is neither infinite nor nothing."""
    a = numpy.array([1000, -2000, 3000]) * scale
    b = numpy.array([1000, -2010, 3000]) * scale
    options = ("--min-sqnr", "60")
    found = pair(a, b, *options)["datasets"][0]
    assert found["rms"] == pytest.approx(10 * scale / 3**0.5, rel=1e-9)
    assert found["sqnr"] == pytest.approx(10 * math.log10(14e6 / 100), rel=1e-9)
    assert found["violations"] == [f"SQNR {found['sqnr']:.6g}, the bound is 60"]
    pair(a, b, "--min-sqnr", "50", status=0)


def test_difference_beyond_float64(pair):
    found = pair(numpy.array([1.7e308, 1]), numpy.array([-1.7e308, 1]), "--min-sqnr", "0")["datasets"][0]
    assert found["where"] == [0] and found["violations"] == ["SQNR -inf, the bound is 0"]


def test_nothing_on_standard_error(tmp_path):
    """numpy does not warn about the values that diff is there to find."""
    a = numpy.array([0x7f800001, 0x7f7fffff, 0, 1], "u4").view("f4")
    paths = write(tmp_path / "a.h5", w=a, d=numpy.array([1e308, -1e308])), \
        write(tmp_path / "b.h5", w=a[::-1], d=numpy.array([-1e308, 1e308]))
    assert errors("diff", *paths, status=1) == ""


@pytest.mark.parametrize("option", ["--atol", "--rtol", "--max-ulps", "--max-rms", "--min-sqnr"])
def test_bounds_that_are_none(option):
    for value in ("nan", "x"):
        assert "is not a number" in errors("diff", "a.h5", "b.h5", f"{option}={value}", status=2)
    if option != "--min-sqnr":
        assert "is negative" in errors("diff", "a.h5", "b.h5", f"{option}=-1", status=2)
