/*
 * neon.c - the kernels for aarch64
 *
 * SPDX-License-Identifier: MIT
 */
#include "kernels.h" /* an empty file would not be ISO C */

#if defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#include <arm_neon.h>
#include <string.h>

#include "../bits.h"
#include "../codec.h"
#include "hif8_tables.h"

#define VEC_BYTES 16
typedef uint8x16_t vec;
typedef vec mask8, mask16, mask32; /* all ones or all zeros in each lane */

#define VEC_HAS_TERNARY_LOGIC
#include "lanes.h"

#define V8(v) (v)
#define V16(v) vreinterpretq_u16_u8(v)
#define V32(v) vreinterpretq_u32_u8(v)
#define S8(v) vreinterpretq_s8_u8(v)
#define S16(v) vreinterpretq_s16_u8(v)
#define S32(v) vreinterpretq_s32_u8(v)

/* a where the bit of `bits` is set, else b */
LANES vec vec_merge(vec bits, vec a, vec b)
{
    return vbslq_u8(bits, a, b);
}

/* a | (b & mask) */
LANES vec vec_or_and(vec a, vec b, vec mask)
{
    return vec_or(a, vec_and(b, mask));
}

#define u8_select vec_merge
#define u16_select vec_merge
#define u32_select vec_merge
#define u16_increment u16_sub /* a mask is -1 */
#define u16_decrement u16_add

#define DEFINE_BINARY(name, cast, result, intrinsic) \
    LANES vec name(vec a, vec b)                     \
    {                                                \
        return result(intrinsic(cast(a), cast(b)));  \
    }

#define AS_IS(v) (v)
DEFINE_BINARY(u8_min, V8, AS_IS, vminq_u8)
DEFINE_BINARY(u8_equal, V8, AS_IS, vceqq_u8)
DEFINE_BINARY(s8_greater, S8, AS_IS, vcgtq_s8)
DEFINE_BINARY(u16_min, V16, vreinterpretq_u8_u16, vminq_u16)
DEFINE_BINARY(u16_max, V16, vreinterpretq_u8_u16, vmaxq_u16)
DEFINE_BINARY(u16_equal, V16, vreinterpretq_u8_u16, vceqq_u16)
DEFINE_BINARY(u16_greater, V16, vreinterpretq_u8_u16, vcgtq_u16)
DEFINE_BINARY(s16_greater, S16, vreinterpretq_u8_u16, vcgtq_s16)
DEFINE_BINARY(u16_multiply_low, V16, vreinterpretq_u8_u16, vmulq_u16)
/* (2 a b + 2^15) / 2^16, which saturates only at the lane's most negative value */
DEFINE_BINARY(s16_multiply_high_round, S16, vreinterpretq_u8_s16, vqrdmulhq_s16)
DEFINE_BINARY(s32_max, S32, vreinterpretq_u8_s32, vmaxq_s32)
DEFINE_BINARY(s32_greater, S32, vreinterpretq_u8_u32, vcgtq_s32)

#undef DEFINE_BINARY

/* Not by the saturating instructions, which leave FPSR's QC flag set. */
LANES vec u8_add_saturate(vec a, vec b)
{
    return vaddq_u8(a, vminq_u8(b, vmvnq_u8(a)));
}

LANES vec u16_sub_saturate(vec a, vec b)
{
    return u16_sub(u16_max(a, b), b);
}

LANES vec u8_sub_saturate(vec a, vec b)
{
    return u8_sub(vmaxq_u8(a, b), b);
}

LANES bool mask_any(vec mask)
{
    return vmaxvq_u8(mask) != 0;
}

LANES vec u8_clear_where_zero(vec a, vec b)
{
    return vec_and(a, vtstq_u8(b, b));
}

LANES vec u32_clear_where_zero(vec a, vec b)
{
    return vec_and(a, vreinterpretq_u8_u32(vtstq_u32(V32(b), V32(b))));
}

/* Have they no set bit in common? */
LANES mask16 u16_are_disjoint(vec a, vec b)
{
    return u16_equal(vec_and(a, b), u16_set(0));
}

/* (a + 1) / 2 */
LANES vec u16_half_up(vec a)
{
    return vreinterpretq_u8_u16(vrshrq_n_u16(V16(a), 1));
}

LANES mask8 u8_are_disjoint(vec a, vec b)
{
    return u8_equal(vec_and(a, b), u8_set(0));
}

LANES vec u8_half_up(vec a)
{
    return vrshrq_n_u8(a, 1);
}

LANES vec u16_all_ones_where(mask16 where, uint16_t ones, vec a)
{
    return vec_or_and(a, where, u16_set(ones));
}

/* a | (b != 0) */
LANES vec u32_or_nonzero_bit(vec a, vec b)
{
    return vec_or(a, vreinterpretq_u8_u32(vminq_u32(V32(b), vdupq_n_u32(1))));
}

/* 2^exponent >> k, by shifting left by -k; a count below -15 gives 0, as does any
 * in the low byte of the lane, which k, at most 127, fits. */
