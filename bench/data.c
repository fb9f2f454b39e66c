/*
 * data.c - memory and numbers to measure with
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* Long arrays repeat this many values: enough that no branch predictor learns
 * them, and quick to draw. */
enum { PATTERN = 65536 };

static const double pi = 3.14159265358979323846;

void *bench_allocate(size_t bytes)
{
    const size_t page = 4096;
    void *memory = NULL;
    if (posix_memalign(&memory, page, bytes) != 0)
        report_fail("not enough memory: %zu bytes", bytes);
    memset(memory, 0, bytes);
    return memory;
}

uint64_t bench_load_code(const void *codes, size_t i, size_t size)
{
    switch (size) {
    case 8:
        return ((const uint64_t *)codes)[i];
    case 4:
        return ((const uint32_t *)codes)[i];
    case 2:
        return ((const uint16_t *)codes)[i];
    default:
        return ((const uint8_t *)codes)[i];
    }
}

void bench_store_code(void *codes, size_t i, size_t size, uint64_t code)
{
    switch (size) {
    case 8:
        ((uint64_t *)codes)[i] = code;
        break;
    case 4:
        ((uint32_t *)codes)[i] = (uint32_t)code;
        break;
    case 2:
        ((uint16_t *)codes)[i] = (uint16_t)code;
        break;
    default:
        ((uint8_t *)codes)[i] = (uint8_t)code;
        break;
    }
}

uint64_t bench_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* evenly in (0, 1] */
static double random_unit(uint64_t *state)
{
    return (double)((bench_random(state) >> 11) + 1) * 0x1p-53;
}

/* Stores the first `count` values, then repeats them up to n elements. */
static void store_repeated(fpconv_format format, void *values, size_t n, const double *pattern)
{
    const size_t count = n < PATTERN ? n : PATTERN;
    const size_t size = fpconv_format_size(format);
    fpconv_convert(format, values, FPCONV_F64, pattern, count, FPCONV_OCP_SAT);
    for (size_t done = count; done < n;) {
        const size_t more = n - done < done ? n - done : done;
        memcpy((char *)values + done * size, values, more * size);
        done += more;
    }
}

void bench_fill_normal(fpconv_format format, void *values, size_t n, double scale)
{
    static double pattern[PATTERN];
    uint64_t state = 1;
    for (size_t i = 0; i < PATTERN; i += 2) { /* Box and Muller */
        const double radius = scale * sqrt(-2 * log(random_unit(&state)));
        const double angle = 2 * pi * random_unit(&state);
        pattern[i] = radius * cos(angle);
        pattern[i + 1] = radius * sin(angle);
    }
    store_repeated(format, values, n, pattern);
}

void bench_fill_binades(fpconv_format format, void *values, size_t n, double low, double high)
{
    static double pattern[PATTERN];
    uint64_t state = 2;
    for (size_t i = 0; i < PATTERN; i++) {
        const double magnitude = low * pow(high / low, random_unit(&state));
        pattern[i] = bench_random(&state) & 1 ? -magnitude : magnitude;
    }
    store_repeated(format, values, n, pattern);
}
