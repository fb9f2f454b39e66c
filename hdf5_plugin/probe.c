/*
 * probe.c - what the linked library's own conversion of a pair does
 *
 * SPDX-License-Identifier: MIT
 *
 * A fixed set of source codes goes through the library in one call.  A rule
 * explains the library if it gives the same bits.  The repaired rule is the
 * first policy that differs from the library only where that has lost a carry.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "../src/bits.h"
#include "../src/codec.h"
#include "plugin.h"

/* -------------------------------------------------------------------------- */
/* The set                                                                    */
/* -------------------------------------------------------------------------- */

static void add(struct probes *p, uint64_t code)
{
    if (p->n < PROBE_MAX)
        p->code[p->n++] = code;
}

static unsigned magnitude_bits(fpconv_format format)
{
    return fp_formats[format].exponent_bits + fp_formats[format].fraction_bits;
}

/* A magnitude, with both signs for a destination of one byte, else in turn. */
static void add_magnitude(struct probes *p, uint64_t magnitude)
{
    const uint64_t sign = UINT64_C(1) << magnitude_bits(p->pair->src->format);
    if (magnitude >= sign)
        return;
    if (p->pair->dst->size == 1)
        add(p, magnitude | sign);
    add(p, magnitude | (p->pair->dst->size > 1 && p->n % 2 ? sign : 0));
}

/* A magnitude and its two neighbours. */
static void add_around(struct probes *p, uint64_t magnitude)
{
    add_magnitude(p, magnitude + 1);
    add_magnitude(p, magnitude);
    if (magnitude > 0)
        add_magnitude(p, magnitude - 1);
}

/* Zeros, Inf, NaN with payloads in the highest and in the lowest bit alone, and
 * what is around the largest finite value of the source. */
static void add_specials(struct probes *p)
{
    const struct fp_format *f = &fp_formats[p->pair->src->format];
    const uint64_t infinity = ((UINT64_C(1) << f->exponent_bits) - 1) << f->fraction_bits;
    const uint64_t quiet = UINT64_C(1) << (f->fraction_bits - 1);
    const uint64_t magnitudes[] = {0,
                                   infinity,
                                   infinity + 1,
                                   infinity | quiet,
                                   infinity | (quiet >> 1) | 1,
                                   infinity + 2 * quiet - 1,
                                   infinity - 1};
    for (unsigned i = 0; i < sizeof(magnitudes) / sizeof(magnitudes[0]); i++) {
        add(p, magnitudes[i]);
        add(p, magnitudes[i] | UINT64_C(1) << magnitude_bits(p->pair->src->format));
    }
}

/* The source's code nearest to a value. */
static uint64_t source_magnitude(const struct probes *p, struct fp_value v)
{
    v.negative = false;
    return fp_pack(p->pair->src->format, v, FPCONV_HDF5);
}

/* The value half way between two neighbouring codes of the destination. */
static struct fp_value midpoint(fpconv_format format, uint64_t code)
{
    const struct fp_value low = fp_unpack(format, code, FPCONV_OCP);
    const uint64_t fraction_ulp = UINT64_C(1) << (63 - fp_formats[format].fraction_bits);
    struct fp_value v = low;
    if (code == 0) { /* half the smallest subnormal */
        v = fp_unpack(format, 1, FPCONV_OCP);
        v.exponent--;
        return v;
    }
    /* Half of the last place, which below the normal range stays where it is. */
    const int excess = v.exponent - (1 - fp_formats[format].bias);
    v.significand += excess < 0 ? (fraction_ulp / 2) << -excess : fraction_ulp / 2;
    return v;
}

/* Around a destination code and around the midpoint above it. */
static void add_destination(struct probes *p, uint64_t code)
{
    add_around(p, source_magnitude(p, midpoint(p->pair->dst->format, code)));
    add_magnitude(p, source_magnitude(p, fp_unpack(p->pair->dst->format, code, FPCONV_OCP)));
}

