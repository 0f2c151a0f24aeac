// SPDX-License-Identifier: MIT
// Strided copies and blocked transposes, by the size of an element.
#include "variants.h"
#include "cpu/x86.h"

// A transpose reads a tile of the source, one cache line of each row, transposes it into a
// buffer, and writes long runs from there. Writing elements straight to their rows would
// touch as many cache lines as there are columns; where rows lie a power of two apart,
// these lines share one set of the cache and evict each other before they are full.
#define TILE_ROWS 64
#define TILE_BYTES 64 // of a row: a cache line

// Vectors of the squares that are transposed in registers: 16 x 16 elements of 8 bits, 8 x
// 8 of 16, 4 x 4 of 32 and 2 x 2 of 64. "Loose" vectors are loaded and stored unaligned.
// Elements of 64 bits may be pairs of 32-bit numbers, with the alignment of these: Fourier
// transforms take rows of real numbers as rows of half as many complex ones.
typedef uint32_t quad32 __attribute__((vector_size(16)));
typedef uint32_t loose_quad32 __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint64_t pair64 __attribute__((vector_size(16)));
typedef uint64_t loose_pair64 __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint64_t loose_uint64 __attribute__((aligned(4), may_alias));

static inline void transpose_square_uint32_t(uint32_t *to, const uint32_t *from,
                                             int64_t stride)
{
    quad32 a = *(const loose_quad32 *)from, b = *(const loose_quad32 *)(from + stride);
    quad32 c = *(const loose_quad32 *)(from + 2 * stride);
    quad32 d = *(const loose_quad32 *)(from + 3 * stride);
    quad32 ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    quad32 cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    quad32 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    quad32 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(loose_quad32 *)to = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(loose_quad32 *)(to + TILE_ROWS) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    *(loose_quad32 *)(to + 2 * TILE_ROWS) =
        __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    *(loose_quad32 *)(to + 3 * TILE_ROWS) =
        __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

static inline void transpose_square_loose_uint64(loose_uint64 *to, const loose_uint64 *from,
                                                 int64_t stride)
{
    pair64 a = *(const loose_pair64 *)from, b = *(const loose_pair64 *)(from + stride);
    *(loose_pair64 *)to = __builtin_shufflevector(a, b, 0, 2);
    *(loose_pair64 *)(to + TILE_ROWS) = __builtin_shufflevector(a, b, 1, 3);
}

// Transposes N x N elements, whose rows are vectors: interleaves rows i and i + N / 2,
// log2(N) times.
#define SQUARE(T, N, LOW, HIGH)                                                            \
    static inline void transpose_square_##T(T *to, const T *from, int64_t stride)          \
    {                                                                                      \
        typedef T row __attribute__((vector_size(16)));                                    \
        typedef T loose_row __attribute__((vector_size(16), aligned(1), may_alias));       \
        row rows[N], turned[N];                                                            \
        for (int i = 0; i < N; i++)                                                        \
            rows[i] = *(const loose_row *)(from + i * stride);                             \
        for (int round = 1; round < N; round *= 2) {                                       \
            for (int i = 0; i < N / 2; i++) {                                              \
                turned[2 * i] = __builtin_shufflevector(rows[i], rows[i + N / 2], LOW);    \
                turned[2 * i + 1] =                                                        \
                    __builtin_shufflevector(rows[i], rows[i + N / 2], HIGH);               \
            }                                                                              \
            memcpy(rows, turned, sizeof(rows));                                            \
        }                                                                                  \
        for (int i = 0; i < N; i++)                                                        \
            *(loose_row *)(to + i * TILE_ROWS) = rows[i];                                  \
    }
#define LOW8 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH8 4, 12, 5, 13, 6, 14, 7, 15
#define LOW16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
SQUARE(uint8_t, 16, LOW16, HIGH16)
SQUARE(uint16_t, 8, LOW8, HIGH8)

static inline void transpose_square_loose_pair64(loose_pair64 *to, const loose_pair64 *from,
                                                 int64_t stride)
{
    (void)stride;
    *to = *from;
}

// Defines for elements of type T: the strided copy; transpose_tile, the transpose of a tile
// into the buffer by squares of SIDE; and the transpose of a matrix by tiles.
#define COPIES(T, SIDE)                                                                    \
    static void copy_##T(void *dst_, int64_t dst_stride, const void *src_,                 \
                         int64_t src_stride, int64_t n)                                    \
    {                                                                                      \
        T *dst = dst_;                                                                     \
        const T *src = src_;                                                               \
        if (dst_stride == 1 && src_stride == 1) {                                          \
            for (int64_t i = 0; i < n; i++)                                                \
                dst[i] = src[i];                                                           \
        } else if (dst_stride == 1 && src_stride == 0) {                                   \
            T value = {0};                                                                 \
            if (n > 0)                                                                     \
                value = *src;                                                              \
            for (int64_t i = 0; i < n; i++)                                                \
                dst[i] = value;                                                            \
        } else if (dst_stride == 1 && src_stride == -1) { /* reversed in vectors */        \
            for (int64_t i = 0; i < n; i++)                                                \
                dst[i] = src[-i];                                                          \
        } else if (dst_stride == 1) {                                                      \
            for (int64_t i = 0; i < n; i++)                                                \
                dst[i] = src[i * src_stride];                                              \
        } else {                                                                           \
            for (int64_t i = 0; i < n; i++)                                                \
                dst[i * dst_stride] = src[i * src_stride];                                 \
        }                                                                                  \
    }                                                                                      \
    static void transpose_tile_##T(T *tile, const T *src, int64_t stride, int64_t rows,    \
                                   int64_t columns)                                        \
    {                                                                                      \
        int64_t r = 0;                                                                     \
        for (; r + SIDE <= rows; r += SIDE) {                                              \
            const T *row = src + r * stride;                                               \
            int64_t c = 0;                                                                 \
            for (; c + SIDE <= columns; c += SIDE)                                         \
                transpose_square_##T(tile + c * TILE_ROWS + r, row + c, stride);           \
            for (; c < columns; c++)                                                       \
                for (int64_t k = 0; k < SIDE; k++)                                         \
                    tile[c * TILE_ROWS + r + k] = row[k * stride + c];                     \
        }                                                                                  \
        for (; r < rows; r++)                                                              \
            for (int64_t c = 0; c < columns; c++)                                          \
                tile[c * TILE_ROWS + r] = src[r * stride + c];                             \
    }                                                                                      \
    static void transpose_##T(void *dst_, int64_t dst_stride, const void *src_,            \
                              int64_t src_stride, int64_t rows, int64_t columns)           \
    {                                                                                      \
        const int64_t width = TILE_BYTES / sizeof(T);                                      \
        _Alignas(TILE_BYTES) T tile[TILE_ROWS * TILE_BYTES / sizeof(T)];                   \
        T *dst = dst_;                                                                     \
        const T *src = src_;                                                               \
        for (int64_t r = 0; r < rows; r += TILE_ROWS) {                                    \
            int64_t m = rows - r < TILE_ROWS ? rows - r : TILE_ROWS;                       \
            for (int64_t c = 0; c < columns; c += width) {                                 \
                int64_t n = columns - c < width ? columns - c : width;                     \
                transpose_tile_##T(tile, src + r * src_stride + c, src_stride, m, n);      \
                for (int64_t k = 0; k < n; k++)                                            \
                    copy_##T(dst + (c + k) * dst_stride + r, 1, tile + k * TILE_ROWS, 1,   \
                             m);                                                           \
            }                                                                              \
        }                                                                                  \
    }                                                                                      \
    static void spread_##T(void *dst_, const void *src_, int64_t rows, int64_t columns)    \
    {                                                                                      \
        T *dst = dst_;                                                                     \
        const T *src = src_;                                                               \
        for (int64_t r = 0; r < rows; r++, dst += columns) {                               \
            T value = src[r];                                                              \
            for (int64_t c = 0; c < columns; c++)                                          \
                dst[c] = value;                                                            \
        }                                                                                  \
    }
