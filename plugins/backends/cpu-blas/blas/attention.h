// SPDX-License-Identifier: MIT
// The operands of nn.scaled_dot_product_attention/1, its derivative and
// quant.cached_attention/1, as the loops of kernels/cpu/attention read them.
//
// Threads. Everything here is pure.
#ifndef CPU_BLAS_ATTENTION_H
#define CPU_BLAS_ATTENTION_H

#include <stdbool.h>
#include <tenon/ops/nn_attrs.h>
#include <tenon/ops/quant_attrs.h>
#include "blas.h"
#include "cpu/attention/attention.h"
#include "ops/kernels.h"

// Whether BLAS can compute the step: the first `floats` inputs have one dtype, and `mask`
// is the number of the mask.
bool attention_is_taken(const tn_kernel_query *query, uint32_t floats, uint32_t mask);
// Whether BLAS takes the sizes and the strides of rows.
bool attention_fits(const tn_kernel_query *query);

// Fills in what follows from the layouts of q, k and v, but for the blocks.
void attention_read_shape(const tn_layout inputs[3], struct attention *s);
// Fills in what follows from the attributes.
void attention_read_score(const tn_attention_attrs *attrs, struct attention *s);
// Fills in what follows from attributes and optional inputs, of which `mask` is the first.
void attention_read_options(const tn_cpu_call *call, uint32_t mask, struct attention *s);

#endif // CPU_BLAS_ATTENTION_H
