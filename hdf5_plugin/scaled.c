/*
 * scaled.c - scaled tensors as HDF5 groups
 *
 * SPDX-License-Identifier: MIT
 *
 * The layout of the group is described in docs/scaled.md.  A row of packed codes
 * is a row of bytes of the dataset, so that hyperslabs of the tensor are
 * hyperslabs of the codes.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fpconv/fpconv_h5_scaled.h"
#include "plugin.h"

static const char codes_name[] = "codes", scales_name[] = "scales";

/* One call: who it is and which group it is about, for messages. */
struct call {
    const char *function;
    const char *name;
};

__attribute__((format(printf, 2, 3))) static bool fail(const struct call *call, const char *format,
                                                       ...)
{
    char what[512], text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    snprintf(text, sizeof(text), "scaled tensor \"%s\": %s", call->name, what);
    fp_h5_push_error(call->function, __LINE__, NULL, text);
    return false;
}

static bool fail_status(const struct call *call, fpconv_status status)
{
    return fail(call, "%s", fpconv_strerror(status));
}

/* -------------------------------------------------------------------------- */
/* Shapes                                                                     */
/* -------------------------------------------------------------------------- */

/* The extents of a dataset. */
struct shape {
    int rank;
    hsize_t dims[H5S_MAX_RANK];
};

static hsize_t last_dim(const struct shape *s)
{
    return s->dims[s->rank - 1];
}

/* The number of elements of all axes but the last; false if size_t is too small. */
static bool count_rows(const struct shape *s, size_t *rows)
{
    *rows = 1;
    for (int i = 0; i < s->rank - 1; i++)
        if (__builtin_mul_overflow(*rows, s->dims[i], rows))
            return false;
    return true;
}

static bool is_half(const fpconv_scheme *scheme)
{
    return scheme->element == FPCONV_F16;
}

/* Stored units of codes, bytes but for f16, that n elements of a row occupy. */
static hsize_t code_units(const fpconv_scheme *scheme, hsize_t n)
{
    return is_half(scheme) ? n : fpconv_packed_size(scheme->element, (size_t)n);
}

/* Columns that codes and scales can be cut at: whole blocks and whole bytes. */
static hsize_t column_unit(const fpconv_scheme *scheme)
{
    const size_t block = fpconv_scaling_block(scheme->scaling);
    return block ? block : 4;
}

static struct shape code_shape(const fpconv_scheme *scheme, const struct shape *tensor)
{
    struct shape s = *tensor;
    s.dims[s.rank - 1] = code_units(scheme, last_dim(tensor));
    return s;
}

/* One scale a block, a row or a column, along the tensor's own axes; a tensor of
 * one axis is one row. */
static struct shape scale_shape(const fpconv_scheme *scheme, const struct shape *tensor)
{
    struct shape s = *tensor;
    const hsize_t columns = last_dim(tensor);
    const size_t block = fpconv_scaling_block(scheme->scaling);
    switch (scheme->scaling) {
    case FPCONV_PER_ROW:
    case FPCONV_POW2_ROW:
        if (s.rank > 1)
            s.rank--;
        else
            s.dims[0] = 1;
        return s;
    case FPCONV_PER_COLUMN:
    case FPCONV_POW2_COLUMN:
        return (struct shape){1, {columns}};
    case FPCONV_PER_TENSOR:
        return (struct shape){1, {1}};
    default:
        s.dims[s.rank - 1] = columns / block + (columns % block != 0);
        return s;
    }
}

static hid_t code_type(const fpconv_scheme *scheme)
{
    return is_half(scheme) ? H5T_STD_U16LE : H5T_STD_U8LE;
}

static hid_t scale_type(const fpconv_scheme *scheme)
{
    switch (fpconv_scale_size(scheme->scaling)) {
    case 1:
        return H5T_STD_U8LE;
    case 2:
        return H5T_STD_I16LE;
    default:
        return H5T_IEEE_F32LE;
    }
}

/* -------------------------------------------------------------------------- */
/* Attributes                                                                 */
/* -------------------------------------------------------------------------- */

