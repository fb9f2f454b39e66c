/*
 * timing.h - interleaved runs, and what their times tell for certain
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FPCONV_BENCH_TIMING_H
#define FPCONV_BENCH_TIMING_H

#include <stddef.h>
#include <time.h>

enum { TIMING_ROUNDS_MAX = 501 };

/** One of several ways of doing something, timed against each other. */
struct contender {
    void (*run)(void *context);
    void (*prepare)(void *context); /**< before each run, not timed; NULL: nothing */
    void *context;

    double seconds; /**< result: the median of one run */

    /** Seconds of one run by rounds, for timing_ratio and timing_quantile; and how they
     * were taken. */
    double samples[TIMING_ROUNDS_MAX];
    size_t rounds;
    size_t repeats; /**< of a run within a sample; with a preparation the caller's, 0 is 1 */
    clockid_t clock;
};

/**
 * Times the contenders in turn, round after round, so that what slows the
 * machine down for a while slows all of them down.  Always in the same order, so that each
 * meets the caches as the one before it leaves them, and never as it left them itself, which
 * is worth 2 % of a run in the L2 cache.  Each has run before it is
 * timed.  A run of a tenth of a millisecond or more is timed in CPU time, so that other
 * programs' turns on a busy machine do not count.  A run that is short against
 * the clock's resolution is repeated within a sample (where it needs a preparation, as often
 * as the caller says, which is not timed then either); the longer a round takes, the fewer there
 * are, at least three.
 */
void timing_compare(struct contender *contenders, size_t count);

/**
 * How many additions a cycle the core had meanwhile for one program: the least and the most that
 * was the median of a call of timing_compare since this was last asked, both 0 after none.
 *
 * Another program on the core's other hardware thread leaves 50 to 80 % of them.  A copy from
 * the caches is not slower then, and ratios to it, and calls, are not what the core can do.
 */
struct timing_range {
    double least, most;
};

struct timing_range timing_core(void);

/** A quantile of what was measured, and its 95 % confidence interval. */
struct estimate {
    double value, low, high;
};

/**
 * The median over the rounds of how many times as long as the bases together, which
 * are next to each other and were timed in one call with it, a contender took.
 */
struct estimate timing_ratio(const struct contender *measured, const struct contender *bases,
                             size_t base_count);

/** The seconds of one run that a share p of the samples stays below. */
struct estimate timing_quantile(const struct contender *contender, double p);

/** The estimate of a multiple. */
struct estimate timing_times(struct estimate estimate, double factor);

/** The larger of two estimated quantities: it lies in the interval that the larger ends make. */
struct estimate timing_larger(struct estimate a, struct estimate b);

/** A contender that copies, by memcpy: its context, and what runs. */
struct timing_copy {
    void *dst;
    const void *src;
    size_t bytes;
};

void timing_copy(void *context);

/** Seconds of CPU time of a single run, for what is too long to be repeated. */
double timing_once(void (*run)(void *context), void *context);

#endif /* FPCONV_BENCH_TIMING_H */
