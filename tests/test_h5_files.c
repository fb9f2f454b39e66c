/*
 * test_h5_files.c - through files: every layout, filter, datatype and selection
 *
 * SPDX-License-Identifier: MIT
 *
 * Floats are written to datasets of a low-precision type and read back as floats
 * and as codes.  What has to come out is exact arithmetic's (oracle.c).
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "h5_support.h"

enum { N = 4096, CHUNK = 1024 };

static char directory[64];
static const char *h5dump; /* path of the program */

static struct stream stream;
static float values[N], expected[N], floats[N];
static uint8_t codes[N * 2], expected_codes[N * 2];

static const fpconv_format low_formats[] = {FPCONV_F16,  FPCONV_BF16, FPCONV_E5M2, FPCONV_E4M3,
                                            FPCONV_E3M2, FPCONV_E2M3, FPCONV_E2M1, FPCONV_HIF8};
#define FOR_EACH_LOW_FORMAT(f) \
    for (const fpconv_format *f = low_formats; f < low_formats + ARRAY_COUNT(low_formats); f++)

static const char *path_of(const char *name)
{
    static char path[2][160];
    static unsigned turn;
    turn = !turn;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", directory, name);
    return path[turn];
}

static struct side native_side(fpconv_format format)
{
    const hid_t type = native_type(format);
    const struct side side = {format, format == FPCONV_HIF8 ? H5T_ORDER_NONE : H5Tget_order(type)};
    H5Tclose(type);
    return side;
}

/* Fills values, and what they become. */
static void make_values(fpconv_format format)
{
    const struct side low = native_side(format), wide = native_side(FPCONV_F32);
    fill_stream(&stream, format, FPCONV_F32, FPCONV_HDF5);
    for (size_t i = 0; i < N; i++) {
        const uint64_t code = repaired_code(low, wide, stream.codes[i]);
        store_code(&values[i], 4, stream.codes[i]);
        store_code(expected_codes + i * element_size(low), element_size(low), code);
        store_code(&expected[i], 4, repaired_code(wide, low, code));
    }
}

static void check_floats(const float *got, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&got[i], &want[i], sizeof(float)) != 0)
            fail_msg("element %zu: %a, not %a", i, (double)got[i], (double)want[i]);
}

