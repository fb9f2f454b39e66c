/*
 * test_api.c - names, statuses and the typed functions
 *
 * SPDX-License-Identifier: MIT
 */
#include "stream.h"
#include "support.h"

static const int unknown_values[] = {-1, -1000000, 10, 1000, 0x7fffffff};

static fpconv_format unknown_format(size_t i)
{
    return (fpconv_format)unknown_values[i];
}

static fpconv_policy unknown_policy(size_t i)
{
    return (fpconv_policy)unknown_values[i];
}

static void formats_have_names_sizes_and_bits(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t size;
        unsigned bits;
    } want[] = {
        [FPCONV_F64] = {"f64", 8, 64},  [FPCONV_F32] = {"f32", 4, 32},
        [FPCONV_F16] = {"f16", 2, 16},  [FPCONV_BF16] = {"bf16", 2, 16},
        [FPCONV_E5M2] = {"e5m2", 1, 8}, [FPCONV_E4M3] = {"e4m3", 1, 8},
        [FPCONV_E3M2] = {"e3m2", 1, 6}, [FPCONV_E2M3] = {"e2m3", 1, 6},
        [FPCONV_E2M1] = {"e2m1", 1, 4}, [FPCONV_HIF8] = {"hif8", 1, 8},
    };
    assert_int_equal(ARRAY_COUNT(want), FPCONV_FORMAT_COUNT);
    FOR_EACH_FORMAT (format) {
        assert_string_equal(fpconv_format_name(format), want[format].name);
        assert_int_equal(fpconv_format_size(format), want[format].size);
        assert_int_equal(fpconv_format_bits(format), want[format].bits);
    }
    for (size_t i = 0; i < ARRAY_COUNT(unknown_values); i++) {
        assert_null(fpconv_format_name(unknown_format(i)));
        assert_int_equal(fpconv_format_size(unknown_format(i)), 0);
        assert_int_equal(fpconv_format_bits(unknown_format(i)), 0);
    }
}

static void policies_have_names(void **state)
{
    (void)state;
    assert_string_equal(fpconv_policy_name(FPCONV_HDF5), "hdf5");
    assert_string_equal(fpconv_policy_name(FPCONV_OCP), "ocp");
    assert_string_equal(fpconv_policy_name(FPCONV_OCP_SAT), "ocp_sat");
    assert_null(fpconv_policy_name((fpconv_policy)FPCONV_POLICY_COUNT));
    for (size_t i = 0; i < ARRAY_COUNT(unknown_values); i++)
        assert_null(fpconv_policy_name(unknown_policy(i)));
}

static void every_status_has_a_text_of_its_own(void **state)
{
    (void)state;
    const int unknown = FPCONV_ERROR_SCHEME + 1;
    for (int a = FPCONV_OK; a <= unknown; a++) {
        const char *text = fpconv_strerror((fpconv_status)a);
        assert_non_null(text);
        assert_true(strlen(text) > 5);
        for (int b = FPCONV_OK; b < a; b++)
            assert_string_not_equal(text, fpconv_strerror((fpconv_status)b));
    }
    assert_string_equal(fpconv_strerror((fpconv_status)-1),
                        fpconv_strerror((fpconv_status)unknown));
}

static void the_level_has_a_known_name(void **state)
{
    (void)state;
    static const char *const known[] = {"portable", "sse2", "avx2", "avx512", "neon"};
    unsigned found = 0;
    for (size_t i = 0; i < ARRAY_COUNT(known); i++)
        found += strcmp(fpconv_cpu_name(), known[i]) == 0;
    assert_int_equal(found, 1);
}

static void single_values_of_unknown_formats_and_policies(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(unknown_values); i++) {
        assert_int_equal(fpconv_encode(unknown_format(i), 1.0, FPCONV_OCP), UINT32_MAX);
        assert_int_equal(fpconv_encode(FPCONV_F16, 1.0, unknown_policy(i)), UINT32_MAX);
        const double from_unknown = fpconv_decode(unknown_format(i), 0x3c00, FPCONV_OCP);
        const double by_unknown = fpconv_decode(FPCONV_F16, 0x3c00, unknown_policy(i));
        assert_true(from_unknown != from_unknown);
        assert_true(by_unknown != by_unknown);
    }
    const double f64 = fpconv_decode(FPCONV_F64, 0x3c00, FPCONV_OCP);
    assert_int_equal(fpconv_encode(FPCONV_F64, 1.0, FPCONV_OCP), UINT32_MAX);
    assert_true(f64 != f64);
}

