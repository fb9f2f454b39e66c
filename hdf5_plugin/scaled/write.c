/*
 * write.c - fpconv_h5_write_scaled
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "layout.h"

/* A chunk of `count` columns of the tensor, in columns of the dataset. */
static bool chunk_columns(const struct scaled_call *call, const fpconv_scheme *scheme,
                          bool is_codes, hsize_t columns, hsize_t *chunk)
{
    const size_t block = fpconv_scaling_block(scheme->scaling);
    const size_t bits = fpconv_format_bits(scheme->element);
    if (*chunk >= columns)
        *chunk = columns ? columns : 1;
    else if ((block && *chunk % block) || *chunk * bits % 8)
        return fp_scaled_fail(call,
                              "a chunk of %llu columns is not a whole number of blocks and bytes",
                              (unsigned long long)*chunk);
    *chunk =
        is_codes ? fp_scaled_code_units(scheme, *chunk) : *chunk / block + (*chunk % block != 0);
    return true;
}

/* The caller's list with its chunk, given in elements, in those of the dataset. */
static hid_t make_create_list(const struct scaled_call *call, hid_t create_list,
                              const fpconv_scheme *scheme, bool is_codes,
                              const struct scaled_shape *tensor)
{
    const bool by_default =
        create_list == H5P_DEFAULT || (!is_codes && fpconv_scaling_block(scheme->scaling) == 0);
    const hid_t list = by_default ? H5Pcreate(H5P_DATASET_CREATE) : H5Pcopy(create_list);
    if (list < 0 || H5Pget_layout(list) != H5D_CHUNKED)
        return list;
    hsize_t chunk[H5S_MAX_RANK];
    const int rank = H5Pget_chunk(list, H5S_MAX_RANK, chunk);
    const bool fits = rank == tensor->rank;
    if (!fits)
        fp_scaled_fail(call, "the chunks have %d dimensions, the tensor %d", rank, tensor->rank);
    for (int i = 0; fits && i < rank - 1; i++)
        if (chunk[i] > tensor->dims[i])
            chunk[i] = tensor->dims[i] ? tensor->dims[i] : 1;
    if (!fits ||
        !chunk_columns(call, scheme, is_codes, fp_scaled_last_dim(tensor), &chunk[rank - 1]) ||
        H5Pset_chunk(list, rank, chunk) < 0) {
        H5Pclose(list);
        return -1;
    }
    return list;
}

