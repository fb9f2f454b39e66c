/*
 * fpconv_h5_scaled - scaled tensors in HDF5
 *
 * SPDX-License-Identifier: MIT
 *
 * A scaled tensor (fpconv/scaled.h) is stored as a group: the packed codes, the
 * scales, and attributes that say what they are.  docs/scaled.md describes the
 * group completely, so that it can be read without this library.
 *
 * A failure leaves a message on HDF5's error stack, and in
 * fpconv_h5_last_error().
 */
#ifndef FPCONV_FPCONV_H5_SCALED_H
#define FPCONV_FPCONV_H5_SCALED_H

#include "fpconv/fpconv_h5.h"
#include "fpconv/scaled.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the group's layout that is written. */
#define FPCONV_H5_SCALED_VERSION 1

/**
 * Quantizes a tensor and stores it as the new group `name` below `location`.
 *
 * `buf` holds the tensor in row-major order, dims[0] to dims[rank - 1] elements
 * of `mem_format` (f64, f32, f16 or bf16) without gaps; rank is at least 1.  Rows,
 * blocks and columns are those of the last axis: the tensor is a matrix of
 * dims[rank - 1] columns by all the other axes.  With FPCONV_NVFP4 a tensor scale
 * of 0 stands for the one that fpconv_tensor_scale() gives.  FPCONV_SCALE_GIVEN
 * is not possible here.
 *
 * `create_list` is a dataset creation property list, or H5P_DEFAULT, for the
 * codes and for the scales of blocks: storage layout, filters and so on.  The
 * dimensions of a chunk are given in elements of the tensor, as for a plain
 * dataset; its last one has to be a whole number of blocks, or of bytes of packed
 * codes, unless it spans the axis.
 *
 * Memory for the codes and the scales is allocated while this runs.  Returns a
 * negative value on failure; then there is no group.
 */
FPCONV_API herr_t fpconv_h5_write_scaled(hid_t location, const char *name, hid_t create_list,
                                         const fpconv_scheme *scheme, int rank, const hsize_t *dims,
                                         fpconv_format mem_format, const void *buf);

/** What a group holds. */
typedef struct fpconv_h5_scaled {
    fpconv_scheme scheme; /**< dot_length is 0 where it is not stored */
    int rank;
    hsize_t dims[H5S_MAX_RANK]; /**< of the tensor, in elements */
} fpconv_h5_scaled;

/**
 * Describes the scaled tensor stored as group `name`, into *info.
 *
 * Returns a negative value, with a message that says what is wrong, if there is
 * no such group, or if it is not a scaled tensor of a known version with codes
 * and scales of the right types and shapes.
 */
FPCONV_API herr_t fpconv_h5_inspect_scaled(hid_t location, const char *name,
                                           fpconv_h5_scaled *info);

/**
 * Reads the block of `count` elements from `start` on along each axis, or all
 * where both are NULL, dequantized to `mem_format` (f64, f32, f16 or bf16), into
 * `buf` in row-major order without gaps.  Only the parts of the codes and scales
 * that the block needs are read, and so are only the chunks that hold them.
 *
 * Returns a negative value on failure, as fpconv_h5_inspect_scaled() or if the
 * block is not inside the tensor.
 */
FPCONV_API herr_t fpconv_h5_read_scaled(hid_t location, const char *name, const hsize_t *start,
                                        const hsize_t *count, fpconv_format mem_format, void *buf);

#ifdef __cplusplus
}
#endif

#endif /* FPCONV_FPCONV_H5_SCALED_H */
