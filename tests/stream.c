/*
 * stream.c - elements of one format with what they become in another
 *
 * SPDX-License-Identifier: MIT
 */
#include "stream.h"

#include "oracle.h"

enum flavour { ANY_BITS, NEAR_VALUES, ORDINARY, TINY, SPECIAL, FLAVOUR_COUNT };

/* A value of dst or a midpoint between two, as a code of a wide format, or next to it. */
static uint64_t near_value_of(fpconv_format dst, fpconv_format wide, uint64_t index,
                              uint64_t random)
{
    uint64_t code;
    const bool exact = random & 1 ? oracle_midpoint(dst, index, wide, &code)
                                  : oracle_value(dst, index, wide, &code);
    if (exact && (random >> 1) % 3 == 1)
        return code + 1;
    return exact && (random >> 1) % 3 == 2 && code > 0 ? code - 1 : code;
}

static uint64_t with_sign(fpconv_format format, uint64_t code, bool negative)
{
    return negative ? code | UINT64_C(1) << (oracle_bits(format) - 1) : code;
}

/* NaN and Inf of f32 and f64, and of what has the same shape. */
static uint64_t special_code(fpconv_format src, uint64_t random)
{
    const uint64_t inf = oracle_convert(src, FPCONV_F64, 0x7ff0000000000000, FPCONV_OCP);
    const uint64_t body = UINT64_C(1) << (oracle_bits(src) - 1);
    switch (random % 5) {
    case 0:
        return 0;
    case 1:
        return inf;
    case 2:
        return (inf + 1) % body; /* a payload in the last bit alone */
    case 3:
        return body - 1;
    default:
        return (inf | (random >> 8)) % body;
    }
}

static uint64_t flavoured_code(fpconv_format dst, fpconv_format src, enum flavour flavour,
                               uint64_t *state)
{
    const uint64_t random = next_random(state);
    const bool negative = random >> 63;
    const uint64_t pick = next_random(state);
    const uint64_t last = oracle_last_index(dst, FPCONV_OCP);
    if (flavour == SPECIAL)
        return with_sign(src, special_code(src, pick), negative);
    if (is_wide(src) && flavour == ORDINARY) /* from 0.5 to 2 */
        return src == FPCONV_F32 ? 0x3f000000 | pick % 0x01000000
                                 : 0x3fe0000000000000 | pick % 0x0020000000000000;
    if (is_wide(src) && dst != FPCONV_F64 && flavour != ANY_BITS) {
        const uint64_t count =
            flavour == TINY && last > 8 ? (last < 0x800000 ? 8 : 0x800000) : last + 1;
        return with_sign(src, near_value_of(dst, src, pick % count, random), negative);
    }
    const int bits = oracle_bits(src);
    return bits == 64 ? random : random % (UINT64_C(1) << bits);
}

void fill_stream(struct stream *stream, fpconv_format dst, fpconv_format src, fpconv_policy policy)
{
    uint64_t state = 100 * (uint64_t)dst + 10 * (uint64_t)src; /* the same in every policy */
    stream->dst = dst;
    stream->src = src;
    stream->policy = policy;
    stream->dst_size = fpconv_format_size(dst);
    stream->src_size = fpconv_format_size(src);
    for (size_t i = 0; i < STREAM_COUNT; i++) {
        const uint64_t block = i / 64 % (FLAVOUR_COUNT + 1);
        const enum flavour flavour = block < FLAVOUR_COUNT
                                         ? (enum flavour)block
                                         : (enum flavour)(next_random(&state) % FLAVOUR_COUNT);
        const uint64_t code = flavoured_code(dst, src, flavour, &state);
        const uint64_t want = oracle_convert(dst, src, code, policy);
        if (has_scalar(dst, src))
            check_code(dst, src, code, policy, scalar_convert(dst, src, code, policy), want);
        stream->codes[i] = code;
        stream->wants[i] = want;
        store_code(stream->code_bytes + i * stream->src_size, stream->src_size, code);
        store_code(stream->want_bytes + i * stream->dst_size, stream->dst_size, want);
    }
}
