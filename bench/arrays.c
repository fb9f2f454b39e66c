/*
 * arrays.c - the core library: arrays, strided, in place, short, subnormal
 *
 * SPDX-License-Identifier: MIT
 *
 * The limits in the tables are those of the project's aim, that converting cost
 * no more than copying the wide side's array: ratios to a memcpy of that array,
 * or to another conversion where the heading says so.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../src/codec.h"
#include "bench.h"
#include "timing.h"

enum {
    N_L1 = 4096,
    N_L2 = 65536,
    N_MEMORY = 16777216,
};

/* -------------------------------------------------------------------------- */
/* Pairs                                                                      */
/* -------------------------------------------------------------------------- */

struct pair {
    fpconv_format dst, src;
};

enum { PAIRS_MAX = FPCONV_FORMAT_COUNT * FPCONV_FORMAT_COUNT };

static void add_pair(const struct request *request, struct pair *pairs, size_t *count,
                     fpconv_format dst, fpconv_format src)
{
    if (bench_wants_pair(request, dst, src))
        pairs[(*count)++] = (struct pair){dst, src};
}

/* The wanted pairs of f32 and f64 with each narrow format, both ways. */
static size_t list_pairs(const struct request *request, struct pair pairs[PAIRS_MAX])
{
    const fpconv_format wide_formats[] = {FPCONV_F32, FPCONV_F64};
    size_t count = 0;
    for (size_t w = 0; w < 2; w++)
        for (int narrowing = 1; narrowing >= 0; narrowing--)
            for (int format = 0; format < FPCONV_FORMAT_COUNT; format++) {
                const fpconv_format wide = wide_formats[w], narrow = (fpconv_format)format;
                if (!bench_is_wide(narrow))
                    add_pair(request, pairs, &count, narrowing ? narrow : wide,
                             narrowing ? wide : narrow);
            }
    return count;
}

static fpconv_format wide_side(struct pair pair)
{
    return bench_is_wide(pair.src) ? pair.src : pair.dst;
}

static const char *pair_name(struct pair pair)
{
    static char name[32];
    snprintf(name, sizeof(name), "%4s -> %-4s", fpconv_format_name(pair.src),
             fpconv_format_name(pair.dst));
    return name;
}

/* -------------------------------------------------------------------------- */
/* What is timed                                                              */
/* -------------------------------------------------------------------------- */

struct conversion {
    struct pair pair;
    void *dst;
    void *src;
    ptrdiff_t dst_stride, src_stride; /* used by run_strided */
    size_t n;
    fpconv_policy policy;
    void *other;          /* where restore_in_turn has the next source */
    const void *original; /* what restore_source puts into src */
    size_t original_bytes;
};

static void run_conversion(void *context)
{
    const struct conversion *c = context;
    fpconv_convert(c->pair.dst, c->dst, c->pair.src, c->src, c->n, c->policy);
}

static void run_strided(void *context)
{
    const struct conversion *c = context;
    fpconv_convert_strided(c->pair.dst, c->dst, c->dst_stride, c->pair.src, c->src, c->src_stride,
                           c->n, c->policy);
}

static void restore_source(void *context)
{
    const struct conversion *c = context;
    memcpy(c->src, c->original, c->original_bytes);
}

static double ns_each(const struct contender *c, size_t n)
{
    return c->seconds / (double)n * 1e9;
}

/* -------------------------------------------------------------------------- */
/* array: contiguous arrays against memcpy                                    */
/* -------------------------------------------------------------------------- */

static const char worst_heading[] = "worst ratio [95 %]";

struct limits {
    double must, aim;
};

/* None for arrays in the L1 cache, where a copy costs a twentieth of a
 * nanosecond an element and the kernels' arithmetic shows. */
static bool has_limits(size_t n)
{
    return n >= N_L2;
}

static struct limits array_limits(struct pair pair, size_t n)
{
    if (n >= N_MEMORY)
        return (struct limits){1.0, 0.7};
    const bool to_bytes = fpconv_format_size(pair.dst) == 1;
    return (struct limits){to_bytes ? 2.0 : 1.5, 1.0};
}

