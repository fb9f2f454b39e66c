/*
 * widen.h - exact conversion to the wider formats: the algorithms
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by the file of each instruction set.  Formats and policies are
 * constants wherever a function is called, so that every branch on them folds.
 *
 * A value of at most 8 bits fits, exactly, in the top 16 bits of an f32 (a
 * bf16), of an f64 (4 fraction bits) and in an f16.  Codes are turned into those
 * 16 bits in byte lanes, 64 to an AVX-512 vector, as a high and a low byte; only
 * then are they spread over wider lanes, whose low bits are zero.  65,536 e4m3 to f32 take 0.10 ns
 * each, as long as a copy of the f32s, and 3.2 by the plain loop over the codec
 * (FPCONV_CPU=portable; 2.9 where the compiler may use all that AVX-512 has).
 */

/* -------------------------------------------------------------------------- */
/* 8 bits and fewer to 16                                                     */
/* -------------------------------------------------------------------------- */

/* The f64's top 16 bits as a format, so that all three targets look alike. */
struct top16 {
    int fraction_bits;
    int bias;
};

LANES struct top16 top16_of(fpconv_format dst)
{
    if (dst == FPCONV_F64)
        return (struct top16){4, 1023};
    return (struct top16){dst == FPCONV_F16 ? 10 : 7, dst == FPCONV_F16 ? 15 : 127};
}

/* Exponent of the value whose normalised code, below, is zero: low enough for
 * the smallest subnormal, and such that the high byte alone holds the rest of
 * the target's bias (1023, 127 and 15 less it are multiples of 16, 2 and 1). */
LANES int normalised_origin(fpconv_format src)
{
    return src == FPCONV_E5M2 ? 31 : 15;
}

/*
 * Magnitudes to normalised codes, which have no subnormals: exponent plus
 * normalised_origin in front of the same number of fraction bits.
 *
 * For a normal code m that is m + K.  Each power of two further down in the
 * subnormal range doubles the step between neighbours, so that the graph is
 * made of straight lines, concave, and is the minimum of those lines:
 *
 *   min over j = 0..F of 2^j m + K_j,   K_0 = (origin - bias) 2^F,
 *
 * where lines j - 1 and j meet at m = 2^(F+1-j), hence K_j = K_(j-1) - 2^F.
 * Zero is not on it.
 */
LANES vec normalise(vec magnitude, fpconv_format src)
{
    const struct fp_format *s = &fp_formats[src];
    const int step = 1 << s->fraction_bits;
    int constant = (normalised_origin(src) - s->bias) * step;
    vec line = magnitude;
    vec result = u8_add(line, u8_set((uint8_t)constant));
    for (int j = 1; j <= s->fraction_bits; j++) {
        line = u8_add_saturate(line, line);
        constant -= step;
        result = u8_min(result, u8_add_saturate(line, u8_set((uint8_t)constant)));
    }
    return result;
}

struct bytes {
    vec high, low; /* of the target's top 16 bits, in byte lanes */
};

/* Byte lanes shifted left by 0 to 15 into 16 bits. */
LANES struct bytes shift_into_16(vec value, int shift)
{
    if (shift >= 8) {
        const vec mask = u8_set((uint8_t)(0xff << (shift - 8)));
        return (struct bytes){vec_and(u16_shift_left(value, shift - 8), mask), u8_set(0)};
    }
    const vec high_mask = u8_set((uint8_t)(0xff >> (8 - shift)));
    const vec low_mask = u8_set((uint8_t)(0xff << shift));
    return (struct bytes){vec_and(u16_shift_right(value, 8 - shift), high_mask),
                          vec_and(u16_shift_left(value, shift), low_mask)};
}

/* Normalised codes as the target's top 16 bits; zero where the magnitude is. */
LANES struct bytes place_in_top16(vec normalised, vec magnitude, fpconv_format src,
                                  fpconv_format dst)
{
    const struct top16 top = top16_of(dst);
    const int offset = (top.bias - normalised_origin(src)) << top.fraction_bits >> 8;
    const vec nonzero = u8_clear_where_zero(normalised, magnitude);
    const vec base = u8_clear_where_zero(u8_set((uint8_t)offset), magnitude);
    struct bytes value = shift_into_16(nonzero, top.fraction_bits - fp_formats[src].fraction_bits);
    value.high = u8_add(value.high, base);
    return value;
}

