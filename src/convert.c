/*
 * convert.c - the front door for arrays
 *
 * SPDX-License-Identifier: MIT
 *
 * Arguments are checked, then the elements go through a kernel: all at once
 * where both sides are contiguous, else tile by tile, gathered into and
 * scattered from buffers on the stack.
 */
#include <stdbool.h>

#include "bits.h"
#include "cpu.h"
#include "formats.h"

/* A tile's buffers take 18 KiB of stack and stay in the L1 cache. */
enum { TILE = 1024, TILE_BYTES = TILE * 8 };

struct side {
    fpconv_format format;
    size_t size;
    ptrdiff_t stride;
};

/* -------------------------------------------------------------------------- */
/* Checks                                                                     */
/* -------------------------------------------------------------------------- */

static size_t magnitude(ptrdiff_t stride)
{
    return stride < 0 ? (size_t)0 - (size_t)stride : (size_t)stride;
}

/* Bytes from the first byte of the lowest element to the end of the highest. */
static bool extent_bytes(const struct side *side, size_t n, size_t *bytes)
{
    return !__builtin_mul_overflow(n - 1, magnitude(side->stride), bytes) &&
           !__builtin_add_overflow(*bytes, side->size, bytes);
}

static uintptr_t extent_start(const void *p, const struct side *side, size_t n)
{
    const uintptr_t first = (uintptr_t)p;
    return side->stride < 0 ? first - (n - 1) * magnitude(side->stride) : first;
}

/* Two fields of the same records: no element shares a byte with another. */
static bool are_disjoint_fields(uintptr_t dst, const struct side *d, uintptr_t src,
                                const struct side *s)
{
    if (d->stride != s->stride || d->stride == 0)
        return false;
    const size_t record = magnitude(d->stride);
    const size_t dst_from_src =
        dst >= src ? (dst - src) % record : (record - (src - dst) % record) % record;
    return dst_from_src >= s->size && dst_from_src + d->size <= record;
}

static bool may_convert_in_place(const struct side *d, const struct side *s)
{
    return (d->stride < 0) == (s->stride < 0) && magnitude(d->stride) >= d->size &&
           magnitude(s->stride) >= s->size;
}

static fpconv_status check_buffers(const void *dst, const struct side *d, const void *src,
                                   const struct side *s, size_t n)
{
    if (!dst || !src)
        return FPCONV_ERROR_NULL;
    size_t dst_bytes, src_bytes;
    if (!extent_bytes(d, n, &dst_bytes) || !extent_bytes(s, n, &src_bytes))
        return FPCONV_ERROR_SIZE;
    if (n > 1 && magnitude(d->stride) < d->size)
        return FPCONV_ERROR_STRIDE;
    if (dst == src && (n == 1 || may_convert_in_place(d, s)))
        return FPCONV_OK;
    const uintptr_t dst_start = extent_start(dst, d, n);
    const uintptr_t src_start = extent_start(src, s, n);
    const bool apart = dst_start >= src_start ? dst_start - src_start >= src_bytes
                                              : src_start - dst_start >= dst_bytes;
    if (!apart && !are_disjoint_fields((uintptr_t)dst, d, (uintptr_t)src, s))
        return FPCONV_ERROR_OVERLAP;
    return FPCONV_OK;
}

/* -------------------------------------------------------------------------- */
/* Tiles                                                                      */
/* -------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) void copy_elements(char *dst, ptrdiff_t dst_stride,
                                                                const char *src,
                                                                ptrdiff_t src_stride, size_t size,
                                                                size_t n)
{
    for (size_t i = 0; i < n; i++, dst += dst_stride, src += src_stride)
        memcpy(dst, src, size);
}

/* The size is a constant in each call, so that an element is one load and one store. */
static void copy_strided(void *dst, ptrdiff_t dst_stride, const void *src, ptrdiff_t src_stride,
                         size_t size, size_t n)
{
    switch (size) {
    case 1:
        copy_elements(dst, dst_stride, src, src_stride, 1, n);
        break;
    case 2:
        copy_elements(dst, dst_stride, src, src_stride, 2, n);
        break;
    case 4:
        copy_elements(dst, dst_stride, src, src_stride, 4, n);
        break;
    default:
        copy_elements(dst, dst_stride, src, src_stride, 8, n);
        break;
    }
}

/* How a pair is converted: by one kernel, or by two with f32 in between. */
struct route {
    fp_kernel *first;
    fp_kernel *second;
};

static struct route find_route(fpconv_format dst, fpconv_format src, fpconv_policy policy)
{
    fp_kernel *direct = fp_cpu_kernel(dst, src, policy);
    if (direct)
        return (struct route){direct, NULL};
    return (struct route){fp_cpu_kernel(FPCONV_F32, src, policy),
                          fp_cpu_kernel(dst, FPCONV_F32, policy)};
}

