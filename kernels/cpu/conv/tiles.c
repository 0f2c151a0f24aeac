// SPDX-License-Identifier: MIT
// Register tiles of convolutions: see tiles.h. A tile is up to ROWS outputs, or elements of
// operand a, by two vectors. An extent that is no multiple of ROWS is divided into tiles of
// about equal height: with few rows an addition waits for the one before it in the same
// sum. Compiled with contraction: a product and its sum round once where the processor can.
#include "tiles.h"
#include "variants.h"
#include "cpu/lanes.h"
#include "cpu/sizes.h"
#include "cpu/squares.h"
#include "cpu/x86.h"

#define ROWS (LANES == 16 ? 14 : 6)

// F(height) for each height of a tile.
#define UP_TO_6(F) F(1) F(2) F(3) F(4) F(5) F(6)
#define UP_TO_14(F) UP_TO_6(F) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14)
#if LANES == 16
#define EACH_HEIGHT UP_TO_14
#else
#define EACH_HEIGHT UP_TO_6
#endif

// --- the first n elements of a vector --------------------------------------------------

INLINE vector load_some(const float *from, int64_t n)
{
#if LANES == 16
    return x86_load_some(from, n);
#else
    vector out = {0};
    for (int64_t i = 0; i < LANES; i++)
        out[i] = i < n ? from[i] : 0;
    return out;
#endif
}

INLINE void store_some(float *to, vector x, int64_t n)
{
#if LANES == 16
    x86_store_some(to, x, n);
#else
    for (int64_t i = 0; i < LANES; i++)
        if (i < n)
            to[i] = x[i];
#endif
}

// Adds the elements of a line at `from` to x; the last vector has `last` elements.
INLINE void add_line(const float *from, vector *x, const int vectors, int64_t last)
{
    if (vectors > 1)
        x[0] += *(const loose *)(const void *)from;
    if (last == LANES)
        x[vectors - 1] += *(const loose *)(const void *)(from + (vectors - 1) * LANES);
    else
        x[vectors - 1] += load_some(from + (vectors - 1) * LANES, last);
}

// Stores the vectors of a line of `columns` elements.
INLINE void store_line(float *to, const vector *x, const int vectors, int64_t columns)
{
    if (columns == vectors * LANES) {
        *(loose *)(void *)to = x[0];
        if (vectors > 1)
            *(loose *)(void *)(to + LANES) = x[1];
        return;
    }
    if (vectors > 1) {
        *(loose *)(void *)to = x[0];
        store_some(to + LANES, x[1], columns - LANES);
    } else {
        store_some(to, x[0], columns);
    }
}

// --- sums over taps --------------------------------------------------------------------

OF_SIZES void sum_taps(const struct cpu_tiles_rows *p, const float *from, float *to,
                       const int rows, const int vectors)
{
    const int64_t pixel = p->pixel;
    vector sums[ROWS][2], start[2] = {{0}};
    for (int v = 0; v < vectors && p->start; v++)
        start[v] = *(const loose *)(const void *)(p->start + v * LANES);
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++)
            sums[i][v] = start[v];
    for (int64_t y = 0; y < p->taps_y; y++)
        for (int64_t x = 0; x < p->taps_x; x++) {
            const float *w = (const float *)p->weights + y * p->weight_y + x * p->weight_x;
            // Every third output has a pointer; the next two outputs are addressed from it
            // by one and two strides. So all pointers fit into registers.
            const float *third[(ROWS + 2) / 3];
            for (int i = 0; 3 * i < rows; i++)
                third[i] = from + y * p->tap_y + x * p->tap_x + 3 * i * pixel;
            for (int64_t e = 0; e < p->run; e++, w += 2 * LANES) {
                const vector left = *(const vector *)(const void *)w;
                const vector right = *(const vector *)(const void *)(w + LANES);
#pragma GCC unroll 14
                for (int i = 0; i < rows; i++) {
                    const float value = *(third[i / 3] + i % 3 * pixel);
                    sums[i][0] += value * left;
                    if (vectors > 1)
                        sums[i][1] += value * right;
                }
#pragma GCC unroll 5
                for (int i = 0; 3 * i < rows; i++)
                    third[i]++;
            }
        }
    const int64_t last = p->columns - (vectors - 1) * LANES;
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++, to += p->to_pixel) {
        if (p->adds)
            add_line(to, sums[i], vectors, last);
        store_line(to, sums[i], vectors, p->columns);
    }
}

