/*
 * input.c - the main job: every float dataset of a file, in every narrow format
 *
 * SPDX-License-Identifier: MIT
 *
 * Each dataset goes through H5Dwrite into a new file and back through H5Dread,
 * by fpconv and by HDF5's general loop.  The input is opened read-only.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fpconv/fpconv_h5.h"
#include "h5.h"
#include "timing.h"

enum {
    BLOCK_N = 1 << 24, /* a dataset passes through memory in blocks of about this size */
    LOOP_N = 1 << 20,  /* the general loop gets at most about this much of a block */
    SINGLE_N = 1 << 20 /* from here on one timed run of a transfer is enough */
};

/* -------------------------------------------------------------------------- */
/* Files                                                                      */
/* -------------------------------------------------------------------------- */

static hid_t open_input(const char *path)
{
    struct stat status;
    const int descriptor = open(path, O_RDONLY | O_NONBLOCK); /* a pipe would block */
    if (descriptor < 0 || fstat(descriptor, &status) != 0)
        report_fail("%s: %s", path, strerror(errno));
    if (S_ISDIR(status.st_mode))
        report_fail("%s: is a directory, not an HDF5 file", path);
    if (!S_ISREG(status.st_mode) || H5Fis_hdf5(path) <= 0)
        report_fail("%s: is not an HDF5 file", path);
    close(descriptor);
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0)
        h5_fail("%s: cannot open", path);
    return file;
}

/* A temporary file loses its name at once, so that nothing is left behind. */
static hid_t create_output(const struct request *request, char *path, size_t path_size)
{
    if (request->output) {
        snprintf(path, path_size, "%s", request->output);
        if (access(path, F_OK) == 0)
            report_fail("%s: exists, and would be overwritten", path);
        const hid_t file = H5Fcreate(path, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT);
        if (file < 0)
            h5_fail("%s: cannot create", path);
        report_remove_on_failure(path);
        return file;
    }
    const char *folder = getenv("TMPDIR");
    snprintf(path, path_size, "%s/fpconv-bench-XXXXXX", folder && *folder ? folder : "/tmp");
    const int descriptor = mkstemp(path);
    if (descriptor < 0)
        report_fail("%s: cannot create: %s", path, strerror(errno));
    close(descriptor);
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    unlink(path);
    if (file < 0)
        h5_fail("%s: cannot create", path);
    return file;
}

/* -------------------------------------------------------------------------- */
/* The float datasets of the input                                            */
/* -------------------------------------------------------------------------- */

#if H5_VERSION_GE(1, 12, 0)
typedef H5O_info2_t object_info;
#define VISIT_OBJECTS(file, visitor, data) \
    H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_INC, visitor, data, H5O_INFO_BASIC)
#else
typedef H5O_info_t object_info;
#define VISIT_OBJECTS(file, visitor, data) \
    H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, visitor, data, H5O_INFO_BASIC)
#endif

struct names {
    char **names;
    size_t count;
};

/* The input, from bench_open_input on. */
static struct {
    hid_t file;
    struct names datasets;
} input;

static herr_t add_float_dataset(hid_t file, const char *name, const object_info *info, void *data)
{
    struct names *names = data;
    if (info->type != H5O_TYPE_DATASET)
        return 0;
    const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    if (dataset < 0)
        return -1;
    const hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    if (H5Tget_class(type) == H5T_FLOAT && H5Sget_simple_extent_npoints(space) > 0) {
        names->names = realloc(names->names, (names->count + 1) * sizeof(char *));
        names->names[names->count++] = strdup(name);
    }
    H5Tclose(type);
    H5Sclose(space);
    H5Dclose(dataset);
    return 0;
}

/* -------------------------------------------------------------------------- */
/* What is measured of a dataset, or of all of them, in one format            */
/* -------------------------------------------------------------------------- */

struct outcome {
    size_t n, loop_n;
    double write_s, read_s;           /* of n elements */
    double loop_write_s, loop_read_s; /* of loop_n elements */
    struct h5_comparison comparison;
    double signal, noise; /* sums of squares, of the values that are finite after it, too */
    double worst;         /* error */
    size_t finite;
    size_t overflowed; /* finite values that became Inf, NaN, or the largest finite value */
};

static double loop_seconds(const struct outcome *o, double measured)
{
    return o->loop_n ? measured * (double)o->n / (double)o->loop_n : 0;
}

