// SPDX-License-Identifier: MIT
// Builds an expression that reduces from elementwise expressions, and reductions by role.
// For devices that run no row programs.
#include "split.h"

#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "../plugin/load/primitives.h"

struct transform_splitter {
    tn_scope *scope;
    const struct node *node; // what is built
    int32_t axis;            // from the front
    // The node's inputs, then the results of its reductions so far.
    const tn_array *inputs[TN_EXPR_MAX_INPUTS + EXPR_MAX_REDUCTIONS];
};

static const char *transform_split_role_of(int32_t reduction)
{
    switch (reduction) {
    case TN_EXPR_REDUCE_SUM:
        return TN_ROLE_SUM;
    case TN_EXPR_REDUCE_PROD:
        return TN_ROLE_PROD;
    case TN_EXPR_REDUCE_MIN:
        return TN_ROLE_MIN;
    case TN_EXPR_REDUCE_MAX:
        return TN_ROLE_MAX;
    default:
        return TN_ROLE_MEAN;
    }
}

static tn_status transform_split_apply_role(tn_scope *scope, const char *role,
                                            tn_attr_list list, const tn_array *array,
                                            tn_array **out_array)
{
    const struct prim *prim;
    tn_status status = prim_find_role(scope->runtime, role, &prim);
    if (status != TN_OK)
        return status;
    void *attrs = mem_alloc(prim->record.attrs.size);
    if (!attrs)
        return TN_ERR_MEMORY;
    status = attrs_fill(&scope->interned, &prim->record.attrs, list, attrs, NULL);
    if (status == TN_OK)
        status = graph_apply(scope, prim, TN_IN(array), attrs, out_array, 1);
    mem_free(attrs);
    return status;
}

static tn_status transform_split_broadcast(struct transform_splitter *s,
                                           const tn_array *array,
                                           const tn_array **out_array)
{
    const tn_type *type = &s->node->outputs[0].type;
    tn_ints shape = {.count = (uint32_t)type->rank, .given = 1};
    memcpy(shape.value, type->extent, (size_t)type->rank * sizeof(shape.value[0]));
    const tn_attr attr = {.name = "shape", .kind = TN_ATTR_INTS, .ints = &shape};
    tn_array *whole = NULL;
    tn_status status = transform_split_apply_role(s->scope, TN_ROLE_BROADCAST_TO,
                                                  TN_ATTR_LIST(&attr, 1), array, &whole);
    *out_array = whole;
    return status;
}

// The common shape of the inputs is that of the node: a reduction counts each element of
// the row, and `index` the elements of all axes.
static tn_status cover_shape(struct transform_splitter *s, const tn_array **inputs,
                             uint32_t count)
{
    tn_type common = {0};
    for (uint32_t i = 0; i < count; i++) {
        tn_status status = shape_broadcast(&common, &inputs[i]->type, &common);
        if (status != TN_OK)
            return status;
    }
    if (shape_equal(&common, &s->node->outputs[0].type))
        return TN_OK;
    return transform_split_broadcast(s, inputs[0], &inputs[0]);
}

// The dtype in which a reduction's argument is kept: half floats are computed in f32.
static tn_status argument_dtype(const struct expr *expr, const tn_array *const *inputs,
                                tn_dtype *out_dtype)
{
    struct expr_input types[TN_EXPR_MAX_INPUTS];
    for (uint32_t i = 0; i < expr->num_inputs; i++)
        types[i] = array_promoted(inputs[i]);
    tn_status status = expr_infer(expr, types, out_dtype);
    if (status == TN_OK)
        *out_dtype = tn_dtype_computed(*out_dtype);
    return status;
}

