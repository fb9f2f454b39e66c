/*
 * test_codec.c - the conversion of single values against the oracle
 *
 * SPDX-License-Identifier: MIT
 */
#include "known_values.h"
#include "oracle.h"
#include "support.h"

static uint64_t sign_bit(fpconv_format format)
{
    return UINT64_C(1) << (oracle_bits(format) - 1);
}

static void check_scalar(fpconv_format dst, fpconv_format src, uint64_t code, fpconv_policy policy)
{
    check_code(dst, src, code, policy, scalar_convert(dst, src, code, policy),
               oracle_convert(dst, src, code, policy));
}

static void known_values_come_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(known_values); i++) {
        const struct known_value *k = &known_values[i];
        const uint64_t code = code_of_double(k->value);
        FOR_EACH_POLICY (policy) {
            check_code(k->dst, FPCONV_F64, code, policy, fpconv_encode(k->dst, k->value, policy),
                       k->want[policy]);
            check_code(k->dst, FPCONV_F64, code, policy,
                       scalar_convert(k->dst, FPCONV_F64, code, policy), k->want[policy]);
        }
    }
    for (size_t i = 0; i < ARRAY_COUNT(known_codes); i++) {
        const struct known_code *k = &known_codes[i];
        FOR_EACH_POLICY (policy)
            check_code(k->dst, k->src, k->code, policy,
                       scalar_convert(k->dst, k->src, k->code, policy), k->want[policy]);
    }
}

/* The same where the source is a float that holds the value exactly. */
static void known_values_come_out_of_floats_too(void **state)
{
    (void)state;
    unsigned exact = 0;
    for (size_t i = 0; i < ARRAY_COUNT(known_values); i++) {
        const struct known_value *k = &known_values[i];
        const float value = (float)k->value;
        if ((double)value != k->value || k->dst == FPCONV_F32)
            continue;
        exact++;
        uint32_t code;
        memcpy(&code, &value, sizeof(code));
        FOR_EACH_POLICY (policy)
            check_code(k->dst, FPCONV_F32, code, policy,
                       scalar_convert(k->dst, FPCONV_F32, code, policy), k->want[policy]);
    }
    assert_true(exact >= 80 && exact <= ARRAY_COUNT(known_values));
}

/* 0.3 as a user meets it */
static void three_tenths_in_e4m3(void **state)
{
    (void)state;
    assert_int_equal(fpconv_f32_to_e4m3(0.3f, FPCONV_OCP), 0x2a);
    assert_int_equal(fpconv_f64_to_e4m3(0.3, FPCONV_OCP), 0x2a);
    assert_true(fpconv_e4m3_to_f32(0x2a, FPCONV_OCP) == 0.3125f);
    assert_true(fpconv_e4m3_to_f64(0x2a, FPCONV_OCP) == 0.3125);
}

/* Twice as many codes as there are, so that an unused high bit is tried as well. */
static void every_code_decodes(void **state)
{
    (void)state;
    for (fpconv_format format = FPCONV_F16; format < FPCONV_FORMAT_COUNT; format++)
        FOR_EACH_POLICY (policy)
            for (uint32_t code = 0; code < 4 * sign_bit(format); code++) {
                const uint64_t want = oracle_convert(FPCONV_F64, format, code, policy);
                check_code(FPCONV_F64, format, code, policy,
                           code_of_double(fpconv_decode(format, code, policy)), want);
                check_code(FPCONV_F64, format, code, policy,
                           scalar_convert(FPCONV_F64, format, code, policy), want);
                check_scalar(FPCONV_F32, format, code, policy);
            }
}

/* Finite values are their own nearest. */
static void every_code_encodes_back(void **state)
{
    (void)state;
    for (fpconv_format format = FPCONV_F16; format < FPCONV_FORMAT_COUNT; format++)
        FOR_EACH_POLICY (policy) {
            const uint64_t last = oracle_last_index(format, policy);
            for (uint64_t index = 0; index <= last; index++)
                for (int negative = 0; negative < 2; negative++) {
                    uint64_t code = oracle_code_of_index(format, index);
                    if (negative && !(format == FPCONV_HIF8 && code == 0))
                        code |= sign_bit(format);
                    const double value = fpconv_decode(format, (uint32_t)code, policy);
                    check_code(format, format, code, policy, fpconv_encode(format, value, policy),
                               code);
                    FOR_EACH_FORMAT (wide)
                        if (is_wide(wide))
                            check_code(format, format, code, policy,
                                       scalar_convert(format, wide,
                                                      scalar_convert(wide, format, code, policy),
                                                      policy),
                                       code);
                }
        }
}

/* Includes NaN and Inf, and f16 and bf16 into everything narrower. */
static void every_code_converts_to_every_format(void **state)
{
    (void)state;
    for (fpconv_format src = FPCONV_F16; src < FPCONV_FORMAT_COUNT; src++)
        FOR_EACH_FORMAT (dst)
            FOR_EACH_POLICY (policy)
                for (uint64_t code = 0; code < sign_bit(src) * 2; code++)
                    check_scalar(dst, src, code, policy);
}

/* The code and those before and after it, with both signs. */
static void check_around(fpconv_format dst, fpconv_format src, uint64_t code)
{
    FOR_EACH_POLICY (policy)
        for (uint64_t near = code == 0 ? 0 : code - 1; near <= code + 1; near++) {
            check_scalar(dst, src, near, policy);
            check_scalar(dst, src, near | sign_bit(src), policy);
        }
}

