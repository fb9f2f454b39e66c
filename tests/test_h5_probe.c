/*
 * test_h5_probe.c - a library that converts otherwise keeps its pairs
 *
 * SPDX-License-Identifier: MIT
 *
 * Converters of the test stand in for the linked library's.  They are right but
 * for one value, which is what a future HDF5 might do.  Another writes down what it
 * is asked.  The probes run once a process, so that each case is a program run.
 */
#include <stdlib.h>

#include "h5_support.h"

static const struct side wide = {FPCONV_F32, H5T_ORDER_LE};
static struct side low = {FPCONV_E4M3, H5T_ORDER_LE};

/* What the stand-in makes of f32 codes. */
static uint64_t right(uint64_t code)
{
    return oracle_convert(low.format, wide.format, code, FPCONV_HDF5);
}

static uint64_t tie_to_even(uint64_t code)
{
    return code == 0x3f880000 ? 0x38 : right(code); /* 1.0625 to 1, not 1.125 */
}

static uint64_t nan_without_sign(uint64_t code)
{
    return code > 0xff800000 ? 0x7f : right(code);
}

/* 1.9375 * 2^-6 is normal: no carry is lost there, until now. */
static uint64_t new_lost_carry(uint64_t code)
{
    return code == 0x3cf80000 ? 0x08 : right(code);
}

/* Of the lost carries only one is left. */
static uint64_t fewer_lost_carries(uint64_t code)
{
    return code == 0x3b400000 ? 0x01 : right(code); /* 1.5 * 2^-9 */
}

struct stand_in {
    const char *name;
    uint64_t (*convert)(uint64_t code);
    bool repaired, identical; /* is the pair taken over? */
};

static const struct stand_in stand_ins[] = {
    {"right", right, true, true},
    {"tie_to_even", tie_to_even, false, false},
    {"nan_without_sign", nan_without_sign, false, false},
    {"new_lost_carry", new_lost_carry, false, false},
    {"fewer_lost_carries", fewer_lost_carries, true, false},
};

static const struct stand_in *chosen;

static herr_t stand_in(hid_t src, hid_t dst, H5T_cdata_t *cdata, size_t n, size_t buf_stride,
                       size_t bkg_stride, void *buf, void *bkg, hid_t list)
{
    (void)src, (void)dst, (void)bkg_stride, (void)bkg, (void)list;
    cdata->need_bkg = H5T_BKG_NO;
    for (size_t i = 0; cdata->command == H5T_CONV_CONV && i < n; i++) {
        const uint64_t code = load_element((char *)buf + i * (buf_stride ? buf_stride : 4), wide);
        store_element((char *)buf + i * (buf_stride ? buf_stride : 1), low, chosen->convert(code));
    }
    return 0;
}

static const fpconv_h5_pair_report *find_pair(const fpconv_h5_report *report)
{
    for (unsigned i = 0; i < report->pair_count; i++)
        if (report->pairs[i].src == wide.format && report->pairs[i].src_order == wide.order &&
            report->pairs[i].dst == low.format && report->pairs[i].dst_order == low.order)
            return &report->pairs[i];
    fail_msg("the pair is not in the report");
    return NULL;
}

static void pair_is_left_where_it_is_not_understood(void **state)
{
    (void)state;
    const hid_t src = make_type(wide), dst = make_type(low), loop = make_loop_type(low);
    H5T_cdata_t *cdata;
    /* Both where the library converts and where its own loop is asked. */
    assert_true(H5Tregister(H5T_PERS_HARD, "stand-in", src, dst, stand_in) >= 0);
    assert_true(H5Tregister(H5T_PERS_HARD, "stand-in", src, loop, stand_in) >= 0);

    const fpconv_h5_report *report = register_profile(FPCONV_H5_REPAIRED);
    const fpconv_h5_pair_report *pair = find_pair(report);
    assert_int_equal(report->registered_count, report->pair_count - !chosen->repaired);
    assert_int_equal(pair->registered, chosen->repaired);
    assert_int_equal(H5Tfind(src, dst, &cdata) != stand_in, chosen->repaired);
    assert_int_equal(pair->differed > 0, chosen->convert != right);
    if (!chosen->repaired)
        assert_int_equal(pair->reason, FPCONV_H5_REASON_UNEXPLAINED);

    pair = find_pair(register_profile(FPCONV_H5_IDENTICAL));
    assert_int_equal(pair->registered, chosen->identical);
    assert_int_equal(pair->differed > 0, !chosen->identical);

    /* OCP does not depend on what the library does. */
    pair = find_pair(register_profile(FPCONV_H5_OCP));
    assert_true(pair->registered);
    assert_int_equal(fpconv_h5_unregister(), 0);
    H5Tclose(src);
    H5Tclose(dst);
    H5Tclose(loop);
}

/* -------------------------------------------------------------------------- */
/* What the probes are                                                        */
/* -------------------------------------------------------------------------- */

enum { ASKED_MAX = 1 << 16 };
static uint32_t asked[ASKED_MAX]; /* the f32 codes of the longest call, in its order */
static size_t asked_count;

