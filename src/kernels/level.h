/*
 * level.h - the kernels of one instruction set and its dispatch table
 *
 * SPDX-License-Identifier: MIT
 *
 * Included last by the file of an instruction set, which has before it, in this order,
 *
 *   - VEC_BYTES and vec, what lanes.h asks for, and lanes.h;
 *   - the operations that C's operators on vectors cannot say.  neon.c has few others; what is
 *     missing stops the compiler;
 *   - for what other instructions do faster, a switch each (VEC_HAS_..., VEC_ROUNDS_BY_ADDITION and
 *     their like), next to the operations that it promises.  Without any, the algorithms take
 *     16-bit lanes, products and whole copies of what is less than a block;
 *   - LEVEL, its name.
 *
 * kernels.h, cpu.c and src/meson.build name the file, tests/meson.build and tests/test_level.c the
 * level.
 */
#include "narrow.h"
#include "packing.h"
#include "quantize.h"
#include "widen.h"

/* For what is rare; of either format any. */
static __attribute__((noinline)) void convert_by_codec(fpconv_format dst_format, char *dst,
                                                       fpconv_format src_format, const char *src,
                                                       size_t n, fpconv_policy policy)
{
    const size_t dst_size = fp_formats[dst_format].size, src_size = fp_formats[src_format].size;
    for (size_t turn = 0; turn < n; turn++) { /* from the last on, where they grow in place */
        const size_t i = dst_size > src_size ? n - 1 - turn : turn;
        const uint64_t code = bits_load(src + i * src_size, src_size);
        bits_store(dst + i * dst_size, dst_size,
                   fp_convert_code(dst_format, src_format, code, policy));
    }
}

/* How many vectors of hif8 make a block.  Where 16 entries are looked up, two, a cache line: what
 * is around the vectors is otherwise a quarter of all instructions.  Of f64, those would be more
 * than convert_rest has room for. */
enum { HIF8_PARTS_MAX = 2 };

LANES size_t hif8_block_parts(fpconv_format src_format)
{
#ifdef VEC_LOOKS_UP_16
    if (src_format != FPCONV_F64)
        return HIF8_PARTS_MAX;
#endif
    (void)src_format;
    return 1;
}

#ifdef VEC_HAS_LOOKUP
#include "hif8.h"
#else
#include "hif8_by_element.h"
#endif

#define LEVEL_CONCAT_(a, b) a##b
#define LEVEL_CONCAT(a, b) LEVEL_CONCAT_(a, b)
#define LEVEL_STRING_(a) #a
#define LEVEL_STRING(a) LEVEL_STRING_(a)

/* The blocks by which each kind of pair is converted, and their sizes.  `halves` is
 * as for narrow_byte_block, and 2 in blocks that are not halved (convert_rest). */

LANES void convert_block(const hif8_level_tables *tables, fpconv_format dst_format, char *dst,
                         fpconv_format src_format, const char *src, fpconv_policy policy,
                         int halves)
{
    const size_t dst_size = fp_formats[dst_format].size, src_size = fp_formats[src_format].size;
    if (dst_format == FPCONV_HIF8) {
        narrow_hif8_block(tables, dst, src_format, src, halves);
        return;
    }
    if (src_format == FPCONV_HIF8) {
        widen_hif8_block(tables, dst_format, dst, src, policy);
        return;
    }
    if (src_size == 1)
        widen_byte_block(dst_format, dst, src_format, src, policy);
    else if (dst_size == 1)
        narrow_byte_block(dst_format, dst, src_format, src, policy, halves);
    else if (dst_size == 2)
        narrow_half_block(dst_format, dst, src_format, src, policy, halves);
    else if (src_format == FPCONV_F16)
        widen_f16_block(dst_format, dst, vec_load(src), policy, halves);
    else if (src_format == FPCONV_BF16)
        widen_bf16_block(dst_format, dst, vec_load(src), policy, halves);
    else if (src_format == FPCONV_F32)
        widen_f32_block(dst, vec_load(src), policy);
#ifdef VEC_HAS_F64_TO_F32
    else
        narrow_f64_block(dst, src, policy);
#endif
}

