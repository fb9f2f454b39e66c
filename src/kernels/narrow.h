/*
 * narrow.h - rounding into the formats of 16 bits and fewer: the algorithms
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by the file of each instruction set.  Formats and policies are
 * constants wherever a function is called, so that every branch on them folds.
 *
 * Everything happens in 16-bit lanes, twice as many to a vector as 32-bit ones.
 * A format with at most 5 fraction bits can be rounded from the top half of an
 * f32 alone (sign, 8 exponent bits, 7 fraction bits), if the last of these bits
 * is made sticky, that is set where any bit of the lower half is: the value
 * stays on the same side of every midpoint.  That top half is a bf16, so bf16
 * arrays enter at the same place; f16 arrays enter with f16's own fields.
 */

/* -------------------------------------------------------------------------- */
/* Loading f32 and f64                                                        */
/* -------------------------------------------------------------------------- */

/*
 * f64, given as its high and low 32 bits, to f32 by rounding to odd: keep 20
 * fraction bits and make the last of f32's 23 sticky.  Rounding the result once
 * more, to any format with fewer than 20, is the same as rounding the f64.
 *
 * For zero and magnitudes from 2^-126 to below 2^128.  Smaller ones become
 * something below 2^-126, which is right for every format but f32 and bf16.
 */
LANES vec f64_to_f32_round_to_odd(vec high, vec low)
{
    const vec sign_bit = u32_set(0x80000000);
    const vec magnitude = vec_clear(high, sign_bit);
    const vec rebiased = s32_max(u32_sub(magnitude, u32_set((1023 - 127) << 20)), u32_set(0));
    const vec f32 = u32_or_nonzero_bit(u32_shift_left(rebiased, 3), low);
    return vec_or_and(f32, high, sign_bit);
}

/*
 * The same for every f64.  From 2^128 on all are Inf, which no policy tells from
 * them; a NaN keeps its leading payload bits and is quiet, lest those be zero.
 */
LANES vec any_f64_to_f32_round_to_odd(vec high, vec low)
{
    const vec magnitude = vec_clear(high, u32_set(0x80000000));
    const vec f32 = f64_to_f32_round_to_odd(high, low);
    const mask32 is_ordinary = s32_greater(u32_set((1023 + 128) << 20), magnitude);
    const vec inf = vec_or_and(u32_set(0x7f800000), high, u32_set(0x80000000));
    const mask32 is_nan = s32_greater(u32_or_nonzero_bit(magnitude, low), u32_set(0x7ff00000));
    const vec nan = vec_or(f32, u32_set(0x7fc00000));
    return u32_select(is_nan, nan, u32_select(is_ordinary, f32, inf));
}

/* An f64 array by the above, into f32s for a kernel that rounds those. */
static __attribute__((noinline)) void f64_block_to_odd_f32(char *f32, const char *f64, size_t n)
{
    for (size_t i = 0; i < n; i += LANES_32, f64 += 2 * VEC_BYTES, f32 += VEC_BYTES) {
        vec high, low;
        vec_split_u64(vec_load(f64), vec_load(f64 + VEC_BYTES), &high, &low);
        vec_store(f32, any_f64_to_f32_round_to_odd(high, low));
    }
}

/*
 * Is any of n f64 at least 2^128, Inf or NaN, or, if that matters, below 2^-126?
 * Zeros count as below: one comparison a vector less than knowing better.
 */
LANES bool f64_block_is_unusual(const char *src, size_t n, bool small_matters)
{
    const uint32_t least = small_matters ? (uint32_t)(1023 - 126) << 20 : 0;
    const uint32_t bound = (uint32_t)(1023 + 128) << 20;
    /* magnitude - least as unsigned, by signed maxima: the sign bit is flipped */
    const vec flip = u32_set(least + 0x80000000);
    vec furthest = u32_set(0x80000000);
    for (size_t i = 0; i < n; i += LANES_32, src += 2 * VEC_BYTES) {
        vec high, low;
        vec_split_u64(vec_load(src), vec_load(src + VEC_BYTES), &high, &low);
        const vec magnitude = vec_clear(high, u32_set(0x80000000));
        furthest = s32_max(furthest, u32_sub(magnitude, flip));
    }
    return mask_any(s32_greater(furthest, u32_set(bound - least - 1 + 0x80000000)));
}

/* Can load_as_f32 be given Inf, NaN and other f64 that f32 does not hold? */
#ifdef VEC_HAS_F64_TO_ODD_F32
enum { LOADS_ANY_F64 = true };
#else
enum { LOADS_ANY_F64 = false };
#endif

LANES bool nan_is_possible(fpconv_format src_format)
{
    return src_format != FPCONV_F64 || LOADS_ANY_F64;
}

