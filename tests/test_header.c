/*
 * test_header.c - fpconv.h alone, as strict C11 and, from test_header.cpp, as C++
 *
 * SPDX-License-Identifier: MIT
 *
 * The header comes first, so that it has to include all that it needs.
 */
#include "fpconv/fpconv.h"

int main(void)
{
    const float values[3] = {1.0f, -0.3f, 448.0f};
    const uint8_t want[3] = {0x38, 0xaa, 0x7e};
    uint8_t codes[3] = {0, 0, 0};
    if (fpconv_f32_to_e4m3_n(codes, values, 3, FPCONV_OCP) != FPCONV_OK)
        return 1;
    for (int i = 0; i < 3; i++)
        if (codes[i] != want[i] || fpconv_f32_to_e4m3(values[i], FPCONV_OCP) != want[i] ||
            fpconv_encode(FPCONV_E4M3, (double)values[i], FPCONV_OCP) != want[i])
            return 1;
    return fpconv_decode(FPCONV_E4M3, 0x2a, FPCONV_OCP) == 0.3125 ? 0 : 1;
}
