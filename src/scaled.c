/*
 * scaled.c - quantization with scales: the front door, and the walk over a matrix
 *
 * SPDX-License-Identifier: MIT
 *
 * A row is taken in strips that stay in the L1 cache.  A strip of quotients
 * value / scale becomes a strip of f32 that rounds as the exact quotients do
 * (fp_to_odd_f32), and that goes through the kernels of fpconv_convert and the
 * packing; dequantizing is the same backwards.  The schemes differ in which
 * elements share a scale and in how it is chosen and stored, and in nothing else.
 */
#include <stdbool.h>
#include <string.h>

#include "bits.h"
#include "cpu.h"
#include "overlap.h"
#include "scale.h"

/* A whole number of blocks, and of bytes when packed. */
enum { STRIP = 1024 };

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* -------------------------------------------------------------------------- */
/* What a scheme is                                                           */
/* -------------------------------------------------------------------------- */

static const struct scaling {
    const char *name;
    uint8_t scale_size;
    uint8_t block;
} scalings[FPCONV_SCALING_COUNT] = {
    [FPCONV_MX] = {"mx", sizeof(uint8_t), MX_BLOCK},
    [FPCONV_NVFP4] = {"nvfp4", sizeof(uint8_t), NVFP4_BLOCK},
    [FPCONV_PER_TENSOR] = {"per_tensor", sizeof(float), 0},
    [FPCONV_PER_ROW] = {"per_row", sizeof(float), 0},
    [FPCONV_PER_COLUMN] = {"per_column", sizeof(float), 0},
    [FPCONV_POW2_ROW] = {"pow2_row", sizeof(int16_t), 0},
    [FPCONV_POW2_COLUMN] = {"pow2_column", sizeof(int16_t), 0},
};

static bool is_known(fpconv_scaling scaling)
{
    return (unsigned)scaling < FPCONV_SCALING_COUNT;
}

static bool is_pow2(fpconv_scaling scaling)
{
    return scaling == FPCONV_POW2_ROW || scaling == FPCONV_POW2_COLUMN;
}

static bool is_per_column(fpconv_scaling scaling)
{
    return scaling == FPCONV_PER_COLUMN || scaling == FPCONV_POW2_COLUMN;
}

const char *fpconv_scaling_name(fpconv_scaling scaling)
{
    return is_known(scaling) ? scalings[scaling].name : NULL;
}

const char *fpconv_scale_rule_name(fpconv_scale_rule rule)
{
    static const char *const names[FPCONV_SCALE_RULE_COUNT] = {[FPCONV_SCALE_FLOOR] = "floor",
                                                               [FPCONV_SCALE_CEIL] = "ceil",
                                                               [FPCONV_SCALE_AMAX] = "amax",
                                                               [FPCONV_SCALE_GIVEN] = "given"};
    return (unsigned)rule < FPCONV_SCALE_RULE_COUNT ? names[rule] : NULL;
}

size_t fpconv_scaling_block(fpconv_scaling scaling)
{
    return is_known(scaling) ? scalings[scaling].block : 0;
}

size_t fpconv_scale_size(fpconv_scaling scaling)
{
    return is_known(scaling) ? scalings[scaling].scale_size : 0;
}

size_t fpconv_scale_count(fpconv_scaling scaling, size_t rows, size_t columns)
{
    if (!is_known(scaling))
        return 0;
    if (rows == 0 || columns == 0 || scaling == FPCONV_PER_TENSOR)
        return rows != 0 && columns != 0;
    if (is_per_column(scaling))
        return columns;
    const size_t block = scalings[scaling].block;
    const size_t blocks = block == 0 ? 1 : columns / block + (columns % block != 0);
    size_t count;
    return __builtin_mul_overflow(rows, blocks, &count) ? SIZE_MAX : count;
}

static bool has_element(fpconv_scaling scaling, fpconv_format element)
{
    switch (scaling) {
    case FPCONV_MX:
        return fpconv_format_size(element) == 1 && element != FPCONV_HIF8;
    case FPCONV_NVFP4:
        return element == FPCONV_E2M1;
    case FPCONV_PER_TENSOR:
    case FPCONV_PER_ROW:
    case FPCONV_PER_COLUMN:
        return fpconv_format_size(element) == 1;
    case FPCONV_POW2_ROW:
    case FPCONV_POW2_COLUMN:
        return element == FPCONV_F16;
    }
    return false;
}

