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
    char *to_sinks; // what each query gives its sink, in the dtype that is computed in; or
                    // NULL
    int64_t pitch;  // elements from row to row of the weights that are kept
    bool is_kept;   // weights of a block
    bool has_sums;  // of keys and values in scratch memory, not in the outputs
};

// A block of rows, in the dtype that is computed in.
struct attention_grad_block {
    int64_t rows, low, high; // keys that any row sees
    const char *q, *out, *gradient;
    const char *k, *v; // as they are stored
    char *dq, *dk, *dv, *weights, *terms, *slopes, *wide_k, *wide_v;
    struct attention_row *states;
    char *to_sinks; // of these rows, or NULL
    double *shared; // by all keys of a row: the sum of out times its gradient
    // Panels of the group, where tiles multiply and q has the scale; else NULL.
    const float *k_across, *k_along, *v_across;
};

// Adds what the rows of a block give to the gradients.
void attention_add_gradients(const struct attention_gradient *g,
                             const struct attention_grad_block *b);

// Adds the sums of all parts, `pitch` bytes apart, into `to`: elements [begin, end).
void attention_add_sums(const struct attention_gradient *g, char *to, const char *from,
                        int64_t begin, int64_t end, int64_t pitch);

#endif // KERNELS_CPU_ATTENTION_GRAD_H
