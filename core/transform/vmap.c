// SPDX-License-Identifier: MIT
// vmap: applies a graph of one slice to all slices of the mapped inputs at once.
//
// An array that depends on a mapped input gets a slot with its batched array, whose first
// axis is the batch axis. An array without a slot is the same for each slice and is used
// unchanged.
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "flow.h"

struct vmap {
    struct flow flow;
    int64_t size; // of the batch
};

static tn_status vmap_sweep(struct vmap *v, struct node **nodes, uint32_t count);

// --- axes ------------------------------------------------------------------------------

// Gives the type of a batch of `size` slices: `slice` with the batch axis inserted at
// `axis`.
static tn_status batch_type(const tn_type *slice, int64_t size, int32_t axis, tn_type *out)
{
    char text[TYPE_TEXT];
    if (slice->rank == TN_MAX_RANK)
        return fail(TN_ERR_ARGUMENT,
                    "a slice is %s: a batch would have rank %d, at most %d",
                    type_print(slice, text), slice->rank + 1, TN_MAX_RANK);
    tn_type type = {.dtype = slice->dtype, .rank = slice->rank + 1};
    for (int32_t i = 0; i < type.rank; i++)
        type.extent[i] = i == axis ? size : slice->extent[i - (i > axis)];
    *out = type;
    return TN_OK;
}

static tn_status move_axis(struct vmap *v, tn_array *array, int32_t from, int32_t to,
                           tn_array **out_array)
{
    *out_array = array;
    if (from == to)
        return TN_OK;
    tn_ints axes = {.count = (uint32_t)array->type.rank, .given = 1};
    for (int32_t i = 0, next = 0; i < array->type.rank; i++) {
        next += next == from;
        axes.value[i] = i == to ? from : next++;
    }
    return flow_apply_role(&v->flow, TN_ROLE_TRANSPOSE, "axes", &axes, array, out_array);
}

// Inserts axes of extent 1 behind the batch axis until the array has `rank` axes, so that
// each slice broadcasts against unbatched operands as it does without the batch axis.
static tn_status raise_rank(struct vmap *v, tn_array *batch, int32_t rank,
                            tn_array **out_array)
{
    const tn_type *own = &batch->type;
    int32_t more = rank - own->rank;
    *out_array = batch;
    if (more <= 0)
        return TN_OK;
    tn_type type = {.dtype = own->dtype, .rank = rank, .extent = {own->extent[0]}};
    for (int32_t i = 1; i < rank; i++)
        type.extent[i] = i <= more ? 1 : own->extent[i - more];
    return flow_reshape(&v->flow, TN_ROLE_RESHAPE, batch, &type, out_array);
}

// --- slots -----------------------------------------------------------------------------

static tn_array *vmap_batch_of(struct vmap *v, tn_array *array)
{
    return flow_has(&v->flow, array) ? *flow_slot(&v->flow, array) : NULL;
}

static tn_status set_batch(struct vmap *v, tn_array *array, tn_array *batch)
{
    tn_status status = flow_include(&v->flow, array);
    if (status == TN_OK)
        *flow_slot(&v->flow, array) = batch;
    return status;
}

