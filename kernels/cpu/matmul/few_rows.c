// SPDX-License-Identifier: MIT
// Products in which operand a, of f32, has at most 8 rows, so that reading operand b takes
// most of the time: attention in a step of a language model. BLAS would copy b into panels
// first, which pays for many rows only. b is of f32, of halves or of blocks of q8_0, which
// become f32 in registers.
//
// 8 vectors of 8 lanes hold sums. by_rows sums over lanes, in a fixed order; by_columns
// adds one row of b after the other.
#include <tenon/ops/quant_blocks.h>
#include "variants.h"
#include "cpu/x86.h"

typedef float v8f __attribute__((vector_size(32)));
typedef float v8f_unaligned __attribute__((vector_size(32), aligned(4), may_alias));

// Loads the first n elements at x, at most 8, with zeros behind them.
static inline v8f load(const float *x, int64_t n)
{
    v8f out = {0};
    if (n >= 8)
        return *(const v8f_unaligned *)x;
    memcpy(&out, x, (size_t)n * sizeof(*x));
    return out;
}

// Loads elements [at, at + n) of a row of b, at most 8, with zeros behind them.
static inline v8f load_f32(const uint8_t *row, int64_t at, int64_t n)
{
    return load((const float *)(const void *)row + at, n);
}

static inline v8f load_f16(const uint8_t *row, int64_t at, int64_t n)
{
#ifdef __F16C__
    if (n >= 8)
        return x86_widen_f16(row + 2 * at);
#endif
    v8f out = {0};
    for (int64_t i = 0; i < 8 && i < n; i++)
        out[i] = tn_quant_f16(row + 2 * (at + i));
    return out;
}

static inline v8f load_bf16(const uint8_t *row, int64_t at, int64_t n)
{
    typedef uint16_t v8h __attribute__((vector_size(16)));
    typedef uint32_t v8u __attribute__((vector_size(32)));
    v8h halves = {0};
    if (n >= 8)
        memcpy(&halves, row + 2 * at, sizeof(halves));
    else
        memcpy(&halves, row + 2 * at, (size_t)n * 2);
    return (v8f)(__builtin_convertvector(halves, v8u) << 16);
}

// Rows are whole blocks, so that 8 elements from a multiple of 8 on lie in one block.
static inline v8f load_q8_0(const uint8_t *row, int64_t at, int64_t n)
{
    const uint8_t *block = row + at / 32 * 34;
    (void)n;
#if defined(__AVX2__) && defined(__F16C__)
    return x86_floats_of_i8(block + 2 + at % 32) * x86_widen_one_f16(block);
#else
    typedef int8_t v8b __attribute__((vector_size(8)));
    v8b bytes;
    memcpy(&bytes, block + 2 + at % 32, sizeof(bytes));
    return __builtin_convertvector(bytes, v8f) * tn_quant_f16(block);
#endif
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

// Prefetches a row of halves of the next `rows` rows into the second-level cache: the
// elements that `rows` steps of 8 read. Each step prefetches another of the next rows. The
// processor's own prefetches end with each row, so that without these rows of 1024 halves
// are read at 0.7 of the rate of memory.
static inline void fetch_halves(const uint8_t *row, int64_t step, int64_t rows)
{
    int64_t from = step / rows * rows * 16;
    for (int64_t i = 0; i < rows * 16; i += 64)
        __builtin_prefetch(row + from + i, 0, 2);
}
#define fetch_f16 fetch_halves
#define fetch_bf16 fetch_halves
#define FETCHED_TERMS 256 // least k for which prefetches pay for 8 rows of a, too
// Rows of these kinds are mostly in a cache already.
#define fetch_f32(row, step, rows) ((void)0)
#define fetch_q8_0(row, step, rows) ((void)0)

// Multiplies ROWS rows of a by 8 / ROWS rows of b at a time. `dots` adds one step of up to
// 8 terms.
#define BY_ROWS(ROWS, KIND)                                                                \
    static inline void dots_##KIND##_##ROWS(                                               \
        v8f sums[8], const struct cpu_few_rows *p, const float *a,                         \
        const uint8_t *const b[8 / ROWS], int64_t at, int64_t terms)                       \
    {                                                                                      \
        for (int j = 0; j < 8 / ROWS; j++) {                                               \
            v8f y = load_##KIND(b[j], at, terms);                                          \
            for (int i = 0; i < ROWS; i++)                                                 \
                sums[j * ROWS + i] += load(a + i * p->a_row + at, terms) * y;              \
        }                                                                                  \
    }                                                                                      \
    static void by_rows_##KIND##_##ROWS(const struct cpu_few_rows *p, int64_t first,       \
                                        int64_t pitch)                                     \
    {                                                                                      \
        const float *a = p->a + first * p->a_row;                                          \
        const uint8_t *b[8 / ROWS];                                                        \
        for (int64_t row = 0; row < p->n; row += 8 / ROWS) {                               \
            v8f sums[8] = {{0}};                                                           \
            int64_t left = p->n - row, at = 0;                                             \
            for (int j = 0; j < 8 / ROWS; j++) /* beyond the end: the last row */          \
                b[j] = (const uint8_t *)p->b + (row + (j < left ? j : left - 1)) * pitch;  \
            for (; at + 8 <= p->k; at += 8) {                                              \
                if (ROWS < 8 || p->k >= FETCHED_TERMS)                                     \
                    fetch_##KIND(b[at / 8 % (8 / ROWS)] + 8 / ROWS * pitch, at / 8,        \
                                 8 / ROWS);                                                \
                dots_##KIND##_##ROWS(sums, p, a, b, at, 8);                                \
            }                                                                              \
            if (at < p->k)                                                                 \
                dots_##KIND##_##ROWS(sums, p, a, b, at, p->k - at);                        \
            v8f out = sum_lanes(sums);                                                     \
            for (int j = 0; j < 8 / ROWS && j < left; j++)                                 \
                for (int i = 0; i < ROWS; i++)                                             \
                    p->c[(first + i) * p->c_row + row + j] = p->scale * out[j * ROWS + i]; \
        }                                                                                  \
    }

