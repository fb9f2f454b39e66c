"""Each exit status of h5fpconv occurs, as its table says.

SPDX-License-Identifier: MIT
"""
import os
import pathlib
import signal
import subprocess
import sys
import time

import h5py
import numpy
import pytest

from h5fpconv.safetensors.file import make_header
from h5fpconv.user.status import Status

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


RESULTS = ("convert a.h5 out.h5 --to bf16", "convert a.h5 out.h5 --to bf16 --json", "inspect a.h5",
           "diff a.h5 b.h5", "convert --help", "--version")


@pytest.mark.parametrize("line", RESULTS)
def test_no_room_for_the_result(folder: pathlib.Path, line: str) -> None:
    """Whatever is printed: one line of error, and the file that was asked for."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([*H5FPCONV, *line.split()], cwd=folder, stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=100)
    assert done.stderr == "h5fpconv: cannot print the result: No space left on device\n"
    assert done.returncode == Status.OUTPUT
    assert (folder / "out.h5").exists() == ("out.h5" in line)


@pytest.mark.parametrize("line", RESULTS)
def test_nobody_reads_the_result(folder: pathlib.Path, line: str) -> None:
    """As with `| head -1`: nothing is said about it."""
    with subprocess.Popen([*H5FPCONV, *line.split()], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        process.stdout = None
        _, error = process.communicate(timeout=100)
    assert (process.returncode, error) == (Status.READER_GONE, "")
    assert (folder / "out.h5").exists() == ("out.h5" in line)


@pytest.mark.parametrize("line", ["convert a.h5 out.h5 --to bf16", "inspect a.h5", "diff a.h5 b.h5"])
def test_without_standard_output(folder: pathlib.Path, line: str) -> None:
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *H5FPCONV, *line.split()], cwd=folder,
                          stderr=subprocess.PIPE, text=True, timeout=100)
    assert done.stderr == ""
    assert done.returncode == (Status.DIFFERENT if line.startswith("diff") else Status.OK)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
@pytest.mark.parametrize("command", ["convert {} out.h5 --to bf16", "inspect {}",
                                     "inspect --summary {}", "diff {} a.h5"])
def test_names_for_a_terminal(folder: pathlib.Path, command: str, encoding: str) -> None:
    """Names with what a terminal obeys, is no UTF-8, or an encoding lacks, are all printed."""
    with h5py.File(folder / "names.h5", "w") as file:
        for name in (b"red\x1b[31m", b"return\rx", b"bad\xff", "na\u00efve".encode(),
                     "\u65e5\u672c".encode(), b"[bold]x"):
            file["x"] = numpy.arange(4, dtype="f4")
            file.id.links.move(b"x", file.id, name)
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([*H5FPCONV, *command.format("names.h5").split()], cwd=folder,
                          capture_output=True, timeout=100, env=environment)
    assert (done.returncode, done.stderr) == (int(command.startswith("diff")), b"")
    said = done.stdout.decode(encoding)
    assert not set(map(chr, range(32))) & set(said) - {"\n"}
    assert r"/red\x1b[31m" in said and r"/return\rx" in said and r"/bad\xff" in said
    assert ("/na\u00efve" if encoding != "ascii" else r"/na\xefve") in said
    assert ("/\u65e5\u672c" if encoding == "utf-8" else r"/\u65e5\u672c") in said
    assert "/[bold]x" in said
