/*
 * h5call.c - array and compound datatypes: what HDF5's calls of a converter cost
 *
 * SPDX-License-Identifier: MIT
 *
 * The elements of an array are converted by one call an array; members of compounds
 * by one a member, a stride apart.
 */
#include <stdlib.h>
#include <string.h>

#include "fpconv/fpconv_h5.h"
#include "h5.h"
#include "timing.h"

enum {
    N_DEFAULT = 4096, /* arrays or records */
    ELEMENTS = 16,    /* of an array */
    MEMBERS = 3,
};

/* An array or a record, whose values lie a stride apart. */
struct shape {
    const char *name;
    size_t values;
    hid_t (*type_of)(hid_t element);
};

static hid_t array_of(hid_t element)
{
    const hsize_t extent = ELEMENTS;
    return h5_check(H5Tarray_create2(element, 1, &extent), "cannot make an array datatype");
}

/* Two members that need no conversion and, between them, one that does. */
static hid_t record_of(hid_t element)
{
    const hid_t members[MEMBERS] = {H5T_NATIVE_INT, element, H5T_NATIVE_INT};
    static const char *const names[MEMBERS] = {"first", "value", "last"};
    const hid_t type = h5_check(H5Tcreate(H5T_COMPOUND, 2 * sizeof(int) + H5Tget_size(element)),
                                "cannot make a compound datatype");
    size_t at = 0;
    for (int i = 0; i < MEMBERS; i++) {
        h5_check(H5Tinsert(type, names[i], at, members[i]), "cannot make a compound datatype");
        at += H5Tget_size(members[i]);
    }
    return type;
}

static const struct shape shapes[] = {{"array", ELEMENTS, array_of}, {"compound", 1, record_of}};
enum { ARRAY, COMPOUND, SHAPES };

/* fpconv is to be at least so many times as fast as the general loop: before 1.14
 * HDF5 itself takes less for a call. */
static double must_gain(int shape)
{
    static const double gains[SHAPES][2] = {[ARRAY] = {30, 12}, [COMPOUND] = {6, 3}};
    unsigned major, minor, release;
    H5get_libversion(&major, &minor, &release);
    return gains[shape][major > 1 || minor >= 14];
}

struct conversion {
    hid_t src_type, dst_type;
    size_t n, src_bytes;
    const void *values;
    void *buffer, *background;
};

static void restore_values(void *context)
{
    const struct conversion *c = context;
    memcpy(c->buffer, c->values, c->src_bytes);
}

static void run(void *context)
{
    const struct conversion *c = context;
    h5_check(H5Tconvert(c->src_type, c->dst_type, c->n, c->buffer, c->background, H5P_DEFAULT),
             "H5Tconvert failed");
}

/* Values of a normal distribution where the datatype has them, and zeros elsewhere. */
static void fill_values(char *buffer, const struct conversion *c, const struct shape *shape,
                        fpconv_format format)
{
    const size_t size = fpconv_format_size(format), record = H5Tget_size(c->src_type);
    const size_t at = shape->values > 1 ? 0 : sizeof(int);
    char *codes = bench_allocate(c->n * shape->values * size);
    bench_fill_normal(format, codes, c->n * shape->values, 1);
    memset(buffer, 0, c->src_bytes);
    for (size_t i = 0; i < c->n; i++)
        memcpy(buffer + i * record + at, codes + i * shape->values * size, shape->values * size);
    free(codes);
}

struct workspace {
    size_t n;
    void *values, *buffer, *background;
};

static struct conversion make_conversion(const struct workspace *workspace,
                                         const struct shape *shape, hid_t dst, hid_t src)
{
    struct conversion c = {
        .src_type = shape->type_of(src),
        .dst_type = shape->type_of(dst),
        .n = workspace->n,
        .values = workspace->values,
        .buffer = workspace->buffer,
        .background = workspace->background,
    };
    c.src_bytes = c.n * H5Tget_size(c.src_type);
    return c;
}

