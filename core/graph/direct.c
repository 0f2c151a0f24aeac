// SPDX-License-Identifier: MIT
// Makes counted nodes in place of a scope's nodes, so that an application's outputs outlive
// the scope without a copy of the node.
#include "counted.h"

#include <string.h>
#include "../base/fail.h"

void *direct_begin(tn_scope *scope, size_t size)
{
    struct counted *c = mem_alloc(size); // glibc gives cleared memory more slowly
    if (!c)
        return NULL;
    memset(c, 0, size);
    c->runtime = scope->runtime;
    c->interned.set = scope->interned.set;
    scope->direct->made = c;
    return c;
}

// Gives a counted array for a number of the scope.
static tn_array *count_number(tn_scope *scope, const tn_array *number)
{
    struct counted *c = counted_create(scope, number->node, number);
    return c ? c->node.outputs : NULL;
}

static tn_status refer_to(tn_scope *scope, struct counted *c, uint32_t i, tn_array *input)
{
    struct counted *from = counted_of(input);
    if (input->donated) {
        scope_refuse_donated(scope);
        return scope->status;
    }
    if (from->runtime != c->runtime)
        return tn_scope_fail(scope, TN_ERR_ARGUMENT,
                             "the array belongs to another runtime");
    atomic_fetch_add_explicit(&input->refs, 1, memory_order_relaxed); // it is the caller's
    c->node.inputs[i] = input;
    c->has_effects |= from->has_effects;
    return TN_OK;
}

tn_status direct_inputs(tn_scope *scope, struct node *node, const tn_array *const *inputs)
{
    struct counted *c = (struct counted *)node; // it is the first member
    tn_status status = TN_OK;
    c->num_live = c->num_pending = node->num_outputs;
    for (uint32_t i = 0; i < node->num_outputs; i++)
        atomic_init(&node->outputs[i].refs, 1);
    for (uint32_t i = 0; i < node->num_inputs && status == TN_OK; i++) {
        tn_array *input = (tn_array *)(uintptr_t)inputs[i];
        if (!input)
            continue;
        if (!input->scope) {
            status = refer_to(scope, c, i, input);
            continue;
        }
        node->inputs[i] = count_number(scope, input);
        status = node->inputs[i] ? TN_OK : scope->status;
    }
    return status;
}
