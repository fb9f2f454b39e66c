/*
 * test_environment.c - the caller's floating-point environment: nothing depends
 * on it, and nothing changes it
 *
 * SPDX-License-Identifier: MIT
 */
#include <fenv.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "../src/internal.h"
#include "stream.h"
#include "support.h"

/* -------------------------------------------------------------------------- */
/* The environment: control and exception flags                               */
/* -------------------------------------------------------------------------- */

/* How the CPU may be told to treat subnormals, beside the default; 0 is it. */
#if defined(__SSE2__)
enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x0040 };
static const unsigned subnormal_modes[] = {0, FLUSH_TO_ZERO, DENORMALS_ARE_ZERO,
                                           FLUSH_TO_ZERO | DENORMALS_ARE_ZERO};
static void add_subnormal_mode(unsigned mode)
{
    _mm_setcsr(_mm_getcsr() | mode);
}
#elif defined(__aarch64__)
static const unsigned subnormal_modes[] = {0, 1u << 24 /* FPCR.FZ */};
static void add_subnormal_mode(unsigned mode)
{
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    fpcr |= mode;
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
}
#else
static const unsigned subnormal_modes[] = {0};
static void add_subnormal_mode(unsigned mode)
{
    (void)mode;
}
#endif

struct environment {
    int rounding;
    int flags;
    uint64_t control; /* of the vector unit, with its flags */
};

static struct environment read_environment(void)
{
    struct environment e = {fegetround(), fetestexcept(FE_ALL_EXCEPT), 0};
#if defined(__SSE2__)
    e.control = _mm_getcsr();
#elif defined(__aarch64__)
    uint64_t fpcr, fpsr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    __asm__ volatile("mrs %0, fpsr" : "=r"(fpsr));
    /* But FPSR.QC, which reports that an integer operation saturated: it has no part
     * in floating point, and the procedure call standard gives it to the callee. */
    e.control = fpcr << 32 | (fpsr & ~(UINT64_C(1) << 27));
#endif
    return e;
}

/* -------------------------------------------------------------------------- */
/* Everything that the library converts                                       */
/* -------------------------------------------------------------------------- */

static struct stream stream;
static uint8_t whole[STREAM_COUNT * 8], in_pieces[STREAM_COUNT * 8], strided[STREAM_COUNT * 16],
    in_place[STREAM_COUNT * 8];
static uint64_t singles[STREAM_COUNT];

/* Nothing else happens in here: this runs in the environment that is tried. */
static void convert_stream_in_all_ways(void)
{
    const size_t d = stream.dst_size, s = stream.src_size;
    (void)fpconv_convert(stream.dst, whole, stream.src, stream.code_bytes, STREAM_COUNT,
                         stream.policy);
    for (size_t done = 0, n = 1; done < STREAM_COUNT; done += n, n = n % 67 + 1) {
        n = n < STREAM_COUNT - done ? n : STREAM_COUNT - done;
        (void)fpconv_convert(stream.dst, in_pieces + done * d, stream.src,
                             stream.code_bytes + done * s, n, stream.policy);
    }
    (void)fpconv_convert_strided(stream.dst, strided, 16, stream.src, stream.code_bytes,
                                 (ptrdiff_t)s, STREAM_COUNT, stream.policy);
    (void)fpconv_convert(stream.dst, in_place, stream.src, in_place, STREAM_COUNT, stream.policy);
    if (has_scalar(stream.dst, stream.src))
        for (size_t i = 0; i < STREAM_COUNT; i++)
            singles[i] = scalar_convert(stream.dst, stream.src, stream.codes[i], stream.policy);
}

static void check_results(const char *where)
{
    for (size_t i = 0; i < STREAM_COUNT; i++) {
        const size_t d = stream.dst_size;
        const uint64_t got[] = {load_code(whole + i * d, d), load_code(in_pieces + i * d, d),
                                load_code(strided + i * 16, d), load_code(in_place + i * d, d),
                                singles[i]};
        for (size_t k = 0; k < ARRAY_COUNT(got) - !has_scalar(stream.dst, stream.src); k++)
            if (got[k] != stream.wants[i]) {
                print_error("%s, way %zu:\n", where, k);
                check_code(stream.dst, stream.src, stream.codes[i], stream.policy, got[k],
                           stream.wants[i]);
            }
    }
}

/* What is done in each environment, and what is to come of it. */
struct work {
    void (*convert)(void);
    void (*check_results)(const char *where);
};

static const struct work all_ways = {convert_stream_in_all_ways, check_results};

