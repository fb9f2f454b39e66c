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
#include "internal.h"

/*
 * Elements of a tile.  Its buffers take 5 KiB of stack, and with the records of three
 * tiles stay in the L1 cache.  A multiple of 128, which are whole periods of lines (struct
 * fp_record_map), so that the records of all tiles begin at the same place in one.
 */
enum { TILE = 256, TILE_BYTES = TILE * 8 };

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

static void copy_strided(char *dst, ptrdiff_t dst_stride, const char *src, ptrdiff_t src_stride,
                         size_t size, size_t n)
{
    switch (size) {
    case 1:
        bits_copy(dst, dst_stride, src, src_stride, 1, n, false);
        break;
    case 2:
        bits_copy(dst, dst_stride, src, src_stride, 2, n, false);
        break;
    case 4:
        bits_copy(dst, dst_stride, src, src_stride, 4, n, false);
        break;
    default:
        bits_copy(dst, dst_stride, src, src_stride, 8, n, false);
        break;
    }
}

static bool is_contiguous(const struct side *side)
{
    return side->stride == (ptrdiff_t)side->size;
}

/* From this many elements on, setting up the vector code pays. */
enum { VECTOR_COPY_MIN = 256 };

static const struct fp_record_kernels *find_record_kernels(const struct side *side, size_t n)
{
    const bool suits = n >= VECTOR_COPY_MIN && side->stride > (ptrdiff_t)side->size &&
                       fp_record_lines((size_t)side->stride) > 0;
    return suits ? fp_cpu_records() : NULL;
}

/* Of the elements of a tile those that are moved by whole cache lines, and before and
 * behind them those that are moved one at a time; the one that reaches into the lines or
 * out of them may be in either. */
struct parts {
    size_t head, periods, tail;
};

/* The records of a side, whose elements are gathered into tiles or scattered from them. */
struct records {
    const struct side *side;
    const struct fp_record_kernels *vector; /* NULL: an element at a time */
    struct fp_record_map map;
    ptrdiff_t to_line; /* from a tile's first element to the first line that is moved */
    size_t head;       /* elements that begin before it */
    size_t head_bytes; /* what of them is before it */
    struct parts of_tile;
};

static struct parts split_elements(const struct records *r, size_t n)
{
    if (!r->vector || n < r->head)
        return (struct parts){n, 0, 0};
    const size_t periods = (n - r->head) / r->map.elements;
    const size_t moved = r->head + periods * r->map.elements;
    const bool last_reaches_out = r->head_bytes % r->side->size != 0;
    return (struct parts){r->head, periods, n - moved + last_reaches_out};
}

static size_t bytes_to_line(const char *p)
{
    return ((uintptr_t)0 - (uintptr_t)p) % FP_LINE_BYTES;
}

/* Is this element the first one that has bytes in its line? */
static bool begins_line(const struct side *side, uintptr_t p)
{
    return p % FP_LINE_BYTES + side->size <= (size_t)side->stride;
}

/*
 * How many elements to convert by themselves, so that the tiles behind them begin with lines,
 * and nothing of those goes an element at a time.
 */
static size_t elements_before_lines(const struct side *side, const char *first, size_t n)
{
    enum { TILES_MIN = 4 };
    if (n < TILES_MIN * TILE || !find_record_kernels(side, n) ||
        begins_line(side, (uintptr_t)first))
        return 0;
    const size_t stride = (size_t)side->stride;
    const size_t before = (bytes_to_line(first) + stride - 1) / stride;
    return begins_line(side, (uintptr_t)first + before * stride) ? before : 0;
}

