/*
 * test_h5_exceptions.c - H5Pset_type_conv_cb, compared call by call with HDF5's
 *
 * SPDX-License-Identifier: MIT
 *
 * A handler writes down what it is asked and answers by a plan.  The same
 * elements go through the converter and through the library's own general loop
 * (for float16 of 1.14 and later, through the compiler conversion that was
 * registered before): the same calls, results and state of the buffer.
 */
#include <stdlib.h>

#include "h5_support.h"

enum { N = 256, CALLS_MAX = 4 * N };

struct call {
    H5T_conv_except_t exception;
    uint8_t source[8]; /* as the handler sees it, in the source's byte order */
    H5T_class_t src_class, dst_class;
    size_t src_size, dst_size;
    H5T_order_t src_order, dst_order;
};

/* What the handler answers. */
enum plan { NEVER_HANDLE, ALWAYS_HANDLE, HANDLE_SOME, ABORT_AT_THIRD, PLANS };

struct log {
    enum plan plan;
    unsigned n;
    struct call calls[CALLS_MAX];
};

static H5T_conv_ret_t handler(H5T_conv_except_t exception, hid_t src, hid_t dst, void *src_buf,
                              void *dst_buf, void *data)
{
    struct log *log = data;
    if (log->n == CALLS_MAX)
        return H5T_CONV_ABORT;
    struct call *call = &log->calls[log->n++];
    memset(call, 0, sizeof(*call));
    call->exception = exception;
    call->src_class = H5Tget_class(src);
    call->dst_class = H5Tget_class(dst);
    call->src_size = H5Tget_size(src);
    call->dst_size = H5Tget_size(dst);
    call->src_order = H5Tget_order(src);
    call->dst_order = H5Tget_order(dst);
    memcpy(call->source, src_buf, call->src_size);
    if (log->plan == ABORT_AT_THIRD)
        return log->n == 3 ? H5T_CONV_ABORT : H5T_CONV_UNHANDLED;
    if (log->plan == NEVER_HANDLE || (log->plan == HANDLE_SOME && log->n % 3 != 0))
        return H5T_CONV_UNHANDLED;
    memset(dst_buf, 0x20 + (int)log->n % 16, call->dst_size);
    return H5T_CONV_HANDLED;
}

/* Converts with the handler; what came of it. */
struct outcome {
    herr_t status;
    struct log log;
    uint8_t buf[N * 8];
};

static void convert_with_handler(struct outcome *outcome, enum plan plan, hid_t dst_type,
                                 hid_t src_type, struct side src, const uint64_t *codes)
{
    memset(outcome, 0, sizeof(*outcome));
    outcome->log.plan = plan;
    const hid_t list = H5Pcreate(H5P_DATASET_XFER);
    assert_true(H5Pset_type_conv_cb(list, handler, &outcome->log) >= 0);
    for (size_t i = 0; i < N; i++)
        store_element(outcome->buf + i * element_size(src), src, codes[i]);
    H5E_BEGIN_TRY
    {
        outcome->status = H5Tconvert(src_type, dst_type, N, outcome->buf, NULL, list);
    }
    H5E_END_TRY
    H5Pclose(list);
}

static void check_same_calls(const struct log *got, const struct log *want, const char *pair)
{
    for (unsigned i = 0; i < got->n && i < want->n; i++)
        if (memcmp(&got->calls[i], &want->calls[i], sizeof(got->calls[i])) != 0)
            fail_msg("%s: call %u is exception %d, not %d, or has another source", pair, i,
                     (int)got->calls[i].exception, (int)want->calls[i].exception);
    if (got->n != want->n)
        fail_msg("%s: %u calls, not %u", pair, got->n, want->n);
}

static struct stream stream;
static unsigned calls_seen[H5T_CONV_EXCEPT_NAN + 1];

