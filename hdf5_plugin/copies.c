/*
 * copies.c - is the libhdf5 that we are linked with the one that others use?
 *
 * SPDX-License-Identifier: MIT
 *
 * Converters registered with a copy of HDF5 that nobody else uses would do
 * nothing: the case of Python packages with a libhdf5 of their own.  Detected
 * by asking each object in the process which H5open it sees.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "objects.h"
#include "plugin.h"

struct search {
    Dl_info us, library; /* this object; the libhdf5 that it uses */
    Dl_info other;       /* another libhdf5, if dli_fbase is not NULL */
    bool is_used;        /* somebody else uses ours */
};

static bool look_at(const char *object, const void *address, void *data)
{
    struct search *search = data;
    const bool is_us = strcmp(object, search->us.dli_fname) == 0;
    const bool is_hdf5 = strstr(object, "libhdf5") != NULL; /* libhdf5_hl: no user of its own */
    if (fp_object_of(address) != search->library.dli_fbase)
        dladdr(address, &search->other);
    else if (!is_us && !is_hdf5)
        search->is_used = true;
    return false;
}

/* In the object that has a function; empty if none is known. */
static Dl_info find_object(void (*function)(void))
{
    Dl_info info = {.dli_fname = ""};
    void *address;
    memcpy(&address, &function, sizeof(address));
    dladdr(address, &info);
    return info;
}

bool fp_h5_library_is_in_use(char *message, size_t size)
{
    struct search search = {.us = find_object((void (*)(void))fpconv_h5_register),
                            .library = find_object((void (*)(void))H5open)};
    fp_objects_search("H5open", look_at, &search);
    if (search.is_used || !search.other.dli_fbase)
        return true;
    snprintf(message, size, "only fpconv uses %s; HDF5 is in use here as %s, a private copy",
             search.library.dli_fname, search.other.dli_fname);
    return false;
}
