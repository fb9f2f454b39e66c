#!/usr/bin/env python3
"""Times the conversions of numpy, ml_dtypes and PyTorch, whichever are installed.

SPDX-License-Identifier: MIT

Run by fpconv-bench --peers as `python.py N...`.  Prints a line a measurement,
"peer src dst n ns", ns an element, the median of some runs into an array that
exists; one thread.
"""

import importlib
import statistics
import sys
import time

SAMPLE_SECONDS = 100e-6
ROUNDS_MIN, ROUNDS_SECONDS = 5, 0.05


def median_ns(run, n):
    """Nanoseconds an element of run(), which converts n."""
    run()
    repeats, seconds = 1, 0.0
    while True:
        start = time.perf_counter()
        for _ in range(repeats):
            run()
        seconds = time.perf_counter() - start
        if seconds >= SAMPLE_SECONDS:
            break
        repeats *= 2
    samples = []
    started = time.perf_counter()
    while len(samples) < ROUNDS_MIN or time.perf_counter() - started < ROUNDS_SECONDS:
        start = time.perf_counter()
        for _ in range(repeats):
            run()
        samples.append((time.perf_counter() - start) / repeats)
        if len(samples) >= 101:
            break
    return statistics.median(samples) / n * 1e9


def load(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def measure_numpy(np, peer, types, n):
    """Both ways between the wide dtypes and those of `types` (name -> dtype)."""
    wide = {"f32": np.float32, "f64": np.float64}
    normal = np.random.default_rng(1).standard_normal(n)
    for wide_name, wide_type in wide.items():
        for name, narrow_type in types.items():
            values = normal.astype(wide_type)
            codes = values.astype(narrow_type)
            decoded = np.empty_like(values)
            narrowing = lambda: np.copyto(codes, values, casting="unsafe")
            widening = lambda: np.copyto(decoded, codes, casting="unsafe")
            print(peer, wide_name, name, n, median_ns(narrowing, n), flush=True)
            print(peer, name, wide_name, n, median_ns(widening, n), flush=True)


def measure_torch(torch, n):
    """Both ways between the wide dtypes and those that this PyTorch has."""
    torch.set_num_threads(1)
    names = {"f16": "float16", "bf16": "bfloat16", "e5m2": "float8_e5m2", "e4m3": "float8_e4m3fn"}
    normal = torch.randn(n, dtype=torch.float64)
    for wide_name, wide_type in {"f32": torch.float32, "f64": torch.float64}.items():
        for name, attribute in names.items():
            if not hasattr(torch, attribute):
                continue
            values = normal.to(wide_type)
            codes = values.to(getattr(torch, attribute))
            decoded = torch.empty_like(values)
            print("torch", wide_name, name, n, median_ns(lambda: codes.copy_(values), n), flush=True)
            print("torch", name, wide_name, n, median_ns(lambda: decoded.copy_(codes), n), flush=True)


def main():
    np, ml_dtypes, torch = load("numpy"), load("ml_dtypes"), load("torch")
    for n in map(int, sys.argv[1:]):
        if np:
            measure_numpy(np, "numpy", {"f16": np.float16}, n)
        if np and ml_dtypes:
            names = {
                "bf16": "bfloat16",
                "e5m2": "float8_e5m2",
                "e4m3": "float8_e4m3fn",
                "e3m2": "float6_e3m2fn",
                "e2m3": "float6_e2m3fn",
                "e2m1": "float4_e2m1fn",
            }
            types = {k: getattr(ml_dtypes, v) for k, v in names.items() if hasattr(ml_dtypes, v)}
            measure_numpy(np, "ml_dtypes", types, n)
        if torch:
            measure_torch(torch, n)


if __name__ == "__main__":
    main()
