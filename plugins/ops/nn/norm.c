// SPDX-License-Identifier: MIT
// softmax, log_softmax and the norms of rows: an expression each, so one launch.
#include "pack.h"

static const tn_input_info x_input[] = {{"x", "the array", 0, 0}};

#define AXIS(type, doc) TN_I64_FIELD(type, axis, -1, doc)
static const tn_attr_field softmax_fields[] = {
    AXIS(tn_softmax_attrs, "axis along which the exponentials sum to 1"),
};

// --- softmax ---------------------------------------------------------------------------

// The derivatives use the result, which spares the exponentials.

static tn_array *along_axis(const tn_build *build, const tn_rule *rule, const char *text,
                            const tn_array *t)
{
    const tn_softmax_attrs *attrs = rule->attrs;
    return build->expr(build, text, TN_IN(t, rule->outputs[0]),
                       tn_attrs("axis", attrs->axis));
}

// The Jacobian of softmax is symmetric, so the vjp and the jvp are one text.
static const char softmax_derivative[] = "t, y -> y * (t - sum(t * y))";

static tn_status softmax_vjp(const tn_build *build, const tn_rule *rule,
                             tn_array *const *cotangents, const uint64_t *wanted,
                             tn_array **gradients)
{
    (void)wanted;
    gradients[0] = along_axis(build, rule, softmax_derivative, cotangents[0]);
    return built(gradients[0]);
}

static tn_status softmax_jvp(const tn_build *build, const tn_rule *rule,
                             tn_array *const *tangents, tn_array **out_tangents)
{
    out_tangents[0] = along_axis(build, rule, softmax_derivative, tangents[0]);
    return built(out_tangents[0]);
}

static tn_status log_softmax_vjp(const tn_build *build, const tn_rule *rule,
                                 tn_array *const *cotangents, const uint64_t *wanted,
                                 tn_array **gradients)
{
    (void)wanted;
    gradients[0] = along_axis(build, rule, "t, y -> t - exp(y) * sum(t)", cotangents[0]);
    return built(gradients[0]);
}

static tn_status log_softmax_jvp(const tn_build *build, const tn_rule *rule,
                                 tn_array *const *tangents, tn_array **out_tangents)
{
    out_tangents[0] = along_axis(build, rule, "t, y -> t - sum(t * exp(y))", tangents[0]);
    return built(out_tangents[0]);
}

// One division a row.
const tn_primitive nn_softmax = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.softmax/1",
    .doc = "exp(x) over its sum along an axis, without overflow.",
    TN_INPUTS(x_input),
    .attrs = TN_ATTR_TABLE(tn_softmax_attrs, softmax_fields),
    .expr = "e = exp(x - max(x)); e * (1 / sum(e))",
    .vjp = softmax_vjp,
    .jvp = softmax_jvp,
};

const tn_primitive nn_log_softmax = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.log_softmax/1",
    .doc = "The logarithm of softmax, exact where softmax is 0.",
    TN_INPUTS(x_input),
    .attrs = TN_ATTR_TABLE(tn_softmax_attrs, softmax_fields),
    .expr = "d = x - max(x); d - log(sum(exp(d)))",
    .vjp = log_softmax_vjp,
    .jvp = log_softmax_jvp,
};

// --- norms -----------------------------------------------------------------------------

static const tn_input_info layer_norm_inputs[] = {
    {"x", "the array", 0, 0},
    {"weight", "a factor for each element of a row", 0, 0},
    {"bias", "what is added to each element of a row", 0, 0},
};
static const tn_attr_field layer_norm_fields[] = {
    TN_F64_FIELD(tn_layer_norm_attrs, eps, 1e-5, "added to the variance"),
    AXIS(tn_layer_norm_attrs, "axis of the rows"),
};
const tn_primitive nn_layer_norm = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.layer_norm/1",
    .doc = "Rows minus their mean, over their standard deviation, times weight plus bias.",
    TN_INPUTS(layer_norm_inputs),
    .attrs = TN_ATTR_TABLE(tn_layer_norm_attrs, layer_norm_fields),
    .expr = "d = x - mean(x); d * rsqrt(mean(d * d) + eps) * weight + bias",
};

static const tn_attr_field rms_norm_fields[] = {
    TN_F64_FIELD(tn_rms_norm_attrs, eps, 1e-5, "added to the mean of the squares"),
    AXIS(tn_rms_norm_attrs, "axis of the rows"),
};
const tn_primitive nn_rms_norm = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.rms_norm/1",
    .doc = "Rows over the root of the mean of their squares, times weight.",
    .inputs = layer_norm_inputs,
    .input_size = sizeof(layer_norm_inputs[0]),
    .num_inputs = 2,
    .attrs = TN_ATTR_TABLE(tn_rms_norm_attrs, rms_norm_fields),
    .expr = "x * rsqrt(mean(x * x) + eps) * weight",
};