/* Two buffers of wide elements and one of narrow ones, for the longest n. */
struct buffers {
    void *wide, *wide_copy, *narrow;
};

static void array_row(const struct request *request, const struct buffers *buffers,
                      struct pair pair, size_t n)
{
    const fpconv_format wide = wide_side(pair);
    const bool narrowing = pair.src == wide;
    struct timing_copy copy = {buffers->wide_copy, buffers->wide, n * fpconv_format_size(wide)};
    struct conversion conversions[FPCONV_POLICY_COUNT];
    struct contender contenders[1 + FPCONV_POLICY_COUNT] = {{.run = timing_copy, .context = &copy}};
    struct estimate worst = {0, 0, 0};
    size_t count = 1;

    /* the narrow values are those of a normal distribution, as a reader has them */
    bench_fill_normal(wide, buffers->wide, n, 1);
    bench_fill_normal(narrowing ? pair.dst : pair.src, buffers->narrow, n, 1);
    for (int policy = 0; policy < FPCONV_POLICY_COUNT; policy++) {
        if (!bench_wants_policy(request, (fpconv_policy)policy))
            continue;
        conversions[policy] = (struct conversion){
            .pair = pair,
            .dst = narrowing ? buffers->narrow : buffers->wide_copy,
            .src = narrowing ? buffers->wide : buffers->narrow,
            .n = n,
            .policy = (fpconv_policy)policy,
        };
        contenders[count++] =
            (struct contender){.run = run_conversion, .context = &conversions[policy]};
    }
    report_progress("array: %s, n = %zu", pair_name(pair), n);
    timing_compare(contenders, count);

    const double memcpy_ns = ns_each(&contenders[0], n);
    const struct limits limits = array_limits(pair, n);
    report_print("%s  %8.3f", pair_name(pair), memcpy_ns);
    for (size_t i = 1; i < count; i++) {
        const struct conversion *c = contenders[i].context;
        const double ns = ns_each(&contenders[i], n);
        const struct estimate ratio = timing_ratio(&contenders[i], &contenders[0], 1);
        worst = timing_larger(worst, ratio);
        report_print("  %8.3f %6.2f", ns, ratio.value);
        json_t *record = json_pack(
            "{s:s, s:s, s:s, s:s, s:I, s:f, s:f}", "section", "array", "src",
            fpconv_format_name(pair.src), "dst", fpconv_format_name(pair.dst), "policy",
            fpconv_policy_name(c->policy), "n", (json_int_t)n, "ns", ns, "memcpy_ns", memcpy_ns);
        report_add_ratio(record, ratio);
        report_record(record);
    }
    report_print("  %s  %s\n", report_estimate(worst),
                 has_limits(n) ? report_judge(worst, limits.must, limits.aim) : "");
}

static void array_heading(const struct request *request, size_t n)
{
    report_print("\narray: n = %zu, ns an element; ratios to memcpy of the f32 or f64 array\n", n);
    if (n >= N_MEMORY)
        report_print("must 1.0, aim 0.7\n");
    else if (has_limits(n))
        report_print("must 1.5, to 8 bits and fewer 2.0; aim 1.0\n");
    report_print("%-12s  %8s", "pair", "memcpy");
    for (int policy = 0; policy < FPCONV_POLICY_COUNT; policy++)
        if (bench_wants_policy(request, (fpconv_policy)policy))
            report_print("  %8s %6s", fpconv_policy_name((fpconv_policy)policy), "ratio");
    report_print("  %s\n", worst_heading);
}

