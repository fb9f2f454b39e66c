/*
 * test_arrays.c - arrays of every pair of formats, at every length and place
 *
 * SPDX-License-Identifier: MIT
 *
 * Source and destination lie in one buffer that is otherwise filled with a
 * pattern.  After each call the whole buffer is what it has to be: what is
 * between, before and behind the elements, and the source, is as it was.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "oracle.h"
#include "stream.h"
#include "support.h"

enum { LENGTHS = 201, ALIGNMENTS = 64, MARGIN = 64, BUFFER_BYTES = 1 << 18, CANARY = 0xa5 };

static struct stream stream;
static _Alignas(64) uint8_t buffer[BUFFER_BYTES];
static uint8_t image[BUFFER_BYTES];

/* Where one side's elements are: element i at buffer[at + i * stride]. */
struct place {
    ptrdiff_t at, stride;
};

static void fail_at(struct place dst, struct place src, size_t n, size_t byte)
{
    fail_msg("%s to %s, %s, n = %zu: dst at %td stride %td, src at %td stride %td: "
             "byte %zu is 0x%02x, not 0x%02x",
             fpconv_format_name(stream.src), fpconv_format_name(stream.dst),
             fpconv_policy_name(stream.policy), n, dst.at, dst.stride, src.at, src.stride, byte,
             buffer[byte], image[byte]);
}

/* n elements, given by their codes, to their places. */
static void put_elements(uint8_t *base, struct place place, size_t size, const uint64_t *codes,
                         size_t n)
{
    for (size_t i = 0; i < n; i++)
        store_code(base + place.at + (ptrdiff_t)i * place.stride, size, codes[i]);
}

/* Elements first, first + 1, ... of the stream, n of them, from src to dst;
 * nothing lies at or behind `bytes`. */
static void check_places(struct place dst, struct place src, size_t first, size_t n, size_t bytes)
{
    const size_t dst_size = stream.dst_size, src_size = stream.src_size;
    assert_true(first + n <= STREAM_COUNT);
    assert_true(bytes <= BUFFER_BYTES);
    memset(buffer, CANARY, bytes);
    put_elements(buffer, src, src_size, stream.codes + first, n);
    memcpy(image, buffer, bytes);
    put_elements(image, dst, dst_size, stream.wants + first, n);

    const bool contiguous = dst.stride == (ptrdiff_t)dst_size && src.stride == (ptrdiff_t)src_size;
    const fpconv_status status =
        contiguous ? fpconv_convert(stream.dst, buffer + dst.at, stream.src, buffer + src.at, n,
                                    stream.policy)
                   : fpconv_convert_strided(stream.dst, buffer + dst.at, dst.stride, stream.src,
                                            buffer + src.at, src.stride, n, stream.policy);
    assert_int_equal(status, FPCONV_OK);
    if (memcmp(buffer, image, bytes) != 0)
        for (size_t i = 0; i < bytes; i++)
            if (buffer[i] != image[i])
                fail_at(dst, src, n, i);
}

/* Spread over the stream, so that each element is tried at many places. */
static size_t first_element(size_t n, size_t alignment)
{
    return (n * 67 + alignment * 129) % (STREAM_COUNT - LENGTHS);
}

typedef void pair_test(void);

static void for_each_pair_and_policy(pair_test *test)
{
    FOR_EACH_FORMAT (dst)
        FOR_EACH_FORMAT (src)
            FOR_EACH_POLICY (policy) {
                fill_stream(&stream, dst, src, policy);
                test();
            }
}

/* Is this one of the cases to try?  Under FPCONV_TEST_SCALE only some are. */
static bool is_tried(void)
{
    static unsigned turn;
    return turn++ % test_scale() == 0;
}

