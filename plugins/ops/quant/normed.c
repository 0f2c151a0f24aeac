// SPDX-License-Identifier: MIT
// quant.normed_matmul: the product with quantised weights of rows normalised by their root
// mean square, which need not be stored in between.
#include "pack.h"

#include <tenon/ops/nn_attrs.h>

static const tn_input_info inputs[] = {
    {"x", "rows along the last axis, of k elements", 0, TN_FLOAT_DTYPES},
    {"weight", "k factors, of the elements of a row", 0, TN_FLOAT_DTYPES},
    {"w", "n rows of blocks, each of k elements", TN_INPUT_CONSTANT, TN_DTYPE_BIT(TN_U8)},
};
static const tn_attr_field fields[] = {
    TN_REQUIRED_FIELD(tn_quant_normed_attrs, format, TN_ATTR_STRING,
                      "name of the format of w"),
    TN_F64_FIELD(tn_quant_normed_attrs, eps, 1e-5, "added to the mean of the squares"),
};

static tn_status normed_infer(const tn_infer *infer, tn_type *types)
{
    const tn_quant_normed_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    const tn_type *x = &infer->types[0], *weight = &infer->types[1];
    char text[SHAPE_TEXT];
    tn_status status = product_type(host, attrs->format, x, &infer->types[2], &types[0]);
    if (status)
        return status;
    int64_t k = x->extent[x->rank - 1];
    if (weight->rank != 1 || weight->extent[0] != k || weight->dtype != x->dtype)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "weight has shape %s of %s, expected [%" PRId64 "] of %s",
                          shape_text(weight, text), tn_dtype_name(weight->dtype), k,
                          tn_dtype_name(x->dtype));
    return TN_OK;
}

static tn_status normed_decompose(const tn_build *build, const tn_rule *rule,
                                  tn_array **outputs)
{
    const tn_quant_normed_attrs *attrs = rule->attrs;
    tn_array *x =
        build->expr(build, "x, g -> x * rsqrt(mean(x * x) + eps) * g",
                    TN_IN(rule->inputs[0], rule->inputs[1]), tn_attrs("eps", attrs->eps));
    outputs[0] = build->op(build, "quant.quantized_matmul/1", TN_IN(x, rule->inputs[2]),
                           tn_attrs("format", attrs->format));
    return built(outputs[0]);
}

const tn_primitive quant_normed = {
    .struct_size = sizeof(tn_primitive),
    .id = "quant.normed_matmul/1",
    .doc = "The product of rows of x over the root of the mean of their squares, times "
           "weight, and the transposed matrix that w's blocks stand for.",
    TN_INPUTS(inputs),
    .attrs = TN_ATTR_TABLE(tn_quant_normed_attrs, fields),
    .infer = normed_infer,
    .decompose = normed_decompose,
};

// Leaves a norm over another axis, or with factors of another shape or dtype.
tn_status rewrite_norm(const tn_build *build, const tn_rule *rule, const tn_rule *made,
                       tn_array **output)
{
    const tn_quant_matmul_attrs *attrs = rule->attrs;
    const tn_rms_norm_attrs *norm = made->attrs;
    const tn_type *x = build->type(made->inputs[0]), *g = build->type(made->inputs[1]);
    if (!x || !g)
        return TN_ERR_ARGUMENT;
    bool is_last = norm->axis == -1 || norm->axis == x->rank - 1;
    if (attrs->exact || !is_blocks(attrs->format) || !is_last || x->rank < 1 ||
        g->rank != 1 || g->dtype != x->dtype || g->extent[0] != x->extent[x->rank - 1])
        return TN_OK;
    *output = build->op(build, "quant.normed_matmul/1",
                        TN_IN(made->inputs[0], made->inputs[1], rule->inputs[1]),
                        tn_attrs("format", attrs->format, "eps", norm->eps));
    return built(*output);
}
