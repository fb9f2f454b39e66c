/*
 * test_lost_carry.c - the policies that the HDF5 plugin alone asks for
 *
 * SPDX-License-Identifier: MIT
 *
 * At the level that FPCONV_CPU names.  What they are to return is worked out with doubles,
 * which hold every number that appears, and every sum, exactly.
 */
#include <math.h>

#include "../src/internal.h"
#include "oracle.h"
#include "stream.h"

/* A narrow format: bits of the fraction, and the exponents of the normal numbers that HDF5
 * takes for finite. */
static const struct range {
    int fraction, min, max;
} ranges[FPCONV_FORMAT_COUNT] = {
    [FPCONV_F16] = {10, -14, 15}, [FPCONV_BF16] = {7, -126, 127}, [FPCONV_E5M2] = {2, -14, 15},
    [FPCONV_E4M3] = {3, -6, 7},   [FPCONV_E3M2] = {2, -2, 3},     [FPCONV_E2M3] = {3, 0, 1},
    [FPCONV_E2M1] = {1, 0, 1},
};

static bool is_rounded(fpconv_format dst, fpconv_format src)
{
    return ranges[dst].fraction > 0 && dst != src && src != FPCONV_HIF8 &&
           fpconv_format_size(dst) <= fpconv_format_size(src);
}

/*
 * A value of exponent e carries if it is within half of the last place of 2^(e+1), which
 * lies e_min - fraction or more up; and becomes 2^e if that is a number of the format.
 */
static uint64_t losing_code(fpconv_format dst, fpconv_format src, uint64_t code, bool always)
{
    const struct range r = ranges[dst];
    const double x = double_of(oracle_convert(FPCONV_F64, src, code, FPCONV_HDF5));
    int e;
    frexp(x, &e);
    e--; /* 1 <= |x| / 2^e < 2 */
    if (isfinite(x) && x != 0 && e <= r.max && e >= r.min - r.fraction && (always || e < r.min)) {
        const int last_place = (e > r.min ? e : r.min) - r.fraction;
        if (fabs(x) >= ldexp(2, e) - ldexp(0.5, last_place))
            return oracle_convert(dst, FPCONV_F64, code_of_double(copysign(ldexp(1, e), x)),
                                  FPCONV_HDF5);
    }
    return scalar_convert(dst, src, code, FPCONV_HDF5);
}

enum { BLOCK = 4096 + 64 };

static void check_codes(fpconv_format dst, fpconv_format src, const uint64_t *codes, size_t n)
{
    static uint8_t in[BLOCK * 8], out[BLOCK * 8];
    const size_t dst_size = fpconv_format_size(dst), src_size = fpconv_format_size(src);
    static const fpconv_policy policies[] = {FPCONV_HDF5_CARRY_LOST,
                                             FPCONV_HDF5_SUBNORMAL_CARRY_LOST};
    for (size_t p = 0; p < ARRAY_COUNT(policies); p++) {
        for (size_t i = 0; i < n; i++)
            store_code(in + i * src_size, src_size, codes[i]);
        fp_convert(dst, out, (ptrdiff_t)dst_size, src, in, (ptrdiff_t)src_size, n, policies[p]);
        for (size_t i = 0; i < n; i++)
            check_code(dst, src, codes[i], policies[p], load_code(out + i * dst_size, dst_size),
                       losing_code(dst, src, codes[i], policies[p] == FPCONV_HDF5_CARRY_LOST));
    }
}

/* Every step-th of the values of a source. */
static void check_values(fpconv_format dst, fpconv_format src,
                         uint64_t (*value)(fpconv_format src, uint64_t i), uint64_t count,
                         unsigned step)
{
    static uint64_t codes[BLOCK];
    size_t n = 0;
    for (uint64_t i = 0; i < count; i += step) {
        codes[n++] = value(src, i);
        if (n == BLOCK || i + step >= count) {
            check_codes(dst, src, codes, n);
            n = 0;
        }
    }
}

static uint64_t code_itself(fpconv_format src, uint64_t i)
{
    (void)src;
    return i;
}