/* Of n elements; the first is at `first`. */
static void find_records(struct records *r, const struct side *side, const char *first, size_t n,
                         bool scatters)
{
    r->side = side;
    r->vector = find_record_kernels(side, n);
    r->to_line = 0;
    r->head = r->head_bytes = 0;
    if (r->vector) {
        const size_t stride = (size_t)side->stride, size = side->size;
        const size_t before = bytes_to_line(first), behind = (uintptr_t)first % FP_LINE_BYTES;
        size_t rest = before % stride; /* the byte of a record with which lines begin */
        if (begins_line(side, (uintptr_t)first)) {
            r->to_line = -(ptrdiff_t)behind;
            rest = behind > 0 ? stride - behind : 0;
        } else {
            r->to_line = (ptrdiff_t)before;
            r->head = before / stride + (rest > 0);
            r->head_bytes = before / stride * size + (rest < size ? rest : size);
        }
        if (scatters)
            r->vector->map_scatter(&r->map, rest, stride, size);
        else
            r->vector->map_gather(&r->map, rest, stride, size);
    }
    r->of_tile = split_elements(r, TILE);
}

/* Parts that are empty are not even looked at: that would take 25 ns a tile. */
static void gather(const struct records *r, char *tile, const char *src, size_t n, ptrdiff_t ahead)
{
    const ptrdiff_t size = (ptrdiff_t)r->side->size, stride = r->side->stride;
    if (stride == size) {
        memcpy(tile, src, n * r->side->size);
        return;
    }
    const struct parts parts = n == TILE ? r->of_tile : split_elements(r, n);
    const ptrdiff_t tail = (ptrdiff_t)(n - parts.tail);
    if (parts.head > 0)
        copy_strided(tile, size, src, stride, r->side->size, parts.head);
    if (parts.periods > 0)
        r->vector->gather(tile + r->head_bytes, src + r->to_line, &r->map, parts.periods, ahead);
    if (parts.tail > 0)
        copy_strided(tile + tail * size, size, src + tail * stride, stride, r->side->size,
                     parts.tail);
}

static void scatter(const struct records *r, char *dst, const char *tile, size_t n, ptrdiff_t ahead,
                    bool fetches_all)
{
    const ptrdiff_t size = (ptrdiff_t)r->side->size, stride = r->side->stride;
    const struct parts parts = n == TILE ? r->of_tile : split_elements(r, n);
    const ptrdiff_t tail = (ptrdiff_t)(n - parts.tail);
    if (parts.head > 0)
        copy_strided(dst, stride, tile, size, r->side->size, parts.head);
    if (parts.periods > 0)
        r->vector->scatter(dst + r->to_line, tile + r->head_bytes, &r->map, parts.periods, ahead,
                           fetches_all);
    if (parts.tail > 0)
        copy_strided(dst + tail * stride, stride, tile + tail * size, size, r->side->size,
                     parts.tail);
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
    const fpconv_policy first = fp_policy_loses_carries(policy) ? FPCONV_HDF5 : policy;
    return (struct route){fp_cpu_kernel(FPCONV_F32, src, first),
                          fp_cpu_kernel(dst, FPCONV_F32, policy)};
}

static void run_route(const struct route *route, void *dst, const void *src, size_t n)
{
    if (!route->second) {
        route->first(dst, src, n);
        return;
    }
    _Alignas(64) float middle[TILE];
    route->first(middle, src, n);
    route->second(dst, middle, n);
}

static size_t tile_elements(size_t left)
{
    return left < TILE ? left : TILE;
}

/*
 * Kept out of its caller, whose stack frame would grow by the tiles.
 *
 * A tile is gathered before the one before it is scattered, lest loads wait for the stores
 * of what they load to leave the store buffer.  In place, no element is overwritten
 * before it is read: elements that move apart are converted from the last tile on.
 *
 * Meanwhile the records are fetched to which the next tile is scattered, or in place, where
 * they have been gathered by then, the one after.  Then gathering takes its share of that: the
 * caches move lines in the time between, too, and 16,384 f32 to f16 in records of 16 bytes
 * take 0.37 ns each instead of 0.40 (Sapphire Rapids, L2 cache).  Otherwise it fetches as many
 * of its own lines, which take 2 to 4 % less in records of 12 bytes.  Only whole tiles are
 * fetched: nothing behind the last record, which somebody else may be using.
 */
