/*
 * scaled_support.h - what the tests of scaled conversions share
 *
 * SPDX-License-Identifier: MIT
 *
 * The expected results are worked out from the definitions: an element is the
 * code whose value times the scale is nearest to the source, found by comparing
 * the source with the midpoints of the element format times the scale.  Those
 * products have at most 12 + 28 significant bits and lie far inside double's
 * range, so that arithmetic on doubles is exact here.
 */
#ifndef FPCONV_TESTS_SCALED_SUPPORT_H
#define FPCONV_TESTS_SCALED_SUPPORT_H

#include "fpconv/scaled.h"

#include "oracle.h"
#include "support.h"

enum { ROWS_MAX = 64, COLUMNS_MAX = 3100, CELLS_MAX = 70000, GUARD = 8 };

/* A matrix that is quantized and checked. */
extern struct matrix {
    fpconv_scheme scheme;
    size_t rows, columns;
    fpconv_format format; /* of the source */
    double values[CELLS_MAX];
    uint8_t source[CELLS_MAX * 8 + ROWS_MAX * 16 + 64];
    uint8_t codes[CELLS_MAX * 2 + ROWS_MAX * 16 + 64];
    uint8_t scales[CELLS_MAX * 4 + 64];
    uint8_t wide[CELLS_MAX * 8 + ROWS_MAX * 16 + 64];
} m;

/* The largest value of an element format, from its specification. */
double largest_of(fpconv_format element);

/* The value of a code. */
double value_of(fpconv_format element, uint64_t code);

/* The value half way between a code and the next, by the order of values. */
double midpoint_of(fpconv_format element, uint64_t index);

/* m.values, rounded to m.format, are quantized; scales, codes and the way back
 * are checked.  `skew` bytes off any alignment and between rows. */
void check_matrix(size_t skew);

/* The values as elements of the source format, where they are exact. */
void store_source(uint8_t *source, ptrdiff_t stride);

/* A scale of the matrix, by its place in m.scales. */
double scale_at(size_t index);

/* Is `scale` the f32 nearest to amax / largest, ties to even? */
void check_f32_scale(float scale, double amax, double largest);

/* One row of f32, with one scale. */
void quantize_block(const fpconv_scheme *scheme, const float *values, size_t n, uint8_t *codes,
                    uint8_t *scale);

/* What the data are like. */
enum kind { WEIGHTS, WIDE, TINY, HUGE_VALUES, POWERS, SPARSE, SPECIALS, BITS, KIND_COUNT };

/* Fills the matrix. */
void fill(enum kind kind, size_t rows, size_t columns, uint64_t seed);

/* A value of a kind of data. */
double random_value(enum kind kind, uint64_t *seed);

/* About `centre` in magnitude, times 2^(up to +-spread). */
double random_near(uint64_t *seed, double centre, int spread);

/* Any f32. */
double random_f32_bits(uint64_t *seed);

#endif /* FPCONV_TESTS_SCALED_SUPPORT_H */