/* LANES_32 elements as f32, good for one more rounding */
LANES vec load_as_f32(const char *src, fpconv_format format)
{
    if (format == FPCONV_F32)
        return vec_load(src);
#ifdef VEC_HAS_F64_TO_ODD_F32
    return vec_f64_to_odd_f32(vec_load(src), vec_load(src + VEC_BYTES));
#else
    vec high, low;
    vec_split_u64(vec_load(src), vec_load(src + VEC_BYTES), &high, &low);
    return f64_to_f32_round_to_odd(high, low);
#endif
}

/*
 * LANES_32 f64 as their high 32 bits, the last of the 20 fraction bits made sticky:
 * rounded to odd, with f64's own exponents.
 */
LANES vec load_f64_tops(const char *src)
{
    vec high, low;
    vec_split_u64(vec_load(src), vec_load(src + VEC_BYTES), &high, &low);
    return u32_or_nonzero_bit(high, low);
}

/* LANES_16 elements */
LANES struct halves load_f64_top_halves(const char *src)
{
    const vec first = load_f64_tops(src);
    return vec_split_u32(first, load_f64_tops(src + LANES_32 * sizeof(double)));
}

/* LANES_16 elements */
LANES struct halves load_halves(const char *src, fpconv_format format)
{
#ifdef VEC_HAS_LOAD_HALVES
    if (format == FPCONV_F32)
        return load_f32_halves(src);
#endif
    const vec first = load_as_f32(src, format);
    return vec_split_u32(first, load_as_f32(src + LANES_32 * fp_formats[format].size, format));
}

/*
 * The same where ties go away from zero: what is lost below the top half, or below an f32,
 * which makes a tie of what was above it, does not matter.  A NaN stays one, but not by its
 * top half alone.
 */
LANES vec load_truncated_f32(const char *src, fpconv_format format)
{
#ifdef VEC_HAS_F64_TO_TRUNCATED_F32
    if (format == FPCONV_F64)
        return vec_f64_to_truncated_f32(vec_load(src), vec_load(src + VEC_BYTES));
#endif
    return load_as_f32(src, format);
}

LANES struct halves load_truncated_halves(const char *src, fpconv_format format)
{
    if (format != FPCONV_F64)
        return load_halves(src, format);
    const vec first = load_truncated_f32(src, format);
    return vec_split_u32(first, load_truncated_f32(src + 2 * VEC_BYTES, format));
}

/* The top half doubled, that is without its sign bit, and the last bit, which that
 * leaves free, made sticky. */
#ifndef VEC_HAS_SHIFT_IN
LANES vec doubled_top(struct halves x)
{
    return vec_or(u16_shift_left(x.high, 1), u16_min(x.low, u16_set(1)));
}
#endif

/* -------------------------------------------------------------------------- */
/* Rounding into 8 bits and fewer                                             */
/* -------------------------------------------------------------------------- */

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

/* -------------------------------------------------------------------------- */
/* Rounding into bf16 and f16                                                 */
/* -------------------------------------------------------------------------- */

/* Is it a NaN?  Its doubled top half, with the lane format's fields and a sticky bit below, is
 * past Inf. */
LANES mask16 halves_are_nan(struct halves x, fpconv_format lane)
{
    const vec any_low = u16_min(x.low, u16_set(1));
    const vec doubled = vec_or(u16_shift_left(x.high, 1), any_low);
    return u16_greater(doubled, u16_set(doubled_inf(lane)));
}

/*
 * Are all magnitudes below what rounds to bf16's Inf?  Others are rare, and what they take is
 * half of what bf16 takes: 65,536 f32 take 0.12 ns each with AVX2 instead of 0.23.
 */
LANES bool halves_are_ordinary(const struct halves x[2])
{
    const vec sign_bit = u16_set(0x8000);
    const vec largest = u16_max(vec_clear(x[0].high, sign_bit), vec_clear(x[1].high, sign_bit));
    return !mask_any(s16_greater(largest, u16_set(0x7f7e)));
}

/* bf16 is the top half of f32, plus one where the lower half rounds up: if that is more
 * than 0x8000, or equal and the top odd. */
LANES vec round_top_half_to_even(struct halves x)
{
    const vec odd = vec_and(x.high, u16_set(1));
    return u16_increment(x.high, u16_greater(vec_or(x.low, odd), u16_set(0x8000)));
}

/* The code is less than the top half by `raised`. */
LANES vec ordinary_halves_to_bf16(struct halves x, uint16_t raised, fpconv_policy policy)
{
    const vec top = u16_sub(x.high, u16_set(raised)), sign_bit = u16_set(0x8000);
    if (!fp_policy_is_hdf5(policy))
        return round_top_half_to_even((struct halves){top, x.low});
    const vec up = u16_shift_right(x.low, 15);
    if (!fp_policy_loses_carries(policy))
        return u16_add(top, up);
    const vec truncated = vec_clear(top, sign_bit);
    const vec lost = lose_carry(u16_add(truncated, up), truncated, FPCONV_BF16, policy);
    return vec_or_and(lost, top, sign_bit);
}

