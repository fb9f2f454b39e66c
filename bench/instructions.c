/*
 * instructions.c - machine instructions an element, counted one by one
 *
 * SPDX-License-Identifier: MIT
 *
 * A child converts while this process steps it from instruction to instruction.
 * Slow, exact, and possible where neither performance counters nor a simulator
 * that knows the CPU's vector instructions are.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

/* The count for this many elements is taken from that for twice as many, which
 * leaves what a call costs out. */
enum { N = 4096 };

struct conversion {
    fpconv_format dst, src;
    fpconv_policy policy;
    size_t n;
    void *to;
    const void *from;
};

static void convert(const struct conversion *c)
{
    fpconv_convert(c->dst, c->to, c->src, c->from, c->n, c->policy);
}

/* The child: stops before and after the conversion. */
static void __attribute__((noreturn)) run_child(const struct conversion *c)
{
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    convert(c); /* resolves symbols and chooses the kernel */
    raise(SIGSTOP);
    convert(c);
    raise(SIGSTOP);
    _exit(EXIT_SUCCESS);
}

static bool wait_for_stop(pid_t child, int *signal)
{
    int status;
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
        return false;
    *signal = WSTOPSIG(status);
    return true;
}

/* Instructions between the child's two stops; 0 if it cannot be traced. */
static unsigned long count_instructions(const struct conversion *c)
{
    int signal = 0;
    unsigned long count = 0;
    const pid_t child = fork();
    if (child == 0)
        run_child(c);
    if (child > 0 && wait_for_stop(child, &signal) && signal == SIGSTOP)
        while (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) == 0 && wait_for_stop(child, &signal) &&
               signal == SIGTRAP)
            count++;
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    return signal == SIGSTOP ? count : 0;
}

static double instructions_each(struct conversion *c)
{
    c->n = N;
    const unsigned long once = count_instructions(c);
    c->n = 2 * N;
    const unsigned long twice = count_instructions(c);
    if (once == 0 || twice == 0)
        report_fail("cannot count instructions: ptrace: %s", strerror(errno));
    return (double)(twice - once) / (double)N;
}

static void run_pair(const struct request *request, fpconv_format dst, fpconv_format src)
{
    _Alignas(64) static char from[2 * N * sizeof(double)], to[2 * N * sizeof(double)];
    if (!bench_wants_pair(request, dst, src))
        return;
    report_print("%4s -> %-4s", fpconv_format_name(src), fpconv_format_name(dst));
    bench_fill_normal(src, from, 2 * N, 1);
    for (int policy = 0; policy < FPCONV_POLICY_COUNT; policy++) {
        if (!bench_wants_policy(request, (fpconv_policy)policy))
            continue;
        struct conversion conversion = {
            .dst = dst, .src = src, .policy = (fpconv_policy)policy, .to = to, .from = from};
        const double each = instructions_each(&conversion);
        report_print("  %8.2f", each);
        report_record(json_pack("{s:s, s:s, s:s, s:s, s:s, s:f}", "section", "instructions", "src",
                                fpconv_format_name(src), "dst", fpconv_format_name(dst), "policy",
                                fpconv_policy_name(conversion.policy), "cpu", fpconv_cpu_name(),
                                "instructions", each));
    }
    report_print("\n");
}

void bench_instructions(const struct request *request)
{
    report_print("\ninstructions: machine instructions an element, %s kernels, normal values\n"
                 "%-12s",
                 fpconv_cpu_name(), "pair");
    for (int policy = 0; policy < FPCONV_POLICY_COUNT; policy++)
        if (bench_wants_policy(request, (fpconv_policy)policy))
            report_print("  %8s", fpconv_policy_name((fpconv_policy)policy));
    report_print("\n");
    const fpconv_format wide_formats[] = {FPCONV_F32, FPCONV_F64};
    for (size_t w = 0; w < 2; w++)
        for (int narrowing = 1; narrowing >= 0; narrowing--)
            for (int format = 0; format < FPCONV_FORMAT_COUNT; format++) {
                const fpconv_format wide = wide_formats[w], narrow = (fpconv_format)format;
                if (!bench_is_wide(narrow))
                    run_pair(request, narrowing ? narrow : wide, narrowing ? wide : narrow);
            }
}
