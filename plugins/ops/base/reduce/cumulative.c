// SPDX-License-Identifier: MIT
// cumsum, cumprod, cummax, cummin: running results along an axis.
#include "../pack.h"

#include <tenon/ops/program.h>

static const tn_attr_field cumulative_fields[] = {
    TN_I64_FIELD(tn_cumulative_attrs, axis, TN_NO_AXIS,
                 "axis to run along; not given: x flattened in row-major order"),
    TN_BOOL_FIELD(tn_cumulative_attrs, reverse, 0, "run from the end"),
};

static const tn_attr_field total_fields[] = {
    TN_I64_FIELD(tn_cumulative_attrs, axis, TN_NO_AXIS,
                 "axis to run along; not given: x flattened in row-major order"),
    TN_BOOL_FIELD(tn_cumulative_attrs, reverse, 0, "run from the end"),
    RESULT_DTYPE(cumulative_dtype_attrs),
};

// --- types ------------------------------------------------------------------------------

static tn_status cumulative_infer(const tn_infer *infer, tn_dtype dtype, tn_type *types)
{
    const tn_cumulative_attrs *attrs = infer->attrs;
    tn_type out = infer->types[0];
    int32_t axis;
    tn_status status = TN_OK;
    if (attrs->axis == TN_NO_AXIS)
        out = (tn_type){.rank = 1, .extent = {type_count(&out)}};
    else
        status = check_axis(infer->host, attrs->axis, out.rank, &axis);
    if (status)
        return status;
    types[0] = out;
    types[0].dtype = dtype;
    return TN_OK;
}

// Sums and products have the dtypes of base.sum and base.prod.
static tn_dtype base_cumulative_total_dtype(tn_dtype dtype)
{
    return dtype == TN_BOOL || tn_dtype_in(dtype, TN_SIGNED_DTYPES) ? TN_I64
           : tn_dtype_in(dtype, TN_UNSIGNED_DTYPES)                 ? TN_U64
                                                                    : dtype;
}

static tn_status total_infer(const tn_infer *infer, tn_type *types)
{
    return cumulative_infer(infer, base_cumulative_total_dtype(infer->types[0].dtype),
                            types);
}

static tn_status extreme_infer(const tn_infer *infer, tn_type *types)
{
    return cumulative_infer(infer, infer->types[0].dtype, types);
}

// --- references -------------------------------------------------------------------------

enum { SUM, PROD, MAX, MIN };

static double next_float(int kind, double a, double x)
{
    if (kind == SUM)
        return a + x;
    if (kind == PROD)
        return a * x;
    return isnan(x) || (kind == MAX ? x > a : x < a) ? x : a; // a NaN stays
}

static int64_t next_integer(int kind, tn_dtype dtype, int64_t a, int64_t x)
{
    uint64_t sign = dtype == TN_U64 ? UINT64_C(1) << 63 : 0;
    if (kind == SUM)
        return (int64_t)((uint64_t)a + (uint64_t)x);
    if (kind == PROD)
        return (int64_t)((uint64_t)a * (uint64_t)x);
    int64_t p = (int64_t)((uint64_t)a ^ sign), q = (int64_t)((uint64_t)x ^ sign);
    return (kind == MAX ? q > p : q < p) ? x : a;
}

// Runs one row: the n elements of x from offset `from` on, at distances `step`.
static void base_cumulative_run_row(const tn_cpu_call *call, int kind, int64_t from,
                                    int64_t step, int64_t to, int64_t out_step, int64_t n)
{
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    tn_dtype dtype = x->layout.dtype;
    double f = 0;
    int64_t k = 0;
    tn_complex128 z = {0, 0};
    for (int64_t i = 0; i < n; i++, from += step, to += out_step) {
        if (tn_is_complex(dtype)) {
            tn_complex128 v = tn_get_complex(x, from);
            z = !i            ? v
                : kind == SUM ? tn_complex_operation(TN_EXPR_ADD, z, v)
                              : tn_complex_multiply(z, v);
            tn_set_complex(out, to, z);
        } else if (tn_is_float(dtype)) {
            double v = tn_get_f64(x, from);
            f = i ? next_float(kind, f, v) : v;
            tn_set_f64(out, to, f);
        } else {
            int64_t v = tn_get_i64(x, from);
            k = i ? next_integer(kind, dtype, k, v) : v;
            tn_set_i64(out, to, k);
        }
    }
}

