/*
 * sse2.c - the kernels for every x86-64 CPU
 *
 * SPDX-License-Identifier: MIT
 */
#include "kernels.h" /* an empty file would not be ISO C */

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#include "../bits.h"
#include "../codec.h"
#include "hif8_tables.h"

#define VEC_BYTES 16
typedef __m128i vec;
#define MM(name) _mm_##name

#include "lanes.h"
#include "x86_common.h"

enum { MXCSR_F64_TO_ODD = MXCSR_FLUSHES };

/* SSE2 has 16-bit minima of signed lanes only; these take two operations. */
LANES vec u16_min(vec a, vec b)
{
    return u16_sub(a, u16_sub_saturate(a, b));
}

LANES vec u16_max(vec a, vec b)
{
    return u16_add(b, u16_sub_saturate(a, b));
}

LANES vec s32_max(vec a, vec b)
{
    return u32_select(s32_greater(a, b), a, b);
}

/* (a * b + 2^14) / 2^15, that is the high half of twice the product, and its
 * low half's rounding bit; b is at most 2^14. */
LANES vec s16_multiply_high_round(vec a, vec b)
{
    const vec twice = u16_add(b, b);
    const vec rounding = u16_shift_right(_mm_mullo_epi16(a, twice), 15);
    return u16_add(_mm_mulhi_epu16(a, twice), rounding);
}

/* 2^exponent >> k, as floats whose exponent field is exponent - k: converting a
 * power of two that is an integer is exact; the exponent stops at 0, and 2^0
 * in place of 0 makes no difference to the rounding of narrow_byte.h, whose results
 * are 0 either way. */
LANES vec u16_power_of_2_right(int exponent, vec k)
{
    const vec zero = u16_set(0);
    const vec left = u16_sub_saturate(u16_set((uint16_t)exponent), k);
    const vec field = u16_shift_left(u16_add(left, u16_set(127)), 7);
    const vec low = _mm_cvttps_epi32(_mm_castsi128_ps(_mm_unpacklo_epi16(zero, field)));
    const vec high = _mm_cvttps_epi32(_mm_castsi128_ps(_mm_unpackhi_epi16(zero, field)));
    return _mm_packs_epi32(low, high);
}

LANES vec u8_clear_where_zero(vec a, vec b)
{
    return vec_clear(a, u8_equal(b, u8_set(0)));
}

LANES vec u16_clear_where_zero(vec a, vec b)
{
    return vec_clear(a, u16_equal(b, u16_set(0)));
}

#define vec_spread(v) (v)
#define vec_unsplit(v) (v)
#define vec_order_to_join(v) (v)

/* Signed saturation leaves sign-extended halves as they are. */
LANES struct halves vec_split_u32(vec a, vec b)
{
    return (struct halves){
        _mm_packs_epi32(_mm_srai_epi32(a, 16), _mm_srai_epi32(b, 16)),
        _mm_packs_epi32(_mm_srai_epi32(_mm_slli_epi32(a, 16), 16),
                        _mm_srai_epi32(_mm_slli_epi32(b, 16), 16)),
    };
}

LANES void vec_split_u64(vec a, vec b, vec *high, vec *low)
{
    const __m128 x = _mm_castsi128_ps(a), y = _mm_castsi128_ps(b);
    *high = _mm_castps_si128(_mm_shuffle_ps(x, y, 0xdd));
    *low = _mm_castps_si128(_mm_shuffle_ps(x, y, 0x88));
}

/* Bytes of two vectors of 16-bit lanes, the second's above the first's, in order. */
LANES vec vec_order_bytes(vec mixed)
{
    return _mm_packus_epi16(vec_and(mixed, u16_set(0xff)), u16_shift_right(mixed, 8));
}

#define vec_order_split_bytes vec_order_bytes

/*
 * Without conversion instructions, and in 16-bit lanes as far as that goes: the halves
 * of normal numbers by moving the exponent's bias; subnormals, which are integers
 * times 2^-24, by an exact multiplication.  Either is zero where the other is wanted.
 */
LANES void vec_f16_to_f32(vec value, vec out[2])
{
    const vec zero = u16_set(0), bias = u16_set((127 - 15) << 7);
    const vec magnitude = vec_clear(value, u16_set(0x8000));
    const mask16 is_subnormal = s16_greater(u16_set(0x0400), magnitude);
    const mask16 is_special = s16_greater(magnitude, u16_set(0x7bff));
    const vec rebiased =
        u16_add(u16_add(u16_shift_right(magnitude, 3), bias), vec_and(is_special, bias));
    const vec high = vec_or_and(vec_clear(rebiased, is_subnormal), value, u16_set(0x8000));
    const vec low = vec_clear(u16_shift_left(magnitude, 13), is_subnormal);
    const __m128 unit = _mm_castsi128_ps(u32_set((127 - 24) << 23));
    vec normal[2], subnormal[2];
    vec_unpack_u16(low, high, normal);
    vec_unpack_u16(vec_and(magnitude, is_subnormal), zero, subnormal);
    for (int i = 0; i < 2; i++) {
        const __m128 product = _mm_mul_ps(_mm_cvtepi32_ps(subnormal[i]), unit);
        out[i] = vec_or(normal[i], _mm_castps_si128(product));
    }
}

