/*
 * overlap.h - do two ranges of memory share a byte?
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FPCONV_SRC_OVERLAP_H
#define FPCONV_SRC_OVERLAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool fp_ranges_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    const uintptr_t a_start = (uintptr_t)a;
    const uintptr_t b_start = (uintptr_t)b;
    return a_start >= b_start ? a_start - b_start < b_bytes : b_start - a_start < a_bytes;
}

#endif /* FPCONV_SRC_OVERLAP_H */