#define TAPS(count)                                                                        \
    static void taps_##count(const struct cpu_tiles_rows *p, const float *from, float *to) \
    {                                                                                      \
        if (p->columns > LANES)                                                            \
            sum_taps(p, from, to, count, 2);                                               \
        else                                                                               \
            sum_taps(p, from, to, count, 1);                                               \
    }
EACH_HEIGHT(TAPS)
#undef TAPS

static void tiles_rows(const struct cpu_tiles_rows *p)
{
    typedef void tile_fn(const struct cpu_tiles_rows *p, const float *from, float *to);
#define ENTRY(count) taps_##count,
    static tile_fn *const tiles[ROWS + 1] = {NULL, EACH_HEIGHT(ENTRY)};
#undef ENTRY
    const int64_t parts = (p->pixels + ROWS - 1) / ROWS;
    for (int64_t y = 0; y < p->rows; y++)
        for (int64_t i = 0; i < parts; i++) {
            const int64_t begin = i * p->pixels / parts, end = (i + 1) * p->pixels / parts;
            tiles[end - begin](p, (const float *)p->from + y * p->row + begin * p->pixel,
                               p->to + y * p->to_row + begin * p->to_pixel);
        }
}

// --- sums over pixels ------------------------------------------------------------------

OF_SIZES void sum_pixels(const struct cpu_tiles_sums *p, const float *from_a,
                         const float *from_b, float *to, int64_t columns, const int lines,
                         const int vectors)
{
    vector sums[ROWS][2] = {{{0}}};
    for (int64_t n = 0; n < p->images; n++)
        for (int64_t y = 0; y < p->rows; y++) {
            const float *a = from_a + n * p->a_image + y * p->a_row;
            const float *b = from_b + n * p->b_image + y * p->b_row;
            for (int64_t i = 0; i < p->pixels; i++, a += p->a_pixel, b += p->b_pixel) {
                const vector left = *(const loose *)(const void *)b;
                vector right = left;
                if (vectors > 1)
                    right = *(const loose *)(const void *)(b + LANES);
#pragma GCC unroll 14
                for (int l = 0; l < lines; l++) {
                    sums[l][0] += a[l] * left;
                    if (vectors > 1)
                        sums[l][1] += a[l] * right;
                }
            }
        }
    const int64_t last = columns - (vectors - 1) * LANES;
#pragma GCC unroll 14
    for (int l = 0; l < lines; l++, to += p->to_line) {
        if (p->adds)
            add_line(to, sums[l], vectors, last);
        store_line(to, sums[l], vectors, columns);
    }
}

#define PIXELS(count)                                                                      \
    static void pixels_##count(const struct cpu_tiles_sums *p, const float *a,             \
                               const float *b, float *to, int64_t columns)                 \
    {                                                                                      \
        if (columns > LANES)                                                               \
            sum_pixels(p, a, b, to, columns, count, 2);                                    \
        else                                                                               \
            sum_pixels(p, a, b, to, columns, count, 1);                                    \
    }
EACH_HEIGHT(PIXELS)
#undef PIXELS

static void tiles_sums(const struct cpu_tiles_sums *p)
{
    typedef void tile_fn(const struct cpu_tiles_sums *p, const float *a, const float *b,
                         float *to, int64_t columns);
#define ENTRY(count) pixels_##count,
    static tile_fn *const tiles[ROWS + 1] = {NULL, EACH_HEIGHT(ENTRY)};
#undef ENTRY
    const int64_t parts = (p->lines + ROWS - 1) / ROWS;
    for (int64_t j = 0; j < p->columns; j += 2 * LANES)
        for (int64_t i = 0; i < parts; i++) {
            const int64_t begin = i * p->lines / parts, end = (i + 1) * p->lines / parts;
            const int64_t left = p->columns - j;
            tiles[end - begin](p, p->a + begin, p->b + j, p->to + begin * p->to_line + j,
                               left < 2 * LANES ? left : 2 * LANES);
        }
}

// --- sums over pixels of planes --------------------------------------------------------

// Filters, and taps, whose sums are in registers at a time.
#define PLANES (LANES == 16 ? 4 : 2)
#define PLANE_TAPS 4

