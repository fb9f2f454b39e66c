/*
 * records.h - elements out of records and into them
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by the file of an instruction set that has masked accesses and permutes the
 * bytes of a vector, which is as large as a cache line.
 */
#define VEC_HAS_RECORDS

static void map_gather(struct fp_gather_map *map, size_t stride, size_t size)
{
    size_t elements = 1;
    while (2 * elements <= 1 + (VEC_BYTES - size) / stride)
        elements *= 2;
    const size_t part = elements * size;
    *map = (struct fp_gather_map){stride, size, elements, 0, {0}};
    for (size_t i = 0; i < elements; i++)
        for (size_t byte = 0; byte < size; byte++)
            map->order[i * size + byte] = (uint8_t)(i * stride + byte);
    for (size_t filled = part; filled < VEC_BYTES; filled *= 2)
        memcpy(map->order + filled, map->order, filled);
    for (size_t i = 0; i < elements; i++)
        map->bytes |= first_bytes(size) << i * stride;
}

/*
 * Windows that fill a vector of the tile, or four of them, are put together in a register:
 * a store for each would take longer than the rest (16,384 elements of 4 bytes out of
 * records of 16 take 0.15 ns each instead of 0.30).
 */
LANES size_t gather_windows(char *tile, const char *records, const struct fp_gather_map *map,
                            size_t n, const size_t windows)
{
    const vec order = vec_load(map->order);
    const __mmask64 bytes = map->bytes;
    const size_t window = map->elements * map->stride, part = map->elements * map->size;
    /* parts of 32 bytes, the largest, are two */
    const __mmask64 second = first_bytes(part) << part;
    const __mmask64 third = second << part % 32, fourth = third << part % 32;
    for (; n >= windows * map->elements; n -= windows * map->elements) {
        vec v = _mm512_permutexvar_epi8(order, _mm512_maskz_loadu_epi8(bytes, records));
        v = _mm512_mask_permutexvar_epi8(v, second, order,
                                         _mm512_maskz_loadu_epi8(bytes, records + window));
        if (windows == 4) {
            v = _mm512_mask_permutexvar_epi8(v, third, order,
                                             _mm512_maskz_loadu_epi8(bytes, records + 2 * window));
            v = _mm512_mask_permutexvar_epi8(v, fourth, order,
                                             _mm512_maskz_loadu_epi8(bytes, records + 3 * window));
        }
        vec_store(tile, v); /* what follows is written over */
        records += windows * window;
        tile += windows * part;
    }
    return n;
}

static void gather(void *restrict tile, const void *restrict records,
                   const struct fp_gather_map *map, size_t n)
{
    const size_t part = map->elements * map->size;
    const size_t left = 4 * part <= VEC_BYTES ? gather_windows(tile, records, map, n, 4)
                                              : gather_windows(tile, records, map, n, 2);
    char *to = (char *)tile + (n - left) * map->size;
    const char *from = (const char *)records + (n - left) * map->stride;
    const vec order = vec_load(map->order);
    for (size_t i = 0; i < left; i += map->elements) {
        const size_t extent = (left - 1 - i) * map->stride + map->size;
        const __mmask64 bytes = map->bytes & first_bytes(extent < VEC_BYTES ? extent : VEC_BYTES);
        const vec window = _mm512_maskz_loadu_epi8(bytes, from + i * map->stride);
        vec_store(to + i * map->size, _mm512_permutexvar_epi8(order, window));
    }
}

/* A line that begins with a certain byte of a record: where each byte of the elements lies
 * behind the first that is in it; and which are theirs. */
LANES uint64_t map_line(uint8_t order[VEC_BYTES], size_t first, size_t stride, size_t size)
{
    static const uint8_t places[VEC_BYTES] = {SIXTEEN(0, 1), SIXTEEN(16, 1), SIXTEEN(32, 1),
                                              SIXTEEN(48, 1)};
    vec byte = _mm512_add_epi8(vec_load(places), u8_set((uint8_t)first));
    vec in_tile = u8_set(0);
    for (size_t records = VEC_BYTES / 2; records > 0; records /= 2)
        if (records * stride <= UINT8_MAX) {
            const vec bytes = u8_set((uint8_t)(records * stride));
            const __mmask64 behind = _mm512_cmpge_epu8_mask(byte, bytes);
            byte = _mm512_mask_sub_epi8(byte, behind, byte, bytes);
            in_tile =
                _mm512_mask_add_epi8(in_tile, behind, in_tile, u8_set((uint8_t)(records * size)));
        }
    in_tile = _mm512_add_epi8(in_tile, u8_min(byte, u8_set((uint8_t)size)));
    vec_store(order, _mm512_sub_epi8(in_tile, u8_set((uint8_t)(first < size ? first : size))));
    return _mm512_cmplt_epu8_mask(byte, u8_set((uint8_t)size));
}

