/*
 * narrow_add.h - rounding into 16 bits and fewer by adding floats: the algorithm
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by narrow.h for an instruction set whose 16-bit lanes lack what narrow.h
 * rounds with, or is slower by it (shifts by a vector of counts, unsigned minima, rounding
 * products): f32 to e4m3 takes 0.41 ns this way with SSE2, and 0.21 instead of 0.27 with
 * AVX2.
 *
 * To an f32 m of exponent e, kept to F fraction bits, is added a c of exponent
 * e + 23 - F: the sum's last place is that of the result, and the addition rounds m
 * to it, ties to even.  c's own fraction, at the sum's lowest bits, is the exponent
 * field's share of the code; with the significand, leading one included, they sum to
 * the code without sign.  Below the smallest normal number e stays at its exponent.
 *
 * Runs with MXCSR at its default, or with flushing; see x86_common.h.
 */

LANES bool rounds_by_addition(fpconv_format dst, fpconv_format src)
{
    if (src == FPCONV_F16 || fp_formats[src].size == 1)
        return false;
#ifndef VEC_HAS_F32_TO_F16
    if (dst == FPCONV_F16)
        return true;
#endif
    return fp_formats[dst].size == 1 && dst != FPCONV_HIF8;
}

/* A code of dst, without sign, as an f32; subnormal ones excepted. */
LANES uint32_t f32_of_code(fpconv_format dst, uint64_t code)
{
    const struct fp_format *d = &fp_formats[dst];
    const uint64_t rebiased = code + ((uint64_t)(127 - d->bias) << d->fraction_bits);
    return (uint32_t)(rebiased << (23 - d->fraction_bits));
}

/* The code that overflows become, as an f32. */
LANES vec overflow_f32(fpconv_format dst, fpconv_policy policy)
{
    return u32_set(f32_of_code(dst, fp_pack_overflow(dst, policy)));
}

/* Into the range in which rounding yields the right code by itself; for what
 * has_exception does not exclude. */
LANES vec clamp_f32(vec magnitude, fpconv_format dst, fpconv_policy policy)
{
    if (policy != FPCONV_HDF5)
        return f32_min(magnitude, overflow_f32(dst, policy));
    /* Ties go away from zero when the last fraction bit is set first.  Below
     * 2^(e_max+1) nothing rounds past the largest finite value. */
    const vec largest = u32_set(f32_of_code(dst, fp_max_finite(&fp_formats[dst], policy)));
    return f32_min(vec_or(magnitude, u32_set(1)), largest);
}

/*
 * Is there a NaN, or, with FPCONV_HDF5, something that becomes Inf?  That takes more than
 * clamping, and is rare: telling it apart in each lane takes f32 to e4m3 with AVX2 from
 * 0.23 ns to 0.34.
 */
LANES bool has_exception(const vec magnitude[4], fpconv_format dst, fpconv_policy policy)
{
    if (policy != FPCONV_HDF5)
        return mask_any(vec_or(f32_either_is_nan(magnitude[0], magnitude[1]),
                               f32_either_is_nan(magnitude[2], magnitude[3])));
    vec any = u32_set(0);
    for (int i = 0; i < 4; i++)
        any = vec_or(any, f32_not_less(magnitude[i], overflow_f32(dst, policy)));
    return mask_any(any);
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
            vec_unpack_u16(u16_set(0), vec_spread(vec_load(src + (size_t)i * VEC_BYTES / 2)),
                           out + i);
}

/* A block, or the first half, to f16 or a format of 8 bits and fewer; false, and nothing
 * is stored, if there is what this is not for. */
LANES bool narrow_by_addition(fpconv_format dst_format, char *dst, fpconv_format src_format,
                              const char *src, fpconv_policy policy, int halves)
{
    const struct fp_format *d = &fp_formats[dst_format];
    const int sign_bit = d->exponent_bits + d->fraction_bits;
    vec x[4] = {u32_set(0), u32_set(0), u32_set(0), u32_set(0)}, magnitude[4], code[4];
    load_f32s(x, src, src_format, 2 * halves);
    for (int i = 0; i < 4; i++)
        magnitude[i] = vec_clear(x[i], u32_set(0x80000000));
    if (has_exception(magnitude, dst_format, policy))
        return false;
    for (int i = 0; i < 4; i++)
        code[i] = round_by_addition(clamp_f32(magnitude[i], dst_format, policy), dst_format);
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
    vec_store(dst, vec_order_packed_bytes(vec_or(codes, u16_shift_right(signs, 7 - sign_bit))));
    return true;
}
