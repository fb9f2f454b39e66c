/*
 * timing.c - interleaved runs, and what their times tell for certain
 *
 * SPDX-License-Identifier: MIT
 */
#include "timing.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------- */
/* Quantiles                                                                  */
/* -------------------------------------------------------------------------- */

/* Of an interval's 95 % half of the rest lies on either side. */
static const double tail = 0.025;

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/*
 * How many of n samples lie below the p-quantile of what they are drawn from is binomially
 * distributed, whatever that is: so the k-th smallest lies above the quantile with the
 * probability of fewer than k successes in n trials.  The largest k for which that is at
 * most 2.5 %, or 0.  (Conover, Practical Nonparametric Statistics, 3.2; ISO 16269-7 has
 * tables for the median.)
 */
static size_t rank_below(size_t n, double p)
{
    double term = pow(1 - p, (double)n), sum = term; /* 4^-501 is still a normal double */
    size_t k = 0;
    while (k < n && sum <= tail) {
        term *= (double)(n - k) / (double)(k + 1) * p / (1 - p);
        sum += term;
        k++;
    }
    return k;
}

static struct estimate quantile(const double *samples, size_t n, double p)
{
    double sorted[TIMING_ROUNDS_MAX];
    memcpy(sorted, samples, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), compare_doubles);
    const double place = p * (double)(n - 1);
    const size_t at = (size_t)place, next = at + 1 < n ? at + 1 : at;
    const size_t below = rank_below(n, p), above = rank_below(n, 1 - p);
    return (struct estimate){
        .value = sorted[at] + (place - (double)at) * (sorted[next] - sorted[at]),
        .low = below > 0 ? sorted[below - 1] : -INFINITY,
        .high = above > 0 ? sorted[n - above] : INFINITY,
    };
}

/* -------------------------------------------------------------------------- */
/* Samples                                                                    */
/* -------------------------------------------------------------------------- */

enum {
    ROUNDS_MIN = 3,
    ROUNDS_WANTED = 25, /* the interval leaves out the seven least and the seven most of them */
};

/* A sample lasts at least this long: a thousand times what reading the clock costs. */
static const double sample_seconds = 50e-6;

/* A contender's samples together last about as long as this; or up to the longer time, until
 * there are as many as are wanted for an interval. */
static const double contender_seconds = 0.03, contender_seconds_max = 0.6;

/* A run from this long on is timed in CPU time, which takes about half a microsecond to
 * read, ten times as much as the monotonic clock. */
static const double long_run_seconds = 1e-4;

