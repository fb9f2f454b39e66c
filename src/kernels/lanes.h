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
/* The first `bytes`, at most a vector; the rest is FILL_BYTE. */
LANES vec vec_load_part(const void *p, size_t bytes)
{
    vec v;
    memset(&v, FILL_BYTE, sizeof(v));
    memcpy(&v, p, bytes);
    return v;
}

LANES void vec_store_part(void *p, vec v, size_t bytes)
{
    memcpy(p, &v, bytes);
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
