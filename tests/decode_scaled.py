"""decode_scaled.py - a reader of scaled tensors that knows docs/scaled.md only

SPDX-License-Identifier: MIT

usage: decode_scaled.py WRITER

Runs WRITER FILE, which stores groups and, as plain floats, what they hold; decodes
the groups with h5py and numpy alone, and compares.  All products are exact in
float64, and rounded once to float32 by numpy.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np

# exponent bits, fraction bits, bias
FIELDS = {
    "e4m3": (4, 3, 7),
    "e5m2": (5, 2, 15),
    "e3m2": (3, 2, 3),
    "e2m3": (2, 3, 1),
    "e2m1": (2, 1, 1),
    "f16": (5, 10, 15),
}


def field_value(element, code):
    exponent_bits, fraction_bits, bias = FIELDS[element]
    sign = -1.0 if code >> (exponent_bits + fraction_bits) & 1 else 1.0
    x = code >> fraction_bits & (2**exponent_bits - 1)
    m = code & (2**fraction_bits - 1)
    if element == "e4m3" and x == 15 and m == 7:
        return np.nan
    if element in ("e5m2", "f16") and x == 31:
        return np.nan if m else sign * np.inf
    if x == 0:
        return sign * m * 2.0 ** (1 - bias - fraction_bits)
    return sign * (2**fraction_bits + m) * 2.0 ** (x - bias - fraction_bits)


def hif8_value(code):
    if code == 0x80:
        return np.nan
    sign = -1.0 if code & 0x80 else 1.0
    body = f"{code & 0x7f:07b}"
    if code & 0x7F == 0x6F:
        return sign * np.inf
    if body.startswith("0000"):
        m = int(body[4:], 2)
        return sign * 2.0 ** (m - 23) if m else 0.0
    for dot, bits in {"11": 4, "10": 3, "01": 2, "001": 1, "0001": 0}.items():
        if body.startswith(dot):
            break
    rest = body[len(dot) :]
    exponent = 0
    if bits:
        exponent = int("1" + rest[1:bits], 2) * (-1 if rest[0] == "1" else 1)
    fraction = rest[bits:]
    return sign * 2.0**exponent * (1 + int(fraction, 2) / 2 ** len(fraction))


def table_of(element):
    if element == "hif8":
        return np.array([hif8_value(code) for code in range(256)])
    bits = 1 + FIELDS[element][0] + FIELDS[element][1]
    return np.array([field_value(element, code) for code in range(2**bits)])


def unpack(codes, element, columns):
    if element in ("e2m1", "e3m2", "e2m3"):
        width = 4 if element == "e2m1" else 6
        bits = np.unpackbits(codes, axis=-1, bitorder="little")[..., : width * columns]
        bits = bits.reshape(*codes.shape[:-1], columns, width)
        return bits @ (1 << np.arange(width))
    return codes


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def decode(group):
    assert group.attrs["fpconv_scaled_version"] == 1
    scheme, element = text(group.attrs["scheme"]), text(group.attrs["element"])
    shape = tuple(int(d) for d in group.attrs["shape"])
    assert group.attrs["axis"] == len(shape) - 1
    columns = shape[-1]
    values = table_of(element)[unpack(group["codes"][...], element, columns)]
    assert values.shape == shape

    scales = group["scales"][...]
    if scheme == "mx":
        scales = np.where(scales == 255, np.nan, np.exp2(scales.astype(np.float64) - 127))
    elif scheme == "nvfp4":
        scales = table_of("e4m3")[scales] * np.float64(group.attrs["tensor_scale"])
    elif scheme.startswith("pow2"):
        scales = np.exp2(scales.astype(np.float64))
    else:
        scales = scales.astype(np.float64)
    if scheme in ("mx", "nvfp4"):
        scales = np.repeat(scales, int(group.attrs["block"]), axis=-1)[..., :columns]
    elif scheme.endswith("_row"):
        scales = scales.reshape(*shape[:-1], 1)
    return (values * scales).astype(np.float32)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scaled.h5"
        subprocess.run([sys.argv[1], path], check=True)
        with h5py.File(path, "r") as file:
            names = [name for name in file if name.startswith("scaled_")]
            schemes = {text(file[name].attrs["scheme"]) for name in names}
            assert len(names) == 12 and len(schemes) == 7, names
            for name in names:
                got = decode(file[name])
                want = file[name.replace("scaled", "plain")][...]
                assert np.array_equal(got.view(np.uint32), want.view(np.uint32)), name
                print(name, text(file[name].attrs["scheme"]), text(file[name].attrs["element"]), "ok")


if __name__ == "__main__":
    main()
