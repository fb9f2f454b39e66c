/*
 * portable.c - the codec in a loop, and hif8 by tables, for every CPU
 *
 * SPDX-License-Identifier: MIT
 */
#include "../bits.h"
#include "../codec.h"
#include "hif8_tables.h"
#include "kernels.h"
#include "packing.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Elements that grow are taken from the last one on, lest they overwrite others in place. */
ALWAYS_INLINE size_t element_at(size_t turn, size_t n, bool grow)
{
    return grow ? n - 1 - turn : turn;
}

/* -------------------------------------------------------------------------- */
/* hif8 by tables: 0.3 to 1.2 ns an element where the codec takes 12 to 18    */
/* -------------------------------------------------------------------------- */

ALWAYS_INLINE uint8_t hif8_from_f32(const struct hif8_scalar_tables *tables, uint32_t f32)
{
    const bool is_nan = (f32 & 0x7fffffff) > 0x7f800000;
    return is_nan ? HIF8_NAN : tables->code[f32 >> 16];
}

/* By the f32 of the same leading bits, or the nearest exponent that there is. */
ALWAYS_INLINE uint8_t hif8_from_f64(const struct hif8_scalar_tables *tables, uint64_t f64)
{
    enum { INF_INDEX = 0x7f80 >> 3, REBIAS = (1023 - 127) << 4 };
    const uint64_t inf = UINT64_C(0x7ff) << 52, magnitude = f64 & INT64_MAX;
    const int32_t leading = (int32_t)(magnitude >> 48) - REBIAS;
    int32_t index = leading < 0 ? 0 : leading < INF_INDEX ? leading : INF_INDEX - 1;
    if (magnitude >= inf)
        index = INF_INDEX;
    return magnitude > inf ? HIF8_NAN : tables->code[((int32_t)(f64 >> 63) << 12 | index) << 3];
}

/* One side is hif8, the other f32 or f64. */
ALWAYS_INLINE void convert_hif8_loop(const struct hif8_scalar_tables *tables,
                                     fpconv_format dst_format, char *dst, fpconv_format src_format,
                                     const char *src, size_t n, fpconv_policy policy)
{
    const size_t dst_size = fp_formats[dst_format].size;
    const size_t src_size = fp_formats[src_format].size;
    for (size_t turn = 0; turn < n; turn++) {
        const size_t i = element_at(turn, n, dst_size > src_size);
        const uint64_t code = bits_load(src + i * src_size, src_size);
        uint64_t result;
        if (src_format == FPCONV_F32)
            result = hif8_from_f32(tables, (uint32_t)code);
        else if (src_format == FPCONV_F64)
            result = hif8_from_f64(tables, code);
        else if (dst_format == FPCONV_F32)
            result = tables->f32[policy][code];
        else
            result = tables->f64[policy][code];
        bits_store(dst + i * dst_size, dst_size, result);
    }
}

/* -------------------------------------------------------------------------- */
/* The codec                                                                  */
/* -------------------------------------------------------------------------- */

/* Formats and policy are constants wherever this is called: the rows fold. */
ALWAYS_INLINE void convert_loop(fpconv_format dst_format, char *dst, fpconv_format src_format,
                                const char *src, size_t n, fpconv_policy policy)
{
    const bool is_hif8 = dst_format == FPCONV_HIF8 || src_format == FPCONV_HIF8;
    const struct hif8_scalar_tables *tables =
        is_hif8 && n > CODEC_ELEMENTS_MAX ? hif8_scalar_tables_get() : NULL;
    if (tables) {
        convert_hif8_loop(tables, dst_format, dst, src_format, src, n, policy);
        return;
    }
    const size_t dst_size = fp_formats[dst_format].size;
    const size_t src_size = fp_formats[src_format].size;
    for (size_t turn = 0; turn < n; turn++) {
        const size_t i = element_at(turn, n, dst_size > src_size);
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
#define DEFINE_LOSSES(NAME, ...)                        \
    DEFINE_KERNEL(NAME, F32, HDF5_CARRY_LOST)           \
    DEFINE_KERNEL(NAME, F64, HDF5_CARRY_LOST)           \
    DEFINE_KERNEL(NAME, F32, HDF5_SUBNORMAL_CARRY_LOST) \
    DEFINE_KERNEL(NAME, F64, HDF5_SUBNORMAL_CARRY_LOST)

DEFINE_POLICIES(F32, F32)
DEFINE_POLICIES(F32, F64)
DEFINE_POLICIES(F64, F32)
DEFINE_POLICIES(F64, F64)
FPCONV_NARROW_FORMATS(DEFINE_BOTH)
FPCONV_NARROW_FIELD_FORMATS(DEFINE_LOSSES)

#define POLICIES(DST, SRC) SRC##_to_##DST##_HDF5, SRC##_to_##DST##_OCP, SRC##_to_##DST##_OCP_SAT
#define ROUNDING(DST, SRC) \
    POLICIES(DST, SRC), SRC##_to_##DST##_HDF5_CARRY_LOST, SRC##_to_##DST##_HDF5_SUBNORMAL_CARRY_LOST
#define ROW_TO_F32(NAME, ...) [FPCONV_##NAME] = {POLICIES(F32, NAME)},
#define ROW_TO_F64(NAME, ...) [FPCONV_##NAME] = {POLICIES(F64, NAME)},
#define ROW_FROM_WIDE(NAME, ...)              \
    [FPCONV_##NAME] = {                       \
        [FPCONV_F32] = {ROUNDING(NAME, F32)}, \
        [FPCONV_F64] = {ROUNDING(NAME, F64)}, \
    },

static const fp_kernel_table table = {
    [FPCONV_F32] = {FPCONV_FORMATS(ROW_TO_F32)},
    [FPCONV_F64] = {FPCONV_FORMATS(ROW_TO_F64)},
    FPCONV_NARROW_FIELD_FORMATS(ROW_FROM_WIDE)[FPCONV_HIF8] = {
        [FPCONV_F32] = {POLICIES(HIF8, F32)}, [FPCONV_F64] = {POLICIES(HIF8, F64)}}};

static const struct fp_block_kernels block_kernels = {pack_4,   unpack_4, pack_6,
                                                      unpack_6, {NULL},   NULL};

const struct fp_kernels fp_kernels_portable = {"portable", &table, NULL,
                                               NULL,       NULL,   &block_kernels};
