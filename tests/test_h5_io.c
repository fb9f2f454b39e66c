/*
 * test_h5_io.c - fpconv_h5_write and fpconv_h5_read against H5Dwrite and H5Dread
 *
 * SPDX-License-Identifier: MIT
 *
 * The same selections are moved by H5Dwrite with the converters registered and
 * by our functions; the stored codes and the caller's memory must be equal byte
 * for byte, also outside of the selections.  The data is larger than several
 * pieces.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fpconv/fpconv_h5.h"

enum { ROWS = 700, COLUMNS = 970, COUNT = ROWS * COLUMNS };

static hid_t file;
static float *values; /* COUNT of them */

/* A fixed sequence; the low bits of a linear congruential generator are poor. */
static uint32_t next_random(void)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 32);
}

static int begin(void **state)
{
    (void)state;
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    assert_true(H5Pset_fapl_core(access, 1 << 20, 0) >= 0);
    file = H5Fcreate("test_h5_io.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    assert_true(file >= 0);
    H5Pclose(access);
    values = malloc(COUNT * sizeof(*values));
    assert_non_null(values);
    for (size_t i = 0; i < COUNT; i++) /* products of two: many magnitudes, both signs */
        values[i] = ((float)next_random() / 4294967296.0f - 0.5f) *
                    (float)(next_random() >> (next_random() % 24)) * 0x1p-20f;
    return 0;
}

static int end(void **state)
{
    (void)state;
    free(values);
    return H5Fclose(file);
}

/* -------------------------------------------------------------------------- */
/* Selections, of the same number of elements in each row of the table        */
/* -------------------------------------------------------------------------- */

enum selection {
    SELECT_EVERYTHING, /* H5S_ALL */
    SELECT_NOTHING,
    SELECT_ROWS,
    SELECT_COLUMNS,
    SELECT_STRIDED,
    SELECT_OFFSET,
    SELECT_IRREGULAR,
    SELECT_POINTS,
    SELECTION_COUNT
};

static const char *const selection_names[SELECTION_COUNT] = {
    "all", "none", "rows", "columns", "strided", "offset", "irregular", "points"};

static void select_block(hid_t space, H5S_seloper_t op, hsize_t row, hsize_t column, hsize_t rows,
                         hsize_t columns)
{
    const hsize_t start[2] = {row, column}, count[2] = {1, 1}, block[2] = {rows, columns};
    assert_true(H5Sselect_hyperslab(space, op, start, NULL, count, block) >= 0);
}

/* Every 7th element, in an order of its own; none twice. */
static void select_points(hid_t space)
{
    enum { POINTS = COUNT / 7 };
    hsize_t(*points)[2] = malloc(POINTS * sizeof(*points));
    assert_non_null(points);
    for (size_t i = 0; i < POINTS; i++) {
        const size_t at = i * 7919 % POINTS * 7 + i % 7;
        points[i][0] = at / COLUMNS;
        points[i][1] = at % COLUMNS;
    }
    assert_true(H5Sselect_elements(space, H5S_SELECT_SET, POINTS, &points[0][0]) >= 0);
    free(points);
}

static hid_t make_selection(enum selection selection)
{
    const hsize_t size[2] = {ROWS, COLUMNS};
    const hsize_t start[2] = {1, 2}, stride[2] = {3, 5}, count[2] = {230, 190}, block[2] = {2, 4};
    const hssize_t offset[2] = {10, -7};
    const hid_t space = H5Screate_simple(2, size, NULL);
    assert_true(space >= 0);
    switch (selection) {
    case SELECT_NOTHING:
        assert_true(H5Sselect_none(space) >= 0);
        break;
    case SELECT_ROWS:
        select_block(space, H5S_SELECT_SET, 3, 0, ROWS - 10, COLUMNS);
        break;
    case SELECT_COLUMNS:
        select_block(space, H5S_SELECT_SET, 0, 11, ROWS, COLUMNS - 100);
        break;
    case SELECT_STRIDED:
        assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, block) >= 0);
        break;
    case SELECT_OFFSET:
        select_block(space, H5S_SELECT_SET, 0, 20, 650, 900);
        assert_true(H5Soffset_simple(space, offset) >= 0);
        break;
    case SELECT_IRREGULAR:
        select_block(space, H5S_SELECT_SET, 5, 5, 450, 500);
        select_block(space, H5S_SELECT_OR, 200, 250, 490, 700);
        select_block(space, H5S_SELECT_XOR, 400, 0, 50, 950);
        break;
    case SELECT_POINTS:
        select_points(space);
        break;
    case SELECT_EVERYTHING:
    case SELECTION_COUNT:
        break;
    }
    return space;
}

