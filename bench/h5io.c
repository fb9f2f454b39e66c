/*
 * h5io.c - H5Dwrite and H5Dread of a large dataset against their floor
 *
 * SPDX-License-Identifier: MIT
 *
 * The file is in memory (HDF5's core driver), so that no disk is measured.  The
 * floor is what cannot be avoided: raw, the same stored bytes moved without a
 * conversion, and copy, a memcpy of the wide array, since HDF5 converts in a
 * buffer of its own that the wide array has to be copied into or out of.
 *
 * H5Dwrite fills a new dataset each time, raw and converted.  Rewriting chunks that exist
 * is told as well: it takes longer if it converts, for HDF5 then reads each of them first
 * although it writes all of it, as it holds the memory's bytes against the chunk's.
 */
#include <stdlib.h>

#include "h5.h"
#include "timing.h"

enum {
    CHUNK_BYTES = 1 << 20,
    LOOP_N = 1 << 18, /* the general loop is timed on this many elements */
    FILE_INCREMENT = 64 << 20,
};

/* The most that a write or read may take of the floor. */
static const double must_ratio = 1.25;

/* Where the dataset lies, and what it is, so that it can be made anew. */
struct place {
    hid_t file, dataset;
    const char *name;
    fpconv_format format;
    size_t n;
    bool chunked;
};

struct transfer {
    struct place *place;
    hid_t memory_type;
    void *buffer;
};

static void run_write(void *context)
{
    const struct transfer *t = context;
    h5_check(H5Dwrite(t->place->dataset, t->memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, t->buffer),
             "H5Dwrite failed");
}

static void run_read(void *context)
{
    const struct transfer *t = context;
    h5_check(H5Dread(t->place->dataset, t->memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, t->buffer),
             "H5Dread failed");
}

static hid_t create_file_in_memory(const char *name)
{
    const hid_t access = h5_check(H5Pcreate(H5P_FILE_ACCESS), "cannot create a property list");
    h5_check(H5Pset_fapl_core(access, FILE_INCREMENT, 0), "cannot choose the core driver");
    const hid_t file = h5_check(H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access),
                                "cannot create a file in memory");
    H5Pclose(access);
    return file;
}

static hid_t create_dataset(const struct place *place)
{
    const hsize_t extent = place->n;
    const size_t chunk_elements = CHUNK_BYTES / fpconv_format_size(place->format);
    const hsize_t chunk = chunk_elements < place->n ? chunk_elements : place->n;
    const hid_t space = h5_check(H5Screate_simple(1, &extent, NULL), "cannot create a dataspace");
    const hid_t creation = h5_check(H5Pcreate(H5P_DATASET_CREATE), "cannot create a property list");
    if (place->chunked)
        h5_check(H5Pset_chunk(creation, 1, &chunk), "cannot set the chunks' size");
    const hid_t dataset = h5_check(H5Dcreate2(place->file, place->name, h5_type(place->format),
                                              space, H5P_DEFAULT, creation, H5P_DEFAULT),
                                   "cannot create a dataset");
    H5Pclose(creation);
    H5Sclose(space);
    return dataset;
}

/* A new dataset in the space of the old one, whose pages have been touched. */
static void replace_dataset(void *context)
{
    struct place *place = ((struct transfer *)context)->place;
    H5Dclose(place->dataset);
    h5_check(H5Ldelete(place->file, place->name, H5P_DEFAULT), "cannot remove a dataset");
    place->dataset = create_dataset(place);
}

enum layout { CONTIGUOUS, CHUNKS, REWRITTEN, LAYOUTS };

static const char *const layout_names[LAYOUTS] = {"contiguous", "chunks", "rewritten"};

/* Everything that one pair and layout is measured with. */
struct scene {
    size_t n, loop_n;
    fpconv_format wide, narrow;
    enum layout layout;
    void *values, *values_copy, *codes;
};

enum { RAW, COPY, FPCONV, CONTENDERS };

static struct place create_place(const char *file, const struct scene *scene, size_t n)
{
    struct place place = {
        .file = create_file_in_memory(file),
        .name = "values",
        .format = scene->narrow,
        .n = n,
        .chunked = scene->layout != CONTIGUOUS,
    };
    place.dataset = create_dataset(&place);
    return place;
}

static void close_place(const struct place *place)
{
    H5Dclose(place->dataset);
    H5Fclose(place->file);
}

