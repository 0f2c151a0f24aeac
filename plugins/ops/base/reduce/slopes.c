// SPDX-License-Identifier: MIT
// Statistics and derivatives of samples: cov, corrcoef, gradient, unwrap; nanargmax and
// nanargmin.
#include "reduce.h"

// The float or complex dtype in which statistics of `dtype` are computed.
static tn_dtype slope_dtype(tn_dtype dtype)
{
    return tn_is_float(dtype) || tn_is_complex(dtype) ? dtype : TN_F64;
}

// --- cov and corrcoef -------------------------------------------------------------------

typedef struct {
    int64_t rowvar, bias;
    double ddof;
} cov_attrs;

#define ROWVAR                                                                             \
    TN_BOOL_FIELD(cov_attrs, rowvar, 1, "rows are variables, and columns observations")
static const tn_attr_field cov_fields[] = {
    ROWVAR,
    TN_BOOL_FIELD(cov_attrs, bias, 0, "divide by the number of observations"),
    TN_F64_FIELD(cov_attrs, ddof, NAN,
                 "how much the divisor is less than it; not given: 1, with bias 0"),
};
static const tn_attr_field corrcoef_fields[] = {ROWVAR};
static const tn_input_info cov_inputs[] = {
    {"x", "a matrix, or the vector of one variable", 0,
     TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
    {"y", "further variables", TN_INPUT_OPTIONAL, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
};

// The variables as rows of one matrix.
static tn_status cov_rows(const tn_build *build, const tn_rule *rule, tn_dtype dtype,
                          tn_array **out)
{
    const cov_attrs *attrs = rule->attrs;
    tn_array *parts[2];
    uint64_t count = 0;
    for (uint32_t i = 0; i < rule->num_inputs; i++) {
        tn_array *x = rule->inputs[i];
        if (!x)
            continue;
        if (build->type(x)->rank > 2)
            return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                     "%s has rank %d, expected at most 2", i ? "y" : "x",
                                     build->type(x)->rank);
        x = build->op(build, "base.atleast_2d/1", TN_IN(as_dtype(build, x, dtype)),
                      TN_NO_ATTRS);
        if (!attrs->rowvar && build->type(x) && build->type(x)->extent[0] != 1)
            x = build->op(build, "base.transpose/1", TN_IN(x), TN_NO_ATTRS);
        parts[count++] = x;
    }
    *out = count > 1 ? joined(build, parts, count, 0) : parts[0];
    return built(*out);
}

// The covariance matrix, in the dtype of computation; *out_dtype is the result's.
static tn_status cov_matrix(const tn_build *build, const tn_rule *rule, double ddof,
                            tn_dtype *out_dtype, tn_array **out)
{
    tn_dtype dtype = build->type(rule->inputs[0])->dtype;
    if (rule->num_inputs > 1 && rule->inputs[1])
        dtype = tn_dtype_promote(dtype, build->type(rule->inputs[1])->dtype);
    *out_dtype = slope_dtype(dtype);
    tn_array *x = NULL;
    tn_status status = cov_rows(build, rule, tn_dtype_computed(*out_dtype), &x);
    if (status)
        return status;
    tn_array *mean = build->op(build, "base.mean/1", TN_IN(x),
                               tn_attrs("axis", TN_INTS(1), "keepdims", 1));
    x = build->expr(build, "x, m -> x - m", TN_IN(x, mean), TN_NO_ATTRS);
    double divisor =
        fmax((build->type(x) ? (double)build->type(x)->extent[1] : 0) - ddof, 0);
    tn_array *other =
        build->expr(build, "x -> conj(x) / n", TN_IN(x), tn_attrs("n", divisor));
    *out =
        build->op(build, "base.matmul/1",
                  TN_IN(x, build->op(build, "base.transpose/1", TN_IN(other), TN_NO_ATTRS)),
                  TN_NO_ATTRS);
    return built(*out);
}

// A single variable gives a scalar.
static tn_array *cov_result(const tn_build *build, tn_array *c, tn_dtype dtype)
{
    if (build->type(c) && build->type(c)->extent[0] == 1)
        c = build->op(build, "base.squeeze/1", TN_IN(c), TN_NO_ATTRS);
    return as_dtype(build, c, dtype);
}

DECOMPOSE(cov)
{
    const cov_attrs *attrs = rule->attrs;
    tn_dtype dtype;
    tn_array *c;
    double ddof = isnan(attrs->ddof) ? !attrs->bias : attrs->ddof;
    tn_status status = cov_matrix(build, rule, ddof, &dtype, &c);
    outputs[0] = status ? NULL : cov_result(build, c, dtype);
    return status ? status : built(outputs[0]);
}

DECOMPOSE(corrcoef)
{
    tn_dtype dtype;
    tn_array *c;
    tn_status status = cov_matrix(build, rule, 1, &dtype, &c);
    if (status)
        return status;
    tn_array *d = build->op(build, "base.diagonal/1", TN_IN(c), TN_NO_ATTRS);
    d = build->expr(build, "d -> sqrt(real(d))", TN_IN(d), TN_NO_ATTRS);
    int64_t n = build->type(d) ? build->type(d)->extent[0] : 0;
    tn_array *column =
        with_shape(build, "base.reshape/1", d, ints_of(2, (int64_t[]){n, 1}));
    c = build->expr(build, "c, i, j -> c / i / j", TN_IN(c, column, d), TN_NO_ATTRS);
    if (!tn_is_complex(dtype)) {
        // Clips values that rounding puts beyond 1, keeping the derivative of the quotient:
        // each of its terms would compare with 1 anew, and need not agree. The sums here
        // are exact.
        tn_array *still = build->op(build, "base.stop_gradient/1", TN_IN(c), TN_NO_ATTRS);
        c = build->expr(
            build, "c, s -> b = max(min(s, 1), -1); select(abs(s) < 2, c + (b - s), b)",
            TN_IN(c, still), TN_NO_ATTRS);
    }
    outputs[0] = cov_result(build, c, dtype);
    return built(outputs[0]);
}

COMPOSITE(cov, "How variables vary with each other: the covariance matrix.",
          TN_INPUTS(cov_inputs), .attrs = TN_ATTR_TABLE(cov_attrs, cov_fields));
COMPOSITE(corrcoef, "The coefficients of correlation of variables.", TN_INPUTS(cov_inputs),
          .attrs = TN_ATTR_TABLE(cov_attrs, corrcoef_fields));

// --- gradient ---------------------------------------------------------------------------

typedef struct {
    tn_ints axis;
    int64_t edge_order;
} gradient_attrs;

static const tn_attr_field gradient_fields[] = {
    TN_INTS_FIELD(gradient_attrs, axis, "axes, an output each; not given: all"),
    TN_I64_FIELD(gradient_attrs, edge_order, 1, "1 or 2: how exact it is at the ends"),
};
static const tn_input_info gradient_inputs[] = {
    {"arrays",
     "the samples, and distances or vectors of coordinates: none, for all axes, or for "
     "each",
     TN_INPUT_VARIADIC, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
};
static const tn_output_info gradient_outputs[] = {
    {"slope", "along each axis in turn", 0, 0}};

static tn_status gradient_count(const tn_infer *infer, uint64_t *out_count)
{
    const gradient_attrs *attrs = infer->attrs;
    uint32_t set;
    tn_status status =
        check_axes(infer->host, "axis", &attrs->axis, infer->types[0].rank, &set);
    *out_count = attrs->axis.given ? attrs->axis.count : (uint64_t)infer->types[0].rank;
    if (status == TN_OK && *out_count == 0)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT, "no axis to go along");
    return status;
}

// Elements from `first` on of one axis.
static tn_array *gradient_at(const tn_build *build, tn_array *x, int32_t axis,
                             int64_t first, int64_t count)
{
    int64_t n = build->type(x) ? build->type(x)->extent[axis] : 1;
    return n == 1 ? x : part_of_axis(build, x, axis, first, 1, count);
}

// The slope at an end: `step` is 1 at the first element, -1 at the last. `h` has the
// distances of neighbours, or the one that all have.
static tn_array *gradient_end(const tn_build *build, tn_array *x, tn_array *h, int32_t axis,
                              int64_t n, int64_t step, int64_t order)
{
    int64_t i = step > 0 ? 0 : n - 1, j = step > 0 ? 0 : n - 2;
    tn_array *a = gradient_at(build, x, axis, i, 1),
             *b = gradient_at(build, x, axis, i + step, 1),
             *p = gradient_at(build, h, axis, j, 1);
    if (order == 1)
        return build->expr(build,
                           step > 0 ? "a, b, p -> (b - a) / p" : "a, b, p -> (a - b) / p",
                           TN_IN(a, b, p), TN_NO_ATTRS);
    return build->expr(
        build,
        "a, b, c, p, q -> sign * (-(2 * p + q) / (p * (p + q)) * a + (p + q) / (p * q) * b "
        "- p / (q * (p + q)) * c)",
        TN_IN(a, b, gradient_at(build, x, axis, i + 2 * step, 1), p,
              gradient_at(build, h, axis, j + step, 1)),
        tn_attrs("sign", step));
}

static tn_array *slopes_gradient_along(const tn_build *build, tn_array *x, tn_array *h,
                                       int32_t axis, int64_t order)
{
    int64_t n = build->type(x) ? build->type(x)->extent[axis] : 0;
    tn_array *p = gradient_at(build, h, axis, 0, n - 2),
             *q = gradient_at(build, h, axis, 1, n - 2);
    int is_even = p == q; // all distances are equal
    tn_array *inner = build->expr(
        build,
        is_even ? "a, b, c, p, q -> (c - a) / (2 * p)"
                : "a, b, c, p, q -> -q / (p * (p + q)) * a + (q - p) / (p * q) * b "
                  "+ p / (q * (p + q)) * c",
        TN_IN(part_of_axis(build, x, axis, 0, 1, n - 2),
              part_of_axis(build, x, axis, 1, 1, n - 2),
              part_of_axis(build, x, axis, 2, 1, n - 2), p, q),
        TN_NO_ATTRS);
    tn_array *parts[] = {gradient_end(build, x, h, axis, n, 1, order), inner,
                         gradient_end(build, x, h, axis, n, -1, order)};
    return joined(build, parts, 3, axis);
}

// The distances of neighbours along an axis, with x's rank, in the real dtype in which x is
// computed.
static tn_status gradient_distances(const tn_build *build, tn_array *given, tn_array *x,
                                    int32_t axis, tn_array **out)
{
    const tn_type *type = build->type(x), *h = build->type(given);
    if (!type)
        return TN_ERR_ARGUMENT;
    tn_dtype dtype = tn_dtype_real(type->dtype);
    tn_ints shape = {(uint32_t)type->rank, 1, {1, 1, 1, 1, 1, 1, 1, 1}};
    if (h && (h->rank > 1 || (h->rank == 1 && h->extent[0] != type->extent[axis])))
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "spacing of axis %d has rank %d and %" PRId64
                                 " elements, expected a number or %" PRId64,
                                 axis, h->rank, type_count(h), type->extent[axis]);
    if (!given)
        given = build->scalar(build, dtype, 1);
    given = as_dtype(build, given, dtype);
    if (h && h->rank == 1) {
        given = build->op(build, "base.diff/1", TN_IN(given), TN_NO_ATTRS);
        shape.value[axis] = type->extent[axis] - 1;
    }
    *out = with_shape(build, "base.reshape/1", given, shape);
    return built(*out);
}