// Runs all of x as one row, in row-major order.
static void run_flat(const tn_cpu_call *call, int kind, int64_t reverse)
{
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    int64_t index[TN_MAX_RANK] = {0}, n = out->layout.extent[0];
    tn_tensor one = call->inputs[0];
    tn_cpu_call part = *call;
    int64_t step = out->layout.stride[0], at = out->layout.offset;
    part.inputs = &one;
    // Copies the elements first, so that the row can run within the output.
    do {
        int64_t from = tn_offset_at(&x->layout, index);
        if (tn_is_complex(out->layout.dtype))
            tn_set_complex(out, at, tn_get_complex(x, from));
        else if (tn_is_float(out->layout.dtype))
            tn_set_f64(out, at, tn_get_f64(x, from));
        else
            tn_set_i64(out, at, tn_get_i64(x, from));
        at += step;
    } while (tn_index_next(x->layout.rank, x->layout.extent, index));
    one = *out;
    int64_t first = out->layout.offset + (reverse ? (n - 1) * step : 0);
    base_cumulative_run_row(&part, kind, first, reverse ? -step : step, first,
                            reverse ? -step : step, n);
}

static tn_status run_reference(const tn_cpu_call *call, int kind)
{
    const tn_cumulative_attrs *attrs = call->attrs;
    const tn_layout *x = &call->inputs[0].layout, *out = &call->outputs[0].layout;
    int64_t index[TN_MAX_RANK] = {0};
    if (tn_layout_count(x) == 0)
        return TN_OK;
    if (attrs->axis == TN_NO_AXIS) {
        run_flat(call, kind, attrs->reverse);
        return TN_OK;
    }
    int32_t axis = tn_axis(attrs->axis, x->rank);
    tn_layout rows = *x;
    int64_t n = x->extent[axis], sign = attrs->reverse ? -1 : 1;
    rows.extent[axis] = 1;
    do {
        int64_t from = tn_offset_at(x, index), to = tn_offset_at(out, index);
        if (attrs->reverse) {
            from += (n - 1) * x->stride[axis];
            to += (n - 1) * out->stride[axis];
        }
        base_cumulative_run_row(call, kind, from, sign * x->stride[axis], to,
                                sign * out->stride[axis], n);
    } while (tn_index_next(rows.rank, rows.extent, index));
    return TN_OK;
}

// --- graph building ---------------------------------------------------------------------

static tn_array *base_cumulative(const tn_build *build, const char *primitive,
                                 const tn_array *x, int64_t axis, int64_t reverse)
{
    return build->op(build, primitive, TN_IN(x),
                     tn_attrs("axis", axis, "reverse", reverse));
}

// x, flattened when no axis is given; *out_axis is the axis to run along.
static tn_array *as_rows(const tn_build *build, const tn_rule *rule, tn_array *x,
                         int32_t *out_axis)
{
    const tn_cumulative_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(x);
    *out_axis = 0;
    if (type && attrs->axis != TN_NO_AXIS)
        *out_axis = tn_axis(attrs->axis, type->rank);
    return attrs->axis == TN_NO_AXIS
               ? with_shape(build, "base.reshape/1", x, ints_of(1, (int64_t[]){-1}))
               : x;
}

// An array of the result's extents, reshaped to x's.
static tn_array *as_x(const tn_build *build, const tn_rule *rule, tn_array *array)
{
    const tn_cumulative_attrs *attrs = rule->attrs;
    return attrs->axis == TN_NO_AXIS ? with_shape(build, "base.reshape/1", array,
                                                  tn_extents(build, rule->inputs[0]))
                                     : array;
}

// --- cumsum -----------------------------------------------------------------------------

static tn_status cumsum_vjp(const tn_build *build, const tn_rule *rule,
                            tn_array *const *cotangents, const uint64_t *wanted,
                            tn_array **gradients)
{
    const tn_cumulative_attrs *attrs = rule->attrs;
    (void)wanted;
    gradients[0] =
        as_x(build, rule,
             base_cumulative(build, "base.cumsum/1", cotangents[0],
                             attrs->axis == TN_NO_AXIS ? 0 : attrs->axis, !attrs->reverse));
    return built(gradients[0]);
}

static tn_status cumsum_jvp(const tn_build *build, const tn_rule *rule,
                            tn_array *const *tangents, tn_array **out_tangents)
{
    const tn_cumulative_attrs *attrs = rule->attrs;
    out_tangents[0] =
        base_cumulative(build, "base.cumsum/1", tangents[0], attrs->axis, attrs->reverse);
    return built(out_tangents[0]);
}

