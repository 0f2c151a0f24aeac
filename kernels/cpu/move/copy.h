// SPDX-License-Identifier: MIT
// Copies and transposes.
#ifndef KERNELS_CPU_COPY_H
#define KERNELS_CPU_COPY_H

#include <stdint.h>

// dst[i * dst_stride] = src[i * src_stride] for i in [0, n). Strides in elements; 0 and
// negative ones are fine.
typedef void cpu_copy_fn(void *dst, int64_t dst_stride, const void *src, int64_t src_stride,
                         int64_t n);

// dst[r * columns + c] = src[r]: rows of one element each.
typedef void cpu_spread_fn(void *dst, const void *src, int64_t rows, int64_t columns);

// Copies `bytes` bytes from src to dst past the caches, where the processor can: for large
// results that nobody reads soon. src and dst do not overlap. Other threads see the bytes
// after the thread that wrote them has called the variant's `fence`.
typedef void cpu_stream_fn(void *dst, const void *src, uint64_t bytes);

// dst[c * dst_stride + r] = src[r * src_stride + c]: strides in elements.
typedef void cpu_transpose_fn(void *dst, int64_t dst_stride, const void *src,
                              int64_t src_stride, int64_t rows, int64_t columns);

#endif // KERNELS_CPU_COPY_H