/* -------------------------------------------------------------------------- */
/* Errors: nothing is written                                                 */
/* -------------------------------------------------------------------------- */

enum { BYTES = 512 };
static _Alignas(64) uint8_t buffer[2 * BYTES], before[2 * BYTES];

static void fill_buffer(void)
{
    for (size_t i = 0; i < sizeof(buffer); i++)
        before[i] = buffer[i] = (uint8_t)(i * 37 + 11);
}

static void check_refused(fpconv_status got, fpconv_status want)
{
    assert_string_equal(fpconv_strerror(got), fpconv_strerror(want));
    assert_memory_equal(buffer, before, sizeof(buffer));
}

static void unknown_formats_and_policies_are_refused(void **state)
{
    (void)state;
    uint8_t *src = buffer, *dst = buffer + BYTES;
    fill_buffer();
    for (size_t i = 0; i < ARRAY_COUNT(unknown_values); i++) {
        check_refused(fpconv_convert(unknown_format(i), dst, FPCONV_F32, src, 5, FPCONV_OCP),
                      FPCONV_ERROR_FORMAT);
        check_refused(fpconv_convert(FPCONV_F16, dst, unknown_format(i), src, 5, FPCONV_OCP),
                      FPCONV_ERROR_FORMAT);
        check_refused(fpconv_convert(FPCONV_F16, dst, FPCONV_F32, src, 5, unknown_policy(i)),
                      FPCONV_ERROR_POLICY);
        check_refused(
            fpconv_convert_strided(unknown_format(i), dst, 4, FPCONV_F32, src, 4, 5, FPCONV_OCP),
            FPCONV_ERROR_FORMAT);
        check_refused(
            fpconv_convert_strided(FPCONV_F16, dst, 4, unknown_format(i), src, 4, 5, FPCONV_OCP),
            FPCONV_ERROR_FORMAT);
        check_refused(
            fpconv_convert_strided(FPCONV_F16, dst, 4, FPCONV_F32, src, 4, 5, unknown_policy(i)),
            FPCONV_ERROR_POLICY);
    }
}

static void null_is_refused_unless_there_is_nothing_to_do(void **state)
{
    (void)state;
    fill_buffer();
    FOR_EACH_FORMAT (dst)
        FOR_EACH_FORMAT (src)
            FOR_EACH_POLICY (policy) {
                check_refused(fpconv_convert(dst, NULL, src, buffer, 1, policy), FPCONV_ERROR_NULL);
                check_refused(fpconv_convert(dst, buffer, src, NULL, 3, policy), FPCONV_ERROR_NULL);
                check_refused(fpconv_convert(dst, NULL, src, NULL, 3, policy), FPCONV_ERROR_NULL);
                check_refused(fpconv_convert_strided(dst, buffer, 8, src, NULL, 8, 3, policy),
                              FPCONV_ERROR_NULL);
                check_refused(fpconv_convert_strided(dst, NULL, 8, src, buffer, 8, 3, policy),
                              FPCONV_ERROR_NULL);
                check_refused(fpconv_convert(dst, NULL, src, NULL, 0, policy), FPCONV_OK);
                check_refused(fpconv_convert(dst, buffer, src, NULL, 0, policy), FPCONV_OK);
                check_refused(fpconv_convert(dst, buffer + 1, src, buffer, 0, policy), FPCONV_OK);
                check_refused(fpconv_convert_strided(dst, NULL, 0, src, NULL, 0, 0, policy),
                              FPCONV_OK);
            }
}