/* Inf and NaN where the magnitude says so; `fill` is all ones where HDF5's NaN,
 * with every fraction bit set, also fills the bits below the top 16. */
LANES struct bytes place_specials(struct bytes finite, vec magnitude, fpconv_format src,
                                  fpconv_format dst, fpconv_policy policy, vec *fill)
{
    const struct fp_format *s = &fp_formats[src];
    const struct top16 top = top16_of(dst);
    const unsigned inf = 0x7fffu & ~((1u << top.fraction_bits) - 1);
    const uint8_t all_ones = (uint8_t)((1 << (s->exponent_bits + s->fraction_bits)) - 1);
    const uint8_t reserved = (uint8_t)(all_ones - ((1 << s->fraction_bits) - 1));
    const bool has_inf = fp_exponent_is_reserved(s, policy);

    const mask8 is_nan = s8_greater(magnitude, u8_set(has_inf ? reserved : all_ones - 1));
    struct bytes nan = {u8_set(0x7f), u8_set(0xff)};
    if (policy == FPCONV_HDF5) {
        *fill = u8_select(is_nan, u8_set(0xff), u8_set(0));
    } else { /* the payload is left-aligned; its first bit is the quiet bit */
        const unsigned quiet = inf | 1u << (top.fraction_bits - 1);
        const vec fraction = vec_and(magnitude, u8_set((uint8_t)((1 << s->fraction_bits) - 1)));
        const struct bytes payload = shift_into_16(fraction, top.fraction_bits - s->fraction_bits);
        nan.high = vec_or(u8_set((uint8_t)(quiet >> 8)), payload.high);
        nan.low = vec_or(u8_set((uint8_t)quiet), payload.low);
    }
    if (has_inf) {
        const mask8 is_inf = u8_equal(magnitude, u8_set(reserved));
        const bool saturates = policy == FPCONV_OCP_SAT && !fp_format_is_wide(dst);
        const unsigned placed = saturates ? inf - 1 : inf;
        finite.high = u8_select(is_inf, u8_set((uint8_t)(placed >> 8)), finite.high);
        finite.low = u8_select(is_inf, u8_set((uint8_t)placed), finite.low);
    }
    return (struct bytes){u8_select(is_nan, nan.high, finite.high),
                          u8_select(is_nan, nan.low, finite.low)};
}

/* Which codes, if any, are not finite: the first of them, without sign. */
LANES int first_special(fpconv_format src, fpconv_policy policy)
{
    const struct fp_format *s = &fp_formats[src];
    return (int)fp_max_finite(s, policy) + 1;
}

LANES bool has_specials(fpconv_format src, fpconv_policy policy)
{
    const struct fp_format *s = &fp_formats[src];
    return first_special(src, policy) >> (s->exponent_bits + s->fraction_bits) == 0;
}

/* -------------------------------------------------------------------------- */
/* Spreading 16 bits over wider lanes                                         */
/* -------------------------------------------------------------------------- */

/* Elements of twice the size, with the bits of `high` above those of `low`. */
LANES void interleave_u16(vec low, vec high, vec out[2])
{
    vec_unpack_u16(vec_spread(low), vec_spread(high), out);
}

LANES void interleave_u32(vec low, vec high, vec out[2])
{
    vec_unpack_u32(vec_spread(low), vec_spread(high), out);
}

#ifdef VEC_ORDERS_TO_UNPACK
#define unpack_u16 vec_unpack_u16
#define unpack_u32 vec_unpack_u32
#else
#define vec_order_to_unpack(v, size) vec_spread(v)
#define unpack_u16 interleave_u16
#define unpack_u32 interleave_u32
#endif

/* 16-bit lanes into the top of each element of dst; the bits below are those of
 * `fill`, all or nothing, for each lane. */
