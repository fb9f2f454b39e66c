/*
 * rule_tile.h - the rules of rule.c on an array of f64, f32, f16 or bf16
 *
 * SPDX-License-Identifier: MIT
 *
 * A template: rule.c defines WORD, NAME, FORMAT, FRACTION and BIAS, and HEAD for
 * the upper bits of a WORD, and includes it once a format.  Elements are handled as
 * codes; magnitudes compare like their codes.  Loops have no branches, for the
 * vectoriser.
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
    if (exponent > -BIAS)
        return (WORD)((WORD)(exponent + BIAS) << FRACTION);
    return (WORD)((WORD)1 << (exponent + BIAS - 1 + FRACTION));
}

INLINE WORD NAME(magnitude)(WORD x)
{
    return x & (WORD)((WORD)-1 >> 1);
}

/* Is any magnitude in [from, from + width)? */
INLINE bool NAME(any_within)(const char *x, size_t n, WORD from, WORD width)
{
    WORD least = (WORD)-1;
    for (size_t i = 0; i < n; i++) {
        const WORD distance = (WORD)(NAME(magnitude)(NAME(load)(x, i)) - from);
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
    const WORD width = (WORD)(b->normal - b->lowest), source_width = (WORD)(b->source_normal - 1);
    size_t i = 0;
    while (n - i > BLOCK && !NAME(any_within)(x + i * sizeof(WORD), BLOCK, b->lowest, width) &&
           !NAME(any_within)(x + i * sizeof(WORD), BLOCK, 1, source_width))
        i += BLOCK;
    while (i < n && (WORD)(NAME(magnitude)(NAME(load)(x, i)) - b->lowest) >= width &&
           (WORD)(NAME(magnitude)(NAME(load)(x, i)) - 1) >= source_width)
        i++;
    return i;
}

/* The magnitudes below which carries are lost. */
INLINE WORD NAME(carry_end)(const struct h5_pair *pair)
{
    const int dst = min_exponent(pair->dst->format), src = min_exponent(pair->src->format);
    return NAME(power)(pair->rule.carry == CARRY_STICKY ? BIAS + 1 : dst > src ? dst : src);
}

/* The upper bits of an element tell whether it loses its carry, of which there are more
 * in a vector. */
enum {
    NAME(REST) = 8 * (sizeof(WORD) - sizeof(HEAD)),
    NAME(HEAD_FRACTION) = FRACTION - NAME(REST)
};

/*
 * Magnitudes from `start` on lose the carry, as far as `width` goes.  In the binade from
 * `start` on, results have no bit of fraction, and one more in each binade above, up to
 * `most`.
 */
struct NAME(loss) {
    HEAD start, width, most;
    WORD fraction; /* what is subtracted from an element that loses its carry: that leaves
                      less than half a unit of the result's last place, on either side of
                      the power of two */
};

INLINE struct NAME(loss) NAME(loss_of)(const struct h5_pair *pair)
{
    const struct fp_format *dst = &fp_formats[pair->dst->format];
    const WORD first = NAME(power)(1 - dst->bias - dst->fraction_bits);
    const WORD width = (WORD)(NAME(carry_end)(pair) - first);
    return (struct NAME(loss)){
        .start = (HEAD)(first >> NAME(REST)),
        .width = (HEAD)(width >> NAME(REST)),
        .most = dst->fraction_bits,
        .fraction =
            (WORD)(((WORD)1 << FRACTION) - ((WORD)1 << (FRACTION - 1 - dst->fraction_bits)))};
}

/* The carry runs out where the bits of the result's fraction and the next are all ones.
 * Notes the upper bits of the largest magnitude. */
INLINE WORD NAME(drop_one)(struct NAME(loss) loss, WORD code, HEAD *largest)
{
    const HEAD fraction = ((HEAD)1 << NAME(HEAD_FRACTION)) - 1;
    const HEAD irrelevant = fraction >> 1; /* in the binade of `start` */
    const HEAD head = (HEAD)(code >> NAME(REST));
    const HEAD magnitude = head & ((HEAD)-1 >> 1);
    *largest = magnitude > *largest ? magnitude : *largest;
    const HEAD distance = (HEAD)(magnitude - loss.start);
    const HEAD binade = (HEAD)(distance >> NAME(HEAD_FRACTION));
    const HEAD most = loss.most & 15; /* so that gcc 16 shifts in 16-bit lanes */
    const HEAD shift = binade < most ? binade : most;
    const HEAD ones = (HEAD)((head | (HEAD)(irrelevant >> shift)) & fraction);
    const bool lost = (distance < loss.width) & (ones == fraction);
    return lost ? (WORD)(code - loss.fraction) : code;
}

/* The elements, of which those from `before` on lose their carries, in `room`. */
INLINE void NAME(drop_carries)(const struct h5_pair *pair, char *restrict room,
                               const char *restrict x, size_t n, size_t before)
{
    const struct NAME(loss) loss = NAME(loss_of)(pair);
    HEAD largest = 0;
    memcpy(room, x, before * sizeof(WORD));
    for (size_t i = before; i < n; i++)
        NAME(store)(room, i, NAME(drop_one)(loss, NAME(load)(x, i), &largest));
}

/* The number of elements that come before the first that the library counts as
 * denormalised; notes if there is one. */
INLINE size_t NAME(count_before_loss)(const struct h5_pair *pair, const char *x, size_t n,
                                      bool *denormal_seen)
{
    if (*denormal_seen)
        return 0;
    const struct NAME(bounds) b = NAME(bounds_of)(pair);
    const WORD normals = b.normal > b.source_normal ? b.normal : b.source_normal;
    if (!NAME(any_within)(x, n, 1, (WORD)(normals - 1)))
        return n;
    const size_t before = NAME(count_before_denormal)(x, n, &b);
    *denormal_seen = before < n;
    return before;
}

/* -------------------------------------------------------------------------- */
/* Eager overflow                                                             */
/* -------------------------------------------------------------------------- */

/* x, or where they differ the changed elements in `room`. */
INLINE const char *NAME(apply_overflow)(const struct h5_pair *pair, const char *x, char *room,
                                        size_t n)
{
    const fpconv_format dst = pair->dst->format;
    const uint64_t max = fp_max_finite(&fp_formats[dst], pair->rule.policy);
    const WORD above = (WORD)(fp_convert_code(FORMAT, dst, max, pair->rule.policy) + 1);
    const WORD infinity = NAME(power)(BIAS + 1), width = (WORD)(infinity - above);
    if (!NAME(any_within)(x, n, above, width))
        return x;
    for (size_t i = 0; i < n; i++) {
        const WORD code = NAME(load)(x, i), magnitude = NAME(magnitude)(code);
        const bool overflows = (WORD)(magnitude - above) < width;
        NAME(store)(room, i, overflows ? (WORD)((code ^ magnitude) | infinity) : code);
    }
    return room;
}

#undef WORD
#undef HEAD
#undef NAME
#undef FORMAT
#undef FRACTION
#undef BIAS
