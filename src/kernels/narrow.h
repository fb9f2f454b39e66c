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
 *
 * The plain loop over the codec branches for each element.  65,536 f32 to e4m3 in random order
 * take 11 ns each by it (FPCONV_CPU=portable; 4 where the compiler may use all that AVX-512 has),
 * and by what is here 0.11 with AVX-512, 0.13 to 0.2 with AVX2 and 0.3 to 0.4 with SSE2.
 */

#include "narrow_load.h"

#include "narrow_byte.h"

#include "narrow_half.h"

#ifdef VEC_ROUNDS_BY_ADDITION
#include "narrow_add.h"
#ifndef VEC_HAS_F32_TO_F16
#define NARROWS_TO_F16_BY_ADDITION
#include "narrow_f16.h"
#endif
#include "narrow_lines.h"
#else
LANES bool rounds_by_addition(fpconv_format dst, fpconv_format src)
{
    (void)dst;
    (void)src;
    return false;
}
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
