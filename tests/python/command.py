"""How the tests run h5fpconv and read what it made

SPDX-License-Identifier: MIT
"""
import contextlib
import io
import re
import subprocess
import sys

import fpconv
import numpy
from h5fpconv.cli import main

PROGRAM = [sys.executable, "-m", "h5fpconv"]


def run(*arguments, status: int = 0) -> str:
    """Runs a command in this process; what it printed to standard output."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            returned = main([str(a) for a in arguments])
        except SystemExit as ended:  # argparse
            returned = ended.code
    assert returned == status, f"{arguments} ended with {returned}: {err.getvalue()}"
    return out.getvalue()


def errors(*arguments, status: int) -> str:
    """Runs a command that fails; what it said."""
    done = subprocess.run([*PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, f"{arguments} ended with {done.returncode}: {done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done.stderr


def tool(*command, statuses: tuple[int, ...] = (0,)) -> str:
    """Runs one of HDF5's tools; what it printed."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120,
                          errors="replace")
    assert done.returncode in statuses, \
        f"{command} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr}"
    return done.stdout


def dump(path, *options) -> str:
    """h5dump's text without what is allowed to differ: the file's name, and addresses.

    h5dump ends with 1 where it lacks a filter; it prints all the rest.
    """
    text = tool("h5dump", *options, path, statuses=(0, 1)).split("\n", 1)[1]
    assert len(text) > 100, text
    text = text.replace(str(path), "")  # which 2.x puts before what a reference points to
    text = re.sub(r"(GROUP|DATASET|DATATYPE) \d+ ", r"\1 ", text)
    return re.sub(r'OFFSET \d+|"/?#[0-9:]+"', "-", text)


def converted(values: numpy.ndarray, target: str) -> numpy.ndarray:
    """What values are after the way to a target and back, by the library."""
    if target in fpconv.SCHEMES:
        return fpconv.dequantize(fpconv.quantize(values, target), values.dtype)
    format = target.removesuffix("_packed")
    return fpconv.decode(fpconv.encode(values, format), format, values.dtype)
