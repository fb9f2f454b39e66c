/*
 * kernels.h - the dispatch table: who converts an array of which pair
 *
 * SPDX-License-Identifier: MIT
 *
 * One struct fp_kernels an instruction set.  convert.c looks a kernel up and
 * calls it; it does not know what is behind.
 */
#ifndef FPCONV_SRC_KERNELS_KERNELS_H
#define FPCONV_SRC_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fpconv/fpconv.h"

/*
 * Converts n contiguous elements.  The buffers do not overlap, or dst == src
 * and the destination's elements are no wider than the source's: every element
 * is read before anything is stored at or beyond its place.  Any n, any alignment.
 */
typedef void fp_kernel(void *dst, const void *src, size_t n);

typedef fp_kernel *fp_kernel_table[FPCONV_FORMAT_COUNT][FPCONV_FORMAT_COUNT][FPCONV_POLICY_COUNT];

/*
 * How elements of `size` bytes, a stride apart on either side, are copied by the
 * vector: as many at a time as lie within one, by a permutation that is the same for
 * each group.  Made once a call.
 */
struct fp_record_map {
    size_t size, elements; /* of a group */
    struct fp_record_side {
        size_t stride;
        uint64_t bytes; /* a bit for each of a group's */
    } to, from;
    uint8_t order[64]; /* for each byte of `to`, its place in `from` */
};

/* `to` and `from` strides are at least `size` and at most FP_VECTOR_STRIDE_MAX. */
typedef void fp_map_records(struct fp_record_map *map, size_t to_stride, size_t from_stride,
                            size_t size);

/* Copies n elements.  No byte that is not an element's is accessed. */
typedef void fp_copy_records(void *restrict to, const void *restrict from,
                             const struct fp_record_map *map, size_t n);

enum { FP_VECTOR_STRIDE_MAX = 32 };

/* So few elements are faster by the codec than as a vector of their own. */
enum { CODEC_ELEMENTS_MAX = 3 };

/* Converts n elements of these sizes by `kernel`, and stores the results past the
 * caches.  The buffers do not overlap. */
typedef void fp_convert_streamed(fp_kernel *kernel, void *restrict dst, size_t dst_size,
                                 const void *restrict src, size_t src_size, size_t n);

/*
 * table[dst][src][policy].  NULL: this instruction set has nothing better than
 * the level below it.  The portable level has f64 and f32 to and from every
 * format; pairs that no level has go through f32, which holds every value of
 * every format but f64 exactly, so that nothing is rounded twice.
 */
struct fp_kernels {
    const char *name;
    const fp_kernel_table *table;
    fp_map_records *map_records;           /* NULL: an element at a time */
    fp_copy_records *copy_records;         /* NULL where that is */
    fp_convert_streamed *convert_streamed; /* NULL: no such stores */
    const struct fp_block_kernels *blocks; /* never NULL */
};

typedef uint32_t fp_mx_quantize(void *restrict codes, uint8_t *restrict scales,
                                const void *restrict src, size_t blocks, bool ceil);

/*
 * Packing and blocks; a level has all members of a kind or none.
 *
 * pack_4 to unpack_6: n codes of 4 or 6 bits, one to a byte, to and from packed
 * bytes.
 *
 * mx_quantize[element]: `blocks` blocks of 32 f32, up to 32 and a multiple of 4, to
 * codes, one to a byte, and E8M0 scales, chosen by FPCONV_SCALE_FLOOR or, if `ceil`,
 * FPCONV_SCALE_CEIL.
 *
 * mx_products: up to 32 blocks of f32 elements, multiplied in place by E8M0
 * scales.
 *
 * Both return a bit for each block that they leave to the caller, whose results
 * mean nothing (mx_quantize) or which is unchanged (mx_products).
 */
struct fp_block_kernels {
    void (*pack_4)(void *restrict dst, const void *restrict src, size_t n);
    void (*unpack_4)(void *restrict dst, const void *restrict src, size_t n);
    void (*pack_6)(void *restrict dst, const void *restrict src, size_t n);
    void (*unpack_6)(void *restrict dst, const void *restrict src, size_t n);
    fp_mx_quantize *mx_quantize[FPCONV_FORMAT_COUNT];
    uint32_t (*mx_products)(void *values, const uint8_t *scales, size_t blocks);
};

extern const struct fp_kernels fp_kernels_portable;
#if defined(__x86_64__)
extern const struct fp_kernels fp_kernels_sse2;
extern const struct fp_kernels fp_kernels_avx2;
extern const struct fp_kernels fp_kernels_avx512;
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define FPCONV_HAS_NEON
extern const struct fp_kernels fp_kernels_neon;
#endif

#endif /* FPCONV_SRC_KERNELS_KERNELS_H */
