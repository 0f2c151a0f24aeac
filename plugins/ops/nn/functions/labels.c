// SPDX-License-Identifier: MIT
// Losses of classes by margins, and of samples with several classes.
#include "losses.h"

static const tn_input_info margin_inputs[] = {
    {"x", "..., classes: scores", 0, TN_FLOAT_DTYPES},
    {"target", "...: the class of each sample", TN_INPUT_CONSTANT, TN_INTEGER_DTYPES},
    {"weight", "one factor a class", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
};
static const tn_input_info several_inputs[] = {
    {"x", "..., classes: scores", 0, TN_FLOAT_DTYPES},
    {"target", "..., classes: those of each sample, up to the first -1", TN_INPUT_CONSTANT,
     TN_INTEGER_DTYPES},
};
static const tn_input_info soft_inputs[] = {
    {"x", "..., classes: scores", 0, TN_FLOAT_DTYPES},
    {"target", "of x's shape: 1 for each class of the sample, else 0", 0, TN_FLOAT_DTYPES},
    {"weight", "one factor a class", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
};

typedef struct {
    int64_t p, reduction;
    double margin;
} class_margin_attrs;
static const tn_attr_field class_margin_fields[] = {
    TN_I64_FIELD(class_margin_attrs, p, 1, "power of what falls short: 1 or 2"),
    TN_F64_FIELD(class_margin_attrs, margin, 1,
                 "what the class of a sample has to exceed others by"),
    REDUCTION_FIELD(class_margin_attrs),
};
typedef struct {
    int64_t reduction;
} labels_attrs;
static const tn_attr_field labels_fields[] = {REDUCTION_FIELD(labels_attrs)};

// Checks that x has classes, that target has the first `rank` extents of x, and that weight
// has a number for each class.
static tn_status check_labels(const tn_build *build, const tn_rule *rule, int32_t missing)
{
    const tn_host *host = build->host;
    const tn_type *x = build->type(rule->inputs[0]), *y = build->type(rule->inputs[1]);
    tn_array *weight = rule->num_inputs > 2 ? rule->inputs[2] : NULL;
    if (x->rank < 1 || x->extent[x->rank - 1] < 1)
        return host->fail(host, TN_ERR_ARGUMENT, "x has no classes along its last axis");
    tn_status status = check_extents(host, "target", y, x->rank - missing, x->extent);
    if (status == TN_OK && tn_is_float(y->dtype))
        status = check_dtype(host, "target", y, x->dtype);
    if (status == TN_OK && weight)
        status = check_dtype(host, "weight", build->type(weight), x->dtype);
    if (status == TN_OK && weight)
        status =
            check_extents(host, "weight", build->type(weight), 1, &x->extent[x->rank - 1]);
    return status;
}

static tn_array *nn_labels_with_axis(const tn_build *build, tn_array *x, int64_t axis)
{
    return build->op(build, "base.expand_dims/1", TN_IN(x),
                     tn_attrs("axis", TN_INTS(axis)));
}

DECOMPOSE(multi_margin_loss)
{
    const class_margin_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    tn_status status = check_labels(build, rule, 1);
    if (status)
        return status;
    if (attrs->p != 1 && attrs->p != 2)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "p is %" PRId64 ", expected 1 or 2", attrs->p);
    const tn_type *type = build->type(x);
    int64_t n = type->extent[type->rank - 1];
    tn_array *label = nn_labels_with_axis(build, rule->inputs[1], -1);
    tn_array *own = build->op(build, "base.take_along_axis/1", TN_IN(x, label),
                              tn_attrs("axis", (int64_t)-1));
    tn_array *loss =
        build->expr(build, "x, o, y, j -> d = max(margin - o + x, 0); y == j ? 0 : d / n",
                    TN_IN(x, own, cast(build, label, TN_I64), counted(build, n, 0)),
                    tn_attrs("margin", attrs->margin, "n", (double)n));
    if (attrs->p == 2)
        loss = build->expr(build, "d -> d * d * n", TN_IN(loss), tn_attrs("n", (double)n));
    loss = summed_over(build, loss, -1, 0);
    if (rule->num_inputs > 2 && rule->inputs[2])
        loss = build->expr(build, "l, w -> l * w",
                           TN_IN(loss, build->op(build, "base.take/1",
                                                 TN_IN(rule->inputs[2], rule->inputs[1]),
                                                 tn_attrs("axis", (int64_t)0))),
                           TN_NO_ATTRS);
    outputs[0] = reduced_loss(build, loss, attrs->reduction);
    return built(outputs[0]);
}

// All pairs of a class that the sample has and a class that it does not have.
DECOMPOSE(multilabel_margin_loss)
{
    const labels_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    tn_status status = check_labels(build, rule, 0);
    if (status)
        return status;
    const tn_type *type = build->type(x);
    int64_t n = type->extent[type->rank - 1];
    tn_array *y = cast(build, rule->inputs[1], TN_I64);
    tn_array *counts = build->op(build, "base.cummin/1", TN_IN(y),
                                 tn_attrs("axis", (int64_t)(type->rank - 1)));
    counts = build->expr(build, "m -> m >= 0", TN_IN(counts), TN_NO_ATTRS);
    tn_array *own = build->op(build, "base.take_along_axis/1", TN_IN(x, y),
                              tn_attrs("axis", (int64_t)-1));
    tn_array *given[2] = {nn_labels_with_axis(build, counts, -1),
                          nn_labels_with_axis(build, y, -1)};
    tn_array *hits =
        build->expr(build, "c, y, j -> c & y == j",
                    TN_IN(given[0], given[1], counted(build, n, 0)), TN_NO_ATTRS);
    hits = build->op(build, "base.any/1", TN_IN(hits),
                     tn_attrs("axis", TN_INTS(-2), "keepdims", (int64_t)1));
    tn_array *loss =
        build->expr(build, "c, h, o, x -> select(c & !h, max(1 - o + x, 0) / n, 0)",
                    TN_IN(given[0], hits, nn_labels_with_axis(build, own, -1),
                          nn_labels_with_axis(build, x, -2)),
                    tn_attrs("n", (double)n));
    loss = build->op(build, "base.sum/1", TN_IN(loss), tn_attrs("axis", TN_INTS(-2, -1)));
    outputs[0] = reduced_loss(build, loss, attrs->reduction);
    return built(outputs[0]);
}

DECOMPOSE(multilabel_soft_margin_loss)
{
    const labels_attrs *attrs = rule->attrs;
    tn_status status = check_labels(build, rule, 0);
    if (status)
        return status;
    // log(1 + exp(-x)) where the sample has the class, and x is added where it does not.
    tn_array *loss =
        build->expr(build,
                    "x, y -> (1 - y) * x + (x < 0 ? log1p(exp(x < 0 ? x : 0)) - x : "
                    "log1p(exp(x < 0 ? 0 : -x)))",
                    TN_IN(rule->inputs[0], rule->inputs[1]), TN_NO_ATTRS);
    if (rule->num_inputs > 2 && rule->inputs[2])
        loss =
            build->expr(build, "l, w -> l * w", TN_IN(loss, rule->inputs[2]), TN_NO_ATTRS);
    loss = build->op(build, "base.mean/1", TN_IN(loss), tn_attrs("axis", TN_INTS(-1)));
    outputs[0] = reduced_loss(build, loss, attrs->reduction);
    return built(outputs[0]);
}

COMPOSITE(multi_margin_loss, "multi_margin_loss/1",
          "What a sample's class falls short of exceeding others by a margin.",
          TN_INPUTS(margin_inputs),
          .attrs = TN_ATTR_TABLE(class_margin_attrs, class_margin_fields));
COMPOSITE(multilabel_margin_loss, "multilabel_margin_loss/1",
          "What a sample's classes fall short of exceeding all others by 1.",
          TN_INPUTS(several_inputs), .attrs = TN_ATTR_TABLE(labels_attrs, labels_fields));
COMPOSITE(multilabel_soft_margin_loss, "multilabel_soft_margin_loss/1",
          "The mean over classes of binary_cross_entropy_with_logits.",
          TN_INPUTS(soft_inputs), .attrs = TN_ATTR_TABLE(labels_attrs, labels_fields));
