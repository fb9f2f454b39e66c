/*
 * doctor.c - fpconv-doctor: what the linked libhdf5 stores and reads wrongly
 *
 * SPDX-License-Identifier: MIT
 *
 * The library converts a sample, the formats' own values and the datasets of the
 * given files; each result is judged by exact arithmetic, not by a table of
 * versions.  A stored code is right if no value of the format is nearer to the
 * source (beyond the range: Inf, NaN or the largest value), a value read is right
 * if it is what the format's specification says.
 */
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "fpconv/fpconv_h5.h"

enum { STATUS_SOUND, STATUS_WRONG, STATUS_ERROR };
enum { SAMPLE_N = 1 << 18, BLOCK_N = 1 << 18 };

static _Noreturn void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("fpconv-doctor: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(STATUS_ERROR);
}

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        fail("not enough memory for %zu bytes", bytes);
    return memory;
}

/* -------------------------------------------------------------------------- */
/* Exact arithmetic                                                           */
/* -------------------------------------------------------------------------- */

/* A format's finite values, by code without sign.  All of them, and half the sum
 * of two neighbours, are exact in double. */
struct scale {
    fpconv_format format;
    hid_t type;
    size_t size;
    unsigned sign_bit; /* the code of the sign alone */
    unsigned count;    /* of the finite values from 0 up */
    double *value;
};

static struct scale make_scale(fpconv_format format)
{
    struct scale s = {format,
                      fpconv_h5_type(format),
                      fpconv_format_size(format),
                      1u << (fpconv_format_bits(format) - 1),
                      0,
                      NULL};
    if (s.type < 0)
        fail("%s", fpconv_h5_last_error());
    s.value = allocate(s.sign_bit * sizeof(*s.value));
    for (unsigned code = 0; code < s.sign_bit; code++) {
        const double v = fpconv_decode(format, code, FPCONV_OCP);
        if (isfinite(v))
            s.value[s.count++] = v; /* the finite codes come first */
    }
    return s;
}

