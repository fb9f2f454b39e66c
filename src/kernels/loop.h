/*
 * loop.h - arrays by blocks: from the first on or from the last, what is left, and few elements
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by level.h, which has the blocks.
 */

/*
 * The hardware's prefetcher stops at the end of each page, and this goes on: 262,144 f32 to
 * f16 take 0.08 ns each instead of 0.13.  Arrays in memory are fetched from four pages at a
 * time, so that more of the reads are under way at once: 128 MiB are read in 0.46 ns for 8
 * bytes, where it takes 0.56 page by page, and 0.58 without (Sapphire Rapids); 16,777,216
 * f64 to e4m3 take 0.46 to 0.60 ns each instead of 0.76 to 0.83.  From the L2 cache that
 * is slower than page by page, 0.10 ns instead of 0.07 for f32 to f16.
 */
enum {
    CACHE_LINE = 64,
    PAGE = 4096,
    PAGES = 4,
    SOURCE_AHEAD = PAGES * PAGE,
    DESTINATION_AHEAD = 1024,
    MEMORY_BYTES_MIN = 4 << 20, /* about the size of an L2 cache */
};

/* For the lines of a block at `position` in the array, as many so far ahead, or in memory of
 * the next pages.  By a branch, lest arrays in the L2 cache pay for the arithmetic; that they
 * are expected saves them two jumps in each turn. */
LANES void prefetch_source(const char *src, size_t position, size_t bytes, ptrdiff_t ahead,
                           bool in_memory)
{
    if (__builtin_expect(!in_memory, 1)) {
        for (size_t i = 0; i < bytes; i += CACHE_LINE)
            __builtin_prefetch(src + ahead + (ptrdiff_t)i, 0);
        return;
    }
    const size_t within = position % SOURCE_AHEAD;
    for (size_t i = 0; i < bytes; i += CACHE_LINE) {
        const size_t line = (within + i) / CACHE_LINE;
        const size_t in_pages = line % PAGES * PAGE + line / PAGES * CACHE_LINE;
        __builtin_prefetch(src + SOURCE_AHEAD - within + in_pages, 0);
    }
}

LANES void prefetch_destination(const char *dst, size_t bytes, ptrdiff_t ahead)
{
    for (size_t i = 0; i < bytes; i += CACHE_LINE)
        __builtin_prefetch(dst + ahead + (ptrdiff_t)i, 1);
}

/* Is one look at what is rare in two blocks worth it?  It is where each takes few operations: f32
 * to f16 with SSE2 takes 8 % fewer instructions. */
LANES bool takes_two_blocks(fpconv_format dst_format, fpconv_format src_format)
{
#ifdef NARROWS_TO_F16_BY_ADDITION
    return dst_format == FPCONV_F16 && fp_format_is_wide(src_format);
#else
    (void)dst_format, (void)src_format;
    return false;
#endif
}

/* For how many blocks this is decided at once: between 16 and 32 or 64 bits, in vectors narrower
 * than a cache line, what is around the blocks is up to a third of all operations. */
LANES size_t blocks_at_once(fpconv_format dst_format, fpconv_format src_format)
{
    enum { BYTES = VEC_BYTES == 16 ? 512 : 256 }; /* of the f32s */
    const size_t f32_bytes = block_elements(dst_format, src_format) * sizeof(float);
    const size_t dst_size = fp_formats[dst_format].size, src_size = fp_formats[src_format].size;
    const bool between = dst_size + src_size == 2 + 4 || (dst_size == 8 && src_size == 2) ||
                         takes_two_blocks(dst_format, src_format);
    return VEC_BYTES < CACHE_LINE && between && f32_bytes < BYTES ? BYTES / f32_bytes : 1;
}

LANES bool uses_tables(fpconv_format dst_format, fpconv_format src_format)
{
    return dst_format == FPCONV_HIF8 || src_format == FPCONV_HIF8;
}

LANES const hif8_level_tables *find_tables(fpconv_format dst_format, fpconv_format src_format)
{
    return uses_tables(dst_format, src_format) ? hif8_level_tables_get() : NULL;
}

/*
 * The compiler is not to know how these come about: of either it otherwise makes as many as
 * there are places to prefetch, and advances each in every turn, by 9 instructions of 60 from
 * e2m3 to f64.  Without those, e5m2 and e4m3 to f32 take 0.3 % less in place, and the library
 * is smaller by 12 KiB.
 */
LANES void keep_pointers(const char **src, char **dst)
{
    __asm__("" : "+r"(*src), "+r"(*dst));
}

/* One block of an array; false if `while_normal` and it has results that are not. */
LANES bool convert_next_block(const hif8_level_tables *tables, fpconv_format dst_format, char *dst,
                              fpconv_format src_format, const char *src, fpconv_policy policy,
                              bool while_normal)
{
    if (while_normal)
        return narrow_normal_half_block(dst_format, dst, src_format, src);
    if (!convert_unusual_block(dst_format, dst, src_format, src, policy))
        convert_block(tables, dst_format, dst, src_format, src, policy, 2);
    return true;
}

