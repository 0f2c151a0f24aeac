// SPDX-License-Identifier: MIT
// Vectors of the variant's width: LANES numbers of REAL_BYTES each, fused multiply-adds,
// and indices for __builtin_shufflevector, which selects elements of two vectors:
//
//   EVEN, ODD         the first, and the second, of each pair of elements
//   LOW, HIGH         elements of both vectors in turns, of the lower, or the upper, halves
//   REVERSED          the elements of one vector in reverse order
//   PAIRS_LOW, _HIGH  doubles: in turns, the first, or the second, of each 16 bytes
//   LANES_EVEN, _ODD  doubles: every second 16 bytes of one vector, then of the other
//   FOURS_LOW, _HIGH  floats: in turns, of the lower, or the upper, half of each 16 bytes
#ifndef KERNELS_CPU_FFT_VECTORS_H
#define KERNELS_CPU_FFT_VECTORS_H

#include "cpu/variant.h"

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define PAIRS_LOW 0, 8, 2, 10, 4, 12, 6, 14
#define PAIRS_HIGH 1, 9, 3, 11, 5, 13, 7, 15
#define LANES_EVEN 0, 1, 4, 5, 8, 9, 12, 13
#define LANES_ODD 2, 3, 6, 7, 10, 11, 14, 15
#define FOURS_LOW 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define FOURS_HIGH 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#define PAIRS_LOW 0, 4, 2, 6
#define PAIRS_HIGH 1, 5, 3, 7
#define LANES_EVEN 0, 1, 4, 5
#define LANES_ODD 2, 3, 6, 7
#define FOURS_LOW 0, 8, 1, 9, 4, 12, 5, 13
#define FOURS_HIGH 2, 10, 3, 11, 6, 14, 7, 15
#else
#define VECTOR_BYTES 16
#define PAIRS_LOW 0, 2
#define PAIRS_HIGH 1, 3
#define FOURS_LOW 0, 4, 1, 5
#define FOURS_HIGH 2, 6, 3, 7
#endif

#if HAS_FMA && VECTOR_BYTES == 64
#define FMA_F32(a, b, c) __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4)
#define FMA_F64(a, b, c) __builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4)
#elif HAS_FMA && VECTOR_BYTES == 32
#define FMA_F32(a, b, c) __builtin_ia32_vfmaddps256(a, b, c)
#define FMA_F64(a, b, c) __builtin_ia32_vfmaddpd256(a, b, c)
#else
#define FMA_F32(a, b, c) ((a) * (b) + (c))
#define FMA_F64(a, b, c) ((a) * (b) + (c))
#endif

#define LANES (VECTOR_BYTES / REAL_BYTES)
#if VECTOR_BYTES / REAL_BYTES == 16
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define REVERSED 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0
#elif VECTOR_BYTES / REAL_BYTES == 8
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
#define LOW 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15
#define REVERSED 7, 6, 5, 4, 3, 2, 1, 0
#elif VECTOR_BYTES / REAL_BYTES == 4
#define EVEN 0, 2, 4, 6
#define ODD 1, 3, 5, 7
#define LOW 0, 4, 1, 5
#define HIGH 2, 6, 3, 7
#define REVERSED 3, 2, 1, 0
#else
#define EVEN 0, 2
#define ODD 1, 3
#define LOW 0, 2
#define HIGH 1, 3
#define REVERSED 1, 0
#endif

#endif // KERNELS_CPU_FFT_VECTORS_H
