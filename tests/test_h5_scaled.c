/*
 * test_h5_scaled.c - scaled tensors as HDF5 groups: round trips, hyperslabs, errors
 *
 * SPDX-License-Identifier: MIT
 *
 * What comes back is compared with fpconv_quantize and fpconv_dequantize on the
 * same matrix.  With the argument FILE the program writes one group of every
 * scheme to that file and the dequantized tensors beside them, for
 * decode_scaled.py, and ends.
 */
#include <stdlib.h>

#include "fpconv/fpconv_h5_scaled.h"

#include "support.h"

enum { PLANES = 3, ROWS = 10, COLUMNS = 137, CELLS = PLANES * ROWS * COLUMNS };

static const hsize_t dims[3] = {PLANES, ROWS, COLUMNS};
static float tensor[CELLS];

static const fpconv_scheme schemes[] = {
    {FPCONV_MX, FPCONV_E4M3, FPCONV_SCALE_FLOOR, 0, 0},
    {FPCONV_MX, FPCONV_E5M2, FPCONV_SCALE_CEIL, 0, 0},
    {FPCONV_MX, FPCONV_E3M2, FPCONV_SCALE_FLOOR, 0, 0},
    {FPCONV_MX, FPCONV_E2M3, FPCONV_SCALE_CEIL, 0, 0},
    {FPCONV_MX, FPCONV_E2M1, FPCONV_SCALE_FLOOR, 0, 0},
    {FPCONV_NVFP4, FPCONV_E2M1, FPCONV_SCALE_AMAX, 0, 0},
    {FPCONV_PER_TENSOR, FPCONV_E4M3, FPCONV_SCALE_AMAX, 0, 0},
    {FPCONV_PER_ROW, FPCONV_E5M2, FPCONV_SCALE_AMAX, 0, 0},
    {FPCONV_PER_ROW, FPCONV_HIF8, FPCONV_SCALE_AMAX, 0, 0},
    {FPCONV_PER_COLUMN, FPCONV_E3M2, FPCONV_SCALE_AMAX, 0, 0},
    {FPCONV_POW2_ROW, FPCONV_F16, FPCONV_SCALE_AMAX, 0, 1024},
    {FPCONV_POW2_COLUMN, FPCONV_F16, FPCONV_SCALE_AMAX, 0, 64},
};

static void fill_tensor(void)
{
    uint64_t seed = 17;
    for (size_t i = 0; i < CELLS; i++) {
        const double unit = (double)(int64_t)next_random(&seed) * 0x1p-63;
        tensor[i] = (float)(unit * (double)(1u << next_random(&seed) % 16));
    }
    tensor[5] = -0.0f;
    tensor[200] = 0x1p-140f;
}

/* What quantizing and dequantizing in memory gives. */
static void expected_values(fpconv_scheme scheme, float *values)
{
    static uint8_t codes[CELLS * 2], scales[CELLS * 4];
    const ptrdiff_t stride = COLUMNS * sizeof(float);
    const ptrdiff_t code_stride = (ptrdiff_t)fpconv_packed_size(scheme.element, COLUMNS);
    if (scheme.scaling == FPCONV_NVFP4)
        assert_int_equal(fpconv_tensor_scale(&scheme.tensor_scale, PLANES * ROWS, COLUMNS,
                                             FPCONV_F32, tensor, stride),
                         FPCONV_OK);
    assert_int_equal(fpconv_quantize(&scheme, PLANES * ROWS, COLUMNS, codes, code_stride, scales,
                                     FPCONV_F32, tensor, stride),
                     FPCONV_OK);
    assert_int_equal(fpconv_dequantize(&scheme, PLANES * ROWS, COLUMNS, FPCONV_F32, values, stride,
                                       codes, code_stride, scales),
                     FPCONV_OK);
}

