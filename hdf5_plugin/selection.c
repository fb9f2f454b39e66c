/*
 * selection.c - selections cut into slices of consecutive elements
 *
 * SPDX-License-Identifier: MIT
 */
#include "selection.h"

#include "plugin.h"

hsize_t fp_h5_selection_extent(const struct h5_selection *s)
{
    hsize_t n = 1;
    for (int i = 0; i < s->rank; i++)
        n *= s->size[i];
    return n;
}

/* The offset is what it does to the bounds; HDF5 has no call that tells it. */
static bool take_offset(struct h5_selection *s)
{
    hsize_t with[H5S_MAX_RANK], without[H5S_MAX_RANK], end[H5S_MAX_RANK];
    const H5S_sel_type type = H5Sget_select_type(s->space);
    if ((type != H5S_SEL_HYPERSLABS && type != H5S_SEL_POINTS) || s->count == 0)
        return true;
    const hssize_t zero[H5S_MAX_RANK] = {0};
    if (H5Sget_select_bounds(s->space, with, end) < 0 || H5Soffset_simple(s->space, zero) < 0 ||
        H5Sget_select_bounds(s->space, without, end) < 0)
        return false;
    for (int i = 0; i < s->rank; i++)
        s->offset[i] = (hssize_t)with[i] - (hssize_t)without[i];
    return true;
}

bool fp_h5_selection_open(struct h5_selection *s, hid_t space)
{
    s->space = H5Scopy(space);
    if (s->space < 0)
        return false;
    const hssize_t count = H5Sget_select_npoints(s->space);
    s->rank = H5Sget_simple_extent_dims(s->space, s->size, NULL);
    if (count < 0 || s->rank < 0)
        return false;
    s->count = (hsize_t)count;
    s->is_irregular = H5Sget_select_type(s->space) == H5S_SEL_HYPERSLABS &&
                      H5Sis_regular_hyperslab(s->space) == 0;
    s->sequence = H5Screate_simple(1, &s->count, NULL);
    return s->sequence >= 0 && take_offset(s);
}

void fp_h5_selection_close(struct h5_selection *s)
{
    fp_h5_close(s->sequence, H5Sclose);
    fp_h5_close(s->space, H5Sclose);
}

/* Takes a box out of a selection: those elements whose index is at[j] in the
 * dimensions before i, in [at[i], to) in dimension i, and anything after it. */
static bool remove_box(hid_t space, const struct h5_selection *s, const hsize_t *at, int i,
                       hsize_t to)
{
    hsize_t start[H5S_MAX_RANK] = {0}, count[H5S_MAX_RANK];
    if (at[i] >= to)
        return true;
    for (int j = 0; j < s->rank; j++) {
        start[j] = j <= i ? at[j] : 0;
        count[j] = j < i ? 1 : j == i ? to - at[i] : s->size[j];
    }
    return H5Sselect_hyperslab(space, H5S_SELECT_NOTB, start, NULL, count, NULL) >= 0;
}

/*
 * Those selected elements whose row-major index in the extent is in [begin, end).
 * What is outside of that is taken out in boxes, dimension by dimension: before
 * begin whole rows of the slowest dimension, then of the next one in the row that
 * is left, and so on; and after end likewise.  (H5Scombine_select, which could do
 * it at once, crashes in 1.10.8.)
 */
static hid_t select_range(const struct h5_selection *s, hsize_t begin, hsize_t end)
{
    const hid_t slice = H5Scopy(s->space);
    hsize_t low[H5S_MAX_RANK] = {0}, high[H5S_MAX_RANK], row = fp_h5_selection_extent(s);
    bool done = slice >= 0, open_ended = end >= row;
    for (int i = 0; i < s->rank && done; i++) {
        row /= s->size[i];
        low[i] = 0;
        done = remove_box(slice, s, low, i, begin / row % s->size[i]);
        low[i] = begin / row % s->size[i];
        high[i] = end / row % s->size[i] + (i < s->rank - 1);
        if (done && !open_ended)
            done = remove_box(slice, s, high, i, s->size[i]);
        high[i] -= i < s->rank - 1;
    }
    if (done)
        return slice;
    fp_h5_close(slice, H5Sclose);
    return H5I_INVALID_HID;
}

static hssize_t count_below(const struct h5_selection *s, hsize_t end)
{
    if (end == 0)
        return 0;
    const hid_t slice = select_range(s, 0, end);
    const hssize_t count = slice < 0 ? -1 : H5Sget_select_npoints(slice);
    fp_h5_close(slice, H5Sclose);
    return count;
}

/* The smallest index of the extent below which `wanted` elements are selected. */
static bool find_cut(const struct h5_selection *s, hsize_t wanted, hsize_t *cut)
{
    hsize_t low = 0, high = fp_h5_selection_extent(s);
    while (low < high) {
        const hsize_t middle = low + (high - low) / 2;
        const hssize_t count = count_below(s, middle);
        if (count < 0)
            return false;
        if ((hsize_t)count < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    *cut = low;
    return true;
}

static hid_t slice_irregular(const struct h5_selection *s, hsize_t first, hsize_t count)
{
    hsize_t begin, end;
    if (!find_cut(s, first, &begin) || !find_cut(s, first + count, &end))
        return H5I_INVALID_HID;
    return select_range(s, begin, end);
}

/* The part of the selection that elements [first, first + count) of the sequence
 * are mapped to.  HDF5 (1.10.8, 1.14.5, 2.2.0) gets this wrong for some irregular
 * hyperslabs: more elements than asked for. */
static hid_t slice_regular(const struct h5_selection *s, hsize_t first, hsize_t count)
{
    const hid_t part = H5Scopy(s->sequence);
    hid_t slice = H5I_INVALID_HID;
    if (part >= 0 && H5Sselect_hyperslab(part, H5S_SELECT_SET, &first, NULL, &count, NULL) >= 0)
        slice = H5Sselect_project_intersection(s->sequence, s->space, part);
    fp_h5_close(part, H5Sclose);
    return slice;
}

hid_t fp_h5_selection_slice(const struct h5_selection *s, hsize_t first, hsize_t count)
{
    const hid_t slice =
        s->is_irregular ? slice_irregular(s, first, count) : slice_regular(s, first, count);
    if (slice >= 0 && H5Sget_select_npoints(slice) == (hssize_t)count &&
        (s->rank == 0 || H5Soffset_simple(slice, s->offset) >= 0))
        return slice;
    fp_h5_close(slice, H5Sclose);
    return H5I_INVALID_HID;
}

bool fp_h5_selection_is_contiguous(const struct h5_selection *s, hsize_t *first)
{
    hsize_t start[H5S_MAX_RANK], end[H5S_MAX_RANK], low = 0, high = 0;
    *first = 0;
    switch (H5Sget_select_type(s->space)) {
    case H5S_SEL_ALL:
        return true;
    case H5S_SEL_HYPERSLABS: /* no element twice, in row-major order */
        if (H5Sget_select_bounds(s->space, start, end) < 0)
            return false;
        for (int i = 0; i < s->rank; i++) {
            low = low * s->size[i] + start[i] + (hsize_t)s->offset[i];
            high = high * s->size[i] + end[i] + (hsize_t)s->offset[i];
        }
        *first = low;
        return high - low + 1 == s->count;
    default:
        return false;
    }
}