static void check_outcome(const struct outcome *got, const struct outcome *want, struct side dst,
                          struct side src)
{
    char pair[64], src_name[16], dst_name[16];
    snprintf(pair, sizeof(pair), "%s to %s, plan %d", side_name(src, src_name),
             side_name(dst, dst_name), (int)want->log.plan);
    check_same_calls(&got->log, &want->log, pair);
    assert_int_equal(got->status < 0, want->status < 0);
    assert_int_equal(got->status < 0, want->log.plan == ABORT_AT_THIRD && want->log.n >= 3);
    for (unsigned i = 0; i < want->log.n; i++)
        calls_seen[want->log.calls[i].exception]++;
}

/* FPCONV_H5_IDENTICAL: the buffer too is the loop's, byte for byte. */
static void check_pair(hid_t dst_type, struct side dst, hid_t src_type, struct side src)
{
    static struct outcome got, want;
    char name[16];
    const hid_t loop_type = make_loop_type(dst);
    for (enum plan plan = 0; plan < PLANS; plan++)
        for (size_t at = 0; at + N <= STREAM_COUNT; at += 1040) {
            convert_with_handler(&got, plan, dst_type, src_type, src, stream.codes + at);
            convert_with_handler(&want, plan, loop_type, src_type, src, stream.codes + at);
            check_outcome(&got, &want, dst, src);
            /* after an abort, the elements before it are converted; the loop has
             * changed the byte order of the one that it was at */
            if (want.status >= 0)
                for (size_t i = 0; i < N * element_size(dst); i++)
                    if (got.buf[i] != want.buf[i])
                        fail_msg("to %s, plan %d: byte %zu is %02x, not %02x", side_name(dst, name),
                                 (int)plan, i, got.buf[i], want.buf[i]);
        }
    H5Tclose(loop_type);
}

static void every_pair_call_by_call(void **state)
{
    (void)state;
    assert_int_equal(fpconv_h5_register_profile(FPCONV_H5_IDENTICAL, NULL), 0);
    assert_true(for_each_pair(is_loop_pair, &stream, FPCONV_HDF5, check_pair) > 0);
    assert_true(calls_seen[H5T_CONV_EXCEPT_RANGE_HI] > 0);
    assert_true(calls_seen[H5T_CONV_EXCEPT_PINF] > 0);
    assert_true(calls_seen[H5T_CONV_EXCEPT_NINF] > 0);
    assert_true(calls_seen[H5T_CONV_EXCEPT_NAN] > 0);
    print_message("calls compared: RANGE_HI %u, RANGE_LOW %u, PINF %u, NINF %u, NAN %u\n",
                  calls_seen[H5T_CONV_EXCEPT_RANGE_HI], calls_seen[H5T_CONV_EXCEPT_RANGE_LOW],
                  calls_seen[H5T_CONV_EXCEPT_PINF], calls_seen[H5T_CONV_EXCEPT_NINF],
                  calls_seen[H5T_CONV_EXCEPT_NAN]);
}

/* -------------------------------------------------------------------------- */
/* float16 where the library has a compiler conversion                        */
/* -------------------------------------------------------------------------- */

static struct outcome native_before[SIDES][SIDES][PLANS];

static void note_native_outcome(hid_t dst_type, struct side dst, hid_t src_type, struct side src)
{
    for (enum plan plan = 0; plan < PLANS; plan++)
        convert_with_handler(&native_before[index_of(dst)][index_of(src)][plan], plan, dst_type,
                             src_type, src, stream.codes + 200);
}

static void check_native_outcome(hid_t dst_type, struct side dst, hid_t src_type, struct side src)
{
    static struct outcome got;
    for (enum plan plan = 0; plan < PLANS; plan++) {
        const struct outcome *want = &native_before[index_of(dst)][index_of(src)][plan];
        convert_with_handler(&got, plan, dst_type, src_type, src, stream.codes + 200);
        check_outcome(&got, want, dst, src);
        if (want->status >= 0)
            assert_memory_equal(got.buf, want->buf, N * element_size(dst));
    }
}

static void note_native_outcomes(void)
{
    for_each_pair(is_native_pair, &stream, FPCONV_HDF5, note_native_outcome);
}

