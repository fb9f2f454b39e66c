/*
 * h5io.c - H5Dwrite and H5Dread of a large dataset against their floor
 *
 * SPDX-License-Identifier: MIT
 *
 * The file is in memory (HDF5's core driver), so that no disk is measured.  The
 * floor is what cannot be avoided: raw, the same stored bytes moved without a
 * conversion, and copy, a memcpy of the wide array, since HDF5 converts in a
 * buffer of its own that the wide array has to be copied into or out of.
 */
#include <stdlib.h>
#include <string.h>

#include "h5.h"
#include "timing.h"

enum {
    CHUNK_BYTES = 1 << 20,
    LOOP_N = 1 << 18, /* the general loop is timed on this many elements */
    FILE_INCREMENT = 64 << 20,
};

/* The most that a write or read may take of the floor. */
static const double must_ratio = 1.25;

struct transfer {
    hid_t dataset, memory_type;
    void *buffer;
};

static void run_write(void *context)
{
    const struct transfer *t = context;
    h5_check(H5Dwrite(t->dataset, t->memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, t->buffer),
             "H5Dwrite failed");
}

static void run_read(void *context)
{
    const struct transfer *t = context;
    h5_check(H5Dread(t->dataset, t->memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, t->buffer),
             "H5Dread failed");
}

struct copy {
    void *dst;
    const void *src;
    size_t bytes;
};

static void run_copy(void *context)
{
    const struct copy *c = context;
    memcpy(c->dst, c->src, c->bytes);
    __asm__ volatile("" : : "r"(c->dst) : "memory"); /* the copy counts as read */
}

static hid_t create_file_in_memory(void)
{
    const hid_t access = h5_check(H5Pcreate(H5P_FILE_ACCESS), "cannot create a property list");
    h5_check(H5Pset_fapl_core(access, FILE_INCREMENT, 0), "cannot choose the core driver");
    const hid_t file = h5_check(H5Fcreate("fpconv-bench", H5F_ACC_TRUNC, H5P_DEFAULT, access),
                                "cannot create a file in memory");
    H5Pclose(access);
    return file;
}

static hid_t create_dataset(hid_t file, const char *name, fpconv_format format, size_t n,
                            bool chunked)
{
    const hsize_t extent = n;
    const size_t chunk_elements = CHUNK_BYTES / fpconv_format_size(format);
    const hsize_t chunk = chunk_elements < n ? chunk_elements : n;
    const hid_t space = h5_check(H5Screate_simple(1, &extent, NULL), "cannot create a dataspace");
    const hid_t creation = h5_check(H5Pcreate(H5P_DATASET_CREATE), "cannot create a property list");
    if (chunked)
        h5_check(H5Pset_chunk(creation, 1, &chunk), "cannot set the chunks' size");
    const hid_t dataset =
        h5_check(H5Dcreate2(file, name, h5_type(format), space, H5P_DEFAULT, creation, H5P_DEFAULT),
                 "cannot create a dataset");
    H5Pclose(creation);
    H5Sclose(space);
    return dataset;
}

/* Everything that one pair and layout is measured with. */
struct scene {
    size_t n, loop_n;
    fpconv_format wide, narrow;
    bool chunked;
    void *values, *values_copy, *codes;
};

enum { RAW, COPY, FPCONV, LOOP, CONTENDERS };

static void report_scene(const struct scene *scene, bool writing,
                         const struct contender contenders[CONTENDERS])
{
    const char *const section = writing ? "h5dwrite" : "h5dread";
    const char *const src = fpconv_format_name(writing ? scene->wide : scene->narrow);
    const char *const dst = fpconv_format_name(writing ? scene->narrow : scene->wide);
    const char *const layout = scene->chunked ? "chunks" : "contiguous";
    const double raw_s = contenders[RAW].seconds, copy_s = contenders[COPY].seconds;
    const double fpconv_s = contenders[FPCONV].seconds;
    const double ratio = fpconv_s / (raw_s + copy_s);
    json_t *record = json_pack("{s:s, s:s, s:s, s:s, s:I, s:f, s:f, s:f}", "section", section,
                               "src", src, "dst", dst, "layout", layout, "n", (json_int_t)scene->n,
                               "fpconv_s", fpconv_s, "raw_s", raw_s, "copy_s", copy_s);
    report_print("%-8s  %4s -> %-4s  %-10s  %7.4f  %7.4f  %7.4f  %5.2f  %-4s", section, src, dst,
                 layout, raw_s, copy_s, fpconv_s, ratio,
                 report_judge(ratio, must_ratio, must_ratio));
    if (h5_has_general_loop(scene->narrow)) {
        const double loop_s = contenders[LOOP].seconds * (double)scene->n / (double)scene->loop_n;
        report_print("  %7.3f  %5.0f", loop_s, loop_s / fpconv_s);
        json_object_set_new(record, "loop_s", json_real(loop_s));
        json_object_set_new(record, "loop_n", json_integer((json_int_t)scene->loop_n));
    }
    report_print("\n");
    report_record(record);
}

