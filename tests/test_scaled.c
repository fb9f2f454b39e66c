/*
 * test_scaled.c - scaled conversions of all kinds of data, and at every decision boundary
 *
 * SPDX-License-Identifier: MIT
 *
 * Against the exact arithmetic of scaled_support.c.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "scaled_support.h"

static const fpconv_format mx_elements[] = {FPCONV_E4M3, FPCONV_E5M2, FPCONV_E3M2, FPCONV_E2M3,
                                            FPCONV_E2M1};

static const fpconv_format f32_scaled_elements[] = {FPCONV_E4M3, FPCONV_E5M2, FPCONV_E3M2,
                                                    FPCONV_E2M3, FPCONV_E2M1, FPCONV_HIF8};

static const fpconv_format wide_formats[] = {FPCONV_F64, FPCONV_F32, FPCONV_F16, FPCONV_BF16};

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
    /* from 2^42 on the bound is among f16's subnormals, and in the end below them */
    static const size_t dot_lengths[] = {1,
                                         3,
                                         64,
                                         1023,
                                         1024,
                                         16376,
                                         16377,
                                         65504,
                                         65505,
                                         10000000,
                                         SIZE_MAX / (1 << 21),
                                         SIZE_MAX / (1 << 12),
                                         SIZE_MAX / 16,
                                         SIZE_MAX};
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
