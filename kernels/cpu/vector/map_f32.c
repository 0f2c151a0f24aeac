// SPDX-License-Identifier: MIT
// Operations on f32. Definitions for map_float.inc.h, and the functions that are fast for
// common operands only.
#include <math.h>
#include <tenon/ops/program.h>
#include "variant.h"
#include "math_f32.h"
#include "math_wide.h"

#define T float
#define N f32
#define JOIN VC(join_complex64)
#define M(function) function##f
#define CALL1(name, x) v_##name(x)
#define CALL2(name, x, y) v_##name(x, y)

// Elements of a block, for which one test decides how they are computed.
#define RARE_BLOCK 256

// Define a cpu_map_fn that computes `expression` for elements for which `common` holds, and
// `rare` for the others. A block in which `common` holds for all elements is a vector loop;
// other blocks choose for each element. Both ways give the same bits for an element, so its
// result does not depend on its neighbours.
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
        T left[RARE_BLOCK], right[RARE_BLOCK];                                             \
        for (int64_t at = 0; at < n; at += RARE_BLOCK) {                                   \
            T *out = (T *)out_ + at;                                                       \
            int64_t count = n - at < RARE_BLOCK ? n - at : RARE_BLOCK;                     \
            const T *a = spread(left, (const T *)in[0] + at * da, da, count);              \
            const T *b = spread(right, (const T *)in[1] + at * db, db, count);             \
            int32_t all = 1;                                                               \
            for (int64_t i = 0; i < count; i++) {                                          \
                T x = a[i], y = b[i];                                                      \
                all &= (common);                                                           \
            }                                                                              \
            if (all) {                                                                     \
                VECTORIZE for (int64_t i = 0; i < count; i++)                              \
                {                                                                          \
                    T x = a[i], y = b[i];                                                  \
                    out[i] = (T)(expression);                                              \
                }                                                                          \
                continue;                                                                  \
            }                                                                              \
            for (int64_t i = 0; i < count; i++) {                                          \
                T x = a[i], y = b[i];                                                      \
                out[i] = (common) ? (T)(expression) : (rare);                              \
            }                                                                              \
        }                                                                                  \
    }

// An operand of n elements: x itself, or, for a scalar (step 0), n copies of it in `room`.
static const T *spread(T *room, const T *x, int64_t step, int64_t n)
{
    if (step)
        return x;
    for (int64_t i = 0; i < n; i++)
        room[i] = *x;
    return room;
}

MAP1_RARE(SIN_f32, fabsf(x) <= (T)WIDE_ANGLE, wide_sin((double)x), sinf(x))
MAP1_RARE(COS_f32, fabsf(x) <= (T)WIDE_ANGLE, wide_cos((double)x), cosf(x))
MAP1_RARE(TAN_f32, fabsf(x) <= (T)WIDE_ANGLE, wide_tan((double)x), tanf(x))
MAP2_RARE(MOD_f32, mod_is_common((double)x, (double)y), wide_mod((double)x, (double)y),
          (T)tn_float_remainder((double)x, (double)y))
MAP2_RARE(POW_f32, pow_is_common((double)x, (double)y), wide_pow((double)x, (double)y),
          x == 1 || y == 0 ? 1 : powf(x, y)) // 1 beside a signalling NaN too

#include "map_float.inc.h"
