/*
 * test_h5_convert.c - H5Tconvert through the plugin, every pair and profile
 *
 * SPDX-License-Identifier: MIT
 *
 * What comes out is compared with exact arithmetic (oracle.c) and with the
 * linked library's own general loop, which a type that differs from the
 * registered one in its padding reaches.
 */
#include <math.h>
#include <stdlib.h>

#include "h5_support.h"

static struct stream stream;
static uint64_t got[STREAM_COUNT], loop[STREAM_COUNT];

static bool has_loop(struct side dst, struct side src)
{
    return dst.format != FPCONV_HIF8 && src.format != FPCONV_HIF8;
}

/* -------------------------------------------------------------------------- */
/* Repaired                                                                   */
/* -------------------------------------------------------------------------- */

static void check_against_oracle(hid_t dst_type, struct side dst, hid_t src_type, struct side src)
{
    convert_codes(dst_type, dst, src_type, src, stream.codes, got, STREAM_COUNT);
    for (size_t i = 0; i < STREAM_COUNT; i++)
        check_element(dst, src, i, stream.codes[i], got[i],
                      repaired_code(dst, src, stream.codes[i]));
}

static void check_all_registered(const fpconv_h5_report *report)
{
    assert_int_equal(report->registered_count, report->pair_count);
}

static void repaired_is_exact(void **state)
{
    (void)state;
    check_all_registered(register_profile(FPCONV_H5_REPAIRED));
    check_pairs(&stream, FPCONV_HDF5, check_against_oracle);
}

static size_t justified;

static void check_against_loop(hid_t dst_type, struct side dst, hid_t src_type, struct side src,
                               bool one_by_one)
{
    if (!has_loop(dst, src))
        return;
    const hid_t loop_type = make_loop_type(dst);
    const size_t n = one_by_one ? 512 : STREAM_COUNT;
    if (one_by_one) {
        convert_codes_one_by_one(dst_type, dst, src_type, src, stream.codes, got, n);
        convert_codes_one_by_one(loop_type, dst, src_type, src, stream.codes, loop, n);
    } else {
        convert_codes(dst_type, dst, src_type, src, stream.codes, got, n);
        convert_codes(loop_type, dst, src_type, src, stream.codes, loop, n);
    }
    H5Tclose(loop_type);
    for (size_t i = 0; i < n; i++) {
        const uint64_t right = stream.wants[i];
        if (!is_native_pair(dst, src))
            check_element(dst, src, i, stream.codes[i], got[i], right);
        if (loop[i] == right)
            continue;
        justified++;
        if (!is_lost_carry(dst, src, stream.codes[i], right, loop[i]))
            check_element(dst, src, i, stream.codes[i], loop[i], right);
    }
}

static void check_against_loop_in_bulk(hid_t dst_type, struct side dst, hid_t src_type,
                                       struct side src)
{
    check_against_loop(dst_type, dst, src_type, src, false);
}

static void check_against_loop_one_by_one(hid_t dst_type, struct side dst, hid_t src_type,
                                          struct side src)
{
    check_against_loop(dst_type, dst, src_type, src, true);
}

static void differs_from_loop_by_lost_carries(void **state)
{
    (void)state;
    register_profile(FPCONV_H5_REPAIRED);
    justified = 0;
    check_pairs(&stream, FPCONV_HDF5, check_against_loop_in_bulk);
    print_message("%zu carries lost by the library in bulk\n", justified);
    assert_true(justified > 0);
    justified = 0;
    check_pairs(&stream, FPCONV_HDF5, check_against_loop_one_by_one);
    print_message("%zu carries lost by the library one by one\n", justified);
    assert_true(justified > 0);
}

