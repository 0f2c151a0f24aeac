// SPDX-License-Identifier: MIT
// Order statistics: median, quantile, percentile, and nanmedian, nanquantile,
// nanpercentile, which leave NaN out. Elements are sorted, NaN last, and interpolated
// between two neighbours.
#include "reduce.h"

enum {
    QUANTILE_LINEAR,
    QUANTILE_LOWER,
    QUANTILE_HIGHER,
    QUANTILE_MIDPOINT,
    QUANTILE_NEAREST
};

typedef struct {
    tn_ints axis;
    int64_t keepdims;
    int64_t method;
} quantile_attrs;

static const char *const methods[] = {"linear",   "lower",   "higher",
                                      "midpoint", "nearest", NULL};
static const tn_attr_field median_fields[] = {
    TN_INTS_FIELD(quantile_attrs, axis, "axes to reduce, one or several; not given: all"),
    TN_BOOL_FIELD(quantile_attrs, keepdims, 0, "keep reduced axes with extent 1"),
};
static const tn_attr_field quantile_fields[] = {
    TN_INTS_FIELD(quantile_attrs, axis, "axes to reduce, one or several; not given: all"),
    TN_BOOL_FIELD(quantile_attrs, keepdims, 0, "keep reduced axes with extent 1"),
    TN_CHOICE_FIELD(quantile_attrs, method, QUANTILE_LINEAR, methods,
                    "between two elements: by distance, the lower, the higher, their mean, "
                    "the nearer"),
};
static const tn_input_info quantile_inputs[] = {
    {"x", "the array", 0, 0},
    {"q", "which, 0 to 1: a number or a vector", 0, 0},
};
static const tn_input_info percentile_inputs[] = {
    {"x", "the array", 0, 0},
    {"q", "which, 0 to 100: a number or a vector", 0, 0},
};

// x in floats with the reduced axes merged into one, the last, and sorted along it.
struct ranked {
    tn_array *x;
    tn_ints left; // extents of the result, with keepdims
    int64_t count;
    tn_dtype dtype; // of the result
};

static tn_status rank_elements(const tn_build *build, const tn_rule *rule, struct ranked *r)
{
    const quantile_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    tn_ints shape = tn_extents(build, x), order = {.given = 1}, merged = order;
    uint32_t set;
    tn_dtype dtype = build->type(x)->dtype;
    tn_status status =
        check_axes(build->host, "axis", &attrs->axis, (int32_t)shape.count, &set);
    if (status)
        return status;
    *r = (struct ranked){.left = {.given = 1}, .count = 1};
    r->dtype = tn_is_float(dtype) ? dtype : TN_F64;
    for (uint32_t i = 0; i < shape.count; i++) {
        if (!(set >> i & 1)) {
            order.value[order.count++] = i;
            merged.value[merged.count++] = shape.value[i];
        }
        if (!(set >> i & 1) || attrs->keepdims)
            r->left.value[r->left.count++] = set >> i & 1 ? 1 : shape.value[i];
    }
    for (uint32_t i = 0; i < shape.count; i++)
        if (set >> i & 1) {
            order.value[order.count++] = i;
            r->count *= shape.value[i]; // at most the number of elements, or 0
        }
    merged.value[merged.count++] = r->count;
    if (r->count == 0)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "got no elements, which have no order statistic");
    if (shape.count)
        x = turned(build, x, &order);
    x = as_dtype(build, x, tn_dtype_computed(r->dtype));
    if (merged.count > TN_MAX_RANK) // no axis is reduced, and x has the most axes
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "x has rank %d and no axis is reduced", TN_MAX_RANK);
    x = with_shape(build, "base.reshape/1", x, merged);
    r->x = build->op(build, "base.sort/1", TN_IN(x), TN_NO_ATTRS);
    return built(r->x);
}

// Elements of the sorted rows at positions `at`, the same for all rows, in x's dtype.
static tn_array *ranked_at(const tn_build *build, const struct ranked *r, int64_t at)
{
    int32_t last = build->type(r->x) ? build->type(r->x)->rank - 1 : 0;
    return part_of_axis(build, r->x, last, at, 1, 1);
}

