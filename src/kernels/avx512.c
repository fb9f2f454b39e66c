/*
 * avx512.c - the kernels for x86-64 CPUs with AVX-512 as of Ice Lake
 *
 * SPDX-License-Identifier: MIT
 *
 * F, BW, DQ, VL, VBMI and VBMI2.  Conversion instructions suppress all exceptions, and
 * with them MXCSR's rounding mode, by their static rounding forms.
 */
#include "kernels.h" /* an empty file would not be ISO C */

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#include "../bits.h"
#include "../codec.h"
#include "hif8_tables.h"

#include "target.h"
TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi2")

#define VEC_BYTES 64
typedef __m512i vec;
typedef __mmask64 mask8;
typedef __mmask32 mask16;
typedef __mmask16 mask32;

#define VEC_HAS_TERNARY_LOGIC
#define VEC_MULTIPLICATION_KEEPS_NAN
#define VEC_HAS_MASKED_MEMORY
#include "lanes.h"

/* A bit for each of the first `bytes`, up to 64. */
LANES __mmask64 first_bytes(size_t bytes)
{
    return _bzhi_u64(~UINT64_C(0), (unsigned)bytes);
}

/* The elements of which the bit is set; the others are of FILL_BYTEs. */
LANES vec vec_load_where(const void *p, uint64_t which, size_t size)
{
    const vec fill = _mm512_set1_epi8(FILL_BYTE);
    if (size == sizeof(uint64_t))
        return _mm512_mask_loadu_epi64(fill, (__mmask8)which, p);
    if (size == sizeof(uint32_t))
        return _mm512_mask_loadu_epi32(fill, (__mmask16)which, p);
    if (size == sizeof(uint16_t))
        return _mm512_mask_loadu_epi16(fill, (__mmask32)which, p);
    return _mm512_mask_loadu_epi8(fill, which, p);
}

LANES void vec_store_where(void *p, vec v, uint64_t which, size_t size)
{
    if (size == sizeof(uint64_t))
        _mm512_mask_storeu_epi64(p, (__mmask8)which, v);
    else if (size == sizeof(uint32_t))
        _mm512_mask_storeu_epi32(p, (__mmask16)which, v);
    else if (size == sizeof(uint16_t))
        _mm512_mask_storeu_epi16(p, (__mmask32)which, v);
    else
        _mm512_mask_storeu_epi8(p, which, v);
}

/* The first `bytes`, at most a vector; the rest is FILL_BYTE. */
LANES vec vec_load_part(const void *p, size_t bytes)
{
    return vec_load_where(p, first_bytes(bytes), 1);
}

LANES void vec_store_part(void *p, vec v, size_t bytes)
{
    vec_store_where(p, v, first_bytes(bytes), 1);
}

/* a where the bit of `bits` is set, else b: one operation here */
LANES vec vec_merge(vec bits, vec a, vec b)
{
    return _mm512_ternarylogic_epi64(bits, a, b, 0xca);
}

/* a | (b & mask) */
LANES vec vec_or_and(vec a, vec b, vec mask)
{
    return _mm512_ternarylogic_epi64(a, b, mask, 0xf8);
}

#define u8_add_saturate _mm512_adds_epu8
#define u8_sub_saturate _mm512_subs_epu8
#define u8_min _mm512_min_epu8
#define u8_equal _mm512_cmpeq_epi8_mask
#define s8_greater _mm512_cmpgt_epi8_mask
#define mask_any(mask) ((mask) != 0)
#define u16_min _mm512_min_epu16
#define u16_max _mm512_max_epu16
#define u16_sub_saturate _mm512_subs_epu16
#define u16_multiply_low _mm512_mullo_epi16
#define u16_equal _mm512_cmpeq_epi16_mask
#define s16_multiply_high_round _mm512_mulhrs_epi16
#define u16_greater _mm512_cmpgt_epu16_mask
#define s16_greater _mm512_cmpgt_epi16_mask
#define s32_greater _mm512_cmpgt_epi32_mask
#define s32_min _mm512_min_epi32
#define s32_max _mm512_max_epi32
#define u8_select(mask, a, b) _mm512_mask_blend_epi8(mask, b, a)
#define u16_select(mask, a, b) _mm512_mask_blend_epi16(mask, b, a)
#define u32_select(mask, a, b) _mm512_mask_blend_epi32(mask, b, a)