LANES vec halves_to_bf16(struct halves x, fpconv_policy policy, bool nan_possible)
{
    const vec sign_bit = u16_set(0x8000), largest = u16_set(0x7f7f);
    const mask16 is_nan = halves_are_nan(x, FPCONV_BF16);
    if (fp_policy_is_hdf5(policy)) {
        const vec magnitude = vec_clear(x.high, sign_bit);
        /* ties away, but never from the largest finite value to Inf, unless that carry is
         * lost; nor from a NaN to a sign bit */
        const vec limit =
            policy == FPCONV_HDF5_CARRY_LOST ? u16_set(0x7fff) : u16_max(magnitude, largest);
        vec rounded = u16_min(u16_add(magnitude, u16_shift_right(x.low, 15)), limit);
        if (fp_policy_loses_carries(policy))
            rounded = lose_carry(rounded, magnitude, FPCONV_BF16, policy);
        const vec all = nan_possible ? u16_all_ones_where(is_nan, 0x7fff, rounded) : rounded;
        return vec_or_and(all, x.high, sign_bit);
    }
    vec rounded = round_top_half_to_even(x);
    if (policy == FPCONV_OCP_SAT) {
        const vec magnitude = u16_min(vec_clear(rounded, sign_bit), largest);
        rounded = vec_or_and(magnitude, x.high, sign_bit);
    }
    return nan_possible ? u16_select(is_nan, vec_or(x.high, u16_set(0x0040)), rounded) : rounded;
}

/*
 * f16 or bf16 from the halves of an f32 or of an f64's high 32 bits: 13 fraction
 * bits, the last of them sticky, are enough for either's 10 or 7 and a rounding bit.
 * As in round_to_code, but the exponent is added after rounding, for the significand
 * takes the whole lane.  For every value, or only those of exponents that dst has,
 * and smaller ones.
 */
LANES vec halves_to_half(struct halves x, fpconv_format src, fpconv_format dst,
                         fpconv_policy policy, bool large_possible)
{
    const struct fp_format *s = &fp_formats[src], *d = &fp_formats[dst];
    const int top_bits = 15 - s->exponent_bits; /* of the fraction, in the high half */
    const int low_bits = 13 - top_bits;         /* wanted from the low half */
    const int exponent_min = 1 - d->bias + s->bias;
    const int exponent_inf = exponent_min + (1 << d->exponent_bits) - 2;
    const uint16_t inf = (uint16_t)(0x7fff >> d->fraction_bits << d->fraction_bits);
    const vec sign_bit = u16_set(0x8000);
    const vec magnitude = vec_clear(x.high, sign_bit);

    const vec lost = u16_min(vec_and(x.low, u16_set((uint16_t)(0xffff >> low_bits))), u16_set(1));
    const vec top_fraction = vec_and(u16_shift_left(magnitude, low_bits),
                                     u16_set((uint16_t)(0x1fff >> low_bits << low_bits)));
    const vec significand = vec_or(vec_or(top_fraction, u16_set(0x2000)),
                                   vec_or(u16_shift_right(x.low, 16 - low_bits), lost));

    vec exponent = u16_shift_right(magnitude, top_bits);
    if (large_possible)
        exponent = u16_min(exponent, u16_set((uint16_t)exponent_inf));
    vec k = u16_sub_saturate(u16_set((uint16_t)exponent_min), exponent);
    if (exponent_min > 127)
        k = u16_min(k, u16_set(127)); /* as far as u16_power_of_2_right goes */
    const vec multiplier = u16_power_of_2_right(2 + d->fraction_bits, k);
    const vec rounded = multiply_round(significand, multiplier, dst, policy);
    const vec above_min = u16_sub_saturate(exponent, u16_set((uint16_t)exponent_min));
    vec code = u16_add(u16_shift_left(above_min, d->fraction_bits), rounded);
    code = u16_min(code, u16_set(policy == FPCONV_OCP ? inf : (uint16_t)(inf - 1)));
    if (!large_possible)
        return vec_merge(sign_bit, x.high, code);
    if (fp_policy_is_hdf5(policy)) /* what is too large is Inf, while less never reaches it */
        code = u16_select(u16_greater(exponent, u16_set((uint16_t)(exponent_inf - 1))),
                          u16_set(inf), code);

    const vec any_low = u16_min(x.low, u16_set(1));
    const mask16 is_nan = u16_greater(vec_or(u16_shift_left(magnitude, 1), any_low),
                                      u16_set((uint16_t)(0x7fff >> top_bits << (top_bits + 1))));
    const int payload_shift = d->fraction_bits - top_bits;
    const vec payload = vec_or(u16_shift_left(magnitude, payload_shift),
                               u16_shift_right(x.low, 16 - payload_shift));
    const uint16_t fraction = (uint16_t)((1 << d->fraction_bits) - 1);
    const uint16_t quiet = (uint16_t)(inf | 1 << (d->fraction_bits - 1));
    const vec nan = fp_policy_is_hdf5(policy)
                        ? u16_set(0x7fff)
                        : vec_or(vec_and(payload, u16_set(fraction)), u16_set(quiet));
    return vec_merge(sign_bit, x.high, u16_select(is_nan, nan, code));
}