// Applies part `part` to its inputs. `dtypes` NULL: the part is an argument of a reduction.
static tn_status apply_part(struct transform_splitter *s, uint32_t part,
                            const tn_dtype *dtypes, tn_array **outputs)
{
    const struct expr *expr, *pruned;
    const tn_array *inputs[64];
    uint32_t kept[64];
    tn_dtype argument;
    tn_status status = expr_part(s->node->expr, part, &expr);
    if (status == TN_OK)
        status = expr_prune(expr, &pruned, kept);
    if (status != TN_OK)
        return status;
    if (pruned->num_inputs == 0) { // of `index` alone: the inputs say how many elements
        pruned = expr;
        for (uint32_t i = 0; i < expr->num_inputs && i < 64; i++)
            kept[i] = i;
    }
    if (pruned->num_inputs > TN_EXPR_MAX_INPUTS)
        return fail(TN_ERR_UNSUPPORTED,
                    "expression '%.80s' reads %u values between its reductions, at most %d "
                    "fit a program: split it into several",
                    s->node->expr->text, pruned->num_inputs, TN_EXPR_MAX_INPUTS);
    for (uint32_t i = 0; i < pruned->num_inputs; i++)
        inputs[i] = s->inputs[kept[i]];
    if (pruned->num_inputs > 0)
        status = cover_shape(s, inputs, pruned->num_inputs);
    if (status == TN_OK && !dtypes) {
        status = argument_dtype(pruned, inputs, &argument);
        dtypes = &argument;
    }
    if (status != TN_OK)
        return status;
    bool has_attrs = pruned->num_attrs > 0;
    return graph_apply_expr(s->scope, pruned, inputs, pruned->num_inputs,
                            has_attrs ? s->node->table : NULL,
                            has_attrs ? s->node->attrs : NULL, dtypes, outputs);
}

static tn_status apply_reduction(struct transform_splitter *s, int32_t reduction,
                                 tn_array *argument, const tn_array **out_array)
{
    const tn_ints axes = {.count = 1, .given = 1, .value = {s->axis}};
    const tn_attr attrs[] = {{.name = "axis", .kind = TN_ATTR_INTS, .ints = &axes},
                             {.name = "keepdims", .kind = TN_ATTR_BOOL, .i = 1}};
    tn_array *out = NULL;
    tn_status status =
        transform_split_apply_role(s->scope, transform_split_role_of(reduction),
                                   TN_ATTR_LIST(attrs, 2), argument, &out);
    *out_array = out;
    return status;
}

// Without elements in a row there is nothing to compute, and no least or greatest element.
static tn_status build_empty(struct transform_splitter *s, const tn_dtype *dtypes,
                             tn_array **outputs)
{
    const struct expr *same;
    const tn_array *empty = NULL;
    tn_status status = expr_parse_arrow(s->scope->runtime, "x -> x", &same);
    if (status == TN_OK)
        status = transform_split_broadcast(s, s->inputs[0], &empty);
    for (uint32_t i = 0; i < s->node->num_outputs && status == TN_OK; i++)
        status = graph_apply_expr(s->scope, same, TN_IN(empty), NULL, NULL, &dtypes[i],
                                  &outputs[i]);
    return status;
}

tn_status split_build(struct decomposition *d, const struct node *node)
{
    int32_t reductions[EXPR_MAX_REDUCTIONS];
    uint32_t count = 0;
    tn_dtype dtypes[TN_EXPR_MAX_OUTPUTS];
    struct transform_splitter s = {
        .scope = d->scope, .node = node, .axis = node_axis(node)};
    for (uint32_t i = 0; i < node->num_inputs; i++)
        s.inputs[i] = d->inputs[i];
    for (uint32_t i = 0; i < node->num_outputs; i++)
        dtypes[i] = node->outputs[i].type.dtype;
    if (node->num_inputs > 0 && node->outputs[0].type.extent[s.axis] == 0)
        return build_empty(&s, dtypes, d->outputs);
    tn_status status = expr_count_parts(node->expr, reductions, &count);
    for (uint32_t i = 0; i < count && status == TN_OK; i++) {
        tn_array *argument = NULL;
        status = apply_part(&s, i, NULL, &argument);
        if (status == TN_OK)
            status = apply_reduction(&s, reductions[i], argument,
                                     &s.inputs[node->num_inputs + i]);
    }
    if (status == TN_OK)
        status = apply_part(&s, count, dtypes, d->outputs);
    if (status != TN_OK && d->scope->status != TN_OK)
        return fail(status, "%s", tn_scope_error(d->scope));
    return status;
}