LANES vec u8_clear_where_zero(vec a, vec b)
{
    return _mm512_maskz_mov_epi8(_mm512_test_epi8_mask(b, b), a);
}

/* Have they no set bit in common? */
LANES mask16 u16_are_disjoint(vec a, vec b)
{
    return _mm512_testn_epi16_mask(a, b);
}

/* (a + 1) / 2 */
LANES vec u16_half_up(vec a)
{
    return _mm512_avg_epu16(a, u16_set(0));
}

LANES mask8 u8_are_disjoint(vec a, vec b)
{
    return _mm512_testn_epi8_mask(a, b);
}

LANES vec u8_half_up(vec a)
{
    return _mm512_avg_epu8(a, u8_set(0));
}

/* Have they any set bit in common? */
#define u8_has_bits _mm512_test_epi8_mask

LANES vec u8_increment(vec a, mask8 where)
{
    return _mm512_mask_sub_epi8(a, where, a, u8_set(0xff));
}

LANES vec u16_increment(vec a, mask16 where)
{
    return _mm512_mask_add_epi16(a, where, a, u16_set(1));
}

LANES vec u16_decrement(vec a, mask16 where)
{
    return _mm512_mask_sub_epi16(a, where, a, u16_set(1));
}

/* a | (b != 0) */
LANES vec u32_or_nonzero_bit(vec a, vec b)
{
    return _mm512_mask_or_epi32(a, _mm512_test_epi32_mask(b, b), a, u32_set(1));
}

/* The largest of each lane of four over the quarters of a vector. */
LANES void s32_store_maxima_of_quarters(int32_t out[4], vec a)
{
    const __m256i half =
        _mm256_max_epi32(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64(a, 1));
    const __m128i quarter =
        _mm_max_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    memcpy(out, &quarter, sizeof(quarter));
}

LANES vec u16_all_ones_where(mask16 where, uint16_t ones, vec a)
{
    return _mm512_mask_blend_epi16(where, a, u16_set(ones));
}

/* 2^exponent >> k, lane by lane */
LANES vec u16_power_of_2_right(int exponent, vec k)
{
    return _mm512_srlv_epi16(u16_set((uint16_t)(1 << exponent)), k);
}

/* Permutations as constants: element e of 16 in each quarter or 32 in each half. */
#define SIXTEEN(START, STEP)                                                                       \
    (START), (START) + (STEP), (START) + 2 * (STEP), (START) + 3 * (STEP), (START) + 4 * (STEP),   \
        (START) + 5 * (STEP), (START) + 6 * (STEP), (START) + 7 * (STEP), (START) + 8 * (STEP),    \
        (START) + 9 * (STEP), (START) + 10 * (STEP), (START) + 11 * (STEP), (START) + 12 * (STEP), \
        (START) + 13 * (STEP), (START) + 14 * (STEP), (START) + 15 * (STEP)

#define VEC_HAS_BINADES

LANES vec u16_indices(void)
{
    return (vec)(vec_u16){SIXTEEN(0, 1), SIXTEEN(16, 1)};
}

LANES vec u16_lookup(vec table, vec index)
{
    return _mm512_permutexvar_epi16(index, table);
}

#define u16_shift_right_by _mm512_srlv_epi16

LANES vec vec_spread(vec v)
{
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7), v);
}

LANES void vec_unpack_u8(vec low, vec high, vec out[2])
{
    out[0] = _mm512_unpacklo_epi8(low, high);
    out[1] = _mm512_unpackhi_epi8(low, high);
}

LANES void vec_unpack_u16(vec low, vec high, vec out[2])
{
    out[0] = _mm512_unpacklo_epi16(low, high);
    out[1] = _mm512_unpackhi_epi16(low, high);
}

LANES void vec_unpack_u32(vec low, vec high, vec out[2])
{
    out[0] = _mm512_unpacklo_epi32(low, high);
    out[1] = _mm512_unpackhi_epi32(low, high);
}

