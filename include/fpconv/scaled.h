/*
 * fpconv/scaled.h - quantization with scales: MX, NVFP4, per tensor, row or
 * column, and power-of-two rows
 *
 * SPDX-License-Identifier: MIT
 *
 * A scaled matrix is stored as codes of a narrow element format and scales,
 * each shared by a block, a row, a column or the whole; an element's value is
 * its code's value times its scale.  The functions here choose the scales,
 * divide by them and round, and multiply back.
 *
 * The contract is that of fpconv.h: no allocation, nothing kept, nothing
 * written when an error is returned, any alignment, and results that depend on
 * the values alone.  In particular an element is the nearest code of the exact
 * quotient value / scale, rounded once: there is no reciprocal and no
 * intermediate rounding, whatever the magnitudes.  A dequantized value is the
 * exact product, rounded once to the destination.
 *
 * Matrices are row-major with a byte stride between rows.  A tensor of more
 * dimensions is a matrix of its last axis by all the others.
 */
#ifndef FPCONV_SCALED_H
#define FPCONV_SCALED_H

#include "fpconv/fpconv.h"
#include "fpconv/pack.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The schemes.  In all of them the amax of a group is its largest magnitude.
 *
 * FPCONV_MX: OCP Microscaling Formats 1.0.  Blocks of 32 along a row, the last
 *   one of a row being shorter where the row's length is not a multiple of 32.
 *   Elements e4m3, e5m2 (mxfp8), e3m2, e2m3 (mxfp6) or e2m1 (mxfp4), rounded
 *   under FPCONV_OCP_SAT.  One E8M0 byte a block: 2^(byte - 127), 0xff is NaN.
 *   The exponent is that of the scale rule below, held within -127 and 127.
 *   All zero: byte 0x00.  A NaN anywhere in the block: byte 0xff, codes 0; the
 *   whole block is NaN.  Inf counts as 2^128 for the scale, and as an element it
 *   saturates; read back as f32 it is Inf again.
 *
 * FPCONV_NVFP4: blocks of 16 along a row, e2m1 elements rounded under
 *   FPCONV_OCP_SAT, an e4m3 scale a block and one f32 tensor scale; the value is
 *   code * block scale * tensor scale.  The tensor scale is an input: see
 *   fpconv_tensor_scale.  The block scale is the e4m3 nearest to
 *   amax / (6 * tensor scale), ties to even, at most 448.  Where that is 0 all
 *   codes are +-0.  A NaN in the block: scale 0x7f, codes 0; the whole block is
 *   NaN.  Inf saturates: scale 448, code +-6.
 *
 * FPCONV_PER_TENSOR, FPCONV_PER_ROW, FPCONV_PER_COLUMN: one f32 scale for all, a
 *   row, or a column.  Elements e4m3, e5m2, e3m2, e2m3, e2m1 or hif8, rounded
 *   under FPCONV_OCP_SAT.  The scale is amax / largest finite element, rounded
 *   once to f32, ties to even, and held within 2^-126 (so that it is normal) and
 *   the largest f32; 1 if amax is 0.  amax is that of the finite values: Inf and
 *   NaN become elements as FPCONV_OCP_SAT has it.
 *
 * FPCONV_POW2_ROW, FPCONV_POW2_COLUMN: f16 elements, rounded under FPCONV_OCP,
 *   and one power of two a row or column, stored as the int16_t e of 2^e.  It is
 *   chosen for a dot product of `dot_length` terms: with t the largest integer
 *   for which dot_length * 4^t <= 65504, e is the least exponent that makes every
 *   finite element, after rounding, smaller than 2^t in magnitude.  The product
 *   of a row and a column so scaled, and every partial sum of it, is below 65504
 *   in magnitude, and so is finite in f16.  A bf16 value is exact as an element
 *   where its quotient is at least 2^-14, f16's smallest normal; below that the
 *   error is at most 2^-25 * 2^e, which is at most 2^-(24 + t) * amax.  (f32 values
 *   are rounded to f16's 11 bits besides.)  Inf and NaN stay what they are.  e is 0
 *   if amax is 0.
 */
typedef enum fpconv_scaling {
    FPCONV_MX,
    FPCONV_NVFP4,
    FPCONV_PER_TENSOR,
    FPCONV_PER_ROW,
    FPCONV_PER_COLUMN,
    FPCONV_POW2_ROW,
    FPCONV_POW2_COLUMN
} fpconv_scaling;

/** The number of schemes: valid values are 0 to FPCONV_SCALING_COUNT - 1. */
#define FPCONV_SCALING_COUNT 7

/**
 * How a scale is chosen.
 *
 * FPCONV_SCALE_FLOOR (MX only): 2^(floor(log2 amax) - e_max), e_max being the
 *   exponent of the largest finite element; the rule of the MX specification,
 *   section 6.3.  Quotients between the largest element and 2^(e_max + 1)
 *   saturate.
 * FPCONV_SCALE_CEIL (MX only): 2^ceil(log2(amax / largest finite element)), the
 *   least power of two with which nothing saturates.
 * FPCONV_SCALE_AMAX (all but MX): from the amax, as described at the schemes.
 * FPCONV_SCALE_GIVEN (any scheme): the scales are an input of fpconv_quantize.
 *   A scale of 0 makes every finite element +-0, a NaN scale makes all codes 0,
 *   and other scales, Inf and negative f32 ones included, divide as in IEEE 754.
 */
typedef enum fpconv_scale_rule {
    FPCONV_SCALE_FLOOR,
    FPCONV_SCALE_CEIL,
    FPCONV_SCALE_AMAX,
    FPCONV_SCALE_GIVEN
} fpconv_scale_rule;

/** The number of rules: valid values are 0 to FPCONV_SCALE_RULE_COUNT - 1. */
#define FPCONV_SCALE_RULE_COUNT 4

/** What a scaled matrix is made of.  Members that the scheme has no use for are
 * ignored. */
typedef struct fpconv_scheme {
    fpconv_scaling scaling;
    fpconv_format element;  /**< the format of the codes */
    fpconv_scale_rule rule; /**< not used by fpconv_dequantize */
    float tensor_scale;     /**< NVFP4: finite and positive */
    size_t dot_length;      /**< POW2: terms of the dot product, at least 1; not used by
                                 fpconv_dequantize or with FPCONV_SCALE_GIVEN */
} fpconv_scheme;

/** "mx", "nvfp4", "per_tensor", ...; NULL if unknown. */
FPCONV_API const char *fpconv_scaling_name(fpconv_scaling scaling);

/** "floor", "ceil", "amax" or "given"; NULL if unknown. */
FPCONV_API const char *fpconv_scale_rule_name(fpconv_scale_rule rule);

/** Columns that share a scale: 32, 16, or 0 where a block is no fixed number. */
FPCONV_API size_t fpconv_scaling_block(fpconv_scaling scaling);

/**
 * Bytes of one stored scale: 1 (MX, NVFP4), 4 (f32) or 2 (int16_t); 0 if
 * unknown.  Scales of more than one byte are in the machine's byte order, at any
 * alignment.
 */
FPCONV_API size_t fpconv_scale_size(fpconv_scaling scaling);

/**
 * The number of scales of a matrix: MX and NVFP4 rows * ceil(columns / block),
 * row after row; else 1, rows or columns.  0 for an unknown scheme, SIZE_MAX if
 * the number does not fit in size_t.
 */
FPCONV_API size_t fpconv_scale_count(fpconv_scaling scaling, size_t rows, size_t columns);

/**
 * Quantizes a matrix.
 *
 * `src` holds `rows` rows of `columns` contiguous elements of `src_format` (f64,
 * f32, f16 or bf16), row r at src + r * src_stride bytes.  `codes` receives for
 * each row, at codes + r * codes_stride, fpconv_packed_size(element, columns)
 * bytes of packed codes.  `scales` receives fpconv_scale_count() scales of
 * fpconv_scale_size() bytes, or, with FPCONV_SCALE_GIVEN, holds them.
 *
 * Strides may be negative or larger than a row, and src_stride may be smaller.
 * None of the three ranges may overlap another.  Where rows or columns is 0
 * nothing is read or written and the pointers may be NULL.
 *
 * Returns FPCONV_OK, or why nothing was written: FPCONV_ERROR_SCHEME,
 * _UNSUPPORTED (an element format that the scheme does not have, or another
 * `src_format`), _FORMAT, _SIZE, _NULL, _STRIDE (rows of codes overlap) or
 * _OVERLAP.
 */
FPCONV_API fpconv_status fpconv_quantize(const fpconv_scheme *scheme, size_t rows, size_t columns,
                                         void *codes, ptrdiff_t codes_stride, void *scales,
                                         fpconv_format src_format, const void *src,
                                         ptrdiff_t src_stride);

/**
 * The inverse: element * scale, exact and rounded once to `dst_format` (f64,
 * f32, f16 or bf16) under FPCONV_OCP.  Arguments and errors as fpconv_quantize,
 * the other way round.
 */
FPCONV_API fpconv_status fpconv_dequantize(const fpconv_scheme *scheme, size_t rows, size_t columns,
                                           fpconv_format dst_format, void *dst,
                                           ptrdiff_t dst_stride, const void *codes,
                                           ptrdiff_t codes_stride, const void *scales);

/**
 * The tensor scale that NVFP4 uses for a matrix, into *tensor_scale: the amax of
 * the finite values / (6 * 448), rounded once to f32, held within 2^-126 and the
 * largest f32, and 1 if that amax is 0.
 *
 * `src` and errors as in fpconv_quantize.
 */
FPCONV_API fpconv_status fpconv_tensor_scale(float *tensor_scale, size_t rows, size_t columns,
                                             fpconv_format src_format, const void *src,
                                             ptrdiff_t src_stride);

#ifdef __cplusplus
}
#endif

#endif /* FPCONV_SCALED_H */
