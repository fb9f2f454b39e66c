/*
 * fpconv - exact and fast conversion between floating-point formats
 *
 * SPDX-License-Identifier: MIT
 *
 * This header declares the core library.  It converts float64 and float32 to
 * and from the low-precision formats of machine learning, and those formats
 * into each other.  Every result is defined by two things alone, the input
 * value and a named policy; it does not depend on position, length, alignment,
 * neighbours, thread, CPU, compiler, byte order or the caller's floating-point
 * environment.  No function here allocates, locks, prints, changes the
 * floating-point environment, raises a floating-point exception or keeps a
 * pointer, and all may be called from any thread at any time.
 */
#ifndef FPCONV_FPCONV_H
#define FPCONV_FPCONV_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FPCONV_VERSION_MAJOR 0
#define FPCONV_VERSION_MINOR 1
#define FPCONV_VERSION_PATCH 0

#ifndef FPCONV_API
#if defined(__GNUC__)
#define FPCONV_API __attribute__((visibility("default")))
#else
#define FPCONV_API
#endif
#endif

/* ========================================================================== */
/*                           Formats and policies                             */
/* ========================================================================== */

/**
 * The formats.  An element is stored in the smallest whole number of bytes, in
 * the byte order of the machine: double, float, uint16_t for f16 and bf16, and
 * uint8_t for the rest.  e3m2, e2m3 and e2m1 occupy the low 6, 6 and 4 bits of
 * their byte; the bits above are written as zero and ignored when read.
 *
 *          bits exponent fraction  bias  largest finite  smallest > 0  Inf NaN
 *   f64      64       11       52  1023        1.8e308      2^-1074    yes yes
 *   f32      32        8       23   127        3.4e38       2^-149     yes yes
 *   f16      16        5       10    15          65504      2^-24      yes yes
 *   bf16     16        8        7   127        3.4e38       2^-133     yes yes
 *   e5m2      8        5        2    15          57344      2^-16      yes yes
 *   e4m3      8        4        3     7            448      2^-9       no  0x7f
 *   e3m2      6        3        2     3             28      2^-4       no  no
 *   e2m3      6        2        3     1            7.5      2^-3       no  no
 *   e2m1      4        2        1     1              6      2^-1       no  no
 *   hif8      8   tapered   3 to 0    -          32768      2^-22     0x6f 0x80
 *
 * Sources: IEEE 754-2019 (f64, f32, f16); OCP 8-bit Floating Point
 * Specification 1.0 (e5m2, e4m3); OCP Microscaling Formats 1.0 (e3m2, e2m3,
 * e2m1); arXiv 2409.16626 (hif8).
 */
typedef enum fpconv_format {
    FPCONV_F64,
    FPCONV_F32,
    FPCONV_F16,
    FPCONV_BF16,
    FPCONV_E5M2,
    FPCONV_E4M3,
    FPCONV_E3M2,
    FPCONV_E2M3,
    FPCONV_E2M1,
    FPCONV_HIF8
} fpconv_format;

/** The number of formats: valid values are 0 to FPCONV_FORMAT_COUNT - 1. */
#define FPCONV_FORMAT_COUNT 10

/**
 * The policies.  Each is a fixed rule for rounding, overflow and special
 * values.  The exact source value is rounded, once; zero keeps its sign;
 * subnormals of source and destination are exact.
 *
 * FPCONV_HDF5: what the HDF5 library's general conversion returns for one
 *   element, without its bugs.  Nearest, ties away from zero.  In every format
 *   the all-ones exponent is reserved: fraction 0 means Inf, any other NaN, so
 *   that e4m3 ends at 240, e3m2 at 14, e2m3 at 3.75 and e2m1 at 3.  A magnitude
 *   of at least twice the largest power of two becomes Inf; one below it never
 *   rounds up past the largest finite value.  A NaN becomes the NaN with every
 *   fraction bit set, and keeps its sign.
 *
 * FPCONV_OCP: nearest, ties to even; special values as in the table above.
 *   Overflow, and Inf, become Inf where the format has it, NaN in e4m3, and the
 *   largest finite value in e3m2, e2m3 and e2m1.  A NaN keeps its sign and the
 *   leading bits of its payload, and its quiet bit is set; e4m3 has one NaN
 *   (0x7f or 0xff); formats without NaN give the positive largest finite value.
 *
 * FPCONV_OCP_SAT: as FPCONV_OCP, but overflow and Inf become the largest finite
 *   value with the sign of the source.
 *
 * Two formats have rules of their own.  f32 and f64 are wide: they never
 * saturate, and double to float is the IEEE 754 conversion, ties to even,
 * overflow to Inf, in every policy.  hif8 always rounds ties away from zero,
 * saturates finite overflow to +-32768, keeps Inf and NaN, and has no negative
 * zero, in every policy.
 */
