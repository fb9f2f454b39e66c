/*
 * fpconv/pack.h - packed storage of the formats that are narrower than a byte
 *
 * SPDX-License-Identifier: MIT
 *
 * fpconv_convert gives every e2m1, e3m2 and e2m3 element a byte of its own.
 * Packed, element i of a format of w bits occupies bits w*i to w*i + w - 1 of
 * the array, where bit b is bit b % 8 of byte b / 8, the least significant bit
 * of a byte being bit 0:
 *
 *   e2m1         two to a byte, the even index in the low four bits
 *   e3m2, e2m3   four to three bytes, little-endian
 *
 * The bits after the last element, up to the end of its byte, are written as
 * zero and ignored when read.  A format of whole bytes is its own packed form.
 * The layout is that of the packed FP4 and FP6 arrays of the OCP Microscaling
 * ecosystem, and does not depend on the machine's byte order.
 */
#ifndef FPCONV_PACK_H
#define FPCONV_PACK_H

#include "fpconv/fpconv.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The bytes that `n` packed elements occupy: ceil(n * bits / 8).  0 for an
 * unknown format, SIZE_MAX if the number does not fit in size_t.
 */
FPCONV_API size_t fpconv_packed_size(fpconv_format format, size_t n);

/**
 * Packs `n` codes, one to a byte in `src`, into fpconv_packed_size(format, n)
 * bytes at `dst`.  The unused high bits of a code are ignored.  A format of
 * whole bytes is copied, NaN payloads included.
 *
 * The ranges do not overlap, or dst == src: then it is done in place.  Any
 * alignment; with n == 0 both pointers may be NULL.  Returns FPCONV_OK, or why
 * nothing was written: FPCONV_ERROR_FORMAT, _SIZE, _NULL or _OVERLAP.
 */
FPCONV_API fpconv_status fpconv_pack(fpconv_format format, void *dst, const void *src, size_t n);

/**
 * The inverse of fpconv_pack: `n` packed elements at `src` become `n` codes, one
 * to a byte, at `dst`.  Rules and errors as there; in place the buffer holds the
 * larger, unpacked side.
 */
FPCONV_API fpconv_status fpconv_unpack(fpconv_format format, void *dst, const void *src, size_t n);

/**
 * fpconv_convert and fpconv_pack in one pass over memory: `n` elements of
 * `src_format`, unpacked, become `n` packed elements of `dst_format`.
 *
 * In place (dst == src) too.  Errors as fpconv_convert.
 */
FPCONV_API fpconv_status fpconv_convert_to_packed(fpconv_format dst_format, void *dst,
                                                  fpconv_format src_format, const void *src,
                                                  size_t n, fpconv_policy policy);

/**
 * fpconv_unpack and fpconv_convert in one pass over memory: `n` packed elements
 * of `src_format` become `n` elements of `dst_format`, unpacked.
 *
 * In place (dst == src) too.  Errors as fpconv_convert.
 */
FPCONV_API fpconv_status fpconv_convert_from_packed(fpconv_format dst_format, void *dst,
                                                    fpconv_format src_format, const void *src,
                                                    size_t n, fpconv_policy policy);

#ifdef __cplusplus
}
#endif

#endif /* FPCONV_PACK_H */