/* Lane 2i holds element i of a, 2i + 1 that of b. */
LANES struct halves vec_split_u32(vec a, vec b)
{
    const vec swap = _mm512_set4_epi32(0x0d0c0f0e, 0x09080b0a, 0x05040706, 0x01000302);
    const mask8 odd = 0xcccccccccccccccc;
    return (struct halves){_mm512_mask_shuffle_epi8(b, ~odd, a, swap),
                           _mm512_mask_shuffle_epi8(a, odd, b, swap)};
}

#define VEC_HAS_SHIFT_IN

/* The top bit of low + 0x7fff, which is set unless low is 0, shifted into high. */
LANES vec doubled_top(struct halves x)
{
    return _mm512_shldi_epi16(x.high, _mm512_adds_epu16(x.low, u16_set(0x7fff)), 1);
}

LANES void vec_split_u64(vec a, vec b, vec *high, vec *low)
{
    const vec even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    *low = _mm512_permutex2var_epi32(a, even, b);
    *high = _mm512_permutex2var_epi32(a, _mm512_add_epi32(even, u32_set(1)), b);
}

/* Even lanes, then odd lanes. */
LANES vec vec_unsplit(vec v)
{
    static const uint16_t order[32] = {SIXTEEN(0, 2), SIXTEEN(1, 2)};
    return _mm512_permutexvar_epi16(vec_load(order), v);
}

/* Bytes of two vectors of 16-bit lanes, the second's above the first's, in order. */
LANES vec vec_order_bytes(vec mixed)
{
    static const uint8_t order[64] = {SIXTEEN(0, 2), SIXTEEN(32, 2), SIXTEEN(1, 2), SIXTEEN(33, 2)};
    return _mm512_permutexvar_epi8(vec_load(order), mixed);
}

/* From the order of vec_split_u32: each 32-bit lane then holds elements i, 32 +
 * i, 16 + i, 48 + i. */
LANES vec vec_order_split_bytes(vec mixed)
{
    static const uint8_t order[64] = {SIXTEEN(0, 4), SIXTEEN(2, 4), SIXTEEN(1, 4), SIXTEEN(3, 4)};
    return _mm512_permutexvar_epi8(vec_load(order), mixed);
}

enum { FPCLASS_NAN = 0x81 /* quiet or signalling */, FPCLASS_NOT_FINITE = FPCLASS_NAN | 0x18 };

LANES void vec_f16_to_f32(vec value, vec out[2])
{
    out[0] = _mm512_castps_si512(
        _mm512_cvt_roundph_ps(_mm512_castsi512_si256(value), _MM_FROUND_NO_EXC));
    out[1] = _mm512_castps_si512(
        _mm512_cvt_roundph_ps(_mm512_extracti64x4_epi64(value, 1), _MM_FROUND_NO_EXC));
}

#define vec_finite_f16_to_f32 vec_f16_to_f32

LANES void vec_f32_to_f64(vec value, vec out[2])
{
    const __m256 low = _mm256_castsi256_ps(_mm512_castsi512_si256(value));
    const __m256 high = _mm256_castsi256_ps(_mm512_extracti64x4_epi64(value, 1));
    out[0] = _mm512_castpd_si512(_mm512_cvt_roundps_pd(low, _MM_FROUND_NO_EXC));
    out[1] = _mm512_castpd_si512(_mm512_cvt_roundps_pd(high, _MM_FROUND_NO_EXC));
}

LANES vec f32_fill_nan(vec value)
{
    const mask32 is_nan = _mm512_fpclass_ps_mask(_mm512_castsi512_ps(value), FPCLASS_NAN);
    return _mm512_mask_or_epi32(value, is_nan, value, u32_set(0x7fffffff));
}

LANES mask32 f32_is_not_finite(vec value)
{
    return _mm512_fpclass_ps_mask(_mm512_castsi512_ps(value), FPCLASS_NOT_FINITE);
}

LANES vec f64_fill_nan(vec value)
{
    const __mmask8 is_nan = _mm512_fpclass_pd_mask(_mm512_castsi512_pd(value), FPCLASS_NAN);
    return _mm512_mask_or_epi64(value, is_nan, value, u64_set(INT64_MAX));
}

#define VEC_HAS_F64_SCALE_WHERE