enum { TEXT_SIZE = 16 }; /* holds every name of a scheme, format and rule */

static bool write_attribute(hid_t group, const char *name, hid_t file_type, hid_t memory_type,
                            const hsize_t *n, const void *value)
{
    const hid_t space = n ? H5Screate_simple(1, n, NULL) : H5Screate(H5S_SCALAR);
    const hid_t attribute =
        space < 0 ? space : H5Acreate2(group, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool done = attribute >= 0 && H5Awrite(attribute, memory_type, value) >= 0;
    if (attribute >= 0 && H5Aclose(attribute) < 0)
        done = false;
    if (space >= 0)
        H5Sclose(space);
    return done;
}

static hid_t text_type(size_t size)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    if (type >= 0 && H5Tset_size(type, size) < 0) {
        H5Tclose(type);
        return -1;
    }
    return type;
}

static bool write_text(hid_t group, const char *name, const char *text)
{
    const hid_t type = text_type(strlen(text) + 1);
    const bool done = type >= 0 && write_attribute(group, name, type, type, NULL, text);
    if (type >= 0)
        H5Tclose(type);
    return done;
}

static bool write_number(hid_t group, const char *name, uint64_t value)
{
    return write_attribute(group, name, H5T_STD_U64LE, H5T_NATIVE_UINT64, NULL, &value);
}

static bool write_attributes(hid_t group, const fpconv_scheme *scheme, const struct shape *tensor)
{
    uint64_t dims[H5S_MAX_RANK];
    const hsize_t rank = (hsize_t)tensor->rank;
    for (int i = 0; i < tensor->rank; i++)
        dims[i] = tensor->dims[i];
    return write_text(group, "scheme", fpconv_scaling_name(scheme->scaling)) &&
           write_text(group, "element", fpconv_format_name(scheme->element)) &&
           write_text(group, "scale_rule", fpconv_scale_rule_name(scheme->rule)) &&
           write_attribute(group, "shape", H5T_STD_U64LE, H5T_NATIVE_UINT64, &rank, dims) &&
           write_number(group, "axis", rank - 1) &&
           write_number(group, "block", fpconv_scaling_block(scheme->scaling)) &&
           (scheme->scaling != FPCONV_NVFP4 ||
            write_attribute(group, "tensor_scale", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, NULL,
                            &scheme->tensor_scale)) &&
           (!is_half(scheme) || write_number(group, "dot_length", scheme->dot_length)) &&
           /* last: a group that has it is complete */
           write_number(group, "fpconv_scaled_version", FPCONV_H5_SCALED_VERSION);
}

/* Reads up to `max` values of an attribute, and says how many there are. */
static bool read_attribute(const struct call *call, hid_t group, const char *name,
                           H5T_class_t class, hid_t memory_type, hsize_t max, hsize_t *n,
                           void *value)
{
    const htri_t exists = H5Aexists(group, name);
    if (exists <= 0)
        return fail(call, "there is no attribute \"%s\"", name);
    const hid_t attribute = H5Aopen(group, name, H5P_DEFAULT);
    const hid_t space = attribute < 0 ? -1 : H5Aget_space(attribute);
    const hid_t type = attribute < 0 ? -1 : H5Aget_type(attribute);
    const hssize_t points = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    bool done = points >= 1 && (hsize_t)points <= max && H5Tget_class(type) == class &&
                !(class == H5T_STRING && H5Tis_variable_str(type)) &&
                H5Aread(attribute, memory_type, value) >= 0;
    if (n)
        *n = done ? (hsize_t)points : 0;
    if (type >= 0)
        H5Tclose(type);
    if (space >= 0)
        H5Sclose(space);
    if (attribute >= 0)
        H5Aclose(attribute);
    return done || fail(call, "the attribute \"%s\" has an unexpected type or size", name);
}

static bool read_number(const struct call *call, hid_t group, const char *name, uint64_t *value)
{
    return read_attribute(call, group, name, H5T_INTEGER, H5T_NATIVE_UINT64, 1, NULL, value);
}

