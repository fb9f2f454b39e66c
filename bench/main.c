/*
 * main.c - fpconv-bench: the command line
 *
 * SPDX-License-Identifier: MIT
 */
#include <argp.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench.h"

const struct section bench_sections[] = {
    {"input", bench_input, true, "the float datasets of the --input file through HDF5 and back"},
    {"h5tconvert", bench_h5tconvert, true, "H5Tconvert against HDF5's general loop"},
    {"identical", bench_identical, true, "profile IDENTICAL against REPAIRED"},
    {"h5call", bench_h5call, true, "array and compound datatypes against HDF5's general loop"},
    {"h5dwrite", bench_h5dwrite, true, "H5Dwrite of a large dataset against its floor"},
    {"h5dread", bench_h5dread, true, "H5Dread of a large dataset against its floor"},
    {"array", bench_array, true, "contiguous arrays against memcpy"},
    {"narrow", bench_narrow, true, "f16 and bf16 to and from 8, 6 and 4 bits"},
    {"inplace", bench_inplace, true, "dst == src"},
    {"strided", bench_strided, true, "members of compounds of 12 and 16 bytes"},
    {"small", bench_small, true, "calls with n = 1 and n = 16"},
    {"subnormals", bench_subnormals, true, "data with many subnormal values"},
    {"scaled", bench_scaled, true, "packed and scaled conversion: MX, NVFP4, f32 scales"},
    {"instructions", bench_instructions, false, "machine instructions an element"},
    {"peers", bench_peers, false, "other libraries' conversions, as far as installed (--peers)"},
};
const size_t bench_section_count = sizeof(bench_sections) / sizeof(bench_sections[0]);

/* -------------------------------------------------------------------------- */
/* Lists of names                                                             */
/* -------------------------------------------------------------------------- */

static const char *section_name(unsigned i)
{
    return i < bench_section_count ? bench_sections[i].name : NULL;
}

static const char *format_name(unsigned i)
{
    return fpconv_format_name((fpconv_format)i);
}

static const char *policy_name(unsigned i)
{
    return fpconv_policy_name((fpconv_policy)i);
}

static const char *profile_name(unsigned i)
{
    return fpconv_h5_profile_name((fpconv_h5_profile)i);
}

/* The bits of the names in a list separated by commas; names(i) ends with NULL. */
static unsigned parse_names(struct argp_state *state, const char *what, const char *list,
                            const char *(*names)(unsigned))
{
    unsigned bits = 0;
    char *copy = strdup(list), *rest = copy;
    for (char *word = strsep(&rest, ","); word; word = strsep(&rest, ",")) {
        unsigned i = 0;
        while (names(i) && strcmp(names(i), word) != 0)
            i++;
        if (!names(i)) {
            fprintf(state->err_stream, "%s: no %s is called '%s'; there are", state->name, what,
                    word);
            for (i = 0; names(i); i++)
                fprintf(state->err_stream, "%s %s", i ? "," : "", names(i));
            fputc('\n', state->err_stream);
            exit(EXIT_FAILURE);
        }
        bits |= 1u << i;
    }
    free(copy);
    return bits;
}

static fpconv_h5_profile parse_profile(struct argp_state *state, const char *name)
{
    const unsigned bit = parse_names(state, "profile", name, profile_name);
    unsigned profile = 0;
    while (!(bit >> profile & 1))
        profile++;
    if (bit >> profile != 1)
        argp_failure(state, EXIT_FAILURE, 0, "--profile takes one name, not '%s'", name);
    return (fpconv_h5_profile)profile;
}

static size_t parse_count(struct argp_state *state, const char *option, const char *text)
{
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    const size_t limit = (size_t)1 << 32;
    if (errno || *end || text[0] < '0' || text[0] > '9' || value == 0 || value > limit)
        argp_failure(state, EXIT_FAILURE, 0, "%s takes a number from 1 to 2^32, not '%s'", option,
                     text);
    return (size_t)value;
}

/* -------------------------------------------------------------------------- */
/* Options                                                                    */
/* -------------------------------------------------------------------------- */

const char *argp_program_version = "fpconv-bench (fpconv) " FPCONV_BENCH_VERSION;

enum {
    OPTION_JSON = 256,
    OPTION_N,
    OPTION_ELEMENTS,
    OPTION_PROFILE,
    OPTION_PEERS,
    OPTION_PYTHON,
    OPTION_NUMKONG
};

