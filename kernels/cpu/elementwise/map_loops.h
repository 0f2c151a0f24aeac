// SPDX-License-Identifier: MIT
// The loops of map functions, written as macros.
#ifndef KERNELS_CPU_MAP_LOOPS_H
#define KERNELS_CPU_MAP_LOOPS_H

#include "cpu/elementwise/map.h"
#include "cpu/variant.h"

// Define a cpu_map_fn `name` over elements of type T, with results of type R. `expression`
// reads the operands x and y of one element. MAP1 and MAP2 ignore `scalars`.
#define MAP1(name, T, R, expression)                                                       \
    static void name(void *out_, const void *const *in, int64_t n, uint32_t scalars)       \
    {                                                                                      \
        R *out = out_;                                                                     \
        const T *a = in[0];                                                                \
        (void)scalars;                                                                     \
        VECTORIZE for (int64_t i = 0; i < n; i++)                                          \
        {                                                                                  \
            T x = a[i];                                                                    \
            out[i] = (R)(expression);                                                      \
        }                                                                                  \
    }
#define MAP2(name, T, R, expression)                                                       \
    static void name(void *out_, const void *const *in, int64_t n, uint32_t scalars)       \
    {                                                                                      \
        R *out = out_;                                                                     \
        const T *a = in[0], *b = in[1];                                                    \
        (void)scalars;                                                                     \
        VECTORIZE for (int64_t i = 0; i < n; i++)                                          \
        {                                                                                  \
            T x = a[i], y = b[i];                                                          \
            out[i] = (R)(expression);                                                      \
        }                                                                                  \
    }
// MAP2 for operations that accept `scalars`: a loop for each combination, in which a scalar
// stays in a register.
#define MAP2S(name, T, R, expression)                                                      \
    static void name(void *out_, const void *const *in, int64_t n, uint32_t scalars)       \
    {                                                                                      \
        R *out = out_;                                                                     \
        const T *a = in[0], *b = in[1];                                                    \
        if (scalars == 0) {                                                                \
            VECTORIZE for (int64_t i = 0; i < n; i++)                                      \
            {                                                                              \
                T x = a[i], y = b[i];                                                      \
                out[i] = (R)(expression);                                                  \
            }                                                                              \
        } else if (scalars == 2) {                                                         \
            T y = *b;                                                                      \
            VECTORIZE for (int64_t i = 0; i < n; i++)                                      \
            {                                                                              \
                T x = a[i];                                                                \
                out[i] = (R)(expression);                                                  \
            }                                                                              \
        } else if (scalars == 1) {                                                         \
            T x = *a;                                                                      \
            VECTORIZE for (int64_t i = 0; i < n; i++)                                      \
            {                                                                              \
                T y = b[i];                                                                \
                out[i] = (R)(expression);                                                  \
            }                                                                              \
        } else {                                                                           \
            T x = *a, y = *b;                                                              \
            R result = (R)(expression);                                                    \
            for (int64_t i = 0; i < n; i++)                                                \
                out[i] = result;                                                           \
        }                                                                                  \
    }
// Defines `name` of x and y as `other`, defined by MAP2 or MAP2S, of y and x.
#define MAP2_SWAPPED(name, other)                                                          \
    static void name(void *out, const void *const *in, int64_t n, uint32_t scalars)        \
    {                                                                                      \
        const void *const swapped[] = {in[1], in[0]};                                      \
        other(out, swapped, n, (scalars & 1) << 1 | (scalars >> 1 & 1));                   \
    }
// Defines the cpu_map_fn of SELECT: the second operand where the first, a bool, is true,
// else the third.
#define SELECT(name, T)                                                                    \
    static void name(void *out_, const void *const *in, int64_t n, uint32_t scalars)       \
    {                                                                                      \
        T *out = out_;                                                                     \
        const uint8_t *condition = in[0];                                                  \
        const T *a = in[1], *b = in[2];                                                    \
        (void)scalars;                                                                     \
        VECTORIZE for (int64_t i = 0; i < n; i++)                                          \
        {                                                                                  \
            T x = a[i], y = b[i];                                                          \
            out[i] = condition[i] ? x : y;                                                 \
        }                                                                                  \
    }

#endif // KERNELS_CPU_MAP_LOOPS_H
