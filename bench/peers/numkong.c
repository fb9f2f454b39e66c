/*
 * numkong.c - times the casts of NumKong's shared library
 *
 * SPDX-License-Identifier: MIT
 *
 * Run by fpconv-bench --peers as `fpconv-peer-numkong LIBRARY N...`.  Prints a
 * line a measurement, "peer src dst n ns".  The library is loaded here, so that
 * nothing else depends on it; names and numbers are of NumKong 7.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../bench.h"
#include "../timing.h"

typedef void cast_function(const void *from, uint32_t from_type, uint64_t n, void *to,
                           uint32_t to_type);
typedef uint64_t capabilities_function(void);
typedef int configure_function(uint64_t capabilities);

/* enum nk_dtype_t; 0 where NumKong has no such type */
static const uint32_t types[FPCONV_FORMAT_COUNT] = {
    [FPCONV_F64] = 1 << 10,  [FPCONV_F32] = 1 << 11,  [FPCONV_F16] = 1 << 12,
    [FPCONV_BF16] = 1 << 13, [FPCONV_E4M3] = 1 << 14, [FPCONV_E5M2] = 1 << 15,
    [FPCONV_E2M3] = 1 << 18, [FPCONV_E3M2] = 1 << 19,
};

struct cast {
    cast_function *function;
    fpconv_format dst, src;
    size_t n;
    void *from, *to;
};

static void run_cast(void *context)
{
    const struct cast *c = context;
    c->function(c->from, types[c->src], c->n, c->to, types[c->dst]);
}

static void measure(struct cast *cast)
{
    struct contender contender = {.run = run_cast, .context = cast};
    bench_fill_normal(cast->src, cast->from, cast->n, 1);
    timing_compare(&contender, 1);
    printf("numkong %s %s %zu %g\n", fpconv_format_name(cast->src), fpconv_format_name(cast->dst),
           cast->n, contender.seconds / (double)cast->n * 1e9);
    fflush(stdout);
}

/* Both ways between f32 and f64 and each narrow format. */
static void measure_all(cast_function *function, size_t n)
{
    const fpconv_format wide_formats[] = {FPCONV_F32, FPCONV_F64};
    struct cast cast = {.function = function,
                        .n = n,
                        .from = bench_allocate(n * sizeof(double)),
                        .to = bench_allocate(n * sizeof(double))};
    for (size_t w = 0; w < 2; w++)
        for (int format = FPCONV_F16; format < FPCONV_FORMAT_COUNT; format++) {
            if (types[format] == 0)
                continue;
            cast.src = wide_formats[w];
            cast.dst = (fpconv_format)format;
            measure(&cast);
            cast.dst = cast.src;
            cast.src = (fpconv_format)format;
            measure(&cast);
        }
    free(cast.from);
    free(cast.to);
}

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library)
        return EXIT_FAILURE;
    cast_function *cast;
    capabilities_function *capabilities;
    configure_function *configure;
    /* POSIX has dlsym return functions as object pointers */
    *(void **)&cast = dlsym(library, "nk_cast");
    *(void **)&capabilities = dlsym(library, "nk_capabilities");
    *(void **)&configure = dlsym(library, "nk_configure_thread");
    if (!cast || !capabilities || !configure)
        return EXIT_FAILURE;
    configure(capabilities());
    for (int i = 2; i < argc; i++)
        measure_all(cast, strtoull(argv[i], NULL, 10));
    return EXIT_SUCCESS;
}