LANES void store_top16(char *dst, fpconv_format dst_format, vec top, vec fill, bool filled)
{
    const vec zero = u16_set(0);
    vec wide[2];
    if (dst_format == FPCONV_F16 || dst_format == FPCONV_BF16) {
        vec_store(dst, top);
        return;
    }
    unpack_u16(filled ? fill : zero, top, wide);
    if (dst_format == FPCONV_F32) {
        vec_store(dst, wide[0]);
        vec_store(dst + VEC_BYTES, wide[1]);
        return;
    }
    vec fills[2] = {zero, zero};
    if (filled)
        unpack_u16(fill, fill, fills);
    for (int i = 0; i < 2; i++, dst += 2 * VEC_BYTES) {
        vec doubles[2];
        unpack_u32(fills[i], wide[i], doubles);
        vec_store(dst, doubles[0]);
        vec_store(dst + VEC_BYTES, doubles[1]);
    }
}

/* Byte lanes in the order of vec_order_to_unpack to elements of dst. */
LANES void store_bytes_as_top16(char *dst, fpconv_format dst_format, struct bytes value, vec fill,
                                bool filled)
{
    vec top[2], fills[2];
    vec_unpack_u8(value.low, value.high, top);
    vec_unpack_u8(fill, fill, fills);
    const size_t half = LANES_16 * fp_formats[dst_format].size;
    store_top16(dst, dst_format, top[0], fills[0], filled);
    store_top16(dst + half, dst_format, top[1], fills[1], filled);
}

LANES void widen_byte_block(fpconv_format dst_format, char *dst, fpconv_format src_format,
                            const char *src, fpconv_policy policy)
{
    const struct fp_format *s = &fp_formats[src_format];
    const int sign_bit = s->exponent_bits + s->fraction_bits;
    const vec code = vec_order_to_unpack(vec_load(src), fp_formats[dst_format].size);
    const vec magnitude = vec_and(code, u8_set((uint8_t)((1 << sign_bit) - 1)));
    const vec sign = vec_and(u16_shift_left(code, 7 - sign_bit), u8_set(0x80));
    struct bytes value;
    vec fill = u8_set(0);
    bool filled = false;

    if (src_format == FPCONV_E5M2 && dst_format == FPCONV_F16) {
        value = (struct bytes){magnitude, u8_set(0)}; /* its leading byte */
    } else {
        value = place_in_top16(normalise(magnitude, src_format), magnitude, src_format, dst_format);
    }
    if (has_specials(src_format, policy)) {
        const mask8 special =
            s8_greater(magnitude, u8_set((uint8_t)(first_special(src_format, policy) - 1)));
        if (mask_any(special)) { /* rare: a few operations more for this block */
            value = place_specials(value, magnitude, src_format, dst_format, policy, &fill);
            filled = policy == FPCONV_HDF5;
        }
    }
    value.high = vec_or(value.high, sign);
    store_bytes_as_top16(dst, dst_format, value, fill, filled);
}

/* -------------------------------------------------------------------------- */
/* f16 and bf16 to f32 and f64                                                */
/* -------------------------------------------------------------------------- */

#ifndef VEC_HAS_F64_SCALE_WHERE
/* f32, of which subnormal ones and zeros become their fraction, an integer: 2^149 times what
 * they were.  Which they are. */
LANES mask32 f32_subnormals_to_integers(vec *value)
{
    const vec sign_bit = u32_set(0x80000000);
    const mask32 where = s32_greater(u32_set(0x00800000), vec_clear(*value, sign_bit));
    const vec integer = f32_from_s32(vec_and(*value, u32_set(0x007fffff)));
    *value = vec_or_and(u32_select(where, integer, *value), *value, sign_bit);
    return where;
}

/* LANES_32 f64 times a power of two, exactly, where the f32 that they come from are marked. */
LANES void f64_scale_where(vec f64[2], mask32 where, vec factor)
{
    const vec one = u64_set(UINT64_C(1023) << 52);
    vec marks[2];
    interleave_u32(where, where, marks);
    for (int i = 0; i < 2; i++)
        f64[i] = f64_multiply(f64[i], vec_merge(marks[i], factor, one));
}
#endif