OF_SIZES void sum_planes(const struct cpu_tiles_planes *p, const float *x, const float *g,
                         float *to, const int lines, const int taps)
{
    const int64_t line = p->taps_y * p->taps_x;
    vector sums[PLANES][PLANE_TAPS] = {{{0}}};
    for (int64_t i = 0; i < p->pixels; i += LANES) {
        vector at[PLANE_TAPS] = {{0}};
#pragma GCC unroll 4
        for (int t = 0; t < taps; t++)
            at[t] = *(const loose *)(const void *)(x + i + t * p->tap_x);
#pragma GCC unroll 4
        for (int l = 0; l < lines; l++) {
            const vector value = *(const loose *)(const void *)(g + i + l * p->g_plane);
#pragma GCC unroll 4
            for (int t = 0; t < taps; t++)
                sums[l][t] += value * at[t];
        }
    }
#pragma GCC unroll 4
    for (int l = 0; l < lines; l++)
#pragma GCC unroll 4
        for (int t = 0; t < taps; t++)
            *(loose *)(void *)(to + (l * line + t) * LANES) += sums[l][t];
}

#define UP_TO_4(F, taps) F(1, taps) F(2, taps) F(3, taps) F(4, taps)
#define UP_TO_2(F, taps) F(1, taps) F(2, taps)
#if LANES == 16
#define EACH_PLANES UP_TO_4
#else
#define EACH_PLANES UP_TO_2
#endif
#define PLANES_OF(lines, taps)                                                             \
    static void planes_##lines##_##taps(const struct cpu_tiles_planes *p, const float *x,  \
                                        const float *g, float *to)                         \
    {                                                                                      \
        sum_planes(p, x, g, to, lines, taps);                                              \
    }
EACH_PLANES(PLANES_OF, 1)
EACH_PLANES(PLANES_OF, 2)
EACH_PLANES(PLANES_OF, 3)
EACH_PLANES(PLANES_OF, 4)
#undef PLANES_OF

static void tiles_planes(const struct cpu_tiles_planes *p)
{
    typedef void plane_fn(const struct cpu_tiles_planes *p, const float *x, const float *g,
                          float *to);
#define ENTRY(lines, taps) planes_##lines##_##taps,
    static plane_fn *const planes[PLANE_TAPS + 1][PLANES + 1] = {
        {NULL},
        {NULL, EACH_PLANES(ENTRY, 1)},
        {NULL, EACH_PLANES(ENTRY, 2)},
        {NULL, EACH_PLANES(ENTRY, 3)},
        {NULL, EACH_PLANES(ENTRY, 4)}};
#undef ENTRY
    const int64_t parts = (p->lines + PLANES - 1) / PLANES,
                  asides = (p->taps_x + PLANE_TAPS - 1) / PLANE_TAPS;
    for (int64_t n = 0; n < p->images; n++)
        for (int64_t i = 0; i < parts * p->taps_y * asides; i++) {
            const int64_t part = i / asides / p->taps_y, y = i / asides % p->taps_y,
                          aside = i % asides;
            const int64_t line = part * p->lines / parts,
                          lines = (part + 1) * p->lines / parts - line,
                          tap = aside * p->taps_x / asides,
                          taps = (aside + 1) * p->taps_x / asides - tap;
            planes[taps][lines](p, p->x + n * p->x_image + y * p->tap_y + tap * p->tap_x,
                                p->g + n * p->g_image + line * p->g_plane,
                                p->sums +
                                    ((line * p->taps_y + y) * p->taps_x + tap) * LANES);
        }
}

// --- panels ----------------------------------------------------------------------------

// Packs eight elements of each line, for whole groups of eight lines. Callers pack all
// lines before the next eight elements, so that a cache line is written at once.
INLINE void pack_eight(float *to, const float *from, int64_t line, int64_t lines)
{
    for (int64_t first = 0; first + 8 <= lines; first += 8) {
        square_row x[8];
        for (int i = 0; i < 8; i++)
            x[i] = *(const square_loose *)(const void *)(from + (first + i) * line);
        square_transpose(x);
        for (int i = 0; i < 8; i++)
            *(square_loose *)(void *)(to + i * 2 * LANES + first) = x[i];
    }
}

static void tiles_pack(float *to, const float *from, int64_t line, int64_t lines,
                       int64_t inner)
{
    const int64_t width = 2 * LANES, whole = lines / 8 * 8, eights = inner / 8 * 8;
    for (int64_t e = 0; e < eights; e += 8)
        pack_eight(to + e * width, from + e, line, lines);
    for (int64_t e = 0; e < inner; e++)
        for (int64_t i = e < eights ? whole : 0; i < width; i++)
            to[e * width + i] = i < lines ? from[i * line + e] : 0;
}

const struct cpu_tiles_kernels V(cpu_tiles) = {.rows = tiles_rows,
                                               .sums = tiles_sums,
                                               .planes = tiles_planes,
                                               .pack = tiles_pack,
                                               .width = 2 * LANES,
                                               .lane = LANES,
                                               .tile = ROWS};
