/*
 * test_pack.c - packed storage: the layout, tails, in place, fused conversion
 *
 * SPDX-License-Identifier: MIT
 *
 * The layout is worked out here bit by bit: bit j of element i is bit w*i + j of
 * the packed array, whose bit b is bit b % 8 of byte b / 8.
 */
#include "fpconv/pack.h"

#include "support.h"

enum { N_MAX = 200, OFFSETS = 64, GUARD = 16, SPAN = 4096 };

static const fpconv_format packed_formats[] = {FPCONV_E2M1, FPCONV_E3M2, FPCONV_E2M3};
static const fpconv_format other_formats[] = {FPCONV_F64,  FPCONV_F32,  FPCONV_F16, FPCONV_BF16,
                                              FPCONV_E5M2, FPCONV_E4M3, FPCONV_HIF8};

static unsigned width_of(fpconv_format format)
{
    return format == FPCONV_E2M1 ? 4 : 6;
}

static size_t bytes_of(fpconv_format format, size_t n)
{
    return (n * width_of(format) + 7) / 8;
}

static void pack_bitwise(fpconv_format format, uint8_t *dst, const uint8_t *src, size_t n)
{
    const unsigned width = width_of(format);
    memset(dst, 0, bytes_of(format, n));
    for (size_t i = 0; i < n; i++)
        for (unsigned j = 0; j < width; j++) {
            const size_t bit = width * i + j;
            dst[bit / 8] = (uint8_t)(dst[bit / 8] | (src[i] >> j & 1) << bit % 8);
        }
}

static void fill_random(void *p, size_t bytes, uint64_t seed)
{
    uint8_t *bytes_out = p;
    for (size_t i = 0; i < bytes; i++)
        bytes_out[i] = (uint8_t)next_random(&seed);
}

static void test_known_layout(void **state)
{
    (void)state;
    const uint8_t codes[5] = {0x1, 0x2, 0xf3, 0x4, 0x5};
    const uint8_t want_4[3] = {0x21, 0x43, 0x05};
    const uint8_t six[5] = {0x01, 0x02, 0xc3, 0x3f, 0x2a}; /* the high bits of 0xc3 do not count */
    const uint8_t want_6[4] = {0x81, 0x30, 0xfc, 0x2a};
    uint8_t out[4];
    assert_int_equal(fpconv_pack(FPCONV_E2M1, out, codes, 5), FPCONV_OK);
    assert_memory_equal(out, want_4, 3);
    assert_int_equal(fpconv_pack(FPCONV_E3M2, out, six, 5), FPCONV_OK);
    assert_memory_equal(out, want_6, 4);
    assert_int_equal(fpconv_pack(FPCONV_E2M3, out, six, 5), FPCONV_OK);
    assert_memory_equal(out, want_6, 4);
}

static void test_sizes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(packed_formats); i++)
        for (size_t n = 0; n <= N_MAX; n++)
            assert_int_equal(fpconv_packed_size(packed_formats[i], n),
                             bytes_of(packed_formats[i], n));
    assert_int_equal(fpconv_packed_size(FPCONV_E2M1, SIZE_MAX), SIZE_MAX / 2 + 1);
    assert_int_equal(fpconv_packed_size(FPCONV_E3M2, SIZE_MAX), SIZE_MAX / 4 * 3 + 3);
    assert_int_equal(fpconv_packed_size(FPCONV_F64, 3), 24);
    assert_int_equal(fpconv_packed_size(FPCONV_E4M3, SIZE_MAX), SIZE_MAX);
    assert_int_equal(fpconv_packed_size(FPCONV_F16, SIZE_MAX / 2 + 1), SIZE_MAX);
    assert_int_equal(fpconv_packed_size((fpconv_format)FPCONV_FORMAT_COUNT, 3), 0);
}

/* Bytes before and after the result stay, and the bits after the last element
 * are zero, whatever the alignment. */
