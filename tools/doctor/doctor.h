/*
 * doctor.h - what the files of fpconv-doctor share
 *
 * SPDX-License-Identifier: MIT
 *
 * The library converts a sample, the formats' own values and the datasets of the
 * given files; each result is judged by exact arithmetic, not by a table of
 * versions.  A stored code is right if no value of the format is nearer to the
 * source (beyond the range: Inf, NaN or the largest value), a value read is right
 * if it is what the format's specification says.
 */
#ifndef FPCONV_TOOLS_DOCTOR_DOCTOR_H
#define FPCONV_TOOLS_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fpconv/fpconv_h5.h"

/* The exit statuses. */
enum { STATUS_SOUND, STATUS_WRONG, STATUS_ERROR };

enum { SAMPLE_N = 1 << 18 };

/* failure.c */

/* Says why on standard error and ends the program with STATUS_ERROR. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Never of 0 bytes; fails if there is none. */
void *allocate(size_t bytes);

/* scale.c: exact arithmetic */

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

struct scale make_scale(fpconv_format format);
/* Is the code one of those that are nearest to the source? */
bool is_right(const struct scale *s, double source, uint32_t code);
/* The nearest value, with the source's sign. */
double nearest(const struct scale *s, double source);

/* finding.c: the library's conversions, judged */

/* How one set of values fares, and the first one that fares badly. */
struct finding {
    size_t count, wrong;
    double source; /* the value to store; or the value that the code stands for */
    double result; /* what was stored, by the specification; or what was read */
    double wanted;
    uint32_t code;
};

uint32_t code_at(const struct scale *s, const void *codes, size_t i);
/* n codes of the values, f32 or f64, as HDF5 converts them now; to be freed. */
void *convert_to(const struct scale *s, hid_t wide, const void *values, size_t n);
/* Add n results to a finding. */
void judge_stored(struct finding *f, const struct scale *s, hid_t wide, const void *values,
                  const void *codes, size_t n);
void judge_read(struct finding *f, const struct scale *s, const void *codes, size_t n);
/* judge_stored(), with the codes by convert_to(). */
void store_and_judge(struct finding *f, const struct scale *s, hid_t wide, const void *values,
                     size_t n);
/* In percent. */
double share(size_t part, size_t whole);

/* examination.c: of the library, by a format */

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

/* SAMPLE_N values of a standard normal distribution, always the same; to be freed. */
float *make_sample(void);
void examine_library(struct examination *e, const float *sample);
/* As the profile converts, which is registered. */
void examine_profile(struct examination *e, fpconv_h5_profile profile, const float *sample);

/* files.c: examination of files */

/* A dataset. */
struct patient {
    char *file, *path;
    const char *type;
    bool is_narrow;                              /* then only `read` of its format counts */
    struct finding finding[FPCONV_FORMAT_COUNT]; /* by format */
    struct patient *next;
};

/* The datasets of floating-point numbers, from `end` on, by `count` examinations; the new end. */
struct patient **examine_file(const char *path, struct examination *e, size_t count,
                              struct patient **end);

/* report.c: all of it as text or as JSON */
void print_words(const char *version, const struct examination *e, size_t count,
                 const struct patient *patients);
void print_json(const char *version, bool wrong, const struct examination *e, size_t count,
                const struct patient *patients);

#endif /* FPCONV_TOOLS_DOCTOR_DOCTOR_H */
