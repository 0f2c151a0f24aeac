// SPDX-License-Identifier: MIT
// Reductions that leave NaN out, and others made of sums and extremes: nansum to nanstd,
// count_nonzero, minmax, ptp, average.
#include "reduce.h"

static const tn_attr_field nan_fields[] = {
    TN_INTS_FIELD(tn_var_attrs, axis, "axes to reduce, one or several; not given: all"),
    TN_BOOL_FIELD(tn_var_attrs, keepdims, 0, "keep reduced axes with extent 1"),
};
static const tn_attr_field nansum_fields[] = {
    TN_INTS_FIELD(tn_var_attrs, axis, "axes to reduce, one or several; not given: all"),
    TN_BOOL_FIELD(tn_var_attrs, keepdims, 0, "keep reduced axes with extent 1"),
    RESULT_DTYPE(var_dtype_attrs),
};
static const tn_attr_field nanvar_fields[] = {
    TN_INTS_FIELD(tn_var_attrs, axis, "axes to reduce, one or several; not given: all"),
    TN_BOOL_FIELD(tn_var_attrs, keepdims, 0, "keep reduced axes with extent 1"),
    TN_F64_FIELD(tn_var_attrs, ddof, 0, "how much the divisor is less than the count"),
    RESULT_DTYPE(var_dtype_attrs),
};

// x with NaN replaced by `value`, in x's dtype.
static tn_array *nan_replace(const tn_build *build, tn_array *x, double value)
{
    const tn_type *type = build->type(x);
    if (!type || (!tn_is_float(type->dtype) && !tn_is_complex(type->dtype)))
        return x;
    return build->expr(build, "x, v -> isnan(x) ? v : x",
                       TN_IN(x, build->scalar(build, type->dtype, value)), TN_NO_ATTRS);
}

static tn_array *nan_reduce(const tn_build *build, const char *primitive, tn_array *x,
                            const tn_rule *rule)
{
    const tn_var_attrs *attrs = rule->attrs;
    return reduced_over(build, primitive, x, &attrs->axis, attrs->keepdims);
}

DECOMPOSE(nansum)
{
    outputs[0] =
        nan_reduce(build, "base.sum/1", nan_replace(build, rule->inputs[0], 0), rule);
    return built(outputs[0]);
}

DECOMPOSE(nanprod)
{
    outputs[0] =
        nan_reduce(build, "base.prod/1", nan_replace(build, rule->inputs[0], 1), rule);
    return built(outputs[0]);
}

// The number of elements that are not NaN, in f64.
static tn_array *nan_count(const tn_build *build, const tn_rule *rule, int64_t keepdims)
{
    const tn_var_attrs *attrs = rule->attrs;
    tn_array *is_number =
        build->expr(build, "x -> i64(!isnan(x))", TN_IN(rule->inputs[0]), TN_NO_ATTRS);
    return reduced_over(build, "base.sum/1", is_number, &attrs->axis, keepdims);
}

// The dtype of the mean of elements of `dtype`.
static tn_dtype nan_mean_dtype(tn_dtype dtype)
{
    return tn_is_float(dtype) || tn_is_complex(dtype) ? dtype : TN_F64;
}

static tn_array *nan_mean(const tn_build *build, const tn_rule *rule, int64_t keepdims)
{
    const tn_var_attrs *attrs = rule->attrs;
    tn_dtype dtype = build->type(rule->inputs[0])->dtype;
    tn_array *x = nan_replace(
        build, as_dtype(build, rule->inputs[0], tn_dtype_computed(nan_mean_dtype(dtype))),
        0);
    tn_array *sum = reduced_over(build, "base.sum/1", x, &attrs->axis, keepdims);
    const tn_type *type = build->type(sum);
    tn_array *count = as_dtype(build, nan_count(build, rule, keepdims),
                               type ? tn_dtype_real(type->dtype) : TN_F32);
    return build->expr(build, "s, n -> s / n", TN_IN(sum, count), TN_NO_ATTRS);
}

DECOMPOSE(nanmean)
{
    const tn_var_attrs *attrs = rule->attrs;
    tn_dtype dtype = nan_mean_dtype(build->type(rule->inputs[0])->dtype);
    outputs[0] = as_dtype(build, nan_mean(build, rule, attrs->keepdims), dtype);
    return built(outputs[0]);
}

