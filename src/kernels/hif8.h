/*
 * hif8.h - hif8 to and from the other formats: the algorithms
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by the file of an instruction set that has u8_lookup_128 and either
 * u8_lookup_64 and u8_lookup_256 or VEC_LOOKS_UP_16.  A bf16's worth of bits is enough to
 * round from, for ties go away from zero: nothing below the rounding bit matters.  Exponents
 * and fractions of two vectors are taken into byte lanes, twice as many.
 */

typedef struct hif8_tables hif8_level_tables;
#define hif8_level_tables_get hif8_tables_get

/* Two vectors of bf16s as bytes: sign (the top bit), exponent field, fraction field. */
struct hif8_fields {
    vec signs, exponent, fraction;
};

LANES struct hif8_fields hif8_split(vec first, vec second)
{
    const vec high = mix_high_bytes(first, second);
    const vec low = mix_low_bytes(vec_and(first, u16_set(0xff)), second);
    return (struct hif8_fields){high, u8_add_top_bit(u8_add(high, high), low),
                                vec_and(low, u8_set(0x7f))};
}

/* By exponent: half of the last place kept, and what the fraction is multiplied by. */
struct hif8_places {
    vec half, scale;
};

#ifdef VEC_LOOKS_UP_16
/* What exponents' sizes decide changes at multiples of 4 only, but for 2^15, the largest
 * value, and 2^-23, from which on everything goes up to 2^-22. */
LANES struct hif8_places hif8_places_of(const struct hif8_tables *tables, vec exponent)
{
    const vec power = u8_sub(exponent, u8_set(127));
    const vec size = u8_min(s8_magnitude(power), u8_set(16 * HIF8_EXPONENTS_ALIKE - 1));
    const vec index = vec_and(u16_shift_right(size, 2), u8_set(0x0f));
    const mask8 is_tie = u8_equal(exponent, u8_set(127 - HIF8_DENORMAL_BIAS));
    const mask8 is_largest = s8_greater(power, u8_set(HIF8_EXPONENT_MAX - 1));
    const vec half = u8_lookup_16(tables->half_by_size, index);
    const vec scale = u8_lookup_16(tables->scale_by_size, index);
    return (struct hif8_places){u8_add(half, vec_and(is_tie, u8_set(0x40))),
                                vec_clear(scale, is_largest)};
}

/* The code without fraction, by the exponent after rounding: a sum of two tables' entries,
 * either 0 where the index is negative, and of denormals' code. */
LANES vec hif8_prefix_of(const struct hif8_tables *tables, vec exponent)
{
    const vec e = u8_min(exponent, u8_set(127 + HIF8_EXPONENT_MAX));
    const vec denormal = u8_sub_saturate(e, u8_set(127 - HIF8_DENORMAL_BIAS));
    const vec from_0 = u8_lookup_16(tables->prefix_from_0, u8_sub(e, u8_set(127)));
    const vec from_minus_16 =
        u8_lookup_16(tables->prefix_from_minus_16, u8_sub(e, u8_set(127 - 16)));
    return u8_add(u8_add(denormal, from_0), from_minus_16);
}
#else
/* Where an exponent stands in the tables, those from 2^16 on as that. */
LANES vec hif8_index(vec exponent)
{
    const vec finite = u8_min(exponent, u8_set(127 + HIF8_EXPONENT_MAX + 1));
    return u8_sub_saturate(finite, u8_set(127 + HIF8_TABLE_ORIGIN));
}

LANES struct hif8_places hif8_places_of(const struct hif8_tables *tables, vec exponent)
{
    const vec index = hif8_index(exponent);
    return (struct hif8_places){u8_lookup_64(tables->half, index),
                                u8_lookup_64(tables->scale, index)};
}

LANES vec hif8_prefix_of(const struct hif8_tables *tables, vec exponent)
{
    return u8_lookup_64(tables->prefix, hif8_index(exponent));
}
#endif

/* Codes, without sign, of finite magnitudes. */
LANES vec hif8_round(const struct hif8_tables *tables, struct hif8_fields x)
{
    const struct hif8_places places = hif8_places_of(tables, x.exponent);
    const vec sum = u8_add(x.fraction, places.half); /* its top bit is the carry */
    const vec prefix = hif8_prefix_of(tables, u8_add_top_bit(x.exponent, sum));
    /* After a carry, the bits to be kept are zero, wherever they are. */
    return u8_add(prefix, u8_multiply_high(vec_and(sum, u8_set(0x7f)), places.scale));
}