#ifdef VEC_HAS_F32_TO_F16
/*
 * f16 by the conversion instruction: two micro-operations a vector of f32 where
 * the integers above take about fifteen.  It rounds ties to even, overflows to
 * Inf and quietens NaNs, which is FPCONV_OCP; for the other policies, what it is
 * given is adjusted.  Ties go away from zero when the last of the f32's fraction
 * bits is set first: every midpoint of f16 has it clear, so only ties change.
 */
LANES vec f32_adjusted_for_f16(vec x, fpconv_policy policy, bool nan_possible)
{
    const vec sign_bit = u32_set(0x80000000);
    const vec magnitude = vec_clear(x, sign_bit);
    const vec largest = u32_set(0x477fe000); /* 65504 */
    if (policy == FPCONV_OCP)
        return x;
    const mask32 is_nan = s32_greater(magnitude, u32_set(0x7f800000));
    if (policy == FPCONV_OCP_SAT) {
        const vec clamped = vec_or_and(s32_min(magnitude, largest), x, sign_bit);
        return nan_possible ? u32_select(is_nan, x, clamped) : clamped;
    }
    const mask32 is_inf = s32_greater(magnitude, u32_set(0x477fffff)); /* 2^16 and more */
    vec nudged = vec_or(magnitude, u32_set(1));
    if (policy != FPCONV_HDF5_CARRY_LOST)
        nudged = s32_min(nudged, largest);
    const vec finite_or_inf = u32_select(is_inf, u32_set(0x7f800000), nudged);
    const vec all_ones = u32_set(0x7fffffff);
    const vec adjusted = nan_possible ? u32_select(is_nan, all_ones, finite_or_inf) : finite_or_inf;
    return vec_or_and(adjusted, x, sign_bit);
}

/*
 * An f32 that rounds to what x does, but without the carry: where that carries, one that is
 * less than half of a place above the power of two below x.  `nudged` is x with its last bit
 * set, by which half the smallest subnormal number still rounds up.  `probe` is infinite or
 * NaN if x is.
 */
#ifdef VEC_HAS_LARGER_MAGNITUDE
/*
 * By a sum that is in the next binade where x carries.  Half of a place is 2^-25 below 2^-13,
 * which is 2^-12 + 2^-23 times 0x38ffe004, rounded up by less than matters; and above, the same
 * share of x reaches 2^(e+1) from 2^(e+1) - 2^(e-11) on, and not from the f32 below that, as
 * the sum is truncated.  The fraction of the sum is the smaller one only where x carries.
 */
LANES vec f32_without_f16_carry(vec x, vec nudged, vec *probe)
{
    const vec share = u32_set(0x39801000), least = u32_set(0x38ffe004);
    const vec sum = f32_multiply_add_truncated(f32_larger_magnitude(x, least), share, x);
    *probe = sum;
    return s32_min(nudged, vec_merge(u32_set(0x007ffffe), sum, nudged));
}
#else
/* By the fraction of what x rounds to, which is zero after a carry. */
LANES vec f32_without_f16_carry(vec x, vec nudged, vec *probe)
{
    const vec rounded = f32_through_f16(nudged);
    (void)x;
    *probe = rounded;
    return vec_merge(u32_set(0x007ffffe), rounded, nudged);
}
#endif

/* Does any round to f16's Inf, that is, is at least 65520, or NaN? */
LANES bool f32s_reach_f16_inf(const vec x[4])
{
    const vec sign_bit = u32_set(0x80000000);
    vec largest = vec_clear(x[0], sign_bit);
    for (int i = 1; i < 4; i++)
        largest = s32_max(largest, vec_clear(x[i], sign_bit));
    return mask_any(s32_greater(largest, u32_set(0x477fefff)));
}

/* Is any of four f32s infinite or NaN?  Or so large that their products become infinite; but
 * none is subnormal, which would take long. */
LANES bool f32s_have_exception_by_products(const vec x[4])
{
    const vec sum = f32_multiply_add(x[0], x[1], u32_set(0));
    return mask_any(f32_is_not_finite(f32_multiply_add(x[2], x[3], sum)));
}

