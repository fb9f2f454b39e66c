/*
 * quantize.h - MX blocks and their power-of-two scales: the algorithms
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by the file of each instruction set.  Scaling by a power of two adds
 * to the exponent field, in integer lanes; what that is not good enough for is
 * left to the caller, block by block.
 */

enum { BLOCK = 32, BLOCK_BYTES = BLOCK * sizeof(float), BLOCK_VECS = BLOCK / LANES_16 };
enum { GROUP = 4, BLOCKS_MAX = 32 };

/* -------------------------------------------------------------------------- */
/* Quantizing                                                                 */
/* -------------------------------------------------------------------------- */

#if VEC_BYTES == 16
#define s32_store_maxima_of_quarters vec_store
#endif

LANES vec u16_max_of_pairs(vec a, vec b)
{
    vec pairs[2];
    vec_unpack_u16(a, b, pairs);
    return u16_max(pairs[0], pairs[1]);
}

/* Up to BLOCKS_MAX blocks as they enter rounding (narrow_byte.h): doubled tops, and the bytes
 * with the sign bits of two vectors each. */
struct block_tops {
    vec doubled[BLOCKS_MAX * BLOCK_VECS], signs[BLOCKS_MAX * BLOCK_VECS / 2];
};

/*
 * The amaxes of four blocks at once, from the largest magnitude in each lane of each.
 * Interleaving two vectors of maxima and taking the larger of what were neighbours halves
 * the lanes of both; in this order each half of 128 bits is of blocks 0, 1, 2, 3, and so
 * are the four lanes that the two of these become.
 */
LANES void store_amaxes(int32_t amax[GROUP], const vec largest[GROUP])
{
    vec halves[2];
    const vec even = u16_max_of_pairs(largest[0], largest[2]);
    const vec odd = u16_max_of_pairs(largest[1], largest[3]);
    vec_unpack_u16(u16_max_of_pairs(even, odd), u16_set(0), halves);
    s32_store_maxima_of_quarters(amax, s32_max(halves[0], halves[1]));
}

/*
 * Four blocks, from `first` on, and their amaxes.  That of the tops is as good as that of
 * the values for choosing a scale: it has the same exponent, and its fraction exceeds
 * that of the element format's largest number, which has at most 3 bits, if theirs does.
 */
LANES void load_group(struct block_tops *tops, size_t first, int32_t amax[GROUP], const char *src)
{
    vec largest[GROUP], high[GROUP * BLOCK_VECS];
    vec *doubled = tops->doubled + first * BLOCK_VECS;
    vec *signs = tops->signs + first * BLOCK_VECS / 2;
    for (int i = 0; i < GROUP * BLOCK_VECS; i++) {
        const struct halves x = load_halves(src + 2 * i * VEC_BYTES, FPCONV_F32);
        const int block = i / BLOCK_VECS;
        high[i] = x.high;
        doubled[i] = doubled_top(x);
        largest[block] = i % BLOCK_VECS ? u16_max(largest[block], doubled[i]) : doubled[i];
    }
    for (int i = 0; i < GROUP * BLOCK_VECS; i += 2)
        signs[i / 2] = mix_high_bytes(high[i], high[i + 1]);
    store_amaxes(amax, largest);
}

/*
 * Quotients below 2^-40 are 0 in every element format, and may be any others of these:
 * a subnormal number, whose exponent field is not its exponent, becomes one.  A block
 * is ordinary if such a number does remain below that limit, and if there is no Inf or
 * NaN; or if it is all zero.
 */
enum { QUOTIENT_MIN = -40, ORDINARY_CODE_MIN = 1 - QUOTIENT_MIN };

/* What the amaxes say, as plain loops over all blocks, which vectorise: what
 * quantize_lanes subtracts, and bits for blocks that are not ordinary. */
struct block_scales {
    int32_t code[BLOCKS_MAX];
    uint32_t excess[BLOCKS_MAX];
};

