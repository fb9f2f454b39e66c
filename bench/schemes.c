/*
 * schemes.c - formats and scaling schemes: what they cost in time, and in signal
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fpconv/scaled.h"
#include "h5.h"
#include "timing.h"

/* A way to store a matrix: cast, or scaled. */
struct scheme {
    const char *name;
    bool is_scaled;
    fpconv_scheme scheme; /* of a cast only the element counts */
};

#define CAST(ELEMENT)                   \
    {                                   \
        "", false,                      \
        {                               \
            .element = FPCONV_##ELEMENT \
        }                               \
    }
#define SCALED(name, SCALING, ELEMENT, RULE)                              \
    {                                                                     \
        name, true,                                                       \
        {                                                                 \
            FPCONV_##SCALING, FPCONV_##ELEMENT, FPCONV_SCALE_##RULE, 0, 0 \
        }                                                                 \
    }

static const struct scheme schemes[] = {
    CAST(BF16),
    CAST(F16),
    CAST(E5M2),
    CAST(E4M3),
    CAST(E3M2),
    CAST(E2M3),
    CAST(E2M1),
    CAST(HIF8),
    SCALED("per tensor", PER_TENSOR, E4M3, AMAX),
    SCALED("per tensor", PER_TENSOR, E5M2, AMAX),
    SCALED("per tensor", PER_TENSOR, HIF8, AMAX),
    SCALED("per row", PER_ROW, E4M3, AMAX),
    SCALED("per row", PER_ROW, E2M3, AMAX),
    SCALED("per row", PER_ROW, E2M1, AMAX),
    SCALED("per column", PER_COLUMN, E4M3, AMAX),
    SCALED("mx, floor", MX, E5M2, FLOOR),
    SCALED("mx, floor", MX, E4M3, FLOOR),
    SCALED("mx, ceil", MX, E4M3, CEIL),
    SCALED("mx, floor", MX, E3M2, FLOOR),
    SCALED("mx, floor", MX, E2M3, FLOOR),
    SCALED("mx, ceil", MX, E2M3, CEIL),
    SCALED("mx, floor", MX, E2M1, FLOOR),
    SCALED("mx, ceil", MX, E2M1, CEIL),
    SCALED("nvfp4", NVFP4, E2M1, AMAX),
};
enum { SCHEMES = sizeof(schemes) / sizeof(schemes[0]) };

static const char *name_of(const struct scheme *scheme)
{
    return scheme->is_scaled ? scheme->name : "cast";
}

/* -------------------------------------------------------------------------- */
/* Signal: the weights of the input                                           */
/* -------------------------------------------------------------------------- */

struct signal {
    double bits;   /* stored, scales included */
    double square; /* of the values that are finite before and after */
    double error;
    size_t lost; /* finite values that are not finite any more */
};

struct matrix {
    size_t rows, columns;
    float *values, *decoded;
    void *codes, *scales;
};

static void store(const struct scheme *scheme, const struct matrix *m, struct signal *signal)
{
    const size_t n = m->rows * m->columns;
    const fpconv_format element = scheme->scheme.element;
    const ptrdiff_t stride = (ptrdiff_t)(m->columns * sizeof(float));
    const ptrdiff_t code_stride = (ptrdiff_t)fpconv_packed_size(element, m->columns);
    fpconv_scheme s = scheme->scheme;
    fpconv_status status;
    signal->bits += (double)(n * fpconv_format_bits(element));
    if (!scheme->is_scaled) {
        status = fpconv_convert(element, m->codes, FPCONV_F32, m->values, n, FPCONV_OCP_SAT);
        if (status == FPCONV_OK)
            status = fpconv_convert(FPCONV_F32, m->decoded, element, m->codes, n, FPCONV_OCP_SAT);
    } else {
        status = fpconv_tensor_scale(&s.tensor_scale, m->rows, m->columns, FPCONV_F32, m->values,
                                     stride);
        if (status == FPCONV_OK)
            status = fpconv_quantize(&s, m->rows, m->columns, m->codes, code_stride, m->scales,
                                     FPCONV_F32, m->values, stride);
        if (status == FPCONV_OK)
            status = fpconv_dequantize(&s, m->rows, m->columns, FPCONV_F32, m->decoded, stride,
                                       m->codes, code_stride, m->scales);
        signal->bits += 8.0 * (double)(fpconv_scale_count(s.scaling, m->rows, m->columns) *
                                       fpconv_scale_size(s.scaling));
        signal->bits += s.scaling == FPCONV_NVFP4 ? 32 : 0;
    }
    if (status != FPCONV_OK)
        report_fail("%s %s: %s", name_of(scheme), fpconv_format_name(element),
                    fpconv_strerror(status));
    for (size_t i = 0; i < n; i++) {
        const double value = (double)m->values[i], error = (double)m->decoded[i] - value;
        if (isfinite(error)) {
            signal->square += value * value;
            signal->error += error * error;
        } else if (isfinite(value)) {
            signal->lost++;
        }
    }
}

