// SPDX-License-Identifier: MIT
// Primitives that are views: the output is the input's memory under another layout.
//
// The vjp of a rearrangement is its inverse, that of a broadcast is a sum.
#include "../pack.h"

#include <tenon/checked.h>

static const tn_attr_field shape_fields[] = {
    TN_REQUIRED_FIELD(tn_shape_attrs, shape, TN_ATTR_INTS, "extents of the result"),
};

// vjp of reshape, expand_dims and squeeze: the cotangent with the input's extents.
static tn_status reshape_back_vjp(const tn_build *build, const tn_rule *rule,
                                  tn_array *const *cotangents, const uint64_t *wanted,
                                  tn_array **gradients)
{
    (void)wanted;
    gradients[0] = with_shape(build, "base.reshape/1", cotangents[0],
                              tn_extents(build, rule->inputs[0]));
    return built(gradients[0]);
}

// jvp of reshape, expand_dims and squeeze: the tangent with the output's extents.
static tn_status reshape_jvp(const tn_build *build, const tn_rule *rule,
                             tn_array *const *tangents, tn_array **out_tangents)
{
    out_tangents[0] = with_shape(build, "base.reshape/1", tangents[0],
                                 tn_extents(build, rule->outputs[0]));
    return built(out_tangents[0]);
}

// --- reshape ----------------------------------------------------------------------------

// Product of the extents. An extent of -1, which reshape infers, counts as 1. Returns -1 on
// overflow.
static int64_t count_given(int32_t rank, const int64_t *extent)
{
    int64_t count = 1;
    for (int32_t i = 0; i < rank; i++)
        if (extent[i] == 0)
            return 0;
    for (int32_t i = 0; i < rank; i++)
        if (extent[i] != -1 && !tn_checked_multiply_extents(count, extent[i], &count))
            return -1;
    return count;
}

static tn_status reshape_infer(const tn_infer *infer, tn_type *types)
{
    const tn_host *host = infer->host;
    const tn_ints *shape = &((const tn_shape_attrs *)infer->attrs)->shape;
    const tn_type *x = &infer->types[0];
    char from[SHAPE_TEXT], to[SHAPE_TEXT];
    int32_t rank = (int32_t)shape->count, open = -1;
    if (!shape->given)
        return host->fail(host, TN_ERR_ARGUMENT, "shape is not given");
    for (int32_t i = 0; i < rank; i++) {
        if (shape->value[i] < -1 || (shape->value[i] == -1 && open >= 0))
            return host->fail(host, TN_ERR_ARGUMENT,
                              "shape is %s, expected extents of at least 0 and at most one "
                              "-1",
                              shape_text(rank, shape->value, to));
        if (shape->value[i] == -1)
            open = i;
    }
    int64_t have = count_given(x->rank, x->extent), want = count_given(rank, shape->value);
    int fits = open < 0 ? have == want : want > 0 && have % want == 0;
    if (!fits)
        return host->fail(
            host, TN_ERR_ARGUMENT, "%" PRId64 " elements of shape %s do not fill shape %s",
            have, shape_text(x->rank, x->extent, from), shape_text(rank, shape->value, to));
    types[0] = (tn_type){.dtype = x->dtype, .rank = rank};
    for (int32_t i = 0; i < rank; i++)
        types[0].extent[i] = i == open ? have / want : shape->value[i];
    return TN_OK;
}

// Merges adjacent axes that one stride can walk, and drops axes of extent 1. Returns
// the number of merged axes. No axis of a view can span two of them: that needs a copy.
static int32_t base_view_merge_axes(const tn_layout *in, int64_t *extent, int64_t *stride)
{
    int32_t n = 0;
    for (int32_t i = 0; i < in->rank; i++) {
        if (in->extent[i] == 1)
            continue;
        if (n > 0 && stride[n - 1] == in->extent[i] * in->stride[i]) {
            extent[n - 1] *= in->extent[i];
            stride[n - 1] = in->stride[i];
            continue;
        }
        extent[n] = in->extent[i];
        stride[n++] = in->stride[i];
    }
    return n;
}

