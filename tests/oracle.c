/*
 * oracle.c - what every conversion returns, worked out a second time
 *
 * SPDX-License-Identifier: MIT
 */
#include "oracle.h"

#include <stdlib.h>

#define ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum nan_rule { NAN_IEEE, NAN_ALL_ONES, NAN_NONE, NAN_HIF8 };

/* The rows of the specification as literals.  `overflow` is what a finite value
 * too large for the format becomes, and Inf where the format has none. */
struct facts {
    int bits;
    int fraction_bits;
    int lowest; /* the smallest value above zero is 2^lowest */
    uint64_t last_hdf5, last_ocp;
    uint64_t overflow_hdf5, overflow_ocp, overflow_sat;
    enum nan_rule nan;
    bool wide;
};

static const struct facts facts[] = {
    [FPCONV_F64] = {64, 52, -1074, 0x7fefffffffffffff, 0x7fefffffffffffff, 0x7ff0000000000000,
                    0x7ff0000000000000, 0x7ff0000000000000, NAN_IEEE, true},
    [FPCONV_F32] = {32, 23, -149, 0x7f7fffff, 0x7f7fffff, 0x7f800000, 0x7f800000, 0x7f800000,
                    NAN_IEEE, true},
    [FPCONV_F16] = {16, 10, -24, 0x7bff, 0x7bff, 0x7c00, 0x7c00, 0x7bff, NAN_IEEE, false},
    [FPCONV_BF16] = {16, 7, -133, 0x7f7f, 0x7f7f, 0x7f80, 0x7f80, 0x7f7f, NAN_IEEE, false},
    [FPCONV_E5M2] = {8, 2, -16, 0x7b, 0x7b, 0x7c, 0x7c, 0x7b, NAN_IEEE, false},
    [FPCONV_E4M3] = {8, 3, -9, 0x77, 0x7e, 0x78, 0x7f, 0x7e, NAN_ALL_ONES, false},
    [FPCONV_E3M2] = {6, 2, -4, 0x1b, 0x1f, 0x1c, 0x1f, 0x1f, NAN_NONE, false},
    [FPCONV_E2M3] = {6, 3, -3, 0x17, 0x1f, 0x18, 0x1f, 0x1f, NAN_NONE, false},
    [FPCONV_E2M1] = {4, 1, -1, 0x5, 0x7, 0x6, 0x7, 0x7, NAN_NONE, false},
    [FPCONV_HIF8] = {8, 0, -22, 0x6e, 0x6e, 0x6e, 0x6e, 0x6e, NAN_HIF8, false},
};
_Static_assert(ARRAY_COUNT(facts) == FPCONV_FORMAT_COUNT, "one row a format");

enum { HIF8_INF = 0x6f, HIF8_NAN = 0x80, HIF8_POWERS = 15 + 22 + 1 };

/* -------------------------------------------------------------------------- */
/* Exact non-negative numbers                                                 */
/* -------------------------------------------------------------------------- */

/* significand * 2^exponent; bit LEADING of the significand is set, but in zero.
 * Three bits are free above it, so that sums of neighbours fit. */
enum { LEADING = 60, ZERO_EXPONENT = -1000000 };

struct number {
    int exponent;
    uint64_t significand;
};

static struct number number(uint64_t significand, int exponent)
{
    if (significand == 0)
        return (struct number){ZERO_EXPONENT, 0};
    const int shift = __builtin_clzll(significand) - (63 - LEADING);
    if (shift >= 0)
        return (struct number){exponent - shift, significand << shift};
    if (significand & ((UINT64_C(1) << -shift) - 1))
        abort(); /* more bits than any number here has */
    return (struct number){exponent - shift, significand >> -shift};
}

static int compare(struct number a, struct number b)
{
    if (a.exponent != b.exponent)
        return a.exponent < b.exponent ? -1 : 1;
    return (a.significand > b.significand) - (a.significand < b.significand);
}

/* Half the sum of neighbours, low <= high <= 2 low or low == 0. */
static struct number midpoint(struct number low, struct number high)
{
    if (low.significand == 0)
        return number(high.significand, high.exponent - 1);
    if (high.exponent - low.exponent > 1)
        abort();
    const uint64_t aligned = high.significand << (high.exponent - low.exponent);
    return number(low.significand + aligned, low.exponent - 1);
}

/* -------------------------------------------------------------------------- */
/* hif8: the dot field is read bit by bit, the values are sorted              */
/* -------------------------------------------------------------------------- */

/* The value of a positive finite code. */
static struct number hif8_number(unsigned code)
{
    /* Prefix, and the exponent bits it stands for; the last one is denormal. */
    static const struct {
        unsigned prefix, length, exponent_bits;
    } dots[] = {{3, 2, 4}, {2, 2, 3}, {1, 2, 2}, {1, 3, 1}, {1, 4, 0}};
    for (unsigned i = 0; i < ARRAY_COUNT(dots); i++) {
        unsigned left = 7 - dots[i].length;
        if (code >> left != dots[i].prefix)
            continue;
        int exponent = 0;
        if (dots[i].exponent_bits > 0) {
            left--;
            const bool negative = code >> left & 1;
            exponent = 1; /* the leading magnitude bit, implied */
            for (unsigned bit = 1; bit < dots[i].exponent_bits; bit++) {
                left--;
                exponent = 2 * exponent + (int)(code >> left & 1);
            }
            if (negative)
                exponent = -exponent;
        }
        const unsigned one = 1u << left;
        return number(one + (code & (one - 1)), exponent - (int)left);
    }
    return code == 0 ? number(0, 0) : number(1, (int)code - 23);
}