/* For each n, each of the 64 alignments of src comes with another one of dst. */
static void check_lengths_and_alignments(void)
{
    for (size_t n = 0; n < LENGTHS; n++)
        for (size_t a = 0; a < ALIGNMENTS; a++) {
            if (!is_tried())
                continue;
            const size_t src_at = MARGIN + a;
            const size_t behind = (src_at + n * stream.src_size + MARGIN + 63) / 64 * 64;
            const size_t dst_at = behind + (a * 11 + n * 5) % ALIGNMENTS;
            check_places((struct place){(ptrdiff_t)dst_at, (ptrdiff_t)stream.dst_size},
                         (struct place){(ptrdiff_t)src_at, (ptrdiff_t)stream.src_size},
                         first_element(n, a), n, dst_at + n * stream.dst_size + MARGIN);
        }
}

static void every_length_at_every_alignment(void **state)
{
    (void)state;
    for_each_pair_and_policy(check_lengths_and_alignments);
}

static size_t wider_size(void)
{
    return stream.dst_size > stream.src_size ? stream.dst_size : stream.src_size;
}

static void check_in_place(void)
{
    for (size_t n = 0; n < LENGTHS; n++)
        for (size_t a = 0; a < ALIGNMENTS; a++)
            if (is_tried())
                check_places((struct place){(ptrdiff_t)(MARGIN + a), (ptrdiff_t)stream.dst_size},
                             (struct place){(ptrdiff_t)(MARGIN + a), (ptrdiff_t)stream.src_size},
                             first_element(n, a), n, MARGIN + a + n * wider_size() + MARGIN);
}

static void every_length_at_every_alignment_in_place(void **state)
{
    (void)state;
    for_each_pair_and_policy(check_in_place);
}

/* The bytes that n elements take. */
static size_t extent(ptrdiff_t stride, size_t size, size_t n)
{
    return n == 0 ? 0 : (n - 1) * (size_t)(stride < 0 ? -stride : stride) + size;
}

/* Where the first of n elements is if the lowest byte of all is at `lowest`. */
static ptrdiff_t first_at(size_t lowest, ptrdiff_t stride, size_t n)
{
    return (ptrdiff_t)lowest + (stride < 0 && n > 0 ? -stride * (ptrdiff_t)(n - 1) : 0);
}

static void check_apart(ptrdiff_t dst_stride, ptrdiff_t src_stride, size_t n, size_t alignment)
{
    const size_t src_lowest = MARGIN + alignment;
    const size_t src_end = src_lowest + extent(src_stride, stream.src_size, n);
    const size_t dst_lowest = (src_end + MARGIN + 63) / 64 * 64 + (alignment * 11) % ALIGNMENTS;
    const size_t bytes = dst_lowest + extent(dst_stride, stream.dst_size, n) + MARGIN;
    check_places((struct place){first_at(dst_lowest, dst_stride, n), dst_stride},
                 (struct place){first_at(src_lowest, src_stride, n), src_stride},
                 first_element(n, alignment) % (STREAM_COUNT - n), n, bytes);
}

/* Strides of a packed array, of odd records, of compounds of 12 and 16 bytes,
 * all forward and backward. */
static void check_strides(size_t n, size_t alignment)
{
    const ptrdiff_t d = (ptrdiff_t)stream.dst_size, s = (ptrdiff_t)stream.src_size;
    const ptrdiff_t strides[][2] = {
        {d, s + 1}, {d + 1, s}, {d + 3, s + 5},  {2 * d, s},       {d, 2 * s},  {12, 12},
        {16, 16},   {d, -s},    {-d, s},         {-d, -s},         {-d - 1, s}, {d, -s - 3},
        {-16, 12},  {12, -16},  {-2 * d, 3 * s}, {-d - 7, -s - 9},
    };
    for (size_t i = 0; i < ARRAY_COUNT(strides); i++)
        if (is_tried())
            check_apart(strides[i][0], strides[i][1], n, alignment);
}

static void check_all_strides(void)
{
    for (size_t n = 0; n < LENGTHS; n++)
        check_strides(n, n * 29 % ALIGNMENTS);
    for (size_t alignment = 0; alignment < ALIGNMENTS; alignment++)
        check_strides(alignment * 43 % LENGTHS, alignment);
}

static void strides_forward_and_backward(void **state)
{
    (void)state;
    for_each_pair_and_policy(check_all_strides);
}

