/*
 * portable.c - the codec in a loop, for every CPU
 *
 * SPDX-License-Identifier: MIT
 */
#include "../bits.h"
#include "../codec.h"
#include "kernels.h"
#include "packing.h"

/* Formats and policy are constants wherever this is called: the rows fold. */
static inline __attribute__((always_inline)) void convert_loop(fpconv_format dst_format, char *dst,
                                                               fpconv_format src_format,
                                                               const char *src, size_t n,
                                                               fpconv_policy policy)
{
    const size_t dst_size = fp_formats[dst_format].size;
    const size_t src_size = fp_formats[src_format].size;
    for (size_t i = 0; i < n; i++) {
        const uint64_t code = bits_load(src + i * src_size, src_size);
        bits_store(dst + i * dst_size, dst_size,
                   fp_convert_code(dst_format, src_format, code, policy));
    }
}

#define DEFINE_KERNEL(DST, SRC, POLICY)                                         \
    static void SRC##_to_##DST##_##POLICY(void *dst, const void *src, size_t n) \
    {                                                                           \
        convert_loop(FPCONV_##DST, dst, FPCONV_##SRC, src, n, FPCONV_##POLICY); \
    }
#define DEFINE_POLICIES(DST, SRC) \
    DEFINE_KERNEL(DST, SRC, HDF5) \
    DEFINE_KERNEL(DST, SRC, OCP)  \
    DEFINE_KERNEL(DST, SRC, OCP_SAT)
#define DEFINE_BOTH(NAME, ...) \
    DEFINE_POLICIES(NAME, F32) \
    DEFINE_POLICIES(NAME, F64) \
    DEFINE_POLICIES(F32, NAME) \
    DEFINE_POLICIES(F64, NAME)

DEFINE_POLICIES(F32, F32)
DEFINE_POLICIES(F32, F64)
DEFINE_POLICIES(F64, F32)
DEFINE_POLICIES(F64, F64)
FPCONV_NARROW_FORMATS(DEFINE_BOTH)

#define POLICIES(DST, SRC)                                                    \
    {                                                                         \
        SRC##_to_##DST##_HDF5, SRC##_to_##DST##_OCP, SRC##_to_##DST##_OCP_SAT \
    }
#define ROW_TO_F32(NAME, ...) [FPCONV_##NAME] = POLICIES(F32, NAME),
#define ROW_TO_F64(NAME, ...) [FPCONV_##NAME] = POLICIES(F64, NAME),
#define ROW_FROM_WIDE(NAME, ...)            \
    [FPCONV_##NAME] = {                     \
        [FPCONV_F32] = POLICIES(NAME, F32), \
        [FPCONV_F64] = POLICIES(NAME, F64), \
    },

static const fp_kernel_table table = {[FPCONV_F32] = {FPCONV_FORMATS(ROW_TO_F32)},
                                      [FPCONV_F64] = {FPCONV_FORMATS(ROW_TO_F64)},
                                      FPCONV_NARROW_FORMATS(ROW_FROM_WIDE)};

static const struct fp_block_kernels block_kernels = {pack_4,   unpack_4, pack_6,
                                                      unpack_6, NULL,     NULL};

const struct fp_kernels fp_kernels_portable = {"portable", &table, NULL,
                                               NULL,       NULL,   &block_kernels};