static void native_pairs_call_by_call(void **state)
{
    (void)state;
    assert_int_equal(fpconv_h5_register_profile(FPCONV_H5_IDENTICAL, NULL), 0);
    print_message("%u pairs with a compiler conversion\n",
                  for_each_pair(is_native_pair, &stream, FPCONV_HDF5, check_native_outcome));
}

/* -------------------------------------------------------------------------- */
/* Policies, files, compounds                                                 */
/* -------------------------------------------------------------------------- */

/* Under FPCONV_OCP a number overflows where OCP says. */
static void ocp_overflows_where_ocp_does(void **state)
{
    (void)state;
    static struct outcome got;
    static const struct {
        fpconv_format format;
        float largest;  /* that is not an overflow */
        float smallest; /* that is one */
    } cases[] = {{FPCONV_E4M3, 464.0f, 0x1.d00002p8f}, {FPCONV_E5M2, 0x1.dffffep15f, 61440.0f},
                 {FPCONV_E2M1, 0x1.bffffep2f, 7.0f},   {FPCONV_E3M2, 0x1.dffffep4f, 30.0f},
                 {FPCONV_E2M3, 0x1.effffep2f, 7.75f},  {FPCONV_BF16, 0x1.fefffep127f, 0x1.ffp127f}};
    assert_int_equal(fpconv_h5_register_profile(FPCONV_H5_OCP, NULL), 0);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        uint64_t codes[N] = {0};
        const float values[] = {cases[i].largest, -cases[i].largest, cases[i].smallest,
                                -cases[i].smallest};
        for (size_t j = 0; j < 4; j++)
            codes[j] = load_code(&values[j], 4);
        convert_with_handler(&got, NEVER_HANDLE, fpconv_h5_type(cases[i].format), H5T_NATIVE_FLOAT,
                             (struct side){FPCONV_F32, H5Tget_order(H5T_NATIVE_FLOAT)}, codes);
        assert_int_equal(got.log.n, 2);
        for (unsigned j = 0; j < 2; j++) {
            assert_int_equal(got.log.calls[j].exception, H5T_CONV_EXCEPT_RANGE_HI);
            assert_memory_equal(got.log.calls[j].source, &values[2 + j], 4);
        }
    }
}

/* Through a file, chunked; the handler puts 1 where there was no number. */
static H5T_conv_ret_t replace_nan(H5T_conv_except_t exception, hid_t src, hid_t dst, void *src_buf,
                                  void *dst_buf, void *data)
{
    (void)src, (void)dst, (void)src_buf;
    ++*(unsigned *)data;
    if (exception != H5T_CONV_EXCEPT_NAN)
        return H5T_CONV_UNHANDLED;
    *(uint8_t *)dst_buf = 0x38; /* 1 in e4m3 */
    return H5T_CONV_HANDLED;
}

static void datasets(void **state)
{
    (void)state;
    enum { COUNT = 300000 }; /* more than HDF5's buffer of 1 MiB takes */
    const hsize_t n = COUNT, chunk = 4096;
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = H5Pcreate(H5P_DATASET_CREATE);
    const hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
    assert_true(H5Pset_fapl_core(access, 1 << 20, 0) >= 0);
    assert_true(H5Pset_chunk(create, 1, &chunk) >= 0);
    unsigned calls = 0;
    assert_true(H5Pset_type_conv_cb(transfer, replace_nan, &calls) >= 0);
    assert_int_equal(fpconv_h5_register(), 0);

    float *values = calloc(COUNT, sizeof(float));
    uint8_t *codes = malloc(COUNT);
    assert_true(values && codes);
    const uint32_t nan = 0x7fc00000;
    for (size_t i = 0; i < COUNT; i += 1000)
        memcpy(&values[i], &nan, sizeof(nan));
    const hid_t file = H5Fcreate("exceptions.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    const hid_t space = H5Screate_simple(1, &n, NULL), type = fpconv_h5_type(FPCONV_E4M3);
    const hid_t set = H5Dcreate2(file, "x", type, space, H5P_DEFAULT, create, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, transfer, values) >= 0);
    assert_true(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, codes) >= 0);
    assert_int_equal(calls, COUNT / 1000);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(codes[i], i % 1000 ? 0 : 0x38);
    free(values);
    free(codes);
    H5Dclose(set);
    H5Sclose(space);
    H5Fclose(file);
    H5Pclose(transfer);
    H5Pclose(create);
    H5Pclose(access);
}

