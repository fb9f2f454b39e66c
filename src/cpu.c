/*
 * cpu.c - the choice of an instruction set, once a process
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "cpu.h"

/* Can this CPU run a level?  (The operating system's part is included.) */
static bool cpu_has_portable(void)
{
    return true;
}

#if defined(__x86_64__)
/* Not a name that clang 14's __builtin_cpu_supports knows; the operating system's
 * part is that of AVX2. */
static bool cpu_has_f16c(void)
{
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}

static bool cpu_has_sse2(void)
{
    return true;
}

static bool cpu_has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && cpu_has_f16c();
}

static bool cpu_has_avx512(void)
{
    return cpu_has_avx2() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("bmi2");
}
#endif

#if defined(FPCONV_HAS_NEON)
static bool cpu_has_neon(void)
{
    return true; /* part of aarch64 */
}
#endif

struct level {
    const struct fp_kernels *kernels;
    bool (*cpu_has)(void);
};

/* Best first; each falls back on those after it. */
static const struct level levels[] = {
#if defined(__x86_64__)
    {&fp_kernels_avx512, cpu_has_avx512},
    {&fp_kernels_avx2, cpu_has_avx2},
    {&fp_kernels_sse2, cpu_has_sse2},
#elif defined(FPCONV_HAS_NEON)
    {&fp_kernels_neon, cpu_has_neon},
#endif
    {&fp_kernels_portable, cpu_has_portable},
};
enum { LEVEL_COUNT = sizeof(levels) / sizeof(levels[0]) };

/* The first level of the list that the CPU has, starting with the one that
 * FPCONV_CPU names (an unknown name counts for nothing). */
static unsigned choose_level(void)
{
    const char *forced = getenv("FPCONV_CPU");
    unsigned level = 0;
    if (forced)
        for (unsigned i = 0; i < LEVEL_COUNT; i++)
            if (strcmp(forced, levels[i].kernels->name) == 0)
                level = i;
    while (!levels[level].cpu_has())
        level++;
    return level;
}

_Atomic(const fp_kernel_table *) fp_cpu_table;

/* The level in use, plus one; 0 before the first call.  Threads that meet here
 * choose the same, so that no lock is needed. */
static unsigned current_level(void)
{
    static atomic_uint chosen;
    unsigned level = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (level == 0) {
        level = choose_level() + 1;
        atomic_store_explicit(&chosen, level, memory_order_relaxed);
        atomic_store_explicit(&fp_cpu_table, levels[level - 1].kernels->table,
                              memory_order_relaxed);
    }
    return level - 1;
}

fp_kernel *fp_cpu_kernel(fpconv_format dst, fpconv_format src, fpconv_policy policy)
{
    fp_kernel *kernel = NULL;
    for (unsigned i = current_level(); i < LEVEL_COUNT && !kernel; i++)
        kernel = (*levels[i].kernels->table)[dst][src][policy];
    return kernel;
}

fp_while_normal_kernel *fp_cpu_while_normal(fpconv_format dst, fpconv_format src)
{
    const fp_while_normal_table *table = levels[current_level()].kernels->while_normal;
    return table ? (*table)[dst][src] : NULL;
}

const struct fp_record_kernels *fp_cpu_records(void)
{
    return levels[current_level()].kernels->records;
}

fp_convert_streamed *fp_cpu_convert_streamed(void)
{
    return levels[current_level()].kernels->convert_streamed;
}

const struct fp_block_kernels *fp_cpu_blocks(void)
{
    return levels[current_level()].kernels->blocks;
}

const char *fpconv_cpu_name(void)
{
    return levels[current_level()].kernels->name;
}
