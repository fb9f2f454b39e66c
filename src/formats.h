/*
 * formats.h - the table of formats, one row each
 *
 * SPDX-License-Identifier: MIT
 *
 * Everything that depends on a format is derived from its row: the scalar
 * codec, the kernels' constants, the HDF5 datatypes, the loops of the tests and
 * the table in the README.  Adding a format is adding a row; fpconv.h names it for
 * callers, and level.h for the kernels, whose compilation fails where it does not.
 */
#ifndef FPCONV_SRC_FORMATS_H
#define FPCONV_SRC_FORMATS_H

#include <stdbool.h>
#include <stdint.h>

#include "fpconv/fpconv.h"

/* Which codes are not finite numbers, outside the HDF5 policy (which reserves
 * the all-ones exponent of every format). */
enum fp_specials {
    SPECIALS_IEEE,     /* all-ones exponent: Inf and NaN */
    SPECIALS_NAN_ONLY, /* all-ones code: NaN; no Inf */
    SPECIALS_NONE,     /* every code is a finite number */
    SPECIALS_TAPERED   /* hif8, see codec.h */
};

/*  FORMAT(ENUM, name, storage type, exponent bits, fraction bits, bias, specials)
 *
 * hif8 has no fixed fields; its row gives the widest ones. */
#define FPCONV_WIDE_FORMATS(FORMAT)                       \
    FORMAT(F64, f64, double, 11, 52, 1023, SPECIALS_IEEE) \
    FORMAT(F32, f32, float, 8, 23, 127, SPECIALS_IEEE)

#define FPCONV_NARROW_FIELD_FORMATS(FORMAT)                 \
    FORMAT(F16, f16, uint16_t, 5, 10, 15, SPECIALS_IEEE)    \
    FORMAT(BF16, bf16, uint16_t, 8, 7, 127, SPECIALS_IEEE)  \
    FORMAT(E5M2, e5m2, uint8_t, 5, 2, 15, SPECIALS_IEEE)    \
    FORMAT(E4M3, e4m3, uint8_t, 4, 3, 7, SPECIALS_NAN_ONLY) \
    FORMAT(E3M2, e3m2, uint8_t, 3, 2, 3, SPECIALS_NONE)     \
    FORMAT(E2M3, e2m3, uint8_t, 2, 3, 1, SPECIALS_NONE)     \
    FORMAT(E2M1, e2m1, uint8_t, 2, 1, 1, SPECIALS_NONE)

#define FPCONV_NARROW_FORMATS(FORMAT)   \
    FPCONV_NARROW_FIELD_FORMATS(FORMAT) \
    FORMAT(HIF8, hif8, uint8_t, 4, 3, 0, SPECIALS_TAPERED)

/* All that consist of a sign, an exponent and a fraction field. */
#define FPCONV_FIELD_FORMATS(FORMAT) \
    FPCONV_WIDE_FORMATS(FORMAT)      \
    FPCONV_NARROW_FIELD_FORMATS(FORMAT)

#define FPCONV_FORMATS(FORMAT)  \
    FPCONV_WIDE_FORMATS(FORMAT) \
    FPCONV_NARROW_FORMATS(FORMAT)

struct fp_format {
    const char *name;
    uint8_t size; /* bytes of one stored element */
    uint8_t exponent_bits;
    uint8_t fraction_bits;
    int16_t bias;
    enum fp_specials specials;
};

#define FPCONV_FORMAT_ROW_(ENUM, name, type, exponent, fraction, bias, specials) \
    [FPCONV_##ENUM] = {#name, sizeof(type), exponent, fraction, bias, specials},

/* static const in each file that uses it, so that the compiler can fold a row
 * that is known at compile time into its code */
static const struct fp_format fp_formats[FPCONV_FORMAT_COUNT] = {
    FPCONV_FORMATS(FPCONV_FORMAT_ROW_)};

/*
 * Two more policies, which only the HDF5 plugin asks for: FPCONV_HDF5 with a bug of the
 * library's own loop.  Where rounding carries out of the significand, the result keeps the
 * source's exponent, with a fraction of zero: it is half of the right one.  Always, or only
 * below the normal range.  (A value that is less than the smallest subnormal number has no
 * significand left to carry out of.)
 */
#define FPCONV_HDF5_CARRY_LOST ((fpconv_policy)FPCONV_POLICY_COUNT)
#define FPCONV_HDF5_SUBNORMAL_CARRY_LOST ((fpconv_policy)(FPCONV_POLICY_COUNT + 1))
enum { FP_POLICY_COUNT = FPCONV_POLICY_COUNT + 2 };

static inline bool fp_policy_loses_carries(fpconv_policy policy)
{
    return policy == FPCONV_HDF5_CARRY_LOST || policy == FPCONV_HDF5_SUBNORMAL_CARRY_LOST;
}

static inline bool fp_policy_is_hdf5(fpconv_policy policy)
{
    return policy == FPCONV_HDF5 || fp_policy_loses_carries(policy);
}

static inline bool fp_format_is_known(fpconv_format format)
{
    return (unsigned)format < FPCONV_FORMAT_COUNT;
}

static inline bool fp_policy_is_known(fpconv_policy policy)
{
    return (unsigned)policy < FPCONV_POLICY_COUNT;
}

/* Of a code, which is in the low ones of its storage. */
static inline unsigned fp_format_bits(fpconv_format format)
{
    const struct fp_format *f = &fp_formats[format];
    return f->specials == SPECIALS_TAPERED ? 8u : 1u + f->exponent_bits + f->fraction_bits;
}

/* f32 and f64: never saturated, always rounded to even */
static inline bool fp_format_is_wide(fpconv_format format)
{
    return format == FPCONV_F64 || format == FPCONV_F32;
}

/* Is the all-ones exponent kept for Inf and NaN? */
static inline bool fp_exponent_is_reserved(const struct fp_format *f, fpconv_policy policy)
{
    return f->specials == SPECIALS_IEEE || fp_policy_is_hdf5(policy);
}

/* The code of the largest finite value, without sign. */
static inline uint64_t fp_max_finite(const struct fp_format *f, fpconv_policy policy)
{
    if (f->specials == SPECIALS_TAPERED)
        return 0x6e;
    const uint64_t all_ones = (UINT64_C(1) << (f->exponent_bits + f->fraction_bits)) - 1;
    if (fp_exponent_is_reserved(f, policy))
        return all_ones - (UINT64_C(1) << f->fraction_bits);
    return f->specials == SPECIALS_NAN_ONLY ? all_ones - 1 : all_ones;
}

#endif /* FPCONV_SRC_FORMATS_H */
