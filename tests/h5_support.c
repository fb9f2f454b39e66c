/*
 * h5_support.c - what the tests of the HDF5 plugin share
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_support.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Written down a second time, from the formats' specifications. */
static const struct {
    size_t size, exponent, fraction, bias;
} fields[] = {
    [FPCONV_F64] = {8, 11, 52, 1023}, [FPCONV_F32] = {4, 8, 23, 127}, [FPCONV_F16] = {2, 5, 10, 15},
    [FPCONV_BF16] = {2, 8, 7, 127},   [FPCONV_E5M2] = {1, 5, 2, 15},  [FPCONV_E4M3] = {1, 4, 3, 7},
    [FPCONV_E3M2] = {1, 3, 2, 3},     [FPCONV_E2M3] = {1, 2, 3, 1},   [FPCONV_E2M1] = {1, 2, 1, 1},
};

struct side side_at(unsigned index)
{
    if (index == SIDES - 1)
        return (struct side){FPCONV_HIF8, H5T_ORDER_NONE};
    return (struct side){(fpconv_format)(index / 2), index % 2 ? H5T_ORDER_BE : H5T_ORDER_LE};
}

static bool is_swapped(struct side side)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return side.order == (first ? H5T_ORDER_BE : H5T_ORDER_LE);
}

hid_t make_type(struct side side)
{
    if (side.order == H5T_ORDER_NONE) {
        const hid_t opaque = H5Tcreate(H5T_OPAQUE, 1);
        assert_true(H5Tset_tag(opaque, "fpconv:hif8") >= 0);
        return opaque;
    }
    const size_t exponent = fields[side.format].exponent;
    const size_t fraction = fields[side.format].fraction;
    const hid_t type = H5Tcopy(H5T_IEEE_F64LE);
    assert_true(H5Tset_fields(type, exponent + fraction, fraction, exponent, 0, fraction) >= 0);
    assert_true(H5Tset_precision(type, 1 + exponent + fraction) >= 0);
    assert_true(H5Tset_size(type, fields[side.format].size) >= 0);
    assert_true(H5Tset_ebias(type, fields[side.format].bias) >= 0);
    assert_true(H5Tset_order(type, side.order) >= 0);
    return type;
}

hid_t make_loop_type(struct side side)
{
    const hid_t type = make_type(side);
    assert_true(H5Tset_inpad(type, H5T_PAD_ONE) >= 0);
    return type;
}

hid_t native_type(fpconv_format format)
{
    struct side side = {format, H5T_ORDER_LE}; /* as are HDF5's own of one byte */
    if (fpconv_format_size(format) > 1 && is_swapped(side))
        side.order = H5T_ORDER_BE;
    if (format == FPCONV_HIF8)
        side.order = H5T_ORDER_NONE;
    return make_type(side);
}

bool is_pair(struct side dst, struct side src)
{
    return dst.format != src.format && !(is_wide(dst.format) && is_wide(src.format));
}

static bool native_pairs[SIDES][SIDES];

unsigned index_of(struct side side)
{
    return side.format == FPCONV_HIF8 ? SIDES - 1u
                                      : 2u * side.format + (side.order == H5T_ORDER_BE);
}

void note_native_pairs(void)
{
    FOR_EACH_SIDE(d)
    FOR_EACH_SIDE(s)
    {
        if (!is_pair(side_at(d), side_at(s)) || d == SIDES - 1 || s == SIDES - 1)
            continue;
        const hid_t dst = make_type(side_at(d)), src = make_type(side_at(s));
        native_pairs[d][s] = H5Tcompiler_conv(src, dst) > 0;
        H5Tclose(dst);
        H5Tclose(src);
    }
}

bool is_native_pair(struct side dst, struct side src)
{
    return native_pairs[index_of(dst)][index_of(src)];
}

bool is_loop_pair(struct side dst, struct side src)
{
    return is_pair(dst, src) && !is_native_pair(dst, src) && dst.format != FPCONV_HIF8 &&
           src.format != FPCONV_HIF8;
}

unsigned for_each_pair(pair_filter *is_wanted, struct stream *stream, fpconv_policy policy,
                       pair_body *body)
{
    unsigned pairs = 0;
    FOR_EACH_SIDE(d)
    FOR_EACH_SIDE(s)
    {
        const struct side dst = side_at(d), src = side_at(s);
        if (!is_wanted(dst, src))
            continue;
        const hid_t dst_type = make_type(dst), src_type = make_type(src);
        fill_stream(stream, dst.format, src.format, policy);
        body(dst_type, dst, src_type, src);
        H5Tclose(dst_type);
        H5Tclose(src_type);
        pairs++;
    }
    return pairs;
}

static fpconv_h5_report last_report;

const fpconv_h5_report *register_profile(fpconv_h5_profile profile)
{
    assert_int_equal(fpconv_h5_register_profile(profile, &last_report), 0);
    assert_int_equal(last_report.profile, profile);
    return &last_report;
}

