/*
 * layout.h - what a group that holds a scaled tensor consists of
 *
 * SPDX-License-Identifier: MIT
 *
 * As docs/scaled.md describes it.  A row of packed codes is a row of bytes of the dataset,
 * so that hyperslabs of the tensor are hyperslabs of the codes.
 */
#ifndef FPCONV_HDF5_PLUGIN_SCALED_LAYOUT_H
#define FPCONV_HDF5_PLUGIN_SCALED_LAYOUT_H

#include "../plugin.h"
#include "fpconv/fpconv_h5_scaled.h"

/* layout.c */

/* One call: who it is and which group it is about, for messages. */
struct scaled_call {
    const char *function;
    const char *name;
};

/* Push the message onto the error stack; false. */
bool fp_scaled_fail(const struct scaled_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool fp_scaled_fail_status(const struct scaled_call *call, fpconv_status status);

/* Room for n items; NULL if there is none.  Never of 0 bytes. */
void *fp_scaled_allocate(size_t n, size_t size);

#define FP_SCALED_CODES "codes"
#define FP_SCALED_SCALES "scales"

/* The extents of a dataset. */
struct scaled_shape {
    int rank;
    hsize_t dims[H5S_MAX_RANK];
};

hsize_t fp_scaled_last_dim(const struct scaled_shape *s);
/* The number of elements of all axes but the last; false if size_t is too small. */
bool fp_scaled_count_rows(const struct scaled_shape *s, size_t *rows);

bool fp_scaled_is_half(const fpconv_scheme *scheme);
/* Stored units of codes, bytes but for f16, that n elements of a row occupy. */
hsize_t fp_scaled_code_units(const fpconv_scheme *scheme, hsize_t n);
/* Columns that codes and scales can be cut at: whole blocks and whole bytes. */
hsize_t fp_scaled_column_unit(const fpconv_scheme *scheme);

struct scaled_shape fp_scaled_code_shape(const fpconv_scheme *scheme,
                                         const struct scaled_shape *tensor);
/* One scale a block, a row or a column, along the tensor's own axes; a tensor of one
 * axis is one row. */
struct scaled_shape fp_scaled_scale_shape(const fpconv_scheme *scheme,
                                          const struct scaled_shape *tensor);

/* The types in the file and in memory; not to be closed. */
hid_t fp_scaled_code_type(const fpconv_scheme *scheme);
hid_t fp_scaled_scale_type(const fpconv_scheme *scheme);
hid_t fp_scaled_memory_code_type(const fpconv_scheme *scheme);
hid_t fp_scaled_memory_scale_type(const fpconv_scheme *scheme);

/* attributes.c: the scheme and the tensor's shape, as attributes of the group */
bool fp_scaled_write_attributes(hid_t group, const fpconv_scheme *scheme,
                                const struct scaled_shape *tensor);
bool fp_scaled_read_attributes(const struct scaled_call *call, hid_t group, fpconv_scheme *scheme,
                               struct scaled_shape *tensor);

#endif /* FPCONV_HDF5_PLUGIN_SCALED_LAYOUT_H */