/* From zero to the midpoint past the largest value, and the values themselves. */
static void check_around_midpoints(fpconv_format dst, fpconv_format src)
{
    uint64_t code;
    const uint64_t last = oracle_last_index(dst, FPCONV_OCP);
    for (uint64_t index = 0; index <= last; index++) {
        assert_true(oracle_midpoint(dst, index, src, &code));
        check_around(dst, src, code);
        assert_true(oracle_value(dst, index, src, &code));
        check_around(dst, src, code);
    }
}

static void floats_around_every_midpoint(void **state)
{
    (void)state;
    for (fpconv_format dst = FPCONV_F16; dst < FPCONV_FORMAT_COUNT; dst++)
        check_around_midpoints(dst, FPCONV_F32);
}

static void doubles_around_every_midpoint(void **state)
{
    (void)state;
    for (fpconv_format dst = FPCONV_F16; dst < FPCONV_FORMAT_COUNT; dst++)
        check_around_midpoints(dst, FPCONV_F64);
}

/* f32 has 2^31 midpoints: every exponent and leading 6 fraction bits, with the
 * rest at either end and in the middle. */
static void doubles_around_midpoints_of_floats(void **state)
{
    (void)state;
    for (uint64_t top = 0; top < 0x7f800000 >> 17; top += test_scale()) {
        static const uint64_t rests[] = {0, 1, 0xffff, 0x10000, 0x1fffe, 0x1ffff};
        for (size_t i = 0; i < ARRAY_COUNT(rests); i++) {
            uint64_t code;
            assert_true(oracle_midpoint(FPCONV_F32, top << 17 | rests[i], FPCONV_F64, &code));
            check_around(FPCONV_F32, FPCONV_F64, code);
            assert_true(oracle_value(FPCONV_F32, top << 17 | rests[i], FPCONV_F64, &code));
            check_around(FPCONV_F32, FPCONV_F64, code);
        }
    }
}

/* A double that rounding to float first would take to a midpoint, or off it:
 * the midpoint and a distance of 2^-30 to 2^-52 of it. */
static void doubles_are_rounded_once(void **state)
{
    (void)state;
    uint64_t tried = 0, differ = 0;
    for (fpconv_format dst = FPCONV_F16; dst < FPCONV_FORMAT_COUNT; dst++)
        for (uint64_t index = 1; index <= oracle_last_index(dst, FPCONV_OCP); index += test_scale())
            for (int distance = 0; distance <= 22; distance++)
                for (int below = 0; below < 2; below++) {
                    uint64_t code;
                    assert_true(oracle_midpoint(dst, index, FPCONV_F64, &code));
                    code =
                        below ? code - (UINT64_C(1) << distance) : code + (UINT64_C(1) << distance);
                    FOR_EACH_POLICY (policy) {
                        const uint64_t once = oracle_convert(dst, FPCONV_F64, code, policy);
                        const uint64_t as_float =
                            oracle_convert(FPCONV_F32, FPCONV_F64, code, policy);
                        tried++;
                        differ += oracle_convert(dst, FPCONV_F32, as_float, policy) != once;
                        check_code(dst, FPCONV_F64, code, policy,
                                   scalar_convert(dst, FPCONV_F64, code, policy), once);
                    }
                }
    assert_true(differ > tried / 4); /* these inputs do tell the two apart */
}

/* Doubles that are anything at all, in and around the range of each format. */
static void random_doubles(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (unsigned i = 0; i < 1000000 / test_scale(); i++) {
        const uint64_t code = next_random(&random);
        const uint64_t near_one = (code & 0x800fffffffffffff) | (uint64_t)(0x3ff - 30 + code % 61)
                                                                    << 52;
        FOR_EACH_FORMAT (dst)
            FOR_EACH_POLICY (policy)
                if (dst != FPCONV_F64) {
                    check_scalar(dst, FPCONV_F64, code, policy);
                    check_scalar(dst, FPCONV_F64, near_one, policy);
                }
    }
}

static void unknown_policy_counts_as_hdf5_in_typed_functions(void **state)
{
    (void)state;
    const int unknown = FPCONV_POLICY_COUNT;
    assert_int_equal(fpconv_f32_to_e4m3(1.0625f, (fpconv_policy)unknown), 0x39);
    assert_int_equal(fpconv_f64_to_e4m3(1.0625, (fpconv_policy)-1), 0x39);
    assert_true(fpconv_e2m1_to_f64(0x6, (fpconv_policy)unknown) == INFINITY);
}

int main(void)
{
    if (!announce_run())
        return EXIT_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values_come_out),
        cmocka_unit_test(known_values_come_out_of_floats_too),
        cmocka_unit_test(three_tenths_in_e4m3),
        cmocka_unit_test(every_code_decodes),
        cmocka_unit_test(every_code_encodes_back),
        cmocka_unit_test(every_code_converts_to_every_format),
        cmocka_unit_test(floats_around_every_midpoint),
        cmocka_unit_test(doubles_around_every_midpoint),
        cmocka_unit_test(doubles_around_midpoints_of_floats),
        cmocka_unit_test(doubles_are_rounded_once),
        cmocka_unit_test(random_doubles),
        cmocka_unit_test(unknown_policy_counts_as_hdf5_in_typed_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