// Results of the rows, [..., 1]: NaN where the last element, which sorts greatest, is NaN.
static tn_array *ranked_unless_nan(const tn_build *build, const struct ranked *r,
                                   tn_array *x)
{
    return build->expr(build, "x, last -> isnan(last) ? last : x",
                       TN_IN(x, ranked_at(build, r, r->count - 1)), TN_NO_ATTRS);
}

// The mean of two elements: exactly their value where they are equal; both have slopes.
#define MIDDLE_OF(inputs)                                                                  \
    inputs " -> a == b & isfinite(a) ? a + (b - a) * 0.5 : a * 0.5 + b * 0.5"

DECOMPOSE(median)
{
    struct ranked r;
    tn_status status = rank_elements(build, rule, &r);
    if (status)
        return status;
    tn_array *low = ranked_at(build, &r, (r.count - 1) / 2);
    if (r.count % 2 == 0)
        low = build->expr(build, MIDDLE_OF("a, b"),
                          TN_IN(low, ranked_at(build, &r, r.count / 2)), TN_NO_ATTRS);
    low = as_dtype(build, ranked_unless_nan(build, &r, low), r.dtype);
    outputs[0] = with_shape(build, "base.reshape/1", low, r.left);
    return built(outputs[0]);
}

COMPOSITE(median, "The middle element, or the mean of the two in the middle.",
          TN_INPUTS(base_x), .attrs = TN_ATTR_TABLE(quantile_attrs, median_fields));

// --- quantiles --------------------------------------------------------------------------

// For each method, with p the position between elements 0 and n - 1, and t its fraction:
// the element below, the element above, and the share of the element above.
static const char *const below[] = {"p -> i64(floor(p))", "p -> i64(floor(p))",
                                    "p -> i64(ceil(p))", "p -> i64(floor(p))",
                                    "p -> i64(round(p))"};
static const char *const above[] = {"p -> i64(ceil(p))", "p -> i64(floor(p))",
                                    "p -> i64(ceil(p))", "p -> i64(ceil(p))",
                                    "p -> i64(round(p))"};
static const char *const shares[] = {
    ("t, a, b -> d = b - a; "
     "t == 0 | (a == b & isinf(a)) ? a : t < 0.5 ? a + d * t : b - d * (1 - t)"),
    "t, a, b -> a + 0 * (t == t)", "t, a, b -> a + 0 * (t == t)", MIDDLE_OF("t, a, b"),
    "t, a, b -> a + 0 * (t == t)"};

// Quantiles of the sorted rows at positions [..., k] or [k]: [..., k].
static tn_array *quantile_between(const tn_build *build, const struct ranked *r,
                                  tn_array *position, int64_t method)
{
    const tn_type *type = build->type(r->x), *of_position = build->type(position);
    if (!type || !of_position)
        return NULL;
    tn_ints shape = tn_extents(build, r->x);
    shape.value[shape.count - 1] = of_position->extent[of_position->rank - 1];
    tn_array *ends[2];
    for (int32_t i = 0; i < 2; i++) {
        tn_array *at =
            build->expr(build, (i ? above : below)[method], TN_IN(position), TN_NO_ATTRS);
        at = with_shape(build, "base.broadcast_to/1", at, shape);
        ends[i] = build->op(build, "base.take_along_axis/1", TN_IN(r->x, at), TN_NO_ATTRS);
    }
    // Computed in the position's dtype, as f32 has too few digits for its fraction.
    tn_array *share = build->expr(build, "p -> p - floor(p)", TN_IN(position), TN_NO_ATTRS);
    return build->expr(build, shares[method],
                       TN_IN(as_dtype(build, share, type->dtype), ends[0], ends[1]),
                       TN_NO_ATTRS);
}