static void run_route(const struct route *route, void *dst, const void *src, size_t n)
{
    if (!route->second) {
        route->first(dst, src, n);
        return;
    }
    float middle[TILE];
    route->first(middle, src, n);
    route->second(dst, middle, n);
}

/* A tile is read whole before any of it is written. */
static void convert_tile(const struct route *route, char *dst, const struct side *d,
                         const char *src, const struct side *s, size_t n, bool copy_source)
{
    _Alignas(64) char in[TILE_BYTES], out[TILE_BYTES];
    const bool scatter = d->stride != (ptrdiff_t)d->size;
    if (copy_source) {
        copy_strided(in, (ptrdiff_t)s->size, src, s->stride, s->size, n);
        src = in;
    }
    run_route(route, scatter ? out : dst, src, n);
    if (scatter)
        copy_strided(dst, d->stride, out, (ptrdiff_t)d->size, d->size, n);
}

static void convert_tiles(const struct route *route, char *dst, const struct side *d,
                          const char *src, const struct side *s, size_t n)
{
    const bool in_place = dst == src;
    const bool copy_source = s->stride != (ptrdiff_t)s->size || in_place;
    /* In place, elements that move apart are converted from the last tile on,
     * so that none is overwritten before it is read. */
    const bool backward = in_place && magnitude(d->stride) > magnitude(s->stride);
    for (size_t done = 0; done < n;) {
        const size_t count = n - done < TILE ? n - done : TILE;
        const ptrdiff_t first = (ptrdiff_t)(backward ? n - done - count : done);
        convert_tile(route, dst + first * d->stride, d, src + first * s->stride, s, count,
                     copy_source);
        done += count;
    }
}

static fpconv_status convert(struct side d, void *dst, struct side s, const void *src, size_t n,
                             fpconv_policy policy)
{
    const fpconv_status status = check_buffers(dst, &d, src, &s, n);
    if (status != FPCONV_OK)
        return status;
    const struct route route = find_route(d.format, s.format, policy);
    const bool contiguous = d.stride == (ptrdiff_t)d.size && s.stride == (ptrdiff_t)s.size;
    const bool widens_in_place = dst == src && d.size > s.size;
    if (contiguous && !widens_in_place && !route.second)
        route.first(dst, src, n);
    else
        convert_tiles(&route, dst, &d, src, &s, n);
    return FPCONV_OK;
}

/* -------------------------------------------------------------------------- */
/* Exported functions                                                         */
/* -------------------------------------------------------------------------- */

fpconv_status fpconv_convert_strided(fpconv_format dst_format, void *dst, ptrdiff_t dst_stride,
                                     fpconv_format src_format, const void *src,
                                     ptrdiff_t src_stride, size_t n, fpconv_policy policy)
{
    if (!fp_format_is_known(dst_format) || !fp_format_is_known(src_format))
        return FPCONV_ERROR_FORMAT;
    if (!fp_policy_is_known(policy))
        return FPCONV_ERROR_POLICY;
    if (n == 0)
        return FPCONV_OK;
    const struct side d = {dst_format, fp_formats[dst_format].size, dst_stride};
    const struct side s = {src_format, fp_formats[src_format].size, src_stride};
    return convert(d, dst, s, src, n, policy);
}

fpconv_status fpconv_convert(fpconv_format dst_format, void *dst, fpconv_format src_format,
                             const void *src, size_t n, fpconv_policy policy)
{
    return fpconv_convert_strided(dst_format, dst, (ptrdiff_t)fpconv_format_size(dst_format),
                                  src_format, src, (ptrdiff_t)fpconv_format_size(src_format), n,
                                  policy);
}

#define DEFINE_ARRAY(dst_name, dst_type, DST, src_name, src_type, SRC)                      \
    fpconv_status fpconv_##src_name##_to_##dst_name##_n(dst_type *dst, const src_type *src, \
                                                        size_t n, fpconv_policy policy)     \
    {                                                                                       \
        return fpconv_convert(FPCONV_##DST, dst, FPCONV_##SRC, src, n, policy);             \
    }
#define DEFINE_BOTH(name, type, NAME, wide, wide_type, WIDE) \
    DEFINE_ARRAY(name, type, NAME, wide, wide_type, WIDE)    \
    DEFINE_ARRAY(wide, wide_type, WIDE, name, type, NAME)
#define DEFINE_NARROW(NAME, name, type, ...)       \
    DEFINE_BOTH(name, type, NAME, f32, float, F32) \
    DEFINE_BOTH(name, type, NAME, f64, double, F64)

DEFINE_BOTH(f32, float, F32, f64, double, F64)
FPCONV_NARROW_FORMATS(DEFINE_NARROW)
