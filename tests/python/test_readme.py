"""The commands of the README's section "From a file", run as they are shown.

SPDX-License-Identifier: MIT
"""
import os
import pathlib
import re
import subprocess
import sys

import fpconv.h5
import h5py
import numpy
import pytest

README = pathlib.Path(__file__).parents[2] / "README.md"


def commands_of(section: str) -> list[str]:
    """The section's lines of indented code."""
    text = README.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"^ {4}(h5fpconv .*)$", text, re.MULTILINE)


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """With an in.h5, and with h5fpconv as an installed command."""
    rng = numpy.random.default_rng(6)
    with h5py.File(tmp_path / "in.h5", "w") as file:
        for i in range(3):
            weight = rng.normal(0, 0.05 * (i + 1), (256, 96)).astype("f4")
            file.create_dataset(f"layer/{i}/weight", data=weight, chunks=(64, 96))
            file[f"layer/{i}/bias"] = rng.normal(0, 0.01, 64).astype("f4")
            file[f"layer/{i}"].attrs["name"] = f"layer {i}"
        file["steps"] = 12
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "h5fpconv"
    command.write_text(f"#!/bin/sh\nexec {sys.executable} -m h5fpconv \"$@\"\n")
    command.chmod(0o755)
    return tmp_path


def test_from_a_file(folder: pathlib.Path) -> None:
    lines = commands_of("From a file")
    assert len(lines) == 4
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    shown = []
    for line in lines:
        done = subprocess.run(["sh", "-c", line], cwd=folder, env=environment, timeout=100,
                              capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), line
        shown.append(done.stdout)
    assert "recommended" in shown[0] and (folder / "in.map").stat().st_size > 0
    assert "no difference beyond the bounds" in shown[2]
    assert "<html" in (folder / "report.html").read_text(encoding="utf-8")
    with h5py.File(folder / "in.h5") as old, h5py.File(folder / "out.h5") as new:
        assert new["steps"][()] == 12 and new["layer/2"].attrs["name"] == "layer 2"
        kept = [name for name in ("layer/0/weight", "layer/0/bias")
                if isinstance(new[name], h5py.Dataset) and fpconv.h5.format_of(new[name]) == "f32"]
        assert kept == [], "30 dB take fewer than 32 bits"
        assert old["layer/0/weight"].dtype == "f4"
    assert (folder / "out.h5").stat().st_size < (folder / "in.h5").stat().st_size / 2