LANES mask32 f32_subnormals_to_integers(vec *value)
{
    const mask32 where = _mm512_testn_epi32_mask(*value, u32_set(0x7f800000));
    const vec numbers = (vec)_mm512_mask_cvt_roundepi32_ps(
        (__m512)*value, where, vec_and(*value, u32_set(0x007fffff)),
        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    *value = vec_or_and(numbers, *value, u32_set(0x80000000));
    return where;
}

/* LANES_32 f64 times a power of two, exactly, where the f32 that they come from are marked. */
LANES void f64_scale_where(vec f64[2], mask32 where, vec factor)
{
    for (int i = 0; i < 2; i++, where = _kshiftri_mask16(where, LANES_64))
        f64[i] = (vec)_mm512_mask_mul_pd((vec_f64)f64[i], (__mmask8)where, (vec_f64)f64[i],
                                         (vec_f64)factor);
}

#define VEC_HAS_F64_TO_F32

enum { NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };

LANES vec f32_multiply_add(vec a, vec b, vec c)
{
    return (vec)_mm512_fmadd_round_ps((__m512)a, (__m512)b, (__m512)c, NEAREST);
}

LANES vec f64_add_nearest(vec a, vec b)
{
    return (vec)_mm512_add_round_pd((vec_f64)a, (vec_f64)b, NEAREST);
}

/* b if one is a NaN */
LANES vec f64_min(vec a, vec b)
{
    return (vec)_mm512_min_round_pd((vec_f64)a, (vec_f64)b, _MM_FROUND_NO_EXC);
}

LANES vec f64_max(vec a, vec b)
{
    return (vec)_mm512_max_round_pd((vec_f64)a, (vec_f64)b, _MM_FROUND_NO_EXC);
}

LANES vec vec_f64_to_f32(vec a, vec b)
{
    const __m256 low = _mm512_cvt_roundpd_ps(_mm512_castsi512_pd(a), NEAREST);
    const __m256 high = _mm512_cvt_roundpd_ps(_mm512_castsi512_pd(b), NEAREST);
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_castps_si256(low)),
                              _mm256_castps_si256(high), 1);
}

/*
 * f64 to f32 towards zero, and the last bit set where bits were lost: 9 operations for
 * 16 values where integers take 10, and 5 more to find out which f64 f32 cannot hold
 * (65,536 f64 to e4m3 take 0.28 ns each instead of 0.42).  Too large ones become the
 * largest f32; where the result is below 2^-126, only those of the 29 lowest bits count.
 */
#define VEC_HAS_F64_TO_ODD_F32

enum {
    F64_LOST_IN_F32 = (1 << 29) - 1, /* the lower bits of its fraction */
    TRUNCATE = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC
};

LANES __m256i f64_to_truncated_f32(vec a)
{
    return _mm256_castps_si256(_mm512_cvt_roundpd_ps(_mm512_castsi512_pd(a), TRUNCATE));
}

/* The last bit is set where `bits`, those of a or more, has some that f32 does not hold. */
LANES __m256i f64_to_odd_f32(vec a, vec bits)
{
    const __m256i f32 = f64_to_truncated_f32(a);
    const __mmask8 is_inexact = _mm512_test_epi64_mask(bits, u64_set(F64_LOST_IN_F32));
    return _mm256_mask_or_epi32(f32, is_inexact, f32, _mm256_set1_epi32(1));
}

LANES vec vec_join_halves(__m256i low, __m256i high)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

LANES vec vec_f64_to_odd_f32(vec a, vec b)
{
    return vec_join_halves(f64_to_odd_f32(a, a), f64_to_odd_f32(b, b));
}

#define VEC_HAS_F64_TO_TRUNCATED_F32

LANES vec vec_f64_to_truncated_f32(vec a, vec b)
{
    return vec_join_halves(f64_to_truncated_f32(a), f64_to_truncated_f32(b));
}

/*
 * A value that is larger in magnitude by 2^-126, if it is smaller than that, or else twice as
 * large.  As an f32 either is a normal number, which MXCSR does not flush, and its bits, the
 * sign's apart, are more than those of the value as an f32 by those of 2^-126, subnormal ones
 * included.
 */
#define VEC_HAS_RAISED_F64

