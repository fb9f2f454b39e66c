/*
 * objects.c - the executables and shared libraries in this process, and which
 * libhdf5 each of them uses
 *
 * SPDX-License-Identifier: MIT
 *
 * A process may hold several libhdf5: Python's binary packages bring their own,
 * and load them outside of the global scope.  So what a symbol is depends on who
 * asks.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "objects.h"

const void *fp_object_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

void *fp_object_symbol(const char *object, const char *symbol)
{
    void *handle = dlopen(*object ? object : NULL, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return NULL;
    void *address = dlsym(handle, symbol);
    dlclose(handle);
    return address;
}

struct names {
    char **name;
    size_t count, room;
};

/* The loader is locked here; objects are looked into later. */
static int add_name(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct names *names = data;
    if (names->count == names->room) {
        const size_t room = names->room ? 2 * names->room : 64;
        char **grown = realloc(names->name, room * sizeof(*grown));
        if (!grown)
            return 1;
        names->name = grown;
        names->room = room;
    }
    names->name[names->count] = strdup(info->dlpi_name);
    return names->name[names->count++] ? 0 : 1;
}

bool fp_objects_search(const char *symbol,
                       bool (*visit)(const char *object, const void *address, void *data),
                       void *data)
{
    struct names names = {NULL, 0, 0};
    bool found = false;
    dl_iterate_phdr(add_name, &names);
    for (size_t i = 0; i < names.count; i++) {
        const char *name = names.name[i];
        const void *address = name && !found ? fp_object_symbol(name, symbol) : NULL;
        if (address)
            found = visit(name, address, data);
        free(names.name[i]);
    }
    free(names.name);
    return found;
}
