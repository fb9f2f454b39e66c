/*
 * test_scaled.c - scaled conversions against exact arithmetic
 *
 * SPDX-License-Identifier: MIT
 *
 * The expected results are worked out from the definitions: an element is the
 * code whose value times the scale is nearest to the source, found by comparing
 * the source with the midpoints of the element format times the scale.  Those
 * products have at most 12 + 28 significant bits and lie far inside double's
 * range, so that arithmetic on doubles is exact here.
 */
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "fpconv/scaled.h"

#include "oracle.h"
#include "support.h"

static const fpconv_format mx_elements[] = {FPCONV_E4M3, FPCONV_E5M2, FPCONV_E3M2, FPCONV_E2M3,
                                            FPCONV_E2M1};
static const fpconv_format f32_scaled_elements[] = {FPCONV_E4M3, FPCONV_E5M2, FPCONV_E3M2,
                                                    FPCONV_E2M3, FPCONV_E2M1, FPCONV_HIF8};
static const fpconv_format wide_formats[] = {FPCONV_F64, FPCONV_F32, FPCONV_F16, FPCONV_BF16};

/* What the specifications say, once more. */
static double largest_of(fpconv_format element)
{
    switch (element) {
    case FPCONV_E4M3:
        return 448;
    case FPCONV_E5M2:
        return 57344;
    case FPCONV_E3M2:
        return 28;
    case FPCONV_E2M3:
        return 7.5;
    case FPCONV_E2M1:
        return 6;
    default:
        return 32768; /* hif8 */
    }
}

static int e_max_of(fpconv_format element)
{
    switch (element) {
    case FPCONV_E4M3:
        return 8;
    case FPCONV_E5M2:
        return 15;
    case FPCONV_E3M2:
        return 4;
    default:
        return 2; /* e2m3, e2m1 */
    }
}

/* -------------------------------------------------------------------------- */
/* The expected element                                                       */
/* -------------------------------------------------------------------------- */

static fpconv_policy policy_of(fpconv_format element)
{
    return element == FPCONV_F16 ? FPCONV_OCP : FPCONV_OCP_SAT;
}

/* Worked out once: there are many questions. */
static double midpoint_of(fpconv_format element, uint64_t index)
{
    static double midpoints[FPCONV_FORMAT_COUNT][0x7c00];
    if (midpoints[element][index] == 0) {
        uint64_t code;
        assert_true(oracle_midpoint(element, index, FPCONV_F64, &code));
        midpoints[element][index] = double_of(code);
    }
    return midpoints[element][index];
}

static double value_of(fpconv_format element, uint64_t code)
{
    return double_of(oracle_convert(FPCONV_F64, element, code, FPCONV_OCP));
}

static uint64_t sign_bit(fpconv_format element, bool negative)
{
    return negative ? UINT64_C(1) << (oracle_bits(element) - 1) : 0;
}

/* Is a nearer to the value after `index` than to that one? */
static bool is_above(fpconv_format element, uint64_t index, double a, double scale)
{
    const double boundary = midpoint_of(element, index) * scale;
    const bool ties_up = element == FPCONV_HIF8 || index % 2 == 1;
    return a > boundary || (a == boundary && ties_up);
}

/* value / scale, both finite, scale not 0 */
static uint64_t finite_element(fpconv_format element, double value, double scale)
{
    const bool negative = signbit(value) != signbit(scale);
    const double a = fabs(value), s = fabs(scale);
    const uint64_t last = oracle_last_index(element, FPCONV_OCP);
    uint64_t low = 0, high = last; /* the boundaries below low are passed */
    while (low < high) {
        const uint64_t middle = (low + high) / 2;
        if (is_above(element, middle, a, s))
            low = middle + 1;
        else
            high = middle;
    }
    if (element == FPCONV_HIF8)
        return low == 0 ? 0 : sign_bit(element, negative) | oracle_code_of_index(element, low);
    if (element == FPCONV_F16 && low == last && is_above(element, last, a, s))
        low = last + 1; /* Inf */
    return sign_bit(element, negative) | low;
}

static uint64_t expected_element(fpconv_format element, double value, double scale)
{
    const bool negative = signbit(value) != signbit(scale);
    if (isnan(scale))
        return 0;
    if (isnan(value))
        return oracle_convert(element, FPCONV_F64, code_of_double(value), policy_of(element));
    if (isinf(scale) && isinf(value))
        return oracle_convert(element, FPCONV_F64, 0x7ff8000000000000, policy_of(element));
    if (scale == 0 || isinf(scale))
        value = negative ? -0.0 : 0.0;
    else if (isinf(value))
        value = negative ? -INFINITY : INFINITY;
    else
        return finite_element(element, value, scale);
    return oracle_convert(element, FPCONV_F64, code_of_double(value), policy_of(element));
}

/* -------------------------------------------------------------------------- */
/* A matrix that is quantized and checked                                     */
/* -------------------------------------------------------------------------- */

enum { ROWS_MAX = 64, COLUMNS_MAX = 3100, CELLS_MAX = 70000, GUARD = 8 };

static struct {
    fpconv_scheme scheme;
    size_t rows, columns;
    fpconv_format format; /* of the source */
    double values[CELLS_MAX];
    uint8_t source[CELLS_MAX * 8 + ROWS_MAX * 16 + 64];
    uint8_t codes[CELLS_MAX * 2 + ROWS_MAX * 16 + 64];
    uint8_t scales[CELLS_MAX * 4 + 64];
    uint8_t wide[CELLS_MAX * 8 + ROWS_MAX * 16 + 64];
} m;

static size_t row_bytes(void)
{
    return (m.columns * (size_t)oracle_bits(m.scheme.element) + 7) / 8;
}

static uint64_t code_at(const uint8_t *row, size_t column)
{
    const size_t width = (size_t)oracle_bits(m.scheme.element);
    uint64_t code = 0;
    for (size_t j = 0; j < width; j++) {
        const size_t bit = column * width + j;
        if (m.scheme.element == FPCONV_F16)
            return load_code(row + 2 * column, 2);
        code |= (uint64_t)(row[bit / 8] >> bit % 8 & 1) << j;
    }
    return code;
}

static size_t scale_index(size_t row, size_t column)
{
    switch (m.scheme.scaling) {
    case FPCONV_MX:
        return row * ((m.columns + 31) / 32) + column / 32;
    case FPCONV_NVFP4:
        return row * ((m.columns + 15) / 16) + column / 16;
    case FPCONV_PER_TENSOR:
        return 0;
    case FPCONV_PER_ROW:
    case FPCONV_POW2_ROW:
        return row;
    case FPCONV_PER_COLUMN:
    case FPCONV_POW2_COLUMN:
        return column;
    }
    fail();
    return 0;
}