static hid_t create_file(const char *name, bool in_memory)
{
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    assert_true(!in_memory || H5Pset_fapl_core(access, 1 << 16, 0) >= 0);
    const hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    assert_true(file >= 0);
    H5Pclose(access);
    return file;
}

/* Chunks of 2 by 3 by 64 elements, shuffled and deflated. */
static hid_t chunked_list(void)
{
    const hsize_t chunk[3] = {2, 3, 64};
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_chunk(list, 3, chunk) >= 0);
    assert_true(H5Pset_shuffle(list) >= 0);
    assert_true(H5Pset_deflate(list, 4) >= 0);
    return list;
}

static void write_scheme(hid_t file, const char *name, const fpconv_scheme *scheme, hid_t list)
{
    assert_true(fpconv_h5_write_scaled(file, name, list, scheme, 3, dims, FPCONV_F32, tensor) >= 0);
}

static void whole_tensors_come_back(void **state)
{
    (void)state;
    static float want[CELLS], got[CELLS];
    const hid_t file = create_file("test_h5_scaled_whole.h5", true);
    const hid_t chunked = chunked_list();
    for (size_t i = 0; i < 2 * ARRAY_COUNT(schemes); i++) {
        const fpconv_scheme *scheme = &schemes[i / 2];
        char name[32];
        snprintf(name, sizeof(name), "t%zu", i);
        write_scheme(file, name, scheme, i % 2 ? chunked : H5P_DEFAULT);
        expected_values(*scheme, want);
        memset(got, 0, sizeof(got));
        assert_true(fpconv_h5_read_scaled(file, name, NULL, NULL, FPCONV_F32, got) >= 0);
        assert_memory_equal(got, want, sizeof(want));
    }
    H5Pclose(chunked);
    H5Fclose(file);
}

static void check_block(hid_t file, const char *name, const float *want, const hsize_t *start,
                        const hsize_t *count)
{
    static float got[CELLS + 1];
    memset(got, 0xee, sizeof(got));
    assert_true(fpconv_h5_read_scaled(file, name, start, count, FPCONV_F32, got) >= 0);
    size_t at = 0;
    for (hsize_t p = start[0]; p < start[0] + count[0]; p++)
        for (hsize_t r = start[1]; r < start[1] + count[1]; r++)
            for (hsize_t c = start[2]; c < start[2] + count[2]; c++, at++)
                assert_memory_equal(&got[at], &want[(p * ROWS + r) * COLUMNS + c], sizeof(float));
    uint32_t after;
    memcpy(&after, &got[at], sizeof(after));
    assert_int_equal(after, 0xeeeeeeee);
}

static void any_block_can_be_read(void **state)
{
    (void)state;
    static float want[CELLS];
    const hid_t file = create_file("test_h5_scaled_block.h5", true);
    const hid_t chunked = chunked_list();
    uint64_t seed = 4;
    for (size_t i = 0; i < ARRAY_COUNT(schemes); i++) {
        char name[32];
        snprintf(name, sizeof(name), "t%zu", i);
        write_scheme(file, name, &schemes[i], chunked);
        expected_values(schemes[i], want);
        for (int round = 0; round < 200; round++) {
            hsize_t start[3], count[3];
            for (int axis = 0; axis < 3; axis++) {
                start[axis] = next_random(&seed) % dims[axis];
                count[axis] = next_random(&seed) % (dims[axis] - start[axis] + 1);
            }
            check_block(file, name, want, start, count);
        }
    }
    H5Pclose(chunked);
    H5Fclose(file);
}

/* A filter that counts the chunks that are read. */
static unsigned chunks_read;

static size_t count_chunk(unsigned flags, size_t n, const unsigned *values, size_t bytes,
                          size_t *size, void **buf)
{
    (void)n;
    (void)values;
    (void)size;
    (void)buf;
    if (flags & H5Z_FLAG_REVERSE)
        chunks_read++;
    return bytes;
}

