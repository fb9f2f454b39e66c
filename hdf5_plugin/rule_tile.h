/*
 * rule_tile.h - the rules of rule.c on an array of floats or of doubles
 *
 * SPDX-License-Identifier: MIT
 *
 * A template: rule.c defines WORD, NAME, FORMAT, EXPONENT_BITS, FRACTION and BIAS
 * and includes it once a width.  Elements are handled as codes; magnitudes compare
 * like their codes.  Loops have no branches, for the vectoriser.
 */

/* An element at any address. */
INLINE WORD NAME(load)(const char *x, size_t i)
{
    WORD code;
    memcpy(&code, x + i * sizeof(code), sizeof(code));
    return code;
}

INLINE void NAME(store)(char *x, size_t i, WORD code)
{
    memcpy(x + i * sizeof(code), &code, sizeof(code));
}

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

/* Is any magnitude in [from, from + width)? */
INLINE bool NAME(any_within)(const char *x, size_t n, WORD from, WORD width)
{
    WORD least = (WORD)-1;
    for (size_t i = 0; i < n; i++) {
        const WORD distance = NAME(magnitude)(NAME(load)(x, i)) - from;
        least = distance < least ? distance : least;
    }
    return least < width;
}

/* -------------------------------------------------------------------------- */
/* The lost carry                                                             */
/* -------------------------------------------------------------------------- */

/* Magnitudes, as codes. */
struct NAME(bounds) {
    WORD lowest;        /* of those whose results the library counts as denormalised */
    WORD normal;        /* the smallest normal of the destination */
    WORD source_normal; /* and of the source */
};

INLINE struct NAME(bounds) NAME(bounds_of)(const struct h5_pair *pair)
{
    const int normal = min_exponent(pair->dst->format);
    const int lowest = normal - 1 - fp_formats[pair->dst->format].fraction_bits;
    return (struct NAME(bounds)){NAME(power)(lowest), NAME(power)(normal),
                                 NAME(power)(min_exponent(pair->src->format))};
}

/* How many elements come before the first that the library counts as denormalised. */
INLINE size_t NAME(count_before_denormal)(const char *x, size_t n, const struct NAME(bounds) * b)
{
    enum { BLOCK = 256 };
    const WORD width = b->normal - b->lowest, source_width = b->source_normal - 1;
    size_t i = 0;
    while (n - i > BLOCK && !NAME(any_within)(x + i * sizeof(WORD), BLOCK, b->lowest, width) &&
           !NAME(any_within)(x + i * sizeof(WORD), BLOCK, 1, source_width))
        i += BLOCK;
    while (i < n && (WORD)(NAME(magnitude)(NAME(load)(x, i)) - b->lowest) >= width &&
           (WORD)(NAME(magnitude)(NAME(load)(x, i)) - 1) >= source_width)
        i++;
    return i;
}

/*
 * Magnitudes below `end` lose the carry.  In the binade from `first` on, results
 * have no bit of fraction, and one more in each binade above, up to
 * `fraction_bits`; the carry runs out where these bits and the next are all ones.
 * The upper 32 bits of an element tell, of which there are more in a vector.
 */
INLINE void NAME(drop)(char *restrict to, const char *restrict x, size_t n, WORD first, WORD end,
                       int fraction_bits)
{
    enum { REST = EXPONENT_BITS + FRACTION + 1 - 32, HEAD_FRACTION = FRACTION - REST };
    const uint32_t fraction = ((uint32_t)1 << HEAD_FRACTION) - 1;
    const uint32_t irrelevant = fraction >> 1; /* in the binade of `first` */
    const uint32_t start = (uint32_t)(first >> REST), width = (uint32_t)((end - first) >> REST);
    const uint32_t most = (uint32_t)fraction_bits;
    for (size_t i = 0; i < n; i++) {
        const WORD code = NAME(load)(x, i);
        const uint32_t head = (uint32_t)(code >> REST);
        const uint32_t distance = (head & 0x7fffffff) - start;
        const uint32_t binade = distance >> HEAD_FRACTION;
        const uint32_t ones = (head | irrelevant >> (binade < most ? binade : most)) & fraction;
        const bool lost = (distance < width) & (ones == fraction);
        NAME(store)(to, i, lost ? code & ~(((WORD)1 << FRACTION) - 1) : code);
    }
}