static hid_t create_file(const char *name)
{
    const hid_t file = H5Fcreate(path_of(name), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

static hid_t make_space(hsize_t n)
{
    return H5Screate_simple(1, &n, NULL);
}

/* The expression is 0 in a process of its own: as another reader of a file, or since
 * the library does not always clean up after a bad one. */
#define CHECK_IN_CHILD(expression)                                  \
    do {                                                            \
        int status;                                                 \
        const pid_t child = fork();                                 \
        if (child == 0)                                             \
            _exit(expression);                                      \
        assert_true(waitpid(child, &status, 0) == child);           \
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0); \
    } while (0)

/* -------------------------------------------------------------------------- */
/* Layouts and filters                                                        */
/* -------------------------------------------------------------------------- */

enum layout { CONTIGUOUS, COMPACT, CHUNKED, GZIP, SHUFFLE_GZIP, NBIT, EXTERNAL, LAYOUTS };

static hid_t creation_list(enum layout layout, const char *name)
{
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk = CHUNK;
    switch (layout) {
    case COMPACT:
        assert_true(H5Pset_layout(list, H5D_COMPACT) >= 0);
        break;
    case EXTERNAL:
        assert_true(H5Pset_external(list, path_of(name), 0, H5F_UNLIMITED) >= 0);
        break;
    case CHUNKED:
    case GZIP:
    case SHUFFLE_GZIP:
    case NBIT:
        assert_true(H5Pset_chunk(list, 1, &chunk) >= 0);
        if (layout == SHUFFLE_GZIP)
            assert_true(H5Pset_shuffle(list) >= 0);
        if (layout == NBIT)
            assert_true(H5Pset_nbit(list) >= 0);
        else if (layout != CHUNKED)
            assert_true(H5Pset_deflate(list, 4) >= 0);
        break;
    default:
        break;
    }
    return list;
}

static void check_layout(fpconv_format format, enum layout layout)
{
    char name[32];
    snprintf(name, sizeof(name), "%s-%d.raw", fpconv_format_name(format), (int)layout);
    make_values(format);
    const hid_t type = fpconv_h5_type(format);
    const hid_t file = create_file("layout.h5");
    const hid_t space = make_space(N), list = creation_list(layout, name);
    hid_t set = H5Dcreate2(file, "x", type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(set);
    set = H5Dopen2(file, "x", H5P_DEFAULT);
    const hid_t stored = H5Dget_type(set);
    memset(floats, 0, sizeof(floats));
    memset(codes, 0, sizeof(codes));
    assert_true(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, floats) >= 0);
    assert_true(H5Dread(set, stored, H5S_ALL, H5S_ALL, H5P_DEFAULT, codes) >= 0);
    check_floats(floats, expected, N);
    assert_memory_equal(codes, expected_codes, N * fpconv_format_size(format));
    if (layout == NBIT) {
        /* the filter ends a chunk of less than whole bytes' precision with a spare byte */
        const unsigned bits = fpconv_format_bits(format);
        const hsize_t spare = bits % 8 ? N / CHUNK : 0;
        print_message("%s with n-bit: %u bytes for %d elements\n", fpconv_format_name(format),
                      (unsigned)H5Dget_storage_size(set), N);
        assert_int_equal(H5Dget_storage_size(set), bits * N / 8 + spare);
    }
    H5Tclose(stored);
    H5Dclose(set);
    H5Pclose(list);
    H5Sclose(space);
    H5Fclose(file);
}

static void layouts_and_filters(void **state)
{
    (void)state;
    FOR_EACH_LOW_FORMAT(format)
    for (enum layout layout = CONTIGUOUS; layout < LAYOUTS; layout++)
        if (*format != FPCONV_HIF8 || layout != NBIT) /* n-bit takes numbers only */
            check_layout(*format, layout);
}

/* From and to memory in double and in the other byte order. */
static void other_memory_types(void **state)
{
    (void)state;
    static const struct side memory_sides[] = {{FPCONV_F64, H5T_ORDER_LE},
                                               {FPCONV_F64, H5T_ORDER_BE},
                                               {FPCONV_F32, H5T_ORDER_LE},
                                               {FPCONV_F32, H5T_ORDER_BE},
                                               {FPCONV_BF16, H5T_ORDER_BE}};
    static uint8_t buf[N * 8];
    FOR_EACH_LOW_FORMAT(format)
    for (size_t m = 0; m < ARRAY_COUNT(memory_sides); m++) {
        const struct side wide = memory_sides[m], low = native_side(*format);
        if (wide.format == *format)
            continue;
        const hid_t memory_type = make_type(wide);
        const hid_t file = create_file("memory.h5"), space = make_space(N);
        const hid_t set = H5Dcreate2(file, "x", fpconv_h5_type(*format), space, H5P_DEFAULT,
                                     H5P_DEFAULT, H5P_DEFAULT);
        fill_stream(&stream, *format, wide.format, FPCONV_HDF5);
        for (size_t i = 0; i < N; i++)
            store_element(buf + i * element_size(wide), wide, stream.codes[i]);
        assert_true(H5Dwrite(set, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, buf) >= 0);
        memset(buf, 0, sizeof(buf));
        assert_true(H5Dread(set, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, buf) >= 0);
        for (size_t i = 0; i < N; i++) {
            const uint64_t code = repaired_code(low, wide, stream.codes[i]);
            check_element(wide, low, i, code, load_element(buf + i * element_size(wide), wide),
                          repaired_code(wide, low, code));
        }
        H5Dclose(set);
        H5Sclose(space);
        H5Fclose(file);
        H5Tclose(memory_type);
    }
}

/* -------------------------------------------------------------------------- */
/* Datatypes of datatypes                                                     */
/* -------------------------------------------------------------------------- */

struct inner {
    uint8_t tag;
    float weight;
};

struct record {
    int32_t id;
    float weight;
    struct inner inner;
    float row[3];
};

/* A compound with a low-precision member at the given offset, one in a nested
 * compound and an array of them; packed, so that nothing is aligned. */
static hid_t make_record_type(hid_t element, size_t offset)
{
    const size_t size = H5Tget_size(element);
    const hsize_t three = 3;
    const hid_t inner = H5Tcreate(H5T_COMPOUND, 1 + size);
    const hid_t row = H5Tarray_create2(element, 1, &three);
    const hid_t record = H5Tcreate(H5T_COMPOUND, offset + size + 4 + 1 + size + 3 * size);
    assert_true(H5Tinsert(inner, "tag", 0, H5T_STD_U8LE) >= 0);
    assert_true(H5Tinsert(inner, "weight", 1, element) >= 0);
    assert_true(H5Tinsert(record, "weight", offset, element) >= 0);
    assert_true(H5Tinsert(record, "id", offset + size, H5T_STD_I32BE) >= 0);
    assert_true(H5Tinsert(record, "inner", offset + size + 4, inner) >= 0);
    assert_true(H5Tinsert(record, "row", offset + size + 5 + size, row) >= 0);
    H5Tclose(inner);
    H5Tclose(row);
    return record;
}

static hid_t make_record_memory_type(void)
{
    const hsize_t three = 3;
    const hid_t inner = H5Tcreate(H5T_COMPOUND, sizeof(struct inner));
    const hid_t row = H5Tarray_create2(H5T_NATIVE_FLOAT, 1, &three);
    const hid_t record = H5Tcreate(H5T_COMPOUND, sizeof(struct record));
    assert_true(H5Tinsert(inner, "tag", HOFFSET(struct inner, tag), H5T_NATIVE_UINT8) >= 0);
    assert_true(H5Tinsert(inner, "weight", HOFFSET(struct inner, weight), H5T_NATIVE_FLOAT) >= 0);
    assert_true(H5Tinsert(record, "id", HOFFSET(struct record, id), H5T_NATIVE_INT32) >= 0);
    assert_true(H5Tinsert(record, "weight", HOFFSET(struct record, weight), H5T_NATIVE_FLOAT) >= 0);
    assert_true(H5Tinsert(record, "inner", HOFFSET(struct record, inner), inner) >= 0);
    assert_true(H5Tinsert(record, "row", HOFFSET(struct record, row), row) >= 0);
    H5Tclose(inner);
    H5Tclose(row);
    return record;
}

static void check_records(fpconv_format format, size_t offset)
{
    enum { RECORDS = N / 5 };
    static struct record records[RECORDS], back[RECORDS];
    make_values(format);
    memset(records, 0, sizeof(records));
    for (int32_t i = 0; i < RECORDS; i++) {
        records[i].id = i * 1000003;
        records[i].weight = values[5 * i];
        records[i].inner.tag = (uint8_t)i;
        records[i].inner.weight = values[5 * i + 1];
        memcpy(records[i].row, values + 5 * i + 2, sizeof(records[i].row));
    }
    const hid_t file = create_file("records.h5"), space = make_space(RECORDS);
    const hid_t type = make_record_type(fpconv_h5_type(format), offset);
    const hid_t memory_type = make_record_memory_type();
    const hid_t set =
        H5Dcreate2(file, "records", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(set, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, records) >= 0);
    memset(back, 0, sizeof(back));
    assert_true(H5Dread(set, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0);
    for (int32_t i = 0; i < RECORDS; i++) {
        assert_int_equal(back[i].id, records[i].id);
        assert_int_equal(back[i].inner.tag, records[i].inner.tag);
        check_floats(&back[i].weight, expected + 5 * i, 1);
        check_floats(&back[i].inner.weight, expected + 5 * i + 1, 1);
        check_floats(back[i].row, expected + 5 * i + 2, 3);
    }
    H5Dclose(set);
    H5Tclose(type);
    H5Tclose(memory_type);
    H5Sclose(space);
    H5Fclose(file);
}

static void compounds(void **state)
{
    (void)state;
    FOR_EACH_LOW_FORMAT(format)
    for (size_t offset = 0; offset < 4; offset++)
        check_records(*format, offset);
}

static void arrays(void **state)
{
    (void)state;
    const hsize_t dims[] = {4, 4};
    FOR_EACH_LOW_FORMAT(format)
    {
        make_values(*format);
        const hid_t type = H5Tarray_create2(fpconv_h5_type(*format), 2, dims);
        const hid_t memory_type = H5Tarray_create2(H5T_NATIVE_FLOAT, 2, dims);
        const hid_t file = create_file("arrays.h5"), space = make_space(N / 16);
        const hid_t set = H5Dcreate2(file, "x", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Dwrite(set, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
        memset(floats, 0, sizeof(floats));
        assert_true(H5Dread(set, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, floats) >= 0);
        check_floats(floats, expected, N);
        H5Dclose(set);
        H5Sclose(space);
        H5Fclose(file);
        H5Tclose(type);
        H5Tclose(memory_type);
    }
}

static void variable_length_sequences(void **state)
{
    (void)state;
    enum { ROWS = 60 };
    FOR_EACH_LOW_FORMAT(format)
    {
        hvl_t rows[ROWS], back[ROWS];
        size_t at = 0;
        make_values(*format);
        for (size_t i = 0; i < ROWS; at += i, i++)
            rows[i] = (hvl_t){i, values + at};
        const hid_t type = H5Tvlen_create(fpconv_h5_type(*format));
        const hid_t memory_type = H5Tvlen_create(H5T_NATIVE_FLOAT);
        const hid_t file = create_file("vlen.h5"), space = make_space(ROWS);
        const hid_t set = H5Dcreate2(file, "x", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Dwrite(set, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows) >= 0);
        assert_true(H5Dread(set, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0);
        at = 0;
        for (size_t i = 0; i < ROWS; at += i, i++) {
            assert_int_equal(back[i].len, i);
            check_floats(back[i].p, expected + at, i);
        }
        assert_true(H5Dvlen_reclaim(memory_type, space, H5P_DEFAULT, back) >= 0);
        H5Dclose(set);
        H5Sclose(space);
        H5Fclose(file);
        H5Tclose(type);
        H5Tclose(memory_type);
    }
}

static void attributes(void **state)
{
    (void)state;
    FOR_EACH_LOW_FORMAT(format)
    {
        make_values(*format);
        const hid_t file = create_file("attributes.h5"), space = make_space(100);
        const hid_t attribute =
            H5Acreate2(file, "x", fpconv_h5_type(*format), space, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Awrite(attribute, H5T_NATIVE_FLOAT, values) >= 0);
        memset(floats, 0, sizeof(floats));
        assert_true(H5Aread(attribute, H5T_NATIVE_FLOAT, floats) >= 0);
        check_floats(floats, expected, 100);
        H5Aclose(attribute);
        H5Sclose(space);
        H5Fclose(file);
    }
}

/* 1.75 times the smallest subnormal of e4m3, which the library stores as one. */
static void fill_values(void **state)
{
    (void)state;
    FOR_EACH_LOW_FORMAT(format)
    {
        make_values(*format);
        const size_t i = 77;
        const hsize_t chunk = 16;
        const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
        assert_true(H5Pset_chunk(list, 1, &chunk) >= 0);
        assert_true(H5Pset_fill_value(list, H5T_NATIVE_FLOAT, &values[i]) >= 0);
        const hid_t file = create_file("fill.h5"), space = make_space(100);
        const hid_t set =
            H5Dcreate2(file, "x", fpconv_h5_type(*format), space, H5P_DEFAULT, list, H5P_DEFAULT);
        assert_true(set >= 0);
        memset(floats, 0, sizeof(floats));
        assert_true(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, floats) >= 0);
        for (size_t j = 0; j < 100; j++)
            check_floats(&floats[j], &expected[i], 1);
        H5Dclose(set);
        H5Sclose(space);
        H5Pclose(list);
        H5Fclose(file);
    }
}

/* -------------------------------------------------------------------------- */
/* Selections                                                                 */
/* -------------------------------------------------------------------------- */

static void selections(void **state)
{
    (void)state;
    FOR_EACH_LOW_FORMAT(format)
    {
        make_values(*format);
        const hsize_t dims[] = {64, 64}, chunk[] = {10, 30};
        const hid_t file = create_file("selections.h5"), space = H5Screate_simple(2, dims, NULL);
        const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
        assert_true(H5Pset_chunk(list, 2, chunk) >= 0);
        const hid_t set =
            H5Dcreate2(file, "x", fpconv_h5_type(*format), space, H5P_DEFAULT, list, H5P_DEFAULT);
        /* a strided hyperslab, from the same places in memory */
        const hsize_t start[] = {1, 2}, stride[] = {3, 2}, count[] = {20, 30};
        assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, NULL) >= 0);
        assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, space, space, H5P_DEFAULT, values) >= 0);
        memset(floats, 0, sizeof(floats));
        assert_true(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, floats) >= 0);
        const float zero = 0;
        for (size_t i = 0; i < N; i++) {
            const size_t row = i / 64, column = i % 64;
            const bool selected =
                row % 3 == 1 && row < 61 && column % 2 == 0 && column >= 2 && column < 62;
            check_floats(&floats[i], selected ? &expected[i] : &zero, 1);
        }
        /* single points in any order */
        enum { POINTS = 50 };
        hsize_t points[POINTS][2];
        for (size_t i = 0; i < POINTS; i++) {
            points[i][0] = (i * 37 + 1) % 64;
            points[i][1] = (i * 11 + 5) % 64;
        }
        const hid_t memory_space = make_space(POINTS);
        assert_true(H5Sselect_elements(space, H5S_SELECT_SET, POINTS, &points[0][0]) >= 0);
        assert_true(
            H5Dwrite(set, H5T_NATIVE_FLOAT, memory_space, space, H5P_DEFAULT, values + 64) >= 0);
        memset(floats, 0, sizeof(floats));
        assert_true(H5Dread(set, H5T_NATIVE_FLOAT, memory_space, space, H5P_DEFAULT, floats) >= 0);
        check_floats(floats, expected + 64, POINTS);
        H5Sclose(memory_space);
        H5Dclose(set);
        H5Pclose(list);
        H5Sclose(space);
        H5Fclose(file);
    }
}

