/*
 * h5_support.h - what the tests of the HDF5 plugin share
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FPCONV_TESTS_H5_SUPPORT_H
#define FPCONV_TESTS_H5_SUPPORT_H

#include "fpconv/fpconv_h5.h"
#include "oracle.h"
#include "stream.h"

/* A format in a byte order. */
struct side {
    fpconv_format format;
    H5T_order_t order; /* H5T_ORDER_NONE for hif8 */
};

/* f64 to e2m1 in both orders, and hif8: as many as the plugin knows. */
enum { SIDES = 19 };
struct side side_at(unsigned index);
unsigned index_of(struct side side);

/* A new datatype, built here from fields, not by the plugin. */
hid_t make_type(struct side side);

/* One that has the same bits but is no type of the plugin's: to convert from or
 * to it is to run the library's general loop. */
hid_t make_loop_type(struct side side);

hid_t native_type(fpconv_format format); /* make_type() in the machine's order */

/* Is it a pair of the plugin's? */
bool is_pair(struct side dst, struct side src);

/* Does the library have a compiler conversion for the pair (float16 in 1.14 and
 * later)?  To be asked before anything is registered: call note_native_pairs(). */
void note_native_pairs(void);
bool is_native_pair(struct side dst, struct side src);

/* Does the library's general loop convert the pair? */
bool is_loop_pair(struct side dst, struct side src);

/* Calls a function for each wanted pair, with new datatypes and the stream filled for
 * it; how many there are. */
typedef bool pair_filter(struct side dst, struct side src);
typedef void pair_body(hid_t dst_type, struct side dst, hid_t src_type, struct side src);
unsigned for_each_pair(pair_filter *is_wanted, struct stream *stream, fpconv_policy policy,
                       pair_body *body);

/* Registers a profile; the report, until the next is registered. */
const fpconv_h5_report *register_profile(fpconv_h5_profile profile);

/* for_each_pair() with all pairs of the plugin's, as many as the last report has. */
void check_pairs(struct stream *stream, fpconv_policy policy, pair_body *check);

/* What FPCONV_H5_REPAIRED has to return. */
uint64_t repaired_code(struct side dst, struct side src, uint64_t code);

/* Exact: is `loop` what is left of `right` when its carry is lost? */
bool is_lost_carry(struct side dst, struct side src, uint64_t code, uint64_t right, uint64_t loop);

/* An element in memory in a side's byte order. */
void store_element(void *p, struct side side, uint64_t code);
uint64_t load_element(const void *p, struct side side);
size_t element_size(struct side side);

/* Converts codes by H5Tconvert between two types, in one call or one by one. */
void convert_codes(hid_t dst_type, struct side dst, hid_t src_type, struct side src,
                   const uint64_t *codes, uint64_t *results, size_t n);
void convert_codes_one_by_one(hid_t dst_type, struct side dst, hid_t src_type, struct side src,
                              const uint64_t *codes, uint64_t *results, size_t n);

/* "e4m3LE" */
const char *side_name(struct side side, char name[16]);

/* Fails with the pair, the element's index and the codes if got is not want. */
void check_element(struct side dst, struct side src, size_t i, uint64_t code, uint64_t got,
                   uint64_t want);

/* As a test's teardown: no file and nothing in one is left open. */
int check_nothing_open(void **state);

#define FOR_EACH_SIDE(s) for (unsigned s = 0; s < SIDES; s++)

#endif /* FPCONV_TESTS_H5_SUPPORT_H */
