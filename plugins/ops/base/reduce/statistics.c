// SPDX-License-Identifier: MIT
// Reductions made of others: argmin, all, any, var, std.
#include "reduce.h"

// --- argmin -----------------------------------------------------------------------------

static const tn_attr_field argmin_fields[] = {
    TN_I64_FIELD(tn_argmax_attrs, axis, TN_NO_AXIS,
                 "axis to search; not given: x flattened in row-major order"),
    TN_BOOL_FIELD(tn_argmax_attrs, keepdims, 0, "keep reduced axes with extent 1"),
};

#define argmin_infer argmax_infer

// argmax of x in reverse order: -x for floats, and ~x for integers, as -x overflows for the
// least integer.
DECOMPOSE(argmin)
{
    const tn_argmax_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    if (!x)
        return TN_ERR_ARGUMENT;
    tn_array *reversed = build->expr(build, tn_is_float(x->dtype) ? "x -> -x" : "x -> ~x",
                                     TN_IN(rule->inputs[0]), TN_NO_ATTRS);
    outputs[0] = build->op(build, "base.argmax/1", TN_IN(reversed),
                           tn_attrs("axis", attrs->axis, "keepdims", attrs->keepdims));
    return built(outputs[0]);
}

DECOMPOSED(argmin, tn_argmax_attrs, argmin_fields,
           "The index of the least element, the first of equals; NaN counts as least.",
           TN_INPUTS(base_x));

// --- all and any ------------------------------------------------------------------------

static const tn_attr_field reduce_fields[] = {
    TN_INTS_FIELD(tn_reduce_attrs, axis, "axes to reduce, one or several; not given: all"),
    TN_BOOL_FIELD(tn_reduce_attrs, keepdims, 0, "keep reduced axes with extent 1"),
};

static tn_status truth_infer(const tn_infer *infer, tn_type *types)
{
    tn_status status = sum_infer(infer, types);
    if (status == TN_OK)
        types[0].dtype = TN_BOOL;
    return status;
}
#define all_infer truth_infer
#define any_infer truth_infer

static tn_attr_list reduced_as(const tn_ints *axes, int64_t keepdims, tn_attr items[2])
{
    items[0] = (tn_attr){.name = "keepdims", .kind = TN_ATTR_I64, .i = keepdims};
    items[1] = (tn_attr){.name = "axis", .kind = TN_ATTR_INTS, .ints = axes};
    return TN_ATTR_LIST(items, axes->given ? 2 : 1);
}

// The greatest or the least of the truth values; `empty` where there are no elements.
static tn_status truth_of(const tn_build *build, const tn_rule *rule, const char *primitive,
                          double empty, tn_array **outputs)
{
    const tn_reduce_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    tn_attr items[2];
    if (!x)
        return TN_ERR_ARGUMENT;
    tn_array *truth = cast(build, rule->inputs[0], TN_BOOL);
    tn_attr_list list = reduced_as(&attrs->axis, attrs->keepdims, items);
    if (type_count(x) == 0) { // an empty sum has the result's extents
        truth = build->op(build, "base.sum/1", TN_IN(truth), list);
        outputs[0] = build->expr(build, empty ? "x -> x == x" : "x -> x != x", TN_IN(truth),
                                 TN_NO_ATTRS);
    } else {
        outputs[0] = build->op(build, primitive, TN_IN(truth), list);
    }
    return built(outputs[0]);
}

DECOMPOSE(all)
{
    return truth_of(build, rule, "base.min/1", 1, outputs);
}

DECOMPOSE(any)
{
    return truth_of(build, rule, "base.max/1", 0, outputs);
}

DECOMPOSED(all, tn_reduce_attrs, reduce_fields, "Whether all elements are nonzero or true.",
           TN_INPUTS(base_number_x), .vjp = zero_vjp, .jvp = zero_jvp);
DECOMPOSED(any, tn_reduce_attrs, reduce_fields, "Whether an element is nonzero or true.",
           TN_INPUTS(base_number_x), .vjp = zero_vjp, .jvp = zero_jvp);

// --- var and std ------------------------------------------------------------------------

static const tn_attr_field var_fields[] = {
    TN_INTS_FIELD(tn_var_attrs, axis, "axes to reduce, one or several; not given: all"),
    TN_BOOL_FIELD(tn_var_attrs, keepdims, 0, "keep reduced axes with extent 1"),
    TN_F64_FIELD(tn_var_attrs, ddof, 0, "how much the divisor is less than the count"),
    RESULT_DTYPE(var_dtype_attrs),
};

static tn_status var_infer(const tn_infer *infer, tn_type *types)
{
    const tn_var_attrs *attrs = infer->attrs;
    const tn_reduce_attrs reduced = {attrs->axis, attrs->keepdims};
    tn_infer as_mean = *infer;
    as_mean.attrs = &reduced;
    tn_status status = mean_infer(&as_mean, types);
    if (status == TN_OK) // complex: the mean square of magnitudes
        types[0].dtype = tn_dtype_real(types[0].dtype);
    return status;
}
#define std_infer var_infer

// The number of elements reduced to one, less ddof; at least 0.
static double statistics_divisor(const tn_build *build, const tn_rule *rule)
{
    const tn_var_attrs *attrs = rule->attrs;
    tn_ints shape = tn_extents(build, rule->inputs[0]);
    uint32_t set = tn_axis_set(&attrs->axis, (int32_t)shape.count);
    double count = 1;
    for (uint32_t i = 0; i < shape.count; i++)
        count *= set >> i & 1 ? (double)shape.value[i] : 1;
    return fmax(count - attrs->ddof, 0);
}