static void only_the_chunks_needed_are_read(void **state)
{
    (void)state;
    enum { COUNTER = 256 };
    const H5Z_class2_t counter = {H5Z_CLASS_T_VERS, COUNTER, 1,    1,
                                  "counter",        NULL,    NULL, count_chunk};
    assert_true(H5Zregister(&counter) >= 0);
    static float values[256 * 256], got[256];
    const hsize_t shape[2] = {256, 256}, chunk[2] = {16, 64};
    const hsize_t start[2] = {100, 130}, count[2] = {4, 40};
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_chunk(list, 2, chunk) >= 0);
    assert_true(H5Pset_filter(list, COUNTER, H5Z_FLAG_MANDATORY, 0, NULL) >= 0);
    const hid_t file = create_file("test_h5_scaled_chunks.h5", true);
    assert_true(
        fpconv_h5_write_scaled(file, "t", list, &schemes[4], 2, shape, FPCONV_F32, values) >= 0);
    chunks_read = 0;
    assert_true(fpconv_h5_read_scaled(file, "t", start, count, FPCONV_F32, got) >= 0);
    assert_int_equal(chunks_read, 2); /* one of codes, one of scales */
    H5Pclose(list);
    H5Fclose(file);
    H5Zunregister(COUNTER);
}

static void other_ranks_and_formats(void **state)
{
    (void)state;
    const hid_t file = create_file("test_h5_scaled_ranks.h5", true);
    const hsize_t one[1] = {COLUMNS}, none[2] = {4, 0}, five[5] = {1, 2, 3, 5, 45};
    static double doubles[COLUMNS], back[CELLS];
    for (size_t i = 0; i < COLUMNS; i++)
        doubles[i] = (double)tensor[i];
    for (size_t i = 0; i < ARRAY_COUNT(schemes); i++) {
        char name[32];
        snprintf(name, sizeof(name), "one%zu", i);
        assert_true(fpconv_h5_write_scaled(file, name, H5P_DEFAULT, &schemes[i], 1, one, FPCONV_F64,
                                           doubles) >= 0);
        assert_true(fpconv_h5_read_scaled(file, name, NULL, NULL, FPCONV_F64, back) >= 0);
        assert_true(back[20] != 0 && back[20] / doubles[20] > 0.5 && back[20] / doubles[20] < 2);
        snprintf(name, sizeof(name), "none%zu", i);
        assert_true(fpconv_h5_write_scaled(file, name, H5P_DEFAULT, &schemes[i], 2, none,
                                           FPCONV_F32, tensor) >= 0);
        assert_true(fpconv_h5_read_scaled(file, name, NULL, NULL, FPCONV_F32, NULL) >= 0);
        snprintf(name, sizeof(name), "five%zu", i);
        assert_true(fpconv_h5_write_scaled(file, name, H5P_DEFAULT, &schemes[i], 5, five,
                                           FPCONV_F32, tensor) >= 0);
        fpconv_h5_scaled info;
        assert_true(fpconv_h5_inspect_scaled(file, name, &info) >= 0);
        assert_int_equal(info.rank, 5);
        assert_memory_equal(info.dims, five, sizeof(five));
        assert_int_equal(info.scheme.scaling, schemes[i].scaling);
        assert_int_equal(info.scheme.element, schemes[i].element);
        assert_int_equal(info.scheme.rule, schemes[i].rule);
        assert_int_equal(info.scheme.dot_length, schemes[i].dot_length);
    }
    H5Fclose(file);
}

/* -------------------------------------------------------------------------- */
/* Malformed groups                                                           */
/* -------------------------------------------------------------------------- */

/* A new group that is right, for a change that makes it wrong. */
static hid_t make_group(hid_t file, unsigned scheme)
{
    if (H5Lexists(file, "t", H5P_DEFAULT) > 0)
        assert_true(H5Ldelete(file, "t", H5P_DEFAULT) >= 0);
    write_scheme(file, "t", &schemes[scheme], H5P_DEFAULT);
    const hid_t group = H5Gopen2(file, "t", H5P_DEFAULT);
    assert_true(group >= 0);
    return group;
}