enum { LARGER_MAGNITUDE = 0x3 /* of two, with the sign of the first */ };

LANES vec f64_raise(vec a)
{
    const vec_f64 least = (vec_f64)u64_set((uint64_t)(1023 - 126) << 52);
    const vec_f64 n =
        (vec_f64)_mm512_range_round_pd((vec_f64)a, least, LARGER_MAGNITUDE, _MM_FROUND_NO_EXC);
    return (vec)_mm512_add_round_pd((vec_f64)a, n, TRUNCATE);
}

/* Two vectors, raised, to f32, towards zero or to odd. */
LANES vec vec_f64_to_raised_f32(vec a, vec b, bool odd)
{
    const vec x = f64_raise(a), y = f64_raise(b);
    if (odd)
        return vec_join_halves(f64_to_odd_f32(x, vec_or(a, x)), f64_to_odd_f32(y, vec_or(b, y)));
    return vec_f64_to_truncated_f32(x, y);
}

#define VEC_HAS_F32_TO_F16

LANES __m256i f32_to_f16(vec f32)
{
    /* Not the intrinsic: the code that gcc 12 makes of it lacks {sae}, and raises
     * the inexact and underflow flags. */
    __m256i f16;
    __asm__("vcvtps2ph $0, %{sae%}, %1, %0" : "=v"(f16) : "v"(f32));
    return f16;
}

LANES vec vec_f32_to_f16(vec a, vec b)
{
    return vec_join_halves(f32_to_f16(a), f32_to_f16(b));
}

/* By two stores, which for f32 to f16 take 4 to 8 % less time than one; but `joined` where a
 * load follows, which would wait for both. */
LANES void store_f16(char *dst, vec a, vec b, bool joined)
{
    if (joined) {
        vec_store(dst, vec_f32_to_f16(a, b));
        return;
    }
    const __m256i low = f32_to_f16(a), high = f32_to_f16(b);
    memcpy(dst, &low, sizeof(low));
    memcpy(dst + sizeof(low), &high, sizeof(high));
}

#define VEC_HAS_LARGER_MAGNITUDE

/* With the sign of `a`. */
LANES vec f32_larger_magnitude(vec a, vec b)
{
    return (vec)_mm512_range_round_ps((__m512)a, (__m512)b, LARGER_MAGNITUDE, _MM_FROUND_NO_EXC);
}

/* 0 where c is subnormal: it would take about 100 cycles for the vector, whatever the instruction
 * suppresses. */
LANES vec f32_multiply_add_truncated(vec a, vec b, vec c)
{
    const mask32 is_normal = _mm512_test_epi32_mask(c, u32_set(0x7f800000));
    return (vec)_mm512_maskz_fmadd_round_ps(is_normal, (__m512)a, (__m512)b, (__m512)c, TRUNCATE);
}

/*
 * Pairs of codes side by side, by multiplying and adding, and of six-bit ones pairs
 * of pairs; then the bytes that are full.  Back, six bytes of each eight, of which the
 * fields are taken at their bit offsets.  Three operations for 64 codes, where the
 * shifts of packing.h take about ten times that.
 */
#define VEC_HAS_PACK

#define THREE_OF_FOUR(i) 4 * (i), 4 * (i) + 1, 4 * (i) + 2
#define SIX_OF_EIGHT(i) \
    6 * (i), 6 * (i) + 1, 6 * (i) + 2, 6 * (i) + 3, 6 * (i) + 4, 6 * (i) + 5, 0, 0
#define EIGHT_TIMES(DO, i) \
    DO(i), DO((i) + 1), DO((i) + 2), DO((i) + 3), DO((i) + 4), DO((i) + 5), DO((i) + 6), DO((i) + 7)

/* 64 codes, one to a byte, to 32 bytes */
LANES vec vec_pack_4(vec codes)
{
    const vec low = vec_and(codes, u8_set(0x0f));
    const vec pairs = _mm512_maddubs_epi16(low, u16_set(16 << 8 | 1));
    return _mm512_castsi256_si512(_mm512_cvtepi16_epi8(pairs));
}