static bool has_rule(fpconv_scaling scaling, fpconv_scale_rule rule)
{
    switch (rule) {
    case FPCONV_SCALE_FLOOR:
    case FPCONV_SCALE_CEIL:
        return scaling == FPCONV_MX;
    case FPCONV_SCALE_AMAX:
        return scaling != FPCONV_MX;
    case FPCONV_SCALE_GIVEN:
        return true;
    }
    return false;
}

static bool is_positive_finite(float value)
{
    const uint64_t bits = bits_load(&value, sizeof(value));
    return bits > 0 && bits < UINT32_C(0x7f800000);
}

/* The policy that rounds the elements. */
static fpconv_policy element_policy(const fpconv_scheme *scheme)
{
    return is_pow2(scheme->scaling) ? FPCONV_OCP : FPCONV_OCP_SAT;
}

/* -------------------------------------------------------------------------- */
/* Checks                                                                     */
/* -------------------------------------------------------------------------- */

struct matrix {
    size_t rows, columns;
    fpconv_format format;
    char *data;
    ptrdiff_t stride;
};

struct range {
    const char *start;
    size_t bytes;
};

static fpconv_status check_scheme(const fpconv_scheme *scheme)
{
    if (!scheme)
        return FPCONV_ERROR_NULL;
    if (!is_known(scheme->scaling))
        return FPCONV_ERROR_SCHEME;
    if (!fp_format_is_known(scheme->element))
        return FPCONV_ERROR_FORMAT;
    if (!has_element(scheme->scaling, scheme->element))
        return FPCONV_ERROR_UNSUPPORTED;
    if (scheme->scaling == FPCONV_NVFP4 && !is_positive_finite(scheme->tensor_scale))
        return FPCONV_ERROR_SCHEME;
    return FPCONV_OK;
}

static fpconv_status check_rule(const fpconv_scheme *scheme)
{
    const bool chosen = scheme->rule != FPCONV_SCALE_GIVEN;
    if (!has_rule(scheme->scaling, scheme->rule))
        return FPCONV_ERROR_SCHEME;
    if (chosen && is_pow2(scheme->scaling) && scheme->dot_length == 0)
        return FPCONV_ERROR_SCHEME;
    return FPCONV_OK;
}

/* The side that is not codes. */
static fpconv_status check_wide_format(fpconv_format format)
{
    if (!fp_format_is_known(format))
        return FPCONV_ERROR_FORMAT;
    return fpconv_format_size(format) > 1 ? FPCONV_OK : FPCONV_ERROR_UNSUPPORTED;
}

static size_t magnitude(ptrdiff_t stride)
{
    return stride < 0 ? (size_t)0 - (size_t)stride : (size_t)stride;
}

/* The bytes that a matrix spans; SIZE_MAX bytes if they do not fit in size_t. */
static struct range matrix_range(const struct matrix *m)
{
    const size_t row = fpconv_packed_size(m->format, m->columns);
    size_t before, bytes;
    if (row == SIZE_MAX || __builtin_mul_overflow(m->rows - 1, magnitude(m->stride), &before) ||
        __builtin_add_overflow(before, row, &bytes))
        return (struct range){m->data, SIZE_MAX};
    /* arithmetic on integers: the pointer may be invalid, or NULL */
    const uintptr_t first = (uintptr_t)m->data;
    return (struct range){(const char *)(m->stride < 0 ? first - before : first), bytes};
}

static bool rows_overlap(const struct matrix *m)
{
    return m->rows > 1 && magnitude(m->stride) < fpconv_packed_size(m->format, m->columns);
}

static bool ranges_overlap(const struct range *a, const struct range *b)
{
    return fp_ranges_overlap(a->start, a->bytes, b->start, b->bytes);
}

