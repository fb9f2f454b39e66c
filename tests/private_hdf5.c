/*
 * private_hdf5.c - a stand-in for a private copy of libhdf5
 *
 * SPDX-License-Identifier: MIT
 *
 * Only what makes it known as one.  Test programs look for the results.
 */
#include <stdint.h>

int H5open(void);
int64_t H5Fopen(const char *name, unsigned flags, int64_t access_list);

int H5open(void)
{
    return 0;
}

int64_t H5Fopen(const char *name, unsigned flags, int64_t access_list)
{
    (void)name, (void)flags, (void)access_list;
    return 4711;
}
