/*
 * private_user.c - a module that uses the private copy, as h5py's do
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdint.h>

int64_t H5Fopen(const char *name, unsigned flags, int64_t access_list);
int64_t private_user_open(void);

int64_t private_user_open(void)
{
    return H5Fopen("a file", 0, 0);
}