/*
 * f32 to f64, exactly, and without any exception, for operands that are neither
 * subnormal nor signalling NaNs.  `filled` NaNs have every fraction bit set.
 */
LANES void store_f64_from_f32(char *dst, vec f32, bool filled)
{
    vec doubles[2];
    vec_f32_to_f64(f32, doubles);
    for (int i = 0; i < 2; i++)
        vec_store(dst + i * VEC_BYTES, filled ? f64_fill_nan(doubles[i]) : doubles[i]);
}

/* Subnormal, zero not included? */
LANES mask32 f32_is_subnormal(vec value)
{
    const vec magnitude = vec_clear(value, u32_set(0x80000000));
    const vec wrapped = u32_add(magnitude, u32_set(INT32_MAX)); /* zero becomes the largest */
    return s32_greater(u32_set(0x00800000 + (uint32_t)INT32_MAX), wrapped);
}

/*
 * The same where some are subnormal: of these a CPU takes about 150 cycles a vector,
 * unless denormals-are-zero makes them zero.  Their fraction is an integer, whose f32 is
 * normal or zero, and 2^149 too large, which is taken off the f64.
 */
LANES void store_f64_from_small_f32(char *dst, vec f32, bool filled)
{
    const mask32 is_subnormal = f32_subnormals_to_integers(&f32);
    vec doubles[2];
    vec_f32_to_f64(f32, doubles);
    f64_scale_where(doubles, is_subnormal, u64_set((uint64_t)(1023 - 149) << 52));
    for (int i = 0; i < 2; i++)
        vec_store(dst + i * VEC_BYTES, filled ? f64_fill_nan(doubles[i]) : doubles[i]);
}

/* bf16 NaNs made quiet (OCP), or with all fraction bits set (HDF5) */
LANES vec bf16_settle_nan(vec value, mask16 is_nan, fpconv_policy policy)
{
    const vec bits = u16_set(policy == FPCONV_HDF5 ? 0x7fff : 0x0040);
    return vec_or(value, u16_select(is_nan, bits, u16_set(0)));
}

LANES mask16 half_is_nan(vec value, fpconv_format format)
{
    const vec magnitude = vec_clear(value, u16_set(0x8000));
    return s16_greater(magnitude, u16_set(format == FPCONV_F16 ? 0x7c00 : 0x7f80));
}

/* Subnormal bf16, that would be subnormal f32: zero does not count. */
LANES bool bf16_has_subnormal(vec value)
{
    const vec magnitude = vec_clear(value, u16_set(0x8000));
    const vec wrapped = u16_add(magnitude, u16_set(0x7fff)); /* zero becomes the largest */
    return mask_any(s16_greater(u16_set((uint16_t)(0x7fff + 0x0080)), wrapped));
}

/* bf16, as f32s, to f64. */
LANES void store_f64_from_bf16(char *dst, const vec f32[2], bool has_subnormal, bool filled,
                               int halves)
{
    for (int i = 0; i < halves; i++, dst += 2 * VEC_BYTES)
        if (has_subnormal)
            store_f64_from_small_f32(dst, f32[i], filled);
        else
            store_f64_from_f32(dst, f32[i], filled);
}

#ifdef VEC_JOINS_F64_TOPS
/*
 * The top 32 bits of the f64s of finite bf16s, by integers, subnormal ones included.  With
 * AVX-512 that takes 65,536 to f64 in 0.20 ns each, where conversions by way of f32 take 0.25
 * if there are subnormals; with AVX2 and SSE2 no longer than those do without.
 */
#ifdef VEC_COUNTS_LEADING_ZEROS
/* Subnormal ones are shifted until they have a leading one, by each place of which the exponent
 * becomes one less. */