static struct {
    struct number numbers[128];
    uint8_t codes[128];
    uint8_t first[HIF8_POWERS + 1]; /* the index of 2^(lowest + i), or after the last */
    unsigned count;
} hif8_sorted;

static int compare_hif8_codes(const void *a, const void *b)
{
    return compare(hif8_number(*(const uint8_t *)a), hif8_number(*(const uint8_t *)b));
}

static void hif8_sort(void)
{
    if (hif8_sorted.count != 0)
        return;
    unsigned count = 0;
    for (unsigned code = 0; code < 128; code++)
        if (code != HIF8_INF)
            hif8_sorted.codes[count++] = (uint8_t)code;
    qsort(hif8_sorted.codes, count, 1, compare_hif8_codes);
    for (unsigned i = 0; i < count; i++)
        hif8_sorted.numbers[i] = hif8_number(hif8_sorted.codes[i]);
    for (int power = 0; power <= HIF8_POWERS; power++)
        for (unsigned i = 0; i < count; i++)
            if (compare(hif8_sorted.numbers[i], number(1, power + facts[FPCONV_HIF8].lowest)) < 0)
                hif8_sorted.first[power] = (uint8_t)(i + 1);
    hif8_sorted.count = count;
}

/* -------------------------------------------------------------------------- */
/* The values of a format in order                                            */
/* -------------------------------------------------------------------------- */

static uint64_t last_index(fpconv_format format, fpconv_policy policy)
{
    if (facts[format].nan == NAN_HIF8) {
        hif8_sort();
        return hif8_sorted.count - 1;
    }
    return policy == FPCONV_HDF5 ? facts[format].last_hdf5 : facts[format].last_ocp;
}

/* The index-th value; defined one beyond the last, as if exponents went on.
 * Values step by 2^lowest up to 2^(lowest + fraction_bits + 1), and by twice as
 * much in each power of two after that. */
static struct number nth_number(fpconv_format format, uint64_t index)
{
    const struct facts *f = &facts[format];
    if (f->nan == NAN_HIF8) {
        hif8_sort();
        if (index < hif8_sorted.count)
            return hif8_sorted.numbers[index];
        return number(3, 14); /* 1.5 * 2^15 */
    }
    const uint64_t steps = UINT64_C(1) << f->fraction_bits; /* in a power of two */
    if (index < 2 * steps)
        return number(index, f->lowest);
    const int doubled = (int)(index >> f->fraction_bits) - 1;
    return number(steps + (index & (steps - 1)), f->lowest + doubled);
}

/* Where to begin to look for a number; any answer will do. */
static uint64_t guess_index(fpconv_format format, struct number x)
{
    const struct facts *f = &facts[format];
    const int above_lowest = x.exponent + LEADING - f->lowest; /* powers of two */
    if (above_lowest < 0)
        return 0;
    if (f->nan == NAN_HIF8)
        return hif8_sorted.first[above_lowest < HIF8_POWERS ? above_lowest : HIF8_POWERS];
    const int subnormal_bits = above_lowest < f->fraction_bits ? above_lowest : f->fraction_bits;
    const uint64_t powers = (uint64_t)(above_lowest - subnormal_bits);
    return (powers << f->fraction_bits) + (x.significand >> (LEADING - subnormal_bits));
}

/* The neighbours of a number in a format: low is not above it and high is, or
 * low is the last value. */
struct neighbours {
    uint64_t index; /* of low; high is the next */
    struct number low, high;
};

static struct neighbours find_neighbours(fpconv_format format, struct number x, uint64_t last)
{
    const uint64_t guess = guess_index(format, x);
    struct neighbours n = {.index = guess < last ? guess : last};
    n.low = nth_number(format, n.index);
    n.high = nth_number(format, n.index + 1);
    while (compare(n.low, x) > 0) {
        n.high = n.low;
        n.low = nth_number(format, --n.index);
    }
    while (n.index < last && compare(n.high, x) <= 0) {
        n.low = n.high;
        n.high = nth_number(format, ++n.index + 1);
    }
    return n;
}

/* -------------------------------------------------------------------------- */
/* Conversion                                                                 */
/* -------------------------------------------------------------------------- */

enum kind { FINITE, INFINITE, NOT_A_NUMBER };

struct element {
    enum kind kind;
    bool negative;
    struct number magnitude;
    uint64_t payload; /* the fraction, as f64 would have it */
};