/* Two blocks, of a pair that takes_two_blocks; false, and nothing is stored, if there is what that
 * is not for. */
LANES bool convert_two_blocks(fpconv_format dst_format, char *dst, fpconv_format src_format,
                              const char *src, fpconv_policy policy)
{
#ifdef NARROWS_TO_F16_BY_ADDITION
    (void)dst_format;
    return narrow_to_f16(dst, src_format, reread(src), policy, F16_VECTORS_MAX);
#else
    (void)dst_format, (void)dst, (void)src_format, (void)src, (void)policy;
    return false;
#endif
}

/* Whole blocks from the array; returns how many elements are left.  Or, with direction -1,
 * only whole blocks, from the last one on; the sources are then fetched so far ahead as is a
 * page of results: 65,536 e2m3 to f32 take 0.092 ns each, and 0.096 by a page of sources. */
LANES size_t convert_blocks(fpconv_format dst_format, char *dst, fpconv_format src_format,
                            const char *src, size_t n, fpconv_policy policy, ptrdiff_t direction,
                            bool while_normal)
{
    const size_t dst_size = fp_formats[dst_format].size, src_size = fp_formats[src_format].size;
    const size_t block = block_elements(dst_format, src_format);
    const hif8_level_tables *tables = find_tables(dst_format, src_format);
    if (uses_tables(dst_format, src_format) && !tables) { /* another thread is making them */
        convert_by_codec(dst_format, dst, src_format, src, n, policy);
        return 0;
    }
    if (direction < 0) {
        src += (n - block) * src_size;
        dst += (n - block) * dst_size;
    }
    const char *first = src;
    const ptrdiff_t src_step = direction * (ptrdiff_t)(block * src_size);
    const ptrdiff_t dst_step = direction * (ptrdiff_t)(block * dst_size);
    const size_t most = blocks_at_once(dst_format, src_format), group = most * block;
    /* the lowest address of a group */
    const ptrdiff_t src_back = direction < 0 ? (ptrdiff_t)((group - block) * src_size) : 0;
    const ptrdiff_t dst_back = direction < 0 ? (ptrdiff_t)((group - block) * dst_size) : 0;
    const bool in_memory = direction > 0 && n * src_size >= MEMORY_BYTES_MIN;
    const size_t near = direction > 0 ? PAGE : PAGE * src_size / dst_size;
    const size_t far = group + (in_memory ? 2 * SOURCE_AHEAD : near) / src_size;
    while (n >= block) {
        keep_pointers(&src, &dst);
        if (__builtin_expect(n > far, 1)) {
            prefetch_source(src - src_back, (size_t)(src - first), group * src_size,
                            direction * (ptrdiff_t)near, in_memory);
            prefetch_destination(dst - dst_back, group * dst_size, direction * DESTINATION_AHEAD);
        }
        size_t count = most > 1 && n < group ? n / block : most;
        n -= count * block;
        while (!while_normal && takes_two_blocks(dst_format, src_format) && count >= 2 &&
               convert_two_blocks(dst_format, dst, src_format, src, policy)) {
            count -= 2;
            src += 2 * src_step;
            dst += 2 * dst_step;
        }
        for (; count > 0; count--, src += src_step, dst += dst_step)
            if (!convert_next_block(tables, dst_format, dst, src_format, src, policy, while_normal))
                return n + count * block;
    }
    return n;
}

/*
 * A few elements are converted by themselves, without the loop over blocks.
 *
 * With masked accesses as a block of which only these are loaded and stored, and of which the
 * compiler leaves out what the first FEW do not need: 16 f32 to e4m3 take 8 ns instead of 21,
 * and 1 takes no longer.
 */
#ifdef VEC_HAS_MASKED_MEMORY
enum { FEW = 16 };

/* Tables are made elsewhere, lest each call pay for the stack frame that this takes. */
LANES bool are_few(fpconv_format dst_format, fpconv_format src_format, size_t n)
{
    return n <= FEW && (!uses_tables(dst_format, src_format) || hif8_level_tables_peek());
}