static void strata_and_every_narrow_code(void **state)
{
    enum { STEP = 7 };
    (void)state;
    FOR_EACH_FORMAT (dst)
        FOR_EACH_FORMAT (src) {
            if (is_rounded(dst, src) && is_wide(src))
                check_values(dst, src, strata_code, strata_count(src), STEP * test_scale());
            else if (is_rounded(dst, src))
                check_values(dst, src, code_itself, UINT64_C(1) << 8 * fpconv_format_size(src),
                             test_scale());
        }
}

/* Around every value of the destination, and every midpoint; f32's upper halves with what
 * tells a tie from its neighbours below. */
static void around_values_and_midpoints(void **state)
{
    static struct stream stream;
    (void)state;
    FOR_EACH_FORMAT (dst)
        FOR_EACH_FORMAT (src)
            if (is_rounded(dst, src)) {
                fill_stream(&stream, dst, src, FPCONV_HDF5);
                check_codes(dst, src, stream.codes, STREAM_COUNT);
            }
}

static uint64_t upper_half(fpconv_format src, uint64_t i)
{
    static const uint64_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    (void)src;
    return i / ARRAY_COUNT(lower) << 16 | lower[i % ARRAY_COUNT(lower)];
}

static void every_upper_half_of_f32(void **state)
{
    (void)state;
    FOR_EACH_FORMAT (dst)
        if (is_rounded(dst, FPCONV_F32))
            check_values(dst, FPCONV_F32, upper_half, UINT64_C(6) << 16, test_scale());
}

/* All lengths to beyond two blocks, with bytes around the results; in place, and with the
 * destination before the source. */
enum { LENGTH_MAX = 300 };

static void check_places(const struct stream *stream, size_t n, fpconv_policy policy)
{
    enum { SHIFT = 24 };
    const fpconv_format dst = stream->dst, src = stream->src;
    const size_t dst_size = stream->dst_size, src_size = stream->src_size;
    for (size_t shift = 0; shift <= SHIFT; shift += SHIFT) {
        uint8_t buf[SHIFT + LENGTH_MAX * 8 + 8], before[sizeof(buf)];
        memset(buf, 0xa5, sizeof(buf));
        memcpy(buf + shift, stream->code_bytes, n * src_size);
        memcpy(before, buf, sizeof(buf));
        fp_convert(dst, buf, (ptrdiff_t)dst_size, src, buf + shift, (ptrdiff_t)src_size, n, policy);
        for (size_t i = 0; i < n; i++)
            check_code(dst, src, stream->codes[i], policy, load_code(buf + i * dst_size, dst_size),
                       losing_code(dst, src, stream->codes[i], policy == FPCONV_HDF5_CARRY_LOST));
        assert_memory_equal(buf + n * dst_size, before + n * dst_size, sizeof(buf) - n * dst_size);
    }
}

static void lengths_and_places(void **state)
{
    static struct stream stream;
    (void)state;
    FOR_EACH_FORMAT (dst)
        FOR_EACH_FORMAT (src) {
            if (!is_rounded(dst, src))
                continue;
            fill_stream(&stream, dst, src, FPCONV_HDF5);
            for (size_t n = 0; n <= LENGTH_MAX; n++) {
                check_places(&stream, n, FPCONV_HDF5_CARRY_LOST);
                check_places(&stream, n, FPCONV_HDF5_SUBNORMAL_CARRY_LOST);
            }
        }
}

static double result_of(fpconv_format dst, fpconv_format src, uint64_t code)
{
    const uint64_t result = scalar_convert(dst, src, code, FPCONV_HDF5);
    return fabs(double_of(oracle_convert(FPCONV_F64, dst, result, FPCONV_HDF5)));
}

/* Does the level look at this pair's results while it converts? */
static bool looks(fpconv_format dst, fpconv_format src)
{
    const char *level = fpconv_cpu_name();
    const bool has_f16 = strcmp(level, "avx2") == 0 || strcmp(level, "avx512") == 0;
    if (dst == FPCONV_F16)
        return has_f16 && is_wide(src);
    return dst == FPCONV_BF16 && src == FPCONV_F32 && strcmp(level, "portable") != 0;
}

