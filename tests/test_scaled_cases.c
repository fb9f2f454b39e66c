/*
 * test_scaled_cases.c - scaled conversions: named cases
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdlib.h>

#include "scaled_support.h"

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

int main(void)
{
    if (!announce_run())
        return EXIT_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nvfp4_without_reciprocal),
        cmocka_unit_test(test_mx_special_blocks),
        cmocka_unit_test(test_mx_upper_end),
        cmocka_unit_test(test_pow2_is_exact),
        cmocka_unit_test(test_pow2_bound),
        cmocka_unit_test(test_tensor_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
