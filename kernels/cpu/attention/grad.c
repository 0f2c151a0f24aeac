// SPDX-License-Identifier: MIT
// The derivative of attention in both precisions.
#include "grad.h"

#include <math.h>

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
