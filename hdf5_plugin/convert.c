/*
 * convert.c - the function that HDF5 calls to convert
 *
 * SPDX-License-Identifier: MIT
 *
 * One function serves all pairs; HDF5 keeps which pair a path is for in
 * cdata->priv.  A plain pair is one call of the core.  The others go through
 * tiles on the stack: bytes swapped, and whatever else of the library's
 * behaviour the pair's rule asks for applied to the source, as float or double.
 */
#include "../src/bits.h"
#include "../src/internal.h"
#include "plugin.h"

/* A tile is as many elements as fill so many bytes, as the source, the destination
 * or what is between them, whichever are widest.  Its buffers stay in the L1 cache. */
enum {
    TILE_BYTES = 8192,
    DIRECT_TILE_BYTES = 2 * TILE_BYTES, /* with no buffer in between but for changed elements */
};

/* -------------------------------------------------------------------------- */
/* Elements in memory                                                         */
/* -------------------------------------------------------------------------- */

/* Packed on both sides: the stride is a constant too, for the vectoriser. */
static inline __attribute__((always_inline)) void copy_swapped(char *dst, ptrdiff_t dst_stride,
                                                               const char *src,
                                                               ptrdiff_t src_stride, size_t size,
                                                               size_t n)
{
    const ptrdiff_t packed = (ptrdiff_t)size;
    if (dst_stride == packed && src_stride == packed)
        bits_copy(dst, packed, src, packed, size, n, true);
    else
        bits_copy(dst, dst_stride, src, src_stride, size, n, true);
}

/* Size and order are constants in each call, so that the loops are short.  The two
 * sides do not overlap. */
static void copy_side(char *restrict dst, ptrdiff_t dst_stride, const char *restrict src,
                      ptrdiff_t src_stride, size_t n, const struct h5_side *side)
{
    if (!side->is_swapped && dst_stride == side->size && src_stride == side->size) {
        memcpy(dst, src, n * side->size);
        return;
    }
    switch (side->size * 2 + side->is_swapped) {
    case 2:
        bits_copy(dst, dst_stride, src, src_stride, 1, n, false);
        break;
    case 4:
        bits_copy(dst, dst_stride, src, src_stride, 2, n, false);
        break;
    case 5:
        copy_swapped(dst, dst_stride, src, src_stride, 2, n);
        break;
    case 8:
        bits_copy(dst, dst_stride, src, src_stride, 4, n, false);
        break;
    case 9:
        copy_swapped(dst, dst_stride, src, src_stride, 4, n);
        break;
    case 16:
        bits_copy(dst, dst_stride, src, src_stride, 8, n, false);
        break;
    default:
        copy_swapped(dst, dst_stride, src, src_stride, 8, n);
        break;
    }
}

/* -------------------------------------------------------------------------- */
/* Conversion without exceptions                                              */
/* -------------------------------------------------------------------------- */

/* The elements of a call: where they are and how they are walked.  HDF5 gives
 * one buffer: packed, where elements that grow are taken from the last one on;
 * or fields a stride apart, from the first on. */
struct elements {
    char *buf;
    size_t n;
    ptrdiff_t src_stride, dst_stride;
    bool backward;
};

static struct elements elements_of(const struct h5_pair *pair, void *buf, size_t n, size_t stride)
{
    const size_t src_size = pair->src->size;
    const size_t dst_size = pair->dst->size;
    return (struct elements){buf, n, (ptrdiff_t)(stride ? stride : src_size),
                             (ptrdiff_t)(stride ? stride : dst_size),
                             stride == 0 && dst_size > src_size};
}

/* From 16 to 32 bytes in two pieces, which may overlap, for want of a call. */
static void copy_short(char *restrict to, const char *restrict from, size_t bytes)
{
    enum { PIECE = 16 };
    if (bytes < PIECE || bytes > 2 * PIECE) {
        memcpy(to, from, bytes);
        return;
    }
    memcpy(to, from, PIECE);
    memcpy(to + bytes - PIECE, from + bytes - PIECE, PIECE);
}