static double scale_at(size_t index)
{
    float f32;
    uint64_t code;
    switch (m.scheme.scaling) {
    case FPCONV_MX:
        code = m.scales[index];
        return code == 0xff ? (double)NAN : ldexp(1, (int)code - 127);
    case FPCONV_NVFP4:
        return value_of(FPCONV_E4M3, m.scales[index]) * (double)m.scheme.tensor_scale;
    case FPCONV_POW2_ROW:
    case FPCONV_POW2_COLUMN:
        return ldexp(1, (int16_t)load_code(m.scales + 2 * index, 2));
    default:
        memcpy(&f32, m.scales + 4 * index, 4);
        return (double)f32;
    }
}

/* The amax of the cells that share a scale, for every scale: of finite ones only,
 * but where a block is NaN as soon as one of its cells is. */
static const double *group_amaxes(void)
{
    static double amaxes[CELLS_MAX];
    const bool blocks = m.scheme.scaling == FPCONV_MX || m.scheme.scaling == FPCONV_NVFP4;
    memset(amaxes, 0, sizeof(amaxes));
    for (size_t row = 0; row < m.rows; row++)
        for (size_t column = 0; column < m.columns; column++) {
            const double a = fabs(m.values[row * m.columns + column]);
            double *amax = &amaxes[scale_index(row, column)];
            if (blocks ? isnan(a) || a > *amax : isfinite(a) && a > *amax)
                *amax = a; /* no number is larger than a NaN */
        }
    return amaxes;
}

static int pow2_limit(size_t dot_length)
{
    int t = 40;
    while (ldexp((double)dot_length, 2 * t) > 65504)
        t--;
    return t;
}

/* Is `scale` the f32 nearest to amax / largest, ties to even? */
static void check_f32_scale(float scale, double amax, double largest)
{
    const uint32_t bits = (uint32_t)load_code(&scale, 4);
    const double below = ((double)scale + (double)nextafterf(scale, 0)) / 2 * largest;
    const double above = ((double)scale + (double)nextafterf(scale, INFINITY)) / 2 * largest;
    if (amax == 0) {
        assert_true(scale == 1);
        return;
    }
    assert_true(scale >= FLT_MIN && scale <= FLT_MAX);
    if (scale > FLT_MIN)
        assert_true(amax > below || (amax == below && bits % 2 == 0));
    if (scale < FLT_MAX)
        assert_true(amax < above || (amax == above && bits % 2 == 0));
}

static void check_pow2_scale(double scale, double amax)
{
    const double limit = ldexp(1, pow2_limit(m.scheme.dot_length));
    if (amax == 0) {
        assert_true(scale == 1);
        return;
    }
    assert_true(value_of(FPCONV_F16, expected_element(FPCONV_F16, amax, scale)) < limit);
    assert_true(value_of(FPCONV_F16, expected_element(FPCONV_F16, amax, scale / 2)) >= limit);
}

static int expected_mx_scale(double amax)
{
    const double largest = largest_of(m.scheme.element);
    int e = -127;
    if (isnan(amax))
        return 0xff;
    if (isinf(amax))
        amax = ldexp(1, 128);
    if (m.scheme.rule == FPCONV_SCALE_CEIL)
        while (e < 127 && amax > ldexp(largest, e))
            e++;
    else /* 2^(e + e_max) <= amax is floor */
        while (e < 127 && ldexp(1, e + 1 + e_max_of(m.scheme.element)) <= amax)
            e++;
    return e + 127;
}

static void check_scale(size_t index, double amax)
{
    float f32;
    switch (m.scheme.scaling) {
    case FPCONV_MX:
        assert_int_equal(m.scales[index], expected_mx_scale(amax));
        break;
    case FPCONV_NVFP4:
        if (isnan(amax))
            assert_int_equal(m.scales[index], 0x7f);
        else
            assert_int_equal(m.scales[index], expected_element(FPCONV_E4M3, amax,
                                                               6 * (double)m.scheme.tensor_scale));
        break;
    case FPCONV_POW2_ROW:
    case FPCONV_POW2_COLUMN:
        check_pow2_scale(scale_at(index), amax);
        break;
    default:
        memcpy(&f32, m.scales + 4 * index, 4);
        check_f32_scale(f32, amax, largest_of(m.scheme.element));
    }
}

static void check_elements(const uint8_t *codes, ptrdiff_t stride)
{
    for (size_t row = 0; row < m.rows; row++)
        for (size_t column = 0; column < m.columns; column++) {
            const double value = m.values[row * m.columns + column];
            const double scale = scale_at(scale_index(row, column));
            const uint64_t want = expected_element(m.scheme.element, value, scale);
            const uint64_t got = code_at(codes + (ptrdiff_t)row * stride, column);
            if (got != want)
                fail_msg("%s %s: %a / %a became 0x%x, not 0x%x",
                         fpconv_scaling_name(m.scheme.scaling),
                         fpconv_format_name(m.scheme.element), value, scale, (unsigned)got,
                         (unsigned)want);
        }
}

/* value * scale, exact in double: at most 11 + 28 bits */
static double expected_product(uint64_t code, double scale)
{
    const double value = value_of(m.scheme.element, code);
    if (isnan(scale) && !isnan(value))
        return (double)NAN;
    return isnan(value) ? value : value * scale;
}

/* An Inf times 0, and a NaN: by class. */
static bool is_nan_code(fpconv_format format, uint64_t code)
{
    return isnan(double_of(oracle_convert(FPCONV_F64, format, code, FPCONV_OCP)));
}

static uint64_t rounded_product(fpconv_format format, double product)
{
    const float f32 = (float)product; /* rounded once, like everything in IEEE 754 */
    if (format == FPCONV_F64)
        return code_of_double(product);
    if (format == FPCONV_F32)
        return load_code(&f32, sizeof(f32));
    return oracle_convert(format, FPCONV_F64, code_of_double(product), FPCONV_OCP);
}

static void check_wide(fpconv_format format, const uint8_t *wide, ptrdiff_t wide_stride,
                       const uint8_t *codes, ptrdiff_t stride)
{
    const size_t size = fpconv_format_size(format);
    for (size_t row = 0; row < m.rows; row++)
        for (size_t column = 0; column < m.columns; column++) {
            const uint64_t code = code_at(codes + (ptrdiff_t)row * stride, column);
            const double product = expected_product(code, scale_at(scale_index(row, column)));
            const uint64_t got =
                load_code(wide + (ptrdiff_t)row * wide_stride + column * size, size);
            if (!isnan(product) || !is_nan_code(format, got))
                check_code(format, FPCONV_F64, code_of_double(product), FPCONV_OCP, got,
                           rounded_product(format, product));
        }
}

/* The values as elements of the source format, where they are exact. */
static void store_source(uint8_t *source, ptrdiff_t stride)
{
    const size_t size = fpconv_format_size(m.format);
    for (size_t row = 0; row < m.rows; row++)
        for (size_t column = 0; column < m.columns; column++) {
            double *value = &m.values[row * m.columns + column];
            const uint64_t code =
                oracle_convert(m.format, FPCONV_F64, code_of_double(*value), FPCONV_OCP);
            store_code(source + (ptrdiff_t)row * stride + column * size, size, code);
            *value = double_of(oracle_convert(FPCONV_F64, m.format, code, FPCONV_OCP));
        }
}