/* The values of the library's bugs, by their numbers. */
static void named_values_are_right(void **state)
{
    (void)state;
    static const struct {
        fpconv_format format;
        float value;
        uint64_t code;
    } cases[] = {
        {FPCONV_BF16, 7.98f, 0x40ff},  {FPCONV_BF16, 7.99f, 0x4100}, {FPCONV_E4M3, 15.7f, 0x58},
        {FPCONV_E2M1, 0.75f, 0x02},    {FPCONV_E2M1, 0.99f, 0x02},   {FPCONV_E4M3, 0.3f, 0x2a},
        {FPCONV_E4M3, 240.0f, 0x77},   {FPCONV_E4M3, 255.9f, 0x77},  {FPCONV_E4M3, 256.0f, 0x78},
        {FPCONV_E5M2, 57344.0f, 0x7b}, {FPCONV_E3M2, 14.0f, 0x1b},   {FPCONV_E2M3, 3.75f, 0x17},
        {FPCONV_E2M1, 3.0f, 0x05},     {FPCONV_HIF8, 0.5f, 0x18},    {FPCONV_HIF8, 1e9f, 0x6e},
    };
    register_profile(FPCONV_H5_REPAIRED);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const hid_t type = fpconv_h5_type(cases[i].format);
        /* after a subnormal one: 1.10 and 1.14 lose all carries from there on */
        float buf[2] = {1e-40f, cases[i].value};
        uint8_t *bytes = (uint8_t *)buf;
        const size_t size = fpconv_format_size(cases[i].format);
        assert_true(H5Tconvert(H5T_NATIVE_FLOAT, type, 2, buf, NULL, H5P_DEFAULT) >= 0);
        check_code(cases[i].format, FPCONV_F32, i, FPCONV_HDF5, load_code(bytes + size, size),
                   cases[i].code);
    }
}

/* -------------------------------------------------------------------------- */
/* The other profiles                                                         */
/* -------------------------------------------------------------------------- */

/* In one call and in short ones, which go another way. */
static void check_against_wants(hid_t dst_type, struct side dst, hid_t src_type, struct side src)
{
    enum { SHORT = 16 };
    convert_codes(dst_type, dst, src_type, src, stream.codes, got, STREAM_COUNT);
    for (size_t i = 0; i < STREAM_COUNT; i++)
        check_element(dst, src, i, stream.codes[i], got[i], stream.wants[i]);
    for (size_t i = 0; i < STREAM_COUNT; i += SHORT)
        convert_codes(dst_type, dst, src_type, src, stream.codes + i, got + i, SHORT);
    for (size_t i = 0; i < STREAM_COUNT; i++)
        check_element(dst, src, i, stream.codes[i], got[i], stream.wants[i]);
}

static void ocp_is_ocp(void **state)
{
    (void)state;
    check_all_registered(register_profile(FPCONV_H5_OCP));
    check_pairs(&stream, FPCONV_OCP, check_against_wants);
    check_all_registered(register_profile(FPCONV_H5_OCP_SAT));
    check_pairs(&stream, FPCONV_OCP_SAT, check_against_wants);
}

/* -------------------------------------------------------------------------- */
/* Buffers                                                                    */
/* -------------------------------------------------------------------------- */

enum { LENGTH_MAX = 2 * 2048 + 1 };
_Static_assert((int)LENGTH_MAX <= (int)STREAM_COUNT, "no such length");

/* A compound's member arrives as a field a stride apart, at any alignment, and
 * the other bytes of the compound stay. */
static void check_strided(hid_t dst_type, struct side dst, hid_t src_type, struct side src)
{
    enum { RECORDS = 67, PAD = 11 };
    for (size_t offset = 0; offset < 4; offset++) {
        const size_t size = PAD + 8 + offset;
        const hid_t src_record = H5Tcreate(H5T_COMPOUND, size);
        const hid_t dst_record = H5Tcreate(H5T_COMPOUND, size);
        const hid_t types[] = {src_type, dst_type}, records[] = {src_record, dst_record};
        for (int i = 0; i < 2; i++) {
            assert_true(H5Tinsert(records[i], "x", offset, types[i]) >= 0);
            assert_true(H5Tinsert(records[i], "rest", offset + 8, H5T_NATIVE_UINT8) >= 0);
        }
        uint8_t buf[RECORDS * (PAD + 8 + 4)];
        memset(buf, 0x5a, sizeof(buf));
        for (size_t i = 0; i < RECORDS; i++) {
            store_element(buf + i * size + offset, src, stream.codes[i * 61]);
            buf[i * size + offset + 8] = (uint8_t)i;
        }
        uint8_t background[sizeof(buf)] = {0};
        assert_true(H5Tconvert(src_record, dst_record, RECORDS, buf, background, H5P_DEFAULT) >= 0);
        for (size_t i = 0; i < RECORDS; i++) {
            check_element(dst, src, i, stream.codes[i * 61],
                          load_element(buf + i * size + offset, dst),
                          repaired_code(dst, src, stream.codes[i * 61]));
            assert_int_equal(buf[i * size + offset + 8], i);
        }
        H5Tclose(src_record);
        H5Tclose(dst_record);
    }
}

static void fields_of_records_are_converted(void **state)
{
    (void)state;
    register_profile(FPCONV_H5_REPAIRED);
    check_pairs(&stream, FPCONV_HDF5, check_strided);
}

