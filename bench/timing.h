/*
 * timing.h - medians of interleaved runs
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FPCONV_BENCH_TIMING_H
#define FPCONV_BENCH_TIMING_H

#include <stddef.h>

/** One of several ways of doing something, timed against each other. */
struct contender {
    void (*run)(void *context);
    void (*prepare)(void *context); /**< before each run, not timed; NULL: nothing */
    void *context;
    double seconds; /**< result: the median of one run */
};

/**
 * Times the contenders in turn, round after round, so that what slows the
 * machine down for a while slows all of them down.  Each has run before it is
 * timed.  A run of a tenth of a millisecond or more is timed in CPU time, so that other
 * programs' turns on a busy machine do not count.  A run that is short against
 * the clock's resolution is repeated within a sample (not where it needs a
 * preparation); the longer a round takes, the fewer there are, at least three.
 */
void timing_compare(struct contender *contenders, size_t count);

/** Seconds of CPU time of a single run, for what is too long to be repeated. */
double timing_once(void (*run)(void *context), void *context);

#endif /* FPCONV_BENCH_TIMING_H */
