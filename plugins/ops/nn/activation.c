// SPDX-License-Identifier: MIT
// relu.
#include "pack.h"

static const tn_input_info x_input[] = {{"x", "the array", 0, 0}};

// --- relu -------------------------------------------------------------------------------

static tn_status relu_vjp(const tn_build *build, const tn_rule *rule,
                          tn_array *const *cotangents, const uint64_t *wanted,
                          tn_array **gradients)
{
    (void)wanted;
    // The result is positive where x is, and often retained for its consumers: x need not
    // be.
    gradients[0] = build->expr(build, "g, y -> select(y > 0, g, 0)",
                               TN_IN(cotangents[0], rule->outputs[0]), TN_NO_ATTRS);
    return built(gradients[0]);
}

static tn_status relu_jvp(const tn_build *build, const tn_rule *rule,
                          tn_array *const *tangents, tn_array **out_tangents)
{
    out_tangents[0] = build->expr(build, "t, x -> select(x > 0, t, 0)",
                                  TN_IN(tangents[0], rule->inputs[0]), TN_NO_ATTRS);
    return built(out_tangents[0]);
}

const tn_primitive nn_relu = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.relu/1",
    .doc = "x where it is positive, else 0. The derivative at 0 is 0.",
    TN_INPUTS(x_input),
    .expr = "max(x, 0)",
    .vjp = relu_vjp,
    .jvp = relu_jvp,
};
