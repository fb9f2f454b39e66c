/*
 * fpconv_h5 - fpconv as HDF5's own datatype conversion
 *
 * SPDX-License-Identifier: MIT
 *
 * After fpconv_h5_register() the HDF5 library converts between float32 or
 * float64 and bfloat16, float16, FP8, FP6 and FP4, and those among each other,
 * through fpconv: in H5Dwrite, H5Dread, attributes, compounds, arrays,
 * variable-length sequences and H5Tconvert.  Nothing else in a program changes.
 *
 * The functions may be called from any thread of a thread-safe HDF5 and from
 * inside HDF5's callbacks; each is one step for every other thread.  A failure
 * leaves a message on HDF5's error stack.
 */
#ifndef FPCONV_FPCONV_H5_H
#define FPCONV_FPCONV_H5_H

#include <hdf5.h>

#include "fpconv/fpconv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ========================================================================== */
/*                                 Profiles                                   */
/* ========================================================================== */

/**
 * What the converters return.
 *
 * FPCONV_H5_REPAIRED: what the linked library returns for each element alone,
 *   without its two bugs: a carry that is lost when the source or the result is
 *   subnormal, and, up to 1.14, in every later element of the same call.
 *   Ties, special values and NaN are the linked library's, pair by pair: mostly
 *   FPCONV_HDF5, but native float16 in 1.14 and later rounds ties to even,
 *   keeps NaN payloads and turns everything above 65504 into Inf.
 *
 * FPCONV_H5_IDENTICAL: bit for bit what the linked library returns, both bugs
 *   included, only faster.
 *
 * FPCONV_H5_OCP, FPCONV_H5_OCP_SAT: the policies FPCONV_OCP and FPCONV_OCP_SAT.
 */
typedef enum fpconv_h5_profile {
    FPCONV_H5_REPAIRED,
    FPCONV_H5_IDENTICAL,
    FPCONV_H5_OCP,
    FPCONV_H5_OCP_SAT
} fpconv_h5_profile;

/** The number of profiles: valid values are 0 to FPCONV_H5_PROFILE_COUNT - 1. */
#define FPCONV_H5_PROFILE_COUNT 4

/** "repaired", "identical", "ocp" or "ocp_sat"; NULL for an unknown profile. */
FPCONV_API const char *fpconv_h5_profile_name(fpconv_h5_profile profile);

/** Why a pair was or was not taken over. */
typedef enum fpconv_h5_reason {
    FPCONV_H5_REASON_SAME,           /**< taken: every probe gave the linked library's bits */
    FPCONV_H5_REASON_LOST_CARRY,     /**< taken: it differs only where the library loses a carry */
    FPCONV_H5_REASON_PROFILE,        /**< taken: the profile says what to return */
    FPCONV_H5_REASON_NONE_BEFORE,    /**< taken: the library has no conversion of its own */
    FPCONV_H5_REASON_UNEXPLAINED,    /**< left: the library does something unknown to us */
    FPCONV_H5_REASON_NOTHING_TO_COPY /**< left: no conversion to be identical to */
} fpconv_h5_reason;

/** A sentence for a reason, in English, static; never NULL. */
FPCONV_API const char *fpconv_h5_reason_text(fpconv_h5_reason reason);

/** Bugs of the linked library that the probes have met, as bits. */
enum {
    FPCONV_H5_BUG_LOST_CARRY = 1,  /**< of an element whose source or result is subnormal */
    FPCONV_H5_BUG_STICKY_CARRY = 2 /**< of an element that follows such a one in a call */
};

/** One ordered pair of datatypes. */
typedef struct fpconv_h5_pair_report {
    fpconv_format src, dst;
    H5T_order_t src_order, dst_order; /**< H5T_ORDER_LE or _BE; H5T_ORDER_NONE for hif8 */
    int registered;                   /**< 1: converted by fpconv, 0: left to the library */
    fpconv_h5_reason reason;
    unsigned probes;   /**< values that went through the library's loop and ours */
    unsigned differed; /**< of these, how many gave other bits */
    unsigned bugs;     /**< FPCONV_H5_BUG_... */
} fpconv_h5_pair_report;

/** The largest number of pairs that a report holds. */
#define FPCONV_H5_PAIR_MAX 384

/** What a registration found and did. */
typedef struct fpconv_h5_report {
    fpconv_h5_profile profile;
    unsigned library_version[3]; /**< of the linked HDF5: major, minor, release */
    unsigned pair_count;         /**< pairs[0] to pairs[pair_count - 1] are filled */
    unsigned registered_count;
    fpconv_h5_pair_report pairs[FPCONV_H5_PAIR_MAX];
} fpconv_h5_report;

/* ========================================================================== */
/*                               Registration                                 */
/* ========================================================================== */

/** fpconv_h5_register_profile(FPCONV_H5_REPAIRED, NULL). */
FPCONV_API herr_t fpconv_h5_register(void);

