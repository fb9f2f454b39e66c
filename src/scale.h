/*
 * scale.h - scales and scaled elements, one value at a time: the definition
 *
 * SPDX-License-Identifier: MIT
 *
 * A scale is a struct fp_value of at most 28 significant bits (f32 times e4m3),
 * so that exact products fit in 64 bits and exact quotients come from one
 * 64-bit division and its remainder.
 */
#ifndef FPCONV_SRC_SCALE_H
#define FPCONV_SRC_SCALE_H

#include "codec.h"

#include "fpconv/scaled.h"

enum {
    SCALE_BITS = 28,
    E8M0_BIAS = 127,
    E8M0_MAX = 254,
    E8M0_NAN = 255,
    E4M3_NAN = 0x7f,
    MX_BLOCK = 32,
    NVFP4_BLOCK = 16
};

FP_CODEC struct fp_value fp_power_of_two(int exponent)
{
    return (struct fp_value){VALUE_FINITE, false, exponent, UINT64_C(1) << 63};
}

FP_CODEC struct fp_value fp_from_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return fp_unpack(FPCONV_F32, bits, FPCONV_OCP);
}

FP_CODEC float fp_to_f32(struct fp_value value)
{
    const uint32_t bits = (uint32_t)fp_pack(FPCONV_F32, value, FPCONV_OCP);
    float result;
    memcpy(&result, &bits, sizeof(result));
    return result;
}

/* The largest finite element; fewer than SCALE_BITS bits. */
FP_CODEC struct fp_value fp_largest(fpconv_format element)
{
    return fp_unpack(element, fp_max_finite(&fp_formats[element], FPCONV_OCP), FPCONV_OCP);
}

/*
 * a * b; a of at most 36 and b of at most 28 significant bits.  Exact: what is
 * special is so as in IEEE 754.
 */
FP_CODEC struct fp_value fp_multiply(struct fp_value a, struct fp_value b)
{
    const bool negative = a.negative != b.negative;
    if (a.class == VALUE_NAN)
        return a;
    if (b.class == VALUE_NAN)
        return b;
    if (a.class == VALUE_INF || b.class == VALUE_INF) {
        const bool invalid = a.class == VALUE_ZERO || b.class == VALUE_ZERO;
        return (struct fp_value){invalid ? VALUE_NAN : VALUE_INF, !invalid && negative, 0, 0};
    }
    if (a.class == VALUE_ZERO || b.class == VALUE_ZERO)
        return (struct fp_value){VALUE_ZERO, negative, 0, 0};
    const uint64_t product = (a.significand >> SCALE_BITS) * (b.significand >> (64 - SCALE_BITS));
    return fp_normalise(negative, product,
                        a.exponent - (63 - SCALE_BITS) + b.exponent - (SCALE_BITS - 1));
}

/*
 * a / b; b of at most 28 significant bits.  The quotient is cut after at least
 * 36 bits, and its last bit is set where something was cut: rounded to 34 bits
 * or fewer the result is that of the exact quotient.  Special values as in IEEE
 * 754, but that a / 0 is 0, since whatever the code, it decodes to 0, and that
 * a / NaN is +0.
 */
FP_CODEC struct fp_value fp_divide(struct fp_value a, struct fp_value b)
{
    const bool negative = a.negative != b.negative;
    if (b.class == VALUE_NAN)
        return (struct fp_value){VALUE_ZERO, false, 0, 0};
    if (a.class == VALUE_NAN)
        return a;
    if (b.class == VALUE_INF && a.class == VALUE_INF)
        return (struct fp_value){VALUE_NAN, false, 0, 0};
    if (b.class == VALUE_ZERO || b.class == VALUE_INF || a.class == VALUE_ZERO)
        return (struct fp_value){VALUE_ZERO, negative, 0, 0};
    if (a.class == VALUE_INF)
        return (struct fp_value){VALUE_INF, negative, 0, 0};
    const uint64_t divisor = b.significand >> (64 - SCALE_BITS);
    const uint64_t quotient = a.significand / divisor;
    const bool inexact = quotient * divisor != a.significand;
    return fp_normalise(negative, quotient | inexact,
                        a.exponent - 63 - (b.exponent - (SCALE_BITS - 1)));
}