static tn_status reshape_view(const tn_view *view, tn_layout *out)
{
    const tn_layout *in = view->input;
    const tn_type *type = view->output;
    int64_t extent[TN_MAX_RANK], stride[TN_MAX_RANK];
    int32_t runs = base_view_merge_axes(in, extent, stride), run = runs - 1;
    tn_layout made = {.dtype = in->dtype, .rank = type->rank, .offset = in->offset};
    int64_t left = runs > 0 ? extent[run] : 1; // extent of the run that no axis covers yet
    int64_t step = runs > 0 ? stride[run] : 1;
    int empty = tn_layout_count(in) == 0;

    for (int32_t i = type->rank - 1; i >= 0; i--) {
        int64_t n = type->extent[i];
        made.extent[i] = n;
        made.stride[i] = step;
        if (n == 1 || empty)
            continue;
        if (left == 1 && run > 0) {
            left = extent[--run];
            made.stride[i] = step = stride[run];
        }
        if (left % n != 0)
            return TN_ERR_UNSUPPORTED;
        left /= n;
        step *= n;
    }
    *out = made;
    return TN_OK;
}

const tn_primitive base_reshape = {
    .struct_size = sizeof(tn_primitive),
    .flags = TN_PRIM_VIEW,
    .id = "base.reshape/1",
    .doc = "The same elements in row-major order under other extents; one may be -1.",
    .role = TN_ROLE_RESHAPE,
    TN_INPUTS(base_any_x),
    .attrs = TN_ATTR_TABLE(tn_shape_attrs, shape_fields),
    .infer = reshape_infer,
    .view = reshape_view,
    .vjp = reshape_back_vjp,
    .jvp = reshape_jvp,
    .vmap = reshape_vmap,
};

// --- transpose --------------------------------------------------------------------------

static const tn_attr_field transpose_fields[] = {
    TN_INTS_FIELD(tn_transpose_attrs, axes,
                  "which axis of x stands at each position; not given: reversed"),
};

// The axis of x that becomes axis i of the result.
static int32_t base_view_axis_at(const tn_transpose_attrs *attrs, int32_t rank, int32_t i)
{
    return attrs->axes.given ? tn_axis(attrs->axes.value[i], rank) : rank - 1 - i;
}

static tn_status transpose_infer(const tn_infer *infer, tn_type *types)
{
    const tn_transpose_attrs *attrs = infer->attrs;
    const tn_type *x = &infer->types[0];
    char text[SHAPE_TEXT];
    uint32_t set;
    tn_status status = check_axes(infer->host, "axes", &attrs->axes, x->rank, &set);
    if (status)
        return status;
    if (attrs->axes.given && (int32_t)attrs->axes.count != x->rank)
        return infer->host->fail(
            infer->host, TN_ERR_ARGUMENT, "axes is %s, expected all %d axes of x",
            shape_text((int32_t)attrs->axes.count, attrs->axes.value, text), x->rank);
    types[0] = *x;
    for (int32_t i = 0; i < x->rank; i++)
        types[0].extent[i] = x->extent[base_view_axis_at(attrs, x->rank, i)];
    return TN_OK;
}

static tn_status transpose_view(const tn_view *view, tn_layout *out)
{
    tn_layout made = *view->input;
    for (int32_t i = 0; i < made.rank; i++) {
        int32_t axis = base_view_axis_at(view->attrs, made.rank, i);
        made.extent[i] = view->input->extent[axis];
        made.stride[i] = view->input->stride[axis];
    }
    *out = made;
    return TN_OK;
}

static tn_status transpose_vjp(const tn_build *build, const tn_rule *rule,
                               tn_array *const *cotangents, const uint64_t *wanted,
                               tn_array **gradients)
{
    (void)wanted;
    const tn_type *x = build->type(rule->inputs[0]);
    tn_ints back = {.count = (uint32_t)x->rank, .given = 1};
    for (int32_t i = 0; i < x->rank; i++)
        back.value[base_view_axis_at(rule->attrs, x->rank, i)] = i;
    gradients[0] =
        build->op(build, "base.transpose/1", TN_IN(cotangents[0]), tn_attrs("axes", &back));
    return built(gradients[0]);
}