/* Inf and NaN, given the lower half of f32s; the NaN is the sign bit, and remains so
 * when a sign is added. */
LANES vec hif8_place_specials(vec code, struct hif8_fields x, vec first_low, vec second_low)
{
    const vec one = u16_set(1);
    const vec sticky = mix_low_bytes(u16_min(first_low, one), u16_min(second_low, one));
    const mask8 has_fraction = s8_greater(vec_or(x.fraction, sticky), u8_set(0));
    const vec special = u8_select(has_fraction, u8_set(HIF8_NAN), u8_set(HIF8_INF));
    return u8_select(u8_equal(x.exponent, u8_set(0xff)), special, code);
}

/* Codes with the sign that is the top bit of another byte; zero has none. */
LANES vec hif8_add_signs(vec codes, vec signs)
{
    return vec_or(codes, u8_clear_where_zero(vec_and(signs, u8_set(0x80)), codes));
}

#ifndef VEC_LOOKS_UP_16
#define HIF8_FROM_F16

/*
 * The codes of two vectors.  f16's exponent and 3 bits of its fraction fill a byte, which
 * they are looked up by.  It is as much as there is to round from, but for the exponents from
 * -3 to 3, which keep those bits and are rounded before; and for magnitudes below 2^-16, of
 * which the lower byte is looked up.  65,536 take 0.115 ns each instead of 0.19 by way of f32
 * (AVX-512), which with 16 entries a look-up is no slower.
 */
LANES vec hif8_codes_of_f16(const struct hif8_tables *tables, vec first, vec second)
{
    enum { ROUNDED_MIN = (15 - 3) << 3, ROUNDED_END = (15 + 4) << 3, INF = 31 << 3 };
    const vec high = mix_high_bytes(first, second);
    const vec low = vec_merge(u16_set(0xff00), u16_shift_left(second, 8), first);
    const vec leading = u8_add_top_bit(u8_add(high, high), low);
    const vec from_min = u8_add(leading, u8_set(128 - ROUNDED_MIN)); /* as signed, from -128 */
    const mask8 is_rounded = s8_greater(u8_set(128 + ROUNDED_END - ROUNDED_MIN), from_min);
    const vec index = u8_increment(leading, is_rounded & u8_has_bits(low, u8_set(0x40)));
    const vec small_index = vec_and(u16_shift_right(low, 1), u8_set(0x7f));
    const mask8 is_small = u8_equal(vec_and(high, u8_set(0x7f)), u8_set(0));
    vec codes = u8_select(is_small, u8_lookup_128(tables->from_small_f16, small_index),
                          u8_lookup_256(tables->from_f16, index));
    const mask8 may_be_inf = u8_equal(leading, u8_set(INF));
    if (mask_any(may_be_inf))
        codes = u8_select(may_be_inf & u8_has_bits(low, u8_set(0x7f)), u8_set(HIF8_NAN), codes);
    return hif8_add_signs(codes, high);
}
#endif

/* `halves` as for narrow_byte_block. */
LANES void narrow_hif8_block(const struct hif8_tables *tables, char *dst, fpconv_format src_format,
                             const char *src, int halves)
{
    const bool wide = fp_format_is_wide(src_format);
    const size_t step = LANES_16 * fp_formats[src_format].size;
#ifdef HIF8_FROM_F16
    if (src_format == FPCONV_F16) {
        const vec second = halves == 2 ? vec_load(src + VEC_BYTES) : u16_set(0);
        vec_store(dst, vec_order_bytes(hif8_codes_of_f16(tables, vec_load(src), second)));
        return;
    }
#endif
    struct halves x[2] = {{u16_set(0), u16_set(0)}, {u16_set(0), u16_set(0)}};
    for (int i = 0; i < halves; i++, src += step) {
        if (wide)
            x[i] = load_truncated_halves(src, src_format);
        else
            x[i].high = vec_load(src);
    }
    const struct hif8_fields fields = hif8_split(x[0].high, x[1].high);
    vec codes = hif8_round(tables, fields);
    if (nan_is_possible(src_format) && mask_any(u8_equal(fields.exponent, u8_set(0xff))))
        codes = hif8_place_specials(codes, fields, x[0].low, x[1].low);
    const vec signed_codes = hif8_add_signs(codes, fields.signs);
    vec_store(dst, wide ? vec_order_split_bytes(signed_codes) : vec_order_bytes(signed_codes));
}