/*
 * The f32 or f64 of every byte, for a pair to either: 16 e4m3 to f32 take 8 ns by it and
 * 20 by the core, whose vectors have 64 elements.  Made while a pair gets its rule.
 */
enum { BYTES = UINT8_MAX + 1, LOOK_UP_MAX = 32 };

static const char *table_of(const struct h5_pair *pair)
{
    static struct {
        bool is_made;
        char values[BYTES * sizeof(double)];
    } tables[FPCONV_F32 + 1][FPCONV_FORMAT_COUNT][FPCONV_POLICY_COUNT];
    const fpconv_format dst = pair->dst->format, src = pair->src->format;
    const fpconv_policy policy = pair->rule.policy;
    if (dst > FPCONV_F32 || pair->src->size != 1)
        return NULL;
    if (!tables[dst][src][policy].is_made) {
        uint8_t codes[BYTES];
        for (unsigned i = 0; i < BYTES; i++)
            codes[i] = (uint8_t)i;
        if (fpconv_convert(dst, tables[dst][src][policy].values, src, codes, BYTES, policy) !=
            FPCONV_OK)
            return NULL;
        tables[dst][src][policy].is_made = true;
    }
    return tables[dst][src][policy].values;
}

/* From the last one on, in place. */
static inline void look_up(char *buf, size_t size, const char *table, size_t n)
{
    for (size_t i = n; i-- > 0;)
        memcpy(buf + i * size, table + (uint8_t)buf[i] * size, size);
}

/*
 * Arrays, as datatypes, come one by one: the time of a call on few elements
 * counts.  Few elements that grow are looked up, or copied, so that the core need
 * not take care of what overlaps.
 */
static fpconv_status convert_plain(const struct h5_pair *pair, const struct elements *e)
{
    enum { SHORT_BYTES = 256 };
    const fpconv_format src = pair->src->format, dst = pair->dst->format;
    const size_t bytes = e->n * pair->src->size;
    if (e->backward && pair->table && e->n <= LOOK_UP_MAX) {
        if (dst == FPCONV_F32)
            look_up(e->buf, sizeof(float), pair->table, e->n);
        else
            look_up(e->buf, sizeof(double), pair->table, e->n);
        return FPCONV_OK;
    }
    if (e->backward && bytes <= SHORT_BYTES) {
        char in[SHORT_BYTES];
        copy_short(in, e->buf, bytes);
        return fpconv_convert(dst, e->buf, src, in, e->n, pair->rule.policy);
    }
    return fpconv_convert_strided(dst, e->buf, e->dst_stride, src, e->buf, e->src_stride, e->n,
                                  pair->rule.policy);
}

/* -------------------------------------------------------------------------- */
/* Lost carries                                                               */
/* -------------------------------------------------------------------------- */

/* Elements packed and in the machine's order. */
static void convert_packed(const struct h5_pair *pair, char *out, const char *codes, size_t n,
                           fpconv_policy policy)
{
    fp_convert(pair->dst->format, out, pair->dst->size, pair->src->format, codes, pair->src->size,
               n, policy);
}

static bool are_apart(const char *out, size_t out_bytes, const char *in, size_t in_bytes)
{
    return out + out_bytes <= in || in + in_bytes <= out;
}

/* How much is converted before it is looked at. */
enum { PIECE_MIN = 512, PIECE_MAX = 8192 };

/*
 * As long as nothing is denormalised, carries are kept.  Whether something is, the results
 * tell in less time than the sources do; so they are looked at first, unless they take the
 * sources' place.  Returns how many elements it converted.
 *
 * A piece is about as long as what lies before it, so that in place results half as wide as
 * the sources overwrite none of the piece; and little is done in vain.
 */
static size_t convert_normal_piece(const struct h5_pair *pair, char *out, const char *codes,
                                   size_t before, size_t most, size_t n, bool *denormal_seen)
{
    const size_t grown = before < PIECE_MIN ? PIECE_MIN : before < most ? before : most;
    const size_t count = n < grown ? n : grown;
    const bool apart = are_apart(out, count * pair->dst->size, codes, count * pair->src->size);
    if (apart)
        convert_packed(pair, out, codes, count, FPCONV_HDF5);
    const size_t normal = fp_h5_count_before_denormal(pair, codes, apart ? out : NULL, count);
    *denormal_seen = normal < count;
    if (!apart)
        convert_packed(pair, out, codes, normal, FPCONV_HDF5);
    return normal;
}

