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

/* Compiled for several instruction sets, of which the loader takes the best.  Only functions
 * of this file: clang 14 gives the choice another name than callers elsewhere use. */
#if defined(__x86_64__) && defined(__gnu_linux__)
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define CLONES
#endif

#define WORD uint16_t
#define HEAD uint16_t
#define NAME(function) bf16_##function
#define FORMAT FPCONV_BF16
#define FRACTION 7
#define BIAS 127
#include "rule_tile.h"

#define WORD uint16_t
#define HEAD uint16_t
#define NAME(function) f16_##function
#define FORMAT FPCONV_F16
#define FRACTION 10
#define BIAS 15
#include "rule_tile.h"

#define WORD uint32_t
#define HEAD uint32_t
#define NAME(function) f32_##function
#define FORMAT FPCONV_F32
#define FRACTION 23
#define BIAS 127
#include "rule_tile.h"

#define WORD uint64_t
#define HEAD uint32_t
#define NAME(function) f64_##function
#define FORMAT FPCONV_F64
#define FRACTION 52
#define BIAS 1023
#include "rule_tile.h"

/* Half an element: a load of its own, which takes the vectoriser fewer instructions
 * than one that is shifted and narrowed. */
enum { UPPER_AT = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, LOWER_AT = !UPPER_AT };

#define DEFINE_LOAD_HALF(name, HALF)                                          \
    INLINE HALF name##_load_half(const char *x, size_t i, int at)             \
    {                                                                         \
        HALF half;                                                            \
        memcpy(&half, x + (2 * i + (size_t)at) * sizeof(half), sizeof(half)); \
        return half;                                                          \
    }

DEFINE_LOAD_HALF(f64, uint32_t)
DEFINE_LOAD_HALF(f32, uint16_t)
DEFINE_LOAD_HALF(f16, uint8_t)

/*
 * For a destination of 8 bits, the carries are lost in 16-bit lanes, of which there are
 * twice as many to a vector: the upper half of an f32 rounds alike, for ties go away
 * from zero.  But that of a NaN may be Inf; so the last bit is set where the lower half
 * has any, if there are specials.
 */
INLINE uint16_t f32_to_odd_half(uint16_t upper, uint16_t lower)
{
    return upper | (lower ? 1 : 0);
}

/* What is too small for a normal f32, or too large, is too small or too large for
 * formats of 8 bits, too: it becomes something below 2^-126, or the largest value. */
INLINE uint16_t f64_to_odd_half(uint32_t upper, uint32_t lower)
{
    enum {
        REBIAS = (1023 - 127) << 20,
        INF = 0xff << 20,
        F64_INF = 0x7ff << 20,
        F32 = (1 << 28) - 1
    };
    const int32_t magnitude = (int32_t)(upper & 0x7fffffff);
    const int32_t rebiased = magnitude < REBIAS ? 0 : magnitude - REBIAS;
    const int32_t finite = rebiased < INF ? rebiased : INF - 1;
    const uint32_t f32 = (uint32_t)(magnitude < F64_INF ? finite : magnitude & F32) << 3;
    const uint32_t signed_f32 = f32 | (upper & 0x80000000);
    const uint32_t odd = (upper & 0x1fff) | lower ? signed_f32 | 0x10000 : signed_f32;
    return (uint16_t)(odd >> 16);
}

/* The halves, which lose their carries, in `room`.  False if there may be specials. */
INLINE bool f32_drop_in_uppers(struct bf16_loss loss, char *restrict room, const char *restrict x,
                               size_t n)
{
    uint16_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        const uint16_t upper = (uint16_t)(f32_load(x, i) >> 16);
        bf16_store(room, i, bf16_drop_one(loss, upper, &largest));
    }
    return largest < bf16_power(128);
}

/* The same for all floats, from the element `from` on. */
INLINE void f32_drop_in_halves(struct bf16_loss loss, char *restrict room, const char *restrict x,
                               size_t from, size_t n)
{
    uint16_t largest = 0;
    for (size_t i = from; i < n; i++) {
        const uint16_t half =
            f32_to_odd_half(f32_load_half(x, i, UPPER_AT), f32_load_half(x, i, LOWER_AT));
        bf16_store(room, i, bf16_drop_one(loss, half, &largest));
    }
}