/* As adjust_for_f16.  If every carry is lost, nothing finite needs more than that. */
LANES void adjust_for_f16_without_carry(vec x[4], fpconv_policy policy, bool nan_possible)
{
    const bool always = policy == FPCONV_HDF5_CARRY_LOST;
    const vec sign_bit = u32_set(0x80000000), normal_min = u32_set(0x38800000);
    vec nudged[4], lost[4], probes[4];
    for (int i = 0; i < 4; i++) {
        nudged[i] = vec_or(x[i], u32_set(1));
        lost[i] = f32_without_f16_carry(x[i], nudged[i], &probes[i]);
    }
    if (always ? f32s_have_exception_by_products(probes) : f32s_reach_f16_inf(x))
        for (int i = 0; i < 4; i++) {
            nudged[i] = f32_adjusted_for_f16(x[i], policy, nan_possible);
            lost[i] = f32_without_f16_carry(nudged[i], nudged[i], &probes[i]);
        }
    for (int i = 0; i < 4; i++)
        x[i] = always ? lost[i]
                      : u32_select(s32_greater(normal_min, vec_clear(nudged[i], sign_bit)), lost[i],
                                   nudged[i]);
}

/* Most blocks need the nudge alone, or nothing: 65,536 f32 take 0.075 ns each with
 * AVX2 instead of 0.20 (OCP_SAT). */
LANES void adjust_for_f16(vec x[4], fpconv_policy policy, bool nan_possible)
{
    if (policy == FPCONV_OCP)
        return;
    const bool ordinary = !f32s_reach_f16_inf(x);
    if (ordinary && !fp_policy_is_hdf5(policy))
        return;
    for (int i = 0; i < 4; i++)
        x[i] =
            ordinary ? vec_or(x[i], u32_set(1)) : f32_adjusted_for_f16(x[i], policy, nan_possible);
}
#endif

#ifdef VEC_ROUNDS_BY_ADDITION
#include "narrow_add.h"
#ifndef VEC_HAS_F32_TO_F16
#define NARROWS_TO_F16_BY_ADDITION
#include "narrow_f16.h"
#endif
#else
LANES bool rounds_by_addition(fpconv_format dst, fpconv_format src)
{
    (void)dst;
    (void)src;
    return false;
}
#endif

#ifdef VEC_ROUNDS_BY_ADDITION
/* The top halves of a block, or of its first half, as f32s towards zero; f16 are as they are. */
LANES void load_truncated_tops(vec top[2], const char *src, fpconv_format src_format, int halves)
{
    const bool wide = fp_format_is_wide(src_format);
    const size_t size = fp_formats[src_format].size;
    top[0] = top[1] = u16_set(0);
    for (int i = 0; i < halves; i++, src += LANES_16 * size) {
        if (src_format == FPCONV_F64)
            top[i] = vec_split_u32(truncated_f32(src), truncated_f32(src + LANES_32 * size)).high;
        else
            top[i] = wide ? load_halves(src, src_format).high : vec_load(src);
    }
}

#include "narrow_lines.h"
#endif

/* The bytes of two vectors of 16-bit lanes, in each the second's above the first's. */
LANES vec mix_low_bytes(vec first, vec second)
{
    return vec_or(first, u16_shift_left(second, 8)); /* of the first, the high ones are 0 */
}

LANES vec mix_high_bytes(vec first, vec second)
{
    return vec_or_and(u16_shift_right(first, 8), second, u16_set(0xff00));
}

/* Bytes of codes with the sign bits that are at the top of other bytes. */
LANES vec add_signs(vec codes, vec signs, fpconv_format format)
{
    const int sign_bit = fp_formats[format].exponent_bits + fp_formats[format].fraction_bits;
    return vec_or_and(codes, u16_shift_right(signs, 7 - sign_bit),
                      u8_set((uint8_t)(1 << sign_bit)));
}

/*
 * Where ties go away from zero, the bits below the top half do nothing but tell a NaN from
 * Inf.  Both are rare, and to look for them in a block takes 6 operations less than to make
 * last bits sticky and compare.
 */

/* Codes of Inf with the fraction bits of dst set where they are to be of NaNs. */
LANES vec fill_nans(vec codes, const struct halves x[2], fpconv_format lane, fpconv_format dst)
{
    const uint16_t fraction = (uint16_t)((1 << fp_formats[dst].fraction_bits) - 1);
    vec nans[2];
    for (int i = 0; i < 2; i++)
        nans[i] = u16_all_ones_where(halves_are_nan(x[i], lane), fraction, u16_set(0));
    return vec_or(codes, mix_low_bytes(nans[0], nans[1]));
}

