/*
 * preload.c - libfpconv-hdf5-preload.so: the plugin in programs nobody recompiles
 *
 * SPDX-License-Identifier: MIT
 *
 *   LD_PRELOAD=libfpconv-hdf5-preload.so FPCONV_H5_PROFILE=ocp h5dump file.h5
 *
 * Stands before H5Fopen and H5Fcreate, which every program that reads or writes
 * data comes through, and registers the converters at the first of them.  It is
 * linked with neither HDF5 nor the plugin, so that a program that never opens an
 * HDF5 file, or has HDF5 linked in statically, does not notice it.  The plugin
 * is loaded at that first call: it then finds the program's libhdf5 loaded
 * already, also where that came by dlopen, as in Python.
 *
 * FPCONV_H5_PROFILE is the name of a profile; unset or empty it means repaired.
 * With any other value, and wherever the converters cannot be registered, the
 * program runs as without us, after one line on standard error: there is nobody
 * else to tell.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fpconv/fpconv_h5.h"
#include "objects.h"

/* -------------------------------------------------------------------------- */
/* The functions that we stand before                                         */
/* -------------------------------------------------------------------------- */

typedef hid_t open_function(const char *name, unsigned flags, hid_t access_list);
typedef hid_t create_function(const char *name, unsigned flags, hid_t create_list,
                              hid_t access_list);
typedef herr_t close_function(void);

/* POSIX has function pointers and data pointers alike; ISO C does not convert. */
union function {
    void *address;
    open_function *open;
    create_function *create;
    close_function *close;
};

static const char here; /* an address in this object */

static bool take_first(const char *object, const void *address, void *found)
{
    (void)object;
    if (fp_object_of(address) == fp_object_of(&here))
        return false;
    *(const void **)found = address;
    return true;
}

/*
 * The function as the object that called us sees it: Python loads its modules and
 * their libhdf5 outside of the global scope, and may load several.  Where the
 * caller cannot be told, the next one in the global scope, and else anybody's.
 */
static union function find_real(const char *name, const void *caller)
{
    Dl_info info;
    union function real = {NULL};
    if (dladdr(caller, &info) && info.dli_fname)
        real.address = fp_object_symbol(info.dli_fname, name);
    if (!real.address || fp_object_of(real.address) == fp_object_of(&here))
        real.address = dlsym(RTLD_NEXT, name);
    if (!real.address)
        fp_objects_search(name, take_first, &real.address);
    return real;
}

/* -------------------------------------------------------------------------- */
/* Registration                                                               */
/* -------------------------------------------------------------------------- */

static void say(const char *what, const char *detail)
{
    fprintf(stderr, "fpconv: %s%s%s; HDF5's own conversions stay in use\n", what,
            detail ? ": " : "", detail ? detail : "");
}

/* The plugin lies beside us; else where the system looks for libraries. */
static void *open_plugin(void)
{
    static const char soname[] = "libfpconv-hdf5.so.0";
    char path[4096];
    Dl_info info;
    void *plugin = NULL;
    if (dladdr(&here, &info) && info.dli_fname && strrchr(info.dli_fname, '/')) {
        const int length = (int)(strrchr(info.dli_fname, '/') - info.dli_fname);
        if (snprintf(path, sizeof(path), "%.*s/%s", length, info.dli_fname, soname) <
            (int)sizeof(path))
            plugin = dlopen(path, RTLD_NOW);
    }
    return plugin ? plugin : dlopen(soname, RTLD_NOW);
}

typedef herr_t register_function(fpconv_h5_profile, fpconv_h5_report *);
typedef const char *name_function(fpconv_h5_profile);
typedef const char *error_function(void);

struct plugin {
    union {
        void *address;
        register_function *call;
    } register_profile;
    union {
        void *address;
        name_function *call;
    } profile_name;
    union {
        void *address;
        error_function *call;
    } last_error;
};

static bool find_profile(const struct plugin *plugin, fpconv_h5_profile *profile)
{
    const char *wanted = getenv("FPCONV_H5_PROFILE");
    if (!wanted || !*wanted)
        wanted = "repaired";
    for (int i = 0; i < FPCONV_H5_PROFILE_COUNT; i++) {
        *profile = (fpconv_h5_profile)i;
        if (strcmp(wanted, plugin->profile_name.call(*profile)) == 0)
            return true;
    }
    say("FPCONV_H5_PROFILE is none of repaired, identical, ocp, ocp_sat", wanted);
    return false;
}

/* For the copy of HDF5 that `real`, one of its functions, belongs to. */
static void register_with(const void *real)
{
    void *library = open_plugin();
    if (!library) {
        say("cannot load the plugin", dlerror());
        return;
    }
    struct plugin plugin;
    plugin.register_profile.address = dlsym(library, "fpconv_h5_register_profile");
    plugin.profile_name.address = dlsym(library, "fpconv_h5_profile_name");
    plugin.last_error.address = dlsym(library, "fpconv_h5_last_error");
    fpconv_h5_profile profile;
    if (!plugin.register_profile.address || !plugin.profile_name.address ||
        !plugin.last_error.address)
        say("the plugin is of another version", NULL);
    else if (fp_object_of(dlsym(library, "H5Fopen")) != fp_object_of(real))
        say("this program has a libhdf5 of its own, not the one that fpconv is linked with", NULL);
    else if (find_profile(&plugin, &profile) && plugin.register_profile.call(profile, NULL) < 0)
        say("cannot register", plugin.last_error.call());
}

/* Once, and once more after each H5close(), which drops all registrations. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool is_done;

static void register_once(const void *real)
{
    pthread_mutex_lock(&mutex);
    if (!is_done)
        register_with(real);
    is_done = true;
    pthread_mutex_unlock(&mutex);
}

/* -------------------------------------------------------------------------- */
/* Exported, in the place of HDF5's                                           */
/* -------------------------------------------------------------------------- */

FPCONV_API hid_t H5Fopen(const char *name, unsigned flags, hid_t access_list)
{
    const union function real = find_real("H5Fopen", __builtin_return_address(0));
    if (!real.address)
        return -1;
    register_once(real.address);
    return real.open(name, flags, access_list);
}

FPCONV_API hid_t H5Fcreate(const char *name, unsigned flags, hid_t create_list, hid_t access_list)
{
    const union function real = find_real("H5Fcreate", __builtin_return_address(0));
    if (!real.address)
        return -1;
    register_once(real.address);
    return real.create(name, flags, create_list, access_list);
}

FPCONV_API herr_t H5close(void)
{
    const union function real = find_real("H5close", __builtin_return_address(0));
    if (!real.address)
        return -1;
    const herr_t closed = real.close();
    pthread_mutex_lock(&mutex);
    is_done = false;
    pthread_mutex_unlock(&mutex);
    return closed;
}