static void add_dataset(hid_t file, const char *name, struct signal signals[SCHEMES], size_t *n)
{
    const hid_t dataset = h5_check(H5Dopen2(file, name, H5P_DEFAULT), name);
    const hid_t space = H5Dget_space(dataset);
    hsize_t dims[H5S_MAX_RANK] = {1};
    const int rank = H5Sget_simple_extent_dims(space, dims, NULL);
    const size_t count = (size_t)H5Sget_simple_extent_npoints(space);
    /* one row for each output of a layer: a convolution's other axes are its inputs */
    struct matrix m = {.rows = rank > 1 ? (size_t)dims[0] : 1};
    m.columns = count / m.rows;
    m.values = bench_allocate(count * sizeof(float));
    m.decoded = bench_allocate(count * sizeof(float));
    m.codes = bench_allocate(count * sizeof(uint16_t));
    m.scales = bench_allocate(count * sizeof(float));
    if (H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, m.values) < 0)
        h5_fail("%s: cannot read", name);
    for (size_t i = 0; i < SCHEMES; i++)
        store(&schemes[i], &m, &signals[i]);
    *n += count;
    free(m.values);
    free(m.decoded);
    free(m.codes);
    free(m.scales);
    H5Sclose(space);
    H5Dclose(dataset);
}

void h5_report_schemes(hid_t file, char *const *names, size_t count)
{
    struct signal signals[SCHEMES] = {0};
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        report_progress("schemes: %s", names[i]);
        add_dataset(file, names[i], signals, &n);
    }
    report_print(
        "\nschemes: signal to quantization noise of %zu weights, the first axis by the others\n"
        "  scheme       element  bits a weight  SQNR dB\n",
        n);
    for (size_t i = 0; i < SCHEMES; i++) {
        const char *element = fpconv_format_name(schemes[i].scheme.element);
        const double bits = signals[i].bits / (double)n;
        const double sqnr = 10 * log10(signals[i].square / signals[i].error);
        report_print("  %-12s %-7s  %13.3f  %7.2f\n", name_of(&schemes[i]), element, bits, sqnr);
        report_record(json_pack("{s:s, s:s, s:s, s:f, s:f, s:I}", "section", "schemes", "scheme",
                                name_of(&schemes[i]), "element", element, "bits", bits, "sqnr_db",
                                sqnr, "lost", (json_int_t)signals[i].lost));
    }
}

/* -------------------------------------------------------------------------- */
/* Time                                                                       */
/* -------------------------------------------------------------------------- */

enum { ROWS = 64, COLUMNS = 1024, CELLS = ROWS * COLUMNS };

struct run {
    fpconv_scheme scheme;
    float *values, *decoded;
    void *codes, *scales;
};

static void run_copy(void *context)
{
    const struct run *r = context;
    memcpy(r->decoded, r->values, CELLS * sizeof(float));
    __asm__ volatile("" : : "r"(r->decoded) : "memory"); /* the copy counts as read */
}

static void run_quantize(void *context)
{
    const struct run *r = context;
    fpconv_quantize(&r->scheme, ROWS, COLUMNS, r->codes,
                    (ptrdiff_t)fpconv_packed_size(r->scheme.element, COLUMNS), r->scales,
                    FPCONV_F32, r->values, COLUMNS * sizeof(float));
}

