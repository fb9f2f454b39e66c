"""Generates the C source of the bindings, fpconv._core and fpconv._plugin

SPDX-License-Identifier: MIT

    binding.py _core|_plugin OUTPUT

cffi's API mode: what is declared here is compiled against our headers, and the
compiler refuses what disagrees with them.  Every call releases the GIL.
"""
import sys

import cffi

FORMATS = """
typedef enum { FPCONV_F64, FPCONV_F32, FPCONV_F16, FPCONV_BF16, FPCONV_E5M2, FPCONV_E4M3,
               FPCONV_E3M2, FPCONV_E2M3, FPCONV_E2M1, FPCONV_HIF8 } fpconv_format;
"""

CORE = """
typedef enum { FPCONV_HDF5, FPCONV_OCP, FPCONV_OCP_SAT } fpconv_policy;
typedef enum { FPCONV_OK, FPCONV_ERROR_UNSUPPORTED, FPCONV_ERROR_SCHEME, ... } fpconv_status;

#define FPCONV_FORMAT_COUNT ...
#define FPCONV_POLICY_COUNT ...
#define FPCONV_VERSION_MAJOR ...
#define FPCONV_VERSION_MINOR ...
#define FPCONV_VERSION_PATCH ...

const char *fpconv_strerror(fpconv_status status);
const char *fpconv_format_name(fpconv_format format);
const char *fpconv_policy_name(fpconv_policy policy);
size_t fpconv_format_size(fpconv_format format);
unsigned fpconv_format_bits(fpconv_format format);
const char *fpconv_cpu_name(void);

fpconv_status fpconv_convert(fpconv_format dst_format, void *dst, fpconv_format src_format,
                             const void *src, size_t n, fpconv_policy policy);
fpconv_status fpconv_convert_strided(fpconv_format dst_format, void *dst, ptrdiff_t dst_stride,
                                     fpconv_format src_format, const void *src,
                                     ptrdiff_t src_stride, size_t n, fpconv_policy policy);
double fpconv_decode(fpconv_format format, uint32_t code, fpconv_policy policy);

size_t fpconv_packed_size(fpconv_format format, size_t n);
fpconv_status fpconv_pack(fpconv_format format, void *dst, const void *src, size_t n);
fpconv_status fpconv_unpack(fpconv_format format, void *dst, const void *src, size_t n);

typedef enum { FPCONV_MX, FPCONV_NVFP4, FPCONV_PER_TENSOR, FPCONV_PER_ROW, FPCONV_PER_COLUMN,
               FPCONV_POW2_ROW, FPCONV_POW2_COLUMN } fpconv_scaling;
typedef enum { FPCONV_SCALE_FLOOR, FPCONV_SCALE_CEIL, FPCONV_SCALE_AMAX,
               FPCONV_SCALE_GIVEN } fpconv_scale_rule;
typedef struct {
    fpconv_scaling scaling;
    fpconv_format element;
    fpconv_scale_rule rule;
    float tensor_scale;
    size_t dot_length;
} fpconv_scheme;

#define FPCONV_SCALING_COUNT ...
#define FPCONV_SCALE_RULE_COUNT ...

const char *fpconv_scaling_name(fpconv_scaling scaling);
const char *fpconv_scale_rule_name(fpconv_scale_rule rule);
size_t fpconv_scaling_block(fpconv_scaling scaling);
size_t fpconv_scale_size(fpconv_scaling scaling);
size_t fpconv_scale_count(fpconv_scaling scaling, size_t rows, size_t columns);
fpconv_status fpconv_quantize(const fpconv_scheme *scheme, size_t rows, size_t columns,
                              void *codes, ptrdiff_t codes_stride, void *scales,
                              fpconv_format src_format, const void *src, ptrdiff_t src_stride);
fpconv_status fpconv_dequantize(const fpconv_scheme *scheme, size_t rows, size_t columns,
                                fpconv_format dst_format, void *dst, ptrdiff_t dst_stride,
                                const void *codes, ptrdiff_t codes_stride, const void *scales);
fpconv_status fpconv_tensor_scale(float *tensor_scale, size_t rows, size_t columns,
                                  fpconv_format src_format, const void *src,
                                  ptrdiff_t src_stride);

enum fp_specials { SPECIALS_IEEE, SPECIALS_NAN_ONLY, SPECIALS_NONE, SPECIALS_TAPERED };
struct fp_format {
    const char *name;
    uint8_t size;
    uint8_t exponent_bits;
    uint8_t fraction_bits;
    int16_t bias;
    enum fp_specials specials;
};
static const struct fp_format fp_formats[10];
"""

# The library's own table of formats is not public, but this is the same source tree.
CORE_INCLUDES = """
#include "fpconv/fpconv.h"
#include "fpconv/pack.h"
#include "fpconv/scaled.h"
#include "formats.h"
"""

PLUGIN = """
typedef int... herr_t;
typedef enum { H5T_ORDER_LE, H5T_ORDER_BE, H5T_ORDER_NONE, ... } H5T_order_t;
typedef enum { FPCONV_H5_REPAIRED, FPCONV_H5_IDENTICAL, FPCONV_H5_OCP,
               FPCONV_H5_OCP_SAT } fpconv_h5_profile;
typedef enum { FPCONV_H5_REASON_SAME, ... } fpconv_h5_reason;
enum { FPCONV_H5_BUG_LOST_CARRY, FPCONV_H5_BUG_STICKY_CARRY, ... };

#define FPCONV_H5_PROFILE_COUNT ...
#define FPCONV_H5_PAIR_MAX ...

typedef struct {
    fpconv_format src, dst;
    H5T_order_t src_order, dst_order;
    int registered;
    fpconv_h5_reason reason;
    unsigned probes;
    unsigned differed;
    unsigned bugs;
} fpconv_h5_pair_report;

typedef struct {
    fpconv_h5_profile profile;
    unsigned library_version[3];
    unsigned pair_count;
    unsigned registered_count;
    fpconv_h5_pair_report pairs[...];
} fpconv_h5_report;

const char *fpconv_h5_profile_name(fpconv_h5_profile profile);
const char *fpconv_h5_reason_text(fpconv_h5_reason reason);
herr_t fpconv_h5_register_profile(fpconv_h5_profile profile, fpconv_h5_report *report);
herr_t fpconv_h5_unregister(void);
const char *fpconv_h5_last_error(void);
"""

PLUGIN_INCLUDES = """
#include "fpconv/fpconv_h5.h"
"""

MODULES = {"_core": (CORE, CORE_INCLUDES), "_plugin": (PLUGIN, PLUGIN_INCLUDES)}


def main() -> None:
    name, output = sys.argv[1:]
    declarations, includes = MODULES[name]
    ffi = cffi.FFI()
    ffi.cdef(FORMATS + declarations)
    ffi.set_source(f"fpconv.{name}", includes)
    ffi.emit_c_code(output)


if __name__ == "__main__":
    main()