/* m.values, rounded to m.format, are quantized; scales, codes and the way back
 * are checked.  `skew` bytes off any alignment and between rows. */
static void check_matrix(size_t skew)
{
    const ptrdiff_t src_stride = (ptrdiff_t)(m.columns * fpconv_format_size(m.format) + skew);
    const ptrdiff_t stride = (ptrdiff_t)(row_bytes() + skew);
    uint8_t *codes = m.codes + skew, *source = m.source + skew;
    assert_true(m.rows <= ROWS_MAX && m.rows * m.columns <= CELLS_MAX);
    store_source(source, src_stride);
    assert_int_equal(fpconv_quantize(&m.scheme, m.rows, m.columns, codes, stride, m.scales,
                                     m.format, source, src_stride),
                     FPCONV_OK);
    if (m.scheme.rule != FPCONV_SCALE_GIVEN) {
        const double *amaxes = group_amaxes();
        for (size_t i = 0; i < fpconv_scale_count(m.scheme.scaling, m.rows, m.columns); i++)
            check_scale(i, amaxes[i]);
    }
    check_elements(codes, stride);
    for (size_t i = 0; i < ARRAY_COUNT(wide_formats); i++) {
        const ptrdiff_t wide_stride =
            (ptrdiff_t)(m.columns * fpconv_format_size(wide_formats[i]) + skew);
        assert_int_equal(fpconv_dequantize(&m.scheme, m.rows, m.columns, wide_formats[i],
                                           m.wide + skew, wide_stride, codes, stride, m.scales),
                         FPCONV_OK);
        check_wide(wide_formats[i], m.wide + skew, wide_stride, codes, stride);
    }
}

/* -------------------------------------------------------------------------- */
/* Data                                                                       */
/* -------------------------------------------------------------------------- */

static double random_f32_bits(uint64_t *seed)
{
    const uint32_t bits = (uint32_t)next_random(seed);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return (double)value;
}

/* About 1 in magnitude, times 2^(up to +-spread). */
static double random_near(uint64_t *seed, double centre, int spread)
{
    const double unit = (double)(int64_t)next_random(seed) * 0x1p-63;
    return unit * centre * ldexp(1, (int)(next_random(seed) % (unsigned)(2 * spread + 1)) - spread);
}

enum kind { WEIGHTS, WIDE, TINY, HUGE_VALUES, POWERS, SPARSE, SPECIALS, BITS, KIND_COUNT };

static double random_value(enum kind kind, uint64_t *seed)
{
    const uint64_t dice = next_random(seed) % 64;
    switch (kind) {
    case WEIGHTS:
        return random_near(seed, 0.05, 3);
    case WIDE:
        return random_near(seed, 1, 20);
    case TINY: /* down to the smallest float, and subnormal amax */
        return random_near(seed, 0x1p-135, 16);
    case HUGE_VALUES:
        return random_near(seed, 0x1.8p127, 6);
    case POWERS:
        return copysign(ldexp(1, (int)(dice % 32) - 16), (double)dice - 31.5);
    case SPARSE:
        return dice < 60 ? copysign(0, (double)dice - 30.5) : random_near(seed, 1, 8);
    case SPECIALS:
        return dice == 0   ? (double)NAN
               : dice == 1 ? INFINITY
               : dice == 2 ? -INFINITY
                           : random_near(seed, 100, 4);
    default:
        return random_f32_bits(seed);
    }
}

static void fill(enum kind kind, size_t rows, size_t columns, uint64_t seed)
{
    m.rows = rows;
    m.columns = columns;
    for (size_t i = 0; i < rows * columns; i++)
        m.values[i] = random_value(kind, &seed);
}

/* Every kind of data, source format and a few shapes, tails among them. */
static void check_all_data(void)
{
    static const struct {
        size_t rows, columns, skew;
    } shapes[] = {{1, 1, 0}, {3, 31, 1}, {5, 33, 3}, {1, 1024, 0}, {2, 1041, 7}};
    uint64_t seed = 1;
    for (size_t f = 0; f < ARRAY_COUNT(wide_formats); f++)
        for (enum kind kind = 0; kind < KIND_COUNT; kind++)
            for (size_t i = 0; i < ARRAY_COUNT(shapes); i++) {
                m.format = wide_formats[f];
                fill(kind, shapes[i].rows, shapes[i].columns, seed++);
                if (seed % test_scale() != 0)
                    continue;
                if (m.scheme.scaling == FPCONV_NVFP4) {
                    store_source(m.source, (ptrdiff_t)(m.columns * fpconv_format_size(m.format)));
                    assert_int_equal(
                        fpconv_tensor_scale(&m.scheme.tensor_scale, m.rows, m.columns, m.format,
                                            m.source,
                                            (ptrdiff_t)(m.columns * fpconv_format_size(m.format))),
                        FPCONV_OK);
                }
                check_matrix(shapes[i].skew);
            }
}

static void test_mx(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(mx_elements); i++) {
        m.scheme = (fpconv_scheme){FPCONV_MX, mx_elements[i], FPCONV_SCALE_FLOOR, 0, 0};
        check_all_data();
        m.scheme.rule = FPCONV_SCALE_CEIL;
        check_all_data();
    }
}

static void test_nvfp4(void **state)
{
    (void)state;
    m.scheme = (fpconv_scheme){FPCONV_NVFP4, FPCONV_E2M1, FPCONV_SCALE_AMAX, 1, 0};
    check_all_data();
}

static void test_f32_scales(void **state)
{
    (void)state;
    static const fpconv_scaling scalings[] = {FPCONV_PER_TENSOR, FPCONV_PER_ROW, FPCONV_PER_COLUMN};
    for (size_t i = 0; i < ARRAY_COUNT(f32_scaled_elements); i++)
        for (size_t k = 0; k < ARRAY_COUNT(scalings); k++) {
            m.scheme =
                (fpconv_scheme){scalings[k], f32_scaled_elements[i], FPCONV_SCALE_AMAX, 0, 0};
            check_all_data();
        }
}

static void test_pow2(void **state)
{
    (void)state;
    static const size_t dot_lengths[] = {1,     3,     64,    1023,  1024,
                                         16376, 16377, 65504, 65505, 10000000};
    for (size_t i = 0; i < ARRAY_COUNT(dot_lengths); i++) {
        m.scheme =
            (fpconv_scheme){FPCONV_POW2_ROW, FPCONV_F16, FPCONV_SCALE_AMAX, 0, dot_lengths[i]};
        check_all_data();
        m.scheme.scaling = FPCONV_POW2_COLUMN;
        check_all_data();
    }
}

/* -------------------------------------------------------------------------- */
/* Every decision boundary                                                    */
/* -------------------------------------------------------------------------- */

