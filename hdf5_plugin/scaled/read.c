/*
 * read.c - fpconv_h5_inspect_scaled and fpconv_h5_read_scaled
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "layout.h"

static bool has_shape(hid_t space, const struct scaled_shape *want)
{
    hsize_t dims[H5S_MAX_RANK];
    return H5Sget_simple_extent_ndims(space) == want->rank &&
           H5Sget_simple_extent_dims(space, dims, NULL) == want->rank &&
           memcmp(dims, want->dims, (size_t)want->rank * sizeof(dims[0])) == 0;
}

/* Does H5Dread give what is meant?  A signed code would be clipped to zero. */
static bool has_type(hid_t type, hid_t want)
{
    return H5Tget_class(type) == H5Tget_class(want) && H5Tget_size(type) == H5Tget_size(want) &&
           (H5Tget_class(want) != H5T_INTEGER || H5Tget_sign(type) == H5Tget_sign(want));
}

/* A dataset of a group, if it is of this type and shape. */
static hid_t open_dataset(const struct scaled_call *call, hid_t group, const char *name,
                          hid_t want_type, const struct scaled_shape *want)
{
    if (H5Lexists(group, name, H5P_DEFAULT) <= 0) {
        fp_scaled_fail(call, "there is no dataset \"%s\"", name);
        return -1;
    }
    const hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT);
    const hid_t space = dataset < 0 ? -1 : H5Dget_space(dataset);
    const hid_t type = dataset < 0 ? -1 : H5Dget_type(dataset);
    bool done = false;
    if (type < 0 || space < 0)
        fp_scaled_fail(call, "\"%s\" is not a dataset", name);
    else if (!has_type(type, want_type))
        fp_scaled_fail(call, "the dataset \"%s\" is of another type", name);
    else if (!has_shape(space, want))
        fp_scaled_fail(call, "the shape of the dataset \"%s\" does not fit the attribute \"shape\"",
                       name);
    else
        done = true;
    fp_h5_close(type, H5Tclose);
    fp_h5_close(space, H5Sclose);
    if (!done && dataset >= 0)
        H5Dclose(dataset);
    return done ? dataset : -1;
}

/* Reads a hyperslab; with a count of 0 nothing. */
static bool read_part(hid_t dataset, hid_t memory_type, int rank, const hsize_t *start,
                      const hsize_t *count, void *data)
{
    const hid_t file_space = H5Dget_space(dataset);
    const hid_t memory_space = H5Screate_simple(rank, count, NULL);
    const bool done =
        file_space >= 0 && memory_space >= 0 &&
        H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
        H5Dread(dataset, memory_type, memory_space, file_space, H5P_DEFAULT, data) >= 0;
    fp_h5_close(memory_space, H5Sclose);
    fp_h5_close(file_space, H5Sclose);
    return done;
}

struct reading {
    struct scaled_call call;
    fpconv_scheme scheme;
    struct scaled_shape tensor;
    hid_t group, codes, scales;
};

static bool open_datasets(struct reading *r)
{
    const struct scaled_shape codes = fp_scaled_code_shape(&r->scheme, &r->tensor);
    const struct scaled_shape scales = fp_scaled_scale_shape(&r->scheme, &r->tensor);
    r->codes =
        open_dataset(&r->call, r->group, FP_SCALED_CODES, fp_scaled_code_type(&r->scheme), &codes);
    if (r->codes < 0)
        return false;
    r->scales = open_dataset(&r->call, r->group, FP_SCALED_SCALES, fp_scaled_scale_type(&r->scheme),
                             &scales);
    return r->scales >= 0;
}

static void close_reading(const struct reading *r)
{
    fp_h5_close(r->scales, H5Dclose);
    fp_h5_close(r->codes, H5Dclose);
    fp_h5_close(r->group, H5Gclose);
}

