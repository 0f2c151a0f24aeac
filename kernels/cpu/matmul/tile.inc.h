// SPDX-License-Identifier: MIT
// The register tile of products: up to ROWS rows by two vectors of sums, which fill all but
// a few of the processor's registers. Operands have any strides: elements of a are read one
// by one, those of b in vectors. Included with T defined, the type of elements and sums,
// and LANES, the elements of a vector.
#include "cpu/sizes.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define ROWS (sizeof(vector) == 64 ? 14 : 6)
#define COLUMNS ((int64_t)(2 * LANES))

struct panel_tile {
    const T *a, *b;
    T *c;
    int64_t a_row, a_step, b_step, c_row; // elements; b's columns are adjacent, as c's are
    int64_t inner;                        // at least 1
    int64_t last; // columns of the last vector, where that is partial
    // Prefetches: `ahead` elements behind those that are read of b, and, from `next` on,
    // `next_step` elements for each inner element.
    int64_t ahead;
    const T *next;
    int64_t next_step;
    bool adds; // adds to c; false: overwrites it
};
typedef void tile_fn(const struct panel_tile *t);

// Loads, or stores, the first n elements at p, at most LANES; loads zeros behind them.
INLINE vector load_some(const T *p, int64_t n)
{
    vector out = {0};
#if defined(__AVX512F__)
    const uint32_t mask = (1u << n) - 1;
    if (sizeof(T) == 4)
        return (vector)_mm512_maskz_loadu_ps((__mmask16)mask, p);
    return (vector)_mm512_maskz_loadu_pd((__mmask8)mask, p);
#elif defined(__AVX2__)
    if (sizeof(T) == 4) {
        const __m256i at = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), at);
        return (vector)_mm256_maskload_ps((const float *)(const void *)p, mask);
    }
    const __m256i at = _mm256_setr_epi64x(0, 1, 2, 3);
    const __m256i mask = _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), at);
    return (vector)_mm256_maskload_pd((const double *)(const void *)p, mask);
#endif
    for (int64_t i = 0; i < n; i++)
        out[i] = p[i];
    return out;
}

INLINE void store_some(T *p, vector x, int64_t n)
{
#if defined(__AVX512F__)
    const uint32_t mask = (1u << n) - 1;
    if (sizeof(T) == 4)
        _mm512_mask_storeu_ps(p, (__mmask16)mask, (__m512)x);
    else
        _mm512_mask_storeu_pd(p, (__mmask8)mask, (__m512d)x);
    return;
#else
    for (int64_t i = 0; i < n; i++)
        p[i] = x[i];
#endif
}

// Called with constants for all arguments but t. `partial`: the last vector of each row of
// b and c has t->last elements.
OF_SIZES void multiply_tile(const struct panel_tile *t, int rows, int vectors, bool partial)
{
    vector sums[ROWS][2] = {{{0}}};
    const T *a[(ROWS + 2) / 3], *b = t->b;
    const int64_t row = t->a_row, last = t->last;
    const T *next = t->next;
#pragma GCC unroll 5
    for (int g = 0; g < (rows + 2) / 3; g++)
        a[g] = t->a + 3 * g * row;
    if (t->inner >= 64)
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++) {
            __builtin_prefetch(t->c + i * t->c_row, 1);
            __builtin_prefetch(t->c + i * t->c_row + LANES * vectors - 1, 1);
        }
    for (int64_t p = 0; p < t->inner; p++, b += t->b_step, next += t->next_step) {
        vector y[2];
        __builtin_prefetch(next);
        __builtin_prefetch(b + t->ahead);
        if (vectors == 2)
            __builtin_prefetch(b + t->ahead + LANES);
        for (int v = 0; v < vectors; v++)
            if (partial && v == vectors - 1)
                y[v] = load_some(b + v * LANES, last);
            else
                y[v] = *(const loose *)(const void *)(b + v * LANES);
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++) {
            const T x = a[i / 3][i % 3 * row];
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                sums[i][v] += x * y[v];
        }
#pragma GCC unroll 5
        for (int g = 0; g < (rows + 2) / 3; g++)
            a[g] += t->a_step;
    }
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            T *c = t->c + i * t->c_row + v * LANES;
            if (partial && v == vectors - 1) {
                if (t->adds)
                    sums[i][v] += load_some(c, last);
                store_some(c, sums[i][v], last);
                continue;
            }
            if (t->adds)
                sums[i][v] += *(const loose *)(const void *)c;
            *(loose *)(void *)c = sums[i][v];
        }
}

#define TILE(R)                                                                            \
    static void tile_1_##R(const struct panel_tile *t)                                     \
    {                                                                                      \
        multiply_tile(t, R, 1, false);                                                     \
    }                                                                                      \
    static void tile_2_##R(const struct panel_tile *t)                                     \
    {                                                                                      \
        multiply_tile(t, R, 2, false);                                                     \
    }                                                                                      \
    static void tile_1_partial_##R(const struct panel_tile *t)                             \
    {                                                                                      \
        multiply_tile(t, R, 1, true);                                                      \
    }                                                                                      \
    static void tile_2_partial_##R(const struct panel_tile *t)                             \
    {                                                                                      \
        multiply_tile(t, R, 2, true);                                                      \
    }
#define FEW_TILES(DO) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6)
#define MORE_TILES(DO) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14)
#ifdef __AVX512F__
#define ALL_TILES(DO) FEW_TILES(DO) MORE_TILES(DO)
#else
#define ALL_TILES(DO) FEW_TILES(DO)
#endif
ALL_TILES(TILE)

// [rows - 1][vectors - 1][whether the last vector is partial].
#define ENTRY(R) {{tile_1_##R, tile_1_partial_##R}, {tile_2_##R, tile_2_partial_##R}},
static tile_fn *const tiles[][2][2] = {ALL_TILES(ENTRY)};
#undef ENTRY
#undef ALL_TILES
#undef FEW_TILES
#undef MORE_TILES
#undef TILE
