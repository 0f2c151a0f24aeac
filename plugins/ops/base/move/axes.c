// SPDX-License-Identifier: MIT
// Axes moved, merged, split and added, all by views: moveaxis, swapaxes, matrix_transpose,
// flatten, unflatten, unstack, atleast_1d to atleast_3d, broadcast_arrays; rot90.
#include "../pack.h"

typedef struct {
    tn_ints source, destination;
} moveaxis_attrs;

static const tn_attr_field moveaxis_fields[] = {
    TN_REQUIRED_FIELD(moveaxis_attrs, source, TN_ATTR_INTS, "axes of x to move"),
    TN_REQUIRED_FIELD(moveaxis_attrs, destination, TN_ATTR_INTS,
                      "axes of the result that they become"),
};

DECOMPOSE(moveaxis)
{
    const moveaxis_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    int32_t rank = build->type(rule->inputs[0])->rank, next = 0;
    uint32_t moved, filled;
    tn_ints order = {(uint32_t)rank, 1, {0}};
    tn_status status = check_axes(host, "source", &attrs->source, rank, &moved);
    if (status == TN_OK)
        status = check_axes(host, "destination", &attrs->destination, rank, &filled);
    if (status == TN_OK && attrs->source.count != attrs->destination.count)
        status = host->fail(host, TN_ERR_ARGUMENT,
                            "source has %u axes and destination %u, expected as many",
                            attrs->source.count, attrs->destination.count);
    if (status)
        return status;
    for (uint32_t i = 0; i < attrs->source.count; i++)
        order.value[tn_axis(attrs->destination.value[i], rank)] =
            tn_axis(attrs->source.value[i], rank);
    for (int32_t i = 0; i < rank; i++) {
        if (filled >> i & 1)
            continue;
        while (moved >> next & 1)
            next++;
        order.value[i] = next++;
    }
    outputs[0] = turned(build, rule->inputs[0], &order);
    return built(outputs[0]);
}

COMPOSITE(moveaxis, "x with axes at other positions; the others keep their order.",
          TN_INPUTS(base_any_x), .attrs = TN_ATTR_TABLE(moveaxis_attrs, moveaxis_fields));

// --- swapaxes ---------------------------------------------------------------------------

typedef struct {
    int64_t axis1, axis2;
} swapaxes_attrs;

static const tn_attr_field swapaxes_fields[] = {
    TN_REQUIRED_FIELD(swapaxes_attrs, axis1, TN_ATTR_I64, "an axis"),
    TN_REQUIRED_FIELD(swapaxes_attrs, axis2, TN_ATTR_I64, "the axis to change it for"),
};

static tn_status axes_swap(const tn_build *build, tn_array *x, int64_t axis1, int64_t axis2,
                           tn_array **out)
{
    const tn_type *type = build->type(x);
    if (!type)
        return TN_ERR_ARGUMENT; // the message is that of the failed build
    int32_t rank = type->rank, a, b;
    tn_ints order = {(uint32_t)rank, 1, {0, 1, 2, 3, 4, 5, 6, 7}};
    tn_status status = check_axis(build->host, axis1, rank, &a);
    if (status == TN_OK)
        status = check_axis(build->host, axis2, rank, &b);
    if (status)
        return status;
    order.value[a] = b;
    order.value[b] = a;
    *out = turned(build, x, &order);
    return built(*out);
}

DECOMPOSE(swapaxes)
{
    const swapaxes_attrs *attrs = rule->attrs;
    return axes_swap(build, rule->inputs[0], attrs->axis1, attrs->axis2, outputs);
}

DECOMPOSE(matrix_transpose)
{
    const tn_type *x = build->type(rule->inputs[0]);
    if (x->rank < 2)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "x has rank %d, expected at least 2", x->rank);
    return axes_swap(build, rule->inputs[0], -1, -2, outputs);
}

COMPOSITE(swapaxes, "x with two axes interchanged.", TN_INPUTS(base_any_x),
          .attrs = TN_ATTR_TABLE(swapaxes_attrs, swapaxes_fields));
COMPOSITE(matrix_transpose, "x with its last two axes interchanged.",
          TN_INPUTS(base_any_x));

// --- flatten and unflatten --------------------------------------------------------------

typedef struct {
    int64_t start_axis, end_axis;
} flatten_attrs;

static const tn_attr_field flatten_fields[] = {
    TN_I64_FIELD(flatten_attrs, start_axis, 0, "the first axis to merge"),
    TN_I64_FIELD(flatten_attrs, end_axis, -1, "the last axis to merge"),
};

// Replaces axes first .. last of x by the extents `middle`.
static tn_array *axes_replace(const tn_build *build, const tn_array *x, int32_t first,
                              int32_t last, const tn_ints *middle)
{
    tn_ints from = tn_extents(build, x), to = {.given = 1};
    for (int32_t i = 0; i < first; i++)
        to.value[to.count++] = from.value[i];
    for (uint32_t i = 0; i < middle->count; i++)
        to.value[to.count++] = middle->value[i];
    for (uint32_t i = (uint32_t)last + 1; i < from.count; i++)
        to.value[to.count++] = from.value[i];
    return with_shape(build, "base.reshape/1", x, to);
}