static void close_types(const struct conversion *c)
{
    H5Tclose(c->src_type);
    H5Tclose(c->dst_type);
}

static void run_pair(const struct workspace *workspace, int shape, fpconv_format dst,
                     fpconv_format src)
{
    const bool narrowing = bench_is_wide(src);
    const hid_t loop_type = h5_type_of_general_loop(narrowing ? src : dst);
    struct conversion ours = make_conversion(workspace, &shapes[shape], h5_type(dst), h5_type(src));
    struct conversion loop =
        make_conversion(workspace, &shapes[shape], narrowing ? h5_type(dst) : loop_type,
                        narrowing ? loop_type : h5_type(src));
    struct contender contenders[] = {
        {.run = run, .prepare = restore_values, .context = &ours},
        {.run = run, .prepare = restore_values, .context = &loop},
    };
    const char *const src_name = fpconv_format_name(src), *const dst_name = fpconv_format_name(dst);
    fill_values(workspace->values, &ours, &shapes[shape], src);
    report_progress("h5call: %s, %s -> %s", shapes[shape].name, src_name, dst_name);
    timing_compare(contenders, 2);
    const double scale = 1e9 / (double)workspace->n;
    const double fpconv_ns = contenders[0].seconds * scale;
    const double loop_ns = contenders[1].seconds * scale;
    const double must = must_gain(shape);
    const struct estimate gain = timing_ratio(&contenders[1], &contenders[0], 1);
    const struct estimate ratio = timing_ratio(&contenders[0], &contenders[1], 1);
    report_print("%-8s  %4s -> %-4s  %7.1f  %7.1f  %5.1f [%.1f %.1f]  %4.0f  %-4s\n",
                 shapes[shape].name, src_name, dst_name, loop_ns, fpconv_ns, gain.value, gain.low,
                 gain.high, must, report_judge(timing_times(ratio, must), 1, 1));
    json_t *record =
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:f, s:f}", "section", "h5call", "type",
                  shapes[shape].name, "src", src_name, "dst", dst_name, "n",
                  (json_int_t)workspace->n, "loop_ns", loop_ns, "fpconv_ns", fpconv_ns);
    report_add_ratio(record, ratio);
    report_record(record);
    close_types(&ours);
    close_types(&loop);
}

void bench_h5call(const struct request *request)
{
    const fpconv_format wide_formats[] = {FPCONV_F32, FPCONV_F64};
    const size_t n = request->n ? request->n : N_DEFAULT;
    const size_t bytes = n * ELEMENTS * sizeof(double);
    const struct workspace workspace = {n, bench_allocate(bytes), bench_allocate(bytes),
                                        bench_allocate(bytes)};
    h5_start(request);
    report_print("\nh5call: HDF5's general loop and fpconv, %zu arrays of %d elements or compounds "
                 "of %d members, one of which is converted\nns an array or a compound; must be so "
                 "many times as fast\n%-8s  %-12s  %7s  %7s  %5s [95 %%]       %4s\n",
                 n, ELEMENTS, MEMBERS, "datatype", "pair", "loop", "fpconv", "times", "must");
    for (int shape = 0; shape < SHAPES; shape++)
        for (size_t w = 0; w < 2; w++)
            for (int narrowing = 1; narrowing >= 0; narrowing--)
                for (int format = 0; format < FPCONV_FORMAT_COUNT; format++) {
                    const fpconv_format wide = wide_formats[w], narrow = (fpconv_format)format;
                    if (!bench_is_wide(narrow) && h5_has_general_loop(narrow) &&
                        bench_wants_pair(request, wide, narrow))
                        run_pair(&workspace, shape, narrowing ? narrow : wide,
                                 narrowing ? wide : narrow);
                }
    report_verdicts("h5call");
    free(workspace.values);
    free(workspace.buffer);
    free(workspace.background);
}
