/*
 * gemm_f16.c - bf16 matrices multiplied as f16, without overflow
 *
 * SPDX-License-Identifier: MIT
 *
 * A (M by K) and B (K by N) are bf16 with values far outside f16's range, as
 * activations and gradients may be.  Each row of A and each column of B is scaled
 * by a power of two so that no dot product of K terms can reach 65504; they are
 * multiplied as f16 with f32 accumulation, the product passes through f16, the
 * scales are undone, exactly, and C is stored as bf16 like its operands.  It is
 * compared with a product in doubles; so is that of operands merely cast to f16.
 *
 * Exits with 1 if an element of the scaled product is not finite, or if its
 * relative error in the Frobenius norm is above 2e-3: rounding C to bf16, which
 * has a step of 2^-8 to 2^-7, alone makes 1.5e-3.  Also if the mere cast does as
 * well, for then the operands show nothing.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <fpconv/scaled.h>

enum { M = 48, K = 1024, N = 40 };

static uint16_t a[M][K], b[K][N];         /* bf16 */
static uint16_t a_f16[M][K], b_f16[K][N]; /* f16 */
static int16_t a_exponents[M], b_exponents[N];
static double c_exact[M][N];

static void check(fpconv_status status)
{
    if (status != FPCONV_OK) {
        fprintf(stderr, "%s\n", fpconv_strerror(status));
        exit(1);
    }
}

/* Uniform noise times a power of two that differs from row to row or column to
 * column: from 2^-60 to 2^60. */
static uint16_t random_bf16(unsigned line)
{
    static uint32_t state = 1;
    state = state * 1664525 + 1013904223;
    const float unit = (float)(state >> 8) / (float)(1 << 23) - 1;
    return fpconv_f32_to_bf16(ldexpf(unit, (int)(line * 37 % 121) - 60), FPCONV_OCP);
}

/* Row i of A times column j of B, in f32; `f16` holds the operands. */
static float dot(unsigned i, unsigned j)
{
    float sum = 0;
    for (unsigned k = 0; k < K; k++)
        sum +=
            fpconv_f16_to_f32(a_f16[i][k], FPCONV_OCP) * fpconv_f16_to_f32(b_f16[k][j], FPCONV_OCP);
    return sum;
}

/* C from a_f16 and b_f16, whose lines were divided by powers of two: its relative
 * error, and how many elements are not finite.  So that all lines count, each
 * element is taken in units of its own power of two. */
static double multiply(const int16_t *row_exponents, const int16_t *column_exponents,
                       unsigned *not_finite)
{
    double error = 0, norm = 0;
    *not_finite = 0;
    for (unsigned i = 0; i < M; i++)
        for (unsigned j = 0; j < N; j++) {
            const uint16_t product = fpconv_f32_to_f16(dot(i, j), FPCONV_OCP);
            const double unscaled = ldexp(fpconv_f16_to_f64(product, FPCONV_OCP),
                                          row_exponents[i] + column_exponents[j]);
            const uint16_t c = fpconv_f64_to_bf16(unscaled, FPCONV_OCP);
            const double value = fpconv_bf16_to_f64(c, FPCONV_OCP);
            const int exponent = ilogb(c_exact[i][j]);
            if (!isfinite(value))
                ++*not_finite;
            error += pow(ldexp(value - c_exact[i][j], -exponent), 2);
            norm += pow(ldexp(c_exact[i][j], -exponent), 2);
        }
    return sqrt(error / norm);
}

int main(void)
{
    for (unsigned i = 0; i < M; i++)
        for (unsigned k = 0; k < K; k++)
            a[i][k] = random_bf16(i);
    for (unsigned k = 0; k < K; k++)
        for (unsigned j = 0; j < N; j++)
            b[k][j] = random_bf16(j + M);
    for (unsigned i = 0; i < M; i++)
        for (unsigned j = 0; j < N; j++)
            for (unsigned k = 0; k < K; k++)
                c_exact[i][j] += fpconv_bf16_to_f64(a[i][k], FPCONV_OCP) *
                                 fpconv_bf16_to_f64(b[k][j], FPCONV_OCP);

    unsigned bad, bad_cast;
    static const int16_t no_exponents[M > N ? M : N];
    check(fpconv_convert(FPCONV_F16, a_f16, FPCONV_BF16, a, M * K, FPCONV_OCP));
    check(fpconv_convert(FPCONV_F16, b_f16, FPCONV_BF16, b, K * N, FPCONV_OCP));
    multiply(no_exponents, no_exponents, &bad_cast);
    printf("cast to f16:            %u of %d elements are Inf or NaN\n", bad_cast, M * N);

    const fpconv_scheme rows = {FPCONV_POW2_ROW, FPCONV_F16, FPCONV_SCALE_AMAX, 0, K};
    const fpconv_scheme columns = {FPCONV_POW2_COLUMN, FPCONV_F16, FPCONV_SCALE_AMAX, 0, K};
    check(fpconv_quantize(&rows, M, K, a_f16, sizeof(a_f16[0]), a_exponents, FPCONV_BF16, a,
                          sizeof(a[0])));
    check(fpconv_quantize(&columns, K, N, b_f16, sizeof(b_f16[0]), b_exponents, FPCONV_BF16, b,
                          sizeof(b[0])));
    const double error = multiply(a_exponents, b_exponents, &bad);
    printf("power-of-two scales:    %u of %d, relative error %.2e\n", bad, M * N, error);
    return bad_cast > 0 && bad == 0 && error <= 2e-3 ? EXIT_SUCCESS : EXIT_FAILURE;
}