// x in the float dtype of computation.
static tn_array *statistics_computed(const tn_build *build, tn_array *x)
{
    const tn_type *type = build->type(x);
    tn_dtype dtype = type ? type->dtype : TN_F32;
    tn_dtype wide =
        tn_is_float(dtype) || tn_is_complex(dtype) ? tn_dtype_computed(dtype) : TN_F64;
    return wide == dtype ? x : cast(build, x, wide);
}

// The distances of x's elements from their mean.
static tn_array *statistics_distances(const tn_build *build, const tn_rule *rule)
{
    const tn_var_attrs *attrs = rule->attrs;
    tn_attr items[2];
    tn_array *x = statistics_computed(build, rule->inputs[0]);
    tn_array *mean =
        build->op(build, "base.mean/1", TN_IN(x), reduced_as(&attrs->axis, 1, items));
    return build->expr(build, "x, m -> x - m", TN_IN(x, mean), TN_NO_ATTRS);
}

static tn_status statistics_spread_of(const tn_build *build, const tn_rule *rule,
                                      const char *text, tn_array **outputs)
{
    const tn_var_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    int is_complex = x && tn_is_complex(x->dtype);
    tn_attr items[2];
    tn_array *squares =
        build->expr(build, is_complex ? "d -> real(d * conj(d))" : "d -> d * d",
                    TN_IN(statistics_distances(build, rule)), TN_NO_ATTRS);
    tn_array *sum = build->op(build, "base.sum/1", TN_IN(squares),
                              reduced_as(&attrs->axis, attrs->keepdims, items));
    outputs[0] = build->expr(build, text, TN_IN(sum),
                             tn_attrs("n", statistics_divisor(build, rule)));
    if (x && tn_is_float(x->dtype) && tn_dtype_computed(x->dtype) != x->dtype)
        outputs[0] = cast(build, outputs[0], x->dtype);
    return built(outputs[0]);
}

DECOMPOSE(var)
{
    return statistics_spread_of(build, rule, "s -> s / n", outputs);
}

DECOMPOSE(std)
{
    return statistics_spread_of(build, rule, "s -> sqrt(s / n)", outputs);
}

// The square root has no finite derivative at 0; std's is defined as 0 there.
static tn_status std_vjp(const tn_build *build, const tn_rule *rule,
                         tn_array *const *cotangents, const uint64_t *wanted,
                         tn_array **gradients)
{
    const tn_var_attrs *attrs = rule->attrs;
    tn_ints kept = tn_extents(build, rule->inputs[0]);
    uint32_t set = tn_axis_set(&attrs->axis, (int32_t)kept.count);
    (void)wanted;
    for (uint32_t i = 0; i < kept.count; i++)
        kept.value[i] = set >> i & 1 ? 1 : kept.value[i];
    tn_array *g = with_shape(build, "base.reshape/1", cotangents[0], kept);
    tn_array *s = with_shape(build, "base.reshape/1", rule->outputs[0], kept);
    gradients[0] = build->expr(build, "g, s, d -> select(s == 0, 0, g / (s * n) * d)",
                               TN_IN(g, s, statistics_distances(build, rule)),
                               tn_attrs("n", statistics_divisor(build, rule)));
    return built(gradients[0]);
}

static tn_status std_jvp(const tn_build *build, const tn_rule *rule,
                         tn_array *const *tangents, tn_array **out_tangents)
{
    const tn_var_attrs *attrs = rule->attrs;
    const tn_type *out = build->type(rule->outputs[0]), *x = build->type(rule->inputs[0]);
    int is_complex = x && tn_is_complex(x->dtype);
    tn_attr items[2];
    tn_array *terms =
        build->expr(build, is_complex ? "t, d -> real(t * conj(d))" : "t, d -> t * d",
                    TN_IN(tangents[0], statistics_distances(build, rule)), TN_NO_ATTRS);
    tn_array *sum = build->op(build, "base.sum/1", TN_IN(terms),
                              reduced_as(&attrs->axis, attrs->keepdims, items));
    sum = build->expr(build, "t, s -> select(s == 0, 0, t / (s * n))",
                      TN_IN(sum, rule->outputs[0]),
                      tn_attrs("n", statistics_divisor(build, rule)));
    const tn_type *type = build->type(sum);
    out_tangents[0] =
        type && out && type->dtype != out->dtype ? cast(build, sum, out->dtype) : sum;
    return built(out_tangents[0]);
}

// A batch keeps std's own derivative at 0.
static tn_status std_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                          int64_t size, tn_array **outputs, int32_t *out_axes)
{
    const tn_var_attrs *attrs = rule->attrs;
    tn_array *x = tn_move_axis(build, rule->inputs[0], axes[0], 0);
    const tn_ints reduced = axes_in_batch(build, x, &attrs->axis);
    (void)size;
    outputs[0] = build->op(
        build, "base.std/1", TN_IN(x),
        tn_attrs("axis", &reduced, "keepdims", attrs->keepdims, "ddof", attrs->ddof));
    out_axes[0] = 0;
    return built(outputs[0]);
}

DECOMPOSED(var, var_dtype_attrs, var_fields,
           "The mean square of the distance from the mean.", TN_INPUTS(base_number_x));
DECOMPOSED(std, var_dtype_attrs, var_fields,
           "The square root of the mean square of the distance from the mean.",
           TN_INPUTS(base_number_x), .vjp = std_vjp, .jvp = std_jvp, .vmap = std_vmap);
