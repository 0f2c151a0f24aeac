// SPDX-License-Identifier: MIT
// Shared by the types, definitions and rules of scaled_dot_product_attention and
// attention_grad. The inputs of both begin with q, k, v and end with mask, lengths.
#ifndef NN_ATTENTION_H
#define NN_ATTENTION_H

#include "pack.h"

// Inputs of attention_grad; in attention, inputs from MASK on are two positions earlier.
enum attention_input { ATTENTION_OUT = 3, ATTENTION_GRADIENT, ATTENTION_MASK };
// Inputs of attention_with_sinks_grad.
enum { SINKS_SINKS = 3, SINKS_OUT, SINKS_GRADIENT, SINKS_MASK };

// Extent of axis `behind` counted from the end: 1 is the last axis.
static inline int64_t attention_extent(const tn_type *type, int32_t behind)
{
    return type->rank >= behind ? type->extent[type->rank - behind] : 1;
}

// The attributes for another application: valid within the enclosing block.
#define ATTENTION_ATTRS(a)                                                                 \
    tn_attrs("scale", (a)->scale, "is_causal", (a)->is_causal, "window", (a)->window,      \
             "soft_cap", (a)->soft_cap)

// attention_decompose.c
tn_status attention_decompose(const tn_build *build, const tn_rule *rule,
                              tn_array **outputs);
tn_status attention_grad_decompose(const tn_build *build, const tn_rule *rule,
                                   tn_array **outputs);
tn_status attention_with_sinks_define(const tn_build *build, const tn_rule *rule,
                                      tn_array **outputs);
// The gradient of an added mask, as large as the scores. `in`: the inputs of
// attention_grad.
tn_array *attention_mask_gradient(const tn_build *build, const tn_attention_attrs *attrs,
                                  tn_array *const in[7]);
// The same with sinks. `in`: the inputs of attention_with_sinks_grad.
tn_array *attention_with_sinks_mask_gradient(const tn_build *build,
                                             const tn_attention_attrs *attrs,
                                             tn_array *const in[8]);

// attention_sinks.c
tn_status attention_with_sinks_decompose(const tn_build *build, const tn_rule *rule,
                                         tn_array **outputs);
tn_status attention_with_sinks_grad_decompose(const tn_build *build, const tn_rule *rule,
                                              tn_array **outputs);
tn_status attention_with_sinks_vjp(const tn_build *build, const tn_rule *rule,
                                   tn_array *const *cotangents, const uint64_t *wanted,
                                   tn_array **gradients);

#endif // NN_ATTENTION_H
