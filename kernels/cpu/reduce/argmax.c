// SPDX-License-Identifier: MIT
// Positions of the greatest or the least element of a row, or of each column: of the first
// one if several are equal, and of the first NaN if any element is NaN.
#include <math.h>
#include "variants.h"

// Longest row for which one pass is faster than a reduction in parts and a search.
#define SHORT_ROW 64
#define FIND_BLOCK 64
// A row is read once, in parts that stay in the first-level cache: the best element of each
// part is found, then the first part that has the best of all is searched for its position.
#define PART_BYTES 8192

#define NEVER(x) 0
#define IS_NAN(x) ((x) != (x))

// Defines the search for the first element for which `condition` holds, which must exist.
// I: the unsigned integer of T's size.
#define FIND(name, T, I, condition)                                                        \
    static int64_t name(const T *x, int64_t n, T best)                                     \
    {                                                                                      \
        int64_t i = 0;                                                                     \
        (void)best;                                                                        \
        for (; i + FIND_BLOCK <= n; i += FIND_BLOCK) {                                     \
            I found = 0;                                                                   \
            for (int64_t k = i; k < i + FIND_BLOCK; k++)                                   \
                found |= (I)(condition(x[k], best));                                       \
            if (found)                                                                     \
                break;                                                                     \
        }                                                                                  \
        while (i < n - 1 && !(condition(x[i], best)))                                      \
            i++;                                                                           \
        return i;                                                                          \
    }
#define IS_BEST(x, best) ((x) == (best))
#define IS_ANY_NAN(x, best) ((x) != (x))

// Defines end##_row. `beats` compares as the reduction KIND does, whose accumulator is
// `member`, of type A and initially `start`. No element beats `last`.
#define ROW(end, name, DTYPE, T, A, member, KIND, beats, start, last, is_nan)              \
    static int64_t end##_row##name(const void *x_, int64_t n)                              \
    {                                                                                      \
        enum { PART = PART_BYTES / sizeof(T) };                                            \
        cpu_reduce_row_fn *reduce = V(cpu_reductions).row[KIND][DTYPE];                    \
        const T *x = x_;                                                                   \
        A best = 0;                                                                        \
        int64_t part = 0;                                                                  \
        if (x[0] == last || is_nan(x[0]))                                                  \
            return 0;                                                                      \
        if (n <= SHORT_ROW)                                                                \
            return end##_short##name(x, n);                                                \
        for (int64_t i = 0; i < n; i += PART) {                                            \
            union cpu_accumulator acc = {.member = start};                                 \
            reduce(&acc, x + i, n - i < PART ? n - i : PART);                              \
            A top = (A)acc.member;                                                         \
            if (i == 0 || top beats best || is_nan(top)) {                                 \
                best = top;                                                                \
                part = i;                                                                  \
            }                                                                              \
            if (best == last || is_nan(best))                                              \
                break;                                                                     \
        }                                                                                  \
        return part + find##name(x + part, n - part < PART ? n - part : PART, (T)best);    \
    }

#define SHORT_INTEGERS(end, name, T, beats)                                                \
    static int64_t end##_short##name(const T *x, int64_t n)                                \
    {                                                                                      \
        int64_t at = 0;                                                                    \
        T best = x[0];                                                                     \
        for (int64_t i = 1; i < n; i++) {                                                  \
            bool better = x[i] beats best;                                                 \
            best = better ? x[i] : best;                                                   \
            at = better ? i : at;                                                          \
        }                                                                                  \
        return at;                                                                         \
    }
// For floats the loop has no index, which would need a branch for each element; the
// position is searched afterwards.
#define SHORT_FLOATS(end, name, T, beats)                                                  \
    static int64_t end##_short##name(const T *x, int64_t n)                                \
    {                                                                                      \
        T best = x[0];                                                                     \
        bool nan = false;                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                  \
            best = x[i] beats best ? x[i] : best;                                          \
            nan |= IS_NAN(x[i]);                                                           \
        }                                                                                  \
        return find##name(x, n, nan ? (T)NAN : best);                                      \
    }

