// SPDX-License-Identifier: MIT
// x[1:3, ::-1, 0, ..., i]: slices and whole numbers are one base.slice and one
// base.squeeze; an array of integers is a base.take along its axis. f(x)[1] is one output
// of an operator with several. x.T and x.mT are one base.transpose.
#include "evaluator.h"

#include <inttypes.h>
#include <string.h>

#define SLICE_END INT64_MAX // a bound that is left out

struct lang_indexing {
    struct evaluator *e;
    const struct lang_node *node;
    tn_type type; // of the indexed array
    tn_ints start, stop, step;
    tn_ints squeezed;  // axes indexed by a number
    int32_t take_axis; // -1: none; counted before squeezing
    tn_array *indices; // for take
    bool sliced;       // some slice is not ":"
};

// --- one index -------------------------------------------------------------------------

static bool lang_index_is_whole(const struct lang_value *value)
{
    return value->is_number && (value->kind == LANG_INT || value->kind == LANG_UINT);
}

static int take_bound(struct lang_indexing *x, const struct lang_node *slice, uint32_t i,
                      int64_t *out)
{
    const struct lang_value *value = child_value(x->e, slice, i);
    const struct lang_node *node = child_node(x->e, slice, i);
    if (node->kind == LANG_NONE)
        return 0;
    if (!lang_index_is_whole(value))
        return node_oops(x->e, node, "a slice's bounds are whole numbers");
    // Bounds beyond every extent: SLICE_END stands for one that is left out.
    bool is_beyond = value->kind == LANG_UINT || value->i == SLICE_END;
    *out = is_beyond ? SLICE_END - 1 : value->i;
    x->sliced = true;
    return 0;
}

static int index_slice(struct lang_indexing *x, const struct lang_node *node, int32_t axis)
{
    int failed = take_bound(x, node, 0, &x->start.value[axis]);
    if (!failed)
        failed = take_bound(x, node, 1, &x->stop.value[axis]);
    if (!failed)
        failed = take_bound(x, node, 2, &x->step.value[axis]);
    if (!failed && x->step.value[axis] == 0)
        failed = node_oops(x->e, node, "a slice's step cannot be 0");
    return failed;
}

static int index_number(struct lang_indexing *x, const struct lang_node *node,
                        const struct lang_value *index, int32_t axis)
{
    int64_t i = index->i, extent = x->type.extent[axis];
    if (index->kind == LANG_UINT)
        return node_oops(x->e, node,
                         "index %" PRIu64 " is outside axis %d, which has %" PRId64
                         " elements",
                         (uint64_t)i, axis, extent);
    if (i < -extent || i >= extent)
        return node_oops(x->e, node,
                         "index %" PRId64 " is outside axis %d, which has %" PRId64
                         " elements",
                         i, axis, extent);
    i += i < 0 ? extent : 0;
    x->start.value[axis] = i;
    x->stop.value[axis] = i + 1;
    x->squeezed.value[x->squeezed.count++] = axis;
    x->sliced = true;
    return 0;
}

static int index_array(struct lang_indexing *x, uint32_t index, int32_t axis)
{
    const struct lang_node *node = &x->e->tree->nodes[index];
    if (x->take_axis >= 0)
        return node_oops(x->e, node, "only one axis can be indexed by an array");
    x->take_axis = axis;
    int failed = value_array(x->e, index, &x->indices);
    if (failed)
        return failed;
    const tn_type *type = tn_array_type(x->indices);
    if (!x->indices || !(TN_DTYPE_BIT(type->dtype) & TN_INTEGER_DTYPES))
        return node_oops(x->e, node,
                         "an index is a whole number or an array of integers, "
                         "got %s",
                         x->indices ? dtype_name(type->dtype) : "nothing");
    return 0;
}

static int index_axis(struct lang_indexing *x, uint32_t index, int32_t axis)
{
    const struct lang_node *node = &x->e->tree->nodes[index];
    const struct lang_value *value = &x->e->values[index];
    if (node->kind == LANG_SLICE)
        return index_slice(x, node, axis);
    if (lang_index_is_whole(value))
        return index_number(x, node, value, axis);
    if (value->is_number)
        return node_oops(x->e, node,
                         "an index is a whole number, a slice or an array of "
                         "integers");
    return index_array(x, index, axis);
}

// --- all indices -----------------------------------------------------------------------

static void lang_index_prepare(struct lang_indexing *x)
{
    uint32_t rank = (uint32_t)x->type.rank;
    x->start = x->stop = x->step = (tn_ints){.count = rank, .given = 1};
    x->squeezed = (tn_ints){.given = 1};
    x->take_axis = -1;
    for (uint32_t i = 0; i < rank; i++) {
        x->start.value[i] = SLICE_END;
        x->stop.value[i] = SLICE_END;
        x->step.value[i] = 1;
    }
}

