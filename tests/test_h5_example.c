/*
 * test_h5_example.c - examples/checkpoint does what it says
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>

#include "h5_support.h"

static const char *example;

enum { ROWS = 30, COLUMNS = 41, N = ROWS * COLUMNS };

static void checkpoint_copies_and_reads_back(void **state)
{
    (void)state;
    char directory[] = "/tmp/fpconv-test-XXXXXX", in[64], out[64], command[400], line[100];
    assert_non_null(mkdtemp(directory));
    snprintf(in, sizeof(in), "%s/in.h5", directory);
    snprintf(out, sizeof(out), "%s/out.h5", directory);

    static float weights[N];
    for (int i = 0; i < N; i++)
        weights[i] = (float)(i + 1) * 0.37f;
    const hsize_t shape[] = {ROWS, COLUMNS};
    const hid_t space = H5Screate_simple(2, shape, NULL);
    hid_t file = H5Fcreate(in, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(H5Gcreate2(file, "net", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    hid_t set =
        H5Dcreate2(file, "net/layer", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, weights) >= 0);
    H5Dclose(set);
    H5Fclose(file);
    H5Sclose(space);

    snprintf(command, sizeof(command), "'%s' %s net/layer %s", example, in, out);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    assert_non_null(fgets(line, sizeof(line), output));
    assert_int_equal(pclose(output), 0);
    int count;
    double error;
    assert_int_equal(sscanf(line, "%d weights, largest relative error %lf", &count, &error), 2);
    assert_int_equal(count, N);
    assert_true(error > 0.003 && error <= 0x1p-8); /* half of the last of 8 bits */

    /* The codes in the copy are the nearest ones. */
    static uint16_t codes[N];
    const hid_t bf16 = native_type(FPCONV_BF16);
    file = H5Fopen(out, H5F_ACC_RDONLY, H5P_DEFAULT);
    set = H5Dopen2(file, "net/layer", H5P_DEFAULT);
    const hid_t type = H5Dget_type(set);
    assert_true(H5Tequal(type, bf16) > 0);
    assert_true(H5Dread(set, bf16, H5S_ALL, H5S_ALL, H5P_DEFAULT, codes) >= 0);
    for (size_t i = 0; i < N; i++) {
        const uint64_t code = load_code(&weights[i], 4);
        assert_int_equal(codes[i], oracle_convert(FPCONV_BF16, FPCONV_F32, code, FPCONV_HDF5));
    }
    H5Tclose(type);
    H5Tclose(bf16);
    H5Dclose(set);
    H5Fclose(file);

    /* It does not overwrite, and says when there is nothing to read. */
    snprintf(command, sizeof(command), "'%s' %s net/layer %s 2>&1 | grep -qi 'file exists'",
             example, in, out);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof(command), "'%s' %s/no.h5 net/layer %s/2.h5 >/dev/null 2>&1", example,
             directory, directory);
    assert_int_not_equal(system(command), 0);
    snprintf(command, sizeof(command), "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s EXAMPLE\n", argv[0]);
        return 2;
    }
    example = argv[1];
    const struct CMUnitTest tests[] = {cmocka_unit_test(checkpoint_copies_and_reads_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
