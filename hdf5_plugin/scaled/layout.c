/*
 * layout.c - the datasets of a scaled tensor: their shapes and types
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "layout.h"

bool fp_scaled_fail(const struct scaled_call *call, const char *format, ...)
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

bool fp_scaled_fail_status(const struct scaled_call *call, fpconv_status status)
{
    return fp_scaled_fail(call, "%s", fpconv_strerror(status));
}

void *fp_scaled_allocate(size_t n, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? NULL : malloc(bytes ? bytes : 1);
}

hsize_t fp_scaled_last_dim(const struct scaled_shape *s)
{
    return s->dims[s->rank - 1];
}

bool fp_scaled_count_rows(const struct scaled_shape *s, size_t *rows)
{
    *rows = 1;
    for (int i = 0; i < s->rank - 1; i++)
        if (__builtin_mul_overflow(*rows, s->dims[i], rows))
            return false;
    return true;
}

bool fp_scaled_is_half(const fpconv_scheme *scheme)
{
    return scheme->element == FPCONV_F16;
}

hsize_t fp_scaled_code_units(const fpconv_scheme *scheme, hsize_t n)
{
    return fp_scaled_is_half(scheme) ? n : fpconv_packed_size(scheme->element, (size_t)n);
}

hsize_t fp_scaled_column_unit(const fpconv_scheme *scheme)
{
    const size_t block = fpconv_scaling_block(scheme->scaling);
    return block ? block : 4;
}

struct scaled_shape fp_scaled_code_shape(const fpconv_scheme *scheme,
                                         const struct scaled_shape *tensor)
{
    struct scaled_shape s = *tensor;
    s.dims[s.rank - 1] = fp_scaled_code_units(scheme, fp_scaled_last_dim(tensor));
    return s;
}

struct scaled_shape fp_scaled_scale_shape(const fpconv_scheme *scheme,
                                          const struct scaled_shape *tensor)
{
    struct scaled_shape s = *tensor;
    const hsize_t columns = fp_scaled_last_dim(tensor);
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
        return (struct scaled_shape){1, {columns}};
    case FPCONV_PER_TENSOR:
        return (struct scaled_shape){1, {1}};
    default:
        s.dims[s.rank - 1] = columns / block + (columns % block != 0);
        return s;
    }
}

hid_t fp_scaled_code_type(const fpconv_scheme *scheme)
{
    return fp_scaled_is_half(scheme) ? H5T_STD_U16LE : H5T_STD_U8LE;
}

hid_t fp_scaled_scale_type(const fpconv_scheme *scheme)
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

hid_t fp_scaled_memory_code_type(const fpconv_scheme *scheme)
{
    return fp_scaled_is_half(scheme) ? H5T_NATIVE_UINT16 : H5T_NATIVE_UINT8;
}

hid_t fp_scaled_memory_scale_type(const fpconv_scheme *scheme)
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