/* The index of a name among `count` names; -1 for an unknown one. */
static int find_name(const char *text, const char *(*name_of)(int), int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(text, name_of(i)) == 0)
            return i;
    return -1;
}

static const char *name_of_scaling(int i)
{
    return fpconv_scaling_name((fpconv_scaling)i);
}

static const char *name_of_format(int i)
{
    return fpconv_format_name((fpconv_format)i);
}

static const char *name_of_rule(int i)
{
    return fpconv_scale_rule_name((fpconv_scale_rule)i);
}

static bool read_name(const struct call *call, hid_t group, const char *name,
                      const char *(*name_of)(int), int count, int *index)
{
    char text[TEXT_SIZE] = "";
    const hid_t type = text_type(sizeof(text));
    const bool done =
        type >= 0 && read_attribute(call, group, name, H5T_STRING, type, 1, NULL, text);
    if (type >= 0)
        H5Tclose(type);
    if (!done)
        return false;
    text[sizeof(text) - 1] = '\0';
    *index = find_name(text, name_of, count);
    return *index >= 0 || fail(call, "the %s \"%s\" is unknown", name, text);
}

/* -------------------------------------------------------------------------- */
/* Datasets                                                                   */
/* -------------------------------------------------------------------------- */

/* A chunk of `count` columns of the tensor, in columns of the dataset. */
static bool chunk_columns(const struct call *call, const fpconv_scheme *scheme, bool is_codes,
                          hsize_t columns, hsize_t *chunk)
{
    const size_t block = fpconv_scaling_block(scheme->scaling);
    const size_t bits = fpconv_format_bits(scheme->element);
    if (*chunk >= columns)
        *chunk = columns ? columns : 1;
    else if ((block && *chunk % block) || *chunk * bits % 8)
        return fail(call, "a chunk of %llu columns is not a whole number of blocks and bytes",
                    (unsigned long long)*chunk);
    *chunk = is_codes ? code_units(scheme, *chunk) : *chunk / block + (*chunk % block != 0);
    return true;
}

/* The caller's list with its chunk, given in elements, in those of the dataset. */
static hid_t make_create_list(const struct call *call, hid_t create_list,
                              const fpconv_scheme *scheme, bool is_codes,
                              const struct shape *tensor)
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
        fail(call, "the chunks have %d dimensions, the tensor %d", rank, tensor->rank);
    for (int i = 0; fits && i < rank - 1; i++)
        if (chunk[i] > tensor->dims[i])
            chunk[i] = tensor->dims[i] ? tensor->dims[i] : 1;
    if (!fits || !chunk_columns(call, scheme, is_codes, last_dim(tensor), &chunk[rank - 1]) ||
        H5Pset_chunk(list, rank, chunk) < 0) {
        H5Pclose(list);
        return -1;
    }
    return list;
}

/* Without data, as for an empty tensor, the dataset keeps its fill value. */
static bool write_dataset(hid_t group, const char *name, hid_t type, hid_t memory_type,
                          const struct shape *shape, hid_t create_list, const void *data)
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
    if (space >= 0)
        H5Sclose(space);
    return done;
}

static bool has_shape(hid_t space, const struct shape *want)
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
static hid_t open_dataset(const struct call *call, hid_t group, const char *name, hid_t want_type,
                          const struct shape *want)
{
    if (H5Lexists(group, name, H5P_DEFAULT) <= 0) {
        fail(call, "there is no dataset \"%s\"", name);
        return -1;
    }
    const hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT);
    const hid_t space = dataset < 0 ? -1 : H5Dget_space(dataset);
    const hid_t type = dataset < 0 ? -1 : H5Dget_type(dataset);
    bool done = false;
    if (type < 0 || space < 0)
        fail(call, "\"%s\" is not a dataset", name);
    else if (!has_type(type, want_type))
        fail(call, "the dataset \"%s\" is of another type", name);
    else if (!has_shape(space, want))
        fail(call, "the shape of the dataset \"%s\" does not fit the attribute \"shape\"", name);
    else
        done = true;
    if (type >= 0)
        H5Tclose(type);
    if (space >= 0)
        H5Sclose(space);
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
    if (memory_space >= 0)
        H5Sclose(memory_space);
    if (file_space >= 0)
        H5Sclose(file_space);
    return done;
}

