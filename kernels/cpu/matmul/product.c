// SPDX-License-Identifier: MIT
// Products of matrices of integers, which wrap, and of bool, by register blocks of 4 rows
// and two vectors of columns. Signed and unsigned dtypes share a kernel: modulo 2^width
// their products are the same bits.
#include "variants.h"

#define ROWS 4
#define COLUMNS(T) ((int64_t)(64 / sizeof(T)))

// STEP(sum, x, y): the sum with x * y added. The scalar loop passes x as 1u * x, so that
// the product is unsigned: two uint16_t would be multiplied as int, and might overflow.
#define WRAPPING(sum, x, y) ((sum) + (x) * (y))
#define LOGICAL(sum, x, y) ((sum) | ((x) & (y)))

// Defines tile_, a full register block over all k; edge_, one row of at most COLUMNS(T)
// columns, for the remaining rows and columns; and product_, the whole product, a panel of
// columns of b at a time.
#define PRODUCT(name, T, STEP)                                                             \
    typedef T vector_##name __attribute__((vector_size(32)));                              \
    typedef T loose_##name                                                                 \
        __attribute__((vector_size(32), aligned(__alignof__(T)), may_alias));              \
    static void tile_##name(T *c, int64_t c_row, const T *a, int64_t a_row,                \
                            int64_t a_column, const T *b, int64_t b_row, int64_t k)        \
    {                                                                                      \
        const int64_t half = COLUMNS(T) / 2;                                               \
        vector_##name sums[ROWS][2] = {{{0}}};                                             \
        for (int64_t l = 0; l < k; l++, a += a_column, b += b_row) {                       \
            vector_##name y = *(const loose_##name *)b;                                    \
            vector_##name z = *(const loose_##name *)(b + half);                           \
            for (int i = 0; i < ROWS; i++) {                                               \
                T x = a[i * a_row];                                                        \
                sums[i][0] = STEP(sums[i][0], x, y);                                       \
                sums[i][1] = STEP(sums[i][1], x, z);                                       \
            }                                                                              \
        }                                                                                  \
        for (int i = 0; i < ROWS; i++) {                                                   \
            *(loose_##name *)(c + i * c_row) = sums[i][0];                                 \
            *(loose_##name *)(c + i * c_row + half) = sums[i][1];                          \
        }                                                                                  \
    }                                                                                      \
    static void edge_##name(T *c, const T *a, int64_t a_column, const T *b, int64_t b_row, \
                            int64_t n, int64_t k)                                          \
    {                                                                                      \
        T sums[64 / sizeof(T)] = {0};                                                      \
        for (int64_t l = 0; l < k; l++, a += a_column, b += b_row)                         \
            for (int64_t j = 0; j < n; j++)                                                \
                sums[j] = (T)STEP(sums[j], 1u * *a, b[j]);                                 \
        for (int64_t j = 0; j < n; j++)                                                    \
            c[j] = sums[j];                                                                \
    }                                                                                      \
    static void product_##name(const struct cpu_product *p)                                \
    {                                                                                      \
        for (int64_t j = 0; j < p->n; j += COLUMNS(T)) {                                   \
            int64_t n = p->n - j < COLUMNS(T) ? p->n - j : COLUMNS(T);                     \
            const T *b = (const T *)p->b + j;                                              \
            for (int64_t i = 0; i < p->m;) {                                               \
                T *c = (T *)p->c + i * p->c_row + j;                                       \
                const T *a = (const T *)p->a + i * p->a_row;                               \
                if (n == COLUMNS(T) && i + ROWS <= p->m) {                                 \
                    tile_##name(c, p->c_row, a, p->a_row, p->a_column, b, p->b_row, p->k); \
                    i += ROWS;                                                             \
                } else {                                                                   \
                    edge_##name(c, a, p->a_column, b, p->b_row, n, p->k);                  \
                    i++;                                                                   \
                }                                                                          \
            }                                                                              \
        }                                                                                  \
    }
PRODUCT(bool, uint8_t, LOGICAL)
PRODUCT(8, uint8_t, WRAPPING)
PRODUCT(16, uint16_t, WRAPPING)
PRODUCT(32, uint32_t, WRAPPING)
PRODUCT(64, uint64_t, WRAPPING)

cpu_product_fn *const V(cpu_products)[TN_NUM_DTYPES] = {
    [TN_BOOL] = product_bool, [TN_I8] = product_8,   [TN_I16] = product_16,
    [TN_I32] = product_32,    [TN_I64] = product_64, [TN_U8] = product_8,
    [TN_U16] = product_16,    [TN_U32] = product_32, [TN_U64] = product_64,
};
