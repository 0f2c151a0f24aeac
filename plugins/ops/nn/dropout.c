// SPDX-License-Identifier: MIT
// dropout: zeroes elements by chance. The seed is data, so a training step with another
// seed replays the plan.
#include "pack.h"
#include <tenon/ops/rules.h>

static const tn_input_info x_input[] = {{"x", "the array", 0, TN_FLOAT_DTYPES}};
static const tn_attr_field dropout_fields[] = {
    TN_F64_FIELD(tn_dropout_attrs, p, 0.5, "the share of elements that become 0"),
    TN_BOOL_FIELD(tn_dropout_attrs, training, 1, "false: x as it is"),
    TN_RUNTIME_I64_FIELD(tn_dropout_attrs, seed, 0, "which elements they are"),
};

static tn_status dropout_infer(const tn_infer *infer, tn_type *types)
{
    const tn_dropout_attrs *attrs = infer->attrs;
    if (!(attrs->p >= 0 && attrs->p <= 1))
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT, "p is %g, expected 0 to 1",
                                 attrs->p);
    types[0] = infer->types[0];
    return TN_OK;
}

// An element stays when its word is at least p * 2^32.
static tn_status dropout_decompose(const tn_build *build, const tn_rule *rule,
                                   tn_array **outputs)
{
    const tn_dropout_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    const tn_type *type = build->type(x);
    if (!type)
        return TN_ERR_ARGUMENT;
    if (!attrs->training || attrs->p == 0 || attrs->p == 1) {
        outputs[0] = build->expr(
            build, attrs->training && attrs->p == 1 ? "x -> select(true, 0, x)" : "x -> x",
            TN_IN(x), TN_NO_ATTRS);
        return built(outputs[0]);
    }
    const tn_ints shape = tn_extents(build, x);
    tn_array *bits = words_of_seed(build, rule->inputs[1], &shape);
    outputs[0] = build->expr(
        build, "x, b -> select(b >= u32(least), x * scale, 0)", TN_IN(x, bits),
        tn_attrs("least", floor(attrs->p * 4294967296.0), "scale", 1 / (1 - attrs->p)));
    return built(outputs[0]);
}

const tn_primitive nn_dropout = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.dropout/1",
    .doc = "x with a share of its elements 0, and the others scaled up for it.",
    TN_INPUTS(x_input),
    .attrs = TN_ATTR_TABLE(tn_dropout_attrs, dropout_fields),
    .infer = dropout_infer,
    .decompose = dropout_decompose,
};