/* -------------------------------------------------------------------------- */
/* Writing                                                                    */
/* -------------------------------------------------------------------------- */

struct writing {
    struct call call;
    fpconv_scheme scheme;
    struct shape tensor;
    size_t rows, columns, row_bytes; /* of codes */
    fpconv_format mem_format;
    const void *buf;
    void *codes, *scales;
};

static hid_t memory_code_type(const fpconv_scheme *scheme)
{
    return is_half(scheme) ? H5T_NATIVE_UINT16 : H5T_NATIVE_UINT8;
}

static hid_t memory_scale_type(const fpconv_scheme *scheme)
{
    switch (fpconv_scale_size(scheme->scaling)) {
    case 1:
        return H5T_NATIVE_UINT8;
    case 2:
        return H5T_NATIVE_INT16;
    default:
        return H5T_NATIVE_FLOAT;
    }
}

/* Room for n items; NULL if there is none.  Never of 0 bytes. */
static void *allocate(size_t n, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? NULL : malloc(bytes ? bytes : 1);
}

static bool quantize(struct writing *w)
{
    const ptrdiff_t stride = (ptrdiff_t)(w->columns * fpconv_format_size(w->mem_format));
    fpconv_status status = FPCONV_OK;
    if (w->scheme.rule == FPCONV_SCALE_GIVEN)
        return fail(&w->call, "the scale rule \"given\" is not possible here");
    if (w->scheme.scaling == FPCONV_NVFP4 && !(w->scheme.tensor_scale > 0) &&
        !(w->scheme.tensor_scale < 0))
        status = fpconv_tensor_scale(&w->scheme.tensor_scale, w->rows, w->columns, w->mem_format,
                                     w->buf, stride);
    if (status != FPCONV_OK)
        return fail_status(&w->call, status);
    w->row_bytes = fpconv_packed_size(w->scheme.element, w->columns);
    w->codes = allocate(w->rows, w->row_bytes);
    w->scales = allocate(fpconv_scale_count(w->scheme.scaling, w->rows, w->columns),
                         fpconv_scale_size(w->scheme.scaling));
    if (!w->codes || !w->scales)
        return fail(&w->call, "no memory for the codes and scales");
    status = fpconv_quantize(&w->scheme, w->rows, w->columns, w->codes, (ptrdiff_t)w->row_bytes,
                             w->scales, w->mem_format, w->buf, stride);
    return status == FPCONV_OK || fail_status(&w->call, status);
}

static bool write_group(const struct writing *w, hid_t group, hid_t create_list)
{
    const fpconv_scheme *scheme = &w->scheme;
    const struct shape codes = code_shape(scheme, &w->tensor);
    const struct shape scales = scale_shape(scheme, &w->tensor);
    const hid_t code_list = make_create_list(&w->call, create_list, scheme, true, &w->tensor);
    const hid_t scale_list =
        code_list < 0 ? -1 : make_create_list(&w->call, create_list, scheme, false, &w->tensor);
    const bool is_empty = w->rows == 0 || w->columns == 0;
    bool done = scale_list >= 0;
    if (done)
        done = (write_dataset(group, codes_name, code_type(scheme), memory_code_type(scheme),
                              &codes, code_list, is_empty ? NULL : w->codes) &&
                write_dataset(group, scales_name, scale_type(scheme), memory_scale_type(scheme),
                              &scales, scale_list, is_empty ? NULL : w->scales) &&
                write_attributes(group, scheme, &w->tensor)) ||
               fail(&w->call, "HDF5 could not write it");
    if (scale_list >= 0)
        H5Pclose(scale_list);
    if (code_list >= 0)
        H5Pclose(code_list);
    return done;
}