static void add_outcome(struct outcome *sum, const struct outcome *o)
{
    sum->n += o->n;
    sum->loop_n += o->loop_n;
    sum->write_s += o->write_s;
    sum->read_s += o->read_s;
    sum->loop_write_s += o->loop_write_s;
    sum->loop_read_s += o->loop_read_s;
    sum->comparison.compared += o->comparison.compared;
    sum->comparison.mismatches += o->comparison.mismatches;
    sum->comparison.loop_not_nearest += o->comparison.loop_not_nearest;
    sum->comparison.unjustified += o->comparison.unjustified;
    sum->signal += o->signal;
    sum->noise += o->noise;
    sum->worst = fmax(sum->worst, o->worst);
    sum->finite += o->finite;
    sum->overflowed += o->overflowed;
}

static double load_value(fpconv_format wide, const void *values, size_t i)
{
    return wide == FPCONV_F32 ? ((const float *)values)[i] : ((const double *)values)[i];
}

/* The largest finite value that the registered profile gives. */
static double largest_finite(fpconv_h5_profile profile, fpconv_format format)
{
    const bool reserved = profile == FPCONV_H5_REPAIRED || profile == FPCONV_H5_IDENTICAL;
    const fpconv_policy policy = reserved ? FPCONV_HDF5 : FPCONV_OCP;
    double largest = 0;
    for (uint32_t code = 0; code < UINT32_C(1) << (fpconv_format_bits(format) - 1); code++) {
        const double value = fpconv_decode(format, code, policy);
        if (isfinite(value))
            largest = fmax(largest, value);
    }
    return largest;
}

static void measure_errors(struct outcome *o, fpconv_format wide, const void *before,
                           const void *after, size_t n, double largest)
{
    for (size_t i = 0; i < n; i++) {
        const double x = load_value(wide, before, i), y = load_value(wide, after, i);
        if (!isfinite(x))
            continue;
        o->overflowed += !isfinite(y) || (fabs(y) == largest && fabs(x) > largest);
        if (!isfinite(y))
            continue;
        const double error = fabs(x - y);
        o->finite++;
        o->signal += x * x;
        o->noise += error * error;
        o->worst = fmax(o->worst, error);
    }
}

static double sqnr_db(const struct outcome *o)
{
    return 10 * log10(o->signal / o->noise);
}

/* "31.98"; "exact" without an error, "-" without a value to compare. */
static const char *sqnr_text(const struct outcome *o)
{
    static char text[32];
    if (o->finite == 0)
        return "-";
    if (o->noise == 0)
        return "exact";
    snprintf(text, sizeof(text), "%.2f", sqnr_db(o));
    return text;
}

static double rms_error(const struct outcome *o)
{
    return o->finite ? sqrt(o->noise / (double)o->finite) : 0;
}

/* -------------------------------------------------------------------------- */
/* One block of a dataset                                                     */
/* -------------------------------------------------------------------------- */

/* A run of rows (of the first dimension) of a dataset. */
struct block {
    hid_t memory_space, file_space;
    size_t n;
};

static struct block select_rows(hid_t dataset, hsize_t first, hsize_t count)
{
    const hid_t file_space = H5Dget_space(dataset);
    const int rank = H5Sget_simple_extent_ndims(file_space);
    hsize_t extent[H5S_MAX_RANK], start[H5S_MAX_RANK] = {0};
    if (rank > 0) {
        H5Sget_simple_extent_dims(file_space, extent, NULL);
        start[0] = first;
        extent[0] = count;
        H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start, NULL, extent, NULL);
    }
    const hssize_t n = H5Sget_select_npoints(file_space);
    const hsize_t points = (hsize_t)n;
    return (struct block){H5Screate_simple(1, &points, NULL), file_space, (size_t)n};
}

static void close_block(struct block *block)
{
    H5Sclose(block->memory_space);
    H5Sclose(block->file_space);
}

struct transfer {
    const struct request *request;
    const char *output;
    hid_t dataset, type;
    const struct block *block;
    void *buffer;
};

static void run_write(void *context)
{
    const struct transfer *t = context;
    if (H5Dwrite(t->dataset, t->type, t->block->memory_space, t->block->file_space, H5P_DEFAULT,
                 t->buffer) < 0)
        h5_fail("%s: cannot write", t->output);
}

static void run_read(void *context)
{
    const struct transfer *t = context;
    if (H5Dread(t->dataset, t->type, t->block->memory_space, t->block->file_space, H5P_DEFAULT,
                t->buffer) < 0)
        h5_fail("%s: cannot read back", t->output);
}

/* Seconds of a transfer that has run before: the median of some, or of one. */
static double time_transfer(void (*run)(void *), struct transfer *transfer)
{
    if (transfer->block->n >= SINGLE_N)
        return timing_once(run, transfer);
    struct contender contender = {.run = run, .context = transfer};
    timing_compare(&contender, 1);
    return contender.seconds;
}

