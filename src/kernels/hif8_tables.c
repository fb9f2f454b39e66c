/*
 * hif8_tables.c - the tables of hif8_tables.h
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdatomic.h>

#include "../codec.h"
#include "hif8_tables.h"

/* hif8's exponent after rounding, at most 15, as the code without fraction. */
static int prefix_of(int exponent)
{
    return exponent < HIF8_EXPONENT_MIN ? exponent + HIF8_DENORMAL_BIAS
                                        : (int)hif8_prefix(exponent);
}

static void make_encoding(struct hif8_tables *t)
{
    for (int i = 1; i < HIF8_TABLE_EXPONENTS; i++) {
        const int exponent = HIF8_TABLE_ORIGIN + i;
        const bool denormal = exponent < HIF8_EXPONENT_MIN;
        const bool has_fraction = !denormal && exponent < HIF8_EXPONENT_MAX;
        const int fraction_bits =
            denormal ? 0 : hif8_fraction_bits(exponent < 0 ? -exponent : exponent);
        t->half[i] = (uint8_t)(1 << (6 - fraction_bits));
        t->scale[i] = (uint8_t)(has_fraction << (fraction_bits + 1));
        t->prefix[i] =
            (uint8_t)prefix_of(exponent < HIF8_EXPONENT_MAX ? exponent : HIF8_EXPONENT_MAX);
    }
    /* From 2^-23, itself a tie between 0 and 2^-22, everything goes up to 2^-22. */
    t->half[-HIF8_DENORMAL_BIAS - HIF8_TABLE_ORIGIN] = 0x80;
}

/* No code begins at an odd multiple of 2^-24, f16's smallest value. */
static void make_encoding_from_f16(struct hif8_tables *t)
{
    for (uint32_t i = 0; i < sizeof(t->from_f16); i++)
        t->from_f16[i] =
            (uint8_t)fp_convert_code(FPCONV_HIF8, FPCONV_F16, (uint64_t)i << 7, FPCONV_OCP);
    for (uint32_t i = 0; i < sizeof(t->from_small_f16); i++)
        t->from_small_f16[i] =
            (uint8_t)fp_convert_code(FPCONV_HIF8, FPCONV_F16, (uint64_t)i << 1, FPCONV_OCP);
}

static void make_encoding_by_size(struct hif8_tables *t)
{
    for (int i = 0; i * HIF8_EXPONENTS_ALIKE < HIF8_DENORMAL_BIAS; i++) {
        const int denormal = i * HIF8_EXPONENTS_ALIKE > HIF8_EXPONENT_MAX;
        const int fraction_bits = denormal ? 0 : hif8_fraction_bits(i * HIF8_EXPONENTS_ALIKE);
        t->half_by_size[i] = (uint8_t)(1 << (6 - fraction_bits));
        t->scale_by_size[i] = (uint8_t)(!denormal << (fraction_bits + 1));
    }
    for (int i = 0; i < 16; i++) {
        const int from_minus_16 = prefix_of(i - 16) - (i - 16 + HIF8_DENORMAL_BIAS);
        t->prefix_from_minus_16[i] = (uint8_t)from_minus_16;
        t->prefix_from_0[i] = (uint8_t)(prefix_of(i) - (i + HIF8_DENORMAL_BIAS) - from_minus_16);
    }
}

static void make_decoding(struct hif8_tables *t)
{
    for (int dst = FPCONV_F64; dst <= FPCONV_BF16; dst++)
        for (int policy = 0; policy < FPCONV_POLICY_COUNT; policy++)
            for (uint32_t code = 0; code < HIF8_TABLE_CODES; code++) {
                const uint64_t bits =
                    fp_convert_code((fpconv_format)dst, FPCONV_HIF8, code, (fpconv_policy)policy);
                const uint64_t top = bits >> (8 * fp_formats[dst].size - 16);
                t->high[dst][policy][code] = (uint8_t)(top >> 8);
                t->low[dst][policy][code] = (uint8_t)top;
            }
}

static void make_groups(struct hif8_group_tables *t, fpconv_format dst)
{
    const int shift = 8 * fp_formats[dst].size - 16;
    for (uint32_t group = 0; group < HIF8_GROUPS; group++) {
        uint64_t top[HIF8_GROUP];
        uint32_t flip = 0;
        for (uint32_t i = 0; i < HIF8_GROUP; i++) {
            const uint32_t code = group * HIF8_GROUP + i;
            top[i] = fp_convert_code(dst, FPCONV_HIF8, code, FPCONV_OCP) >> shift;
            flip = top[i] < top[flip] ? i : flip; /* the least stands first */
        }
        const uint64_t factor = top[2 ^ flip] - top[1 ^ flip];
        const uint64_t base = top[1 ^ flip] - factor;
        t->flip[group] = (uint8_t)flip;
        t->factor[group] = (uint8_t)factor;
        t->base_high[group] = (uint8_t)(base >> 8);
        t->base_low[group] = (uint8_t)base;
    }
}

static void make_scalar(struct hif8_scalar_tables *t)
{
    for (uint32_t i = 0; i < sizeof(t->code); i++)
        t->code[i] =
            (uint8_t)fp_convert_code(FPCONV_HIF8, FPCONV_F32, (uint64_t)i << 19, FPCONV_OCP);
    for (int policy = 0; policy < FPCONV_POLICY_COUNT; policy++)
        for (uint32_t code = 0; code < 256; code++) {
            t->half[0][policy][code] =
                (uint16_t)fp_convert_code(FPCONV_F16, FPCONV_HIF8, code, (fpconv_policy)policy);
            t->half[1][policy][code] =
                (uint16_t)fp_convert_code(FPCONV_BF16, FPCONV_HIF8, code, (fpconv_policy)policy);
            t->f32[policy][code] =
                (uint32_t)fp_convert_code(FPCONV_F32, FPCONV_HIF8, code, (fpconv_policy)policy);
            t->f64[policy][code] =
                fp_convert_code(FPCONV_F64, FPCONV_HIF8, code, (fpconv_policy)policy);
        }
}

/* Each is made once, and found by its pointer only when it is complete: who comes meanwhile
 * does without. */
_Atomic(const struct hif8_tables *) hif8_tables_made;
_Atomic(const struct hif8_scalar_tables *) hif8_scalar_tables_made;

const struct hif8_tables *hif8_tables_make(void)
{
    static struct hif8_tables tables;
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&begun))
        return atomic_load_explicit(&hif8_tables_made, memory_order_acquire);
    make_encoding(&tables);
    make_encoding_from_f16(&tables);
    make_encoding_by_size(&tables);
    make_decoding(&tables);
    make_groups(&tables.groups[FPCONV_F64], FPCONV_F64);
    make_groups(&tables.groups[FPCONV_F32], FPCONV_F32);
    atomic_store_explicit(&hif8_tables_made, &tables, memory_order_release);
    return &tables;
}

const struct hif8_scalar_tables *hif8_scalar_tables_make(void)
{
    static struct hif8_scalar_tables tables;
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&begun))
        return atomic_load_explicit(&hif8_scalar_tables_made, memory_order_acquire);
    make_scalar(&tables);
    atomic_store_explicit(&hif8_scalar_tables_made, &tables, memory_order_release);
    return &tables;
}