static void check_pack(fpconv_format format, size_t n, size_t dst_offset, size_t src_offset)
{
    uint8_t src[OFFSETS + N_MAX], dst[GUARD + OFFSETS + N_MAX + GUARD];
    uint8_t want[sizeof(dst)], packed[N_MAX];
    fill_random(src, sizeof(src), n);
    fill_random(dst, sizeof(dst), ~n);
    memcpy(want, dst, sizeof(dst));
    pack_bitwise(format, packed, src + src_offset, n);
    memcpy(want + GUARD + dst_offset, packed, bytes_of(format, n));
    assert_int_equal(fpconv_pack(format, dst + GUARD + dst_offset, src + src_offset, n), FPCONV_OK);
    assert_memory_equal(dst, want, sizeof(dst));
}

static void check_unpack(fpconv_format format, size_t n, size_t dst_offset, size_t src_offset)
{
    uint8_t codes[N_MAX], packed[OFFSETS + N_MAX];
    uint8_t dst[GUARD + OFFSETS + N_MAX + GUARD], want[sizeof(dst)];
    fill_random(codes, sizeof(codes), n);
    pack_bitwise(format, packed + src_offset, codes, n);
    /* the unused bits of the last byte are ignored */
    const unsigned used = n * width_of(format) % 8;
    if (used)
        packed[src_offset + bytes_of(format, n) - 1] |= (uint8_t)(0xff << used);
    fill_random(dst, sizeof(dst), ~n);
    memcpy(want, dst, sizeof(dst));
    for (size_t i = 0; i < n; i++)
        want[GUARD + dst_offset + i] = (uint8_t)(codes[i] & ((1u << width_of(format)) - 1));
    assert_int_equal(fpconv_unpack(format, dst + GUARD + dst_offset, packed + src_offset, n),
                     FPCONV_OK);
    assert_memory_equal(dst, want, sizeof(dst));
}

static void test_every_length_and_alignment(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(packed_formats); i++)
        for (size_t n = 0; n <= N_MAX; n++)
            for (size_t offset = 0; offset < OFFSETS; offset++) {
                check_pack(packed_formats[i], n, offset, 0);
                check_pack(packed_formats[i], n, 0, offset);
                check_unpack(packed_formats[i], n, offset, 0);
                check_unpack(packed_formats[i], n, 0, offset);
            }
}

/* Several tiles, and every length near their ends. */
static void test_in_place(void **state)
{
    (void)state;
    static uint8_t codes[SPAN], buffer[SPAN], packed[SPAN];
    fill_random(codes, sizeof(codes), 1);
    for (size_t i = 0; i < ARRAY_COUNT(packed_formats); i++) {
        const fpconv_format format = packed_formats[i];
        for (size_t n = 0; n <= SPAN; n += n % 1024 > 8 && n % 1024 < 1016 ? 13 : 1) {
            memcpy(buffer, codes, SPAN);
            pack_bitwise(format, packed, codes, n);
            assert_int_equal(fpconv_pack(format, buffer, buffer, n), FPCONV_OK);
            assert_memory_equal(buffer, packed, bytes_of(format, n));
            assert_memory_equal(buffer + bytes_of(format, n), codes + bytes_of(format, n),
                                SPAN - bytes_of(format, n));
            assert_int_equal(fpconv_unpack(format, buffer, buffer, n), FPCONV_OK);
            for (size_t j = 0; j < n; j++)
                assert_int_equal(buffer[j], codes[j] & ((1u << width_of(format)) - 1));
        }
    }
}

static void test_whole_bytes_are_copied(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(other_formats); i++) {
        const fpconv_format format = other_formats[i];
        const size_t bytes = N_MAX * fpconv_format_size(format);
        uint8_t src[N_MAX * 8], dst[N_MAX * 8];
        fill_random(src, bytes, i); /* signalling NaNs among them */
        assert_int_equal(fpconv_pack(format, dst, src, N_MAX), FPCONV_OK);
        assert_memory_equal(dst, src, bytes);
        memset(dst, 0, bytes);
        assert_int_equal(fpconv_unpack(format, dst, src, N_MAX), FPCONV_OK);
        assert_memory_equal(dst, src, bytes);
        assert_int_equal(fpconv_pack(format, dst, dst, N_MAX), FPCONV_OK);
        assert_memory_equal(dst, src, bytes);
    }
}