typedef enum fpconv_policy { FPCONV_HDF5, FPCONV_OCP, FPCONV_OCP_SAT } fpconv_policy;

/** The number of policies: valid values are 0 to FPCONV_POLICY_COUNT - 1. */
#define FPCONV_POLICY_COUNT 3

/** What a function reports.  FPCONV_OK is 0. */
typedef enum fpconv_status {
    FPCONV_OK,
    FPCONV_ERROR_FORMAT,      /**< a format is not one of enum fpconv_format */
    FPCONV_ERROR_POLICY,      /**< the policy is not one of enum fpconv_policy */
    FPCONV_ERROR_UNSUPPORTED, /**< a valid request that this version does not serve */
    FPCONV_ERROR_NULL,        /**< a buffer is NULL although n > 0 */
    FPCONV_ERROR_OVERLAP,     /**< the buffers overlap and are not the same */
    FPCONV_ERROR_SIZE,        /**< the byte count does not fit in size_t */
    FPCONV_ERROR_STRIDE,      /**< elements of the destination overlap each other */
    FPCONV_ERROR_SCHEME       /**< a scaling scheme or its scale rule is not valid */
} fpconv_status;

/** A sentence for a status, in English, static; never NULL. */
FPCONV_API const char *fpconv_strerror(fpconv_status status);

/** "f32", "e4m3", ...; NULL if `format` is not one of enum fpconv_format. */
FPCONV_API const char *fpconv_format_name(fpconv_format format);

/** "hdf5", "ocp" or "ocp_sat"; NULL if `policy` is not one of enum fpconv_policy. */
FPCONV_API const char *fpconv_policy_name(fpconv_policy policy);

/** Bytes that one stored element occupies: 8, 4, 2 or 1; 0 for an unknown format. */
FPCONV_API size_t fpconv_format_size(fpconv_format format);

/** Bits that carry information in one element: 64 to 4; 0 for an unknown format. */
FPCONV_API unsigned fpconv_format_bits(fpconv_format format);

/**
 * The instruction set in use: "portable", "sse2", "avx2", "avx512" or "neon".
 * It is chosen once, at the first conversion, as the best one that this CPU
 * offers, or the one that the environment variable FPCONV_CPU names (where the
 * CPU lacks that one, the best it offers below it; another architecture's counts
 * for nothing).  Results do not depend on it.
 */
FPCONV_API const char *fpconv_cpu_name(void);

/* ========================================================================== */
/*                                  Arrays                                    */
/* ========================================================================== */

/**
 * Converts `n` elements, contiguous on both sides, between any two formats.
 *
 * `src` holds n * fpconv_format_size(src_format) bytes and `dst` receives
 * n * fpconv_format_size(dst_format) bytes, with any alignment.  The two ranges
 * either do not overlap, or dst == src: then the conversion is done in place,
 * whichever side is wider, in a buffer large enough for the wider one.
 * With n == 0 both pointers may be NULL.
 *
 * Returns FPCONV_OK, or why nothing was written: FPCONV_ERROR_FORMAT,
 * _POLICY, _SIZE, _NULL or _OVERLAP.
 */
FPCONV_API fpconv_status fpconv_convert(fpconv_format dst_format, void *dst,
                                        fpconv_format src_format, const void *src, size_t n,
                                        fpconv_policy policy);