LANES uint32_t choose_scales(struct block_scales *s, const int32_t *amax, fpconv_format element,
                             bool ceil)
{
    const struct fp_format *d = &fp_formats[element];
    const int fraction_bits = fp_formats[FPCONV_BF16].fraction_bits + 1; /* doubled */
    const int32_t fraction_mask = (1 << fraction_bits) - 1;
    const int32_t largest = (int32_t)fp_max_finite(d, FPCONV_OCP_SAT);
    const int32_t e_max = (largest >> d->fraction_bits) - d->bias;
    const int32_t fraction = largest << (fraction_bits - d->fraction_bits) & fraction_mask;
    const int32_t fraction_max = ceil ? fraction : fraction_mask;
    int32_t unusual[BLOCKS_MAX], any = 0;
    for (int i = 0; i < BLOCKS_MAX; i++) {
        const int32_t up = (amax[i] & fraction_mask) > fraction_max;
        const int32_t code = (amax[i] >> fraction_bits) + up - e_max;
        const int32_t is_zero = -(amax[i] == 0);
        s->code[i] = code & ~is_zero;
        s->excess[i] = (uint32_t)(code - ORDINARY_CODE_MIN) * 0x01000100;
        unusual[i] = ((code < ORDINARY_CODE_MIN) | (amax[i] >= 0xff00)) & ~is_zero;
        any |= unusual[i];
    }
    uint32_t bits = 0;
    for (int i = 0; any && i < BLOCKS_MAX; i++)
        bits |= (uint32_t)(unusual[i] != 0) << i;
    return bits;
}

/*
 * Codes without sign, in 16-bit lanes, of doubled tops divided by the scale: 127 is added
 * to the exponent field and the scale's code subtracted, in two steps of which the first
 * never adds.  `excess` is the code less ORDINARY_CODE_MIN, at the exponent's place in
 * both halves of 32 bits; where it is more than the exponent, so that the quotient is
 * below 2^-40, the difference stops at 0.
 */
LANES vec quantize_lanes(vec doubled, uint32_t excess, fpconv_format element)
{
    const vec low = u16_sub_saturate(doubled, u32_set(excess));
    const vec quotients = u16_add(low, u16_set((127 - ORDINARY_CODE_MIN) << 8));
    const vec clamped = clamp_magnitude(quotients, FPCONV_BF16, element, FPCONV_OCP_SAT);
    return round_to_code(clamped, FPCONV_BF16, element, FPCONV_OCP);
}

LANES uint32_t quantize_mx_blocks(fpconv_format element, char *dst, uint8_t *restrict scales,
                                  const char *src, size_t blocks, bool ceil)
{
    struct block_tops tops;
    int32_t amax[BLOCKS_MAX] = {0};
    struct block_scales s;
    for (size_t i = 0; i < blocks; i += GROUP)
        load_group(&tops, i, amax + i, src + i * BLOCK_BYTES);
    const uint32_t unusual = choose_scales(&s, amax, element, ceil);
    for (size_t i = 0; i < blocks; i++)
        scales[i] = (uint8_t)s.code[i];
    for (size_t i = 0; i < blocks * BLOCK_VECS; i += 2) {
        vec code[2];
        for (size_t k = 0; k < 2; k++)
            code[k] = quantize_lanes(tops.doubled[i + k], s.excess[(i + k) / BLOCK_VECS], element);
        const vec mixed = add_signs(mix_low_bytes(code[0], code[1]), tops.signs[i / 2], element);
        vec_store(dst + i / 2 * VEC_BYTES, vec_order_split_bytes(mixed));
    }
    return unusual;
}

#define DEFINE_QUANTIZE(NAME)                                                           \
    static uint32_t quantize_##NAME(void *restrict codes, uint8_t *restrict scales,     \
                                    const void *restrict src, size_t blocks, bool ceil) \
    {                                                                                   \
        return quantize_mx_blocks(FPCONV_##NAME, codes, scales, src, blocks, ceil);     \
    }

/* -------------------------------------------------------------------------- */
/* Dequantizing                                                               */
/* -------------------------------------------------------------------------- */

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
