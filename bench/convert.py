#!/usr/bin/env python3
"""How long `h5fpconv convert` takes, against h5repack copying a file of the output's size

SPDX-License-Identifier: MIT

Makes a float32 file in a folder (--folder, /dev/shm by default), and one of half its
size.  Runs are interleaved, and the shortest of each counts: other programs on the
machine only ever add to a time.  Ends with 1 if the ratio is above the bound.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import time

import h5py
import numpy

PIECE = 1 << 24


def make(path: pathlib.Path, size: int) -> None:
    """A file of four float32 datasets, `size` bytes together."""
    values = numpy.random.default_rng(1).standard_normal(PIECE, "f4")
    count = size // 4 // 4
    with h5py.File(path, "w") as file:
        for i in range(4):
            data = file.create_dataset(f"weight{i}", (count,), "f4")
            for start in range(0, count, PIECE):
                data[start:start + PIECE] = values[:count - start]


def seconds(command: list[str], output: pathlib.Path) -> float:
    output.unlink(missing_ok=True)
    start = time.monotonic()
    subprocess.run(command, check=True)
    return time.monotonic() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--folder", default="/dev/shm", help="where the files are made")
    parser.add_argument("--gib", type=float, default=2, help="size of the float32 file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bound", type=float, default=1.5, help="the ratio that is allowed")
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.folder)
    wide, half, output = (folder / f"fpconv-bench-{os.getpid()}-{name}.h5" for name in ("in", "half", "out"))
    size = int(arguments.gib * (1 << 30))
    commands = {
        "h5repack": ["h5repack", str(half), str(output)],
        "convert": [sys.executable, "-m", "h5fpconv", "convert", str(wide), str(output), "--to", "bf16", "-q"],
    }
    best = dict.fromkeys(commands, float("inf"))
    try:
        make(wide, size)
        make(half, size // 2)
        for _ in range(arguments.rounds):
            for name, command in commands.items():
                best[name] = min(best[name], seconds(command, output))
    finally:
        for path in (wide, half, output):
            path.unlink(missing_ok=True)
    ratio = best["convert"] / best["h5repack"]
    print(f"h5repack, {size // 2 >> 20} MiB: {best['h5repack']:.3f} s")
    print(f"h5fpconv convert, {size >> 20} MiB to bf16: {best['convert']:.3f} s, {ratio:.2f} times that")
    return int(ratio > arguments.bound)


if __name__ == "__main__":
    sys.exit(main())