static double seconds_on(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double time_runs(const struct contender *c, size_t count)
{
    const double start = seconds_on(c->clock);
    for (size_t i = 0; i < count; i++)
        c->run(c->context);
    return seconds_on(c->clock) - start;
}

/* Seconds of one run. */
static double time_sample(const struct contender *c)
{
    double seconds = 0;
    if (!c->prepare)
        return time_runs(c, c->repeats) / (double)c->repeats;
    for (size_t i = 0; i < c->repeats; i++) {
        c->prepare(c->context);
        seconds += time_runs(c, 1);
    }
    return seconds / (double)c->repeats;
}

/* -------------------------------------------------------------------------- */
/* The core                                                                   */
/* -------------------------------------------------------------------------- */

enum { CORE_TURNS = 1500, ADDITIONS = 8 };

/* A multiplication that waits for the one before takes three cycles on x86-64. */
static const double multiplication_cycles = 3;

/* The compiler is neither to leave an operation out nor to merge two. */
static uint64_t keep(uint64_t x)
{
    __asm__ volatile("" : "+r"(x));
    return x;
}

static double seconds_of_multiplications(void)
{
    const double start = seconds_on(CLOCK_MONOTONIC);
    uint64_t product = 1;
    for (int i = 0; i < CORE_TURNS; i++)
        product = keep(product * UINT64_C(0x9e3779b97f4a7c15));
    return seconds_on(CLOCK_MONOTONIC) - start;
}

/* Of numbers that do not wait for each other. */
static double seconds_of_additions(void)
{
    const double start = seconds_on(CLOCK_MONOTONIC);
    uint64_t sums[ADDITIONS] = {0};
    for (int i = 0; i < CORE_TURNS; i++)
        for (int sum = 0; sum < ADDITIONS; sum++)
            sums[sum] = keep(sums[sum] + (uint64_t)i);
    return seconds_on(CLOCK_MONOTONIC) - start;
}

static double additions_a_cycle(void)
{
    const double turns = CORE_TURNS, additions = CORE_TURNS * ADDITIONS;
    const double cycle = seconds_of_multiplications() / (multiplication_cycles * turns);
    return additions * cycle / seconds_of_additions();
}

static struct timing_range core;

struct timing_range timing_core(void)
{
    const struct timing_range range = core;
    core = (struct timing_range){0, 0};
    return range;
}

static void add_to_core(double additions)
{
    core.least = core.most > 0 ? fmin(core.least, additions) : additions;
    core.most = fmax(core.most, additions);
}

/* -------------------------------------------------------------------------- */
/* Comparing                                                                  */
/* -------------------------------------------------------------------------- */

/* Warms the caches up on the way. */
static void choose_sampling(struct contender *c)
{
    c->clock = CLOCK_MONOTONIC;
    if (!c->prepare || c->repeats == 0)
        c->repeats = 1;
    double seconds = time_sample(c);
    if (seconds >= long_run_seconds)
        c->clock = CLOCK_THREAD_CPUTIME_ID;
    while (!c->prepare && seconds * (double)c->repeats < sample_seconds) {
        c->repeats *= 2;
        seconds = time_sample(c);
    }
}

/* One contender by itself has no ratio that wants an interval. */
static bool wants_round(size_t rounds, double seconds, size_t count)
{
    if (rounds < ROUNDS_MIN)
        return true;
    if (rounds < ROUNDS_WANTED && count > 1)
        return seconds < contender_seconds_max * (double)count;
    return rounds < TIMING_ROUNDS_MAX && seconds < contender_seconds * (double)count;
}

void timing_compare(struct contender *contenders, size_t count)
{
    for (size_t c = 0; c < count; c++)
        choose_sampling(&contenders[c]);

    const double start = seconds_on(CLOCK_MONOTONIC);
    double additions[TIMING_ROUNDS_MAX];
    size_t rounds = 0;
    for (; wants_round(rounds, seconds_on(CLOCK_MONOTONIC) - start, count); rounds++) {
        additions[rounds] = additions_a_cycle();
        for (size_t c = 0; c < count; c++)
            contenders[c].samples[rounds] = time_sample(&contenders[c]);
    }
    add_to_core(quantile(additions, rounds, 0.5).value);
    for (size_t c = 0; c < count; c++) {
        contenders[c].rounds = rounds;
        contenders[c].seconds = timing_quantile(&contenders[c], 0.5).value;
    }
}

void timing_copy(void *context)
{
    const struct timing_copy *c = context;
    memcpy(c->dst, c->src, c->bytes);
    __asm__ volatile("" : : "r"(c->dst) : "memory"); /* the copy counts as read */
}

double timing_once(void (*run)(void *context), void *context)
{
    const double start = seconds_on(CLOCK_THREAD_CPUTIME_ID);
    run(context);
    return seconds_on(CLOCK_THREAD_CPUTIME_ID) - start;
}

/* -------------------------------------------------------------------------- */
/* Estimates                                                                  */
/* -------------------------------------------------------------------------- */

struct estimate timing_ratio(const struct contender *measured, const struct contender *bases,
                             size_t base_count)
{
    double ratios[TIMING_ROUNDS_MAX];
    for (size_t round = 0; round < measured->rounds; round++) {
        double base = 0;
        for (size_t b = 0; b < base_count; b++)
            base += bases[b].samples[round];
        ratios[round] = measured->samples[round] / base;
    }
    return quantile(ratios, measured->rounds, 0.5);
}

struct estimate timing_quantile(const struct contender *contender, double p)
{
    return quantile(contender->samples, contender->rounds, p);
}

struct estimate timing_times(struct estimate estimate, double factor)
{
    return (struct estimate){estimate.value * factor, estimate.low * factor,
                             estimate.high * factor};
}

struct estimate timing_larger(struct estimate a, struct estimate b)
{
    return (struct estimate){fmax(a.value, b.value), fmax(a.low, b.low), fmax(a.high, b.high)};
}