/* One code at every place among ordinary ones; in place, and with the destination before the
 * source. */
static void check_stop(fpconv_format dst, fpconv_format src, uint64_t code, size_t at, size_t shift)
{
    enum { N = 200, MARGIN = 8, BLOCK_MAX = 64 };
    const size_t dst_size = fpconv_format_size(dst), src_size = fpconv_format_size(src);
    uint8_t buf[MARGIN + N * 8], before[sizeof(buf)];
    memset(buf, 0xa5, sizeof(buf));
    for (size_t i = 0; i < N; i++) {
        const double ordinary = (i % 2 ? -1.0 : 1.0) * (1 + (double)i / (3 * N));
        store_code(buf + shift + i * src_size, src_size,
                   i == at ? code
                           : oracle_convert(src, FPCONV_F64, code_of_double(ordinary), FPCONV_OCP));
    }
    memcpy(before, buf, sizeof(buf));
    const size_t done = fp_convert_while_normal(dst, buf, src, buf + shift, N);
    const double result = result_of(dst, src, code), smallest = ldexp(1, ranges[dst].min);
    const bool is_normal = isfinite(result) && result > smallest;
    const bool is_ordinary = result > 2 * smallest && result < ldexp(1, ranges[dst].max);
    assert_true(done <= (is_normal ? N : at));
    assert_true(looks(dst, src) ? (is_ordinary ? N : at) < done + BLOCK_MAX : done == 0);
    for (size_t i = 0; i < done; i++) {
        const uint64_t source = load_code(before + shift + i * src_size, src_size);
        check_code(dst, src, source, FPCONV_HDF5, load_code(buf + i * dst_size, dst_size),
                   scalar_convert(dst, src, source, FPCONV_HDF5));
    }
    assert_memory_equal(buf + done * dst_size, before + done * dst_size,
                        sizeof(buf) - done * dst_size);
}

/* Around the destination's codes at the ends of its ranges. */
static void check_stops_at_edges(fpconv_format dst, fpconv_format src)
{
    const uint64_t normal_min = UINT64_C(1) << ranges[dst].fraction;
    const uint64_t inf = oracle_convert(dst, FPCONV_F64, code_of_double(INFINITY), FPCONV_HDF5);
    const uint64_t edges[] = {0,       1,   normal_min - 1, normal_min, normal_min + 1, inf - 1,
                              inf - 2, inf, inf + 1};
    for (size_t i = 0; i < ARRAY_COUNT(edges); i++) {
        const uint64_t code = oracle_convert(src, dst, edges[i], FPCONV_HDF5);
        const uint64_t sign = UINT64_C(1) << (8 * fpconv_format_size(src) - 1);
        for (size_t at = 0; at < 150; at += 7) {
            check_stop(dst, src, code, at, 0);
            check_stop(dst, src, code + 1, at, 8);
            check_stop(dst, src, code | sign, at, 8);
            if (code > 0)
                check_stop(dst, src, code - 1, at, 0);
        }
    }
}

static void converts_while_normal(void **state)
{
    static struct stream stream;
    (void)state;
    FOR_EACH_FORMAT (dst)
        FOR_EACH_FORMAT (src)
            if (is_rounded(dst, src)) {
                check_stops_at_edges(dst, src);
                fill_stream(&stream, dst, src, FPCONV_HDF5);
                for (size_t i = 0; i < STREAM_COUNT; i += test_scale())
                    check_stop(dst, src, stream.codes[i], i % 197, i % 2 ? 8 : 0);
            }
}

int main(void)
{
    if (!announce_run())
        return EXIT_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strata_and_every_narrow_code),
        cmocka_unit_test(around_values_and_midpoints),
        cmocka_unit_test(every_upper_half_of_f32),
        cmocka_unit_test(lengths_and_places),
        cmocka_unit_test(converts_while_normal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
