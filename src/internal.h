/*
 * internal.h - what the HDF5 plugin asks of the core beyond its public interface
 *
 * SPDX-License-Identifier: MIT
 *
 * Exported from the library, but for nobody else: not installed, and it may change with any
 * version, which the plugin shares.
 */
#ifndef FPCONV_SRC_INTERNAL_H
#define FPCONV_SRC_INTERNAL_H

#include "formats.h"

/*
 * As fpconv_convert_strided, for arguments that are known to be good; to formats of 16 bits
 * and fewer, hif8 apart, also by the policies of formats.h that lose carries.  In place, dst
 * may be lower than src, if no element grows: what is read is read before it is overwritten.
 */
FPCONV_API void fp_convert(fpconv_format dst_format, void *dst, ptrdiff_t dst_stride,
                           fpconv_format src_format, const void *src, ptrdiff_t src_stride,
                           size_t n, fpconv_policy policy);

/*
 * Of n packed elements, converts by FPCONV_HDF5 as many as come before the first whose result is
 * no normal number, or the smallest one, or some fewer; returns how many.  0 for pairs for which
 * that takes as long as to look at the results.  In place as fp_convert.
 */
FPCONV_API size_t fp_convert_while_normal(fpconv_format dst_format, void *dst,
                                          fpconv_format src_format, const void *src, size_t n);

#endif /* FPCONV_SRC_INTERNAL_H */
