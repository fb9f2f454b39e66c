/*
 * plugin.h - what the files of the HDF5 plugin share
 *
 * SPDX-License-Identifier: MIT
 *
 * Each file uses those before it:  library.c: its lock and errors; copies.c: which copy
 * of it; types.c: formats as HDF5 datatypes; pairs.c: the table of pairs; rule.c: the
 * library's behaviour, value by value; convert.c: the conversion; probe.c: which of that
 * behaviour the linked library shows; register.c: which pairs are taken over, and how;
 * selection.c: selections, cut into slices; io.c and scaled/: reading and writing with the
 * conversion outside of the library.
 *
 * All state is guarded by HDF5's own global lock: register.c works inside a
 * callback of the library, and the library calls the converter.  So no lock of
 * our own can be taken in the wrong order.
 */
#ifndef FPCONV_HDF5_PLUGIN_PLUGIN_H
#define FPCONV_HDF5_PLUGIN_PLUGIN_H

#include <stdbool.h>

#include "fpconv/fpconv_h5.h"

/* Closes what was opened.  To close an id below zero would be an error of HDF5's. */
static inline void fp_h5_close(hid_t id, herr_t (*close_id)(hid_t))
{
    if (id >= 0)
        close_id(id);
}

/* A datatype that we convert from and to: a format in a byte order.  One-byte
 * types exist in both orders too, as different types that hold the same. */
struct h5_side {
    fpconv_format format;
    H5T_order_t order; /* H5T_ORDER_NONE: opaque */
    uint8_t size;      /* bytes of an element */
    bool is_swapped;   /* in memory in the other order than the machine's */
};

enum { SIDE_COUNT = 2 * (FPCONV_FORMAT_COUNT - 1) + 1 };

extern const struct h5_side fp_h5_sides[SIDE_COUNT];

/* What becomes of a carry out of the rounded significand. */
enum h5_carry {
    CARRY_KEPT,
    CARRY_LOST,  /* if the source or the result is subnormal */
    CARRY_STICKY /* also in all that follows in the same call */
};

/* How a pair is converted. */
struct h5_rule {
    fpconv_policy policy;
    bool eager_overflow; /* whatever is above the largest finite value is Inf */
    bool is_native;      /* exceptions are those of the library's compiler conversions */
    enum h5_carry carry;
};

/* What the probes showed.  `identical` and `repaired` hold if .._known. */
struct h5_findings {
    bool is_probed;
    bool has_conversion; /* the library has one of its own */
    bool is_hard;        /* ... and could not be given it back by H5Tunregister */
    bool repaired_known, identical_known;
    struct h5_rule repaired, identical;
    unsigned probes;
    unsigned differed[FPCONV_H5_PROFILE_COUNT];
    unsigned bugs;
};

/* Which magnitudes, as codes, the library counts as denormalised. */
struct h5_denormals {
    uint64_t source_width;              /* sources that are: from 1 on */
    uint64_t lowest, width;             /* whose results are, too, as far as not among those */
    uint64_t result_lowest, result_end; /* what either is converted to is not outside */
};

struct h5_pair {
    const struct h5_side *src, *dst;
    struct h5_findings findings;
    struct h5_rule rule;
    unsigned registered_in; /* a session of the library; 0: none */
    bool is_plain;          /* the core's strided conversion by the policy does it all */
    struct h5_denormals denormals;
    const char *table; /* the results of all bytes, of a plain pair to f32 or f64 */
};

/* library.c */
/* Runs a function as one step for all threads; its result. */
bool fp_h5_run_locked(bool (*body)(void *), void *argument);
/* Pushes a message that names the pair (unless NULL) onto the error stack. */
void fp_h5_push_error(const char *function, unsigned line, const struct h5_pair *pair,
                      const char *what);
const char *fp_h5_order_name(H5T_order_t order);

/* types.c */
/* The session of the library: 1, and one more after each H5close() that was
 * noticed.  Makes the datatypes of a new one.  0 if that fails. */
