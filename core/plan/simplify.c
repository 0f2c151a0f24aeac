// SPDX-License-Identifier: MIT
// Simplify: common subexpressions (nodes that apply the same operation to the same values)
// become one node, and so do a node and one that gives its output again. There are no dead
// nodes: a task has only nodes that its outputs depend on.
#include "../base/shape.h"
#include "../expr/expr.h"
#include "plan.h"

static bool has_effect(const struct node *node)
{
    return node->kind == NODE_PRIM && (node->prim->record.flags & TN_PRIM_EFFECT);
}

// The id of the input, or of the same output of the first node that equals the input's
// node.
static uint64_t canonical_id(const struct plan_work *work, const uint32_t *node_of_id,
                             const tn_array *array)
{
    if (!array)
        return UINT64_MAX;
    uint32_t node = node_of_id[array->id];
    if (node == NONE)
        return array->id; // a leaf
    const struct node *same = work->task->nodes[work->same_as[node]];
    return same->outputs[array->output].id;
}

static struct hash hash_application(const struct plan_work *work,
                                    const uint32_t *node_of_id, const struct node *node)
{
    struct hash h = node->hash;
    for (uint32_t i = 0; i < node->num_inputs; i++)
        h = hash_u64(h, canonical_id(work, node_of_id, node->inputs[i]));
    return h;
}

// The node whose first output this node repeats with the same type, as a cast to the dtype
// of its input does; else NONE.
static uint32_t plan_simplify_repeated(const struct plan_work *work,
                                       const uint32_t *node_of_id, const struct node *node)
{
    const tn_array *x = node->num_inputs == 1 ? node->inputs[0] : NULL;
    if (!x || !node->expr || expr_is_input(node->expr) != 0 || x->output != 0 ||
        x->weak_kind != node->outputs[0].weak_kind ||
        !type_equal(&x->type, &node->outputs[0].type))
        return NONE;
    uint32_t from = node_of_id[x->id];
    bool is_there = from != NONE && work->task->nodes[from]->device == node->device;
    return is_there ? work->same_as[from] : NONE;
}

// Outputs that repeat an array have memory of their own: it is what base.copy is for.
static void keep_outputs(struct plan_work *work, const uint32_t *node_of_id, uint32_t count)
{
    const struct task *task = work->task;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t i = node_of_id[task->outputs[k]->id];
        if (i != NONE && plan_simplify_repeated(work, node_of_id, task->nodes[i]) != NONE)
            work->same_as[i] = i;
    }
}

tn_status plan_simplify(struct plan_work *work)
{
    const struct task *task = work->task;
    struct map seen = {0};
    uint32_t *node_of_id = mem_alloc((task->num_ids + 1) * sizeof(*node_of_id));
    tn_status status = node_of_id ? TN_OK : TN_ERR_MEMORY;
    for (uint32_t i = 0; i < task->num_ids && status == TN_OK; i++)
        node_of_id[i] = NONE;
    for (uint32_t i = 0; i < task->num_nodes && status == TN_OK; i++) {
        const struct node *node = task->nodes[i];
        work->same_as[i] = i;
        for (uint32_t k = 0; k < node->num_outputs; k++)
            if (!node->outputs[k].value)
                node_of_id[node->outputs[k].id] = i;
        uint32_t again = plan_simplify_repeated(work, node_of_id, node);
        if (again != NONE)
            work->same_as[i] = again;
        if (again != NONE || has_effect(node))
            continue;
        struct hash h = hash_application(work, node_of_id, node);
        void *first = map_get(&seen, h);
        if (first)
            work->same_as[i] = (uint32_t)(uintptr_t)first - 1;
        else
            status = map_put(&seen, h, (void *)(uintptr_t)(i + 1));
    }
    keep_outputs(work, node_of_id, status == TN_OK ? task->num_outputs : 0);
    map_finish(&seen);
    mem_free(node_of_id);
    return status;
}