// --- cumprod ----------------------------------------------------------------------------
//
// Derivatives without a division, so that zeros do no harm. With p[i] the product of all
// elements before i, the tangent is the linear recurrence d[i] = x[i] d[i-1] + p[i] t[i],
// and the gradient is p[i] s[i] with s[i] = g[i] + x[i+1] s[i+1]. A recurrence takes
// log2(n) steps, each over twice the distance: y[i] = b[i] + a[i] y[i-k] becomes b[i] +
// a[i] b[i-k] + a[i] a[i-k] y[i-2k].

// x moved by `count` positions along the axis, to the end (or with `reverse` to the start);
// `fill` fills the positions that become free.
static tn_array *base_cumulative_moved(const tn_build *build, tn_array *x, int32_t axis,
                                       int64_t count, int64_t reverse, double fill)
{
    const tn_type *type = build->type(x);
    if (!type)
        return NULL;
    int64_t n = type->extent[axis];
    tn_ints gap = tn_extents(build, x);
    gap.value[axis] = count;
    tn_array *filled = with_shape(build, "base.broadcast_to/1",
                                  build->scalar(build, type->dtype, fill), gap);
    tn_array *rest = part_of_axis(build, x, axis, reverse ? count : 0, 1, n - count);
    tn_array *parts[] = {reverse ? rest : filled, reverse ? filled : rest};
    return joined(build, parts, 2, axis);
}

// By doubling, for devices without a kernel: after k steps each element has the result of
// the 2^k elements up to it. `unit` is the result of no elements.
static tn_status by_doubling(const tn_build *build, const tn_rule *rule, const char *text,
                             double unit, tn_array **outputs)
{
    const tn_cumulative_attrs *attrs = rule->attrs;
    int32_t axis;
    tn_array *x = as_rows(build, rule, rule->inputs[0], &axis);
    const tn_type *type = build->type(x);
    if (!type)
        return TN_ERR_ARGUMENT;
    tn_dtype dtype = base_cumulative_total_dtype(type->dtype);
    int64_t n = type->extent[axis];
    x = as_dtype(build, x, tn_dtype_computed(dtype));
    for (int64_t k = 1; k < n && x; k *= 2)
        x = build->expr(
            build, text,
            TN_IN(x, base_cumulative_moved(build, x, axis, k, attrs->reverse, unit)),
            TN_NO_ATTRS);
    outputs[0] = as_dtype(build, x, dtype);
    return built(outputs[0]);
}

DECOMPOSE(cumsum)
{
    const tn_cumulative_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0], *part[2];
    if (!x || !tn_is_complex(build->type(x)->dtype))
        return by_doubling(build, rule, "x, y -> x + y", 0, outputs);
    for (int32_t i = 0; i < 2; i++)
        part[i] = base_cumulative(
            build, "base.cumsum/1",
            build->expr(build, i ? "x -> imag(x)" : "x -> real(x)", TN_IN(x), TN_NO_ATTRS),
            attrs->axis, attrs->reverse);
    outputs[0] =
        build->expr(build, "a, b -> complex(a, b)", TN_IN(part[0], part[1]), TN_NO_ATTRS);
    return built(outputs[0]);
}

// A product with 1 + 0i would turn an infinite part into NaN, so elements without others
// before them stay as they are.
static tn_array *products_of_complex(const tn_build *build, tn_array *x, int32_t axis,
                                     int64_t n, int64_t reverse)
{
    for (int64_t k = 1; k < n && x; k *= 2) {
        tn_array *low = part_of_axis(build, x, axis, 0, 1, n - k);
        tn_array *high = part_of_axis(build, x, axis, k, 1, n - k);
        tn_array *all = build->expr(build, "x, y -> x * y", TN_IN(low, high), TN_NO_ATTRS);
        tn_array *end = part_of_axis(build, x, axis, reverse ? n - k : 0, 1, k);
        tn_array *parts[] = {reverse ? all : end, reverse ? end : all};
        x = joined(build, parts, 2, axis);
    }
    return x;
}