DECOMPOSE(flatten)
{
    const flatten_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    int32_t rank = x->rank > 1 ? x->rank : 1, first, last;
    tn_ints one = {1, 1, {1}};
    tn_status status = check_axis(build->host, attrs->start_axis, rank, &first);
    if (status == TN_OK)
        status = check_axis(build->host, attrs->end_axis, rank, &last);
    if (status == TN_OK && first > last)
        status = build->host->fail(build->host, TN_ERR_ARGUMENT,
                                   "start_axis %d is behind end_axis %d", first, last);
    if (status)
        return status;
    for (int32_t i = first; i <= last && i < x->rank; i++)
        one.value[0] *= x->extent[i]; // at most the number of elements, or 0
    if (x->rank == 0)
        outputs[0] = with_shape(build, "base.reshape/1", rule->inputs[0], one);
    else
        outputs[0] = axes_replace(build, rule->inputs[0], first, last, &one);
    return built(outputs[0]);
}

COMPOSITE(flatten, "x with axes merged into one.", TN_INPUTS(base_any_x),
          .attrs = TN_ATTR_TABLE(flatten_attrs, flatten_fields));

typedef struct {
    int64_t axis;
    tn_ints shape;
} unflatten_attrs;

static const tn_attr_field unflatten_fields[] = {
    TN_REQUIRED_FIELD(unflatten_attrs, axis, TN_ATTR_I64, "the axis to cut"),
    TN_REQUIRED_FIELD(unflatten_attrs, shape, TN_ATTR_INTS,
                      "extents that it becomes; one may be -1, and is inferred"),
};

DECOMPOSE(unflatten)
{
    const unflatten_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    const tn_type *x = build->type(rule->inputs[0]);
    tn_ints shape = attrs->shape;
    int64_t known = 1;
    int32_t axis, open = -1;
    char text[SHAPE_TEXT];
    tn_status status = check_axis(host, attrs->axis, x->rank, &axis);
    if (status)
        return status;
    if ((int32_t)shape.count + x->rank - 1 > TN_MAX_RANK)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "the result has rank %d, expected at most %d",
                          (int)shape.count + x->rank - 1, TN_MAX_RANK);
    int fits = 1;
    for (uint32_t i = 0; i < shape.count; i++)
        if (shape.value[i] == -1 && open < 0)
            open = (int32_t)i;
        else
            fits = fits && shape.value[i] >= 0 &&
                   tn_checked_multiply_extents(known, shape.value[i], &known);
    if (fits && open >= 0 && known > 0)
        shape.value[open] = x->extent[axis] / known;
    fits = fits && (open < 0 || known > 0);
    if (!fits || (open >= 0 ? known * shape.value[open] : known) != x->extent[axis])
        return host->fail(host, TN_ERR_ARGUMENT,
                          "shape %s does not have the %" PRId64 " elements of axis %d",
                          shape_text((int32_t)attrs->shape.count, attrs->shape.value, text),
                          x->extent[axis], axis);
    outputs[0] = axes_replace(build, rule->inputs[0], axis, axis, &shape);
    return built(outputs[0]);
}

COMPOSITE(unflatten, "x with an axis cut into several.", TN_INPUTS(base_any_x),
          .attrs = TN_ATTR_TABLE(unflatten_attrs, unflatten_fields));

// --- unstack ----------------------------------------------------------------------------

typedef struct {
    int64_t axis;
} one_axis_attrs;

static const tn_attr_field unstack_fields[] = {
    TN_I64_FIELD(one_axis_attrs, axis, 0, "the axis to take apart"),
};
static const tn_output_info unstack_outputs[] = {{"part", "slices in order", 0, 0}};

static tn_status unstack_count(const tn_infer *infer, uint64_t *out_count)
{
    const one_axis_attrs *attrs = infer->attrs;
    const tn_type *x = &infer->types[0];
    int32_t axis;
    tn_status status = check_axis(infer->host, attrs->axis, x->rank, &axis);
    if (status)
        return status;
    if (x->extent[axis] < 1 || x->extent[axis] > TN_MAX_OUTPUTS)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "axis %d has extent %" PRId64 ", expected 1 to %d", axis,
                                 x->extent[axis], TN_MAX_OUTPUTS);
    *out_count = (uint64_t)x->extent[axis];
    return TN_OK;
}

DECOMPOSE(unstack)
{
    const one_axis_attrs *attrs = rule->attrs;
    int32_t axis = tn_axis(attrs->axis, build->type(rule->inputs[0])->rank);
    for (uint32_t i = 0; i < rule->num_outputs; i++)
        outputs[i] = build->op(build, "base.squeeze/1",
                               TN_IN(part_of_axis(build, rule->inputs[0], axis, i, 1, 1)),
                               tn_attrs("axis", TN_INTS((int64_t)axis)));
    return built(outputs[rule->num_outputs - 1]);
}

