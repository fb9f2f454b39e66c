/*
 * narrow_f16.h - rounding f32 and f64 into f16 without a conversion instruction: the algorithm
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by narrow.h for an instruction set that rounds by addition (narrow_add.h) and has no
 * instruction for f16, and has vec_now.  65,536 f32 take 0.26 ns each with SSE2 where ties go away
 * from zero, and 0.34 without what is here.  f64 become f32s by integers: 6.4 instructions each
 * by FPCONV_OCP_SAT, and by additions of f64 9.6.
 */

/*
 * Where ties go away from zero, nothing below the rounding bit matters.  A normal number is
 * added to itself, which makes its exponent field larger by 1, and of a smaller m the least
 * normal number is made the sum with it: a fraction that ends where the subnormal numbers' does.
 * Either is the code, but for a constant, with bits below to be rounded: 6 operations a vector,
 * with those that clear bits, where round_f32 takes 9.  Sums are exact if the bits below the
 * rounding bit are clear, but where m is less than half of it.
 */
LANES uint32_t f32_below_rounding_bit(fpconv_format dst)
{
    const int shift = fp_formats[FPCONV_F32].fraction_bits - fp_formats[dst].fraction_bits;
    return (1u << (shift - 1)) - 1;
}

LANES vec round_f32_away(vec magnitude, fpconv_format dst)
{
    const struct fp_format *d = &fp_formats[dst];
    const int shift = fp_formats[FPCONV_F32].fraction_bits - d->fraction_bits;
    const uint32_t least = (uint32_t)wide_of_code(FPCONV_F32, dst, UINT64_C(1) << d->fraction_bits);
    const uint32_t half = 1u << (shift - 1);
    const vec sum = f32_add(magnitude, f32_max(magnitude, u32_set(least)));
    return u32_shift_right(u32_add(sum, u32_set(half - least)), shift);
}

/*
 * The high 32 bits of f64s, without signs, as f32s.  By 16-bit lanes, of which the high ones
 * decide: what is below f32's normal numbers becomes 0 or subnormal, which counts as 0, and what
 * is not below 2^16 something that is not, which f16 does not hold either.
 */
LANES vec f64_tops_to_f32(vec magnitude)
{
    const uint32_t first = (uint32_t)(1023 - 127) << 20, large = (uint32_t)(1023 + 16) << 20;
    const vec held = s16_min(magnitude, u32_set(large | 0x7fff)); /* low halves stay */
    return u32_shift_left(u16_sub_saturate(held, u32_set(first)), 3);
}

/* LANES_16 elements as magnitudes for one rounding; returns their signs, in 16-bit lanes. */
LANES vec load_magnitudes(vec m[2], const char *src, fpconv_format src_format, fpconv_policy policy)
{
    const bool from_f64 = src_format == FPCONV_F64;
    const uint32_t below = f32_below_rounding_bit(FPCONV_F16) >> (from_f64 ? 3 : 0);
    vec x[2], low[2];
    for (int i = 0; i < 2; i++, src += LANES_32 * fp_formats[src_format].size)
        if (from_f64)
            vec_split_u64(vec_load(src), vec_load(src + VEC_BYTES), &x[i], &low[i]);
        else
            x[i] = vec_now(vec_load(src));
    const vec sign = vec_now(vec_and(s32_pack_saturate(x[0], x[1]), u16_set(0x8000)));
    for (int i = 0; i < 2; i++) {
        m[i] = vec_now(vec_clear(x[i], u32_set(0x80000000 | (policy == FPCONV_HDF5 ? below : 0))));
        if (from_f64)
            m[i] = f64_tops_to_f32(m[i]);
        if (from_f64 && !fp_policy_is_hdf5(policy))
            m[i] = u32_or_nonzero_bit(m[i], low[i]);
        if (fp_policy_loses_carries(policy)) /* ties go away, see round_f32s */
            m[i] = vec_or(m[i], u32_set(1));
    }
    return sign;
}

/* Is any of so many vectors infinite or NaN?  Of two f64 either; the high 16 bits decide. */
LANES bool have_special(const char *src, fpconv_format src_format, int vectors)
{
    const bool from_f64 = src_format == FPCONV_F64;
    vec largest = u32_set(0);
    for (int i = 0; i < vectors; i++, src += VEC_BYTES) {
        const vec x = vec_load(src);
        const vec top = from_f64 ? u64_shift_right(x, 32) : x;
        largest = s16_max(largest, vec_clear(top, u32_set(0x80000000)));
    }
    return mask_any(s32_greater(largest, u32_set(from_f64 ? 0x7fefffff : 0x7f7fffff)));
}

/* Not known to be the same: what is read again for what is rare is otherwise kept in registers,
 * of which there are too few for that. */
LANES const char *reread(const char *src)
{
    __asm__("" : "+r"(src));
    return src;
}

enum { F16_VECTORS_MAX = 4 };

/* So many vectors of f16, at most F16_VECTORS_MAX, of which there is then none that overflows;
 * false, and nothing is stored, if there is what this is not for. */
LANES bool narrow_to_f16(char *dst, fpconv_format src_format, const char *src, fpconv_policy policy,
                         int count)
{
    const size_t step = LANES_16 * fp_formats[src_format].size;
    const uint16_t largest = (uint16_t)fp_max_finite(&fp_formats[FPCONV_F16], policy);
    const uint16_t most = (uint16_t)fp_pack_overflow(FPCONV_F16, policy);
    const vec sign_bit = u16_set(0x8000);
    vec result[F16_VECTORS_MAX], furthest = u16_set(0);
    for (int i = 0; i < count; i++) {
        vec m[2];
        const vec sign = load_magnitudes(m, src + (size_t)i * step, src_format, policy);
        for (int k = 0; k < 2; k++)
            m[k] = policy == FPCONV_HDF5 ? round_f32_away(m[k], FPCONV_F16)
                                         : round_f32(m[k], FPCONV_F16, policy);
        const vec code = s32_pack_saturate(m[0], m[1]);
        furthest = i ? s16_max(furthest, code) : code;
        result[i] = vec_now(vec_or(code, sign));
    }
    if (mask_any(s16_greater(furthest, u16_set(largest)))) {
        const int vectors = count * (int)step / VEC_BYTES;
        if (count == F16_VECTORS_MAX || fp_policy_is_hdf5(policy) ||
            have_special(reread(src), src_format, vectors))
            return false;
        for (int i = 0; i < count; i++)
            result[i] = vec_merge(sign_bit, result[i],
                                  s16_min(vec_clear(result[i], sign_bit), u16_set(most)));
    }
    for (int i = 0; i < count; i++)
        vec_store(dst + i * VEC_BYTES, result[i]);
    return true;
}