/* The index of the largest value that is not above a magnitude. */
static unsigned find_below(const struct scale *s, double magnitude)
{
    unsigned low = 0, high = s->count;
    while (high - low > 1) {
        const unsigned middle = low + (high - low) / 2;
        if (s->value[middle] <= magnitude)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Half way between a value and the next; above the largest, where the next would be. */
static double midpoint_above(const struct scale *s, unsigned index)
{
    const double step = index + 1 < s->count ? s->value[index + 1] - s->value[index]
                                             : s->value[index] - s->value[index - 1];
    return s->value[index] + step / 2;
}

static bool is_right(const struct scale *s, double source, uint32_t code)
{
    const double stored = fpconv_decode(s->format, code, FPCONV_OCP);
    if (isnan(source)) /* any value, in a format without NaN */
        return isnan(stored) || fpconv_encode(s->format, NAN, FPCONV_OCP) == s->count - 1;
    const double magnitude = fabs(source);
    const unsigned below = find_below(s, magnitude);
    const double middle = midpoint_above(s, below);
    if (!isnan(stored) && signbit(stored) != signbit(source))
        return false;
    const bool may_go_up = magnitude >= middle;
    if (below + 1 == s->count && may_go_up)
        return !isfinite(stored) || fabs(stored) == s->value[below];
    return (magnitude <= middle && fabs(stored) == s->value[below]) ||
           (may_go_up && fabs(stored) == s->value[below + 1]);
}

/* The nearest value, with the source's sign. */
static double nearest(const struct scale *s, double source)
{
    const unsigned below = find_below(s, fabs(source));
    const bool up = below + 1 < s->count && fabs(source) > midpoint_above(s, below);
    return copysign(s->value[below + up], source);
}

static bool is_same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

/* -------------------------------------------------------------------------- */
/* The library                                                                */
/* -------------------------------------------------------------------------- */

static uint32_t code_at(const struct scale *s, const void *codes, size_t i)
{
    return s->size == 2 ? ((const uint16_t *)codes)[i] : ((const uint8_t *)codes)[i];
}

/* n codes of the values, f32 or f64, as HDF5 converts them now; to be freed. */
static void *convert_to(const struct scale *s, hid_t wide, const void *values, size_t n)
{
    const size_t bytes = n * H5Tget_size(wide);
    void *buf = allocate(bytes);
    memcpy(buf, values, bytes);
    if (H5Tconvert(wide, s->type, n, buf, NULL, H5P_DEFAULT) < 0)
        fail("HDF5 cannot convert to %s", fpconv_format_name(s->format));
    return buf;
}

/* n floats from codes, as HDF5 converts them now; to be freed. */
static float *convert_from(const struct scale *s, const void *codes, size_t n)
{
    float *buf = allocate(n * sizeof(*buf));
    memcpy(buf, codes, n * s->size);
    if (H5Tconvert(s->type, H5T_NATIVE_FLOAT, n, buf, NULL, H5P_DEFAULT) < 0)
        fail("HDF5 cannot convert from %s", fpconv_format_name(s->format));
    return buf;
}

/* -------------------------------------------------------------------------- */
/* Findings                                                                   */
/* -------------------------------------------------------------------------- */

/* How one set of values fares, and the first one that fares badly. */
struct finding {
    size_t count, wrong;
    double source; /* the value to store; or the value that the code stands for */
    double result; /* what was stored, by the specification; or what was read */
    double wanted;
    uint32_t code;
};

static void judge_stored(struct finding *f, const struct scale *s, hid_t wide, const void *values,
                         const void *codes, size_t n)
{
    const bool is_float = H5Tget_size(wide) == sizeof(float);
    for (size_t i = 0; i < n; i++) {
        const double source =
            is_float ? (double)((const float *)values)[i] : ((const double *)values)[i];
        const uint32_t code = code_at(s, codes, i);
        if (!is_right(s, source, code) && f->wrong++ == 0) {
            f->source = source;
            f->code = code;
            f->result = fpconv_decode(s->format, code, FPCONV_OCP);
            f->wanted = nearest(s, source);
        }
    }
    f->count += n;
}

static void judge_read(struct finding *f, const struct scale *s, const void *codes, size_t n)
{
    float *values = convert_from(s, codes, n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t code = code_at(s, codes, i);
        const double wanted = fpconv_decode(s->format, code, FPCONV_OCP);
        if (!is_same((double)values[i], wanted) && f->wrong++ == 0)
            *f = (struct finding){f->count, 1, wanted, (double)values[i], wanted, code};
    }
    f->count += n;
    free(values);
}

static void store_and_judge(struct finding *f, const struct scale *s, hid_t wide,
                            const void *values, size_t n)
{
    void *codes = convert_to(s, wide, values, n);
    judge_stored(f, s, wide, values, codes, n);
    free(codes);
}

/* -------------------------------------------------------------------------- */
/* Examination of the library                                                 */
/* -------------------------------------------------------------------------- */

struct profile_finding {
    size_t changed; /* of the sample's codes, by registering the profile */
    struct finding sample, own, read;
};

struct examination {
    struct scale scale;
    struct finding sample, own, read;
    struct profile_finding profile[FPCONV_H5_PROFILE_COUNT];
    void *codes; /* of the sample, by the library alone */
};

/* Box and Muller's method on a fixed sequence. */
static float *make_sample(void)
{
    const double pi = 3.14159265358979323846;
    float *sample = allocate(SAMPLE_N * sizeof(*sample));
    uint64_t state = 20260101;
    for (size_t i = 0; i < SAMPLE_N; i++) {
        double uniform[2];
        for (int j = 0; j < 2; j++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            uniform[j] = ((double)(state >> 11) + 0.5) * 0x1p-53;
        }
        sample[i] = (float)(sqrt(-2 * log(uniform[0])) * cos(2 * pi * uniform[1]));
    }
    return sample;
}

/* Each finite value of the format, with both signs. */
static void examine_own_values(struct finding *f, const struct scale *s)
{
    float *values = allocate(2 * s->count * sizeof(*values));
    for (unsigned i = 0; i < s->count; i++) {
        values[2 * i] = (float)s->value[i];
        values[2 * i + 1] = -values[2 * i];
    }
    store_and_judge(f, s, H5T_NATIVE_FLOAT, values, 2 * s->count);
    free(values);
}

static void examine_all_codes(struct finding *f, const struct scale *s)
{
    const size_t n = 2 * (size_t)s->sign_bit;
    unsigned char *codes = allocate(n * s->size);
    for (size_t code = 0; code < n; code++) {
        if (s->size == 2)
            ((uint16_t *)(void *)codes)[code] = (uint16_t)code;
        else
            codes[code] = (unsigned char)code;
    }
    judge_read(f, s, codes, n);
    free(codes);
}

static void examine_library(struct examination *e, const float *sample)
{
    e->codes = convert_to(&e->scale, H5T_NATIVE_FLOAT, sample, SAMPLE_N);
    judge_stored(&e->sample, &e->scale, H5T_NATIVE_FLOAT, sample, e->codes, SAMPLE_N);
    examine_own_values(&e->own, &e->scale);
    examine_all_codes(&e->read, &e->scale);
}

static void examine_profile(struct examination *e, fpconv_h5_profile profile, const float *sample)
{
    struct profile_finding *p = &e->profile[profile];
    const struct scale *s = &e->scale;
    void *codes = convert_to(s, H5T_NATIVE_FLOAT, sample, SAMPLE_N);
    for (size_t i = 0; i < SAMPLE_N; i++)
        p->changed += code_at(s, codes, i) != code_at(s, e->codes, i);
    judge_stored(&p->sample, s, H5T_NATIVE_FLOAT, sample, codes, SAMPLE_N);
    free(codes);
    examine_own_values(&p->own, s);
    examine_all_codes(&p->read, s);
}

/* -------------------------------------------------------------------------- */
/* Examination of files                                                       */
/* -------------------------------------------------------------------------- */

struct patient {
    char *file, *path;
    const char *type;
    bool is_narrow;                              /* then only `read` of its format counts */
    struct finding finding[FPCONV_FORMAT_COUNT]; /* by format */
    struct patient *next;
};

struct visit {
    const char *file;
    hid_t id;
    struct examination *e;
    size_t count;
    struct patient **end;
};

/* The same format in either byte order: what is read is the same. */
static bool is_of_scale(hid_t type, const struct scale *s)
{
    const hid_t other = H5Tcopy(s->type);
    bool is_equal = H5Tequal(type, s->type) > 0;
    if (!is_equal && other >= 0 &&
        H5Tset_order(other, H5Tget_order(other) == H5T_ORDER_LE ? H5T_ORDER_BE : H5T_ORDER_LE) >= 0)
        is_equal = H5Tequal(type, other) > 0;
    if (other >= 0)
        H5Tclose(other);
    return is_equal;
}

static void judge_block(struct visit *v, struct patient *p, hid_t mem_type, const void *values,
                        size_t n)
{
    for (size_t i = 0; i < v->count; i++) {
        const struct scale *s = &v->e[i].scale;
        if (!p->is_narrow)
            store_and_judge(&p->finding[s->format], s, mem_type, values, n);
        else if (H5Tequal(mem_type, s->type) > 0)
            judge_read(&p->finding[s->format], s, values, n);
    }
}

/* Reads a dataset in blocks of rows and judges each; false if HDF5 fails. */
static bool judge_dataset(struct visit *v, struct patient *p, hid_t dataset, hid_t mem_type)
{
    hsize_t size[H5S_MAX_RANK] = {1}, start[H5S_MAX_RANK] = {0}, count[H5S_MAX_RANK] = {1};
    const hid_t space = H5Dget_space(dataset);
    const int rank = H5Sget_simple_extent_dims(space, size, NULL);
    const hssize_t total = H5Sget_simple_extent_npoints(space);
    bool done = rank >= 0 && total >= 0;
    if (done && total > 0) {
        const hsize_t row = (hsize_t)total / size[0];
        const hsize_t rows = row < BLOCK_N ? BLOCK_N / row : 1;
        void *buf = allocate((size_t)(rows * row) * H5Tget_size(mem_type));
        memcpy(count, size, sizeof(count));
        for (hsize_t at = 0; at < size[0] && done; at += rows) {
            start[0] = at;
            count[0] = size[0] - at < rows ? size[0] - at : rows;
            const hsize_t n = count[0] * row;
            const hid_t mem = H5Screate_simple(1, &n, NULL);
            done = (rank == 0 ||
                    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0) &&
                   H5Dread(dataset, mem_type, mem, space, H5P_DEFAULT, buf) >= 0;
            if (done)
                judge_block(v, p, mem_type, buf, (size_t)n);
            H5Sclose(mem);
        }
        free(buf);
    }
    H5Sclose(space);
    return done;
}

static hid_t find_memory_type(const struct visit *v, hid_t type, struct patient *p)
{
    for (size_t i = 0; i < v->count; i++)
        if (is_of_scale(type, &v->e[i].scale)) {
            p->type = fpconv_format_name(v->e[i].scale.format);
            p->is_narrow = true;
            return v->e[i].scale.type;
        }
    p->type = H5Tget_size(type) == sizeof(float) ? "f32" : "f64";
    return H5Tget_size(type) == sizeof(float) ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
}

static void visit_dataset(struct visit *v, const char *name, hid_t dataset)
{
    const hid_t type = H5Dget_type(dataset);
    if (H5Tget_class(type) == H5T_FLOAT && H5Tget_size(type) <= sizeof(double)) {
        struct patient *p = calloc(1, sizeof(*p));
        if (!p || !(p->file = strdup(v->file)) || !(p->path = strdup(name)))
            fail("not enough memory");
        const hid_t mem_type = find_memory_type(v, type, p);
        if (!judge_dataset(v, p, dataset, mem_type))
            fail("%s: %s: cannot be read", v->file, name);
        *v->end = p;
        v->end = &p->next;
    }
    H5Tclose(type);
}

static herr_t visit_object(hid_t root, const char *name, const H5O_info_t *info, void *data)
{
    (void)root;
    struct visit *v = data;
    if (info->type != H5O_TYPE_DATASET)
        return 0;
    const hid_t dataset = H5Dopen2(v->id, name, H5P_DEFAULT);
    if (dataset < 0)
        fail("%s: %s: cannot be opened", v->file, name);
    visit_dataset(v, name, dataset);
    H5Dclose(dataset);
    return 0;
}

static struct patient **examine_file(const char *path, struct examination *e, size_t count,
                                     struct patient **end)
{
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0)
        fail("%s: cannot be opened as an HDF5 file", path);
    struct visit v = {path, file, e, count, end};
#if H5_VERSION_GE(1, 12, 0)
    const herr_t done =
        H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_INC, visit_object, &v, H5O_INFO_BASIC);
#else
    const herr_t done =
        H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, visit_object, &v, H5O_INFO_BASIC);
