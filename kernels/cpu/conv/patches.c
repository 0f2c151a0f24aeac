// SPDX-License-Identifier: MIT
// Patches of a convolution: gathered from the input, and added back to it.
#include "patches.h"

#include <stdbool.h>
#include <string.h>

// `count` output pixels in one row of an image, and the input position at which the patch
// of the first of them begins.
struct pixels {
    int64_t image, y, x; // y and x may lie in the padding
    int64_t count;
};

// The pixels of [at, end) in the output row of pixel `at`. Called once a row, since its
// divisions take as long as a row of a small patch.
static struct pixels conv_patches_row_of(const struct cpu_conv *conv, int64_t at,
                                         int64_t end)
{
    int64_t row = at / conv->ow, ox = at - row * conv->ow;
    int64_t image = row / conv->oh, oy = row - image * conv->oh;
    int64_t left = end - at, in_row = conv->ow - ox;
    return (struct pixels){image, oy * conv->sh - conv->ph, ox * conv->sw - conv->pw,
                           left < in_row ? left : in_row};
}

#define WORD 4      // floats that one instruction copies
#define LONG_RUN 16 // floats: a longer run is worth a call of memcpy

// Hides the value of an index from GCC, which would replace the loop by a call of memcpy or
// memset.
#define KEEP_LOOP(i) __asm__("" : "+r"(i))

// Copies n floats: whole words, the last of which may overlap the word before. Runs are
// short (5 floats for a window of 5 by 5 on one channel), and a call of memcpy costs three
// times as much as copying such a run.
static inline void conv_patches_copy_run(float *restrict to, const float *restrict from,
                                         int64_t n)
{
    if (n > LONG_RUN) {
        memcpy(to, from, (size_t)n * sizeof(float));
        return;
    }
    if (n >= WORD) {
        for (int64_t i = 0; i < n - WORD; i += WORD) {
            memcpy(to + i, from + i, WORD * sizeof(float));
            KEEP_LOOP(i);
        }
        memcpy(to + n - WORD, from + n - WORD, WORD * sizeof(float));
        return;
    }
    if (n & 2)
        memcpy(to, from, 2 * sizeof(float));
    if (n & 1)
        to[n - 1] = from[n - 1];
}

// Sets n floats to 0, in words like conv_patches_copy_run().
static inline void clear_run(float *to, int64_t n)
{
    if (n >= WORD) {
        for (int64_t i = 0; i < n - WORD; i += WORD) {
            memset(to + i, 0, WORD * sizeof(float));
            KEEP_LOOP(i);
        }
        memset(to + n - WORD, 0, WORD * sizeof(float));
        return;
    }
    if (n & 2)
        memset(to, 0, 2 * sizeof(float));
    if (n & 1)
        to[n - 1] = 0;
}

static inline void add_run(float *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

// Copies one row of a patch whose taps are not adjacent.
static void gather_taps(const struct cpu_conv *conv, const float *row, int64_t x0,
                        float *to)
{
    for (int64_t kx = 0; kx < conv->kw; kx++, to += conv->cg) {
        int64_t x = x0 + kx * conv->dw;
        if (x < 0 || x >= conv->w)
            clear_run(to, conv->cg);
        else
            conv_patches_copy_run(to, row + x * conv->c, conv->cg);
    }
}

// Copies one row of a patch whose taps are adjacent, partly in the padding.
static void gather_edge(const struct cpu_conv *conv, const float *row, int64_t x0,
                        float *to)
{
    int64_t c = conv->c, before = x0 < 0 ? -x0 : 0, end = conv->w - x0;
    before = before < conv->kw ? before : conv->kw;
    end = end < conv->kw ? end : conv->kw;
    end = end > before ? end : before;
    clear_run(to, before * c);
    if (before < end)
        conv_patches_copy_run(to + before * c, row + (x0 + before) * c, (end - before) * c);
    clear_run(to + end * c, (conv->kw - end) * c);
}

static void scatter_taps(const struct cpu_conv *conv, float *row, int64_t x0,
                         const float *from)
{
    for (int64_t kx = 0; kx < conv->kw; kx++, from += conv->cg) {
        int64_t x = x0 + kx * conv->dw;
        if (x >= 0 && x < conv->w)
            add_run(row + x * conv->c, from, conv->cg);
    }
}

// Whether the taps of a row of a patch are adjacent.
static inline bool conv_patches_is_dense(const struct cpu_conv *conv)
{
    return conv->dw == 1 && conv->groups == 1;
}

// Whether the taps of a row of a patch are adjacent and within the input.
static inline bool is_run(const struct cpu_conv *conv, int64_t x0)
{
    return conv_patches_is_dense(conv) && x0 >= 0 && x0 + conv->kw <= conv->w;
}

// Fills row `ky` of the patches of the pixels `at`. The first patch is at `to`.
static void conv_patches_gather_row(const struct cpu_conv *conv, const float *x,
                                    const struct pixels *at, int64_t ky, float *to)
{
    int64_t y = at->y + ky * conv->dh, x0 = at->x, run = conv->kw * conv->cg;
    if (y < 0 || y >= conv->h) {
        for (int64_t i = 0; i < at->count; i++, to += conv->k)
            clear_run(to, run);
        return;
    }
    const float *row = x + (at->image * conv->h + y) * conv->w * conv->c;
    for (int64_t i = 0; i < at->count; i++, to += conv->k, x0 += conv->sw) {
        if (is_run(conv, x0))
            conv_patches_copy_run(to, row + x0 * conv->c, run);
        else if (conv_patches_is_dense(conv))
            gather_edge(conv, row, x0, to);
        else
            gather_taps(conv, row, x0, to);
    }
}

void cpu_conv_gather(const struct cpu_conv *conv, const float *x, int64_t g, int64_t first,
                     int64_t count, float *patches)
{
    for (int64_t i = first; i < first + count;) {
        struct pixels at = conv_patches_row_of(conv, i, first + count);
        for (int64_t ky = 0; ky < conv->kh; ky++)
            conv_patches_gather_row(conv, x + g * conv->cg, &at, ky,
                                    patches + ky * conv->kw * conv->cg);
        patches += at.count * conv->k;
        i += at.count;
    }
}

// Adds row `ky` of the patches of the pixels `at` to x. The first patch is at `from`.
static void scatter_row(const struct cpu_conv *conv, float *x, const struct pixels *at,
                        int64_t ky, const float *from)
{
    int64_t y = at->y + ky * conv->dh, x0 = at->x, run = conv->kw * conv->cg;
    if (y < 0 || y >= conv->h)
        return;
    float *row = x + (at->image * conv->h + y) * conv->w * conv->c;
    for (int64_t i = 0; i < at->count; i++, from += conv->k, x0 += conv->sw) {
        if (is_run(conv, x0))
            add_run(row + x0 * conv->c, from, run);
        else
            scatter_taps(conv, row, x0, from);
    }
}

void cpu_conv_scatter(const struct cpu_conv *conv, float *x, int64_t g, int64_t first,
                      int64_t count, const float *patches)
{
    for (int64_t i = first; i < first + count;) {
        struct pixels at = conv_patches_row_of(conv, i, first + count);
        for (int64_t ky = 0; ky < conv->kh; ky++)
            scatter_row(conv, x + g * conv->cg, &at, ky,
                        patches + ky * conv->kw * conv->cg);
        patches += at.count * conv->k;
        i += at.count;
    }
}
