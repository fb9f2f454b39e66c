/*
 * hif8_tables.h - hif8 as tables for look-ups, made from the codec
 *
 * SPDX-License-Identifier: MIT
 *
 * hif8's fields move with the exponent, so that what the other formats do by
 * shifting is looked up here: for rounding by the value's exponent, for decoding
 * by the code.
 */
#ifndef FPCONV_SRC_KERNELS_HIF8_TABLES_H
#define FPCONV_SRC_KERNELS_HIF8_TABLES_H

#include <stdatomic.h>
#include <stdint.h>

#include "fpconv/fpconv.h"

enum {
    HIF8_TABLE_EXPONENTS = 64, /* of which 40 are looked up */
    HIF8_TABLE_ORIGIN = -24,   /* exponent of the first entry: all below round to zero */
    HIF8_TABLE_CODES = 128,
    HIF8_GROUP = 8, /* codes that differ in their lower 3 bits */
    HIF8_GROUPS = HIF8_TABLE_CODES / HIF8_GROUP,
    HIF8_POSITION_MAX = 126,
    /* Exponents are counted from here where they are those of lines (hif8.h), of which the
     * first is of all that round to zero. */
    HIF8_LINES_ORIGIN = HIF8_TABLE_ORIGIN - 1,
    HIF8_LINES_END = 16 - HIF8_LINES_ORIGIN, /* what lies beyond is alike */
    /* Positions are counted from here where sums of bytes are to stay below 256. */
    HIF8_PLACE_ORIGIN = 64,
};

/*
 * For look-ups by vector.
 *
 * The codes, without sign, in the order of their values: zero has position 0, the largest
 * finite value 126.  Positions of neighbours differ by 1 wherever the number of fraction
 * bits changes, too, so that a carry is right by itself.
 */
struct hif8_tables {
    /* By exponent: the position of that power of two, and how many positions there are up to
     * the next one. */
    uint8_t position[HIF8_TABLE_EXPONENTS], steps[HIF8_TABLE_EXPONENTS];
    /* By position, the code. */
    uint8_t code[HIF8_TABLE_CODES];
    /* By line (hif8.h): steps, and what the position, counted from HIF8_PLACE_ORIGIN, is more
     * than as many steps to a binade make it from HIF8_LINES_ORIGIN on. */
    uint8_t line_steps[16], line_offset[16];
    /* By place / HIF8_GROUP, modulo their number, where `place` is the position counted from
     * HIF8_PLACE_ORIGIN: code ^ place, which the other bits do not change. */
    uint8_t flip_of_place[HIF8_GROUPS];
    /* By f16's exponent and the upper 3 bits of its fraction, from 2^-16 on; and by the upper
     * 7 of the 8 bits that smaller ones have. */
    uint8_t from_f16[256], from_small_f16[128];
    /* By destination (f64, f32, f16, bf16), policy and code without sign: the high
     * and the low byte of the value's top 16 bits. */
    uint8_t high[4][FPCONV_POLICY_COUNT][HIF8_TABLE_CODES];
    uint8_t low[4][FPCONV_POLICY_COUNT][HIF8_TABLE_CODES];
    /* By destination (f64 or f32) and the code's upper bits: the top 16 bits of a finite
     * value other than zero are
     *
     *   base + (lower bits ^ flip) * factor,
     *
     * since what they are made of, the exponent's last bits and the fraction, lies side
     * by side in those, too, if negative exponents are counted from the other end. */
    struct hif8_group_tables {
        uint8_t flip[HIF8_GROUPS], factor[HIF8_GROUPS];
        uint8_t base_high[HIF8_GROUPS], base_low[HIF8_GROUPS];
    } groups[2];
};

extern _Atomic(const struct hif8_tables *) hif8_tables_made;

/* Makes them, if no other thread has begun to; NULL while another is making them. */
const struct hif8_tables *hif8_tables_make(void);

/* NULL before they are made. */
static inline const struct hif8_tables *hif8_tables_peek(void)
{
    return atomic_load_explicit(&hif8_tables_made, memory_order_acquire);
}

static inline const struct hif8_tables *hif8_tables_get(void)
{
    const struct hif8_tables *made = hif8_tables_peek();
    return made ? made : hif8_tables_make();
}

/* For look-ups of one element at a time. */
struct hif8_scalar_tables {
    uint8_t code[1 << 16]; /* by a bf16; 128 of them share an exponent, two cache lines */
    uint16_t half[2][FPCONV_POLICY_COUNT][256]; /* f16, bf16 */
    uint32_t f32[FPCONV_POLICY_COUNT][256];
    uint64_t f64[FPCONV_POLICY_COUNT][256];
};

/* As for the tables above. */
extern _Atomic(const struct hif8_scalar_tables *) hif8_scalar_tables_made;
const struct hif8_scalar_tables *hif8_scalar_tables_make(void);

/* NULL before they are made. */
static inline const struct hif8_scalar_tables *hif8_scalar_tables_peek(void)
{
    return atomic_load_explicit(&hif8_scalar_tables_made, memory_order_acquire);
}

static inline const struct hif8_scalar_tables *hif8_scalar_tables_get(void)
{
    const struct hif8_scalar_tables *made = hif8_scalar_tables_peek();
    return made ? made : hif8_scalar_tables_make();
}

#endif /* FPCONV_SRC_KERNELS_HIF8_TABLES_H */