/* -------------------------------------------------------------------------- */
/* Datasets                                                                   */
/* -------------------------------------------------------------------------- */

struct storage {
    const char *name;
    bool chunked;
    unsigned gzip;
};

static const struct storage contiguous = {"contiguous", false, 0};
static const struct storage compressed = {"chunked", true, 1};

static hid_t make_dataset(hid_t type, const struct storage *storage)
{
    static unsigned made;
    char name[32];
    snprintf(name, sizeof(name), "dataset %u", made++);
    const hsize_t size[2] = {ROWS, COLUMNS}, chunk[2] = {100, 97};
    const hid_t space = H5Screate_simple(2, size, NULL), list = H5Pcreate(H5P_DATASET_CREATE);
    if (storage->chunked)
        assert_true(H5Pset_chunk(list, 2, chunk) >= 0 && H5Pset_deflate(list, storage->gzip) >= 0);
    const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    assert_true(dataset >= 0);
    H5Pclose(list);
    H5Sclose(space);
    return dataset;
}

/* The stored bytes, COUNT * size of them, to be freed. */
static unsigned char *stored_bytes(hid_t dataset, size_t *bytes)
{
    const hid_t type = H5Dget_type(dataset);
    *bytes = COUNT * H5Tget_size(type);
    unsigned char *stored = malloc(*bytes);
    assert_non_null(stored);
    assert_true(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, stored) >= 0);
    H5Tclose(type);
    return stored;
}

static void assert_same_storage(hid_t got, hid_t wanted, const char *what)
{
    size_t bytes, wanted_bytes;
    unsigned char *a = stored_bytes(got, &bytes), *b = stored_bytes(wanted, &wanted_bytes);
    assert_int_equal(bytes, wanted_bytes);
    for (size_t i = 0; i < bytes; i++)
        if (a[i] != b[i])
            fail_msg("%s: byte %zu is 0x%02x and not 0x%02x", what, i, a[i], b[i]);
    free(a);
    free(b);
}

/* -------------------------------------------------------------------------- */
/* Tests                                                                      */
/* -------------------------------------------------------------------------- */

static void assert_write_is_h5dwrite(hid_t type, const struct storage *storage, hid_t mem_space,
                                     hid_t file_space, const char *what)
{
    const hid_t got = make_dataset(type, storage), wanted = make_dataset(type, storage);
    assert_true(fpconv_h5_write(got, FPCONV_F32, mem_space, file_space, H5P_DEFAULT, values) >= 0);
    assert_true(H5Dwrite(wanted, H5T_NATIVE_FLOAT, mem_space, file_space, H5P_DEFAULT, values) >=
                0);
    assert_same_storage(got, wanted, what);
    H5Dclose(got);
    H5Dclose(wanted);
}

static void assert_read_is_h5dread(hid_t dataset, hid_t mem_space, hid_t file_space,
                                   const char *what)
{
    float *got = malloc(COUNT * sizeof(*got)), *wanted = malloc(COUNT * sizeof(*wanted));
    assert_non_null(got);
    assert_non_null(wanted);
    memset(got, 0x5a, COUNT * sizeof(*got)); /* stays where nothing is selected */
    memset(wanted, 0x5a, COUNT * sizeof(*wanted));
    assert_true(fpconv_h5_read(dataset, FPCONV_F32, mem_space, file_space, H5P_DEFAULT, got) >= 0);
    assert_true(H5Dread(dataset, H5T_NATIVE_FLOAT, mem_space, file_space, H5P_DEFAULT, wanted) >=
                0);
    if (memcmp(got, wanted, COUNT * sizeof(*got)) != 0)
        fail_msg("%s: memory differs", what);
    free(got);
    free(wanted);
}