// Multiplies ROWS rows of a by 64 / ROWS columns of b at a time, and one row by up to 8
// columns at the end of a row.
#define BY_COLUMNS(ROWS, KIND)                                                             \
    static void by_columns_##KIND##_##ROWS(const struct cpu_few_rows *p, int64_t first,    \
                                           int64_t pitch)                                  \
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
            const uint8_t *b = p->b;                                                       \
            for (int64_t k = 0; k < p->k; k++, b += pitch)                                 \
                for (int i = 0; i < 8; i++)                                                \
                    sums[i] += a[i / VECTORS * p->a_row + k] *                             \
                               load_##KIND(b, column + i % VECTORS * 8, 8);                \
            for (int i = 0; i < 8; i++)                                                    \
                *(v8f_unaligned *)(p->c + (first + i / VECTORS) * p->c_row + column +      \
                                   i % VECTORS * 8) = sums[i];                             \
        }                                                                                  \
        for (int64_t i = 0; i < ROWS; i++)                                                 \
            for (int64_t at = column; at < p->n; at += 8) {                                \
                int64_t left = p->n - at < 8 ? p->n - at : 8;                              \
                float *c = p->c + (first + i) * p->c_row + at;                             \
                const uint8_t *b = p->b;                                                   \
                v8f sum = load(c, left);                                                   \
                for (int64_t k = 0; k < p->k; k++, b += pitch)                             \
                    sum += a[i * p->a_row + k] * load_##KIND(b, at, left);                 \
                memcpy(c, &sum, (size_t)left * sizeof(*c));                                \
            }                                                                              \
    }

// The rows of a are divided into groups of 8, 4, 2 and 1.
#define ALL(name, KIND) name(1, KIND) name(2, KIND) name(4, KIND) name(8, KIND)
#define BY_SIZE(name, ROWS)                                                                \
    for (; first + ROWS <= p->m; first += ROWS)                                            \
        name##_##ROWS(p, first, pitch);
#define BY_SIZES(name)                                                                     \
    static void name(const struct cpu_few_rows *p, int64_t pitch)                          \
    {                                                                                      \
        int64_t first = 0;                                                                 \
        BY_SIZE(name, 8)                                                                   \
        BY_SIZE(name, 4)                                                                   \
        BY_SIZE(name, 2)                                                                   \
        BY_SIZE(name, 1)                                                                   \
    }
#define BY_KIND(KIND)                                                                      \
    ALL(BY_ROWS, KIND)                                                                     \
    ALL(BY_COLUMNS, KIND)                                                                  \
    BY_SIZES(by_rows_##KIND)                                                               \
    BY_SIZES(by_columns_##KIND)
BY_KIND(f32)
BY_KIND(f16)
BY_KIND(bf16)
BY_KIND(q8_0)

#define BY_ANY(name)                                                                       \
    void V(cpu_few_##name)(const struct cpu_few_rows *p)                                   \
    {                                                                                      \
        if (p->kind == CPU_FEW_F16)                                                        \
            name##_f16(p, 2 * p->b_row);                                                   \
        else if (p->kind == CPU_FEW_BF16)                                                  \
            name##_bf16(p, 2 * p->b_row);                                                  \
        else if (p->kind == CPU_FEW_Q8_0)                                                  \
            name##_q8_0(p, p->b_row);                                                      \
        else                                                                               \
            name##_f32(p, 4 * p->b_row);                                                   \
    }
BY_ANY(by_rows)
BY_ANY(by_columns)