void bench_array(const struct request *request)
{
    const size_t lengths[] = {N_L1, N_L2, N_MEMORY};
    const size_t longest = request->n ? request->n : N_MEMORY;
    const struct buffers buffers = {
        .wide = bench_allocate(longest * sizeof(double)),
        .wide_copy = bench_allocate(longest * sizeof(double)),
        .narrow = bench_allocate(longest * sizeof(uint16_t)),
    };
    struct pair pairs[PAIRS_MAX];
    const size_t pair_count = list_pairs(request, pairs);

    for (size_t l = 0; l < (request->n ? 1 : 3); l++) {
        const size_t n = request->n ? request->n : lengths[l];
        array_heading(request, n);
        for (size_t p = 0; p < pair_count; p++)
            array_row(request, &buffers, pairs[p], n);
    }
    report_verdicts("array");
    free(buffers.wide);
    free(buffers.wide_copy);
    free(buffers.narrow);
}

/* -------------------------------------------------------------------------- */
/* Sections that compare one conversion with another                          */
/* -------------------------------------------------------------------------- */

/* What the conversions of a comparison work on. */
struct workspace {
    size_t n;
    void *src, *src_other, *original, *dst;
    ptrdiff_t record; /* bytes, for strided */
};

static struct workspace allocate_workspace(size_t n, size_t element_bytes)
{
    const size_t bytes = n * element_bytes;
    return (struct workspace){n,
                              bench_allocate(bytes),
                              bench_allocate(bytes),
                              bench_allocate(bytes),
                              bench_allocate(bytes),
                              0};
}

static void free_workspace(struct workspace *workspace)
{
    free(workspace->src);
    free(workspace->src_other);
    free(workspace->original);
    free(workspace->dst);
}

struct comparison {
    const char *section, *heading;
    const char *base, *base_field; /* in the table and in the record */
    double must;
    void (*run_base)(void *conversion);
    void (*run_measured)(void *conversion);
    void (*prepare_base)(void *conversion);
    void (*prepare_measured)(void *conversion);
    size_t prepared_runs; /* to a sample; 0: one */
    bool has_records;     /* a column for the traffic of the workspace's records */

    /* Fills the workspace and changes what the two, given alike (from src to
     * dst), have to have different. */
    void (*set_up)(const struct workspace *workspace, struct conversion *base,
                   struct conversion *measured);
};

struct records {
    char *dst;
    const char *src; /* may be dst */
    size_t bytes;
};

/* Reads a word of each cache line of the source and changes one of each of the destination:
 * what the records' traffic alone takes, whatever is done to their members. */
static void move_lines(void *context)
{
    enum { CACHE_LINE = 64 };
    const struct records *records = context;
    for (size_t i = 0; i + CACHE_LINE <= records->bytes; i += CACHE_LINE) {
        const volatile uint64_t *word = (const volatile uint64_t *)(records->src + i);
        *(volatile uint64_t *)(records->dst + i) ^= *word;
    }
}

static void comparison_heading(const struct request *request, const struct comparison *comparison,
                               size_t n)
{
    report_print("\n%s: %s; n = %zu, ns an element\nmust %.1f\n%-12s", comparison->section,
                 comparison->heading, n, comparison->must, "pair");
    if (comparison->has_records)
        report_print("  %7s", "traffic");
    for (int policy = 0; policy < FPCONV_POLICY_COUNT; policy++)
        if (bench_wants_policy(request, (fpconv_policy)policy))
            report_print("  %10s  %8s %6s", comparison->base,
                         fpconv_policy_name((fpconv_policy)policy), "ratio");
    report_print("  %s\n", worst_heading);
}

static void record_comparison(const struct comparison *comparison, const struct conversion *c,
                              double base_ns, double ns, struct estimate ratio, double traffic_ns)
{
    json_t *record =
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:f, s:f}", "section", comparison->section, "src",
                  fpconv_format_name(c->pair.src), "dst", fpconv_format_name(c->pair.dst), "policy",
                  fpconv_policy_name(c->policy), "n", (json_int_t)c->n, "ns", ns,
                  comparison->base_field, base_ns);
    report_add_ratio(record, ratio);
    if (c->src_stride)
        json_object_set_new(record, "stride", json_integer((json_int_t)c->src_stride));
    if (comparison->has_records) {
        json_object_set_new(record, "in_place", json_boolean(c->dst == c->src));
        json_object_set_new(record, "traffic_ns", json_real(traffic_ns));
    }
    report_record(record);
}