/* Memory for one block: the values as they were and as they come back, and the
 * codes that fpconv and the loop stored. */
struct buffers {
    void *values, *decoded, *codes, *loop_codes;
};

/* Writes some rows by the general loop and fetches the codes. */
static void run_loop(struct outcome *o, const struct transfer *ours, fpconv_format format,
                     fpconv_format wide, const struct block *part, const struct buffers *buffers)
{
    struct transfer loop = *ours;
    loop.block = part;
    loop.type = h5_type_of_general_loop(wide);
    run_write(&loop);
    o->loop_write_s += time_transfer(run_write, &loop);
    loop.buffer = buffers->decoded;
    o->loop_read_s += time_transfer(run_read, &loop);
    loop.type = h5_type(format);
    loop.buffer = buffers->loop_codes;
    run_read(&loop);
    o->loop_n += part->n;
}

static void run_block(struct outcome *o, const struct transfer *prototype, fpconv_format format,
                      fpconv_format wide, const struct block *part, const struct buffers *buffers,
                      double largest)
{
    struct transfer ours = *prototype;
    const size_t n = ours.block->n;
    const bool has_loop = h5_has_general_loop(format);
    if (has_loop)
        run_loop(o, &ours, format, wide, part, buffers);

    run_write(&ours); /* the first time, the file grows */
    o->write_s += time_transfer(run_write, &ours);
    ours.buffer = buffers->decoded;
    run_read(&ours);
    o->read_s += time_transfer(run_read, &ours);
    o->n += n;
    measure_errors(o, wide, buffers->values, buffers->decoded, n, largest);

    ours.type = h5_type(format);
    ours.buffer = buffers->codes;
    run_read(&ours);
    if (has_loop)
        h5_compare(&o->comparison, ours.request, format, buffers->loop_codes, buffers->codes, wide,
                   buffers->values, part->n);
}

/* -------------------------------------------------------------------------- */
/* One dataset                                                                */
/* -------------------------------------------------------------------------- */

static bool wants_format(const struct request *request, fpconv_format format)
{
    return !bench_is_wide(format) && bench_wants_pair(request, format, format);
}

static hid_t create_copy(const char *output, hid_t file, fpconv_format format, const char *name,
                         hid_t space)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", fpconv_format_name(format), name);
    const hid_t links = h5_check(H5Pcreate(H5P_LINK_CREATE), "cannot create a property list");
    H5Pset_create_intermediate_group(links, 1);
    const hid_t dataset =
        H5Dcreate2(file, path, h5_type(format), space, links, H5P_DEFAULT, H5P_DEFAULT);
    if (dataset < 0)
        h5_fail("%s: cannot create the dataset %s", output, path);
    H5Pclose(links);
    return dataset;
}

static hsize_t rows_of(hid_t space)
{
    hsize_t extent[H5S_MAX_RANK] = {1};
    H5Sget_simple_extent_dims(space, extent, NULL);
    return extent[0];
}

static hsize_t at_least_one(hsize_t n)
{
    return n > 0 ? n : 1;
}

struct job {
    const struct request *request;
    hid_t output;
    const char *output_path;
};

static void run_dataset(const struct job *job, const char *name,
                        struct outcome outcomes[FPCONV_FORMAT_COUNT])
{
    const struct request *request = job->request;
    hid_t copies[FPCONV_FORMAT_COUNT];
    const hid_t dataset = h5_check(H5Dopen2(input.file, name, H5P_DEFAULT), name);
    const hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
    const fpconv_format wide = H5Tget_size(type) <= sizeof(float) ? FPCONV_F32 : FPCONV_F64;
    const hsize_t rows = rows_of(space);
    const hsize_t row_n = (hsize_t)H5Sget_simple_extent_npoints(space) / rows;
    const hsize_t block_rows = at_least_one(BLOCK_N / row_n),
                  loop_rows = at_least_one(LOOP_N / row_n);
    const size_t block_n = (size_t)((block_rows < rows ? block_rows : rows) * row_n);
    const struct buffers buffers = {
        .values = bench_allocate(block_n * fpconv_format_size(wide)),
        .decoded = bench_allocate(block_n * fpconv_format_size(wide)),
        .codes = bench_allocate(block_n * sizeof(uint16_t)),
        .loop_codes = bench_allocate(block_n * sizeof(uint16_t)),
    };

