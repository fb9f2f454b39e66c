/*
 * lanes.h - lane-wise arithmetic that the compiler knows for every instruction set
 *
 * SPDX-License-Identifier: MIT
 *
 * Included by the file of an instruction set, which defines before it
 *
 *   VEC_BYTES  the width of a vector, and
 *   vec        its type.
 *
 * A vec has no element type: u8_, u16_, u32_, u64_ say how a function sees it.
 * What C's operators on vectors cannot say (saturation, high halves of products,
 * minima, packing) is in the file of the instruction set.
 */
#ifndef VEC_BYTES
#error "define VEC_BYTES and vec first"
#endif

#define LANES static inline __attribute__((always_inline))

typedef uint8_t vec_u8 __attribute__((vector_size(VEC_BYTES)));
typedef uint16_t vec_u16 __attribute__((vector_size(VEC_BYTES)));
typedef uint32_t vec_u32 __attribute__((vector_size(VEC_BYTES)));
typedef uint64_t vec_u64 __attribute__((vector_size(VEC_BYTES)));
typedef float vec_f32 __attribute__((vector_size(VEC_BYTES)));
typedef double vec_f64 __attribute__((vector_size(VEC_BYTES)));

enum { LANES_16 = VEC_BYTES / 2, LANES_32 = VEC_BYTES / 4, LANES_64 = VEC_BYTES / 8 };

/* 32-bit elements in 16-bit lanes: the high and the low half of each, in the
 * order that is cheapest for the instruction set (vec_unsplit undoes it). */
struct halves {
    vec high, low;
};

LANES vec vec_load(const void *p)
{
    vec v;
    memcpy(&v, p, sizeof(v));
    return v;
}

LANES void vec_store(void *p, vec v)
{
    memcpy(p, &v, sizeof(v));
}

/* Bytes that make an ordinary number of every format: 0.75 as f32, 1.8 as f16, ... */
enum { FILL_BYTE = 0x3f };

#ifndef VEC_HAS_MASKED_MEMORY
/*
 * Parts of vectors go by loads and stores of sizes that the compiler knows, which overlap.  Calls
 * of memcpy, and a load of what several smaller stores had written, which waits for these to
 * leave the store buffer, made 16 f32 to bf16 take 55 ns with AVX2 instead of 21.
 */

/* `bytes` in a word, by their first and their last `size`, which together are all. */
LANES uint64_t load_ends(const char *p, size_t bytes, size_t size)
{
    const size_t last = bytes - size;
    return bits_load(p, size) | bits_load(p + last, size) << 8 * last;
}

/* The first `bytes`, 1 to 7; those above them are 0. */
LANES uint64_t load_word_part(const char *p, size_t bytes)
{
    if (bytes >= 4)
        return load_ends(p, bytes, 4);
    if (bytes >= 2)
        return load_ends(p, bytes, 2);
    return bits_load(p, 1);
}

/* Word i of `bytes`, the rest of which is FILL_BYTE. */
LANES uint64_t load_word(const char *p, size_t bytes, size_t i)
{
    const size_t before = i * sizeof(uint64_t);
    if (bytes >= before + sizeof(uint64_t))
        return bits_load(p + before, sizeof(uint64_t));
    const uint64_t fill = UINT64_C(0x0101010101010101) * FILL_BYTE;
    const size_t part = bytes > before ? bytes - before : 0;
    return part > 0 ? load_word_part(p + before, part) | fill << 8 * part : fill;
}

/* The first `bytes`, at most a vector; the rest is FILL_BYTE. */
LANES vec vec_load_part(const char *p, size_t bytes)
{
    if (bytes >= VEC_BYTES)
        return vec_load(p);
#if VEC_BYTES == 16
    return (vec)(vec_u64){load_word(p, bytes, 0), load_word(p, bytes, 1)};
#else
    return (vec)(vec_u64){load_word(p, bytes, 0), load_word(p, bytes, 1), load_word(p, bytes, 2),
                          load_word(p, bytes, 3)};
#endif
}

/* `bytes`, by their first and their last `size`. */
LANES void copy_ends(char *dst, const char *src, size_t bytes, size_t size)
{
    memcpy(dst, src, size);
    memcpy(dst + bytes - size, src + bytes - size, size);
}

/* The first `bytes`, at most a vector. */
LANES void vec_store_part(char *p, vec v, size_t bytes)
{
    if (bytes >= VEC_BYTES) {
        vec_store(p, v);
        return;
    }
    char all[VEC_BYTES];
    vec_store(all, v);
    for (size_t size = VEC_BYTES / 2; size > 0; size /= 2)
        if (bytes >= size) {
            copy_ends(p, all, bytes, size);
            return;
        }
}
#endif

LANES vec vec_and(vec a, vec b)
{
    return (vec)((vec_u64)a & (vec_u64)b);
}

LANES vec vec_or(vec a, vec b)
{
    return (vec)((vec_u64)a | (vec_u64)b);
}

LANES vec vec_xor(vec a, vec b)
{
    return (vec)((vec_u64)a ^ (vec_u64)b);
}

/* a where the bit of `bits` is clear */
LANES vec vec_clear(vec a, vec bits)
{
    return (vec)((vec_u64)a & ~(vec_u64)bits);
}

#ifndef VEC_HAS_TERNARY_LOGIC
/* a where the bit of `bits` is set, else b */
LANES vec vec_merge(vec bits, vec a, vec b)
{
    return vec_or(vec_and(a, bits), vec_clear(b, bits));
}

/* a | (b & mask) */
LANES vec vec_or_and(vec a, vec b, vec mask)
{
    return vec_or(a, vec_and(b, mask));
}
#endif

#define DEFINE_LANES(u, type)                   \
    LANES vec u##_set(type value)               \
    {                                           \
        return (vec)(value - (vec_##u){0});     \
    }                                           \
    LANES vec u##_add(vec a, vec b)             \
    {                                           \
        return (vec)((vec_##u)a + (vec_##u)b);  \
    }                                           \
    LANES vec u##_sub(vec a, vec b)             \
    {                                           \
        return (vec)((vec_##u)a - (vec_##u)b);  \
    }                                           \
    LANES vec u##_shift_left(vec a, int count)  \
    {                                           \
        return (vec)((vec_##u)a << count);      \
    }                                           \
    LANES vec u##_shift_right(vec a, int count) \
    {                                           \
        return (vec)((vec_##u)a >> count);      \
    }

DEFINE_LANES(u16, uint16_t)
DEFINE_LANES(u32, uint32_t)
DEFINE_LANES(u64, uint64_t)
DEFINE_LANES(u8, uint8_t)

#undef DEFINE_LANES

/* For exact products of numbers that are not subnormal: no flag, in any mode. */
LANES vec f32_multiply(vec a, vec b)
{
    return (vec)((vec_f32)a * (vec_f32)b);
}

/* By the caller's rounding mode. */
LANES vec f32_add(vec a, vec b)
{
    return (vec)((vec_f32)a + (vec_f32)b);
}

LANES vec f64_add(vec a, vec b)
{
    return (vec)((vec_f64)a + (vec_f64)b);
}

/* As f32_multiply. */
LANES vec f64_multiply(vec a, vec b)
{
    return (vec)((vec_f64)a * (vec_f64)b);
}
