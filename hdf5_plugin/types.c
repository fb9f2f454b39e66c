/*
 * types.c - the formats as HDF5 datatypes, and back
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>

#include "../src/formats.h"
#include "plugin.h"

#define IS_LITTLE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
#define BOTH_ORDERS(ENUM, name, type, ...)                                       \
    {FPCONV_##ENUM, H5T_ORDER_LE, sizeof(type), sizeof(type) > 1 && !IS_LITTLE}, \
        {FPCONV_##ENUM, H5T_ORDER_BE, sizeof(type), sizeof(type) > 1 && IS_LITTLE},

const struct h5_side fp_h5_sides[SIDE_COUNT] = {
    FPCONV_FIELD_FORMATS(BOTH_ORDERS){FPCONV_HIF8, H5T_ORDER_NONE, 1, false}};

/* The identifiers of this session of the library, that is until H5close(). */
static struct {
    unsigned number;
    hid_t marker;
    hid_t type[SIDE_COUNT];
    hid_t unregistered[SIDE_COUNT];
} session;

/* -------------------------------------------------------------------------- */
/* Making                                                                     */
/* -------------------------------------------------------------------------- */

static hid_t make_float_type(const struct h5_side *side)
{
    const struct fp_format *f = &fp_formats[side->format];
    const size_t fraction = f->fraction_bits, exponent = f->exponent_bits;
    const size_t bits = 1 + exponent + fraction;
    const hid_t type = H5Tcopy(side->order == H5T_ORDER_LE ? H5T_IEEE_F64LE : H5T_IEEE_F64BE);
    /* In this order: the fields always lie within the precision, and the
     * precision within the size. */
    const bool made = type >= 0 &&
                      H5Tset_fields(type, bits - 1, fraction, exponent, 0, fraction) >= 0 &&
                      H5Tset_precision(type, bits) >= 0 && H5Tset_size(type, f->size) >= 0 &&
                      H5Tset_ebias(type, (size_t)f->bias) >= 0;
    if (type >= 0 && !made) {
        H5Tclose(type);
        return H5I_INVALID_HID;
    }
    return type;
}

static hid_t make_opaque_type(const char *tag)
{
    const hid_t type = H5Tcreate(H5T_OPAQUE, 1);
    if (type >= 0 && H5Tset_tag(type, tag) < 0) {
        H5Tclose(type);
        return H5I_INVALID_HID;
    }
    return type;
}

/* HDF5's own type for a side, where this version predefines one. */
static hid_t predefined_type(const struct h5_side *side)
{
    const bool little = side->order == H5T_ORDER_LE;
    switch (side->format) {
    case FPCONV_F64:
        return little ? H5T_IEEE_F64LE : H5T_IEEE_F64BE;
    case FPCONV_F32:
        return little ? H5T_IEEE_F32LE : H5T_IEEE_F32BE;
#ifdef H5T_IEEE_F16LE
    case FPCONV_F16:
        return little ? H5T_IEEE_F16LE : H5T_IEEE_F16BE;
#endif
#ifdef H5T_FLOAT_BFLOAT16LE
    case FPCONV_BF16:
        return little ? H5T_FLOAT_BFLOAT16LE : H5T_FLOAT_BFLOAT16BE;
#endif
#ifdef H5T_FLOAT_F8E5M2
    case FPCONV_E5M2:
        return little ? H5T_FLOAT_F8E5M2 : H5I_INVALID_HID;
    case FPCONV_E4M3:
        return little ? H5T_FLOAT_F8E4M3 : H5I_INVALID_HID;
#endif
#ifdef H5T_FLOAT_F6E3M2
    case FPCONV_E3M2:
        return little ? H5T_FLOAT_F6E3M2 : H5I_INVALID_HID;
    case FPCONV_E2M3:
        return little ? H5T_FLOAT_F6E2M3 : H5I_INVALID_HID;
#endif
#ifdef H5T_FLOAT_F4E2M1
    case FPCONV_E2M1:
        return little ? H5T_FLOAT_F4E2M1 : H5I_INVALID_HID;
#endif
    default:
        return H5I_INVALID_HID;
    }
}

/* A type of ours is locked: a caller cannot close or change it. */
static hid_t make_side_type(const struct h5_side *side)
{
    const hid_t predefined = predefined_type(side);
    if (predefined >= 0)
        return predefined;
    const hid_t type = side->order == H5T_ORDER_NONE ? make_opaque_type(FPCONV_H5_HIF8_TAG)
                                                     : make_float_type(side);
    if (type >= 0)
        H5Tlock(type);
    return type;
}

/* The padding of bits that no field covers.  There are none: the bits are the
 * same, but the type is another one. */
static hid_t make_unregistered_type(const struct h5_side *side)
{
    if (side->order == H5T_ORDER_NONE)
        return H5I_INVALID_HID;
    const hid_t type = make_float_type(side);
    if (type >= 0 && H5Tset_inpad(type, H5T_PAD_ONE) >= 0)
        H5Tlock(type);
    return type;
}

/* -------------------------------------------------------------------------- */
/* Session                                                                    */
/* -------------------------------------------------------------------------- */

static bool has_tag(hid_t type, const char *wanted)
{
    char *tag = H5Tget_tag(type);
    const bool is_equal = tag && strcmp(tag, wanted) == 0;
    H5free_memory(tag);
    return is_equal;
}

/* The tag tells our marker from whatever has got its identifier since
 * H5close(), where the library starts to count again. */