static __attribute__((noinline)) void convert_tiles(const struct route *route, char *dst,
                                                    const struct side *d, const char *src,
                                                    const struct side *s, size_t n)
{
    const bool in_place = dst == src, shares_lines = in_place && d->stride == s->stride;
    const bool gathers = in_place || !is_contiguous(s), scatters = !is_contiguous(d);
    const bool backward = in_place && magnitude(d->stride) > magnitude(s->stride);
    _Alignas(64) char in_and_margins[FP_LINE_BYTES + TILE_BYTES + FP_LINE_BYTES];
    _Alignas(64) char out[TILE_BYTES + FP_LINE_BYTES];
    char *in = in_and_margins;
    const size_t lead =
        backward ? 0 : elements_before_lines(scatters ? d : s, scatters ? dst : src, n);
    struct records src_records, dst_records;
    if (gathers) {
        find_records(&src_records, s, src + (ptrdiff_t)lead * s->stride, n, false);
        /* so that vectors out of whole lines are aligned there */
        in += FP_LINE_BYTES - src_records.head_bytes % FP_LINE_BYTES;
    }
    if (scatters)
        find_records(&dst_records, d, dst + (ptrdiff_t)lead * d->stride, n, true);

    const size_t first = backward ? (n - 1) / TILE * TILE : 0;
    const ptrdiff_t step = backward ? -TILE : TILE;
    const ptrdiff_t turns = in_place ? 2 : 1; /* until what is fetched is written */
    size_t left = n, count = lead > 0 ? lead : tile_elements(n - first);
    src += (ptrdiff_t)first * s->stride;
    dst += (ptrdiff_t)first * d->stride;
    if (gathers)
        gather(&src_records, in, src, count, 0);
    for (;;) {
        run_route(route, scatters ? out : dst, gathers ? in : src, count);
        left -= count;
        const size_t next = tile_elements(left);
        const ptrdiff_t to_next = backward ? step : (ptrdiff_t)count;
        if (next > 0)
            src += to_next * s->stride;
        if (gathers && next > 0)
            gather(&src_records, in, src, next, left >= 2 * TILE ? step * s->stride : 0);
        if (scatters)
            scatter(&dst_records, dst, out, count,
                    left >= (size_t)turns * TILE ? turns * step * d->stride : 0, !shares_lines);
        if (next == 0)
            return;
        dst += to_next * d->stride;
        count = next;
    }
}

/*
 * Results of at least so many bytes that are wider than their source go past the
 * caches, by way of a tile: the lines that they fill need not be read first.
 * 16,777,216 elements e4m3 to f64 take 0.58 ns an element instead of 0.84, where
 * memcpy of the f64s takes 0.76 (Sapphire Rapids).  Narrower results are too small
 * a part of the traffic to gain.
 */
enum {
    STREAMED_BYTES_MIN = 32 << 20,
    STREAMED_ELEMENTS_MIN = STREAMED_BYTES_MIN / sizeof(uint64_t) /* of the largest */
};

static void convert_array(fp_kernel *kernel, const struct side *d, char *dst, const struct side *s,
                          const char *src, size_t n)
{
    const bool is_streamed = dst != src && d->size > s->size && n >= STREAMED_BYTES_MIN / d->size;
    fp_convert_streamed *convert_streamed = is_streamed ? fp_cpu_convert_streamed() : NULL;
    if (convert_streamed)
        convert_streamed(kernel, dst, d->size, src, s->size, n);
    else
        kernel(dst, src, n);
}

static void convert_elements(const struct side *d, void *dst, const struct side *s, const void *src,
                             size_t n, fpconv_policy policy)
{
    const struct route route = find_route(d->format, s->format, policy);
    if (!is_contiguous(d) || !is_contiguous(s) || route.second)
        convert_tiles(&route, dst, d, src, s, n);
    else
        convert_array(route.first, d, dst, s, src, n);
}