/* 64 codes, one to a byte, to 48 bytes */
LANES vec vec_pack_6(vec codes)
{
    static const uint8_t order[64] = {EIGHT_TIMES(THREE_OF_FOUR, 0), EIGHT_TIMES(THREE_OF_FOUR, 8)};
    const vec low = vec_and(codes, u8_set(0x3f));
    const vec pairs = _mm512_maddubs_epi16(low, u16_set(64 << 8 | 1));
    const vec quads = _mm512_madd_epi16(pairs, u32_set(4096 << 16 | 1));
    return _mm512_permutexvar_epi8(vec_load(order), quads);
}

LANES vec vec_unpack_6(vec packed)
{
    static const uint8_t order[64] = {EIGHT_TIMES(SIX_OF_EIGHT, 0)};
    const vec offsets = u64_set(UINT64_C(0x2a241e18120c0600)); /* 42, 36, ... 6, 0 */
    const vec spread = _mm512_permutexvar_epi8(vec_load(order), packed);
    return vec_and(_mm512_multishift_epi64_epi8(offsets, spread), u8_set(0x3f));
}

#include "records.h"

#define VEC_HAS_LOOKUP

LANES vec u8_lookup_64(const uint8_t table[64], vec index)
{
    return _mm512_permutexvar_epi8(index, vec_load(table));
}

/* By the lower 7 bits. */
LANES vec u8_lookup_128(const uint8_t table[128], vec index)
{
    return _mm512_permutex2var_epi8(vec_load(table), index, vec_load(table + 64));
}

/* The marked lanes; the others, which are below 128, stay as they are. */
LANES vec u8_lookup_256_where(mask8 where, const uint8_t table[256], vec index)
{
    const mask8 upper = _mm512_movepi8_mask(index);
    const vec some = _mm512_mask2_permutex2var_epi8(vec_load(table), index, where & ~upper,
                                                    vec_load(table + 64));
    return _mm512_mask2_permutex2var_epi8(vec_load(table + 128), some, upper,
                                          vec_load(table + 192));
}

#define VEC_JOINS_F64_TOPS
#define vec_order_to_join(v) (v)

/* LANES_16 f64 of which all bits but the top 32 are zero. */
LANES void vec_join_f64_tops(struct halves tops, vec out[4])
{
    const vec first = _mm512_setr_epi32(0, 0, 0, 1, 0, 2, 0, 3, 0, 16, 0, 17, 0, 18, 0, 19);
    const mask32 upper = 0xaaaa;
    vec u32[2]; /* each has a half of every quarter */
    vec_unpack_u16(tops.low, tops.high, u32);
    for (int i = 0; i < 4; i++) {
        const vec order = u32_add(first, u32_set((uint32_t)(4 * i)));
        out[i] = _mm512_maskz_permutex2var_epi32(upper, u32[0], order, u32[1]);
    }
}

#define VEC_COUNTS_LEADING_ZEROS

/* Of bytes below 128; 0 for 0. */
LANES vec u8_leading_zeros(vec a)
{
    static const uint8_t counts[128] = {0,
                                        7,
                                        6,
                                        6,
                                        5,
                                        5,
                                        5,
                                        5,
                                        4,
                                        4,
                                        4,
                                        4,
                                        4,
                                        4,
                                        4,
                                        4,
                                        SIXTEEN(3, 0),
                                        SIXTEEN(2, 0),
                                        SIXTEEN(2, 0),
                                        SIXTEEN(1, 0),
                                        SIXTEEN(1, 0),
                                        SIXTEEN(1, 0),
                                        SIXTEEN(1, 0)};
    return u8_lookup_128(counts, a);
}

LANES mask16 u16_lacks_bits(vec a, vec bits)
{
    return _mm512_testn_epi16_mask(a, bits);
}

LANES vec u16_clear_where_zero(vec a, vec b)
{
    return _mm512_maskz_mov_epi16(_mm512_test_epi16_mask(b, b), a);
}

#define u16_shift_left_by _mm512_sllv_epi16

#define VEC_HAS_STREAM
#define vec_stream_fence _mm_sfence

/* Ordered before later stores by vec_stream_fence. */
LANES void vec_stream(void *p, vec v)
{
    _mm512_stream_si512((vec *)p, v);
}

#define LEVEL avx512
#include "level.h"

TARGET_END
#endif
