// SPDX-License-Identifier: MIT
// gather and scatter by any number of index arrays, take_along_axis and put_along_axis.
//
// The indexed axes are merged into one, and the indices combined into element numbers along
// it; then take, scatter_add and others along one axis do the rest.
#include "../pack.h"

#include <stdio.h>

static const char *const modes[] = {"set", "add", "max", "min", NULL};
static const char *const scatters[] = {"base.scatter_set/1", "base.scatter_add/1",
                                       "base.scatter_max/1", "base.scatter_min/1"};

// --- positions --------------------------------------------------------------------------

// `index` counted from the front of an axis of extent n, as i64. An index out of range is
// clamped, or with `is_dropped` becomes -1.
static tn_array *from_front(const tn_build *build, const tn_array *index, int64_t n,
                            int is_dropped)
{
    const tn_type *type = build->type(index);
    int is_large =
        type && type->dtype == TN_U64; // i64() would make its upper half negative
    const char *text =
        is_dropped ? is_large ? "i -> select(i < u64(n), i64(i), i64(-1))"
                              : "i -> j = i64(i); k = select(j < 0, j + i64(n), j); "
                                "select(k >= 0 & k < i64(n), k, i64(-1))"
        : is_large ? "i -> i64(min(i, u64(n - 1)))"
                   : "i -> j = min(max(i64(i), -i64(n)), i64(n) - 1); "
                     "select(j < 0, j + i64(n), j)";
    return build->expr(build, text, TN_IN(index), tn_attrs("n", n));
}

// Extends element numbers `at` by index `next` along one more axis of extent n; -1 when
// either is -1.
static tn_array *base_gather_further(const tn_build *build, tn_array *at, tn_array *next,
                                     int64_t n)
{
    return !at ? next
               : build->expr(build,
                             "a, i -> select(a < 0 | i < 0, i64(-1), a * i64(n) + i)",
                             TN_IN(at, next), tn_attrs("n", n));
}

// Replaces -1 by `count`, a number behind the last element, which a scatter drops.
static tn_array *dropped_last(const tn_build *build, tn_array *at, int64_t count)
{
    return build->expr(build, "a -> select(a < 0, i64(n), a)", TN_IN(at),
                       tn_attrs("n", count));
}

// --- gather and scatter: types ----------------------------------------------------------

static const tn_input_info gather_inputs[] = {
    {"x", "the array", 0, TN_ALL_DTYPES},
    {"indices", "integers, an array for each indexed axis; they broadcast",
     TN_INPUT_VARIADIC | TN_INPUT_CONSTANT, 0},
};
static const tn_input_info scatter_inputs[] = {
    {"x", "the array", 0, TN_ALL_DTYPES},
    {"updates", "what is put there: x's dtype; broadcasts to what gather gives", 0,
     TN_ALL_DTYPES},
    {"indices", "integers, an array for each indexed axis; they broadcast",
     TN_INPUT_VARIADIC | TN_INPUT_CONSTANT, 0},
};
static const tn_attr_field scatter_fields[] = {
    TN_INTS_FIELD(tn_gather_attrs, axes, "axes of x; not given: the first ones"),
    TN_CHOICE_FIELD(tn_gather_attrs, mode, TN_SCATTER_SET, modes,
                    "what an update does to an element"),
};
static const tn_attr_field gather_fields[] = {
    TN_INTS_FIELD(tn_gather_attrs, axes, "axes of x; not given: the first ones"),
};

// The order of x's axes: the `count` indexed ones, then the others.
static tn_ints base_gather_order_of(const tn_gather_attrs *attrs, int32_t rank,
                                    uint32_t count)
{
    tn_ints order = {.given = 1};
    uint32_t set = 0;
    for (uint32_t i = 0; i < count; i++) {
        int32_t axis = attrs->axes.given ? tn_axis(attrs->axes.value[i], rank) : (int32_t)i;
        order.value[order.count++] = axis;
        set |= UINT32_C(1) << axis;
    }
    for (int32_t i = 0; i < rank; i++)
        if (!(set >> i & 1))
            order.value[order.count++] = i;
    return order;
}

