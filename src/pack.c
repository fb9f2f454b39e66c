/*
 * pack.c - packed storage, and conversion into and out of it
 *
 * SPDX-License-Identifier: MIT
 *
 * A conversion goes tile by tile through one byte a code: the tile stays in the
 * L1 cache, so that memory sees one pass.
 */
#include <stdbool.h>
#include <string.h>

#include "fpconv/pack.h"

#include "cpu.h"
#include "formats.h"
#include "overlap.h"

/* A multiple of 4, so that every tile begins at a byte of the packed side. */
enum { TILE = 1024 };

static bool is_whole_bytes(fpconv_format format)
{
    return fp_format_bits(format) % 8 == 0;
}

static size_t packed_size(fpconv_format format, size_t n)
{
    const size_t bits = fp_format_bits(format);
    size_t bytes;
    if (is_whole_bytes(format))
        return __builtin_mul_overflow(n, bits / 8, &bytes) ? SIZE_MAX : bytes;
    /* fewer than n bytes: eight elements occupy as many bytes as one has bits */
    return n / 8 * bits + (n % 8 * bits + 7) / 8;
}

/* One to a byte, or in bytes of their own. */
static size_t unpacked_size(fpconv_format format, size_t n)
{
    return is_whole_bytes(format) ? packed_size(format, n) : n;
}

static void pack_codes(fpconv_format format, void *dst, const void *src, size_t n)
{
    const struct fp_block_kernels *kernels = fp_cpu_blocks();
    (fp_format_bits(format) == 4 ? kernels->pack_4 : kernels->pack_6)(dst, src, n);
}

static void unpack_codes(fpconv_format format, void *dst, const void *src, size_t n)
{
    const struct fp_block_kernels *kernels = fp_cpu_blocks();
    (fp_format_bits(format) == 4 ? kernels->unpack_4 : kernels->unpack_6)(dst, src, n);
}

static fpconv_status check_buffers(const void *dst, size_t dst_bytes, const void *src,
                                   size_t src_bytes)
{
    if (dst_bytes == SIZE_MAX || src_bytes == SIZE_MAX)
        return FPCONV_ERROR_SIZE;
    if (!dst || !src)
        return FPCONV_ERROR_NULL;
    if (dst != src && fp_ranges_overlap(dst, dst_bytes, src, src_bytes))
        return FPCONV_ERROR_OVERLAP;
    return FPCONV_OK;
}

/* Every tile of codes is complete before its packed bytes are written: in
 * place, those lie before the next tile's source. */
static void pack_tiles(fpconv_format format, char *dst, fpconv_format src_format, const char *src,
                       size_t n, fpconv_policy policy)
{
    const size_t src_size = fp_formats[src_format].size;
    for (size_t done = 0; done < n; done += TILE) {
        const size_t count = n - done < TILE ? n - done : TILE;
        _Alignas(64) uint8_t codes[TILE];
        (void)fpconv_convert(format, codes, src_format, src + done * src_size, count, policy);
        pack_codes(format, dst + packed_size(format, done), codes, count);
    }
}

/* From the last tile on: in place, a tile's elements lie after the packed bytes
 * of those before it. */
static void unpack_tiles(fpconv_format dst_format, char *dst, fpconv_format format, const char *src,
                         size_t n, fpconv_policy policy)
{
    const size_t dst_size = fp_formats[dst_format].size;
    for (size_t left = n; left > 0;) {
        const size_t count = left % TILE ? left % TILE : TILE;
        _Alignas(64) uint8_t codes[TILE];
        left -= count;
        unpack_codes(format, codes, src + packed_size(format, left), count);
        (void)fpconv_convert(dst_format, dst + left * dst_size, format, codes, count, policy);
    }
}

/* The same for both directions: of the buffers one side is packed, of n elements. */
static fpconv_status check_sides(bool packing, fpconv_format dst_format, const void *dst,
                                 fpconv_format src_format, const void *src, size_t n)
{
    if (packing)
        return check_buffers(dst, packed_size(dst_format, n), src, unpacked_size(src_format, n));
    return check_buffers(dst, unpacked_size(dst_format, n), src, packed_size(src_format, n));
}

static fpconv_status move_codes(bool packing, fpconv_format format, void *dst, const void *src,
                                size_t n)
{
    if (!fp_format_is_known(format))
        return FPCONV_ERROR_FORMAT;
    if (n == 0)
        return FPCONV_OK;
    const fpconv_status status = check_sides(packing, format, dst, format, src, n);
    if (status != FPCONV_OK)
        return status;
    if (is_whole_bytes(format))
        memmove(dst, src, packed_size(format, n));
    else if (dst == src)
        (packing ? pack_tiles : unpack_tiles)(format, dst, format, src, n, FPCONV_OCP);
    else
        (packing ? pack_codes : unpack_codes)(format, dst, src, n);
    return FPCONV_OK;
}

static fpconv_status convert(bool packing, fpconv_format dst_format, void *dst,
                             fpconv_format src_format, const void *src, size_t n,
                             fpconv_policy policy)
{
    const fpconv_format packed = packing ? dst_format : src_format;
    const fpconv_format other = packing ? src_format : dst_format;
    if (!fp_format_is_known(packed) || is_whole_bytes(packed))
        return fpconv_convert(dst_format, dst, src_format, src, n, policy);
    if (!fp_format_is_known(other))
        return FPCONV_ERROR_FORMAT;
    if (!fp_policy_is_known(policy))
        return FPCONV_ERROR_POLICY;
    if (n == 0)
        return FPCONV_OK;
    const fpconv_status status = check_sides(packing, dst_format, dst, src_format, src, n);
    if (status == FPCONV_OK)
        (packing ? pack_tiles : unpack_tiles)(dst_format, dst, src_format, src, n, policy);
    return status;
}

/* -------------------------------------------------------------------------- */
/* Exported functions                                                         */
/* -------------------------------------------------------------------------- */

size_t fpconv_packed_size(fpconv_format format, size_t n)
{
    return fp_format_is_known(format) ? packed_size(format, n) : 0;
}

fpconv_status fpconv_pack(fpconv_format format, void *dst, const void *src, size_t n)
{
    return move_codes(true, format, dst, src, n);
}

fpconv_status fpconv_unpack(fpconv_format format, void *dst, const void *src, size_t n)
{
    return move_codes(false, format, dst, src, n);
}

fpconv_status fpconv_convert_to_packed(fpconv_format dst_format, void *dst,
                                       fpconv_format src_format, const void *src, size_t n,
                                       fpconv_policy policy)
{
    return convert(true, dst_format, dst, src_format, src, n, policy);
}

fpconv_status fpconv_convert_from_packed(fpconv_format dst_format, void *dst,
                                         fpconv_format src_format, const void *src, size_t n,
                                         fpconv_policy policy)
{
    return convert(false, dst_format, dst, src_format, src, n, policy);
}
