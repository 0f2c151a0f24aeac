// SPDX-License-Identifier: MIT
// Loops over elements of type T that are fast for common operands only. The file that
// includes this defines T and WORD, an integer type of T's size.

// Elements of a block, for all of which one test decides how they are computed.
#define RARE_BLOCK 256
#include "map_groups.inc.h"

// Define a cpu_map_fn that computes `expression` for elements for which `common` holds, and
// `rare` for the others. A block in which `common` holds for all elements is a vector loop;
// other blocks choose for each element (MAP2_RARE behind that loop, so that a division is
// made once). Both formulas give the same bits for an element for which both hold, so its
// result does not depend on the other elements of its block.
#define MAP1_RARE(name, common, expression, rare)                                          \
    static void name(void *out_, const void *const *in, int64_t n, uint32_t scalars)       \
    {                                                                                      \
        (void)scalars;                                                                     \
        for (int64_t at = 0; at < n; at += RARE_BLOCK) {                                   \
            T *out = (T *)out_ + at;                                                       \
            const T *a = (const T *)in[0] + at;                                            \
            int64_t count = n - at < RARE_BLOCK ? n - at : RARE_BLOCK;                     \
            int32_t all = 1;                                                               \
            for (int64_t i = 0; i < count; i++) {                                          \
                T x = a[i];                                                                \
                all &= (common);                                                           \
            }                                                                              \
            if (all) {                                                                     \
                VECTORIZE for (int64_t i = 0; i < count; i++)                              \
                {                                                                          \
                    T x = a[i];                                                            \
                    out[i] = (T)(expression);                                              \
                }                                                                          \
                continue;                                                                  \
            }                                                                              \
            for (int64_t i = 0; i < count; i++) {                                          \
                T x = a[i];                                                                \
                out[i] = (common) ? (T)(expression) : (rare);                              \
            }                                                                              \
        }                                                                                  \
    }
#define MAP2_RARE(name, common, expression, rare)                                          \
    static void name(void *out_, const void *const *in, int64_t n, uint32_t scalars)       \
    {                                                                                      \
        int64_t da = scalars & 1 ? 0 : 1, db = scalars & 2 ? 0 : 1;                        \
        T left[RARE_BLOCK], right[RARE_BLOCK], result[RARE_BLOCK];                         \
        for (int64_t at = 0; at < n; at += RARE_BLOCK) {                                   \
            T *out = (T *)out_ + at;                                                       \
            int64_t count = n - at < RARE_BLOCK ? n - at : RARE_BLOCK;                     \
            const T *a = spread(left, (const T *)in[0] + at * da, da, count);              \
            const T *b = spread(right, (const T *)in[1] + at * db, db, count);             \
            int32_t all = 1;                                                               \
            VECTORIZE for (int64_t i = 0; i < count; i++)                                  \
            {                                                                              \
                T x = a[i], y = b[i];                                                      \
                all &= (common);                                                           \
                result[i] = (T)(expression);                                               \
            }                                                                              \
            for (int64_t i = 0; !all && i < count; i++) {                                  \
                T x = a[i], y = b[i];                                                      \
                result[i] = (common) ? result[i] : (rare);                                 \
            }                                                                              \
            memcpy(out, result, (size_t)count * sizeof(T)); /* out may be a or b */        \
        }                                                                                  \
    }

// The value that <tenon/ops/program.h> defines.
#define CALL_DEFINED(name, dtype, x, y)                                                    \
    (T) tn_float_operation(TN_EXPR_##name, dtype, (double)x, (double)y)

// An operand of n elements: x itself, or, for a scalar (step 0), n copies of it in `room`.
static const T *spread(T *room, const T *x, int64_t step, int64_t n)
{
    if (step)
        return x;
    for (int64_t i = 0; i < n; i++)
        room[i] = *x;
    return room;
}
