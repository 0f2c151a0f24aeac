// SPDX-License-Identifier: MIT
// slice and slice_update: Python's start:stop:step on each axis.
#include "../pack.h"

#include <tenon/ops/copies.h>

static const tn_attr_field slice_fields[] = {
    TN_INTS_FIELD(tn_slice_attrs, start, "first index on each axis; not given: the start"),
    TN_INTS_FIELD(tn_slice_attrs, stop, "index to stop before; not given: the end"),
    TN_INTS_FIELD(tn_slice_attrs, step, "distance of taken indices; not given: 1"),
};

// The indices that a slice takes of one axis: first, first + step, ...
struct base_slice_span {
    int64_t first, step, count;
};

static int64_t base_slice_clamp(int64_t value, int64_t lo, int64_t hi)
{
    return value < lo ? lo : value > hi ? hi : value;
}

// A start or stop as an index of an axis of extent n: counted from the front and clamped to
// lo ... hi, or `omitted` when the list has no value for the axis.
static int64_t resolve_bound(const tn_ints *list, int32_t axis, int64_t n, int64_t lo,
                             int64_t hi, int64_t omitted)
{
    if (!list->given || axis >= (int32_t)list->count || list->value[axis] == TN_SLICE_END)
        return omitted;
    int64_t value = list->value[axis];
    return base_slice_clamp(value < 0 ? value + n : value, lo, hi);
}

// The indices that start:stop:step takes of axis `axis`, whose extent is n: as Python's
// slice.indices(). The step is not 0.
static struct base_slice_span span_of(const tn_slice_attrs *attrs, int32_t axis, int64_t n)
{
    struct base_slice_span span = {0, 1, 0};
    if (attrs->step.given && axis < (int32_t)attrs->step.count &&
        attrs->step.value[axis] != TN_SLICE_END)
        span.step = attrs->step.value[axis];
    if (span.step > 0) {
        int64_t stop = resolve_bound(&attrs->stop, axis, n, 0, n, n);
        span.first = resolve_bound(&attrs->start, axis, n, 0, n, 0);
        if (stop > span.first)
            span.count = (stop - span.first - 1) / span.step + 1;
    } else {
        int64_t stop = resolve_bound(&attrs->stop, axis, n, -1, n - 1, -1);
        span.first = resolve_bound(&attrs->start, axis, n, -1, n - 1, n - 1);
        // The step's magnitude. -step would overflow for INT64_MIN.
        uint64_t step = (uint64_t)(-(span.step + 1)) + 1;
        if (stop < span.first)
            span.count = (int64_t)((uint64_t)(span.first - stop - 1) / step) + 1;
    }
    return span;
}

static tn_status check_slice(const tn_host *host, const tn_slice_attrs *attrs, int32_t rank)
{
    const struct {
        const char *name;
        const tn_ints *list;
    } lists[] = {{"start", &attrs->start}, {"stop", &attrs->stop}, {"step", &attrs->step}};
    for (int i = 0; i < 3; i++)
        if (lists[i].list->given && (int32_t)lists[i].list->count > rank)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "%s has %u values, expected at most %d, x's rank",
                              lists[i].name, lists[i].list->count, rank);
    for (uint32_t i = 0; i < attrs->step.count && attrs->step.given; i++)
        if (attrs->step.value[i] == 0)
            return host->fail(host, TN_ERR_ARGUMENT, "step of axis %u is 0", i);
    return TN_OK;
}

static tn_status slice_infer(const tn_infer *infer, tn_type *types)
{
    const tn_slice_attrs *attrs = infer->attrs;
    tn_status status = check_slice(infer->host, attrs, infer->types[0].rank);
    if (status)
        return status;
    types[0] = infer->types[0];
    for (int32_t i = 0; i < types[0].rank; i++)
        types[0].extent[i] = span_of(attrs, i, types[0].extent[i]).count;
    return TN_OK;
}

// Layout of the slice of `in`.
static tn_layout base_slice_sliced(const tn_slice_attrs *attrs, const tn_layout *in)
{
    tn_layout made = *in;
    for (int32_t i = 0; i < in->rank; i++) {
        struct base_slice_span span = span_of(attrs, i, in->extent[i]);
        made.extent[i] = span.count;
        if (span.count > 0)
            made.offset += span.first * in->stride[i];
        if (span.count >
            1) // the step of one element is unused, and may overflow the stride
            made.stride[i] = span.step * in->stride[i];
    }
    if (tn_layout_count(&made) == 0)
        made.offset = in->offset;
    return made;
}

static tn_status slice_view(const tn_view *view, tn_layout *out)
{
    *out = base_slice_sliced(view->attrs, view->input);
    return TN_OK;
}