// The type of gather's result, for index arrays from input `first` on.
static tn_status gathered_type(const tn_infer *infer, uint32_t first, tn_type *out)
{
    const tn_host *host = infer->host;
    const tn_gather_attrs *attrs = infer->attrs;
    const tn_type *x = &infer->types[0];
    uint32_t count = infer->num_inputs - first, set;
    char got[SHAPE_TEXT], others[SHAPE_TEXT];
    tn_type at = {0};
    if ((int32_t)count > x->rank || (attrs->axes.given && attrs->axes.count != count))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "got %u arrays of indices, expected %s%d, %s", count,
                          attrs->axes.given ? "" : "at most ",
                          attrs->axes.given ? (int)attrs->axes.count : x->rank,
                          attrs->axes.given ? "one for each of axes" : "x's rank");
    tn_status status = check_axes(host, "axes", &attrs->axes, x->rank, &set);
    for (uint32_t i = 0; i < count && status == TN_OK; i++) {
        const tn_type *indices = &infer->types[first + i];
        status = check_integers(host, "indices", indices->dtype);
        if (status == TN_OK && !broadcast_types(&at, indices, &at))
            status = host->fail(host, TN_ERR_ARGUMENT,
                                "indices %u have shape %s, which does not broadcast with "
                                "%s of those before",
                                i, shape_text(indices->rank, indices->extent, got),
                                shape_text(at.rank, at.extent, others));
    }
    if (status)
        return status;
    tn_ints order = base_gather_order_of(attrs, x->rank, count);
    if (at.rank + x->rank - (int32_t)count > TN_MAX_RANK)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "the result has rank %d, expected at most %d",
                          at.rank + x->rank - (int32_t)count, TN_MAX_RANK);
    at.dtype = x->dtype;
    for (uint32_t i = count; i < order.count; i++)
        at.extent[at.rank++] = x->extent[order.value[i]];
    *out = at;
    return TN_OK;
}

static tn_status gather_infer(const tn_infer *infer, tn_type *types)
{
    const tn_type *x = &infer->types[0];
    char text[SHAPE_TEXT];
    tn_type out;
    tn_status status = gathered_type(infer, 1, &out);
    if (status)
        return status;
    if (type_count(x) == 0 && type_count(&out) > 0)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "x has shape %s, which has no element to take",
                                 shape_text(x->rank, x->extent, text));
    types[0] = out;
    return TN_OK;
}

// Fails unless `updates`, input `name`, has x's dtype and broadcasts to `to`.
static tn_status check_updates(const tn_host *host, const char *name,
                               const tn_type *updates, const tn_type *to)
{
    char got[SHAPE_TEXT], expected[SHAPE_TEXT];
    tn_type both = *to;
    tn_status status = check_same_dtype(host, name, updates->dtype, to->dtype);
    if (status)
        return status;
    if (broadcast_types(updates, to, &both) && both.rank == to->rank &&
        memcmp(both.extent, to->extent, sizeof(int64_t) * (size_t)to->rank) == 0)
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT,
                      "%s has shape %s, which does not broadcast to %s", name,
                      shape_text(updates->rank, updates->extent, got),
                      shape_text(to->rank, to->extent, expected));
}

static tn_status scatter_infer(const tn_infer *infer, tn_type *types)
{
    tn_type part;
    tn_status status = gathered_type(infer, 2, &part);
    if (status == TN_OK)
        status = check_updates(infer->host, "updates", &infer->types[1], &part);
    if (status == TN_OK)
        types[0] = infer->types[0];
    return status;
}

// --- gather and scatter: decompositions -------------------------------------------------

// x with its indexed axes merged into one in front, and the element numbers along it.
struct merged {
    tn_array *x, *at;
    tn_ints order, shape; // of x's axes, and its extents in that order
    int64_t count;        // extent of the merged axis
};