static bool open_reading(struct reading *r, const char *function, hid_t location, const char *name)
{
    *r = (struct reading){
        .call = {function, name ? name : ""}, .group = -1, .codes = -1, .scales = -1};
    if (!name)
        return fp_scaled_fail(&r->call, "the name is NULL");
    r->group = H5Gopen2(location, name, H5P_DEFAULT);
    if (r->group < 0)
        return fp_scaled_fail(&r->call, "there is no such group");
    return fp_scaled_read_attributes(&r->call, r->group, &r->scheme, &r->tensor) &&
           open_datasets(r);
}

herr_t fpconv_h5_inspect_scaled(hid_t location, const char *name, fpconv_h5_scaled *info)
{
    struct reading r;
    bool done = open_reading(&r, "fpconv_h5_inspect_scaled", location, name);
    if (done && !info)
        done = fp_scaled_fail(&r.call, "info is NULL");
    if (done) {
        *info = (fpconv_h5_scaled){.scheme = r.scheme, .rank = r.tensor.rank};
        memcpy(info->dims, r.tensor.dims, (size_t)r.tensor.rank * sizeof(info->dims[0]));
    }
    close_reading(&r);
    return done ? 0 : -1;
}

/* The block that is asked for, and its columns widened to whole units. */
struct part {
    hsize_t start[H5S_MAX_RANK], count[H5S_MAX_RANK];
    size_t rows, columns;
    size_t first_column, last_column; /* of the widened one; last: exclusive */
};

static bool choose_part(const struct reading *r, const hsize_t *start, const hsize_t *count,
                        struct part *part)
{
    const struct scaled_shape *tensor = &r->tensor;
    const hsize_t unit = fp_scaled_column_unit(&r->scheme);
    const int last = tensor->rank - 1;
    struct scaled_shape counts = *tensor;
    for (int i = 0; i <= last; i++) {
        part->start[i] = start ? start[i] : 0;
        part->count[i] = counts.dims[i] = count ? count[i] : tensor->dims[i] - part->start[i];
        if (part->start[i] > tensor->dims[i] || part->count[i] > tensor->dims[i] - part->start[i])
            return fp_scaled_fail(&r->call, "the block reaches over the end of axis %d", i);
    }
    part->columns = (size_t)part->count[last];
    part->first_column = (size_t)(part->start[last] / unit * unit);
    const hsize_t end = part->start[last] + part->count[last];
    const hsize_t widened = end + (unit - end % unit) % unit;
    part->last_column = (size_t)(widened < tensor->dims[last] ? widened : tensor->dims[last]);
    return fp_scaled_count_rows(&counts, &part->rows) ||
           fp_scaled_fail(&r->call, "the block is too large for this machine");
}

static bool read_codes(const struct reading *r, const struct part *part, void *codes)
{
    hsize_t start[H5S_MAX_RANK], count[H5S_MAX_RANK];
    const int last = r->tensor.rank - 1;
    memcpy(start, part->start, sizeof(start));
    memcpy(count, part->count, sizeof(count));
    start[last] = fp_scaled_code_units(&r->scheme, part->first_column);
    count[last] = fp_scaled_code_units(&r->scheme, part->last_column - part->first_column);
    return read_part(r->codes, fp_scaled_memory_code_type(&r->scheme), last + 1, start, count,
                     codes) ||
           fp_scaled_fail(&r->call, "HDF5 could not read the codes");
}

static bool read_scales(const struct reading *r, const struct part *part, void *scales)
{
    hsize_t start[H5S_MAX_RANK], count[H5S_MAX_RANK];
    const struct scaled_shape shape = fp_scaled_scale_shape(&r->scheme, &r->tensor);
    const size_t block = fpconv_scaling_block(r->scheme.scaling);
    const hsize_t columns = part->last_column - part->first_column;
    memcpy(start, part->start, sizeof(start));
    memcpy(count, part->count, sizeof(count));
    switch (r->scheme.scaling) {
    case FPCONV_PER_ROW:
    case FPCONV_POW2_ROW:
        if (r->tensor.rank == 1) {
            start[0] = 0;
            count[0] = 1;
        }
        break;
    case FPCONV_PER_COLUMN:
    case FPCONV_POW2_COLUMN:
        start[0] = part->first_column;
        count[0] = columns;
        break;
    case FPCONV_PER_TENSOR:
        start[0] = 0;
        count[0] = 1;
        break;
    default:
        start[shape.rank - 1] = part->first_column / block;
        count[shape.rank - 1] = columns / block + (columns % block != 0);
    }
    return read_part(r->scales, fp_scaled_memory_scale_type(&r->scheme), shape.rank, start, count,
                     scales) ||
           fp_scaled_fail(&r->call, "HDF5 could not read the scales");
}