    for (int f = 0; f < FPCONV_FORMAT_COUNT; f++)
        if (wants_format(request, (fpconv_format)f))
            copies[f] = create_copy(job->output_path, job->output, (fpconv_format)f, name, space);
    for (hsize_t first = 0; first < rows; first += block_rows) {
        const hsize_t count = rows - first < block_rows ? rows - first : block_rows;
        struct block block = select_rows(dataset, first, count);
        struct block part = select_rows(dataset, first, count < loop_rows ? count : loop_rows);
        report_progress("input: %s, row %llu of %llu", name, (unsigned long long)first,
                        (unsigned long long)rows);
        if (H5Dread(dataset, h5_type(wide), block.memory_space, block.file_space, H5P_DEFAULT,
                    buffers.values) < 0)
            h5_fail("%s: cannot read the dataset %s", request->input, name);
        for (int f = 0; f < FPCONV_FORMAT_COUNT; f++) {
            const fpconv_format format = (fpconv_format)f;
            if (!wants_format(request, format))
                continue;
            const struct transfer transfer = {request,       job->output_path, copies[f],
                                              h5_type(wide), &block,           buffers.values};
            run_block(&outcomes[f], &transfer, format, wide, &part, &buffers,
                      largest_finite(request->profile, format));
        }
        close_block(&block);
        close_block(&part);
    }
    for (int f = 0; f < FPCONV_FORMAT_COUNT; f++)
        if (wants_format(request, (fpconv_format)f))
            H5Dclose(copies[f]);
    free(buffers.values);
    free(buffers.decoded);
    free(buffers.codes);
    free(buffers.loop_codes);
    H5Tclose(type);
    H5Sclose(space);
    H5Dclose(dataset);
}

/* -------------------------------------------------------------------------- */
/* Report                                                                     */
/* -------------------------------------------------------------------------- */

static json_t *real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static void record_outcome(const char *name, fpconv_format format, const struct outcome *o)
{
    report_record(json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:o, s:o, s:o, s:I, s:I, s:I, s:I}",
        "section", "input", "dataset", name, "dst", fpconv_format_name(format), "n",
        (json_int_t)o->n, "bytes", (json_int_t)(o->n * fpconv_format_size(format)), "loop_n",
        (json_int_t)o->loop_n, "write_s", o->write_s, "read_s", o->read_s, "loop_write_s",
        loop_seconds(o, o->loop_write_s), "loop_read_s", loop_seconds(o, o->loop_read_s),
        "rms_error", real_or_null(rms_error(o)), "worst_error", real_or_null(o->worst), "sqnr_db",
        real_or_null(sqnr_db(o)), "overflowed", (json_int_t)o->overflowed, "mismatches",
        (json_int_t)o->comparison.mismatches, "loop_not_nearest",
        (json_int_t)o->comparison.loop_not_nearest, "unjustified",
        (json_int_t)o->comparison.unjustified));
}

static void print_outcome(fpconv_format format, const struct outcome *o)
{
    report_print("%-4s  %11zu  %8.2f  %8.2f  %9.3g  %9.3g  %6s  %9zu", fpconv_format_name(format),
                 o->n * fpconv_format_size(format), o->write_s * 1e3, o->read_s * 1e3, rms_error(o),
                 o->worst, sqnr_text(o), o->overflowed);
    if (o->loop_n) {
        const double loop_write_s = loop_seconds(o, o->loop_write_s);
        const double loop_read_s = loop_seconds(o, o->loop_read_s);
        report_print("  %9.1f %5.0f  %9.1f %5.0f  %9zu  %5.2f%%", loop_write_s * 1e3,
                     loop_write_s / o->write_s, loop_read_s * 1e3, loop_read_s / o->read_s,
                     o->comparison.loop_not_nearest,
                     100.0 * (double)o->comparison.loop_not_nearest / (double)o->loop_n);
    }
    report_print("\n");
}

/* What it gained: all formats together that HDF5 converts, too. */
static void print_gain(const struct outcome totals[FPCONV_FORMAT_COUNT])
{
    double ours = 0, loop = 0;
    struct h5_comparison comparison = {0};
    for (int f = 0; f < FPCONV_FORMAT_COUNT; f++) {
        const struct outcome *o = &totals[f];
        if (!o->loop_n)
            continue;
        ours += o->write_s + o->read_s;
        loop += loop_seconds(o, o->loop_write_s) + loop_seconds(o, o->loop_read_s);
        comparison.compared += o->comparison.compared;
        comparison.loop_not_nearest += o->comparison.loop_not_nearest;
        comparison.unjustified += o->comparison.unjustified;
    }
    if (loop == 0) /* hif8 alone: HDF5 does not convert it */
        return;
    report_print("gained: %.1f ms instead of HDF5's %.1f ms, %.0f times as fast; %zu of %zu stored "
                 "values\nare the nearest ones where HDF5's are not; %zu differences unproved\n",
                 ours * 1e3, loop * 1e3, loop / ours, comparison.loop_not_nearest,
                 comparison.compared, comparison.unjustified);
}