COMPOSITE(unstack, "The slices of x along an axis, without it.", TN_INPUTS(base_any_x),
          TN_OUTPUTS(unstack_outputs), .count_outputs = unstack_count,
          .attrs = TN_ATTR_TABLE(one_axis_attrs, unstack_fields));

// --- at least so many axes --------------------------------------------------------------

DECOMPOSE(atleast_1d)
{
    tn_ints shape = tn_extents(build, rule->inputs[0]);
    if (shape.count == 0)
        shape.value[shape.count++] = 1;
    outputs[0] = with_shape(build, "base.reshape/1", rule->inputs[0], shape);
    return built(outputs[0]);
}

DECOMPOSE(atleast_2d)
{
    tn_ints shape = tn_extents(build, rule->inputs[0]);
    while (shape.count < 2)
        shape = tn_ints_after(1, &shape);
    outputs[0] = with_shape(build, "base.reshape/1", rule->inputs[0], shape);
    return built(outputs[0]);
}

// As NumPy: a vector becomes [1, n, 1], a matrix [m, n, 1].
DECOMPOSE(atleast_3d)
{
    tn_ints shape = tn_extents(build, rule->inputs[0]);
    while (shape.count < 2)
        shape = tn_ints_after(1, &shape);
    if (shape.count == 2)
        shape.value[shape.count++] = 1;
    outputs[0] = with_shape(build, "base.reshape/1", rule->inputs[0], shape);
    return built(outputs[0]);
}

COMPOSITE(atleast_1d, "x with at least one axis.", TN_INPUTS(base_any_x));
COMPOSITE(atleast_2d, "x with at least two axes, new ones in front.",
          TN_INPUTS(base_any_x));
COMPOSITE(atleast_3d,
          "x with at least three axes: [1, n, 1] of a vector, [m, n, 1] of a matrix.",
          TN_INPUTS(base_any_x));

// --- broadcast_arrays -------------------------------------------------------------------

static const tn_input_info broadcast_inputs[] = {
    {"arrays", "whose extents broadcast", TN_INPUT_VARIADIC, TN_ALL_DTYPES},
};
static const tn_output_info broadcast_outputs[] = {
    {"array", "the arrays, of one shape, in order", 0, 0}};

DECOMPOSE(broadcast_arrays)
{
    tn_type all = *build->type(rule->inputs[0]);
    char got[SHAPE_TEXT], before[SHAPE_TEXT];
    for (uint32_t i = 1; i < rule->num_inputs; i++) {
        const tn_type *x = build->type(rule->inputs[i]);
        if (!broadcast_types(&all, x, &all))
            return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                     "array %u has shape %s, which does not broadcast with "
                                     "%s of those before",
                                     i, shape_text(x->rank, x->extent, got),
                                     shape_text(all.rank, all.extent, before));
    }
    for (uint32_t i = 0; i < rule->num_inputs; i++)
        outputs[i] = with_shape(build, "base.broadcast_to/1", rule->inputs[i],
                                ints_of(all.rank, all.extent));
    return built(outputs[rule->num_inputs - 1]);
}

COMPOSITE(broadcast_arrays, "Arrays repeated to one shape.", TN_INPUTS(broadcast_inputs),
          TN_OUTPUTS(broadcast_outputs), .count_outputs = output_each_input);

// --- rot90 ------------------------------------------------------------------------------

typedef struct {
    int64_t k;
    tn_ints axes;
} rot90_attrs;

static const tn_attr_field rot90_fields[] = {
    TN_I64_FIELD(rot90_attrs, k, 1, "quarter turns from the first axis to the second"),
    TN_INTS_FIELD(rot90_attrs, axes, "two axes; not given: the first two"),
};

DECOMPOSE(rot90)
{
    const rot90_attrs *attrs = rule->attrs;
    const tn_ints axes = attrs->axes.given ? attrs->axes : ints_of(2, (int64_t[]){0, 1});
    int64_t turns = (attrs->k % 4 + 4) % 4;
    uint32_t set;
    tn_array *x = rule->inputs[0];
    tn_status status = check_axes(build->host, "axes", &axes, build->type(x)->rank, &set);
    if (status)
        return status;
    if (axes.count != 2)
        return build->host->fail(build->host, TN_ERR_ARGUMENT, "got %u axes, expected 2",
                                 axes.count);
    if (turns == 1 || turns == 2)
        x = build->op(build, "base.flip/1", TN_IN(x),
                      tn_attrs("axis", TN_INTS(axes.value[1])));
    if (turns == 2 || turns == 3)
        x = build->op(build, "base.flip/1", TN_IN(x),
                      tn_attrs("axis", TN_INTS(axes.value[0])));
    if (turns == 1 || turns == 3)
        return axes_swap(build, x, axes.value[0], axes.value[1], outputs);
    outputs[0] = x;
    return built(x);
}

COMPOSITE(rot90, "x turned by quarters in the plane of two axes.", TN_INPUTS(base_any_x),
          .attrs = TN_ATTR_TABLE(rot90_attrs, rot90_fields));