/* In two loops, which are faster than one here. */
INLINE void f64_drop_in_halves(const struct h5_pair *pair, char *restrict room,
                               const char *restrict x, size_t before, size_t n)
{
    char *halves = room + n * sizeof(uint16_t);
    for (size_t i = 0; i < n; i++)
        bf16_store(halves, i,
                   f64_to_odd_half(f64_load_half(x, i, UPPER_AT), f64_load_half(x, i, LOWER_AT)));
    bf16_drop_carries(pair, room, halves, n, before);
}

/*
 * A destination that is the upper half of the source's code: a conversion of its own,
 * for the place of the last bit is the same in all codes.  The carry runs out where
 * rounding changes the exponent, or moves the leading bit of a subnormal; the sum,
 * less one exponent or halved, is then the power of two below the source.  (Of the
 * smallest subnormal, which is no carry, nothing is left to subtract.)
 *
 * Carries are lost below `end`, an upper half, or everywhere.
 */
#define DEFINE_TO_UPPER_HALF(src, dst, HALF, FRACTION)                                        \
    INLINE void src##_to_##dst(char *restrict to, const char *restrict x, size_t n, HALF end, \
                               bool everywhere)                                               \
    {                                                                                         \
        const HALF magnitude_bits = (HALF)-1 >> 1, fraction = (1 << (FRACTION)) - 1;          \
        const HALF inf = magnitude_bits - fraction, max = inf - 1;                            \
        for (size_t i = 0; i < n; i++) {                                                      \
            const HALF upper = src##_load_half(x, i, UPPER_AT);                               \
            const HALF lower = src##_load_half(x, i, LOWER_AT);                               \
            const HALF magnitude = upper & magnitude_bits;                                    \
            const HALF sum = (HALF)(magnitude + (lower >> (8 * sizeof(lower) - 1)));          \
            const HALF changed = sum ^ magnitude;                                             \
            const HALF below = magnitude < fraction ? magnitude : fraction;                   \
            const HALF half = sum >> 1;                                                       \
            const HALF step = half < fraction + 1 ? half : fraction + 1;                      \
            const bool lost = (changed > below) & (everywhere | (magnitude < end));           \
            const HALF highest = magnitude > max ? magnitude : max;                           \
            const HALF kept = everywhere || sum < highest ? sum : highest;                    \
            const HALF finite = lost ? (HALF)(sum - step) : kept;                             \
            const bool is_nan = (HALF)(magnitude + (lower ? 1 : 0)) > inf;                    \
            const HALF result = is_nan ? magnitude_bits : finite;                             \
            dst##_store(to, i, (HALF)(result | (upper & (HALF)~magnitude_bits)));             \
        }                                                                                     \
    }                                                                                         \
    INLINE struct h5_values src##_lose_carries_to_##dst(                                      \
        const struct h5_pair *pair, char *restrict room, const char *restrict x, size_t n,    \
        size_t before, fpconv_format format)                                                  \
    {                                                                                         \
        char *rest = room + before * sizeof(HALF);                                            \
        const char *from = x + 2 * before * sizeof(HALF);                                     \
        src##_to_##dst(room, x, before, 0, false);                                            \
        if (pair->rule.carry == CARRY_STICKY)                                                 \
            src##_to_##dst(rest, from, n - before, 0, true);                                  \
        else                                                                                  \
            src##_to_##dst(rest, from, n - before,                                            \
                           (HALF)(src##_carry_end(pair) >> 8 * sizeof(HALF)), false);         \
        return (struct h5_values){room, format};                                              \
    }

INLINE void e5m2_store(char *x, size_t i, uint8_t code)
{
    memcpy(x + i, &code, sizeof(code));
}

DEFINE_TO_UPPER_HALF(f32, bf16, uint16_t, 7)
DEFINE_TO_UPPER_HALF(f16, e5m2, uint8_t, 2)

/* -------------------------------------------------------------------------- */
/* What a pair asks for                                                       */
/* -------------------------------------------------------------------------- */

CLONES static struct h5_values bf16_lose_carries(const struct h5_pair *pair, const char *x,
                                                 char *room, size_t n, struct h5_progress *progress)
{
    const size_t before = bf16_count_before_loss(pair, x, n, &progress->denormal_seen);
    if (before == n)
        return (struct h5_values){x, FPCONV_BF16};
    bf16_drop_carries(pair, room, x, n, before);
    return (struct h5_values){room, FPCONV_BF16};
}

CLONES static struct h5_values f16_lose_carries(const struct h5_pair *pair, const char *x,
                                                char *room, size_t n, struct h5_progress *progress)
{
    const size_t before = f16_count_before_loss(pair, x, n, &progress->denormal_seen);
    if (before == n)
        return (struct h5_values){x, FPCONV_F16};
    if (pair->dst->format == FPCONV_E5M2)
        return f16_lose_carries_to_e5m2(pair, room, x, n, before, FPCONV_E5M2);
    f16_drop_carries(pair, room, x, n, before);
    return (struct h5_values){room, FPCONV_F16};
}

CLONES static struct h5_values f32_lose_carries(const struct h5_pair *pair, const char *x,
                                                char *room, size_t n, struct h5_progress *progress)
{
    const size_t before = f32_count_before_loss(pair, x, n, &progress->denormal_seen);
    if (before == n)
        return (struct h5_values){x, FPCONV_F32};
    if (pair->dst->format == FPCONV_BF16)
        return f32_lose_carries_to_bf16(pair, room, x, n, before, FPCONV_BF16);
    if (pair->dst->size == 1) {
        const struct bf16_loss loss = bf16_loss_of(pair);
        if (before == 0 && !progress->special_seen && f32_drop_in_uppers(loss, room, x, n))
            return (struct h5_values){room, FPCONV_BF16};
        progress->special_seen = progress->special_seen || before == 0;
        f32_drop_in_halves((struct bf16_loss){0}, room, x, 0, before);
        f32_drop_in_halves(loss, room, x, before, n);
        return (struct h5_values){room, FPCONV_BF16};
    }
    f32_drop_carries(pair, room, x, n, before);
    return (struct h5_values){room, FPCONV_F32};
}

CLONES static struct h5_values f64_lose_carries(const struct h5_pair *pair, const char *x,
                                                char *room, size_t n, struct h5_progress *progress)
{
    const size_t before = f64_count_before_loss(pair, x, n, &progress->denormal_seen);
    if (before == n)
        return (struct h5_values){x, FPCONV_F64};
    if (pair->dst->size == 1) {
        f64_drop_in_halves(pair, room, x, before, n);
        return (struct h5_values){room, FPCONV_BF16};
    }
    f64_drop_carries(pair, room, x, n, before);
    return (struct h5_values){room, FPCONV_F64};
}

CLONES static const char *f32_overflow_early(const struct h5_pair *pair, const char *x, char *room,
                                             size_t n)
{
    return f32_apply_overflow(pair, x, room, n);
}

CLONES static const char *f64_overflow_early(const struct h5_pair *pair, const char *x, char *room,
                                             size_t n)
{
    return f64_apply_overflow(pair, x, room, n);
}

CLONES static bool may_be_denormal(const struct h5_pair *pair, const void *results, size_t n)
{
    const int dst = min_exponent(pair->dst->format), src = min_exponent(pair->src->format);
    const int normal = dst > src ? dst : src;
    if (pair->dst->format == FPCONV_BF16)
        return bf16_any_within(results, n, 0, (uint16_t)(bf16_power(normal) + 1));
    return f16_any_within(results, n, 0, (uint16_t)(f16_power(normal) + 1));
}

bool fp_h5_may_be_denormal(const struct h5_pair *pair, const void *results, size_t n)
{
    return may_be_denormal(pair, results, n);
}

bool fp_h5_rule_takes(const struct h5_pair *pair, fpconv_format format)
{
    return format == FPCONV_F64 || format == FPCONV_F32 ||
           (pair->rule.carry != CARRY_KEPT && pair->dst->size == 1 &&
            (format == FPCONV_F16 || format == FPCONV_BF16));
}

struct h5_values fp_h5_apply_rule(const struct h5_pair *pair, struct h5_values values, void *room,
                                  size_t n, struct h5_progress *progress)
{
    const char *x = values.at;
    if (pair->rule.carry != CARRY_KEPT)
        switch (values.format) {
        case FPCONV_F64:
            return f64_lose_carries(pair, x, room, n, progress);
        case FPCONV_F32:
            return f32_lose_carries(pair, x, room, n, progress);
        case FPCONV_F16:
            return f16_lose_carries(pair, x, room, n, progress);
        default:
            return bf16_lose_carries(pair, x, room, n, progress);
        }
    if (pair->rule.eager_overflow)
        values.at = values.format == FPCONV_F64 ? f64_overflow_early(pair, x, room, n)
                                                : f32_overflow_early(pair, x, room, n);
    return values;
}