/*
 * Finite ones in fewer operations.  Moving the exponent's bias makes normal numbers right,
 * and of a subnormal n * 2^-24 the number 2^-15 + n * 2^-25, which lacks as much as it is
 * below 2^-14.  All sums are exact; in one rounding mode a difference of 0 is -0.
 */
LANES void vec_finite_f16_to_f32(vec value, vec out[2])
{
    const vec sign_bit = u16_set(0x8000);
    const vec magnitude = vec_clear(value, sign_bit);
    const vec high = u16_add(u16_shift_right(magnitude, 3), u16_set((127 - 15) << 7));
    const __m128 normal_min = _mm_castsi128_ps(u32_set((127 - 14) << 23));
    vec rebiased[2], signs[2];
    vec_unpack_u16(u16_shift_left(magnitude, 13), high, rebiased);
    vec_unpack_u16(u16_set(0), vec_and(value, sign_bit), signs);
    for (int i = 0; i < 2; i++) {
        const __m128 x = _mm_castsi128_ps(rebiased[i]);
        const __m128 lacking = _mm_sub_ps(_mm_min_ps(x, normal_min), normal_min);
        const __m128 result = _mm_max_ps(_mm_add_ps(x, lacking), _mm_setzero_ps());
        out[i] = vec_or(_mm_castps_si128(result), signs[i]);
    }
}

LANES void vec_f32_to_f64(vec value, vec out[2])
{
    const __m128 x = _mm_castsi128_ps(value);
    out[0] = _mm_castpd_si128(_mm_cvtps_pd(x));
    out[1] = _mm_castpd_si128(_mm_cvtps_pd(_mm_movehl_ps(x, x)));
}

LANES vec vec_f64_to_f32(vec a, vec b)
{
    const __m128 low = _mm_cvtpd_ps(_mm_castsi128_pd(a)), high = _mm_cvtpd_ps(_mm_castsi128_pd(b));
    return _mm_castps_si128(_mm_movelh_ps(low, high));
}

/*
 * f64 to f32, exactly: without the bits that are to be lost, but with the four above them
 * set if any of the low ones is.  Too large ones become Inf, those below 2^-126 zero, as
 * MXCSR says (MXCSR_F64_TO_ODD).
 */
#define VEC_HAS_F64_TO_ODD_F32

LANES vec vec_f64_to_odd_f32(vec a, vec b)
{
    const vec lost = u64_set((1 << 29) - 1);
    const vec odd_a = vec_or(a, s32_greater(vec_and(a, lost), u32_set(0)));
    const vec odd_b = vec_or(b, s32_greater(vec_and(b, lost), u32_set(0)));
    return vec_f64_to_f32(vec_clear(odd_a, lost), vec_clear(odd_b, lost));
}

/* For integers of at most 24 bits. */
LANES vec f32_from_s32(vec a)
{
    return _mm_castps_si128(_mm_cvtepi32_ps(a));
}

LANES vec f32_fill_nan(vec value)
{
    const __m128 x = _mm_castsi128_ps(value);
    const vec is_nan = _mm_castps_si128(_mm_cmpunord_ps(x, x));
    return vec_or(value, vec_and(is_nan, u32_set(0x7fffffff)));
}

LANES vec f64_fill_nan(vec value)
{
    const __m128d x = _mm_castsi128_pd(value);
    const vec is_nan = _mm_castpd_si128(_mm_cmpunord_pd(x, x));
    return vec_or(value, vec_and(is_nan, u64_set(INT64_MAX)));
}

LANES mask32 f32_either_is_nan(vec a, vec b)
{
    return (vec)_mm_cmpunord_ps((__m128)a, (__m128)b);
}

LANES mask32 f32_not_less(vec a, vec b)
{
    return (vec)_mm_cmpnlt_ps((__m128)a, (__m128)b);
}

/* a * b + c, by the caller's rounding mode, for exact products. */
LANES vec f32_multiply_add(vec a, vec b, vec c)
{
    return (vec)((vec_f32)f32_multiply(a, b) + (vec_f32)c);
}

LANES vec f64_multiply_add(vec a, vec b, vec c)
{
    return f64_add(f64_multiply(a, b), c);
}

#define VEC_ROUNDS_BY_ADDITION
#define vec_split_u64_in_lanes vec_split_u64
#define vec_order_packed_bytes(v) (v)
#define vec_order_packed_halves(v) (v)
#define vec_order_packed_f64_words(v) (v)
#define vec_order_packed_f64_bytes(v) (v)

/* Ordered before later stores by vec_stream_fence. */
LANES void vec_stream(void *p, vec v)
{
    _mm_stream_si128((vec *)p, v);
}

/*
 * v, computed here.  gcc otherwise computes after the next branch what is wanted only then, and
 * keeps or loads again all that it takes: f32 to f16 is 3.6 instructions each instead of 4.3.
 */
LANES vec vec_now(vec v)
{
    __asm__ volatile("" : "+x"(v));
    return v;
}

#define LEVEL sse2
#include "level.h"
#endif