/* A source stride below the element's size: 0 repeats one element, others read
 * elements that overlap each other. */
static void check_overlapping_sources(void)
{
    for (ptrdiff_t stride = 1 - (ptrdiff_t)stream.src_size; stride < (ptrdiff_t)stream.src_size;
         stride++)
        for (size_t n = 0; n < LENGTHS; n += 1 + n / 8) {
            if (!is_tried())
                continue;
            uint8_t out[LENGTHS * 8];
            const size_t first = first_element(n, 0);
            const uint8_t *src =
                stream.code_bytes + (ptrdiff_t)((first + LENGTHS) % (STREAM_COUNT / 2) + LENGTHS) *
                                        (ptrdiff_t)stream.src_size;
            assert_int_equal(fpconv_convert_strided(stream.dst, out, (ptrdiff_t)stream.dst_size,
                                                    stream.src, src, stride, n, stream.policy),
                             FPCONV_OK);
            for (size_t i = 0; i < n; i++) {
                const uint64_t code = load_code(src + (ptrdiff_t)i * stride, stream.src_size);
                check_code(stream.dst, stream.src, code, stream.policy,
                           load_code(out + i * stream.dst_size, stream.dst_size),
                           oracle_convert(stream.dst, stream.src, code, stream.policy));
            }
        }
}

static void source_strides_below_the_element_size(void **state)
{
    (void)state;
    for_each_pair_and_policy(check_overlapping_sources);
}

static void check_strided_in_place(void)
{
    const ptrdiff_t d = (ptrdiff_t)stream.dst_size, s = (ptrdiff_t)stream.src_size;
    const ptrdiff_t strides[][2] = {
        {d + 1, s}, {d, s + 1}, {d + 3, s + 3}, {8, 8}, {12, 16}, {16, 12}, {3 * d, s}, {d, 3 * s},
    };
    for (size_t i = 0; i < ARRAY_COUNT(strides); i++)
        for (int sign = 1; sign >= -1; sign -= 2)
            for (size_t n = 0; n < LENGTHS; n++) {
                if (!is_tried())
                    continue;
                const ptrdiff_t ds = sign * strides[i][0], ss = sign * strides[i][1];
                const ptrdiff_t larger =
                    strides[i][0] > strides[i][1] ? strides[i][0] : strides[i][1];
                const size_t lowest = MARGIN + n % ALIGNMENTS;
                const ptrdiff_t at = first_at(lowest, sign * larger, n);
                check_places((struct place){at, ds}, (struct place){at, ss}, first_element(n, i), n,
                             lowest + n * (size_t)larger + wider_size() + MARGIN);
            }
}

static void in_place_with_strides_that_differ(void **state)
{
    (void)state;
    for_each_pair_and_policy(check_strided_in_place);
}

/* Source and destination as two fields of one record, either first. */
static void check_fields(void)
{
    const size_t d = stream.dst_size, s = stream.src_size;
    const struct {
        size_t record, dst, src;
    } layouts[] = {
        {d + s, 0, d}, {d + s, s, 0}, {24, 1, 9}, {24, 11, 2}, {16, 0, 8}, {17, 9, 1},
    };
    for (size_t i = 0; i < ARRAY_COUNT(layouts); i++)
        for (int sign = 1; sign >= -1; sign -= 2)
            for (size_t n = 0; n < LENGTHS; n++) {
                if (!is_tried())
                    continue;
                const ptrdiff_t stride = sign * (ptrdiff_t)layouts[i].record;
                const ptrdiff_t record = first_at(MARGIN + n % ALIGNMENTS, stride, n);
                check_places((struct place){record + (ptrdiff_t)layouts[i].dst, stride},
                             (struct place){record + (ptrdiff_t)layouts[i].src, stride},
                             first_element(n, i), n,
                             MARGIN + ALIGNMENTS + (n + 1) * layouts[i].record + MARGIN);
            }
}

static void fields_of_the_same_records(void **state)
{
    (void)state;
    for_each_pair_and_policy(check_fields);
}

