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

#include "../formats.h"

/*
 * Converts n contiguous elements.  The buffers do not overlap, or dst == src: every
 * element is read before anything is stored at its place.  Any n, any alignment.
 */
typedef void fp_kernel(void *dst, const void *src, size_t n);

typedef fp_kernel *fp_kernel_table[FPCONV_FORMAT_COUNT][FPCONV_FORMAT_COUNT][FP_POLICY_COUNT];

/*
 * Converts by FPCONV_HDF5 up to the first block of which a result is no normal number or the
 * smallest one, and returns how many elements that are; or whole blocks.  Then dst may also
 * lie before src, if elements shrink.
 */
typedef size_t fp_while_normal_kernel(void *dst, const void *src, size_t n);

typedef fp_while_normal_kernel *fp_while_normal_table[FPCONV_FORMAT_COUNT][FPCONV_FORMAT_COUNT];

/*
 * Elements of records, `stride` bytes apart, to and from a tile, where they are
 * contiguous, by whole cache lines.  A stride is larger than an element and one that
 * fp_record_lines knows.  No byte of the records that is not an element's is accessed.
 */
enum { FP_LINE_BYTES = 64, FP_RECORD_LINES_MAX = 4 };

/* A period: so many lines after which records lie in them as before, 3 for records of 3, 6,
 * 12 and 24 bytes, 4 for those of 2, 4, 8 and 16.  0 for others: of 32 bytes, into others,
 * some pairs take longer by lines than an element at a time. */
static inline size_t fp_record_lines(size_t stride)
{
    if (stride < 2 || stride > 24)
        return 0;
    while (stride % 2 == 0)
        stride /= 2;
    return stride == 1 ? 4 : stride == 3 ? 3 : 0;
}

/* How elements lie in the lines of a period and in the part of the tile that has them. */
struct fp_record_map {
    size_t lines, elements, tile_bytes;      /* of a period */
    bool are_apart;                          /* no two lines have elements in the same places */
    bool are_even;                           /* elements are whole pairs of a line's bytes */
    uint64_t bytes[FP_RECORD_LINES_MAX];     /* of each line a bit for each of the elements' */
    uint32_t stored[FP_RECORD_LINES_MAX][2]; /* as stores take them: pairs, or two halves */
    size_t in_tile[FP_RECORD_LINES_MAX];     /* where they start there */
    size_t source[FP_RECORD_LINES_MAX];      /* where the vector starts that has them */
    uint8_t order[FP_RECORD_LINES_MAX][FP_LINE_BYTES];
};

/*
 * `first` is the byte of a record with which the lines begin.  The tile begins with the
 * first byte of theirs that is an element's, be it in the middle of one, and may be read
 * and written FP_LINE_BYTES beyond the periods' elements.
 *
 * Lines that are `ahead` bytes further on are fetched meanwhile (0: none): by scattering the
 * first two of each period or all, by gathering the others.
 */
struct fp_record_kernels {
    void (*map_gather)(struct fp_record_map *map, size_t first, size_t stride, size_t size);
    void (*map_scatter)(struct fp_record_map *map, size_t first, size_t stride, size_t size);
    void (*gather)(void *restrict tile, const void *restrict lines, const struct fp_record_map *map,
                   size_t periods, ptrdiff_t ahead);
    void (*scatter)(void *restrict lines, const void *restrict tile,
                    const struct fp_record_map *map, size_t periods, ptrdiff_t ahead,
                    bool fetches_all);
};

/* So few elements are faster by the codec than as a block that is copied. */
enum { CODEC_ELEMENTS_MAX = 3 };

/* Converts n elements of these sizes by `kernel`, and stores the results past the
 * caches.  The buffers do not overlap. */
typedef void fp_convert_streamed(fp_kernel *kernel, void *restrict dst, size_t dst_size,
                                 const void *restrict src, size_t src_size, size_t n);

/*
 * table[dst][src][policy].  NULL: this instruction set has nothing better than
 * the level below it.  The portable level has f64 and f32 to and from every
 * format; pairs that no level has go through f32, which holds every value of
 * every format but f64 exactly, so that nothing is rounded twice.  The policies that lose
 * carries are for the pairs that round to a narrow format but hif8.
 */
struct fp_kernels {
    const char *name;
    const fp_kernel_table *table;
    const fp_while_normal_table *while_normal; /* NULL, and its members: none */
    const struct fp_record_kernels *records;   /* NULL: an element at a time */
    fp_convert_streamed *convert_streamed;     /* NULL: no such stores */
    const struct fp_block_kernels *blocks;     /* never NULL */
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
