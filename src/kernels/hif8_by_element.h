/*
 * hif8_by_element.h - hif8 to and from the other formats, an element at a time
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by the file of an instruction set that does not look bytes up in vectors.  A table
 * of all bf16s is as much as there is to round from, and what an f32 begins with: with SSE2 an
 * f32 takes 5 instructions, 4 of which are loads and stores that overlap; arithmetic in byte
 * lanes took at least 70 for 16 of them, at 3 of these a cycle a fifth longer.
 */

typedef struct hif8_scalar_tables hif8_level_tables;
#define hif8_level_tables_get hif8_scalar_tables_get
enum { HIF8_USES_FLOATS = 0 };

/* f64 as bf16, towards zero; LANES_16 of them.  From 2^128 on all become Inf. */
LANES vec hif8_bf16_of_f64(const char *src)
{
    vec high[2], unused;
    for (int i = 0; i < 2; i++, src += 2 * VEC_BYTES)
        vec_split_u64(vec_load(src), vec_load(src + VEC_BYTES), &high[i], &unused);
    const vec top = vec_split_u32(high[0], high[1]).high, sign_bit = u16_set(0x8000);
    const vec rebiased = u16_sub_saturate(vec_clear(top, sign_bit), u16_set((1023 - 127) << 4));
    const vec magnitude = u16_shift_left(s16_min(rebiased, u16_set(0x0ff0)), 3);
    return vec_or_and(magnitude, top, sign_bit);
}

/* Is an f32 Inf or NaN?  Which of them, their first halves do not always tell. */
LANES bool f32_block_has_special(const char *src)
{
    const vec sign_bit = u32_set(0x80000000);
    vec largest = vec_clear(vec_load(src), sign_bit);
    for (int i = 1; i < VEC_BYTES / LANES_32; i++)
        largest = s16_max(largest, vec_clear(vec_load(src + i * VEC_BYTES), sign_bit));
    return mask_any(s32_greater(largest, u32_set(0x7f7fffff)));
}

/* `halves` as for narrow_byte_block. */
LANES void narrow_hif8_block(const hif8_level_tables *tables, char *dst, fpconv_format src_format,
                             const char *src, int halves)
{
    const size_t size = fp_formats[src_format].size;
    uint16_t bf16[2 * LANES_16];
    bool special = src_format == FPCONV_F32 && f32_block_has_special(src);
    if (src_format == FPCONV_F64) {
        vec largest = u16_set(0);
        for (int i = 0; i < halves; i++) {
            const vec some = hif8_bf16_of_f64(src + (size_t)i * LANES_16 * size);
            largest = s16_max(largest, vec_clear(some, u16_set(0x8000)));
            vec_store(bf16 + i * LANES_16, some);
        }
        special = mask_any(s16_greater(largest, u16_set(0x7f7f)));
    }
    if (special) { /* Inf, NaN and f64 that are larger than any f32 */
        convert_by_codec(FPCONV_HIF8, dst, src_format, src, (size_t)(halves * LANES_16),
                         FPCONV_OCP);
        return;
    }
    for (int i = 0; i < halves * LANES_16; i++) {
        uint16_t index;
        if (src_format == FPCONV_F64)
            index = bf16[i];
        else /* the last bytes, which are the first of the number */
            memcpy(&index, src + (size_t)(i + 1) * size - sizeof(index), sizeof(index));
        dst[i] = (char)tables->code[index];
    }
}

LANES void widen_hif8_block(const hif8_level_tables *tables, fpconv_format dst_format, char *dst,
                            const char *src, fpconv_policy policy)
{
    uint8_t copy[VEC_BYTES]; /* of what results may overwrite */
    const uint8_t *codes = copy;
    vec_store(copy, vec_load(src));
    /* The compiler is not to take them from registers, which needs two operations more for
     * each: 5.1 instead of 3.6 instructions to f32. */
    __asm__("" : "+r"(codes) : : "memory");
    for (int i = 0; i < VEC_BYTES; i++) {
        const uint8_t code = codes[i];
        if (dst_format == FPCONV_F64)
            memcpy(dst + i * 8, &tables->f64[policy][code], 8);
        else if (dst_format == FPCONV_F32)
            memcpy(dst + i * 4, &tables->f32[policy][code], 4);
        else
            memcpy(dst + i * 2, &tables->half[dst_format == FPCONV_BF16][policy][code], 2);
    }
}
