"""The examples in docs/python.md, and the README's five lines from numpy to stored FP8

SPDX-License-Identifier: MIT
"""
import doctest
import os
import pathlib
import re

import exact
import h5py
import numpy
from h5py import h5s

SOURCE = pathlib.Path(os.environ["FPCONV_TEST_SOURCE"])


def test_python_md():
    result = doctest.testfile(str(SOURCE / "docs/python.md"), module_relative=False)
    assert result.failed == 0 and result.attempted > 20


def test_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    section = (SOURCE / "README.md").read_text().split("## From Python\n")[1].split("\n## ")[0]
    code = re.search("```python\n(.*?)```", section, re.DOTALL)[1]
    assert len(code.strip().splitlines()) == 5
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    x = names["weights"]
    want = numpy.array([exact.encode("e4m3", float(v)) for v in x.ravel()], numpy.uint8).reshape(x.shape)
    with h5py.File(tmp_path / "weights.h5") as file:
        dataset = file["weights"].id
        codes = numpy.zeros(x.shape, numpy.uint8)
        dataset.read(h5s.ALL, h5s.ALL, codes, dataset.get_type())
    numpy.testing.assert_array_equal(codes, want)
    assert names["restored"].dtype == numpy.float32
    numpy.testing.assert_array_equal(
        names["restored"].ravel(), [exact.decode("e4m3", int(code)) for code in want.ravel()])