static struct element read_element(fpconv_format format, uint64_t code, fpconv_policy policy)
{
    const struct facts *f = &facts[format];
    const uint64_t sign = UINT64_C(1) << (f->bits - 1);
    const uint64_t body = code & (sign - 1);
    struct element e = {FINITE, (code & sign) != 0, {0, 0}, 0};

    if (f->nan == NAN_HIF8) {
        if ((code & 0xff) == HIF8_NAN) /* the only one: no sign, no payload */
            return (struct element){NOT_A_NUMBER, false, {0, 0}, UINT64_C(1) << 51};
        if (body == HIF8_INF)
            e.kind = INFINITE;
        else
            e.magnitude = hif8_number((unsigned)body);
        return e;
    }
    const uint64_t last = last_index(format, policy);
    if (body <= last) {
        e.magnitude = nth_number(format, body);
    } else if (body == last + 1 && (policy == FPCONV_HDF5 || f->nan == NAN_IEEE)) {
        e.kind = INFINITE;
    } else {
        e.kind = NOT_A_NUMBER;
        e.payload = (body << (52 - f->fraction_bits)) & ((UINT64_C(1) << 52) - 1);
    }
    return e;
}

static uint64_t overflow_code(fpconv_format format, fpconv_policy policy)
{
    const struct facts *f = &facts[format];
    return policy == FPCONV_HDF5  ? f->overflow_hdf5
           : policy == FPCONV_OCP ? f->overflow_ocp
                                  : f->overflow_sat;
}

/* The index of the value that x becomes; last + 1 stands for overflow. */
static uint64_t nearest_index(fpconv_format format, struct number x, fpconv_policy policy)
{
    const struct facts *f = &facts[format];
    const uint64_t last = last_index(format, policy);
    const struct neighbours n = find_neighbours(format, x, last);
    const bool hdf5 = policy == FPCONV_HDF5 && !f->wide;

    if (n.index == last && hdf5 && f->nan != NAN_HIF8)
        return compare(x, n.high) >= 0 ? last + 1 : last;
    const int order = compare(x, midpoint(n.low, n.high));
    if (order != 0)
        return order < 0 ? n.index : n.index + 1;
    if (hdf5 || f->nan == NAN_HIF8)
        return n.index + 1;
    return n.index % 2 == 0 ? n.index : n.index + 1;
}

static uint64_t nan_code(fpconv_format format, struct element e, fpconv_policy policy)
{
    const struct facts *f = &facts[format];
    const uint64_t sign = e.negative ? UINT64_C(1) << (f->bits - 1) : 0;
    if (f->nan == NAN_HIF8)
        return HIF8_NAN;
    if (policy == FPCONV_HDF5 || f->nan == NAN_ALL_ONES)
        return sign | ((UINT64_C(1) << (f->bits - 1)) - 1);
    if (f->nan == NAN_NONE)
        return f->last_ocp;
    const uint64_t quiet = UINT64_C(1) << (f->fraction_bits - 1);
    return sign | (f->last_ocp + 1) | quiet | e.payload >> (52 - f->fraction_bits);
}

uint64_t oracle_convert(fpconv_format dst, fpconv_format src, uint64_t code, fpconv_policy policy)
{
    const struct facts *f = &facts[dst];
    const struct element e = read_element(src, code, policy);
    const uint64_t sign = e.negative ? UINT64_C(1) << (f->bits - 1) : 0;
    if (e.kind == NOT_A_NUMBER)
        return nan_code(dst, e, policy);
    if (e.kind == INFINITE)
        return sign | (f->nan == NAN_HIF8 ? HIF8_INF : overflow_code(dst, policy));
    const uint64_t index = nearest_index(dst, e.magnitude, policy);
    if (index > last_index(dst, policy))
        return sign | overflow_code(dst, policy);
    if (f->nan == NAN_HIF8)
        return index == 0 ? 0 : sign | hif8_sorted.codes[index];
    return sign | index;
}

/* -------------------------------------------------------------------------- */
/* For the tests' loops                                                       */
/* -------------------------------------------------------------------------- */

uint64_t oracle_last_index(fpconv_format format, fpconv_policy policy)
{
    return last_index(format, policy);
}

uint64_t oracle_code_of_index(fpconv_format format, uint64_t index)
{
    if (facts[format].nan != NAN_HIF8)
        return index;
    hif8_sort();
    return hif8_sorted.codes[index];
}

static bool exact_code(struct number x, fpconv_format wide, uint64_t *code)
{
    const struct neighbours n = find_neighbours(wide, x, last_index(wide, FPCONV_OCP));
    *code = n.index;
    return compare(n.low, x) == 0;
}

bool oracle_value(fpconv_format format, uint64_t index, fpconv_format wide, uint64_t *code)
{
    return exact_code(nth_number(format, index), wide, code);
}

bool oracle_midpoint(fpconv_format format, uint64_t index, fpconv_format wide, uint64_t *code)
{
    const struct number low = nth_number(format, index);
    return exact_code(midpoint(low, nth_number(format, index + 1)), wide, code);
}

int oracle_bits(fpconv_format format)
{
    return facts[format].bits;
}