/* Two arrays at every distance: they touch, or they do not, or are the same. */
static void overlap_is_refused(void **state)
{
    (void)state;
    const ptrdiff_t n = 5;
    FOR_EACH_FORMAT (dst)
        FOR_EACH_FORMAT (src) {
            const ptrdiff_t dst_bytes = n * (ptrdiff_t)fpconv_format_size(dst);
            const ptrdiff_t src_bytes = n * (ptrdiff_t)fpconv_format_size(src);
            for (ptrdiff_t distance = -dst_bytes - 2; distance <= src_bytes + 2; distance++) {
                const bool apart = distance <= -dst_bytes || distance >= src_bytes;
                uint8_t *at = buffer + BYTES;
                fill_buffer();
                const fpconv_status status =
                    fpconv_convert(dst, at + distance, src, at, (size_t)n, FPCONV_OCP);
                if (apart || distance == 0)
                    assert_int_equal(status, FPCONV_OK);
                else
                    check_refused(status, FPCONV_ERROR_OVERLAP);
            }
        }
}

static void overlap_of_strided_arrays_is_refused(void **state)
{
    (void)state;
    static const struct {
        fpconv_format dst, src;
        ptrdiff_t distance, dst_stride, src_stride;
        size_t n;
        fpconv_status want;
    } cases[] = {
        /* in place: the same sign, and no element overlaps its neighbour */
        {FPCONV_F16, FPCONV_F32, 0, 2, 4, 9, FPCONV_OK},
        {FPCONV_F16, FPCONV_F32, 0, -8, -8, 9, FPCONV_OK},
        {FPCONV_F32, FPCONV_F16, 0, 12, 5, 9, FPCONV_OK},
        {FPCONV_F16, FPCONV_F32, 0, 4, -4, 9, FPCONV_ERROR_OVERLAP},
        {FPCONV_F16, FPCONV_F32, 0, -4, 4, 9, FPCONV_ERROR_OVERLAP},
        {FPCONV_F16, FPCONV_F32, 0, 4, 3, 9, FPCONV_ERROR_OVERLAP},
        {FPCONV_F16, FPCONV_F32, 0, 4, 0, 9, FPCONV_ERROR_OVERLAP},
        {FPCONV_F32, FPCONV_F32, 0, 4, -4, 2, FPCONV_ERROR_OVERLAP},
        /* one element has no neighbour */
        {FPCONV_F16, FPCONV_F32, 0, 4, -4, 1, FPCONV_OK},
        {FPCONV_F16, FPCONV_F32, 0, 0, 0, 1, FPCONV_OK},
        {FPCONV_F16, FPCONV_F32, 2, 0, 0, 1, FPCONV_ERROR_OVERLAP},
        {FPCONV_F16, FPCONV_F32, 4, 0, 0, 1, FPCONV_OK},
        {FPCONV_F16, FPCONV_F32, -2, 0, 0, 1, FPCONV_OK},
        {FPCONV_F16, FPCONV_F32, -1, 0, 0, 1, FPCONV_ERROR_OVERLAP},
        /* fields of the same records */
        {FPCONV_F16, FPCONV_F32, 4, 6, 6, 9, FPCONV_OK},
        {FPCONV_F16, FPCONV_F32, -2, 6, 6, 9, FPCONV_OK},
        {FPCONV_F16, FPCONV_F32, 4 + 6, 6, 6, 9, FPCONV_OK},
        {FPCONV_F16, FPCONV_F32, -2, -6, -6, 9, FPCONV_OK},
        {FPCONV_F16, FPCONV_F32, 3, 6, 6, 9, FPCONV_ERROR_OVERLAP},
        {FPCONV_F16, FPCONV_F32, 5, 6, 6, 9, FPCONV_ERROR_OVERLAP},
        {FPCONV_F16, FPCONV_F32, -1, 6, 6, 9, FPCONV_ERROR_OVERLAP},
        {FPCONV_F16, FPCONV_F32, -3, 6, 6, 9, FPCONV_ERROR_OVERLAP},
        {FPCONV_F16, FPCONV_F32, 6, 6, 6, 9, FPCONV_ERROR_OVERLAP},
        {FPCONV_F16, FPCONV_F32, 4, 6, 7, 9, FPCONV_ERROR_OVERLAP},
        {FPCONV_F16, FPCONV_F32, -8, 6, -6, 9, FPCONV_ERROR_OVERLAP},
        /* one source element for all, inside the destination, before and behind it */
        {FPCONV_F16, FPCONV_F32, -2, 2, 0, 9, FPCONV_ERROR_OVERLAP},
        {FPCONV_F16, FPCONV_F32, -18, 2, 0, 9, FPCONV_OK},
        {FPCONV_F16, FPCONV_F32, -17, 2, 0, 9, FPCONV_ERROR_OVERLAP},
        {FPCONV_F16, FPCONV_F32, 4, 2, 0, 9, FPCONV_OK},
        /* backward: element 0 is the last in memory */
        {FPCONV_F16, FPCONV_F32, -1, -2, 4, 9, FPCONV_ERROR_OVERLAP},
        {FPCONV_F16, FPCONV_F32, -2, -2, 4, 9, FPCONV_OK},
        {FPCONV_F16, FPCONV_F32, 4, 2, -4, 9, FPCONV_OK},
        {FPCONV_F16, FPCONV_F32, 3, 2, -4, 9, FPCONV_ERROR_OVERLAP},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        uint8_t *src = buffer + BYTES, *dst = src + cases[i].distance;
        fill_buffer();
        const fpconv_status got =
            fpconv_convert_strided(cases[i].dst, dst, cases[i].dst_stride, cases[i].src, src,
                                   cases[i].src_stride, cases[i].n, FPCONV_OCP);
        if (got != cases[i].want)
            fail_msg("case %zu: \"%s\" instead of \"%s\"", i, fpconv_strerror(got),
                     fpconv_strerror(cases[i].want));
        if (got != FPCONV_OK)
            assert_memory_equal(buffer, before, sizeof(buffer));
    }
}