/*
 * All that comes before the first denormalised element.  Some pairs have kernels that look at
 * results themselves: f32 to f16 takes 1.1 times as long as without a look instead of 1.3.
 * What stops them is left to a piece, of zeros and the like a long one.
 */
static size_t convert_normal(const struct h5_pair *pair, char *out, const char *codes, size_t n,
                             bool *denormal_seen)
{
    const size_t src_size = pair->src->size, dst_size = pair->dst->size;
    size_t done = 0;
    while (!*denormal_seen && done < n) {
        const size_t normal =
            fp_convert_while_normal(pair->dst->format, out + done * dst_size, pair->src->format,
                                    codes + done * src_size, n - done);
        done += normal;
        if (done < n)
            done += convert_normal_piece(pair, out + done * dst_size, codes + done * src_size, done,
                                         normal < PIECE_MIN ? PIECE_MAX : PIECE_MIN, n - done,
                                         denormal_seen);
    }
    return done;
}

/*
 * f16 has subnormal numbers that are normal ones in bf16.  They lose their carries, but are
 * f32s like others to the core.  (Those of 8 bits have too few bits to be rounded.)
 */
static bool has_normal_results_of_subnormals(const struct h5_pair *pair)
{
    return pair->src->format == FPCONV_F16 && pair->dst->format == FPCONV_BF16;
}

static void convert_subnormal_f16(const struct h5_pair *pair, char *out, const char *codes,
                                  size_t n)
{
    enum { PIECE = TILE_BYTES / sizeof(uint16_t) };
    _Alignas(64) char kept[TILE_BYTES], lost[TILE_BYTES];
    for (size_t count; n > 0; n -= count, out += count * sizeof(uint16_t)) {
        count = n < PIECE ? n : PIECE;
        if (fp_h5_count_before_denormal(pair, codes, NULL, count) == count) {
            convert_packed(pair, out, codes, count, FPCONV_HDF5);
        } else {
            convert_packed(pair, kept, codes, count, FPCONV_HDF5);
            convert_packed(pair, lost, codes, count, FPCONV_HDF5_CARRY_LOST);
            fp_h5_take_where_subnormal(pair, kept, lost, codes, count);
            memcpy(out, kept, count * sizeof(uint16_t));
        }
        codes += count * sizeof(uint16_t);
    }
}

/* Then it makes no difference whether normal results lose carries: they are exact. */
static bool rounds_only_subnormals(const struct h5_pair *pair)
{
    return fp_formats[pair->dst->format].fraction_bits >=
           fp_formats[pair->src->format].fraction_bits;
}

/* `out` is apart from `codes`, or not behind it. */
static void convert_losing_carries(const struct h5_pair *pair, char *out, const char *codes,
                                   size_t n, bool *denormal_seen)
{
    const size_t src_size = pair->src->size, dst_size = pair->dst->size;
    size_t done = 0;
    if (pair->rule.carry == CARRY_LOST && has_normal_results_of_subnormals(pair)) {
        convert_subnormal_f16(pair, out, codes, n);
        return;
    }
    *denormal_seen = *denormal_seen || rounds_only_subnormals(pair);
    if (pair->rule.carry == CARRY_STICKY && !*denormal_seen)
        done = convert_normal(pair, out, codes, n, denormal_seen);
    convert_packed(pair, out + done * dst_size, codes + done * src_size, n - done,
                   *denormal_seen ? FPCONV_HDF5_CARRY_LOST : FPCONV_HDF5_SUBNORMAL_CARRY_LOST);
}

/* -------------------------------------------------------------------------- */
/* Tiles                                                                      */
/* -------------------------------------------------------------------------- */