/* From the largest down: normal results before the first subnormal one. */
static void add_destinations(struct probes *p)
{
    const struct fp_format *f = &fp_formats[p->pair->dst->format];
    const uint64_t last = (UINT64_C(1) << (f->exponent_bits + f->fraction_bits)) - 1;
    if (f->size == 1) {
        for (uint64_t code = last; code-- > 0;)
            add_destination(p, code);
        return;
    }
    /* Every exponent with the fractions where rounding is most likely to go wrong. */
    const uint64_t ones = (UINT64_C(1) << f->fraction_bits) - 1;
    const uint64_t fractions[] = {ones, ones - 1, ones / 3, 0};
    for (uint64_t exponent = (UINT64_C(1) << f->exponent_bits) - 1; exponent-- > 0;)
        for (unsigned i = 0; i < sizeof(fractions) / sizeof(fractions[0]); i++)
            add_destination(p, exponent << f->fraction_bits | fractions[i]);
    for (unsigned bit = f->fraction_bits; bit-- > 0;) /* subnormals with one bit more each */
        add_destination(p, ones >> (f->fraction_bits - 1 - bit));
}

/* Every exponent of the source, with all ones, a lone last bit or alternating bits;
 * these follow the subnormal ones. */
static void add_exponents(struct probes *p)
{
    const struct fp_format *f = &fp_formats[p->pair->src->format];
    const uint64_t ones = (UINT64_C(1) << f->fraction_bits) - 1;
    for (uint64_t exponent = (UINT64_C(1) << f->exponent_bits) - 1; exponent-- > 0;) {
        const uint64_t fraction = exponent % 4 == 0 ? 1 : exponent % 4 == 1 ? ones / 3 : ones;
        add_magnitude(p, exponent << f->fraction_bits | fraction);
    }
}

/* All codes of a source of one byte, twice: the second time after subnormal ones. */
static void add_all_codes(struct probes *p)
{
    const uint64_t count = UINT64_C(2) << magnitude_bits(p->pair->src->format);
    for (unsigned round = 0; round < 2; round++)
        for (uint64_t code = count; code-- > 0;)
            add(p, (code >> 1) | (code & 1) << magnitude_bits(p->pair->src->format));
}

/* Some of all. */
static void thin_out(struct probes *p)
{
    enum { WHOLE = 64, EACH = 7 }; /* an odd step meets both signs */
    unsigned kept = p->n < WHOLE ? p->n : WHOLE;
    for (unsigned i = kept; i < p->n; i += EACH)
        p->code[kept++] = p->code[i];
    p->n = kept;
}

static void make_probes(struct probes *p)
{
    p->n = 0;
    add_specials(p);
    if (fp_formats[p->pair->src->format].size == 1) {
        add_all_codes(p);
    } else {
        add_destinations(p);
        add_exponents(p);
    }
}

/* -------------------------------------------------------------------------- */
/* The library's answers                                                      */
/* -------------------------------------------------------------------------- */

static uint64_t ordered(const struct h5_side *side, uint64_t code)
{
    return side->is_swapped ? bits_swap(code, side->size) : code;
}

/*
 * By way of long double, which holds every value of both sides: the compiler's
 * conversion, where the pair's own path is in other hands and HDF5 has no call that
 * brings it back.
 */
static bool ask_compiler(struct probes *p)
{
    const hid_t src = fp_h5_side_type(p->pair->src), dst = fp_h5_side_type(p->pair->dst);
    char *buf = malloc(p->n * sizeof(long double));
    if (!buf)
        return false;
    memcpy(buf, p->source, p->n * p->pair->src->size);
    const bool asked = H5Tconvert(src, H5T_NATIVE_LDOUBLE, p->n, buf, NULL, H5P_DEFAULT) >= 0 &&
                       H5Tconvert(H5T_NATIVE_LDOUBLE, dst, p->n, buf, NULL, H5P_DEFAULT) >= 0;
    if (asked)
        memcpy(p->library, buf, p->n * p->pair->dst->size);
    free(buf);
    return asked;
}

/* All in one call. */
static bool ask_library(struct probes *p)
{
    const struct h5_side *src = p->pair->src, *dst = p->pair->dst;
    for (size_t i = 0; i < p->n; i++)
        bits_store(p->source + i * src->size, src->size, ordered(src, p->code[i]));
    if (p->asks == ASK_COMPILER)
        return ask_compiler(p);
    memcpy(p->library, p->source, p->n * src->size);
    return H5Tconvert(fp_h5_side_type(src),
                      p->asks == ASK_PATH ? fp_h5_side_type(dst) : fp_h5_unregistered_type(dst),
                      p->n, p->library, NULL, H5P_DEFAULT) >= 0;
}

