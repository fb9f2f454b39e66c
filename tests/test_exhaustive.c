/*
 * test_exhaustive.c - all 2^32 floats: array kernels against the scalar functions
 *
 * SPDX-License-Identifier: MIT
 *
 * usage: test_exhaustive FORMAT
 *
 * To that format, under every policy, at the level in use.  64 tests for as many
 * ranges of 2^26 floats, so that a test runner that counts tests shows how far it
 * is; on a terminal, the program itself shows it.
 */
#include <stdlib.h>
#include <unistd.h>

#include "support.h"

enum { RANGES = 64, CHUNK = 1 << 14 };
static const uint64_t range_floats = (UINT64_C(1) << 32) / RANGES;

static fpconv_format dst;

static void check_chunk(uint32_t first)
{
    static float in[CHUNK];
    static uint8_t want[CHUNK * 8], got[CHUNK * 8];
    scalar_function *scalar = scalar_function_of(dst, FPCONV_F32);
    const size_t size = fpconv_format_size(dst);
    for (uint32_t i = 0; i < CHUNK; i++)
        store_code(&in[i], sizeof(in[i]), first + i);
    FOR_EACH_POLICY (policy) {
        for (uint32_t i = 0; i < CHUNK; i++)
            store_code(want + i * size, size, scalar(first + i, policy));
        assert_int_equal(fpconv_convert(dst, got, FPCONV_F32, in, CHUNK, policy), FPCONV_OK);
        for (uint32_t i = 0; i < CHUNK && memcmp(got, want, CHUNK * size) != 0; i++)
            check_code(dst, FPCONV_F32, first + i, policy, load_code(got + i * size, size),
                       load_code(want + i * size, size));
    }
}

static void all_floats_of_a_range(void **state)
{
    const uint64_t range = *(const uint64_t *)*state;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%s at level %s: %3u %%%s", fpconv_format_name(dst), fpconv_cpu_name(),
                (unsigned)(100 * range / RANGES), range + 1 < RANGES ? "" : "\r\033[K");
    for (uint64_t i = 0; i < range_floats; i += CHUNK)
        check_chunk((uint32_t)(range * range_floats + i));
}

static bool find_format(const char *name)
{
    FOR_EACH_FORMAT (format)
        if (name && format != FPCONV_F32 && strcmp(name, fpconv_format_name(format)) == 0) {
            dst = format;
            return true;
        }
    return false;
}

int main(int argc, char **argv)
{
    if (argc != 2 || !find_format(argv[1])) {
        fprintf(stderr, "usage: test_exhaustive FORMAT\n");
        return EXIT_FAILURE;
    }
    if (!announce_run())
        return EXIT_SUCCESS; /* the protocol's own word for it is enough */
    static struct CMUnitTest tests[RANGES];
    static uint64_t ranges[RANGES];
    static char names[RANGES][40];
    setvbuf(stdout, NULL, _IOLBF, 0); /* so that each result is seen at once */
    for (uint64_t i = 0; i < RANGES; i++) {
        ranges[i] = i;
        snprintf(names[i], sizeof(names[i]), "floats_%08x_to_%08x", (unsigned)(i * range_floats),
                 (unsigned)((i + 1) * range_floats - 1));
        tests[i] = (struct CMUnitTest){names[i], all_floats_of_a_range, NULL, NULL, &ranges[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