DECOMPOSE(gradient)
{
    const gradient_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    const tn_type *type = build->type(rule->inputs[0]);
    tn_dtype dtype = slope_dtype(type->dtype);
    tn_array *x = as_dtype(build, rule->inputs[0], tn_dtype_computed(dtype));
    uint32_t given = rule->num_inputs - 1;
    if (given > 1 && given != rule->num_outputs)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "got %u spacings, expected one, or one for each of %u axes",
                          given, rule->num_outputs);
    if (attrs->edge_order != 1 && attrs->edge_order != 2)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "edge_order is %" PRId64 ", expected 1 or 2", attrs->edge_order);
    for (uint32_t i = 0; i < rule->num_outputs; i++) {
        int32_t axis =
            attrs->axis.given ? tn_axis(attrs->axis.value[i], type->rank) : (int32_t)i;
        tn_array *h = NULL;
        if (type->extent[axis] <= attrs->edge_order)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "axis %d has %" PRId64
                              " elements, expected at least %" PRId64,
                              axis, type->extent[axis], attrs->edge_order + 1);
        tn_status status = gradient_distances(
            build, given ? rule->inputs[given > 1 ? 1 + i : 1] : NULL, x, axis, &h);
        if (status)
            return status;
        outputs[i] = as_dtype(
            build, slopes_gradient_along(build, x, h, axis, attrs->edge_order), dtype);
    }
    return built(outputs[rule->num_outputs - 1]);
}

