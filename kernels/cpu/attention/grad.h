// SPDX-License-Identifier: MIT
// The derivative of attention, for blocks of rows.
#ifndef KERNELS_CPU_ATTENTION_GRAD_H
#define KERNELS_CPU_ATTENTION_GRAD_H

#include "attention.h"

// Arguments of the gradient, and the memory of all blocks.
struct attention_gradient {
    struct attention of;
    const char *out, *gradient;
    char *dq, *dk, *dv, *sums, *lanes;
    char *to_sinks; // gradient of each query's sink, in the dtype of arithmetic; or NULL
    int64_t pitch;  // elements between rows of weights, if is_kept
    bool is_kept;   // the weights of all keys of a block stay in memory
    bool has_sums;  // dk and dv are summed in scratch memory, not in the outputs
};

// A block of rows. Arrays are in the dtype of arithmetic but for k and v.
struct attention_grad_block {
    int64_t rows, low, high; // keys that any row sees
    const char *q, *out, *gradient;
    const char *k, *v; // in their stored dtype
    char *dq, *dk, *dv, *weights, *terms, *slopes, *wide_k, *wide_v;
    struct attention_row *states;
    char *to_sinks; // gradients of the sinks of these rows, or NULL
    double *shared; // for each row the sum of its outputs times their gradients
    // Panels of the group, for register tiles; then q is scaled already. NULL: BLAS.
    const float *k_across, *k_along, *v_across;
};

// Adds the contributions of a block's rows to the gradients.
void attention_add_gradients(const struct attention_gradient *g,
                             const struct attention_grad_block *b);

// Adds elements [begin, end) of the sums of all splits, `pitch` bytes apart, to `to`.
void attention_add_sums(const struct attention_gradient *g, char *to, const char *from,
                        int64_t begin, int64_t end, int64_t pitch);

#endif // KERNELS_CPU_ATTENTION_GRAD_H
