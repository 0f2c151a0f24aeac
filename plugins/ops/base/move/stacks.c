// SPDX-License-Identifier: MIT
// Arrays side by side, as in NumPy: hstack, vstack, dstack, column_stack.
#include "../pack.h"

static const tn_input_info stack_inputs[] = {
    {"arrays", "of one dtype; other extents are equal", TN_INPUT_VARIADIC, TN_ALL_DTYPES},
};

// Joins the arrays along `axis`, after `primitive` gave each at least `rank` axes; where
// `flat`, vectors and scalars are joined along the first axis.
static tn_status stack_join(const tn_build *build, const tn_rule *rule,
                            const char *primitive, int32_t axis, tn_array **outputs)
{
    tn_array *parts[TN_MAX_OUTPUTS];
    if (rule->num_inputs > TN_MAX_OUTPUTS)
        return build->host->fail(
            build->host, TN_ERR_ARGUMENT,
            "got %u arrays, expected at most %d: concatenate takes more", rule->num_inputs,
            TN_MAX_OUTPUTS);
    for (uint32_t i = 0; i < rule->num_inputs; i++)
        parts[i] = build->op(build, primitive, TN_IN(rule->inputs[i]), TN_NO_ATTRS);
    outputs[0] = joined(build, parts, rule->num_inputs, axis);
    return built(outputs[0]);
}

DECOMPOSE(hstack)
{
    return stack_join(build, rule, "base.atleast_1d/1",
                      build->type(rule->inputs[0])->rank > 1, outputs);
}

DECOMPOSE(vstack)
{
    return stack_join(build, rule, "base.atleast_2d/1", 0, outputs);
}

DECOMPOSE(dstack)
{
    return stack_join(build, rule, "base.atleast_3d/1", 2, outputs);
}

DECOMPOSE(column_stack)
{
    tn_array *parts[TN_MAX_OUTPUTS];
    if (rule->num_inputs > TN_MAX_OUTPUTS)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "got %u arrays, expected at most %d", rule->num_inputs,
                                 TN_MAX_OUTPUTS);
    for (uint32_t i = 0; i < rule->num_inputs; i++) {
        tn_ints shape = tn_extents(build, rule->inputs[i]);
        while (shape.count < 2) // a vector becomes a column
            shape.value[shape.count++] = 1;
        parts[i] = with_shape(build, "base.reshape/1", rule->inputs[i], shape);
    }
    outputs[0] = joined(build, parts, rule->num_inputs, 1);
    return built(outputs[0]);
}

COMPOSITE(hstack, "Arrays joined along the second axis; vectors along the first.",
          TN_INPUTS(stack_inputs));
COMPOSITE(vstack, "Arrays joined along the first axis; vectors are rows.",
          TN_INPUTS(stack_inputs));
COMPOSITE(dstack, "Arrays joined along the third axis.", TN_INPUTS(stack_inputs));
COMPOSITE(column_stack, "Arrays joined along the second axis; vectors are columns.",
          TN_INPUTS(stack_inputs));