/**
 * Registers converters under a profile, in place of those of any profile
 * before.  For other threads the change happens at one moment, between two of
 * their calls to HDF5.  Repeating a registration changes nothing.
 *
 * The first call sends a fixed set of probes through the linked library's
 * conversion of each pair and through fpconv.  A pair is taken over by
 * FPCONV_H5_IDENTICAL only if all bits agree, and by FPCONV_H5_REPAIRED only if
 * each difference is a lost carry, proved by exact arithmetic; any other pair
 * stays with the library.  `report`, which may be NULL, receives the outcome.
 *
 * H5close() drops the registration, as it drops everything; call this again
 * after it.
 *
 * Returns a negative value, and nothing has changed, if the profile is unknown; if
 * the program's HDF5 is another copy than the one that fpconv is linked with (as
 * in a Python package with a libhdf5 of its own, loaded before this call); or if HDF5 fails to
 * register a pair: then no pair is registered.
 */
FPCONV_API herr_t fpconv_h5_register_profile(fpconv_h5_profile profile, fpconv_h5_report *report);

/**
 * Gives every pair back to the library; fine to repeat.  Where HDF5's converter
 * of a pair cannot be put back, because HDF5 has no call for that (float16 in
 * 1.14 and later), one with the same results stays in its place.
 */
FPCONV_API herr_t fpconv_h5_unregister(void);

/**
 * Why the last function of fpconv_h5 that failed in this thread did: a sentence,
 * in English; "" if none has.  For callers that do not see the error stack of the
 * HDF5 library that fpconv is linked with, such as Python's ctypes.
 */
FPCONV_API const char *fpconv_h5_last_error(void);

/* ========================================================================== */
/*                                Datatypes                                   */
/* ========================================================================== */

/** The tag of the one-byte opaque datatype of FPCONV_HIF8. */
#define FPCONV_H5_HIF8_TAG "fpconv:hif8"

/**
 * The HDF5 datatype of a format, in the byte order of the machine: HDF5's
 * predefined one where it has one (H5T_FLOAT_BFLOAT16LE, H5T_FLOAT_F8E4M3, ...
 * in 2.x), else one of equal structure.  FPCONV_HIF8 is an opaque type of one
 * byte with the tag FPCONV_H5_HIF8_TAG.
 *
 * The identifier belongs to the library: do not close it (H5Tclose refuses).
 * It is valid until H5close(); ask again after that.
 *
 * Returns a negative value for an unknown format.
 */
FPCONV_API hid_t fpconv_h5_type(fpconv_format format);

/* ========================================================================== */
/*                            Reading and writing                             */
/* ========================================================================== */

/**
 * H5Dwrite with the conversion outside of HDF5.
 *
 * Writes the selected elements of `buf`, which are in `mem_format` and in the
 * machine's byte order, to a dataset of any type that they can be converted to.
 * The elements are converted piece by piece into a buffer of bounded size, which
 * is handed to HDF5 in the dataset's own type.  So a collective transfer of
 * parallel HDF5 stays collective, where H5Dwrite, having to convert, makes it
 * independent without a word.
 *
 * `mem_space`, `file_space` (H5S_ALL; or any selection: all, none, hyperslabs,
 * points) and `transfer_list` (or H5P_DEFAULT) are those of H5Dwrite.
 * The values stored are those of H5Dwrite after fpconv_h5_register_profile();
 * where nothing is registered, those of FPCONV_H5_REPAIRED.  (The sticky
 * carry, which FPCONV_H5_IDENTICAL keeps for the length of a conversion call,
 * begins anew with each piece.)  A type that is none of fpconv's is converted
 * by HDF5, a piece at a time.
 *
 * A piece is 1 MiB, or what H5Pset_buffer() asks for in the transfer list if
 * that is more.  When a whole chunked dataset is moved, pieces end between rows
 * of chunks, if one fits; if the chunks are filtered, pieces may grow to 64 MiB to
 * hold a row, else a chunk that lies in two pieces would be filtered twice.
 *
 * In a collective transfer all processes of the file's communicator call this
 * together, like H5Dwrite, whatever the sizes of their selections, even none.
 * They make the same number of collective calls: as many as the one with the
 * most pieces.  If one process cannot begin, none does, and all return an error.
 *
 * Returns a negative value, with a message on HDF5's error stack, if an argument
 * is not usable, there is no such conversion, a data transform is set (that
 * needs HDF5's own conversion), memory runs out or HDF5 fails; then a part of
 * the elements may have been written.
 */
FPCONV_API herr_t fpconv_h5_write(hid_t dataset, fpconv_format mem_format, hid_t mem_space,
                                  hid_t file_space, hid_t transfer_list, const void *buf);

/**
 * H5Dread with the conversion outside of HDF5: everything as for
 * fpconv_h5_write, in the other direction.
 */
FPCONV_API herr_t fpconv_h5_read(hid_t dataset, fpconv_format mem_format, hid_t mem_space,
                                 hid_t file_space, hid_t transfer_list, void *buf);

#ifdef __cplusplus
}
#endif

#endif /* FPCONV_FPCONV_H5_H */