COPIES(uint8_t, 16)
COPIES(uint16_t, 8)
COPIES(uint32_t, 4)
COPIES(loose_uint64, 2)
COPIES(loose_pair64, 1)

cpu_copy_fn *const V(cpu_copies)[5] = {copy_uint8_t, copy_uint16_t, copy_uint32_t,
                                       copy_loose_uint64, copy_loose_pair64};
cpu_transpose_fn *const V(cpu_transposes)[5] = {transpose_uint8_t, transpose_uint16_t,
                                                transpose_uint32_t, transpose_loose_uint64,
                                                transpose_loose_pair64};
cpu_spread_fn *const V(cpu_spreads)[5] = {spread_uint8_t, spread_uint16_t, spread_uint32_t,
                                          spread_loose_uint64, spread_loose_pair64};

// --- past the caches -------------------------------------------------------------------

#define LINE 64 // bytes of one write to memory
#ifdef __SSE2__
#define STREAM_LINE(to, from) x86_stream_line(to, from)
#else
#define STREAM_LINE(to, from) memcpy(to, from, LINE)
#endif

void V(cpu_stream)(void *dst, const void *src, uint64_t bytes)
{
    unsigned char *to = dst;
    const unsigned char *from = src;
    uint64_t head = (LINE - (uintptr_t)to % LINE) % LINE;
    if (head > bytes)
        head = bytes;
    memcpy(to, from, head);
    uint64_t at = head;
    for (; at + LINE <= bytes; at += LINE)
        STREAM_LINE(to + at, from + at);
    memcpy(to + at, from + at, bytes - at);
}

void V(cpu_fence)(void)
{
#ifdef __SSE2__
    __builtin_ia32_sfence();
#endif
}
