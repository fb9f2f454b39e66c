/*
 * test_h5_identical.c - profile IDENTICAL against the library's own loop
 *
 * SPDX-License-Identifier: MIT
 *
 * At the level that FPCONV_CPU names.  A type that differs from the registered one in its
 * padding reaches the loop.
 */
#include <math.h>

#include "h5_support.h"

static struct stream stream;
static uint64_t got[STREAM_COUNT], loop[STREAM_COUNT];

/* -------------------------------------------------------------------------- */
/* Values                                                                     */
/* -------------------------------------------------------------------------- */

/* Whole, in short pieces, which start without the memory of a subnormal one, and
 * one by one.  Of very many pieces every test_scale()-th is tried. */
static void check_identical(hid_t dst_type, struct side dst, hid_t src_type, struct side src)
{
    if (!is_loop_pair(dst, src))
        return;
    const hid_t loop_type = make_loop_type(dst);
    for (size_t piece = STREAM_COUNT; piece > 0; piece /= 7) {
        const size_t step = piece < 64 ? piece * test_scale() : piece;
        for (size_t at = 0; at + piece <= STREAM_COUNT; at += step) {
            convert_codes(dst_type, dst, src_type, src, stream.codes + at, got + at, piece);
            convert_codes(loop_type, dst, src_type, src, stream.codes + at, loop + at, piece);
            for (size_t i = at; i < at + piece; i++)
                check_element(dst, src, i, stream.codes[i], got[i], loop[i]);
        }
    }
    H5Tclose(loop_type);
}

/* Native pairs, whose own conversion is gone once a converter is registered, are
 * compared with what it gave before. */
static uint64_t native_before[SIDES][SIDES][STREAM_COUNT];

static void note_native_result(hid_t dst_type, struct side dst, hid_t src_type, struct side src)
{
    convert_codes(dst_type, dst, src_type, src, stream.codes,
                  native_before[index_of(dst)][index_of(src)], STREAM_COUNT);
}

static void check_native_result(hid_t dst_type, struct side dst, hid_t src_type, struct side src)
{
    const uint64_t *before = native_before[index_of(dst)][index_of(src)];
    convert_codes(dst_type, dst, src_type, src, stream.codes, got, STREAM_COUNT);
    for (size_t i = 0; i < STREAM_COUNT; i++)
        check_element(dst, src, i, stream.codes[i], got[i], before[i]);
}

static void note_native_results(void)
{
    for_each_pair(is_native_pair, &stream, FPCONV_HDF5, note_native_result);
}

static void check_native(void)
{
    for_each_pair(is_native_pair, &stream, FPCONV_HDF5, check_native_result);
}

static void identical_is_the_loop(void **state)
{
    (void)state;
    register_profile(FPCONV_H5_IDENTICAL);
    check_pairs(&stream, FPCONV_HDF5, check_identical);
    check_native();
    register_profile(FPCONV_H5_REPAIRED);
    check_native();
    assert_int_equal(fpconv_h5_unregister(), 0);
    check_native();
}

static void unregistered_is_the_loop(void **state)
{
    (void)state;
    register_profile(FPCONV_H5_OCP);
    assert_int_equal(fpconv_h5_unregister(), 0);
    check_pairs(&stream, FPCONV_HDF5, check_identical);
}

/* -------------------------------------------------------------------------- */
/* Arrays                                                                     */
/* -------------------------------------------------------------------------- */

enum { LONG = 3 * 8192 + 5 };

static uint64_t code_of(struct side side, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return oracle_convert(side.format, FPCONV_F64, bits, FPCONV_HDF5);
}

/* Up to LONG elements in one call. */
static void check_codes_against_loop(hid_t dst_type, struct side dst, hid_t src_type,
                                     struct side src, const uint64_t *codes, size_t n)
{
    static uint64_t ours[LONG], theirs[LONG];
    const hid_t loop_type = make_loop_type(dst);
    convert_codes(dst_type, dst, src_type, src, codes, ours, n);
    convert_codes(loop_type, dst, src_type, src, codes, theirs, n);
    H5Tclose(loop_type);
    for (size_t i = 0; i < n; i++)
        check_element(dst, src, i, codes[i], ours[i], theirs[i]);
}

/* More elements than the plugin takes at a time: at first normal numbers that keep their
 * carries and zeros, then everything. */