static void byte_counts_beyond_size_t_are_refused(void **state)
{
    (void)state;
    fill_buffer();
    uint8_t *src = buffer, *dst = buffer + BYTES;
    FOR_EACH_FORMAT (dst_format)
        FOR_EACH_FORMAT (src_format) {
            const size_t d = fpconv_format_size(dst_format), s = fpconv_format_size(src_format);
            const size_t size = d > s ? d : s;
            if (size == 1)
                continue; /* any n fits */
            const size_t counts[] = {SIZE_MAX / size + 1, SIZE_MAX - 1, SIZE_MAX};
            for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
                check_refused(
                    fpconv_convert(dst_format, dst, src_format, src, counts[i], FPCONV_OCP),
                    FPCONV_ERROR_SIZE);
                check_refused(
                    fpconv_convert(dst_format, src, src_format, src, counts[i], FPCONV_OCP),
                    FPCONV_ERROR_SIZE);
            }
        }
    check_refused(
        fpconv_convert_strided(FPCONV_E4M3, dst, PTRDIFF_MAX, FPCONV_F32, src, 4, 4, FPCONV_OCP),
        FPCONV_ERROR_SIZE);
    check_refused(
        fpconv_convert_strided(FPCONV_E4M3, dst, 1, FPCONV_F32, src, PTRDIFF_MIN, 3, FPCONV_OCP),
        FPCONV_ERROR_SIZE);
    check_refused(fpconv_convert_strided(FPCONV_F32, dst, -4, FPCONV_F32, src, 0, SIZE_MAX / 4 + 2,
                                         FPCONV_OCP),
                  FPCONV_ERROR_SIZE);
}

static void destination_elements_that_overlap_are_refused(void **state)
{
    (void)state;
    fill_buffer();
    uint8_t *src = buffer, *dst = buffer + BYTES;
    FOR_EACH_FORMAT (format) {
        const ptrdiff_t size = (ptrdiff_t)fpconv_format_size(format);
        for (ptrdiff_t stride = 1 - size; stride < size; stride++)
            check_refused(
                fpconv_convert_strided(format, dst, stride, FPCONV_F16, src, 2, 2, FPCONV_OCP),
                FPCONV_ERROR_STRIDE);
        assert_int_equal(fpconv_convert_strided(format, dst, 0, FPCONV_F16, src, 2, 1, FPCONV_OCP),
                         FPCONV_OK);
        fill_buffer();
    }
}