// Moves the axis of [..., k] to the front, or removes it where q is a scalar; converts to
// the result's dtype.
static tn_status quantile_arrange(const tn_build *build, const struct ranked *r,
                                  tn_array *x, int is_vector, tn_array **outputs)
{
    const tn_type *type = build->type(x);
    if (!type)
        return TN_ERR_ARGUMENT;
    tn_ints shape = r->left;
    x = as_dtype(build, x, r->dtype);
    if (is_vector) {
        int64_t k = type->extent[type->rank - 1];
        x = tn_move_axis(build, x, type->rank - 1, 0);
        shape = tn_ints_after(k, &shape);
    }
    outputs[0] = with_shape(build, "base.reshape/1", x, shape);
    return built(outputs[0]);
}

static tn_status quantile_build(const tn_build *build, const tn_rule *rule, double whole,
                                int is_nan_left_out, tn_array **outputs)
{
    const quantile_attrs *attrs = rule->attrs;
    const tn_type *q = build->type(rule->inputs[1]);
    struct ranked r;
    tn_status status = rank_elements(build, rule, &r);
    if (status)
        return status;
    if (q->rank > 1)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "q has rank %d, expected 0 or 1", q->rank);
    tn_array *which = rule->inputs[1];
    if (q->rank == 0)
        which = with_shape(build, "base.reshape/1", which, ints_of(1, (int64_t[]){1}));
    // In f64: a position of f32 is not exact among 2^24 elements.
    tn_array *last = build->scalar(build, TN_F64, (double)(r.count - 1));
    if (is_nan_left_out) {
        tn_array *numbers =
            build->expr(build, "x -> i64(!isnan(x))", TN_IN(r.x), TN_NO_ATTRS);
        numbers = build->op(build, "base.sum/1", TN_IN(numbers),
                            tn_attrs("axis", TN_INTS(-1), "keepdims", 1));
        last = build->expr(build, "n -> f64(max(n - 1, 0))", TN_IN(numbers), TN_NO_ATTRS);
    }
    tn_array *position =
        build->expr(build, "q, last -> min(max(f64(q) / whole, 0), 1) * last",
                    TN_IN(which, last), tn_attrs("whole", whole));
    tn_array *x = quantile_between(build, &r, position, attrs->method);
    if (!is_nan_left_out)
        x = ranked_unless_nan(build, &r, x);
    return quantile_arrange(build, &r, x, q->rank == 1, outputs);
}

DECOMPOSE(quantile)
{
    return quantile_build(build, rule, 1, 0, outputs);
}

DECOMPOSE(percentile)
{
    return quantile_build(build, rule, 100, 0, outputs);
}

DECOMPOSE(nanquantile)
{
    return quantile_build(build, rule, 1, 1, outputs);
}

DECOMPOSE(nanpercentile)
{
    return quantile_build(build, rule, 100, 1, outputs);
}

DECOMPOSE(nanmedian)
{
    tn_array *in[] = {rule->inputs[0], build->scalar(build, TN_F64, 0.5)};
    const quantile_attrs *attrs = rule->attrs;
    const quantile_attrs middle = {attrs->axis, attrs->keepdims, QUANTILE_MIDPOINT};
    tn_rule as_quantile = *rule;
    as_quantile.inputs = in;
    as_quantile.num_inputs = 2;
    as_quantile.attrs = &middle;
    return in[1] ? quantile_build(build, &as_quantile, 1, 1, outputs) : TN_ERR_ARGUMENT;
}

#define QUANTILE(name, inputs, sentence)                                                   \
    COMPOSITE(name, sentence, TN_INPUTS(inputs),                                           \
              .attrs = TN_ATTR_TABLE(quantile_attrs, quantile_fields))
QUANTILE(quantile, quantile_inputs, "The element that a share q of all is below.");
QUANTILE(percentile, percentile_inputs, "The element that q per cent of all are below.");
QUANTILE(nanquantile, quantile_inputs, "quantile of the elements that are no NaN.");
QUANTILE(nanpercentile, percentile_inputs, "percentile of the elements that are no NaN.");
COMPOSITE(nanmedian, "The median of the elements that are no NaN.", TN_INPUTS(base_x),
          .attrs = TN_ATTR_TABLE(quantile_attrs, median_fields));
