/*
 * attributes.c - the attributes of a scaled tensor's group
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "layout.h"

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
    fp_h5_close(space, H5Sclose);
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
    fp_h5_close(type, H5Tclose);
    return done;
}

static bool write_number(hid_t group, const char *name, uint64_t value)
{
    return write_attribute(group, name, H5T_STD_U64LE, H5T_NATIVE_UINT64, NULL, &value);
}

bool fp_scaled_write_attributes(hid_t group, const fpconv_scheme *scheme,
                                const struct scaled_shape *tensor)
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
           (!fp_scaled_is_half(scheme) || write_number(group, "dot_length", scheme->dot_length)) &&
           /* last: a group that has it is complete */
           write_number(group, "fpconv_scaled_version", FPCONV_H5_SCALED_VERSION);
}

/* Reads up to `max` values of an attribute, and says how many there are. */
static bool read_attribute(const struct scaled_call *call, hid_t group, const char *name,
                           H5T_class_t class, hid_t memory_type, hsize_t max, hsize_t *n,
                           void *value)
{
    const htri_t exists = H5Aexists(group, name);
    if (exists <= 0)
        return fp_scaled_fail(call, "there is no attribute \"%s\"", name);
    const hid_t attribute = H5Aopen(group, name, H5P_DEFAULT);
    const hid_t space = attribute < 0 ? -1 : H5Aget_space(attribute);
    const hid_t type = attribute < 0 ? -1 : H5Aget_type(attribute);
    const hssize_t points = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    bool done = points >= 1 && (hsize_t)points <= max && H5Tget_class(type) == class &&
                !(class == H5T_STRING && H5Tis_variable_str(type)) &&
                H5Aread(attribute, memory_type, value) >= 0;
    if (n)
        *n = done ? (hsize_t)points : 0;
    fp_h5_close(type, H5Tclose);
    fp_h5_close(space, H5Sclose);
    fp_h5_close(attribute, H5Aclose);
    return done ||
           fp_scaled_fail(call, "the attribute \"%s\" has an unexpected type or size", name);
}

static bool read_number(const struct scaled_call *call, hid_t group, const char *name,
                        uint64_t *value)
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

static bool read_name(const struct scaled_call *call, hid_t group, const char *name,
                      const char *(*name_of)(int), int count, int *index)
{
    char text[TEXT_SIZE] = "";
    const hid_t type = text_type(sizeof(text));
    const bool done =
        type >= 0 && read_attribute(call, group, name, H5T_STRING, type, 1, NULL, text);
    fp_h5_close(type, H5Tclose);
    if (!done)
        return false;
    text[sizeof(text) - 1] = '\0';
    *index = find_name(text, name_of, count);
    return *index >= 0 || fp_scaled_fail(call, "the %s \"%s\" is unknown", name, text);
}

static bool read_version(const struct scaled_call *call, hid_t group)
{
    uint64_t version;
    return read_number(call, group, "fpconv_scaled_version", &version) &&
           (version == FPCONV_H5_SCALED_VERSION ||
            fp_scaled_fail(call, "its layout is version %llu, and only version %d is known",
                           (unsigned long long)version, FPCONV_H5_SCALED_VERSION));
}

static bool read_scheme(const struct scaled_call *call, hid_t group, fpconv_scheme *scheme)
{
    int scaling, element, rule;
    uint64_t dot_length = 0;
    if (!read_name(call, group, "scheme", name_of_scaling, FPCONV_SCALING_COUNT, &scaling) ||
        !read_name(call, group, "element", name_of_format, FPCONV_FORMAT_COUNT, &element) ||
        !read_name(call, group, "scale_rule", name_of_rule, FPCONV_SCALE_RULE_COUNT, &rule))
        return false;
    *scheme = (fpconv_scheme){.scaling = (fpconv_scaling)scaling,
                              .element = (fpconv_format)element,
                              .rule = (fpconv_scale_rule)rule};
    if (scaling == FPCONV_NVFP4 &&
        !read_attribute(call, group, "tensor_scale", H5T_FLOAT, H5T_NATIVE_FLOAT, 1, NULL,
                        &scheme->tensor_scale))
        return false;
    if (fp_scaled_is_half(scheme) && !read_number(call, group, "dot_length", &dot_length))
        return false;
    scheme->dot_length = (size_t)dot_length;
    /* whether scheme, element format and tensor scale go together, the core knows */
    const fpconv_status status =
        fpconv_dequantize(scheme, 0, 0, FPCONV_F32, NULL, 0, NULL, 0, NULL);
    return status == FPCONV_OK || fp_scaled_fail_status(call, status);
}

static bool read_shape(const struct scaled_call *call, hid_t group, const fpconv_scheme *scheme,
                       struct scaled_shape *tensor)
{
    uint64_t dims[H5S_MAX_RANK], axis, block;
    hsize_t rank = 0;
    if (!read_attribute(call, group, "shape", H5T_INTEGER, H5T_NATIVE_UINT64, H5S_MAX_RANK, &rank,
                        dims) ||
        !read_number(call, group, "axis", &axis) || !read_number(call, group, "block", &block))
        return false;
    tensor->rank = (int)rank;
    for (int i = 0; i < tensor->rank; i++)
        tensor->dims[i] = dims[i];
    if (axis != rank - 1)
        return fp_scaled_fail(call, "its axis is not the last one");
    if (block != fpconv_scaling_block(scheme->scaling))
        return fp_scaled_fail(call, "blocks of %llu are unknown in this scheme",
                              (unsigned long long)block);
    return true;
}

bool fp_scaled_read_attributes(const struct scaled_call *call, hid_t group, fpconv_scheme *scheme,
                               struct scaled_shape *tensor)
{
    return read_version(call, group) && read_scheme(call, group, scheme) &&
           read_shape(call, group, scheme, tensor);
}
