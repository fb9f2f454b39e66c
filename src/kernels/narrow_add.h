/*
 * narrow_add.h - rounding into 16 bits and fewer by adding floats: the algorithm
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by narrow.h for an instruction set whose 16-bit lanes lack what narrow_byte.h
 * rounds with, or is slower by it (shifts by a vector of counts, unsigned minima, rounding
 * products): f32 to e4m3 takes 0.32 ns this way with SSE2, and 0.14 instead of 0.27 with
 * AVX2.
 *
 * To an f32 m of exponent e, kept to F fraction bits, is added a c of exponent
 * e + 23 - F: the sum's last place is that of the result, and the addition rounds m
 * to it, ties to even.  The sum's lowest bits are then the rounded significand, leading
 * one included, and its exponent field is e and a constant: shifted to stand in front of
 * F bits, either adds up to the code without sign.  Below the smallest normal number e
 * stays at its exponent.  What the constant is too large by c has in its own lowest bits.
 * c is a product, 2^e times a constant, so that with a CPU that multiplies and adds at
 * once it takes no operation at all.
 *
 * f64 are added to in the same way, and so are rounded once: with AVX2 to e4m3 0.28 ns
 * instead of 0.41 by way of an f32 with a sticky bit.
 *
 * Overflow saturates while the sums are packed.  Runs with MXCSR at MXCSR_FLUSHES; see
 * x86_common.h.  What is flushed would become zero.
 */

LANES bool rounds_by_addition(fpconv_format dst, fpconv_format src)
{
    if (fp_formats[src].size == 1 || dst == FPCONV_HIF8)
        return false;
    if (dst == FPCONV_BF16)
        return src == FPCONV_F64; /* an f32's bits are bf16's */
#ifdef VEC_HAS_F32_TO_F16
    if (src == FPCONV_F16) /* e5m2's exponents are f16's: 16-bit lanes suffice */
        return fp_formats[dst].size == 1 && dst != FPCONV_E5M2;
    return fp_formats[dst].size == 1;
#else
    return src != FPCONV_F16 && (dst == FPCONV_F16 || fp_formats[dst].size == 1);
#endif
}

/* A code of dst, without sign, as an f32 or f64; subnormal ones excepted. */
LANES uint64_t wide_of_code(fpconv_format wide, fpconv_format dst, uint64_t code)
{
    const struct fp_format *w = &fp_formats[wide], *d = &fp_formats[dst];
    const uint64_t rebiased = code + ((uint64_t)(w->bias - d->bias) << d->fraction_bits);
    return rebiased << (w->fraction_bits - d->fraction_bits);
}

/* As wide_of_code of what overflows become, if that is Inf. */
LANES uint64_t wide_overflow(fpconv_format wide, fpconv_format dst, fpconv_policy policy)
{
    return wide_of_code(wide, dst, fp_pack_overflow(dst, policy));
}

/* The exponent field of the sum for the smallest normal exponent, in front of the code's
 * fraction bits. */
LANES uint32_t sum_origin(fpconv_format wide, fpconv_format dst)
{
    const struct fp_format *w = &fp_formats[wide], *d = &fp_formats[dst];
    const int shift = w->fraction_bits - d->fraction_bits;
    return (uint32_t)(1 - d->bias + w->bias + shift) << d->fraction_bits;
}

LANES bool f32s_have_nan(const vec x[4])
{
    return mask_any(vec_or(f32_either_is_nan(x[0], x[1]), f32_either_is_nan(x[2], x[3])));
}

/* Of four f32 magnitudes, is there a NaN, or, with FPCONV_HDF5, something that becomes
 * Inf?  That takes more than clamping, and is rare: telling it apart in each lane takes f32
 * to e4m3 with AVX2 from 0.23 ns to 0.34. */
LANES bool f32s_have_exception(const vec m[4], fpconv_format dst, fpconv_policy policy)
{
    if (!fp_policy_is_hdf5(policy))
        return f32s_have_nan(m);
    /* The high halves decide, in which the sign bits are clear. */
    const vec largest = s16_max(s16_max(m[0], m[1]), s16_max(m[2], m[3]));
    const uint32_t inf = (uint32_t)wide_overflow(FPCONV_F32, dst, policy);
    return mask_any(f32_not_less(largest, u32_set(inf)));
}

/*
 * The sum of m and 2^e times `factor`.  To lose carries, m first takes the fraction of what
 * it is rounded to, which is zero after a carry, and keeps its exponent, and the last bit,
 * by which half the smallest subnormal number rounds up.
 */