DECOMPOSE(cumprod)
{
    const tn_cumulative_attrs *attrs = rule->attrs;
    int32_t axis;
    tn_array *x = as_rows(build, rule, rule->inputs[0], &axis);
    const tn_type *type = build->type(x);
    if (!type || !tn_is_complex(type->dtype))
        return by_doubling(build, rule, "x, y -> x * y", 1, outputs);
    outputs[0] = products_of_complex(build, x, axis, type->extent[axis], attrs->reverse);
    return built(outputs[0]);
}

// y[i] = b[i] + a[i] y[i - 1], or with `reverse` y[i + 1].
static tn_array *base_cumulative_recurrence(const tn_build *build, tn_array *a, tn_array *b,
                                            int32_t axis, int64_t reverse)
{
    const tn_type *type = build->type(b);
    int64_t n = type ? type->extent[axis] : 0;
    for (int64_t k = 1; k < n && b; k *= 2) {
        b = build->expr(build, "a, b, c -> b + a * c",
                        TN_IN(a, b, base_cumulative_moved(build, b, axis, k, reverse, 0)),
                        TN_NO_ATTRS);
        if (2 * k < n)
            a = build->expr(build, "a, c -> a * c",
                            TN_IN(a, base_cumulative_moved(build, a, axis, k, reverse, 0)),
                            TN_NO_ATTRS);
    }
    return b;
}

// For each element the product of all elements before it.
static tn_array *product_before(const tn_build *build, tn_array *out, int32_t axis,
                                int64_t reverse)
{
    const tn_type *type = build->type(out);
    return type && type->extent[axis] == 0
               ? out
               : base_cumulative_moved(build, out, axis, 1, reverse, 1);
}

static tn_status cumprod_vjp(const tn_build *build, const tn_rule *rule,
                             tn_array *const *cotangents, const uint64_t *wanted,
                             tn_array **gradients)
{
    const tn_cumulative_attrs *attrs = rule->attrs;
    int32_t axis;
    tn_array *x = as_rows(build, rule, rule->inputs[0], &axis);
    const tn_type *type = build->type(x);
    (void)wanted;
    if (!type || type->extent[axis] == 0)
        return type ? TN_OK : TN_ERR_ARGUMENT;
    if (tn_is_complex(type->dtype))
        x = build->expr(build, "x -> conj(x)", TN_IN(x), TN_NO_ATTRS);
    tn_array *next = base_cumulative_moved(build, x, axis, 1, !attrs->reverse, 0);
    tn_array *sums =
        base_cumulative_recurrence(build, next, cotangents[0], axis, !attrs->reverse);
    tn_array *before = product_before(build, rule->outputs[0], axis, attrs->reverse);
    gradients[0] =
        as_x(build, rule,
             build->expr(build, "s, p -> s * conj(p)", TN_IN(sums, before), TN_NO_ATTRS));
    return built(gradients[0]);
}

static tn_status cumprod_jvp(const tn_build *build, const tn_rule *rule,
                             tn_array *const *tangents, tn_array **out_tangents)
{
    const tn_cumulative_attrs *attrs = rule->attrs;
    int32_t axis;
    tn_array *x = as_rows(build, rule, rule->inputs[0], &axis);
    tn_array *t = as_rows(build, rule, tangents[0], &axis);
    tn_array *before = product_before(build, rule->outputs[0], axis, attrs->reverse);
    tn_array *terms = build->expr(build, "t, p -> t * p", TN_IN(t, before), TN_NO_ATTRS);
    out_tangents[0] = base_cumulative_recurrence(build, x, terms, axis, attrs->reverse);
    return built(out_tangents[0]);
}

// --- cummax and cummin ------------------------------------------------------------------

// The index of the element that each result equals: the last such element so far.
static tn_array *base_cumulative_positions(const tn_build *build, const tn_rule *rule,
                                           int32_t *out_axis)
{
    const tn_cumulative_attrs *attrs = rule->attrs;
    tn_array *x = as_rows(build, rule, rule->inputs[0], out_axis);
    const tn_type *type = build->type(x);
    if (!type)
        return NULL;
    int64_t n = type->extent[*out_axis];
    tn_array *hit = build->expr(
        build, "x, y, i -> select(x == y | x != x, i, i64(none))",
        TN_IN(x, rule->outputs[0], counted(build, n, type->rank - 1 - *out_axis)),
        tn_attrs("none", attrs->reverse ? n - 1 : (int64_t)0));
    return base_cumulative(build, attrs->reverse ? "base.cummin/1" : "base.cummax/1", hit,
                           *out_axis, attrs->reverse);
}