static fpconv_status check_buffers(const struct matrix *dst, const struct matrix *src,
                                   const struct range *scales)
{
    const struct range d = matrix_range(dst), s = matrix_range(src);
    if (d.bytes == SIZE_MAX || s.bytes == SIZE_MAX || scales->bytes == SIZE_MAX)
        return FPCONV_ERROR_SIZE;
    if (!dst->data || !src->data || !scales->start)
        return FPCONV_ERROR_NULL;
    if (rows_overlap(dst))
        return FPCONV_ERROR_STRIDE;
    if (ranges_overlap(&d, &s) || ranges_overlap(&d, scales) || ranges_overlap(&s, scales))
        return FPCONV_ERROR_OVERLAP;
    return FPCONV_OK;
}

static struct range scale_range(const fpconv_scheme *scheme, const struct matrix *m,
                                const void *scales)
{
    size_t bytes;
    const size_t count = fpconv_scale_count(scheme->scaling, m->rows, m->columns);
    if (__builtin_mul_overflow(count, scalings[scheme->scaling].scale_size, &bytes))
        bytes = SIZE_MAX;
    return (struct range){scales, bytes};
}

/* -------------------------------------------------------------------------- */
/* Scales in memory                                                           */
/* -------------------------------------------------------------------------- */

/* What the choice of a scale depends on, worked out once a call. */
struct chooser {
    const fpconv_scheme *scheme;
    bool given;
    struct fp_value largest;      /* finite element */
    struct fp_value tensor_scale; /* NVFP4 */
    struct fp_value unit;         /* NVFP4: 6 * tensor scale */
    int limit;                    /* POW2 */
    char *scales;
};

static struct chooser make_chooser(const fpconv_scheme *scheme, char *scales, bool given)
{
    struct chooser c = {.scheme = scheme, .given = given, .scales = scales};
    c.largest = fp_largest(scheme->element);
    if (scheme->scaling == FPCONV_NVFP4) {
        c.tensor_scale = fp_from_f32(scheme->tensor_scale);
        c.unit = fp_multiply(c.largest, c.tensor_scale);
    }
    if (is_pow2(scheme->scaling) && !given)
        c.limit = fp_pow2_limit(scheme->dot_length);
    return c;
}

static struct fp_value mx_scale(uint8_t code)
{
    return code == E8M0_NAN ? (struct fp_value){VALUE_NAN, false, 0, 0}
                            : fp_power_of_two(code - E8M0_BIAS);
}

static struct fp_value load_scale(const struct chooser *c, size_t index)
{
    const size_t size = scalings[c->scheme->scaling].scale_size;
    const uint64_t code = bits_load(c->scales + index * size, size);
    switch (c->scheme->scaling) {
    case FPCONV_MX:
        return mx_scale((uint8_t)code);
    case FPCONV_NVFP4:
        return fp_multiply(fp_unpack(FPCONV_E4M3, code, FPCONV_OCP), c->tensor_scale);
    case FPCONV_POW2_ROW:
    case FPCONV_POW2_COLUMN:
        return fp_power_of_two((int16_t)code);
    default:
        return fp_unpack(FPCONV_F32, code, FPCONV_OCP);
    }
}

/* Chooses scale `index` from the amax of its group and stores it, unless given. */
static void choose_scale(const struct chooser *c, size_t index, struct fp_value amax)
{
    const fpconv_scheme *scheme = c->scheme;
    const size_t size = scalings[scheme->scaling].scale_size;
    uint64_t code;
    float scale;
    if (c->given)
        return;
    switch (scheme->scaling) {
    case FPCONV_MX:
        code = fp_choose_mx(amax, scheme->element, scheme->rule);
        break;
    case FPCONV_NVFP4:
        code = fp_choose_nvfp4(amax, c->unit);
        break;
    case FPCONV_POW2_ROW:
    case FPCONV_POW2_COLUMN:
        code = (uint16_t)fp_choose_pow2(amax, c->limit);
        break;
    default:
        scale = fp_choose_f32(amax, c->largest);
        code = bits_load(&scale, sizeof(scale));
        break;
    }
    bits_store(c->scales + index * size, size, code);
}

/* -------------------------------------------------------------------------- */
/* Strips                                                                     */
/* -------------------------------------------------------------------------- */