/* What a profile makes of the stream's first n codes. */
static void fill_wanted(fpconv_h5_profile profile, struct side dst, hid_t src_type, struct side src,
                        uint64_t *wanted, size_t n)
{
    if (profile == FPCONV_H5_IDENTICAL && !is_native_pair(dst, src)) {
        const hid_t loop_type = make_loop_type(dst);
        convert_codes(loop_type, dst, src_type, src, stream.codes, wanted, n);
        H5Tclose(loop_type);
        return;
    }
    for (size_t i = 0; i < n; i++)
        wanted[i] = repaired_code(dst, src, stream.codes[i]);
}

/* Converts n codes at an address, and looks at the bytes around them too. */
static void check_length(hid_t dst_type, struct side dst, hid_t src_type, struct side src,
                         const uint64_t *wanted, size_t n, size_t at)
{
    static uint8_t buf[LENGTH_MAX * 8 + 160], before[sizeof(buf)];
    const size_t src_size = element_size(src), dst_size = element_size(dst);
    const size_t end = at + n * (dst_size > src_size ? dst_size : src_size);
    memset(buf, 0xa5, sizeof(buf));
    for (size_t i = 0; i < n; i++)
        store_element(buf + at + i * src_size, src, stream.codes[i]);
    memcpy(before, buf, sizeof(buf));
    assert_true(H5Tconvert(src_type, dst_type, n, buf + at, NULL, H5P_DEFAULT) >= 0);
    for (size_t i = 0; i < n; i++)
        check_element(dst, src, i, stream.codes[i], load_element(buf + at + i * dst_size, dst),
                      wanted[i]);
    assert_memory_equal(buf, before, at);
    assert_memory_equal(buf + end, before + end, sizeof(buf) - end);
}

/* All lengths up to beyond two tiles of the plugin's, at all alignments. */
static void lengths_and_alignments(void **state)
{
    (void)state;
    static const struct side sides[] = {{FPCONV_F32, H5T_ORDER_LE},
                                        {FPCONV_F64, H5T_ORDER_BE},
                                        {FPCONV_F16, H5T_ORDER_BE},
                                        {FPCONV_BF16, H5T_ORDER_LE},
                                        {FPCONV_E4M3, H5T_ORDER_LE}};
    static const size_t lengths[] = {0,  1,    2,    3,    15,   16,   17,
                                     63, 1023, 1024, 1025, 2047, 2049, LENGTH_MAX};
    static const fpconv_h5_profile profiles[] = {FPCONV_H5_REPAIRED, FPCONV_H5_IDENTICAL};
    static uint64_t wanted[LENGTH_MAX];
    for (size_t p = 0; p < ARRAY_COUNT(profiles); p++) {
        register_profile(profiles[p]);
        for (size_t d = 0; d < ARRAY_COUNT(sides); d++)
            for (size_t s = 0; s < ARRAY_COUNT(sides); s++) {
                const struct side dst = sides[d], src = sides[s];
                if (!is_pair(dst, src))
                    continue;
                const hid_t dst_type = make_type(dst), src_type = make_type(src);
                fill_stream(&stream, dst.format, src.format, FPCONV_HDF5);
                for (size_t l = 0; l < ARRAY_COUNT(lengths); l++) {
                    fill_wanted(profiles[p], dst, src_type, src, wanted, lengths[l]);
                    for (size_t at = 64; at < 64 + 9; at++)
                        check_length(dst_type, dst, src_type, src, wanted, lengths[l], at);
                }
                H5Tclose(dst_type);
                H5Tclose(src_type);
            }
    }
}

/* No buffer is needed for nothing. */
static void no_elements(void **state)
{
    (void)state;
    register_profile(FPCONV_H5_REPAIRED);
    assert_true(
        H5Tconvert(H5T_NATIVE_FLOAT, fpconv_h5_type(FPCONV_BF16), 0, NULL, NULL, H5P_DEFAULT) >= 0);
    assert_true(
        H5Tconvert(H5T_IEEE_F32BE, fpconv_h5_type(FPCONV_E4M3), 0, NULL, NULL, H5P_DEFAULT) >= 0);
}

/* -------------------------------------------------------------------------- */
/* Types, the report, bad input                                               */
/* -------------------------------------------------------------------------- */