static herr_t count_printed(hid_t stack, void *data)
{
    (void)stack;
    ++*(unsigned *)data;
    return 0;
}

/*
 * In members of compounds and elements of arrays 1.10 passes the transfer list;
 * later versions do not, and there the handler is not called.  Neither prints an
 * error or fails.
 */
static void compounds_and_arrays(void **state)
{
    (void)state;
    unsigned version[3], calls = 0, printed = 0;
    H5get_libversion(&version[0], &version[1], &version[2]);
    const bool has_list = version[0] == 1 && version[1] < 14;
    assert_int_equal(fpconv_h5_register(), 0);
    const hid_t transfer = H5Pcreate(H5P_DATASET_XFER), type = fpconv_h5_type(FPCONV_E4M3);
    assert_true(H5Pset_type_conv_cb(transfer, replace_nan, &calls) >= 0);
    H5E_auto2_t printer;
    void *printer_data;
    assert_true(H5Eget_auto2(H5E_DEFAULT, &printer, &printer_data) >= 0);
    assert_true(H5Eset_auto2(H5E_DEFAULT, count_printed, &printed) >= 0);

    const uint32_t nan = 0x7fc00000;
    const hsize_t two = 2;
    uint32_t buf[4] = {nan, 0x3f800000, nan, nan}, background[4];
    const uint8_t *codes = (const uint8_t *)buf;
    const hid_t wide_array = H5Tarray_create2(H5T_NATIVE_FLOAT, 1, &two);
    const hid_t low_array = H5Tarray_create2(type, 1, &two);
    assert_true(H5Tconvert(wide_array, low_array, 2, buf, NULL, transfer) >= 0);
    assert_int_equal(calls, has_list ? 3 : 0);
    const uint8_t handled[] = {0x38, 0x38, 0x38, 0x38}, unhandled[] = {0x7f, 0x38, 0x7f, 0x7f};
    assert_memory_equal(codes, has_list ? handled : unhandled, 4);

    const hid_t wide = H5Tcreate(H5T_COMPOUND, 8), low = H5Tcreate(H5T_COMPOUND, 5);
    assert_true(H5Tinsert(wide, "a", 0, H5T_NATIVE_FLOAT) >= 0);
    assert_true(H5Tinsert(wide, "b", 4, H5T_NATIVE_INT) >= 0);
    assert_true(H5Tinsert(low, "a", 0, type) >= 0);
    assert_true(H5Tinsert(low, "b", 1, H5T_NATIVE_INT) >= 0);
    buf[0] = buf[2] = nan;
    calls = 0;
    assert_true(H5Tconvert(wide, low, 2, buf, background, transfer) >= 0);
    assert_int_equal(calls, has_list ? 2 : 0);
    assert_int_equal(codes[0], has_list ? 0x38 : 0x7f);
    assert_int_equal(codes[5], has_list ? 0x38 : 0x7f);
    assert_int_equal(printed, 0);

    assert_true(H5Eset_auto2(H5E_DEFAULT, printer, printer_data) >= 0);
    H5Tclose(wide);
    H5Tclose(low);
    H5Tclose(wide_array);
    H5Tclose(low_array);
    H5Pclose(transfer);
}

int main(void)
{
    note_native_pairs();
    note_native_outcomes();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_call_by_call),
        cmocka_unit_test(native_pairs_call_by_call),
        cmocka_unit_test(ocp_overflows_where_ocp_does),
        cmocka_unit_test_teardown(datasets, check_nothing_open),
        cmocka_unit_test(compounds_and_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
