// SPDX-License-Identifier: MIT
// sort, argsort, topk: stable orders along an axis, NaN as the greatest.
#include "../pack.h"

static const tn_attr_field sort_fields[] = {
    TN_I64_FIELD(tn_sort_attrs, axis, -1, "axis to sort along"),
    TN_BOOL_FIELD(tn_sort_attrs, descending, 0, "from the greatest to the least"),
};
static const tn_attr_field topk_fields[] = {
    TN_REQUIRED_FIELD(tn_topk_attrs, k, TN_ATTR_I64, "how many"),
    TN_I64_FIELD(tn_topk_attrs, axis, -1, "axis to search along"),
    TN_BOOL_FIELD(tn_topk_attrs, largest, 1, "the greatest; false: the least"),
};
static const tn_output_info topk_outputs[] = {
    {"values", "the elements in order", 0, 0},
    {"indices", "their indices in x: i64", 0, 0},
};

// --- types ------------------------------------------------------------------------------

static tn_status ordered_infer(const tn_infer *infer, tn_dtype dtype, tn_type *types)
{
    const tn_sort_attrs *attrs = infer->attrs;
    int32_t axis;
    tn_status status = check_axis(infer->host, attrs->axis, infer->types[0].rank, &axis);
    if (status)
        return status;
    types[0] = infer->types[0];
    types[0].dtype = dtype;
    return TN_OK;
}

static tn_status sort_infer(const tn_infer *infer, tn_type *types)
{
    return ordered_infer(infer, infer->types[0].dtype, types);
}

static tn_status argsort_infer(const tn_infer *infer, tn_type *types)
{
    return ordered_infer(infer, TN_I64, types);
}

static tn_status topk_infer(const tn_infer *infer, tn_type *types)
{
    const tn_topk_attrs *attrs = infer->attrs;
    const tn_type *x = &infer->types[0];
    int32_t axis;
    tn_status status = check_axis(infer->host, attrs->axis, x->rank, &axis);
    if (status)
        return status;
    if (attrs->k < 0 || attrs->k > x->extent[axis])
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "k is %" PRId64 ", expected 0 to %" PRId64
                                 ", the extent of axis %d",
                                 attrs->k, x->extent[axis], axis);
    types[0] = *x;
    types[0].extent[axis] = attrs->k;
    types[1] = types[0];
    types[1].dtype = TN_I64;
    return TN_OK;
}

// --- reference --------------------------------------------------------------------------

// Whether the element at offset a comes before that at b in ascending order.
static int base_sort_is_less(const tn_tensor *x, int64_t a, int64_t b)
{
    tn_dtype dtype = x->layout.dtype;
    if (tn_is_float(dtype)) {
        double p = tn_get_f64(x, a), q = tn_get_f64(x, b);
        return !isnan(p) && (isnan(q) || p < q);
    }
    int64_t p = tn_get_i64(x, a), q = tn_get_i64(x, b);
    return dtype == TN_U64 ? (uint64_t)p < (uint64_t)q : p < q;
}

// Inserts one element after the other, behind all elements that are not greater.
static tn_status argsort_reference(const tn_cpu_call *call)
{
    const tn_sort_attrs *attrs = call->attrs;
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    int64_t index[TN_MAX_RANK] = {0};
    int32_t axis = tn_axis(attrs->axis, x->layout.rank);
    tn_layout rows = x->layout;
    int64_t n = x->layout.extent[axis], in_step = x->layout.stride[axis];
    int64_t step = out->layout.stride[axis];
    if (tn_layout_count(&x->layout) == 0)
        return TN_OK;
    rows.extent[axis] = 1;
    do {
        int64_t from = tn_offset_at(&x->layout, index);
        int64_t to = tn_offset_at(&out->layout, index);
        for (int64_t i = 0; i < n; i++) {
            int64_t at = i;
            for (; at > 0; at--) {
                int64_t other = tn_get_i64(out, to + (at - 1) * step);
                int64_t a = from + (attrs->descending ? other : i) * in_step;
                int64_t b = from + (attrs->descending ? i : other) * in_step;
                if (!base_sort_is_less(x, a, b))
                    break;
                tn_set_i64(out, to + at * step, other);
            }
            tn_set_i64(out, to + at * step, i);
        }
    } while (tn_index_next(rows.rank, rows.extent, index));
    return TN_OK;
}

