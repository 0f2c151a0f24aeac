// SPDX-License-Identifier: MIT
// Cotangents of slices of one array are kept until the array's own cotangent is asked for.
// Slices that make up the whole array are joined. Others are added to their part of the sum
// of the array's other cotangents, where that sum is in memory. The rule of each slice
// would write its cotangent to zeros of the array's size.
#include <string.h>
#include "../base/shape.h"
#include "../graph/rules.h"
#include "../plugin/load/primitives.h"
#include "flow.h"

// The cotangent of a node that is a view of a range of one axis.
struct flow_slice {
    struct node *node;
    tn_array *cotangent;
    int64_t first;
    int32_t axis;
    uint32_t next; // 1 + the number of the array's next slice; 0: none
};

// Whether the node's output is the elements from *first on along one axis of its input.
static bool is_slice(const struct node *node, int32_t *axis, int64_t *first)
{
    tn_layout seen;
    if (node->kind != NODE_PRIM || !(node->prim->record.flags & TN_PRIM_VIEW))
        return false;
    const tn_type *from = &node->inputs[0]->type, *to = &node->outputs[0].type;
    const tn_layout whole = layout_contiguous(from);
    if (from->rank != to->rank || from->dtype != to->dtype || type_elements(to) == 0 ||
        rule_view(node->prim, &whole, to, node->attrs, &seen) != TN_OK)
        return false;
    *axis = -1;
    for (int32_t i = 0; i < to->rank; i++) {
        if (to->extent[i] > 1 && seen.stride[i] != whole.stride[i])
            return false;
        if (to->extent[i] == from->extent[i])
            continue;
        if (*axis >= 0 || to->extent[i] > from->extent[i])
            return false;
        *axis = i;
    }
    if (*axis < 0)
        return false;
    *first = (seen.offset - whole.offset) / whole.stride[*axis];
    return true;
}

static tn_status slice_sum_grow(struct flow *flow)
{
    uint32_t before = flow->max_heads;
    tn_status status = mem_grow((void **)&flow->slices, &flow->max_slices,
                                flow->num_slices + 1, sizeof(*flow->slices));
    if (status == TN_OK)
        status = mem_grow((void **)&flow->heads, &flow->max_heads, flow->num_slots,
                          sizeof(*flow->heads));
    if (status == TN_OK && flow->max_heads > before)
        memset(flow->heads + before, 0, (flow->max_heads - before) * sizeof(*flow->heads));
    return status;
}

tn_status flow_keep_slice(struct flow *flow, struct node *node, tn_array *cotangent,
                          bool *out_kept)
{
    struct flow_slice s = {.node = node, .cotangent = cotangent};
    *out_kept = false;
    if (!is_slice(node, &s.axis, &s.first))
        return TN_OK;
    tn_status status = slice_sum_grow(flow);
    if (status != TN_OK)
        return status;
    uint32_t *head = &flow->heads[node->inputs[0]->id];
    s.next = *head;
    *head = ++flow->num_slices;
    flow->slices[flow->num_slices - 1] = s;
    *out_kept = true;
    return TN_OK;
}

// Merges two sorted lists; of slices that begin at one position those of `a` are in front.
static uint32_t merge_slices(struct flow_slice *slices, uint32_t a, uint32_t b)
{
    uint32_t head = 0, *link = &head;
    while (a && b) {
        uint32_t *least = slices[b - 1].first < slices[a - 1].first ? &b : &a;
        *link = *least;
        link = &slices[*least - 1].next;
        *least = *link;
    }
    *link = a ? a : b;
    return head;
}

// Sorts a list by `first`, and gives its head. runs[i] is a sorted list of 2^i slices, or
// 0; slices in runs of a higher i came earlier in the list.
static uint32_t sort_slices(struct flow_slice *slices, uint32_t head)
{
    uint32_t runs[32] = {0}, sorted = 0;
    while (head) {
        uint32_t run = head, i = 0;
        head = slices[run - 1].next;
        slices[run - 1].next = 0;
        for (; runs[i]; i++) {
            run = merge_slices(slices, runs[i], run);
            runs[i] = 0;
        }
        runs[i] = run;
    }
    for (uint32_t i = 0; i < 32; i++)
        sorted = merge_slices(slices, runs[i], sorted);
    return sorted;
}

// The number of slices from `head` on if they make up the array, one behind another; else
// 0.
static uint32_t count_whole(const struct flow *flow, uint32_t head, const tn_type *type)
{
    int32_t axis = flow->slices[head - 1].axis;
    int64_t end = 0;
    uint32_t count = 0;
    for (uint32_t n = head; n; n = flow->slices[n - 1].next, count++) {
        const struct flow_slice *s = &flow->slices[n - 1];
        if (s->axis != axis || s->first != end)
            return 0;
        end += s->cotangent->type.extent[axis];
    }
    return end == type->extent[axis] ? count : 0;
}

