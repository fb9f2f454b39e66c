/*
 * rule.c - what HDF5's own conversion does beyond a policy
 *
 * SPDX-License-Identifier: MIT
 *
 * The lost carry.  HDF5's general loop rounds the significand in place.  When
 * the carry runs out of it, the exponent has to go up by one, and the loop
 * forgets that if it counts the element as denormalised: the significand is
 * zero then and the exponent unchanged, so that the result is the power of two
 * below the source, half of the right one.  Up to 1.14 the mark "denormalised"
 * is never taken back within a call.  The core has policies that do this
 * (formats.h); what is here is when.
 *
 * Eager overflow.  The compiler conversion to float16 (1.14 and later) compares
 * the source with the largest finite value, so that what would round down to
 * that becomes Inf too.
 */
#include <string.h>

#include "../src/codec.h"
#include "plugin.h"

/* -------------------------------------------------------------------------- */
/* One value: the definition                                                  */
/* -------------------------------------------------------------------------- */

static int min_exponent(fpconv_format format)
{
    return 1 - fp_formats[format].bias;
}

static struct fp_value largest(fpconv_format format, fpconv_policy policy)
{
    return fp_unpack(format, fp_max_finite(&fp_formats[format], policy), policy);
}

/* As the loop: a subnormal source, or a result that is shifted below the normal
 * range by no more than the fraction's width. */
static bool is_denormal(const struct h5_pair *pair, struct fp_value v)
{
    const int normal = min_exponent(pair->dst->format);
    const int lowest = normal - 1 - fp_formats[pair->dst->format].fraction_bits;
    return v.class == VALUE_FINITE && (v.exponent < min_exponent(pair->src->format) ||
                                       (v.exponent < normal && v.exponent >= lowest));
}

bool fp_h5_is_denormal(const struct h5_pair *pair, uint64_t code, fpconv_policy policy)
{
    return is_denormal(pair, fp_unpack(pair->src->format, code, policy));
}

/* The policy for an element of which is known whether the library has that mark. */
static fpconv_policy policy_for(const struct h5_rule *rule, bool is_marked)
{
    return rule->carry != CARRY_KEPT && is_marked ? FPCONV_HDF5_CARRY_LOST : rule->policy;
}

/* Is a finite value above the destination's largest finite one? */
static bool is_above_max(fpconv_format dst, struct fp_value v, fpconv_policy policy)
{
    const struct fp_value max = largest(dst, policy);
    return v.class == VALUE_FINITE &&
           (v.exponent > max.exponent ||
            (v.exponent == max.exponent && v.significand > max.significand));
}

uint64_t fp_h5_convert_code(const struct h5_pair *pair, const struct h5_rule *rule, uint64_t code,
                            bool *denormal_seen)
{
    struct fp_value v = fp_unpack(pair->src->format, code, rule->policy);
    const bool denormal = is_denormal(pair, v);
    *denormal_seen = *denormal_seen || denormal;
    const bool is_marked = rule->carry == CARRY_STICKY ? *denormal_seen : denormal;
    if (rule->eager_overflow && is_above_max(pair->dst->format, v, rule->policy))
        v.class = VALUE_INF;
    return fp_pack(pair->dst->format, v, policy_for(rule, is_marked));
}

/* -------------------------------------------------------------------------- */
/* Exceptions                                                                 */
/* -------------------------------------------------------------------------- */

/* Does a finite value overflow: not even round to the largest finite one? */
static bool overflows(fpconv_format dst, struct fp_value v, const struct h5_rule *rule)
{
    const struct fp_value max = largest(dst, rule->policy);
    const bool is_hif8 = fp_formats[dst].specials == SPECIALS_TAPERED;
    if (v.exponent > max.exponent)
        return true;
    if (!is_above_max(dst, v, rule->policy) || (rule->policy == FPCONV_HDF5 && !is_hif8))
        return false; /* FPCONV_HDF5 rounds down to the largest one */
    /* one bit of fraction is left where hif8 ends, and ties go away from zero */
    const int drop = 63 - (is_hif8 ? 1 : fp_formats[dst].fraction_bits);
    return rule->eager_overflow ||
           fp_round_shift(v.significand, drop, is_hif8) > max.significand >> drop;
}

bool fp_h5_find_exception(const struct h5_pair *pair, uint64_t code, H5T_conv_except_t *exception)
{
    const struct h5_rule *rule = &pair->rule;
    const struct fp_value v = fp_unpack(pair->src->format, code, rule->policy);
    const bool high = v.class == VALUE_FINITE && overflows(pair->dst->format, v, rule);
    if (rule->is_native) {
        /* A compiler conversion compares with the range, and only narrows with
         * exceptions: Inf is above it, NaN is neither above nor below. */
        *exception = v.negative ? H5T_CONV_EXCEPT_RANGE_LOW : H5T_CONV_EXCEPT_RANGE_HI;
        return fp_formats[pair->dst->format].size < fp_formats[pair->src->format].size &&
               (high || v.class == VALUE_INF);
    }
    if (v.class == VALUE_INF)
        *exception = v.negative ? H5T_CONV_EXCEPT_NINF : H5T_CONV_EXCEPT_PINF;
    else
        *exception = v.class == VALUE_NAN ? H5T_CONV_EXCEPT_NAN : H5T_CONV_EXCEPT_RANGE_HI;
    return high || v.class == VALUE_INF || v.class == VALUE_NAN;
}

/* -------------------------------------------------------------------------- */
/* Arrays                                                                     */
/* -------------------------------------------------------------------------- */

#define INLINE static inline __attribute__((always_inline))

/* Compiled for several instruction sets, of which the loader takes the best.  Only functions
 * of this file: clang 14 gives the choice another name than callers elsewhere use. */
