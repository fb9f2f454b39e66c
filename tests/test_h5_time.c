/*
 * test_h5_time.c - what the first registration costs, proof included, and a short call
 *
 * SPDX-License-Identifier: MIT
 *
 * The probes run once a process, so that each measurement of them is a child's.  CPU
 * time counts, and of several the least: what others take of the caches and of a
 * shared core is not ours.
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

/* -------------------------------------------------------------------------- */
/* Arrays and compounds                                                       */
/* -------------------------------------------------------------------------- */

enum { COUNT = 1000, ELEMENTS = 16 };

static hid_t array_of(hid_t element)
{
    const hsize_t extent = ELEMENTS;
    return H5Tarray_create2(element, 1, &extent);
}

static hid_t compound_of(hid_t element)
{
    const size_t size = H5Tget_size(element), rest = sizeof(int);
    const hid_t type = H5Tcreate(H5T_COMPOUND, size + 2 * rest);
    assert_true(H5Tinsert(type, "first", 0, H5T_NATIVE_INT) >= 0);
    assert_true(H5Tinsert(type, "value", rest, element) >= 0);
    assert_true(H5Tinsert(type, "last", rest + size, H5T_NATIVE_INT) >= 0);
    return type;
}

/* Seconds of CPU time for COUNT arrays or compounds, all zeros. */
static double time_conversion(hid_t src, hid_t dst)
{
    static char buffer[COUNT * ELEMENTS * sizeof(double)], background[sizeof(buffer)];
    memset(buffer, 0, sizeof(buffer));
    const double start = cpu_seconds();
    assert_true(H5Tconvert(src, dst, COUNT, buffer, background, H5P_DEFAULT) >= 0);
    return cpu_seconds() - start;
}

/* How many times as fast as the library's loop we are, there and back. */
static void check_gain(const char *name, hid_t (*type_of)(hid_t element), fpconv_format format,
                       double least_gain)
{
    const hid_t wide = H5T_NATIVE_FLOAT, low = fpconv_h5_type(format);
    const struct side side = {FPCONV_F32, H5Tget_order(wide)};
    const hid_t loop = make_loop_type(side);
    const hid_t wide_type = type_of(wide), low_type = type_of(low), loop_type = type_of(loop);
    double ours[2] = {1, 1}, theirs[2] = {1, 1};
    for (int run = 0; run < RUNS; run++)
        for (int back = 0; back < 2; back++) {
            const double a =
                back ? time_conversion(low_type, wide_type) : time_conversion(wide_type, low_type);
            const double b =
                back ? time_conversion(low_type, loop_type) : time_conversion(loop_type, low_type);
            ours[back] = a < ours[back] ? a : ours[back];
            theirs[back] = b < theirs[back] ? b : theirs[back];
        }
    print_message("%s of %s: %.1f and back %.1f times as fast\n", name, fpconv_format_name(format),
                  theirs[0] / ours[0], theirs[1] / ours[1]);
    for (int back = 0; back < 2; back++)
        assert_true(theirs[back] > least_gain * ours[back]);
    H5Tclose(wide_type);
    H5Tclose(low_type);
    H5Tclose(loop_type);
    H5Tclose(loop);
}

/* A call for each array, and one for a member of all compounds.  The limits are about half
 * of what there is: a list looked up in each call would not keep them. */
static void calls_are_short(void **state)
{
    (void)state;
    unsigned version[3];
    H5get_libversion(&version[0], &version[1], &version[2]);
    const bool is_new = version[0] > 1 || version[1] >= 14; /* where a call takes HDF5 longer */
    assert_int_equal(fpconv_h5_register(), 0);
    check_gain("array", array_of, FPCONV_BF16, is_new ? 4 : 12);
    check_gain("array", array_of, FPCONV_E4M3, is_new ? 4 : 12);
    check_gain("compound", compound_of, FPCONV_BF16, is_new ? 2 : 2.5);
    assert_int_equal(fpconv_h5_unregister(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_registration_is_short),
        cmocka_unit_test(calls_are_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
