/*
 * main.c - fpconv-doctor: what the linked libhdf5 stores and reads wrongly
 *
 * SPDX-License-Identifier: MIT
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "doctor.h"

static const char usage[] =
    "Usage: fpconv-doctor [--json] [FILE]...\n"
    "Says which low-precision floating-point values the linked HDF5 library stores or\n"
    "reads wrongly, alone and with each of fpconv's profiles; and which of the FILEs'.\n"
    "\n"
    "  --json     print JSON\n"
    "  --help     print this\n"
    "  --version  print the versions of fpconv and HDF5\n"
    "\n"
    "Exit status: 0 nothing is wrong, 1 something is, 2 an error.\n"
    "\n"
    "Example: fpconv-doctor model.h5 || echo 'register fpconv before reading model.h5'\n";

static size_t begin(struct examination *e)
{
    size_t count = 0;
    for (int i = 0; i < FPCONV_FORMAT_COUNT; i++) {
        const fpconv_format format = (fpconv_format)i;
        /* hif8 is opaque to HDF5, which does not convert it */
        if (fpconv_format_size(format) <= 2 && format != FPCONV_HIF8)
            e[count++] = (struct examination){.scale = make_scale(format)};
    }
    return count;
}

/* With files given, they decide; without, all that the library converts. */
static bool is_wrong(const struct examination *e, size_t count, const struct patient *patients)
{
    bool wrong = false;
    for (const struct patient *p = patients; p; p = p->next)
        for (int i = 0; i < FPCONV_FORMAT_COUNT; i++)
            wrong = wrong || p->finding[i].wrong > 0;
    for (size_t i = 0; i < count && !patients; i++)
        wrong = wrong || e[i].sample.wrong || e[i].own.wrong || e[i].read.wrong;
    return wrong;
}

static void finish(struct examination *e, size_t count, struct patient *patients)
{
    for (size_t i = 0; i < count; i++) {
        free(e[i].codes);
        free(e[i].scale.value);
    }
    for (struct patient *next; patients; patients = next) {
        next = patients->next;
        free(patients->file);
        free(patients->path);
        free(patients);
    }
}

static bool examine(int files, char **file, const char *version, bool json)
{
    struct examination e[FPCONV_FORMAT_COUNT];
    struct patient *patients = NULL, **end = &patients;
    float *sample = make_sample();
    const size_t count = begin(e);
    for (size_t i = 0; i < count; i++)
        examine_library(&e[i], sample);
    for (int i = 0; i < files; i++)
        end = examine_file(file[i], e, count, end);
    for (int i = 0; i < FPCONV_H5_PROFILE_COUNT; i++) {
        if (fpconv_h5_register_profile((fpconv_h5_profile)i, NULL) < 0)
            fail("%s", fpconv_h5_last_error());
        for (size_t j = 0; j < count; j++)
            examine_profile(&e[j], (fpconv_h5_profile)i, sample);
    }
    const bool wrong = is_wrong(e, count, patients);
    if (json)
        print_json(version, wrong, e, count, patients);
    else
        print_words(version, e, count, patients);
    free(sample);
    finish(e, count, patients);
    return wrong;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'v'},
                                            {NULL, 0, NULL, 0}};
    bool json = false;
    char version[32];
    unsigned major, minor, release;
    H5get_libversion(&major, &minor, &release);
    snprintf(version, sizeof(version), "%u.%u.%u", major, minor, release);
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (option) {
        case 'j':
            json = true;
            break;
        case 'h':
            fputs(usage, stdout);
            return STATUS_SOUND;
        case 'v':
            printf("fpconv-doctor %d.%d.%d, HDF5 %s\n", FPCONV_VERSION_MAJOR, FPCONV_VERSION_MINOR,
                   FPCONV_VERSION_PATCH, version);
            return STATUS_SOUND;
        default:
            fputs(usage, stderr);
            return STATUS_ERROR;
        }
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* one line of our own instead */
    const bool wrong = examine(argc - optind, argv + optind, version, json);
    if (fflush(stdout) != 0)
        fail("cannot write the output");
    return wrong ? STATUS_WRONG : STATUS_SOUND;
}