/* -------------------------------------------------------------------------- */
/* Exported functions                                                         */
/* -------------------------------------------------------------------------- */

void fp_convert(fpconv_format dst_format, void *dst, ptrdiff_t dst_stride, fpconv_format src_format,
                const void *src, ptrdiff_t src_stride, size_t n, fpconv_policy policy)
{
    const struct side d = {dst_format, fp_formats[dst_format].size, dst_stride};
    const struct side s = {src_format, fp_formats[src_format].size, src_stride};
    if (n > 0)
        convert_elements(&d, dst, &s, src, n, policy);
}

size_t fp_convert_while_normal(fpconv_format dst_format, void *dst, fpconv_format src_format,
                               const void *src, size_t n)
{
    fp_while_normal_kernel *kernel = fp_cpu_while_normal(dst_format, src_format);
    return kernel ? kernel(dst, src, n) : 0;
}

static fpconv_status check_names(fpconv_format dst, fpconv_format src, fpconv_policy policy)
{
    if (!fp_format_is_known(dst) || !fp_format_is_known(src))
        return FPCONV_ERROR_FORMAT;
    return fp_policy_is_known(policy) ? FPCONV_OK : FPCONV_ERROR_POLICY;
}

fpconv_status fpconv_convert_strided(fpconv_format dst_format, void *dst, ptrdiff_t dst_stride,
                                     fpconv_format src_format, const void *src,
                                     ptrdiff_t src_stride, size_t n, fpconv_policy policy)
{
    fpconv_status status = check_names(dst_format, src_format, policy);
    if (status != FPCONV_OK || n == 0)
        return status;
    const struct side d = {dst_format, fp_formats[dst_format].size, dst_stride};
    const struct side s = {src_format, fp_formats[src_format].size, src_stride};
    status = check_buffers(dst, &d, src, &s, n);
    if (status == FPCONV_OK)
        convert_elements(&d, dst, &s, src, n, policy);
    return status;
}

static __attribute__((noinline)) fpconv_status
convert_contiguous(fpconv_format dst_format, void *dst, fpconv_format src_format, const void *src,
                   size_t n, fpconv_policy policy)
{
    return fpconv_convert_strided(dst_format, dst, (ptrdiff_t)fpconv_format_size(dst_format),
                                  src_format, src, (ptrdiff_t)fpconv_format_size(src_format), n,
                                  policy);
}

/* Can nothing be wrong with these contiguous buffers, and does a kernel take them?  (False
 * for some good ones.)  n is so small that its products do not overflow. */
static bool are_plain_buffers(const void *dst, size_t dst_size, const void *src, size_t src_size,
                              size_t n)
{
    const uintptr_t d = (uintptr_t)dst, s = (uintptr_t)src;
    if (!dst || !src)
        return false;
    /* the difference that is negative is large */
    return d == s || (d - s >= n * src_size && s - d >= n * dst_size);
}

/* The short way is for what is usual: with AVX-512, calls take 5 to 10 ns for up to 16
 * elements.  What it does not take goes the long way, errors included. */
fpconv_status fpconv_convert(fpconv_format dst_format, void *dst, fpconv_format src_format,
                             const void *src, size_t n, fpconv_policy policy)
{
    const fp_kernel_table *table = atomic_load_explicit(&fp_cpu_table, memory_order_relaxed);
    if (table && n < STREAMED_ELEMENTS_MIN &&
        check_names(dst_format, src_format, policy) == FPCONV_OK &&
        are_plain_buffers(dst, fp_formats[dst_format].size, src, fp_formats[src_format].size, n)) {
        fp_kernel *kernel = (*table)[dst_format][src_format][policy];
        if (kernel) {
            kernel(dst, src, n);
            return FPCONV_OK;
        }
    }
    return convert_contiguous(dst_format, dst, src_format, src, n, policy);
}
