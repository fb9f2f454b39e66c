/*
 * hif8.h - hif8 to and from the other formats: the algorithms
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by the file of an instruction set that has u8_lookup_128 and either
 * u8_lookup_64 and u8_lookup_256_where or VEC_LOOKS_UP_16.  A bf16's worth of bits is enough to
 * round from, for ties go away from zero: nothing below the rounding bit matters.  Exponents
 * of two vectors are taken into byte lanes, twice as many.  65,536 f32 take 0.09 ns each with
 * AVX-512 and 0.16 with AVX2, and 0.74 by a plain loop over a table (FPCONV_CPU=portable).
 */

typedef struct hif8_tables hif8_level_tables;
#define hif8_level_tables_peek hif8_tables_peek
#define hif8_level_tables_get hif8_tables_get
enum { HIF8_USES_FLOATS = 1 }; /* of f64 */

#ifndef VEC_LOOKS_UP_16
/* By exponent field: the position of the power of two in the order of hif8's values, and the
 * steps up to the next one (hif8_tables.h). */
struct hif8_places {
    vec position, steps;
};

LANES struct hif8_places hif8_places_of(const struct hif8_tables *tables, vec exponent)
{
    const vec at_most = u8_min(exponent, u8_set(127 + HIF8_EXPONENT_MAX));
    const vec i = u8_sub_saturate(at_most, u8_set(127 + HIF8_TABLE_ORIGIN));
    return (struct hif8_places){u8_lookup_64(tables->position, i), u8_lookup_64(tables->steps, i)};
}

LANES vec hif8_code_at(const struct hif8_tables *tables, vec position)
{
    return u8_lookup_128(tables->code, position);
}
#endif

/* The bits after the sign: bf16's exponent field, or f16's and 3 of its fraction. */
LANES vec mix_doubled_high_bytes(vec first, vec second)
{
    return mix_high_bytes(u16_add(first, first), u16_add(second, second));
}

#ifndef VEC_LOOKS_UP_16
/*
 * Codes, without sign, of finite bf16s.  By how many steps a fraction is above the power of
 * two, is a product, rounded as it is shifted right:
 *
 *   (fraction * steps + 2^6) / 2^7 = (fraction * (steps * 2^8) + 2^14) / 2^15.
 */
LANES vec hif8_round(const struct hif8_tables *tables, vec first, vec second, vec exponents)
{
    const vec fraction = u16_set(0x007f);
    const struct hif8_places places = hif8_places_of(tables, exponents);
    const vec first_steps =
        s16_multiply_high_round(vec_and(first, fraction), u16_shift_left(places.steps, 8));
    const vec second_steps =
        s16_multiply_high_round(vec_and(second, fraction), vec_and(places.steps, u16_set(0xff00)));
    return hif8_code_at(tables, u8_add(places.position, mix_low_bytes(first_steps, second_steps)));
}

/* Inf and NaN; the NaN is the sign bit, and remains so when a sign is added. */
LANES vec hif8_place_specials(vec code, const struct halves x[2], vec exponents)
{
    const vec one = u16_set(1), fraction = u16_set(0x007f);
    const vec sticky = mix_low_bytes(u16_min(vec_or(x[0].low, vec_and(x[0].high, fraction)), one),
                                     u16_min(vec_or(x[1].low, vec_and(x[1].high, fraction)), one));
    const vec special =
        u8_select(s8_greater(sticky, u8_set(0)), u8_set(HIF8_NAN), u8_set(HIF8_INF));
    return u8_select(u8_equal(exponents, u8_set(0xff)), special, code);
}

#endif

/* Codes with the sign that is the top bit of another byte; zero has none. */
LANES vec hif8_add_signs(vec codes, vec signs)
{
    return u8_clear_where_zero(vec_or_and(codes, signs, u8_set(0x80)), codes);
}

#ifndef VEC_LOOKS_UP_16
#define HIF8_FROM_F16

/*
 * The codes of two vectors.  f16's exponent and 3 bits of its fraction fill a byte, which
 * they are looked up by.  It is as much as there is to round from, but for the exponents from
 * -3 to 3, which keep those bits and are rounded before; and for magnitudes below 2^-16, of
 * which the lower byte is looked up.  65,536 take 0.09 ns each instead of 0.17 by way of f32
 * (AVX-512), which with 16 entries a look-up is no slower.
 */