static void check_long_array(hid_t dst_type, struct side dst, hid_t src_type, struct side src)
{
    enum { NORMAL = 8192 + 4096 + 77 };
    static uint64_t codes[LONG];
    for (size_t i = 0; i < LONG; i++) {
        const double value = i % 5 == 0 ? 0 : ldexp(2 - ldexp(1, -(int)(i % 17)), i % 3 == 0);
        codes[i] = i < NORMAL ? code_of(src, value) : stream.codes[i % STREAM_COUNT];
    }
    check_codes_against_loop(dst_type, dst, src_type, src, codes, LONG);
}

static bool loses_carries_in_pieces(struct side dst, struct side src)
{
    return is_loop_pair(dst, src) && src.order == dst.order && element_size(src) > 1 &&
           element_size(dst) <= 2;
}

/* What has been met must be known from one piece to the next. */
static void identical_in_long_arrays(void **state)
{
    (void)state;
    register_profile(FPCONV_H5_IDENTICAL);
    assert_true(for_each_pair(loses_carries_in_pieces, &stream, FPCONV_HDF5, check_long_array) > 0);
}

/* One element that rounding makes normal, among others that are: of what the library
 * counts as denormalised, the results show nothing below the normal range. */
static void check_rounded_to_normal(hid_t dst_type, struct side dst, hid_t src_type,
                                    struct side src)
{
    enum { COUNT = 64, PLACE = 5 };
    const int min_exponent = dst.format == FPCONV_F16 ? -14 : -126;
    uint64_t codes[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        const double value = ldexp(2 - ldexp(1, -12), i == PLACE ? min_exponent - 1 : 0);
        codes[i] = code_of(src, value);
    }
    check_codes_against_loop(dst_type, dst, src_type, src, codes, COUNT);
}

static bool rounds_to_16_bits(struct side dst, struct side src)
{
    return is_loop_pair(dst, src) && element_size(dst) == 2 && element_size(src) > 2;
}

static void identical_where_rounding_makes_normal(void **state)
{
    (void)state;
    register_profile(FPCONV_H5_IDENTICAL);
    assert_true(for_each_pair(rounds_to_16_bits, &stream, FPCONV_HDF5, check_rounded_to_normal) >
                0);
}

/* -------------------------------------------------------------------------- */
/* The first denormal                                                         */
/* -------------------------------------------------------------------------- */

/* Bits of the fraction, and the exponents of the normal numbers that HDF5 takes for finite. */
struct range {
    int fraction, min, max;
};

static struct range range_of(fpconv_format format)
{
    static const struct range ranges[FPCONV_FORMAT_COUNT] = {
        [FPCONV_F64] = {52, -1022, 1023}, [FPCONV_F32] = {23, -126, 127},
        [FPCONV_F16] = {10, -14, 15},     [FPCONV_BF16] = {7, -126, 127},
        [FPCONV_E5M2] = {2, -14, 15},     [FPCONV_E4M3] = {3, -6, 7},
        [FPCONV_E3M2] = {2, -2, 3},       [FPCONV_E2M3] = {3, 0, 1},
        [FPCONV_E2M1] = {1, 0, 1}};
    return ranges[format];
}

/* Numbers that both formats hold as normal ones, most of which carry, up to the largest
 * binade; and zeros. */
static uint64_t normal_code(struct side dst, struct side src, size_t i)
{
    const struct range d = range_of(dst.format), s = range_of(src.format);
    const int min = d.min > s.min ? d.min : s.min, max = d.max < s.max ? d.max : s.max;
    const int exponents[] = {max, 0, min, min + 1, max - 1};
    const int below = d.fraction + 1 + (int)(i / 5 % 4); /* the first is a tie */
    const double value = ldexp(2 - ldexp(1, -below), exponents[i % 5]);
    return i % 11 == 0 ? 0 : code_of(src, i % 3 == 0 ? -value : value);
}

/* What the library counts as denormalised, and carries or does not. */
static uint64_t denormal_code(struct side dst, struct side src, size_t kind)
{
    const struct range d = range_of(dst.format), s = range_of(src.format);
    const double smallest = ldexp(1, d.min - d.fraction);
    const double values[] = {
        smallest,                                    /* exact */
        1.5 * smallest,                              /* a tie, which carries */
        0.5 * smallest,                              /* the lowest that counts */
        ldexp(2 - ldexp(1, -d.fraction), d.min - 1), /* rounds to the smallest normal number */
        ldexp(1, s.min - s.fraction),                /* a subnormal source */
    };
    return code_of(src, values[kind % ARRAY_COUNT(values)]);
}

enum { PLACES_MAX = 32, MIXED = 4096 + 700 };