COMPOSITE(gradient, "Slopes by differences: central, and at the ends to one side.",
          TN_INPUTS(gradient_inputs), TN_OUTPUTS(gradient_outputs),
          .count_outputs = gradient_count,
          .attrs = TN_ATTR_TABLE(gradient_attrs, gradient_fields));

// --- unwrap -----------------------------------------------------------------------------

typedef struct {
    double discont;
    int64_t axis;
    double period;
} unwrap_attrs;

static const tn_attr_field unwrap_fields[] = {
    TN_F64_FIELD(unwrap_attrs, discont, NAN,
                 "the least step that is changed; not given: half of the period"),
    TN_I64_FIELD(unwrap_attrs, axis, -1, "the axis"),
    TN_F64_FIELD(unwrap_attrs, period, 6.283185307179586, "what steps may differ by"),
};

DECOMPOSE(unwrap)
{
    const unwrap_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(rule->inputs[0]);
    tn_dtype dtype = slope_dtype(type->dtype);
    int32_t axis;
    tn_status status = check_axis(build->host, attrs->axis, type->rank, &axis);
    if (status)
        return status;
    tn_array *x = as_dtype(build, rule->inputs[0], tn_dtype_computed(dtype));
    tn_ints before = {(uint32_t)type->rank, 1, {0}}, after = before;
    before.value[axis] = 1;
    tn_array *step =
        build->op(build, "base.diff/1", TN_IN(x), tn_attrs("axis", (int64_t)axis));
    double half = attrs->period / 2;
    tn_array *turns = build->expr(
        build,
        "d -> m = (d + half) % period - half; n = m == -half & d > 0 ? half : m; "
        "abs(d) < least ? 0 : n - d",
        TN_IN(step),
        tn_attrs("half", half, "period", attrs->period, "least",
                 isnan(attrs->discont) ? half : attrs->discont));
    turns =
        build->op(build, "base.cumsum/1", TN_IN(turns), tn_attrs("axis", (int64_t)axis));
    if (type->extent[axis] > 0)
        x = build->expr(build, "x, t -> x + t",
                        TN_IN(x, build->op(build, "base.pad_constant/1", TN_IN(turns),
                                           tn_attrs("before", (const tn_ints *)&before,
                                                    "after", (const tn_ints *)&after))),
                        TN_NO_ATTRS);
    outputs[0] = as_dtype(build, x, dtype);
    return built(outputs[0]);
}