/* The scale of the element in a row and column. */
static size_t scale_index(fpconv_scaling scaling, const struct matrix *m, size_t row, size_t column)
{
    const size_t block = scalings[scaling].block;
    if (block)
        return row * (m->columns / block + (m->columns % block != 0)) + column / block;
    if (is_per_column(scaling))
        return column;
    return scaling == FPCONV_PER_TENSOR ? 0 : row;
}

/* Up to STRIP values of one row as f64, which holds those of every source. */
struct strip {
    size_t n;
    uint64_t codes[STRIP];
};

static const uint64_t F64_INF = UINT64_C(0x7ff0000000000000);

static void load_strip(struct strip *strip, const struct matrix *src, size_t row, size_t column)
{
    strip->n = min_size(src->columns - column, STRIP);
    const char *start = src->data + (ptrdiff_t)row * src->stride +
                        (ptrdiff_t)(column * fp_formats[src->format].size);
    (void)fpconv_convert(FPCONV_F64, strip->codes, src->format, start, strip->n, FPCONV_OCP);
}

static uint64_t larger_magnitude(uint64_t amax, uint64_t code, bool finite_only)
{
    code &= INT64_MAX;
    return code > amax && (code < F64_INF || !finite_only) ? code : amax;
}

/* Encoded as f64: a NaN is larger than Inf, and Inf than all others. */
static uint64_t amax_of(const uint64_t *codes, size_t n, bool finite_only)
{
    uint64_t amax = 0;
    for (size_t i = 0; i < n; i++)
        amax = larger_magnitude(amax, codes[i], finite_only);
    return amax;
}

static struct fp_value from_f64(uint64_t code)
{
    return fp_unpack(FPCONV_F64, code, FPCONV_OCP);
}

static void divide(uint32_t *quotients, const uint64_t *codes, size_t n, struct fp_value scale)
{
    for (size_t i = 0; i < n; i++)
        quotients[i] = fp_to_odd_f32(fp_divide(from_f64(codes[i]), scale));
}

static void store_codes(const struct chooser *c, const struct matrix *dst, size_t row,
                        size_t column, const uint32_t *quotients, size_t n)
{
    char *start = dst->data + (ptrdiff_t)row * dst->stride +
                  (ptrdiff_t)fpconv_packed_size(dst->format, column);
    (void)fpconv_convert_to_packed(dst->format, start, FPCONV_F32, quotients, n,
                                   element_policy(c->scheme));
}

/* -------------------------------------------------------------------------- */
/* Quantizing                                                                 */
/* -------------------------------------------------------------------------- */

/* Blocks `first` on of a matrix, from a strip. */
static void quantize_strip(const struct chooser *c, const struct strip *strip, size_t first,
                           uint32_t *quotients)
{
    const size_t block = scalings[c->scheme->scaling].block;
    for (size_t i = 0; i < strip->n; i += block, first++) {
        const size_t n = min_size(strip->n - i, block);
        choose_scale(c, first, from_f64(amax_of(strip->codes + i, n, false)));
        divide(quotients + i, strip->codes + i, n, load_scale(c, first));
    }
}

static void quantize_blocks(const struct chooser *c, const struct matrix *dst,
                            const struct matrix *src)
{
    struct strip strip;
    _Alignas(64) uint32_t quotients[STRIP];
    for (size_t row = 0; row < src->rows; row++)
        for (size_t column = 0; column < src->columns; column += STRIP) {
            load_strip(&strip, src, row, column);
            quantize_strip(c, &strip, scale_index(c->scheme->scaling, src, row, column), quotients);
            store_codes(c, dst, row, column, quotients, strip.n);
        }
}

/* MX from formats that f32 holds: whole groups of blocks through the kernel, the
 * rest filled up with zeros, and what the kernel leaves by quantize_strip. */

enum { MX_GROUP = 4 * MX_BLOCK };

