/*
 * narrow_add.h - rounding into 16 bits and fewer by adding floats: the algorithm
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by narrow.h for an instruction set whose 16-bit lanes lack what narrow.h
 * rounds with (shifts by a vector of counts, unsigned minima, rounding products).
 * With SSE2 f32 to e4m3 takes 3.6 instructions an element this way, and 8.3 that way.
 *
 * To an f32 m of exponent e, kept to F fraction bits, is added a c of exponent
 * e + 23 - F: the sum's last place is that of the result, and the addition rounds m
 * to it, ties to even.  c's own fraction, at the sum's lowest bits, is the exponent
 * field's share of the code; with the significand, leading one included, they sum to
 * the code without sign.  Below the smallest normal number e stays at its exponent.
 *
 * Runs with MXCSR at its default, or with flushing; see x86_common.h.
 */

/* A code of dst, without sign, as an f32; subnormal ones excepted. */
LANES uint32_t f32_of_code(fpconv_format dst, uint64_t code)
{
    const struct fp_format *d = &fp_formats[dst];
    const uint64_t rebiased = code + ((uint64_t)(127 - d->bias) << d->fraction_bits);
    return (uint32_t)(rebiased << (23 - d->fraction_bits));
}

/* Into the range in which rounding yields the right code by itself; not for NaN. */
LANES vec clamp_f32(vec magnitude, fpconv_format dst, fpconv_policy policy)
{
    const vec overflow = u32_set(f32_of_code(dst, fp_pack_overflow(dst, policy)));
    if (policy != FPCONV_HDF5)
        return f32_min(magnitude, overflow);
    /* Ties go away from zero when the last fraction bit is set first.  Below
     * 2^(e_max+1) nothing rounds past the largest finite value. */
    const vec largest = u32_set(f32_of_code(dst, fp_max_finite(&fp_formats[dst], policy)));
    const vec nudged = f32_min(vec_or(magnitude, u32_set(1)), largest);
    return u32_select(s32_greater(overflow, magnitude), nudged, overflow);
}

/* Codes without sign, in 32-bit lanes. */
LANES vec round_by_addition(vec magnitude, fpconv_format dst)
{
    const struct fp_format *d = &fp_formats[dst];
    const int shift = 23 - d->fraction_bits;
    const uint32_t normal_min = f32_of_code(dst, UINT64_C(1) << d->fraction_bits);
    const uint32_t offset = ((uint32_t)shift << 23) - (normal_min >> shift);
    const uint32_t code_mask = (1u << (d->exponent_bits + d->fraction_bits)) - 1;
    const vec exponent = vec_and(f32_max(magnitude, u32_set(normal_min)), u32_set(0x7f800000));
    const vec share = u32_add(u32_shift_right(exponent, shift), u32_set(offset));
    return vec_and(f32_add(magnitude, u32_add(exponent, share)), u32_set(code_mask));
}

/* Up to a block of f32s; those of f64 and bf16 are exact, or rounded to odd. */
LANES void load_f32s(vec out[4], const char *src, fpconv_format format, int count)
{
    for (int i = 0; i < count; i++)
        if (format != FPCONV_BF16)
            out[i] = load_as_f32(src + (size_t)i * LANES_32 * fp_formats[format].size, format);
        else if (i % 2 == 0)
            vec_unpack_u16(u16_set(0), vec_load(src + (size_t)i * VEC_BYTES / 2), out + i);
}

/* 16 elements, or 8, to f16 or a format of 8 bits and fewer; false, and nothing is
 * stored, if there is a NaN. */
LANES bool narrow_by_addition(fpconv_format dst_format, char *dst, fpconv_format src_format,
                              const char *src, fpconv_policy policy, int halves)
{
    const struct fp_format *d = &fp_formats[dst_format];
    const int sign_bit = d->exponent_bits + d->fraction_bits;
    vec x[4] = {u32_set(0), u32_set(0), u32_set(0), u32_set(0)}, code[4];
    load_f32s(x, src, src_format, 2 * halves);
    if (mask_any(vec_or(f32_either_is_nan(x[0], x[1]), f32_either_is_nan(x[2], x[3]))))
        return false;
    for (int i = 0; i < 4; i++) {
        const vec magnitude = vec_clear(x[i], u32_set(0x80000000));
        code[i] = round_by_addition(clamp_f32(magnitude, dst_format, policy), dst_format);
    }
    /* Saturation leaves the codes as they are, and of the f32s their signs. */
    const vec sign[2] = {s32_pack_saturate(x[0], x[1]), s32_pack_saturate(x[2], x[3])};
    const vec both[2] = {s32_pack_saturate(code[0], code[1]), s32_pack_saturate(code[2], code[3])};
    if (dst_format == FPCONV_F16) {
        for (int i = 0; i < 2; i++)
            vec_store(dst + i * VEC_BYTES, vec_or_and(both[i], sign[i], u16_set(0x8000)));
        return true;
    }
    const vec signs = vec_and(s16_pack_saturate(sign[0], sign[1]), u8_set(0x80));
    const vec codes = s16_pack_saturate(both[0], both[1]);
    vec_store(dst, vec_or(codes, u16_shift_right(signs, 7 - sign_bit)));
    return true;
}