/* -------------------------------------------------------------------------- */
/* Blocks                                                                     */
/* -------------------------------------------------------------------------- */

/* f64 come here without Inf, NaN and those beyond f32's range, but where
 * LOADS_ANY_F64 says that these are welcome.  `halves` is 2, or 1 for the first half of
 * a block, whose other results mean nothing. */

LANES void narrow_byte_block_by_integers(fpconv_format dst_format, char *dst,
                                         fpconv_format src_format, const char *src,
                                         fpconv_policy policy, int halves)
{
    const bool wide = fp_format_is_wide(src_format);
    const fpconv_format lane = src_format == FPCONV_F16 ? FPCONV_F16 : FPCONV_BF16;
    const bool ties_away = fp_policy_is_hdf5(policy);
    /* not for what additions leave, during which MXCSR does not truncate */
    const bool truncates = ties_away && !rounds_by_addition(dst_format, src_format);
    const bool nan_possible = nan_is_possible(src_format);
    const size_t step = LANES_16 * fp_formats[src_format].size;
    struct halves x[2] = {{u16_set(0), u16_set(0)}, {u16_set(0), u16_set(0)}};
    struct signed_codes half[2] = {{u16_set(0), u16_set(0)}, {u16_set(0), u16_set(0)}};
    vec largest = u16_set(0); /* doubled */
    for (int i = 0; i < halves; i++, src += step) {
        x[i] = !wide       ? (struct halves){vec_load(src), u16_set(0)}
               : truncates ? load_truncated_halves(src, src_format)
                           : load_halves(src, src_format);
        const vec doubled = wide && !ties_away ? doubled_top(x[i]) : u16_shift_left(x[i].high, 1);
        largest = i ? u16_max(largest, doubled) : doubled;
        half[i] = narrow_to_byte(x[i].high, doubled, lane, dst_format, policy,
                                 nan_possible && !ties_away);
    }
    vec codes = mix_low_bytes(half[0].code, half[1].code);
    const vec signs = mix_high_bytes(half[0].sign, half[1].sign);
    if (fp_policy_loses_carries(policy) && fields_agree(lane, dst_format))
        codes = lose_carry_of_bytes(codes, signs, dst_format, policy);
    if (ties_away && nan_possible &&
        mask_any(u16_greater(largest, u16_set((uint16_t)(doubled_inf(lane) - 1)))))
        codes = fill_nans(codes, x, lane, dst_format);
    const vec mixed = add_signs(codes, signs, dst_format);
    vec_store(dst, wide ? vec_order_split_bytes(mixed) : vec_order_bytes(mixed));
}

LANES void narrow_byte_block(fpconv_format dst_format, char *dst, fpconv_format src_format,
                             const char *src, fpconv_policy policy, int halves)
{
#ifdef VEC_ROUNDS_BY_ADDITION
    if (rounds_along_lines(dst_format, src_format, policy) &&
        narrow_along_lines(dst_format, dst, src_format, src, halves))
        return;
    if (rounds_by_addition(dst_format, src_format) &&
        !rounds_along_lines(dst_format, src_format, policy) &&
        narrow_by_addition(dst_format, dst, src_format, src, policy, halves))
        return;
#endif
    narrow_byte_block_by_integers(dst_format, dst, src_format, src, policy, halves);
}

/* bf16 from blocks with f64 that f32 does not hold as normal numbers: small ones
 * alone, or any. */
LANES void narrow_unusual_f64_block(char *dst, const char *src, fpconv_policy policy,
                                    bool large_possible)
{
    for (int i = 0; i < 2; i++, dst += VEC_BYTES, src += LANES_16 * sizeof(double)) {
        const vec code = halves_to_half(load_f64_top_halves(src), FPCONV_F64, FPCONV_BF16, policy,
                                        large_possible);
        vec_store(dst, vec_unsplit(code));
    }
}

#ifdef VEC_HAS_RAISED_F64
/* A block, or its first half; see vec_f64_to_raised_f32. */
LANES void load_raised_f64_halves(struct halves x[2], const char *src, int halves, bool odd)
{
    for (int i = 0; i < halves; i++) {
        vec f32[2];
        for (int j = 0; j < 2; j++, src += 2 * VEC_BYTES)
            f32[j] = vec_f64_to_raised_f32(vec_load(src), vec_load(src + VEC_BYTES), odd);
        x[i] = vec_split_u32(f32[0], f32[1]);
    }
    if (halves == 1)
        x[1] = x[0];
}

/* Does the conversion to f32 lose any bits? */
LANES bool f64_block_is_inexact(const char *src, int halves)
{
    vec bits = u64_set(0);
    for (int i = 0; i < 4 * halves; i++, src += VEC_BYTES)
        bits = vec_or(bits, vec_or(vec_load(src), f64_raise(vec_load(src))));
    return mask_any(s32_greater(vec_and(bits, u64_set(F64_LOST_IN_F32)), u64_set(0)));
}

