// SPDX-License-Identifier: MIT
// The derivative of layer_norm in reverse mode, and layer_norm_grad, which computes all of
// it for rows with a weight and a bias for each element.
#include "pack.h"

static const tn_input_info inputs[] = {
    {"x", "rows along the last axis", 0, TN_FLOAT_DTYPES},
    {"weight", "a factor for each element of a row", 0, TN_FLOAT_DTYPES},
    {"gradient", "of what layer_norm gives", 0, TN_FLOAT_DTYPES},
};
static const tn_output_info outputs_of[] = {
    {"dx", "gradient of x", TN_OUTPUT_OPTIONAL, 0},
    {"dweight", "gradient of the weight", TN_OUTPUT_OPTIONAL, 0},
    {"dbias", "gradient of the bias", TN_OUTPUT_OPTIONAL, 0},
};
static const tn_attr_field fields[] = {
    TN_F64_FIELD(tn_layer_norm_attrs, eps, 1e-5, "added to the variance"),
    TN_I64_FIELD(tn_layer_norm_attrs, axis, -1, "axis of the rows: the last one"),
};

static tn_status norm_grad_infer(const tn_infer *infer, tn_type *types)
{
    const tn_host *host = infer->host;
    const tn_layer_norm_attrs *attrs = infer->attrs;
    const tn_type *x = &infer->types[0], *w = &infer->types[1], *g = &infer->types[2];
    if (x->rank < 1 || tn_axis(attrs->axis, x->rank) != x->rank - 1)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "axis is %" PRId64 " and x has rank %d, expected the last axis",
                          attrs->axis, x->rank);
    tn_status status = check_dtype(host, "weight", w, x->dtype);
    if (status == TN_OK)
        status = check_dtype(host, "gradient", g, x->dtype);
    if (status == TN_OK)
        status = check_extents(host, "weight", w, 1, &x->extent[x->rank - 1]);
    if (status == TN_OK)
        status = check_extents(host, "gradient", g, x->rank, x->extent);
    if (status != TN_OK)
        return status;
    types[0] = *x;
    types[1] = types[2] = *w;
    return TN_OK;
}

// --- the derivatives by expressions -----------------------------------------------------

static tn_array *of_x(const tn_build *build, const tn_layer_norm_attrs *attrs, tn_array *x,
                      tn_array *w, tn_array *g)
{
    return build->expr(build,
                       "x, w, g -> d = x - mean(x); r = rsqrt(mean(d * d) + eps); "
                       "h = g * w; (h - mean(h) - d * (r * r * mean(h * d))) * r",
                       TN_IN(x, w, g), tn_attrs("eps", attrs->eps, "axis", attrs->axis));
}

// The weight's gradient for each element of the result.
static tn_array *of_weight(const tn_build *build, const tn_layer_norm_attrs *attrs,
                           tn_array *x, tn_array *g)
{
    return build->expr(build, "x, g -> d = x - mean(x); g * (d * rsqrt(mean(d * d) + eps))",
                       TN_IN(x, g), tn_attrs("eps", attrs->eps, "axis", attrs->axis));
}

static tn_array *nn_norm_grad_over_rows(const tn_build *build, tn_array *x)
{
    tn_ints axes = {.given = 1};
    for (const tn_type *type = x ? build->type(x) : NULL;
         type && (int32_t)axes.count < type->rank - 1; axes.count++)
        axes.value[axes.count] = axes.count;
    return axes.count > 0
               ? build->op(build, "base.sum/1", TN_IN(x), tn_attrs("axis", &axes))
               : x;
}

static tn_status norm_grad_decompose(const tn_build *build, const tn_rule *rule,
                                     tn_array **outputs)
{
    tn_array *x = rule->inputs[0], *w = rule->inputs[1], *g = rule->inputs[2];
    outputs[0] = rule->unread & 1 ? NULL : of_x(build, rule->attrs, x, w, g);
    outputs[1] = rule->unread & 2
                     ? NULL
                     : nn_norm_grad_over_rows(build, of_weight(build, rule->attrs, x, g));
    outputs[2] = rule->unread & 4 ? NULL : nn_norm_grad_over_rows(build, g);
    for (int i = 0; i < 3; i++)
        if (!outputs[i] && !(rule->unread >> i & 1))
            return TN_ERR_ARGUMENT;
    return TN_OK;
}

const tn_primitive nn_layer_norm_grad = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.layer_norm_grad/1",
    .doc = "Derivatives of layer_norm over the last axis in x, weight and bias.",
    TN_INPUTS(inputs),
    TN_OUTPUTS(outputs_of),
    .attrs = TN_ATTR_TABLE(tn_layer_norm_attrs, fields),
    .infer = norm_grad_infer,
    .decompose = norm_grad_decompose,
};

// --- of layer_norm ----------------------------------------------------------------------

// Whether layer_norm_grad takes these operands.
static int are_rows(const tn_build *build, const tn_rule *rule, const tn_array *gradient)
{
    const tn_layer_norm_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]), *g = build->type(gradient);
    int fits = x->rank > 0 && tn_is_float(x->dtype) && g->rank == x->rank &&
               g->dtype == x->dtype && tn_axis(attrs->axis, x->rank) == x->rank - 1;
    for (int32_t i = 0; fits && i < x->rank; i++)
        fits = g->extent[i] == x->extent[i];
    for (int i = 1; i < 3 && fits; i++) {
        const tn_type *type = build->type(rule->inputs[i]);
        fits = type->rank == 1 && type->dtype == x->dtype &&
               type->extent[0] == x->extent[x->rank - 1];
    }
    return fits;
}

// Converts a gradient of input `i` to the input's dtype.
static tn_array *as_input(const tn_build *build, const tn_rule *rule, int i, tn_array *x)
{
    tn_dtype dtype = build->type(rule->inputs[i])->dtype;
    return x && build->type(x)->dtype != dtype ? cast(build, x, dtype) : x;
}

// The core sums the gradient of a broadcast operand to the operand's extents.
tn_status layer_norm_vjp(const tn_build *build, const tn_rule *rule,
                         tn_array *const *cotangents, const uint64_t *wanted,
                         tn_array **gradients)
{
    tn_array *x = rule->inputs[0], *w = rule->inputs[1], *g = cotangents[0];
    int parameters = wants(wanted, 1) + wants(wanted, 2);
    tn_array *all[3];
    if (parameters > 0 && wants(wanted, 0) && are_rows(build, rule, g)) {
        const tn_layer_norm_attrs *attrs = rule->attrs;
        tn_status status =
            build->op_n(build, "nn.layer_norm_grad/1", (const tn_array *const[]){x, w, g},
                        3, tn_attrs("eps", attrs->eps, "axis", attrs->axis), all, 3);
        if (status)
            return status;
        for (uint32_t i = 0; i < 3; i++)
            gradients[i] = wants(wanted, i) ? all[i] : NULL;
        return built_wanted(wanted, gradients, 3);
    }
    if (wants(wanted, 0))
        gradients[0] = as_input(build, rule, 0, of_x(build, rule->attrs, x, w, g));
    if (wants(wanted, 1))
        gradients[1] = as_input(build, rule, 1, of_weight(build, rule->attrs, x, g));
    if (wants(wanted, 2))
        gradients[2] = as_input(build, rule, 2, g);
    return built_wanted(wanted, gradients, 3);
}