// Checks the array that `what` (a rule's name) built for output i, and sets it as the
// output's batched array. Its batch axis is `axis`; -1: the array has none and is
// broadcast.
static tn_status take_batch(struct vmap *v, const struct node *node, uint32_t i,
                            const char *what, tn_array *batch, int32_t axis)
{
    char got[TYPE_TEXT], expected[TYPE_TEXT];
    tn_array *output = &node->outputs[i];
    tn_type type = output->type, front;
    if (flow_has(&v->flow, output)) // the caller maps this very array
        return TN_OK;
    if (!batch)
        return fail(TN_ERR_INTERNAL, "%s leaves output %u NULL", what, i);
    if (axis < -1 || axis > output->type.rank)
        return fail(TN_ERR_INTERNAL,
                    "%s puts the batch of output %u on axis %d, expected -1 "
                    "to %d",
                    what, i, axis, output->type.rank);
    tn_status status = batch_type(&output->type, v->size, 0, &front);
    if (status == TN_OK && axis >= 0)
        status = batch_type(&output->type, v->size, axis, &type);
    if (status != TN_OK)
        return status;
    if (!shape_equal(&batch->type, &type))
        return fail(TN_ERR_INTERNAL,
                    "%s gives %s for output %u with the batch on axis %d, "
                    "expected %s",
                    what, type_print(&batch->type, got), i, axis,
                    type_print(&type, expected));
    if (axis > 0)
        status = move_axis(v, batch, axis, 0, &batch);
    if (status == TN_OK) // broadcasts an array without batch axis
        status = flow_fit(&v->flow, batch, &front, &batch);
    return status == TN_OK ? set_batch(v, output, batch) : status;
}

// --- nodes -----------------------------------------------------------------------------

static tn_status vmap_call_rule(struct vmap *v, struct node *node, tn_array **inputs,
                                int32_t *axes)
{
    tn_array *outputs[MAX_OUTPUTS] = {NULL};
    int32_t out_axes[MAX_OUTPUTS] = {0};
    struct rule_call call;
    tn_status status = rule_call_init(&call, node);
    if (status != TN_OK)
        return status;
    for (uint32_t i = 0; i < node->num_inputs; i++) {
        tn_array *batch = vmap_batch_of(v, node->inputs[i]);
        axes[i] = batch ? 0 : -1;
        inputs[i] = batch ? batch : node->inputs[i];
    }
    call.rule.inputs = inputs;
    status =
        rule_vmap(v->flow.scope, node->prim, &call.rule, axes, v->size, outputs, out_axes);
    rule_call_finish(&call);
    for (uint32_t i = 0; i < node->num_outputs && status == TN_OK; i++) {
        status = take_batch(v, node, i, "vmap", outputs[i], out_axes[i]);
        if (status != TN_OK)
            fail_prefix("%s: ", node->prim->record.id);
    }
    return status;
}

static tn_status vmap_push_rule(struct vmap *v, struct node *node)
{
    tn_array **inputs = mem_alloc((node->num_inputs + 1) * sizeof(*inputs));
    int32_t *axes = mem_alloc((node->num_inputs + 1) * sizeof(*axes));
    tn_status status =
        inputs && axes ? vmap_call_rule(v, node, inputs, axes) : TN_ERR_MEMORY;
    mem_free(inputs);
    mem_free(axes);
    return status;
}

// Gives the node's inputs with batched ones raised to the rank of `whole`, the batched
// output. The shape of a TN_PRIM_OWN_TYPE primitive does not follow from its inputs, so one
// batched input is broadcast to `whole`.
static tn_status batch_inputs(struct vmap *v, const struct node *node, const tn_type *whole,
                              tn_array **inputs)
{
    bool own_type =
        node->kind == NODE_PRIM && (node->prim->record.flags & TN_PRIM_OWN_TYPE);
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < node->num_inputs && status == TN_OK; i++) {
        tn_array *batch = vmap_batch_of(v, node->inputs[i]);
        inputs[i] = node->inputs[i];
        if (!batch)
            continue;
        status = raise_rank(v, batch, whole->rank, &inputs[i]);
        if (status == TN_OK && own_type && !shape_equal(&inputs[i]->type, whole))
            status =
                flow_reshape(&v->flow, TN_ROLE_BROADCAST_TO, inputs[i], whole, &inputs[i]);
        own_type = false;
    }
    return status;
}

