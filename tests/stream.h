/*
 * stream.h - elements of one format with what they become in another
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FPCONV_TESTS_STREAM_H
#define FPCONV_TESTS_STREAM_H

#include "support.h"

enum { STREAM_COUNT = 65 * 64 };

/*
 * Blocks of 64 elements have a flavour: any bits, values and midpoints of the
 * destination with their neighbours, ordinary numbers, subnormal results,
 * specials, or all of these mixed.
 */
struct stream {
    fpconv_format dst, src;
    fpconv_policy policy;
    size_t dst_size, src_size;
    uint64_t codes[STREAM_COUNT];
    uint64_t wants[STREAM_COUNT];
    /* the same as elements in memory */
    uint8_t code_bytes[STREAM_COUNT * 8];
    uint8_t want_bytes[STREAM_COUNT * 8];
};

/* What the elements become comes from the oracle; the library's scalar functions
 * have to agree. */
void fill_stream(struct stream *stream, fpconv_format dst, fpconv_format src, fpconv_policy policy);

#endif /* FPCONV_TESTS_STREAM_H */
