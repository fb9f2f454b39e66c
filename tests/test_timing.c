/*
 * test_timing.c - the bench's arithmetic on times: intervals, and what is judged by them
 *
 * SPDX-License-Identifier: MIT
 */
#include "../bench/timing.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../bench/bench.h"

#include <cmocka.h>

/* -------------------------------------------------------------------------- */
/* Ranks                                                                      */
/* -------------------------------------------------------------------------- */

/* 1, 2, ..., n in an order that is not sorted. */
static void number_samples(struct contender *c, size_t n)
{
    c->rounds = n;
    for (size_t i = 0; i < n; i++)
        c->samples[i] = (double)(i % 2 ? n - i / 2 : i / 2 + 1);
}

/* The ranks of the 95 % intervals of a median and of a lower quartile, as tables have them
 * (Conover; the sign test's critical values); 0 where so few samples have none. */
static void test_ranks(void **state)
{
    (void)state;
    static const struct {
        size_t n, low, high;
        double p;
    } cases[] = {
        {5, 0, 0, 0.5},   {6, 1, 6, 0.5},   {8, 1, 8, 0.5},    {9, 2, 8, 0.5},
        {15, 4, 12, 0.5}, {20, 6, 15, 0.5}, {25, 8, 18, 0.5},  {100, 40, 61, 0.5},
        {12, 0, 7, 0.25}, {13, 1, 7, 0.25}, {20, 2, 10, 0.25},
    };
    static struct contender c;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        number_samples(&c, cases[i].n);
        const struct estimate e = timing_quantile(&c, cases[i].p);
        assert_true(cases[i].low ? e.low == (double)cases[i].low : e.low == -INFINITY);
        assert_true(cases[i].high ? e.high == (double)cases[i].high : e.high == INFINITY);
        assert_true(e.low <= e.value && e.value <= e.high);
    }
    number_samples(&c, TIMING_ROUNDS_MAX);
    assert_true(timing_quantile(&c, 0.5).value == (TIMING_ROUNDS_MAX + 1) / 2);
    assert_true(timing_quantile(&c, 0.25).low > 0 && isfinite(timing_quantile(&c, 0.25).high));
}

/* -------------------------------------------------------------------------- */
/* Ratios                                                                     */
/* -------------------------------------------------------------------------- */

/* evenly in [0, 1) */
static double random_unit(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

/*
 * Times as on a busy machine: a drift that all contenders of a round share, up to double,
 * noise of their own of some percent, and now and then a multiple.  Two bases of a third
 * and two thirds, and one that takes `factor` times as long as both together.
 */
static void make_noisy(struct contender c[3], size_t rounds, double factor, uint64_t *state)
{
    const double shares[3] = {1.0 / 3, 2.0 / 3, factor};
    double drift = 1;
    for (size_t round = 0; round < rounds; round++) {
        drift = fmin(2, fmax(1, drift + 0.2 * (random_unit(state) - 0.5)));
        for (int i = 0; i < 3; i++) {
            const double own = 1 + 0.05 * random_unit(state);
            const double spike = random_unit(state) < 0.02 ? 5 : 1;
            c[i].samples[round] = shares[i] * drift * own * spike;
        }
    }
    for (int i = 0; i < 3; i++)
        c[i].rounds = rounds;
}

static const char *judge_noisy(size_t rounds, double factor, uint64_t *state)
{
    static struct contender c[3];
    make_noisy(c, rounds, factor, state);
    return report_judge(timing_ratio(&c[2], c, 2), 1, 1);
}

/* Against a limit of 1: 3 % more is over it, the same is not, and 3 % less keeps it. */
static void test_slowdown_of_3_percent(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int trial = 0; trial < 200; trial++) {
        assert_string_equal(judge_noisy(TIMING_ROUNDS_MAX, 1.03, &random), "OVER");
        assert_string_equal(judge_noisy(TIMING_ROUNDS_MAX, 1.00, &random), "ok");
        assert_string_equal(judge_noisy(TIMING_ROUNDS_MAX, 0.97, &random), "ok");
    }
}

/* Few rounds do not tell so little apart, and do not claim to. */
static void test_few_rounds(void **state)
{
    (void)state;
    uint64_t random = 2;
    unsigned unresolved = 0, wrong = 0;
    for (int trial = 0; trial < 1000; trial++) {
        const char *verdict = judge_noisy(7, 1.00, &random);
        unresolved += strcmp(verdict, "unresolved") == 0;
        wrong += strcmp(verdict, "OVER") == 0;
    }
    assert_true(unresolved >= 500);
    assert_true(wrong <= 25);
    assert_string_equal(judge_noisy(3, 0.5, &random), "unresolved");
}