/*
 * bf16 from f64, a block or its first half, subnormal ones like others.  Bits that f32 does
 * not hold matter where what f32 holds is a tie that does not go away from zero anyway,
 * which is rare where there are such bits: 65,536 f64 take 0.20 ns each instead of 0.25.
 */
LANES void narrow_f64_to_bf16_block(char *dst, const char *src, fpconv_policy policy, int halves)
{
    struct halves x[2];
    load_raised_f64_halves(x, src, halves, false);
    if (!halves_are_ordinary(x)) {
        narrow_unusual_f64_block(dst, src, policy, true);
        return;
    }
    const vec tie = u16_set(0x8000);
    if (!fp_policy_is_hdf5(policy) &&
        mask_any(u16_equal(x[0].low, tie) | u16_equal(x[1].low, tie)) &&
        f64_block_is_inexact(src, halves))
        load_raised_f64_halves(x, src, halves, true);
    for (int i = 0; i < halves; i++, dst += VEC_BYTES)
        vec_store(dst, vec_unsplit(ordinary_halves_to_bf16(x[i], 0x0080, policy)));
}
#endif

#ifdef VEC_HAS_SHIFT_RIGHT_BY
/*
 * The bits of bf16's magnitude and one more, which is to be rounded up, from the high 32 bits
 * of f64s: below the exponent e_min of bf16's normal numbers the significand is shifted further.
 * Nothing is lost that matters where ties go away from zero.
 */
LANES vec f64_tops_to_long_bf16(vec tops)
{
    const uint32_t exponent_min = 1023 - 126, one = 1 << 20;
    const vec magnitude = vec_clear(tops, u32_set(0x80000000));
    const vec exponent = s32_min(u32_shift_right(magnitude, 20), u32_set(exponent_min));
    const vec code = u32_add(u32_sub(magnitude, u32_shift_left(exponent, 20)), u32_set(one));
    return u32_shift_right_by(code, u32_sub(u32_set(exponent_min + 12), exponent));
}

/* A block, or its first half, by FPCONV_HDF5; false, and nothing is stored, if any is too large or
 * NaN.  65,536 f64 take 0.30 ns each with AVX2, by addition 0.38. */
LANES bool narrow_f64_tops_to_bf16_block(char *dst, const char *src, int halves)
{
    vec code[2], sign[2];
    for (int i = 0; i < halves; i++, src += 4 * VEC_BYTES) {
        vec top[2], unused;
        for (int k = 0; k < 2; k++) {
            const char *from = src + 2 * k * VEC_BYTES;
            vec_split_u64_in_lanes(vec_load(from), vec_load(from + VEC_BYTES), &top[k], &unused);
        }
        code[i] = u32_pack_saturate(f64_tops_to_long_bf16(top[0]), f64_tops_to_long_bf16(top[1]));
        sign[i] = s32_pack_saturate(top[0], top[1]);
    }
    const vec largest = halves == 2 ? u16_max(code[0], code[1]) : code[0];
    if (mask_any(u16_greater(largest, u16_set(2 * 0x7f7f))))
        return false;
    for (int i = 0; i < halves; i++, dst += VEC_BYTES)
        vec_store(dst, vec_order_packed_f64_words(
                           vec_or_and(u16_half_up(code[i]), sign[i], u16_set(0x8000))));
    return true;
}
#endif

/* Of magnitudes in 16 bits, are all in [first, end)? */
LANES bool halves_are_within(const vec x[2], uint16_t first, uint16_t end)
{
    vec distance[2];
    for (int i = 0; i < 2; i++) /* doubled, that is without signs */
        distance[i] = u16_sub(u16_add(x[i], x[i]), u16_set((uint16_t)(2 * first)));
    const uint16_t last = (uint16_t)(2 * (end - first) - 1);
    return !mask_any(u16_greater(u16_max(distance[0], distance[1]), u16_set(last)));
}

LANES bool f32s_to_normal_bf16(vec codes[2], const char *src)
{
    struct halves x[2];
    for (size_t i = 0; i < 2; i++)
        x[i] = load_halves(src + i * 2 * VEC_BYTES, FPCONV_F32);
    const vec tops[2] = {x[0].high, x[1].high};
    for (int i = 0; i < 2; i++)
        codes[i] = vec_unsplit(ordinary_halves_to_bf16(x[i], 0, FPCONV_HDF5));
    return halves_are_within(tops, 0x0081, 0x7f7f); /* that one may be rounded up */
}