/* By the very code that converts data. */
static bool ask_ourselves(struct probes *p, const struct h5_rule *rule)
{
    struct h5_pair trial = *p->pair;
    fp_h5_set_rule(&trial, *rule);
    memcpy(p->ours, p->source, p->n * trial.src->size);
    return fp_h5_convert_buffer(&trial, p->ours, p->n, H5I_INVALID_HID, H5I_INVALID_HID,
                                H5I_INVALID_HID) >= 0;
}

static uint64_t answer(const struct probes *p, const char *answers, size_t i)
{
    const struct h5_side *dst = p->pair->dst;
    return ordered(dst, bits_load(answers + i * dst->size, dst->size));
}

static const void *object_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

/*
 * Is the function part of the HDF5 library, not of a program or a plugin?
 * Looking an address up takes 20 microseconds, and nearly all pairs have the
 * same function.
 */
static bool is_from_library(struct probes *p, H5T_conv_t function)
{
    if (p->function != function) {
        herr_t (*open)(void) = H5open;
        void *address, *reference;
        memcpy(&address, &function, sizeof(address));
        memcpy(&reference, &open, sizeof(reference));
        p->function = function;
        p->is_from_library = object_of(address) == object_of(reference);
    }
    return p->is_from_library;
}

/* -------------------------------------------------------------------------- */
/* Comparison                                                                 */
/* -------------------------------------------------------------------------- */

/*
 * The proof that the library lost a carry: the source lies between 2^e and
 * 2^(e+1), the right result is 2^(e+1), or where that is not finite the largest
 * finite value, and the library returned 2^e.
 */
static bool is_lost_carry(const struct probes *p, size_t i, fpconv_policy policy)
{
    const fpconv_format dst = p->pair->dst->format;
    const uint64_t right = answer(p, p->ours, i);
    const struct fp_value source = fp_unpack(p->pair->src->format, p->code[i], policy);
    const struct fp_value wanted = fp_unpack(dst, right, policy);
    const struct fp_value got = fp_unpack(dst, answer(p, p->library, i), policy);
    const uint64_t one = UINT64_C(1) << 63;
    const uint64_t max = fp_max_finite(&fp_formats[dst], policy);
    const bool is_max = (right & ((UINT64_C(1) << magnitude_bits(dst)) - 1)) == max;
    return source.class == VALUE_FINITE && got.class == VALUE_FINITE &&
           wanted.class == VALUE_FINITE && got.negative == source.negative &&
           got.significand == one && got.exponent == source.exponent &&
           ((wanted.significand == one && wanted.exponent == got.exponent + 1) ||
            (is_max && wanted.exponent == got.exponent));
}

struct tally {
    unsigned differed, unexplained, bugs;
};

/* How many answers differ under a rule. */
static unsigned count_differences(struct probes *p, const struct h5_rule *rule)
{
    if (!ask_ourselves(p, rule))
        return p->n;
    if (memcmp(p->ours, p->library, p->n * p->pair->dst->size) == 0)
        return 0;
    unsigned differed = 0;
    for (size_t i = 0; i < p->n; i++)
        differed += answer(p, p->ours, i) != answer(p, p->library, i);
    return differed;
}

/* The same, and what explains them. */
static struct tally explain_differences(struct probes *p, const struct h5_rule *rule)
{
    struct tally t = {.differed = count_differences(p, rule)};
    bool denormal_seen = false;
    for (size_t i = 0; t.differed > 0 && i < p->n; i++) {
        const bool denormal = fp_h5_is_denormal(p->pair, p->code[i], rule->policy);
        denormal_seen = denormal_seen || denormal;
        if (answer(p, p->ours, i) == answer(p, p->library, i))
            continue;
        if (denormal_seen && is_lost_carry(p, i, rule->policy))
            t.bugs |= denormal ? FPCONV_H5_BUG_LOST_CARRY : FPCONV_H5_BUG_STICKY_CARRY;
        else
            t.unexplained++;
    }
    return t;
}

static void find_repaired(struct probes *p, struct h5_findings *f)
{
    static const struct h5_rule candidates[] = {{.policy = FPCONV_HDF5},
                                                {.policy = FPCONV_OCP},
                                                {.policy = FPCONV_OCP, .eager_overflow = true}};
    for (unsigned i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
        if (candidates[i].eager_overflow && !fp_format_is_wide(p->pair->src->format))
            return; /* that is how the compiler's float and double are converted */
        const struct tally t = explain_differences(p, &candidates[i]);
        if (i == 0 || (t.unexplained == 0 && !f->repaired_known)) {
            f->differed[FPCONV_H5_REPAIRED] = t.differed;
            f->bugs = t.bugs;
            f->repaired = candidates[i];
            f->repaired_known = t.unexplained == 0;
        }
        if (f->repaired_known)
            return;
    }
}