static tn_status slice_sum_concatenate(struct flow *flow, uint32_t head, uint32_t count,
                                       const struct prim *prim, tn_array **out_array)
{
    const tn_attr axis = TN_ATTR_INIT("axis", (int64_t)flow->slices[head - 1].axis);
    const tn_array **inputs = mem_alloc(count * sizeof(*inputs));
    tn_status status = inputs ? TN_OK : TN_ERR_MEMORY;
    for (uint32_t n = head, i = 0; status == TN_OK && n; n = flow->slices[n - 1].next)
        inputs[i++] = flow->slices[n - 1].cotangent;
    if (status == TN_OK)
        status =
            flow_apply_prim(flow, prim, inputs, count, TN_ATTR_LIST(&axis, 1), out_array);
    mem_free(inputs);
    return status;
}

// The gradient by the slice's own rule.
static tn_status add_alone(struct flow *flow, const struct flow_slice *s)
{
    tn_array *gradient = NULL, *array = s->node->inputs[0];
    tn_status status = vjp_call(flow, s->node, &s->cotangent, (uint64_t[]){1}, &gradient);
    return status == TN_OK ? flow_add(flow, array, gradient) : status;
}

// The sum of *slot and the slice's cotangent in its part, and of *slot in the rest.
static tn_status add_to_part(struct flow *flow, const struct flow_slice *s,
                             const struct prim *update, tn_array **slot)
{
    const struct node *node = s->node;
    const tn_type *type = &node->outputs[0].type;
    tn_array *part = NULL, *sum = NULL;
    tn_ints start = {.count = (uint32_t)s->axis + 1, .given = 1}, stop = start;
    for (int32_t i = 0; i < s->axis; i++)
        stop.value[i] = type->extent[i];
    start.value[s->axis] = s->first;
    stop.value[s->axis] = s->first + type->extent[s->axis];
    const tn_attr bounds[] = {{.name = "start", .kind = TN_ATTR_INTS, .ints = &start},
                              {.name = "stop", .kind = TN_ATTR_INTS, .ints = &stop}};
    tn_status status =
        graph_apply(flow->scope, node->prim, TN_IN(*slot), node->attrs, &part, 1);
    if (status == TN_OK)
        status = flow_fit(flow, s->cotangent, type, &sum);
    if (status == TN_OK)
        status = graph_apply_expr(flow->scope, flow->sum, TN_IN(part, sum), NULL, NULL,
                                  &type->dtype, &sum);
    return status == TN_OK ? flow_apply_prim(flow, update, TN_IN(*slot, sum),
                                             TN_ATTR_LIST(bounds, 2), slot)
                           : status;
}

// Whether the array always has memory of its own: results of expressions may stay within a
// program, and views have the memory of another array.
static bool has_memory(const tn_array *array)
{
    const struct node *node = array->node;
    return node->kind == NODE_PRIM && !node->expr &&
           !(node->prim->record.flags & TN_PRIM_VIEW);
}

// Adds the slice to the sum in memory, if there is one. A sum that programs compute has no
// memory: then the slice's own rule, which writes to zeros, is as cheap.
static tn_status add_slice(struct flow *flow, const struct flow_slice *s)
{
    const struct prim *update;
    tn_array **slot = flow_slot(flow, s->node->inputs[0]);
    return *slot && has_memory(*slot) && s->node->num_inputs == 1 &&
                   prim_find_role(flow->scope->runtime, ROLE_SLICE_UPDATE, &update) == TN_OK
               ? add_to_part(flow, s, update, slot)
               : add_alone(flow, s);
}

tn_status flow_join_slices(struct flow *flow, tn_array *array)
{
    const struct prim *prim;
    tn_status status = TN_OK;
    uint32_t head = array->id < flow->max_heads ? flow->heads[array->id] : 0;
    if (!head)
        return TN_OK;
    flow->heads[array->id] = 0;
    head = sort_slices(flow->slices, head);
    uint32_t count = count_whole(flow, head, &array->type);
    uint32_t before = flow_enter(flow, flow->slices[head - 1].node);
    if (count > 1 &&
        prim_find_role(flow->scope->runtime, ROLE_CONCATENATE, &prim) == TN_OK) {
        tn_array *joined = NULL;
        status = slice_sum_concatenate(flow, head, count, prim, &joined);
        head = 0;
        if (status == TN_OK)
            status = flow_add(flow, array, joined);
    }
    for (; head && status == TN_OK; head = flow->slices[head - 1].next)
        status = add_slice(flow, &flow->slices[head - 1]);
    flow_leave(flow, before);
    return status;
}