// Declares `list`: start, stop and step as attributes for another call, without absent
// ones.
#define SLICE_ATTRS(list, attrs)                                                           \
    tn_attr list##_items[3];                                                               \
    tn_attr_list list = slice_attrs(attrs, list##_items)
static tn_attr_list slice_attrs(const tn_slice_attrs *attrs, tn_attr items[3])
{
    uint64_t n = 0;
    if (attrs->start.given)
        items[n++] = (tn_attr)TN_ATTR_INIT("start", &attrs->start);
    if (attrs->stop.given)
        items[n++] = (tn_attr)TN_ATTR_INIT("stop", &attrs->stop);
    if (attrs->step.given)
        items[n++] = (tn_attr)TN_ATTR_INIT("step", &attrs->step);
    return TN_ATTR_LIST(items, n);
}

static tn_status slice_vjp(const tn_build *build, const tn_rule *rule,
                           tn_array *const *cotangents, const uint64_t *wanted,
                           tn_array **gradients)
{
    (void)wanted;
    SLICE_ATTRS(attrs, rule->attrs);
    const tn_type *type = build->type(cotangents[0]);
    tn_array *zeros = zeros_like(build, rule->inputs[0], type ? type->dtype : TN_F32);
    gradients[0] =
        build->op(build, "base.slice_update/1", TN_IN(zeros, cotangents[0]), attrs);
    return built(gradients[0]);
}

static tn_status slice_jvp(const tn_build *build, const tn_rule *rule,
                           tn_array *const *tangents, tn_array **out_tangents)
{
    SLICE_ATTRS(attrs, rule->attrs);
    out_tangents[0] = build->op(build, "base.slice/1", TN_IN(tangents[0]), attrs);
    return built(out_tangents[0]);
}

const tn_primitive base_slice = {
    .struct_size = sizeof(tn_primitive),
    .flags = TN_PRIM_VIEW,
    .id = "base.slice/1",
    .doc = "Part of x: Python's start:stop:step on each axis, negative steps included.",
    TN_INPUTS(base_any_x),
    .attrs = TN_ATTR_TABLE(tn_slice_attrs, slice_fields),
    .infer = slice_infer,
    .view = slice_view,
    .vjp = slice_vjp,
    .jvp = slice_jvp,
    .vmap = slice_vmap,
};

// --- slice_update -----------------------------------------------------------------------

static const tn_input_info update_inputs[] = {
    {"x", "the array", 0, TN_ALL_DTYPES},
    {"update", "what replaces the slice: x's dtype, the slice's extents", 0, TN_ALL_DTYPES},
};
static const tn_in_place update_in_place[] = {{.update = 1 + 1}};

static tn_status slice_update_infer(const tn_infer *infer, tn_type *types)
{
    const tn_host *host = infer->host;
    const tn_slice_attrs *attrs = infer->attrs;
    const tn_type *x = &infer->types[0], *update = &infer->types[1];
    char got[SHAPE_TEXT], expected[SHAPE_TEXT];
    int64_t extent[TN_MAX_RANK];
    tn_status status = check_slice(host, attrs, x->rank);
    if (status)
        return status;
    if (update->dtype != x->dtype)
        return host->fail(host, TN_ERR_ARGUMENT, "update is %s, expected x's dtype %s",
                          dtype_text(update->dtype), dtype_text(x->dtype));
    int fits = update->rank == x->rank;
    for (int32_t i = 0; i < x->rank; i++) {
        extent[i] = span_of(attrs, i, x->extent[i]).count;
        fits = fits && update->extent[i] == extent[i];
    }
    if (!fits)
        return host->fail(host, TN_ERR_ARGUMENT, "update has shape %s, expected %s",
                          shape_text(update->rank, update->extent, got),
                          shape_text(x->rank, extent, expected));
    types[0] = *x;
    return TN_OK;
}

tn_status slice_update_reference(const tn_cpu_call *call)
{
    const tn_tensor *x = &call->inputs[0], *update = &call->inputs[1];
    const tn_tensor *out = &call->outputs[0];
    tn_tensor to = {out->data, base_slice_sliced(call->attrs, &out->layout)};
    if (x->data != out->data || x->layout.offset != out->layout.offset)
        tn_copy_view(call, out, x); // in place, x's elements are in `out` already
    tn_copy_view(call, &to, update);
    return TN_OK;
}

// One axis of the decomposition: spreads `update` so that index i of `axis` has the
// update's element (i - first) / step, clamped. Narrows the condition *inside (NULL: true)
// to indices where that quotient is whole and in range; the others keep x's element.
static tn_array *update_axis(const tn_build *build, tn_array *update, int32_t axis,
                             const struct base_slice_span *span, const tn_type *x,
                             tn_array **inside)
{
    int64_t n = x->extent[axis], last = span->count - 1;
    tn_attr_list attrs = tn_attrs("first", span->first, "step", span->step, "last", last);
    tn_array *i = build->op(build, "base.arange/1", NULL, 0,
                            tn_attrs("stop", n, "dtype", (int64_t)TN_I64));
    tn_array *from =
        build->expr(build, "i -> min(max((i - i64(first)) // i64(step), 0), i64(last))",
                    TN_IN(i), attrs);
    tn_ints column = {.count = (uint32_t)(x->rank - axis), .given = 1, .value = {n}};
    for (int32_t k = 1; k < x->rank - axis; k++)
        column.value[k] = 1;
    tn_array *hit = build->expr(build,
                                "i -> d = i - i64(first); at = d // i64(step); "
                                "d % i64(step) == 0 & at >= 0 & at <= i64(last)",
                                TN_IN(i), attrs);
    hit = with_shape(build, "base.reshape/1", hit, column);
    *inside = *inside
                  ? build->expr(build, "a, b -> a & b", TN_IN(*inside, hit), TN_NO_ATTRS)
                  : hit;
    return build->op(build, "base.take/1", TN_IN(update, from),
                     tn_attrs("axis", (int64_t)axis));
}

static tn_status slice_update_decompose(const tn_build *build, const tn_rule *rule,
                                        tn_array **outputs)
{
    const tn_type *x = build->type(rule->inputs[0]);
    if (!x)
        return TN_ERR_ARGUMENT;
    tn_array *inside = NULL;
    struct base_slice_span spans[TN_MAX_RANK];
    int empty = 0;
    for (int32_t i = 0; i < x->rank; i++) {
        spans[i] = span_of(rule->attrs, i, x->extent[i]);
        empty |= spans[i].count == 0;
    }
    outputs[0] = rule->inputs[0];
    if (empty) {
        outputs[0] = build->expr(build, "x -> x", TN_IN(outputs[0]), TN_NO_ATTRS);
        return built(outputs[0]);
    }
    tn_array *update = rule->inputs[1];
    for (int32_t i = 0; i < x->rank; i++)
        if (spans[i].first != 0 || spans[i].step != 1 || spans[i].count != x->extent[i])
            update = update_axis(build, update, i, &spans[i], x, &inside);
    outputs[0] = inside ? build->expr(build, "i, u, x -> select(i, u, x)",
                                      TN_IN(inside, update, rule->inputs[0]), TN_NO_ATTRS)
                        : build->expr(build, "u -> u", TN_IN(update), TN_NO_ATTRS);
    return built(outputs[0]);
}

static tn_status slice_update_vjp(const tn_build *build, const tn_rule *rule,
                                  tn_array *const *cotangents, const uint64_t *wanted,
                                  tn_array **gradients)
{
    SLICE_ATTRS(attrs, rule->attrs);
    const tn_type *type = build->type(cotangents[0]);
    tn_array *zero_update = zeros_like(build, rule->inputs[1], type ? type->dtype : TN_F32);
    if (wants(wanted, 0))
        gradients[0] = build->op(build, "base.slice_update/1",
                                 TN_IN(cotangents[0], zero_update), attrs);
    if (wants(wanted, 1))
        gradients[1] = build->op(build, "base.slice/1", TN_IN(cotangents[0]), attrs);
    return built_wanted(wanted, gradients, 2);
}

static tn_status slice_update_jvp(const tn_build *build, const tn_rule *rule,
                                  tn_array *const *tangents, tn_array **out_tangents)
{
    SLICE_ATTRS(attrs, rule->attrs);
    const tn_type *type = build->type(tangents[0] ? tangents[0] : tangents[1]);
    tn_dtype dtype = type ? type->dtype : TN_F32;
    const tn_array *x =
        tangents[0] ? tangents[0] : zeros_like(build, rule->inputs[0], dtype);
    const tn_array *update =
        tangents[1] ? tangents[1] : zeros_like(build, rule->inputs[1], dtype);
    out_tangents[0] = build->op(build, "base.slice_update/1", TN_IN(x, update), attrs);
    return built(out_tangents[0]);
}

const tn_primitive base_slice_update = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.slice_update/1",
    .role = "tn.slice_update/1",
    .doc = "x with a slice replaced: what x[start:stop:step] = update would leave.",
    TN_INPUTS(update_inputs),
    .attrs = TN_ATTR_TABLE(tn_slice_attrs, slice_fields),
    .in_place = update_in_place,
    .num_in_place = 1,
    .in_place_size = sizeof(tn_in_place),
    .infer = slice_update_infer,
    .reference = slice_update_reference,
    .decompose = slice_update_decompose,
    .vjp = slice_update_vjp,
    .jvp = slice_update_jvp,
    .vmap = slice_update_vmap,
};
