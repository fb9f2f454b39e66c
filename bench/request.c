/*
 * request.c - what a request asks for
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench.h"

bool bench_is_wide(fpconv_format format)
{
    return format == FPCONV_F32 || format == FPCONV_F64;
}

static bool wants_format(const struct request *request, fpconv_format format)
{
    const unsigned wide = 1u << FPCONV_F32 | 1u << FPCONV_F64;
    const unsigned same_kind = bench_is_wide(format) ? wide : ~wide;
    return !(request->formats & same_kind) || (request->formats >> format & 1);
}

bool bench_wants_pair(const struct request *request, fpconv_format a, fpconv_format b)
{
    return wants_format(request, a) && wants_format(request, b);
}