static void run_in(int rounding, unsigned subnormal_mode, int raised, const struct work *work)
{
    fenv_t caller;
    char where[100];
    memset(whole, 0, sizeof(whole));
    memset(in_pieces, 0, sizeof(in_pieces));
    memset(strided, 0, sizeof(strided));
    memcpy(in_place, stream.code_bytes, sizeof(in_place));

    assert_int_equal(fegetenv(&caller), 0);
    assert_int_equal(fesetround(rounding), 0);
    add_subnormal_mode(subnormal_mode);
    feclearexcept(FE_ALL_EXCEPT);
    if (raised)
        feraiseexcept(raised);
    const struct environment before = read_environment();
    work->convert();
    const struct environment after = read_environment();
    assert_int_equal(fesetenv(&caller), 0);

    snprintf(where, sizeof(where), "rounding 0x%x, subnormal mode 0x%x, flags 0x%x",
             (unsigned)rounding, subnormal_mode, (unsigned)raised);
    work->check_results(where);
    if (memcmp(&before, &after, sizeof(before)) != 0)
        fail_msg("%s to %s, %s, %s: rounding 0x%x -> 0x%x, flags 0x%x -> 0x%x, "
                 "control 0x%llx -> 0x%llx",
                 fpconv_format_name(stream.src), fpconv_format_name(stream.dst),
                 fpconv_policy_name(stream.policy), where, (unsigned)before.rounding,
                 (unsigned)after.rounding, (unsigned)before.flags, (unsigned)after.flags,
                 (unsigned long long)before.control, (unsigned long long)after.control);
}

static const int roundings[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};

static void run_in_each_environment(int raised, const struct work *work)
{
    for (size_t r = 0; r < ARRAY_COUNT(roundings); r++)
        for (size_t m = 0; m < ARRAY_COUNT(subnormal_modes); m++)
            run_in(roundings[r], subnormal_modes[m], raised, work);
}

static void for_each_environment(int raised)
{
    FOR_EACH_FORMAT (dst)
        FOR_EACH_FORMAT (src)
            FOR_EACH_POLICY (policy) {
                fill_stream(&stream, dst, src, policy);
                run_in_each_environment(raised, &all_ways);
            }
}

static void no_mode_matters_and_no_flag_is_raised(void **state)
{
    (void)state;
    for_each_environment(0);
}

static void flags_that_were_raised_stay_so(void **state)
{
    (void)state;
    for_each_environment(FE_ALL_EXCEPT);
}

/* What only the HDF5 plugin asks for, against the same in the default environment, which is
 * right by test_lost_carry. */
static fpconv_policy losing;
static uint8_t want_lost[sizeof(whole)], want_normal[sizeof(in_pieces)];
static size_t normal, want_normal_count;

static void convert_losing_carries(void)
{
    fp_convert(stream.dst, whole, (ptrdiff_t)stream.dst_size, stream.src, stream.code_bytes,
               (ptrdiff_t)stream.src_size, STREAM_COUNT, losing);
    normal = 0;
    /* from each thirtieth on, for it may stop at once */
    for (size_t i = 0; i < STREAM_COUNT; i += 30)
        normal +=
            fp_convert_while_normal(stream.dst, in_pieces + i * stream.dst_size, stream.src,
                                    stream.code_bytes + i * stream.src_size, STREAM_COUNT - i);
}

static void check_losing_carries(const char *where)
{
    if (memcmp(whole, want_lost, sizeof(whole)) != 0 ||
        memcmp(in_pieces, want_normal, sizeof(in_pieces)) != 0 || normal != want_normal_count)
        fail_msg("%s to %s, policy %d: other results at %s", fpconv_format_name(stream.src),
                 fpconv_format_name(stream.dst), (int)losing, where);
}

static bool loses_carries(fpconv_format dst, fpconv_format src)
{
    return !is_wide(dst) && dst != FPCONV_HIF8 && src != FPCONV_HIF8 && dst != src &&
           fpconv_format_size(dst) <= fpconv_format_size(src);
}

static void rules_that_lose_carries(void **state)
{
    static const struct work work = {convert_losing_carries, check_losing_carries};
    (void)state;
    FOR_EACH_FORMAT (dst)
        FOR_EACH_FORMAT (src)
            for (losing = FPCONV_HDF5_CARRY_LOST; losing <= FPCONV_HDF5_SUBNORMAL_CARRY_LOST;
                 losing++) {
                if (!loses_carries(dst, src))
                    continue;
                fill_stream(&stream, dst, src, FPCONV_HDF5);
                memset(whole, 0, sizeof(whole));
                memset(in_pieces, 0, sizeof(in_pieces));
                convert_losing_carries();
                memcpy(want_lost, whole, sizeof(whole));
                memcpy(want_normal, in_pieces, sizeof(in_pieces));
                want_normal_count = normal;
                run_in_each_environment(0, &work);
                run_in_each_environment(FE_ALL_EXCEPT, &work);
            }
}

#if defined(__SSE2__)
/* Every exception unmasked, that of subnormal operands too: one of them ends the
 * test with SIGFPE. */
static void nothing_traps(void **state)
{
    (void)state;
    const unsigned caller = _mm_getcsr();
    FOR_EACH_FORMAT (dst)
        FOR_EACH_FORMAT (src)
            FOR_EACH_POLICY (policy) {
                fill_stream(&stream, dst, src, policy);
                memcpy(in_place, stream.code_bytes, sizeof(in_place));
                _mm_setcsr(0);
                convert_stream_in_all_ways();
                const unsigned after = _mm_getcsr();
                _mm_setcsr(caller);
                assert_int_equal(after, 0);
                check_results("all exceptions unmasked");
            }
}
#endif

int main(void)
{
    if (!announce_run())
        return EXIT_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_mode_matters_and_no_flag_is_raised),
        cmocka_unit_test(flags_that_were_raised_stay_so),
        cmocka_unit_test(rules_that_lose_carries),
#if defined(__SSE2__)
        cmocka_unit_test(nothing_traps),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
