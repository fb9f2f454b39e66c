/*
 * known_values.h - conversions whose results are known by hand
 *
 * SPDX-License-Identifier: MIT
 *
 * Both the library and the tests' own oracle have to return these.
 */
#ifndef FPCONV_TESTS_KNOWN_VALUES_H
#define FPCONV_TESTS_KNOWN_VALUES_H

#include <math.h>
#include <stdint.h>

#include "fpconv/fpconv.h"

/* What a double becomes under HDF5, OCP and OCP_SAT. */
struct known_value {
    const char *why;
    double value;
    fpconv_format dst;
    uint64_t want[FPCONV_POLICY_COUNT];
};

static const struct known_value known_values[] = {
    {"nearest", 0.3, FPCONV_E4M3, {0x2a, 0x2a, 0x2a}},
    {"nearest", -0.3, FPCONV_E4M3, {0xaa, 0xaa, 0xaa}},
    {"exact", 0.3125, FPCONV_E4M3, {0x2a, 0x2a, 0x2a}},

    /* carries that the HDF5 library loses */
    {"no carry: 7.96875 is nearest", 7.98, FPCONV_BF16, {0x40ff, 0x40ff, 0x40ff}},
    {"carry", 7.99, FPCONV_BF16, {0x4100, 0x4100, 0x4100}},
    {"carry", 7.98, FPCONV_E4M3, {0x50, 0x50, 0x50}},
    {"carry", 7.98, FPCONV_E5M2, {0x48, 0x48, 0x48}},
    {"carry", 15.7, FPCONV_E4M3, {0x58, 0x58, 0x58}},
    {"carry into the normal values", 0.75, FPCONV_E2M1, {0x2, 0x2, 0x2}},
    {"carry into the normal values", 0.99, FPCONV_E2M1, {0x2, 0x2, 0x2}},
    {"carry below the normal values", 0x1.8p-9, FPCONV_E4M3, {0x02, 0x02, 0x02}},
    {"carry below the normal values", 0x1.fp-8, FPCONV_E4M3, {0x04, 0x04, 0x04}},
    {"carry into the normal values", 0x1.fp-7, FPCONV_E4M3, {0x08, 0x08, 0x08}},

    /* ends of the ranges */
    {"largest of HDF5", 240, FPCONV_E4M3, {0x77, 0x77, 0x77}},
    {"HDF5 does not round up past it", 248, FPCONV_E4M3, {0x77, 0x78, 0x78}},
    {"HDF5 does not round up past it", 255.99, FPCONV_E4M3, {0x77, 0x78, 0x78}},
    {"Inf in HDF5", 256, FPCONV_E4M3, {0x78, 0x78, 0x78}},
    {"largest of OCP", 448, FPCONV_E4M3, {0x78, 0x7e, 0x7e}},
    {"tie to even", 464, FPCONV_E4M3, {0x78, 0x7e, 0x7e}},
    {"overflow", 0x1.d000000000001p8, FPCONV_E4M3, {0x78, 0x7f, 0x7e}},
    {"overflow", 1e300, FPCONV_E4M3, {0x78, 0x7f, 0x7e}},
    {"overflow", -1e300, FPCONV_E4M3, {0xf8, 0xff, 0xfe}},
    {"Inf", INFINITY, FPCONV_E4M3, {0x78, 0x7f, 0x7e}},
    {"Inf", -INFINITY, FPCONV_E4M3, {0xf8, 0xff, 0xfe}},
    {"largest", 57344, FPCONV_E5M2, {0x7b, 0x7b, 0x7b}},
    {"below the tie", 61439, FPCONV_E5M2, {0x7b, 0x7b, 0x7b}},
    {"tie to even", 61440, FPCONV_E5M2, {0x7b, 0x7c, 0x7b}},
    {"overflow", 65536, FPCONV_E5M2, {0x7c, 0x7c, 0x7b}},
    {"Inf", INFINITY, FPCONV_E5M2, {0x7c, 0x7c, 0x7b}},
    {"Inf", -INFINITY, FPCONV_E5M2, {0xfc, 0xfc, 0xfb}},
    {"largest", 65504, FPCONV_F16, {0x7bff, 0x7bff, 0x7bff}},
    {"below the tie", 65519, FPCONV_F16, {0x7bff, 0x7bff, 0x7bff}},
    {"tie to even", 65520, FPCONV_F16, {0x7bff, 0x7c00, 0x7bff}},
    {"overflow", 65536, FPCONV_F16, {0x7c00, 0x7c00, 0x7bff}},
    {"overflow", -65536, FPCONV_F16, {0xfc00, 0xfc00, 0xfbff}},
    {"largest", 0x1.fep127, FPCONV_BF16, {0x7f7f, 0x7f7f, 0x7f7f}},
    {"tie to even", 0x1.ffp127, FPCONV_BF16, {0x7f7f, 0x7f80, 0x7f7f}},
    {"overflow", 0x1p128, FPCONV_BF16, {0x7f80, 0x7f80, 0x7f7f}},
    {"largest of HDF5", 14, FPCONV_E3M2, {0x1b, 0x1b, 0x1b}},
    {"tie", 15, FPCONV_E3M2, {0x1b, 0x1c, 0x1c}},
    {"Inf in HDF5", 16, FPCONV_E3M2, {0x1c, 0x1c, 0x1c}},
    {"largest of OCP", 28, FPCONV_E3M2, {0x1c, 0x1f, 0x1f}},
    {"overflow", -1e9, FPCONV_E3M2, {0x3c, 0x3f, 0x3f}},
    {"Inf", INFINITY, FPCONV_E3M2, {0x1c, 0x1f, 0x1f}},
    {"largest of HDF5", 3.75, FPCONV_E2M3, {0x17, 0x17, 0x17}},
    {"HDF5 does not round up past it", 3.99, FPCONV_E2M3, {0x17, 0x18, 0x18}},
    {"largest of OCP", 7.5, FPCONV_E2M3, {0x18, 0x1f, 0x1f}},
    {"overflow", 8, FPCONV_E2M3, {0x18, 0x1f, 0x1f}},
    {"Inf", -INFINITY, FPCONV_E2M3, {0x38, 0x3f, 0x3f}},
    {"largest of HDF5", 3, FPCONV_E2M1, {0x5, 0x5, 0x5}},
    {"tie", 3.5, FPCONV_E2M1, {0x5, 0x6, 0x6}},
    {"Inf in HDF5", 4, FPCONV_E2M1, {0x6, 0x6, 0x6}},
    {"tie to even", 5, FPCONV_E2M1, {0x6, 0x6, 0x6}},
    {"largest of OCP", 6, FPCONV_E2M1, {0x6, 0x7, 0x7}},
    {"overflow", -7, FPCONV_E2M1, {0xe, 0xf, 0xf}},
    {"Inf", INFINITY, FPCONV_E2M1, {0x6, 0x7, 0x7}},

    /* ties on both sides of even */
    {"tie above even", 1.0625, FPCONV_E4M3, {0x39, 0x38, 0x38}},
    {"tie above odd", 1.1875, FPCONV_E4M3, {0x3a, 0x3a, 0x3a}},
    {"tie above even", -1.0625, FPCONV_E4M3, {0xb9, 0xb8, 0xb8}},
    {"tie above even", 2.5, FPCONV_E2M1, {0x5, 0x4, 0x4}},
    {"tie above odd", 1.75, FPCONV_E2M1, {0x4, 0x4, 0x4}},
    {"tie above even", 0x1.002p0, FPCONV_F16, {0x3c01, 0x3c00, 0x3c00}},
    {"tie above odd", 0x1.006p0, FPCONV_F16, {0x3c02, 0x3c02, 0x3c02}},
    {"tie above even", 0x1.01p0, FPCONV_BF16, {0x3f81, 0x3f80, 0x3f80}},
    {"tie above odd", 0x1.03p0, FPCONV_BF16, {0x3f82, 0x3f82, 0x3f82}},

    /* subnormal ties */
    {"half the smallest", 0x1p-10, FPCONV_E4M3, {0x01, 0x00, 0x00}},
    {"half the smallest", -0x1p-10, FPCONV_E4M3, {0x81, 0x80, 0x80}},
    {"less than half of it", 0x1.fffffep-11, FPCONV_E4M3, {0x00, 0x00, 0x00}},
    {"more than half of it", 0x1.000002p-10, FPCONV_E4M3, {0x01, 0x01, 0x01}},
    {"tie above even", 0x1.4p-8, FPCONV_E4M3, {0x03, 0x02, 0x02}},
    {"tie with the first normal value", 0x1.ep-7, FPCONV_E4M3, {0x08, 0x08, 0x08}},
    {"half the smallest", 0x1p-25, FPCONV_F16, {0x0001, 0x0000, 0x0000}},
    {"half the smallest", 0x1p-134, FPCONV_BF16, {0x0001, 0x0000, 0x0000}},
    {"half the smallest", 0x1p-17, FPCONV_E5M2, {0x01, 0x00, 0x00}},
    {"half the smallest", 0x1p-5, FPCONV_E3M2, {0x01, 0x00, 0x00}},
    {"half the smallest", 0x1p-4, FPCONV_E2M3, {0x01, 0x00, 0x00}},
    {"half the smallest", 0.25, FPCONV_E2M1, {0x1, 0x0, 0x0}},
    {"half the smallest", -0.25, FPCONV_E2M1, {0x9, 0x8, 0x8}},
    {"the smallest double", 0x1p-1074, FPCONV_F16, {0x0000, 0x0000, 0x0000}},
    {"the smallest double", -0x1p-1074, FPCONV_F32, {0x80000000, 0x80000000, 0x80000000}},

    /* zero keeps its sign */
    {"zero", 0.0, FPCONV_F32, {0, 0, 0}},
    {"zero", -0.0, FPCONV_F32, {0x80000000, 0x80000000, 0x80000000}},
    {"zero", -0.0, FPCONV_F16, {0x8000, 0x8000, 0x8000}},
    {"zero", -0.0, FPCONV_BF16, {0x8000, 0x8000, 0x8000}},
    {"zero", -0.0, FPCONV_E5M2, {0x80, 0x80, 0x80}},
    {"zero", -0.0, FPCONV_E4M3, {0x80, 0x80, 0x80}},
    {"zero", -0.0, FPCONV_E3M2, {0x20, 0x20, 0x20}},
    {"zero", -0.0, FPCONV_E2M3, {0x20, 0x20, 0x20}},
    {"zero", -0.0, FPCONV_E2M1, {0x8, 0x8, 0x8}},
    {"hif8 has one zero", -0.0, FPCONV_HIF8, {0, 0, 0}},

    /* doubles that become a tie when they are rounded to float first */
    {"above the tie", 0x1.002p0 + 0x1p-40, FPCONV_F16, {0x3c01, 0x3c01, 0x3c01}},
    {"below the tie", 0x1.002p0 - 0x1p-40, FPCONV_F16, {0x3c00, 0x3c00, 0x3c00}},
    {"above the tie", 0x1.01p0 + 0x1p-40, FPCONV_BF16, {0x3f81, 0x3f81, 0x3f81}},
    {"below the tie", 0x1.01p0 - 0x1p-40, FPCONV_BF16, {0x3f80, 0x3f80, 0x3f80}},
    {"above the tie", 1.125 + 0x1p-40, FPCONV_E5M2, {0x3d, 0x3d, 0x3d}},
    {"below the tie", 1.125 - 0x1p-40, FPCONV_E5M2, {0x3c, 0x3c, 0x3c}},
    {"above the tie", 1.0625 + 0x1p-40, FPCONV_E4M3, {0x39, 0x39, 0x39}},
    {"below the tie", 1.0625 - 0x1p-40, FPCONV_E4M3, {0x38, 0x38, 0x38}},
    {"above the tie", 2.25 + 0x1p-40, FPCONV_E3M2, {0x11, 0x11, 0x11}},
    {"below the tie", 2.25 - 0x1p-40, FPCONV_E3M2, {0x10, 0x10, 0x10}},
    {"above the tie", 2.125 + 0x1p-40, FPCONV_E2M3, {0x11, 0x11, 0x11}},
    {"below the tie", 2.125 - 0x1p-40, FPCONV_E2M3, {0x10, 0x10, 0x10}},
    {"above the tie", 2.5 + 0x1p-40, FPCONV_E2M1, {0x5, 0x5, 0x5}},
    {"below the tie", 2.5 - 0x1p-40, FPCONV_E2M1, {0x4, 0x4, 0x4}},
    {"below the tie", 0x1p-23 - 0x1p-70, FPCONV_HIF8, {0x00, 0x00, 0x00}},
    {"below the end", 256 - 0x1p-40, FPCONV_E4M3, {0x77, 0x78, 0x78}},

    /* double to float is the IEEE conversion in every policy */
    {"tie above even", 1 + 0x1p-24, FPCONV_F32, {0x3f800000, 0x3f800000, 0x3f800000}},
    {"tie above odd", 1 + 0x3p-24, FPCONV_F32, {0x3f800002, 0x3f800002, 0x3f800002}},
    {"half the smallest", 0x1p-150, FPCONV_F32, {0, 0, 0}},
    {"tie above odd", 0x3p-150, FPCONV_F32, {2, 2, 2}},
    {"carry into the normal values",
     0x1.ffffffp-127,
     FPCONV_F32,
     {0x00800000, 0x00800000, 0x00800000}},
    {"below the tie", 0x1.fffffefffffffp127, FPCONV_F32, {0x7f7fffff, 0x7f7fffff, 0x7f7fffff}},
    {"tie to even", 0x1.ffffffp127, FPCONV_F32, {0x7f800000, 0x7f800000, 0x7f800000}},
    {"overflow", -1e39, FPCONV_F32, {0xff800000, 0xff800000, 0xff800000}},
    {"Inf", INFINITY, FPCONV_F32, {0x7f800000, 0x7f800000, 0x7f800000}},

    /* hif8: ties away, saturation and Inf in every policy */
    {"0", 0.0, FPCONV_HIF8, {0x00, 0x00, 0x00}},
    {"1", 1.0, FPCONV_HIF8, {0x08, 0x08, 0x08}},
    {"2", 2.0, FPCONV_HIF8, {0x10, 0x10, 0x10}},
    {"known point", 0.5, FPCONV_HIF8, {0x18, 0x18, 0x18}},
    {"known point", 2.7180e-05, FPCONV_HIF8, {0x7e, 0x7e, 0x7e}},
    {"tie", 1.0625, FPCONV_HIF8, {0x09, 0x09, 0x09}},
    {"tie", -1.0625, FPCONV_HIF8, {0x89, 0x89, 0x89}},
    {"smallest", 0x1p-22, FPCONV_HIF8, {0x01, 0x01, 0x01}},
    {"half of it", 0x1p-23, FPCONV_HIF8, {0x01, 0x01, 0x01}},
    {"half of it", -0x1p-23, FPCONV_HIF8, {0x81, 0x81, 0x81}},
    {"below that", -0x1.ffffffp-24, FPCONV_HIF8, {0x00, 0x00, 0x00}},
    {"below the tie", 0x1.7ffffp-22, FPCONV_HIF8, {0x01, 0x01, 0x01}},
    {"tie", 0x1.8p-22, FPCONV_HIF8, {0x02, 0x02, 0x02}},
    {"smallest normal", 0x1p-15, FPCONV_HIF8, {0x7e, 0x7e, 0x7e}},
    {"largest denormal", 0x1p-16, FPCONV_HIF8, {0x07, 0x07, 0x07}},
    {"largest", 32768, FPCONV_HIF8, {0x6e, 0x6e, 0x6e}},
    {"overflow", 49152, FPCONV_HIF8, {0x6e, 0x6e, 0x6e}},
    {"overflow", -1e300, FPCONV_HIF8, {0xee, 0xee, 0xee}},
    {"Inf", INFINITY, FPCONV_HIF8, {0x6f, 0x6f, 0x6f}},
    {"Inf", -INFINITY, FPCONV_HIF8, {0xef, 0xef, 0xef}},
};

