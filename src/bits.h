/*
 * bits.h - elements in memory as codes in integers, at any alignment
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FPCONV_SRC_BITS_H
#define FPCONV_SRC_BITS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t bits_load(const void *p, size_t size)
{
    uint8_t b1;
    uint16_t b2;
    uint32_t b4;
    uint64_t b8;
    switch (size) {
    case 1:
        memcpy(&b1, p, 1);
        return b1;
    case 2:
        memcpy(&b2, p, 2);
        return b2;
    case 4:
        memcpy(&b4, p, 4);
        return b4;
    default:
        memcpy(&b8, p, 8);
        return b8;
    }
}

static inline void bits_store(void *p, size_t size, uint64_t code)
{
    const uint8_t b1 = (uint8_t)code;
    const uint16_t b2 = (uint16_t)code;
    const uint32_t b4 = (uint32_t)code;
    switch (size) {
    case 1:
        memcpy(p, &b1, 1);
        return;
    case 2:
        memcpy(p, &b2, 2);
        return;
    case 4:
        memcpy(p, &b4, 4);
        return;
    default:
        memcpy(p, &code, 8);
        return;
    }
}

#endif /* FPCONV_SRC_BITS_H */
