/*
 * finding.c - the library converts, and the results are judged
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

uint32_t code_at(const struct scale *s, const void *codes, size_t i)
{
    return s->size == 2 ? ((const uint16_t *)codes)[i] : ((const uint8_t *)codes)[i];
}

void *convert_to(const struct scale *s, hid_t wide, const void *values, size_t n)
{
    const size_t bytes = n * H5Tget_size(wide);
    void *buf = allocate(bytes);
    memcpy(buf, values, bytes);
    if (H5Tconvert(wide, s->type, n, buf, NULL, H5P_DEFAULT) < 0)
        fail("HDF5 cannot convert to %s", fpconv_format_name(s->format));
    return buf;
}

/* n floats from codes, as HDF5 converts them now; to be freed. */
static float *convert_from(const struct scale *s, const void *codes, size_t n)
{
    float *buf = allocate(n * sizeof(*buf));
    memcpy(buf, codes, n * s->size);
    if (H5Tconvert(s->type, H5T_NATIVE_FLOAT, n, buf, NULL, H5P_DEFAULT) < 0)
        fail("HDF5 cannot convert from %s", fpconv_format_name(s->format));
    return buf;
}

static bool is_same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

void judge_stored(struct finding *f, const struct scale *s, hid_t wide, const void *values,
                  const void *codes, size_t n)
{
    const bool is_float = H5Tget_size(wide) == sizeof(float);
    for (size_t i = 0; i < n; i++) {
        const double source =
            is_float ? (double)((const float *)values)[i] : ((const double *)values)[i];
        const uint32_t code = code_at(s, codes, i);
        if (!is_right(s, source, code) && f->wrong++ == 0) {
            f->source = source;
            f->code = code;
            f->result = fpconv_decode(s->format, code, FPCONV_OCP);
            f->wanted = nearest(s, source);
        }
    }
    f->count += n;
}

void judge_read(struct finding *f, const struct scale *s, const void *codes, size_t n)
{
    float *values = convert_from(s, codes, n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t code = code_at(s, codes, i);
        const double wanted = fpconv_decode(s->format, code, FPCONV_OCP);
        if (!is_same((double)values[i], wanted) && f->wrong++ == 0)
            *f = (struct finding){f->count, 1, wanted, (double)values[i], wanted, code};
    }
    f->count += n;
    free(values);
}

void store_and_judge(struct finding *f, const struct scale *s, hid_t wide, const void *values,
                     size_t n)
{
    void *codes = convert_to(s, wide, values, n);
    judge_stored(f, s, wide, values, codes, n);
    free(codes);
}

double share(size_t part, size_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}