/* For as many lines as it takes until the elements lie as in the first one. */
static void map_scatter(struct fp_scatter_map *map, const void *records, size_t stride, size_t size)
{
    map->stride = stride;
    map->size = size;
    map->lines = fp_record_lines(stride);
    map->tile_bytes = map->lines * VEC_BYTES / stride * size;

    /* the first line, as if there were elements before the first one */
    const size_t start = (uintptr_t)records % VEC_BYTES;
    size_t byte = (stride - start % stride) % stride;
    ptrdiff_t in_tile =
        (ptrdiff_t)(byte < size ? byte : size) - (ptrdiff_t)((start + byte) / stride * size);
    for (size_t i = 0; i < map->lines; i++) {
        map->line[i].in_tile = in_tile;
        map->line[i].bytes = map_line(map->order[i], byte, stride, size);
        in_tile += __builtin_popcountll(map->line[i].bytes);
        byte = (byte + VEC_BYTES) % stride;
    }
}

/* The lines of a period, of which what is within [start, end) is stored. */
LANES void scatter_part(char *line, const char *tile, const struct fp_scatter_map *map,
                        size_t start, size_t end, ptrdiff_t ahead)
{
    for (size_t i = 0, at = 0; i < map->lines && at < end; i++, at += VEC_BYTES) {
        __mmask64 bytes = map->line[i].bytes;
        if (at < start)
            bytes &= ~UINT64_C(0) << start;
        if (end - at < VEC_BYTES)
            bytes &= first_bytes(end - at);
        const vec v =
            _mm512_permutexvar_epi8(vec_load(map->order[i]), vec_load(tile + map->line[i].in_tile));
        __builtin_prefetch(line + at + ahead, 1);
        _mm512_mask_storeu_epi8(line + at, bytes, v);
    }
}

/* Whole periods, with the map in registers. */
LANES void scatter_periods(char *line, const char *tile, const struct fp_scatter_map *map,
                           size_t periods, const size_t lines, ptrdiff_t ahead)
{
    /* by value: the stores might be to the map */
    vec order[FP_RECORD_LINES_MAX];
    __mmask64 bytes[FP_RECORD_LINES_MAX];
    const char *from[FP_RECORD_LINES_MAX];
    for (size_t i = 0; i < lines; i++) {
        order[i] = vec_load(map->order[i]);
        bytes[i] = map->line[i].bytes;
        from[i] = tile + map->line[i].in_tile;
    }
    const size_t tile_bytes = map->tile_bytes;
    for (size_t at = 0; periods > 0; periods--, at += tile_bytes)
        for (size_t i = 0; i < lines; i++, line += VEC_BYTES) {
            const vec v = _mm512_permutexvar_epi8(order[i], vec_load(from[i] + at));
            __builtin_prefetch(line + ahead, 1);
            _mm512_mask_storeu_epi8(line, bytes[i], v);
        }
}

/*
 * Whole lines, each stored once: a store that crosses lines takes two turns in the cache.
 * 16,384 elements of 4 bytes into records of 16 that begin 4 bytes behind a line take 0.4
 * ns each instead of 0.65 (Sapphire Rapids, L2 cache).
 */
static void scatter(void *restrict records, const void *restrict tile,
                    const struct fp_scatter_map *map, size_t n, ptrdiff_t ahead)
{
    const size_t start = (uintptr_t)records % VEC_BYTES, period = map->lines * VEC_BYTES;
    char *line = (char *)records - start;
    const char *from = tile;
    size_t left = start + n * map->stride; /* bytes */
    if (start > 0) {
        scatter_part(line, from, map, start, left, ahead);
        line += period;
        from += map->tile_bytes;
        left -= period < left ? period : left;
    }
    const size_t periods = left / period;
    if (map->lines == 1)
        scatter_periods(line, from, map, periods, 1, ahead);
    else
        scatter_periods(line, from, map, periods, FP_RECORD_LINES_MAX, ahead);
    scatter_part(line + periods * period, from + periods * map->tile_bytes, map, 0,
                 left - periods * period, ahead);
}