LANES vec f32_sum(vec magnitude, vec binade, uint32_t factor, uint32_t least, fpconv_policy policy)
{
    const vec sum = f32_multiply_add(binade, u32_set(factor), magnitude);
    if (!fp_policy_loses_carries(policy))
        return sum;
    vec fraction = u32_set(0x007ffffe);
    if (policy == FPCONV_HDF5_SUBNORMAL_CARRY_LOST)
        fraction = vec_and(fraction, s32_greater(u32_set(least), magnitude));
    const vec rounded = f32_multiply_add(binade, u32_set(factor | 0x80000000), sum);
    const vec lost = vec_merge(fraction, rounded, magnitude);
    return f32_multiply_add(binade, u32_set(factor), lost);
}

/* Codes without sign, in 32-bit lanes: of 8 bits and fewer their products with 2^8.  Too
 * large values become anything larger. */
LANES vec round_f32(vec magnitude, fpconv_format dst, fpconv_policy policy)
{
    const struct fp_format *d = &fp_formats[dst];
    const uint32_t least = (uint32_t)wide_of_code(FPCONV_F32, dst, UINT64_C(1) << d->fraction_bits);
    const uint32_t power = (uint32_t)(127 + 23 - d->fraction_bits) << 23;
    const uint32_t origin = sum_origin(FPCONV_F32, dst);
    const vec binade = vec_and(f32_max(magnitude, u32_set(least)), u32_set(0x7f800000));
    /* The exponent field ends at bit 7 of the sum's high half: each half is multiplied so
     * that the code's fields meet, and they are added. */
    if (fp_formats[dst].size == 1) {
        const vec sum = f32_sum(magnitude, binade, power | (0x10000 - origin), least, policy);
        return s16_multiply_add_pairs(sum, u32_set(1u << (16 + 1 + d->fraction_bits) | 1u << 8));
    }
    const vec sum = f32_sum(magnitude, binade, power, least, policy);
    const vec code = s16_multiply_add_pairs(sum, u32_set(1u << (16 + d->fraction_bits - 7) | 1));
    return u32_sub(code, u32_set(origin));
}

/* The sum for f64. */
LANES vec f64_sum(vec magnitude, fpconv_format dst, fpconv_policy policy)
{
    const struct fp_format *d = &fp_formats[dst];
    const uint64_t least = wide_of_code(FPCONV_F64, dst, UINT64_C(1) << d->fraction_bits);
    const uint64_t power = (uint64_t)(1023 + 52 - d->fraction_bits) << 52;
    const uint32_t minus_origin = 0u - sum_origin(FPCONV_F64, dst);
    const vec binade = vec_and(f64_max(magnitude, u64_set(least)), u64_set(UINT64_C(0x7ff) << 52));
    const vec factor = u64_set(power | minus_origin);
    const vec sum = f64_multiply_add(binade, factor, magnitude);
    if (!fp_policy_loses_carries(policy))
        return sum;
    vec fraction = u64_set((UINT64_C(1) << 52) - 2);
    if (policy == FPCONV_HDF5_SUBNORMAL_CARRY_LOST)
        fraction = vec_and(fraction, f64_less(magnitude, u64_set(least)));
    const vec negative = vec_or(factor, u64_set(UINT64_C(1) << 63));
    const vec lost = vec_merge(fraction, f64_multiply_add(binade, negative, sum), magnitude);
    return f64_multiply_add(binade, factor, lost);
}

/* What four vectors of f32, or eight of f64, become: as round_f32 says, but products with
 * 2^8 only of f32, and 32-bit lanes with the signs on top.  f64 stand in the order of
 * vec_split_u64_in_lanes. */
struct rounded {
    vec code[4], sign[4];
};

/*
 * Do f64 come as f32s?  What is lost of them then makes a tie of what was above it, which does
 * not matter where ties go away from zero: with AVX2 to e4m3 3.1 instructions each instead of
 * 3.7.  But bf16's subnormal numbers are those of f32, which would be flushed.
 */
LANES bool takes_truncated_f64(fpconv_format dst, fpconv_policy policy)
{
    return fp_policy_is_hdf5(policy) && dst != FPCONV_BF16;
}

/* Without the bits that f32 does not hold, so that MXCSR does not round. */
LANES vec truncated_f32(const char *src)
{
    const vec lost = u64_set((1 << 29) - 1);
    return vec_f64_to_f32(vec_clear(vec_load(src), lost),
                          vec_clear(vec_load(src + VEC_BYTES), lost));
}

