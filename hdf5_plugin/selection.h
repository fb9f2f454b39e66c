/*
 * selection.h - a dataspace's selection as a sequence of elements
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FPCONV_HDF5_PLUGIN_SELECTION_H
#define FPCONV_HDF5_PLUGIN_SELECTION_H

#include <hdf5.h>
#include <stdbool.h>

/* A selection and what it takes to cut it into slices of consecutive elements. */
struct h5_selection {
    hid_t space;    /* without the offset of H5Soffset_simple */
    hid_t sequence; /* one dimension, as many elements as are selected */
    int rank;
    hsize_t size[H5S_MAX_RANK];
    hssize_t offset[H5S_MAX_RANK];
    hsize_t count;
    bool is_irregular; /* an OR of hyperslabs */
};

/* Copies the selection of a dataspace.  False if that fails; what is there then is to be
 * closed all the same. */
bool fp_h5_selection_open(struct h5_selection *s, hid_t space);
void fp_h5_selection_close(struct h5_selection *s);

/* The elements of the dataspace, selected or not. */
hsize_t fp_h5_selection_extent(const struct h5_selection *s);

/* A new dataspace in which `count` consecutive elements are selected, from `first` on;
 * negative if HDF5 fails. */
hid_t fp_h5_selection_slice(const struct h5_selection *s, hsize_t first, hsize_t count);

/* Do the elements follow each other in memory?  If so, from which on. */
bool fp_h5_selection_is_contiguous(const struct h5_selection *s, hsize_t *first);

#endif /* FPCONV_HDF5_PLUGIN_SELECTION_H */