static void types_are_equal_by_structure(void **state)
{
    (void)state;
    FOR_EACH_FORMAT (f) {
        const hid_t type = fpconv_h5_type(f), mine = native_type(f);
        assert_true(H5Tequal(type, mine) > 0);
        assert_true(fpconv_h5_type(f) == type);
        H5E_BEGIN_TRY
        {
            assert_true(H5Tclose(type) < 0);
        }
        H5E_END_TRY
        assert_true(H5Tequal(fpconv_h5_type(f), mine) > 0);
        H5Tclose(mine);
    }
#ifdef H5T_FLOAT_F4E2M1
    assert_true(fpconv_h5_type(FPCONV_BF16) == H5T_FLOAT_BFLOAT16LE ||
                fpconv_h5_type(FPCONV_BF16) == H5T_FLOAT_BFLOAT16BE);
    assert_true(fpconv_h5_type(FPCONV_E5M2) == H5T_FLOAT_F8E5M2);
    assert_true(fpconv_h5_type(FPCONV_E4M3) == H5T_FLOAT_F8E4M3);
    assert_true(fpconv_h5_type(FPCONV_E3M2) == H5T_FLOAT_F6E3M2);
    assert_true(fpconv_h5_type(FPCONV_E2M3) == H5T_FLOAT_F6E2M3);
    assert_true(fpconv_h5_type(FPCONV_E2M1) == H5T_FLOAT_F4E2M1);
#endif
#ifdef H5T_NATIVE_FLOAT16
    if (H5T_NATIVE_FLOAT16 >= 0)
        assert_true(H5Tequal(fpconv_h5_type(FPCONV_F16), H5T_NATIVE_FLOAT16) > 0);
#endif
}

struct search {
    const char *text;
    bool found;
};

static herr_t search_entry(unsigned n, const H5E_error2_t *entry, void *data)
{
    (void)n;
    struct search *search = data;
    search->found = search->found || strstr(entry->desc, search->text);
    return 0;
}

static bool error_stack_says(const char *text)
{
    struct search search = {text, false};
    assert_true(H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, search_entry, &search) >= 0);
    return search.found;
}

static H5T_conv_ret_t abort_always(H5T_conv_except_t exception, hid_t src, hid_t dst, void *src_buf,
                                   void *dst_buf, void *data)
{
    (void)exception, (void)src, (void)dst, (void)src_buf, (void)dst_buf, (void)data;
    return H5T_CONV_ABORT;
}

static void errors_are_on_the_stack(void **state)
{
    (void)state;
    const hid_t list = H5Pcreate(H5P_DATASET_XFER);
    assert_true(H5Pset_type_conv_cb(list, abort_always, NULL) >= 0);
    register_profile(FPCONV_H5_REPAIRED);
    float value = 1e9f;
    const hid_t bf16 = fpconv_h5_type(FPCONV_E4M3);
    /* asked for before: each call of HDF5 clears the stack */
    const char *text = H5Tget_order(H5T_NATIVE_FLOAT) == H5T_ORDER_BE
                           ? "f32BE to e4m3LE: the exception handler asked to abort"
                           : "f32LE to e4m3LE: the exception handler asked to abort";
    H5E_BEGIN_TRY
    {
        assert_true(H5Tconvert(H5T_NATIVE_FLOAT, bf16, 1, &value, NULL, list) < 0);
        assert_true(error_stack_says(text));
        assert_true(fpconv_h5_register_profile((fpconv_h5_profile)4, NULL) < 0);
        assert_true(error_stack_says("profile"));
        assert_true(fpconv_h5_register_profile((fpconv_h5_profile)-1, NULL) < 0);
        assert_true(fpconv_h5_type((fpconv_format)10) < 0);
        assert_true(error_stack_says("format"));
    }
    H5E_END_TRY
    H5Pclose(list);
}

/* All pairs are registered in each of the libraries known so far. */
static void report_tells_what_happened(void **state)
{
    (void)state;
    unsigned version[3];
    H5get_libversion(&version[0], &version[1], &version[2]);
    for (fpconv_h5_profile profile = 0; profile < FPCONV_H5_PROFILE_COUNT; profile++) {
        const fpconv_h5_report *report = register_profile(profile);
        assert_memory_equal(report->library_version, version, sizeof(version));
        unsigned registered = 0, bugs = 0;
        for (unsigned i = 0; i < report->pair_count; i++) {
            const fpconv_h5_pair_report *pair = &report->pairs[i];
            const bool hif8 = pair->src == FPCONV_HIF8 || pair->dst == FPCONV_HIF8;
            assert_int_equal(pair->registered, !hif8 || profile != FPCONV_H5_IDENTICAL);
            assert_true(hif8 ? pair->probes == 0 : pair->probes > 0);
            assert_true(pair->differed <= pair->probes);
            assert_string_not_equal(fpconv_h5_reason_text(pair->reason), "unknown reason");
            if (profile == FPCONV_H5_IDENTICAL)
                assert_int_equal(pair->differed, 0);
            registered += (unsigned)pair->registered;
            bugs |= pair->bugs;
        }
        assert_int_equal(registered, report->registered_count);
        assert_true(bugs & FPCONV_H5_BUG_LOST_CARRY);
        const bool is_sticky = version[0] == 1 && version[1] <= 14;
        assert_int_equal((bugs & FPCONV_H5_BUG_STICKY_CARRY) != 0, is_sticky);
        assert_non_null(fpconv_h5_profile_name(profile));
    }
    assert_null(fpconv_h5_profile_name(FPCONV_H5_PROFILE_COUNT));
    assert_string_equal(fpconv_h5_reason_text((fpconv_h5_reason)99), "unknown reason");
}

