// SPDX-License-Identifier: MIT
// Products of matrices of floats, one of which has at most 8 rows, or columns. Most of the
// time is for reading the other matrix, whose elements are widened in registers. Compiled
// with contraction, as every product and sum is to round once where the processor can.
#include "elements.h"
#include "variants.h"

#define INNER CPU_PANELS_FEW_INNER
#define PITCH CPU_PANELS_FEW_PITCH
#define CHUNK 64                    // rows of the other matrix that are read side by side
#define SUMS (LANES == 16 ? 16 : 8) // vectors that stay in registers
#define BESIDE(ROWS) (SUMS / (ROWS) < 8 ? SUMS / (ROWS) : 8)

// The product of `rows` rows of x and the other matrix, y, of `depth` inner elements. The
// rows of x are widened, lie PITCH apart and are padded with zeros to 1, 2, 4 or 8 rows and
// to whole vectors. Strides of y are in bytes.
struct few {
    const float *x;
    const char *y;
    float *c;
    int64_t rows, n, depth;
    int64_t y_step, y_column; // strides of y: inner elements, columns
    int64_t c_row, c_column;  // strides of c in elements
    bool adds;
};

INLINE float total(vector x)
{
    for (int h = LANES / 2; h > 0; h /= 2)
        for (int i = 0; i < h; i++)
            x[i] += x[i + h];
    return x[0];
}

// If the inner elements of y are adjacent: dot products, several columns at a time.
#define DOTS(ROWS, KIND, SIZE)                                                             \
    static void dots_##KIND##_##ROWS(const struct few *f)                                  \
    {                                                                                      \
        enum { COLUMNS = BESIDE(ROWS) };                                                   \
        for (int64_t j = 0; j < f->n; j += COLUMNS) {                                      \
            vector sums[COLUMNS][ROWS] = {{{0}}};                                          \
            const int64_t left = f->n - j;                                                 \
            const char *y[COLUMNS];                                                        \
            int64_t p = 0;                                                                 \
            for (int i = 0; i < COLUMNS; i++) /* beyond the end: the last line */          \
                y[i] = f->y + (j + (i < left ? i : left - 1)) * f->y_column;               \
            for (; p + LANES <= f->depth; p += LANES)                                      \
                for (int i = 0; i < COLUMNS; i++) {                                        \
                    const vector at = many_##KIND(y[i] + p * SIZE);                        \
                    for (int r = 0; r < ROWS; r++)                                         \
                        sums[i][r] +=                                                      \
                            at * *(const loose *)(const void *)(f->x + r * PITCH + p);     \
                }                                                                          \
            for (int i = 0; i < COLUMNS && p < f->depth; i++) {                            \
                const vector at = some_##KIND(y[i] + p * SIZE, f->depth - p);              \
                for (int r = 0; r < ROWS; r++)                                             \
                    sums[i][r] +=                                                          \
                        at * *(const loose *)(const void *)(f->x + r * PITCH + p);         \
            }                                                                              \
            for (int i = 0; i < COLUMNS && i < left; i++)                                  \
                for (int r = 0; r < ROWS && r < f->rows; r++) {                            \
                    float *c = f->c + r * f->c_row + (j + i) * f->c_column;                \
                    const float sum = total(sums[i][r]);                                   \
                    *c = f->adds ? *c + sum : sum;                                         \
                }                                                                          \
        }                                                                                  \
    }

// If the columns of y and of c are adjacent: reads CHUNK rows of y at a time, and adds
// their products to c.
#define ROW_SUMS(ROWS, KIND, SIZE)                                                         \
    INLINE void chunk_##KIND##_##ROWS(const struct few *f, int64_t p, int64_t end,         \
                                      int64_t j, bool adds)                                \
    {                                                                                      \
        enum { COLUMNS = BESIDE(ROWS) };                                                   \
        vector sums[ROWS][COLUMNS] = {{{0}}};                                              \
        const char *y = f->y + p * f->y_step + j * SIZE;                                   \
        for (int r = 0; r < ROWS && r < f->rows && adds; r++)                              \
            for (int i = 0; i < COLUMNS; i++)                                              \
                sums[r][i] =                                                               \
                    *(const loose *)(void *)(f->c + r * f->c_row + j + i * LANES);         \
        for (; p < end; p++, y += f->y_step)                                               \
            for (int i = 0; i < COLUMNS; i++) {                                            \
                if (ROWS >= 4) /* the processor prefetches no such narrow rows */          \
                    __builtin_prefetch(y + (i + COLUMNS) * LANES * SIZE);                  \
                const vector at = many_##KIND(y + i * LANES * SIZE);                       \
                for (int r = 0; r < ROWS; r++)                                             \
                    sums[r][i] += f->x[r * PITCH + p] * at;                                \
            }                                                                              \
        for (int r = 0; r < ROWS && r < f->rows; r++)                                      \
            for (int i = 0; i < COLUMNS; i++)                                              \
                *(loose *)(void *)(f->c + r * f->c_row + j + i * LANES) = sums[r][i];      \
    }                                                                                      \
    static void sums_##KIND##_##ROWS(const struct few *f)                                  \
    {                                                                                      \
        const int64_t step = LANES * BESIDE(ROWS);                                         \
        for (int64_t p = 0; p < f->depth; p += CHUNK) {                                    \
            const int64_t end = p + CHUNK < f->depth ? p + CHUNK : f->depth;               \
            const bool adds = f->adds || p > 0;                                            \
            int64_t j = 0;                                                                 \
            for (; j + step <= f->n; j += step)                                            \
                chunk_##KIND##_##ROWS(f, p, end, j, adds);                                 \
            for (int64_t r = 0; r < f->rows; r++)                                          \
                for (int64_t at = j; at < f->n; at += LANES)                               \
                    rest_##KIND(f, p, end, at, r, adds);                                   \
        }                                                                                  \
    }

