/*
 * test_h5_time.c - what the first registration costs, proof included
 *
 * SPDX-License-Identifier: MIT
 *
 * The probes run once a process, so that each measurement is a child's.  CPU time
 * counts, and of several the least: what others take of the caches and of a shared
 * core is not the registration's.
 */
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

static void first_registration_is_short(void **state)
{
    (void)state;
    for (int profile = 0; profile < FPCONV_H5_PROFILE_COUNT; profile++) {
        double least = 1;
        for (int run = 0; run < RUNS; run++) {
            const struct outcome outcome = register_in_child((fpconv_h5_profile)profile);
            /* the proof has taken place */
            assert_true(outcome.registered > 0 && outcome.probes > 50000);
            least = outcome.seconds < least ? outcome.seconds : least;
        }
        print_message("%s: %.1f ms\n", fpconv_h5_profile_name((fpconv_h5_profile)profile),
                      least * 1e3);
        assert_true(least < limit);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_registration_is_short)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
