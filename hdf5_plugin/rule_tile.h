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
INLINE WORD NAME(power)(int exponent)
{
    return exponent > -BIAS ? (WORD)(exponent + BIAS) << FRACTION
                            : (WORD)1 << (exponent + BIAS - 1 + FRACTION);
}

INLINE WORD NAME(magnitude)(WORD x)
{
    return x & ((WORD)-1 >> 1);
}

/* A magnitude in [from, from + width) becomes `to`. */
INLINE void NAME(replace)(WORD *x, size_t n, WORD from, WORD width, WORD to)
{
    for (size_t i = 0; i < n; i++) {
        const WORD magnitude = NAME(magnitude)(x[i]);
        x[i] = (WORD)(magnitude - from) < width ? (x[i] ^ magnitude) | to : x[i];
    }
}

/* With the magnitude in [from, to), which gives a normal result, lose the carry. */
INLINE void NAME(drop_normal)(WORD *x, size_t n, WORD from, WORD to, int fraction_bits)
{
    const WORD fraction = ((WORD)1 << FRACTION) - 1;
    const WORD ones = fraction & ~(fraction >> (fraction_bits + 1));
    if (from >= to)
        return;
    const WORD width = to - from;
    for (size_t i = 0; i < n; i++) {
        const WORD lost = (WORD)(NAME(magnitude)(x[i]) - from) < width ? ~x[i] & ones : ones;
        x[i] = lost == 0 ? x[i] & ~fraction : x[i];
    }
}

/* Subnormal results lose the carry: a binade below `normal` keeps a bit less
 * than the one above it. */
INLINE void NAME(drop_subnormal)(WORD *x, size_t n, int normal, int fraction_bits)
{
    for (int kept = 0; kept < fraction_bits; kept++) {
        const int exponent = normal - fraction_bits + kept;
        const int last_place = (exponent > -BIAS ? exponent : 1 - BIAS) - FRACTION;
        const WORD width = (WORD)1 << (exponent - kept - 1 - last_place);
        NAME(replace)(x, n, NAME(power)(exponent + 1) - width, width, NAME(power)(exponent));
    }
}

/* Both of the above for formats of one byte, in one pass: the results are normal
 * floats, so that all it takes is to clear the fraction. */
INLINE void NAME(drop_of_byte)(WORD *x, size_t n, WORD from, WORD to, int normal, int fraction_bits)
{
    enum { BINADES = 3 }; /* no format of one byte has more fraction bits */
    const WORD fraction = ((WORD)1 << FRACTION) - 1;
    const WORD ones = fraction & ~(fraction >> (fraction_bits + 1));
    const WORD normal_width = from < to ? to - from : 0;
    WORD low[BINADES] = {0}, width[BINADES] = {0};
    for (int kept = 0; kept < fraction_bits; kept++) {
        width[kept] = (WORD)1 << (FRACTION - kept - 1);
        low[kept] = NAME(power)(normal - fraction_bits + kept + 1) - width[kept];
    }
    for (size_t i = 0; i < n; i++) {
        const WORD magnitude = NAME(magnitude)(x[i]);
        const WORD missing = (WORD)(magnitude - from) < normal_width ? ~x[i] & ones : ones;
        const WORD lost = (missing == 0) | ((WORD)(magnitude - low[0]) < width[0]) |
                          ((WORD)(magnitude - low[1]) < width[1]) |
                          ((WORD)(magnitude - low[2]) < width[2]);
        x[i] = lost ? x[i] & ~fraction : x[i];
    }
}

INLINE bool NAME(any_within)(const WORD *x, size_t n, WORD from, WORD width)
{
    WORD found = 0;
    for (size_t i = 0; i < n; i++)
        found |= (WORD)(NAME(magnitude)(x[i]) - from) < width ? 1 : 0;
    return found != 0;
}

/* How many elements come before the first that the library counts as denormalised. */
INLINE size_t NAME(count_before_denormal)(const WORD *x, size_t n, int src_normal, int normal,
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

INLINE void NAME(apply_carry)(const struct h5_pair *pair, WORD *x, size_t n, bool *denormal_seen)
{
    enum { BLOCK = 256 };
    const int fraction_bits = fp_formats[pair->dst->format].fraction_bits;
    const int normal = min_exponent(pair->dst->format);
    const int src_normal = min_exponent(pair->src->format);
    const WORD from = NAME(power)(normal), src_to = NAME(power)(src_normal);
    const WORD all = NAME(power)(BIAS + 1);
    const WORD lowest = NAME(power)(normal - 1 - fraction_bits);

    size_t before = n; /* elements that come before the first denormalised one */
    if (*denormal_seen)
        before = 0;
    else if (pair->rule.carry == CARRY_STICKY && (NAME(any_within)(x, n, lowest, from - lowest) ||
                                                  NAME(any_within)(x, n, 1, src_to - 1)))
        before = NAME(count_before_denormal)(x, n, src_normal, normal, fraction_bits);
    *denormal_seen = pair->rule.carry == CARRY_STICKY && before < n;

    if (pair->dst->size == 1) {
        NAME(drop_of_byte)(x, before, from, src_to, normal, fraction_bits);
        NAME(drop_of_byte)(x + before, n - before, from, all, normal, fraction_bits);
        return;
    }
    NAME(drop_normal)(x, before, from, src_to, fraction_bits);
    NAME(drop_normal)(x + before, n - before, from, all, fraction_bits);
    for (size_t start = 0; start < n; start += BLOCK) {
        const size_t count = n - start < BLOCK ? n - start : BLOCK;
        if (NAME(any_within)(x + start, count, lowest, from - lowest))
            NAME(drop_subnormal)(x + start, count, normal, fraction_bits);
    }
}

CLONES static void NAME(apply)(const struct h5_pair *pair, WORD *x, size_t n, bool *denormal_seen)
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