/* Fused conversion is fpconv_convert followed by packing, and the inverse. */
static void check_fused(fpconv_format packed_format, fpconv_format other, size_t n,
                        fpconv_policy policy)
{
    static uint8_t source[SPAN * 8], codes[SPAN], want[SPAN * 8], got[SPAN * 8];
    const size_t size = fpconv_format_size(other);
    fill_random(source, n * size, n);
    assert_int_equal(fpconv_convert(packed_format, codes, other, source, n, policy), FPCONV_OK);
    pack_bitwise(packed_format, want, codes, n);
    const size_t packed_bytes = bytes_of(packed_format, n);
    assert_int_equal(fpconv_convert_to_packed(packed_format, got, other, source, n, policy),
                     FPCONV_OK);
    assert_memory_equal(got, want, packed_bytes);
    assert_int_equal(fpconv_convert_to_packed(packed_format, source, other, source, n, policy),
                     FPCONV_OK);
    assert_memory_equal(source, want, packed_bytes);

    assert_int_equal(fpconv_convert(other, want, packed_format, codes, n, policy), FPCONV_OK);
    assert_int_equal(fpconv_convert_from_packed(other, got, packed_format, source, n, policy),
                     FPCONV_OK);
    assert_memory_equal(got, want, n * size);
    assert_int_equal(fpconv_convert_from_packed(other, source, packed_format, source, n, policy),
                     FPCONV_OK);
    assert_memory_equal(source, want, n * size);
}

static void test_fused(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 2, 3, 4, 5, 31, 1000, 1023, 1024, 1025, 3 * 1024 + 7};
    for (size_t i = 0; i < ARRAY_COUNT(packed_formats); i++)
        FOR_EACH_FORMAT (other)
            FOR_EACH_POLICY (policy)
                for (size_t k = 0; k < ARRAY_COUNT(lengths); k++)
                    check_fused(packed_formats[i], other, lengths[k], policy);
}

static void test_fused_whole_bytes(void **state)
{
    (void)state;
    float src[N_MAX];
    uint8_t got[N_MAX], want[N_MAX];
    fill_random(src, sizeof(src), 5);
    assert_int_equal(fpconv_convert_to_packed(FPCONV_E4M3, got, FPCONV_F32, src, N_MAX, FPCONV_OCP),
                     FPCONV_OK);
    assert_int_equal(fpconv_convert(FPCONV_E4M3, want, FPCONV_F32, src, N_MAX, FPCONV_OCP),
                     FPCONV_OK);
    assert_memory_equal(got, want, N_MAX);
    float back[N_MAX], want_back[N_MAX];
    assert_int_equal(
        fpconv_convert_from_packed(FPCONV_F32, back, FPCONV_E4M3, got, N_MAX, FPCONV_OCP),
        FPCONV_OK);
    assert_int_equal(fpconv_convert(FPCONV_F32, want_back, FPCONV_E4M3, got, N_MAX, FPCONV_OCP),
                     FPCONV_OK);
    assert_memory_equal(back, want_back, sizeof(back));
}