static tn_status transpose_jvp(const tn_build *build, const tn_rule *rule,
                               tn_array *const *tangents, tn_array **out_tangents)
{
    const tn_transpose_attrs *attrs = rule->attrs;
    tn_attr_list list = attrs->axes.given ? tn_attrs("axes", &attrs->axes) : TN_NO_ATTRS;
    out_tangents[0] = build->op(build, "base.transpose/1", TN_IN(tangents[0]), list);
    return built(out_tangents[0]);
}

const tn_primitive base_transpose = {
    .struct_size = sizeof(tn_primitive),
    .flags = TN_PRIM_VIEW,
    .id = "base.transpose/1",
    .doc = "The axes of x in another order.",
    .role = TN_ROLE_TRANSPOSE,
    TN_INPUTS(base_any_x),
    .attrs = TN_ATTR_TABLE(tn_transpose_attrs, transpose_fields),
    .infer = transpose_infer,
    .view = transpose_view,
    .vjp = transpose_vjp,
    .jvp = transpose_jvp,
    .vmap = transpose_vmap,
};

// --- expand_dims and squeeze -----------------------------------------------------------

static const tn_attr_field expand_fields[] = {
    TN_REQUIRED_FIELD(tn_axis_attrs, axis, TN_ATTR_INTS,
                      "where the new axes of extent 1 stand in the result"),
};
static const tn_attr_field squeeze_fields[] = {
    TN_INTS_FIELD(tn_axis_attrs, axis, "axes to remove, of extent 1; not given: all such"),
};

static tn_status expand_dims_infer(const tn_infer *infer, tn_type *types)
{
    const tn_axis_attrs *attrs = infer->attrs;
    const tn_type *x = &infer->types[0];
    int32_t rank = x->rank + (int32_t)attrs->axis.count, from = 0;
    uint32_t set;
    if (rank > TN_MAX_RANK)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "the result has rank %d, expected at most %d", rank,
                                 TN_MAX_RANK);
    tn_ints axes = attrs->axis;
    axes.given = 1;
    tn_status status = check_axes(infer->host, "axis", &axes, rank, &set);
    if (status)
        return status;
    types[0] = (tn_type){.dtype = x->dtype, .rank = rank};
    for (int32_t i = 0; i < rank; i++)
        types[0].extent[i] = set >> i & 1 ? 1 : x->extent[from++];
    return TN_OK;
}

static tn_status squeeze_infer(const tn_infer *infer, tn_type *types)
{
    const tn_axis_attrs *attrs = infer->attrs;
    const tn_type *x = &infer->types[0];
    char text[SHAPE_TEXT];
    uint32_t set;
    tn_status status = check_axes(infer->host, "axis", &attrs->axis, x->rank, &set);
    if (status)
        return status;
    tn_type out = {.dtype = x->dtype};
    for (int32_t i = 0; i < x->rank; i++) {
        int removed = (set >> i & 1) && (attrs->axis.given || x->extent[i] == 1);
        if (removed && x->extent[i] != 1)
            return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                     "axis %d of shape %s has extent %" PRId64
                                     ", expected 1",
                                     i, shape_text(x->rank, x->extent, text), x->extent[i]);
        if (!removed)
            out.extent[out.rank++] = x->extent[i];
    }
    types[0] = out;
    return TN_OK;
}

const tn_primitive base_expand_dims = {
    .struct_size = sizeof(tn_primitive),
    .flags = TN_PRIM_VIEW,
    .id = "base.expand_dims/1",
    .doc = "x with new axes of extent 1.",
    TN_INPUTS(base_any_x),
    .attrs = TN_ATTR_TABLE(tn_axis_attrs, expand_fields),
    .infer = expand_dims_infer,
    .view = reshape_view,
    .vjp = reshape_back_vjp,
    .jvp = reshape_jvp,
    .vmap = reshape_vmap,
};

const tn_primitive base_squeeze = {
    .struct_size = sizeof(tn_primitive),
    .flags = TN_PRIM_VIEW,
    .id = "base.squeeze/1",
    .doc = "x without axes of extent 1.",
    TN_INPUTS(base_any_x),
    .attrs = TN_ATTR_TABLE(tn_axis_attrs, squeeze_fields),
    .infer = squeeze_infer,
    .view = reshape_view,
    .vjp = reshape_back_vjp,
    .jvp = reshape_jvp,
    .vmap = reshape_vmap,
};