static void check_refused(hid_t file, hid_t group, const char *reason)
{
    static float got[CELLS];
    fpconv_h5_scaled info;
    herr_t read, inspected;
    assert_true(H5Gclose(group) >= 0);
    H5E_BEGIN_TRY
    {
        read = fpconv_h5_read_scaled(file, "t", NULL, NULL, FPCONV_F32, got);
        inspected = fpconv_h5_inspect_scaled(file, "t", &info);
    }
    H5E_END_TRY
    assert_true(read < 0 && inspected < 0);
    if (!strstr(fpconv_h5_last_error(), reason) || !strstr(fpconv_h5_last_error(), "\"t\""))
        fail_msg("\"%s\" does not say \"%s\"", fpconv_h5_last_error(), reason);
}

static void put_number(hid_t group, const char *name, uint64_t value)
{
    assert_true(H5Adelete(group, name) >= 0);
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t attribute = H5Acreate2(group, name, H5T_STD_U64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(attribute, H5T_NATIVE_UINT64, &value) >= 0);
    H5Aclose(attribute);
    H5Sclose(space);
}

static void put_text(hid_t group, const char *name, const char *text)
{
    assert_true(H5Adelete(group, name) >= 0);
    const hid_t space = H5Screate(H5S_SCALAR), type = H5Tcopy(H5T_C_S1);
    assert_true(H5Tset_size(type, strlen(text) + 1) >= 0);
    const hid_t attribute = H5Acreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(attribute, type, text) >= 0);
    H5Aclose(attribute);
    H5Tclose(type);
    H5Sclose(space);
}

