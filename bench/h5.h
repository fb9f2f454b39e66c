/*
 * h5.h - what the sections that use HDF5 share
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FPCONV_BENCH_H5_H
#define FPCONV_BENCH_H5_H

#include <hdf5.h>

#include "bench.h"

/** Makes HDF5 silent and registers the request's profile, or fails. */
void h5_start(const struct request *request);

/**
 * Fails with a text and HDF5's most specific reason: the system's error message
 * if there is one.
 */
__attribute__((format(printf, 1, 2), noreturn)) void h5_fail(const char *format, ...);

/** The identifier, or failure with `what` as the text. */
hid_t h5_check(hid_t id, const char *what);

/** The datatype of a format; native for f32 and f64.  Not to be closed. */
hid_t h5_type(fpconv_format format);

/**
 * The datatype of f32 or f64 that has the same bits and yet is not the one that
 * converters are registered for, as its padding differs (of which it has none):
 * HDF5 converts it by its general loop.  Not to be closed.
 */
hid_t h5_type_of_general_loop(fpconv_format wide);

/** A call of H5Tconvert on a copy of some values, as a contender's context. */
struct h5_conversion {
    hid_t src_type, dst_type;
    size_t n, src_bytes;
    const void *values;
    void *buffer; /**< room for the wider side */
};
void h5_restore_values(void *conversion); /**< a contender's `prepare` */
void h5_run_conversion(void *conversion); /**< and its `run` */

/** Does HDF5 have a loop of its own for the format?  (Not for the opaque hif8.) */
bool h5_has_general_loop(fpconv_format format);

/** What the general loop does to some elements, held against fpconv's results. */
struct h5_comparison {
    size_t compared;
    size_t mismatches;       /**< other bits */
    size_t loop_not_nearest; /**< of these: exact arithmetic proves the loop's result wrong */
    size_t unjustified;      /**< of these: it does not prove fpconv's result right */
};

/** Adds the comparison of n elements' codes. */
void h5_compare(struct h5_comparison *comparison, const struct request *request, fpconv_format dst,
                const void *loop, const void *ours, fpconv_format src, const void *values,
                size_t n);

/** The signal to noise ratio of every format and scaling scheme for the named float datasets. */
void h5_report_schemes(hid_t file, char *const *names, size_t count);

#endif /* FPCONV_BENCH_H5_H */
