/*
 * test_h5_copies.c - the plugin where the program's HDF5 is another copy
 *
 * SPDX-License-Identifier: MIT
 *
 *   test_h5_copies USER PLUGIN PRELOAD CLIENT
 *
 * Linked with no HDF5, as Python is not: everything comes by dlopen.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

static const char *self_path, *user_path, *plugin_path, *preload_path, *client_path;

/* A function of a library that is loaded outside of the global scope. */
static void *function_of(const char *path, const char *name)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    void *function = dlsym(library, name);
    assert_non_null(function);
    return function;
}

static int register_converters(void)
{
    int (*call)(void);
    void *address = function_of(plugin_path, "fpconv_h5_register");
    memcpy(&call, &address, sizeof(call));
    return call();
}

static const char *last_error(void)
{
    const char *(*call)(void);
    void *address = function_of(plugin_path, "fpconv_h5_last_error");
    memcpy(&call, &address, sizeof(call));
    return call();
}

static void test_private_copy(void **state)
{
    (void)state;
    assert_true(register_converters() >= 0); /* nobody here uses another copy */
    assert_string_equal(last_error(), "");
    function_of(user_path, "private_user_open");
    assert_true(register_converters() < 0);
    if (!strstr(last_error(), "private copy") || !strstr(last_error(), "libhdf5_private"))
        fail_msg("the error is: %s", last_error());
}

/* What a command prints, errors too; it has to end with 0. */
static void run(const char *command, char *output, size_t size)
{
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    const size_t length = fread(output, 1, size - 1, pipe);
    output[length] = 0;
    const int status = pclose(pipe);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("status %d: %s", status, output);
}

/* Under the preload library: the call gets to the copy it was meant for, and one
 * line says that there is no conversion. */
static void test_preload(void **state)
{
    (void)state;
    char command[8192], output[4096];
    snprintf(command, sizeof(command), "LD_PRELOAD=\"$FPCONV_TEST_SANITIZER %s\" %s --open %s 2>&1",
             preload_path, self_path, user_path);
    run(command, output, sizeof(output));
    if (!strstr(output, "4711 4711") || !strstr(output, "a libhdf5 of its own") ||
        strstr(output, "fpconv: ") != output || strstr(output + 1, "fpconv: "))
        fail_msg("the output is: %s", output);
}

/* H5close() drops the converters, and the next file brings them back. */
static void test_preload_after_close(void **state)
{
    (void)state;
    char command[8192], output[4096];
    snprintf(command, sizeof(command), "%s 2>&1", client_path);
    run(command, output, sizeof(output));
    assert_string_equal(output, "1\n1\n1\n");
    snprintf(command, sizeof(command), "LD_PRELOAD=\"$FPCONV_TEST_SANITIZER %s\" %s 2>&1",
             preload_path, client_path);
    run(command, output, sizeof(output));
    assert_string_equal(output, "2\n2\n2\n");
}

static int open_twice(const char *user)
{
    int64_t (*call)(void);
    void *library = dlopen(user, RTLD_NOW | RTLD_LOCAL);
    void *address = library ? dlsym(library, "private_user_open") : NULL;
    if (!address)
        return 1;
    memcpy(&call, &address, sizeof(call));
    const long long first = call(), second = call();
    printf("%lld %lld\n", first, second);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--open") == 0)
        return open_twice(argv[2]);
    if (argc != 5)
        return 2;
    self_path = argv[0];
    user_path = realpath(argv[1], NULL);
    plugin_path = realpath(argv[2], NULL);
    preload_path = realpath(argv[3], NULL);
    client_path = realpath(argv[4], NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_preload),
        cmocka_unit_test(test_preload_after_close),
        cmocka_unit_test(test_private_copy),
    };
    return cmocka_run_group_tests_name("h5_copies", tests, NULL, NULL);
}
