// SPDX-License-Identifier: MIT
// Blocks of attention of BF16 on the tiles of AMX. A tile of rows leaves out the keys
// behind the last key that any of its rows sees.
#include "attention.h"
#include "halves_tiles.h"

// Number of keys from `first` on, at most `count`, up to the last key that rows
// [begin, begin + 32) of the block see.
static int64_t halves_tiles_seen(const struct attention_block *b, int64_t begin,
                                 int64_t first, int64_t count)
{
    int64_t high = first;
    for (int64_t i = begin; i < b->rows && i < begin + ATTENTION_TILE_ROWS; i++)
        high = b->states[i].high > high ? b->states[i].high : high;
    return high - first < count ? high - first : count;
}

void attention_multiply_halves(const struct attention *s, const struct attention_block *b,
                               int64_t first, int64_t count)
{
    const uint16_t *q = (const uint16_t *)(const void *)b->q;
    float *scores = (float *)(void *)b->scores;
    const float scale = (float)s->scale;
    for (int64_t i = 0; i < b->rows; i += ATTENTION_TILE_ROWS) {
        int64_t seen = halves_tiles_seen(b, i, first, count);
        s->halves->multiply(scores + i * ATTENTION_PITCH, ATTENTION_PITCH, q + i * s->depth,
                            b->k_tiles + first * s->depth, seen, s->depth);
        for (int64_t row = i; row < b->rows && row < i + ATTENTION_TILE_ROWS; row++) {
            float *to = scores + row * ATTENTION_PITCH;
            s->kernels->map[TN_F32][TN_EXPR_MUL](to, (const void *[]){to, &scale}, seen, 2);
        }
    }
}

void attention_add_halves(const struct attention *s, const struct attention_block *b,
                          int64_t first, int64_t count)
{
    const float *weights = (const float *)(const void *)b->scores;
    uint16_t *high = (uint16_t *)(void *)b->wide,
             *low = high + ATTENTION_ROW_BLOCK * ATTENTION_TILE_PITCH;
    for (int64_t i = 0; i < b->rows; i += ATTENTION_TILE_ROWS) {
        const int64_t seen = halves_tiles_seen(b, i, first, count);
        const int64_t whole =
            (seen + ATTENTION_TILE_ROWS - 1) / ATTENTION_TILE_ROWS * ATTENTION_TILE_ROWS;
        for (int64_t row = i; row < b->rows && row < i + ATTENTION_TILE_ROWS; row++) {
            float *from = (float *)(void *)b->scores + row * ATTENTION_PITCH;
            for (int64_t j = seen; j < whole; j++) // padding to whole tiles
                from[j] = 0;
            s->halves->split(high + row * ATTENTION_TILE_PITCH,
                             low + row * ATTENTION_TILE_PITCH,
                             weights + row * ATTENTION_PITCH, whole);
        }
        s->halves->add((float *)(void *)b->out + i * s->width,
                       high + i * ATTENTION_TILE_PITCH, low + i * ATTENTION_TILE_PITCH,
                       ATTENTION_TILE_PITCH, b->v_tiles + first * s->width, seen, s->width);
    }
}