static void test_errors(void **state)
{
    (void)state;
    const fpconv_format unknown = (fpconv_format)FPCONV_FORMAT_COUNT;
    const fpconv_policy no_policy = (fpconv_policy)FPCONV_POLICY_COUNT;
    uint8_t a[64], before[64], b[64] = {0};
    fill_random(a, sizeof(a), 3);
    memcpy(before, a, sizeof(a));

    assert_int_equal(fpconv_pack(unknown, a, b, 8), FPCONV_ERROR_FORMAT);
    assert_int_equal(fpconv_unpack(unknown, a, b, 8), FPCONV_ERROR_FORMAT);
    assert_int_equal(fpconv_pack(FPCONV_E2M1, NULL, b, 8), FPCONV_ERROR_NULL);
    assert_int_equal(fpconv_pack(FPCONV_E2M1, a, NULL, 8), FPCONV_ERROR_NULL);
    assert_int_equal(fpconv_unpack(FPCONV_E2M1, NULL, b, 8), FPCONV_ERROR_NULL);
    assert_int_equal(fpconv_pack(FPCONV_E2M1, a, a + 1, 8), FPCONV_ERROR_OVERLAP);
    assert_int_equal(fpconv_pack(FPCONV_E2M1, a + 7, a, 8), FPCONV_ERROR_OVERLAP);
    assert_int_equal(fpconv_unpack(FPCONV_E2M1, a, a + 7, 8), FPCONV_ERROR_OVERLAP);
    assert_int_equal(fpconv_pack(FPCONV_F64, a, b, SIZE_MAX / 8 + 1), FPCONV_ERROR_SIZE);

    const fpconv_format f4 = FPCONV_E2M1, f32 = FPCONV_F32;
    assert_int_equal(fpconv_convert_to_packed(unknown, a, f32, b, 4, FPCONV_OCP),
                     FPCONV_ERROR_FORMAT);
    assert_int_equal(fpconv_convert_to_packed(f4, a, unknown, b, 4, FPCONV_OCP),
                     FPCONV_ERROR_FORMAT);
    assert_int_equal(fpconv_convert_to_packed(f4, a, f32, b, 4, no_policy), FPCONV_ERROR_POLICY);
    assert_int_equal(fpconv_convert_to_packed(f4, a, f32, NULL, 4, FPCONV_OCP), FPCONV_ERROR_NULL);
    assert_int_equal(fpconv_convert_to_packed(f4, a, f32, a + 1, 4, FPCONV_OCP),
                     FPCONV_ERROR_OVERLAP);
    assert_int_equal(fpconv_convert_to_packed(f4, a, f32, b, SIZE_MAX / 2, FPCONV_OCP),
                     FPCONV_ERROR_SIZE);
    assert_int_equal(fpconv_convert_from_packed(f32, a, unknown, b, 4, FPCONV_OCP),
                     FPCONV_ERROR_FORMAT);
    assert_int_equal(fpconv_convert_from_packed(f32, a, f4, b, 4, no_policy), FPCONV_ERROR_POLICY);
    assert_int_equal(fpconv_convert_from_packed(f32, NULL, f4, b, 4, FPCONV_OCP),
                     FPCONV_ERROR_NULL);
    assert_int_equal(fpconv_convert_from_packed(f32, a, f4, a + 15, 4, FPCONV_OCP),
                     FPCONV_ERROR_OVERLAP);
    assert_int_equal(fpconv_convert_from_packed(f32, a, f4, b, SIZE_MAX / 2, FPCONV_OCP),
                     FPCONV_ERROR_SIZE);
    assert_memory_equal(a, before, sizeof(a));

    assert_int_equal(fpconv_pack(FPCONV_E2M1, NULL, NULL, 0), FPCONV_OK);
    assert_int_equal(fpconv_unpack(FPCONV_E3M2, NULL, NULL, 0), FPCONV_OK);
    assert_int_equal(fpconv_convert_to_packed(f4, NULL, f32, NULL, 0, FPCONV_OCP), FPCONV_OK);
    assert_int_equal(fpconv_convert_from_packed(f32, NULL, f4, NULL, 0, FPCONV_OCP), FPCONV_OK);
}

int main(void)
{
    if (!announce_run())
        return EXIT_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_layout),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_every_length_and_alignment),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_whole_bytes_are_copied),
        cmocka_unit_test(test_fused),
        cmocka_unit_test(test_fused_whole_bytes),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