/* False if there is what this is not for. */
LANES bool round_f32s(struct rounded *r, const char *src, fpconv_format src_format,
                      fpconv_format dst, fpconv_policy policy, int count)
{
    vec m[4];
    for (int i = 0; i < 4; i++)
        r->sign[i] = u32_set(0);
    for (int i = 0; i < count; i++)
        if (src_format == FPCONV_F64)
            r->sign[i] = truncated_f32(src + 2 * i * VEC_BYTES);
        else if (src_format == FPCONV_F32)
            r->sign[i] = vec_load(src + i * VEC_BYTES);
        else if (i % 2 == 0 && src_format == FPCONV_BF16)
            vec_unpack_u16(u16_set(0), vec_load(src + i * VEC_BYTES / 2), r->sign + i);
        else if (i % 2 == 0)
            vec_f16_to_f32(vec_load(src + i * VEC_BYTES / 2), r->sign + i);
    for (int i = 0; i < 4; i++)
        m[i] = vec_clear(r->sign[i], u32_set(0x80000000));
    if (f32s_have_exception(m, dst, policy))
        return false;
    for (int i = 0; i < 4; i++) /* ties go away from zero when the last bit is set first */
        r->code[i] =
            round_f32(fp_policy_is_hdf5(policy) ? vec_or(m[i], u32_set(1)) : m[i], dst, policy);
    return true;
}

LANES bool round_f64s(struct rounded *r, const char *src, fpconv_format dst, fpconv_policy policy,
                      int count)
{
    const uint64_t least =
        fp_policy_is_hdf5(policy) ? wide_overflow(FPCONV_F64, dst, policy) : UINT64_C(0x7ff) << 52;
    vec largest = u32_set(0);
    for (int i = 0; i < 4; i++)
        r->code[i] = r->sign[i] = u32_set(0);
    for (int i = 0; i < count; i++, src += 2 * VEC_BYTES) {
        vec sum[2], unused, high, low;
        for (int k = 0; k < 2; k++) {
            const vec x = vec_load(src + k * VEC_BYTES);
            const vec magnitude = vec_clear(x, u64_set(UINT64_C(1) << 63));
            sum[k] = f64_sum(fp_policy_is_hdf5(policy) ? vec_or(magnitude, u64_set(1)) : magnitude,
                             dst, policy);
        }
        vec_split_u64_in_lanes(vec_load(src), vec_load(src + VEC_BYTES), &r->sign[i], &unused);
        vec_split_u64_in_lanes(sum[0], sum[1], &high, &low);
        r->code[i] = u32_add(u32_shift_right(high, 20 - fp_formats[dst].fraction_bits), low);
        largest = s16_max(largest, high);
    }
    /* A sum has the exponent of its magnitude and a constant. */
    const int shift = fp_policy_is_hdf5(policy) ? 52 - fp_formats[dst].fraction_bits : 0;
    const uint32_t exception = (uint32_t)(least >> 32) + ((uint32_t)shift << 20);
    return !mask_any(s32_greater(largest, u32_set(exception - 1)));
}

/* A block, or the first half, to a format of 8 bits and fewer, or of f64 to bf16; false, and
 * nothing is stored, if there is what this is not for. */
LANES bool narrow_by_addition(fpconv_format dst_format, char *dst, fpconv_format src_format,
                              const char *src, fpconv_policy policy, int halves)
{
    const struct fp_format *d = &fp_formats[dst_format];
    const int sign_bit = d->exponent_bits + d->fraction_bits;
    const uint16_t most =
        (uint16_t)(fp_policy_is_hdf5(policy) ? fp_max_finite(d, policy)
                                             : fp_pack_overflow(dst_format, policy));
    const bool from_f64 = src_format == FPCONV_F64 && !takes_truncated_f64(dst_format, policy);
    struct rounded r;
    const bool is_done = from_f64 ? round_f64s(&r, src, dst_format, policy, 2 * halves)
                                  : round_f32s(&r, src, src_format, dst_format, policy, 2 * halves);
    if (!is_done)
        return false;
    /* Saturation leaves the signs of f32s, as integers, as they are. */
    const vec sign[2] = {s32_pack_saturate(r.sign[0], r.sign[1]),
                         s32_pack_saturate(r.sign[2], r.sign[3])};
    vec code[2] = {s32_pack_saturate(r.code[0], r.code[1]),
                   s32_pack_saturate(r.code[2], r.code[3])};
    if (d->size == 2) { /* bf16, from f64 */
        for (int i = 0; i < 2; i++) {
            const vec magnitude = s16_min(code[i], u16_set(most));
            vec_store(dst + i * VEC_BYTES,
                      vec_order_packed_f64_words(vec_or_and(magnitude, sign[i], u16_set(0x8000))));
        }
        return true;
    }
    if (!from_f64)
        for (int i = 0; i < 2; i++)
            code[i] = u16_shift_right(code[i], 8);
    const vec signs = vec_and(s16_pack_saturate(sign[0], sign[1]), u8_set(0x80));
    vec codes = s16_pack_saturate(code[0], code[1]);
    if (most < INT8_MAX)
        codes = u8_min(codes, u8_set((uint8_t)most));
    const vec bytes = vec_or(codes, u16_shift_right(signs, 7 - sign_bit));
    vec_store(dst, from_f64                    ? vec_order_packed_f64_bytes(bytes)
                   : src_format == FPCONV_BF16 ? vec_spread(bytes)
                                               : vec_order_packed_bytes(bytes));
    return true;
}
