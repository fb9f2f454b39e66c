/*
 * h5tconvert.c - H5Tconvert through fpconv against HDF5's general loop
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>

#include "fpconv/fpconv_h5.h"
#include "h5.h"
#include "timing.h"

enum {
    N_DEFAULT = 1048576,
    RANDOM_EVERY = 16, /* this share of the values are random bits: all exponents, specials */
};

/* fpconv is to be at least this many times as fast as the general loop. */
static const double must_gain = 20;

/* Values of a normal distribution and random bits if wide, else random codes. */
static void fill_values(fpconv_format format, void *values, size_t n)
{
    const size_t size = fpconv_format_size(format);
    const size_t every = bench_is_wide(format) ? RANDOM_EVERY : 1;
    const uint64_t mask = (UINT64_C(1) << (fpconv_format_bits(format) - 1) << 1) - 1;
    uint64_t state = 3;
    bench_fill_normal(format, values, n, 1);
    for (size_t i = 0; i < n; i += every)
        bench_store_code(values, i, size, bench_random(&state) & mask);
}

struct workspace {
    size_t n;
    void *values, *ours, *loop;
};

static void run_pair(const struct request *request, const struct workspace *workspace,
                     fpconv_format dst, fpconv_format src)
{
    const char *const src_name = fpconv_format_name(src), *const dst_name = fpconv_format_name(dst);
    const size_t n = workspace->n;
    const bool narrowing = bench_is_wide(src);
    struct h5_conversion ours = {
        .src_type = h5_type(src),
        .dst_type = h5_type(dst),
        .n = n,
        .src_bytes = n * fpconv_format_size(src),
        .values = workspace->values,
        .buffer = workspace->ours,
    };
    struct h5_conversion loop = ours;
    if (narrowing)
        loop.src_type = h5_type_of_general_loop(src);
    else
        loop.dst_type = h5_type_of_general_loop(dst);
    loop.buffer = workspace->loop;
    struct contender contenders[] = {
        {.run = h5_run_conversion, .prepare = h5_restore_values, .context = &ours},
        {.run = h5_run_conversion, .prepare = h5_restore_values, .context = &loop},
    };
    fill_values(src, workspace->values, n);
    report_progress("h5tconvert: %s -> %s", src_name, dst_name);
    timing_compare(contenders, 2);

    struct h5_comparison comparison = {0};
    h5_compare(&comparison, request, dst, loop.buffer, ours.buffer, src, workspace->values, n);
    const double fpconv_ns = contenders[0].seconds / (double)n * 1e9;
    const double loop_ns = contenders[1].seconds / (double)n * 1e9;
    const struct estimate gain = timing_ratio(&contenders[1], &contenders[0], 1);
    const struct estimate ratio = timing_ratio(&contenders[0], &contenders[1], 1);
    const char *const verdict = report_judge(timing_times(ratio, must_gain), 1, 1);
    report_print("%4s -> %-4s  %8.2f  %8.3f  %6.0f [%.0f %.0f]  %-4s  %10zu  %10zu  %11zu\n",
                 src_name, dst_name, loop_ns, fpconv_ns, gain.value, gain.low, gain.high, verdict,
                 comparison.mismatches, comparison.loop_not_nearest, comparison.unjustified);
    json_t *record = json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:f, s:f, s:I, s:I, s:I}", "section", "h5tconvert", "src",
        src_name, "dst", dst_name, "profile", fpconv_h5_profile_name(request->profile), "n",
        (json_int_t)n, "loop_ns", loop_ns, "fpconv_ns", fpconv_ns, "mismatches",
        (json_int_t)comparison.mismatches, "loop_not_nearest",
        (json_int_t)comparison.loop_not_nearest, "unjustified", (json_int_t)comparison.unjustified);
    report_add_ratio(record, ratio);
    report_record(record);
}

void bench_h5tconvert(const struct request *request)
{
    const fpconv_format wide_formats[] = {FPCONV_F32, FPCONV_F64};
    const size_t n = request->n ? request->n : N_DEFAULT;
    const struct workspace workspace = {
        .n = n,
        .values = bench_allocate(n * sizeof(double)),
        .ours = bench_allocate(n * sizeof(double)),
        .loop = bench_allocate(n * sizeof(double)),
    };
    h5_start(request);
    report_print(
        "\nh5tconvert: HDF5's general loop and fpconv, profile %s, n = %zu, ns an element\n"
        "must be %.0f times as fast; exact arithmetic decides on each difference:\n"
        "loop wrong: the loop's result is not the nearest; unproved: nor is fpconv's right\n"
        "%-12s  %8s  %8s  %6s [95 %%]      %4s  %10s  %10s  %11s\n",
        fpconv_h5_profile_name(request->profile), n, must_gain, "pair", "loop", "fpconv", "times",
        "", "different", "loop wrong", "unproved");
    for (size_t w = 0; w < 2; w++)
        for (int narrowing = 1; narrowing >= 0; narrowing--)
            for (int format = 0; format < FPCONV_FORMAT_COUNT; format++) {
                const fpconv_format wide = wide_formats[w], narrow = (fpconv_format)format;
                if (bench_is_wide(narrow) || !h5_has_general_loop(narrow) ||
                    !bench_wants_pair(request, wide, narrow))
                    continue;
                run_pair(request, &workspace, narrowing ? narrow : wide, narrowing ? wide : narrow);
            }
    report_verdicts("h5tconvert");
    free(workspace.values);
    free(workspace.ours);
    free(workspace.loop);
}
