/*
 * hif8_by_element.h - hif8 to and from the other formats, an element at a time
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by the file of an instruction set that does not look bytes up in vectors: what
 * the tables are looked up by is made in vectors.  65,536 f32 take 0.38 ns each with SSE2;
 * arithmetic in byte lanes took at least 70 operations for 16 of them, which is 0.55.
 */

typedef struct hif8_scalar_tables hif8_level_tables;
#define hif8_level_tables_get hif8_scalar_tables_get

/* Of LANES_16 elements, the bits that hif8_scalar_tables' codes are looked up by, which an
 * f32 and a bf16 begin with. */
LANES vec hif8_index(const char *src, fpconv_format src_format)
{
    if (src_format == FPCONV_BF16)
        return u16_shift_right(vec_load(src), 3);
    if (src_format == FPCONV_F32)
        return s32_pack_saturate(u32_shift_right(vec_load(src), 19),
                                 u32_shift_right(vec_load(src + VEC_BYTES), 19));
    vec high[2], unused;
    for (int i = 0; i < 2; i++, src += 2 * VEC_BYTES)
        vec_split_u64(vec_load(src), vec_load(src + VEC_BYTES), &high[i], &unused);
    const vec top = vec_split_u32(high[0], high[1]).high, sign_bit = u16_set(0x8000);
    const vec rebiased = u16_sub_saturate(vec_clear(top, sign_bit), u16_set((1023 - 127) << 4));
    return vec_or(s16_min(rebiased, u16_set(HIF8_SPECIAL_INDEX)),
                  u16_shift_right(vec_and(top, sign_bit), 3));
}

/* `halves` as for narrow_byte_block. */
LANES void narrow_hif8_block(const hif8_level_tables *tables, char *dst, fpconv_format src_format,
                             const char *src, int halves)
{
    const size_t step = LANES_16 * fp_formats[src_format].size;
    uint16_t index[2 * LANES_16];
    vec largest = u16_set(0);
    for (int i = 0; i < halves; i++) {
        const vec some = hif8_index(src + (size_t)i * step, src_format);
        largest = s16_max(largest, vec_and(some, u16_set(0x0fff)));
        vec_store(index + i * LANES_16, some);
    }
    if (mask_any(s16_greater(largest, u16_set(HIF8_SPECIAL_INDEX - 1)))) {
        /* Inf, NaN and f64 that are larger than any f32 */
        convert_by_codec(FPCONV_HIF8, dst, src_format, src, (size_t)(halves * LANES_16),
                         FPCONV_OCP);
        return;
    }
    for (int i = 0; i < halves * LANES_16; i++)
        dst[i] = (char)tables->code[index[i]];
}

LANES void widen_hif8_block(const hif8_level_tables *tables, fpconv_format dst_format, char *dst,
                            const char *src, fpconv_policy policy)
{
    uint8_t codes[VEC_BYTES]; /* which results may overwrite */
    vec_store(codes, vec_load(src));
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
