/*
 * records.h - elements out of records and into them
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by the file of an instruction set that has masked accesses and permutes the
 * bytes of a vector, which is as large as a cache line.
 *
 * Whole lines, each loaded or stored once: an access that crosses lines takes two turns in
 * the cache.  The figures are for elements of a tile of 256, in the L1 cache of a Sapphire
 * Rapids.
 */
#define VEC_HAS_RECORDS

/* A bit for each byte of the elements in a line that begins with byte `first` of a record. */
LANES uint64_t elements_in_line(size_t first, size_t stride, size_t size)
{
    uint64_t bytes = first_bytes(size);
    for (size_t records = stride; records < VEC_BYTES; records *= 2)
        bytes |= bytes << records;
    bytes >>= first;
    return bytes | bytes << VEC_BYTES / 2 / stride * stride;
}

/* What gathering and scattering have in common. */
static void map_lines(struct fp_record_map *map, size_t first, size_t stride, size_t size)
{
    map->lines = fp_record_lines(stride);
    map->elements = map->lines * VEC_BYTES / stride;
    map->tile_bytes = map->elements * size;
    map->are_apart = map->lines == 3 && map->tile_bytes <= VEC_BYTES;
    map->are_even = first % 2 == 0 && stride % 2 == 0 && size % 2 == 0;
    size_t in_tile = 0;
    for (size_t i = 0; i < map->lines; i++) {
        map->in_tile[i] = in_tile;
        map->bytes[i] = elements_in_line(first, stride, size);
        in_tile += (size_t)__builtin_popcountll(map->bytes[i]);
        first = (first + VEC_BYTES) % stride;
    }
}

LANES vec byte_indices(void)
{
    static const uint8_t indices[VEC_BYTES] = {SIXTEEN(0, 1), SIXTEEN(16, 1), SIXTEEN(32, 1),
                                               SIXTEEN(48, 1)};
    return vec_load(indices);
}

/* For each byte of the tile its place in its line. */
static void map_gather(struct fp_record_map *map, size_t first, size_t stride, size_t size)
{
    map_lines(map, first, stride, size);
    for (size_t i = 0; i < map->lines; i++)
        vec_store(map->order[0] + map->in_tile[i],
                  _mm512_maskz_compress_epi8(map->bytes[i], byte_indices()));
}

/* Where in a period of the tile the vector begins that has a line's elements. */
LANES size_t line_source(const struct fp_record_map *map, size_t line)
{
    const size_t first = map->in_tile[line], last = map->tile_bytes - VEC_BYTES;
    const size_t bytes = (size_t)__builtin_popcountll(map->bytes[line]);
    return first + bytes <= VEC_BYTES ? 0 : first < last ? first : last;
}

/* For each byte of a line its place in that vector; or in one for all lines, which serves
 * each as its elements lie apart. */
static void map_scatter(struct fp_record_map *map, size_t first, size_t stride, size_t size)
{
    map_lines(map, first, stride, size);
    vec all = u8_set(0);
    for (size_t i = 0; i < map->lines; i++) {
        const uint64_t bytes = map->bytes[i];
        map->source[i] = line_source(map, i);
        map->stored[i][0] =
            map->are_even ? _mm512_movepi16_mask(_mm512_movm_epi8(bytes)) : (uint32_t)bytes;
        map->stored[i][1] = (uint32_t)(bytes >> 32);
        const vec in_source = u8_set((uint8_t)(map->in_tile[i] - map->source[i]));
        const vec in_elements = _mm512_maskz_expand_epi8(bytes, byte_indices());
        const vec order = u8_add(in_elements, in_source);
        vec_store(map->order[i], order);
        all = _mm512_mask_mov_epi8(all, bytes, order);
    }
    if (map->are_apart)
        vec_store(map->order[0], all);
}

/* The first bytes of a vector, as many as make a vector of the CPU's. */
LANES vec load_first(const char *p, size_t bytes)
{
    if (bytes == 16)
        return _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)p));
    if (bytes == 32)
        return _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)p));
    return vec_load(p);
}

LANES void store_first(char *p, vec v, size_t bytes)
{
    if (bytes == 16)
        _mm_storeu_si128((__m128i *)p, _mm512_castsi512_si128(v));
    else if (bytes == 32)
        _mm256_storeu_si256((__m256i *)p, _mm512_castsi512_si256(v));
    else
        vec_store(p, v);
}

/* Lines whose elements lie apart, in one vector, with one permutation: 0.07 ns instead of
 * 0.14 for 4 bytes out of 12. */
static void gather_apart(char *tile, const char *lines, const struct fp_record_map *map,
                         size_t periods, ptrdiff_t ahead)
{
    const vec order = vec_load(map->order[0]);
    const __mmask64 bytes[] = {map->bytes[0], map->bytes[1], map->bytes[2]};
    const size_t tile_bytes = map->tile_bytes;
    for (; periods > 0; periods--, lines += 3 * VEC_BYTES, tile += tile_bytes) {
        vec v = _mm512_maskz_loadu_epi8(bytes[0], lines);
        v = _mm512_mask_loadu_epi8(v, bytes[1], lines + VEC_BYTES);
        v = _mm512_mask_loadu_epi8(v, bytes[2], lines + 2 * VEC_BYTES);
        __builtin_prefetch(lines + 2 * VEC_BYTES + ahead, 0);
        store_first(tile, _mm512_permutexvar_epi8(order, v), tile_bytes);
    }
}

