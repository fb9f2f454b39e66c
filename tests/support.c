/*
 * support.c - what the tests of the core library share
 *
 * SPDX-License-Identifier: MIT
 */
#include "support.h"

#include <inttypes.h>
#include <stdlib.h>

double double_of(uint64_t code)
{
    double value;
    memcpy(&value, &code, sizeof(value));
    return value;
}

uint64_t code_of_double(double value)
{
    uint64_t code;
    memcpy(&code, &value, sizeof(code));
    return code;
}

bool is_wide(fpconv_format format)
{
    return format == FPCONV_F64 || format == FPCONV_F32;
}

#define DEFINE_SCALAR(dst, dst_type, src, src_type)                        \
    static uint64_t src##_to_##dst(uint64_t code, fpconv_policy policy)    \
    {                                                                      \
        src_type value;                                                    \
        store_code(&value, sizeof(value), code);                           \
        const dst_type converted = fpconv_##src##_to_##dst(value, policy); \
        return load_code(&converted, sizeof(converted));                   \
    }
#define NARROW_FORMATS(FORMAT)   \
    FORMAT(F16, f16, uint16_t)   \
    FORMAT(BF16, bf16, uint16_t) \
    FORMAT(E5M2, e5m2, uint8_t)  \
    FORMAT(E4M3, e4m3, uint8_t)  \
    FORMAT(E3M2, e3m2, uint8_t)  \
    FORMAT(E2M3, e2m3, uint8_t)  \
    FORMAT(E2M1, e2m1, uint8_t)  \
    FORMAT(HIF8, hif8, uint8_t)
#define DEFINE_SCALARS(NAME, name, type)   \
    DEFINE_SCALAR(name, type, f32, float)  \
    DEFINE_SCALAR(f32, float, name, type)  \
    DEFINE_SCALAR(name, type, f64, double) \
    DEFINE_SCALAR(f64, double, name, type)

DEFINE_SCALAR(f64, double, f32, float)
DEFINE_SCALAR(f32, float, f64, double)
NARROW_FORMATS(DEFINE_SCALARS)

scalar_function *scalar_function_of(fpconv_format dst, fpconv_format src)
{
#define FROM_F32(NAME, name, type) [FPCONV_##NAME] = f32_to_##name,
#define FROM_F64(NAME, name, type) [FPCONV_##NAME] = f64_to_##name,
#define TO_F32(NAME, name, type) [FPCONV_##NAME] = name##_to_f32,
#define TO_F64(NAME, name, type) [FPCONV_##NAME] = name##_to_f64,
    static scalar_function *const from_f32[FPCONV_FORMAT_COUNT] = {FROM_F32(F64, f64, double)
                                                                       NARROW_FORMATS(FROM_F32)};
    static scalar_function *const from_f64[FPCONV_FORMAT_COUNT] = {FROM_F64(F32, f32, float)
                                                                       NARROW_FORMATS(FROM_F64)};
    static scalar_function *const to_f32[FPCONV_FORMAT_COUNT] = {NARROW_FORMATS(TO_F32)};
    static scalar_function *const to_f64[FPCONV_FORMAT_COUNT] = {NARROW_FORMATS(TO_F64)};
    if (src == FPCONV_F32)
        return from_f32[dst];
    if (src == FPCONV_F64)
        return from_f64[dst];
    return dst == FPCONV_F32 ? to_f32[src] : dst == FPCONV_F64 ? to_f64[src] : NULL;
}

bool has_scalar(fpconv_format dst, fpconv_format src)
{
    return dst != FPCONV_F64 || src != FPCONV_F64;
}

uint64_t scalar_convert(fpconv_format dst, fpconv_format src, uint64_t code, fpconv_policy policy)
{
    scalar_function *typed = scalar_function_of(dst, src);
    if (typed)
        return typed(code, policy);
    return fpconv_encode(dst, fpconv_decode(src, (uint32_t)code, policy), policy);
}

void check_code(fpconv_format dst, fpconv_format src, uint64_t code, fpconv_policy policy,
                uint64_t got, uint64_t want)
{
    if (got != want)
        fail_msg("%s to %s, %s: 0x%" PRIx64 " became 0x%" PRIx64 ", not 0x%" PRIx64,
                 fpconv_format_name(src), fpconv_format_name(dst), fpconv_policy_name(policy), code,
                 got, want);
}

uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

enum { F64_EXPONENT_FIRST = 1023 - 160, F64_EXPONENTS = 160 + 131 };

static const uint64_t f32_low_bits[] = {0, 1, 0x7ff};
static const uint64_t f64_low_bits[] = {0, 1, 0x10000000, 0xffffffffff};

uint64_t strata_count(fpconv_format src)
{
    const uint64_t f32_tops = 2 * 256 * 4096;
    const uint64_t f64_tops = 2 * F64_EXPONENTS * 4096 + 2 * 2048 * 16;
    return src == FPCONV_F32 ? f32_tops * ARRAY_COUNT(f32_low_bits)
                             : f64_tops * ARRAY_COUNT(f64_low_bits);
}

uint64_t strata_code(fpconv_format src, uint64_t i)
{
    if (src == FPCONV_F32)
        return i / ARRAY_COUNT(f32_low_bits) << 11 | f32_low_bits[i % ARRAY_COUNT(f32_low_bits)];
    const uint64_t low = f64_low_bits[i % ARRAY_COUNT(f64_low_bits)];
    const uint64_t top = i / ARRAY_COUNT(f64_low_bits);
    const uint64_t fine = F64_EXPONENTS * 4096;
    if (top < 2 * fine)
        return (top / fine) << 63 | (top % fine + (F64_EXPONENT_FIRST << 12)) << 40 | low;
    return (top - 2 * fine) << 48 | low;
}

unsigned test_scale(void)
{
    static unsigned scale;
    if (scale == 0) {
        const char *text = getenv("FPCONV_TEST_SCALE");
        char *end = NULL;
        const unsigned long asked = text ? strtoul(text, &end, 10) : 1;
        if (asked == 0 || asked > 100000 || (end && *end != '\0')) {
            fprintf(stderr, "FPCONV_TEST_SCALE must be a whole number from 1 to 100000\n");
            exit(EXIT_FAILURE);
        }
        scale = (unsigned)asked;
    }
    return scale;
}

bool announce_run(void)
{
    const char *asked = getenv("FPCONV_CPU");
    if (asked && strcmp(asked, fpconv_cpu_name()) != 0) {
        printf("1..0 # SKIP level %s is not available here (the library uses %s)\n", asked,
               fpconv_cpu_name());
        return false;
    }
    printf("# level %s, one case in %u of the large loops\n", fpconv_cpu_name(), test_scale());
    return true;
}
