/*
 * files.c - the datasets of files
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

enum { BLOCK_N = 1 << 18 };

struct visit {
    const char *file;
    hid_t id;
    struct examination *e;
    size_t count;
    struct patient **end;
};

/* The same format in either byte order: what is read is the same. */
static bool is_of_scale(hid_t type, const struct scale *s)
{
    const hid_t other = H5Tcopy(s->type);
    bool is_equal = H5Tequal(type, s->type) > 0;
    if (!is_equal && other >= 0 &&
        H5Tset_order(other, H5Tget_order(other) == H5T_ORDER_LE ? H5T_ORDER_BE : H5T_ORDER_LE) >= 0)
        is_equal = H5Tequal(type, other) > 0;
    if (other >= 0)
        H5Tclose(other);
    return is_equal;
}

static void judge_block(struct visit *v, struct patient *p, hid_t mem_type, const void *values,
                        size_t n)
{
    for (size_t i = 0; i < v->count; i++) {
        const struct scale *s = &v->e[i].scale;
        if (!p->is_narrow)
            store_and_judge(&p->finding[s->format], s, mem_type, values, n);
        else if (H5Tequal(mem_type, s->type) > 0)
            judge_read(&p->finding[s->format], s, values, n);
    }
}

/* Reads a dataset in blocks of rows and judges each; false if HDF5 fails. */
static bool judge_dataset(struct visit *v, struct patient *p, hid_t dataset, hid_t mem_type)
{
    hsize_t size[H5S_MAX_RANK] = {1}, start[H5S_MAX_RANK] = {0}, count[H5S_MAX_RANK] = {1};
    const hid_t space = H5Dget_space(dataset);
    const int rank = H5Sget_simple_extent_dims(space, size, NULL);
    const hssize_t total = H5Sget_simple_extent_npoints(space);
    bool done = rank >= 0 && total >= 0;
    if (done && total > 0) {
        const hsize_t row = (hsize_t)total / size[0];
        const hsize_t rows = row < BLOCK_N ? BLOCK_N / row : 1;
        void *buf = allocate((size_t)(rows * row) * H5Tget_size(mem_type));
        memcpy(count, size, sizeof(count));
        for (hsize_t at = 0; at < size[0] && done; at += rows) {
            start[0] = at;
            count[0] = size[0] - at < rows ? size[0] - at : rows;
            const hsize_t n = count[0] * row;
            const hid_t mem = H5Screate_simple(1, &n, NULL);
            done = (rank == 0 ||
                    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0) &&
                   H5Dread(dataset, mem_type, mem, space, H5P_DEFAULT, buf) >= 0;
            if (done)
                judge_block(v, p, mem_type, buf, (size_t)n);
            H5Sclose(mem);
        }
        free(buf);
    }
    H5Sclose(space);
    return done;
}

static hid_t find_memory_type(const struct visit *v, hid_t type, struct patient *p)
{
    for (size_t i = 0; i < v->count; i++)
        if (is_of_scale(type, &v->e[i].scale)) {
            p->type = fpconv_format_name(v->e[i].scale.format);
            p->is_narrow = true;
            return v->e[i].scale.type;
        }
    p->type = H5Tget_size(type) == sizeof(float) ? "f32" : "f64";
    return H5Tget_size(type) == sizeof(float) ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
}

static void visit_dataset(struct visit *v, const char *name, hid_t dataset)
{
    const hid_t type = H5Dget_type(dataset);
    if (H5Tget_class(type) == H5T_FLOAT && H5Tget_size(type) <= sizeof(double)) {
        struct patient *p = calloc(1, sizeof(*p));
        if (!p || !(p->file = strdup(v->file)) || !(p->path = strdup(name)))
            fail("not enough memory");
        const hid_t mem_type = find_memory_type(v, type, p);
        if (!judge_dataset(v, p, dataset, mem_type))
            fail("%s: %s: cannot be read", v->file, name);
        *v->end = p;
        v->end = &p->next;
    }
    H5Tclose(type);
}

static herr_t visit_object(hid_t root, const char *name, const H5O_info_t *info, void *data)
{
    (void)root;
    struct visit *v = data;
    if (info->type != H5O_TYPE_DATASET)
        return 0;
    const hid_t dataset = H5Dopen2(v->id, name, H5P_DEFAULT);
    if (dataset < 0)
        fail("%s: %s: cannot be opened", v->file, name);
    visit_dataset(v, name, dataset);
    H5Dclose(dataset);
    return 0;
}

struct patient **examine_file(const char *path, struct examination *e, size_t count,
                              struct patient **end)
{
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0)
        fail("%s: cannot be opened as an HDF5 file", path);
    struct visit v = {path, file, e, count, end};
#if H5_VERSION_GE(1, 12, 0)
    const herr_t done =
        H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_INC, visit_object, &v, H5O_INFO_BASIC);
#else
    const herr_t done =
        H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, visit_object, &v, H5O_INFO_BASIC);
#endif
    if (done < 0)
        fail("%s: HDF5 cannot go through its objects", path);
    H5Fclose(file);
    return v.end;
}