/* `count` lines, of which each is permuted, to one vector of the tile or to two, of which
 * either has elements of two lines. */
LANES void gather_each(char *tile, const char *lines, const struct fp_record_map *map,
                       size_t periods, ptrdiff_t ahead, const size_t count, const size_t vectors)
{
    /* by value: the stores might be to the map */
    const vec order[] = {vec_load(map->order[0]), vec_load(map->order[1])};
    const size_t tile_bytes = map->tile_bytes;
    __mmask64 bytes[FP_RECORD_LINES_MAX], from[FP_RECORD_LINES_MAX];
    for (size_t i = 0; i < count; i++) {
        bytes[i] = map->bytes[count == 4 ? 0 : i]; /* of four lines each is like the others */
        from[i] = ~UINT64_C(0) << map->in_tile[i] % VEC_BYTES;
    }
    for (; periods > 0; periods--, lines += count * VEC_BYTES, tile += tile_bytes) {
        vec in[FP_RECORD_LINES_MAX];
        for (size_t i = 0; i < count; i++) {
            in[i] = _mm512_maskz_loadu_epi8(bytes[i], lines + i * VEC_BYTES);
            if (i >= 2)
                __builtin_prefetch(lines + i * VEC_BYTES + ahead, 0);
        }
        for (size_t v = 0; v < vectors; v++) {
            const size_t first = v == 0 ? 0 : count - 2, end = vectors == 1 ? count : first + 2;
            vec out = _mm512_permutexvar_epi8(order[v], in[first]);
            for (size_t i = first + 1; i < end; i++)
                out = _mm512_mask_permutexvar_epi8(out, from[i], order[v], in[i]);
            vec_store(tile + v * VEC_BYTES, out); /* what is too much is written over */
        }
    }
}

/* A store of 64 bytes by a mask of bytes takes two turns in the cache; by a mask of pairs, or
 * two of 32 to the same line, one. */
LANES void store_in_line(char *line, vec v, __mmask32 first, __mmask32 second, bool are_even)
{
    if (are_even) {
        _mm512_mask_storeu_epi16(line, first, v);
        return;
    }
    _mm256_mask_storeu_epi8(line, first, _mm512_castsi512_si256(v));
    _mm256_mask_storeu_epi8(line + VEC_BYTES / 2, second, _mm512_extracti64x4_epi64(v, 1));
}

/* `count` lines, from as many permutations of a vector of the tile, of two, or from one that
 * serves all (vectors == 0). */
LANES void scatter_lines(char *lines, const char *tile, const struct fp_record_map *map,
                         size_t periods, ptrdiff_t ahead, bool fetches_all, const size_t count,
                         const size_t vectors, const bool are_even)
{
    const size_t tile_bytes = map->tile_bytes;
    vec order[FP_RECORD_LINES_MAX];
    size_t source[FP_RECORD_LINES_MAX];
    __mmask32 first[FP_RECORD_LINES_MAX], second[FP_RECORD_LINES_MAX];
    for (size_t i = 0; i < count; i++) {
        order[i] = vec_load(map->order[i]);
        source[i] = map->source[i];
        first[i] = map->stored[count == 4 ? 0 : i][0];
        second[i] = map->stored[count == 4 ? 0 : i][1];
    }
    for (; periods > 0; periods--, lines += count * VEC_BYTES, tile += tile_bytes) {
        vec in = vectors == 0 ? load_first(tile, tile_bytes) : vec_load(tile), out = in;
        for (size_t i = 0; i < count; i++) {
            char *line = lines + i * VEC_BYTES;
            if (i > 0 && vectors > 1)
                in = vec_load(tile + source[i]);
            if (i < 2 || fetches_all)
                __builtin_prefetch(line + ahead, 1);
            if (i == 0 || vectors > 0)
                out = _mm512_permutexvar_epi8(order[i], in);
            store_in_line(line, out, first[i], second[i], are_even);
        }
    }
}

static void gather(void *restrict tile, const void *restrict lines, const struct fp_record_map *map,
                   size_t periods, ptrdiff_t ahead)
{
    if (map->are_apart)
        gather_apart(tile, lines, map, periods, ahead);
    else if (map->lines == 3)
        gather_each(tile, lines, map, periods, ahead, 3, 2);
    else if (map->tile_bytes > VEC_BYTES)
        gather_each(tile, lines, map, periods, ahead, 4, 2);
    else
        gather_each(tile, lines, map, periods, ahead, 4, 1);
}

static void scatter(void *restrict lines, const void *restrict tile,
                    const struct fp_record_map *map, size_t periods, ptrdiff_t ahead,
                    bool fetches_all)
{
#define SCATTER_LINES(count, vectors)                                                       \
    if (map->are_even)                                                                      \
        scatter_lines(lines, tile, map, periods, ahead, fetches_all, count, vectors, true); \
    else                                                                                    \
        scatter_lines(lines, tile, map, periods, ahead, fetches_all, count, vectors, false);
    if (map->are_apart) {
        SCATTER_LINES(3, 0)
    } else if (map->lines == 3) {
        SCATTER_LINES(3, 2)
    } else if (map->tile_bytes > VEC_BYTES) {
        SCATTER_LINES(4, 2)
    } else {
        SCATTER_LINES(4, 1)
    }
#undef SCATTER_LINES
}