/* Without data, as for an empty tensor, the dataset keeps its fill value. */
static bool write_dataset(hid_t group, const char *name, hid_t type, hid_t memory_type,
                          const struct scaled_shape *shape, hid_t create_list, const void *data)
{
    const hid_t space = H5Screate_simple(shape->rank, shape->dims, NULL);
    const hid_t dataset =
        space < 0 ? -1
                  : H5Dcreate2(group, name, type, space, H5P_DEFAULT, create_list, H5P_DEFAULT);
    bool done = dataset >= 0;
    if (done && data)
        done = H5Dwrite(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
    if (dataset >= 0 && H5Dclose(dataset) < 0)
        done = false;
    fp_h5_close(space, H5Sclose);
    return done;
}

struct writing {
    struct scaled_call call;
    fpconv_scheme scheme;
    struct scaled_shape tensor;
    size_t rows, columns, row_bytes; /* of codes */
    fpconv_format mem_format;
    const void *buf;
    void *codes, *scales;
};

static bool quantize(struct writing *w)
{
    const ptrdiff_t stride = (ptrdiff_t)(w->columns * fpconv_format_size(w->mem_format));
    fpconv_status status = FPCONV_OK;
    if (w->scheme.rule == FPCONV_SCALE_GIVEN)
        return fp_scaled_fail(&w->call, "the scale rule \"given\" is not possible here");
    if (w->scheme.scaling == FPCONV_NVFP4 && !(w->scheme.tensor_scale > 0) &&
        !(w->scheme.tensor_scale < 0))
        status = fpconv_tensor_scale(&w->scheme.tensor_scale, w->rows, w->columns, w->mem_format,
                                     w->buf, stride);
    if (status != FPCONV_OK)
        return fp_scaled_fail_status(&w->call, status);
    w->row_bytes = fpconv_packed_size(w->scheme.element, w->columns);
    w->codes = fp_scaled_allocate(w->rows, w->row_bytes);
    w->scales = fp_scaled_allocate(fpconv_scale_count(w->scheme.scaling, w->rows, w->columns),
                                   fpconv_scale_size(w->scheme.scaling));
    if (!w->codes || !w->scales)
        return fp_scaled_fail(&w->call, "no memory for the codes and scales");
    status = fpconv_quantize(&w->scheme, w->rows, w->columns, w->codes, (ptrdiff_t)w->row_bytes,
                             w->scales, w->mem_format, w->buf, stride);
    return status == FPCONV_OK || fp_scaled_fail_status(&w->call, status);
}

static bool write_group(const struct writing *w, hid_t group, hid_t create_list)
{
    const fpconv_scheme *scheme = &w->scheme;
    const struct scaled_shape codes = fp_scaled_code_shape(scheme, &w->tensor);
    const struct scaled_shape scales = fp_scaled_scale_shape(scheme, &w->tensor);
    const hid_t code_list = make_create_list(&w->call, create_list, scheme, true, &w->tensor);
    const hid_t scale_list =
        code_list < 0 ? -1 : make_create_list(&w->call, create_list, scheme, false, &w->tensor);
    const bool is_empty = w->rows == 0 || w->columns == 0;
    bool done = scale_list >= 0;
    if (done)
        done = (write_dataset(group, FP_SCALED_CODES, fp_scaled_code_type(scheme),
                              fp_scaled_memory_code_type(scheme), &codes, code_list,
                              is_empty ? NULL : w->codes) &&
                write_dataset(group, FP_SCALED_SCALES, fp_scaled_scale_type(scheme),
                              fp_scaled_memory_scale_type(scheme), &scales, scale_list,
                              is_empty ? NULL : w->scales) &&
                fp_scaled_write_attributes(group, scheme, &w->tensor)) ||
               fp_scaled_fail(&w->call, "HDF5 could not write it");
    fp_h5_close(scale_list, H5Pclose);
    fp_h5_close(code_list, H5Pclose);
    return done;
}

static bool create_group(const struct writing *w, hid_t location, hid_t create_list)
{
    const hid_t group = H5Gcreate2(location, w->call.name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (group < 0)
        return fp_scaled_fail(&w->call, "the group cannot be created");
    bool done = write_group(w, group, create_list);
    if (H5Gclose(group) < 0)
        done = false;
    if (!done)
        H5Ldelete(location, w->call.name, H5P_DEFAULT);
    return done;
}

herr_t fpconv_h5_write_scaled(hid_t location, const char *name, hid_t create_list,
                              const fpconv_scheme *scheme, int rank, const hsize_t *dims,
                              fpconv_format mem_format, const void *buf)
{
    struct writing w = {
        .call = {"fpconv_h5_write_scaled", name ? name : ""}, .mem_format = mem_format, .buf = buf};
    bool done = false;
    if (!name || !scheme || !dims)
        fp_scaled_fail(&w.call, "the name, scheme or dims is NULL");
    else if (rank < 1 || rank > H5S_MAX_RANK)
        fp_scaled_fail(&w.call, "the rank is not 1 to %d", H5S_MAX_RANK);
    else
        done = true;
    if (done) {
        w.scheme = *scheme;
        w.tensor.rank = rank;
        memcpy(w.tensor.dims, dims, (size_t)rank * sizeof(dims[0]));
        w.columns = (size_t)fp_scaled_last_dim(&w.tensor);
        done = (fp_scaled_count_rows(&w.tensor, &w.rows) &&
                w.columns == fp_scaled_last_dim(&w.tensor)) ||
               fp_scaled_fail(&w.call, "the tensor is too large for this machine");
    }
    done = done && quantize(&w) && create_group(&w, location, create_list);
    free(w.codes);
    free(w.scales);
    return done ? 0 : -1;
}
