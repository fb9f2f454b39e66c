/*
 * test_h5_probe.c - a library that converts otherwise keeps its pairs
 *
 * SPDX-License-Identifier: MIT
 *
 * Converters of the test stand in for the linked library's.  They are right but
 * for one value, which is what a future HDF5 might do.  The probes run once a
 * process, so that each case is a program run.
 */
#include <stdlib.h>

#include "h5_support.h"

static const struct side wide = {FPCONV_F32, H5T_ORDER_LE}, low = {FPCONV_E4M3, H5T_ORDER_LE};

/* What the stand-in makes of f32 codes. */
static uint64_t right(uint64_t code)
{
    return oracle_convert(FPCONV_E4M3, FPCONV_F32, code, FPCONV_HDF5);
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

static fpconv_h5_report report;

static const fpconv_h5_pair_report *register_and_find(fpconv_h5_profile profile)
{
    assert_int_equal(fpconv_h5_register_profile(profile, &report), 0);
    for (unsigned i = 0; i < report.pair_count; i++)
        if (report.pairs[i].src == wide.format && report.pairs[i].src_order == wide.order &&
            report.pairs[i].dst == low.format && report.pairs[i].dst_order == low.order)
            return &report.pairs[i];
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

    const fpconv_h5_pair_report *pair = register_and_find(FPCONV_H5_REPAIRED);
    assert_int_equal(pair->registered, chosen->repaired);
    assert_int_equal(H5Tfind(src, dst, &cdata) != stand_in, chosen->repaired);
    assert_int_equal(pair->differed > 0, chosen->convert != right);
    if (!chosen->repaired)
        assert_int_equal(pair->reason, FPCONV_H5_REASON_UNEXPLAINED);
    assert_int_equal(report.registered_count, report.pair_count - !chosen->repaired);

    pair = register_and_find(FPCONV_H5_IDENTICAL);
    assert_int_equal(pair->registered, chosen->identical);
    assert_int_equal(pair->differed > 0, !chosen->identical);

    /* OCP does not depend on what the library does. */
    pair = register_and_find(FPCONV_H5_OCP);
    assert_true(pair->registered);
    assert_int_equal(fpconv_h5_unregister(), 0);
    H5Tclose(src);
    H5Tclose(dst);
    H5Tclose(loop);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < ARRAY_COUNT(stand_ins); i++)
        if (argc == 2 && strcmp(argv[1], stand_ins[i].name) == 0)
            chosen = &stand_ins[i];
    if (!chosen) {
        fprintf(stderr, "usage: %s STAND-IN\n", argv[0]);
        return 2;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(pair_is_left_where_it_is_not_understood)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
