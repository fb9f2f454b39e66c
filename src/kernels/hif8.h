/*
 * hif8.h - hif8 to and from the other formats: the algorithms
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by the file of an instruction set that has u8_lookup_48 and
 * u8_lookup_128.  A bf16's worth of bits is enough to round from, for ties go
 * away from zero: nothing below the rounding bit matters.
 */

/* Two vectors of 16-bit lanes with byte-sized contents, as one for look-ups. */
struct pair {
    vec first, second;
};

/* Entry 0 of each table is 0, so that high bytes remain 0. */
LANES struct pair lookup_pair(const uint8_t table[64], struct pair index)
{
#ifdef VEC_LOOKS_UP_AT_ONCE /* less than mixing the two and taking them apart again */
    return (struct pair){u8_lookup_48(table, index.first), u8_lookup_48(table, index.second)};
#else
    const vec both = mix_low_bytes(index.first, index.second);
    const vec found = u8_lookup_48(table, both);
    return (struct pair){vec_and(found, u16_set(0xff)), u16_shift_right(found, 8)};
#endif
}

/* Where a bf16 magnitude's exponent, at most 16, stands in the tables. */
LANES vec hif8_index(vec magnitude)
{
    const uint16_t origin = 127 + HIF8_TABLE_ORIGIN;
    return u16_sub_saturate(u16_shift_right(magnitude, 7), u16_set(origin));
}

/* The code without fraction, given the fraction of a rounded bf16. */
LANES vec hif8_add_fraction(vec prefix, vec rounded, vec scale)
{
    const vec fraction = vec_and(rounded, u16_set(0x7f));
    return vec_or(prefix, u16_shift_right(u16_multiply_low(fraction, scale), 7));
}

/* Codes, without sign, of finite magnitudes. */
LANES struct pair hif8_round(const struct hif8_tables *tables, struct pair magnitude)
{
    const vec beyond = u16_set(0x4780); /* 2^16 */
    const vec first = u16_min(magnitude.first, beyond), second = u16_min(magnitude.second, beyond);
    const struct pair index = {hif8_index(first), hif8_index(second)};
    const struct pair half = lookup_pair(tables->half, index);
    const struct pair rounded = {u16_add(first, half.first), u16_add(second, half.second)};
    const struct pair after = {hif8_index(rounded.first), hif8_index(rounded.second)};
    const struct pair prefix = lookup_pair(tables->prefix, after);
    const struct pair scale = lookup_pair(tables->scale, after);
    return (struct pair){hif8_add_fraction(prefix.first, rounded.first, scale.first),
                         hif8_add_fraction(prefix.second, rounded.second, scale.second)};
}

/* Inf and NaN; the NaN is the sign bit, and remains so when a sign is added. */
LANES vec hif8_place_specials(vec code, struct halves x)
{
    const vec magnitude = vec_clear(x.high, u16_set(0x8000));
    const vec with_inf =
        u16_select(s16_greater(magnitude, u16_set(0x7f7f)), u16_set(HIF8_INF), code);
    return u16_select(halves_are_nan(x), u16_set(HIF8_NAN), with_inf);
}

/* `halves` as for narrow_byte_block. */
LANES void narrow_hif8_block(const struct hif8_tables *tables, char *dst, fpconv_format src_format,
                             const char *src, int halves)
{
    const bool wide = fp_format_is_wide(src_format);
    const size_t step = LANES_16 * fp_formats[src_format].size;
    struct halves x[2] = {{u16_set(0), u16_set(0)}, {u16_set(0), u16_set(0)}};
    for (int i = 0; i < halves; i++, src += step) {
        if (wide)
            x[i] = load_halves(src, src_format);
        else
            x[i] = (struct halves){vec_load(src), u16_set(0)};
    }
    const vec sign_bit = u16_set(0x8000);
    const struct pair magnitude = {vec_clear(x[0].high, sign_bit), vec_clear(x[1].high, sign_bit)};
    struct pair code = hif8_round(tables, magnitude);
    if (nan_is_possible(FPCONV_HIF8, src_format) &&
        mask_any(s16_greater(u16_max(magnitude.first, magnitude.second), u16_set(0x7f7f)))) {
        code.first = hif8_place_specials(code.first, x[0]);
        code.second = hif8_place_specials(code.second, x[1]);
    }
    /* The two vectors as bytes; zero has no sign. */
    const vec codes = mix_low_bytes(code.first, code.second);
    const vec signs = mix_high_bytes(x[0].high, x[1].high);
    const vec sign = u8_clear_where_zero(vec_and(signs, u8_set(0x80)), codes);
    const vec signed_codes = vec_or(codes, sign);
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
