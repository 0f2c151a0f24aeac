// SPDX-License-Identifier: MIT
// The tables of plan_work: values, operations, and the operations that read each value.
#include "work.h"

#include <string.h>

tn_status work_add_value(struct plan_work *work, const tn_layout *layout, uint32_t device,
                         uint32_t *out_value)
{
    tn_status status = mem_grow((void **)&work->values, &work->max_values,
                                work->num_values + 1, sizeof(*work->values));
    if (status != TN_OK)
        return status;
    uint32_t id = work->num_values++;
    work->values[id] = (struct plan_value){.layout = *layout,
                                           .base = id,
                                           .producer = NONE,
                                           .leaf = NONE,
                                           .device = device,
                                           .first_use = NONE};
    *out_value = id;
    return TN_OK;
}

tn_status work_add_op(struct plan_work *work, const struct plan_op *op, uint32_t *out_op)
{
    tn_status status = mem_grow((void **)&work->ops, &work->max_ops, work->num_ops + 1,
                                sizeof(*work->ops));
    if (status != TN_OK)
        return status;
    uint32_t id = work->num_ops++;
    work->ops[id] = *op;
    work->ops[id].group = NONE;
    for (uint32_t i = 0; i < op->num_outputs; i++)
        work->values[op->outputs[i]].producer = id;
    if (out_op)
        *out_op = id;
    return TN_OK;
}

static tn_status add_use(struct plan_work *work, uint32_t value, uint32_t op)
{
    uint32_t base = work->values[value].base;
    uint32_t last = work->last_use[base];
    if (last != NONE && work->uses[last].op == op)
        return TN_OK;
    tn_status status = mem_grow((void **)&work->uses, &work->max_uses, work->num_uses + 1,
                                sizeof(*work->uses));
    if (status != TN_OK)
        return status;
    uint32_t use = work->num_uses++;
    work->uses[use] = (struct plan_use){op, NONE};
    if (last == NONE)
        work->values[base].first_use = use;
    else
        work->uses[last].next = use;
    work->last_use[base] = use;
    return TN_OK;
}

tn_status work_list_uses(struct plan_work *work)
{
    for (uint32_t i = 0; i < work->num_values; i++)
        work->values[i].first_use = NONE;
    work->num_uses = 0;
    mem_free(work->last_use);
    work->last_use = mem_alloc((work->num_values + 1) * sizeof(*work->last_use));
    if (!work->last_use)
        return TN_ERR_MEMORY;
    memset(work->last_use, 0xff, work->num_values * sizeof(*work->last_use));
    for (uint32_t i = 0; i < work->num_ops; i++) {
        const struct plan_op *op = &work->ops[i];
        for (uint32_t k = 0; k < op->num_inputs; k++) {
            if (op->inputs[k].value == NONE)
                continue;
            tn_status status = add_use(work, op->inputs[k].value, i);
            if (status != TN_OK)
                return status;
        }
    }
    return TN_OK;
}

void work_remove_ops(struct plan_work *work, const bool *gone)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < work->num_ops; i++) {
        if (gone[i])
            continue;
        work->ops[kept] = work->ops[i];
        for (uint32_t k = 0; k < work->ops[kept].num_outputs; k++)
            work->values[work->ops[kept].outputs[k]].producer = kept;
        kept++;
    }
    work->num_ops = kept;
}

void work_finish(struct plan_work *work)
{
    mem_free(work->values);
    mem_free(work->ops);
    mem_free(work->value_of);
    mem_free(work->same_as);
    mem_free(work->uses);
    mem_free(work->last_use);
    for (uint32_t i = 0; i < work->num_scopes; i++)
        tn_scope_close(work->scopes[i]);
    mem_free(work->scopes);
    map_finish(&work->transferred);
    arena_finish(&work->stack);
    expr_set_release(work->exprs);
}

tn_type layout_type(const tn_layout *layout)
{
    tn_type type = {.dtype = layout->dtype, .rank = layout->rank};
    memcpy(type.extent, layout->extent, sizeof(type.extent));
    return type;
}
