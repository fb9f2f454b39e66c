/*
 * packing.h - codes of 4 and 6 bits, one to a byte, to and from packed bytes
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FPCONV_SRC_KERNELS_PACKING_H
#define FPCONV_SRC_KERNELS_PACKING_H

#include <stddef.h>
#include <stdint.h>

#include "fpconv/fpconv.h"

/*
 * Any n, any alignment; the buffers do not overlap, and the format is one of
 * those narrower than a byte.
 */
void fp_pack_codes(fpconv_format format, void *restrict dst, const void *restrict src, size_t n);
void fp_unpack_codes(fpconv_format format, void *restrict dst, const void *restrict src, size_t n);

#endif /* FPCONV_SRC_KERNELS_PACKING_H */