/* A boundary times a scale, and its neighbours in the source format, both signs. */
enum { AROUND = 6 };

static void put_around(size_t cell, double boundary)
{
    const bool f32 = m.format == FPCONV_F32;
    const double middle = f32 ? (double)(float)boundary : boundary;
    const double below = f32 ? (double)nextafterf((float)middle, 0) : nextafter(middle, 0);
    const double above =
        f32 ? (double)nextafterf((float)middle, INFINITY) : nextafter(middle, INFINITY);
    const double three[] = {middle, below, above};
    for (size_t i = 0; i < AROUND; i++)
        m.values[cell + i] = i % 2 ? -three[i / 2] : three[i / 2];
}

/* Row `row`: the boundaries of the element format, step by step from `first`. */
static void put_boundaries(size_t row, double scale, uint64_t first, uint64_t step)
{
    for (size_t i = 0; (i + 1) * AROUND <= m.columns; i++)
        put_around(row * m.columns + i * AROUND,
                   midpoint_of(m.scheme.element, first + i * step) * scale);
}

static void test_mx_boundaries(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(mx_elements); i++)
        for (unsigned code = 0; code < 255; code += test_scale())
            for (int wide = 0; wide < 2; wide++) {
                m.scheme = (fpconv_scheme){FPCONV_MX, mx_elements[i], FPCONV_SCALE_GIVEN, 0, 0};
                m.format = wide ? FPCONV_F64 : FPCONV_F32;
                m.rows = 1;
                m.columns = AROUND * (oracle_last_index(mx_elements[i], FPCONV_OCP) + 1);
                memset(m.scales, (int)code, sizeof(m.scales));
                put_boundaries(0, ldexp(1, (int)code - 127), 0, 1);
                check_matrix(0);
            }
}

static void test_nvfp4_boundaries(void **state)
{
    (void)state;
    static const float tensor_scales[] = {1,
                                          0.1f,
                                          0x1.fffffep-3f,
                                          0x1.000002p5f,
                                          0x1p-126f,
                                          0x1.5p-149f,
                                          0x1.abcdeep-20f,
                                          FLT_MAX,
                                          0x1.2468p0f,
                                          0x1.8p-140f,
                                          3e-5f};
    for (size_t i = 0; i < ARRAY_COUNT(tensor_scales); i++)
        for (unsigned code = 0; code < 256; code += test_scale())
            for (int wide = 0; wide < 2; wide++) {
                m.scheme = (fpconv_scheme){FPCONV_NVFP4, FPCONV_E2M1, FPCONV_SCALE_GIVEN,
                                           tensor_scales[i], 0};
                m.format = wide ? FPCONV_F64 : FPCONV_F32;
                m.rows = 1;
                m.columns = AROUND * 7;
                memset(m.scales, (int)code, sizeof(m.scales));
                put_boundaries(0, scale_at(0), 0, 1);
                check_matrix(0);
            }
}

static void put_random_scales(uint64_t *seed)
{
    for (size_t row = 0; row < m.rows; row++) {
        const uint32_t any = (uint32_t)next_random(seed);
        /* subnormal ones, and a few negative, 0, Inf and NaN */
        const uint32_t bits = row == 0   ? 0
                              : row == 1 ? 0x7f800000
                              : row == 2 ? 0x7fc00000
                              : row < 6  ? any >> 10
                              : row < 10 ? any
                                         : any >> 1;
        memcpy(m.scales + 4 * row, &bits, 4);
    }
}

static void test_f32_scale_boundaries(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (size_t i = 0; i < ARRAY_COUNT(f32_scaled_elements); i++)
        for (int wide = 0; wide < 2; wide++)
            for (int round = 0; round < 2; round++) {
                const fpconv_format element = f32_scaled_elements[i];
                m.scheme = (fpconv_scheme){FPCONV_PER_ROW, element, FPCONV_SCALE_GIVEN, 0, 0};
                m.format = wide ? FPCONV_F64 : FPCONV_F32;
                m.rows = ROWS_MAX;
                m.columns = AROUND * (oracle_last_index(element, FPCONV_OCP) + 1);
                put_random_scales(&seed);
                for (size_t row = 0; row < m.rows; row++)
                    put_boundaries(row, scale_at(row), 0, 1);
                check_matrix(1);
            }
}

static void test_pow2_boundaries(void **state)
{
    (void)state;
    for (int e = -160; e <= 140; e += (int)test_scale())
        for (int wide = 0; wide < 2; wide++) {
            m.scheme = (fpconv_scheme){FPCONV_POW2_ROW, FPCONV_F16, FPCONV_SCALE_GIVEN, 0, 0};
            m.format = wide ? FPCONV_F64 : FPCONV_F32;
            m.rows = 2;
            m.columns = AROUND * 300;
            store_code(m.scales, 2, (uint16_t)e);
            store_code(m.scales + 2, 2, (uint16_t)e);
            put_boundaries(0, ldexp(1, e), 0, 1);                    /* subnormal ones */
            put_boundaries(1, ldexp(1, e), 0x7bff - 105 * 299, 105); /* up to the last */
            check_matrix(0);
        }
}

/* Where the amax is that makes one scale, or the next. */
static void test_mx_scale_boundaries(void **state)
{
    (void)state;
    m.format = FPCONV_F32;
    for (size_t i = 0; i < ARRAY_COUNT(mx_elements); i++)
        for (int rule = FPCONV_SCALE_FLOOR; rule <= FPCONV_SCALE_CEIL; rule++) {
            m.scheme = (fpconv_scheme){FPCONV_MX, mx_elements[i], (fpconv_scale_rule)rule, 0, 0};
            m.rows = 1;
            m.columns = 32;
            for (int e = -149; e < 128; e += (int)test_scale())
                for (size_t k = 0; k < AROUND; k++) {
                    memset(m.values, 0, 32 * sizeof(double));
                    put_around(0, ldexp(rule == FPCONV_SCALE_CEIL ? largest_of(mx_elements[i]) : 1,
                                        rule == FPCONV_SCALE_CEIL ? e - 15 : e));
                    memmove(m.values + 31, m.values + k, sizeof(double));
                    memset(m.values, 0, 31 * sizeof(double));
                    check_matrix(0);
                }
        }
}

static void test_nvfp4_scale_boundaries(void **state)
{
    (void)state;
    static const float tensor_scales[] = {1, 0.1f, 0x1.abcdeep-20f, 0x1.fffffep60f};
    m.format = FPCONV_F32;
    m.rows = 1;
    for (size_t i = 0; i < ARRAY_COUNT(tensor_scales); i++)
        for (uint64_t index = 0; index < 126; index += test_scale()) {
            m.scheme =
                (fpconv_scheme){FPCONV_NVFP4, FPCONV_E2M1, FPCONV_SCALE_AMAX, tensor_scales[i], 0};
            const double unit = 6 * (double)tensor_scales[i];
            double around[AROUND];
            m.columns = AROUND;
            put_around(0, midpoint_of(FPCONV_E4M3, index) * unit);
            memcpy(around, m.values, sizeof(around));
            m.columns = 16 * AROUND;
            memset(m.values, 0, m.columns * sizeof(double));
            for (size_t k = 0; k < AROUND; k++)
                m.values[16 * k + k] = around[k];
            check_matrix(0);
        }
}

