/*
 * test_h5_lifetime.c - registering, unregistering, closing, in every order
 *
 * SPDX-License-Identifier: MIT
 *
 * One value tells who converts: 0.75 to e2m1 is 1 (code 2), and 0.5 (code 1)
 * where the library loses the carry; 4 to e2m1 is Inf (code 6) under the HDF5
 * policy and 4 (code 6) under OCP, 6 is Inf (6) and 6 (7).
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "h5_support.h"

static const char *plugin_path; /* of the shared library, for a second copy */

enum converter { LIBRARY, REPAIRED, OCP, UNKNOWN };

static enum converter who_gave(uint8_t small, uint8_t large)
{
    if (large == 7)
        return small == 2 ? OCP : UNKNOWN;
    return large != 6 ? UNKNOWN : small == 2 ? REPAIRED : small == 1 ? LIBRARY : UNKNOWN;
}

static hid_t e2m1_type(void)
{
    return make_type((struct side){FPCONV_E2M1, H5T_ORDER_LE});
}

static enum converter who_converts(void)
{
    float buf[2] = {0.75f, 6.0f};
    const uint8_t *codes = (const uint8_t *)buf;
    const hid_t type = e2m1_type();
    assert_true(H5Tconvert(H5T_NATIVE_FLOAT, type, 2, buf, NULL, H5P_DEFAULT) >= 0);
    H5Tclose(type);
    return who_gave(codes[0], codes[1]);
}

static enum converter who_converts_arrays(hsize_t length)
{
    float buf[64] = {0};
    const uint8_t *codes = (const uint8_t *)buf;
    const hid_t type = e2m1_type();
    const hid_t low = H5Tarray_create2(type, 1, &length);
    const hid_t wide = H5Tarray_create2(H5T_NATIVE_FLOAT, 1, &length);
    buf[0] = 0.75f;
    buf[length - 1] = 6.0f;
    assert_true(H5Tconvert(wide, low, 1, buf, NULL, H5P_DEFAULT) >= 0);
    H5Tclose(type);
    H5Tclose(low);
    H5Tclose(wide);
    return who_gave(codes[0], codes[length - 1]);
}

/* Two pairs far apart in the plugin's table, in one call of HDF5's: a tie to bf16 goes
 * away from zero but under OCP. */
static enum converter who_converts_compounds(void)
{
    struct record {
        float a;
        int32_t i;
        float b, tie;
    } buf = {0.75f, 17, 6.0f, 1 + 0x1p-8f};
    struct low {
        uint8_t a, b;
        uint16_t tie;
        int32_t i;
    } result;
    const hid_t type = e2m1_type(), bf16 = native_type(FPCONV_BF16);
    const hid_t wide = H5Tcreate(H5T_COMPOUND, sizeof(struct record));
    const hid_t low = H5Tcreate(H5T_COMPOUND, sizeof(struct low));
    H5Tinsert(wide, "a", HOFFSET(struct record, a), H5T_NATIVE_FLOAT);
    H5Tinsert(wide, "i", HOFFSET(struct record, i), H5T_NATIVE_INT32);
    H5Tinsert(wide, "b", HOFFSET(struct record, b), H5T_NATIVE_FLOAT);
    H5Tinsert(wide, "tie", HOFFSET(struct record, tie), H5T_NATIVE_FLOAT);
    H5Tinsert(low, "a", HOFFSET(struct low, a), type);
    H5Tinsert(low, "i", HOFFSET(struct low, i), H5T_NATIVE_INT32);
    H5Tinsert(low, "b", HOFFSET(struct low, b), type);
    H5Tinsert(low, "tie", HOFFSET(struct low, tie), bf16);
    uint8_t background[sizeof(buf)] = {0};
    assert_true(H5Tconvert(wide, low, 1, &buf, background, H5P_DEFAULT) >= 0);
    H5Tclose(type);
    H5Tclose(bf16);
    H5Tclose(wide);
    H5Tclose(low);
    memcpy(&result, &buf, sizeof(result));
    assert_int_equal(result.i, 17);
    const enum converter who = who_gave(result.a, result.b);
    return result.tie == (who == OCP ? 0x3f80 : 0x3f81) ? who : UNKNOWN;
}

