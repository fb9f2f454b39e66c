"""The formats in exact rational arithmetic, written from their specifications

SPDX-License-Identifier: MIT

What the tests compare with.  It shares nothing with the library: tables of all values, and
the two of them that lie next to a number.
"""
import bisect
import math
from fractions import Fraction

POLICIES = ("hdf5", "ocp", "ocp_sat")

# name: exponent bits, fraction bits, bias, what the all-ones exponent is for
FIELDS = {
    "f16": (5, 10, 15, "ieee"),
    "bf16": (8, 7, 127, "ieee"),
    "e5m2": (5, 2, 15, "ieee"),
    "e4m3": (4, 3, 7, "one nan"),
    "e3m2": (3, 2, 3, "finite"),
    "e2m3": (2, 3, 1, "finite"),
    "e2m1": (2, 1, 1, "finite"),
}
NARROW = (*FIELDS, "hif8")


def sign_bit(name):
    exponent_bits, fraction_bits, *_ = FIELDS.get(name, (4, 3))
    return 1 << (exponent_bits + fraction_bits)


def _magnitude(name, code):
    """The value of a code without sign, all exponents taken as finite."""
    _, fraction_bits, bias, _ = FIELDS[name]
    exponent, fraction = divmod(code, 1 << fraction_bits)
    significand = fraction + ((1 << fraction_bits) if exponent else 0)
    return Fraction(significand) * Fraction(2) ** (max(exponent, 1) - bias - fraction_bits)


MAGNITUDES = {name: [_magnitude(name, code) for code in range(sign_bit(name))] for name in FIELDS}


def largest_code(name, policy):
    """Of the largest finite magnitude."""
    if name == "hif8":
        return 0x6e
    _, fraction_bits, _, specials = FIELDS[name]
    ones = sign_bit(name) - 1
    if specials == "ieee" or policy == "hdf5":
        return ones - (1 << fraction_bits)
    return ones - (specials == "one nan")


def _hif8_magnitude(code):
    """arXiv 2409.16626, table 1: sign, a dot field with a prefix code, exponent, fraction."""
    bits = f"{code:07b}"
    if bits.startswith("0000"):
        m = int(bits[4:], 2)
        return Fraction(2) ** (m - 23) if m else Fraction(0)
    for prefix, exponent_bits in (("11", 4), ("10", 3), ("01", 2), ("001", 1), ("0001", 0)):
        if bits.startswith(prefix):
            break
    rest = bits[len(prefix):]
    exponent = 0
    if exponent_bits:
        exponent = int("1" + rest[1:exponent_bits], 2)
        if rest[0] == "1":
            exponent = -exponent
    fraction = rest[exponent_bits:]
    return Fraction(2) ** exponent * (1 + Fraction(int(fraction or "0", 2), 1 << len(fraction)))


HIF8 = sorted((_hif8_magnitude(code), code) for code in range(0x80) if code != 0x6f)


def decode(name, code, policy="ocp"):
    """The value of a code as a float, which holds each of them exactly."""
    if name == "hif8":
        if code == 0x80:
            return math.nan
        sign, rest = (-1.0 if code & 0x80 else 1.0), code & 0x7f
        return sign * (math.inf if rest == 0x6f else float(_hif8_magnitude(rest)))
    sign = -1.0 if code & sign_bit(name) else 1.0
    rest = code & (sign_bit(name) - 1)
    largest = largest_code(name, policy)
    if rest <= largest:
        return math.copysign(float(MAGNITUDES[name][rest]), sign)
    has_infinity = FIELDS[name][3] == "ieee" or policy == "hdf5"
    return sign * (math.inf if has_infinity and rest == largest + 1 else math.nan)


def _encode_hif8(value):
    if math.isinf(value):
        return 0x6f if value > 0 else 0xef
    exact = abs(Fraction(value))
    low = bisect.bisect_right(HIF8, (exact, 0x80)) - 1
    magnitude, code = HIF8[low]
    if low + 1 < len(HIF8) and exact - magnitude >= HIF8[low + 1][0] - exact:
        code = HIF8[low + 1][1]
    return code and code | (0x80 if value < 0 else 0)


def encode(name, value, policy="ocp"):
    """The code of a number that is not NaN."""
    if name == "hif8":
        return _encode_hif8(value)
    _, fraction_bits, _, specials = FIELDS[name]
    sign = sign_bit(name) if math.copysign(1, value) < 0 else 0
    table, largest = MAGNITUDES[name], largest_code(name, policy)
    has_infinity = specials == "ieee" or policy == "hdf5"
    overflow = largest + 1
    if policy == "ocp_sat" or not has_infinity and specials == "finite":
        overflow = largest
    if math.isinf(value):
        return sign | overflow
    exact = abs(Fraction(value))
    if policy == "hdf5":
        if exact >= 2 * table[largest >> fraction_bits << fraction_bits]:
            return sign | overflow
        if exact >= table[largest]:
            return sign | largest
    low = bisect.bisect_right(table, exact) - 1
    # The step above the last code is as wide as the one below it.
    step = (table[low + 1] if low + 1 < len(table) else 2 * table[low] - table[low - 1]) - table[low]
    double = 2 * (exact - table[low])
    code = low + (double > step or double == step and (policy == "hdf5" or low % 2 == 1))
    return sign | (code if code <= largest else overflow)


def interesting_values(name):
    """Every finite value, the midpoints between them, and the doubles next to both."""
    if name == "hif8":
        table = [magnitude for magnitude, _ in HIF8]
    else:
        table = MAGNITUDES[name]
        if len(table) > 1000:  # f16 and bf16: the ends of each binade
            keep = 1 << FIELDS[name][1]
            table = [table[i] for i in range(len(table)) if i % keep in (0, 1, keep - 2, keep - 1)]
            table = [x for x in table if x < Fraction(2) ** 200]
    middles = [(a + b) / 2 for a, b in zip(table, table[1:])]
    values = [float(x) for x in (*table, *middles)]
    values += [math.nextafter(x, to) for x in values for to in (0, math.inf)]
    values += [math.inf, 1e30, 1e300, 5e-324, 1e-300]
    return [*values, *(-x for x in values)]


def round_f32(value):
    """The float32 nearest to a positive rational, ties to even; as a float."""
    exponent = -149
    while value / Fraction(2) ** exponent >= 1 << 24:
        exponent += 1
    scaled = value / Fraction(2) ** exponent
    low = scaled.numerator // scaled.denominator
    rest = 2 * (scaled - low)
    low += rest > 1 or rest == 1 and low % 2 == 1
    return float(low * Fraction(2) ** exponent)


def pack(codes, bits):
    """One row of codes: element i in bits w*i to w*i + w - 1, from the least significant on."""
    number = sum(int(code) << (bits * i) for i, code in enumerate(codes))
    return number.to_bytes((len(codes) * bits + 7) // 8, "little")