LANES vec hif8_codes_of_f16(const struct hif8_tables *tables, vec first, vec second)
{
    enum { ROUNDED_MIN = (15 - 3) << 3, ROUNDED_END = (15 + 4) << 3, INF = 31 << 3 };
    const vec high = mix_high_bytes(first, second);
    const vec low = vec_merge(u16_set(0xff00), u16_shift_left(second, 8), first);
    const mask8 is_large = u8_has_bits(high, u8_set(0x7f));
    const vec small_codes = u8_lookup_128(tables->from_small_f16, u16_shift_right(low, 1));
    vec index = u8_select(is_large, u8_add(high, high), small_codes); /* these are below 8 */
    index = u8_increment(index, is_large & u8_has_bits(low, u8_set(0x80)));
    const vec from_min = u8_add(index, u8_set(128 - ROUNDED_MIN)); /* as signed, from -128 */
    const mask8 keeps_3_bits = s8_greater(u8_set(128 + ROUNDED_END - ROUNDED_MIN), from_min);
    const mask8 may_be_inf = u8_equal(index, u8_set(INF));
    index = u8_increment(index, keeps_3_bits & u8_has_bits(low, u8_set(0x40)));
    vec codes = u8_lookup_256_where(is_large, tables->from_f16, index);
    if (mask_any(may_be_inf))
        codes = u8_select(may_be_inf & u8_has_bits(low, u8_set(0x7f)), u8_set(HIF8_NAN), codes);
    return hif8_add_signs(codes, high);
}
#endif

/* LANES_16 elements as halves of f32s. */
LANES struct halves hif8_load(const char *src, fpconv_format format)
{
    if (fp_format_is_wide(format))
        return load_truncated_halves(src, format);
    return (struct halves){vec_load(src), u16_set(0)};
}

#ifdef VEC_LOOKS_UP_16
/*
 * Along lines (narrow_lines.h): each is one over four binades, of which those between 2^-3 and
 * 2^4, eight steps to a binade, are seven.  So negative exponents are halved downwards, by an
 * average with 255, not 0, and others upwards; half of that, upwards, is the line.  The 255 makes
 * it 64 more, a bit that look-ups ignore.
 *
 * `exponent` is counted from HIF8_LINES_ORIGIN, and at most HIF8_LINES_END.
 */
LANES vec hif8_line_of(vec exponent)
{
    const mask8 is_negative = s8_less(exponent, -HIF8_LINES_ORIGIN);
    return u8_half_up(u8_average(exponent, is_negative));
}

_Static_assert(HIF8_PLACE_ORIGIN == 64, "the bit that the average leaves above a line's index");

/* Inf and NaN, which has no sign, in the order of packing. */
LANES vec hif8_replace_specials(vec codes, const struct halves x[2], vec is_special)
{
    const vec one = u16_set(1), fraction = u16_set(0x007f), sign_bit = u8_set(0x80);
    vec any[2];
    for (int i = 0; i < 2; i++)
        any[i] = u16_min(vec_or(x[i].low, vec_and(x[i].high, fraction)), one);
    const vec is_nan = s8_greater(u16_pack_saturate(any[0], any[1]), u8_set(0));
    const vec inf = vec_or_and(u8_set(HIF8_INF), s16_pack_saturate(x[0].high, x[1].high), sign_bit);
    return u8_select(is_special, u8_select(is_nan, u8_set(HIF8_NAN), inf), codes);
}

/* The codes of bf16s, in the order of packing, Inf and NaN as if they were finite; and the
 * exponents, counted from HIF8_LINES_ORIGIN. */
