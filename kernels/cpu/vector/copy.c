// SPDX-License-Identifier: MIT
// Strided copies and blocked transposes, by the size of an element.
#include "variant.h"

#define TILE 16 // elements: a tile of 8-byte elements is 16 cache lines on each side

#define COPIES(T)                                                                          \
    static void copy_##T(void *dst_, int64_t dst_stride, const void *src_,                 \
                         int64_t src_stride, int64_t n)                                    \
    {                                                                                      \
        T *dst = dst_;                                                                     \
        const T *src = src_;                                                               \
        if (dst_stride == 1 && src_stride == 1) {                                          \
            for (int64_t i = 0; i < n; i++)                                                \
                dst[i] = src[i];                                                           \
        } else if (dst_stride == 1 && src_stride == 0) {                                   \
            T value = n > 0 ? *src : 0;                                                    \
            for (int64_t i = 0; i < n; i++)                                                \
                dst[i] = value;                                                            \
        } else if (dst_stride == 1) {                                                      \
            for (int64_t i = 0; i < n; i++)                                                \
                dst[i] = src[i * src_stride];                                              \
        } else {                                                                           \
            for (int64_t i = 0; i < n; i++)                                                \
                dst[i * dst_stride] = src[i * src_stride];                                 \
        }                                                                                  \
    }                                                                                      \
    static void transpose_##T(void *dst_, int64_t dst_stride, const void *src_,            \
                              int64_t src_stride, int64_t rows, int64_t columns)           \
    {                                                                                      \
        T *restrict dst = dst_;                                                            \
        const T *restrict src = src_;                                                      \
        for (int64_t r0 = 0; r0 < rows; r0 += TILE) {                                      \
            int64_t r1 = r0 + TILE < rows ? r0 + TILE : rows;                              \
            for (int64_t c0 = 0; c0 < columns; c0 += TILE) {                               \
                int64_t c1 = c0 + TILE < columns ? c0 + TILE : columns;                    \
                for (int64_t c = c0; c < c1; c++)                                          \
                    for (int64_t r = r0; r < r1; r++)                                      \
                        dst[c * dst_stride + r] = src[r * src_stride + c];                 \
            }                                                                              \
        }                                                                                  \
    }
COPIES(uint8_t)
COPIES(uint16_t)
COPIES(uint32_t)
COPIES(uint64_t)

cpu_copy_fn *const V(cpu_copies)[4] = {copy_uint8_t, copy_uint16_t, copy_uint32_t,
                                       copy_uint64_t};
cpu_transpose_fn *const V(cpu_transposes)[4] = {transpose_uint8_t, transpose_uint16_t,
                                                transpose_uint32_t, transpose_uint64_t};