#ifdef VEC_HAS_F32_TO_F16
LANES bool wide_to_normal_f16(vec codes[2], const char *src, fpconv_format src_format)
{
    const size_t step = LANES_32 * fp_formats[src_format].size;
    vec x[4];
    for (size_t i = 0; i < 4; i++) /* ties go away: see f32_adjusted_for_f16 */
        x[i] = vec_or(load_truncated_f32(src + i * step, src_format), u32_set(1));
    for (int i = 0; i < 2; i++)
        codes[i] = vec_f32_to_f16(x[2 * i], x[2 * i + 1]);
    return halves_are_within(codes, 0x0401, 0x7c00);
}
#endif

/*
 * A block by FPCONV_HDF5 of which all results are normal numbers, none of them the smallest,
 * to which a value below it may have been rounded; else false, and nothing is stored.  For f32
 * to bf16 and, with VEC_HAS_F32_TO_F16, f32 and f64 to f16, in about as many operations as
 * these take without knowing.
 */
LANES bool narrow_normal_half_block(fpconv_format dst_format, char *dst, fpconv_format src_format,
                                    const char *src)
{
    vec codes[2];
#ifdef VEC_HAS_F32_TO_F16
    const bool all_normal = dst_format == FPCONV_F16 ? wide_to_normal_f16(codes, src, src_format)
                                                     : f32s_to_normal_bf16(codes, src);
#else
    const bool all_normal = f32s_to_normal_bf16(codes, src);
    (void)dst_format, (void)src_format;
#endif
    for (int i = 0; i < 2 && all_normal; i++)
        vec_store(dst + i * VEC_BYTES, codes[i]);
    return all_normal;
}

enum { NARROW_HALF_BLOCK = 2 * LANES_16 };

LANES void narrow_half_block(fpconv_format dst_format, char *dst, fpconv_format src_format,
                             const char *src, fpconv_policy policy, int halves)
{
    const bool nan_possible = nan_is_possible(src_format);
    const size_t size = fp_formats[src_format].size;
#ifdef VEC_HAS_SHIFT_RIGHT_BY
    if (dst_format == FPCONV_BF16 && src_format == FPCONV_F64 && policy == FPCONV_HDF5 &&
        narrow_f64_tops_to_bf16_block(dst, src, halves))
        return;
#endif
#ifdef NARROWS_TO_F16_BY_ADDITION
    if (dst_format == FPCONV_F16) {
        if (narrow_to_f16(dst, src_format, src, policy, halves))
            return;
        src = reread(src);
    }
#endif
#ifdef VEC_ROUNDS_BY_ADDITION
    if (dst_format == FPCONV_BF16 && rounds_by_addition(dst_format, src_format) &&
        narrow_by_addition(dst_format, dst, src_format, src, policy, halves))
        return;
#endif
#ifdef VEC_HAS_F32_TO_F16
    if (dst_format == FPCONV_F16) {
        const ptrdiff_t step = (ptrdiff_t)(LANES_32 * size);
        vec x[4] = {u32_set(0), u32_set(0), u32_set(0), u32_set(0)};
        for (int i = 0; i < 2 * halves; i++)
            x[i] = fp_policy_is_hdf5(policy) ? load_truncated_f32(src + i * step, src_format)
                                             : load_as_f32(src + i * step, src_format);
        if (fp_policy_loses_carries(policy))
            adjust_for_f16_without_carry(x, policy, nan_possible);
        else
            adjust_for_f16(x, policy, nan_possible);
        for (int i = 0; i < halves; i++)
            store_f16(dst + i * VEC_BYTES, x[2 * i], x[2 * i + 1], halves == 1);
        return;
    }
#endif
#ifdef VEC_HAS_RAISED_F64
    if (dst_format == FPCONV_BF16 && src_format == FPCONV_F64) {
        narrow_f64_to_bf16_block(dst, src, policy, halves);
        return;
    }
#endif
    if (LOADS_ANY_F64 && dst_format == FPCONV_BF16 && src_format == FPCONV_F64) {
        narrow_unusual_f64_block(dst, src, policy, true);
        return;
    }
    struct halves x[2] = {{u16_set(0), u16_set(0)}, {u16_set(0), u16_set(0)}};
    for (int i = 0; i < halves; i++)
        x[i] = load_halves(src + (size_t)i * LANES_16 * size, src_format);
    if (halves == 1)
        x[1] = x[0];
    const bool ordinary = dst_format == FPCONV_BF16 && halves_are_ordinary(x);
    for (int i = 0; i < halves; i++, dst += VEC_BYTES) {
        const vec code = dst_format == FPCONV_F16
                             ? halves_to_half(x[i], FPCONV_F32, dst_format, policy, true)
                         : ordinary ? ordinary_halves_to_bf16(x[i], 0, policy)
                                    : halves_to_bf16(x[i], policy, nan_possible);
        vec_store(dst, vec_unsplit(code));
    }
}
