/*
 * avx2.c - the kernels for x86-64 CPUs with AVX2, F16C and FMA
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

#include "target.h"
TARGET_BEGIN("avx2,f16c,fma")

#define VEC_BYTES 32
typedef __m256i vec;
#define MM(name) _mm256_##name

#include "lanes.h"
#include "x86_common.h"

enum { MXCSR_F64_TO_ODD = MXCSR_FLUSHES | _MM_ROUND_TOWARD_ZERO };

#define u8_max _mm256_max_epu8
#define u16_min _mm256_min_epu16
#define u16_max _mm256_max_epu16
#define s32_min _mm256_min_epi32
#define s32_max _mm256_max_epi32
#define s16_multiply_high_round _mm256_mulhrs_epi16

/* As signed numbers.  With a bound that it knows, gcc 12 takes a minimum and a comparison for
 * equality, two instructions instead of one. */
LANES mask8 s8_less(vec a, int8_t bound)
{
    vec bounds = u8_set((uint8_t)bound);
    __asm__("" : "+x"(bounds));
    return s8_greater(bounds, a);
}

/* For b that is not negative as a signed number, or 0x80 where a has no other bit. */
#define u8_clear_where_zero _mm256_sign_epi8

/* For b that is not negative as a signed number. */
#define u16_clear_where_zero _mm256_sign_epi16

/*
 * 2^exponent >> k, by looking each byte of the result up: AVX2 has no 16-bit
 * shift by a vector of counts.  The table's entry i is 2^(7 - i), and 0 from 8
 * on; an index that is negative as a signed byte gives 0 too.  Added to k, at
 * most 127, 0x70 less the byte's place in the table makes indices of the wanted
 * entries 0x70 to 0x77, and keeps all others away from them: from 0x78 on there
 * are zeros, up to 0x6f the low four bits, at least 8, select zeros.
 */
LANES vec u16_power_of_2_right(int exponent, vec k)
{
    const vec table = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        (char)0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01, 0, 0, 0, 0, 0, 0, 0, 0));
    const vec twice = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14, 14));
    const int low = 0x70 + 7 - exponent, high = 0x70 + 15 - exponent;
    const vec index = u8_add(_mm256_shuffle_epi8(k, twice), u16_set((uint16_t)(high << 8 | low)));
    return _mm256_shuffle_epi8(table, index);
}

/* The largest of each lane of four over the halves of a vector. */
LANES void s32_store_maxima_of_quarters(int32_t out[4], vec a)
{
    const __m128i half = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    memcpy(out, &half, sizeof(half));
}

#define vec_spread(v) _mm256_permute4x64_epi64(v, 0xd8)

/*
 * The order from which unpacking once, twice or three times, to elements of `size` bytes, leaves
 * vectors with theirs in order: one shuffle, or two, before it, where vec_spread between all
 * would be up to seven.
 */
#define VEC_ORDERS_TO_UNPACK

LANES vec vec_order_to_unpack_twice(vec v)
{
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}

LANES vec vec_order_to_unpack(vec bytes, size_t size)
{
    const vec even_first = _mm256_setr_epi32(0x05040100, 0x0d0c0908, 0x07060302, 0x0f0e0b0a,
                                             0x05040100, 0x0d0c0908, 0x07060302, 0x0f0e0b0a);
    if (size == sizeof(uint16_t))
        return vec_spread(bytes);
    if (size == sizeof(float))
        return vec_order_to_unpack_twice(bytes);
    return vec_spread(_mm256_shuffle_epi8(bytes, even_first));
}

#define vec_order_to_join vec_order_to_unpack_twice

/* One shift and one blend each; lane 2i holds element i of a, 2i + 1 that of b. */
LANES struct halves vec_split_u32(vec a, vec b)
{
    return (struct halves){_mm256_blend_epi16(_mm256_srli_epi32(a, 16), b, 0xaa),
                           _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xaa)};
}

/* The same of neighbours in memory.  Loads from two bytes further on or back do the
 * shifts, which two of the three ports do, for f32 to bf16 in 0.118 ns instead of 0.128. */
#define VEC_HAS_LOAD_HALVES