// Multiplies one row of x by up to a vector of columns.
#define REST(KIND, SIZE)                                                                   \
    static void rest_##KIND(const struct few *f, int64_t p, int64_t end, int64_t j,        \
                            int64_t r, bool adds)                                          \
    {                                                                                      \
        const int64_t n = f->n - j < LANES ? f->n - j : LANES;                             \
        const char *y = f->y + p * f->y_step + j * SIZE;                                   \
        float *c = f->c + r * f->c_row + j;                                                \
        vector sum = {0};                                                                  \
        if (adds)                                                                          \
            memcpy(&sum, c, (size_t)n * sizeof(*c));                                       \
        for (; p < end; p++, y += f->y_step)                                               \
            sum +=                                                                         \
                f->x[r * PITCH + p] * (n == LANES ? many_##KIND(y) : some_##KIND(y, n));   \
        memcpy(c, &sum, (size_t)n * sizeof(*c));                                           \
    }

// Widens `count` rows of x, `depth` inner elements each, and adds rows of zeros up to
// `rows`.
#define WIDEN(KIND, SIZE)                                                                  \
    static void widen_##KIND(const char *from, int64_t row, int64_t column, int64_t count, \
                             int64_t rows, int64_t depth, float *to)                       \
    {                                                                                      \
        for (int64_t r = 0; r < rows; r++)                                                 \
            for (int64_t p = 0; p < (depth + LANES - 1) / LANES * LANES; p++)              \
                to[r * PITCH + p] =                                                        \
                    r < count && p < depth ? one_##KIND(from + r * row + p * column) : 0;  \
    }

typedef void few_fn(const struct few *f);
#define KIND(KIND, SIZE)                                                                   \
    SOME(KIND, SIZE)                                                                       \
    REST(KIND, SIZE)                                                                       \
    WIDEN(KIND, SIZE)                                                                      \
    DOTS(1, KIND, SIZE)                                                                    \
    DOTS(2, KIND, SIZE)                                                                    \
    DOTS(4, KIND, SIZE)                                                                    \
    DOTS(8, KIND, SIZE)                                                                    \
    ROW_SUMS(1, KIND, SIZE)                                                                \
    ROW_SUMS(2, KIND, SIZE)                                                                \
    ROW_SUMS(4, KIND, SIZE)                                                                \
    ROW_SUMS(8, KIND, SIZE)
KIND(f32, 4)
KIND(bf16, 2)
KIND(f16, 2)

static const struct kind {
    void (*widen)(const char *from, int64_t row, int64_t column, int64_t count,
                  int64_t rows, int64_t depth, float *to);
    few_fn *dots[4], *sums[4]; // for 1, 2, 4, 8 rows
    int64_t size;              // bytes of an element
} kinds[TN_NUM_DTYPES] = {
#define ENTRY(KIND, SIZE)                                                                  \
    {                                                                                      \
        widen_##KIND,                                                                      \
            {dots_##KIND##_1, dots_##KIND##_2, dots_##KIND##_4, dots_##KIND##_8},          \
            {sums_##KIND##_1, sums_##KIND##_2, sums_##KIND##_4, sums_##KIND##_8}, SIZE     \
    }
    [TN_F32] = ENTRY(f32, 4),
    [TN_BF16] = ENTRY(bf16, 2),
    [TN_F16] = ENTRY(f16, 2),
#undef ENTRY
};

// The product transposed, c' = b' a', for a b with few columns.
static struct cpu_panels panels_few_transposed(const struct cpu_panels *p)
{
    struct cpu_panels out = *p;
    out.a = p->b, out.b = p->a;
    out.m = p->n, out.n = p->m;
    out.a_row = p->b_column, out.a_column = p->b_row;
    out.b_row = p->a_column, out.b_column = p->a_row;
    return out;
}

bool V(cpu_panels_few)(const struct cpu_panels *p)
{
    const bool transposes = p->m > CPU_PANELS_FEW || (p->n == 1 && p->m > 1);
    const struct cpu_panels few = transposes ? panels_few_transposed(p) : *p;
    const struct kind *kind = &kinds[p->dtype];
    const bool is_dense = transposes ? p->c_row == 1 : true; // along the columns of `few`
    if (few.m < 1 || few.m > CPU_PANELS_FEW || few.k < 1 ||
        !(few.b_row == 1 || (few.b_column == 1 && is_dense)))
        return false;
    const int log2_rows = few.m > 4 ? 3 : few.m > 2 ? 2 : few.m > 1 ? 1 : 0;
    for (int64_t q = 0; q < p->k; q += INNER) {
        const int64_t depth = p->k - q < INNER ? p->k - q : INNER;
        kind->widen((const char *)few.a + q * few.a_column * kind->size,
                    few.a_row * kind->size, few.a_column * kind->size, few.m,
                    (int64_t)1 << log2_rows, depth, p->scratch);
        (few.b_row == 1 ? kind->dots : kind->sums)[log2_rows](
            &(struct few){.x = p->scratch,
                          .y = (const char *)few.b + q * few.b_row * kind->size,
                          .c = p->c,
                          .rows = few.m,
                          .n = few.n,
                          .depth = depth,
                          .y_step = few.b_row * kind->size,
                          .y_column = few.b_column * kind->size,
                          .c_row = transposes ? 1 : p->c_row,
                          .c_column = transposes ? p->c_row : 1,
                          .adds = q > 0});
    }
    return true;
}
