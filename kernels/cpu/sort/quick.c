// SPDX-License-Identifier: MIT
// Sorts of words in vectors, where the processor packs lanes by a mask, and selections,
// elsewhere with vectors of one word.
#include "variants.h"

#define LESS 1
#define LESS_OR_EQUAL 2

#if defined(__AVX512F__)

#define FEW 64 // most words that sort_few() sorts
#define LANES_32 16
#define LANES_64 8
#define COUNT(mask) __builtin_popcount(mask)

typedef uint32_t words32 __attribute__((vector_size(64)));
typedef uint64_t words64 __attribute__((vector_size(64)));
typedef int32_t x86_i32x16 __attribute__((vector_size(64)));
typedef long long x86_i64x8 __attribute__((vector_size(64)));

#define BELOW_32(a, b, or_equal)                                                           \
    ((or_equal) ? (uint16_t)__builtin_ia32_ucmpd512_mask((x86_i32x16)(a), (x86_i32x16)(b), \
                                                         LESS_OR_EQUAL, (uint16_t)-1)      \
                : (uint16_t)__builtin_ia32_ucmpd512_mask((x86_i32x16)(a), (x86_i32x16)(b), \
                                                         LESS, (uint16_t)-1))
#define COMPRESS_32(v, mask)                                                               \
    (words32) __builtin_ia32_compresssi512_mask((x86_i32x16)(v), (x86_i32x16)(v),          \
                                                (uint16_t)(mask))
#define BELOW_64(a, b, or_equal)                                                           \
    ((or_equal) ? (uint8_t)__builtin_ia32_ucmpq512_mask((x86_i64x8)(a), (x86_i64x8)(b),    \
                                                        LESS_OR_EQUAL, (uint8_t)-1)        \
                : (uint8_t)__builtin_ia32_ucmpq512_mask((x86_i64x8)(a), (x86_i64x8)(b),    \
                                                        LESS, (uint8_t)-1))
#define COMPRESS_64(v, mask)                                                               \
    (words64)                                                                              \
        __builtin_ia32_compressdi512_mask((x86_i64x8)(v), (x86_i64x8)(v), (uint8_t)(mask))

#else

#define FEW 8
#define LANES_32 1
#define LANES_64 1
#define COUNT(mask) (mask)

typedef uint32_t words32;
typedef uint64_t words64;

#define BELOW_32(a, b, or_equal) ((uint32_t)((or_equal) ? (a) <= (b) : (a) < (b)))
#define BELOW_64 BELOW_32
#define COMPRESS_32(v, mask) (v)
#define COMPRESS_64 COMPRESS_32

#endif

#define WORD uint32_t
#define SIGNED int32_t
#define BITS 32
#define FLOAT float
#define VECTOR words32
#define LANES LANES_32
#define NAME(word) word##_32
#define BELOW BELOW_32
#define COMPRESS COMPRESS_32
#include "quick.inc.h"
#undef WORD
#undef SIGNED
#undef BITS
#undef FLOAT
#undef VECTOR
#undef LANES
#undef NAME
#undef BELOW
#undef COMPRESS

#define WORD uint64_t
#define SIGNED int64_t
#define BITS 64
#define FLOAT double
#define VECTOR words64
#define LANES LANES_64
#define NAME(word) word##_64
#define BELOW BELOW_64
#define COMPRESS COMPRESS_64
#include "quick.inc.h"

#if defined(__AVX512F__)

#define POSITIONS_BLOCK 256

static bool positions_32(const struct cpu_keys *of, const void *x, uint64_t *items,
                         int64_t n)
{
    uint32_t keys[POSITIONS_BLOCK];
    for (int64_t at = 0; at < n; at += POSITIONS_BLOCK) {
        int64_t count = n - at < POSITIONS_BLOCK ? n - at : POSITIONS_BLOCK;
        if (!keys_32(of, (const uint32_t *)x + at, keys, count))
            return false;
        for (int64_t i = 0; i < count; i++)
            items[at + i] = (uint64_t)keys[i] << 32 | (uint64_t)(at + i);
    }
    return true;
}

#include "spread.inc.h"

#endif

const struct cpu_quick_kernels V(cpu_quick) = {
    .keys_32 = keys_32,
    .keys_64 = keys_64,
    .select_32 = select_32,
    .select_64 = select_64,
    .split_32 = split_32,
    .split_64 = split_64,
#if defined(__AVX512F__)
    .sort_32 = sort_32,
    .sort_64 = sort_64,
    .positions_32 = positions_32,
    .order_32 = order_32,
    .elements_32 = elements_32,
    .elements_64 = elements_64,
#endif
};
