/*
 * narrow_byte.h - rounding 16-bit lanes into 8 bits and fewer: the algorithm
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by narrow.h, which says why 16 bits are enough.
 */

/* A normal code of dst as a magnitude with the lane format's fields, doubled
 * (that is, without its sign bit). */
LANES uint16_t lane_magnitude(fpconv_format lane, fpconv_format dst, uint64_t code)
{
    const struct fp_format *l = &fp_formats[lane], *d = &fp_formats[dst];
    const uint64_t rebiased = code + ((uint64_t)(l->bias - d->bias) << d->fraction_bits);
    return (uint16_t)(rebiased << (l->fraction_bits - d->fraction_bits + 1));
}

/*
 * Bring a doubled magnitude into the range in which rounding yields the right code
 * by itself: the overflow code is what the clamped value rounds to.
 */
LANES vec clamp_magnitude(vec doubled, fpconv_format lane, fpconv_format dst, fpconv_policy policy)
{
    const vec overflow = u16_set(lane_magnitude(lane, dst, fp_pack_overflow(dst, policy)));
    if (!fp_policy_is_hdf5(policy) || policy == FPCONV_HDF5_CARRY_LOST)
        return u16_min(doubled, overflow);
    /* Below 2^(e_max+1) nothing rounds past the largest finite value. */
    const vec largest = u16_set(lane_magnitude(lane, dst, fp_max_finite(&fp_formats[dst], policy)));
    const mask16 is_finite = u16_greater(overflow, doubled);
    return u16_select(is_finite, u16_min(doubled, largest), overflow);
}

/*
 * Codes without sign, or significands with their leading one, rounded and truncated, to
 * those without the carry out of the significand.  A normal number keeps its exponent
 * field.  A subnormal one has carried if no bit is left where it was; then it is halved, but
 * for the smallest, which came from zero.
 */
LANES vec lose_carry(vec rounded, vec truncated, fpconv_format dst, fpconv_policy policy)
{
    const uint16_t fraction = (uint16_t)((1 << fp_formats[dst].fraction_bits) - 1);
    const vec kept = policy == FPCONV_HDF5_CARRY_LOST
                         ? vec_merge(u16_set(fraction), rounded, truncated)
                         : rounded;
    const vec staying = vec_or(rounded, u16_set((uint16_t)~fraction));
    return u16_select(u16_are_disjoint(truncated, staying), u16_half_up(rounded), kept);
}

/* The same for one code to a byte.  The truncated ones may have signs, which do not matter. */
LANES vec lose_carry_of_bytes(vec rounded, vec truncated, fpconv_format dst, fpconv_policy policy)
{
    const struct fp_format *d = &fp_formats[dst];
    const uint8_t fraction = (uint8_t)((1 << d->fraction_bits) - 1);
    const uint8_t exponent = (uint8_t)(((1 << d->exponent_bits) - 1) << d->fraction_bits);
    const vec kept = policy == FPCONV_HDF5_CARRY_LOST
                         ? vec_merge(u8_set(fraction), rounded, truncated)
                         : rounded;
    const vec staying = vec_or(rounded, u8_set(exponent));
    return u8_select(u8_are_disjoint(truncated, staying), u8_half_up(rounded), kept);
}

/*
 * a / 2^t rounded to nearest, where b = 2^(15 - t), or 0 if t > 15, and a is below
 * 2^15: multiply-high-round-scale, (a * b + 2^14) / 2^15, rounds ties away.  Of
 * the low half of the product, bit 15 is the quotient's last bit and bits 14..0
 * are the rest: 0x4000 is a tie at an even quotient, which ties to even leaves, and
 * bit 14 is what rounding added.
 */
LANES vec multiply_round(vec a, vec b, fpconv_format dst, fpconv_policy policy)
{
    const vec rounded = s16_multiply_high_round(a, b);
    if (policy == FPCONV_HDF5)
        return rounded;
    const vec low = u16_multiply_low(a, b);
    if (fp_policy_loses_carries(policy)) {
        const vec up = vec_and(u16_shift_right(low, 14), u16_set(1));
        return lose_carry(rounded, u16_sub(rounded, up), dst, policy);
    }
    return u16_decrement(rounded, u16_equal(low, u16_set(0x4000)));
}

/*
 * The significand shifted right so that it ends at dst's last place, rounded,
 * and added to the exponent field: the code without sign.
 *
 * With k the number of places below dst's smallest normal exponent (0 above),
 *
 *   code = round(max(magnitude - (e_min - 1), significand) / 2^(shift + k)),
 *
 * where the maximum picks the magnitude, whose exponent field the significand's
 * leading one and a carry increment, for normal results, and the significand
 * alone for subnormal ones.
 */