/* A format of each size: how elements are copied depends on nothing else. */
static const fpconv_format of_each_size[] = {FPCONV_F64, FPCONV_F32, FPCONV_BF16, FPCONV_E4M3};

enum { RECORD_MAX = 40 };

/* Lengths of one tile of a library and of several, whole and not; and so long that elements
 * before the first cache line are worth a tile of theirs. */
static size_t record_count(size_t record, size_t alignment)
{
    static const size_t counts[] = {255, 256, 257,  263,  300,  511, 512,
                                    600, 767, 1000, 1024, 1200, 1317};
    return counts[(record * 3 + alignment) % ARRAY_COUNT(counts)];
}

static void check_records(size_t record, size_t alignment)
{
    const size_t n = record_count(record, alignment), at = MARGIN + alignment;
    const size_t bytes = at + n * record + MARGIN;
    for (int sign = 1; sign >= -1; sign -= 2) {
        const ptrdiff_t stride = sign * (ptrdiff_t)record;
        const struct place all = {first_at(at, stride, n), stride};
        if (!is_tried())
            continue;
        check_apart(stride, stride, n, alignment);
        check_places(all, all, first_element(n, alignment) % (STREAM_COUNT - n), n, bytes);
        if (stream.dst_size + stream.src_size <= record) {
            const struct place behind = {all.at + (ptrdiff_t)stream.src_size, stride};
            check_places(behind, all, 0, n, bytes);
        }
    }
}

static void records_of_every_size_at_every_alignment(void **state)
{
    (void)state;
    for (size_t d = 0; d < ARRAY_COUNT(of_each_size); d++)
        for (size_t s = 0; s < ARRAY_COUNT(of_each_size); s++) {
            fill_stream(&stream, of_each_size[d], of_each_size[s], FPCONV_OCP);
            for (size_t record = wider_size(); record <= RECORD_MAX; record++)
                for (size_t alignment = 0; alignment < ALIGNMENTS; alignment++)
                    check_records(record, alignment);
        }
}

/* A field of records whose other fields belong to others. */
struct field {
    size_t record, at, n;
    pthread_barrier_t *start;
    size_t wrong; /* results, after all rounds */
};

/* Filled and converted in place again and again. */
static void *convert_field(void *context)
{
    enum { ROUNDS = 1000 };
    struct field *field = context;
    uint8_t *first = buffer + field->at;
    const struct place place = {0, (ptrdiff_t)field->record};
    pthread_barrier_wait(field->start);
    for (int round = 0; round < ROUNDS; round++) {
        put_elements(first, place, stream.src_size, stream.codes, field->n);
        const fpconv_status status =
            fpconv_convert_strided(stream.dst, first, place.stride, stream.src, first, place.stride,
                                   field->n, stream.policy);
        field->wrong += status != FPCONV_OK;
        for (size_t i = 0; i < field->n; i++)
            field->wrong +=
                load_code(first + i * field->record, stream.dst_size) != stream.wants[i];
    }
    return NULL;
}

/* Whoever wrote back what lies beside an element would undo what the other thread does. */
static void check_two_threads(size_t record)
{
    const size_t n = 300;
    pthread_barrier_t start;
    struct field fields[] = {
        {.record = record, .at = 0, .n = n, .start = &start},
        {.record = record, .at = record - wider_size(), .n = n, .start = &start},
    };
    pthread_t thread;
    assert_int_equal(pthread_barrier_init(&start, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, convert_field, &fields[0]), 0);
    convert_field(&fields[1]);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_barrier_destroy(&start);
    assert_int_equal(fields[0].wrong, 0);
    assert_int_equal(fields[1].wrong, 0);
}

static void fields_of_the_same_records_by_two_threads(void **state)
{
    (void)state;
    for (size_t d = 0; d < ARRAY_COUNT(of_each_size); d++)
        for (size_t s = 0; s < ARRAY_COUNT(of_each_size); s++) {
            fill_stream(&stream, of_each_size[d], of_each_size[s], FPCONV_OCP);
            for (size_t record = 2 * wider_size(); record <= RECORD_MAX; record++)
                if (is_tried())
                    check_two_threads(record);
        }
}

