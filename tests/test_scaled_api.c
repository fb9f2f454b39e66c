/*
 * test_scaled_api.c - scaled conversions: names, strides, environment, errors
 *
 * SPDX-License-Identifier: MIT
 */
#include <fenv.h>
#include <math.h>
#include <stdlib.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "scaled_support.h"

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
        cmocka_unit_test(test_names_and_counts), cmocka_unit_test(test_strides),
        cmocka_unit_test(test_position),         cmocka_unit_test(test_environment),
        cmocka_unit_test(test_scheme_errors),    cmocka_unit_test(test_buffer_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
