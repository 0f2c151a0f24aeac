// SPDX-License-Identifier: MIT
// Tasks: the graph to be computed in topological order, its arrays numbered, and its
// signature: a hash of all that a plan depends on (operations, numbers, types, layouts,
// devices), but of no data.
#include <stdlib.h>
#include <string.h>
#include "../../base/fail.h"
#include "work.h"

static void task_number_array(struct task *task, tn_array *array)
{
    array->mark = task->epoch;
    array->id = task->num_ids++;
}

static struct hash hash_layout(struct hash h, const tn_layout *layout)
{
    h = hash_u64(h, (uint64_t)layout->dtype << 32 | (uint32_t)layout->rank);
    for (int32_t i = 0; i < layout->rank; i++) {
        h = hash_u64(h, (uint64_t)layout->extent[i]);
        h = hash_u64(h, (uint64_t)layout->stride[i]);
    }
    return h;
}

static void hash_leaf(struct task *task, const tn_array *leaf)
{
    uint32_t kind = leaf->node->kind;
    if (leaf->value && kind != NODE_NUMBER)
        kind = NODE_DATA; // whatever it was computed by
    struct hash h = hash_u64(task->signature, (uint64_t)leaf->weak_kind << 32 | kind);
    if (leaf->value) {
        const struct value *value = leaf->value;
        h = hash_layout(h, &value->layout);
        h = hash_u64(h, value->storage->device->number);
        h = hash_u64(h, (uint64_t)value->layout.offset);
        h = hash_u64(h, value->offset);
    } else {
        h = hash_bytes(h, &leaf->type, sizeof(leaf->type));
        h = hash_u64(h, leaf->node->number);
    }
    task->signature = h;
}

tn_status task_add_captured(struct task *task, tn_array *leaf)
{
    tn_status status = mem_grow((void **)&task->leaves, &task->max_leaves,
                                task->num_leaves + 1, sizeof(*task->leaves));
    if (status == TN_OK)
        task->leaves[task->num_leaves++] = leaf;
    return status;
}

static tn_status task_add_leaf(struct task *task, tn_array *leaf)
{
    task_number_array(task, leaf);
    hash_leaf(task, leaf);
    if (leaf->node->kind == NODE_NUMBER)
        return TN_OK;
    if (!leaf->value && leaf->node->kind == NODE_DATA)
        return fail(TN_ERR_INTERNAL, "a data array has no data");
    return task_add_captured(task, leaf);
}

static tn_status task_add_node(struct task *task, struct node *node)
{
    for (uint32_t i = 0; i < node->num_inputs; i++) {
        tn_array *input = node->inputs[i];
        if (input && input->mark != task->epoch) {
            tn_status status = task_add_leaf(task, input);
            if (status != TN_OK)
                return status;
        }
    }
    struct hash h = hash_join(task->signature, node->hash);
    for (uint32_t i = 0; i < node->num_inputs; i++)
        h = hash_u64(h, node->inputs[i] ? node->inputs[i]->id : NONE);
    task->signature = h;
    for (uint32_t i = 0; i < node->num_outputs; i++)
        if (node->outputs[i].mark != task->epoch) // an evaluated one may be a leaf
            task_number_array(task, &node->outputs[i]);
    return TN_OK;
}

static tn_status task_add_output(struct task *task, tn_array *output)
{
    tn_status status = output->mark == task->epoch ? TN_OK : task_add_leaf(task, output);
    task->signature = hash_u64(task->signature, output->id);
    return status;
}

// A node and the number of the latest effect that it has or depends on; 0: none.
struct ordered {
    uint64_t effect;
    struct node *node;
};

static int compare_ordered(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;
    if (x->effect != y->effect)
        return x->effect < y->effect ? -1 : 1;
    return x->node->position < y->node->position ? -1 : 1;
}

// Effects happen in the order in which they were built. What an effect depends on was built
// before, so the order stays topological.
static tn_status sort_by_effects(const struct task *task)
{
    uint32_t count = task->num_nodes;
    struct ordered *list = mem_alloc(((uint64_t)count + 1) * sizeof(*list));
    if (!list)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        struct node *node = task->nodes[i];
        list[i] = (struct ordered){node->kind == NODE_PRIM ? node->number : 0, node};
        for (uint32_t k = 0; k < node->num_inputs; k++) {
            const struct node *input = node->inputs[k] ? node->inputs[k]->node : node;
            uint32_t at = input->position; // undefined for nodes that the walk did not
                                           // reach
            if (at < i && task->nodes[at] == input && list[at].effect > list[i].effect)
                list[i].effect = list[at].effect;
        }
    }
    if (count > 0)
        qsort(list, count, sizeof(*list), compare_ordered);
    for (uint32_t i = 0; i < count; i++) {
        task->nodes[i] = list[i].node;
        list[i].node->position = i;
    }
    mem_free(list);
    return TN_OK;
}

tn_status task_order(tn_scope *scope, tn_array *const *outputs, uint32_t num_outputs,
                     const bool *has_effects, struct task *out)
{
    struct task task = {.scope = scope,
                        .outputs = outputs,
                        .num_outputs = num_outputs,
                        .first_captured = NONE};
    tn_status status =
        graph_order(scope, outputs, num_outputs, TO_DATA, &task.nodes, &task.num_nodes);
    if (status == TN_OK && *has_effects)
        status = sort_by_effects(&task);
    if (status == TN_OK)
        *out = task;
    else
        task_finish(&task);
    return status;
}

tn_status task_number(struct task *task, tn_array *const *inputs, uint32_t num_inputs)
{
    tn_status status = TN_OK;
    task->epoch = ++task->scope->epoch;
    task->signature = hash_start(num_inputs);
    for (uint32_t i = 0; i < num_inputs && status == TN_OK; i++)
        status = task_add_leaf(task, inputs[i]);
    for (uint32_t i = 0; i < task->num_nodes && status == TN_OK; i++)
        status = task_add_node(task, task->nodes[i]);
    for (uint32_t i = 0; i < task->num_outputs && status == TN_OK; i++)
        status = task_add_output(task, task->outputs[i]);
    return status;
}

tn_status task_create(tn_scope *scope, tn_array *const *outputs, uint32_t num_outputs,
                      tn_array *const *inputs, uint32_t num_inputs, struct task *out)
{
    struct task task;
    tn_status status = task_order(scope, outputs, num_outputs, &scope->has_effects, &task);
    if (status != TN_OK)
        return status;
    status = task_number(&task, inputs, num_inputs);
    if (status == TN_OK)
        *out = task;
    else
        task_finish(&task);
    return status;
}

void task_donate(struct task *task, const uint8_t *donated)
{
    task->donated = donated;
    task->num_donated = task->num_leaves;
    task->signature = hash_bytes(task->signature, donated, task->num_leaves);
}

void task_finish(struct task *task)
{
    mem_free(task->nodes);
    mem_free(task->leaves);
    *task = (struct task){0};
}
