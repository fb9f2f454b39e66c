/*
 * test_level.c - the choice of an instruction set
 *
 * SPDX-License-Identifier: MIT
 *
 * It is made once a process, so that each question is put to a child.
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stream.h"
#include "support.h"

/* In the order of falling back, best first. */
#if defined(__x86_64__)
static const char *const levels[] = {"avx512", "avx2", "sse2", "portable"};
#elif defined(__aarch64__)
static const char *const levels[] = {"neon", "portable"};
#else
static const char *const levels[] = {"portable"};
#endif

#if defined(__x86_64__)
/* What the kernel says of the CPU: not the source that the library asks. */
static bool cpu_has_flag(const char *flag)
{
    char line[1 << 14];
    bool found = false;
    FILE *cpuinfo = fopen("/proc/cpuinfo", "r");
    assert_non_null(cpuinfo);
    while (!found && fgets(line, sizeof(line), cpuinfo))
        if (strncmp(line, "flags", 5) == 0)
            for (const char *word = strtok(line, " \n"); word && !found; word = strtok(NULL, " \n"))
                found = strcmp(word, flag) == 0;
    fclose(cpuinfo);
    return found;
}
#endif

static bool cpu_has(const char *level)
{
#if defined(__x86_64__)
    static const char *const avx2[] = {"avx2", "f16c", "fma"};
    static const char *const avx512[] = {"avx512f",    "avx512bw",     "avx512dq", "avx512vl",
                                         "avx512vbmi", "avx512_vbmi2", "bmi2"};
    bool has = true;
    if (strcmp(level, "avx2") == 0 || strcmp(level, "avx512") == 0)
        for (size_t i = 0; i < ARRAY_COUNT(avx2); i++)
            has = has && cpu_has_flag(avx2[i]);
    if (strcmp(level, "avx512") == 0)
        for (size_t i = 0; i < ARRAY_COUNT(avx512); i++)
            has = has && cpu_has_flag(avx512[i]);
    return has;
#else
    (void)level;
    return true;
#endif
}

/* The first level from `asked` on that the CPU has. */
static const char *level_from(const char *asked)
{
    bool reached = false;
    for (size_t i = 0; i < ARRAY_COUNT(levels); i++) {
        reached = reached || strcmp(levels[i], asked) == 0;
        if (reached && cpu_has(levels[i]))
            return levels[i];
    }
    return NULL;
}

/* Runs a function in a child with FPCONV_CPU set, or unset if NULL. */
static void in_child(const char *asked, void (*ask)(const char *want), const char *want)
{
    int status;
    fflush(stdout);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (asked)
            setenv("FPCONV_CPU", asked, 1);
        else
            unsetenv("FPCONV_CPU");
        ask(want);
        _exit(EXIT_SUCCESS);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS)
        fail_msg("FPCONV_CPU=%s: the library did not do as level %s", asked ? asked : "(unset)",
                 want);
}

static void expect_name(const char *want)
{
    if (strcmp(fpconv_cpu_name(), want) != 0) {
        fprintf(stderr, "level %s instead of %s\n", fpconv_cpu_name(), want);
        _exit(EXIT_FAILURE);
    }
}

static void the_best_level_is_used(void **state)
{
    (void)state;
    in_child(NULL, expect_name, level_from(levels[0]));
}

static void a_level_can_be_forced_or_falls_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(levels); i++)
        in_child(levels[i], expect_name, level_from(levels[i]));
}

static void unknown_names_count_for_nothing(void **state)
{
    (void)state;
    static const char *const unknown[] = {
        "",
        "AVX2",
        "avx",
        "avx512 ",
        "riscv",
        "portable,sse2",
#if defined(__x86_64__)
        "neon", /* of another architecture */
#else
        "avx2",
#endif
    };
    for (size_t i = 0; i < ARRAY_COUNT(unknown); i++)
        in_child(unknown[i], expect_name, level_from(levels[0]));
}

/* -------------------------------------------------------------------------- */

enum { THREADS = 16 };
static struct stream stream;
static pthread_barrier_t barrier;

/* Few elements first, which have a way of their own to the tables that the first call makes. */
static void *convert_once(void *out)
{
    enum { FEW = 5 };
    const uint8_t *src = stream.code_bytes;
    uint8_t *dst = out;
    pthread_barrier_wait(&barrier);
    if (fpconv_convert(stream.dst, dst, stream.src, src, FEW, stream.policy) != FPCONV_OK)
        return NULL;
    dst += FEW * stream.dst_size;
    src += FEW * stream.src_size;
    return fpconv_convert(stream.dst, dst, stream.src, src, STREAM_COUNT - FEW, stream.policy) ==
                   FPCONV_OK
               ? out
               : NULL;
}

/* The library's first calls come from all threads at once. */
static void convert_in_threads(const char *want)
{
    static uint8_t out[THREADS][STREAM_COUNT * 8];
    pthread_t threads[THREADS];
    if (pthread_barrier_init(&barrier, NULL, THREADS) != 0)
        _exit(EXIT_FAILURE);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, convert_once, out[i]) != 0)
            _exit(EXIT_FAILURE);
    for (int i = 0; i < THREADS; i++) {
        void *converted;
        if (pthread_join(threads[i], &converted) != 0 || converted != out[i] ||
            memcmp(out[i], stream.want_bytes, STREAM_COUNT * stream.dst_size) != 0)
            _exit(EXIT_FAILURE);
    }
    expect_name(want);
}

static void threads_meet_at_the_first_call(void **state)
{
    (void)state;
    fill_stream(&stream, FPCONV_BF16, FPCONV_F32, FPCONV_OCP);
    for (int i = 0; i < 20; i++)
        in_child(NULL, convert_in_threads, level_from(levels[0]));
}

/* hif8's tables are made at the first call that needs them. */
static void threads_meet_at_the_first_call_with_hif8(void **state)
{
    (void)state;
    static const fpconv_format pairs[][2] = {{FPCONV_HIF8, FPCONV_F32}, {FPCONV_F64, FPCONV_HIF8}};
    for (size_t p = 0; p < ARRAY_COUNT(pairs); p++) {
        fill_stream(&stream, pairs[p][0], pairs[p][1], FPCONV_OCP);
        for (size_t l = 0; l < ARRAY_COUNT(levels); l++)
            for (int i = 0; i < 20; i++)
                in_child(levels[l], convert_in_threads, level_from(levels[l]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_level_is_used),
        cmocka_unit_test(a_level_can_be_forced_or_falls_back),
        cmocka_unit_test(unknown_names_count_for_nothing),
        cmocka_unit_test(threads_meet_at_the_first_call),
        cmocka_unit_test(threads_meet_at_the_first_call_with_hif8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
