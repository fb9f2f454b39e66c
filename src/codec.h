/*
 * codec.h - the conversion of one value: the definition of every result
 *
 * SPDX-License-Identifier: MIT
 *
 * A code is unpacked into an exact value, and that value is packed, rounded
 * once, into the other format.  Integer arithmetic only, so that nothing
 * depends on the floating-point environment.  Everything faster in this library
 * is tested against this file bit for bit.
 *
 * With a format and policy known at compile time the compiler folds the row
 * into the code.
 */
#ifndef FPCONV_SRC_CODEC_H
#define FPCONV_SRC_CODEC_H

#include "formats.h"

#define FP_CODEC static inline __attribute__((always_inline))

enum fp_class { VALUE_ZERO, VALUE_FINITE, VALUE_INF, VALUE_NAN };

/*
 * VALUE_FINITE: significand * 2^(exponent - 63), bit 63 of significand set.
 * VALUE_NAN: the fraction field, left-aligned below bit 63; the quiet bit is
 * bit 62 whatever the format.
 */
struct fp_value {
    enum fp_class class;
    bool negative;
    int exponent;
    uint64_t significand;
};

#define FP_QUIET_BIT (UINT64_C(1) << 62)

/* significand * 2^exponent, for any significand, in normalised form */
FP_CODEC struct fp_value fp_normalise(bool negative, uint64_t significand, int exponent)
{
    if (significand == 0)
        return (struct fp_value){VALUE_ZERO, negative, 0, 0};
    const int shift = __builtin_clzll(significand);
    return (struct fp_value){VALUE_FINITE, negative, exponent + 63 - shift, significand << shift};
}

/*
 * significand / 2^drop, rounded to nearest; drop is at least 1.  The bits
 * shifted out are compared with one half, left-aligned.
 */
FP_CODEC uint64_t fp_round_shift(uint64_t significand, int drop, bool ties_away)
{
    const uint64_t half = UINT64_C(1) << 63;
    if (drop > 64)
        return 0; /* less than half of the last place */
    const uint64_t quotient = drop == 64 ? 0 : significand >> drop;
    const uint64_t rest = drop == 64 ? significand : significand << (64 - drop);
    const bool up = rest > half || (rest == half && (ties_away || (quotient & 1)));
    return quotient + up;
}

/* What fp_round_shift made of a normalised significand, without a carry out of it: the
 * power of two below that one's.  If no bit of it was to be left, there is none. */
FP_CODEC uint64_t fp_lose_carry(uint64_t rounded, int drop)
{
    const bool carried = drop < 64 && rounded >> (64 - drop);
    return carried ? rounded >> 1 : rounded;
}

/* -------------------------------------------------------------------------- */
/* hif8 (HiFloat8, arXiv 2409.16626)                                          */
/*                                                                            */
/* sign, then a prefix-coded dot field that gives the number of exponent bits */
/* (11: 4, 10: 3, 01: 2, 001: 1, 0001: 0; 0000: denormal), then the exponent  */
/* as sign and magnitude without its leading one, then the fraction.          */
/* -------------------------------------------------------------------------- */

enum {
    HIF8_MAX_FINITE = 0x6e,
    HIF8_INF = 0x6f,
    HIF8_NAN = 0x80,
    HIF8_EXPONENT_MAX = 15,
    HIF8_EXPONENT_MIN = -15, /* normal values */
    HIF8_DENORMAL_BIAS = 23, /* denormal m is 2^(m - 23) */
};

FP_CODEC int hif8_fraction_bits(int magnitude)
{
    return magnitude < 4 ? 3 : magnitude < 8 ? 2 : 1;
}

/* An exponent magnitude has this many bits; 0 for 0. */
FP_CODEC int hif8_exponent_bits(int magnitude)
{
    return magnitude == 0 ? 0 : 32 - __builtin_clz((unsigned)magnitude);
}

/* The code of a normal value without fraction: dot field, then exponent. */
FP_CODEC uint32_t hif8_prefix(int exponent)
{
    const int magnitude = exponent < 0 ? -exponent : exponent;
    const int bits = hif8_exponent_bits(magnitude);
    const uint32_t dot = bits >= 2 ? (uint32_t)(bits - 1) << 5 : bits == 1 ? 0x10 : 0x08;
    if (bits == 0)
        return dot;
    const uint32_t stored = (uint32_t)magnitude - (1u << (bits - 1));
    const int fraction = hif8_fraction_bits(magnitude);
    return dot | ((uint32_t)(exponent < 0) << (bits - 1) | stored) << fraction;
}

