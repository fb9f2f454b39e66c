"""bench_input.py - the tables of fpconv-bench --input, and the chart of them

SPDX-License-Identifier: MIT

usage: bench_input.py FPCONV-BENCH PLOT-SCHEMES

Signal to quantization noise of weights made here, worked out in numpy: the value of
every code by decode_scaled.py's definitions, and the nearest of them to each
quotient.  Random floats are no ties.
"""
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
from decode_scaled import table_of

CASTS = ("e5m2", "e4m3", "e3m2", "e2m3", "e2m1", "hif8")
LARGEST = {"e4m3": 448.0, "e5m2": 57344.0, "hif8": 2.0**15, "e2m3": 7.5, "e2m1": 6.0, "e3m2": 28.0}


def nearest(values, element):
    """The nearest finite value of a format; what is too large saturates."""
    table = table_of(element)
    table = np.unique(table[np.isfinite(table)])
    return table[np.searchsorted((table[1:] + table[:-1]) / 2, values)]


def amaxes(x, block):
    padded = np.pad(np.abs(x), ((0, 0), (0, -x.shape[1] % block)))
    return padded.reshape(x.shape[0], -1, block).max(axis=-1)


def spread(scales, x, block):
    return np.repeat(scales, block, axis=1)[:, : x.shape[1]]


def scales_of(scheme, element, x):
    """The scale of every cell, and how many bits the scales take."""
    largest, amax = LARGEST[element], np.abs(x)
    axis = {"per tensor": None, "per row": 1, "per column": 0}.get(scheme)
    if scheme == "cast":
        return np.ones_like(x), 0
    if scheme.startswith("per "):
        scales = (amax.max(axis=axis, keepdims=True) / largest).astype(np.float32)
        return np.broadcast_to(scales.astype(np.float64), x.shape), 32 * scales.size
    if scheme == "nvfp4":
        tensor_scale = np.float64(np.float32(amax.max() / (6 * 448)))
        scales = nearest(amaxes(x, 16) / (6 * tensor_scale), "e4m3")
        return spread(scales * tensor_scale, x, 16), 8 * scales.size + 32
    if scheme == "mx, floor":
        exponents = np.floor(np.log2(amaxes(x, 32))) - np.floor(np.log2(largest))
    else:
        exponents = np.ceil(np.log2(amaxes(x, 32) / largest))
    return spread(np.exp2(exponents), x, 32), 8 * exponents.size


def expected(scheme, element, matrices):
    """SQNR in dB, bits a weight"""
    signal = noise = bits = count = 0
    for x in matrices:
        scales, scale_bits = scales_of(scheme, element, x)
        signal += (x**2).sum()
        noise += ((nearest(x / scales, element) * scales - x) ** 2).sum()
        bits += x.size * np.log2(len(table_of(element))) + scale_bits
        count += x.size
    return 10 * np.log10(signal / noise), bits / count


def check(records, matrices):
    inputs = {r["dst"] for r in records if r["section"] == "input"}
    assert inputs == {"f16", "bf16", *CASTS}, inputs
    schemes = {(r["scheme"], r["element"]): r for r in records if r["section"] == "schemes"}
    assert {scheme for scheme, _ in schemes} == {
        "cast", "per tensor", "per row", "per column", "mx, floor", "mx, ceil", "nvfp4"}
    assert {element for scheme, element in schemes if scheme == "cast"} == inputs
    for (scheme, element), record in schemes.items():
        if element in CASTS:
            sqnr, bits = expected(scheme, element, matrices)
            assert abs(record["sqnr_db"] - sqnr) < 1e-3, (scheme, element, record, sqnr)
            assert abs(record["bits"] - bits) < 1e-4, (scheme, element, record, bits)
            print(f"{scheme:10} {element:4} {bits:.3f} bits {sqnr:.2f} dB")


def main():
    bench, plot = sys.argv[1:]
    random = np.random.default_rng(5)
    shapes = {"layer/weight": (24, 100), "conv/weight": (6, 5, 16), "bias": (70,)}
    matrices = []
    with tempfile.TemporaryDirectory() as folder:
        weights, results, chart = (Path(folder) / name for name in ("w.h5", "r.json", "c.svg"))
        with h5py.File(weights, "w") as file:
            for name, shape in shapes.items():
                x = (0.05 * random.standard_normal(shape)).astype(np.float32)
                file[name] = x
                matrices.append(x.reshape(shape[0] if len(shape) > 1 else 1, -1).astype(np.float64))
        run = [bench, "--input", weights, "--section", "input", "--json", results]
        text = subprocess.run(run, check=True, capture_output=True, text=True).stdout
        check(json.loads(results.read_text()), matrices)
        assert "SQNR in dB, by dataset" in text and "schemes: signal to quantization noise" in text
        if shutil.which("gnuplot"):
            subprocess.run([sys.executable, plot, results, chart], check=True)
            labels = chart.read_text()
            for label in (*CASTS, "nvfp4", "mx, ceil", "SQNR, dB", "bits a weight"):
                assert label in labels, label


main()