/* -------------------------------------------------------------------------- */
/* Named cases                                                                */
/* -------------------------------------------------------------------------- */

static void test_nvfp4_without_reciprocal(void **state)
{
    (void)state;
    /* 1.75 * 7 * 2^-9 is above the value by 2e-9: the code is that of 1.5 */
    const fpconv_scheme scheme = {FPCONV_NVFP4, FPCONV_E2M1, FPCONV_SCALE_GIVEN, 1, 0};
    const float value = 0.02392577938735485f;
    uint8_t scale = 0x07, code = 0xff;
    assert_int_equal(fpconv_quantize(&scheme, 1, 1, &code, 1, &scale, FPCONV_F32, &value, 4),
                     FPCONV_OK);
    assert_int_equal(code, 3);
}

static void quantize_block(const fpconv_scheme *scheme, const float *values, size_t n,
                           uint8_t *codes, uint8_t *scale)
{
    assert_int_equal(
        fpconv_quantize(scheme, 1, n, codes, (ptrdiff_t)n, scale, FPCONV_F32, values, 0),
        FPCONV_OK);
}

static void test_mx_special_blocks(void **state)
{
    (void)state;
    const fpconv_scheme floor8 = {FPCONV_MX, FPCONV_E4M3, FPCONV_SCALE_FLOOR, 0, 0};
    const fpconv_scheme ceil8 = {FPCONV_MX, FPCONV_E4M3, FPCONV_SCALE_CEIL, 0, 0};
    uint8_t codes[2], scale;
    float back[2];

    /* all zero: the smallest scale, and zeros that keep their sign */
    quantize_block(&floor8, (const float[]){0.0f, -0.0f}, 2, codes, &scale);
    assert_int_equal(scale, 0x00);
    assert_int_equal(codes[0], 0x00);
    assert_int_equal(codes[1], 0x80);

    /* a NaN makes the block NaN */
    quantize_block(&floor8, (const float[]){1.0f, -NAN}, 2, codes, &scale);
    assert_int_equal(scale, 0xff);
    assert_int_equal(codes[0], 0);
    assert_int_equal(codes[1], 0);
    assert_int_equal(fpconv_dequantize(&floor8, 1, 2, FPCONV_F32, back, 8, codes, 2, &scale),
                     FPCONV_OK);
    assert_true(isnan(back[0]) && isnan(back[1]));

    /* Inf counts as 2^128, saturates, and is Inf again as f32 */
    quantize_block(&floor8, (const float[]){-INFINITY, 0x1p120f}, 2, codes, &scale);
    assert_int_equal(scale, 127 + 128 - 8);
    assert_int_equal(codes[0], 0xfe);
    assert_int_equal(codes[1], 0x38);
    assert_int_equal(fpconv_dequantize(&floor8, 1, 2, FPCONV_F32, back, 8, codes, 2, &scale),
                     FPCONV_OK);
    assert_true(back[0] == -INFINITY && back[1] == 0x1p120f);

    /* 500 saturates under the floor rule, and not under the other */
    quantize_block(&floor8, (const float[]){500, 1}, 2, codes, &scale);
    assert_int_equal(scale, 127);
    assert_int_equal(codes[0], 0x7e);
    quantize_block(&ceil8, (const float[]){500, 1}, 2, codes, &scale);
    assert_int_equal(scale, 128);
    assert_int_equal(codes[0], 0x78);
    quantize_block(&ceil8, (const float[]){448, 1}, 2, codes, &scale);
    assert_int_equal(scale, 127);
    assert_int_equal(codes[0], 0x7e);

    /* the low end of E8M0: the smallest float is 2^-22 of 2^-127 */
    quantize_block(&floor8, (const float[]){0x1p-149f, -0x1p-130f}, 2, codes, &scale);
    assert_int_equal(scale, 0x00);
    assert_int_equal(codes[0], 0x00);
    assert_int_equal(codes[1], 0xa0);
}

/* Only doubles reach the upper end of E8M0. */
static void test_mx_upper_end(void **state)
{
    (void)state;
    const fpconv_scheme scheme = {FPCONV_MX, FPCONV_E4M3, FPCONV_SCALE_FLOOR, 0, 0};
    const double values[3] = {1e300, 0x1p127, -0x1.8p135};
    uint8_t codes[3], scale;
    double back[3];
    assert_int_equal(fpconv_quantize(&scheme, 1, 3, codes, 3, &scale, FPCONV_F64, values, 24),
                     FPCONV_OK);
    assert_int_equal(scale, 0xfe);
    assert_int_equal(fpconv_dequantize(&scheme, 1, 3, FPCONV_F64, back, 24, codes, 3, &scale),
                     FPCONV_OK);
    assert_true(back[0] == 448 * 0x1p127 && back[1] == 0x1p127 && back[2] == -0x1.8p135);
}

/* bf16 rows that reach over f16's whole range come back unchanged. */
static void test_pow2_is_exact(void **state)
{
    (void)state;
    const fpconv_scheme scheme = {FPCONV_POW2_ROW, FPCONV_F16, FPCONV_SCALE_AMAX, 0, 1024};
    uint16_t row[128], codes[128], back[128];
    int16_t e;
    for (int top = 20; top < 255; top++) { /* exponent field of the row's largest */
        for (unsigned i = 0; i < 128; i++)
            row[i] = (uint16_t)((top - (int)i % 15) << 7 | (int)i | (int)(i % 2) << 15);
        assert_int_equal(fpconv_quantize(&scheme, 1, 128, codes, 256, &e, FPCONV_BF16, row, 256),
                         FPCONV_OK);
        assert_int_equal(e, top - 127 + 1 - 2); /* 1024 * 4^2 <= 65504 < 1024 * 4^3 */
        assert_int_equal(fpconv_dequantize(&scheme, 1, 128, FPCONV_BF16, back, 256, codes, 256, &e),
                         FPCONV_OK);
        assert_memory_equal(back, row, sizeof(row));
    }
}

/* The largest elements that the scale lets through, in a dot product of every
 * length: the sum stays below 65504. */
static void test_pow2_bound(void **state)
{
    (void)state;
    for (size_t length = 1; length < 3000000; length += 1 + length / 7) {
        const fpconv_scheme scheme = {FPCONV_POW2_ROW, FPCONV_F16, FPCONV_SCALE_AMAX, 0, length};
        const float values[3] = {0x1.ffcp0f, 0x1.ffdp0f, 0x1.fffffep0f};
        for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
            uint16_t code;
            int16_t e;
            assert_int_equal(
                fpconv_quantize(&scheme, 1, 1, &code, 2, &e, FPCONV_F32, &values[i], 4), FPCONV_OK);
            const double element = value_of(FPCONV_F16, code);
            assert_true((double)length * element * element < 65504);
        }
    }
}

