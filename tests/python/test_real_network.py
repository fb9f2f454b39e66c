"""A real network's weights through convert, back, diff, export and import.

SPDX-License-Identifier: MIT

meson setup -Dnetwork=FILE.h5 names the file; without it this is no test.
"""
import json
import os

import fpconv
import h5py
import numpy
import pytest
from command import converted, run, tool
from h5fpconv.user.targets import TARGET_NAMES

NETWORK = os.environ["FPCONV_TEST_NETWORK"]


@pytest.fixture(scope="module")
def weights() -> dict[str, numpy.ndarray]:
    found = {}
    with h5py.File(NETWORK) as file:
        file.visititems(lambda name, item: found.update({"/" + name: item[...]})
                        if isinstance(item, h5py.Dataset) else None)
    assert found
    return found


@pytest.mark.parametrize("target", TARGET_NAMES)
def test_there_and_back(weights, tmp_path, target):
    """Every value is the library's, and diff finds the figures that numpy does."""
    output, wide = tmp_path / "out.h5", tmp_path / "wide.h5"
    run("convert", NETWORK, output, "--to", target)
    run("back", output, wide)
    wanted = {name: converted(values, target) for name, values in weights.items()}
    with h5py.File(wide) as file:
        for name, values in wanted.items():
            assert numpy.array_equal(file[name][...], values), name
    run("diff", output, wide)
    found = json.loads(run("diff", NETWORK, output, "--json", "--min-sqnr=-100"))
    for entry in found["datasets"]:
        values = weights[entry["dataset"]].astype("f8")
        error = numpy.abs(values - wanted[entry["dataset"]])
        assert entry["max_abs"] == error.max() and entry["values"] == values.size
        assert entry["rms"] == pytest.approx(float(numpy.sqrt(numpy.square(error).mean())))


@pytest.mark.parametrize("format", [f for f in fpconv.FORMATS if f != "hif8"])
def test_plain_formats_are_rounded_correctly(weights, tmp_path, format):
    """To half a ULP; but where weights are beyond the format's range, which diff says."""
    output = tmp_path / "out.h5"
    run("convert", NETWORK, output, "--to", format, "--policy", "ocp_sat")
    is_within = max(abs(w).max() for w in weights.values()) <= fpconv.format_info(format).max
    run("diff", NETWORK, output, "--max-ulps", "0.5", status=0 if is_within else 1)


def test_out_to_safetensors_and_back(weights, tmp_path):
    """With h5diff and every value's bits."""
    model, back = tmp_path / "model.safetensors", tmp_path / "back.h5"
    run("export", "--quiet", NETWORK, model)
    run("import", "--quiet", model, back)
    assert tool("h5diff", "--exclude-attribute", "/", NETWORK, back) == ""
    with h5py.File(back) as file:
        for name, values in weights.items():
            assert file[name].dtype == values.dtype and file[name][...].tobytes() == values.tobytes()
