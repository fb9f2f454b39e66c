/*
 * narrow_lines.h - rounding into 8 bits and fewer, ties away from zero: the algorithm
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by narrow.h for an instruction set that otherwise rounds by addition.
 *
 * Where ties go away from zero, nothing below the rounding bit matters, so that the top half
 * of an f32, a bf16, is all there is to round from.  As a function of its bits, as an integer
 * m, a code that counts on in the order of values is made of straight lines, each over some
 * binades, with as many steps to a binade as there are codes in it:
 *
 *   code = (m * steps + 2^6) / 2^7 + offset = (m * (steps * 2^8) + 2^14) / 2^15 + offset.
 *
 * Which line it is is looked up by the exponents of two vectors, in byte lanes, where bytes can
 * be looked up.  f32 to e4m3 takes 31 operations for 32 values this way, and 43 by addition
 * (narrow_add.h).  Otherwise it is the highest of the few lines of a format with fields.
 */

/* The top halves of a block, or of its first half, as f32s towards zero; f16 are as they are. */
LANES void load_truncated_tops(vec top[2], const char *src, fpconv_format src_format, int halves)
{
    const bool wide = fp_format_is_wide(src_format);
    const size_t size = fp_formats[src_format].size;
    top[0] = top[1] = u16_set(0);
    for (int i = 0; i < halves; i++, src += LANES_16 * size) {
        if (src_format == FPCONV_F64)
            top[i] = vec_split_u32(truncated_f32(src), truncated_f32(src + LANES_32 * size)).high;
        else
            top[i] = wide ? load_halves(src, src_format).high : vec_load(src);
    }
}

/* What rounds_by_addition leaves out needs less than either.  Of f32 to three fraction bits, four
 * lines are as many operations as an addition: with SSE2 2 to 4 % more time, while to fewer bits
 * they take up to 17 % less, and from f64 always 5 % and more. */
LANES bool rounds_along_lines(fpconv_format dst, fpconv_format src, fpconv_policy policy)
{
    if (policy != FPCONV_HDF5 || fp_formats[dst].size != 1 || !rounds_by_addition(dst, src))
        return false;
#ifndef VEC_LOOKS_UP_16
    if (src == FPCONV_F32 && fp_formats[dst].fraction_bits > 2)
        return false;
#endif
    return true;
}

#ifdef VEC_LOOKS_UP_16
LANES vec round_along_lines(const vec m[2], vec steps, vec offset, fpconv_format lane)
{
    const int shift = fp_formats[lane].fraction_bits - fp_formats[FPCONV_BF16].fraction_bits;
    vec factor[2];
    vec_unpack_u8(u8_set(0), steps, factor);
    for (int i = 0; i < 2; i++)
        factor[i] = s16_multiply_high_round(m[i], u16_shift_right(factor[i], shift));
    return u8_add(u16_pack_saturate(factor[0], factor[1]), offset);
}
#endif

/*
 * The lines of a format with fields, by exponent.  The first is of all that becomes 0, the
 * second of the binade whose values become the smallest subnormal number, and then each binade
 * has twice as many codes as the one before it, up to the normal ones.
 */
LANES int last_line(fpconv_format dst)
{
    return fp_formats[dst].fraction_bits + 2;
}

#ifdef VEC_LOOKS_UP_16
/* Byte i, in the order of memory, is of line i. */
struct line_tables {
    uint64_t steps, offset;
};

LANES struct line_tables list_lines(fpconv_format dst)
{
    struct line_tables tables = {0, 0};
    for (int line = 1; line <= last_line(dst); line++) {
        const int steps = line == 1 ? 0 : 1 << (line - 2);
        const int offset = line == 1 ? 1 : -steps * (line - 1);
        tables.steps |= (uint64_t)steps << 8 * line;
        tables.offset |= (uint64_t)(uint8_t)offset << 8 * line;
    }
    return tables;
}