static void test_tensor_scale(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (size_t i = 0; i < 20000; i++) {
        const double value = i < 200 ? ldexp(1, (int)i - 150) : random_f32_bits(&seed);
        const float cells[4] = {(float)value, 0, INFINITY, NAN};
        float scale;
        assert_int_equal(fpconv_tensor_scale(&scale, 2, 2, FPCONV_F32, cells, 8), FPCONV_OK);
        check_f32_scale(scale, isfinite(value) ? fabs((double)cells[0]) : 0, 6 * 448);
    }
    float scale = 5;
    assert_int_equal(fpconv_tensor_scale(&scale, 0, 3, FPCONV_F32, NULL, 0), FPCONV_OK);
    assert_true(scale == 1);
    assert_int_equal(fpconv_tensor_scale(NULL, 0, 3, FPCONV_F32, NULL, 0), FPCONV_ERROR_NULL);
    assert_int_equal(fpconv_tensor_scale(&scale, 1, 1, FPCONV_F32, NULL, 0), FPCONV_ERROR_NULL);
    assert_int_equal(fpconv_tensor_scale(&scale, 1, 1, FPCONV_E4M3, &scale, 0),
                     FPCONV_ERROR_UNSUPPORTED);
    assert_int_equal(fpconv_tensor_scale(&scale, SIZE_MAX, 2, FPCONV_F32, &scale, 8),
                     FPCONV_ERROR_SIZE);
}

/* -------------------------------------------------------------------------- */
/* Layout                                                                     */
/* -------------------------------------------------------------------------- */

static void test_names_and_counts(void **state)
{
    (void)state;
    static const char *const names[] = {"mx",         "nvfp4",    "per_tensor", "per_row",
                                        "per_column", "pow2_row", "pow2_column"};
    static const size_t counts[] = {7 * 4, 7 * 7, 1, 7, 100, 7, 100};
    static const size_t sizes[] = {1, 1, 4, 4, 4, 2, 2};
    for (int s = 0; s < FPCONV_SCALING_COUNT; s++) {
        assert_string_equal(fpconv_scaling_name((fpconv_scaling)s), names[s]);
        assert_int_equal(fpconv_scale_count((fpconv_scaling)s, 7, 100), counts[s]);
        assert_int_equal(fpconv_scale_count((fpconv_scaling)s, 0, 100), 0);
        assert_int_equal(fpconv_scale_count((fpconv_scaling)s, 7, 0), 0);
        assert_int_equal(fpconv_scale_size((fpconv_scaling)s), sizes[s]);
        assert_int_equal(fpconv_scaling_block((fpconv_scaling)s), s == 0 ? 32 : s == 1 ? 16 : 0);
    }
    const fpconv_scaling unknown = (fpconv_scaling)FPCONV_SCALING_COUNT;
    assert_null(fpconv_scaling_name(unknown));
    assert_int_equal(fpconv_scale_count(unknown, 7, 100), 0);
    assert_int_equal(fpconv_scale_size(unknown), 0);
    assert_int_equal(fpconv_scaling_block(unknown), 0);
    assert_int_equal(fpconv_scale_count(FPCONV_MX, SIZE_MAX, 33), SIZE_MAX);
    assert_string_equal(fpconv_scale_rule_name(FPCONV_SCALE_FLOOR), "floor");
    assert_string_equal(fpconv_scale_rule_name(FPCONV_SCALE_CEIL), "ceil");
    assert_string_equal(fpconv_scale_rule_name(FPCONV_SCALE_AMAX), "amax");
    assert_string_equal(fpconv_scale_rule_name(FPCONV_SCALE_GIVEN), "given");
    assert_null(fpconv_scale_rule_name((fpconv_scale_rule)FPCONV_SCALE_RULE_COUNT));
}

/* Negative strides reverse the rows; what lies between rows stays. */
static void test_strides(void **state)
{
    (void)state;
    enum { ROWS = 5, COLUMNS = 37, CODE_STRIDE = 24, SRC_STRIDE = 4 * COLUMNS + 12 };
    const fpconv_scheme scheme = {FPCONV_MX, FPCONV_E2M1, FPCONV_SCALE_FLOOR, 0, 0};
    float values[ROWS][COLUMNS];
    uint8_t source[ROWS * SRC_STRIDE], codes[ROWS * CODE_STRIDE], reversed[ROWS * CODE_STRIDE];
    uint8_t scales[ROWS * 2], reversed_scales[ROWS * 2];
    uint64_t seed = 11;
    memset(source, 0, sizeof(source));
    for (size_t r = 0; r < ROWS; r++)
        for (size_t c = 0; c < COLUMNS; c++)
            values[r][c] = (float)random_near(&seed, 1, 9);
    for (size_t r = 0; r < ROWS; r++)
        memcpy(source + r * SRC_STRIDE, values[r], sizeof(values[r]));
    memset(codes, 0xa5, sizeof(codes));
    memset(reversed, 0xa5, sizeof(reversed));
    assert_int_equal(fpconv_quantize(&scheme, ROWS, COLUMNS, codes, CODE_STRIDE, scales, FPCONV_F32,
                                     values, sizeof(values[0])),
                     FPCONV_OK);
    assert_int_equal(fpconv_quantize(&scheme, ROWS, COLUMNS, reversed + (ROWS - 1) * CODE_STRIDE,
                                     -CODE_STRIDE, reversed_scales, FPCONV_F32, source, SRC_STRIDE),
                     FPCONV_OK);
    assert_memory_equal(scales, reversed_scales, sizeof(scales));
    for (size_t r = 0; r < ROWS; r++) {
        assert_memory_equal(codes + r * CODE_STRIDE, reversed + (ROWS - 1 - r) * CODE_STRIDE, 19);
        for (size_t i = 19; i < CODE_STRIDE; i++)
            assert_int_equal(codes[r * CODE_STRIDE + i], 0xa5);
    }
    float back[ROWS][COLUMNS], reversed_back[ROWS][COLUMNS];
    assert_int_equal(fpconv_dequantize(&scheme, ROWS, COLUMNS, FPCONV_F32, back, sizeof(back[0]),
                                       codes, CODE_STRIDE, scales),
                     FPCONV_OK);
    assert_int_equal(fpconv_dequantize(&scheme, ROWS, COLUMNS, FPCONV_F32, reversed_back[ROWS - 1],
                                       -(ptrdiff_t)sizeof(back[0]), codes, CODE_STRIDE, scales),
                     FPCONV_OK);
    for (size_t r = 0; r < ROWS; r++)
        assert_memory_equal(back[r], reversed_back[ROWS - 1 - r], sizeof(back[0]));
}