static void comparison_row(const struct request *request, const struct comparison *comparison,
                           const struct workspace *workspace, struct pair pair)
{
    struct conversion conversions[2 * FPCONV_POLICY_COUNT];
    struct contender contenders[2 * FPCONV_POLICY_COUNT + 1];
    struct conversion base = {
        .pair = pair, .dst = workspace->dst, .src = workspace->src, .n = workspace->n};
    struct conversion measured = base;
    size_t count = 0;
    comparison->set_up(workspace, &base, &measured);
    struct records records = {measured.dst, measured.src, workspace->n * (size_t)workspace->record};
    for (int policy = 0; policy < FPCONV_POLICY_COUNT; policy++) {
        if (!bench_wants_policy(request, (fpconv_policy)policy))
            continue;
        base.policy = measured.policy = (fpconv_policy)policy;
        conversions[count] = base;
        contenders[count] = (struct contender){.run = comparison->run_base,
                                               .prepare = comparison->prepare_base,
                                               .repeats = comparison->prepared_runs,
                                               .context = &conversions[count]};
        count++;
        conversions[count] = measured;
        contenders[count] = (struct contender){.run = comparison->run_measured,
                                               .prepare = comparison->prepare_measured,
                                               .repeats = comparison->prepared_runs,
                                               .context = &conversions[count]};
        count++;
    }
    report_progress("%s: %s", comparison->section, pair_name(pair));
    contenders[count] = (struct contender){.run = move_lines, .context = &records};
    timing_compare(contenders, count + comparison->has_records);

    struct estimate worst = {0, 0, 0};
    double traffic_ns = 0;
    report_print("%s", pair_name(pair));
    if (comparison->has_records) {
        traffic_ns = ns_each(&contenders[count], workspace->n);
        report_print("  %7.3f", traffic_ns);
    }
    for (size_t i = 0; i < count; i += 2) {
        const double base_ns = ns_each(&contenders[i], workspace->n);
        const double ns = ns_each(&contenders[i + 1], workspace->n);
        const struct estimate ratio = timing_ratio(&contenders[i + 1], &contenders[i], 1);
        worst = timing_larger(worst, ratio);
        report_print("  %10.3f  %8.3f %6.2f", base_ns, ns, ratio.value);
        record_comparison(comparison, &conversions[i + 1], base_ns, ns, ratio, traffic_ns);
    }
    report_print("  %s  %s\n", report_estimate(worst),
                 report_judge(worst, comparison->must, comparison->must));
}

static void compare_pairs(const struct request *request, const struct comparison *comparison,
                          const struct workspace *workspace, const struct pair *pairs, size_t count)
{
    comparison_heading(request, comparison, workspace->n);
    for (size_t p = 0; p < count; p++)
        comparison_row(request, comparison, workspace, pairs[p]);
    report_verdicts(comparison->section);
}

typedef size_t list_function(const struct request *request, struct pair pairs[PAIRS_MAX]);

/* Arrays in the L2 cache of elements of so many bytes at the most. */
static void compare_listed(const struct request *request, const struct comparison *comparison,
                           list_function *list, size_t element_bytes)
{
    struct pair pairs[PAIRS_MAX];
    const size_t count = list(request, pairs);
    struct workspace workspace = allocate_workspace(request->n ? request->n : N_L2, element_bytes);
    compare_pairs(request, comparison, &workspace, pairs, count);
    free_workspace(&workspace);
}

/* -------------------------------------------------------------------------- */
/* narrow: 16-bit formats to and from those of 8, 6 and 4 bits                */
/* -------------------------------------------------------------------------- */