LANES struct halves finite_bf16_to_f64_tops(vec value)
{
    const vec sign_bit = u16_set(0x8000);
    const vec magnitude = vec_clear(value, sign_bit);
    const mask16 is_subnormal = u16_lacks_bits(magnitude, u16_set(0x7f80)); /* or zero */
    const vec places = u16_select(is_subnormal, u8_leading_zeros(magnitude), u16_set(0));
    const vec normal = u16_shift_left_by(magnitude, places);
    const vec rebiased = u16_add(u16_shift_right(normal, 3), u16_set((1023 - 127) << 4));
    const vec high = u16_clear_where_zero(u16_sub(rebiased, u16_shift_left(places, 4)), magnitude);
    return (struct halves){vec_or_and(high, value, sign_bit), u16_shift_left(normal, 13)};
}
#else
/* Subnormal ones are converted as the integers that they are, 2^133 times as large; to others is
 * added what makes their exponents count alike.  Both agree on the smallest normal number, so that
 * each is the one of up to that and the other of what is beyond. */
LANES struct halves finite_bf16_to_f64_tops(vec value)
{
    const vec zero = u16_set(0), sign_bit = u16_set(0x8000), normal_min = u16_set(0x0080);
    const vec magnitude = vec_clear(value, sign_bit);
    vec integers[2];
    vec_unpack_u16(s16_min(magnitude, normal_min), zero, integers);
    for (int i = 0; i < 2; i++)
        integers[i] = u32_shift_right(f32_from_s32(integers[i]), 16);
    const vec converted = s32_pack_saturate(integers[0], integers[1]);
    const vec normal = u16_add(converted, u16_sub_saturate(magnitude, normal_min));
    const vec rebiased = u16_add(u16_shift_right(normal, 3), u16_set((1023 - 127 - 133) << 4));
    const vec high = u16_clear_where_zero(rebiased, magnitude);
    return (struct halves){vec_or_and(high, value, sign_bit), u16_shift_left(normal, 13)};
}
#endif
#endif

/* `halves` as for narrow_byte_block, and 2 where dst is f32. */
LANES void widen_bf16_block(fpconv_format dst_format, char *dst, vec value, fpconv_policy policy,
                            int halves)
{
    const vec zero = u16_set(0);
    vec f32[2];
#ifdef VEC_JOINS_F64_TOPS
    if (dst_format == FPCONV_F64 &&
        !mask_any(s16_greater(vec_clear(value, u16_set(0x8000)), u16_set(0x7f7f)))) {
        vec f64[4];
        vec_join_f64_tops(finite_bf16_to_f64_tops(vec_order_to_join(value)), f64);
        for (int i = 0; i < 2 * halves; i++)
            vec_store(dst + i * VEC_BYTES, f64[i]);
        return;
    }
#endif
    const mask16 is_nan = half_is_nan(value, FPCONV_BF16);
    const vec settled = bf16_settle_nan(value, is_nan, policy);
    if (dst_format == FPCONV_F64) {
        /* NaNs to be filled and subnormals are rare */
        interleave_u16(zero, settled, f32);
        if (policy == FPCONV_HDF5 && mask_any(is_nan))
            store_f64_from_bf16(dst, f32, true, true, halves);
        else if (bf16_has_subnormal(value))
            store_f64_from_bf16(dst, f32, true, false, halves);
        else
            store_f64_from_bf16(dst, f32, false, false, halves);
        return;
    }
    const bool filled = policy == FPCONV_HDF5;
    interleave_u16(filled ? u16_select(is_nan, u16_set(0xffff), zero) : zero, settled, f32);
    vec_store(dst, f32[0]);
    vec_store(dst + VEC_BYTES, f32[1]);
}

/* f16, as f32s, to dst. */
LANES void store_f32s_of_f16(fpconv_format dst_format, char *dst, const vec f32[2], bool filled,
                             int halves)
{
    for (int i = 0; i < halves; i++) {
        if (dst_format == FPCONV_F64)
            store_f64_from_f32(dst + i * 2 * VEC_BYTES, f32[i], filled);
        else
            vec_store(dst + i * VEC_BYTES, filled ? f32_fill_nan(f32[i]) : f32[i]);
    }
}

/* Inf and NaN by a branch, as they are rare: 65,536 f16 to f64 take 0.23 ns each with AVX2
 * instead of 0.31 (HDF5). */
