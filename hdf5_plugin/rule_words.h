/*
 * rule_words.h - what rule.c looks for in an array of codes
 *
 * SPDX-License-Identifier: MIT
 *
 * A template: rule.c defines WORD, a code's type, and NAME, and includes it once a width.
 * Magnitudes, which are the bits of `mask`, compare like their codes.  Loops have no
 * branches, for the vectoriser.
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

/* Is any magnitude below `end`?  `sign` is the bit above the magnitudes, which that subtraction
 * changes of a smaller one; two operations a vector, where any_within takes three. */
INLINE bool NAME(any_below)(const char *x, size_t n, WORD end, WORD sign)
{
    WORD changed = 0;
    for (size_t i = 0; i < n; i++) {
        const WORD code = NAME(load)(x, i);
        changed |= (WORD)((WORD)(code - end) ^ code);
    }
    return changed & sign;
}

/* Is any magnitude in [from, from + width)? */
INLINE bool NAME(any_within)(const char *x, size_t n, WORD mask, WORD from, WORD width)
{
    WORD least = (WORD)-1;
    for (size_t i = 0; i < n; i++) {
        const WORD distance = (WORD)((NAME(load)(x, i) & mask) - from);
        least = distance < least ? distance : least;
    }
    return least < width;
}

INLINE bool NAME(any_denormal)(const char *x, size_t n, WORD mask, const struct h5_denormals *d)
{
    return NAME(any_within)(x, n, mask, 1, (WORD)d->source_width) ||
           (d->width > 0 && NAME(any_within)(x, n, mask, (WORD)d->lowest, (WORD)d->width));
}

/* How many come before the first that the library counts as denormalised: in ever smaller
 * steps. */
INLINE size_t NAME(count_before)(const char *x, size_t n, WORD mask, const struct h5_denormals *d)
{
    size_t i = 0;
    for (size_t step = 512; step > 0; step /= 8)
        while (n - i >= step && !NAME(any_denormal)(x + i * sizeof(WORD), step, mask, d))
            i += step;
    return i;
}

/* x, or, if a magnitude is in [from, to), a copy in `room` in which it is `to`; the sign is
 * a code's top bit. */
INLINE const char *NAME(replace_within)(const char *x, char *room, size_t n, WORD from, WORD to)
{
    const WORD mask = (WORD)-1 >> 1, width = (WORD)(to - from);
    if (!NAME(any_within)(x, n, mask, from, width))
        return x;
    for (size_t i = 0; i < n; i++) {
        const WORD code = NAME(load)(x, i);
        const bool is_within = (WORD)((code & mask) - from) < width;
        NAME(store)(room, i, is_within ? (WORD)((code & ~mask) | to) : code);
    }
    return room;
}

#undef WORD
#undef NAME
