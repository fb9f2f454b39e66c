/*
 * hif8_tables.c - the tables of hif8_tables.h
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdatomic.h>

#include "../codec.h"
#include "hif8_tables.h"

/* How many codes stand for less; of Inf, all others. */
static void find_positions(uint8_t position[HIF8_TABLE_CODES])
{
    double value[HIF8_TABLE_CODES];
    for (uint32_t code = 0; code < HIF8_TABLE_CODES; code++)
        value[code] = fpconv_decode(FPCONV_HIF8, code, FPCONV_OCP);
    for (int code = 0; code < HIF8_TABLE_CODES; code++) {
        int less = 0;
        for (int other = 0; other < HIF8_TABLE_CODES; other++)
            less += value[other] < value[code];
        position[code] = (uint8_t)less;
    }
}

static uint32_t code_of_power(int exponent)
{
    const uint64_t f32 = (uint64_t)(fp_formats[FPCONV_F32].bias + exponent) << 23;
    return (uint32_t)fp_convert_code(FPCONV_HIF8, FPCONV_F32, f32, FPCONV_OCP);
}

/* As hif8_line_of halves it twice. */
static int line_of(int exponent)
{
    const int counted = exponent - HIF8_LINES_ORIGIN;
    const int half = exponent < 0 ? counted / 2 : (counted + 1) / 2;
    return (half + 1) / 2;
}

/* From any of a line's binades, but not from the lowest and the highest, whose codes stand for
 * what is beyond, too. */
static void make_lines(struct hif8_tables *t)
{
    t->line_offset[0] = HIF8_PLACE_ORIGIN;
    for (int i = 2; HIF8_TABLE_ORIGIN + i < HIF8_EXPONENT_MAX; i++) {
        const int exponent = HIF8_TABLE_ORIGIN + i, line = line_of(exponent);
        const int beyond = (exponent - HIF8_LINES_ORIGIN) * t->steps[i];
        t->line_steps[line] = t->steps[i];
        t->line_offset[line] = (uint8_t)(HIF8_PLACE_ORIGIN + t->position[i] - beyond);
    }
    t->line_offset[line_of(HIF8_EXPONENT_MAX + 1)] = HIF8_PLACE_ORIGIN + HIF8_POSITION_MAX;
}

static void make_encoding(struct hif8_tables *t)
{
    uint8_t position[HIF8_TABLE_CODES];
    find_positions(position);
    /* The first exponent stands for smaller ones, too: there are no steps. */
    for (int i = 1; HIF8_TABLE_ORIGIN + i <= HIF8_EXPONENT_MAX; i++) {
        const int exponent = HIF8_TABLE_ORIGIN + i;
        t->position[i] = position[code_of_power(exponent)];
        t->steps[i] = (uint8_t)(position[code_of_power(exponent + 1)] - t->position[i]);
    }
    make_lines(t);
    for (int code = 0; code < HIF8_TABLE_CODES; code++) {
        t->code[position[code]] = (uint8_t)code;
        const int place = HIF8_PLACE_ORIGIN + position[code];
        t->flip_of_place[place / HIF8_GROUP % HIF8_GROUPS] = (uint8_t)(code ^ place);
    }
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
    /* Ties go away from zero, so that nothing matters beyond the rounding bit, at most the fourth
     * of the fraction; but Inf is one of what differ in the last three. */
    for (uint32_t i = 0; i < sizeof(t->code); i++) {
        const bool alike = i % 8 != 0 && (i & 0x7f80) != 0x7f80;
        t->code[i] = alike ? t->code[i - 1]
                           : (uint8_t)fp_convert_code(FPCONV_HIF8, FPCONV_BF16, i, FPCONV_OCP);
    }
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
