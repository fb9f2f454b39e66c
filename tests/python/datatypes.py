"""HDF5's datatypes of the formats, as a program without fpconv makes them

SPDX-License-Identifier: MIT
"""
import exact
from h5py import h5t


def datatype(name, order=h5t.ORDER_LE):
    exponent_bits, fraction_bits, bias, _ = exact.FIELDS[name]
    bits = 1 + exponent_bits + fraction_bits
    kind = h5t.IEEE_F64LE.copy()
    kind.set_fields(bits - 1, fraction_bits, exponent_bits, 0, fraction_bits)
    kind.set_precision(bits)
    kind.set_size((bits + 7) // 8)
    kind.set_ebias(bias)
    kind.set_order(order)
    return kind