/* Datatypes that are nearly ours are the library's business. */
static void other_types_stay_with_the_library(void **state)
{
    (void)state;
    register_profile(FPCONV_H5_OCP);
    H5T_cdata_t *cdata;
    const hid_t ours = fpconv_h5_type(FPCONV_E4M3);
    const H5T_conv_t converter = H5Tfind(H5T_NATIVE_FLOAT, ours, &cdata);
    hid_t odd[6];
    for (size_t i = 0; i < ARRAY_COUNT(odd); i++)
        odd[i] = H5Tcopy(ours);
    assert_true(H5Tset_ebias(odd[0], 0) >= 0);
    assert_true(H5Tset_norm(odd[1], H5T_NORM_NONE) >= 0);
    assert_true(H5Tset_fields(odd[2], 7, 2, 5, 0, 2) >= 0); /* e5m2 with e4m3's bias */
    assert_true(H5Tset_size(odd[3], 3) >= 0);
    assert_true(H5Tset_fields(odd[4], 4, 2, 2, 0, 2) >= 0 && H5Tset_precision(odd[4], 5) >= 0);
    assert_true(H5Tset_pad(odd[5], H5T_PAD_ONE, H5T_PAD_ONE) >= 0);
    for (size_t i = 0; i < ARRAY_COUNT(odd); i++) {
        float buf[4] = {1.0f, -0.25f, 3.0f, 1e30f};
        assert_true(H5Tfind(H5T_NATIVE_FLOAT, odd[i], &cdata) != converter);
        assert_true(H5Tconvert(H5T_NATIVE_FLOAT, odd[i], 4, buf, NULL, H5P_DEFAULT) >= 0);
        assert_true(H5Tconvert(odd[i], H5T_NATIVE_FLOAT, 4, buf, NULL, H5P_DEFAULT) >= 0);
        /* Registered by force, our function refuses. */
        H5E_BEGIN_TRY
        {
            assert_true(H5Tregister(H5T_PERS_HARD, "odd", H5T_NATIVE_FLOAT, odd[i], converter) < 0);
        }
        H5E_END_TRY
        H5Tclose(odd[i]);
    }
    /* f32 and f64 among themselves, integers, other opaque types */
    assert_true(H5Tfind(H5T_NATIVE_FLOAT, H5T_NATIVE_DOUBLE, &cdata) != converter);
    assert_true(H5Tfind(H5T_NATIVE_INT, ours, &cdata) != converter);
    const hid_t opaque = H5Tcreate(H5T_OPAQUE, 1);
    assert_true(H5Tset_tag(opaque, "somebody's") >= 0);
    H5E_BEGIN_TRY
    {
        assert_true(H5Tfind(H5T_NATIVE_FLOAT, opaque, &cdata) == NULL);
    }
    H5E_END_TRY
    H5Tclose(opaque);
}

static int unregister(void **state)
{
    (void)state;
    return fpconv_h5_unregister();
}

int main(void)
{
    note_native_pairs();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(repaired_is_exact, unregister),
        cmocka_unit_test_teardown(differs_from_loop_by_lost_carries, unregister),
        cmocka_unit_test_teardown(named_values_are_right, unregister),
        cmocka_unit_test_teardown(ocp_is_ocp, unregister),
        cmocka_unit_test_teardown(fields_of_records_are_converted, unregister),
        cmocka_unit_test_teardown(lengths_and_alignments, unregister),
        cmocka_unit_test_teardown(no_elements, unregister),
        cmocka_unit_test_teardown(types_are_equal_by_structure, unregister),
        cmocka_unit_test_teardown(errors_are_on_the_stack, unregister),
        cmocka_unit_test_teardown(report_tells_what_happened, unregister),
        cmocka_unit_test_teardown(other_types_stay_with_the_library, unregister),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
