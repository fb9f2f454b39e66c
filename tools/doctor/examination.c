/*
 * examination.c - the library and the profiles on what is always the same
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdlib.h>

#include "doctor.h"

/* By Box and Muller's method on a fixed sequence. */
float *make_sample(void)
{
    const double pi = 3.14159265358979323846;
    float *sample = allocate(SAMPLE_N * sizeof(*sample));
    uint64_t state = 20260101;
    for (size_t i = 0; i < SAMPLE_N; i++) {
        double uniform[2];
        for (int j = 0; j < 2; j++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            uniform[j] = ((double)(state >> 11) + 0.5) * 0x1p-53;
        }
        sample[i] = (float)(sqrt(-2 * log(uniform[0])) * cos(2 * pi * uniform[1]));
    }
    return sample;
}

/* Each finite value of the format, with both signs. */
static void examine_own_values(struct finding *f, const struct scale *s)
{
    float *values = allocate(2 * s->count * sizeof(*values));
    for (unsigned i = 0; i < s->count; i++) {
        values[2 * i] = (float)s->value[i];
        values[2 * i + 1] = -values[2 * i];
    }
    store_and_judge(f, s, H5T_NATIVE_FLOAT, values, 2 * s->count);
    free(values);
}

static void examine_all_codes(struct finding *f, const struct scale *s)
{
    const size_t n = 2 * (size_t)s->sign_bit;
    unsigned char *codes = allocate(n * s->size);
    for (size_t code = 0; code < n; code++) {
        if (s->size == 2)
            ((uint16_t *)(void *)codes)[code] = (uint16_t)code;
        else
            codes[code] = (unsigned char)code;
    }
    judge_read(f, s, codes, n);
    free(codes);
}

void examine_library(struct examination *e, const float *sample)
{
    e->codes = convert_to(&e->scale, H5T_NATIVE_FLOAT, sample, SAMPLE_N);
    judge_stored(&e->sample, &e->scale, H5T_NATIVE_FLOAT, sample, e->codes, SAMPLE_N);
    examine_own_values(&e->own, &e->scale);
    examine_all_codes(&e->read, &e->scale);
}

void examine_profile(struct examination *e, fpconv_h5_profile profile, const float *sample)
{
    struct profile_finding *p = &e->profile[profile];
    const struct scale *s = &e->scale;
    void *codes = convert_to(s, H5T_NATIVE_FLOAT, sample, SAMPLE_N);
    for (size_t i = 0; i < SAMPLE_N; i++)
        p->changed += code_at(s, codes, i) != code_at(s, e->codes, i);
    judge_stored(&p->sample, s, H5T_NATIVE_FLOAT, sample, codes, SAMPLE_N);
    free(codes);
    examine_own_values(&p->own, s);
    examine_all_codes(&p->read, s);
}