/* -------------------------------------------------------------------------- */
/* Typed arrays                                                               */
/* -------------------------------------------------------------------------- */

static struct stream stream;

/* Typed buffers are aligned; the stream's bytes are copied into them. */
#define CHECK_TYPED(dst_name, dst_type, DST, src_name, src_type, SRC)                              \
    do {                                                                                           \
        static src_type src[STREAM_COUNT];                                                         \
        static dst_type dst[STREAM_COUNT];                                                         \
        FOR_EACH_POLICY (policy) {                                                                 \
            fill_stream(&stream, FPCONV_##DST, FPCONV_##SRC, policy);                              \
            memcpy(src, stream.code_bytes, sizeof(src));                                           \
            assert_int_equal(                                                                      \
                fpconv_##src_name##_to_##dst_name##_n(dst, src, STREAM_COUNT, policy), FPCONV_OK); \
            assert_memory_equal(dst, stream.want_bytes, sizeof(dst));                              \
        }                                                                                          \
        assert_int_equal(fpconv_##src_name##_to_##dst_name##_n(dst, src, 9, unknown_policy(0)),    \
                         FPCONV_ERROR_POLICY);                                                     \
        assert_int_equal(fpconv_##src_name##_to_##dst_name##_n(NULL, src, 9, FPCONV_OCP),          \
                         FPCONV_ERROR_NULL);                                                       \
        assert_int_equal(fpconv_##src_name##_to_##dst_name##_n(NULL, NULL, 0, FPCONV_OCP),         \
                         FPCONV_OK);                                                               \
        assert_memory_equal(dst, stream.want_bytes, sizeof(dst));                                  \
    } while (0)
#define CHECK_TYPED_BOTH_WAYS(name, type, NAME)      \
    CHECK_TYPED(name, type, NAME, f32, float, F32);  \
    CHECK_TYPED(f32, float, F32, name, type, NAME);  \
    CHECK_TYPED(name, type, NAME, f64, double, F64); \
    CHECK_TYPED(f64, double, F64, name, type, NAME)

static void typed_arrays_return_the_same(void **state)
{
    (void)state;
    CHECK_TYPED(f32, float, F32, f64, double, F64);
    CHECK_TYPED(f64, double, F64, f32, float, F32);
    CHECK_TYPED_BOTH_WAYS(f16, uint16_t, F16);
    CHECK_TYPED_BOTH_WAYS(bf16, uint16_t, BF16);
    CHECK_TYPED_BOTH_WAYS(e5m2, uint8_t, E5M2);
    CHECK_TYPED_BOTH_WAYS(e4m3, uint8_t, E4M3);
    CHECK_TYPED_BOTH_WAYS(e3m2, uint8_t, E3M2);
    CHECK_TYPED_BOTH_WAYS(e2m3, uint8_t, E2M3);
    CHECK_TYPED_BOTH_WAYS(e2m1, uint8_t, E2M1);
    CHECK_TYPED_BOTH_WAYS(hif8, uint8_t, HIF8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_have_names_sizes_and_bits),
        cmocka_unit_test(policies_have_names),
        cmocka_unit_test(every_status_has_a_text_of_its_own),
        cmocka_unit_test(the_level_has_a_known_name),
        cmocka_unit_test(single_values_of_unknown_formats_and_policies),
        cmocka_unit_test(unknown_formats_and_policies_are_refused),
        cmocka_unit_test(null_is_refused_unless_there_is_nothing_to_do),
        cmocka_unit_test(overlap_is_refused),
        cmocka_unit_test(overlap_of_strided_arrays_is_refused),
        cmocka_unit_test(byte_counts_beyond_size_t_are_refused),
        cmocka_unit_test(destination_elements_that_overlap_are_refused),
        cmocka_unit_test(typed_arrays_return_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