static void put_dataset(hid_t group, const char *name, hid_t type, int rank, const hsize_t *shape)
{
    assert_true(H5Ldelete(group, name, H5P_DEFAULT) >= 0);
    const hid_t space = H5Screate_simple(rank, shape, NULL);
    const hid_t dataset =
        H5Dcreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(dataset >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
}

static void malformed_groups_are_refused(void **state)
{
    (void)state;
    static const char *const attributes[] = {
        "fpconv_scaled_version", "scheme", "element", "scale_rule", "shape", "axis", "block",
        "tensor_scale"};
    enum { NVFP4 = 5, MX8 = 0, POW2 = 10 };
    const hid_t file = create_file("test_h5_scaled_bad.h5", true);
    hid_t group;
    for (size_t i = 0; i < ARRAY_COUNT(attributes); i++) {
        group = make_group(file, NVFP4);
        assert_true(H5Adelete(group, attributes[i]) >= 0);
        check_refused(file, group, attributes[i]);
        if (strcmp(attributes[i], "shape") != 0 && strcmp(attributes[i], "tensor_scale") != 0) {
            group = make_group(file, NVFP4);
            const bool is_text = strncmp(attributes[i], "s", 1) == 0 || attributes[i][0] == 'e';
            if (is_text)
                put_number(group, attributes[i], 1);
            else
                put_text(group, attributes[i], "one");
            check_refused(file, group, "unexpected type");
        }
    }
    group = make_group(file, POW2);
    assert_true(H5Adelete(group, "dot_length") >= 0);
    check_refused(file, group, "dot_length");

    group = make_group(file, MX8);
    put_number(group, "fpconv_scaled_version", 2);
    check_refused(file, group, "version 2");
    group = make_group(file, MX8);
    put_text(group, "scheme", "my");
    check_refused(file, group, "\"my\" is unknown");
    group = make_group(file, MX8);
    put_text(group, "element", "e9m9");
    check_refused(file, group, "\"e9m9\" is unknown");
    group = make_group(file, MX8);
    put_text(group, "element", "a name that is longer than any");
    check_refused(file, group, "unknown");
    group = make_group(file, MX8);
    put_text(group, "element", "hif8"); /* known, but not in MX */
    check_refused(file, group, "support");
    group = make_group(file, MX8);
    put_number(group, "block", 64);
    check_refused(file, group, "blocks of 64");
    group = make_group(file, MX8);
    put_number(group, "axis", 0);
    check_refused(file, group, "axis");

    const hsize_t wrong[3] = {PLANES, ROWS, COLUMNS - 1}, flat[1] = {CELLS};
    group = make_group(file, MX8);
    assert_true(H5Ldelete(group, "scales", H5P_DEFAULT) >= 0);
    check_refused(file, group, "\"scales\"");
    group = make_group(file, MX8);
    assert_true(H5Ldelete(group, "codes", H5P_DEFAULT) >= 0);
    check_refused(file, group, "\"codes\"");
    group = make_group(file, MX8);
    put_dataset(group, "codes", H5T_STD_U8LE, 3, wrong);
    check_refused(file, group, "shape of the dataset \"codes\"");
    group = make_group(file, MX8);
    put_dataset(group, "codes", H5T_STD_U8LE, 1, flat);
    check_refused(file, group, "shape of the dataset \"codes\"");
    group = make_group(file, MX8);
    put_dataset(group, "codes", H5T_IEEE_F64LE, 3, dims);
    check_refused(file, group, "\"codes\" is of another type");
    group = make_group(file, MX8);
    put_dataset(group, "codes", H5T_STD_I8LE, 3, dims);
    check_refused(file, group, "\"codes\" is of another type");
    group = make_group(file, MX8);
    put_dataset(group, "scales", H5T_STD_U8LE, 3, dims);
    check_refused(file, group, "shape of the dataset \"scales\"");
    group = make_group(file, MX8);
    put_dataset(group, "scales", H5T_STD_U16LE, 3, dims);
    check_refused(file, group, "\"scales\" is of another type");
    group = make_group(file, POW2); /* one scale a row */
    put_dataset(group, "scales", H5T_STD_U16LE, 2, dims);
    check_refused(file, group, "\"scales\" is of another type");
    group = make_group(file, MX8);
    assert_true(H5Ldelete(group, "scales", H5P_DEFAULT) >= 0);
    H5Gclose(H5Gcreate2(group, "scales", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    check_refused(file, group, "not a dataset");
    H5Fclose(file);
}

/* -------------------------------------------------------------------------- */
/* Wrong arguments                                                            */
/* -------------------------------------------------------------------------- */

static void check_write_refused(hid_t file, const fpconv_scheme *scheme, int rank, hid_t list,
                                fpconv_format format, const void *buf, const char *reason)
{
    herr_t written;
    H5E_BEGIN_TRY
    {
        written = fpconv_h5_write_scaled(file, "w", list, scheme, rank, dims, format, buf);
    }
    H5E_END_TRY
    assert_true(written < 0);
    if (!strstr(fpconv_h5_last_error(), reason))
        fail_msg("\"%s\" does not say \"%s\"", fpconv_h5_last_error(), reason);
    assert_int_equal(H5Lexists(file, "w", H5P_DEFAULT), 0); /* nothing stays behind */
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    const hid_t file = create_file("test_h5_scaled_arguments.h5", true);
    const hid_t chunked = chunked_list();
    const hsize_t odd[3] = {1, 1, 33};
    const hid_t odd_list = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_chunk(odd_list, 3, odd) >= 0);
    fpconv_scheme given = schemes[0], hif8 = schemes[0], no_length = schemes[10];
    given.rule = FPCONV_SCALE_GIVEN;
    hif8.element = FPCONV_HIF8;
    no_length.dot_length = 0;
    const fpconv_format f32 = FPCONV_F32;
    check_write_refused(file, NULL, 3, H5P_DEFAULT, f32, tensor, "NULL");
    check_write_refused(file, &schemes[0], 0, H5P_DEFAULT, f32, tensor, "rank");
    check_write_refused(file, &schemes[0], 33, H5P_DEFAULT, f32, tensor, "rank");
    check_write_refused(file, &given, 3, H5P_DEFAULT, f32, tensor, "given");
    check_write_refused(file, &hif8, 3, H5P_DEFAULT, f32, tensor, "support");
    check_write_refused(file, &no_length, 3, H5P_DEFAULT, f32, tensor, "dot length");
    check_write_refused(file, &schemes[0], 3, H5P_DEFAULT, FPCONV_E4M3, tensor, "support");
    check_write_refused(file, &schemes[0], 3, H5P_DEFAULT, f32, NULL, "NULL");
    check_write_refused(file, &schemes[0], 2, chunked, f32, tensor, "3 dimensions");
    check_write_refused(file, &schemes[0], 3, odd_list, f32, tensor, "33 columns");
    check_write_refused(file, &schemes[9], 3, odd_list, f32, tensor, "33 columns");

    write_scheme(file, "t", &schemes[0], H5P_DEFAULT);
    const hsize_t zero[3] = {0}, all[3] = {PLANES, ROWS, COLUMNS}, late[3] = {0, 0, COLUMNS + 1};
    const hsize_t more[3] = {PLANES, ROWS + 1, COLUMNS}, one[3] = {0, 0, 1};
    float value;
    H5E_BEGIN_TRY
    {
        assert_true(fpconv_h5_write_scaled(file, "t", H5P_DEFAULT, &schemes[0], 3, dims, f32,
                                           tensor) < 0); /* the group is there already */
        assert_true(fpconv_h5_read_scaled(file, "t", zero, more, f32, &value) < 0);
        assert_true(fpconv_h5_read_scaled(file, "t", one, all, f32, &value) < 0);
        assert_true(fpconv_h5_read_scaled(file, "t", late, NULL, f32, &value) < 0);
        assert_true(fpconv_h5_read_scaled(file, "t", NULL, NULL, f32, NULL) < 0);
        assert_true(fpconv_h5_read_scaled(file, "t", NULL, NULL, FPCONV_E4M3, &value) < 0);
        assert_true(fpconv_h5_read_scaled(file, "none", NULL, NULL, f32, &value) < 0);
        assert_true(fpconv_h5_read_scaled(file, NULL, NULL, NULL, f32, &value) < 0);
        assert_true(fpconv_h5_inspect_scaled(file, "t", NULL) < 0);
    }
    H5E_END_TRY
    assert_true(H5Lexists(file, "t", H5P_DEFAULT) > 0);
    H5Pclose(odd_list);
    H5Pclose(chunked);
    H5Fclose(file);
}

/* For decode_scaled.py: groups and, as plain floats, what they hold. */
static void write_samples(const char *name)
{
    static float values[CELLS];
    const hid_t file = create_file(name, false);
    const hid_t chunked = chunked_list();
    const hid_t space = H5Screate_simple(3, dims, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(schemes); i++) {
        char group[32], plain[32];
        snprintf(group, sizeof(group), "scaled_%02zu", i);
        snprintf(plain, sizeof(plain), "plain_%02zu", i);
        write_scheme(file, group, &schemes[i], i % 2 ? chunked : H5P_DEFAULT);
        expected_values(schemes[i], values);
        const hid_t dataset =
            H5Dcreate2(file, plain, H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >=
                    0);
        H5Dclose(dataset);
    }
    H5Sclose(space);
    H5Pclose(chunked);
    assert_true(H5Fclose(file) >= 0);
}

int main(int argc, char **argv)
{
    fill_tensor();
    if (argc == 2) {
        write_samples(argv[1]);
        return EXIT_SUCCESS;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_tensors_come_back),
        cmocka_unit_test(any_block_can_be_read),
        cmocka_unit_test(only_the_chunks_needed_are_read),
        cmocka_unit_test(other_ranks_and_formats),
        cmocka_unit_test(malformed_groups_are_refused),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
