/*
 * narrow_lines.h - rounding into 8 bits and fewer, ties away from zero: the algorithm
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by narrow.h for an instruction set that looks bytes up in tables of 16.
 *
 * Where ties go away from zero, nothing below the rounding bit matters, so that the top half
 * of an f32, a bf16, is all there is to round from.  As a function of its bits, as an integer
 * m, a code that counts on in the order of values is made of straight lines, each over some
 * binades, with as many steps to a binade as there are codes in it:
 *
 *   code = (m * steps + 2^6) / 2^7 + offset = (m * (steps * 2^8) + 2^14) / 2^15 + offset.
 *
 * Which line it is is looked up by the exponents of two vectors, in byte lanes.  f32 to e4m3
 * takes 31 operations for 32 values this way, and 43 by addition (narrow_add.h).
 */

/* Does a format's byte not just begin with its source's exponent field? */
LANES bool rounds_along_lines(fpconv_format dst, fpconv_format src, fpconv_policy policy)
{
    return policy == FPCONV_HDF5 && rounds_by_addition(dst, src) && fp_formats[dst].size == 1;
}

/* By line, bytes. */
struct line_tables {
    uint64_t steps, offset;
};

/* Two vectors of values below 256 as bytes, in the order of packing. */
LANES vec pack_bytes(vec first, vec second)
{
    return u16_pack_saturate(first, second);
}

/* The signs of two vectors of 16-bit lanes, at the top of bytes whose other bits mean nothing. */
LANES vec pack_signs(vec first, vec second)
{
    return s16_pack_saturate(first, second);
}

LANES vec round_along_lines(const vec m[2], vec steps, vec offset, fpconv_format lane)
{
    const int shift = fp_formats[lane].fraction_bits - fp_formats[FPCONV_BF16].fraction_bits;
    vec factor[2];
    vec_unpack_u8(u8_set(0), steps, factor);
    for (int i = 0; i < 2; i++)
        factor[i] = s16_multiply_high_round(m[i], u16_shift_right(factor[i], shift));
    return u8_add(pack_bytes(factor[0], factor[1]), offset);
}

/*
 * The lines of a format with fields, by exponent.  The first is of all that becomes 0, the
 * second of the binade whose values become the smallest subnormal number, and then each binade
 * has twice as many codes as the one before it, up to the normal ones.
 */
LANES int last_line(fpconv_format dst)
{
    return fp_formats[dst].fraction_bits + 2;
}

/* Entry i is byte i, the first in memory, of either. */
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
    vec value[2], magnitude[2], m[2], exponent[2];
    load_truncated_tops(value, src, src_format, halves);
    for (int i = 0; i < 2; i++)
        magnitude[i] = vec_clear(value[i], u16_set(0x8000));
    if (mask_any(s16_greater(s16_max(magnitude[0], magnitude[1]), u16_set((uint16_t)(inf - 1)))))
        return false;
    for (int i = 0; i < 2; i++) {
        const vec finite = s16_min(magnitude[i], u16_set(most));
        exponent[i] = u16_shift_right(finite, l->fraction_bits);
        m[i] = u16_sub(finite, u16_set((uint16_t)(first << l->fraction_bits)));
    }
    const vec exponents = pack_bytes(exponent[0], exponent[1]);
    const vec line = u8_min(u8_sub_saturate(exponents, u8_set((uint8_t)first)),
                            u8_set((uint8_t)last_line(dst_format)));
    const struct line_tables tables = list_lines(dst_format);
    const vec codes = round_along_lines(m, u8_lookup_in_16(u64_set(tables.steps), line),
                                        u8_lookup_in_16(u64_set(tables.offset), line), lane);
    const vec signs = vec_and(pack_signs(value[0], value[1]), u8_set(0x80));
    const vec bytes = vec_or(codes, u16_shift_right(signs, 7 - sign_bit));
    vec_store(dst,
              fp_format_is_wide(src_format) ? vec_order_packed_halves(bytes) : vec_spread(bytes));
    return true;
}