static tn_status nan_variance(const tn_build *build, const tn_rule *rule, const char *text,
                              tn_array **outputs)
{
    const tn_var_attrs *attrs = rule->attrs;
    tn_dtype dtype = nan_mean_dtype(build->type(rule->inputs[0])->dtype);
    tn_array *x = as_dtype(build, rule->inputs[0], tn_dtype_computed(dtype));
    tn_array *squares = build->expr(
        build,
        tn_is_complex(dtype) ? "x, m -> isnan(x) ? 0 * abs(m) : real((x - m) * conj(x - m))"
                             : "x, m -> isnan(x) ? 0 * m : (x - m) * (x - m)",
        TN_IN(x, nan_mean(build, rule, 1)), TN_NO_ATTRS);
    tn_array *sum =
        reduced_over(build, "base.sum/1", squares, &attrs->axis, attrs->keepdims);
    const tn_type *type = build->type(sum);
    tn_array *count = as_dtype(build, nan_count(build, rule, attrs->keepdims),
                               type ? type->dtype : TN_F32);
    dtype = tn_dtype_real(dtype); // complex: the mean square of magnitudes
    // As NumPy: NaN where there are no more than ddof numbers.
    outputs[0] = build->expr(build, text, TN_IN(sum, count), tn_attrs("ddof", attrs->ddof));
    outputs[0] = as_dtype(build, outputs[0], dtype);
    return built(outputs[0]);
}

DECOMPOSE(nanvar)
{
    return nan_variance(build, rule, "s, n -> n > ddof ? s / (n - ddof) : nan", outputs);
}

DECOMPOSE(nanstd)
{
    return nan_variance(build, rule,
                        "s, n -> v = s / (n - ddof); n > ddof ? v == 0 ? v : sqrt(v) : nan",
                        outputs);
}

// The extreme of elements that are not NaN; NaN where all are.
static tn_status nan_extreme(const tn_build *build, const tn_rule *rule,
                             const char *primitive, double worst, tn_array **outputs)
{
    const tn_var_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    tn_dtype dtype = build->type(x)->dtype;
    outputs[0] = nan_reduce(build, primitive, nan_replace(build, x, worst), rule);
    if (tn_is_float(dtype))
        outputs[0] = build->expr(build, "m, n, q -> n == 0 ? q : m",
                                 TN_IN(outputs[0], nan_count(build, rule, attrs->keepdims),
                                       build->scalar(build, dtype, NAN)),
                                 TN_NO_ATTRS);
    return built(outputs[0]);
}

DECOMPOSE(nanmax)
{
    return nan_extreme(build, rule, "base.max/1", -INFINITY, outputs);
}

DECOMPOSE(nanmin)
{
    return nan_extreme(build, rule, "base.min/1", INFINITY, outputs);
}

#define NAN_SUM                                                                            \
    TN_INPUTS(base_number_x), .attrs = TN_ATTR_TABLE(var_dtype_attrs, nansum_fields)
#define NAN_EXTREME TN_INPUTS(base_x), .attrs = TN_ATTR_TABLE(tn_var_attrs, nan_fields)
COMPOSITE(nansum, "The sum of the elements that are no NaN.", NAN_SUM);
COMPOSITE(nanprod, "The product of the elements that are no NaN.", NAN_SUM);
COMPOSITE(nanmean, "The mean of the elements that are no NaN; NaN of none.", NAN_SUM);
COMPOSITE(nanmax, "The greatest of the elements that are no NaN; NaN of none.",
          NAN_EXTREME);
COMPOSITE(nanmin, "The least of the elements that are no NaN; NaN of none.", NAN_EXTREME);
COMPOSITE(nanvar, "The variance of the elements that are no NaN.", TN_INPUTS(base_number_x),
          .attrs = TN_ATTR_TABLE(var_dtype_attrs, nanvar_fields));
COMPOSITE(nanstd, "The standard deviation of the elements that are no NaN.",
          TN_INPUTS(base_number_x), .attrs = TN_ATTR_TABLE(var_dtype_attrs, nanvar_fields));