/* A block's result does not depend on where in the matrix it is. */
static void test_position(void **state)
{
    (void)state;
    enum { BLOCKS = 100 };
    const fpconv_scheme scheme = {FPCONV_MX, FPCONV_E4M3, FPCONV_SCALE_FLOOR, 0, 0};
    static float values[BLOCKS * 32];
    static uint8_t codes[BLOCKS * 32], one[32];
    uint8_t scales[BLOCKS], scale;
    uint64_t seed = 5;
    for (size_t i = 0; i < ARRAY_COUNT(values); i++)
        values[i] = (float)random_value(i / 32 % 9 == 0 ? BITS : WEIGHTS, &seed);
    assert_int_equal(fpconv_quantize(&scheme, 1, ARRAY_COUNT(values), codes, sizeof(codes), scales,
                                     FPCONV_F32, values, 0),
                     FPCONV_OK);
    for (size_t b = 0; b < BLOCKS; b++) {
        quantize_block(&scheme, values + 32 * b, 32, one, &scale);
        assert_int_equal(scale, scales[b]);
        assert_memory_equal(one, codes + 32 * b, 32);
    }
}

/* -------------------------------------------------------------------------- */
/* The floating-point environment                                             */
/* -------------------------------------------------------------------------- */

static const fpconv_scheme some_schemes[] = {
    {FPCONV_MX, FPCONV_E4M3, FPCONV_SCALE_FLOOR, 0, 0},
    {FPCONV_MX, FPCONV_E2M1, FPCONV_SCALE_CEIL, 0, 0},
    {FPCONV_NVFP4, FPCONV_E2M1, FPCONV_SCALE_AMAX, 0x1.234p-9f, 0},
    {FPCONV_PER_ROW, FPCONV_E4M3, FPCONV_SCALE_AMAX, 0, 0},
    {FPCONV_PER_COLUMN, FPCONV_E5M2, FPCONV_SCALE_AMAX, 0, 0},
    {FPCONV_POW2_ROW, FPCONV_F16, FPCONV_SCALE_AMAX, 0, 77},
};

enum { ENV_ROWS = 4, ENV_COLUMNS = 1100, ENV_CELLS = ENV_ROWS * ENV_COLUMNS };

struct result {
    uint8_t codes[2 * ENV_CELLS], scales[4 * ENV_CELLS];
    float back[ENV_CELLS];
};

static void run_scheme(const fpconv_scheme *scheme, const float *values, struct result *result)
{
    const ptrdiff_t stride = ENV_COLUMNS * 4;
    memset(result, 0, sizeof(*result));
    assert_int_equal(fpconv_quantize(scheme, ENV_ROWS, ENV_COLUMNS, result->codes, 2 * ENV_COLUMNS,
                                     result->scales, FPCONV_F32, values, stride),
                     FPCONV_OK);
    assert_int_equal(fpconv_dequantize(scheme, ENV_ROWS, ENV_COLUMNS, FPCONV_F32, result->back,
                                       stride, result->codes, 2 * ENV_COLUMNS, result->scales),
                     FPCONV_OK);
}

static void flush_subnormals(bool on)
{
#ifdef __SSE2__
    _mm_setcsr(on ? _mm_getcsr() | 0x8040 : _mm_getcsr() & ~0x8040u); /* FTZ and DAZ */
#else
    (void)on;
#endif
}

static void test_environment(void **state)
{
    (void)state;
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    static float values[ENV_CELLS];
    static struct result want, got;
    uint64_t seed = 21;
    for (size_t i = 0; i < ENV_CELLS; i++)
        values[i] = (float)random_value((enum kind)(i / 32 % KIND_COUNT), &seed);
    for (size_t s = 0; s < ARRAY_COUNT(some_schemes); s++) {
        run_scheme(&some_schemes[s], values, &want);
        for (size_t i = 0; i < ARRAY_COUNT(modes); i++)
            for (int flush = 0; flush < 2; flush++) {
                flush_subnormals(flush);
                fesetround(modes[i]);
                feclearexcept(FE_ALL_EXCEPT);
                run_scheme(&some_schemes[s], values, &got);
                const int raised = fetestexcept(FE_ALL_EXCEPT);
                const int mode = fegetround();
                fesetround(FE_TONEAREST);
                flush_subnormals(false);
                assert_int_equal(raised, 0);
                assert_int_equal(mode, modes[i]);
                assert_memory_equal(&got, &want, sizeof(want));
            }
    }
}

/* -------------------------------------------------------------------------- */
/* Errors                                                                     */
/* -------------------------------------------------------------------------- */

static fpconv_status try_scheme(fpconv_scheme scheme)
{
    const float value = 1;
    uint8_t codes[2], scales[4];
    return fpconv_quantize(&scheme, 1, 1, codes, 2, scales, FPCONV_F32, &value, 4);
}

static void test_scheme_errors(void **state)
{
    (void)state;
    const fpconv_scheme mx = {FPCONV_MX, FPCONV_E4M3, FPCONV_SCALE_FLOOR, 0, 0};
    const fpconv_scheme nvfp4 = {FPCONV_NVFP4, FPCONV_E2M1, FPCONV_SCALE_AMAX, 1, 0};
    const fpconv_scheme row = {FPCONV_PER_ROW, FPCONV_E4M3, FPCONV_SCALE_AMAX, 0, 0};
    const fpconv_scheme pow2 = {FPCONV_POW2_ROW, FPCONV_F16, FPCONV_SCALE_AMAX, 0, 1};
    assert_int_equal(try_scheme(mx), FPCONV_OK);
    assert_int_equal(try_scheme(nvfp4), FPCONV_OK);
    assert_int_equal(try_scheme(row), FPCONV_OK);
    assert_int_equal(try_scheme(pow2), FPCONV_OK);

#define WITH(base, member, value, status)              \
    do {                                               \
        fpconv_scheme changed = base;                  \
        changed.member = value;                        \
        assert_int_equal(try_scheme(changed), status); \
    } while (0)
    WITH(mx, scaling, (fpconv_scaling)FPCONV_SCALING_COUNT, FPCONV_ERROR_SCHEME);
    WITH(mx, rule, (fpconv_scale_rule)FPCONV_SCALE_RULE_COUNT, FPCONV_ERROR_SCHEME);
    WITH(mx, rule, FPCONV_SCALE_AMAX, FPCONV_ERROR_SCHEME);
    WITH(mx, element, (fpconv_format)FPCONV_FORMAT_COUNT, FPCONV_ERROR_FORMAT);
    WITH(mx, element, FPCONV_HIF8, FPCONV_ERROR_UNSUPPORTED);
    WITH(mx, element, FPCONV_F16, FPCONV_ERROR_UNSUPPORTED);
    WITH(nvfp4, element, FPCONV_E4M3, FPCONV_ERROR_UNSUPPORTED);
    WITH(nvfp4, rule, FPCONV_SCALE_FLOOR, FPCONV_ERROR_SCHEME);
    WITH(nvfp4, tensor_scale, 0.0f, FPCONV_ERROR_SCHEME);
    WITH(nvfp4, tensor_scale, -1.0f, FPCONV_ERROR_SCHEME);
    WITH(nvfp4, tensor_scale, INFINITY, FPCONV_ERROR_SCHEME);
    WITH(nvfp4, tensor_scale, NAN, FPCONV_ERROR_SCHEME);
    WITH(row, rule, FPCONV_SCALE_CEIL, FPCONV_ERROR_SCHEME);
    WITH(row, element, FPCONV_BF16, FPCONV_ERROR_UNSUPPORTED);
    WITH(pow2, element, FPCONV_BF16, FPCONV_ERROR_UNSUPPORTED);
    WITH(pow2, dot_length, 0, FPCONV_ERROR_SCHEME);
#undef WITH
}