LANES void widen_f16_block(fpconv_format dst_format, char *dst, vec value, fpconv_policy policy,
                           int halves)
{
    const vec magnitude = vec_clear(value, u16_set(0x8000));
    vec wide[2];
    if (!mask_any(s16_greater(magnitude, u16_set(0x7bff)))) {
        vec_finite_f16_to_f32(value, wide);
        store_f32s_of_f16(dst_format, dst, wide, false, halves);
        return;
    }
    const mask16 is_nan = half_is_nan(value, FPCONV_F16);
    vec_f16_to_f32(vec_or(value, u16_select(is_nan, u16_set(0x0200), u16_set(0))), wide);
    store_f32s_of_f16(dst_format, dst, wide, policy == FPCONV_HDF5, halves);
}

/* -------------------------------------------------------------------------- */
/* f32 and f64                                                                */
/* -------------------------------------------------------------------------- */

LANES void widen_f32_block(char *dst, vec value, fpconv_policy policy)
{
    const bool filled = policy == FPCONV_HDF5;
    const vec magnitude = vec_clear(value, u32_set(0x80000000));
    const mask32 is_nan = s32_greater(magnitude, u32_set(0x7f800000));
    const vec quiet = vec_or(value, u32_select(is_nan, u32_set(0x00400000), u32_set(0)));
    if (mask_any(f32_is_subnormal(value)))
        store_f64_from_small_f32(dst, quiet, filled);
    else
        store_f64_from_f32(dst, quiet, filled);
}

#ifdef VEC_HAS_F64_TO_F32
/* Is any of LANES_32 f64 below 2^-126?  Zeros count: one comparison less than
 * knowing better. */
LANES bool f64_block_has_small(const char *src)
{
    vec high, low;
    vec_split_u64(vec_load(src), vec_load(src + VEC_BYTES), &high, &low);
    const vec magnitude = vec_clear(high, u32_set(0x80000000));
    return mask_any(s32_greater(u32_set((1023 - 126) << 20), magnitude));
}

/*
 * The small ones are rounded by adding them to a number from 2^-97 on, where an f64
 * has its last place where f32's subnormals have theirs: the low half of the sum has
 * gained the code, up to that of the smallest normal number.  As much the code of
 * the others gains, and is taken off again beforehand; small ones, which the
 * conversion would flush or be slow about, enter it as the smallest normal number.
 */
LANES void narrow_f64_small_block(char *dst, const char *src, fpconv_policy policy)
{
    const vec sign_bit = u64_set(UINT64_C(1) << 63);
    const vec normal_min = u64_set((uint64_t)(1023 - 126) << 52);
    const vec magic = u64_set(((uint64_t)(1023 - 97) << 52 | UINT64_C(1) << 51) - 0x00800000);
    vec value[2], normal[2], sum[2], high, codes, unused;
    for (int i = 0; i < 2; i++) {
        value[i] = vec_load(src + i * VEC_BYTES);
        const vec magnitude = vec_clear(value[i], sign_bit);
        normal[i] = f64_max(normal_min, magnitude);
        sum[i] = f64_add_nearest(f64_min(magnitude, normal_min), magic);
    }
    vec_split_u64(value[0], value[1], &high, &unused);
    vec_split_u64(sum[0], sum[1], &unused, &codes);
    const vec f32 = vec_f64_to_f32(normal[0], normal[1]);
    const vec filled = policy == FPCONV_HDF5 ? f32_fill_nan(f32) : f32;
    vec_store(dst, vec_merge(u32_set(0x80000000), high, u32_add(filled, codes)));
}

LANES void narrow_f64_block(char *dst, const char *src, fpconv_policy policy)
{
    if (f64_block_has_small(src)) {
        narrow_f64_small_block(dst, src, policy);
        return;
    }
    const vec f32 = vec_f64_to_f32(vec_load(src), vec_load(src + VEC_BYTES));
    vec_store(dst, policy == FPCONV_HDF5 ? f32_fill_nan(f32) : f32);
}
#endif
