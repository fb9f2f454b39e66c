/*
 * h5identical.c - profile IDENTICAL against REPAIRED
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdlib.h>

#include "../src/formats.h"
#include "h5.h"
#include "timing.h"

enum { N_DEFAULT = 65536 }; /* in the L2 cache */

/* IDENTICAL may take this many times as long. */
static const double must_ratio = 1.5;

struct conversion {
    struct h5_conversion call;
    fpconv_h5_profile profile;
};

/* Registers the profile, too: both contenders convert by the same path of HDF5. */
static void prepare(void *context)
{
    struct conversion *c = context;
    h5_check(fpconv_h5_register_profile(c->profile, NULL), "cannot register fpconv's converters");
    h5_restore_values(&c->call);
}

static void run(void *context)
{
    struct conversion *c = context;
    h5_run_conversion(&c->call);
}

/* Is the pair one that IDENTICAL converts, not one that it leaves to the library? */
static bool is_taken(const fpconv_h5_report *report, fpconv_format dst, fpconv_format src)
{
    for (unsigned i = 0; i < report->pair_count; i++) {
        const fpconv_h5_pair_report *pair = &report->pairs[i];
        if (pair->dst == dst && pair->src == src && pair->dst_order == H5T_ORDER_LE &&
            pair->src_order == H5T_ORDER_LE)
            return pair->registered;
    }
    return false;
}

static void run_pair(const struct h5_conversion *call, fpconv_format dst, fpconv_format src,
                     const char *kind)
{
    struct conversion repaired = {*call, FPCONV_H5_REPAIRED};
    struct conversion identical = {*call, FPCONV_H5_IDENTICAL};
    struct contender contenders[] = {
        {.run = run, .prepare = prepare, .context = &repaired},
        {.run = run, .prepare = prepare, .context = &identical},
    };
    const char *const src_name = fpconv_format_name(src), *const dst_name = fpconv_format_name(dst);
    report_progress("identical: %s -> %s", src_name, dst_name);
    timing_compare(contenders, 2);
    const double scale = 1e9 / (double)call->n;
    const double repaired_ns = contenders[0].seconds * scale;
    const double identical_ns = contenders[1].seconds * scale;
    const struct estimate ratio = timing_ratio(&contenders[1], &contenders[0], 1);
    report_print("%4s -> %-4s  %-10s  %8.3f  %9.3f  %s  %-4s\n", src_name, dst_name, kind,
                 repaired_ns, identical_ns, report_estimate(ratio),
                 report_judge(ratio, must_ratio, must_ratio));
    report_record(json_pack("{s:s, s:s, s:s, s:s, s:I, s:f, s:f}", "section", "identical", "src",
                            src_name, "dst", dst_name, "data", kind, "n", (json_int_t)call->n,
                            "repaired_ns", repaired_ns, "identical_ns", identical_ns));
}

/* A normal distribution; and one as wide as the destination's smallest normal value,
 * two thirds of which lie below that. */
static void run_kinds(struct h5_conversion *call, void *values, fpconv_format dst,
                      fpconv_format src)
{
    call->src_type = h5_type(src);
    call->dst_type = h5_type(dst);
    call->src_bytes = call->n * fpconv_format_size(src);
    bench_fill_normal(src, values, call->n, 1);
    run_pair(call, dst, src, "normal");
    bench_fill_normal(src, values, call->n, ldexp(1, 1 - fp_formats[dst].bias));
    run_pair(call, dst, src, "subnormals");
}

void bench_identical(const struct request *request)
{
    const size_t n = request->n ? request->n : N_DEFAULT;
    void *values = bench_allocate(n * sizeof(double));
    struct h5_conversion call = {
        .n = n,
        .values = values,
        .buffer = bench_allocate(n * sizeof(double)),
    };
    static fpconv_h5_report report;
    h5_start(request);
    h5_check(fpconv_h5_register_profile(FPCONV_H5_IDENTICAL, &report),
             "cannot register fpconv's converters");
    report_print("\nidentical: profile IDENTICAL against REPAIRED, HDF5 %u.%u.%u, n = %zu, ns an "
                 "element\nmust take no more than %.1f times as long; subnormals: two thirds below "
                 "the destination's normal range\n%-12s  %-10s  %8s  %9s  %6s [95 %%]\n",
                 report.library_version[0], report.library_version[1], report.library_version[2], n,
                 must_ratio, "pair", "data", "repaired", "identical", "ratio");
    for (int s = 0; s < FPCONV_FORMAT_COUNT; s++)
        for (int d = 0; d < FPCONV_FORMAT_COUNT; d++) {
            const fpconv_format src = (fpconv_format)s, dst = (fpconv_format)d;
            if (src != dst && !bench_is_wide(dst) && is_taken(&report, dst, src) &&
                bench_wants_pair(request, src, dst))
                run_kinds(&call, values, dst, src);
        }
    h5_check(fpconv_h5_register_profile(request->profile, NULL),
             "cannot register fpconv's converters");
    report_verdicts("identical");
    free(values);
    free(call.buffer);
}