/* Seconds that HDF5's general loop would take for all. */
static double time_loop(const struct scene *scene, void (*run)(void *))
{
    struct place place = create_place("fpconv-bench-loop", scene, scene->loop_n);
    struct transfer loop = {&place, h5_type_of_general_loop(scene->wide), scene->values};
    struct contender contender = {.run = run, .context = &loop};
    run_write(&loop);
    timing_compare(&contender, 1);
    close_place(&place);
    return contender.seconds * (double)scene->n / (double)scene->loop_n;
}

static void report_scene(const struct scene *scene, bool writing,
                         const struct contender contenders[CONTENDERS])
{
    const char *const section = writing ? "h5dwrite" : "h5dread";
    const char *const src = fpconv_format_name(writing ? scene->wide : scene->narrow);
    const char *const dst = fpconv_format_name(writing ? scene->narrow : scene->wide);
    const char *const layout = layout_names[scene->layout];
    const double raw_s = contenders[RAW].seconds, copy_s = contenders[COPY].seconds;
    const double fpconv_s = contenders[FPCONV].seconds;
    const struct estimate ratio = timing_ratio(&contenders[FPCONV], &contenders[RAW], 2);
    json_t *record = json_pack("{s:s, s:s, s:s, s:s, s:I, s:f, s:f, s:f}", "section", section,
                               "src", src, "dst", dst, "layout", layout, "n", (json_int_t)scene->n,
                               "fpconv_s", fpconv_s, "raw_s", raw_s, "copy_s", copy_s);
    report_add_ratio(record, ratio);
    report_print("%-8s  %4s -> %-4s  %-10s  %7.4f  %7.4f  %7.4f  %s  %-10s", section, src, dst,
                 layout, raw_s, copy_s, fpconv_s, report_estimate(ratio),
                 report_judge(ratio, must_ratio, must_ratio));
    if (h5_has_general_loop(scene->narrow)) {
        const double loop_s = time_loop(scene, writing ? run_write : run_read);
        report_print("  %7.3f  %5.0f", loop_s, loop_s / fpconv_s);
        json_object_set_new(record, "loop_s", json_real(loop_s));
        json_object_set_new(record, "loop_n", json_integer((json_int_t)scene->loop_n));
    }
    report_print("\n");
    report_record(record);
}

static void run_scene(const struct scene *scene, bool writing)
{
    struct place place = create_place("fpconv-bench", scene, scene->n);
    void (*const run)(void *) = writing ? run_write : run_read;
    void (*const prepare)(void *) = writing && scene->layout != REWRITTEN ? replace_dataset : NULL;
    struct transfer fpconv = {&place, h5_type(scene->wide), scene->values};
    struct transfer raw = {&place, h5_type(scene->narrow), scene->codes};
    struct timing_copy copy = {scene->values_copy, scene->values,
                               scene->n * fpconv_format_size(scene->wide)};
    struct contender contenders[CONTENDERS] = {
        [RAW] = {.run = run, .prepare = prepare, .context = &raw},
        [COPY] = {.run = timing_copy, .context = &copy},
        [FPCONV] = {.run = run, .prepare = prepare, .context = &fpconv},
    };

    bench_fill_normal(scene->wide, scene->values, scene->n, 1);
    run_write(&fpconv); /* touches the file's space, and is there to be read */
    run_read(&raw);     /* the codes to be written raw are the same */
    report_progress("%s: %s, %s, %s", writing ? "h5dwrite" : "h5dread",
                    fpconv_format_name(scene->wide), fpconv_format_name(scene->narrow),
                    layout_names[scene->layout]);
    timing_compare(contenders, CONTENDERS);
    report_scene(scene, writing, contenders);
    close_place(&place);
}

static void run_wide(const struct request *request, struct scene *scene, fpconv_format wide,
                     bool writing)
{
    scene->wide = wide;
    for (int format = 0; format < FPCONV_FORMAT_COUNT; format++)
        for (int layout = 0; layout < (writing ? LAYOUTS : REWRITTEN); layout++) {
            scene->narrow = (fpconv_format)format;
            scene->layout = (enum layout)layout;
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
                 "%-8s  %-12s  %-10s  %7s  %7s  %7s  %6s %-13s  %-10s  %7s  %5s\n",
                 writing ? "H5Dwrite" : "H5Dread", n, must_ratio, scene.loop_n,
                 (double)n / (double)scene.loop_n, "section", "pair", "layout", "raw", "copy",
                 "fpconv", "ratio", "[95 %]", "", "loop", "times");
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