unsigned fp_h5_session(void);
hid_t fp_h5_side_type(const struct h5_side *side);
/* As above, but unlike any registered type: converts by the library's loop. */
hid_t fp_h5_unregistered_type(const struct h5_side *side);
const struct h5_side *fp_h5_find_side(hid_t type);

/* copies.c */
/* Does anybody but us use the libhdf5 that we use?  If not, but another copy of
 * it is in use, the message says so. */
bool fp_h5_library_is_in_use(char *message, size_t size);

/* pairs.c */
/* By destination and source; those that are not converted have src == NULL. */
extern struct h5_pair fp_h5_pairs[SIDE_COUNT][SIDE_COUNT];
void fp_h5_make_pairs(void);
struct h5_pair *fp_h5_find_pair(const struct h5_side *src, const struct h5_side *dst);

/* rule.c */
/* One element; denormal_seen is the state that CARRY_STICKY keeps in a call. */
uint64_t fp_h5_convert_code(const struct h5_pair *pair, const struct h5_rule *rule, uint64_t code,
                            bool *denormal_seen);
struct h5_denormals fp_h5_denormals_of(const struct h5_pair *pair);
/* How many of n source codes come before the first that the library counts as denormalised.
 * Their results under FPCONV_HDF5, if they are at hand and not NULL, make it take less time. */
size_t fp_h5_count_before_denormal(const struct h5_pair *pair, const void *codes,
                                   const void *results, size_t n);
/* Where the source is subnormal, the results become the others, for a pair of 16-bit formats. */
void fp_h5_take_where_subnormal(const struct h5_pair *pair, void *results, const void *others,
                                const void *codes, size_t n);
/* n codes of f32 or f64 as they have to be for the core to overflow as eagerly as the rule
 * says: `codes`, or all of them in `room`, which does not overlap them. */
const void *fp_h5_overflow_early(const struct h5_pair *pair, const void *codes, void *room,
                                 size_t n);
/* Does the library report an exception for this source code, and which? */
bool fp_h5_find_exception(const struct h5_pair *pair, uint64_t code, H5T_conv_except_t *exception);
/* Does the library count the element as denormalised: a subnormal source, or a
 * result below the normal range? */
bool fp_h5_is_denormal(const struct h5_pair *pair, uint64_t code, fpconv_policy policy);

/* convert.c */
herr_t fp_h5_convert(hid_t src_type, hid_t dst_type, H5T_cdata_t *cdata, size_t n,
                     size_t buf_stride, size_t bkg_stride, void *buf, void *bkg,
                     hid_t transfer_list);
/* n packed elements in place, by a pair that need not be registered. */
herr_t fp_h5_convert_buffer(const struct h5_pair *pair, void *buf, size_t n, hid_t src_type,
                            hid_t dst_type, hid_t transfer_list);
void fp_h5_set_rule(struct h5_pair *pair, struct h5_rule rule);

/* probe.c */
enum { PROBE_MAX = 8192 };

/* How the linked library is asked: by the pair's path; or, if that is somebody's
 * converter, as the compiler converts or by its general loop. */
enum h5_asking { ASK_PATH, ASK_COMPILER, ASK_LOOP };

struct probes {
    const struct h5_pair *pair;
    enum h5_asking asks;
    H5T_conv_t function; /* the one last met, and whose it is */
    bool is_from_library;
    unsigned n;
    uint64_t code[PROBE_MAX]; /* of the source */
    /* the same as elements in memory, what the library made of them, what we did */
    char source[PROBE_MAX * 8], library[PROBE_MAX * 8], ours[PROBE_MAX * 8];
};
/* Fills pair->findings, before the pair is registered; `room` is for the probes. */
void fp_h5_probe(struct h5_pair *pair, struct probes *room);

/* register.c */
/* A copy of the pair as it is registered; if it is not, as FPCONV_H5_REPAIRED has
 * it.  False if that leaves it to the library. */
bool fp_h5_current_pair(const struct h5_side *src, const struct h5_side *dst, struct h5_pair *pair);

#endif /* FPCONV_HDF5_PLUGIN_PLUGIN_H */
