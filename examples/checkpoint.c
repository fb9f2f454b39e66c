/*
 * checkpoint.c - a bfloat16 copy of float32 weights, and back
 *
 * SPDX-License-Identifier: MIT
 *
 * usage: checkpoint IN.h5 DATASET OUT.h5
 *
 * Writes the dataset of IN.h5 to OUT.h5 as bfloat16, reads that back as floats
 * and prints how far off they are.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <fpconv/fpconv_h5.h>

/* HDF5 has printed what went wrong. */
static void check(int64_t result)
{
    if (result < 0)
        exit(1);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: %s IN.h5 DATASET OUT.h5\n", argv[0]);
        return 2;
    }
    const char *name = argv[2];
    check(fpconv_h5_register()); /* from here on HDF5 converts through fpconv */

    /* The weights, as floats, and their shape. */
    const hid_t in = H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
    check(in);
    const hid_t weights = H5Dopen2(in, name, H5P_DEFAULT);
    check(weights);
    const hid_t shape = H5Dget_space(weights);
    const size_t n = (size_t)H5Sget_simple_extent_npoints(shape);
    float *before = malloc(n * sizeof(float)), *after = malloc(n * sizeof(float));
    if (!before || !after)
        return 1;
    check(H5Dread(weights, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, before));

    /* The copy: nothing but the datatype says bfloat16. */
    const hid_t out = H5Fcreate(argv[3], H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT);
    check(out);
    const hid_t link = H5Pcreate(H5P_LINK_CREATE);
    check(H5Pset_create_intermediate_group(link, 1)); /* those in the name */
    const hid_t copy =
        H5Dcreate2(out, name, fpconv_h5_type(FPCONV_BF16), shape, link, H5P_DEFAULT, H5P_DEFAULT);
    check(copy);
    check(H5Dwrite(copy, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, before));

    /* And back. */
    check(H5Dread(copy, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, after));
    double worst = 0;
    for (size_t i = 0; i < n; i++)
        worst = fmax(worst, fabs((double)after[i] / (double)before[i] - 1));
    printf("%zu weights, largest relative error %.3g\n", n, worst);

    H5Dclose(copy);
    H5Pclose(link);
    H5Fclose(out);
    H5Sclose(shape);
    H5Dclose(weights);
    H5Fclose(in);
    free(before);
    free(after);
    return 0;
}
