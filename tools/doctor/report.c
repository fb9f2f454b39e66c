/*
 * report.c - what was found, in words or as JSON
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdio.h>

#include <jansson.h>

#include "doctor.h"

/* -------------------------------------------------------------------------- */
/* In words                                                                   */
/* -------------------------------------------------------------------------- */

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

void print_words(const char *version, const struct examination *e, size_t count,
                 const struct patient *patients)
{
    printf("HDF5 %s, float32 to and from each format\n", version);
    for (size_t i = 0; i < count; i++)
        print_examination(&e[i]);
    for (const struct patient *p = patients; p; p = p->next)
        print_patient(p);
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

void print_json(const char *version, bool wrong, const struct examination *e, size_t count,
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