// The node's attributes for batched inputs: the batch axis in front moves the axis of its
// reductions, unless that counts from the end. NULL when out of memory.
static const void *batch_attrs(struct vmap *v, const struct node *node)
{
    int index =
        node->expr->reduces && node->table ? attrs_field_index(node->table, "axis") : -1;
    if (index < 0)
        return node->attrs;
    int64_t axis = node_axis(node) - node->outputs[0].type.rank;
    void *attrs = arena_alloc(&v->flow.scope->arena, node->table->size);
    if (!attrs)
        return NULL;
    memcpy(attrs, node->attrs, node->table->size);
    memcpy((char *)attrs + attrs_field(node->table, (uint32_t)index)->offset, &axis,
           sizeof(axis));
    return attrs;
}

// Tries to apply the primitive itself to the batched inputs, so that its kernels and rules
// stay in use. False where the result is not the batched output: the expression has to be
// applied then, or the scope has failed for want of memory.
static bool apply_again(struct vmap *v, const struct node *node, tn_array **inputs,
                        const void *attrs, tn_array **outputs)
{
    tn_scope *scope = v->flow.scope;
    if (node->kind != NODE_PRIM || node->expr->uses_index)
        return false;
    tn_status status = graph_apply(scope, node->prim, (const tn_array *const *)inputs,
                                   node->num_inputs, attrs, outputs, node->num_outputs);
    if (status != TN_OK && status != TN_ERR_MEMORY)
        tn_scope_clear_error(scope);
    for (uint32_t i = 0; i < node->num_outputs && status == TN_OK; i++) {
        tn_type whole;
        status = batch_type(&node->outputs[i].type, v->size, 0, &whole);
        if (status == TN_OK && !type_equal(&outputs[i]->type, &whole))
            return false;
    }
    return status == TN_OK;
}

// Applies the node's expression to the batched inputs; `index` counts within one slice.
static tn_status vmap_apply_expr(struct vmap *v, const struct node *node, tn_array **inputs,
                                 const void *attrs, tn_array **outputs)
{
    tn_dtype dtypes[TN_EXPR_MAX_OUTPUTS];
    const struct expr *expr;
    for (uint32_t i = 0; i < node->num_outputs; i++)
        dtypes[i] = node->outputs[i].type.dtype;
    struct expr_set *set = scope_exprs(v->flow.scope);
    if (!set)
        return v->flow.scope->status;
    tn_status status =
        expr_repeat(set, node->expr, type_elements(&node->outputs[0].type), &expr);
    if (status != TN_OK)
        return status;
    return graph_apply_expr(v->flow.scope, expr, (const tn_array *const *)inputs,
                            node->num_inputs, node->table, attrs, dtypes, outputs);
}

static tn_status vmap_push_expr(struct vmap *v, struct node *node)
{
    tn_array *inputs[TN_EXPR_MAX_INPUTS], *outputs[TN_EXPR_MAX_OUTPUTS];
    tn_type whole;
    tn_status status = batch_type(&node->outputs[0].type, v->size, 0, &whole);
    if (status == TN_OK)
        status = batch_inputs(v, node, &whole, inputs);
    const void *attrs = batch_attrs(v, node);
    if (status == TN_OK && node->attrs && !attrs)
        status = TN_ERR_MEMORY;
    if (status == TN_OK && !apply_again(v, node, inputs, attrs, outputs))
        status = v->flow.scope->status != TN_OK
                     ? v->flow.scope->status
                     : vmap_apply_expr(v, node, inputs, attrs, outputs);
    for (uint32_t i = 0; i < node->num_outputs && status == TN_OK; i++)
        status = take_batch(v, node, i, node->expr->text, outputs[i], 0);
    return status;
}

static tn_status vmap_push_decomposed(struct vmap *v, struct node *node)
{
    tn_array *outputs[MAX_OUTPUTS] = {NULL};
    struct node **nodes = NULL;
    uint32_t count = 0;
    tn_status status = flow_parts(&v->flow, node, outputs, &nodes, &count);
    v->flow.level++;
    if (status == TN_OK)
        status = vmap_sweep(v, nodes, count);
    v->flow.level--;
    mem_free(nodes);
    for (uint32_t i = 0; i < node->num_outputs && status == TN_OK; i++) {
        tn_array *batch = vmap_batch_of(v, outputs[i]);
        status =
            take_batch(v, node, i, "decompose", batch ? batch : outputs[i], batch ? 0 : -1);
    }
    return status;
}