// --- decompositions ---------------------------------------------------------------------

static tn_array *base_sort_order_of(const tn_build *build, const tn_array *x, int64_t axis,
                                    int64_t descending)
{
    return build->op(build, "base.argsort/1", TN_IN(x),
                     tn_attrs("axis", axis, "descending", descending));
}

static tn_array *base_sort_picked(const tn_build *build, const tn_array *x,
                                  const tn_array *at, int64_t axis)
{
    const tn_type *type = build->type(at);
    return type && type_count(type) == 0 ? zeros_like(build, at, build->type(x)->dtype)
                                         : build->op(build, "base.take_along_axis/1",
                                                     TN_IN(x, at), tn_attrs("axis", axis));
}

DECOMPOSE(sort)
{
    const tn_sort_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    outputs[0] = base_sort_picked(
        build, x, base_sort_order_of(build, x, attrs->axis, attrs->descending),
        attrs->axis);
    return built(outputs[0]);
}

DECOMPOSE(topk)
{
    const tn_topk_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    if (!x)
        return TN_ERR_ARGUMENT;
    tn_array *order =
        base_sort_order_of(build, rule->inputs[0], attrs->axis, attrs->largest);
    outputs[1] = part_of_axis(build, order, tn_axis(attrs->axis, x->rank), 0, 1, attrs->k);
    outputs[0] = base_sort_picked(build, rule->inputs[0], outputs[1], attrs->axis);
    return built(outputs[0]);
}

// --- batching ---------------------------------------------------------------------------

static tn_status sort_batch(const tn_build *build, const tn_rule *rule,
                            const char *primitive, int32_t batch_axis, tn_array **outputs,
                            int32_t *out_axes)
{
    const tn_sort_attrs *attrs = rule->attrs;
    int64_t axis = attrs->axis;
    tn_array *x = batch_along(build, rule->inputs[0], batch_axis, &axis);
    outputs[0] = build->op(build, primitive, TN_IN(x),
                           tn_attrs("axis", axis, "descending", attrs->descending));
    out_axes[0] = 0;
    return built(outputs[0]);
}

tn_status sort_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                    int64_t size, tn_array **outputs, int32_t *out_axes)
{
    (void)size;
    return sort_batch(build, rule, "base.sort/1", axes[0], outputs, out_axes);
}

tn_status argsort_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                       int64_t size, tn_array **outputs, int32_t *out_axes)
{
    (void)size;
    return sort_batch(build, rule, "base.argsort/1", axes[0], outputs, out_axes);
}

tn_status topk_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                    int64_t size, tn_array **outputs, int32_t *out_axes)
{
    const tn_topk_attrs *attrs = rule->attrs;
    int64_t axis = attrs->axis;
    const tn_array *x = batch_along(build, rule->inputs[0], axes[0], &axis);
    (void)size;
    out_axes[0] = out_axes[1] = 0;
    return build->op_n(build, "base.topk/1", &x, 1,
                       tn_attrs("k", attrs->k, "axis", axis, "largest", attrs->largest),
                       outputs, 2);
}

// --- records ----------------------------------------------------------------------------

const tn_primitive base_argsort = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.argsort/1",
    .doc = "The indices of x's elements in ascending order, equals as they were, NaN last.",
    TN_INPUTS(base_x),
    .attrs = TN_ATTR_TABLE(tn_sort_attrs, sort_fields),
    .infer = argsort_infer,
    .reference = argsort_reference,
    .vjp = zero_vjp,
    .jvp = zero_jvp,
    .vmap = argsort_vmap,
};

DECOMPOSED(sort, tn_sort_attrs, sort_fields,
           "x in ascending order along an axis, equals as they were, NaN last.",
           TN_INPUTS(base_x), .vmap = sort_vmap);
DECOMPOSED(topk, tn_topk_attrs, topk_fields,
           "The k greatest elements along an axis in descending order, and their indices.",
           TN_INPUTS(base_x), TN_OUTPUTS(topk_outputs), .vmap = topk_vmap);
