/*
 * x86_common.h - vector operations that SSE2 and AVX2 spell alike
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by sse2.c and avx2.c, which define MM(name) as the intrinsic with its
 * prefix.
 */

typedef vec mask8, mask16, mask32; /* all ones or all zeros in each lane */

#define VEC_MULTIPLICATION_KEEPS_NAN

#define u8_add_saturate MM(adds_epu8)
#define u8_sub_saturate MM(subs_epu8)
#define u8_min MM(min_epu8)
#define u8_equal MM(cmpeq_epi8)
#define u8_average MM(avg_epu8) /* (a + b + 1) / 2 */
#define s8_greater MM(cmpgt_epi8)
#define mask_any(mask) (MM(movemask_epi8)(mask) != 0)
#define u16_sub_saturate MM(subs_epu16)
#define u16_multiply_low MM(mullo_epi16)
#define u16_equal MM(cmpeq_epi16)
#define s16_greater MM(cmpgt_epi16)
#define s32_greater MM(cmpgt_epi32)
#define u8_select vec_merge
#define u16_select vec_merge
#define u32_select vec_merge
#define u16_increment u16_sub /* a mask is -1 */
#define u16_decrement u16_add

LANES mask16 u16_greater(vec a, vec b)
{
    const vec flip = u16_set(0x8000);
    return s16_greater(vec_xor(a, flip), vec_xor(b, flip));
}

/* Have they no set bit in common? */
LANES mask16 u16_are_disjoint(vec a, vec b)
{
    return u16_equal(vec_and(a, b), u16_set(0));
}

/* (a + 1) / 2 */
LANES vec u16_half_up(vec a)
{
    return MM(avg_epu16)(a, u16_set(0));
}

LANES mask8 u8_are_disjoint(vec a, vec b)
{
    return u8_equal(vec_and(a, b), u8_set(0));
}

LANES vec u8_half_up(vec a)
{
    return MM(avg_epu8)(a, u8_set(0));
}

/* a | (b != 0) */
LANES vec u32_or_nonzero_bit(vec a, vec b)
{
    return vec_or(a, u32_add(MM(cmpeq_epi32)(b, u32_set(0)), u32_set(1)));
}

LANES vec u16_all_ones_where(mask16 where, uint16_t ones, vec a)
{
    return vec_or_and(a, where, u16_set(ones));
}

LANES void vec_unpack_u8(vec low, vec high, vec out[2])
{
    out[0] = MM(unpacklo_epi8)(low, high);
    out[1] = MM(unpackhi_epi8)(low, high);
}

LANES void vec_unpack_u16(vec low, vec high, vec out[2])
{
    out[0] = MM(unpacklo_epi16)(low, high);
    out[1] = MM(unpackhi_epi16)(low, high);
}

LANES void vec_unpack_u32(vec low, vec high, vec out[2])
{
    out[0] = MM(unpacklo_epi32)(low, high);
    out[1] = MM(unpackhi_epi32)(low, high);
}

/*
 * Before AVX-512 the conversions between floating-point formats have no form
 * without exceptions.  Kernels that use an inexact one run with MXCSR at its
 * default or flushing, all exceptions masked, and put the caller's value back where
 * it or its flags differ (level.h).
 */
#define LEVEL_GUARDS_MXCSR

enum {
    MXCSR_DEFAULT = 0x1f80,
    MXCSR_FLUSHES = MXCSR_DEFAULT | 0x8000 | 0x0040,
    MXCSR_FLAGS = 0x003f, /* of exceptions */
};

#define VEC_HAS_F64_TO_F32
#define f64_add_nearest f64_add

/* b if one is a NaN */
LANES vec f64_min(vec a, vec b)
{
    return (vec)MM(min_pd)((vec_f64)a, (vec_f64)b);
}

LANES vec f64_max(vec a, vec b)
{
    return (vec)MM(max_pd)((vec_f64)a, (vec_f64)b);
}

/* All bits where a is less. */
LANES vec f64_less(vec a, vec b)
{
    return (vec)((vec_f64)a < (vec_f64)b);
}

#define s16_min MM(min_epi16)
#define s16_max MM(max_epi16)
/* Signed halves of 32-bit lanes: the sum of their products. */
#define s16_multiply_add_pairs MM(madd_epi16)
#define s32_pack_saturate MM(packs_epi32)
#define s16_pack_saturate MM(packs_epi16)
#define u16_pack_saturate MM(packus_epi16) /* from signed lanes */

/* b if one is a NaN */
LANES vec f32_min(vec a, vec b)
{
    return (vec)MM(min_ps)((vec_f32)a, (vec_f32)b);
}

LANES vec f32_max(vec a, vec b)
{
    return (vec)MM(max_ps)((vec_f32)a, (vec_f32)b);
}

#define VEC_JOINS_F64_TOPS

/* LANES_16 f64 of which all bits but the top 32 are zero; the tops are those of what
 * vec_order_to_join had been given. */
LANES void vec_join_f64_tops(struct halves tops, vec out[4])
{
    vec u32[2];
    vec_unpack_u16(tops.low, tops.high, u32);
    vec_unpack_u32(u32_set(0), u32[0], out);
    vec_unpack_u32(u32_set(0), u32[1], out + 2);
}

#define VEC_HAS_STREAM
#define vec_stream_fence _mm_sfence
