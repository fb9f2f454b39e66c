/*
 * report.c - tables for a person, records for a program
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

static bool progress_is_shown;
static json_t *records;
static FILE *json_file;
static const char *json_path;
static const char *unfinished_path;

static struct {
    unsigned lines, over, unresolved, aim;
    bool has_aim;
} verdicts;

static void erase_progress(void)
{
    if (progress_is_shown)
        fputs("\r\033[K", stderr);
    progress_is_shown = false;
}

void report_progress(const char *format, ...)
{
    if (!isatty(STDERR_FILENO))
        return;
    erase_progress();
    va_list arguments;
    va_start(arguments, format);
    fputs("... ", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    progress_is_shown = true;
}

void report_print(const char *format, ...)
{
    erase_progress();
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    fflush(stdout);
}

void report_fail(const char *format, ...)
{
    erase_progress();
    fflush(stdout);
    va_list arguments;
    va_start(arguments, format);
    fputs("fpconv-bench: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    if (unfinished_path)
        unlink(unfinished_path);
    /* not exit(): HDF5 would try once more to write what could not be written,
     * and say so at length */
    _exit(EXIT_FAILURE);
}

void report_record(json_t *record)
{
    if (!records)
        records = json_array();
    if (json_array_append_new(records, record) != 0)
        report_fail("not enough memory for the records");
}

void report_open_json(const char *path)
{
    json_file = fopen(path, "w");
    if (!json_file)
        report_fail("%s: cannot write: %s", path, strerror(errno));
    json_path = path;
}

void report_close_json(void)
{
    if (!json_file)
        return;
    json_t *all = records ? records : json_array();
    const bool dumped =
        json_dumpf(all, json_file, JSON_REAL_PRECISION(6)) == 0 && fputc('\n', json_file) != EOF;
    if (fclose(json_file) != 0 || !dumped)
        report_fail("%s: cannot write: %s", json_path, strerror(errno));
    json_decref(all);
    json_file = NULL;
    records = NULL;
}

void report_remove_on_failure(const char *path)
{
    unfinished_path = path;
}

static double to_hundredths(double ratio)
{
    return round(100 * ratio) / 100;
}

const char *report_judge(struct estimate measured, double must, double aim)
{
    const double low = to_hundredths(measured.low), high = to_hundredths(measured.high);
    const bool is_over = low > must, is_unresolved = !is_over && high > must;
    verdicts.lines++;
    verdicts.over += is_over;
    verdicts.unresolved += is_unresolved;
    verdicts.aim += high <= aim;
    verdicts.has_aim |= aim < must;
    if (is_over)
        return "OVER";
    if (is_unresolved)
        return "unresolved";
    return high > aim ? "must" : aim < must ? "aim" : "ok";
}

const char *report_estimate(struct estimate estimate)
{
    static char text[64];
    snprintf(text, sizeof(text), "%6.3f [%.3f %.3f]", estimate.value, estimate.low, estimate.high);
    return text;
}

void report_add_ratio(json_t *record, struct estimate ratio)
{
    json_object_set_new(record, "ratio", json_real(ratio.value));
    json_object_set_new(record, "ratio_low", json_real(ratio.low));
    json_object_set_new(record, "ratio_high", json_real(ratio.high));
}

void report_verdicts(const char *section)
{
    report_print("%s: %u lines, %u over the limit", section, verdicts.lines, verdicts.over);
    if (verdicts.unresolved)
        report_print(", %u unresolved", verdicts.unresolved);
    if (verdicts.has_aim)
        report_print(", %u within the aim", verdicts.aim);
    const struct timing_range core = timing_core();
    if (core.most > 0)
        report_print("; the core had %.1f to %.1f additions a cycle", core.least, core.most);
    report_print("\n");
    memset(&verdicts, 0, sizeof(verdicts));
}
