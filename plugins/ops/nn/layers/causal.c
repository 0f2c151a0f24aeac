// SPDX-License-Identifier: MIT
// causal_conv1d: a convolution over earlier positions; its state is the last inputs, which
// it takes and gives.
#include "../images/images.h"
#include <tenon/ops/rules.h>

typedef struct {
    int64_t dilation, groups, axis;
} causal_attrs;
static const tn_attr_field causal_fields[] = {
    TN_I64_FIELD(causal_attrs, dilation, 1, "distance of elements in a window"),
    TN_I64_FIELD(causal_attrs, groups, 1,
                 "groups that channels and filters are split into"),
    AXIS_FIELD(causal_attrs),
};
static const tn_input_info causal_inputs[] = {
    {"x", "N, L, C: channels last, or axis 1", 0, TN_FLOAT_DTYPES},
    {"w", "O, K, C / groups: filters, channels where x has them", 0, TN_FLOAT_DTYPES},
    {"bias", "O: added to each filter's result", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
    {"state", "N, (K - 1) * dilation, C: x before; 0", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
};
static const tn_output_info causal_outputs[] = {
    {"out", "N, L, O: of each position and what was before", 0, 0},
    {"state", "the last (K - 1) * dilation positions of state and x", 0, 0},
};

DECOMPOSE(causal_conv1d)
{
    const causal_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]), *w = build->type(rule->inputs[1]);
    tn_array *state = rule->num_inputs > 3 ? rule->inputs[3] : NULL;
    tn_array *bias = rule->num_inputs > 2 ? rule->inputs[2] : NULL;
    int32_t along = attrs->axis == 1 ? 2 : 1;
    tn_status status = check_images(build->host, "x", x, 1, attrs->axis);
    if (status == TN_OK)
        status = check_images(build->host, "w", w, 1, attrs->axis);
    if (status == TN_OK && (attrs->dilation < 1 || w->extent[along] < 1 ||
                            attrs->dilation > INT32_MAX / w->extent[along]))
        return build->host->fail(
            build->host, TN_ERR_ARGUMENT,
            "dilation is %" PRId64 " of %" PRId64
            " elements, expected at least 1, and a reach of at most %d",
            attrs->dilation, w->extent[along], INT32_MAX);
    if (status)
        return status;
    int64_t shape[3], before = (w->extent[along] - 1) * attrs->dilation;
    memcpy(shape, x->extent, sizeof(shape));
    int64_t length = shape[along];
    shape[along] = before;
    if (state) {
        status = check_dtype(build->host, "state", build->type(state), x->dtype);
        if (status == TN_OK)
            status = check_extents(build->host, "state", build->type(state), 3, shape);
        if (status)
            return status;
    } else {
        state = zeros(build, x->dtype, 3, shape);
    }
    tn_array *whole = build->op(build, "base.concatenate/1", TN_IN(state, rule->inputs[0]),
                                tn_attrs("axis", (int64_t)along));
    tn_array *in[3] = {whole, rule->inputs[1], bias};
    outputs[0] =
        length ? build->op(build, "nn.conv1d/1", (const tn_array *const *)in, bias ? 3 : 2,
                           tn_attrs("dilation", TN_INTS(attrs->dilation), "groups",
                                    attrs->groups, "axis", attrs->axis))
               : NULL;
    if (!length)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "x has no positions, expected at least 1");
    outputs[1] = part_of_axis(build, whole, along, length, 1, before);
    return outputs[0] && outputs[1] ? TN_OK : TN_ERR_ARGUMENT;
}
COMPOSITE(causal_conv1d, "causal_conv1d/1",
          "conv1d of x behind its state, in which no position sees a later one.",
          TN_INPUTS(causal_inputs), TN_OUTPUTS(causal_outputs),
          .attrs = TN_ATTR_TABLE(causal_attrs, causal_fields));