#endif
    if (done < 0)
        fail("%s: HDF5 cannot go through its objects", path);
    H5Fclose(file);
    return v.end;
}

/* -------------------------------------------------------------------------- */
/* In words                                                                   */
/* -------------------------------------------------------------------------- */

static double share(size_t part, size_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Why the stored value is not the right one. */
static const char *cause_of(const struct scale *s, const struct finding *f)
{
    const double as_library = fpconv_decode(s->format, f->code, FPCONV_HDF5);
    if (!isfinite(as_library) || fabs(f->wanted) > fabs(f->result) * 2)
        return "the library keeps the largest exponent for Inf and NaN";
    if (fabs(f->result) * 2 == fabs(f->wanted))
        return "a carry was lost in rounding";
    return fabs(f->wanted) > fabs(f->result) && fabs(f->wanted) > s->value[s->count - 1] / 2
               ? "the library keeps the largest exponent for Inf and NaN"
               : "not the nearest value";
}

static void print_stored(const char *of_what, const struct scale *s, const struct finding *f)
{
    printf("  stores %.3g %% of %s wrongly", share(f->wrong, f->count), of_what);
    if (f->wrong)
        printf(": %.9g as 0x%02x, which is %.9g; the nearest is %.9g (%s)", f->source, f->code,
               f->result, f->wanted, cause_of(s, f));
    putchar('\n');
}

static void print_examination(const struct examination *e)
{
    const struct scale *s = &e->scale;
    printf("\n%s (largest value %.6g, smallest %.3g)\n", fpconv_format_name(s->format),
           s->value[s->count - 1], s->value[1]);
    print_stored("a standard normal sample", s, &e->sample);
    print_stored("the format's own values", s, &e->own);
    printf("  reads %zu of %zu codes wrongly", e->read.wrong, e->read.count);
    if (e->read.wrong)
        printf(": 0x%02x, which is %.9g, as %.9g", e->read.code, e->read.wanted, e->read.result);
    putchar('\n');
    for (int i = 0; i < FPCONV_H5_PROFILE_COUNT; i++) {
        const struct profile_finding *p = &e->profile[i];
        printf("  with %-9s %.3g %% of the sample would change; wrong are then %.3g %% of the "
               "sample, %zu own values, %zu codes\n",
               fpconv_h5_profile_name((fpconv_h5_profile)i), share(p->changed, SAMPLE_N),
               share(p->sample.wrong, SAMPLE_N), p->own.wrong, p->read.wrong);
    }
}

static void print_patient(const struct patient *p)
{
    printf("\n%s: %s (%s)\n", p->file, p->path, p->type);
    for (int i = 0; i < FPCONV_FORMAT_COUNT; i++) {
        const struct finding *f = &p->finding[i];
        if (f->count == 0)
            continue;
        if (p->is_narrow)
            printf("  %.3g %% of its %zu values are read wrongly", share(f->wrong, f->count),
                   f->count);
        else
            printf("  as %-4s %.3g %% of its %zu values would be stored wrongly",
                   fpconv_format_name((fpconv_format)i), share(f->wrong, f->count), f->count);
        if (f->wrong)
            printf(": %.9g as %.9g", f->source, f->result);
        putchar('\n');
    }
}

/* -------------------------------------------------------------------------- */
/* As JSON                                                                    */
/* -------------------------------------------------------------------------- */

/* JSON has no Inf and NaN: those are strings. */
static json_t *json_value(double value)
{
    if (isfinite(value))
        return json_real(value);
    return json_string(isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

static json_t *json_finding(const struct finding *f)
{
    json_t *object = json_pack("{s:I, s:I, s:f}", "values", (json_int_t)f->count, "wrong",
                               (json_int_t)f->wrong, "wrong_percent", share(f->wrong, f->count));
    if (f->wrong)
        json_object_set_new(object, "example",
                            json_pack("{s:o, s:i, s:o, s:o}", "value", json_value(f->source),
                                      "code", (int)f->code, "result", json_value(f->result),
                                      "right", json_value(f->wanted)));
    return object;
}

static json_t *json_examination(const struct examination *e)
{
    json_t *profiles = json_object();
    for (int i = 0; i < FPCONV_H5_PROFILE_COUNT; i++) {
        const struct profile_finding *p = &e->profile[i];
        json_object_set_new(profiles, fpconv_h5_profile_name((fpconv_h5_profile)i),
                            json_pack("{s:f, s:o, s:o, s:o}", "changed_percent",
                                      share(p->changed, SAMPLE_N), "sample",
                                      json_finding(&p->sample), "own_values", json_finding(&p->own),
                                      "read", json_finding(&p->read)));
    }
    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "format", fpconv_format_name(e->scale.format),
                     "sample", json_finding(&e->sample), "own_values", json_finding(&e->own),
                     "read", json_finding(&e->read), "profiles", profiles);
}

static json_t *json_patient(const struct patient *p)
{
    json_t *formats = json_object();
    for (int i = 0; i < FPCONV_FORMAT_COUNT; i++)
        if (p->finding[i].count > 0)
            json_object_set_new(formats, fpconv_format_name((fpconv_format)i),
                                json_finding(&p->finding[i]));
    return json_pack("{s:s, s:s, s:s, s:s, s:o}", "file", p->file, "path", p->path, "type", p->type,
                     "judged", p->is_narrow ? "read" : "stored", "formats", formats);
}

static void print_json(const char *version, bool wrong, const struct examination *e, size_t count,
                       const struct patient *patients)
{
    json_t *formats = json_array(), *datasets = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(formats, json_examination(&e[i]));
    for (const struct patient *p = patients; p; p = p->next)
        json_array_append_new(datasets, json_patient(p));
    json_t *all = json_pack("{s:s, s:b, s:o, s:o}", "hdf5", version, "wrong", wrong, "formats",
                            formats, "datasets", datasets);
    if (!all || json_dumpf(all, stdout, JSON_INDENT(2)) != 0)
        fail("cannot write the JSON");
    putchar('\n');
    json_decref(all);
}

/* -------------------------------------------------------------------------- */
/* The command                                                                */
/* -------------------------------------------------------------------------- */

static const char usage[] =
    "Usage: fpconv-doctor [--json] [FILE]...\n"
    "Says which low-precision floating-point values the linked HDF5 library stores or\n"
    "reads wrongly, alone and with each of fpconv's profiles; and which of the FILEs'.\n"
    "\n"
    "  --json     print JSON\n"
    "  --help     print this\n"
    "  --version  print the versions of fpconv and HDF5\n"
    "\n"
    "Exit status: 0 nothing is wrong, 1 something is, 2 an error.\n"
    "\n"
    "Example: fpconv-doctor model.h5 || echo 'register fpconv before reading model.h5'\n";

static size_t begin(struct examination *e)
{
    size_t count = 0;
    for (int i = 0; i < FPCONV_FORMAT_COUNT; i++) {
        const fpconv_format format = (fpconv_format)i;
        /* hif8 is opaque to HDF5, which does not convert it */
        if (fpconv_format_size(format) <= 2 && format != FPCONV_HIF8)
            e[count++] = (struct examination){.scale = make_scale(format)};
    }
    return count;
}

/* With files given, they decide; without, all that the library converts. */
static bool is_wrong(const struct examination *e, size_t count, const struct patient *patients)
{
    bool wrong = false;
    for (const struct patient *p = patients; p; p = p->next)
        for (int i = 0; i < FPCONV_FORMAT_COUNT; i++)
            wrong = wrong || p->finding[i].wrong > 0;
    for (size_t i = 0; i < count && !patients; i++)
        wrong = wrong || e[i].sample.wrong || e[i].own.wrong || e[i].read.wrong;
    return wrong;
}

static void finish(struct examination *e, size_t count, struct patient *patients)
{
    for (size_t i = 0; i < count; i++) {
        free(e[i].codes);
        free(e[i].scale.value);
    }
    for (struct patient *next; patients; patients = next) {
        next = patients->next;
        free(patients->file);
        free(patients->path);
        free(patients);
    }
}

static bool examine(int files, char **file, const char *version, bool json)
{
    struct examination e[FPCONV_FORMAT_COUNT];
    struct patient *patients = NULL, **end = &patients;
    float *sample = make_sample();
    const size_t count = begin(e);
    for (size_t i = 0; i < count; i++)
        examine_library(&e[i], sample);
    for (int i = 0; i < files; i++)
        end = examine_file(file[i], e, count, end);
    for (int i = 0; i < FPCONV_H5_PROFILE_COUNT; i++) {
        if (fpconv_h5_register_profile((fpconv_h5_profile)i, NULL) < 0)
            fail("%s", fpconv_h5_last_error());
        for (size_t j = 0; j < count; j++)
            examine_profile(&e[j], (fpconv_h5_profile)i, sample);
    }
    const bool wrong = is_wrong(e, count, patients);
    if (json) {
        print_json(version, wrong, e, count, patients);
    } else {
        printf("HDF5 %s, float32 to and from each format\n", version);
        for (size_t i = 0; i < count; i++)
            print_examination(&e[i]);
        for (const struct patient *p = patients; p; p = p->next)
            print_patient(p);
    }
    free(sample);
    finish(e, count, patients);
    return wrong;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'v'},
                                            {NULL, 0, NULL, 0}};
    bool json = false;
    char version[32];
    unsigned major, minor, release;
    H5get_libversion(&major, &minor, &release);
    snprintf(version, sizeof(version), "%u.%u.%u", major, minor, release);
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (option) {
        case 'j':
            json = true;
            break;
        case 'h':
            fputs(usage, stdout);
            return STATUS_SOUND;
        case 'v':
            printf("fpconv-doctor %d.%d.%d, HDF5 %s\n", FPCONV_VERSION_MAJOR, FPCONV_VERSION_MINOR,
                   FPCONV_VERSION_PATCH, version);
            return STATUS_SOUND;
        default:
            fputs(usage, stderr);
            return STATUS_ERROR;
        }
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* one line of our own instead */
    const bool wrong = examine(argc - optind, argv + optind, version, json);
    if (fflush(stdout) != 0)
        fail("cannot write the output");
    return wrong ? STATUS_WRONG : STATUS_SOUND;
}