/* Lengths about which a library that works in blocks may stumble. */
static void check_long_arrays(void)
{
    static const size_t lengths[] = {255, 256, 257, 511, 513, 1023, 1024, 1025, 2047, 2049, 3333};
    const ptrdiff_t d = (ptrdiff_t)stream.dst_size, s = (ptrdiff_t)stream.src_size;
    for (size_t i = 0; i < ARRAY_COUNT(lengths); i++) {
        const size_t n = lengths[i];
        const size_t in_place_bytes = 2 * MARGIN + (n + 2) * 16;
        if (!is_tried())
            continue;
        check_apart(d, s, n, i);
        check_apart(d + 2, s, n, 0);
        check_apart(d, s + 1, n, 63);
        check_apart(-16, 12, n, 5);
        check_places((struct place){MARGIN, d}, (struct place){MARGIN, s}, 0, n, in_place_bytes);
        check_places((struct place){MARGIN + 1, 12}, (struct place){MARGIN + 1, 16}, 0, n,
                     in_place_bytes);
        check_places((struct place){MARGIN + 1, 16}, (struct place){MARGIN + 1, 12}, 0, n,
                     in_place_bytes);
    }
}

static void arrays_longer_than_a_block(void **state)
{
    (void)state;
    for_each_pair_and_policy(check_long_arrays);
}

/* So long that a library may choose other stores: the stream over and over, at odd
 * addresses. */
static void check_huge_array(fpconv_format dst, fpconv_format src)
{
    const size_t n = ((size_t)1 << 24) / test_scale() + 37;
    fill_stream(&stream, dst, src, FPCONV_OCP);
    const size_t d = stream.dst_size, s = stream.src_size;
    uint8_t *in = malloc(n * s + 1), *out = malloc(n * d + 2 * MARGIN);
    assert_non_null(in);
    assert_non_null(out);
    for (size_t done = 0; done < n; done += STREAM_COUNT) {
        const size_t count = n - done < STREAM_COUNT ? n - done : STREAM_COUNT;
        memcpy(in + 1 + done * s, stream.code_bytes, count * s);
    }
    memset(out, CANARY, n * d + 2 * MARGIN);
    uint8_t *first = out + MARGIN - 1;
    assert_int_equal(fpconv_convert(dst, first, src, in + 1, n, FPCONV_OCP), FPCONV_OK);
    for (size_t done = 0; done < n; done += STREAM_COUNT) {
        const size_t count = n - done < STREAM_COUNT ? n - done : STREAM_COUNT;
        assert_memory_equal(first + done * d, stream.want_bytes, count * d);
    }
    for (size_t i = 0; i < MARGIN - 1; i++) {
        assert_int_equal(out[i], CANARY);
        assert_int_equal(first[n * d + i], CANARY);
    }
    free(in);
    free(out);
}

static void arrays_larger_than_the_caches(void **state)
{
    (void)state;
    static const fpconv_format pairs[][2] = {
        {FPCONV_F16, FPCONV_F32},  {FPCONV_BF16, FPCONV_F32}, {FPCONV_E4M3, FPCONV_F32},
        {FPCONV_E2M1, FPCONV_F32}, {FPCONV_HIF8, FPCONV_F32}, {FPCONV_F32, FPCONV_F16},
        {FPCONV_F32, FPCONV_BF16}, {FPCONV_F32, FPCONV_E4M3}, {FPCONV_F32, FPCONV_HIF8},
        {FPCONV_F32, FPCONV_F64},  {FPCONV_E4M3, FPCONV_F64}, {FPCONV_F64, FPCONV_BF16},
        {FPCONV_F16, FPCONV_E5M2}, {FPCONV_E5M2, FPCONV_F16},
    };
    for (size_t i = 0; i < ARRAY_COUNT(pairs); i++)
        check_huge_array(pairs[i][0], pairs[i][1]);
}