/* -------------------------------------------------------------------------- */
/* Several files, several processes                                           */
/* -------------------------------------------------------------------------- */

/* Two datasets of the format, seen as one of bf16. */
static void virtual_datasets(void **state)
{
    (void)state;
    FOR_EACH_LOW_FORMAT(format)
    {
        if (*format == FPCONV_HIF8)
            continue; /* HDF5 converts no opaque type between the two datasets */
        make_values(*format);
        const hid_t part = make_space(N / 2), whole = make_space(N);
        const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
        for (hsize_t i = 0; i < 2; i++) {
            const char *name = i ? "part1.h5" : "part0.h5";
            const hid_t file = create_file(name);
            const hid_t set = H5Dcreate2(file, "x", fpconv_h5_type(*format), part, H5P_DEFAULT,
                                         H5P_DEFAULT, H5P_DEFAULT);
            assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                                 values + i * (N / 2)) >= 0);
            H5Dclose(set);
            H5Fclose(file);
            const hsize_t start = i * (N / 2), count = N / 2;
            assert_true(H5Sselect_hyperslab(whole, H5S_SELECT_SET, &start, NULL, &count, NULL) >=
                        0);
            assert_true(H5Pset_virtual(list, whole, path_of(name), "x", part) >= 0);
        }
        H5Sselect_all(whole);
        const hid_t file = create_file("virtual.h5");
        const hid_t set =
            H5Dcreate2(file, "all", fpconv_h5_type(*format), whole, H5P_DEFAULT, list, H5P_DEFAULT);
        memset(floats, 0, sizeof(floats));
        assert_true(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, floats) >= 0);
        check_floats(floats, expected, N);
        H5Dclose(set);
        H5Fclose(file);
        H5Pclose(list);
        H5Sclose(part);
        H5Sclose(whole);
    }
}

