/*
 * oracle.h - what every conversion returns, worked out a second time
 *
 * SPDX-License-Identifier: MIT
 *
 * Independent of src/: written from the specification with a table of its own,
 * and by another method.  The codec shifts a significand and rounds it; here
 * the exact value is compared with the two neighbouring values of the
 * destination and with their midpoint, as integers times powers of two.  No
 * floating-point arithmetic.
 */
#ifndef FPCONV_TESTS_ORACLE_H
#define FPCONV_TESTS_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

#include "fpconv/fpconv.h"

/* The code that the element `code` of `src` becomes in `dst`. */
uint64_t oracle_convert(fpconv_format dst, fpconv_format src, uint64_t code, fpconv_policy policy);

/* The non-negative finite values of a format in increasing order have the
 * indices 0 to oracle_last_index().  The index is the code, but in hif8. */
uint64_t oracle_last_index(fpconv_format format, fpconv_policy policy);
uint64_t oracle_code_of_index(fpconv_format format, uint64_t index);

/* The code in f32 or f64 of the value with an index, and of the midpoint
 * between it and the next one.  After the last value comes the one that the
 * format would have if its exponents went on.  False if `wide` has no code
 * that is exactly this number. */
bool oracle_value(fpconv_format format, uint64_t index, fpconv_format wide, uint64_t *code);
bool oracle_midpoint(fpconv_format format, uint64_t index, fpconv_format wide, uint64_t *code);

/* The bits of a code that carry information. */
int oracle_bits(fpconv_format format);

#endif /* FPCONV_TESTS_ORACLE_H */