static struct merged base_gather_merge(const tn_build *build, const tn_rule *rule,
                                       uint32_t first, int is_dropped)
{
    struct merged m = {.count = 1};
    const tn_type *x = build->type(rule->inputs[0]);
    uint32_t count = rule->num_inputs - first;
    tn_ints flat = {.count = 1, .given = 1};
    if (!x)
        return m;
    m.order = base_gather_order_of(rule->attrs, x->rank, count);
    m.shape = m.order;
    for (uint32_t i = 0; i < m.order.count; i++) {
        int64_t n = m.shape.value[i] = x->extent[m.order.value[i]];
        if (i >= count) {
            flat.value[flat.count++] = n;
            continue;
        }
        m.count *= n;
        m.at = base_gather_further(
            build, m.at, from_front(build, rule->inputs[first + i], n, is_dropped), n);
    }
    flat.value[0] = m.count;
    m.x =
        with_shape(build, "base.reshape/1", turned(build, rule->inputs[0], &m.order), flat);
    return m;
}

DECOMPOSE(gather)
{
    struct merged m = base_gather_merge(build, rule, 1, 0);
    outputs[0] = build->op(build, "base.take/1", TN_IN(m.x, m.at), TN_NO_ATTRS);
    return built(outputs[0]);
}

DECOMPOSE(scatter)
{
    const tn_gather_attrs *attrs = rule->attrs;
    struct merged m = base_gather_merge(build, rule, 2, 1);
    tn_ints extents = tn_extents(build, m.at), whole = tn_extents(build, m.x),
            back = m.order;
    for (uint32_t i = 1; i < whole.count; i++)
        extents.value[extents.count++] = whole.value[i];
    for (uint32_t i = 0; i < m.order.count; i++)
        back.value[m.order.value[i]] = i;
    tn_array *updates = with_shape(build, "base.broadcast_to/1", rule->inputs[1], extents);
    tn_array *out =
        build->op(build, scatters[attrs->mode],
                  TN_IN(m.x, dropped_last(build, m.at, m.count), updates), TN_NO_ATTRS);
    outputs[0] = turned(build, with_shape(build, "base.reshape/1", out, m.shape), &back);
    return built(outputs[0]);
}

DECOMPOSED(gather, tn_gather_attrs, gather_fields,
           "The elements of x at indices along several axes; out of range: the nearest.",
           TN_INPUTS(gather_inputs));
DECOMPOSED(scatter, tn_gather_attrs, scatter_fields,
           "x with updates put at indices along several axes; out of range: dropped.",
           TN_INPUTS(scatter_inputs));

// --- take_along_axis and put_along_axis -------------------------------------------------

static const tn_input_info take_inputs[] = {
    {"x", "the array", 0, TN_ALL_DTYPES},
    {"indices", "integers of x's rank; negative ones count from the end", TN_INPUT_CONSTANT,
     0},
};
static const tn_input_info put_inputs[] = {
    {"x", "the array", 0, TN_ALL_DTYPES},
    {"indices", "integers of x's rank; negative ones count from the end", TN_INPUT_CONSTANT,
     0},
    {"values", "what is put there: x's dtype; broadcasts to the indices' extents", 0,
     TN_ALL_DTYPES},
};
static const tn_in_place put_in_place[] = {{.input = 0, .output = 0}};
static const tn_attr_field take_fields[] = {
    TN_I64_FIELD(tn_along_axis_attrs, axis, -1, "axis of x that the indices count along"),
};
static const tn_attr_field put_fields[] = {
    TN_I64_FIELD(tn_along_axis_attrs, axis, -1, "axis of x that the indices count along"),
    TN_CHOICE_FIELD(tn_along_axis_attrs, mode, TN_SCATTER_SET, modes,
                    "what a value does to an element"),
};