// The number of the runtime attribute whose scalar differs between slices, or -1. Rules of
// plugins are not asked about such a node.
static int batched_attribute(struct vmap *v, const struct node *node)
{
    for (uint32_t i = 0; node->prim && i < node->prim->num_runtime; i++)
        if (vmap_batch_of(v, node->inputs[node->num_inputs - node->prim->num_runtime + i]))
            return node->prim->runtime[i];
    return -1;
}

static tn_status vmap_push(struct vmap *v, struct node *node)
{
    const tn_primitive *record = node->kind == NODE_PRIM ? &node->prim->record : NULL;
    bool any = false;
    tn_type whole;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < node->num_inputs && !any; i++)
        any = flow_has(&v->flow, node->inputs[i]);
    if (!any)
        return TN_OK;
    for (uint32_t i = 0; i < node->num_outputs && status == TN_OK; i++)
        status = batch_type(&node->outputs[i].type, v->size, 0, &whole); // checks the rank
    if (status != TN_OK)
        return status;
    int attribute = batched_attribute(v, node);
    if (record && record->vmap && attribute < 0)
        return vmap_push_rule(v, node);
    status = flow_refuse_effects(node, "a batch of it");
    if (status != TN_OK)
        return status;
    if (node->expr)
        return vmap_push_expr(v, node);
    if (record && record->decompose)
        return vmap_push_decomposed(v, node);
    if (attribute >= 0)
        return fail(TN_ERR_UNSUPPORTED,
                    "%s: attribute '%s' differs between slices, and no expression or "
                    "decomposition says what that means",
                    record->id, record->attrs.fields[attribute].name);
    return record ? flow_no_rule(node, "vmap") : TN_OK;
}

static tn_status vmap_sweep(struct vmap *v, struct node **nodes, uint32_t count)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < count && status == TN_OK; i++) {
        uint32_t before = flow_enter(&v->flow, nodes[i]);
        status = vmap_push(v, nodes[i]);
        flow_leave(&v->flow, before);
    }
    return status;
}

// --- tn_vmap ---------------------------------------------------------------------------

// Entry i of a list of axes. A NULL list is all zeros.
static int32_t vmap_axis_at(const int32_t *axes, uint64_t i)
{
    return axes ? axes[i] : 0;
}

static tn_status find_batch_size(tn_array *const *batches, const int32_t *axes,
                                 uint64_t count, int64_t *out_size)
{
    char text[TYPE_TEXT];
    uint64_t first = 0;
    *out_size = -1;
    for (uint64_t i = 0; i < count; i++) {
        int32_t axis = vmap_axis_at(axes, i);
        if (axis == -1)
            continue;
        if (!batches[i])
            return fail(TN_ERR_ARGUMENT, "input %llu is NULL", (unsigned long long)i);
        const tn_type *type = &batches[i]->type;
        if (axis < 0 || axis >= type->rank)
            return fail(TN_ERR_ARGUMENT, "input %llu is %s, which has no axis %d",
                        (unsigned long long)i, type_print(type, text), axis);
        if (*out_size >= 0 && type->extent[axis] != *out_size)
            return fail(
                TN_ERR_ARGUMENT,
                "input %llu has extent %lld on axis %d, expected %lld as input %llu",
                (unsigned long long)i, (long long)type->extent[axis], axis,
                (long long)*out_size, (unsigned long long)first);
        if (*out_size < 0) {
            *out_size = type->extent[axis];
            first = i;
        }
    }
    return *out_size >= 0
               ? TN_OK
               : fail(TN_ERR_ARGUMENT, "no input is mapped: expected an axis for "
                                       "one at least");
}