static const struct argp_option options[] = {
    {"section", 's', "NAMES", 0, "Only these sections, separated by commas", 0},
    {"format", 'f', "NAMES", 0,
     "Only pairs of these formats; wide (f32, f64) and narrow ones are chosen separately", 0},
    {"policy", 'p', "NAMES", 0, "Only these policies: hdf5, ocp, ocp_sat", 0},
    {"input", 'i', "FILE.h5", 0,
     "Convert every float dataset of this file, before the other sections; it is only read", 0},
    {"output", 'o', "FILE.h5", 0,
     "Keep what --input was converted to in this new file (else: a temporary one, in $TMPDIR)", 0},
    {"profile", OPTION_PROFILE, "NAME", 0,
     "Of the converters in HDF5: repaired (as without this option), identical, ocp or ocp_sat", 0},
    {"elements", OPTION_ELEMENTS, "COUNT", 0,
     "Of the dataset that h5dwrite and h5dread use; 50 million without this option", 0},
    {"n", OPTION_N, "COUNT", 0, "Only arrays of this length, in the other sections", 0},
    {"peers", OPTION_PEERS, NULL, 0, "Add the section of that name to those that run", 0},
    {"python", OPTION_PYTHON, "PATH", 0,
     "The Python of peers numpy, ml_dtypes and PyTorch; /usr/bin/python3 without this option", 0},
    {"numkong", OPTION_NUMKONG, "PATH", 0, "The shared library of peer NumKong", 0},
    {"json", OPTION_JSON, "FILE", 0, "Write the results as JSON, too", 0},
    {0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct request *request = state->input;
    switch (key) {
    case 's':
        request->sections = parse_names(state, "section", argument, section_name);
        return 0;
    case 'f':
        request->formats = parse_names(state, "format", argument, format_name);
        return 0;
    case 'p':
        request->policies = parse_names(state, "policy", argument, policy_name);
        return 0;
    case OPTION_N:
        request->n = parse_count(state, "--n", argument);
        return 0;
    case 'i':
        request->input = argument;
        return 0;
    case 'o':
        request->output = argument;
        return 0;
    case OPTION_PROFILE:
        request->profile = parse_profile(state, argument);
        return 0;
    case OPTION_ELEMENTS:
        request->elements = parse_count(state, "--elements", argument);
        return 0;
    case OPTION_PEERS:
        request->peers = true;
        return 0;
    case OPTION_PYTHON:
        request->python = argument;
        return 0;
    case OPTION_NUMKONG:
        request->numkong = argument;
        return 0;
    case OPTION_JSON:
        request->json = argument;
        return 0;
    case ARGP_KEY_END:
        if (request->output && !request->input)
            argp_failure(state, EXIT_FAILURE, 0, "--output goes with --input");
        return 0;
    case ARGP_KEY_ARG:
        argp_failure(state, EXIT_FAILURE, 0, "unexpected argument '%s'", argument);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The list of sections, below the options. */
static char *help_filter(int key, const char *text, void *input)
{
    (void)input;
    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)(uintptr_t)text;
    char *help = NULL;
    size_t size;
    FILE *stream = open_memstream(&help, &size);
    fputs("Sections (* in a run without --section):\n", stream);
    for (size_t i = 0; i < bench_section_count; i++)
        fprintf(stream, "  %-12s%c %s\n", bench_sections[i].name,
                bench_sections[i].by_default ? '*' : ' ', bench_sections[i].summary);
    fclose(stream);
    return help;
}

static const struct argp argp = {
    .options = options,
    .parser = parse_option,
    .doc = "Measures fpconv against memcpy and against HDF5's own conversion.\vSections",
    .help_filter = help_filter,
};

/* -------------------------------------------------------------------------- */

static bool is_same_file(const char *a, const char *b)
{
    struct stat status_a, status_b;
    return stat(a, &status_a) == 0 && stat(b, &status_b) == 0 &&
           status_a.st_dev == status_b.st_dev && status_a.st_ino == status_b.st_ino;
}

/* The processor's name as Linux tells it. */
static void print_processor(void)
{
    char line[256], name[256] = "unknown processor";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "model name : %255[^\n]", name) == 1)
            break;
    if (file)
        fclose(file);
    report_print("fpconv %s, %s kernels, one core of: %s; memcpy of glibc %s\n",
                 FPCONV_BENCH_VERSION, fpconv_cpu_name(), name, gnu_get_libc_version());
}

/* Which sections run: those named, or those of every run; plus what goes with
 * an option. */
static bool wants_section(const struct request *request, size_t i)
{
    const struct section *section = &bench_sections[i];
    if (section->run == bench_input && !request->input)
        return false;
    if (section->run == bench_peers && request->peers)
        return true;
    return request->sections ? request->sections >> i & 1 : section->by_default;
}

int main(int argc, char **argv)
{
    struct request request = {
        .policies = (1u << FPCONV_POLICY_COUNT) - 1,
        .elements = 50000000,
        .python = "/usr/bin/python3",
        .numkong = FPCONV_BENCH_NUMKONG,
    };
    argp_err_exit_status = EXIT_FAILURE;
    argp_parse(&argp, argc, argv, 0, NULL, &request);

    if (request.json) {
        if (request.input && is_same_file(request.input, request.json))
            report_fail("%s: is the input, and would be overwritten", request.json);
        report_open_json(request.json);
    }
    if (request.input)
        bench_open_input(&request);
    print_processor();
    for (size_t i = 0; i < bench_section_count; i++)
        if (wants_section(&request, i)) {
            timing_core(); /* what was before is not the section's */
            bench_sections[i].run(&request);
        }
    report_close_json();
    return EXIT_SUCCESS;
}