LANES vec hif8_codes_of_tops(const struct hif8_tables *tables, const vec value[2], vec *exponent)
{
    vec m[2];
    for (int i = 0; i < 2; i++)
        m[i] = u16_sub_saturate(vec_clear(value[i], u16_set(0x8000)),
                                u16_set((127 + HIF8_LINES_ORIGIN) << 7));
    *exponent = u16_pack_saturate(u16_shift_right(m[0], 7), u16_shift_right(m[1], 7));
    const vec line = hif8_line_of(u8_min(*exponent, u8_set(HIF8_LINES_END)));
    const vec rounded = round_along_lines(m, u8_lookup_16(tables->line_steps, line),
                                          u8_lookup_16(tables->line_offset, line), FPCONV_BF16);
    const vec at_most = u8_min(rounded, u8_set(HIF8_PLACE_ORIGIN + HIF8_POSITION_MAX));
    /* The smallest code is that of a binade more than rounding would give it, with which the
     * line after that of zero begins.  `line`, the 64 included, is that code's place there, and
     * further on less than any place. */
    const vec place = u8_max(at_most, line);
    const vec group = vec_and(u16_shift_right(place, 3), u8_set(HIF8_GROUPS - 1));
    const vec code = vec_xor(place, u8_lookup_16(tables->flip_of_place, group));
    const vec signs = s16_pack_saturate(value[0], value[1]);
    return u8_clear_where_zero(vec_or_and(code, signs, u8_set(0x80)), code);
}

/* A block; or false, and nothing is stored, if `while_finite` and there are Inf, NaN or others
 * from 2^103 on. */
LANES bool narrow_hif8_parts(const struct hif8_tables *restrict tables, char *dst,
                             fpconv_format src_format, const char *src, int halves,
                             bool while_finite)
{
    const size_t step = LANES_16 * fp_formats[src_format].size;
    const size_t vectors = hif8_block_parts(src_format) * (size_t)halves; /* of 16 bits */
    const size_t parts = (vectors + 1) / 2;
    const struct halves zero = {u16_set(0), u16_set(0)};
    vec codes[HIF8_PARTS_MAX], largest = zero.high;
    for (size_t i = 0; i < parts; i++, src += 2 * step) {
        const struct halves x[2] = {hif8_load(src, src_format),
                                    vectors > 1 ? hif8_load(src + step, src_format) : zero};
        vec exponent;
        codes[i] = hif8_codes_of_tops(tables, (const vec[]){x[0].high, x[1].high}, &exponent);
        if (!while_finite)
            codes[i] = hif8_replace_specials(
                codes[i], x, u8_equal(exponent, u8_set(255 - 127 - HIF8_LINES_ORIGIN)));
        largest = vec_or(largest, exponent);
    }
    if (while_finite && mask_any(largest)) /* which sees the top bits of bytes */
        return false;
    for (size_t i = 0; i < parts; i++)
        vec_store(dst + i * VEC_BYTES, fp_format_is_wide(src_format)
                                           ? vec_order_packed_halves(codes[i])
                                           : vec_spread(codes[i]));
    return true;
}

/* A function of its own, lest the other pay for what is rare by registers: then gcc 12 stores
 * vectors and loads them again, 8 instructions of 93. */
static __attribute__((noinline)) void
narrow_any_hif8_block(const struct hif8_tables *restrict tables, char *dst,
                      fpconv_format src_format, const char *src, int halves)
{
    narrow_hif8_parts(tables, dst, src_format, src, halves, false);
}

/* `halves` as for narrow_byte_block. */
LANES void narrow_hif8_block(const struct hif8_tables *restrict tables, char *dst,
                             fpconv_format src_format, const char *src, int halves)
{
    if (!narrow_hif8_parts(tables, dst, src_format, src, halves, nan_is_possible(src_format)))
        narrow_any_hif8_block(tables, dst, src_format, src, halves);
}
#else
/* `halves` as for narrow_byte_block. */
LANES void narrow_hif8_block(const struct hif8_tables *restrict tables, char *dst,
                             fpconv_format src_format, const char *src, int halves)
{
    const bool wide = fp_format_is_wide(src_format);
    const size_t step = LANES_16 * fp_formats[src_format].size;
    const vec zero = u16_set(0);
#ifdef HIF8_FROM_F16
    if (src_format == FPCONV_F16) {
        const vec upper = halves == 2 ? vec_load(src + VEC_BYTES) : zero;
        vec_store(dst, vec_order_bytes(hif8_codes_of_f16(tables, vec_load(src), upper)));
        return;
    }
#endif
    const vec first = hif8_load(src, src_format).high;
    const vec second = halves == 2 ? hif8_load(src + step, src_format).high : zero;
    const vec exponents = mix_doubled_high_bytes(first, second);
    vec codes = hif8_round(tables, first, second, exponents);
    if (nan_is_possible(src_format) && mask_any(u8_equal(exponents, u8_set(0xff)))) {
        struct halves x[2] = {hif8_load(src, src_format), {zero, zero}};
        if (halves == 2)
            x[1] = hif8_load(src + step, src_format);
        codes = hif8_place_specials(codes, x, exponents);
    }
    const vec signed_codes = hif8_add_signs(codes, mix_high_bytes(first, second));
    vec_store(dst, wide ? vec_order_split_bytes(signed_codes) : vec_order_bytes(signed_codes));
}
#endif