static tn_status vmap_seed(struct vmap *v, tn_array *slice, tn_array *batch, int32_t axis,
                           uint64_t i)
{
    char got[TYPE_TEXT], expected[TYPE_TEXT];
    tn_type type;
    if (!slice)
        return fail(TN_ERR_ARGUMENT, "slice %llu is NULL", (unsigned long long)i);
    slice = scope_local(v->flow.scope, slice);
    batch = scope_local(v->flow.scope, batch);
    if (!slice || !batch)
        return v->flow.scope->status;
    tn_status status = batch_type(&slice->type, v->size, axis, &type);
    if (status == TN_OK && !type_equal(&batch->type, &type))
        status = fail(TN_ERR_ARGUMENT, "input %llu is %s, expected %s: slices on axis %d",
                      (unsigned long long)i, type_print(&batch->type, got),
                      type_print(&type, expected), axis);
    if (status == TN_OK)
        status = move_axis(v, batch, axis, 0, &batch);
    return status == TN_OK ? set_batch(v, slice, batch) : status;
}

static tn_status vmap_take_output(struct vmap *v, tn_array *output, int32_t axis,
                                  uint64_t i, tn_array **out_batch)
{
    tn_array *batch = vmap_batch_of(v, output);
    tn_type whole;
    tn_status status = TN_OK;
    if (axis < -1 || axis > output->type.rank)
        return fail(TN_ERR_ARGUMENT,
                    "output %llu: axis %d is out of range, expected -1 to %d",
                    (unsigned long long)i, axis, output->type.rank);
    if (axis < 0 && batch)
        return fail(
            TN_ERR_ARGUMENT,
            "output %llu depends on a mapped input: expected an axis for its batch, "
            "got -1",
            (unsigned long long)i);
    *out_batch = batch ? batch : output;
    if (axis < 0)
        return TN_OK;
    if (!batch)
        status = batch_type(&output->type, v->size, 0, &whole);
    if (status == TN_OK && !batch)
        status = flow_reshape(&v->flow, TN_ROLE_BROADCAST_TO, output, &whole, out_batch);
    return status == TN_OK ? move_axis(v, *out_batch, 0, axis, out_batch) : status;
}

// Arguments of tn_vmap: the graph from `slices` to `outputs` is applied to each slice of
// `inputs`.
struct mapping {
    tn_array *const *outputs, *const *slices, *const *inputs;
    const int32_t *out_axes, *in_axes;
    uint64_t num_outputs, num_inputs;
};

// `own` has 2 * num_outputs entries: the outputs as the scope knows them, then the results.
static tn_status map_graph(struct vmap *v, const struct mapping *m, tn_array **own)
{
    struct node **nodes = NULL;
    uint32_t count = 0;
    tn_status status = find_batch_size(m->inputs, m->in_axes, m->num_inputs, &v->size);
    for (uint64_t i = 0; i < m->num_outputs && status == TN_OK; i++) {
        if (!m->outputs[i])
            status = fail(TN_ERR_ARGUMENT, "output %llu is NULL", (unsigned long long)i);
        else if (!(own[i] = scope_local(v->flow.scope, m->outputs[i])))
            status = v->flow.scope->status;
    }
    for (uint64_t i = 0; i < m->num_inputs && status == TN_OK; i++)
        if (vmap_axis_at(m->in_axes, i) >= 0)
            status =
                vmap_seed(v, m->slices[i], m->inputs[i], vmap_axis_at(m->in_axes, i), i);
    if (status == TN_OK)
        status = flow_order(v->flow.scope, own, m->num_outputs, 0, &nodes, &count);
    if (status == TN_OK)
        status = vmap_sweep(v, nodes, count);
    for (uint64_t i = 0; i < m->num_outputs && status == TN_OK; i++)
        status = vmap_take_output(v, own[i], vmap_axis_at(m->out_axes, i), i,
                                  &own[m->num_outputs + i]);
    mem_free(nodes);
    return status;
}

static tn_status finish_vmap(tn_scope *scope, tn_status status)
{
    if (status != TN_OK && scope->status == TN_OK)
        fail_prefix_name("vmap");
    return scope_take_failure(scope, status);
}