#if defined(__x86_64__) && defined(__gnu_linux__)
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define CLONES
#endif

#define WORD uint8_t
#define NAME(function) u8_##function
#include "rule_words.h"

#define WORD uint16_t
#define NAME(function) u16_##function
#include "rule_words.h"

#define WORD uint32_t
#define NAME(function) u32_##function
#include "rule_words.h"

#define WORD uint64_t
#define NAME(function) u64_##function
#include "rule_words.h"

/* The code nearest to it. */
static uint64_t power_of_2(fpconv_format format, int exponent)
{
    return fp_pack(format, (struct fp_value){VALUE_FINITE, false, exponent, UINT64_C(1) << 63},
                   FPCONV_HDF5);
}

static uint64_t magnitude_mask(fpconv_format format)
{
    return (UINT64_C(1) << (fp_format_bits(format) - 1)) - 1;
}

/* A source that is not below a power of two has no lower code than that, even if the power
 * is rounded: to the next code, as it is half of the smallest; or to zero. */
struct h5_denormals fp_h5_denormals_of(const struct h5_pair *pair)
{
    const fpconv_format src = pair->src->format, dst = pair->dst->format;
    const int normal = min_exponent(dst), source_normal = min_exponent(src);
    const uint64_t rounded = power_of_2(src, normal - 1 - fp_formats[dst].fraction_bits);
    const uint64_t lowest = rounded > 0 ? rounded : 1; /* zero does not count */
    const uint64_t end = power_of_2(src, normal), source_end = power_of_2(src, source_normal);
    const bool overlap = lowest <= source_end && end > lowest;
    return (struct h5_denormals){
        .lowest = lowest,
        .width = !overlap && end > lowest ? end - lowest : 0,
        .source_width = (overlap && end > source_end ? end : source_end) - 1,
        .result_lowest = fp_convert_code(dst, src, 1, FPCONV_HDF5) > 0 ? 1 : 0,
        .result_end = power_of_2(dst, normal > source_normal ? normal : source_normal) + 1,
    };
}

/* Zeros alone may be no sign of one. */
CLONES static bool may_be_denormal(const struct h5_pair *pair, const char *results, size_t n)
{
    const uint64_t mask = magnitude_mask(pair->dst->format), sign = mask + 1;
    const uint64_t from = pair->denormals.result_lowest, end = pair->denormals.result_end;
    const uint64_t width = end - from;
    if (pair->dst->size == 1)
        return u8_any_below(results, n, (uint8_t)end, (uint8_t)sign) &&
               (from == 0 ||
                u8_any_within(results, n, (uint8_t)mask, (uint8_t)from, (uint8_t)width));
    return u16_any_below(results, n, (uint16_t)end, (uint16_t)sign) &&
           (from == 0 ||
            u16_any_within(results, n, (uint16_t)mask, (uint16_t)from, (uint16_t)width));
}

CLONES static size_t count_before_denormal(const struct h5_pair *pair, const char *codes, size_t n)
{
    const uint64_t mask = magnitude_mask(pair->src->format);
    switch (pair->src->size) {
    case 1:
        return u8_count_before(codes, n, (uint8_t)mask, &pair->denormals);
    case 2:
        return u16_count_before(codes, n, (uint16_t)mask, &pair->denormals);
    case 4:
        return u32_count_before(codes, n, (uint32_t)mask, &pair->denormals);
    default:
        return u64_count_before(codes, n, mask, &pair->denormals);
    }
}

size_t fp_h5_count_before_denormal(const struct h5_pair *pair, const void *codes,
                                   const void *results, size_t n)
{
    enum { BLOCK = 1024 };
    const char *src = codes, *dst = results;
    if (dst && !may_be_denormal(pair, dst, n))
        return n;
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t count = n - i < BLOCK ? n - i : BLOCK;
        if (dst && !may_be_denormal(pair, dst + i * pair->dst->size, count))
            continue;
        const size_t before = count_before_denormal(pair, src + i * pair->src->size, count);
        if (before < count)
            return i + before;
    }
    return n;
}

CLONES static void take_where_subnormal(const struct h5_pair *pair, char *results,
                                        const char *others, const char *codes, size_t n)
{
    const uint16_t mask = (uint16_t)magnitude_mask(pair->src->format);
    const uint16_t width = (uint16_t)pair->denormals.source_width;
    for (size_t i = 0; i < n; i++) {
        const uint16_t distance = (uint16_t)((u16_load(codes, i) & mask) - 1);
        const uint16_t kept = u16_load(results, i), other = u16_load(others, i);
        u16_store(results, i, distance < width ? other : kept);
    }
}

void fp_h5_take_where_subnormal(const struct h5_pair *pair, void *results, const void *others,
                                const void *codes, size_t n)
{
    take_where_subnormal(pair, results, others, codes, n);
}

/* The largest finite result's source is the last that does not overflow. */
CLONES static const void *overflow_early(const struct h5_pair *pair, const char *codes, char *room,
                                         size_t n)
{
    const fpconv_format src = pair->src->format, dst = pair->dst->format;
    const uint64_t max = fp_max_finite(&fp_formats[dst], pair->rule.policy);
    const uint64_t above = fp_convert_code(src, dst, max, pair->rule.policy) + 1;
    const uint64_t infinity = fp_max_finite(&fp_formats[src], pair->rule.policy) + 1;
    if (src == FPCONV_F64)
        return u64_replace_within(codes, room, n, above, infinity);
    return u32_replace_within(codes, room, n, (uint32_t)above, (uint32_t)infinity);
}

const void *fp_h5_overflow_early(const struct h5_pair *pair, const void *codes, void *room,
                                 size_t n)
{
    return overflow_early(pair, codes, room, n);
}