/* The file's types: ours, ours in the other byte order, none of ours. */
static void for_each_type(void (*check)(hid_t type, const char *name))
{
    const hid_t swapped = H5Tcopy(fpconv_h5_type(FPCONV_BF16));
    assert_true(H5Tset_order(swapped, H5Tget_order(swapped) == H5T_ORDER_LE ? H5T_ORDER_BE
                                                                            : H5T_ORDER_LE) >= 0);
    check(fpconv_h5_type(FPCONV_BF16), "bf16");
    check(fpconv_h5_type(FPCONV_E4M3), "e4m3");
    check(fpconv_h5_type(FPCONV_HIF8), "hif8");
    check(swapped, "swapped bf16");
    check(H5T_NATIVE_DOUBLE, "f64");
    check(H5T_NATIVE_FLOAT, "f32");
    check(H5T_STD_I32BE, "int32");
    H5Tclose(swapped);
}

static void check_type(hid_t type, const char *name)
{
    const hid_t strided = make_selection(SELECT_STRIDED);
    assert_write_is_h5dwrite(type, &contiguous, H5S_ALL, H5S_ALL, name);
    assert_write_is_h5dwrite(type, &compressed, strided, strided, name);
    const hid_t dataset = make_dataset(type, &contiguous);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_read_is_h5dread(dataset, H5S_ALL, H5S_ALL, name);
    assert_read_is_h5dread(dataset, strided, strided, name);
    H5Dclose(dataset);
    H5Sclose(strided);
}

static void test_types(void **state)
{
    (void)state;
    static const fpconv_h5_profile profiles[] = {FPCONV_H5_REPAIRED, FPCONV_H5_OCP};
    for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
        assert_true(fpconv_h5_register_profile(profiles[i], NULL) >= 0);
        for_each_type(check_type);
    }
    assert_true(fpconv_h5_unregister() >= 0);
}

static void test_selections(void **state)
{
    (void)state;
    assert_true(fpconv_h5_register() >= 0);
    const hid_t type = fpconv_h5_type(FPCONV_E4M3);
    const hid_t dataset = make_dataset(type, &contiguous);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    for (enum selection s = 0; s < SELECTION_COUNT; s++) {
        const hid_t space = make_selection(s);
        const hsize_t count = (hsize_t)H5Sget_select_npoints(space);
        const hid_t line = H5Screate_simple(1, &count, NULL);
        /* scattered in the file, in memory, and in both */
        assert_write_is_h5dwrite(type, &contiguous, line, space, selection_names[s]);
        assert_write_is_h5dwrite(type, &compressed, space, space, selection_names[s]);
        assert_write_is_h5dwrite(type, &contiguous, H5S_ALL, space, selection_names[s]);
        assert_read_is_h5dread(dataset, line, space, selection_names[s]);
        assert_read_is_h5dread(dataset, space, space, selection_names[s]);
        H5Sclose(line);
        H5Sclose(space);
    }
    H5Dclose(dataset);
    assert_true(fpconv_h5_unregister() >= 0);
}

/* Selections of equal size and different shape: points and an irregular union
 * against strided ones. */
static void test_unlike_selections(void **state)
{
    (void)state;
    assert_true(fpconv_h5_register() >= 0);
    const hid_t points = make_selection(SELECT_POINTS), slabs = make_selection(SELECT_NOTHING);
    const hsize_t count = (hsize_t)H5Sget_select_npoints(points);
    select_block(slabs, H5S_SELECT_OR, 2, 3, count / 900, 900);
    select_block(slabs, H5S_SELECT_OR, 650, 1, 1, count % 900);
    assert_int_equal(H5Sget_select_npoints(slabs), count);
    const hid_t type = fpconv_h5_type(FPCONV_F16);
    assert_write_is_h5dwrite(type, &contiguous, points, slabs, "points to slabs");
    assert_write_is_h5dwrite(type, &compressed, slabs, points, "slabs to points");
    H5Sclose(points);
    H5Sclose(slabs);
    assert_true(fpconv_h5_unregister() >= 0);
}