/* The source's codes in the machine's order are at `codes`; the results go to `out`. */
static void convert_tile(const struct h5_pair *pair, char *out, const char *codes, size_t n,
                         bool *denormal_seen)
{
    _Alignas(64) char changed[DIRECT_TILE_BYTES];
    if (pair->rule.carry != CARRY_KEPT) {
        convert_losing_carries(pair, out, codes, n, denormal_seen);
        return;
    }
    if (pair->rule.eager_overflow)
        codes = fp_h5_overflow_early(pair, codes, changed, n);
    convert_packed(pair, out, codes, n, pair->rule.policy);
}

static size_t tile_elements(const struct h5_pair *pair, size_t n, bool is_direct)
{
    const size_t src_size = pair->src->size, dst_size = pair->dst->size;
    const size_t widest = src_size > dst_size ? src_size : dst_size;
    if (is_direct && pair->rule.carry != CARRY_KEPT)
        return n;
    return (is_direct ? DIRECT_TILE_BYTES : TILE_BYTES) / widest;
}

/* Kept out of its caller, whose short calls would set up a stack frame for the tiles. */
static __attribute__((noinline)) void convert_tiles(const struct h5_pair *pair,
                                                    const struct elements *e)
{
    _Alignas(64) char in[TILE_BYTES], out[TILE_BYTES];
    const ptrdiff_t src_size = pair->src->size;
    const ptrdiff_t dst_size = pair->dst->size;
    /* Results no wider than the source are written to what has been read. */
    const bool is_read_in_place =
        e->src_stride == src_size && !pair->src->is_swapped && dst_size <= src_size;
    const bool is_direct = e->dst_stride == dst_size && !pair->dst->is_swapped;
    const size_t tile = tile_elements(pair, e->n, is_read_in_place && is_direct);
    bool denormal_seen = false; /* what a call has met so far */
    for (size_t done = 0; done < e->n;) {
        const size_t count = e->n - done < tile ? e->n - done : tile;
        const ptrdiff_t first = (ptrdiff_t)(e->backward ? e->n - done - count : done);
        const char *src = e->buf + first * e->src_stride;
        char *dst = e->buf + first * e->dst_stride;
        if (!is_read_in_place) {
            copy_side(in, src_size, src, e->src_stride, count, pair->src);
            src = in;
        }
        convert_tile(pair, is_direct ? dst : out, src, count, &denormal_seen);
        if (!is_direct)
            copy_side(dst, e->dst_stride, out, dst_size, count, pair->dst);
        done += count;
    }
}

/* -------------------------------------------------------------------------- */
/* Exceptions                                                                 */
/* -------------------------------------------------------------------------- */

struct exceptions {
    H5T_conv_except_func_t handler;
    void *data;
    hid_t src_type, dst_type;
};

/* One element, as the library's general loop treats it: a handler's word counts
 * before the rule's. */
static bool convert_one(const struct h5_pair *pair, char *dst, const char *src,
                        const struct exceptions *x, bool *denormal_seen)
{
    const size_t src_size = pair->src->size;
    const size_t dst_size = pair->dst->size;
    char in[8], out[8], handled[8] = {0};
    memcpy(in, src, src_size);
    H5T_conv_except_t exception;
    H5T_conv_ret_t answer = H5T_CONV_UNHANDLED;
    uint64_t code = bits_load(in, src_size);
    if (pair->src->is_swapped)
        code = bits_swap(code, src_size);
    if (fp_h5_find_exception(pair, code, &exception))
        answer = x->handler(exception, x->src_type, x->dst_type, in, handled, x->data);
    if (answer == H5T_CONV_ABORT)
        return false;
    uint64_t result = fp_h5_convert_code(pair, &pair->rule, code, denormal_seen);
    if (pair->dst->is_swapped)
        result = bits_swap(result, dst_size);
    bits_store(out, dst_size, result);
    memcpy(dst, answer == H5T_CONV_HANDLED ? handled : out, dst_size);
    return true;
}

static bool convert_each(const struct h5_pair *pair, const struct elements *e,
                         const struct exceptions *x)
{
    bool denormal_seen = false;
    for (size_t i = 0; i < e->n; i++) {
        const ptrdiff_t at = (ptrdiff_t)(e->backward ? e->n - 1 - i : i);
        if (!convert_one(pair, e->buf + at * e->dst_stride, e->buf + at * e->src_stride, x,
                         &denormal_seen))
            return false;
    }
    return true;
}