/* A row of the widened block at a time, and of that the columns asked for. */
static fpconv_status dequantize_rows(const struct reading *r, const struct part *part,
                                     const char *codes, const char *scales,
                                     fpconv_format mem_format, char *row_buffer, char *buf)
{
    const fpconv_scheme *scheme = &r->scheme;
    const size_t size = fpconv_format_size(mem_format);
    const size_t columns = part->last_column - part->first_column;
    const size_t code_bytes = fpconv_packed_size(scheme->element, columns);
    const size_t row_scales = fpconv_scale_count(scheme->scaling, part->rows, columns) / part->rows;
    const bool by_row = scheme->scaling == FPCONV_MX || scheme->scaling == FPCONV_NVFP4 ||
                        scheme->scaling == FPCONV_PER_ROW || scheme->scaling == FPCONV_POW2_ROW;
    const size_t scale_step = by_row ? row_scales * fpconv_scale_size(scheme->scaling) : 0;
    const size_t skipped = (size_t)part->start[r->tensor.rank - 1] - part->first_column;
    for (size_t row = 0; row < part->rows; row++) {
        const fpconv_status status =
            fpconv_dequantize(scheme, 1, columns, mem_format, row_buffer, 0,
                              codes + row * code_bytes, 0, scales + row * scale_step);
        if (status != FPCONV_OK)
            return status;
        memcpy(buf + row * part->columns * size, row_buffer + skipped * size, part->columns * size);
    }
    return FPCONV_OK;
}

static bool read_block(const struct reading *r, const struct part *part, fpconv_format mem_format,
                       void *buf)
{
    const fpconv_scheme *scheme = &r->scheme;
    const size_t columns = part->last_column - part->first_column;
    const size_t scale_count = fpconv_scale_count(scheme->scaling, part->rows, columns);
    char *codes = fp_scaled_allocate(part->rows, fpconv_packed_size(scheme->element, columns));
    char *scales = fp_scaled_allocate(scale_count, fpconv_scale_size(scheme->scaling));
    char *row = fp_scaled_allocate(columns, fpconv_format_size(mem_format));
    bool done =
        (codes && scales && row) || fp_scaled_fail(&r->call, "no memory for the codes and scales");
    done = done && read_codes(r, part, codes) && read_scales(r, part, scales);
    if (done) {
        const fpconv_status status = dequantize_rows(r, part, codes, scales, mem_format, row, buf);
        done = status == FPCONV_OK || fp_scaled_fail_status(&r->call, status);
    }
    free(codes);
    free(scales);
    free(row);
    return done;
}

herr_t fpconv_h5_read_scaled(hid_t location, const char *name, const hsize_t *start,
                             const hsize_t *count, fpconv_format mem_format, void *buf)
{
    struct reading r;
    struct part part = {.rows = 0};
    bool done = open_reading(&r, "fpconv_h5_read_scaled", location, name) &&
                choose_part(&r, start, count, &part);
    if (done) {
        /* the memory format is checked even where there is nothing to read */
        const fpconv_status status =
            fpconv_dequantize(&r.scheme, 0, 0, mem_format, NULL, 0, NULL, 0, NULL);
        done = status == FPCONV_OK || fp_scaled_fail_status(&r.call, status);
    }
    if (done && part.rows > 0 && part.columns > 0)
        done =
            buf ? read_block(&r, &part, mem_format, buf) : fp_scaled_fail(&r.call, "buf is NULL");
    close_reading(&r);
    return done ? 0 : -1;
}