// --- counts and ranges ------------------------------------------------------------------

DECOMPOSE(count_nonzero)
{
    tn_array *is =
        build->expr(build, "x -> i64(bool(x))", TN_IN(rule->inputs[0]), TN_NO_ATTRS);
    outputs[0] = nan_reduce(build, "base.sum/1", is, rule);
    return built(outputs[0]);
}

COMPOSITE(count_nonzero, "How many elements are nonzero or true.", TN_INPUTS(base_number_x),
          .attrs = TN_ATTR_TABLE(tn_var_attrs, nan_fields));

static const tn_output_info minmax_outputs[] = {
    {"min", "the least element", 0, 0},
    {"max", "the greatest element", 0, 0},
};

DECOMPOSE(minmax)
{
    outputs[0] = nan_reduce(build, "base.min/1", rule->inputs[0], rule);
    outputs[1] = nan_reduce(build, "base.max/1", rule->inputs[0], rule);
    return built(outputs[1]);
}

DECOMPOSE(ptp)
{
    outputs[0] = build->expr(build, "a, b -> a - b",
                             TN_IN(nan_reduce(build, "base.max/1", rule->inputs[0], rule),
                                   nan_reduce(build, "base.min/1", rule->inputs[0], rule)),
                             TN_NO_ATTRS);
    return built(outputs[0]);
}

COMPOSITE(minmax, "The least and the greatest element.", TN_INPUTS(base_x),
          TN_OUTPUTS(minmax_outputs), .attrs = TN_ATTR_TABLE(tn_var_attrs, nan_fields));
COMPOSITE(ptp, "The greatest element less the least.", TN_INPUTS(base_x),
          .attrs = TN_ATTR_TABLE(tn_var_attrs, nan_fields));

// --- average ----------------------------------------------------------------------------

static const tn_input_info average_inputs[] = {
    {"x", "the array", 0, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
    {"weights", "of x's extents, or of one axis", TN_INPUT_OPTIONAL,
     TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
};

DECOMPOSE(average)
{
    const tn_var_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    const tn_type *type = build->type(x);
    if (rule->num_inputs < 2 || !rule->inputs[1]) {
        outputs[0] = nan_reduce(build, "base.mean/1", x, rule);
        return built(outputs[0]);
    }
    tn_array *weights = rule->inputs[1];
    const tn_type *w = build->type(weights);
    int is_whole = w->rank == type->rank &&
                   memcmp(w->extent, type->extent, sizeof(int64_t) * (size_t)w->rank) == 0;
    int32_t axis = attrs->axis.given && attrs->axis.count == 1
                       ? tn_axis(attrs->axis.value[0], type->rank)
                       : -1;
    if (!is_whole && (w->rank != 1 || axis < 0 || w->extent[0] != type->extent[axis]))
        return build->host->fail(
            build->host, TN_ERR_ARGUMENT,
            "weights has rank %d, expected x's extents, or those of the "
            "one axis",
            w->rank);
    if (!is_whole) {
        tn_ints shape = {
            (uint32_t)(type->rank - axis), 1, {w->extent[0], 1, 1, 1, 1, 1, 1, 1}};
        weights = with_shape(build, "base.reshape/1", weights, shape);
        weights = with_shape(build, "base.broadcast_to/1", weights, tn_extents(build, x));
    }
    tn_dtype dtype = nan_mean_dtype(tn_dtype_promote(type->dtype, w->dtype));
    tn_array *products = build->expr(
        build, "x, w -> x * w",
        TN_IN(as_dtype(build, x, dtype), as_dtype(build, weights, dtype)), TN_NO_ATTRS);
    outputs[0] = build->expr(
        build, "s, w -> s / w",
        TN_IN(nan_reduce(build, "base.sum/1", products, rule),
              nan_reduce(build, "base.sum/1", as_dtype(build, weights, dtype), rule)),
        TN_NO_ATTRS);
    return built(outputs[0]);
}

COMPOSITE(average, "The mean, where weights say how much each element counts.",
          TN_INPUTS(average_inputs), .attrs = TN_ATTR_TABLE(tn_var_attrs, nan_fields));