/*
 * The same for a destination with the exponents of the source, where the place of
 * the last bit is the same in all codes.  The carry runs out where adding half a
 * unit changes the exponent, or moves the leading bit of a subnormal; but not into
 * the smallest subnormal.  Then the sum, less one exponent or halved, rounds to
 * the power of two below the source.
 */
INLINE void NAME(drop_at_fixed_place)(char *restrict to, const char *restrict x, size_t n, WORD end,
                                      int fraction_bits)
{
    const WORD unit = (WORD)1 << (FRACTION - fraction_bits), half = unit / 2;
    const WORD normal = (WORD)1 << FRACTION;
    for (size_t i = 0; i < n; i++) {
        const WORD code = NAME(load)(x, i), magnitude = NAME(magnitude)(code);
        const WORD sum = magnitude + half, changed = sum ^ magnitude;
        const bool lost = ((WORD)(magnitude - unit) < end - unit) &
                          (changed > (magnitude < normal ? magnitude : normal - 1));
        const WORD step = sum / 2 < normal ? sum / 2 : normal;
        NAME(store)(to, i, lost ? code + half - step : code);
    }
}

/* x, or where they differ the changed elements in `room`. */
INLINE const void *NAME(apply_carry)(const struct h5_pair *pair, const char *x, char *room,
                                     size_t n, bool *denormal_seen)
{
    const int fraction_bits = fp_formats[pair->dst->format].fraction_bits;
    const struct NAME(bounds) b = NAME(bounds_of)(pair);
    const WORD normals = b.normal > b.source_normal ? b.normal : b.source_normal;
    size_t before = 0; /* elements that keep their carries */
    if (!*denormal_seen) {
        if (!NAME(any_within)(x, n, 1, normals - 1))
            return x;
        before = NAME(count_before_denormal)(x, n, &b);
        if (before == n)
            return x;
        *denormal_seen = true;
    }
    const WORD end = pair->rule.carry == CARRY_STICKY ? NAME(power)(BIAS + 1) : normals;
    const size_t kept = before * sizeof(WORD);
    memcpy(room, x, kept);
    if (fp_formats[pair->dst->format].bias == BIAS)
        NAME(drop_at_fixed_place)(room + kept, x + kept, n - before, end, fraction_bits);
    else
        NAME(drop)
        (room + kept, x + kept, n - before, b.lowest + ((WORD)1 << FRACTION), end, fraction_bits);
    return room;
}

/* -------------------------------------------------------------------------- */
/* Eager overflow                                                             */
/* -------------------------------------------------------------------------- */

/* As above; x may be `room`. */
INLINE const void *NAME(apply_overflow)(const struct h5_pair *pair, const char *x, char *room,
                                        size_t n)
{
    const fpconv_format dst = pair->dst->format;
    const uint64_t max = fp_max_finite(&fp_formats[dst], pair->rule.policy);
    const WORD above = (WORD)fp_convert_code(FORMAT, dst, max, pair->rule.policy) + 1;
    const WORD infinity = NAME(power)(BIAS + 1);
    if (!NAME(any_within)(x, n, above, infinity - above))
        return x;
    memmove(room, x, n * sizeof(WORD));
    for (size_t i = 0; i < n; i++) {
        const WORD code = NAME(load)(room, i), magnitude = NAME(magnitude)(code);
        const bool overflows = (WORD)(magnitude - above) < infinity - above;
        NAME(store)(room, i, overflows ? (code ^ magnitude) | infinity : code);
    }
    return room;
}

CLONES static const void *NAME(apply)(const struct h5_pair *pair, const void *x, void *room,
                                      size_t n, bool *denormal_seen)
{
    if (pair->rule.carry != CARRY_KEPT)
        x = NAME(apply_carry)(pair, x, room, n, denormal_seen);
    if (pair->rule.eager_overflow)
        x = NAME(apply_overflow)(pair, x, room, n);
    return x;
}

#undef WORD
#undef NAME
#undef FORMAT
#undef EXPONENT_BITS
#undef FRACTION
#undef BIAS
