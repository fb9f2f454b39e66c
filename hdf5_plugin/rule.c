/*
 * rule.c - what HDF5's own conversion does beyond a policy
 *
 * SPDX-License-Identifier: MIT
 *
 * The lost carry.  HDF5's general loop rounds the significand in place.  When
 * the carry runs out of it, the exponent has to go up by one, and the loop
 * forgets that if it counts the element as denormalised: the significand is
 * zero then and the exponent unchanged, so that the result is the power of two
 * below the source, half of the right one.  So a source that loses its carry
 * gives what the power of two below it gives, and clearing its fraction before
 * the conversion is all it takes.  Up to 1.14 the mark "denormalised" is never
 * taken back within a call.
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

/* Does rounding to the destination's fraction carry out of it?  It does if the
 * bits that stay and the first that goes are all ones. */
static bool carries_out(fpconv_format dst, struct fp_value v)
{
    const int below = min_exponent(dst) - v.exponent;
    const int kept = fp_formats[dst].fraction_bits - (below > 0 ? below : 0);
    if (kept < 0)
        return false;
    const uint64_t ones = (UINT64_C(2) << kept) - 1; /* kept + 1 of them */
    return ((v.significand >> (62 - kept)) & ones) == ones;
}

static bool loses_carry(const struct h5_pair *pair, const struct h5_rule *rule, struct fp_value v,
                        bool *denormal_seen)
{
    const bool denormal = is_denormal(pair, v);
    *denormal_seen = *denormal_seen || denormal;
    const bool marked =
        rule->carry == CARRY_STICKY ? *denormal_seen : rule->carry == CARRY_LOST && denormal;
    return marked && v.class == VALUE_FINITE &&
           v.exponent <= largest(pair->dst->format, rule->policy).exponent &&
           carries_out(pair->dst->format, v);
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
    if (loses_carry(pair, rule, v, denormal_seen))
        v.significand = UINT64_C(1) << 63;
    if (rule->eager_overflow && is_above_max(pair->dst->format, v, rule->policy))
        v.class = VALUE_INF;
    return fp_pack(pair->dst->format, v, rule->policy);
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
/* Tiles                                                                      */
/* -------------------------------------------------------------------------- */

#define INLINE static inline __attribute__((always_inline))

/* Compiled for several instruction sets, of which the loader takes the best. */
#if defined(__x86_64__) && defined(__gnu_linux__)
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define CLONES
#endif

#define WORD uint32_t
#define NAME(function) f32_##function
#define FORMAT FPCONV_F32
#define EXPONENT_BITS 8
#define FRACTION 23
#define BIAS 127
#include "rule_tile.h"

#define WORD uint64_t
#define NAME(function) f64_##function
#define FORMAT FPCONV_F64
#define EXPONENT_BITS 11
#define FRACTION 52
#define BIAS 1023
#include "rule_tile.h"

const void *fp_h5_apply_rule(const struct h5_pair *pair, const void *values, void *room, size_t n,
                             bool *denormal_seen)
{
    return pair->src->format == FPCONV_F64 ? f64_apply(pair, values, room, n, denormal_seen)
                                           : f32_apply(pair, values, room, n, denormal_seen);
}
