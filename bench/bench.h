/*
 * bench.h - what the parts of the bench share: the request, the report, the data
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FPCONV_BENCH_BENCH_H
#define FPCONV_BENCH_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "fpconv/fpconv.h"
#include "fpconv/fpconv_h5.h"
#include "timing.h"

/* -------------------------------------------------------------------------- */
/* The request                                                                */
/* -------------------------------------------------------------------------- */

struct request {
    unsigned sections; /**< a bit per section, in the order of bench_sections; 0: none named */
    bool peers;        /**< add that section */
    unsigned formats;  /**< a bit per format that may take part; see bench_wants_pair */
    unsigned policies; /**< a bit per policy */
    fpconv_h5_profile profile; /**< of the sections that use HDF5 */
    size_t n;                  /**< the only array length to run; 0: each section's own */
    size_t elements;           /**< of the dataset of h5dwrite and h5dread */
    const char *input;         /**< the file of the main job, or NULL */
    const char *output;        /**< where the main job leaves its file; NULL: a temporary one */
    const char *json;          /**< where the results go as JSON, or NULL */
    const char *python;        /**< the interpreter of the peers in Python */
    const char *numkong;       /**< the shared library of that peer */
};

struct section {
    const char *name;
    void (*run)(const struct request *request);
    bool by_default;
    const char *summary;
};

extern const struct section bench_sections[];
extern const size_t bench_section_count;

/** f32 and f64 are the wide formats; the others are narrow. */
bool bench_is_wide(fpconv_format format);

/** Does the request want pairs of these two?  A kind none of whose formats was named is whole. */
bool bench_wants_pair(const struct request *request, fpconv_format a, fpconv_format b);

static inline bool bench_wants_policy(const struct request *request, fpconv_policy policy)
{
    return request->policies >> policy & 1;
}

/* -------------------------------------------------------------------------- */
/* The report                                                                 */
/* -------------------------------------------------------------------------- */

/** Says on a terminal what is being measured, on a line that the next output replaces. */
__attribute__((format(printf, 1, 2))) void report_progress(const char *format, ...);

/** Prints to standard output. */
__attribute__((format(printf, 1, 2))) void report_print(const char *format, ...);

/** Adds a record to what --json writes; takes the reference over. */
void report_record(json_t *record);

/** Opens the file that the records will go to, or fails before anything is measured. */
void report_open_json(const char *path);

/** Writes the records, if a file is open, or fails. */
void report_close_json(void);

/** Prints "fpconv-bench: ..." to standard error and ends the program with status 1. */
__attribute__((format(printf, 1, 2), noreturn)) void report_fail(const char *format, ...);

/** A file of which nothing is to be left if the program fails; `path` is kept. */
void report_remove_on_failure(const char *path);

/**
 * How a measured quantity stands to a limit that must be kept and one that is aimed at,
 * to a hundredth: "OVER" if its whole interval is above the first, "unresolved" if a
 * part of it is, else "must", or "aim" where the whole interval keeps the second, too
 * ("ok" where both are the same).  Counted for report_verdicts.
 */
const char *report_judge(struct estimate measured, double must, double aim);

/** "1.002 [0.998 1.006]", for a table; valid until the next call. */
const char *report_estimate(struct estimate estimate);

/** Adds "ratio", "ratio_low" and "ratio_high" to a record; an end that is unknown is left out. */
void report_add_ratio(json_t *record, struct estimate ratio);

/** Prints the counts of a section's verdicts, and starts counting anew. */
void report_verdicts(const char *section);

/* -------------------------------------------------------------------------- */
/* Memory and data                                                            */
/* -------------------------------------------------------------------------- */

/** Memory aligned to a page and touched, so that no first use is timed; or fails. */
void *bench_allocate(size_t bytes);

/** Element i of an array of codes of 1, 2, 4 or 8 bytes. */
uint64_t bench_load_code(const void *codes, size_t i, size_t size);
void bench_store_code(void *codes, size_t i, size_t size, uint64_t code);

/** A generator of numbers that are the same in every run (splitmix64). */
uint64_t bench_random(uint64_t *state);

/** Fills `values` with the standard normal distribution times `scale`, each as `format`. */
void bench_fill_normal(fpconv_format format, void *values, size_t n, double scale);

/**
 * Fills `values` with magnitudes spread evenly over the binades of [low, high),
 * with both signs.
 */
void bench_fill_binades(fpconv_format format, void *values, size_t n, double low, double high);

/* -------------------------------------------------------------------------- */
/* Sections                                                                   */
/* -------------------------------------------------------------------------- */

void bench_array(const struct request *request);
void bench_narrow(const struct request *request);
void bench_inplace(const struct request *request);
void bench_strided(const struct request *request);
void bench_small(const struct request *request);
void bench_subnormals(const struct request *request);
void bench_scaled(const struct request *request);
void bench_peers(const struct request *request);
void bench_instructions(const struct request *request);
void bench_h5tconvert(const struct request *request);
void bench_identical(const struct request *request);
void bench_h5call(const struct request *request);
void bench_h5dwrite(const struct request *request);
void bench_h5dread(const struct request *request);

/** Opens the input of bench_input and finds its datasets, or fails. */
void bench_open_input(const struct request *request);
void bench_input(const struct request *request);

#endif /* FPCONV_BENCH_BENCH_H */