static bool create_group(const struct writing *w, hid_t location, hid_t create_list)
{
    const hid_t group = H5Gcreate2(location, w->call.name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (group < 0)
        return fail(&w->call, "the group cannot be created");
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
        fail(&w.call, "the name, scheme or dims is NULL");
    else if (rank < 1 || rank > H5S_MAX_RANK)
        fail(&w.call, "the rank is not 1 to %d", H5S_MAX_RANK);
    else
        done = true;
    if (done) {
        w.scheme = *scheme;
        w.tensor.rank = rank;
        memcpy(w.tensor.dims, dims, (size_t)rank * sizeof(dims[0]));
        w.columns = (size_t)last_dim(&w.tensor);
        done = (count_rows(&w.tensor, &w.rows) && w.columns == last_dim(&w.tensor)) ||
               fail(&w.call, "the tensor is too large for this machine");
    }
    done = done && quantize(&w) && create_group(&w, location, create_list);
    free(w.codes);
    free(w.scales);
    return done ? 0 : -1;
}

/* -------------------------------------------------------------------------- */
/* Reading                                                                    */
/* -------------------------------------------------------------------------- */

struct reading {
    struct call call;
    fpconv_scheme scheme;
    struct shape tensor;
    hid_t group, codes, scales;
};

static bool read_version(const struct reading *r)
{
    uint64_t version;
    return read_number(&r->call, r->group, "fpconv_scaled_version", &version) &&
           (version == FPCONV_H5_SCALED_VERSION ||
            fail(&r->call, "its layout is version %llu, and only version %d is known",
                 (unsigned long long)version, FPCONV_H5_SCALED_VERSION));
}

static bool read_scheme(struct reading *r)
{
    int scaling, element, rule;
    uint64_t dot_length = 0;
    if (!read_name(&r->call, r->group, "scheme", name_of_scaling, FPCONV_SCALING_COUNT, &scaling) ||
        !read_name(&r->call, r->group, "element", name_of_format, FPCONV_FORMAT_COUNT, &element) ||
        !read_name(&r->call, r->group, "scale_rule", name_of_rule, FPCONV_SCALE_RULE_COUNT, &rule))
        return false;
    r->scheme = (fpconv_scheme){.scaling = (fpconv_scaling)scaling,
                                .element = (fpconv_format)element,
                                .rule = (fpconv_scale_rule)rule};
    if (scaling == FPCONV_NVFP4 &&
        !read_attribute(&r->call, r->group, "tensor_scale", H5T_FLOAT, H5T_NATIVE_FLOAT, 1, NULL,
                        &r->scheme.tensor_scale))
        return false;
    if (is_half(&r->scheme) && !read_number(&r->call, r->group, "dot_length", &dot_length))
        return false;
    r->scheme.dot_length = (size_t)dot_length;
    /* whether scheme, element format and tensor scale go together, the core knows */
    const fpconv_status status =
        fpconv_dequantize(&r->scheme, 0, 0, FPCONV_F32, NULL, 0, NULL, 0, NULL);
    return status == FPCONV_OK || fail_status(&r->call, status);
}

static bool read_shape(struct reading *r)
{
    uint64_t dims[H5S_MAX_RANK], axis, block;
    hsize_t rank = 0;
    if (!read_attribute(&r->call, r->group, "shape", H5T_INTEGER, H5T_NATIVE_UINT64, H5S_MAX_RANK,
                        &rank, dims) ||
        !read_number(&r->call, r->group, "axis", &axis) ||
        !read_number(&r->call, r->group, "block", &block))
        return false;
    r->tensor.rank = (int)rank;
    for (int i = 0; i < r->tensor.rank; i++)
        r->tensor.dims[i] = dims[i];
    if (axis != rank - 1)
        return fail(&r->call, "its axis is not the last one");
    if (block != fpconv_scaling_block(r->scheme.scaling))
        return fail(&r->call, "blocks of %llu are unknown in this scheme",
                    (unsigned long long)block);
    return true;
}

static bool open_datasets(struct reading *r)
{
    const struct shape codes = code_shape(&r->scheme, &r->tensor);
    const struct shape scales = scale_shape(&r->scheme, &r->tensor);
    r->codes = open_dataset(&r->call, r->group, codes_name, code_type(&r->scheme), &codes);
    if (r->codes < 0)
        return false;
    r->scales = open_dataset(&r->call, r->group, scales_name, scale_type(&r->scheme), &scales);
    return r->scales >= 0;
}

static void close_reading(const struct reading *r)
{
    if (r->scales >= 0)
        H5Dclose(r->scales);
    if (r->codes >= 0)
        H5Dclose(r->codes);
    if (r->group >= 0)
        H5Gclose(r->group);
}

static bool open_reading(struct reading *r, const char *function, hid_t location, const char *name)
{
    *r = (struct reading){
        .call = {function, name ? name : ""}, .group = -1, .codes = -1, .scales = -1};
    if (!name)
        return fail(&r->call, "the name is NULL");
    r->group = H5Gopen2(location, name, H5P_DEFAULT);
    if (r->group < 0)
        return fail(&r->call, "there is no such group");
    return read_version(r) && read_scheme(r) && read_shape(r) && open_datasets(r);
}

herr_t fpconv_h5_inspect_scaled(hid_t location, const char *name, fpconv_h5_scaled *info)
{
    struct reading r;
    bool done = open_reading(&r, "fpconv_h5_inspect_scaled", location, name);
    if (done && !info)
        done = fail(&r.call, "info is NULL");
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
    const struct shape *tensor = &r->tensor;
    const hsize_t unit = column_unit(&r->scheme);
    const int last = tensor->rank - 1;
    struct shape counts = *tensor;
    for (int i = 0; i <= last; i++) {
        part->start[i] = start ? start[i] : 0;
        part->count[i] = counts.dims[i] = count ? count[i] : tensor->dims[i] - part->start[i];
        if (part->start[i] > tensor->dims[i] || part->count[i] > tensor->dims[i] - part->start[i])
            return fail(&r->call, "the block reaches over the end of axis %d", i);
    }
    part->columns = (size_t)part->count[last];
    part->first_column = (size_t)(part->start[last] / unit * unit);
    const hsize_t end = part->start[last] + part->count[last];
    const hsize_t widened = end + (unit - end % unit) % unit;
    part->last_column = (size_t)(widened < tensor->dims[last] ? widened : tensor->dims[last]);
    return count_rows(&counts, &part->rows) ||
           fail(&r->call, "the block is too large for this machine");
}

static bool read_codes(const struct reading *r, const struct part *part, void *codes)
{
    hsize_t start[H5S_MAX_RANK], count[H5S_MAX_RANK];
    const int last = r->tensor.rank - 1;
    memcpy(start, part->start, sizeof(start));
    memcpy(count, part->count, sizeof(count));
    start[last] = code_units(&r->scheme, part->first_column);
    count[last] = code_units(&r->scheme, part->last_column - part->first_column);
    return read_part(r->codes, memory_code_type(&r->scheme), last + 1, start, count, codes) ||
           fail(&r->call, "HDF5 could not read the codes");
}

static bool read_scales(const struct reading *r, const struct part *part, void *scales)
{
    hsize_t start[H5S_MAX_RANK], count[H5S_MAX_RANK];
    const struct shape shape = scale_shape(&r->scheme, &r->tensor);
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
    return read_part(r->scales, memory_scale_type(&r->scheme), shape.rank, start, count, scales) ||
           fail(&r->call, "HDF5 could not read the scales");
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
    char *codes = allocate(part->rows, fpconv_packed_size(scheme->element, columns));
    char *scales = allocate(scale_count, fpconv_scale_size(scheme->scaling));
    char *row = allocate(columns, fpconv_format_size(mem_format));
    bool done = (codes && scales && row) || fail(&r->call, "no memory for the codes and scales");
    done = done && read_codes(r, part, codes) && read_scales(r, part, scales);
    if (done) {
        const fpconv_status status = dequantize_rows(r, part, codes, scales, mem_format, row, buf);
        done = status == FPCONV_OK || fail_status(&r->call, status);
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
        done = status == FPCONV_OK || fail_status(&r.call, status);
    }
    if (done && part.rows > 0 && part.columns > 0)
        done = buf ? read_block(&r, &part, mem_format, buf) : fail(&r.call, "buf is NULL");
    close_reading(&r);
    return done ? 0 : -1;
}