/* In a process of its own: what the writer has flushed is there.  Exit status. */
static int read_while_written(void)
{
    const hid_t file = H5Fopen(path_of("swmr.h5"), H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, H5P_DEFAULT);
    const hid_t set = H5Dopen2(file, "x", H5P_DEFAULT);
    const hid_t space = H5Dget_space(set);
    bool good = H5Sget_simple_extent_npoints(space) == N;
    good = good && H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, floats) >= 0 &&
           memcmp(floats, expected, sizeof(expected)) == 0;
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
    return good ? 0 : 1;
}

static void swmr_readers(void **state)
{
    (void)state;
    FOR_EACH_LOW_FORMAT(format)
    {
        make_values(*format);
        const hid_t access = H5Pcreate(H5P_FILE_ACCESS), list = H5Pcreate(H5P_DATASET_CREATE);
        assert_true(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0);
        const hid_t file = H5Fcreate(path_of("swmr.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, access);
        const hsize_t none = 0, unlimited = H5S_UNLIMITED, chunk = 512, n = N;
        assert_true(H5Pset_chunk(list, 1, &chunk) >= 0);
        const hid_t space = H5Screate_simple(1, &none, &unlimited);
        const hid_t set =
            H5Dcreate2(file, "x", fpconv_h5_type(*format), space, H5P_DEFAULT, list, H5P_DEFAULT);
        assert_true(H5Fstart_swmr_write(file) >= 0);
        assert_true(H5Dset_extent(set, &n) >= 0);
        assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
        assert_true(H5Dflush(set) >= 0);
        CHECK_IN_CHILD(read_while_written());
        H5Dclose(set);
        H5Sclose(space);
        H5Pclose(list);
        H5Pclose(access);
        H5Fclose(file);
    }
}

/* h5dump, which knows nothing of us, prints the numbers. */
static void h5dump_reads_the_file(void **state)
{
    (void)state;
    const float value = 0.3f;
    const hid_t file = create_file("dump.h5"), space = make_space(1);
    FOR_EACH_LOW_FORMAT(format)
    {
        const hid_t set = H5Dcreate2(file, fpconv_format_name(*format), fpconv_h5_type(*format),
                                     space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) >= 0);
        H5Dclose(set);
    }
    H5Sclose(space);
    H5Fclose(file);
    static const char *const printed[] = {"0.300049", "0.300781", "0.3125", "0.3125",
                                          "0.3125",   "0.25",     "0.5"};
    for (size_t i = 0; i < ARRAY_COUNT(printed); i++) {
        char command[300], line[200];
        snprintf(command, sizeof(command), "'%s' -y -w 40 -d %s '%s'", h5dump,
                 fpconv_format_name(low_formats[i]), path_of("dump.h5"));
        FILE *output = popen(command, "r");
        assert_non_null(output);
        bool found = false;
        while (fgets(line, sizeof(line), output))
            found = found || strtod(line, NULL) == strtod(printed[i], NULL);
        assert_int_equal(pclose(output), 0);
        if (!found)
            fail_msg("h5dump does not print %s for %s", printed[i],
                     fpconv_format_name(low_formats[i]));
    }
}

/* -------------------------------------------------------------------------- */
/* Damaged files                                                              */
/* -------------------------------------------------------------------------- */

static bool read_any(const char *name)
{
    bool done = false;
    H5E_BEGIN_TRY
    {
        const hid_t file = H5Fopen(path_of(name), H5F_ACC_RDONLY, H5P_DEFAULT);
        const hid_t set = file < 0 ? -1 : H5Dopen2(file, "x", H5P_DEFAULT);
        const hid_t space = set < 0 ? -1 : H5Dget_space(set);
        if (space >= 0 && H5Sget_simple_extent_npoints(space) <= N)
            done = H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, floats) >= 0;
        H5Sclose(space);
        H5Dclose(set);
        H5Fclose(file);
    }
    H5E_END_TRY
    return done;
}