/* Codes without sign of finite magnitudes.  `first` is the exponent field of line 0. */
LANES vec codes_along_lines(const vec finite[2], fpconv_format lane, fpconv_format dst, int first)
{
    const int fraction_bits = fp_formats[lane].fraction_bits;
    const struct line_tables tables = list_lines(dst);
    vec exponent[2], m[2];
    for (int i = 0; i < 2; i++) {
        exponent[i] = u16_shift_right(finite[i], fraction_bits);
        m[i] = u16_sub(finite[i], u16_set((uint16_t)(first << fraction_bits)));
    }
    const vec exponents = u16_pack_saturate(exponent[0], exponent[1]);
    const vec line =
        u8_min(u8_sub_saturate(exponents, u8_set((uint8_t)first)), u8_set((uint8_t)last_line(dst)));
    return round_along_lines(m, u8_lookup_in_16(u64_set(tables.steps), line),
                             u8_lookup_in_16(u64_set(tables.offset), line), lane);
}
#else
/*
 * The same as the highest of the lines, with half a step on top, for each is steeper than the
 * one before it.  The second begins with a step, up to which the first reaches.
 */
LANES vec codes_along_lines(const vec finite[2], fpconv_format lane, fpconv_format dst, int first)
{
    const int fraction_bits = fp_formats[lane].fraction_bits;
    const int one = 1 << fraction_bits;
    vec code[2];
    for (int i = 0; i < 2; i++) {
        vec m = u16_sub_saturate(finite[i], u16_set((uint16_t)(first << fraction_bits)));
        vec highest = s16_min(m, u16_set((uint16_t)one));
        for (int line = 2; line <= last_line(dst); line++) {
            const int less = one * (line - 1) << (line - 2);
            const vec height = u16_sub_saturate(m, u16_set((uint16_t)(less - one / 2)));
            highest = s16_max(highest, height);
            m = u16_add(m, m);
        }
        code[i] = u16_shift_right(highest, fraction_bits);
    }
    return u16_pack_saturate(code[0], code[1]);
}
#endif

/* A block, or the first half, of f32, f64, bf16 or f16; false, and nothing is stored, if there
 * is something that becomes Inf or NaN. */
LANES bool narrow_along_lines(fpconv_format dst_format, char *dst, fpconv_format src_format,
                              const char *src, int halves)
{
    const fpconv_policy policy = FPCONV_HDF5;
    const fpconv_format lane = src_format == FPCONV_F16 ? FPCONV_F16 : FPCONV_BF16;
    const struct fp_format *l = &fp_formats[lane], *d = &fp_formats[dst_format];
    const int sign_bit = d->exponent_bits + d->fraction_bits;
    const int first = -d->bias + l->bias - d->fraction_bits - 1; /* exponent field of line 0 */
    const uint16_t most =
        (uint16_t)(lane_magnitude(lane, dst_format, fp_max_finite(d, policy)) >> 1);
    const uint16_t inf =
        (uint16_t)(lane_magnitude(lane, dst_format, fp_pack_overflow(dst_format, policy)) >> 1);
    vec value[2], finite[2];
    load_truncated_tops(value, src, src_format, halves);
    for (int i = 0; i < 2; i++)
        finite[i] = vec_clear(value[i], u16_set(0x8000));
    if (mask_any(s16_greater(s16_max(finite[0], finite[1]), u16_set((uint16_t)(inf - 1)))))
        return false;
    for (int i = 0; i < 2; i++) /* what is less than Inf never rounds up to it */
        finite[i] = s16_min(finite[i], u16_set(most));
    const vec codes = codes_along_lines(finite, lane, dst_format, first);
    /* saturated, they keep their signs */
    const vec signs = vec_and(s16_pack_saturate(value[0], value[1]), u8_set(0x80));
    const vec bytes = vec_or(codes, u16_shift_right(signs, 7 - sign_bit));
    vec_store(dst,
              fp_format_is_wide(src_format) ? vec_order_packed_halves(bytes) : vec_spread(bytes));
    return true;
}
