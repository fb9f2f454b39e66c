/*
 * rule_tile.h - the rules of rule.c on an array of floats or of doubles
 *
 * SPDX-License-Identifier: MIT
 *
 * A template: rule.c defines WORD, NAME, FORMAT, FRACTION and BIAS and includes
 * it once a width.  Elements are handled as codes; magnitudes compare like
 * their codes.  Loops have no branches, for the vectoriser; those that few
 * elements need are entered by the block.
 */

/* The code of 2^exponent. */
static WORD NAME(power)(int exponent)
{
    return exponent > -BIAS ? (WORD)(exponent + BIAS) << FRACTION
                            : (WORD)1 << (exponent + BIAS - 1 + FRACTION);
}

static inline WORD NAME(magnitude)(WORD x)
{
    return x & ((WORD)-1 >> 1);
}

/* A magnitude in [from, from + width) becomes `to`. */
static void NAME(replace)(WORD *x, size_t n, WORD from, WORD width, WORD to)
{
    for (size_t i = 0; i < n; i++) {
        const WORD magnitude = NAME(magnitude)(x[i]);
        x[i] = (WORD)(magnitude - from) < width ? (x[i] ^ magnitude) | to : x[i];
    }
}

/* With the magnitude in [from, to), which gives a normal result, lose the carry. */
static void NAME(drop_normal)(WORD *x, size_t n, WORD from, WORD to, int fraction_bits)
{
    const WORD fraction = ((WORD)1 << FRACTION) - 1;
    const WORD ones = fraction & ~(fraction >> (fraction_bits + 1));
    const WORD width = from < to ? to - from : 0;
    for (size_t i = 0; i < n; i++) {
        const bool drop = (WORD)(NAME(magnitude)(x[i]) - from) < width && (~x[i] & ones) == 0;
        x[i] = drop ? x[i] & ~fraction : x[i];
    }
}

/* Subnormal results lose the carry: a binade below `normal` keeps a bit less
 * than the one above it. */
static void NAME(drop_subnormal)(WORD *x, size_t n, int normal, int fraction_bits)
{
    for (int kept = 0; kept < fraction_bits; kept++) {
        const int exponent = normal - fraction_bits + kept;
        const int last_place = (exponent > -BIAS ? exponent : 1 - BIAS) - FRACTION;
        const WORD width = (WORD)1 << (exponent - kept - 1 - last_place);
        NAME(replace)(x, n, NAME(power)(exponent + 1) - width, width, NAME(power)(exponent));
    }
}

static bool NAME(any_within)(const WORD *x, size_t n, WORD from, WORD width)
{
    unsigned found = 0;
    for (size_t i = 0; i < n; i++)
        found |= (WORD)(NAME(magnitude)(x[i]) - from) < width;
    return found;
}

/* How many elements come before the first that the library counts as denormalised. */
static size_t NAME(count_before_denormal)(const WORD *x, size_t n, int src_normal, int normal,
                                          int fraction_bits)
{
    const WORD lowest = NAME(power)(normal - 1 - fraction_bits);
    const WORD width = NAME(power)(normal) - lowest;
    const WORD src_width = NAME(power)(src_normal) - 1;
    size_t i = 0;
    while (i < n && (WORD)(NAME(magnitude)(x[i]) - lowest) >= width &&
           (WORD)(NAME(magnitude)(x[i]) - 1) >= src_width)
        i++;
    return i;
}

static void NAME(apply_carry)(const struct h5_pair *pair, WORD *x, size_t n, bool *denormal_seen)
{
    enum { BLOCK = 64 };
    const int fraction_bits = fp_formats[pair->dst->format].fraction_bits;
    const int normal = min_exponent(pair->dst->format);
    const int src_normal = min_exponent(pair->src->format);
    const WORD lowest = NAME(power)(normal - fraction_bits);
    const WORD range = NAME(power)(normal) - lowest;

    size_t before = n;
    if (pair->rule.carry == CARRY_STICKY) {
        before = *denormal_seen
                     ? 0
                     : NAME(count_before_denormal)(x, n, src_normal, normal, fraction_bits);
        *denormal_seen = before < n;
        NAME(drop_normal)
        (x + before, n - before, NAME(power)(normal), NAME(power)(BIAS + 1), fraction_bits);
    }
    if (src_normal > normal)
        NAME(drop_normal)(x, before, NAME(power)(normal), NAME(power)(src_normal), fraction_bits);
    for (size_t start = 0; start < n; start += BLOCK) {
        const size_t count = n - start < BLOCK ? n - start : BLOCK;
        if (NAME(any_within)(x + start, count, lowest, range))
            NAME(drop_subnormal)(x + start, count, normal, fraction_bits);
    }
}

static void NAME(apply)(const struct h5_pair *pair, WORD *x, size_t n, bool *denormal_seen)
{
    const struct h5_rule *rule = &pair->rule;
    if (rule->carry != CARRY_KEPT)
        NAME(apply_carry)(pair, x, n, denormal_seen);
    if (rule->eager_overflow) {
        const fpconv_format dst = pair->dst->format;
        const uint64_t max = fp_max_finite(&fp_formats[dst], rule->policy);
        const WORD above = (WORD)fp_convert_code(FORMAT, dst, max, rule->policy) + 1;
        const WORD infinity = NAME(power)(BIAS + 1);
        NAME(replace)(x, n, above, infinity - above, infinity);
    }
}

#undef WORD
#undef NAME
#undef FORMAT
#undef FRACTION
#undef BIAS