#define COLUMNS(end, name, T, beats, is_nan)                                               \
    static void end##_columns##name(void *best_, int32_t *at, const void *x_,              \
                                    int32_t first, int32_t rows, int64_t columns,          \
                                    int64_t stride)                                        \
    {                                                                                      \
        const T *x = x_;                                                                   \
        T *best = best_;                                                                   \
        for (int64_t k = 0; k < columns && first == 0; k++) {                              \
            best[k] = x[k];                                                                \
            at[k] = 0;                                                                     \
        }                                                                                  \
        for (int32_t r = first == 0; r < rows; r++) {                                      \
            const T *row = x + r * stride;                                                 \
            VECTORIZE for (int64_t k = 0; k < columns; k++)                                \
            {                                                                              \
                T a = best[k], b = row[k];                                                 \
                int32_t better = (b beats a) | (is_nan(b) & !is_nan(a));                   \
                best[k] = better ? b : a;                                                  \
                at[k] = better ? first + r : at[k];                                        \
            }                                                                              \
        }                                                                                  \
    }

// `name` begins with an underscore, since bool is a macro.
#define INTEGER(name, DTYPE, T, I, A, least, most)                                         \
    FIND(find##name, T, I, IS_BEST)                                                        \
    SHORT_INTEGERS(argmax, name, T, >)                                                     \
    SHORT_INTEGERS(argmin, name, T, <)                                                     \
    ROW(argmax, name, DTYPE, T, A, i, CPU_REDUCE_MAX, >, (int64_t)least, most, NEVER)      \
    ROW(argmin, name, DTYPE, T, A, i, CPU_REDUCE_MIN, <, (int64_t)most, least, NEVER)      \
    COLUMNS(argmax, name, T, >, NEVER)                                                     \
    COLUMNS(argmin, name, T, <, NEVER)
#define FLOAT(name, DTYPE, T, I)                                                           \
    FIND(find_number##name, T, I, IS_BEST)                                                 \
    FIND(find_nan##name, T, I, IS_ANY_NAN)                                                 \
    static int64_t find##name(const T *x, int64_t n, T best)                               \
    {                                                                                      \
        return IS_NAN(best) ? find_nan##name(x, n, best) : find_number##name(x, n, best);  \
    }                                                                                      \
    SHORT_FLOATS(argmax, name, T, >)                                                       \
    SHORT_FLOATS(argmin, name, T, <)                                                       \
    ROW(argmax, name, DTYPE, T, T, f, CPU_REDUCE_MAX, >, -(double)INFINITY, (T)NAN,        \
        IS_NAN)                                                                            \
    ROW(argmin, name, DTYPE, T, T, f, CPU_REDUCE_MIN, <, (double)INFINITY, (T)NAN, IS_NAN) \
    COLUMNS(argmax, name, T, >, IS_NAN)                                                    \
    COLUMNS(argmin, name, T, <, IS_NAN)
INTEGER(_bool, TN_BOOL, uint8_t, uint8_t, int64_t, 0, 1)
INTEGER(_i8, TN_I8, int8_t, uint8_t, int64_t, INT8_MIN, INT8_MAX)
INTEGER(_i16, TN_I16, int16_t, uint16_t, int64_t, INT16_MIN, INT16_MAX)
INTEGER(_i32, TN_I32, int32_t, uint32_t, int64_t, INT32_MIN, INT32_MAX)
INTEGER(_i64, TN_I64, int64_t, uint64_t, int64_t, INT64_MIN, INT64_MAX)
INTEGER(_u8, TN_U8, uint8_t, uint8_t, uint64_t, 0, UINT8_MAX)
INTEGER(_u16, TN_U16, uint16_t, uint16_t, uint64_t, 0, UINT16_MAX)
INTEGER(_u32, TN_U32, uint32_t, uint32_t, uint64_t, 0, UINT32_MAX)
INTEGER(_u64, TN_U64, uint64_t, uint64_t, uint64_t, 0, UINT64_MAX)
FLOAT(_f32, TN_F32, float, uint32_t)
FLOAT(_f64, TN_F64, double, uint64_t)

#define ALL(end, shape)                                                                    \
    {                                                                                      \
        [TN_BOOL] = end##_##shape##_bool, [TN_I8] = end##_##shape##_i8,                    \
        [TN_I16] = end##_##shape##_i16, [TN_I32] = end##_##shape##_i32,                    \
        [TN_I64] = end##_##shape##_i64, [TN_U8] = end##_##shape##_u8,                      \
        [TN_U16] = end##_##shape##_u16, [TN_U32] = end##_##shape##_u32,                    \
        [TN_U64] = end##_##shape##_u64, [TN_F32] = end##_##shape##_f32,                    \
        [TN_F64] = end##_##shape##_f64,                                                    \
    }

const struct cpu_argmax_kernels V(cpu_argmax) = {
    .row = {ALL(argmax, row), ALL(argmin, row)},
    .columns = {ALL(argmax, columns), ALL(argmin, columns)},
};
