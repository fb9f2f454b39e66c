/*
 * test_array_values.c - arrays of all values against the scalar functions
 *
 * SPDX-License-Identifier: MIT
 *
 * What test_arrays.c does for every place, this does for the values, at the
 * level that FPCONV_CPU names.  Values come in order, so that a vector holds
 * neighbours, and once more mixed, so that it holds values of all sizes.
 */
#include "oracle.h"
#include "support.h"

/* The i-th value of a source format, for some purpose. */
typedef uint64_t value_function(fpconv_format src, uint64_t i);

/* Elements from SEGMENTS places at a time: one segment after the other, and with
 * the segments interleaved. */
enum { SEGMENTS = 16, SEGMENT_MAX = 4096, BLOCK = SEGMENTS * SEGMENT_MAX };

static struct {
    size_t n;
    uint64_t codes[BLOCK];
    uint8_t in_order[BLOCK * 8], interleaved[BLOCK * 8];
} block;

/* Segment k begins at k * part + done. */
static void fill_block(fpconv_format src, value_function *value, uint64_t count, uint64_t part,
                       uint64_t done)
{
    const size_t length = part - done < SEGMENT_MAX ? (size_t)(part - done) : SEGMENT_MAX;
    const size_t size = fpconv_format_size(src);
    block.n = SEGMENTS * length;
    for (size_t k = 0; k < SEGMENTS; k++)
        for (size_t i = 0; i < length; i++) {
            const uint64_t at = (k * part + done + i) * test_scale();
            const uint64_t code = value(src, at < count ? at : count - 1);
            block.codes[k * length + i] = code;
            store_code(block.in_order + (k * length + i) * size, size, code);
            store_code(block.interleaved + (i * SEGMENTS + k) * size, size, code);
        }
}

static void check_block(fpconv_format dst, fpconv_format src, fpconv_policy policy)
{
    static uint8_t want[BLOCK * 8], want_interleaved[BLOCK * 8], got[BLOCK * 8];
    scalar_function *scalar = scalar_function_of(dst, src);
    const size_t size = fpconv_format_size(dst), length = block.n / SEGMENTS;
    for (size_t i = 0; i < block.n; i++) {
        const uint64_t code = scalar ? scalar(block.codes[i], policy)
                                     : oracle_convert(dst, src, block.codes[i], policy);
        store_code(want + i * size, size, code);
        store_code(want_interleaved + (i % length * SEGMENTS + i / length) * size, size, code);
    }
    assert_int_equal(fpconv_convert(dst, got, src, block.in_order, block.n, policy), FPCONV_OK);
    for (size_t i = 0; i < block.n && memcmp(got, want, block.n * size) != 0; i++)
        check_code(dst, src, block.codes[i], policy, load_code(got + i * size, size),
                   load_code(want + i * size, size));
    assert_int_equal(fpconv_convert(dst, got, src, block.interleaved, block.n, policy), FPCONV_OK);
    for (size_t i = 0; i < block.n && memcmp(got, want_interleaved, block.n * size) != 0; i++)
        check_code(dst, src, block.codes[i % SEGMENTS * length + i / SEGMENTS], policy,
                   load_code(got + i * size, size), load_code(want_interleaved + i * size, size));
}

/* `count` values of a source to the formats first to last. */
static void check_values(fpconv_format first, fpconv_format last, fpconv_format src,
                         value_function *value, uint64_t count)
{
    const uint64_t part = (count / test_scale() + SEGMENTS - 1) / SEGMENTS;
    for (uint64_t done = 0; done < part; done += SEGMENT_MAX) {
        fill_block(src, value, count, part, done);
        for (fpconv_format dst = first; dst <= last; dst++)
            FOR_EACH_POLICY (policy)
                check_block(dst, src, policy);
    }
}

#define LAST_FORMAT ((fpconv_format)(FPCONV_FORMAT_COUNT - 1))

static void strata_of_f32(void **state)
{
    (void)state;
    check_values(FPCONV_F64, LAST_FORMAT, FPCONV_F32, strata_code, strata_count(FPCONV_F32));
}

static void strata_of_f64(void **state)
{
    (void)state;
    check_values(FPCONV_F64, LAST_FORMAT, FPCONV_F64, strata_code, strata_count(FPCONV_F64));
}

static uint64_t code_itself(fpconv_format src, uint64_t i)
{
    (void)src;
    return i;
}

static void every_code_of_narrow_formats(void **state)
{
    (void)state;
    for (fpconv_format src = FPCONV_F16; src < FPCONV_FORMAT_COUNT; src++)
        check_values(FPCONV_F64, LAST_FORMAT, src, code_itself,
                     UINT64_C(1) << 8 * fpconv_format_size(src));
}

static fpconv_format destination;

/* 12 for each value of the destination: itself and the midpoint to the next, what
 * is before, at and after them, both signs. */
static uint64_t near_destination(fpconv_format src, uint64_t i)
{
    const uint64_t index = i / 12, sign = UINT64_C(1) << (oracle_bits(src) - 1);
    uint64_t code;
    const bool exact = i % 2 == 0 ? oracle_value(destination, index, src, &code)
                                  : oracle_midpoint(destination, index, src, &code);
    assert_true(exact);
    code += i / 2 % 3;
    code -= code > 0; /* there is nothing before zero */
    return i % 12 < 6 ? code : code | sign;
}

static void around_every_value_and_midpoint(void **state)
{
    (void)state;
    for (destination = FPCONV_F16; destination < FPCONV_FORMAT_COUNT; destination++)
        for (fpconv_format src = FPCONV_F64; src <= FPCONV_F32; src++)
            check_values(destination, destination, src, near_destination,
                         12 * (oracle_last_index(destination, FPCONV_OCP) + 1));
}

/* The same around every 2^14 plus few values of f32. */
static uint64_t near_float(fpconv_format src, uint64_t i)
{
    static const uint64_t rests[] = {0, 1, 0x1fff, 0x2000, 0x3ffe, 0x3fff};
    const uint64_t index = i / 12;
    return near_destination(
        src,
        12 * ((index / ARRAY_COUNT(rests)) << 14 | rests[index % ARRAY_COUNT(rests)]) + i % 12);
}

static void around_values_and_midpoints_of_f32(void **state)
{
    (void)state;
    destination = FPCONV_F32;
    check_values(FPCONV_F32, FPCONV_F32, FPCONV_F64, near_float,
                 UINT64_C(12) * 6 * (0x7f800000 >> 14));
}

int main(void)
{
    if (!announce_run())
        return EXIT_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strata_of_f32),
        cmocka_unit_test(strata_of_f64),
        cmocka_unit_test(every_code_of_narrow_formats),
        cmocka_unit_test(around_every_value_and_midpoint),
        cmocka_unit_test(around_values_and_midpoints_of_f32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