static void run_dequantize(void *context)
{
    const struct run *r = context;
    fpconv_dequantize(&r->scheme, ROWS, COLUMNS, FPCONV_F32, r->decoded, COLUMNS * sizeof(float),
                      r->codes, (ptrdiff_t)fpconv_packed_size(r->scheme.element, COLUMNS),
                      r->scales);
}

static void run_pack(void *context)
{
    const struct run *r = context;
    fpconv_convert_to_packed(r->scheme.element, r->codes, FPCONV_F32, r->values, CELLS,
                             FPCONV_OCP_SAT);
}

static void run_unpack(void *context)
{
    const struct run *r = context;
    fpconv_convert_from_packed(FPCONV_F32, r->decoded, r->scheme.element, r->codes, CELLS,
                               FPCONV_OCP_SAT);
}

static bool is_packed(fpconv_format format)
{
    return fpconv_format_bits(format) < 8;
}

/* The limits are those of MX with 8 and 4 bits; the others are only told. */
static void time_scheme(const struct scheme *scheme, struct run run)
{
    const fpconv_format element = scheme->scheme.element;
    run.scheme = scheme->scheme;
    run.scheme.tensor_scale = 0x1p-9f;
    struct contender contenders[] = {
        {.run = run_copy, .context = &run},
        {.run = scheme->is_scaled ? run_quantize : run_pack, .context = &run},
        {.run = scheme->is_scaled ? run_dequantize : run_unpack, .context = &run},
    };
    report_progress("scaled: %s %s", name_of(scheme), fpconv_format_name(element));
    timing_compare(contenders, 3);
    double ns[3];
    for (int i = 0; i < 3; i++)
        ns[i] = contenders[i].seconds / (double)CELLS * 1e9;
    const struct estimate ratios[2] = {timing_ratio(&contenders[1], &contenders[0], 1),
                                       timing_ratio(&contenders[2], &contenders[0], 1)};
    const char *verdicts[2] = {"", ""};
    const bool has_limit = !scheme->is_scaled || (scheme->scheme.scaling == FPCONV_MX &&
                                                  element != FPCONV_E3M2 && element != FPCONV_E2M3);
    if (has_limit) {
        const double must = scheme->is_scaled ? 3 : 2;
        verdicts[0] = report_judge(ratios[0], must, must);
        verdicts[1] = report_judge(ratios[1], 2, 2);
    }
    report_print("  %-12s %-7s %7.3f %9.3f %s %-5s", scheme->is_scaled ? scheme->name : "packed",
                 fpconv_format_name(element), ns[0], ns[1], report_estimate(ratios[0]),
                 verdicts[0]);
    report_print(" %10.3f %s %s\n", ns[2], report_estimate(ratios[1]), verdicts[1]);
    report_record(json_pack("{s:s, s:s, s:s, s:I, s:f, s:f, s:f}", "section", "scaled", "scheme",
                            scheme->is_scaled ? scheme->name : "packed", "element",
                            fpconv_format_name(element), "n", (json_int_t)CELLS, "quantize_ns",
                            ns[1], "dequantize_ns", ns[2], "memcpy_ns", ns[0]));
}

void bench_scaled(const struct request *request)
{
    (void)request;
    struct run run = {
        .values = bench_allocate(CELLS * sizeof(float)),
        .decoded = bench_allocate(CELLS * sizeof(float)),
        .codes = bench_allocate(CELLS * sizeof(uint16_t)),
        .scales = bench_allocate(CELLS * sizeof(float)),
    };
    bench_fill_normal(FPCONV_F32, run.values, CELLS, 0.05);
    report_print("\nscaled: f32 matrices of %d by %d, ns an element\n"
                 "  scheme       element  memcpy  quantize  times [95 %%]               dequantize "
                 " times [95 "
                 "%%]\n",
                 ROWS, COLUMNS);
    for (size_t i = 0; i < SCHEMES; i++)
        if (schemes[i].is_scaled || is_packed(schemes[i].scheme.element))
            time_scheme(&schemes[i], run);
    report_verdicts("scaled");
    free(run.values);
    free(run.decoded);
    free(run.codes);
    free(run.scales);
}