/* fpconv_h5_write, which needs no registration. */
static enum converter who_writes_outside(void)
{
    const float values[2] = {0.75f, 6.0f};
    uint8_t codes[2];
    const hsize_t n = 2;
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    assert_true(H5Pset_fapl_core(access, 1 << 16, 0) >= 0);
    const hid_t file = H5Fcreate("fpconv-outside.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    const hid_t space = H5Screate_simple(1, &n, NULL), type = e2m1_type();
    const hid_t set = H5Dcreate2(file, "x", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_int_equal(fpconv_h5_write(set, FPCONV_F32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
    assert_true(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, codes) >= 0);
    H5Dclose(set);
    H5Tclose(type);
    H5Sclose(space);
    H5Fclose(file);
    H5Pclose(access);
    return who_gave(codes[0], codes[1]);
}

static void check_all(enum converter converter)
{
    assert_int_equal(who_converts(), converter);
    assert_int_equal(who_converts_arrays(4), converter);
    assert_int_equal(who_converts_arrays(61), converter);
    assert_int_equal(who_converts_compounds(), converter);
}

/* -------------------------------------------------------------------------- */

static void register_and_unregister_twice(void **state)
{
    (void)state;
    check_all(LIBRARY);
    assert_int_equal(fpconv_h5_unregister(), 0); /* of nothing */
    check_all(LIBRARY);
    assert_int_equal(fpconv_h5_register(), 0);
    assert_int_equal(fpconv_h5_register(), 0);
    check_all(REPAIRED);
    assert_int_equal(fpconv_h5_unregister(), 0);
    check_all(LIBRARY);
    assert_int_equal(fpconv_h5_unregister(), 0);
    check_all(LIBRARY);
}

static void profiles_replace_each_other(void **state)
{
    (void)state;
    static const struct {
        fpconv_h5_profile profile;
        enum converter converter;
    } steps[] = {{FPCONV_H5_OCP, OCP},           {FPCONV_H5_REPAIRED, REPAIRED},
                 {FPCONV_H5_IDENTICAL, LIBRARY}, {FPCONV_H5_OCP_SAT, OCP},
                 {FPCONV_H5_IDENTICAL, LIBRARY}, {FPCONV_H5_REPAIRED, REPAIRED}};
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        assert_int_equal(fpconv_h5_register_profile(steps[i].profile, NULL), 0);
        check_all(steps[i].converter);
    }
    assert_int_equal(fpconv_h5_unregister(), 0);
    check_all(LIBRARY);
}

/* IDENTICAL has no pair with hif8; the profiles around it do. */
static void pairs_that_a_profile_leaves_are_given_back(void **state)
{
    (void)state;
    const hid_t hif8 = native_type(FPCONV_HIF8);
    H5T_cdata_t *cdata;
    H5T_conv_t found;
    for (int round = 0; round < 3; round++) {
        assert_int_equal(fpconv_h5_register_profile(FPCONV_H5_OCP, NULL), 0);
        assert_true(H5Tfind(H5T_NATIVE_FLOAT, hif8, &cdata) != NULL);
        assert_int_equal(fpconv_h5_register_profile(FPCONV_H5_IDENTICAL, NULL), 0);
        H5E_BEGIN_TRY
        {
            found = H5Tfind(H5T_NATIVE_FLOAT, hif8, &cdata);
        }
        H5E_END_TRY
        assert_true(found == NULL);
    }
    H5Tclose(hif8);
    assert_int_equal(fpconv_h5_unregister(), 0);
}

static void close_and_reopen(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        assert_int_equal(fpconv_h5_register(), 0);
        check_all(REPAIRED);
        const hid_t before = fpconv_h5_type(FPCONV_HIF8);
        assert_true(H5Iis_valid(before) > 0);
        assert_true(H5close() >= 0);
        /* HDF5 counts identifiers from the start again: one of ours is now a user's. */
        const H5T_class_t class = round == 2 ? H5T_OPAQUE : H5T_INTEGER;
        const size_t count = round == 2 ? 1000 : 100; /* past the ones made in round 1 */
        hid_t mine[1000];
        for (size_t i = 0; i < count; i++)
            mine[i] = class == H5T_OPAQUE ? H5Tcreate(H5T_OPAQUE, 1) : H5Tcopy(H5T_NATIVE_INT);
        check_all(LIBRARY);
        const hid_t type = fpconv_h5_type(FPCONV_E2M1), fresh = e2m1_type();
        assert_true(H5Tequal(type, fresh) > 0);
        for (size_t i = 0; i < count; i++) {
            assert_true(mine[i] != type);
            assert_int_equal(H5Tget_class(mine[i]), class);
            assert_true(H5Tclose(mine[i]) >= 0);
        }
        check_all(LIBRARY);
        H5Tclose(fresh);
        assert_int_equal(who_writes_outside(), REPAIRED); /* registered or not */
        check_all(LIBRARY);
        if (round == 1) /* closed while registered, then unregistered */
            assert_int_equal(fpconv_h5_unregister(), 0);
        check_all(LIBRARY);
    }
    assert_int_equal(fpconv_h5_register(), 0);
    check_all(REPAIRED);
    assert_int_equal(fpconv_h5_unregister(), 0);
}

/* What the library has converted before, in arrays of every pair, it converts
 * through us after registration and by itself after that is taken back.  (HDF5
 * 1.14 and later keep the elements' converter in the array's.) */
static void converted_before_registration(void **state)
{
    (void)state;
    static struct stream stream;
    static uint64_t got[STREAM_COUNT];
    const hsize_t length = 16;
    for (int step = 0; step < 4; step++) {
        if (step == 1 || step == 3)
            assert_int_equal(fpconv_h5_register(), 0);
        if (step == 2)
            assert_int_equal(fpconv_h5_unregister(), 0);
        FOR_EACH_SIDE(d)
        FOR_EACH_SIDE(s)
        {
            const struct side dst = side_at(d), src = side_at(s);
            if (!is_pair(dst, src) || dst.format == FPCONV_HIF8 || src.format == FPCONV_HIF8)
                continue;
            const hid_t dst_type = make_type(dst), src_type = make_type(src);
            const hid_t dst_array = H5Tarray_create2(dst_type, 1, &length);
            const hid_t src_array = H5Tarray_create2(src_type, 1, &length);
            fill_stream(&stream, dst.format, src.format, FPCONV_HDF5);
            static uint8_t buf[16 * 16 * 8];
            for (size_t i = 0; i < 256; i++)
                store_element(buf + i * element_size(src), src, stream.codes[i * 16]);
            assert_true(H5Tconvert(src_array, dst_array, 16, buf, NULL, H5P_DEFAULT) >= 0);
            for (size_t i = 0; i < 256; i++) {
                const uint64_t code = stream.codes[i * 16];
                const uint64_t right = repaired_code(dst, src, code);
                got[i] = load_element(buf + i * element_size(dst), dst);
                if (step % 2 == 1 || !is_lost_carry(dst, src, code, right, got[i]))
                    check_element(dst, src, i, code, got[i], right);
            }
            H5Tclose(dst_array);
            H5Tclose(src_array);
            H5Tclose(dst_type);
            H5Tclose(src_type);
        }
    }
    assert_int_equal(fpconv_h5_unregister(), 0);
}

/* A file, open all the time. */
static void unregister_with_open_files(void **state)
{
    (void)state;
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    assert_true(H5Pset_fapl_core(access, 1 << 16, 0) >= 0);
    const hid_t file = H5Fcreate("fpconv-lifetime.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    const hsize_t n = 2;
    const hid_t space = H5Screate_simple(1, &n, NULL), type = e2m1_type();
    const hid_t set = H5Dcreate2(file, "x", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    static const enum converter expected[] = {LIBRARY, REPAIRED, LIBRARY, REPAIRED};
    for (size_t i = 0; i < ARRAY_COUNT(expected); i++) {
        const float values[2] = {0.75f, 6.0f};
        uint8_t codes[2];
        assert_int_equal(i % 2 ? fpconv_h5_register() : fpconv_h5_unregister(), 0);
        assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
        assert_true(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, codes) >= 0);
        assert_int_equal(who_gave(codes[0], codes[1]), expected[i]);
    }
    assert_int_equal(fpconv_h5_unregister(), 0);
    H5Dclose(set);
    H5Tclose(type);
    H5Sclose(space);
    H5Fclose(file);
    H5Pclose(access);
}

/* -------------------------------------------------------------------------- */
/* Threads                                                                    */
/* -------------------------------------------------------------------------- */

enum { ROUNDS = 300 };

static void *register_in_turn(void *argument)
{
    const fpconv_h5_profile *profiles = argument;
    for (int i = 0; i < ROUNDS; i++)
        if (fpconv_h5_register_profile(profiles[i % 2], NULL) != 0)
            return argument;
    return NULL;
}

/* In each call of HDF5's, all comes from one profile. */
static char not_one_profile;

static void *convert_all_the_time(void *unused)
{
    (void)unused;
    for (int i = 0; i < 20 * ROUNDS; i++) {
        const enum converter who = who_converts_compounds();
        if (who != REPAIRED && who != OCP)
            return &not_one_profile;
    }
    return NULL;
}

static void threads(void **state)
{
    (void)state;
    hbool_t is_safe = false;
    assert_true(H5is_library_threadsafe(&is_safe) >= 0);
    if (!is_safe) {
        print_message("this HDF5 is not thread-safe: one thread\n");
        return;
    }
    static fpconv_h5_profile profiles[] = {FPCONV_H5_REPAIRED, FPCONV_H5_OCP, FPCONV_H5_REPAIRED};
    assert_int_equal(fpconv_h5_register(), 0);
    pthread_t thread[4];
    void *failed;
    assert_int_equal(pthread_create(&thread[0], NULL, register_in_turn, profiles), 0);
    assert_int_equal(pthread_create(&thread[1], NULL, register_in_turn, profiles + 1), 0);
    assert_int_equal(pthread_create(&thread[2], NULL, convert_all_the_time, NULL), 0);
    assert_int_equal(pthread_create(&thread[3], NULL, convert_all_the_time, NULL), 0);
    for (size_t i = 0; i < ARRAY_COUNT(thread); i++) {
        assert_int_equal(pthread_join(thread[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(fpconv_h5_unregister(), 0);
    check_all(LIBRARY);
}

/* -------------------------------------------------------------------------- */
/* The first registration of a process, by several threads                    */
/* -------------------------------------------------------------------------- */

static pthread_barrier_t barrier;

static void *register_at_once(void *report)
{
    pthread_barrier_wait(&barrier);
    return fpconv_h5_register_profile(FPCONV_H5_REPAIRED, report) == 0 ? NULL : report;
}

/* Each finds the whole table probed and registered. */
static void threads_register_first(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    hbool_t is_safe = false;
    static fpconv_h5_report reports[THREADS];
    pthread_t thread[THREADS];
    assert_true(H5is_library_threadsafe(&is_safe) >= 0);
    const size_t count = is_safe ? THREADS : 1;
    print_message("%zu threads\n", count);
    assert_int_equal(pthread_barrier_init(&barrier, NULL, (unsigned)count), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, register_at_once, &reports[i]), 0);
    for (size_t i = 0; i < count; i++) {
        void *failed;
        assert_int_equal(pthread_join(thread[i], &failed), 0);
        assert_null(failed);
    }
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(reports[i].registered_count, reports[i].pair_count);
        assert_memory_equal(&reports[i], &reports[0], sizeof(reports[0]));
    }
    check_all(REPAIRED);
    assert_int_equal(fpconv_h5_unregister(), 0);
    check_all(LIBRARY);
    pthread_barrier_destroy(&barrier);
}

/* From inside a callback of HDF5's, as in H5Literate. */
static herr_t register_in_callback(hid_t list, const char *name, void *data)
{
    (void)list;
    (void)name;
    *(herr_t *)data = fpconv_h5_register();
    return 1;
}

static void register_inside_hdf5(void **state)
{
    (void)state;
    herr_t result = -1;
    assert_int_equal(H5Piterate(H5P_DATASET_XFER, NULL, register_in_callback, &result), 1);
    assert_int_equal(result, 0);
    check_all(REPAIRED);
    assert_int_equal(fpconv_h5_unregister(), 0);
}

/* -------------------------------------------------------------------------- */
/* Several copies                                                             */
/* -------------------------------------------------------------------------- */

struct copy {
    void *library;
    herr_t (*register_profile)(fpconv_h5_profile, fpconv_h5_report *);
    herr_t (*unregister)(void);
};

static struct copy open_copy(void)
{
    struct copy copy;
    copy.library = dlopen(plugin_path, RTLD_NOW | RTLD_LOCAL);
    if (!copy.library)
        fail_msg("%s", dlerror());
    *(void **)&copy.register_profile = dlsym(copy.library, "fpconv_h5_register_profile");
    *(void **)&copy.unregister = dlsym(copy.library, "fpconv_h5_unregister");
    assert_true(copy.register_profile && copy.unregister);
    return copy;
}

/* f32 to float16 and back: ties, what overflows eagerly, NaN payloads, subnormals. */
static const uint32_t f16_probes[] = {0x3f801000, 0x3f803000, 0x477fe001, 0x477fefff, 0x7f812345,
                                      0xffc54321, 0x33000001, 0x387fe000, 0x7f800000};
enum { F16_PROBES = ARRAY_COUNT(f16_probes) };

struct f16_results {
    uint16_t low[F16_PROBES];
    uint32_t back[F16_PROBES];
};

static struct f16_results f16_before; /* by the library alone */

static struct f16_results convert_f16(void)
{
    struct f16_results results;
    uint32_t buf[F16_PROBES];
    const hid_t f16 = native_type(FPCONV_F16);
    memcpy(buf, f16_probes, sizeof(buf));
    assert_true(H5Tconvert(H5T_NATIVE_FLOAT, f16, F16_PROBES, buf, NULL, H5P_DEFAULT) >= 0);
    memcpy(results.low, buf, sizeof(results.low));
    assert_true(H5Tconvert(f16, H5T_NATIVE_FLOAT, F16_PROBES, buf, NULL, H5P_DEFAULT) >= 0);
    memcpy(results.back, buf, sizeof(results.back));
    H5Tclose(f16);
    return results;
}

static void check_f16_is_as_before(void)
{
    const struct f16_results now = convert_f16();
    assert_memory_equal(now.low, f16_before.low, sizeof(now.low));
    assert_memory_equal(now.back, f16_before.back, sizeof(now.back));
}

/* A copy learns what the library does with float16 also where the path is taken. */
static void second_copy_knows_float16(void **state)
{
    (void)state;
    static fpconv_h5_report report;
    const struct copy copy = open_copy();
    assert_int_equal(fpconv_h5_register_profile(FPCONV_H5_OCP, NULL), 0);
    assert_int_equal(copy.register_profile(FPCONV_H5_IDENTICAL, &report), 0);
    for (unsigned i = 0; i < report.pair_count; i++) {
        const fpconv_h5_pair_report *pair = &report.pairs[i];
        assert_int_equal(pair->registered, pair->src != FPCONV_HIF8 && pair->dst != FPCONV_HIF8);
    }
    check_f16_is_as_before();
    assert_int_equal(copy.unregister(), 0);
    check_f16_is_as_before();
    assert_int_equal(fpconv_h5_unregister(), 0);
    check_f16_is_as_before();
    check_all(LIBRARY);
    dlclose(copy.library);
}

/* The last to register converts; each gives back only what is its own. */
static void second_copy(void **state)
{
    (void)state;
    const struct copy copy = open_copy();
    assert_true(copy.unregister != fpconv_h5_unregister);
    assert_int_equal(fpconv_h5_register_profile(FPCONV_H5_OCP, NULL), 0);
    check_all(OCP);
    /* It probes the library, not the first copy. */
    assert_int_equal(copy.register_profile(FPCONV_H5_REPAIRED, NULL), 0);
    check_all(REPAIRED);
    /* Each sees that the other has come after it. */
    assert_int_equal(fpconv_h5_register_profile(FPCONV_H5_OCP, NULL), 0);
    check_all(OCP);
    assert_int_equal(copy.register_profile(FPCONV_H5_REPAIRED, NULL), 0);
    check_all(REPAIRED);
    assert_int_equal(fpconv_h5_unregister(), 0);
    check_all(REPAIRED);
    assert_int_equal(fpconv_h5_register_profile(FPCONV_H5_OCP, NULL), 0);
    check_all(OCP);
    assert_int_equal(copy.unregister(), 0);
    check_all(OCP);
    assert_int_equal(fpconv_h5_unregister(), 0);
    check_all(LIBRARY);
    dlclose(copy.library);
}

/* The converters outlive the last dlclose, since HDF5 still points to them. */
static void dlclose_while_registered(void **state)
{
    (void)state;
    struct copy copy = open_copy();
    assert_int_equal(copy.register_profile(FPCONV_H5_REPAIRED, NULL), 0);
    assert_int_equal(dlclose(copy.library), 0);
    check_all(REPAIRED);
    copy = open_copy();
    assert_int_equal(copy.unregister(), 0);
    dlclose(copy.library);
    check_all(LIBRARY);
}

/* -------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    const struct CMUnitTest first[] = {cmocka_unit_test(threads_register_first)};
    if (argc == 2 && strcmp(argv[1], "--first") == 0)
        return cmocka_run_group_tests_name("first registration", first, NULL, NULL);
    if (argc != 2) {
        fprintf(stderr, "usage: %s LIBFPCONV-HDF5.SO | --first\n", argv[0]);
        return 2;
    }
    plugin_path = argv[1];
    note_native_pairs();
    f16_before = convert_f16();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(converted_before_registration),
        cmocka_unit_test(register_and_unregister_twice),
        cmocka_unit_test(profiles_replace_each_other),
        cmocka_unit_test(pairs_that_a_profile_leaves_are_given_back),
        cmocka_unit_test(close_and_reopen),
        cmocka_unit_test(unregister_with_open_files),
        cmocka_unit_test(threads),
        cmocka_unit_test(register_inside_hdf5),
        cmocka_unit_test(second_copy_knows_float16), /* before a copy has probed */
        cmocka_unit_test(second_copy),
        cmocka_unit_test(dlclose_while_registered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