LANES size_t block_elements(fpconv_format dst_format, fpconv_format src_format)
{
    const size_t dst_size = fp_formats[dst_format].size, src_size = fp_formats[src_format].size;
    if (dst_format == FPCONV_HIF8)
        return VEC_BYTES * hif8_block_parts(src_format);
    if (dst_size == 1 || src_size == 1)
        return VEC_BYTES;
    if (dst_size == 2)
        return NARROW_HALF_BLOCK;
    return src_size == 2 ? LANES_16 : LANES_32;
}

static const fp_kernel_table table;

/* Are any of n f64 to be converted otherwise, since f32 cannot hold them? */
LANES bool are_unusual(fpconv_format dst_format, fpconv_format src_format, const char *src,
                       size_t n)
{
    return src_format == FPCONV_F64 && dst_format != FPCONV_F32 && !LOADS_ANY_F64 &&
           f64_block_is_unusual(src, n, dst_format == FPCONV_BF16);
}

/* Blocks with such; false if this is none. */
LANES bool convert_unusual_block(fpconv_format dst_format, char *dst, fpconv_format src_format,
                                 const char *src, fpconv_policy policy)
{
    const size_t n = block_elements(dst_format, src_format);
    if (!are_unusual(dst_format, src_format, src, n))
        return false;
    if (dst_format == FPCONV_BF16) {
        if (f64_block_is_unusual(src, n, false))
            narrow_unusual_f64_block(dst, src, policy, true);
        else
            narrow_unusual_f64_block(dst, src, policy, false);
    } else if (dst_format == FPCONV_HIF8) {
        /* which tells finite values from Inf, however large */
        (*fp_kernels_portable.table)[dst_format][src_format][policy](dst, src, n);
    } else {
        _Alignas(VEC_BYTES) char f32[VEC_BYTES * sizeof(float)];
        f64_block_to_odd_f32(f32, src, n);
        table[dst_format][FPCONV_F32][policy](dst, f32, n);
    }
    return true;
}

#include "loop.h"

#ifdef LEVEL_GUARDS_MXCSR
/* What MXCSR has to be while the pair's block rounds by floating-point instructions;
 * 0 if it does not. */
LANES unsigned guarding_mxcsr(fpconv_format dst_format, fpconv_format src_format,
                              fpconv_policy policy)
{
    if (dst_format == FPCONV_HIF8 && !HIF8_USES_FLOATS)
        return 0;
    if (rounds_by_addition(dst_format, src_format))
        return src_format != FPCONV_F64 && rounds_along_lines(dst_format, src_format, policy)
                   ? 0
                   : MXCSR_FLUSHES;
    if (src_format == FPCONV_F64 && dst_format != FPCONV_F32 && LOADS_ANY_F64)
        return MXCSR_F64_TO_ODD;
#ifdef VEC_HAS_F32_TO_F16
    if (dst_format == FPCONV_F16 && fp_format_is_wide(src_format))
        return MXCSR_DEFAULT;
#endif
    return dst_format == FPCONV_F32 && src_format == FPCONV_F64 ? MXCSR_DEFAULT : 0;
}

LANES bool mxcsr_modes_differ(unsigned a, unsigned b)
{
    return ((a ^ b) & ~(unsigned)MXCSR_FLAGS) != 0;
}

/* Writing MXCSR takes 15 to 40 ns, reading it less than 1: it is written where the caller's modes
 * differ, and where there are flags that the caller did not have. */