LANES vec round_by_product(vec doubled, fpconv_format lane, fpconv_format dst, fpconv_policy policy)
{
    const struct fp_format *l = &fp_formats[lane], *d = &fp_formats[dst];
    const int shift = l->fraction_bits - d->fraction_bits;
    const int exponent_min = 1 - d->bias + l->bias;
    const int fraction_bits = l->fraction_bits + 1; /* doubled */
    const vec leading_one = u16_set((uint16_t)(1 << fraction_bits));
    const vec fraction_mask = u16_set((uint16_t)((1 << fraction_bits) - 1));
    const uint16_t below_min = (uint16_t)((exponent_min - 1) << fraction_bits);

    const vec exponent = u16_shift_right(doubled, fraction_bits);
    const vec k = u16_sub_saturate(u16_set((uint16_t)exponent_min), exponent);
    const vec significand = vec_or_and(leading_one, doubled, fraction_mask);
    const vec dividend = u16_max(u16_sub_saturate(doubled, u16_set(below_min)), significand);
    return multiply_round(dividend, u16_power_of_2_right(14 - shift, k), dst, policy);
}

#ifdef VEC_HAS_BINADES
#include "narrow_binades.h"
#endif

/* Is a truncated code of dst the high byte of a lane?  Subnormal ones, too. */
LANES bool fields_agree(fpconv_format lane, fpconv_format dst)
{
    return fp_formats[lane].exponent_bits == fp_formats[dst].exponent_bits &&
           fp_formats[lane].bias == fp_formats[dst].bias;
}

LANES vec round_to_code(vec doubled, fpconv_format lane, fpconv_format dst, fpconv_policy policy)
{
    const struct fp_format *l = &fp_formats[lane], *d = &fp_formats[dst];
    const int shift = l->fraction_bits - d->fraction_bits;
    if (fields_agree(lane, dst)) { /* losing carries is left to lose_carry_of_bytes */
        const vec quotient = u16_shift_right(doubled, shift + 1);
        const vec nudged =
            fp_policy_is_hdf5(policy) ? doubled : u16_sub(doubled, vec_clear(u16_set(1), quotient));
        return u16_shift_right(u16_add(nudged, u16_set((uint16_t)(1 << shift))), shift + 1);
    }
#ifdef VEC_HAS_BINADES
    return round_by_binade(doubled, lane, dst, policy);
#else
    return round_by_product(doubled, lane, dst, policy);
#endif
}

/* The doubled magnitude of Inf. */
LANES uint16_t doubled_inf(fpconv_format lane)
{
    const struct fp_format *l = &fp_formats[lane];
    return (uint16_t)(((1 << l->exponent_bits) - 1) << (l->fraction_bits + 1));
}

/* 16-bit lanes with a byte of code and a sign bit at the top. */
struct signed_codes {
    vec code, sign;
};

/* Codes of dst from values with the lane format's fields, also given doubled. */
LANES struct signed_codes narrow_to_byte(vec value, vec doubled, fpconv_format lane,
                                         fpconv_format dst, fpconv_policy policy, bool nan_possible)
{
    const struct fp_format *l = &fp_formats[lane], *d = &fp_formats[dst];
    const uint16_t all_ones = (uint16_t)((1 << (d->exponent_bits + d->fraction_bits)) - 1);
    const bool nan_is_all_ones = fp_policy_is_hdf5(policy) || d->specials == SPECIALS_NAN_ONLY;

    const mask16 is_nan = u16_greater(doubled, u16_set(doubled_inf(lane)));
    vec clamped = clamp_magnitude(doubled, lane, dst, policy);
    if (nan_possible && nan_is_all_ones && fp_pack_overflow(dst, policy) != all_ones)
        clamped = u16_select(is_nan, u16_set(lane_magnitude(lane, dst, all_ones)), clamped);
    const vec code = round_to_code(clamped, lane, dst, policy);

    if (!nan_possible || nan_is_all_ones)
        return (struct signed_codes){code, value};
    if (d->specials == SPECIALS_NONE) /* NaN: clamped to the largest value already, and positive */
        return (struct signed_codes){code, u16_select(is_nan, u16_set(0), value)};
    const vec payload = u16_shift_right(value, l->fraction_bits - d->fraction_bits);
    const uint16_t fraction = (uint16_t)((1 << d->fraction_bits) - 1);
    const uint16_t quiet = (uint16_t)(all_ones - fraction + (1 << (d->fraction_bits - 1)));
    const vec nan = vec_or_and(u16_set(quiet), payload, u16_set(fraction));
    return (struct signed_codes){u16_select(is_nan, nan, code), value};
}