/* The same for elements given by their code: NaN, and formats read. */
struct known_code {
    fpconv_format src;
    uint64_t code;
    fpconv_format dst;
    uint64_t want[FPCONV_POLICY_COUNT];
};

static const struct known_code known_codes[] = {
    /* a payload in the low bits alone does not become Inf */
    {FPCONV_F32, 0x7f800001, FPCONV_F16, {0x7fff, 0x7e00, 0x7e00}},
    {FPCONV_F32, 0x7f800001, FPCONV_BF16, {0x7fff, 0x7fc0, 0x7fc0}},
    {FPCONV_F32, 0x7f80ffff, FPCONV_BF16, {0x7fff, 0x7fc0, 0x7fc0}},
    {FPCONV_F32, 0xff800001, FPCONV_BF16, {0xffff, 0xffc0, 0xffc0}},
    {FPCONV_F32, 0x7f800001, FPCONV_E5M2, {0x7f, 0x7e, 0x7e}},
    {FPCONV_F32, 0x7f800001, FPCONV_E4M3, {0x7f, 0x7f, 0x7f}},
    {FPCONV_F32, 0xff800001, FPCONV_E4M3, {0xff, 0xff, 0xff}},
    {FPCONV_F32, 0xff800001, FPCONV_HIF8, {0x80, 0x80, 0x80}},
    {FPCONV_F64, 0x7ff0000000000001, FPCONV_F32, {0x7fffffff, 0x7fc00000, 0x7fc00000}},
    {FPCONV_F64, 0x7ff0000000000001, FPCONV_F16, {0x7fff, 0x7e00, 0x7e00}},
    {FPCONV_F64, 0xfff0000000000001, FPCONV_E4M3, {0xff, 0xff, 0xff}},
    /* the leading payload bits are kept, the quiet bit is set */
    {FPCONV_F32, 0xffc12345, FPCONV_F16, {0xffff, 0xfe09, 0xfe09}},
    {FPCONV_F32, 0x7f812345, FPCONV_F16, {0x7fff, 0x7e09, 0x7e09}},
    {FPCONV_F32, 0x7f812345, FPCONV_BF16, {0x7fff, 0x7fc1, 0x7fc1}},
    {FPCONV_F32, 0xffa00000, FPCONV_E5M2, {0xff, 0xff, 0xff}},
    {FPCONV_F32,
     0x7f800001,
     FPCONV_F64,
     {0x7fffffffffffffff, 0x7ff8000020000000, 0x7ff8000020000000}},
    {FPCONV_F16, 0x7c01, FPCONV_F32, {0x7fffffff, 0x7fc02000, 0x7fc02000}},
    {FPCONV_BF16, 0xff81, FPCONV_F32, {0xffffffff, 0xffc10000, 0xffc10000}},
    {FPCONV_F32, 0x7f800001, FPCONV_F32, {0x7fffffff, 0x7fc00001, 0x7fc00001}},
    /* formats without NaN: the positive largest value */
    {FPCONV_F32, 0xffc00000, FPCONV_E3M2, {0x3f, 0x1f, 0x1f}},
    {FPCONV_F32, 0xffc00000, FPCONV_E2M3, {0x3f, 0x1f, 0x1f}},
    {FPCONV_F32, 0xffc00000, FPCONV_E2M1, {0xf, 0x7, 0x7}},
    /* the all-ones exponent, read */
    {FPCONV_E4M3, 0x7e, FPCONV_F32, {0x7fffffff, 0x43e00000, 0x43e00000}},
    {FPCONV_E4M3, 0x78, FPCONV_F32, {0x7f800000, 0x43800000, 0x43800000}},
    {FPCONV_E4M3, 0x7f, FPCONV_F32, {0x7fffffff, 0x7ff00000, 0x7ff00000}},
    {FPCONV_E4M3, 0xff, FPCONV_F32, {0xffffffff, 0xfff00000, 0xfff00000}},
    {FPCONV_E2M1, 0x6, FPCONV_F32, {0x7f800000, 0x40800000, 0x40800000}},
    {FPCONV_E2M1, 0xf, FPCONV_F32, {0xffffffff, 0xc0c00000, 0xc0c00000}},
    {FPCONV_E5M2, 0x7c, FPCONV_F32, {0x7f800000, 0x7f800000, 0x7f800000}},
    {FPCONV_E5M2, 0x7d, FPCONV_F32, {0x7fffffff, 0x7fe00000, 0x7fe00000}},
    {FPCONV_E5M2, 0xfc, FPCONV_F16, {0xfc00, 0xfc00, 0xfbff}},
    {FPCONV_HIF8, 0x80, FPCONV_F32, {0x7fffffff, 0x7fc00000, 0x7fc00000}},
    {FPCONV_HIF8, 0xef, FPCONV_F32, {0xff800000, 0xff800000, 0xff800000}},
    {FPCONV_HIF8, 0x6e, FPCONV_F32, {0x47000000, 0x47000000, 0x47000000}},
    /* unused bits are ignored */
    {FPCONV_E2M1, 0xf2, FPCONV_F32, {0x3f800000, 0x3f800000, 0x3f800000}},
    {FPCONV_E3M2, 0xcc, FPCONV_F32, {0x3f800000, 0x3f800000, 0x3f800000}},
    {FPCONV_E2M3, 0x48, FPCONV_F32, {0x3f800000, 0x3f800000, 0x3f800000}},
};

#endif /* FPCONV_TESTS_KNOWN_VALUES_H */
