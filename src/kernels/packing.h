/*
 * packing.h - codes of 4 and 6 bits, one to a byte, to and from packed bytes
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by the file of each instruction set and by portable.c: plain loops,
 * that the compiler turns into the vector instructions of the file.
 */

#ifdef VEC_HAS_PACK
/* What a vector of codes is packed to. */
enum { PACK_4_BYTES = VEC_BYTES / 2, PACK_6_BYTES = VEC_BYTES / 8 * 6 };
#endif

static void pack_4(void *restrict dst, const void *restrict src, size_t n)
{
    const uint8_t *restrict in = src;
    uint8_t *restrict out = dst;
#ifdef VEC_HAS_PACK
    for (; n >= VEC_BYTES; n -= VEC_BYTES) {
        vec_store_part(out, vec_pack_4(vec_load(in)), PACK_4_BYTES);
        in += VEC_BYTES;
        out += PACK_4_BYTES;
    }
#endif
    for (size_t i = 0; i < n / 2; i++)
        out[i] = (uint8_t)((in[2 * i] & 0x0f) | in[2 * i + 1] << 4);
    if (n % 2)
        out[n / 2] = in[n - 1] & 0x0f;
}

static void unpack_4(void *restrict dst, const void *restrict src, size_t n)
{
    const uint8_t *restrict in = src;
    uint8_t *restrict out = dst;
    for (size_t i = 0; i < n / 2; i++) {
        out[2 * i] = in[i] & 0x0f;
        out[2 * i + 1] = in[i] >> 4;
    }
    if (n % 2)
        out[n - 1] = in[n / 2] & 0x0f;
}

/*
 * Six bits: eight codes are a 64-bit number, whose bits move together in three
 * steps, to 12, 24 and 48 side by side.  A tile of such numbers is done in vector
 * lanes; stores of eight bytes six apart then overlap, in increasing order.
 */
enum { SIX_TILE = 16, SIX_TILE_CODES = 8 * SIX_TILE, SIX_TILE_BYTES = 6 * SIX_TILE };

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define LITTLE_ENDIAN_64(x) __builtin_bswap64(x)
#else
#define LITTLE_ENDIAN_64(x) (x)
#endif

/* `out` has room for two bytes more. */
static inline void pack_6_tile(uint8_t *restrict out, const uint8_t *restrict in)
{
    uint64_t tile[SIX_TILE];
    memcpy(tile, in, sizeof(tile));
    for (int i = 0; i < SIX_TILE; i++) {
        uint64_t x = LITTLE_ENDIAN_64(tile[i]) & UINT64_C(0x3f3f3f3f3f3f3f3f);
        x = (x & UINT64_C(0x003f003f003f003f)) | (x >> 2 & UINT64_C(0x0fc00fc00fc00fc0));
        x = (x & UINT64_C(0x00000fff00000fff)) | (x >> 4 & UINT64_C(0x00fff00000fff000));
        tile[i] = LITTLE_ENDIAN_64((x & 0xffffff) | (x >> 8 & UINT64_C(0xffffff000000)));
    }
    for (int i = 0; i < SIX_TILE; i++)
        memcpy(out + 6 * i, &tile[i], sizeof(tile[i]));
}

/* Two bytes after the packed ones are read too. */
static inline void unpack_6_tile(uint8_t *restrict out, const uint8_t *restrict in)
{
    uint64_t tile[SIX_TILE];
    for (int i = 0; i < SIX_TILE; i++)
        memcpy(&tile[i], in + 6 * i, sizeof(tile[i]));
    for (int i = 0; i < SIX_TILE; i++) {
        uint64_t x = LITTLE_ENDIAN_64(tile[i]);
        x = (x & 0xffffff) | (x << 8 & UINT64_C(0x00ffffff00000000));
        x = (x & UINT64_C(0x00000fff00000fff)) | (x << 4 & UINT64_C(0x0fff00000fff0000));
        x = (x & UINT64_C(0x003f003f003f003f)) | (x << 2 & UINT64_C(0x3f003f003f003f00));
        tile[i] = LITTLE_ENDIAN_64(x);
    }
    memcpy(out, tile, sizeof(tile));
}

/* A tile that two more bytes do not follow goes through buffers, with zeros
 * after its codes. */
static void pack_6(void *restrict dst, const void *restrict src, size_t n)
{
    const uint8_t *restrict in = src;
    uint8_t *restrict out = dst;
#ifdef VEC_HAS_PACK
    for (; n >= VEC_BYTES; n -= VEC_BYTES) {
        vec_store_part(out, vec_pack_6(vec_load(in)), PACK_6_BYTES);
        in += VEC_BYTES;
        out += PACK_6_BYTES;
    }
#endif
    for (; n >= SIX_TILE_CODES + 2; n -= SIX_TILE_CODES) {
        pack_6_tile(out, in);
        in += SIX_TILE_CODES;
        out += SIX_TILE_BYTES;
    }
    while (n > 0) {
        uint8_t codes[SIX_TILE_CODES] = {0}, packed[SIX_TILE_BYTES + 2];
        const size_t count = n < SIX_TILE_CODES ? n : SIX_TILE_CODES;
        memcpy(codes, in, count);
        pack_6_tile(packed, codes);
        memcpy(out, packed, (6 * count + 7) / 8);
        in += count;
        out += SIX_TILE_BYTES;
        n -= count;
    }
}

static void unpack_6(void *restrict dst, const void *restrict src, size_t n)
{
    const uint8_t *restrict in = src;
    uint8_t *restrict out = dst;
#ifdef VEC_HAS_PACK
    for (; n >= VEC_BYTES; n -= VEC_BYTES) {
        vec_store(out, vec_unpack_6(vec_load_part(in, PACK_6_BYTES)));
        in += PACK_6_BYTES;
        out += VEC_BYTES;
    }
#endif
    for (; n >= SIX_TILE_CODES + 2; n -= SIX_TILE_CODES) {
        unpack_6_tile(out, in);
        in += SIX_TILE_BYTES;
        out += SIX_TILE_CODES;
    }
    while (n > 0) {
        uint8_t codes[SIX_TILE_CODES], packed[SIX_TILE_BYTES + 2] = {0};
        const size_t count = n < SIX_TILE_CODES ? n : SIX_TILE_CODES;
        memcpy(packed, in, (6 * count + 7) / 8);
        unpack_6_tile(codes, packed);
        memcpy(out, codes, count);
        in += SIX_TILE_BYTES;
        out += count;
        n -= count;
    }
}

#undef LITTLE_ENDIAN_64
