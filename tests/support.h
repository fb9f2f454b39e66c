/*
 * support.h - what the tests of the core library share
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FPCONV_TESTS_SUPPORT_H
#define FPCONV_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* after the headers that it needs and does not include */
#include <cmocka.h>

#include "fpconv/fpconv.h"

#define ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define FOR_EACH_FORMAT(f) for (fpconv_format f = 0; f < FPCONV_FORMAT_COUNT; f++)
#define FOR_EACH_POLICY(p) for (fpconv_policy p = 0; p < FPCONV_POLICY_COUNT; p++)

/* An element in memory, 1 to 8 bytes at any alignment, as an integer. */
static inline uint64_t load_code(const void *p, size_t size)
{
    uint8_t b1;
    uint16_t b2;
    uint32_t b4;
    uint64_t b8;
    switch (size) {
    case 1:
        memcpy(&b1, p, sizeof(b1));
        return b1;
    case 2:
        memcpy(&b2, p, sizeof(b2));
        return b2;
    case 4:
        memcpy(&b4, p, sizeof(b4));
        return b4;
    default:
        memcpy(&b8, p, sizeof(b8));
        return b8;
    }
}

static inline void store_code(void *p, size_t size, uint64_t code)
{
    const uint8_t b1 = (uint8_t)code;
    const uint16_t b2 = (uint16_t)code;
    const uint32_t b4 = (uint32_t)code;
    switch (size) {
    case 1:
        memcpy(p, &b1, sizeof(b1));
        break;
    case 2:
        memcpy(p, &b2, sizeof(b2));
        break;
    case 4:
        memcpy(p, &b4, sizeof(b4));
        break;
    default:
        memcpy(p, &code, sizeof(code));
        break;
    }
}

double double_of(uint64_t code);
uint64_t code_of_double(double value);

bool is_wide(fpconv_format format);

/* One element by the library's typed scalar function, for pairs with f32 or f64
 * on one side; NULL for the others, and for a wide format with itself. */
typedef uint64_t scalar_function(uint64_t code, fpconv_policy policy);
scalar_function *scalar_function_of(fpconv_format dst, fpconv_format src);

/* One element by the library's scalar functions: fpconv_decode and fpconv_encode,
 * where there is no typed one.  Any pair but f64 with itself, which has none. */
bool has_scalar(fpconv_format dst, fpconv_format src);
uint64_t scalar_convert(fpconv_format dst, fpconv_format src, uint64_t code, fpconv_policy policy);

/* Fails with the pair, the policy and the codes if got is not want. */
void check_code(fpconv_format dst, fpconv_format src, uint64_t code, fpconv_policy policy,
                uint64_t got, uint64_t want);

/* Reproducible noise: splitmix64. */
uint64_t next_random(uint64_t *state);

/*
 * f32 or f64 from end to end.  f32: every sign, exponent and leading 12 fraction
 * bits, with the 11 below 0, 1 and all ones.  f64: the same for the exponents
 * that are of any consequence to f32, with the 40 bits below also half a unit of
 * f32's last place; the leading 4 fraction bits for all exponents.
 */
uint64_t strata_count(fpconv_format src);
uint64_t strata_code(fpconv_format src, uint64_t i);

/*
 * Every test_scale()-th case is tried where there are very many: 1, or the value
 * of FPCONV_TEST_SCALE, which the build sets where an emulator runs the tests.
 * A prime leaves no regular gap.
 */
unsigned test_scale(void);

/* What a test program returns so that Meson reports it as skipped. */
enum { EXIT_SKIPPED = 77 };

/* Says how much is tried and at which level, in words of the Test Anything
 * Protocol.  False, and says so, where FPCONV_CPU asks for a level that is not
 * there: the program is then to return EXIT_SKIPPED. */
bool announce_run(void);

#endif /* FPCONV_TESTS_SUPPORT_H */