/* Codes, one to a byte, and scales of up to STRIP values. */
static void quantize_f32_strip(const struct chooser *c, uint8_t *codes, const char *values,
                               size_t n, size_t first)
{
    const fpconv_format element = c->scheme->element;
    fp_mx_quantize *const kernel = fp_cpu_blocks()->mx_quantize[element];
    const bool ceil = c->scheme->rule == FPCONV_SCALE_CEIL;
    uint8_t scales[STRIP / MX_BLOCK];
    const size_t whole = n / MX_GROUP * MX_GROUP;
    uint32_t unusual = kernel(codes, scales, values, whole / MX_BLOCK, ceil);
    if (n > whole) {
        _Alignas(64) float rest[MX_GROUP] = {0};
        memcpy(rest, values + whole * sizeof(float), (n - whole) * sizeof(float));
        unusual |= kernel(codes + whole, scales + whole / MX_BLOCK, rest, MX_GROUP / MX_BLOCK, ceil)
                   << whole / MX_BLOCK;
    }
    memcpy(c->scales + first, scales, (n + MX_BLOCK - 1) / MX_BLOCK);
    for (; unusual; unusual &= unusual - 1) {
        const size_t block = (size_t)__builtin_ctz(unusual), start = block * MX_BLOCK;
        struct strip strip = {.n = min_size(n - start, MX_BLOCK)};
        uint32_t quotients[MX_BLOCK];
        (void)fpconv_convert(FPCONV_F64, strip.codes, FPCONV_F32, values + start * sizeof(float),
                             strip.n, FPCONV_OCP);
        quantize_strip(c, &strip, first + block, quotients);
        (void)fpconv_convert(element, codes + start, FPCONV_F32, quotients, strip.n,
                             element_policy(c->scheme));
    }
}

static void quantize_mx(const struct chooser *c, const struct matrix *dst, const struct matrix *src)
{
    const size_t size = fp_formats[src->format].size;
    _Alignas(64) uint8_t codes[STRIP];
    _Alignas(64) float values[STRIP];
    for (size_t row = 0; row < src->rows; row++)
        for (size_t column = 0; column < src->columns; column += STRIP) {
            const size_t n = min_size(src->columns - column, STRIP);
            const char *start =
                src->data + (ptrdiff_t)row * src->stride + (ptrdiff_t)(column * size);
            char *packed = dst->data + (ptrdiff_t)row * dst->stride +
                           (ptrdiff_t)fpconv_packed_size(dst->format, column);
            if (src->format != FPCONV_F32) {
                (void)fpconv_convert(FPCONV_F32, values, src->format, start, n, FPCONV_OCP);
                start = (const char *)values;
            }
            quantize_f32_strip(c, codes, start, n, scale_index(FPCONV_MX, src, row, column));
            (void)fpconv_pack(dst->format, packed, codes, n);
        }
}

static uint64_t amax_of_rows(const struct matrix *src, size_t first, size_t rows)
{
    struct strip strip;
    uint64_t amax = 0;
    for (size_t row = first; row < first + rows; row++)
        for (size_t column = 0; column < src->columns; column += STRIP) {
            load_strip(&strip, src, row, column);
            amax = larger_magnitude(amax, amax_of(strip.codes, strip.n, true), true);
        }
    return amax;
}

/* `rows` rows that share scale `index` */
static void quantize_rows(const struct chooser *c, const struct matrix *dst,
                          const struct matrix *src, size_t first, size_t rows, size_t index)
{
    struct strip strip;
    _Alignas(64) uint32_t quotients[STRIP];
    if (!c->given)
        choose_scale(c, index, from_f64(amax_of_rows(src, first, rows)));
    const struct fp_value scale = load_scale(c, index);
    for (size_t row = first; row < first + rows; row++)
        for (size_t column = 0; column < src->columns; column += STRIP) {
            load_strip(&strip, src, row, column);
            divide(quotients, strip.codes, strip.n, scale);
            store_codes(c, dst, row, column, quotients, strip.n);
        }
}

static void choose_column_scales(const struct chooser *c, const struct matrix *src, size_t column)
{
    struct strip strip;
    uint64_t amax[STRIP] = {0};
    const size_t n = min_size(src->columns - column, STRIP);
    for (size_t row = 0; row < src->rows; row++) {
        load_strip(&strip, src, row, column);
        for (size_t i = 0; i < n; i++)
            amax[i] = larger_magnitude(amax[i], strip.codes[i], true);
    }
    for (size_t i = 0; i < n; i++)
        choose_scale(c, column + i, from_f64(amax[i]));
}