static size_t list_narrow_pairs(const struct request *request, struct pair pairs[PAIRS_MAX])
{
    size_t count = 0;
    for (int from_half = 1; from_half >= 0; from_half--)
        for (int a = 0; a < FPCONV_FORMAT_COUNT; a++)
            for (int b = 0; b < FPCONV_FORMAT_COUNT; b++) {
                const fpconv_format half = (fpconv_format)a, byte = (fpconv_format)b;
                if (fpconv_format_size(half) == 2 && fpconv_format_size(byte) == 1)
                    add_pair(request, pairs, &count, from_half ? byte : half,
                             from_half ? half : byte);
            }
    return count;
}

/* The base has f32 in place of the 16-bit format. */
static void set_up_narrow(const struct workspace *workspace, struct conversion *base,
                          struct conversion *measured)
{
    base->src = workspace->src_other;
    if (fpconv_format_size(base->pair.src) == 2)
        base->pair.src = FPCONV_F32;
    else
        base->pair.dst = FPCONV_F32;
    bench_fill_normal(base->pair.src, base->src, base->n, 1);
    bench_fill_normal(measured->pair.src, measured->src, measured->n, 1);
}

void bench_narrow(const struct request *request)
{
    static const struct comparison comparison = {
        .section = "narrow",
        .heading = "16-bit formats to and from narrower ones, against f32 in their place",
        .base = "with f32",
        .base_field = "f32_ns",
        .must = 1,
        .run_base = run_conversion,
        .run_measured = run_conversion,
        .set_up = set_up_narrow,
    };
    compare_listed(request, &comparison, list_narrow_pairs, sizeof(float));
}

/* -------------------------------------------------------------------------- */
/* inplace: dst == src                                                        */
/* -------------------------------------------------------------------------- */

/*
 * In place the source is gone after a run, so it is put back before each one, for both, which
 * leaves the caches alike.  Two arrays take turns, at one run or the other of each sample: how
 * many lines of an array share a place in the L2 cache depends on the pages that it was given,
 * and with the same roles in all runs, e5m2 to f64 takes 0.987 to 1.006 times as long in place
 * in one process or another.
 */
static void restore_in_turn(void *context)
{
    struct conversion *c = context;
    void *src = c->other;
    c->other = c->src;
    c->dst = c->dst == c->src ? src : c->other;
    c->src = src;
    restore_source(context);
}

static void set_up_inplace(const struct workspace *workspace, struct conversion *base,
                           struct conversion *measured)
{
    base->original = measured->original = workspace->original;
    base->original_bytes = measured->original_bytes =
        workspace->n * fpconv_format_size(base->pair.src);
    base->other = measured->other = base->dst;
    measured->dst = measured->src;
    bench_fill_normal(base->pair.src, workspace->original, workspace->n, 1);
}

void bench_inplace(const struct request *request)
{
    static const struct comparison comparison = {
        .section = "inplace",
        .heading = "dst == src against separate buffers",
        .base = "separate",
        .base_field = "separate_ns",
        .must = 1,
        .run_base = run_conversion,
        .run_measured = run_conversion,
        .prepare_base = restore_in_turn,
        .prepare_measured = restore_in_turn,
        .prepared_runs = 2,
        .set_up = set_up_inplace,
    };
    compare_listed(request, &comparison, list_pairs, sizeof(double));
}

/* -------------------------------------------------------------------------- */
/* strided: a member of a compound                                            */
/* -------------------------------------------------------------------------- */

/*
 * Records and those that they go into begin at the same place of a page, as all large arrays
 * of malloc's do, so that loads have addresses which end like those of stores in flight.  With
 * another offset, most pairs take 1 to 5 % less, and f64 to hif8 in records of 16 bytes 10 %.
 */
static void set_up_strided(const struct workspace *workspace, struct conversion *base,
                           struct conversion *measured)
{
    const fpconv_format src = base->pair.src;
    measured->src = workspace->src_other;
    measured->src_stride = measured->dst_stride = workspace->record;
    bench_fill_normal(src, base->src, base->n, 1);
    fpconv_convert_strided(src, measured->src, workspace->record, src, base->src,
                           (ptrdiff_t)fpconv_format_size(src), base->n, FPCONV_OCP);
}

