/*
 * scaled_support.c - scaled conversions by exact arithmetic, and a matrix's check
 *
 * SPDX-License-Identifier: MIT
 */
#include "scaled_support.h"

#include <float.h>
#include <math.h>

static const fpconv_format wide_formats[] = {FPCONV_F64, FPCONV_F32, FPCONV_F16, FPCONV_BF16};

/* What the specifications say, once more. */
double largest_of(fpconv_format element)
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
double midpoint_of(fpconv_format element, uint64_t index)
{
    static double midpoints[FPCONV_FORMAT_COUNT][0x7c00];
    if (midpoints[element][index] == 0) {
        uint64_t code;
        assert_true(oracle_midpoint(element, index, FPCONV_F64, &code));
        midpoints[element][index] = double_of(code);
    }
    return midpoints[element][index];
}

double value_of(fpconv_format element, uint64_t code)
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

struct matrix m;

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

double scale_at(size_t index)
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

void check_f32_scale(float scale, double amax, double largest)
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

void store_source(uint8_t *source, ptrdiff_t stride)
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

void check_matrix(size_t skew)
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

void quantize_block(const fpconv_scheme *scheme, const float *values, size_t n, uint8_t *codes,
                    uint8_t *scale)
{
    assert_int_equal(
        fpconv_quantize(scheme, 1, n, codes, (ptrdiff_t)n, scale, FPCONV_F32, values, 0),
        FPCONV_OK);
}

/* -------------------------------------------------------------------------- */
/* Data                                                                       */
/* -------------------------------------------------------------------------- */

double random_f32_bits(uint64_t *seed)
{
    const uint32_t bits = (uint32_t)next_random(seed);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return (double)value;
}

double random_near(uint64_t *seed, double centre, int spread)
{
    const double unit = (double)(int64_t)next_random(seed) * 0x1p-63;
    return unit * centre * ldexp(1, (int)(next_random(seed) % (unsigned)(2 * spread + 1)) - spread);
}

double random_value(enum kind kind, uint64_t *seed)
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

void fill(enum kind kind, size_t rows, size_t columns, uint64_t seed)
{
    m.rows = rows;
    m.columns = columns;
    for (size_t i = 0; i < rows * columns; i++)
        m.values[i] = random_value(kind, &seed);
}