static int index_all(struct lang_indexing *x)
{
    struct evaluator *e = x->e;
    uint32_t given = x->node->count - 1, ellipses = 0;
    for (uint32_t i = 1; i < x->node->count; i++)
        ellipses += child_node(e, x->node, i)->kind == LANG_ELLIPSIS;
    if (ellipses > 1)
        return node_oops(e, x->node, "an index has at most one '...'");
    int64_t left_out = x->type.rank - (int64_t)(given - ellipses);
    if (left_out < 0)
        return node_oops(e, x->node, "%u indices for an array of %d axes", given - ellipses,
                         x->type.rank);
    int failed = 0;
    int32_t axis = 0;
    for (uint32_t i = 1; !failed && i < x->node->count; i++) {
        if (child_node(e, x->node, i)->kind == LANG_ELLIPSIS)
            axis += (int32_t)left_out;
        else
            failed = index_axis(x, e->tree->children[x->node->first + i], axis++);
    }
    return failed;
}

static tn_array *lang_index_apply(struct lang_indexing *x, tn_array *array)
{
    tn_scope *scope = x->e->scope;
    const tn_ints *start = &x->start, *stop = &x->stop, *step = &x->step;
    const tn_ints *squeezed = &x->squeezed;
    if (x->sliced)
        array = tn_op(scope, "base.slice", TN_IN(array),
                      tn_attrs("start", start, "stop", stop, "step", step));
    if (x->take_axis >= 0)
        array = tn_op(scope, "base.take", TN_IN(array, x->indices),
                      tn_attrs("axis", x->take_axis));
    // base.take replaces its axis by the axes of the indices, and so shifts later axes.
    tn_ints axes = *squeezed;
    const tn_type *indices = tn_array_type(x->indices);
    for (uint32_t i = 0; i < axes.count; i++)
        if (x->indices && axes.value[i] > x->take_axis)
            axes.value[i] += indices->rank - 1;
    const tn_ints *moved = &axes;
    if (axes.count)
        array = tn_op(scope, "base.squeeze", TN_IN(array), tn_attrs("axis", moved));
    return array;
}

// Selects one output of an operator, by its number as in a tuple of Python.
static int index_outputs(struct evaluator *e, uint32_t index,
                         const struct lang_value *operand)
{
    const struct lang_node *node = &e->tree->nodes[index];
    const struct lang_value *which = child_value(e, node, 1);
    int64_t count = operand->num_outputs;
    if (node->count != 2 || !lang_index_is_whole(which) || which->kind == LANG_UINT)
        return node_oops(e, node,
                         "an operator's %" PRId64 " outputs are indexed by one whole "
                         "number, then each as an array: f(x)[0][1:]",
                         count);
    if (which->i < -count || which->i >= count)
        return node_oops(e, child_node(e, node, 1),
                         "output %" PRId64 " of %" PRId64 ": expected %" PRId64
                         " .. %" PRId64,
                         which->i, count, -count, count - 1);
    int64_t output = which->i < 0 ? which->i + count : which->i;
    e->values[index].array = e->outputs[operand->first_output + (uint32_t)output];
    return 0;
}

int eval_index(struct evaluator *e, uint32_t index)
{
    struct lang_indexing x = {.e = e, .node = &e->tree->nodes[index]};
    const struct lang_value *operand = child_value(e, x.node, 0);
    tn_array *array;
    if (operand->num_outputs > 1)
        return index_outputs(e, index, operand);
    int failed = value_array(e, e->tree->children[x.node->first], &array);
    if (failed)
        return failed;
    x.type = *tn_array_type(array);
    lang_index_prepare(&x);
    failed = index_all(&x);
    if (failed)
        return failed;
    e->values[index].array = lang_index_apply(&x, array);
    return check_scope(e, x.node);
}

// .T reverses all axes, .mT exchanges the last two.
int eval_property(struct evaluator *e, uint32_t index)
{
    const struct lang_node *node = &e->tree->nodes[index];
    tn_array *array;
    int failed = value_array(e, e->tree->children[node->first], &array);
    if (failed)
        return failed;
    int32_t rank = tn_array_type(array)->rank;
    bool of_matrices = strcmp(node_text(e, node), "mT") == 0;
    if (of_matrices && rank < 2)
        return node_oops(e, node, ".mT exchanges the last two axes, got an array of %d",
                         rank);
    tn_ints order = {.given = 1, .count = (uint32_t)rank};
    for (int32_t i = 0; i < rank; i++)
        order.value[i] = of_matrices ? i : rank - 1 - i;
    if (of_matrices) {
        order.value[rank - 2] = rank - 1;
        order.value[rank - 1] = rank - 2;
    }
    const tn_ints *axes = &order;
    e->values[index].array =
        tn_op(e->scope, "base.transpose", TN_IN(array), tn_attrs("axes", axes));
    return check_scope(e, node);
}