/*
 * The f32 code of a value, rounded to odd: cut, with the last bit set where
 * something was cut.  Rounding that to a format of at most 11 significant bits
 * gives what rounding the value itself gives.  The exponent is held within f32's
 * normal range, which lies beyond the range of every element format on both
 * sides.
 */
FP_CODEC uint32_t fp_to_odd_f32(struct fp_value v)
{
    const uint32_t smallest_normal = UINT32_C(0x00800000), largest = UINT32_C(0x7f7fffff);
    if (v.class != VALUE_FINITE)
        return (uint32_t)fp_pack(FPCONV_F32, v, FPCONV_OCP);
    const uint32_t sign = (uint32_t)v.negative << 31;
    if (v.exponent < -126)
        return sign | smallest_normal;
    if (v.exponent > 127)
        return sign | largest;
    const uint32_t fraction = (uint32_t)(v.significand >> 40) & 0x7fffff;
    const bool inexact = v.significand << 24 != 0;
    return sign | (uint32_t)(v.exponent + 127) << 23 | fraction | inexact;
}

/* -------------------------------------------------------------------------- */
/* The choice of scales, each from an amax: zero, finite, Inf or NaN           */
/* -------------------------------------------------------------------------- */

FP_CODEC uint8_t fp_choose_mx(struct fp_value amax, fpconv_format element, fpconv_scale_rule rule)
{
    const struct fp_value largest = fp_largest(element);
    if (amax.class == VALUE_NAN)
        return E8M0_NAN;
    if (amax.class == VALUE_ZERO)
        return 0;
    if (amax.class == VALUE_INF)
        amax = fp_power_of_two(128);
    const bool up = rule == FPCONV_SCALE_CEIL && amax.significand > largest.significand;
    const int code = amax.exponent - largest.exponent + up + E8M0_BIAS;
    return (uint8_t)(code < 0 ? 0 : code > E8M0_MAX ? E8M0_MAX : code);
}

/* unit: 6 * tensor scale */
FP_CODEC uint8_t fp_choose_nvfp4(struct fp_value amax, struct fp_value unit)
{
    if (amax.class == VALUE_NAN)
        return E4M3_NAN;
    return (uint8_t)fp_pack(FPCONV_E4M3, fp_divide(amax, unit), FPCONV_OCP_SAT);
}

/* amax / largest, amax zero or finite */
FP_CODEC float fp_choose_f32(struct fp_value amax, struct fp_value largest)
{
    const uint32_t smallest_normal = UINT32_C(0x00800000), largest_f32 = UINT32_C(0x7f7fffff);
    if (amax.class == VALUE_ZERO)
        return 1.0f;
    uint32_t bits = (uint32_t)fp_pack(FPCONV_F32, fp_divide(amax, largest), FPCONV_OCP);
    bits = bits < smallest_normal ? smallest_normal : bits > largest_f32 ? largest_f32 : bits;
    float scale;
    memcpy(&scale, &bits, sizeof(scale));
    return scale;
}

/* The largest t with dot_length * 4^t <= 65504; dot_length is at least 1. */
FP_CODEC int fp_pow2_limit(size_t dot_length)
{
    const size_t largest = 65504;
    int t = 0;
    for (; dot_length > largest; dot_length = dot_length / 4 + (dot_length % 4 != 0))
        t--;
    for (; dot_length <= largest / 4; dot_length *= 4)
        t++;
    return t;
}

/* The least e for which amax / 2^e as f16 is below 2^limit, or zero if f16 has no
 * smaller ones. */
FP_CODEC int16_t fp_choose_pow2(struct fp_value amax, int limit)
{
    if (amax.class == VALUE_ZERO)
        return 0;
    const uint64_t bound = fp_pack(FPCONV_F16, fp_power_of_two(limit), FPCONV_OCP);
    int e = amax.exponent - limit;
    for (amax.exponent = limit; fp_pack(FPCONV_F16, amax, FPCONV_OCP) >= (bound ? bound : 1); e++)
        amax.exponent--;
    return (int16_t)e;
}

#endif /* FPCONV_SRC_SCALE_H */