LANES void convert_few(fpconv_format dst_format, char *dst, fpconv_format src_format,
                       const char *src, size_t n, fpconv_policy policy)
{
    const size_t dst_size = fp_formats[dst_format].size, src_size = fp_formats[src_format].size;
    const size_t block = block_elements(dst_format, src_format);
    const hif8_level_tables *tables =
        uses_tables(dst_format, src_format) ? hif8_level_tables_peek() : NULL;
    const uint64_t which = first_bytes(n);
    _Alignas(VEC_BYTES) char in[VEC_BYTES * sizeof(double)], out[VEC_BYTES * sizeof(double)];
    const size_t vectors = block * src_size / VEC_BYTES;
    const size_t loaded = FEW * src_size > VEC_BYTES ? FEW * src_size / VEC_BYTES : 1;
    for (size_t i = 0; i < loaded; i++)
        vec_store(
            in + i * VEC_BYTES,
            vec_load_where(src + i * VEC_BYTES, which >> (i * VEC_BYTES / src_size), src_size));
    /* the others alike, so that nothing is done for them alone */
    for (size_t i = loaded; i < vectors; i++)
        vec_store(in + i * VEC_BYTES, vec_load(in + i % loaded * VEC_BYTES));
    convert_block(tables, dst_format, out, src_format, in, policy, 2 * FEW <= block ? 1 : 2);
    for (size_t i = 0; i * VEC_BYTES < FEW * dst_size; i++)
        vec_store_where(dst + i * VEC_BYTES, vec_load(out + i * VEC_BYTES),
                        which >> (i * VEC_BYTES / dst_size), dst_size);
}
#else
/* Otherwise by the codec, where it has the pair. */
LANES bool are_few(fpconv_format dst_format, fpconv_format src_format, size_t n)
{
    return n <= CODEC_ELEMENTS_MAX &&
           (fp_format_is_wide(dst_format) || fp_format_is_wide(src_format));
}

LANES void convert_few(fpconv_format dst_format, char *dst, fpconv_format src_format,
                       const char *src, size_t n, fpconv_policy policy)
{
    (*fp_kernels_portable.table)[dst_format][src_format][policy](dst, src, n);
}
#endif

/* `bytes` to a buffer of which so many are to be filled, in whole vectors, as they will be read: a
 * load of what several smaller stores have written waits for these to leave the store buffer.
 * What is left gets the last of them again. */
static __attribute__((noinline)) void read_rest(char *in, size_t filled, const char *src,
                                                size_t bytes)
{
    vec v = u8_set(0);
    for (size_t i = 0; i < filled; i += VEC_BYTES) {
        if (i < bytes)
            v = vec_load_part(src + i, bytes - i < VEC_BYTES ? bytes - i : VEC_BYTES);
        vec_store(in + i, v);
    }
}

static __attribute__((noinline)) void write_rest(char *dst, const char *out, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += VEC_BYTES) {
        const size_t left = bytes - i;
        vec_store_part(dst + i, vec_load(out + i), left < VEC_BYTES ? left : VEC_BYTES);
    }
}

/*
 * The rest of an array, or a short one, a block at most, by the same code on a block that it is
 * copied to: results cannot depend on the position.  Where a block is many vectors, up to half of
 * it is converted as that.
 */
LANES void convert_rest(fp_kernel *blocks, fpconv_format dst_format, char *dst,
                        fpconv_format src_format, const char *src, size_t n, fpconv_policy policy)
{
    const size_t dst_size = fp_formats[dst_format].size, src_size = fp_formats[src_format].size;
    const size_t block = block_elements(dst_format, src_format);
    const size_t half = block / 2;
    const bool is_halved = (src_format == FPCONV_F64 && dst_size < sizeof(float)) ||
                           (dst_format == FPCONV_F64 && src_size == sizeof(uint16_t)) ||
                           block > VEC_BYTES;
    const bool fits_half = is_halved && n <= half;
    const size_t filled = fits_half && src_format != FPCONV_F64 ? half : block;
    _Alignas(VEC_BYTES) char in[VEC_BYTES * sizeof(double)], out[VEC_BYTES * sizeof(double)];
    read_rest(in, filled * src_size, src, n * src_size);
    if (fits_half && !are_unusual(dst_format, src_format, in, half))
        convert_block(find_tables(dst_format, src_format), dst_format, out, src_format, in, policy,
                      1);
    else
        blocks(out, in, block);
    write_rest(dst, out, n * dst_size);
}

/* Are these at least a block of elements that grow where they lie?  Less is read as a whole
 * before it is written. */
LANES bool grows_in_place(fpconv_format dst_format, const void *dst, fpconv_format src_format,
                          const void *src, size_t n)
{
    return fp_formats[dst_format].size > fp_formats[src_format].size && dst == src &&
           n >= block_elements(dst_format, src_format);
}

/*
 * Such elements are read before results reach them: first the rest, which lies above the blocks,
 * then the blocks from the last one on, as the results of each lie above all blocks before it.  A
 * loop of its own, since one for both directions takes 1 to 3 ns more of a call on 16 elements.
 */
LANES void convert_backward(fp_kernel *kernel, fpconv_format dst_format, char *dst,
                            fpconv_format src_format, const char *src, size_t n,
                            fpconv_policy policy)
{
    const size_t dst_size = fp_formats[dst_format].size, src_size = fp_formats[src_format].size;
    const size_t block = block_elements(dst_format, src_format);
    const size_t rest = n % block, done = n - rest;
    if (rest > 0)
        kernel(dst + done * dst_size, src + done * src_size, rest);
    convert_blocks(dst_format, dst, src_format, src, done, policy, -1, false);
}
