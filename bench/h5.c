/*
 * h5.c - what the sections that use HDF5 share
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/oracle.h"
#include "fpconv/fpconv_h5.h"

/* -------------------------------------------------------------------------- */
/* Failures                                                                   */
/* -------------------------------------------------------------------------- */

/* The first entry is the most specific one.  The text of a failed system call
 * is, e.g., "file write failed: ..., error message = 'No space left on device', ...". */
static herr_t find_reason(unsigned n, const H5E_error2_t *error, void *text)
{
    char **reason = text;
    static const char quote[] = "error message = '";
    const char *system_error = error->desc ? strstr(error->desc, quote) : NULL;
    if (system_error) {
        free(*reason);
        system_error += strlen(quote);
        *reason = strndup(system_error, strcspn(system_error, "'"));
    } else if (n == 0 && error->desc) {
        *reason = strdup(error->desc);
    }
    return 0;
}

void h5_fail(const char *format, ...)
{
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    char *reason = NULL;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, find_reason, &reason);
    report_fail("%s: %s", text, reason ? reason : "HDF5 gives no reason");
}

hid_t h5_check(hid_t id, const char *what)
{
    if (id < 0)
        h5_fail("%s", what);
    return id;
}

/* -------------------------------------------------------------------------- */
/* Datatypes                                                                  */
/* -------------------------------------------------------------------------- */

/* Does HDF5 itself round f32 to f16 to even?  Then it has a native conversion. */
static bool native_f16;

static bool probe_native_f16(void)
{
    const float tie = 1 + 0x1p-11f; /* halfway between 1 and the next f16 */
    char buffer[sizeof(float)];
    memcpy(buffer, &tie, sizeof(tie));
    h5_check(H5Tconvert(H5T_NATIVE_FLOAT, h5_type(FPCONV_F16), 1, buffer, NULL, H5P_DEFAULT),
             "cannot convert float to float16");
    uint16_t code;
    memcpy(&code, buffer, sizeof(code));
    return code == 0x3c00;
}

void h5_start(const struct request *request)
{
    static bool started;
    if (started)
        return;
    started = true;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    native_f16 = probe_native_f16();
    h5_check(fpconv_h5_register_profile(request->profile, NULL),
             "cannot register fpconv's converters");
}

hid_t h5_type(fpconv_format format)
{
    if (format == FPCONV_F32)
        return H5T_NATIVE_FLOAT;
    if (format == FPCONV_F64)
        return H5T_NATIVE_DOUBLE;
    return h5_check(fpconv_h5_type(format), "no HDF5 datatype of this format");
}

hid_t h5_type_of_general_loop(fpconv_format wide)
{
    static hid_t types[FPCONV_FORMAT_COUNT];
    if (types[wide] == 0) {
        types[wide] = h5_check(H5Tcopy(h5_type(wide)), "cannot copy a datatype");
        h5_check(H5Tset_inpad(types[wide], H5T_PAD_ONE), "cannot change a datatype's padding");
    }
    return types[wide];
}

void h5_restore_values(void *conversion)
{
    const struct h5_conversion *c = conversion;
    memcpy(c->buffer, c->values, c->src_bytes);
}

void h5_run_conversion(void *conversion)
{
    const struct h5_conversion *c = conversion;
    h5_check(H5Tconvert(c->src_type, c->dst_type, c->n, c->buffer, NULL, H5P_DEFAULT),
             "H5Tconvert failed");
}

bool h5_has_general_loop(fpconv_format format)
{
    return format != FPCONV_HIF8;
}

/* -------------------------------------------------------------------------- */
/* Comparison                                                                 */
/* -------------------------------------------------------------------------- */

/* Are the loop's bits right by exact arithmetic?  Either way of breaking ties
 * counts where the library itself has both. */
static bool loop_is_nearest(fpconv_format dst, fpconv_format src, uint64_t value, uint64_t code)
{
    const bool two_ways = native_f16 && (dst == FPCONV_F16 || src == FPCONV_F16);
    return code == oracle_convert(dst, src, value, FPCONV_HDF5) ||
           (two_ways && code == oracle_convert(dst, src, value, FPCONV_OCP));
}

/* Are fpconv's bits what the profile promises, by exact arithmetic? */
static bool fpconv_is_right(fpconv_h5_profile profile, fpconv_format dst, fpconv_format src,
                            uint64_t value, uint64_t code)
{
    switch (profile) {
    case FPCONV_H5_OCP:
        return code == oracle_convert(dst, src, value, FPCONV_OCP);
    case FPCONV_H5_OCP_SAT:
        return code == oracle_convert(dst, src, value, FPCONV_OCP_SAT);
    case FPCONV_H5_REPAIRED:
        return loop_is_nearest(dst, src, value, code);
    case FPCONV_H5_IDENTICAL:
        break;
    }
    return false; /* a mismatch is what this profile rules out */
}

void h5_compare(struct h5_comparison *comparison, const struct request *request, fpconv_format dst,
                const void *loop, const void *ours, fpconv_format src, const void *values, size_t n)
{
    const size_t dst_size = fpconv_format_size(dst), src_size = fpconv_format_size(src);
    comparison->compared += n;
    for (size_t i = 0; i < n; i++) {
        const uint64_t loop_code = bench_load_code(loop, i, dst_size);
        const uint64_t code = bench_load_code(ours, i, dst_size);
        if (loop_code == code)
            continue;
        const uint64_t value = bench_load_code(values, i, src_size);
        comparison->mismatches++;
        comparison->loop_not_nearest += !loop_is_nearest(dst, src, value, loop_code);
        comparison->unjustified += !fpconv_is_right(request->profile, dst, src, value, code);
    }
}
