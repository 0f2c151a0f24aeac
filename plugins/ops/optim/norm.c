// SPDX-License-Identifier: MIT
// The norm of a list of gradients as one vector, and clipping by that norm.
#include "pack.h"

static const tn_input_info arrays_input[] = {
    {"g", "gradients, of any extents", TN_INPUT_VARIADIC, 0}};

// The dtype of the joined vector, at least f32; 0 where an input has no real float dtype.
static tn_dtype common_dtype(const tn_build *build, const tn_rule *rule)
{
    tn_dtype common = TN_F32;
    for (uint32_t i = 0; i < rule->num_inputs; i++) {
        const tn_type *type = rule->inputs[i] ? build->type(rule->inputs[i]) : NULL;
        if (!type || optim_check_float(build->host, "a gradient", type))
            return 0;
        common = type->dtype == TN_F64 ? TN_F64 : common;
    }
    return common;
}

// The square root of the sum of squares of all inputs.
static tn_array *norm_of(const tn_build *build, const tn_rule *rule)
{
    tn_array *sum = NULL;
    tn_dtype dtype = common_dtype(build, rule);
    if (!dtype)
        return NULL;
    for (uint32_t i = 0; i < rule->num_inputs; i++) {
        tn_array *x = optim_cast(build, rule->inputs[i], dtype);
        tn_array *squares = build->expr(build, "x -> x * x", TN_IN(x), TN_NO_ATTRS);
        tn_array *of_this = optim_reduce(build, "base.sum/1", squares, TN_ALL_AXES);
        sum = sum ? build->op(build, "base.add/1", TN_IN(sum, of_this), TN_NO_ATTRS)
                  : of_this;
    }
    // The slope at zeros is 0, as in PyTorch.
    return build->expr(build, "x -> select(x > 0, sqrt(select(x > 0, x, 1)), x)",
                       TN_IN(sum), TN_NO_ATTRS);
}

DECOMPOSE(global_norm)
{
    outputs[0] = norm_of(build, rule);
    return built(outputs[0]);
}

COMPOSITE(global_norm, "The Euclidean norm of arrays, as if they were one vector.",
          TN_INPUTS(arrays_input));

typedef struct {
    double max_norm;
} clip_attrs;
static const tn_output_info clip_outputs[] = {
    {"out", "the gradients, then their norm before", 0, 0}};
static const tn_attr_field clip_fields[] = {
    TN_F64_FIELD(clip_attrs, max_norm, 1, "greatest norm that stays as it is")};

static tn_status clip_count(const tn_infer *infer, uint64_t *out_count)
{
    if (infer->num_inputs >= TN_MAX_OUTPUTS)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "got %u gradients, expected at most %d: multiply them by "
                                 "min(1, max_norm / (global_norm + 1e-6))",
                                 infer->num_inputs, TN_MAX_OUTPUTS - 1);
    *out_count = infer->num_inputs + 1;
    return TN_OK;
}

// As PyTorch's clip_grad_norm_.
DECOMPOSE(clip_grad_norm)
{
    const clip_attrs *attrs = rule->attrs;
    tn_array *norm = norm_of(build, rule);
    tn_array *factor = build->expr(build, "norm -> min(1, most / (norm + 1e-6))",
                                   TN_IN(norm), tn_attrs("most", attrs->max_norm));
    for (uint32_t i = 0; i < rule->num_inputs; i++) {
        const tn_type *type = factor ? build->type(rule->inputs[i]) : NULL;
        tn_array *clipped = build->expr(build, "g, f -> g * f",
                                        TN_IN(rule->inputs[i], factor), TN_NO_ATTRS);
        outputs[i] = type ? optim_cast(build, clipped, type->dtype) : NULL;
        if (!outputs[i])
            return TN_ERR_ARGUMENT;
    }
    outputs[rule->num_inputs] = norm;
    return built(norm);
}

COMPOSITE(clip_grad_norm,
          "Gradients times what makes their common norm at most max_norm, and that norm.",
          TN_INPUTS(arrays_input), TN_OUTPUTS(clip_outputs),
          .attrs = TN_ATTR_TABLE(clip_attrs, clip_fields), .count_outputs = clip_count);