/* Edges of vectors, blocks and pieces, tails, and nowhere. */
static const size_t places[] = {
    0,    1,    2,    3,    15,   16,         31,        32,        63,        64,   65,
    127,  255,  256,  257,  511,  512,        513,       767,       1023,      1024, 1025,
    2047, 2048, 4095, 4096, 4097, MIXED - 64, MIXED - 3, MIXED - 2, MIXED - 1, MIXED};
_Static_assert(ARRAY_COUNT(places) == PLACES_MAX, "one for each turn");

/* Normal numbers before a place, a denormal there, and everything after it. */
static void fill_mixed(struct side dst, struct side src, size_t turn, uint64_t codes[MIXED])
{
    for (size_t i = 0; i < MIXED; i++) {
        const bool is_after = i > places[turn] && i % 2 == 0;
        codes[i] = i == places[turn] ? denormal_code(dst, src, turn)
                   : is_after        ? stream.codes[(i * 7 + turn) % STREAM_COUNT]
                                     : normal_code(dst, src, i);
    }
}

static bool rounds(struct side dst, struct side src)
{
    return is_loop_pair(dst, src) && src.order == dst.order &&
           element_size(dst) <= element_size(src);
}

/* A number of elements at a time that is not a whole number of blocks, too. */
static void check_first_denormal(hid_t dst_type, struct side dst, hid_t src_type, struct side src)
{
    static uint64_t codes[MIXED];
    for (size_t turn = 0; turn < PLACES_MAX; turn += test_scale()) {
        fill_mixed(dst, src, turn, codes);
        check_codes_against_loop(dst_type, dst, src_type, src, codes, MIXED - turn % 3);
    }
}

static void first_denormal_anywhere(void **state)
{
    (void)state;
    register_profile(FPCONV_H5_IDENTICAL);
    assert_true(for_each_pair(rounds, &stream, FPCONV_HDF5, check_first_denormal) > 0);
}

static hid_t record_of(hid_t member, size_t offset, size_t size)
{
    const hid_t record = H5Tcreate(H5T_COMPOUND, size);
    assert_true(H5Tinsert(record, "x", offset, member) >= 0);
    return record;
}

/* A member of records arrives as a field a stride apart. */
static void convert_fields(hid_t dst_type, struct side dst, hid_t src_type, struct side src,
                           const uint64_t *codes, uint64_t *results, size_t n)
{
    enum { OFFSET = 3, SIZE = 12 };
    static uint8_t buf[MIXED * SIZE], background[MIXED * SIZE];
    const hid_t src_record = record_of(src_type, OFFSET, SIZE);
    const hid_t dst_record = record_of(dst_type, OFFSET, SIZE);
    for (size_t i = 0; i < n; i++)
        store_element(buf + i * SIZE + OFFSET, src, codes[i]);
    assert_true(H5Tconvert(src_record, dst_record, n, buf, background, H5P_DEFAULT) >= 0);
    for (size_t i = 0; i < n; i++)
        results[i] = load_element(buf + i * SIZE + OFFSET, dst);
    H5Tclose(src_record);
    H5Tclose(dst_record);
}

static void check_fields(hid_t dst_type, struct side dst, hid_t src_type, struct side src)
{
    static uint64_t codes[MIXED], ours[MIXED], theirs[MIXED];
    const hid_t loop_type = make_loop_type(dst);
    for (size_t turn = 0; turn < PLACES_MAX; turn += 3 * test_scale()) {
        fill_mixed(dst, src, turn, codes);
        convert_fields(dst_type, dst, src_type, src, codes, ours, MIXED);
        convert_fields(loop_type, dst, src_type, src, codes, theirs, MIXED);
        for (size_t i = 0; i < MIXED; i++)
            check_element(dst, src, i, codes[i], ours[i], theirs[i]);
    }
    H5Tclose(loop_type);
}

static void first_denormal_in_records(void **state)
{
    (void)state;
    register_profile(FPCONV_H5_IDENTICAL);
    assert_true(for_each_pair(rounds, &stream, FPCONV_HDF5, check_fields) > 0);
}

static int unregister(void **state)
{
    (void)state;
    return fpconv_h5_unregister();
}

int main(void)
{
    if (!announce_run())
        return EXIT_SKIPPED;
    note_native_pairs();
    note_native_results();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(identical_is_the_loop, unregister),
        cmocka_unit_test_teardown(identical_in_long_arrays, unregister),
        cmocka_unit_test_teardown(identical_where_rounding_makes_normal, unregister),
        cmocka_unit_test_teardown(first_denormal_anywhere, unregister),
        cmocka_unit_test_teardown(first_denormal_in_records, unregister),
        cmocka_unit_test_teardown(unregistered_is_the_loop, unregister),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
