/*
 * scale.c - the values of a format, exactly
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "doctor.h"

struct scale make_scale(fpconv_format format)
{
    struct scale s = {format,
                      fpconv_h5_type(format),
                      fpconv_format_size(format),
                      1u << (fpconv_format_bits(format) - 1),
                      0,
                      NULL};
    if (s.type < 0)
        fail("%s", fpconv_h5_last_error());
    s.value = allocate(s.sign_bit * sizeof(*s.value));
    for (unsigned code = 0; code < s.sign_bit; code++) {
        const double v = fpconv_decode(format, code, FPCONV_OCP);
        if (isfinite(v))
            s.value[s.count++] = v; /* the finite codes come first */
    }
    return s;
}

/* The index of the largest value that is not above a magnitude. */
static unsigned find_below(const struct scale *s, double magnitude)
{
    unsigned low = 0, high = s->count;
    while (high - low > 1) {
        const unsigned middle = low + (high - low) / 2;
        if (s->value[middle] <= magnitude)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Half way between a value and the next; above the largest, where the next would be. */
static double midpoint_above(const struct scale *s, unsigned index)
{
    const double step = index + 1 < s->count ? s->value[index + 1] - s->value[index]
                                             : s->value[index] - s->value[index - 1];
    return s->value[index] + step / 2;
}

bool is_right(const struct scale *s, double source, uint32_t code)
{
    const double stored = fpconv_decode(s->format, code, FPCONV_OCP);
    if (isnan(source)) /* any value, in a format without NaN */
        return isnan(stored) || fpconv_encode(s->format, NAN, FPCONV_OCP) == s->count - 1;
    const double magnitude = fabs(source);
    const unsigned below = find_below(s, magnitude);
    const double middle = midpoint_above(s, below);
    if (!isnan(stored) && signbit(stored) != signbit(source))
        return false;
    const bool may_go_up = magnitude >= middle;
    if (below + 1 == s->count && may_go_up)
        return !isfinite(stored) || fabs(stored) == s->value[below];
    return (magnitude <= middle && fabs(stored) == s->value[below]) ||
           (may_go_up && fabs(stored) == s->value[below + 1]);
}

double nearest(const struct scale *s, double source)
{
    const unsigned below = find_below(s, fabs(source));
    const bool up = below + 1 < s->count && fabs(source) > midpoint_above(s, below);
    return copysign(s->value[below + up], source);
}
