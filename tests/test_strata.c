/*
 * test_strata.c - the scalar functions on f32 and f64 from end to end
 *
 * SPDX-License-Identifier: MIT
 *
 * Run with "f32" or "f64": that is the source.
 */
#include <stdlib.h>

#include "oracle.h"
#include "support.h"

static fpconv_format source;

static void check_strata(fpconv_format dst, fpconv_policy policy)
{
    scalar_function *scalar = scalar_function_of(dst, source);
    const uint64_t count = strata_count(source);
    const unsigned step = test_scale();
    for (uint64_t i = 0; i < count; i += step) {
        const uint64_t code = strata_code(source, i);
        const uint64_t got = scalar(code, policy);
        const uint64_t want = oracle_convert(dst, source, code, policy);
        if (got != want)
            check_code(dst, source, code, policy, got, want);
    }
}

static void strata_to_every_format(void **state)
{
    (void)state;
    FOR_EACH_FORMAT (dst)
        FOR_EACH_POLICY (policy)
            if (dst != source)
                check_strata(dst, policy);
}

int main(int argc, char **argv)
{
    if (argc != 2 || (strcmp(argv[1], "f32") != 0 && strcmp(argv[1], "f64") != 0)) {
        fprintf(stderr, "usage: test_strata f32|f64\n");
        return EXIT_FAILURE;
    }
    if (!announce_run())
        return EXIT_SKIPPED;
    source = strcmp(argv[1], "f32") == 0 ? FPCONV_F32 : FPCONV_F64;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strata_to_every_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