static void run_scene(const struct scene *scene, bool writing)
{
    const hid_t file = create_file_in_memory();
    const hid_t dataset = create_dataset(file, "all", scene->narrow, scene->n, scene->chunked);
    const hid_t part = create_dataset(file, "part", scene->narrow, scene->loop_n, scene->chunked);
    void (*const run)(void *) = writing ? run_write : run_read;
    struct transfer fpconv = {dataset, h5_type(scene->wide), scene->values};
    struct transfer raw = {dataset, h5_type(scene->narrow), scene->codes};
    struct transfer loop = {part, h5_type_of_general_loop(scene->wide), scene->values};
    struct copy copy = {scene->values_copy, scene->values,
                        scene->n * fpconv_format_size(scene->wide)};
    struct contender contenders[CONTENDERS] = {
        [RAW] = {.run = run, .context = &raw},
        [COPY] = {.run = run_copy, .context = &copy},
        [FPCONV] = {.run = run, .context = &fpconv},
        [LOOP] = {.run = run, .context = &loop},
    };

    bench_fill_normal(scene->wide, scene->values, scene->n, 1);
    run_write(&fpconv); /* allocates the file's space, and is there to be read */
    run_read(&raw);     /* the codes to be written raw are the same */
    if (h5_has_general_loop(scene->narrow))
        run_write(&loop);
    report_progress("%s: %s, %s, %s", writing ? "h5dwrite" : "h5dread",
                    fpconv_format_name(scene->wide), fpconv_format_name(scene->narrow),
                    scene->chunked ? "chunks" : "contiguous");
    timing_compare(contenders, h5_has_general_loop(scene->narrow) ? CONTENDERS : LOOP);
    report_scene(scene, writing, contenders);
    H5Dclose(part);
    H5Dclose(dataset);
    H5Fclose(file);
}

static void run_wide(const struct request *request, struct scene *scene, fpconv_format wide,
                     bool writing)
{
    scene->wide = wide;
    for (int format = 0; format < FPCONV_FORMAT_COUNT; format++)
        for (int chunked = 0; chunked < 2; chunked++) {
            scene->narrow = (fpconv_format)format;
            scene->chunked = chunked;
            if (!bench_is_wide(scene->narrow) && bench_wants_pair(request, wide, scene->narrow))
                run_scene(scene, writing);
        }
}

static void run_direction(const struct request *request, bool writing)
{
    /* f64 only where it is asked for: it takes twice as long and shows no more */
    const bool with_f64 = request->formats >> FPCONV_F64 & 1;
    const size_t widest = with_f64 ? sizeof(double) : sizeof(float);
    const size_t n = request->elements;
    struct scene scene = {
        .n = n,
        .loop_n = n < LOOP_N ? n : LOOP_N,
        .values = bench_allocate(n * widest),
        .values_copy = bench_allocate(n * widest),
        .codes = bench_allocate(n * sizeof(uint16_t)),
    };
    h5_start(request);
    report_print("\n%s of %zu elements in memory, contiguous or in chunks of 1 MiB; seconds\n"
                 "ratio: to the floor, raw + copy, must %.2f; loop: of %zu elements, times %.0f\n"
                 "%-8s  %-12s  %-10s  %7s  %7s  %7s  %5s  %-4s  %7s  %5s\n",
                 writing ? "H5Dwrite" : "H5Dread", n, must_ratio, scene.loop_n,
                 (double)n / (double)scene.loop_n, "section", "pair", "layout", "raw", "copy",
                 "fpconv", "ratio", "", "loop", "times");
    run_wide(request, &scene, FPCONV_F32, writing);
    if (with_f64)
        run_wide(request, &scene, FPCONV_F64, writing);
    report_verdicts(writing ? "h5dwrite" : "h5dread");
    free(scene.values);
    free(scene.values_copy);
    free(scene.codes);
}

void bench_h5dwrite(const struct request *request)
{
    run_direction(request, true);
}

void bench_h5dread(const struct request *request)
{
    run_direction(request, false);
}