/* Without a registration: the repaired values, and HDF5 is as it was. */
static void test_unregistered(void **state)
{
    (void)state;
    const hid_t type = fpconv_h5_type(FPCONV_E4M3);
    const hid_t got = make_dataset(type, &contiguous), wanted = make_dataset(type, &contiguous);
    const hid_t loop = make_dataset(type, &contiguous), after = make_dataset(type, &contiguous);
    assert_true(H5Dwrite(loop, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(fpconv_h5_write(got, FPCONV_F32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(H5Dwrite(after, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_same_storage(after, loop, "the library's own conversion afterwards");
    assert_true(fpconv_h5_register() >= 0);
    assert_true(H5Dwrite(wanted, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(fpconv_h5_unregister() >= 0);
    assert_same_storage(got, wanted, "without registration");
    H5Dclose(got);
    H5Dclose(wanted);
    H5Dclose(loop);
    H5Dclose(after);
}

/* One piece or a hundred, the result is the same. */
static void test_buffer_sizes(void **state)
{
    (void)state;
    const hid_t type = fpconv_h5_type(FPCONV_BF16), list = H5Pcreate(H5P_DATASET_XFER);
    assert_true(H5Pset_buffer(list, 64 << 20, NULL, NULL) >= 0);
    const hid_t many = make_dataset(type, &contiguous), one = make_dataset(type, &contiguous);
    const hid_t rows = make_dataset(type, &compressed);
    assert_true(fpconv_h5_write(many, FPCONV_F32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(fpconv_h5_write(one, FPCONV_F32, H5S_ALL, H5S_ALL, list, values) >= 0);
    assert_true(fpconv_h5_write(rows, FPCONV_F32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_same_storage(one, many, "one piece");
    assert_same_storage(rows, many, "rows of chunks");
    H5Pclose(list);
    H5Dclose(many);
    H5Dclose(one);
    H5Dclose(rows);
}

/* Every malloc() of the plugin's comes through here (tests/meson.build). */
static size_t largest_request;

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    largest_request = bytes > largest_request ? bytes : largest_request;
    return __real_malloc(bytes);
}

/* A transfer of the whole dataset and one of points need no more than a piece. */
static void assert_bounded(const struct storage *storage, hid_t list, size_t least, size_t most)
{
    const hid_t points = make_selection(SELECT_POINTS), spaces[] = {H5S_ALL, points};
    const hid_t set = make_dataset(fpconv_h5_type(FPCONV_BF16), storage);
    float *back = malloc(COUNT * sizeof(*back));
    assert_non_null(back);
    for (int i = 0; i < 4; i++) {
        const hid_t space = spaces[i / 2];
        largest_request = 0;
        if (i % 2 == 0)
            assert_true(fpconv_h5_write(set, FPCONV_F32, space, space, list, values) >= 0);
        else
            assert_true(fpconv_h5_read(set, FPCONV_F32, space, space, list, back) >= 0);
        assert_true(largest_request >= (i < 2 ? least : 1));
        assert_true(largest_request <= most);
    }
    free(back);
    H5Dclose(set);
    H5Sclose(points);
}

static void test_buffer_is_bounded(void **state)
{
    (void)state;
    const size_t piece = 1 << 20, spare = 64;
    const hid_t list = H5Pcreate(H5P_DATASET_XFER);
    _Static_assert(COUNT * sizeof(float) > 5 << 19, "more than two pieces");
    assert_bounded(&contiguous, H5P_DEFAULT, piece / 2, piece + spare);
    assert_bounded(&compressed, H5P_DEFAULT, piece / 2, piece + spare);
    assert_true(H5Pset_buffer(list, 2 * piece, NULL, NULL) >= 0);
    assert_bounded(&contiguous, list, 2 * piece, 2 * piece + spare);
    H5Pclose(list);
}

static H5T_conv_ret_t count_overflow(H5T_conv_except_t type, hid_t src, hid_t dst, void *in,
                                     void *out, void *data)
{
    (void)src, (void)dst, (void)in, (void)out;
    *(unsigned *)data += type == H5T_CONV_EXCEPT_RANGE_HI;
    return H5T_CONV_UNHANDLED;
}

static void test_exceptions(void **state)
{
    (void)state;
    assert_true(fpconv_h5_register() >= 0);
    unsigned ours = 0, theirs = 0;
    const hid_t type = fpconv_h5_type(FPCONV_E2M1);
    const hid_t a = make_dataset(type, &contiguous), b = make_dataset(type, &contiguous);
    const hid_t list = H5Pcreate(H5P_DATASET_XFER);
    assert_true(H5Pset_type_conv_cb(list, count_overflow, &ours) >= 0);
    assert_true(fpconv_h5_write(a, FPCONV_F32, H5S_ALL, H5S_ALL, list, values) >= 0);
    assert_true(H5Pset_type_conv_cb(list, count_overflow, &theirs) >= 0);
    assert_true(H5Dwrite(b, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, list, values) >= 0);
    assert_true(ours > 0);
    assert_int_equal(ours, theirs);
    H5Pclose(list);
    H5Dclose(a);
    H5Dclose(b);
    assert_true(fpconv_h5_unregister() >= 0);
}

/* -------------------------------------------------------------------------- */
/* Errors                                                                     */
/* -------------------------------------------------------------------------- */

static herr_t find_text(unsigned n, const H5E_error2_t *error, void *data)
{
    (void)n;
    const char **wanted = data;
    if (*wanted && error->desc && strstr(error->desc, *wanted))
        *wanted = NULL;
    return 0;
}

static void assert_refused(hid_t dataset, fpconv_format format, hid_t mem, hid_t space, hid_t list,
                           const void *buf, const char *text)
{
    herr_t written, read;
    for (int is_read = 0; is_read < 2; is_read++) {
        const char *wanted = text;
        H5E_BEGIN_TRY
        {
            written = is_read ? -1 : fpconv_h5_write(dataset, format, mem, space, list, buf);
            read = is_read
                       ? fpconv_h5_read(dataset, format, mem, space, list, (void *)(uintptr_t)buf)
                       : -1;
            H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, find_text, &wanted);
        }
        H5E_END_TRY
        assert_true(written < 0);
        assert_true(read < 0);
        if (wanted)
            fail_msg("the error stack does not say '%s'", text);
    }
}

static void test_errors(void **state)
{
    (void)state;
    const hid_t type = fpconv_h5_type(FPCONV_E4M3), string = H5Tcopy(H5T_C_S1);
    const hid_t dataset = make_dataset(type, &contiguous), text = make_dataset(string, &contiguous);
    const hsize_t five = 5;
    const hid_t line = H5Screate_simple(1, &five, NULL), list = H5Pcreate(H5P_DATASET_XFER);
    assert_true(H5Pset_data_transform(list, "2*x") >= 0);
    assert_refused(dataset, FPCONV_F32, line, H5S_ALL, H5P_DEFAULT, values, "differ in size");
    assert_refused(dataset, FPCONV_F32, H5S_ALL, H5S_ALL, H5P_DEFAULT, NULL, "NULL");
    assert_refused(dataset, FPCONV_F32, H5S_ALL, H5S_ALL, type, values, "property list");
    assert_refused(dataset, FPCONV_F32, H5S_ALL, H5S_ALL, list, values, "transform");
    assert_refused(dataset, FPCONV_F32, type, H5S_ALL, H5P_DEFAULT, values, "selection");
    assert_refused(dataset, (fpconv_format)99, H5S_ALL, H5S_ALL, H5P_DEFAULT, values, "format");
    assert_refused(line, FPCONV_F32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values, "not a dataset");
    assert_refused(text, FPCONV_F32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values, "no conversion");
    H5Pclose(list);
    H5Sclose(line);
    H5Dclose(text);
    H5Dclose(dataset);
    H5Tclose(string);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unregistered), cmocka_unit_test(test_types),
        cmocka_unit_test(test_selections),   cmocka_unit_test(test_unlike_selections),
        cmocka_unit_test(test_buffer_sizes), cmocka_unit_test(test_buffer_is_bounded),
        cmocka_unit_test(test_exceptions),   cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests_name("h5_io", tests, begin, end);
}
