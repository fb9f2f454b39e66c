/*
 * objects.h - the executables and shared libraries in this process, and which
 * libhdf5 each of them uses
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FPCONV_HDF5_PLUGIN_OBJECTS_H
#define FPCONV_HDF5_PLUGIN_OBJECTS_H

#include <stdbool.h>

/* Where the object that holds an address begins; NULL if none does. */
const void *fp_object_of(const void *address);

/* The symbol as an object sees it in itself and its dependencies; NULL if it does
 * not.  An empty name is the program's. */
void *fp_object_symbol(const char *object, const char *symbol);

/* Calls `visit` with each object's name and its fp_object_symbol(), where it has
 * one, until that returns true.  Returns whether it did. */
bool fp_objects_search(const char *symbol,
                       bool (*visit)(const char *object, const void *address, void *data),
                       void *data);

#endif /* FPCONV_HDF5_PLUGIN_OBJECTS_H */