#define CALL_GUARDED(DST, SRC, POLICY, call)                                                   \
    do {                                                                                       \
        const unsigned guarding = guarding_mxcsr(FPCONV_##DST, FPCONV_##SRC, FPCONV_##POLICY); \
        const unsigned mxcsr = guarding ? _mm_getcsr() : 0;                                    \
        const bool differs = guarding && mxcsr_modes_differ(mxcsr, guarding);                  \
        if (differs)                                                                           \
            _mm_setcsr(guarding);                                                              \
        call;                                                                                  \
        if (differs || (guarding && _mm_getcsr() != mxcsr))                                    \
            _mm_setcsr(mxcsr);                                                                 \
    } while (0)

/* Is a block, or less, better rounded by integers?  That takes more operations, but MXCSR stays:
 * 16 f32 to e4m3 take 17 ns with SSE2 instead of 93. */
LANES bool rounds_by_integers(fpconv_format dst_format, fpconv_format src_format,
                              fpconv_policy policy, size_t n)
{
    return fp_formats[dst_format].size == 1 && src_format != FPCONV_F64 &&
           guarding_mxcsr(dst_format, src_format, policy) &&
           n <= block_elements(dst_format, src_format);
}
#else
#define CALL_GUARDED(DST, SRC, POLICY, call) call

LANES bool rounds_by_integers(fpconv_format dst_format, fpconv_format src_format,
                              fpconv_policy policy, size_t n)
{
    (void)dst_format, (void)src_format, (void)policy, (void)n;
    return false;
}
#endif

/* The loop is a function of its own, lest the compiler move conversions out of
 * the guard; it calls itself once for the rest. */
#define DEFINE_LOOP(DST, SRC, POLICY)                                                            \
    static void SRC##_to_##DST##_##POLICY(void *dst, const void *src, size_t n);                 \
    static __attribute__((noinline)) void SRC##_to_##DST##_##POLICY##_loop(                      \
        void *dst, const void *src, size_t n)                                                    \
    {                                                                                            \
        const size_t rest =                                                                      \
            convert_blocks(FPCONV_##DST, dst, FPCONV_##SRC, src, n, FPCONV_##POLICY, 1, false);  \
        char *dst_rest = (char *)dst + (n - rest) * fp_formats[FPCONV_##DST].size;               \
        const char *src_rest = (const char *)src + (n - rest) * fp_formats[FPCONV_##SRC].size;   \
        if (rest == 0)                                                                           \
            return;                                                                              \
        if (are_few(FPCONV_##DST, FPCONV_##SRC, rest))                                           \
            SRC##_to_##DST##_##POLICY(dst_rest, src_rest, rest);                                 \
        else                                                                                     \
            convert_rest(SRC##_to_##DST##_##POLICY##_loop, FPCONV_##DST, dst_rest, FPCONV_##SRC, \
                         src_rest, rest, FPCONV_##POLICY);                                       \
    }

/* A block; the length is there for convert_rest. */
#define DEFINE_BY_INTEGERS(DST, SRC, POLICY)                                                     \
    static __attribute__((noinline)) void SRC##_to_##DST##_##POLICY##_by_integers(               \
        void *dst, const void *src, size_t n)                                                    \
    {                                                                                            \
        (void)n;                                                                                 \
        narrow_byte_block_by_integers(FPCONV_##DST, dst, FPCONV_##SRC, src, FPCONV_##POLICY, 2); \
    }

#define DEFINE_KERNEL(DST, SRC, POLICY)                                                            \
    DEFINE_LOOP(DST, SRC, POLICY)                                                                  \
    DEFINE_BY_INTEGERS(DST, SRC, POLICY)                                                           \
    static void SRC##_to_##DST##_##POLICY(void *dst, const void *src, size_t n)                    \
    {                                                                                              \
        if (are_few(FPCONV_##DST, FPCONV_##SRC, n))                                                \
            convert_few(FPCONV_##DST, dst, FPCONV_##SRC, src, n, FPCONV_##POLICY);                 \
        else if (rounds_by_integers(FPCONV_##DST, FPCONV_##SRC, FPCONV_##POLICY, n))               \
            convert_rest(SRC##_to_##DST##_##POLICY##_by_integers, FPCONV_##DST, dst, FPCONV_##SRC, \
                         src, n, FPCONV_##POLICY);                                                 \
        else                                                                                       \
            CALL_GUARDED(DST, SRC, POLICY, SRC##_to_##DST##_##POLICY##_loop(dst, src, n));         \
    }

/* Of elements that grow, which takes another loop in place. */
#define DEFINE_GROWING(DST, SRC, POLICY)                                                     \
    DEFINE_LOOP(DST, SRC, POLICY)                                                            \
    static __attribute__((noinline)) void SRC##_to_##DST##_##POLICY##_backward(              \
        void *dst, const void *src, size_t n)                                                \
    {                                                                                        \
        convert_backward(SRC##_to_##DST##_##POLICY, FPCONV_##DST, dst, FPCONV_##SRC, src, n, \
                         FPCONV_##POLICY);                                                   \
    }                                                                                        \
    static void SRC##_to_##DST##_##POLICY(void *dst, const void *src, size_t n)              \
    {                                                                                        \
        if (are_few(FPCONV_##DST, FPCONV_##SRC, n))                                          \
            convert_few(FPCONV_##DST, dst, FPCONV_##SRC, src, n, FPCONV_##POLICY);           \
        else if (grows_in_place(FPCONV_##DST, dst, FPCONV_##SRC, src, n))                    \
            SRC##_to_##DST##_##POLICY##_backward(dst, src, n);                               \
        else                                                                                 \
            CALL_GUARDED(DST, SRC, POLICY, SRC##_to_##DST##_##POLICY##_loop(dst, src, n));   \
    }

#define DEFINE_WHILE_NORMAL(DST, SRC)                                                             \
    static __attribute__((noinline))                                                              \
    size_t SRC##_to_##DST##_while_normal_loop(void *dst, const void *src, size_t n)               \
    {                                                                                             \
        return n - convert_blocks(FPCONV_##DST, dst, FPCONV_##SRC, src, n, FPCONV_HDF5, 1, true); \
    }                                                                                             \
    static size_t SRC##_to_##DST##_while_normal(void *dst, const void *src, size_t n)             \
    {                                                                                             \
        size_t done;                                                                              \
        CALL_GUARDED(DST, SRC, HDF5, done = SRC##_to_##DST##_while_normal_loop(dst, src, n));     \
        return done;                                                                              \
    }

/* A kernel for each rule that differs: f32 and f64 never saturate, and hif8 is rounded alike
 * in all policies. */
#define DEFINE_WIDENING(DST, SRC)  \
    DEFINE_GROWING(DST, SRC, HDF5) \
    DEFINE_GROWING(DST, SRC, OCP)

#define DEFINE_POLICIES(DST, SRC) \
    DEFINE_KERNEL(DST, SRC, HDF5) \
    DEFINE_KERNEL(DST, SRC, OCP)  \
    DEFINE_KERNEL(DST, SRC, OCP_SAT)

#define DEFINE_ROUNDING(DST, SRC)            \
    DEFINE_POLICIES(DST, SRC)                \
    DEFINE_KERNEL(DST, SRC, HDF5_CARRY_LOST) \
    DEFINE_KERNEL(DST, SRC, HDF5_SUBNORMAL_CARRY_LOST)

#define LIST_POLICIES(DST, SRC) \
    SRC##_to_##DST##_HDF5, SRC##_to_##DST##_OCP, SRC##_to_##DST##_OCP_SAT
#define POLICIES(DST, SRC) [FPCONV_##SRC] = {LIST_POLICIES(DST, SRC)}
#define NEVER_SATURATING(DST, SRC) \
    [FPCONV_##SRC] = {SRC##_to_##DST##_HDF5, SRC##_to_##DST##_OCP, SRC##_to_##DST##_OCP}
#define ALIKE(DST, SRC) \
    [FPCONV_##SRC] = {SRC##_to_##DST##_HDF5, SRC##_to_##DST##_HDF5, SRC##_to_##DST##_HDF5}
#define ROUNDING(DST, SRC)                                                       \
    [FPCONV_##SRC] = {LIST_POLICIES(DST, SRC), SRC##_to_##DST##_HDF5_CARRY_LOST, \
                      SRC##_to_##DST##_HDF5_SUBNORMAL_CARRY_LOST}

/* The formats of 8 bits and fewer. */
#define FOR_EACH_FIELD_BYTE_FORMAT(DO) DO(E5M2) DO(E4M3) DO(E3M2) DO(E2M3) DO(E2M1)
#define FOR_EACH_BYTE_FORMAT(DO) FOR_EACH_FIELD_BYTE_FORMAT(DO) DO(HIF8)

#define COUNT_NAME(NAME) +1
#define COUNT_IF_BYTE(NAME, name, type, ...) +(sizeof(type) == 1)
_Static_assert(0 FOR_EACH_BYTE_FORMAT(COUNT_NAME) == 0 FPCONV_FORMATS(COUNT_IF_BYTE),
               "each format of a byte has its kernels");

#define DEFINE_GROWING_POLICIES(DST, SRC) \
    DEFINE_WIDENING(DST, SRC)             \
    DEFINE_GROWING(DST, SRC, OCP_SAT)

#define DEFINE_FROM_BYTE(NAME)         \
    DEFINE_WIDENING(F64, NAME)         \
    DEFINE_WIDENING(F32, NAME)         \
    DEFINE_GROWING_POLICIES(F16, NAME) \
    DEFINE_GROWING_POLICIES(BF16, NAME)
#define DEFINE_TO_BYTE(NAME)    \
    DEFINE_ROUNDING(NAME, F64)  \
    DEFINE_ROUNDING(NAME, F32)  \
    DEFINE_ROUNDING(NAME, BF16) \
    DEFINE_ROUNDING(NAME, F16)
#define DEFINE_HALF(NAME)      \
    DEFINE_ROUNDING(NAME, F64) \
    DEFINE_ROUNDING(NAME, F32) \
    DEFINE_WIDENING(F64, NAME) \
    DEFINE_WIDENING(F32, NAME)

FOR_EACH_BYTE_FORMAT(DEFINE_FROM_BYTE)
FOR_EACH_FIELD_BYTE_FORMAT(DEFINE_TO_BYTE)
DEFINE_KERNEL(HIF8, F64, HDF5)
DEFINE_KERNEL(HIF8, F32, HDF5)
DEFINE_KERNEL(HIF8, BF16, HDF5)
#ifdef HIF8_FROM_F16
DEFINE_KERNEL(HIF8, F16, HDF5)
#define F16_TO_HIF8 ALIKE(HIF8, F16)
#else /* through f32 */
#define F16_TO_HIF8
#endif
DEFINE_HALF(F16)
DEFINE_HALF(BF16)
DEFINE_WIDENING(F64, F32)
#ifdef VEC_HAS_F64_TO_F32
DEFINE_KERNEL(F32, F64, HDF5)
DEFINE_KERNEL(F32, F64, OCP)
#define F64_TO_F32 TO_F32(F64)
#else
#define F64_TO_F32
#endif

#define TO_F64(NAME) NEVER_SATURATING(F64, NAME),
#define TO_F32(NAME) NEVER_SATURATING(F32, NAME),
#define TO_F16(NAME) POLICIES(F16, NAME),
#define TO_BF16(NAME) POLICIES(BF16, NAME),
#define TO_BYTE(NAME)                                                                  \
    [FPCONV_##NAME] = {ROUNDING(NAME, F64), ROUNDING(NAME, F32), ROUNDING(NAME, BF16), \
                       ROUNDING(NAME, F16)},
#define TO_HIF8 \
    [FPCONV_HIF8] = {ALIKE(HIF8, F64), ALIKE(HIF8, F32), ALIKE(HIF8, BF16), F16_TO_HIF8},

static const fp_kernel_table table = {
    [FPCONV_F64] = {FOR_EACH_BYTE_FORMAT(TO_F64) TO_F64(F16) TO_F64(BF16) TO_F64(F32)},
    [FPCONV_F32] = {FOR_EACH_BYTE_FORMAT(TO_F32) TO_F32(F16) TO_F32(BF16) F64_TO_F32},
    [FPCONV_F16] = {FOR_EACH_BYTE_FORMAT(TO_F16) ROUNDING(F16, F64), ROUNDING(F16, F32)},
    [FPCONV_BF16] = {FOR_EACH_BYTE_FORMAT(TO_BF16) ROUNDING(BF16, F64), ROUNDING(BF16, F32)},
    FOR_EACH_FIELD_BYTE_FORMAT(TO_BYTE) TO_HIF8};

DEFINE_WHILE_NORMAL(BF16, F32)
#ifdef VEC_HAS_F32_TO_F16
DEFINE_WHILE_NORMAL(F16, F64)
DEFINE_WHILE_NORMAL(F16, F32)
#endif

static const fp_while_normal_table while_normal = {
#ifdef VEC_HAS_F32_TO_F16
    [FPCONV_F16] = {[FPCONV_F64] = F64_to_F16_while_normal, [FPCONV_F32] = F32_to_F16_while_normal},
#endif
    [FPCONV_BF16] = {[FPCONV_F32] = F32_to_BF16_while_normal}};

FOR_EACH_FIELD_BYTE_FORMAT(DEFINE_QUANTIZE)

#define QUANTIZE(NAME) [FPCONV_##NAME] = quantize_##NAME,

static const struct fp_block_kernels block_kernels = {
    pack_4, unpack_4, pack_6, unpack_6, {FOR_EACH_FIELD_BYTE_FORMAT(QUANTIZE)}, mx_products,
};

#ifdef VEC_HAS_STREAM
/* Whole vectors at aligned places; the ends by memcpy. */
static void stream_bytes(char *restrict dst, const char *restrict src, size_t bytes)
{
    size_t head = (size_t) - (uintptr_t)dst % VEC_BYTES;
    head = head < bytes ? head : bytes;
    memcpy(dst, src, head);
    dst += head;
    src += head;
    for (bytes -= head; bytes >= VEC_BYTES; bytes -= VEC_BYTES) {
        vec_stream(dst, vec_load(src));
        dst += VEC_BYTES;
        src += VEC_BYTES;
    }
    memcpy(dst, src, bytes);
}

/* One fence at the end: it waits until all is written, which takes 0.1 us. */
static void convert_streamed(fp_kernel *kernel, void *restrict dst, size_t dst_size,
                             const void *restrict src, size_t src_size, size_t n)
{
    enum { TILE_BYTES = 4096 };
    _Alignas(VEC_BYTES) char tile[TILE_BYTES];
    const size_t most = TILE_BYTES / dst_size;
    const char *in = src;
    char *out = dst;
    for (size_t count; n > 0; n -= count, in += count * src_size, out += count * dst_size) {
        count = n < most ? n : most;
        kernel(tile, in, count);
        stream_bytes(out, tile, count * dst_size);
    }
    vec_stream_fence();
}
#else
#define convert_streamed NULL
#endif
#ifdef VEC_HAS_RECORDS
static const struct fp_record_kernels record_kernels = {map_gather, map_scatter, gather, scatter};
#define RECORD_KERNELS &record_kernels
#else
#define RECORD_KERNELS NULL
#endif

const struct fp_kernels LEVEL_CONCAT(fp_kernels_, LEVEL) = {
    LEVEL_STRING(LEVEL), &table, &while_normal, RECORD_KERNELS, convert_streamed, &block_kernels};