/* Memory that ends at, and begins behind, a page that cannot be touched. */
struct fenced {
    uint8_t *begin, *end;
};

static struct fenced fence(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *all = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(all != MAP_FAILED);
    assert_int_equal(mprotect(all + page, page, PROT_READ | PROT_WRITE), 0);
    return (struct fenced){all + page, all + 2 * page};
}

static struct fenced fenced_src, fenced_dst;

static void check_fenced(void)
{
    for (size_t n = 0; n < LENGTHS; n++)
        for (int at_end = 0; at_end < 2; at_end++) {
            const size_t src_bytes = n * stream.src_size, dst_bytes = n * stream.dst_size;
            uint8_t *src = at_end ? fenced_src.end - src_bytes : fenced_src.begin;
            uint8_t *dst = at_end ? fenced_dst.end - dst_bytes : fenced_dst.begin;
            const size_t first = first_element(n, 0);
            memcpy(src, stream.code_bytes + first * stream.src_size, src_bytes);
            assert_int_equal(fpconv_convert(stream.dst, dst, stream.src, src, n, stream.policy),
                             FPCONV_OK);
            assert_memory_equal(dst, stream.want_bytes + first * stream.dst_size, dst_bytes);
        }
}

/* As many records as fit, from the page's begin or to its end, with nothing behind the last
 * element. */
static void check_fenced_records(size_t record, size_t cut)
{
    const size_t page = (size_t)(fenced_src.end - fenced_src.begin);
    const size_t n = (page - wider_size()) / record + 1 - cut;
    for (int at_end = 0; at_end < 2; at_end++) {
        const size_t src_bytes = (n - 1) * record + stream.src_size;
        const size_t dst_bytes = (n - 1) * record + stream.dst_size;
        uint8_t *src = at_end ? fenced_src.end - src_bytes : fenced_src.begin;
        uint8_t *dst = at_end ? fenced_dst.end - dst_bytes : fenced_dst.begin;
        const struct place place = {0, (ptrdiff_t)record};
        assert_true(n <= STREAM_COUNT);
        put_elements(src, place, stream.src_size, stream.codes, n);
        assert_int_equal(fpconv_convert_strided(stream.dst, dst, (ptrdiff_t)record, stream.src, src,
                                                (ptrdiff_t)record, n, stream.policy),
                         FPCONV_OK);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(load_code(dst + i * record, stream.dst_size), stream.wants[i]);
    }
}

static void no_record_outside_is_read_or_written(void **state)
{
    (void)state;
    fenced_src = fence();
    fenced_dst = fence();
    for (size_t d = 0; d < ARRAY_COUNT(of_each_size); d++)
        for (size_t s = 0; s < ARRAY_COUNT(of_each_size); s++) {
            fill_stream(&stream, of_each_size[d], of_each_size[s], FPCONV_OCP);
            for (size_t record = wider_size(); record <= RECORD_MAX; record++)
                for (size_t cut = 0; cut < 4; cut++)
                    check_fenced_records(record, cut);
        }
}

static void nothing_outside_is_read_or_written(void **state)
{
    (void)state;
    fenced_src = fence();
    fenced_dst = fence();
    for_each_pair_and_policy(check_fenced);
}

int main(void)
{
    if (!announce_run())
        return EXIT_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_at_every_alignment),
        cmocka_unit_test(every_length_at_every_alignment_in_place),
        cmocka_unit_test(strides_forward_and_backward),
        cmocka_unit_test(source_strides_below_the_element_size),
        cmocka_unit_test(in_place_with_strides_that_differ),
        cmocka_unit_test(fields_of_the_same_records),
        cmocka_unit_test(records_of_every_size_at_every_alignment),
        cmocka_unit_test(fields_of_the_same_records_by_two_threads),
        cmocka_unit_test(arrays_longer_than_a_block),
        cmocka_unit_test(arrays_larger_than_the_caches),
        cmocka_unit_test(nothing_outside_is_read_or_written),
        cmocka_unit_test(no_record_outside_is_read_or_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
