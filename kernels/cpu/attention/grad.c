// SPDX-License-Identifier: MIT
// The derivative of attention in f32 and f64.
#include "grad.h"

#include <math.h>

// Computes scores of keys in register tiles. False: there are no panels, use BLAS.
static bool multiply_keys_in_tiles_f32(const struct attention_gradient *g,
                                       const struct attention_grad_block *b, int64_t first,
                                       int64_t count, float *scores, int64_t pitch)
{
    if (b->k_across)
        attention_multiply(&g->of, b->k_across, g->of.depth,
                           (const float *)(const void *)b->q, b->rows, b->states, first,
                           count, scores, pitch);
    return b->k_across;
}

static bool multiply_keys_in_tiles_f64(const struct attention_gradient *g,
                                       const struct attention_grad_block *b, int64_t first,
                                       int64_t count, double *scores, int64_t pitch)
{
    (void)g, (void)b, (void)first, (void)count, (void)scores, (void)pitch;
    return false;
}

static void weigh_terms_f32(const struct attention_gradient *g,
                            const struct attention_grad_block *b, int64_t count,
                            const float *p, int64_t pitch);

// add_tile() in register tiles; false: there are no panels. Terms of keys that no row of a
// tile sees are computed too: their weights are zeros.
static bool add_in_tiles_f32(const struct attention_gradient *g,
                             const struct attention_grad_block *b, int64_t first,
                             int64_t count, const float *p, int64_t pitch)
{
    const struct attention *s = &g->of;
    const float *q = (const float *)(const void *)b->q,
                *gradient = (const float *)(const void *)b->gradient;
    float *terms = (float *)(void *)b->terms;
    if (!b->k_across)
        return false;
    attention_add_rows(s, p, pitch, b->rows, b->states, first, count, gradient, s->width,
                       (float *)(void *)b->dv);
    attention_multiply(s, b->v_across, s->width, gradient, b->rows, NULL, first, count,
                       terms, ATTENTION_PITCH);
    weigh_terms_f32(g, b, count, p, pitch);
    attention_add_along(s, b->k_along, s->depth, terms, ATTENTION_PITCH, b->rows, b->states,
                        first, count, (float *)(void *)b->dq);
    attention_add_rows(s, terms, ATTENTION_PITCH, b->rows, b->states, first, count, q,
                       s->depth, (float *)(void *)b->dk);
    return true;
}

static bool add_in_tiles_f64(const struct attention_gradient *g,
                             const struct attention_grad_block *b, int64_t first,
                             int64_t count, const double *p, int64_t pitch)
{
    (void)g, (void)b, (void)first, (void)count, (void)p, (void)pitch;
    return false;
}

#define T float
#define NAME(word) word##_f32
#define GEMM sgemm
#include "attention_scores.inc.h"
#include "attention_grad_rows.inc.h"
#undef T
#undef NAME
#undef GEMM

#define T double
#define NAME(word) word##_f64
#define GEMM dgemm
#include "attention_scores.inc.h"
#include "attention_grad_rows.inc.h"
#undef T
#undef NAME
#undef GEMM

void attention_add_gradients(const struct attention_gradient *g,
                             const struct attention_grad_block *b)
{
    if (g->of.dtype == TN_F32)
        add_block_f32(g, b);
    else
        add_block_f64(g, b);
}

void attention_add_sums(const struct attention_gradient *g, char *to, const char *from,
                        int64_t begin, int64_t end, int64_t pitch)
{
    if (g->of.dtype == TN_F32)
        add_sums_f32(g, to, from, begin, end, pitch);
    else
        add_sums_f64(g, to, from, begin, end, pitch);
}