static void print_quality_by_dataset(struct outcome (*outcomes)[FPCONV_FORMAT_COUNT])
{
    report_print("\ninput: SQNR in dB, by dataset\n%10s", "values");
    for (int f = 0; f < FPCONV_FORMAT_COUNT; f++)
        if (outcomes[0][f].n)
            report_print("  %6s", fpconv_format_name((fpconv_format)f));
    report_print("  dataset\n");
    for (size_t d = 0; d < input.datasets.count; d++) {
        bool first = true;
        for (int f = 0; f < FPCONV_FORMAT_COUNT; f++) {
            const struct outcome *o = &outcomes[d][f];
            if (!o->n)
                continue;
            if (first)
                report_print("%10zu", o->n);
            first = false;
            report_print("  %6s", sqnr_text(o));
        }
        report_print("  %s\n", input.datasets.names[d]);
    }
}

static void print_heading(const struct request *request, size_t loop_n, size_t n)
{
    report_print("\ninput: %s, %zu datasets, %zu values\n"
                 "through H5Dwrite into a new file and back through H5Dread, profile %s; times in "
                 "ms of one core\n"
                 "errors and SQNR (dB) of the values that did not overflow\n"
                 "HDF5's general loop: timed on %zu values%s; times: how often fpconv's time\n"
                 "wrong: stored values that are not the nearest ones, by exact arithmetic\n"
                 "%-4s  %11s  %8s  %8s  %9s  %9s  %6s  %9s  %9s %5s  %9s %5s  %9s  %6s\n",
                 request->input, input.datasets.count, n, fpconv_h5_profile_name(request->profile),
                 loop_n, loop_n < n ? " and scaled up" : "", "to", "bytes", "write", "read",
                 "RMS error", "worst", "SQNR", "overflows", "HDF5: wr.", "times", "read", "times",
                 "wrong", "");
}

void bench_open_input(const struct request *request)
{
    h5_start(request);
    input.file = open_input(request->input);
    if (VISIT_OBJECTS(input.file, add_float_dataset, &input.datasets) < 0)
        h5_fail("%s: cannot look through the file", request->input);
    if (input.datasets.count == 0)
        report_fail("%s: has no float datasets", request->input);
}

static void close_input(void)
{
    for (size_t d = 0; d < input.datasets.count; d++)
        free(input.datasets.names[d]);
    free(input.datasets.names);
    H5Fclose(input.file);
}

void bench_input(const struct request *request)
{
    const size_t count = input.datasets.count;
    char output_path[4096];
    const struct job job = {request, create_output(request, output_path, sizeof(output_path)),
                            output_path};
    struct outcome(*outcomes)[FPCONV_FORMAT_COUNT] = calloc(count, sizeof(*outcomes));
    struct outcome totals[FPCONV_FORMAT_COUNT] = {0};
    for (size_t d = 0; d < count; d++) {
        run_dataset(&job, input.datasets.names[d], outcomes[d]);
        for (int f = 0; f < FPCONV_FORMAT_COUNT; f++)
            add_outcome(&totals[f], &outcomes[d][f]);
    }
    if (H5Fclose(job.output) < 0)
        h5_fail("%s: cannot write", output_path);

    size_t n = 0, loop_n = 0;
    for (int f = 0; f < FPCONV_FORMAT_COUNT; f++) {
        n = totals[f].n > n ? totals[f].n : n;
        loop_n = totals[f].loop_n > loop_n ? totals[f].loop_n : loop_n;
    }
    print_heading(request, loop_n, n);
    for (int f = 0; f < FPCONV_FORMAT_COUNT; f++)
        if (totals[f].n)
            print_outcome((fpconv_format)f, &totals[f]);
    print_gain(totals);
    print_quality_by_dataset(outcomes);
    for (size_t d = 0; d < count; d++)
        for (int f = 0; f < FPCONV_FORMAT_COUNT; f++)
            if (outcomes[d][f].n)
                record_outcome(input.datasets.names[d], (fpconv_format)f, &outcomes[d][f]);
    free(outcomes);
    h5_report_schemes(input.file, input.datasets.names, count);
    close_input();
}