static void set_up_strided_in_place(const struct workspace *workspace, struct conversion *base,
                                    struct conversion *measured)
{
    set_up_strided(workspace, base, measured);
    measured->dst = measured->src;
    measured->original = workspace->original;
    measured->original_bytes = workspace->n * (size_t)workspace->record;
    memcpy(workspace->original, measured->src, measured->original_bytes);
}

void bench_strided(const struct request *request)
{
    static const struct {
        ptrdiff_t record;
        bool in_place; /* as HDF5 converts the members of a compound */
        const char *heading;
    } tables[] = {
        {12, true, "a member of records of 12 bytes, dst == src, against contiguous"},
        {16, true, "a member of records of 16 bytes, dst == src, against contiguous"},
        {12, false, "a member of records of 12 bytes, into others, against contiguous"},
        {16, false, "a member of records of 16 bytes, into others, against contiguous"},
    };
    /* a quarter: the records of both sides together stay in the L2 cache */
    const size_t n = request->n ? request->n : N_L2 / 4;
    struct pair pairs[PAIRS_MAX];
    const size_t count = list_pairs(request, pairs);
    struct workspace workspace = allocate_workspace(n, 16);
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
        const struct comparison comparison = {
            .section = "strided",
            .heading = tables[t].heading,
            .base = "contiguous",
            .base_field = "contiguous_ns",
            .must = 3,
            .run_base = run_conversion,
            .run_measured = run_strided,
            .prepare_measured = tables[t].in_place ? restore_source : NULL,
            .has_records = true,
            .set_up = tables[t].in_place ? set_up_strided_in_place : set_up_strided,
        };
        workspace.record = tables[t].record;
        compare_pairs(request, &comparison, &workspace, pairs, count);
    }
    free_workspace(&workspace);
}

/* -------------------------------------------------------------------------- */
/* subnormals: results or sources below the narrow format's normal range      */
/* -------------------------------------------------------------------------- */

static double smallest_normal(fpconv_format format)
{
    const struct fp_format *f = &fp_formats[format];
    return ldexp(1, f->specials == SPECIALS_TAPERED ? HIF8_EXPONENT_MIN : 1 - f->bias);
}

/* Two thirds of a normal distribution as wide as the smallest normal value lie
 * below that value. */
static void set_up_subnormals(const struct workspace *workspace, struct conversion *base,
                              struct conversion *measured)
{
    const struct pair pair = base->pair;
    const double low = smallest_normal(bench_is_wide(pair.src) ? pair.dst : pair.src);
    measured->src = workspace->src_other;
    bench_fill_binades(pair.src, base->src, base->n, low, 2 * low);
    bench_fill_normal(pair.src, measured->src, measured->n, low);
}

void bench_subnormals(const struct request *request)
{
    static const struct comparison comparison = {
        .section = "subnormals",
        .heading = "two thirds subnormal values of the narrow format, against none",
        .base = "none",
        .base_field = "normal_ns",
        .must = 1.3,
        .run_base = run_conversion,
        .run_measured = run_conversion,
        .set_up = set_up_subnormals,
    };
    compare_listed(request, &comparison, list_pairs, sizeof(double));
}

/* -------------------------------------------------------------------------- */
/* small: what a call costs                                                   */
/* -------------------------------------------------------------------------- */

enum { CALLS = 256, N_SMALL = 16, SMALL_LENGTHS = 2 };

static const struct {
    size_t n;
    double must_ns;
} small_lengths[SMALL_LENGTHS] = {{1, 15}, {N_SMALL, 25}};

struct small_call {
    _Alignas(64) double src[N_SMALL], dst[N_SMALL];
    struct conversion conversion;
};

static void run_calls(void *context)
{
    struct small_call *call = context;
    for (int i = 0; i < CALLS; i++)
        run_conversion(&call->conversion);
}