LANES struct halves load_f32_halves(const char *src)
{
    const char *next = src + VEC_BYTES;
    return (struct halves){_mm256_blend_epi16(vec_load(src + 2), vec_load(next), 0xaa),
                           _mm256_blend_epi16(vec_load(src), vec_load(next - 2), 0xaa)};
}

LANES vec vec_unsplit(vec v)
{
    const vec gather = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    return vec_spread(_mm256_shuffle_epi8(v, gather));
}

#define VEC_HAS_SHIFT_RIGHT_BY
#define u32_shift_right_by _mm256_srlv_epi32
#define u32_pack_saturate _mm256_packus_epi32 /* of what is positive */

/* In 128 bits two of a, then two of b. */
LANES void vec_split_u64_in_lanes(vec a, vec b, vec *high, vec *low)
{
    const __m256 x = _mm256_castsi256_ps(a), y = _mm256_castsi256_ps(b);
    *high = _mm256_castps_si256(_mm256_shuffle_ps(x, y, 0xdd));
    *low = _mm256_castps_si256(_mm256_shuffle_ps(x, y, 0x88));
}

LANES void vec_split_u64(vec a, vec b, vec *high, vec *low)
{
    vec_split_u64_in_lanes(a, b, high, low);
    *high = vec_spread(*high);
    *low = vec_spread(*low);
}

/* Bytes of two vectors of 16-bit lanes, the second's above the first's, in order. */
LANES vec vec_order_bytes(vec mixed)
{
    const vec gather = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
    return vec_spread(_mm256_shuffle_epi8(mixed, gather));
}

/* From the order of vec_split_u32: each 32-bit lane then holds elements i, 16 +
 * i, 8 + i, 24 + i. */
LANES vec vec_order_split_bytes(vec mixed)
{
    const vec gather = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15));
    const vec order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(mixed, gather), order);
}

/* Exact, subnormals included whatever MXCSR says, and silent for quiet NaNs. */
LANES void vec_f16_to_f32(vec value, vec out[2])
{
    out[0] = _mm256_castps_si256(_mm256_cvtph_ps(_mm256_castsi256_si128(value)));
    out[1] = _mm256_castps_si256(_mm256_cvtph_ps(_mm256_extracti128_si256(value, 1)));
}

#define vec_finite_f16_to_f32 vec_f16_to_f32

LANES void vec_f32_to_f64(vec value, vec out[2])
{
    const __m256 x = _mm256_castsi256_ps(value);
    out[0] = _mm256_castpd_si256(_mm256_cvtps_pd(_mm256_castps256_ps128(x)));
    out[1] = _mm256_castpd_si256(_mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)));
}

LANES vec vec_f64_to_f32(vec a, vec b)
{
    const __m128 low = _mm256_cvtpd_ps(_mm256_castsi256_pd(a));
    const __m128 high = _mm256_cvtpd_ps(_mm256_castsi256_pd(b));
    return _mm256_castps_si256(_mm256_set_m128(high, low));
}

/*
 * f64 to f32, exactly: without the bits that are to be lost, but with the three above them
 * set if any of the low ones is: 13 operations for 8 values where integers take as many, and
 * 7 more to find out which f64 f32 cannot hold.  Too large ones become the largest f32 with
 * MXCSR_F64_TO_ODD, and Inf where rounding is to nearest, those below 2^-126 zero.
 */
#define VEC_HAS_F64_TO_ODD_F32

LANES __m128i f64_to_odd_f32(vec a)
{
    const vec lost = u64_set((1 << 29) - 1);
    const vec odd = vec_or(a, s32_greater(vec_and(a, lost), u32_set(0)));
    return _mm_castps_si128(_mm256_cvtpd_ps(_mm256_castsi256_pd(vec_clear(odd, lost))));
}

LANES vec vec_f64_to_odd_f32(vec a, vec b)
{
    return _mm256_set_m128i(f64_to_odd_f32(b), f64_to_odd_f32(a));
}

/* As MXCSR_F64_TO_ODD rounds. */
#define VEC_HAS_F64_TO_TRUNCATED_F32
#define vec_f64_to_truncated_f32 vec_f64_to_f32

#define VEC_HAS_F32_TO_F16