void check_pairs(struct stream *stream, fpconv_policy policy, pair_body *check)
{
    assert_int_equal(for_each_pair(is_pair, stream, policy, check), last_report.pair_count);
}

/* A magnitude between the largest finite float16 and Inf. */
static bool is_above_f16(struct side src, uint64_t code)
{
    const size_t exponent = fields[src.format].exponent, fraction = fields[src.format].fraction;
    const uint64_t infinity = ((UINT64_C(1) << exponent) - 1) << fraction;
    const uint64_t magnitude = code & ((UINT64_C(1) << (exponent + fraction)) - 1);
    return magnitude > oracle_convert(src.format, FPCONV_F16, 0x7bff, FPCONV_OCP) &&
           magnitude < infinity;
}

uint64_t repaired_code(struct side dst, struct side src, uint64_t code)
{
    if (!is_native_pair(dst, src))
        return oracle_convert(dst.format, src.format, code, FPCONV_HDF5);
    /* The library's compiler conversion compares with 65504 first. */
    if (dst.format == FPCONV_F16 && is_above_f16(src, code))
        return 0x7c00 | (oracle_convert(FPCONV_F16, src.format, code, FPCONV_OCP) & 0x8000);
    return oracle_convert(dst.format, src.format, code, FPCONV_OCP);
}

static double value_of(fpconv_format format, uint64_t code)
{
    return double_of(oracle_convert(FPCONV_F64, format, code, FPCONV_HDF5));
}

bool is_lost_carry(struct side dst, struct side src, uint64_t code, uint64_t right, uint64_t loop)
{
    const double source = value_of(src.format, code), got = value_of(dst.format, loop);
    const double wanted = value_of(dst.format, right);
    int exponent;
    /* got = 2^e, 2^e < source < 2^(e+1), all of one sign ... */
    if (!isfinite(source) || !isfinite(got) || fabs(frexp(got, &exponent)) != 0.5 ||
        fabs(source) <= fabs(got) || fabs(source) >= 2 * fabs(got) || source * got < 0)
        return false;
    /* ... and wanted = 2^(e+1), or the largest finite value below that. */
    const uint64_t last =
        oracle_code_of_index(dst.format, oracle_last_index(dst.format, FPCONV_HDF5));
    return wanted == 2 * got || (fabs(wanted) == value_of(dst.format, last) &&
                                 fabs(wanted) > fabs(got) && fabs(source) >= fabs(wanted));
}

size_t element_size(struct side side)
{
    return fpconv_format_size(side.format);
}

static uint64_t ordered(struct side side, uint64_t code)
{
    const size_t size = element_size(side);
    uint64_t reversed = 0;
    if (!is_swapped(side))
        return code;
    for (size_t i = 0; i < size; i++)
        reversed |= (code >> 8 * i & 0xff) << 8 * (size - 1 - i);
    return reversed;
}

void store_element(void *p, struct side side, uint64_t code)
{
    store_code(p, element_size(side), ordered(side, code));
}

uint64_t load_element(const void *p, struct side side)
{
    return ordered(side, load_code(p, element_size(side)));
}

void convert_codes(hid_t dst_type, struct side dst, hid_t src_type, struct side src,
                   const uint64_t *codes, uint64_t *results, size_t n)
{
    uint8_t *buf = malloc(n * 8);
    assert_non_null(buf);
    for (size_t i = 0; i < n; i++)
        store_element(buf + i * element_size(src), src, codes[i]);
    assert_true(H5Tconvert(src_type, dst_type, n, buf, NULL, H5P_DEFAULT) >= 0);
    for (size_t i = 0; i < n; i++)
        results[i] = load_element(buf + i * element_size(dst), dst);
    free(buf);
}

void convert_codes_one_by_one(hid_t dst_type, struct side dst, hid_t src_type, struct side src,
                              const uint64_t *codes, uint64_t *results, size_t n)
{
    for (size_t i = 0; i < n; i++)
        convert_codes(dst_type, dst, src_type, src, codes + i, results + i, 1);
}

const char *side_name(struct side side, char name[16])
{
    snprintf(name, 16, "%s%s", fpconv_format_name(side.format),
             side.order == H5T_ORDER_LE   ? "LE"
             : side.order == H5T_ORDER_BE ? "BE"
                                          : "");
    return name;
}

void check_element(struct side dst, struct side src, size_t i, uint64_t code, uint64_t got,
                   uint64_t want)
{
    char dst_name[16], src_name[16];
    if (got != want)
        fail_msg("%s to %s, element %zu: %#" PRIx64 " gives %#" PRIx64 ", not %#" PRIx64,
                 side_name(src, src_name), side_name(dst, dst_name), i, code, got, want);
}

int check_nothing_open(void **state)
{
    (void)state;
    const unsigned kinds = H5F_OBJ_FILE | H5F_OBJ_DATASET | H5F_OBJ_GROUP | H5F_OBJ_ATTR;
    return H5Fget_obj_count((hid_t)H5F_OBJ_ALL, kinds) == 0 ? 0 : -1;
}
