/*
 * test_h5_time.c - what the first registration costs, proof included
 *
 * SPDX-License-Identifier: MIT
 *
 *   test_h5_time [REASON]      exits with 77, skipped, if a reason not to time is given
 *
 * The probes run once a process, so that each measurement is a child's.  CPU time
 * counts, and of several the median, so that a busy machine does not matter.
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "h5_support.h"

enum { RUNS = 9 };
static const double limit = 0.050; /* seconds */

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct outcome {
    double seconds;
    unsigned long probes;
    unsigned registered;
};

static struct outcome register_first(fpconv_h5_profile profile)
{
    static fpconv_h5_report report;
    struct outcome outcome = {0};
    H5open(); /* is not ours to answer for */
    const double start = cpu_seconds();
    if (fpconv_h5_register_profile(profile, &report) < 0)
        return outcome;
    outcome.seconds = cpu_seconds() - start;
    outcome.registered = report.registered_count;
    for (unsigned i = 0; i < report.pair_count; i++)
        outcome.probes += report.pairs[i].probes;
    return outcome;
}

static struct outcome register_in_child(fpconv_h5_profile profile)
{
    int ends[2], status;
    struct outcome outcome;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        outcome = register_first(profile);
        _exit(write(ends[1], &outcome, sizeof(outcome)) == sizeof(outcome) ? 0 : 1);
    }
    assert_true(waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(read(ends[0], &outcome, sizeof(outcome)), sizeof(outcome));
    close(ends[0]);
    close(ends[1]);
    return outcome;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void first_registration_is_short(void **state)
{
    (void)state;
    for (int profile = 0; profile < FPCONV_H5_PROFILE_COUNT; profile++) {
        double seconds[RUNS];
        for (int run = 0; run < RUNS; run++) {
            const struct outcome outcome = register_in_child((fpconv_h5_profile)profile);
            /* the proof has taken place */
            assert_true(outcome.registered > 0 && outcome.probes > 50000);
            seconds[run] = outcome.seconds;
        }
        qsort(seconds, RUNS, sizeof(seconds[0]), compare_doubles);
        print_message("%s: %.1f ms, from %.1f to %.1f\n",
                      fpconv_h5_profile_name((fpconv_h5_profile)profile), seconds[RUNS / 2] * 1e3,
                      seconds[0] * 1e3, seconds[RUNS - 1] * 1e3);
        assert_true(seconds[RUNS / 2] < limit);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        fprintf(stderr, "not timed: %s\n", argv[1]);
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_registration_is_short)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