// --- broadcast_to -----------------------------------------------------------------------

static tn_status broadcast_to_infer(const tn_infer *infer, tn_type *types)
{
    const tn_ints *shape = &((const tn_shape_attrs *)infer->attrs)->shape;
    const tn_type *x = &infer->types[0];
    int32_t rank = (int32_t)shape->count, shift = rank - x->rank;
    char from[SHAPE_TEXT], to[SHAPE_TEXT];
    tn_status status = check_shape(infer->host, shape);
    if (status)
        return status;
    int fits = shift >= 0;
    for (int32_t i = 0; fits && i < x->rank; i++)
        fits = x->extent[i] == 1 || x->extent[i] == shape->value[i + shift];
    if (!fits)
        return infer->host->fail(
            infer->host, TN_ERR_ARGUMENT, "shape %s does not broadcast to %s",
            shape_text(x->rank, x->extent, from), shape_text(rank, shape->value, to));
    types[0] = (tn_type){.dtype = x->dtype, .rank = rank};
    memcpy(types[0].extent, shape->value, sizeof(int64_t) * (size_t)rank);
    return TN_OK;
}

static tn_status broadcast_to_view(const tn_view *view, tn_layout *out)
{
    const tn_layout *in = view->input;
    tn_layout made = {.dtype = in->dtype, .rank = view->output->rank, .offset = in->offset};
    int32_t shift = made.rank - in->rank;
    for (int32_t i = 0; i < made.rank; i++) {
        made.extent[i] = view->output->extent[i];
        if (i >= shift && in->extent[i - shift] != 1)
            made.stride[i] = in->stride[i - shift];
    }
    *out = made;
    return TN_OK;
}

static tn_status broadcast_to_vjp(const tn_build *build, const tn_rule *rule,
                                  tn_array *const *cotangents, const uint64_t *wanted,
                                  tn_array **gradients)
{
    (void)wanted;
    gradients[0] = with_shape(build, "base.sum_to/1", cotangents[0],
                              tn_extents(build, rule->inputs[0]));
    return built(gradients[0]);
}

static tn_status broadcast_to_jvp(const tn_build *build, const tn_rule *rule,
                                  tn_array *const *tangents, tn_array **out_tangents)
{
    out_tangents[0] = with_shape(build, "base.broadcast_to/1", tangents[0],
                                 tn_extents(build, rule->outputs[0]));
    return built(out_tangents[0]);
}

const tn_primitive base_broadcast_to = {
    .struct_size = sizeof(tn_primitive),
    .flags = TN_PRIM_VIEW,
    .id = "base.broadcast_to/1",
    .doc = "x repeated along new axes and axes of extent 1.",
    .role = TN_ROLE_BROADCAST_TO,
    TN_INPUTS(base_any_x),
    .attrs = TN_ATTR_TABLE(tn_shape_attrs, shape_fields),
    .infer = broadcast_to_infer,
    .view = broadcast_to_view,
    .vjp = broadcast_to_vjp,
    .jvp = broadcast_to_jvp,
    .vmap = broadcast_to_vmap,
};

// --- stop_gradient ----------------------------------------------------------------------

static tn_status same_infer(const tn_infer *infer, tn_type *types)
{
    types[0] = infer->types[0];
    return TN_OK;
}

static tn_status same_view(const tn_view *view, tn_layout *out)
{
    *out = *view->input;
    return TN_OK;
}

// The record marks the input as constant: derivatives stop there, whether the producer has
// rules or not.
static const tn_input_info still_inputs[] = {
    {"x", "the array", TN_INPUT_CONSTANT, TN_ALL_DTYPES},
};
const tn_primitive base_stop_gradient = {
    .struct_size = sizeof(tn_primitive),
    .flags = TN_PRIM_VIEW,
    .id = "base.stop_gradient/1",
    .doc = "x, but a constant to all derivatives.",
    TN_INPUTS(still_inputs),
    .infer = same_infer,
    .view = same_view,
    .vjp = zero_vjp,
    .jvp = zero_jvp,
    .vmap = stop_gradient_vmap,
};