static void quantize_columns(const struct chooser *c, const struct matrix *dst,
                             const struct matrix *src)
{
    struct strip strip;
    _Alignas(64) uint32_t quotients[STRIP];
    for (size_t column = 0; column < src->columns; column += STRIP) {
        if (!c->given)
            choose_column_scales(c, src, column);
        for (size_t row = 0; row < src->rows; row++) {
            load_strip(&strip, src, row, column);
            for (size_t i = 0; i < strip.n; i++)
                divide(quotients + i, strip.codes + i, 1, load_scale(c, column + i));
            store_codes(c, dst, row, column, quotients, strip.n);
        }
    }
}

static void quantize(const struct chooser *c, const struct matrix *dst, const struct matrix *src)
{
    const fpconv_scaling scaling = c->scheme->scaling;
    const bool has_kernel =
        scaling == FPCONV_MX && fp_cpu_blocks()->mx_quantize[c->scheme->element];
    if (has_kernel && !c->given && src->format != FPCONV_F64)
        quantize_mx(c, dst, src);
    else if (scalings[scaling].block)
        quantize_blocks(c, dst, src);
    else if (is_per_column(scaling))
        quantize_columns(c, dst, src);
    else if (scaling == FPCONV_PER_TENSOR)
        quantize_rows(c, dst, src, 0, src->rows, 0);
    else
        for (size_t row = 0; row < src->rows; row++)
            quantize_rows(c, dst, src, row, 1, row);
}

/* -------------------------------------------------------------------------- */
/* Dequantizing                                                               */
/* -------------------------------------------------------------------------- */

/* How many columns, from the first of a strip of n, share a scale. */
static size_t scale_run(fpconv_scaling scaling, size_t n)
{
    const size_t block = scalings[scaling].block;
    return block ? block : is_per_column(scaling) ? 1 : n;
}

static void multiply(fpconv_format format, char *dst, const uint32_t *values, size_t n,
                     struct fp_value scale)
{
    const size_t size = fp_formats[format].size;
    for (size_t i = 0; i < n; i++) {
        const struct fp_value value = fp_unpack(FPCONV_F32, values[i], FPCONV_OCP);
        bits_store(dst + i * size, size, fp_pack(format, fp_multiply(value, scale), FPCONV_OCP));
    }
}

/*
 * Products of MX elements and ordinary scales are exact in f32, so that another
 * format is reached from there.  `values` are those of the elements, and may be
 * the destination.
 */
static void dequantize_mx_strip(const uint8_t *scales, fpconv_format format, char *dst,
                                char *values, size_t n)
{
    const size_t size = fp_formats[format].size;
    const size_t whole = n / MX_BLOCK;
    uint32_t unusual = fp_cpu_blocks()->mx_products(values, scales, whole);
    if (dst != values)
        (void)fpconv_convert(format, dst, FPCONV_F32, values, whole * MX_BLOCK, FPCONV_OCP);
    if (n % MX_BLOCK)
        unusual |= UINT32_C(1) << whole;
    for (; unusual; unusual &= unusual - 1) {
        const size_t block = (size_t)__builtin_ctz(unusual), start = block * MX_BLOCK;
        const size_t count = min_size(n - start, MX_BLOCK);
        uint32_t elements[MX_BLOCK];
        memcpy(elements, values + start * sizeof(float), count * sizeof(float));
        multiply(format, dst + start * size, elements, count, mx_scale(scales[block]));
    }
}