static void write_bytes(const char *name, const uint8_t *bytes, size_t n)
{
    FILE *out = fopen(path_of(name), "wb");
    if (!out || fwrite(bytes, 1, n, out) != n || fclose(out))
        abort();
}

/* Some bytes changed or cut off at random, many times over.  Exit status. */
static int read_damaged_files(uint8_t *bytes, size_t size)
{
    unsigned read = 0, refused = 0;
    uint64_t random = 1;
    for (unsigned round = 0; round < 3000; round++) {
        const size_t at = next_random(&random) % size;
        const uint8_t whole = bytes[at];
        bytes[at] = (uint8_t)next_random(&random);
        write_bytes("damaged.h5", bytes, round % 10 == 9 ? at : size);
        bytes[at] = whole;
        if (read_any("damaged.h5"))
            read++;
        else
            refused++;
    }
    print_message("%u damaged files read, %u refused\n", read, refused);
    return read > 0 && refused > 0 ? 0 : 1;
}

/* A file with a bf16 dataset, as bytes; how many. */
static size_t make_good_file(uint8_t *bytes, size_t room)
{
    make_values(FPCONV_BF16);
    const hid_t file = create_file("good.h5"), space = make_space(16);
    const hid_t set = H5Dcreate2(file, "x", fpconv_h5_type(FPCONV_BF16), space, H5P_DEFAULT,
                                 H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Fclose(file);
    FILE *good = fopen(path_of("good.h5"), "rb");
    const size_t size = fread(bytes, 1, room, good);
    assert_true(feof(good) && size > 0);
    fclose(good);
    return size;
}

/* Whatever the file says: an error or a conversion, never a crash. */
static void damaged_files(void **state)
{
    (void)state;
    static uint8_t bytes[16384];
    const size_t size = make_good_file(bytes, sizeof(bytes));
    CHECK_IN_CHILD(read_damaged_files(bytes, size));
}

/* -------------------------------------------------------------------------- */
/* Files with datatypes that are wrong                                        */
/* -------------------------------------------------------------------------- */

/* The end of bf16's message in a file: size, bit offset, precision, exponent's place
 * and width, fraction's place and width, bias. */
static const uint8_t bf16_message[] = {2, 0, 0, 0, 0, 0, 16, 0, 7, 8, 0, 7, 127, 0, 0, 0};
enum {
    SIGN_AT = -2,
    SIZE_AT = 0,
    PRECISION_AT = 6,
    EXPONENT_AT = 8,
    FRACTION_AT = 10,
    BIAS_AT = 12
};

static const struct {
    const char *what;
    int at;
    uint8_t byte;
} wrong_fields[] = {
    {"precision 5", PRECISION_AT, 5},
    {"precision 0", PRECISION_AT, 0},
    {"precision 255", PRECISION_AT, 255},
    {"exponent within the fraction", EXPONENT_AT, 3},
    {"exponent beyond the element", EXPONENT_AT, 12},
    {"exponent of 15 bits", EXPONENT_AT + 1, 15},
    {"no exponent", EXPONENT_AT + 1, 0},
    {"fraction within the exponent", FRACTION_AT, 5},
    {"fraction of 16 bits", FRACTION_AT + 1, 16},
    {"no fraction", FRACTION_AT + 1, 0},
    {"sign within the exponent", SIGN_AT, 9},
    {"sign beyond the element", SIGN_AT, 40},
    {"bias 0", BIAS_AT, 0},
    {"bias 2^31", BIAS_AT + 3, 0x80},
    {"3 bytes", SIZE_AT, 3},
    {"1 byte", SIZE_AT, 1},
};

/* Is a dataset's type converted by us?  (A file that HDF5 refuses has none.) */
static bool is_ours(const char *name)
{
    bool ours = false;
    H5T_cdata_t *cdata;
    const H5T_conv_t converter = H5Tfind(fpconv_h5_type(FPCONV_BF16), H5T_NATIVE_FLOAT, &cdata);
    H5E_BEGIN_TRY
    {
        const hid_t file = H5Fopen(path_of(name), H5F_ACC_RDONLY, H5P_DEFAULT);
        const hid_t set = file < 0 ? -1 : H5Dopen2(file, "x", H5P_DEFAULT);
        const hid_t type = set < 0 ? -1 : H5Dget_type(set);
        ours = type >= 0 && H5Tfind(type, H5T_NATIVE_FLOAT, &cdata) == converter;
        H5Tclose(type);
        H5Dclose(set);
        H5Fclose(file);
    }
    H5E_END_TRY
    return ours;
}

/* Exit status: 0 if each of the types was left to the library. */
static int read_wrong_datatypes(uint8_t *bytes, size_t size, size_t message)
{
    write_bytes("wrong.h5", bytes, size);
    if (!is_ours("wrong.h5") || !read_any("wrong.h5"))
        return 1; /* the good one */
    for (size_t i = 0; i < ARRAY_COUNT(wrong_fields); i++) {
        uint8_t *byte = bytes + message + wrong_fields[i].at;
        const uint8_t right = *byte;
        *byte = wrong_fields[i].byte;
        write_bytes("wrong.h5", bytes, size);
        *byte = right;
        const bool is_read = read_any("wrong.h5");
        print_message("%s: %s\n", wrong_fields[i].what, is_read ? "read" : "refused");
        if (is_ours("wrong.h5"))
            return 1;
    }
    return 0;
}

/* Types that no program would make, as a file may name them. */
static void wrong_datatypes(void **state)
{
    (void)state;
    static uint8_t bytes[16384];
    const size_t size = make_good_file(bytes, sizeof(bytes));
    size_t message = 0;
    while (message + sizeof(bf16_message) <= size &&
           memcmp(bytes + message, bf16_message, sizeof(bf16_message)) != 0)
        message++;
    assert_true(message + sizeof(bf16_message) <= size);
    CHECK_IN_CHILD(read_wrong_datatypes(bytes, size, message));
}

/* -------------------------------------------------------------------------- */

static int enter_directory(void **state)
{
    (void)state;
    snprintf(directory, sizeof(directory), "/tmp/fpconv-test-XXXXXX");
    note_native_pairs();
    return mkdtemp(directory) ? fpconv_h5_register() : -1;
}

static int leave_directory(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof(command), "rm -r '%s'", directory);
    return system(command);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s H5DUMP\n", argv[0]);
        return 2;
    }
    h5dump = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(layouts_and_filters, check_nothing_open),
        cmocka_unit_test_teardown(other_memory_types, check_nothing_open),
        cmocka_unit_test_teardown(compounds, check_nothing_open),
        cmocka_unit_test_teardown(arrays, check_nothing_open),
        cmocka_unit_test_teardown(variable_length_sequences, check_nothing_open),
        cmocka_unit_test_teardown(attributes, check_nothing_open),
        cmocka_unit_test_teardown(fill_values, check_nothing_open),
        cmocka_unit_test_teardown(selections, check_nothing_open),
        cmocka_unit_test_teardown(virtual_datasets, check_nothing_open),
        cmocka_unit_test_teardown(swmr_readers, check_nothing_open),
        cmocka_unit_test_teardown(h5dump_reads_the_file, check_nothing_open),
        cmocka_unit_test_teardown(damaged_files, check_nothing_open),
        cmocka_unit_test_teardown(wrong_datatypes, check_nothing_open),
    };
    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