LANES __m128i f32_to_f16(vec f32)
{
    return _mm256_cvtps_ph(_mm256_castsi256_ps(f32), _MM_FROUND_TO_NEAREST_INT);
}

LANES vec vec_f32_to_f16(vec a, vec b)
{
    return _mm256_set_m128i(f32_to_f16(b), f32_to_f16(a));
}

LANES void store_f16(char *dst, vec a, vec b, bool joined)
{
    const __m128i low = f32_to_f16(a), high = f32_to_f16(b);
    (void)joined;
    memcpy(dst, &low, sizeof(low));
    memcpy(dst + sizeof(low), &high, sizeof(high));
}

LANES vec f32_through_f16(vec f32)
{
    return _mm256_castps_si256(_mm256_cvtph_ps(f32_to_f16(f32)));
}

LANES mask32 f32_is_not_finite(vec value)
{
    return s32_greater(vec_clear(value, u32_set(0x80000000)), u32_set(0x7f7fffff));
}

/* For integers of at most 24 bits. */
LANES vec f32_from_s32(vec a)
{
    return _mm256_castps_si256(_mm256_cvtepi32_ps(a));
}

LANES vec f32_fill_nan(vec value)
{
    const __m256 x = _mm256_castsi256_ps(value);
    const vec is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    return vec_or(value, vec_and(is_nan, u32_set(0x7fffffff)));
}

LANES vec f64_fill_nan(vec value)
{
    const __m256d x = _mm256_castsi256_pd(value);
    const vec is_nan = _mm256_castpd_si256(_mm256_cmp_pd(x, x, _CMP_UNORD_Q));
    return vec_or(value, vec_and(is_nan, u64_set(INT64_MAX)));
}

LANES mask32 f32_either_is_nan(vec a, vec b)
{
    return (vec)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_UNORD_Q);
}

LANES mask32 f32_not_less(vec a, vec b)
{
    return (vec)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_NLT_UQ);
}

/* a * b + c, rounded once by the caller's rounding mode. */
LANES vec f32_multiply_add(vec a, vec b, vec c)
{
    return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

LANES vec f64_multiply_add(vec a, vec b, vec c)
{
    return (vec)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}

#define VEC_ROUNDS_BY_ADDITION

/* Bytes packed from 16-bit lanes in the order of vec_split_u32. */
LANES vec vec_order_packed_halves(vec v)
{
    const vec gather =
        _mm256_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15, /* both halves */
                         0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    return _mm256_shuffle_epi8(vec_spread(v), gather);
}

/* From the order in which packing 32-bit lanes twice leaves them. */
LANES vec vec_order_packed_bytes(vec v)
{
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* From that of packing once what comes from vec_split_u64_in_lanes. */
#define vec_order_packed_f64_words vec_order_packed_bytes

/* From that of packing such twice. */
LANES vec vec_order_packed_f64_bytes(vec v)
{
    const vec interleave = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
    return _mm256_shuffle_epi8(vec_spread(v), interleave);
}

#define VEC_HAS_LOOKUP

#define VEC_LOOKS_UP_16 /* much faster than the others */

/* By the lower 4 bits in a table in both halves; 0 where the index is negative. */
#define u8_lookup_in_16 _mm256_shuffle_epi8

LANES vec u8_lookup_16(const uint8_t table[16], vec index)
{
    __m128i entries;
    memcpy(&entries, table, sizeof(entries));
    return u8_lookup_in_16(_mm256_broadcastsi128_si256(entries), index);
}

/* Sixteen entries at a time: an index whose high nibble is another part's becomes
 * negative. */
LANES vec u8_lookup_128(const uint8_t table[128], vec index)
{
    vec found = u8_set(0);
    for (int i = 0; i < 128; i += 16) {
        const vec here = vec_xor(index, u8_set((uint8_t)i));
        found = vec_or(found, u8_lookup_16(table + i, u8_add_saturate(here, u8_set(0x70))));
    }
    return found;
}

/* Ordered before later stores by vec_stream_fence. */
LANES void vec_stream(void *p, vec v)
{
    _mm256_stream_si256((vec *)p, v);
}

#define LEVEL avx2
#include "level.h"

TARGET_END
#endif
