/*
 * narrow_load.h - loading what is to be rounded
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by narrow.h.
 */

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