static void dequantize_strip(const struct chooser *c, const struct matrix *dst,
                             const struct matrix *src, size_t row, size_t column)
{
    const fpconv_scaling scaling = c->scheme->scaling;
    const size_t n = min_size(src->columns - column, STRIP);
    const size_t run = scale_run(scaling, n);
    const size_t size = fp_formats[dst->format].size;
    const char *codes = src->data + (ptrdiff_t)row * src->stride +
                        (ptrdiff_t)fpconv_packed_size(src->format, column);
    char *start = dst->data + (ptrdiff_t)row * dst->stride + (ptrdiff_t)(column * size);
    const bool has_kernel = scaling == FPCONV_MX && fp_cpu_blocks()->mx_products;
    _Alignas(64) uint32_t buffer[STRIP];
    char *values = has_kernel && dst->format == FPCONV_F32 ? start : (char *)buffer;
    (void)fpconv_convert_from_packed(FPCONV_F32, values, src->format, codes, n, FPCONV_OCP);
    if (has_kernel) {
        const size_t first = scale_index(scaling, src, row, column);
        dequantize_mx_strip((const uint8_t *)c->scales + first, dst->format, start, values, n);
        return;
    }
    for (size_t i = 0; i < n; i += run)
        multiply(dst->format, start + i * size, buffer + i, min_size(n - i, run),
                 load_scale(c, scale_index(scaling, src, row, column + i)));
}

/* -------------------------------------------------------------------------- */
/* Exported functions                                                         */
/* -------------------------------------------------------------------------- */

/* Sources are only read: the const is given back where it was taken. */
static char *writable(const void *p)
{
    char *result;
    memcpy(&result, &p, sizeof(result));
    return result;
}

fpconv_status fpconv_quantize(const fpconv_scheme *scheme, size_t rows, size_t columns, void *codes,
                              ptrdiff_t codes_stride, void *scales, fpconv_format src_format,
                              const void *src, ptrdiff_t src_stride)
{
    fpconv_status status = check_scheme(scheme);
    if (status == FPCONV_OK)
        status = check_rule(scheme);
    if (status == FPCONV_OK)
        status = check_wide_format(src_format);
    if (status != FPCONV_OK || rows == 0 || columns == 0)
        return status;
    const struct matrix from = {rows, columns, src_format, writable(src), src_stride};
    const struct matrix to = {rows, columns, scheme->element, codes, codes_stride};
    const struct range scale_bytes = scale_range(scheme, &from, scales);
    status = check_buffers(&to, &from, &scale_bytes);
    if (status != FPCONV_OK)
        return status;
    const struct chooser c = make_chooser(scheme, scales, scheme->rule == FPCONV_SCALE_GIVEN);
    quantize(&c, &to, &from);
    return FPCONV_OK;
}

fpconv_status fpconv_dequantize(const fpconv_scheme *scheme, size_t rows, size_t columns,
                                fpconv_format dst_format, void *dst, ptrdiff_t dst_stride,
                                const void *codes, ptrdiff_t codes_stride, const void *scales)
{
    fpconv_status status = check_scheme(scheme);
    if (status == FPCONV_OK)
        status = check_wide_format(dst_format);
    if (status != FPCONV_OK || rows == 0 || columns == 0)
        return status;
    const struct matrix from = {rows, columns, scheme->element, writable(codes), codes_stride};
    const struct matrix to = {rows, columns, dst_format, dst, dst_stride};
    const struct range scale_bytes = scale_range(scheme, &from, scales);
    status = check_buffers(&to, &from, &scale_bytes);
    if (status != FPCONV_OK)
        return status;
    const struct chooser c = make_chooser(scheme, writable(scales), true);
    for (size_t row = 0; row < rows; row++)
        for (size_t column = 0; column < columns; column += STRIP)
            dequantize_strip(&c, &to, &from, row, column);
    return FPCONV_OK;
}

fpconv_status fpconv_tensor_scale(float *tensor_scale, size_t rows, size_t columns,
                                  fpconv_format src_format, const void *src, ptrdiff_t src_stride)
{
    const struct matrix from = {rows, columns, src_format, writable(src), src_stride};
    const fpconv_status status = check_wide_format(src_format);
    if (status != FPCONV_OK)
        return status;
    const bool empty = rows == 0 || columns == 0;
    if (!empty && matrix_range(&from).bytes == SIZE_MAX)
        return FPCONV_ERROR_SIZE;
    if (!tensor_scale || (!empty && !src))
        return FPCONV_ERROR_NULL;
    const struct fp_value largest = fp_multiply(fp_largest(FPCONV_E2M1), fp_largest(FPCONV_E4M3));
    *tensor_scale = fp_choose_f32(from_f64(empty ? 0 : amax_of_rows(&from, 0, rows)), largest);
    return FPCONV_OK;
}