static void test_buffer_errors(void **state)
{
    (void)state;
    const fpconv_scheme mx = {FPCONV_MX, FPCONV_E4M3, FPCONV_SCALE_FLOOR, 0, 0};
    uint8_t bytes[512], before[sizeof(bytes)];
    memset(bytes, 0x3c, sizeof(bytes));
    memcpy(before, bytes, sizeof(bytes));
    uint8_t *codes = bytes, *scales = bytes + 64, *src = bytes + 128;
    const size_t huge = SIZE_MAX / 2;

#define QUANTIZE(rows, columns, codes, stride, scales, format, src) \
    fpconv_quantize(&mx, rows, columns, codes, stride, scales, format, src, 32)
    assert_int_equal(fpconv_quantize(NULL, 2, 8, codes, 8, scales, FPCONV_F32, src, 32),
                     FPCONV_ERROR_NULL);
    assert_int_equal(QUANTIZE(2, 8, NULL, 8, scales, FPCONV_F32, src), FPCONV_ERROR_NULL);
    assert_int_equal(QUANTIZE(2, 8, codes, 8, NULL, FPCONV_F32, src), FPCONV_ERROR_NULL);
    assert_int_equal(QUANTIZE(2, 8, codes, 8, scales, FPCONV_F32, NULL), FPCONV_ERROR_NULL);
    assert_int_equal(QUANTIZE(2, 8, codes, 7, scales, FPCONV_F32, src), FPCONV_ERROR_STRIDE);
    assert_int_equal(QUANTIZE(2, 8, codes, 0, scales, FPCONV_F32, src), FPCONV_ERROR_STRIDE);
    assert_int_equal(QUANTIZE(2, 8, src + 63, 8, scales, FPCONV_F32, src), FPCONV_ERROR_OVERLAP);
    assert_int_equal(QUANTIZE(2, 8, src, 8, scales, FPCONV_F32, src), FPCONV_ERROR_OVERLAP);
    assert_int_equal(QUANTIZE(2, 8, codes, 8, codes + 15, FPCONV_F32, src), FPCONV_ERROR_OVERLAP);
    assert_int_equal(QUANTIZE(2, 8, codes, 8, src - 1, FPCONV_F32, src), FPCONV_ERROR_OVERLAP);
    assert_int_equal(QUANTIZE(2, 8, codes + 8, -8, codes, FPCONV_F32, src), FPCONV_ERROR_OVERLAP);
    assert_int_equal(QUANTIZE(2, huge, codes, 8, scales, FPCONV_F32, src), FPCONV_ERROR_SIZE);
    assert_int_equal(QUANTIZE(huge, 8, codes, 8, scales, FPCONV_F32, src), FPCONV_ERROR_SIZE);
    assert_int_equal(QUANTIZE(2, 8, codes, 8, scales, FPCONV_E5M2, src), FPCONV_ERROR_UNSUPPORTED);
    assert_int_equal(QUANTIZE(2, 8, codes, 8, scales, (fpconv_format)99, src), FPCONV_ERROR_FORMAT);
    assert_int_equal(QUANTIZE(0, 8, NULL, 8, NULL, FPCONV_F32, NULL), FPCONV_OK);
    assert_int_equal(QUANTIZE(2, 0, NULL, 8, NULL, FPCONV_F32, NULL), FPCONV_OK);
#undef QUANTIZE

#define DEQUANTIZE(rows, columns, format, dst, codes, scales) \
    fpconv_dequantize(&mx, rows, columns, format, dst, 32, codes, 8, scales)
    assert_int_equal(DEQUANTIZE(2, 8, FPCONV_F32, NULL, codes, scales), FPCONV_ERROR_NULL);
    assert_int_equal(DEQUANTIZE(2, 8, FPCONV_F32, src, NULL, scales), FPCONV_ERROR_NULL);
    assert_int_equal(DEQUANTIZE(2, 8, FPCONV_F32, src, codes, NULL), FPCONV_ERROR_NULL);
    assert_int_equal(DEQUANTIZE(2, 8, FPCONV_F32, src, src, scales), FPCONV_ERROR_OVERLAP);
    assert_int_equal(DEQUANTIZE(2, 8, FPCONV_F32, src, codes, src + 63), FPCONV_ERROR_OVERLAP);
    assert_int_equal(DEQUANTIZE(2, 9, FPCONV_F32, src, codes, scales), FPCONV_ERROR_STRIDE);
    assert_int_equal(DEQUANTIZE(2, huge, FPCONV_F32, src, codes, scales), FPCONV_ERROR_SIZE);
    assert_int_equal(DEQUANTIZE(2, 8, FPCONV_E4M3, src, codes, scales), FPCONV_ERROR_UNSUPPORTED);
    assert_int_equal(DEQUANTIZE(0, 8, FPCONV_F32, NULL, NULL, NULL), FPCONV_OK);
#undef DEQUANTIZE
    assert_memory_equal(bytes, before, sizeof(bytes));
}

int main(void)
{
    if (!announce_run())
        return EXIT_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mx),
        cmocka_unit_test(test_nvfp4),
        cmocka_unit_test(test_f32_scales),
        cmocka_unit_test(test_pow2),
        cmocka_unit_test(test_mx_boundaries),
        cmocka_unit_test(test_nvfp4_boundaries),
        cmocka_unit_test(test_f32_scale_boundaries),
        cmocka_unit_test(test_pow2_boundaries),
        cmocka_unit_test(test_mx_scale_boundaries),
        cmocka_unit_test(test_nvfp4_scale_boundaries),
        cmocka_unit_test(test_nvfp4_without_reciprocal),
        cmocka_unit_test(test_mx_special_blocks),
        cmocka_unit_test(test_mx_upper_end),
        cmocka_unit_test(test_pow2_is_exact),
        cmocka_unit_test(test_pow2_bound),
        cmocka_unit_test(test_tensor_scale),
        cmocka_unit_test(test_names_and_counts),
        cmocka_unit_test(test_strides),
        cmocka_unit_test(test_position),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_scheme_errors),
        cmocka_unit_test(test_buffer_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