static tn_status run_mapping(tn_scope *scope, const struct mapping *m, tn_array **results)
{
    struct vmap v = {.size = 0};
    tn_array **own = mem_zalloc((m->num_outputs + 1) * 2 * sizeof(*own));
    tn_status status = own ? flow_init(&v.flow, scope) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = map_graph(&v, m, own);
    if (status == TN_OK)
        memcpy(results, own + m->num_outputs, m->num_outputs * sizeof(*results));
    flow_finish(&v.flow);
    mem_free(own);
    return finish_vmap(scope, status);
}

tn_status tn_vmap(tn_scope *scope, tn_array *const *outputs, const int32_t *out_axes,
                  uint64_t num_outputs, tn_array *const *slices, tn_array *const *inputs,
                  const int32_t *in_axes, uint64_t num_inputs, tn_array **out_batches)
{
    const struct mapping m = {outputs, slices,      inputs,    out_axes,
                              in_axes, num_outputs, num_inputs};
    tn_status status = scope_begin(
        scope, "vmap",
        GIVEN({"outputs", outputs, num_outputs}, {"slices", slices, num_inputs},
              {"inputs", inputs, num_inputs}, {"out_batches", out_batches, num_outputs}));
    return status != TN_OK ? status : run_mapping(scope, &m, out_batches);
}

static tn_array *vmap_make_slice(tn_scope *scope, const tn_type *batch, int32_t axis)
{
    tn_type type = {.dtype = batch->dtype, .rank = batch->rank - 1};
    for (int32_t i = 0; i < type.rank; i++)
        type.extent[i] = batch->extent[i + (i >= axis)];
    return leaf_create(scope, NODE_INPUT, &type);
}

// Gives the arguments of the body: an unmapped input itself, or a placeholder without data
// for one slice of a mapped input.
static tn_status vmap_make_slices(tn_scope *scope, tn_array *const *inputs,
                                  const int32_t *axes, uint64_t count, tn_array **slices)
{
    int64_t size;
    tn_status status = find_batch_size(inputs, axes, count, &size);
    for (uint64_t i = 0; i < count && status == TN_OK; i++) {
        int32_t axis = vmap_axis_at(axes, i);
        if (!inputs[i])
            return fail(TN_ERR_ARGUMENT, "input %llu is NULL", (unsigned long long)i);
        slices[i] = axis < 0 ? scope_local(scope, inputs[i])
                             : vmap_make_slice(scope, &inputs[i]->type, axis);
        status = slices[i] ? TN_OK : scope->status;
    }
    return status;
}

tn_status tn_vmap_call(tn_scope *scope, tn_function_body body, void *user,
                       tn_array *const *inputs, const int32_t *in_axes, uint64_t num_inputs,
                       tn_array **outputs, const int32_t *out_axes, uint64_t num_outputs)
{
    tn_status status = scope_begin(
        scope, "vmap",
        GIVEN({"inputs", inputs, num_inputs}, {"outputs", outputs, num_outputs}));
    if (status != TN_OK)
        return status;
    if (!body)
        return finish_vmap(scope, fail(TN_ERR_ARGUMENT, "the body is NULL"));
    tn_array **slices = mem_zalloc((num_inputs + num_outputs + 1) * sizeof(*slices));
    if (!slices)
        return finish_vmap(scope, TN_ERR_MEMORY);
    status = vmap_make_slices(scope, inputs, in_axes, num_inputs, slices);
    if (status == TN_OK)
        status = body_call(body, user, scope, slices, num_inputs, slices + num_inputs,
                           num_outputs);
    status = finish_vmap(scope, status);
    const struct mapping m = {slices + num_inputs, slices,    inputs, out_axes, in_axes,
                              num_outputs,         num_inputs};
    if (status == TN_OK)
        status = run_mapping(scope, &m, outputs);
    mem_free(slices);
    return status;
}
