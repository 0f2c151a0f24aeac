// SPDX-License-Identifier: MIT
// Decompositions; see decompose.h.
#include "decompose.h"

#include "../base/fail.h"
#include "build.h"

tn_status decomposition_open(tn_runtime *runtime, uint32_t num_inputs, uint32_t num_outputs,
                             struct decomposition *out)
{
    *out = (struct decomposition){.scope = tn_scope_open(runtime),
                                  .num_inputs = num_inputs,
                                  .num_outputs = num_outputs};
    if (!out->scope)
        return TN_ERR_MEMORY;
    out->scope->tracing = true;
    out->inputs = arena_alloc(&out->scope->arena, (2 * (uint64_t)num_inputs + num_outputs) *
                                                      sizeof(*out->inputs));
    if (!out->inputs)
        return TN_ERR_MEMORY;
    out->leaves = out->inputs + num_inputs;
    out->outputs = out->leaves + num_inputs;
    return TN_OK;
}

tn_status decomposition_add_input(struct decomposition *d, uint32_t i, const tn_type *type,
                                  uint8_t weak_kind)
{
    d->inputs[i] = leaf_create(d->scope, NODE_INPUT, type);
    if (!d->inputs[i])
        return d->scope->status;
    d->inputs[i]->weak_kind = weak_kind;
    d->leaves[d->num_leaves++] = d->inputs[i];
    return TN_OK;
}

tn_status decomposition_build(struct decomposition *d, const struct prim *prim,
                              const void *attrs, const tn_type *types)
{
    const tn_rule rule = {.struct_size = sizeof(rule),
                          .attrs = attrs,
                          .inputs = d->inputs,
                          .num_inputs = d->num_inputs,
                          .num_outputs = d->num_outputs,
                          .unread = d->unread};
    tn_status status = rule_decompose(d->scope, prim, &rule, types, d->outputs);
    if (status != TN_OK && d->scope->status != TN_OK)
        return fail(status, "%s: decompose: %s", prim->record.id, tn_scope_error(d->scope));
    return status;
}
