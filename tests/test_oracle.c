/*
 * test_oracle.c - the tests' own oracle against what is known by hand
 *
 * SPDX-License-Identifier: MIT
 */
#include "known_values.h"
#include "oracle.h"
#include "support.h"

static void known_values_come_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(known_values); i++) {
        const struct known_value *k = &known_values[i];
        const uint64_t code = code_of_double(k->value);
        FOR_EACH_POLICY (policy)
            check_code(k->dst, FPCONV_F64, code, policy,
                       oracle_convert(k->dst, FPCONV_F64, code, policy), k->want[policy]);
    }
    for (size_t i = 0; i < ARRAY_COUNT(known_codes); i++) {
        const struct known_code *k = &known_codes[i];
        FOR_EACH_POLICY (policy)
            check_code(k->dst, k->src, k->code, policy,
                       oracle_convert(k->dst, k->src, k->code, policy), k->want[policy]);
    }
}

/* The columns of the specification's table. */
static const struct {
    fpconv_format format;
    uint64_t code;
    double value;
} landmarks[] = {
    {FPCONV_F32, 0x7f7fffff, 0x1.fffffep127},
    {FPCONV_F32, 0x00800000, 0x1p-126},
    {FPCONV_F32, 0x00000001, 0x1p-149},
    {FPCONV_F16, 0x7bff, 65504},
    {FPCONV_F16, 0x0400, 0x1p-14},
    {FPCONV_F16, 0x0001, 0x1p-24},
    {FPCONV_BF16, 0x7f7f, 0x1.fep127},
    {FPCONV_BF16, 0x0080, 0x1p-126},
    {FPCONV_BF16, 0x0001, 0x1p-133},
    {FPCONV_E5M2, 0x7b, 57344},
    {FPCONV_E5M2, 0x04, 0x1p-14},
    {FPCONV_E5M2, 0x01, 0x1p-16},
    {FPCONV_E4M3, 0x7e, 448},
    {FPCONV_E4M3, 0x77, 240},
    {FPCONV_E4M3, 0x08, 0x1p-6},
    {FPCONV_E4M3, 0x01, 0x1p-9},
    {FPCONV_E3M2, 0x1f, 28},
    {FPCONV_E3M2, 0x1b, 14},
    {FPCONV_E3M2, 0x04, 0x1p-2},
    {FPCONV_E3M2, 0x01, 0x1p-4},
    {FPCONV_E2M3, 0x1f, 7.5},
    {FPCONV_E2M3, 0x17, 3.75},
    {FPCONV_E2M3, 0x08, 1},
    {FPCONV_E2M3, 0x01, 0x1p-3},
    {FPCONV_E2M1, 0x7, 6},
    {FPCONV_E2M1, 0x5, 3},
    {FPCONV_E2M1, 0x2, 1},
    {FPCONV_E2M1, 0x1, 0.5},
    {FPCONV_HIF8, 0x6e, 0x1p15},
    {FPCONV_HIF8, 0x7e, 0x1p-15},
    {FPCONV_HIF8, 0x01, 0x1p-22},
    {FPCONV_HIF8, 0x18, 0.5},
};

static void landmarks_of_the_formats_are_in_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(landmarks); i++)
        check_code(FPCONV_F64, landmarks[i].format, landmarks[i].code, FPCONV_OCP,
                   oracle_convert(FPCONV_F64, landmarks[i].format, landmarks[i].code, FPCONV_OCP),
                   code_of_double(landmarks[i].value));
}

/* All but hif8: add the unit in the last place again and again, which doubles
 * at each power of two from twice the smallest normal value on. */
static void values_follow_each_other_by_units_in_the_last_place(void **state)
{
    (void)state;
    static const struct {
        fpconv_format format;
        double smallest, smallest_normal;
    } rows[] = {
        {FPCONV_F16, 0x1p-24, 0x1p-14},  {FPCONV_BF16, 0x1p-133, 0x1p-126},
        {FPCONV_E5M2, 0x1p-16, 0x1p-14}, {FPCONV_E4M3, 0x1p-9, 0x1p-6},
        {FPCONV_E3M2, 0x1p-4, 0x1p-2},   {FPCONV_E2M3, 0x1p-3, 1},
        {FPCONV_E2M1, 0x1p-1, 1},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        const fpconv_format format = rows[i].format;
        double value = 0, unit = rows[i].smallest, next_power = 2 * rows[i].smallest_normal;
        const uint64_t last = oracle_last_index(format, FPCONV_OCP);
        for (uint64_t code = 0; code <= last; code++) {
            check_code(FPCONV_F64, format, code, FPCONV_OCP,
                       oracle_convert(FPCONV_F64, format, code, FPCONV_OCP), code_of_double(value));
            value += unit;
            if (value == next_power) {
                unit *= 2;
                next_power *= 2;
            }
        }
    }
}

/* hif8: from the specification, 7 denormal values, and then 8, 4 or 2 values in
 * each power of two. */
static void values_of_hif8_are_those_of_its_table(void **state)
{
    (void)state;
    uint64_t index = 1;
    for (int exponent = -22; exponent <= 15; exponent++) {
        const int magnitude = exponent < 0 ? -exponent : exponent;
        const int steps = exponent < -15 ? 1 : magnitude < 4 ? 8 : magnitude < 8 ? 4 : 2;
        for (int step = 0; step < steps && !(exponent == 15 && step == 1); step++) {
            uint64_t code;
            const double value = ldexp(1 + (double)step / steps, exponent);
            assert_true(oracle_value(FPCONV_HIF8, index, FPCONV_F64, &code));
            check_code(FPCONV_F64, FPCONV_HIF8, oracle_code_of_index(FPCONV_HIF8, index),
                       FPCONV_OCP, code, code_of_double(value));
            index++;
        }
    }
    assert_int_equal(index, oracle_last_index(FPCONV_HIF8, FPCONV_OCP) + 1);
    assert_int_equal(index, 127); /* with zero, all 128 positive codes but Inf */
}

static void midpoints_lie_halfway(void **state)
{
    (void)state;
    for (fpconv_format format = FPCONV_F16; format < FPCONV_FORMAT_COUNT; format++) {
        const uint64_t last = oracle_last_index(format, FPCONV_OCP);
        for (uint64_t index = 0; index <= last; index++) {
            uint64_t low, high, middle;
            assert_true(oracle_value(format, index, FPCONV_F64, &low));
            assert_true(oracle_value(format, index + 1, FPCONV_F64, &high));
            assert_true(oracle_midpoint(format, index, FPCONV_F64, &middle));
            assert_true(low < middle && middle < high);
            assert_true(double_of(middle) - double_of(low) == double_of(high) - double_of(middle));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values_come_out),
        cmocka_unit_test(landmarks_of_the_formats_are_in_place),
        cmocka_unit_test(values_follow_each_other_by_units_in_the_last_place),
        cmocka_unit_test(values_of_hif8_are_those_of_its_table),
        cmocka_unit_test(midpoints_lie_halfway),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
