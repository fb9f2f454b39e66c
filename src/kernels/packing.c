/*
 * packing.c - codes of 4 and 6 bits, one to a byte, to and from packed bytes
 *
 * SPDX-License-Identifier: MIT
 */
#include "packing.h"

static void pack_4(uint8_t *restrict dst, const uint8_t *restrict src, size_t n)
{
    for (size_t i = 0; i < n / 2; i++)
        dst[i] = (uint8_t)((src[2 * i] & 0x0f) | src[2 * i + 1] << 4);
    if (n % 2)
        dst[n / 2] = src[n - 1] & 0x0f;
}

static void unpack_4(uint8_t *restrict dst, const uint8_t *restrict src, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        dst[2 * i] = src[i] & 0x0f;
        dst[2 * i + 1] = src[i] >> 4;
    }
    if (n % 2)
        dst[n - 1] = src[n / 2] & 0x0f;
}

/* Up to four codes and the ceil(6 * n / 8) bytes that they occupy. */
static void pack_6_group(uint8_t *dst, const uint8_t *src, size_t n)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < n; i++)
        bits |= (src[i] & 0x3fu) << 6 * i;
    for (size_t i = 0; 8 * i < 6 * n; i++)
        dst[i] = (uint8_t)(bits >> 8 * i);
}

static void unpack_6_group(uint8_t *dst, const uint8_t *src, size_t n)
{
    uint32_t bits = 0;
    for (size_t i = 0; 8 * i < 6 * n; i++)
        bits |= (uint32_t)src[i] << 8 * i;
    for (size_t i = 0; i < n; i++)
        dst[i] = bits >> 6 * i & 0x3f;
}

static void pack_6(uint8_t *restrict dst, const uint8_t *restrict src, size_t n)
{
    for (size_t i = 0; i < n / 4; i++)
        pack_6_group(dst + 3 * i, src + 4 * i, 4);
    pack_6_group(dst + n / 4 * 3, src + n / 4 * 4, n % 4);
}

static void unpack_6(uint8_t *restrict dst, const uint8_t *restrict src, size_t n)
{
    for (size_t i = 0; i < n / 4; i++)
        unpack_6_group(dst + 4 * i, src + 3 * i, 4);
    unpack_6_group(dst + n / 4 * 4, src + n / 4 * 3, n % 4);
}

void fp_pack_codes(fpconv_format format, void *restrict dst, const void *restrict src, size_t n)
{
    if (format == FPCONV_E2M1)
        pack_4(dst, src, n);
    else
        pack_6(dst, src, n);
}

void fp_unpack_codes(fpconv_format format, void *restrict dst, const void *restrict src, size_t n)
{
    if (format == FPCONV_E2M1)
        unpack_4(dst, src, n);
    else
        unpack_6(dst, src, n);
}