/**
 * Converts `n` elements that lie `dst_stride` and `src_stride` bytes apart.
 *
 * A stride may be negative, element i is at dst + i * dst_stride, and need not
 * be a multiple of the element's size; src_stride may be 0 (one value for all)
 * or smaller than an element.  Bytes between elements are not touched.
 *
 * What may overlap: nothing; or dst == src with strides of the same sign, each
 * at least as large as its element (conversion in place); or two fields of the
 * same records, that is equal strides and no byte shared by a source and a
 * destination element.
 *
 * Returns as fpconv_convert, and FPCONV_ERROR_STRIDE if n > 1 and |dst_stride|
 * is less than the size of a destination element.
 */
FPCONV_API fpconv_status fpconv_convert_strided(fpconv_format dst_format, void *dst,
                                                ptrdiff_t dst_stride, fpconv_format src_format,
                                                const void *src, ptrdiff_t src_stride, size_t n,
                                                fpconv_policy policy);

/* ========================================================================== */
/*                                Single values                               */
/* ========================================================================== */

/**
 * The code of `value` in `format`, in the low bits.  UINT32_MAX, which no
 * format of up to 16 bits produces, if the format or the policy is unknown or
 * the format is FPCONV_F64, whose codes do not fit.
 */
FPCONV_API uint32_t fpconv_encode(fpconv_format format, double value, fpconv_policy policy);

/**
 * The value of a code, exact for every format; bits above the format's own are
 * ignored.  NaN if the format or the policy is unknown or the format is
 * FPCONV_F64.
 */
FPCONV_API double fpconv_decode(fpconv_format format, uint32_t code, fpconv_policy policy);

/*
 * Typed functions.  For every format below there are, for f32 and f64 alike:
 *
 *   uint8_t fpconv_f32_to_e4m3(float value, fpconv_policy policy);
 *   float   fpconv_e4m3_to_f32(uint8_t code, fpconv_policy policy);
 *   fpconv_status fpconv_f32_to_e4m3_n(uint8_t *dst, const float *src, size_t n,
 *                                      fpconv_policy policy);
 *   fpconv_status fpconv_e4m3_to_f32_n(float *dst, const uint8_t *src, size_t n,
 *                                      fpconv_policy policy);
 *
 * The arrays follow the rules of fpconv_convert.  The scalar functions return
 * what the array functions store; an unknown policy counts as FPCONV_HDF5.
 * f64 is rounded once, never through f32.
 */
#define FPCONV_DECLARE_PAIR_(dst_name, dst_type, src_name, src_type)                             \
    FPCONV_API dst_type fpconv_##src_name##_to_##dst_name(src_type value, fpconv_policy policy); \
    FPCONV_API fpconv_status fpconv_##src_name##_to_##dst_name##_n(                              \
        dst_type *dst, const src_type *src, size_t n, fpconv_policy policy);

#define FPCONV_DECLARE_FORMAT_(name, code_type)        \
    FPCONV_DECLARE_PAIR_(name, code_type, f32, float)  \
    FPCONV_DECLARE_PAIR_(f32, float, name, code_type)  \
    FPCONV_DECLARE_PAIR_(name, code_type, f64, double) \
    FPCONV_DECLARE_PAIR_(f64, double, name, code_type)

FPCONV_DECLARE_PAIR_(f32, float, f64, double)
FPCONV_DECLARE_PAIR_(f64, double, f32, float)
FPCONV_DECLARE_FORMAT_(f16, uint16_t)
FPCONV_DECLARE_FORMAT_(bf16, uint16_t)
FPCONV_DECLARE_FORMAT_(e5m2, uint8_t)
FPCONV_DECLARE_FORMAT_(e4m3, uint8_t)
FPCONV_DECLARE_FORMAT_(e3m2, uint8_t)
FPCONV_DECLARE_FORMAT_(e2m3, uint8_t)
FPCONV_DECLARE_FORMAT_(e2m1, uint8_t)
FPCONV_DECLARE_FORMAT_(hif8, uint8_t)

#undef FPCONV_DECLARE_FORMAT_
#undef FPCONV_DECLARE_PAIR_

#ifdef __cplusplus
}
#endif

#endif /* FPCONV_FPCONV_H */
