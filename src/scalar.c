/*
 * scalar.c - exported functions on single values, typed ones for arrays too, and what the
 * tables know
 *
 * SPDX-License-Identifier: MIT
 */
#include "bits.h"
#include "codec.h"

uint32_t fpconv_encode(fpconv_format format, double value, fpconv_policy policy)
{
    if (!fp_format_is_known(format) || !fp_policy_is_known(policy) || format == FPCONV_F64)
        return UINT32_MAX;
    return (uint32_t)fp_convert_code(format, FPCONV_F64, bits_load(&value, sizeof(value)), policy);
}

double fpconv_decode(fpconv_format format, uint32_t code, fpconv_policy policy)
{
    const bool valid =
        fp_format_is_known(format) && fp_policy_is_known(policy) && format != FPCONV_F64;
    const uint64_t quiet_nan = UINT64_C(0x7ff8000000000000);
    const uint64_t bits = valid ? fp_convert_code(FPCONV_F64, format, code, policy) : quiet_nan;
    double value;
    bits_store(&value, sizeof(value), bits);
    return value;
}

/* One switch makes the policy a constant, so that each call is folded. */
#define DEFINE_SCALAR(dst_name, dst_type, DST, src_name, src_type, SRC)                 \
    dst_type fpconv_##src_name##_to_##dst_name(src_type value, fpconv_policy policy)    \
    {                                                                                   \
        const uint64_t code = bits_load(&value, sizeof(value));                         \
        uint64_t result;                                                                \
        switch (policy) {                                                               \
        case FPCONV_OCP:                                                                \
            result = fp_convert_code(FPCONV_##DST, FPCONV_##SRC, code, FPCONV_OCP);     \
            break;                                                                      \
        case FPCONV_OCP_SAT:                                                            \
            result = fp_convert_code(FPCONV_##DST, FPCONV_##SRC, code, FPCONV_OCP_SAT); \
            break;                                                                      \
        case FPCONV_HDF5:                                                               \
        default:                                                                        \
            result = fp_convert_code(FPCONV_##DST, FPCONV_##SRC, code, FPCONV_HDF5);    \
            break;                                                                      \
        }                                                                               \
        dst_type converted;                                                             \
        bits_store(&converted, sizeof(converted), result);                              \
        return converted;                                                               \
    }

#define DEFINE_ARRAY(dst_name, dst_type, DST, src_name, src_type, SRC)                      \
    fpconv_status fpconv_##src_name##_to_##dst_name##_n(dst_type *dst, const src_type *src, \
                                                        size_t n, fpconv_policy policy)     \
    {                                                                                       \
        return fpconv_convert(FPCONV_##DST, dst, FPCONV_##SRC, src, n, policy);             \
    }

/* f64 and f32 with every format but themselves; the wide pair once. */
#define DEFINE_BOTH(name, type, NAME, wide, wide_type, WIDE) \
    DEFINE_SCALAR(name, type, NAME, wide, wide_type, WIDE)   \
    DEFINE_SCALAR(wide, wide_type, WIDE, name, type, NAME)   \
    DEFINE_ARRAY(name, type, NAME, wide, wide_type, WIDE)    \
    DEFINE_ARRAY(wide, wide_type, WIDE, name, type, NAME)
#define DEFINE_NARROW(NAME, name, type, ...)       \
    DEFINE_BOTH(name, type, NAME, f32, float, F32) \
    DEFINE_BOTH(name, type, NAME, f64, double, F64)

DEFINE_BOTH(f32, float, F32, f64, double, F64)
FPCONV_NARROW_FORMATS(DEFINE_NARROW)

const char *fpconv_format_name(fpconv_format format)
{
    return fp_format_is_known(format) ? fp_formats[format].name : NULL;
}

size_t fpconv_format_size(fpconv_format format)
{
    return fp_format_is_known(format) ? fp_formats[format].size : 0;
}

unsigned fpconv_format_bits(fpconv_format format)
{
    return fp_format_is_known(format) ? fp_format_bits(format) : 0;
}

const char *fpconv_policy_name(fpconv_policy policy)
{
    static const char *const names[FPCONV_POLICY_COUNT] = {
        [FPCONV_HDF5] = "hdf5", [FPCONV_OCP] = "ocp", [FPCONV_OCP_SAT] = "ocp_sat"};
    return fp_policy_is_known(policy) ? names[policy] : NULL;
}

const char *fpconv_strerror(fpconv_status status)
{
    switch (status) {
    case FPCONV_OK:
        return "success";
    case FPCONV_ERROR_FORMAT:
        return "a format is not one of enum fpconv_format";
    case FPCONV_ERROR_POLICY:
        return "the policy is not one of enum fpconv_policy";
    case FPCONV_ERROR_UNSUPPORTED:
        return "this version of fpconv does not support the request";
    case FPCONV_ERROR_NULL:
        return "a buffer is NULL although there are elements to convert";
    case FPCONV_ERROR_OVERLAP:
        return "the source and destination buffers overlap and are not the same";
    case FPCONV_ERROR_SIZE:
        return "the number of bytes to convert does not fit in size_t";
    case FPCONV_ERROR_STRIDE:
        return "the destination stride is smaller than a destination element";
    case FPCONV_ERROR_SCHEME:
        return "the scaling scheme is unknown, or its scale rule, tensor scale or dot length is "
               "not "
               "valid";
    }
    return "unknown fpconv status";
}
