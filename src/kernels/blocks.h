/*
 * blocks.h - the power-of-two scales of MX blocks: the algorithms
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by the file of each instruction set.  Scaling by a power of two adds
 * to the exponent field, in integer lanes; what that is not good enough for is
 * left to the caller, block by block.
 */

enum { BLOCK = 32, BLOCK_BYTES = BLOCK * sizeof(float), GROUP = 4 };

#if VEC_BYTES == 16
#define s32_store_maxima_of_quarters vec_store
#endif

LANES vec s32_max_of_pairs(vec a, vec b)
{
    vec pairs[2];
    vec_unpack_u32(a, b, pairs);
    return s32_max(pairs[0], pairs[1]);
}

/* The largest magnitude in each lane of a block. */
LANES vec block_lane_maxima(const char *src)
{
    vec result = u32_set(0);
    for (int i = 0; i < BLOCK_BYTES; i += VEC_BYTES)
        result = s32_max(result, vec_clear(vec_load(src + i), u32_set(0x80000000)));
    return result;
}

/*
 * The amaxes of four blocks at once.  Interleaving two vectors of maxima and
 * taking the larger of what were neighbours halves the lanes of both; in this
 * order the last four of each 128 bits belong to blocks 0, 1, 2, 3.
 */
LANES void group_amaxes(int32_t amax[GROUP], const char *src)
{
    const vec even =
        s32_max_of_pairs(block_lane_maxima(src), block_lane_maxima(src + 2 * BLOCK_BYTES));
    const vec odd = s32_max_of_pairs(block_lane_maxima(src + BLOCK_BYTES),
                                     block_lane_maxima(src + 3 * BLOCK_BYTES));
    s32_store_maxima_of_quarters(amax, s32_max_of_pairs(even, odd));
}

/* magnitude - shift in f32's exponent field, no less than 0.  The sign stays. */
LANES void shift_block_down(char *dst, const char *src, uint32_t shift)
{
    const vec sign_bit = u32_set(0x80000000);
    for (int i = 0; i < BLOCK_BYTES; i += VEC_BYTES) {
        const vec value = vec_load(src + i);
        const vec magnitude = vec_clear(value, sign_bit);
        const vec shifted = s32_max(u32_sub(magnitude, u32_set(shift)), u32_set(0));
        vec_store(dst + i, vec_or_and(shifted, value, sign_bit));
    }
}

/*
 * Quotients below 2^-40 are 0 in every element format, and may be any others of these:
 * a subnormal number, whose exponent field is not its exponent, becomes one.  A block
 * is ordinary if such a number does remain below that limit, and if there is no Inf or
 * NaN; or if it is all zero.
 */
enum { QUOTIENT_MIN = -40, ORDINARY_CODE_MIN = 1 - QUOTIENT_MIN };

enum { BLOCKS_MAX = 32 };

/* What the amaxes say, as plain loops over all blocks, which vectorise: shifts for
 * shift_block_down, and bits for blocks that are not ordinary. */
struct block_scales {
    int32_t code[BLOCKS_MAX], shift[BLOCKS_MAX];
};

LANES uint32_t choose_scales(struct block_scales *s, const int32_t *amax, int e_max,
                             int32_t fraction_max)
{
    int32_t unusual[BLOCKS_MAX], any = 0;
    for (int i = 0; i < BLOCKS_MAX; i++) {
        const int32_t up = (amax[i] & 0x7fffff) > fraction_max;
        const int32_t code = (amax[i] >> 23) + up - e_max;
        const int32_t is_zero = -(amax[i] == 0);
        s->code[i] = code & ~is_zero;
        s->shift[i] = (int32_t)((uint32_t)(code - 127) << 23) & ~is_zero;
        unusual[i] = ((code < ORDINARY_CODE_MIN) | (amax[i] >= 0x7f800000)) & ~is_zero;
        any |= unusual[i];
    }
    uint32_t bits = 0;
    for (int i = 0; any && i < BLOCKS_MAX; i++)
        bits |= (uint32_t)(unusual[i] != 0) << i;
    return bits;
}

static uint32_t mx_quotients(void *restrict dst, uint8_t *restrict scales, const void *restrict src,
                             size_t blocks, int e_max, uint32_t fraction_max)
{
    int32_t amax[BLOCKS_MAX] = {0};
    struct block_scales s;
    char *out = dst;
    const char *in = src;
    for (size_t i = 0; i < blocks; i += GROUP)
        group_amaxes(amax + i, in + i * BLOCK_BYTES);
    const uint32_t unusual = choose_scales(&s, amax, e_max, (int32_t)fraction_max);
    for (size_t i = 0; i < blocks; i++) {
        scales[i] = (uint8_t)s.code[i];
        shift_block_down(out + i * BLOCK_BYTES, in + i * BLOCK_BYTES, (uint32_t)s.shift[i]);
    }
    return unusual;
}

/* Products of f32 elements between 2^-22 and 2^17 with these scales are normal. */
enum { PRODUCT_CODE_MIN = 127 - 104, PRODUCT_CODE_MAX = 127 + 110 };

/* The scale's code is an f32's exponent field.  A product of NaN is that NaN with the
 * x86's multiplication; ARM's may be told otherwise, so that there integers do it. */
LANES vec scale_elements(vec value, uint8_t code)
{
#ifdef VEC_MULTIPLICATION_KEEPS_NAN
    return f32_multiply(value, u32_set((uint32_t)code << 23));
#else
    const vec shift = u32_set(((uint32_t)code - 127) << 23);
    const vec magnitude = vec_clear(value, u32_set(0x80000000));
    const mask32 is_finite = s32_greater(u32_set(0x7f800000), magnitude);
    const vec added = u32_select(is_finite, shift, u32_set(0));
    return u32_add(value, u32_clear_where_zero(added, magnitude));
#endif
}

static uint32_t mx_products(void *values, const uint8_t *scales, size_t blocks)
{
    char *p = values;
    uint32_t unusual = 0;
    for (size_t b = 0; b < blocks; b++, p += BLOCK_BYTES) {
        if (scales[b] < PRODUCT_CODE_MIN || scales[b] > PRODUCT_CODE_MAX) {
            unusual |= UINT32_C(1) << b;
            continue;
        }
        for (int i = 0; i < BLOCK_BYTES; i += VEC_BYTES)
            vec_store(p + i, scale_elements(vec_load(p + i), scales[b]));
    }
    return unusual;
}