/* It is the general loop, which rounds ties away, that loses carries. */
static void find_identical(struct probes *p, struct h5_findings *f)
{
    const int last = f->repaired.policy == FPCONV_HDF5 ? CARRY_STICKY : CARRY_KEPT;
    for (int carry = CARRY_KEPT; carry <= last && !f->identical_known; carry++) {
        f->identical = f->repaired;
        f->identical.carry = (enum h5_carry)carry;
        f->differed[FPCONV_H5_IDENTICAL] = count_differences(p, &f->identical);
        f->identical_known = f->differed[FPCONV_H5_IDENTICAL] == 0;
    }
}

/* The pair of the same formats, both little-endian. */
static const struct h5_pair *reference_of(const struct h5_pair *pair)
{
    const struct h5_side *src = pair->src, *dst = pair->dst;
    while (src->order != H5T_ORDER_LE)
        src--; /* the side before has the same format */
    while (dst->order != H5T_ORDER_LE)
        dst--;
    return fp_h5_find_pair(src, dst);
}

/* Byte order is not supposed to matter: some probes, and only if they show
 * anything but the reference pair's rules, all of them. */
static bool follows_reference(struct probes *p, struct h5_findings *f)
{
    const struct h5_findings *reference = &reference_of(p->pair)->findings;
    if (reference == f || !reference->repaired_known || !reference->identical_known)
        return false;
    make_probes(p);
    thin_out(p);
    if (!ask_library(p) || count_differences(p, &reference->identical) > 0)
        return false;
    const struct tally t = explain_differences(p, &reference->repaired);
    f->repaired = reference->repaired;
    f->identical = reference->identical;
    f->repaired_known = t.unexplained == 0;
    f->identical_known = true;
    f->bugs = t.bugs;
    f->differed[FPCONV_H5_REPAIRED] = t.differed;
    return f->repaired_known;
}

static void study(struct probes *p, struct h5_findings *f)
{
    if (!follows_reference(p, f)) {
        make_probes(p);
        if (!ask_library(p))
            return;
        find_repaired(p, f);
        find_identical(p, f);
    }
    f->probes = p->n;
    f->repaired.is_native = f->identical.is_native = f->is_hard;
    f->differed[FPCONV_H5_OCP] = count_differences(p, &(struct h5_rule){.policy = FPCONV_OCP});
    f->differed[FPCONV_H5_OCP_SAT] =
        count_differences(p, &(struct h5_rule){.policy = FPCONV_OCP_SAT});
}

/* Would the compiler convert the pair, if nobody had taken its path? */
static bool has_compiler_conversion(hid_t src, hid_t dst)
{
    return H5Tcompiler_conv(src, H5T_NATIVE_LDOUBLE) > 0 &&
           H5Tcompiler_conv(H5T_NATIVE_LDOUBLE, dst) > 0;
}

void fp_h5_probe(struct h5_pair *pair, struct probes *p)
{
    struct h5_findings *f = &pair->findings;
    const hid_t src = fp_h5_side_type(pair->src), dst = fp_h5_side_type(pair->dst);
    H5T_cdata_t *cdata;
    H5T_conv_t function = NULL;
    f->is_probed = true;
    if (pair->src->order == H5T_ORDER_NONE || pair->dst->order == H5T_ORDER_NONE)
        return; /* HDF5 does not convert opaque types; if there is something, it is not HDF5's */
    H5E_BEGIN_TRY
    {
        function = H5Tfind(src, dst, &cdata);
    }
    H5E_END_TRY
    f->has_conversion = function != NULL;
    if (!f->has_conversion)
        return;
    p->pair = pair;
    p->asks = is_from_library(p, function)        ? ASK_PATH
              : has_compiler_conversion(src, dst) ? ASK_COMPILER
                                                  : ASK_LOOP;
    f->is_hard = p->asks == ASK_COMPILER || (p->asks == ASK_PATH && H5Tcompiler_conv(src, dst) > 0);
    study(p, f);
}
