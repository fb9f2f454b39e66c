/*
 * preload_client.c - a program that knows nothing of fpconv, and closes HDF5
 *
 * SPDX-License-Identifier: MIT
 *
 * Stores 0.75 as e2m1 in a file, three times, and calls H5close() in between, the
 * last time before an H5open(); prints what is stored.  That is 2, or 1 where the
 * library loses the carry.
 */
#include <stdint.h>
#include <stdio.h>

#include <hdf5.h>

static hid_t e2m1_type(void)
{
    const hid_t type = H5Tcopy(H5T_IEEE_F64LE);
    if (H5Tset_fields(type, 3, 1, 2, 0, 1) < 0 || H5Tset_precision(type, 4) < 0 ||
        H5Tset_size(type, 1) < 0 || H5Tset_ebias(type, 1) < 0)
        return -1;
    return type;
}

static int store(void)
{
    const float value = 0.75f;
    uint8_t code = 0xff;
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(access, 1 << 16, 0);
    const hid_t file = H5Fcreate("fpconv-client.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    const hid_t space = H5Screate(H5S_SCALAR), type = e2m1_type();
    const hid_t set = H5Dcreate2(file, "x", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) < 0 ||
        H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &code) < 0)
        return -1;
    H5Dclose(set);
    H5Tclose(type);
    H5Sclose(space);
    H5Fclose(file);
    H5Pclose(access);
    return code;
}

int main(void)
{
    for (int round = 0; round < 3; round++) {
        printf("%d\n", store());
        if (H5close() < 0 || (round == 1 && H5open() < 0))
            return 1;
    }
    return 0;
}