/* The top 16 bits, without signs, in byte lanes; to either, in lanes of 16 bits, place *
 * factor is still to be added, if has_product. */
struct hif8_values {
    struct bytes value;
    vec place, factor;
    bool has_product;
};

#ifdef VEC_LOOKS_UP_16
/* By upper bits of the code: 4 look-ups of 16 entries instead of 16, two of 128 codes.  The base
 * that zero has not has a low byte of 0 for f32. */
LANES struct hif8_values hif8_look_up_groups(const struct hif8_group_tables *t,
                                             fpconv_format dst_format, vec body)
{
    const vec group = vec_and(u16_shift_right(body, 3), u8_set(HIF8_GROUPS - 1));
    const vec place = vec_xor(vec_and(body, u8_set(HIF8_GROUP - 1)), u8_lookup_16(t->flip, group));
    const vec low = u8_lookup_16(t->base_low, group);
    const struct bytes base = {u8_clear_where_zero(u8_lookup_16(t->base_high, group), body),
                               dst_format == FPCONV_F64 ? u8_clear_where_zero(low, body) : low};
    return (struct hif8_values){base, place, u8_lookup_16(t->factor, group), true};
}
#endif

/* Is a code NaN, or Inf where that is not what is looked up? */
LANES bool hif8_has_special(fpconv_format dst_format, vec code)
{
    const mask8 is_nan = u8_equal(code, u8_set(HIF8_NAN));
#ifdef VEC_LOOKS_UP_16
    if (dst_format != FPCONV_F16)
        return mask_any(is_nan | u8_equal(vec_and(code, u8_set(0x7f)), u8_set(HIF8_INF)));
#endif
    (void)dst_format;
    return mask_any(is_nan);
}

/* Of codes without sign. */
LANES struct hif8_values hif8_look_up(const struct hif8_tables *tables, fpconv_format dst_format,
                                      fpconv_policy policy, vec body, bool special)
{
    const uint8_t *high = tables->high[dst_format][policy], *low = tables->low[dst_format][policy];
#ifdef VEC_LOOKS_UP_16
    if (dst_format != FPCONV_F16) {
        const fpconv_format alike = dst_format == FPCONV_F64 ? FPCONV_F64 : FPCONV_F32;
        struct hif8_values found = hif8_look_up_groups(&tables->groups[alike], dst_format, body);
        if (special) {
            const mask8 is_inf = u8_equal(body, u8_set(HIF8_INF));
            found.value.high = u8_select(is_inf, u8_set(high[HIF8_INF]), found.value.high);
            found.value.low = u8_select(is_inf, u8_set(low[HIF8_INF]), found.value.low);
            found.place = u8_select(is_inf, u8_set(0), found.place);
        }
        return found;
    }
#endif
    (void)special;
    const struct bytes value = {u8_lookup_128(high, body), u8_lookup_128(low, body)};
    return (struct hif8_values){value, u8_set(0), u8_set(0), false};
}

LANES void widen_hif8_block(const struct hif8_tables *restrict tables, fpconv_format dst_format,
                            char *dst, const char *src, fpconv_policy policy)
{
    const vec code = vec_order_to_unpack(vec_load(src), fp_formats[dst_format].size);
    const bool special = hif8_has_special(dst_format, code);
    const struct hif8_values found =
        hif8_look_up(tables, dst_format, policy, vec_and(code, u8_set(0x7f)), special);
    struct bytes value = found.value;
    value.high = vec_or_and(value.high, code, u8_set(0x80));
    vec fill = u8_set(0);
    bool filled = false;
    if (special) { /* rare; NaN has no sign */
        const mask8 is_nan = u8_equal(code, u8_set(HIF8_NAN));
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