/* The top 16 bits, without signs, in byte lanes; to either, in lanes of 16 bits, place *
 * factor is still to be added, if has_product. */
struct hif8_values {
    struct bytes value;
    vec place, factor;
    bool has_product;
};

#ifdef VEC_LOOKS_UP_16
/* By upper bits of the code: 4 look-ups of 16 entries instead of 16, two of 128 codes. */
LANES struct hif8_values hif8_look_up_groups(const struct hif8_group_tables *t, vec body)
{
    const vec group = vec_and(u16_shift_right(body, 3), u8_set(HIF8_GROUPS - 1));
    const vec place = vec_xor(vec_and(body, u8_set(HIF8_GROUP - 1)), u8_lookup_16(t->flip, group));
    const struct bytes base = {u8_clear_where_zero(u8_lookup_16(t->base_high, group), body),
                               u8_clear_where_zero(u8_lookup_16(t->base_low, group), body)};
    return (struct hif8_values){base, place, u8_lookup_16(t->factor, group), true};
}
#endif

/* Of codes without sign. */
LANES struct hif8_values hif8_look_up(const struct hif8_tables *tables, fpconv_format dst_format,
                                      fpconv_policy policy, vec body)
{
    const uint8_t *high = tables->high[dst_format][policy], *low = tables->low[dst_format][policy];
#ifdef VEC_LOOKS_UP_16
    if (dst_format != FPCONV_F16) {
        const fpconv_format alike = dst_format == FPCONV_F64 ? FPCONV_F64 : FPCONV_F32;
        struct hif8_values found = hif8_look_up_groups(&tables->groups[alike], body);
        const mask8 is_inf = u8_equal(body, u8_set(HIF8_INF));
        if (mask_any(is_inf)) {
            found.value.high = u8_select(is_inf, u8_set(high[HIF8_INF]), found.value.high);
            found.value.low = u8_select(is_inf, u8_set(low[HIF8_INF]), found.value.low);
            found.place = u8_select(is_inf, u8_set(0), found.place);
        }
        return found;
    }
#endif
    const struct bytes value = {u8_lookup_128(high, body), u8_lookup_128(low, body)};
    return (struct hif8_values){value, u8_set(0), u8_set(0), false};
}

LANES void widen_hif8_block(const struct hif8_tables *tables, fpconv_format dst_format, char *dst,
                            const char *src, fpconv_policy policy)
{
    const vec code = vec_spread(vec_load(src)); /* in the order that vec_unpack wants */
    const mask8 is_nan = u8_equal(code, u8_set(HIF8_NAN));
    const struct hif8_values found =
        hif8_look_up(tables, dst_format, policy, vec_and(code, u8_set(0x7f)));
    struct bytes value = found.value;
    value.high = vec_or_and(value.high, code, u8_set(0x80));
    vec fill = u8_set(0);
    bool filled = false;
    if (mask_any(is_nan)) { /* rare; without sign */
        const struct top16 top = top16_of(dst_format);
        const unsigned quiet = 0x7fffu & ~((1u << (top.fraction_bits - 1)) - 1);
        filled = policy == FPCONV_HDF5;
        const unsigned nan = filled ? 0x7fff : quiet;
        value.high = u8_select(is_nan, u8_set((uint8_t)(nan >> 8)), value.high);
        value.low = u8_select(is_nan, u8_set((uint8_t)nan), value.low);
        fill = filled ? u8_select(is_nan, u8_set(0xff), fill) : fill;
    }
    vec top[2], fills[2];
    vec_unpack_u8(value.low, value.high, top);
    vec_unpack_u8(fill, fill, fills);
    if (found.has_product) {
        vec place[2], factor[2];
        vec_unpack_u8(found.place, u8_set(0), place);
        vec_unpack_u8(found.factor, u8_set(0), factor);
        for (int i = 0; i < 2; i++)
            top[i] = u16_add(top[i], u16_multiply_low(place[i], factor[i]));
    }
    const size_t half = LANES_16 * fp_formats[dst_format].size;
    store_top16(dst, dst_format, top[0], fills[0], filled);
    store_top16(dst + half, dst_format, top[1], fills[1], filled);
}