static tn_status extreme_vjp(const tn_build *build, const tn_rule *rule,
                             tn_array *const *cotangents, const uint64_t *wanted,
                             tn_array **gradients)
{
    int32_t axis;
    tn_array *at = base_cumulative_positions(build, rule, &axis);
    const tn_type *g = build->type(cotangents[0]);
    (void)wanted;
    if (!g)
        return TN_ERR_ARGUMENT;
    tn_array *sum =
        build->op(build, "base.put_along_axis/1",
                  TN_IN(zeros_like(build, cotangents[0], g->dtype), at, cotangents[0]),
                  tn_attrs("axis", (int64_t)axis, "mode", (int64_t)TN_SCATTER_ADD));
    gradients[0] = as_x(build, rule, sum);
    return built(gradients[0]);
}

static tn_status extreme_jvp(const tn_build *build, const tn_rule *rule,
                             tn_array *const *tangents, tn_array **out_tangents)
{
    int32_t axis;
    tn_array *at = base_cumulative_positions(build, rule, &axis);
    const tn_type *type = build->type(at);
    tn_array *t = as_rows(build, rule, tangents[0], &axis);
    out_tangents[0] = type && type_count(type) == 0
                          ? t
                          : build->op(build, "base.take_along_axis/1", TN_IN(t, at),
                                      tn_attrs("axis", (int64_t)axis));
    return built(out_tangents[0]);
}

// --- records ----------------------------------------------------------------------------

// A flattened slice becomes one row, behind the batch axis.
static tn_status base_cumulative_batch(const tn_build *build, const tn_rule *rule,
                                       const char *primitive, int32_t axis, int64_t size,
                                       tn_array **outputs, int32_t *out_axes)
{
    const tn_cumulative_attrs *attrs = rule->attrs;
    tn_array *x = tn_move_axis(build, rule->inputs[0], axis, 0);
    const tn_type *type = build->type(x), *slice = build->type(rule->outputs[0]);
    if (!type || !slice)
        return TN_ERR_ARGUMENT;
    int64_t along = 1;
    if (attrs->axis == TN_NO_AXIS)
        x = with_shape(build, "base.reshape/1", x,
                       ints_of(2, (int64_t[]){size, slice->extent[0]}));
    else
        along = 1 + tn_axis(attrs->axis, type->rank - 1);
    outputs[0] = base_cumulative(build, primitive, x, along, attrs->reverse);
    out_axes[0] = 0;
    return built(outputs[0]);
}

#define CUMULATIVE(name, kind, rules, type_rule, x, type, fields, parts, sentence)         \
    static tn_status name##_reference(const tn_cpu_call *call)                             \
    {                                                                                      \
        return run_reference(call, kind);                                                  \
    }                                                                                      \
    tn_status name##_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes, \
                          int64_t size, tn_array **outputs, int32_t *out_axes)             \
    {                                                                                      \
        return base_cumulative_batch(build, rule, "base." #name "/1", axes[0], size,       \
                                     outputs, out_axes);                                   \
    }                                                                                      \
    const tn_primitive base_##name = {                                                     \
        .struct_size = sizeof(tn_primitive),                                               \
        .id = "base." #name "/1",                                                          \
        .doc = sentence,                                                                   \
        TN_INPUTS(x),                                                                      \
        .attrs = TN_ATTR_TABLE(type, fields),                                              \
        .infer = type_rule,                                                                \
        .decompose = parts,                                                                \
        .reference = name##_reference,                                                     \
        .vjp = rules##_vjp,                                                                \
        .jvp = rules##_jvp,                                                                \
        .vmap = name##_vmap,                                                               \
    }
#define TOTAL(name) base_number_x, cumulative_dtype_attrs, total_fields, name##_decompose
#define EXTREME base_x, tn_cumulative_attrs, cumulative_fields, NULL
#define RUNNING(...) CUMULATIVE(__VA_ARGS__)
RUNNING(cumsum, SUM, cumsum, total_infer, TOTAL(cumsum),
        "At each element the sum of those up to it.");
RUNNING(cumprod, PROD, cumprod, total_infer, TOTAL(cumprod),
        "At each element the product of those up to it.");
RUNNING(cummax, MAX, extreme, extreme_infer, EXTREME,
        "At each element the greatest of those up to it; NaN behind a NaN.");
RUNNING(cummin, MIN, extreme, extreme_infer, EXTREME,
        "At each element the least of those up to it; NaN behind a NaN.");