/*
 * Nanoseconds a call: the lower quartile.  Whoever else is on the machine only ever adds to
 * a sample, so that it is nearer to the call's own time than the median is; and it rests on
 * more than the one sample that the minimum is.
 */
static struct estimate small_ns(const struct contender *c)
{
    return timing_times(timing_quantile(c, 0.25), 1e9 / (double)CALLS);
}

static struct contender small_contender(struct small_call *call, struct pair pair, size_t n,
                                        fpconv_policy policy)
{
    call->conversion = (struct conversion){
        .pair = pair, .dst = call->dst, .src = call->src, .n = n, .policy = policy};
    bench_fill_normal(pair.src, call->src, n, 1);
    return (struct contender){.run = run_calls, .context = call};
}

static void record_small_call(const struct contender *c)
{
    const struct conversion *conversion = &((const struct small_call *)c->context)->conversion;
    report_record(json_pack("{s:s, s:s, s:s, s:s, s:I, s:f, s:f}", "section", "small", "src",
                            fpconv_format_name(conversion->pair.src), "dst",
                            fpconv_format_name(conversion->pair.dst), "policy",
                            fpconv_policy_name(conversion->policy), "n", (json_int_t)conversion->n,
                            "call_ns", small_ns(c).value, "median_ns", ns_each(c, CALLS)));
}

/* A pair's contenders, by policies and lengths. */
static void small_row(struct pair pair, const struct contender *contenders, size_t count)
{
    struct estimate worst = {0, 0, 0};
    report_print("%s", pair_name(pair));
    for (size_t i = 0; i < count; i++) {
        const struct estimate ns = small_ns(&contenders[i]);
        const double must_ns = small_lengths[i % SMALL_LENGTHS].must_ns;
        worst = timing_larger(worst, timing_times(ns, 1 / must_ns));
        report_print("  %5.1f (%5.1f)", ns.value, ns_each(&contenders[i], CALLS));
        record_small_call(&contenders[i]);
    }
    report_print("  %s  %s\n", report_estimate(worst), report_judge(worst, 1, 1));
}

static void small_heading(const struct request *request)
{
    report_print("\nsmall: ns a call of fpconv_convert, must %.0f with n = 1, %.0f with n = 16\n"
                 "what a quarter of the batches stay below, which are taken in turn with all "
                 "others, for\nwhoever else is on the core only ever adds to them; (median)\n",
                 small_lengths[0].must_ns, small_lengths[1].must_ns);
    report_print("%-12s", "pair");
    for (int policy = 0; policy < FPCONV_POLICY_COUNT; policy++)
        if (bench_wants_policy(request, (fpconv_policy)policy))
            report_print("  %7s: n = 1          n = 16", fpconv_policy_name((fpconv_policy)policy));
    report_print("  worst, to its limit [95 %%]\n");
}

void bench_small(const struct request *request)
{
    enum { PER_PAIR_MAX = FPCONV_POLICY_COUNT * SMALL_LENGTHS };
    struct pair pairs[PAIRS_MAX];
    const size_t pair_count = list_pairs(request, pairs);
    struct small_call *calls = bench_allocate(pair_count * PER_PAIR_MAX * sizeof(*calls));
    struct contender *contenders = bench_allocate(pair_count * PER_PAIR_MAX * sizeof(*contenders));
    size_t count = 0;
    for (size_t p = 0; p < pair_count; p++)
        for (int policy = 0; policy < FPCONV_POLICY_COUNT; policy++)
            for (size_t i = 0; i < SMALL_LENGTHS; i++) {
                if (!bench_wants_policy(request, (fpconv_policy)policy))
                    continue;
                contenders[count] = small_contender(&calls[count], pairs[p], small_lengths[i].n,
                                                    (fpconv_policy)policy);
                count++;
            }
    report_progress("small");
    timing_compare(contenders, count);
    small_heading(request);
    for (size_t p = 0; p < pair_count; p++)
        small_row(pairs[p], &contenders[p * (count / pair_count)], count / pair_count);
    report_verdicts("small");
    free(calls);
    free(contenders);
}
