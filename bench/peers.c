/*
 * peers.c - other libraries' conversions, each timed by a program of its own
 *
 * SPDX-License-Identifier: MIT
 *
 * The programs, in bench/peers/, print "peer src dst n ns" lines.  What is not
 * installed is left out.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "timing.h"

extern char **environ;

enum { N_L2 = 65536, N_MEMORY = 16777216 };

struct row {
    char peer[16];
    fpconv_format src, dst;
    size_t n;
    double ns;
};

struct rows {
    struct row *rows;
    size_t count;
};

/* -------------------------------------------------------------------------- */
/* Running a peer's program                                                   */
/* -------------------------------------------------------------------------- */

static bool find_format(const char *name, fpconv_format *format)
{
    for (int f = 0; f < FPCONV_FORMAT_COUNT; f++)
        if (strcmp(fpconv_format_name((fpconv_format)f), name) == 0) {
            *format = (fpconv_format)f;
            return true;
        }
    return false;
}

static void add_line(struct rows *rows, const char *line)
{
    struct row row;
    char src[16], dst[16];
    if (sscanf(line, "%15s %15s %15s %zu %lf", row.peer, src, dst, &row.n, &row.ns) != 5 ||
        !find_format(src, &row.src) || !find_format(dst, &row.dst))
        return;
    rows->rows = realloc(rows->rows, (rows->count + 1) * sizeof(row));
    rows->rows[rows->count++] = row;
}

/* Adds what the program prints.  One that cannot be run or fails half way adds
 * what it got to. */
static void run_program(struct rows *rows, char *const *arguments)
{
    int ends[2];
    pid_t child;
    posix_spawn_file_actions_t actions;
    if (pipe(ends) != 0)
        report_fail("cannot make a pipe: %s", strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    const int error = posix_spawn(&child, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    FILE *output = fdopen(ends[0], "r");
    char line[128];
    while (error == 0 && fgets(line, sizeof(line), output)) {
        add_line(rows, line);
        report_progress("peers: %.*s", (int)strcspn(line, "\n"), line);
    }
    fclose(output);
    if (error == 0)
        waitpid(child, NULL, 0);
}

/* The folder that this program is in, where the peers' programs are built, too. */
static const char *program_folder(void)
{
    static char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (length < 0)
        report_fail("cannot find this program's folder: %s", strerror(errno));
    path[length] = '\0';
    return dirname(path);
}

static void run_peers(const struct request *request, struct rows *rows)
{
    char path[PATH_MAX], first[24], second[24];
    snprintf(first, sizeof(first), "%zu", request->n ? request->n : N_L2);
    snprintf(second, sizeof(second), "%d", N_MEMORY);
    char *const last = request->n ? NULL : second;

    const char *const folder = program_folder();
    snprintf(path, sizeof(path), "%s/fpconv-peer-numkong", folder);
    char *const numkong[] = {path, (char *)(uintptr_t)request->numkong, first, last, NULL};
    run_program(rows, numkong);

    char script[] = FPCONV_BENCH_SOURCES "/peers/python.py";
    char *const python[] = {(char *)(uintptr_t)request->python, script, first, last, NULL};
    run_program(rows, python);

    snprintf(path, sizeof(path), "%s/fpconv-peer-cuda", folder);
    char *const cuda[] = {path, first, NULL};
    run_program(rows, cuda);
}

/* -------------------------------------------------------------------------- */
/* fpconv and memcpy beside them                                              */
/* -------------------------------------------------------------------------- */

struct work {
    fpconv_format dst, src;
    void *from, *to;
    size_t n, wide_bytes;
};

static void run_fpconv(void *context)
{
    const struct work *w = context;
    fpconv_convert(w->dst, w->to, w->src, w->from, w->n, FPCONV_OCP_SAT);
}

static void run_copy(void *context)
{
    const struct work *w = context;
    memcpy(w->to, w->from, w->wide_bytes);
    __asm__ volatile("" : : "r"(w->to) : "memory"); /* the copy counts as read */
}

static void report_row(const struct row *row)
{
    const fpconv_format wide = bench_is_wide(row->src) ? row->src : row->dst;
    struct work work = {
        .dst = row->dst,
        .src = row->src,
        .from = bench_allocate(row->n * sizeof(double)),
        .to = bench_allocate(row->n * sizeof(double)),
        .n = row->n,
        .wide_bytes = row->n * fpconv_format_size(wide),
    };
    struct contender contenders[] = {{.run = run_fpconv, .context = &work},
                                     {.run = run_copy, .context = &work}};
    bench_fill_normal(row->src, work.from, row->n, 1);
    timing_compare(contenders, 2);
    free(work.from);
    free(work.to);

    const double ns = contenders[0].seconds / (double)row->n * 1e9;
    const double memcpy_ns = contenders[1].seconds / (double)row->n * 1e9;
    /* the peer's time is given: the interval is that of fpconv's alone */
    const struct estimate ratio =
        timing_times(timing_quantile(&contenders[0], 0.5), 1e9 / (double)row->n / row->ns);
    report_print("%4s -> %-4s  %9zu  %8.3f  %8.3f  %8.3f  %7.1f  %-4s  %s\n",
                 fpconv_format_name(row->src), fpconv_format_name(row->dst), row->n, memcpy_ns, ns,
                 row->ns, row->ns / ns, report_judge(ratio, 1, 1), row->peer);
    report_record(json_pack("{s:s, s:s, s:s, s:s, s:I, s:f, s:f, s:f}", "section", "peers", "peer",
                            row->peer, "src", fpconv_format_name(row->src), "dst",
                            fpconv_format_name(row->dst), "n", (json_int_t)row->n, "ns", row->ns,
                            "fpconv_ns", ns, "memcpy_ns", memcpy_ns));
}

void bench_peers(const struct request *request)
{
    struct rows rows = {0};
    run_peers(request, &rows);
    report_print(
        "\npeers: ns an element, one thread; fpconv with policy ocp_sat; times: the peer's\n"
        "time over fpconv's; memcpy of the f32 or f64 array\n"
        "%-12s  %9s  %8s  %8s  %8s  %7s\n",
        "pair", "n", "memcpy", "fpconv", "peer", "times");
    for (size_t i = 0; i < rows.count; i++)
        if (bench_wants_pair(request, rows.rows[i].dst, rows.rows[i].src))
            report_row(&rows.rows[i]);
    report_verdicts("peers");
    free(rows.rows);
}
