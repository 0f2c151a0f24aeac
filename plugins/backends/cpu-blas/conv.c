// SPDX-License-Identifier: MIT
// Patches of a convolution: gathered from the input, and added back to it.
#include "conv.h"

#include <string.h>

// Entry `i` (0: rows, 1: columns) of a list of two, or the only entry.
static int64_t pair(const tn_ints *list, uint32_t i, int64_t absent)
{
    if (!list->given || list->count == 0)
        return absent;
    return list->value[list->count > i ? i : 0];
}

void conv_read(const tn_conv2d_attrs *attrs, const tn_layout *x, const tn_layout *w,
               const tn_layout *out, struct conv *conv)
{
    int64_t groups = attrs->groups > 0 ? attrs->groups : 1;
    *conv = (struct conv){
        .n = x->extent[0],
        .h = x->extent[1],
        .w = x->extent[2],
        .c = x->extent[3],
        .oh = out->extent[1],
        .ow = out->extent[2],
        .o = out->extent[3],
        .kh = w->extent[1],
        .kw = w->extent[2],
        .sh = pair(&attrs->stride, 0, 1),
        .sw = pair(&attrs->stride, 1, 1),
        .ph = pair(&attrs->padding, 0, 0),
        .pw = pair(&attrs->padding, 1, 0),
        .dh = pair(&attrs->dilation, 0, 1),
        .dw = pair(&attrs->dilation, 1, 1),
        .groups = groups,
        .cg = x->extent[3] / groups,
        .og = out->extent[3] / groups,
    };
    conv->k = conv->kh * conv->kw * conv->cg;
    conv->pixels = conv->n * conv->oh * conv->ow;
    conv->tile = conv->k > 0 ? CONV_TILE / conv->k : CONV_TILE;
}

bool conv_accepts(const struct conv *conv)
{
    return conv->k <= CONV_TILE / 4 && conv->o <= INT32_MAX && conv->c <= INT32_MAX &&
           blas_open();
}

// The input position at which the patch of an output pixel begins.
struct corner {
    int64_t image, y, x; // y and x may lie in the padding
};

static struct corner corner_of(const struct conv *conv, int64_t pixel)
{
    int64_t row = pixel / conv->ow, ox = pixel - row * conv->ow;
    int64_t image = row / conv->oh, oy = row - image * conv->oh;
    return (struct corner){image, oy * conv->sh - conv->ph, ox * conv->sw - conv->pw};
}

// A loop, because a call of memcpy costs more than a short run.
static inline void copy_run(float *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i];
}

static inline void add_run(float *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

// One row of a patch whose taps are not adjacent, or partly in the padding.
static void gather_taps(const struct conv *conv, const float *row, int64_t x0, float *to)
{
    for (int64_t kx = 0; kx < conv->kw; kx++, to += conv->cg) {
        int64_t x = x0 + kx * conv->dw;
        if (x < 0 || x >= conv->w)
            memset(to, 0, (size_t)conv->cg * sizeof(float));
        else
            copy_run(to, row + x * conv->c, conv->cg);
    }
}

static void scatter_taps(const struct conv *conv, float *row, int64_t x0, const float *from)
{
    for (int64_t kx = 0; kx < conv->kw; kx++, from += conv->cg) {
        int64_t x = x0 + kx * conv->dw;
        if (x >= 0 && x < conv->w)
            add_run(row + x * conv->c, from, conv->cg);
    }
}

// Whether the taps of a row are adjacent and within the input.
static bool is_run(const struct conv *conv, int64_t x0)
{
    return conv->dw == 1 && conv->groups == 1 && x0 >= 0 && x0 + conv->kw <= conv->w;
}

void conv_gather(const struct conv *conv, const float *x, int64_t g, int64_t first,
                 int64_t count, float *patches)
{
    int64_t run = conv->kw * conv->cg;
    for (int64_t i = first; i < first + count; i++) {
        struct corner at = corner_of(conv, i);
        for (int64_t ky = 0; ky < conv->kh; ky++, patches += run) {
            int64_t y = at.y + ky * conv->dh;
            const float *row =
                x + (at.image * conv->h + y) * conv->w * conv->c + g * conv->cg;
            if (y < 0 || y >= conv->h)
                memset(patches, 0, (size_t)run * sizeof(float));
            else if (is_run(conv, at.x))
                copy_run(patches, row + at.x * conv->c, run);
            else
                gather_taps(conv, row, at.x, patches);
        }
    }
}

void conv_scatter(const struct conv *conv, float *x, int64_t g, int64_t first,
                  int64_t count, const float *patches)
{
    int64_t run = conv->kw * conv->cg;
    for (int64_t i = first; i < first + count; i++) {
        struct corner at = corner_of(conv, i);
        for (int64_t ky = 0; ky < conv->kh; ky++, patches += run) {
            int64_t y = at.y + ky * conv->dh;
            if (y < 0 || y >= conv->h)
                continue;
            float *row = x + (at.image * conv->h + y) * conv->w * conv->c + g * conv->cg;
            if (is_run(conv, at.x))
                add_run(row + at.x * conv->c, patches, run);
            else
                scatter_taps(conv, row, at.x, patches);
        }
    }
}