// The extents of the addressed elements: the indices' along the axis, and common ones
// elsewhere. With `is_put` those must be x's own.
static tn_status along_type(const tn_infer *infer, int is_put, tn_type *out)
{
    const tn_host *host = infer->host;
    const tn_along_axis_attrs *attrs = infer->attrs;
    const tn_type *x = &infer->types[0], *indices = &infer->types[1];
    char got[SHAPE_TEXT], expected[SHAPE_TEXT];
    int32_t axis;
    tn_status status = check_integers(host, "indices", indices->dtype);
    if (status == TN_OK)
        status = check_axis(host, attrs->axis, x->rank, &axis);
    if (status)
        return status;
    if (indices->rank != x->rank)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "indices has rank %d, expected %d, x's rank", indices->rank,
                          x->rank);
    tn_type one = *x;
    one.extent[axis] = 1;
    if (!broadcast_types(&one, indices, &one) ||
        (is_put && type_count(indices) > 0 &&
         type_count(&one) / (one.extent[axis] ? one.extent[axis] : 1) !=
             type_count(x) / (x->extent[axis] ? x->extent[axis] : 1)))
        return host->fail(
            host, TN_ERR_ARGUMENT,
            "indices has shape %s, which does not fit x's, %s, beside axis %d",
            shape_text(indices->rank, indices->extent, got),
            shape_text(x->rank, x->extent, expected), axis);
    if (!is_put && x->extent[axis] == 0 && type_count(&one) > 0)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "x has shape %s, which has nothing to take along axis %d",
                          shape_text(x->rank, x->extent, got), axis);
    *out = one;
    return TN_OK;
}

static tn_status take_along_axis_infer(const tn_infer *infer, tn_type *types)
{
    tn_type out;
    tn_status status = along_type(infer, 0, &out);
    if (status == TN_OK)
        types[0] = out;
    return status;
}

static tn_status put_along_axis_infer(const tn_infer *infer, tn_type *types)
{
    tn_type part;
    tn_status status = along_type(infer, 1, &part);
    if (status == TN_OK)
        status = check_updates(infer->host, "values", &infer->types[2], &part);
    if (status == TN_OK)
        types[0] = infer->types[0];
    return status;
}

// The number of the element of x for each index; with `is_dropped` -1 for an index out of
// range.
static tn_array *base_gather_along(const tn_build *build, const tn_rule *rule,
                                   int is_dropped)
{
    const tn_along_axis_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    tn_array *at = NULL;
    if (!x)
        return NULL;
    int32_t axis = tn_axis(attrs->axis, x->rank);
    for (int32_t i = 0; i < x->rank; i++) {
        if (i != axis && x->extent[i] == 1)
            continue;
        at = base_gather_further(
            build, at,
            i == axis ? from_front(build, rule->inputs[1], x->extent[i], is_dropped)
                      : counted(build, x->extent[i], x->rank - 1 - i),
            x->extent[i]);
    }
    return at;
}

static tn_array *base_gather_flat(const tn_build *build, const tn_array *x)
{
    return with_shape(build, "base.reshape/1", x, ints_of(1, (int64_t[]){-1}));
}

DECOMPOSE(take_along_axis)
{
    tn_array *at = base_gather_along(build, rule, 0);
    outputs[0] =
        build->op(build, "base.take/1", TN_IN(base_gather_flat(build, rule->inputs[0]), at),
                  TN_NO_ATTRS);
    return built(outputs[0]);
}

DECOMPOSE(put_along_axis)
{
    const tn_along_axis_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    if (!x)
        return TN_ERR_ARGUMENT;
    tn_array *at = dropped_last(build, base_gather_along(build, rule, 1), type_count(x));
    tn_array *values =
        with_shape(build, "base.broadcast_to/1", rule->inputs[2], tn_extents(build, at));
    tn_array *out =
        build->op(build, scatters[attrs->mode],
                  TN_IN(base_gather_flat(build, rule->inputs[0]), at, values), TN_NO_ATTRS);
    outputs[0] = with_shape(build, "base.reshape/1", out, ints_of(x->rank, x->extent));
    return built(outputs[0]);
}

DECOMPOSED(take_along_axis, tn_along_axis_attrs, take_fields,
           "The element of x at each index along an axis; out of range: the nearest.",
           TN_INPUTS(take_inputs));
DECOMPOSED(put_along_axis, tn_along_axis_attrs, put_fields,
           "x with values put at indices along an axis; out of range: dropped.",
           TN_INPUTS(put_inputs), .in_place = put_in_place, .num_in_place = 1,
           .in_place_size = sizeof(put_in_place[0]));
