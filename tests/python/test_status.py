"""Each exit status of h5fpconv occurs, as its table says.

SPDX-License-Identifier: MIT
"""
import pathlib
import signal
import subprocess
import sys
import time

import h5py
import numpy
import pytest

from h5fpconv.safetensors import make_header
from h5fpconv.status import Status

H5FPCONV = [sys.executable, "-m", "h5fpconv"]


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    for name, value in (("a.h5", 1), ("b.h5", 2)):
        with h5py.File(tmp_path / name, "w") as file:
            file["x"] = numpy.full(4, value, "f4")
    return tmp_path


def run(folder: pathlib.Path, line: str) -> Status:
    done = subprocess.run([*H5FPCONV, *line.split()], cwd=folder, capture_output=True, text=True,
                          timeout=100)
    assert "Traceback" not in done.stderr
    # An error has its line, beginning with the command's name; success has none.
    is_error = done.returncode not in (Status.OK, Status.DIFFERENT)
    assert ("h5fpconv" in done.stderr) == is_error
    return Status(done.returncode)


@pytest.mark.parametrize("line, status", [
    ("convert a.h5 out.h5 --to bf16", Status.OK),
    ("diff a.h5 a.h5", Status.OK),
    ("--version", Status.OK),
    ("convert --help", Status.OK),
    ("diff a.h5 b.h5", Status.DIFFERENT),
    ("convert a.h5 out.h5 --to f17", Status.USAGE),
    ("convert a.h5 a.h5 --to bf16", Status.USAGE),
    ("unknown", Status.USAGE),
    ("convert missing.h5 out.h5 --to bf16", Status.INPUT),
    ("import a.h5 out.h5", Status.INPUT),
    ("convert a.h5 missing/out.h5 --to bf16", Status.OUTPUT),
    ("export a.h5 /proc/out", Status.OUTPUT),
])
def test_status(folder: pathlib.Path, line: str, status: Status) -> None:
    assert run(folder, line) == status
    assert (folder / "out.h5").exists() == (status == Status.OK and "out.h5" in line)


@pytest.mark.parametrize("number, status", [(signal.SIGINT, Status.INTERRUPTED),
                                            (signal.SIGTERM, Status.TERMINATED)])
def test_status_after_a_signal(folder: pathlib.Path, number: signal.Signals,
                               status: Status) -> None:
    header, contents = make_header([("large", "F32", (1 << 30,))], None)
    with open(folder / "large", "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(contents.data_start + (4 << 30))  # a hole, on the disk
    before = set(folder.iterdir())
    with subprocess.Popen([*H5FPCONV, "import", "large", "out.h5"], cwd=folder,
                          stderr=subprocess.PIPE, text=True) as process:
        while set(folder.iterdir()) == before:
            assert process.poll() is None
            time.sleep(0.001)
        process.send_signal(number)
        _, error = process.communicate(timeout=60)
    assert process.returncode == status
    assert error.startswith("h5fpconv: ") and error.count("\n") == 1
    assert set(folder.iterdir()) == before
