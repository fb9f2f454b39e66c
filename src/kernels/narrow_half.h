/*
 * narrow_half.h - rounding into bf16 and f16: the algorithms
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by narrow.h.
 */

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
