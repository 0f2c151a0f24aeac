// SPDX-License-Identifier: MIT
// Vectors of floats of the width that a variant has.
#ifndef KERNELS_CPU_LANES_H
#define KERNELS_CPU_LANES_H

#include "cpu/x86.h"

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif

#define INLINE static inline __attribute__((always_inline))
typedef float vector __attribute__((vector_size(4 * LANES)));
typedef float loose __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

#endif // KERNELS_CPU_LANES_H
