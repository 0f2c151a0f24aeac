// SPDX-License-Identifier: MIT
// Products of f32 whose one operand has at most 8 rows, so that their time is that of
// reading the other one: of attention, for a step of a language model. BLAS copies that
// operand into panels first, which pays for many rows only.
//
// 8 vectors of 8 lanes are sums at a time. Sums of rows go by lanes, in a fixed order;
// those of columns one row after the other.
#include "variant.h"

typedef float v8f __attribute__((vector_size(32)));
typedef float v8f_unaligned __attribute__((vector_size(32), aligned(4), may_alias));

// The first n elements at x, of up to 8; zeros behind.
static inline v8f load(const float *x, int64_t n)
{
    v8f out = {0};
    if (n >= 8)
        return *(const v8f_unaligned *)x;
    memcpy(&out, x, (size_t)n * sizeof(*x));
    return out;
}

#define PAIR(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
// Lane i: the sum of the lanes of x[i].
static inline v8f sum_lanes(const v8f x[8])
{
    v8f pair[4], four[2];
    for (int i = 0; i < 4; i++)
        pair[i] = PAIR(x[2 * i], x[2 * i + 1], 0, 8, 2, 10, 4, 12, 6, 14) +
                  PAIR(x[2 * i], x[2 * i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    for (int i = 0; i < 2; i++)
        four[i] = PAIR(pair[2 * i], pair[2 * i + 1], 0, 1, 8, 9, 4, 5, 12, 13) +
                  PAIR(pair[2 * i], pair[2 * i + 1], 2, 3, 10, 11, 6, 7, 14, 15);
    return PAIR(four[0], four[1], 0, 1, 2, 3, 8, 9, 10, 11) +
           PAIR(four[0], four[1], 4, 5, 6, 7, 12, 13, 14, 15);
}
#undef PAIR

// ROWS rows of a by 8 / ROWS rows of b at a time. `dots` adds one step of up to 8 terms.
#define BY_ROWS(ROWS)                                                                      \
    static inline void dots_##ROWS(v8f sums[8], const struct cpu_few_rows *p,              \
                                   const float *a, const float *const b[8 / ROWS],         \
                                   int64_t at, int64_t terms)                              \
    {                                                                                      \
        for (int j = 0; j < 8 / ROWS; j++) {                                               \
            v8f y = load(b[j] + at, terms);                                                \
            for (int i = 0; i < ROWS; i++)                                                 \
                sums[j * ROWS + i] += load(a + i * p->a_row + at, terms) * y;              \
        }                                                                                  \
    }                                                                                      \
    static void by_rows_##ROWS(const struct cpu_few_rows *p, int64_t first)                \
    {                                                                                      \
        const float *a = p->a + first * p->a_row, *b[8 / ROWS];                            \
        for (int64_t row = 0; row < p->n; row += 8 / ROWS) {                               \
            v8f sums[8] = {{0}};                                                           \
            int64_t left = p->n - row, at = 0;                                             \
            for (int j = 0; j < 8 / ROWS; j++) /* behind the end: the last one again */    \
                b[j] = p->b + (row + (j < left ? j : left - 1)) * p->b_row;                \
            for (; at + 8 <= p->k; at += 8)                                                \
                dots_##ROWS(sums, p, a, b, at, 8);                                         \
            if (at < p->k)                                                                 \
                dots_##ROWS(sums, p, a, b, at, p->k - at);                                 \
            v8f out = sum_lanes(sums);                                                     \
            for (int j = 0; j < 8 / ROWS && j < left; j++)                                 \
                for (int i = 0; i < ROWS; i++)                                             \
                    p->c[(first + i) * p->c_row + row + j] = p->scale * out[j * ROWS + i]; \
        }                                                                                  \
    }

// ROWS rows of a by 64 / ROWS columns of b at a time; fewer at the end of a row.
#define BY_COLUMNS(ROWS)                                                                   \
    static void by_columns_##ROWS(const struct cpu_few_rows *p, int64_t first)             \
    {                                                                                      \
        enum { VECTORS = 8 / ROWS };                                                       \
        const float *a = p->a + first * p->a_row;                                          \
        int64_t column = 0;                                                                \
        for (; column + 8 * VECTORS <= p->n; column += 8 * VECTORS) {                      \
            v8f sums[8];                                                                   \
            for (int i = 0; i < 8; i++)                                                    \
                sums[i] = load(p->c + (first + i / VECTORS) * p->c_row + column +          \
                                   i % VECTORS * 8,                                        \
                               8);                                                         \
            const float *b = p->b + column;                                                \
            for (int64_t k = 0; k < p->k; k++, b += p->b_row)                              \
                for (int i = 0; i < 8; i++)                                                \
                    sums[i] +=                                                             \
                        a[i / VECTORS * p->a_row + k] * load(b + i % VECTORS * 8, 8);      \
            for (int i = 0; i < 8; i++)                                                    \
                *(v8f_unaligned *)(p->c + (first + i / VECTORS) * p->c_row + column +      \
                                   i % VECTORS * 8) = sums[i];                             \
        }                                                                                  \
        for (int64_t i = 0; i < ROWS; i++)                                                 \
            for (int64_t k = 0; column < p->n && k < p->k; k++) {                          \
                float x = a[i * p->a_row + k], *c = p->c + (first + i) * p->c_row;         \
                const float *b = p->b + k * p->b_row;                                      \
                for (int64_t j = column; j < p->n; j++)                                    \
                    c[j] += x * b[j];                                                      \
            }                                                                              \
    }

// The rows as 8, 4, 2 and 1.
#define ALL(name) name(1) name(2) name(4) name(8)
ALL(BY_ROWS)
ALL(BY_COLUMNS)
#define BY_SIZE(name, ROWS)                                                                \
    for (; first + ROWS <= p->m; first += ROWS)                                            \
        name##_##ROWS(p, first);
#define BY_SIZES(name)                                                                     \
    void V(cpu_few_##name)(const struct cpu_few_rows *p)                                   \
    {                                                                                      \
        int64_t first = 0;                                                                 \
        BY_SIZE(name, 8)                                                                   \
        BY_SIZE(name, 4)                                                                   \
        BY_SIZE(name, 2)                                                                   \
        BY_SIZE(name, 1)                                                                   \
    }
BY_SIZES(by_rows)
BY_SIZES(by_columns)