/* At least 95 of 100 intervals hold the true ratio. */
static void test_coverage(void **state)
{
    (void)state;
    static struct contender c[3];
    uint64_t random = 3;
    /* what noise makes of a ratio of 1: from one very long series */
    double truth = 0;
    enum { SERIES = 400, TRIALS = 4000 };
    for (int i = 0; i < SERIES; i++) {
        make_noisy(c, TIMING_ROUNDS_MAX, 1, &random);
        truth += timing_ratio(&c[2], c, 2).value / (double)SERIES;
    }
    const size_t rounds[] = {9, 15, 101};
    for (size_t r = 0; r < sizeof(rounds) / sizeof(rounds[0]); r++) {
        unsigned held = 0;
        for (int trial = 0; trial < TRIALS; trial++) {
            make_noisy(c, rounds[r], 1, &random);
            const struct estimate e = timing_ratio(&c[2], c, 2);
            held += e.low <= truth && truth <= e.high;
        }
        assert_true(held >= TRIALS / 1000 * 945);
    }
}

/* -------------------------------------------------------------------------- */
/* Verdicts                                                                   */
/* -------------------------------------------------------------------------- */

static void test_verdicts(void **state)
{
    (void)state;
    static const struct {
        struct estimate measured;
        double must, aim;
        const char *verdict;
    } cases[] = {
        {{1.02, 1.006, 1.03}, 1, 1, "OVER"},
        {{1.02, 1.004, 1.03}, 1, 1, "unresolved"}, /* to a hundredth, the low end keeps it */
        {{0.99, 0.98, 1.006}, 1, 1, "unresolved"},
        {{1.00, 0.99, 1.004}, 1, 1, "ok"},
        {{0.5, -INFINITY, INFINITY}, 1, 1, "unresolved"},
        {{1.2, 1.1, 1.3}, 1.5, 1, "must"},
        {{1.0, 0.9, 1.1}, 1.5, 1, "must"}, /* the aim is not certain */
        {{0.9, 0.8, 1.0}, 1.5, 1, "aim"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(report_judge(cases[i].measured, cases[i].must, cases[i].aim),
                            cases[i].verdict);
}

static void test_larger_and_times(void **state)
{
    (void)state;
    const struct estimate a = {1.0, 0.5, 3.0}, b = {1.5, 1.2, 1.6};
    const struct estimate larger = timing_larger(a, b), twice = timing_times(b, 2);
    assert_true(larger.value == 1.5 && larger.low == 1.2 && larger.high == 3.0);
    assert_true(twice.value == 3.0 && twice.low == 2.4 && twice.high == 3.2);
}

/* -------------------------------------------------------------------------- */
/* The clock                                                                  */
/* -------------------------------------------------------------------------- */

/* A chain of multiplications, each of which waits for the one before it. */
static void multiply(void *context)
{
    uint64_t x = 1;
    for (unsigned i = 0; i < *(const unsigned *)context; i++) {
        x *= UINT64_C(6364136223846793005);
        __asm__ volatile("" : "+r"(x));
    }
}

/*
 * With a clock, against a limit of 1.15: 30 % more is over it, the same is not.  By far more than
 * 3 %, since where four processes share two cores, one of them an emulator that runs this, equal
 * contenders were seen to differ by that for as long as it takes.
 */
static void test_slower_run(void **state)
{
    (void)state;
    const double limit = 1.15;
    unsigned once = 10000, more = 13000;
    static struct contender c[3];
    c[0] = (struct contender){.run = multiply, .context = &once};
    c[1] = (struct contender){.run = multiply, .context = &more};
    c[2] = (struct contender){.run = multiply, .context = &once};
    timing_compare(c, 3);
    assert_true(c[0].rounds >= 3 && c[0].rounds <= TIMING_ROUNDS_MAX);
    assert_string_equal(report_judge(timing_ratio(&c[1], &c[0], 1), limit, limit), "OVER");
    assert_string_not_equal(report_judge(timing_ratio(&c[2], &c[0], 1), limit, limit), "OVER");
}

static unsigned prepared, run_count;

static void count_preparation(void *context)
{
    (void)context;
    prepared++;
}

static void count_run(void *context)
{
    (void)context;
    assert_int_equal(prepared, ++run_count);
}

static void test_prepares_each_run(void **state)
{
    (void)state;
    static struct contender c[2];
    for (int i = 0; i < 2; i++)
        c[i] = (struct contender){.run = count_run, .prepare = count_preparation};
    timing_compare(c, 2);
    assert_int_equal(c[0].rounds, c[1].rounds);
    assert_int_equal(run_count, 2 * (c[0].rounds + 1)); /* each has run once before */
}

/* No core adds more than ten numbers a cycle; one that shares its cycles, or is emulated, few. */
static void test_core(void **state)
{
    (void)state;
    unsigned times = 1000;
    static struct contender c;
    timing_core();
    for (int i = 0; i < 2; i++) {
        c = (struct contender){.run = multiply, .context = &times};
        timing_compare(&c, 1);
    }
    const struct timing_range core = timing_core(), none = timing_core();
    assert_true(core.least > 0 && core.least <= core.most && core.most <= 10);
    assert_true(none.least == 0 && none.most == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks),      cmocka_unit_test(test_slowdown_of_3_percent),
        cmocka_unit_test(test_few_rounds), cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_verdicts),   cmocka_unit_test(test_larger_and_times),
        cmocka_unit_test(test_slower_run), cmocka_unit_test(test_prepares_each_run),
        cmocka_unit_test(test_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
