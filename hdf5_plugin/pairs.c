/*
 * pairs.c - the table of pairs
 *
 * SPDX-License-Identifier: MIT
 */
#include "plugin.h"

struct h5_pair fp_h5_pairs[SIDE_COUNT][SIDE_COUNT];

static bool is_wide(const struct h5_side *side)
{
    return side->format == FPCONV_F64 || side->format == FPCONV_F32;
}

/* Every two formats, but not f32 and f64 with each other, which HDF5 does well. */
static bool is_pair(const struct h5_side *src, const struct h5_side *dst)
{
    return src->format != dst->format && !(is_wide(src) && is_wide(dst));
}

struct h5_pair *fp_h5_find_pair(const struct h5_side *src, const struct h5_side *dst)
{
    struct h5_pair *pair = &fp_h5_pairs[dst - fp_h5_sides][src - fp_h5_sides];
    return pair->src ? pair : NULL;
}

void fp_h5_make_pairs(void)
{
    for (unsigned d = 0; d < SIDE_COUNT; d++)
        for (unsigned s = 0; s < SIDE_COUNT; s++)
            if (is_pair(&fp_h5_sides[s], &fp_h5_sides[d]) && !fp_h5_pairs[d][s].src) {
                fp_h5_pairs[d][s].src = &fp_h5_sides[s];
                fp_h5_pairs[d][s].dst = &fp_h5_sides[d];
            }
}