FP_CODEC struct fp_value hif8_unpack(uint32_t code)
{
    const bool negative = code >> 7 & 1;
    const uint32_t body = code & 0x7f;
    if (body == HIF8_INF)
        return (struct fp_value){VALUE_INF, negative, 0, 0};
    if (body == 0 && negative) /* the one NaN has no payload: a plain quiet NaN */
        return (struct fp_value){VALUE_NAN, false, 0, FP_QUIET_BIT};
    if (body < 0x08) /* denormal */
        return fp_normalise(negative, body != 0, (int)body - HIF8_DENORMAL_BIAS);
    /* dot 01, 10, 11 give 2, 3, 4 exponent bits and 001, 0001 give 1, 0 */
    const int bits = body >= 0x20 ? (int)(body >> 5) + 1 : body >= 0x10 ? 1 : 0;
    const int fraction_bits = bits >= 3 ? 5 - bits : 3;
    const uint32_t fraction = body & ((1u << fraction_bits) - 1);
    int exponent = 0;
    if (bits > 0) {
        const uint32_t field = body >> fraction_bits;
        const int top = 1 << (bits - 1); /* the implied leading one; in the field, the sign */
        const int magnitude = top | (int)(field & (uint32_t)(top - 1));
        exponent = field & (uint32_t)top ? -magnitude : magnitude;
    }
    return fp_normalise(negative, fraction | 1u << fraction_bits, exponent - fraction_bits);
}

/* Ties away, finite overflow saturates, -0 and underflow are +0: every policy. */
FP_CODEC uint32_t hif8_pack(struct fp_value v)
{
    const uint32_t sign = v.negative ? 0x80 : 0;
    if (v.class == VALUE_NAN)
        return HIF8_NAN;
    if (v.class == VALUE_INF)
        return sign | HIF8_INF;
    if (v.class == VALUE_ZERO || v.exponent < -HIF8_DENORMAL_BIAS)
        return 0;
    const bool denormal = v.exponent < HIF8_EXPONENT_MIN;
    const int fraction_bits =
        denormal ? 0 : hif8_fraction_bits(v.exponent < 0 ? -v.exponent : v.exponent);
    uint64_t rounded = fp_round_shift(v.significand, 63 - fraction_bits, true);
    int exponent = v.exponent;
    if (rounded >> (fraction_bits + 1)) { /* carried into the next power of two */
        rounded = 0;
        exponent++;
    }
    if (exponent > HIF8_EXPONENT_MAX || (exponent == HIF8_EXPONENT_MAX && (rounded & 1)))
        return sign | HIF8_MAX_FINITE;
    if (exponent < HIF8_EXPONENT_MIN) {
        /* 2^-23 itself, a tie between 0 and 2^-22, goes away from zero */
        const int m = exponent + HIF8_DENORMAL_BIAS;
        return sign | (uint32_t)(m < 1 ? 1 : m);
    }
    const uint32_t fraction = (uint32_t)rounded & ((1u << fraction_bits) - 1);
    return sign | hif8_prefix(exponent) | fraction;
}

/* -------------------------------------------------------------------------- */
/* Formats with fixed fields                                                  */
/* -------------------------------------------------------------------------- */

/* The exact value of a code; bits above the format's own are ignored. */
FP_CODEC struct fp_value fp_unpack(fpconv_format format, uint64_t code, fpconv_policy policy)
{
    const struct fp_format *f = &fp_formats[format];
    if (f->specials == SPECIALS_TAPERED)
        return hif8_unpack((uint32_t)code);
    const int fraction_bits = f->fraction_bits;
    const uint64_t fraction = code & ((UINT64_C(1) << fraction_bits) - 1);
    const int field_max = (1 << f->exponent_bits) - 1;
    const int field = (int)(code >> fraction_bits) & field_max;
    const bool negative = code >> (f->exponent_bits + fraction_bits) & 1;

    if (field == field_max) {
        const uint64_t payload = fraction << (63 - fraction_bits);
        const bool reserved = fp_exponent_is_reserved(f, policy);
        if (reserved && fraction == 0)
            return (struct fp_value){VALUE_INF, negative, 0, 0};
        const bool all_ones = fraction == (UINT64_C(1) << fraction_bits) - 1;
        if (reserved || (f->specials == SPECIALS_NAN_ONLY && all_ones))
            return (struct fp_value){VALUE_NAN, negative, 0, payload};
    }
    const uint64_t implicit = (uint64_t)(field != 0) << fraction_bits;
    const int exponent = (field != 0 ? field : 1) - f->bias - fraction_bits;
    return fp_normalise(negative, implicit | fraction, exponent);
}

