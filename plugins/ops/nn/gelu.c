// SPDX-License-Identifier: MIT
// gelu and silu: x times a smooth step.
#include "pack.h"

static const tn_input_info x_input[] = {{"x", "the array", 0, TN_FLOAT_DTYPES}};

static tn_status same_infer(const tn_infer *infer, tn_type *types)
{
    types[0] = infer->types[0];
    return TN_OK;
}

// --- gelu -------------------------------------------------------------------------------

static const char *const forms[] = {"none", "tanh", "sigmoid", NULL};
static const tn_attr_field gelu_fields[] = {
    TN_CHOICE_FIELD(tn_gelu_attrs, approximate, 0, forms,
                    "none: by erf; or by tanh; sigmoid: x * sigmoid(1.702 * x)"),
};

// 0.7071067811865476 is sqrt(1 / 2), and 0.7978845608028654 sqrt(2 / pi).
static tn_status gelu_decompose(const tn_build *build, const tn_rule *rule,
                                tn_array **outputs)
{
    const tn_gelu_attrs *attrs = rule->attrs;
    if (attrs->approximate == 2) {
        tn_array *u =
            build->expr(build, "x -> 1.702 * x", TN_IN(rule->inputs[0]), TN_NO_ATTRS);
        u = build->op(build, "base.sigmoid/1", TN_IN(u), TN_NO_ATTRS);
        outputs[0] =
            build->expr(build, "x, s -> x * s", TN_IN(rule->inputs[0], u), TN_NO_ATTRS);
        return built(outputs[0]);
    }
    const char *text = attrs->approximate
                           ? "x -> 0.5 * x * (1 + tanh(0.7978845608028654 * "
                             "(x + 0.044715 * x * x * x)))"
                           : "x -> 0.5 * x * (1 + erf(x * 0.7071067811865476))";
    outputs[0] = build->expr(build, text, TN_IN(rule->inputs[0]), TN_NO_ATTRS);
    return built(outputs[0]);
}

const tn_primitive nn_gelu = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.gelu/1",
    .doc = "x times the normal distribution up to x.",
    TN_INPUTS(x_input),
    .attrs = TN_ATTR_TABLE(tn_gelu_attrs, gelu_fields),
    .infer = same_infer,
    .decompose = gelu_decompose,
};

// --- silu -------------------------------------------------------------------------------

// base.sigmoid has derivatives that hold where exp(-x) overflows.
static tn_status silu_decompose(const tn_build *build, const tn_rule *rule,
                                tn_array **outputs)
{
    tn_array *x = rule->inputs[0];
    tn_array *s = build->op(build, "base.sigmoid/1", TN_IN(x), TN_NO_ATTRS);
    outputs[0] = build->expr(build, "x, s -> x * s", TN_IN(x, s), TN_NO_ATTRS);
    return built(outputs[0]);
}

const tn_primitive nn_silu = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.silu/1",
    .doc = "x times sigmoid(x).",
    TN_INPUTS(x_input),
    .infer = same_infer,
    .decompose = silu_decompose,
};