COMPOSITE(unwrap, "x with a multiple of the period added where a step is too large.",
          TN_INPUTS(base_x), .attrs = TN_ATTR_TABLE(unwrap_attrs, unwrap_fields));

// --- nanargmax and nanargmin ------------------------------------------------------------

static const tn_attr_field nanarg_fields[] = {
    TN_I64_FIELD(tn_argmax_attrs, axis, TN_NO_AXIS,
                 "axis to search; not given: x flattened in row-major order"),
    TN_BOOL_FIELD(tn_argmax_attrs, keepdims, 0, "keep reduced axes with extent 1"),
};

static tn_status nanarg_of(const tn_build *build, const tn_rule *rule,
                           const char *primitive, double value, tn_array **outputs)
{
    const tn_argmax_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    tn_dtype dtype = build->type(x)->dtype;
    if (tn_is_float(dtype))
        x = build->expr(build, "x, v -> isnan(x) ? v : x",
                        TN_IN(x, build->scalar(build, dtype, value)), TN_NO_ATTRS);
    outputs[0] = build->op(build, primitive, TN_IN(x),
                           tn_attrs("axis", attrs->axis, "keepdims", attrs->keepdims));
    return built(outputs[0]);
}

DECOMPOSE(nanargmax)
{
    return nanarg_of(build, rule, "base.argmax/1", -INFINITY, outputs);
}

DECOMPOSE(nanargmin)
{
    return nanarg_of(build, rule, "base.argmin/1", INFINITY, outputs);
}

#define NANARG TN_INPUTS(base_x), .attrs = TN_ATTR_TABLE(tn_argmax_attrs, nanarg_fields)
COMPOSITE(nanargmax, "The index of the greatest element that is no NaN.", NANARG);
COMPOSITE(nanargmin, "The index of the least element that is no NaN.", NANARG);