/* The code, without sign, of a finite value too large for the format, or of Inf. */
FP_CODEC uint64_t fp_pack_overflow(fpconv_format format, fpconv_policy policy)
{
    const struct fp_format *f = &fp_formats[format];
    const uint64_t max_finite = fp_max_finite(f, policy);
    if (policy == FPCONV_OCP_SAT && !fp_format_is_wide(format))
        return max_finite;
    /* The code after the largest finite one is Inf where the exponent is
     * reserved, and the NaN of e4m3. */
    return fp_exponent_is_reserved(f, policy) || f->specials == SPECIALS_NAN_ONLY ? max_finite + 1
                                                                                  : max_finite;
}

/* The code of a NaN, sign included: a format without NaN gives a positive number. */
FP_CODEC uint64_t fp_pack_nan(fpconv_format format, struct fp_value v, fpconv_policy policy)
{
    const struct fp_format *f = &fp_formats[format];
    const int magnitude_bits = f->exponent_bits + f->fraction_bits;
    const uint64_t sign = (uint64_t)v.negative << magnitude_bits;
    const uint64_t all_ones = (UINT64_C(1) << magnitude_bits) - 1;
    if (fp_policy_is_hdf5(policy) || f->specials == SPECIALS_NAN_ONLY)
        return sign | all_ones;
    if (f->specials == SPECIALS_NONE)
        return fp_max_finite(f, policy);
    const uint64_t fraction = (v.significand | FP_QUIET_BIT) >> (63 - f->fraction_bits);
    return sign | (all_ones - ((UINT64_C(1) << f->fraction_bits) - 1)) | fraction;
}

/* The code, without sign, of a finite value. */
FP_CODEC uint64_t fp_pack_finite(fpconv_format format, struct fp_value v, fpconv_policy policy)
{
    const struct fp_format *f = &fp_formats[format];
    const int fraction_bits = f->fraction_bits;
    const int exponent_min = 1 - f->bias; /* of the normal values */
    const uint64_t max_finite = fp_max_finite(f, policy);
    const bool hdf5_rounding = fp_policy_is_hdf5(policy) && !fp_format_is_wide(format);

    if (hdf5_rounding && v.exponent > (int)(max_finite >> fraction_bits) - f->bias)
        return fp_pack_overflow(format, policy);

    /* Below exponent_min the last place stays where it is: shift further. */
    const int excess = v.exponent - exponent_min;
    const int drop = 63 - fraction_bits - (excess < 0 ? excess : 0);
    uint64_t rounded = fp_round_shift(v.significand, drop, hdf5_rounding);
    if (policy == FPCONV_HDF5_CARRY_LOST ||
        (policy == FPCONV_HDF5_SUBNORMAL_CARRY_LOST && excess < 0))
        rounded = fp_lose_carry(rounded, drop);
    /* The leading one of a normal value counts 1 in the exponent field, and so
     * does a carry out of the significand, subnormal ones included. */
    const uint64_t code = ((uint64_t)(excess > 0 ? excess : 0) << fraction_bits) + rounded;
    if (code > max_finite)
        return hdf5_rounding ? max_finite : fp_pack_overflow(format, policy);
    return code;
}

/* The nearest code of a value under a policy, in the format's low bits. */
FP_CODEC uint64_t fp_pack(fpconv_format format, struct fp_value v, fpconv_policy policy)
{
    const struct fp_format *f = &fp_formats[format];
    if (f->specials == SPECIALS_TAPERED)
        return hif8_pack(v);
    if (v.class == VALUE_NAN)
        return fp_pack_nan(format, v, policy);
    const uint64_t sign = (uint64_t)v.negative << (f->exponent_bits + f->fraction_bits);
    if (v.class == VALUE_ZERO)
        return sign;
    if (v.class == VALUE_INF)
        return sign | fp_pack_overflow(format, policy);
    return sign | fp_pack_finite(format, v, policy);
}

/* One element from one format to another: the definition. */
FP_CODEC uint64_t fp_convert_code(fpconv_format dst, fpconv_format src, uint64_t code,
                                  fpconv_policy policy)
{
    return fp_pack(dst, fp_unpack(src, code, policy), policy);
}

#endif /* FPCONV_SRC_CODEC_H */