LANES vec u16_power_of_2_right(int exponent, vec k)
{
    const uint16x8_t power = vdupq_n_u16((uint16_t)(1 << exponent));
    return vreinterpretq_u8_u16(vshlq_u16(power, vnegq_s16(S16(k))));
}

#define vec_spread(v) (v)
#define vec_unsplit(v) (v)

LANES void vec_unpack_u8(vec low, vec high, vec out[2])
{
    out[0] = vzip1q_u8(low, high);
    out[1] = vzip2q_u8(low, high);
}

LANES void vec_unpack_u16(vec low, vec high, vec out[2])
{
    out[0] = vreinterpretq_u8_u16(vzip1q_u16(V16(low), V16(high)));
    out[1] = vreinterpretq_u8_u16(vzip2q_u16(V16(low), V16(high)));
}

LANES void vec_unpack_u32(vec low, vec high, vec out[2])
{
    out[0] = vreinterpretq_u8_u32(vzip1q_u32(V32(low), V32(high)));
    out[1] = vreinterpretq_u8_u32(vzip2q_u32(V32(low), V32(high)));
}

LANES struct halves vec_split_u32(vec a, vec b)
{
    return (struct halves){vreinterpretq_u8_u16(vuzp2q_u16(V16(a), V16(b))),
                           vreinterpretq_u8_u16(vuzp1q_u16(V16(a), V16(b)))};
}

LANES void vec_split_u64(vec a, vec b, vec *high, vec *low)
{
    *high = vreinterpretq_u8_u32(vuzp2q_u32(V32(a), V32(b)));
    *low = vreinterpretq_u8_u32(vuzp1q_u32(V32(a), V32(b)));
}

/* Bytes of two vectors of 16-bit lanes, the second's above the first's, in order. */
LANES vec vec_order_bytes(vec mixed)
{
    return vuzp1q_u8(mixed, vextq_u8(mixed, mixed, 1));
}

#define vec_order_split_bytes vec_order_bytes

/*
 * Conversions to a wider format are exact, and silent for quiet NaNs.  FPCR's
 * flush-to-zero bits do not reach f16 here; f32 comes without subnormals.  Those
 * to a narrower format would follow FPCR's rounding mode: not used.
 */
LANES void vec_f16_to_f32(vec value, vec out[2])
{
    const float16x8_t x = vreinterpretq_f16_u8(value);
    out[0] = vreinterpretq_u8_f32(vcvt_f32_f16(vget_low_f16(x)));
    out[1] = vreinterpretq_u8_f32(vcvt_high_f32_f16(x));
}

#define vec_finite_f16_to_f32 vec_f16_to_f32

LANES void vec_f32_to_f64(vec value, vec out[2])
{
    const float32x4_t x = vreinterpretq_f32_u8(value);
    out[0] = vreinterpretq_u8_f64(vcvt_f64_f32(vget_low_f32(x)));
    out[1] = vreinterpretq_u8_f64(vcvt_high_f64_f32(x));
}

/* For integers of at most 24 bits. */
LANES vec f32_from_s32(vec a)
{
    return vreinterpretq_u8_f32(vcvtq_f32_s32(S32(a)));
}

LANES vec f32_fill_nan(vec value)
{
    const float32x4_t x = vreinterpretq_f32_u8(value);
    const vec is_number = vreinterpretq_u8_u32(vceqq_f32(x, x));
    return vec_or(value, vec_clear(u32_set(0x7fffffff), is_number));
}

LANES vec f64_fill_nan(vec value)
{
    const float64x2_t x = vreinterpretq_f64_u8(value);
    const vec is_number = vreinterpretq_u8_u64(vceqq_f64(x, x));
    return vec_or(value, vec_clear(u64_set(INT64_MAX), is_number));
}

#define VEC_HAS_LOOKUP

/* Indices past the table give 0. */
LANES vec u8_lookup_64(const uint8_t table[64], vec index)
{
    return vqtbl4q_u8(vld1q_u8_x4(table), index);
}

LANES vec u8_lookup_64_from(const uint8_t table[], int first, vec index)
{
    return u8_lookup_64(table + first, u8_sub(index, u8_set((uint8_t)first)));
}

/* By the lower 7 bits. */
LANES vec u8_lookup_128(const uint8_t table[128], vec index)
{
    const vec within = vec_and(index, u8_set(0x7f));
    return vec_or(u8_lookup_64(table, within), u8_lookup_64_from(table, 64, within));
}

/* The marked lanes; the others stay as they are. */
LANES vec u8_lookup_256_where(mask8 where, const uint8_t table[256], vec index)
{
    vec found = u8_lookup_64(table, index);
    for (int first = 64; first < 256; first += 64)
        found = vec_or(found, u8_lookup_64_from(table, first, index));
    return u8_select(where, found, index);
}

/* Have they any set bit in common? */
#define u8_has_bits vtstq_u8
#define u8_increment u8_sub /* a mask is -1 */

#define LEVEL neon
#include "level.h"
#endif
