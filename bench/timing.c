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

/* A run from this long on is timed in CPU time, which takes about half a microsecond to
 * read, ten times as much as the monotonic clock. */
static const double long_run_seconds = 1e-4;

static double seconds_on(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* How a contender's samples are taken. */
struct sampling {
    clockid_t clock;
    size_t repeats;
};

/* Seconds of one run. */
static double time_sample(const struct contender *c, struct sampling sampling)
{
    if (c->prepare)
        c->prepare(c->context);
    const double start = seconds_on(sampling.clock);
    for (size_t i = 0; i < sampling.repeats; i++)
        c->run(c->context);
    return (seconds_on(sampling.clock) - start) / (double)sampling.repeats;
}

/* Warms the caches up on the way. */
static struct sampling choose_sampling(const struct contender *c)
{
    struct sampling sampling = {CLOCK_MONOTONIC, 1};
    double seconds = time_sample(c, sampling);
    if (seconds >= long_run_seconds)
        sampling.clock = CLOCK_THREAD_CPUTIME_ID;
    while (!c->prepare && seconds * (double)sampling.repeats < sample_seconds) {
        sampling.repeats *= 2;
        seconds = time_sample(c, sampling);
    }
    return sampling;
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
    struct sampling samplings[CONTENDERS_MAX];
    double samples[CONTENDERS_MAX][ROUNDS_MAX];

    for (size_t c = 0; c < count; c++)
        samplings[c] = choose_sampling(&contenders[c]);

    const double start = seconds_on(CLOCK_MONOTONIC);
    size_t rounds = 0;
    while (rounds < ROUNDS_MIN ||
           (rounds < ROUNDS_MAX && seconds_on(CLOCK_MONOTONIC) - start < rounds_seconds)) {
        for (size_t c = 0; c < count; c++)
            samples[c][rounds] = time_sample(&contenders[c], samplings[c]);
        rounds++;
    }
    for (size_t c = 0; c < count; c++)
        contenders[c].seconds = median(samples[c], rounds);
}

double timing_once(void (*run)(void *context), void *context)
{
    const double start = seconds_on(CLOCK_THREAD_CPUTIME_ID);
    run(context);
    return seconds_on(CLOCK_THREAD_CPUTIME_ID) - start;
}