/* -------------------------------------------------------------------------- */
/* Commands                                                                   */
/* -------------------------------------------------------------------------- */

static herr_t fail(const struct h5_pair *pair, const char *what)
{
    fp_h5_push_error("fp_h5_convert", __LINE__, pair, what);
    return -1;
}

static inline herr_t convert_without_handler(const struct h5_pair *pair, const struct elements *e)
{
    if (!pair->is_plain) {
        convert_tiles(pair, e);
        return 0;
    }
    const fpconv_status status = convert_plain(pair, e);
    return status == FPCONV_OK ? 0 : fail(pair, fpconv_strerror(status));
}

/* By a transfer list that is not the default one. */
static __attribute__((noinline)) herr_t convert_by_list(const struct h5_pair *pair,
                                                        const struct elements *e, hid_t src_type,
                                                        hid_t dst_type, hid_t transfer_list)
{
    struct exceptions x = {NULL, NULL, src_type, dst_type};
    if (H5Pget_type_conv_cb(transfer_list, &x.handler, &x.data) < 0 || !x.handler)
        return convert_without_handler(pair, e);
    return convert_each(pair, e, &x) ? 0 : fail(pair, "the exception handler asked to abort");
}

/*
 * The default list has no handler.  HDF5 1.14 and later pass no list for members of
 * compounds and elements of arrays.
 */
static inline herr_t convert(const struct h5_pair *pair, const struct elements *e, hid_t src_type,
                             hid_t dst_type, hid_t transfer_list)
{
    if (transfer_list > 0 && transfer_list != H5P_LST_DATASET_XFER_ID_g)
        return convert_by_list(pair, e, src_type, dst_type, transfer_list);
    return convert_without_handler(pair, e);
}

/* Is this path one of ours?  If not, the library looks for another function. */
static herr_t begin(hid_t src_type, hid_t dst_type, H5T_cdata_t *cdata)
{
    const struct h5_side *src = fp_h5_find_side(src_type);
    const struct h5_side *dst = fp_h5_find_side(dst_type);
    struct h5_pair *pair = src && dst ? fp_h5_find_pair(src, dst) : NULL;
    if (!pair) {
        fp_h5_push_error(__func__, __LINE__, NULL, "not a pair of datatypes that fpconv converts");
        return -1;
    }
    cdata->priv = pair;
    cdata->need_bkg = H5T_BKG_NO;
    return 0;
}

herr_t fp_h5_convert(hid_t src_type, hid_t dst_type, H5T_cdata_t *cdata, size_t n,
                     size_t buf_stride, size_t bkg_stride, void *buf, void *bkg,
                     hid_t transfer_list)
{
    (void)bkg_stride;
    (void)bkg;
    switch (cdata->command) {
    case H5T_CONV_INIT:
        return begin(src_type, dst_type, cdata);
    case H5T_CONV_FREE:
        return 0; /* nothing was allocated */
    case H5T_CONV_CONV:
        break;
    default:
        fp_h5_push_error(__func__, __LINE__, cdata->priv, "unknown command");
        return -1;
    }
    if (n == 0)
        return 0;
    const struct h5_pair *pair = cdata->priv;
    const struct elements e = elements_of(pair, buf, n, buf_stride);
    return convert(pair, &e, src_type, dst_type, transfer_list);
}

herr_t fp_h5_convert_buffer(const struct h5_pair *pair, void *buf, size_t n, hid_t src_type,
                            hid_t dst_type, hid_t transfer_list)
{
    const struct elements e = elements_of(pair, buf, n, 0);
    return convert(pair, &e, src_type, dst_type, transfer_list);
}

void fp_h5_set_rule(struct h5_pair *pair, struct h5_rule rule)
{
    pair->rule = rule;
    pair->is_plain = rule.carry == CARRY_KEPT && !rule.eager_overflow && !pair->src->is_swapped &&
                     !pair->dst->is_swapped;
    pair->denormals = fp_h5_denormals_of(pair);
    pair->table = pair->is_plain ? table_of(pair) : NULL;
}
