/*
 * timing.c - medians of interleaved runs
 *
 * SPDX-License-Identifier: MIT
 */
#include "timing.h"

#include <stdlib.h>
#include <time.h>

enum {
    CONTENDERS_MAX = 8,
    ROUNDS_MIN = 3,
    ROUNDS_MAX = 101,
};

/* A sample lasts at least this long: a thousand times what reading the clock costs. */
static const double sample_seconds = 50e-6;

/* The rounds together last about this long, if that leaves enough of them. */
static const double rounds_seconds = 0.1;

double timing_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of one run, from a sample of `repeats`. */
static double time_sample(const struct contender *c, size_t repeats)
{
    if (c->prepare)
        c->prepare(c->context);
    const double start = timing_now();
    for (size_t i = 0; i < repeats; i++)
        c->run(c->context);
    return (timing_now() - start) / (double)repeats;
}

/* How often to repeat a run within a sample; warms the caches up on the way. */
static size_t find_repeats(const struct contender *c)
{
    double seconds = time_sample(c, 1);
    if (c->prepare)
        return 1;
    size_t repeats = 1;
    while (seconds * (double)repeats < sample_seconds) {
        repeats *= 2;
        seconds = time_sample(c, repeats);
    }
    return repeats;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), compare_doubles);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

void timing_compare(struct contender *contenders, size_t count)
{
    size_t repeats[CONTENDERS_MAX];
    double samples[CONTENDERS_MAX][ROUNDS_MAX];

    for (size_t c = 0; c < count; c++)
        repeats[c] = find_repeats(&contenders[c]);

    const double start = timing_now();
    size_t rounds = 0;
    while (rounds < ROUNDS_MIN || (rounds < ROUNDS_MAX && timing_now() - start < rounds_seconds)) {
        for (size_t c = 0; c < count; c++)
            samples[c][rounds] = time_sample(&contenders[c], repeats[c]);
        rounds++;
    }
    for (size_t c = 0; c < count; c++)
        contenders[c].seconds = median(samples[c], rounds);
}