static void marker_tag(char tag[64])
{
    snprintf(tag, 64, "fpconv:session:%p", (void *)&session);
}

static bool session_is_alive(void)
{
    if (session.marker <= 0 || H5Iget_type(session.marker) != H5I_DATATYPE ||
        H5Tget_class(session.marker) != H5T_OPAQUE)
        return false;
    char tag[64];
    marker_tag(tag);
    return has_tag(session.marker, tag);
}

unsigned fp_h5_session(void)
{
    if (session_is_alive())
        return session.number;
    bool made = true;
    for (unsigned i = 0; i < SIDE_COUNT; i++) {
        const struct h5_side *side = &fp_h5_sides[i];
        session.type[i] = make_side_type(side);
        session.unregistered[i] = make_unregistered_type(side);
        made = made && session.type[i] >= 0 &&
               (session.unregistered[i] >= 0 || side->order == H5T_ORDER_NONE);
    }
    char tag[64];
    marker_tag(tag);
    session.marker = made ? make_opaque_type(tag) : H5I_INVALID_HID;
    if (session.marker >= 0)
        H5Tlock(session.marker);
    return session.marker >= 0 ? ++session.number : 0;
}

hid_t fp_h5_side_type(const struct h5_side *side)
{
    return session.type[side - fp_h5_sides];
}

hid_t fp_h5_unregistered_type(const struct h5_side *side)
{
    return session.unregistered[side - fp_h5_sides];
}

/* -------------------------------------------------------------------------- */
/* Finding                                                                    */
/* -------------------------------------------------------------------------- */

/* All that HDF5 compares when it asks whether two floating-point types are equal. */
struct structure {
    size_t size, precision, offset, bias;
    size_t sign_at, exponent_at, exponent_size, fraction_at, fraction_size;
    int order, norm, inner_pad, low_pad, high_pad;
};

static bool read_structure(hid_t type, struct structure *s)
{
    memset(s, 0, sizeof(*s)); /* the padding too: structures are compared as bytes */
    H5T_pad_t low, high;
    if (H5Tget_pad(type, &low, &high) < 0 ||
        H5Tget_fields(type, &s->sign_at, &s->exponent_at, &s->exponent_size, &s->fraction_at,
                      &s->fraction_size) < 0)
        return false;
    s->size = H5Tget_size(type);
    s->precision = H5Tget_precision(type);
    s->offset = (size_t)H5Tget_offset(type);
    s->bias = H5Tget_ebias(type);
    s->order = H5Tget_order(type);
    s->norm = H5Tget_norm(type);
    s->inner_pad = H5Tget_inpad(type);
    s->low_pad = low;
    s->high_pad = high;
    return true;
}

/* What make_float_type() makes. */
static struct structure structure_of(const struct h5_side *side)
{
    const struct fp_format *f = &fp_formats[side->format];
    const size_t fraction = f->fraction_bits, exponent = f->exponent_bits;
    struct structure s;
    memset(&s, 0, sizeof(s));
    s.size = f->size;
    s.precision = 1 + exponent + fraction;
    s.bias = (size_t)f->bias;
    s.sign_at = exponent + fraction;
    s.exponent_at = fraction;
    s.exponent_size = exponent;
    s.fraction_size = fraction;
    s.order = side->order;
    s.norm = H5T_NORM_IMPLIED;
    s.inner_pad = s.low_pad = s.high_pad = H5T_PAD_ZERO;
    return s;
}

static bool is_hif8(hid_t type)
{
    return H5Tget_class(type) == H5T_OPAQUE && H5Tget_size(type) == 1 &&
           has_tag(type, FPCONV_H5_HIF8_TAG);
}

const struct h5_side *fp_h5_find_side(hid_t type)
{
    struct structure wanted;
    const bool is_float = H5Tget_class(type) == H5T_FLOAT && read_structure(type, &wanted);
    const bool is_opaque = !is_float && is_hif8(type);
    for (const struct h5_side *side = fp_h5_sides; side < fp_h5_sides + SIDE_COUNT; side++) {
        if (side->order == H5T_ORDER_NONE) {
            if (is_opaque)
                return side;
        } else if (is_float) {
            const struct structure s = structure_of(side);
            if (memcmp(&s, &wanted, sizeof(s)) == 0)
                return side;
        }
    }
    return NULL;
}

/* -------------------------------------------------------------------------- */
/* Exported                                                                   */
/* -------------------------------------------------------------------------- */

struct type_request {
    fpconv_format format;
    hid_t type;
};

static bool find_type(void *argument)
{
    struct type_request *request = argument;
    if (fp_h5_session() == 0)
        return false;
    for (const struct h5_side *side = fp_h5_sides; side < fp_h5_sides + SIDE_COUNT; side++)
        if (side->format == request->format && !side->is_swapped && request->type < 0)
            request->type = fp_h5_side_type(side);
    return true;
}

hid_t fpconv_h5_type(fpconv_format format)
{
    struct type_request request = {format, H5I_INVALID_HID};
    if (!fp_format_is_known(format)) {
        fp_h5_push_error(__func__, __LINE__, NULL, fpconv_strerror(FPCONV_ERROR_FORMAT));
        return H5I_INVALID_HID;
    }
    if (!fp_h5_run_locked(find_type, &request))
        fp_h5_push_error(__func__, __LINE__, NULL, "cannot make the HDF5 datatypes");
    return request.type;
}
