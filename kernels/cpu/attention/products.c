// SPDX-License-Identifier: MIT
// Products of attention in register tiles (cpu/conv/tiles.h). Keys and values of a group
// are copied into panels once, which BLAS would do for each block of rows. A tile of rows
// leaves out keys that none of its rows sees.
#include "attention.h"

#include <string.h>

static int64_t attention_products_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// --- panels ----------------------------------------------------------------------------

void attention_pack_across(const struct attention *s, const float *rows, int64_t row,
                           int64_t first, int64_t count, int64_t depth, float *panels)
{
    const int64_t width = s->tiles->width;
    for (int64_t at = 0; at < count; at += width) {
        s->tiles->pack(panels + (first + at) * depth, rows + at * row, row,
                       attention_products_least(width, count - at), depth);
    }
}

void attention_pack_along(const struct attention *s, const float *rows, int64_t row,
                          int64_t first, int64_t count, int64_t columns, float *panels)
{
    const int64_t width = s->tiles->width;
    for (int64_t c = 0; c < columns; c += width) {
        const int64_t n = attention_products_least(width, columns - c);
        float *to = panels + c * s->keys + first * width;
        for (int64_t i = 0; i < count; i++, to += width) {
            if (n == CPU_TILES_MOST) {
                memcpy(to, rows + i * row + c, CPU_TILES_MOST * sizeof(float));
                continue;
            }
            memcpy(to, rows + i * row + c, (size_t)n * sizeof(float));
            memset(to + n, 0, (size_t)(width - n) * sizeof(float));
        }
    }
}

// --- products --------------------------------------------------------------------------

// Finds the range [*low, *high) of keys in [first, first + count) that any of n rows sees.
// False: no row sees a key.
static bool attention_products_sees(const struct attention_row *states, int64_t n,
                                    int64_t first, int64_t count, int64_t *low,
                                    int64_t *high)
{
    *low = first + count;
    *high = first;
    for (int64_t i = 0; i < n; i++) {
        const bool any = states[i].low < states[i].high;
        *low = any && states[i].low < *low ? states[i].low : *low;
        *high = any && states[i].high > *high ? states[i].high : *high;
    }
    *low = *low > first ? *low : first;
    *high = attention_products_least(*high, first + count);
    return *low < *high;
}

// Whether each of n rows sees all keys of [first, first + count).
static bool see_all(const struct attention_row *states, int64_t n, int64_t first,
                    int64_t count)
{
    for (int64_t i = 0; i < n; i++)
        if (states[i].low > first || states[i].high < first + count)
            return false;
    return true;
}

// Number of tiles that n rows are divided into: one where all rows see all keys.
static int64_t attention_products_count_ranges(const struct attention *s,
                                               const struct attention_row *states,
                                               int64_t n, int64_t first, int64_t count)
{
    return !states || see_all(states, n, first, count)
               ? 1
               : (n + s->tiles->tile - 1) / s->tiles->tile;
}

void attention_multiply(const struct attention *s, const float *across, int64_t depth,
                        const float *rows, int64_t n, const struct attention_row *states,
                        int64_t first, int64_t count, float *to, int64_t pitch)
{
    const int64_t width = s->tiles->width;
    int64_t low, high;
    for (int64_t at = 0; at < count; at += width) {
        const int64_t columns = attention_products_least(width, count - at);
        const int64_t ranges =
            attention_products_count_ranges(s, states, n, first + at, columns);
        for (int64_t i = 0; i < ranges; i++) {
            const int64_t begin = i * n / ranges, end = (i + 1) * n / ranges;
            if (ranges > 1 && !attention_products_sees(states + begin, end - begin,
                                                       first + at, columns, &low, &high))
                continue;
            s->tiles->rows(
                &(struct cpu_tiles_rows){.from = rows + begin * depth,
                                         .weights = across + (first + at) * depth,
                                         .to = to + begin * pitch + at,
                                         .rows = 1,
                                         .pixels = end - begin,
                                         .columns = columns,
                                         .taps_y = 1,
                                         .taps_x = 1,
                                         .run = depth,
                                         .pixel = depth,
                                         .to_pixel = pitch});
        }
    }
}

void attention_add_along(const struct attention *s, const float *along, int64_t columns,
                         const float *weights, int64_t pitch, int64_t n,
                         const struct attention_row *states, int64_t first, int64_t count,
                         float *to)
{
    const int64_t width = s->tiles->width,
                  ranges = attention_products_count_ranges(s, states, n, first, count);
    int64_t low, high;
    for (int64_t c = 0; c < columns; c += width)
        for (int64_t i = 0; i < ranges; i++) {
            const int64_t begin = i * n / ranges, end = (i + 1) * n / ranges;
            if (!attention_products_sees(states + begin, end - begin, first, count, &low,
                                         &high))
                continue;
            s->tiles->rows(&(struct cpu_tiles_rows){
                .from = weights + begin * pitch + low - first,
                .weights = along + c * s->keys + low * width,
                .to = to + begin * columns + c,
                .rows = 1,
                .pixels = end - begin,
                .columns = attention_products_least(width, columns - c),
                .taps_y = 1,
                .taps_x = 1,
                .run = high - low,
                .pixel = pitch,
                .to_pixel = columns,
                .adds = true});
        }
}

void attention_add_rows(const struct attention *s, const float *weights, int64_t pitch,
                        int64_t n, const struct attention_row *states, int64_t first,
                        int64_t count, const float *rows, int64_t columns, float *to)
{
    const int64_t step = 2 * s->tiles->tile;
    int64_t low, high;
    for (int64_t at = 0; at < count; at += step) {
        const int64_t lines = attention_products_least(step, count - at);
        int64_t begin = 0, end = n;
        while (begin < end &&
               !attention_products_sees(states + begin, 1, first + at, lines, &low, &high))
            begin++;
        while (begin < end && !attention_products_sees(states + end - 1, 1, first + at,
                                                       lines, &low, &high))
            end--;
        if (begin < end)
            s->tiles->sums(&(struct cpu_tiles_sums){.a = weights + begin * pitch + at,
                                                    .b = rows + begin * columns,
                                                    .to = to + (first + at) * columns,
                                                    .to_line = columns,
                                                    .images = 1,
                                                    .rows = 1,
                                                    .pixels = end - begin,
                                                    .a_pixel = pitch,
                                                    .b_pixel = columns,
                                                    .lines = lines,
                                                    .columns = columns,
                                                    .adds = true});
    }
}