/* Converts nothing: what it leaves is nothing that fpconv could explain. */
static herr_t write_down(hid_t src, hid_t dst, H5T_cdata_t *cdata, size_t n, size_t buf_stride,
                         size_t bkg_stride, void *buf, void *bkg, hid_t list)
{
    (void)src, (void)dst, (void)buf_stride, (void)bkg_stride, (void)bkg, (void)list;
    cdata->need_bkg = H5T_BKG_NO;
    if (cdata->command != H5T_CONV_CONV || n <= asked_count)
        return 0;
    for (asked_count = 0; asked_count < n && asked_count < ASKED_MAX; asked_count++)
        asked[asked_count] = (uint32_t)load_element((char *)buf + asked_count * 4, wide);
    return 0;
}

static bool was_asked(uint64_t code)
{
    for (size_t i = 0; i < asked_count; i++)
        if (asked[i] == code)
            return true;
    return false;
}

/* A magnitude, with both signs. */
static void check_asked(const char *what, uint64_t magnitude)
{
    if (!was_asked(magnitude) || !was_asked(magnitude | 0x80000000))
        fail_msg("%s: no probe 0x%08x", what, (unsigned)magnitude);
}

static void check_exponents_and_specials(void)
{
    for (uint32_t exponent = 0; exponent < 0x100; exponent++) {
        bool found = false;
        for (size_t i = 0; i < asked_count; i++)
            found = found || (asked[i] >> 23 & 0xff) == exponent;
        if (!found)
            fail_msg("no probe with exponent %u", (unsigned)exponent);
    }
    check_asked("zero", 0);
    check_asked("largest finite", 0x7f7fffff);
    check_asked("Inf", 0x7f800000);
    check_asked("NaN, lowest bit", 0x7f800001);
    check_asked("NaN, quiet", 0x7fc00000);
    check_asked("NaN, all bits", 0x7fffffff);
}

/* Values, ties, and both sides of these. */
static void check_values_and_midpoints(void)
{
    const uint64_t last = oracle_last_index(low.format, FPCONV_OCP);
    for (uint64_t index = 0; index < last; index++) {
        uint64_t value, middle;
        assert_true(oracle_value(low.format, index, wide.format, &value));
        assert_true(oracle_midpoint(low.format, index, wide.format, &middle));
        check_asked("value", value);
        check_asked("below a midpoint", middle - 1);
        check_asked("midpoint", middle);
        check_asked("above a midpoint", middle + 1);
    }
}

/* Numbers that carry and are normal on both sides, before any subnormal one and after. */
static void check_order(hid_t low_type)
{
    size_t sign, exponent, exponent_bits, fraction, fraction_bits;
    uint64_t normal, tie;
    assert_true(
        H5Tget_fields(low_type, &sign, &exponent, &exponent_bits, &fraction, &fraction_bits) >= 0);
    const uint64_t first_normal = UINT64_C(1) << fraction_bits;
    assert_true(oracle_value(low.format, first_normal, wide.format, &normal));
    assert_true(oracle_midpoint(low.format, 0, wide.format, &tie));
    unsigned results = 0, sources = 0, before = 0, after = 0;
    for (size_t i = 0; i < asked_count; i++) {
        const uint32_t magnitude = asked[i] & 0x7fffffff;
        const uint64_t code = right(magnitude);
        const uint64_t result = oracle_convert(wide.format, low.format, code, FPCONV_HDF5);
        const bool carries = magnitude > normal && code % first_normal == 0 && result > magnitude &&
                             result < 0x7f800000;
        results += magnitude >= tie && magnitude < normal;
        sources += magnitude > 0 && magnitude < 0x00800000;
        *(results + sources == 0 ? &before : &after) += carries;
    }
    assert_true(results > 0 && sources > 0);
    assert_true(before > 0 && after > 0);
}

static void probes_are_the_promised_ones(void **state)
{
    (void)state;
    const hid_t src = make_type(wide), dst = make_type(low), loop = make_loop_type(low);
    assert_true(H5Tregister(H5T_PERS_HARD, "write down", src, dst, write_down) >= 0);
    assert_true(H5Tregister(H5T_PERS_HARD, "write down", src, loop, write_down) >= 0);
    const fpconv_h5_pair_report *pair = find_pair(register_profile(FPCONV_H5_REPAIRED));
    assert_int_equal(pair->registered, 0);
    assert_int_equal(pair->probes, asked_count);
    check_exponents_and_specials();
    check_values_and_midpoints();
    check_order(dst);
    H5Tclose(src);
    H5Tclose(dst);
    H5Tclose(loop);
}

/* -------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    const struct CMUnitTest probes[] = {cmocka_unit_test(probes_are_the_promised_ones)};
    for (int i = 0; i < FPCONV_FORMAT_COUNT; i++)
        if (argc == 3 && strcmp(argv[1], "--probes") == 0 &&
            strcmp(argv[2], fpconv_format_name((fpconv_format)i)) == 0) {
            low.format = (fpconv_format)i;
            return cmocka_run_group_tests(probes, NULL, NULL);
        }
    for (size_t i = 0; i < ARRAY_COUNT(stand_ins); i++)
        if (argc == 2 && strcmp(argv[1], stand_ins[i].name) == 0)
            chosen = &stand_ins[i];
    if (!chosen) {
        fprintf(stderr, "usage: %s STAND-IN | --probes FORMAT\n", argv[0]);
        return 2;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(pair_is_left_where_it_is_not_understood)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
