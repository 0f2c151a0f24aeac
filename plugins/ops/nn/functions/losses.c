// SPDX-License-Identifier: MIT
// Losses that are an expression of each element, and their mean or sum, from PyTorch and
// MLX.
#include "losses.h"

const char *const loss_reductions[] = {"none", "mean", "sum", NULL};

tn_array *reduced_loss(const tn_build *build, tn_array *loss, int64_t reduction)
{
    if (reduction == REDUCE_NONE)
        return loss;
    return build->op(build, reduction == REDUCE_MEAN ? "base.mean/1" : "base.sum/1",
                     TN_IN(loss), TN_NO_ATTRS);
}

tn_array *reduced_by_weights(const tn_build *build, tn_array *loss, tn_array *weights,
                             int64_t reduction)
{
    tn_array *sum =
        reduced_loss(build, loss, reduction == REDUCE_NONE ? reduction : REDUCE_SUM);
    if (reduction != REDUCE_MEAN)
        return sum;
    return build->expr(build, "s, w -> s / w",
                       TN_IN(sum, reduced_loss(build, weights, REDUCE_SUM)), TN_NO_ATTRS);
}

tn_array *summed_over(const tn_build *build, tn_array *x, int64_t axis, int64_t keepdims)
{
    return build->op(build, "base.sum/1", TN_IN(x),
                     tn_attrs("axis", TN_INTS(axis), "keepdims", keepdims));
}

tn_status check_alike(const tn_build *build, const tn_rule *rule, const char *const names[],
                      uint32_t count)
{
    const tn_type *first = build->type(rule->inputs[0]);
    tn_status status = TN_OK;
    for (uint32_t i = 1; i < count && status == TN_OK; i++) {
        if (i >= rule->num_inputs || !rule->inputs[i])
            continue;
        const tn_type *type = build->type(rule->inputs[i]);
        status = check_dtype(build->host, names[i], type, first->dtype);
        if (status == TN_OK)
            status = check_extents(build->host, names[i], type, first->rank, first->extent);
    }
    return status;
}

// --- of predictions and targets ---------------------------------------------------------

static const char *const pair_names[] = {"x", "target"};
static const tn_input_info pair_inputs[] = {
    {"x", "predictions", 0, TN_FLOAT_DTYPES},
    {"target", "what they should be, of x's shape", 0, TN_FLOAT_DTYPES},
};

typedef struct {
    int64_t reduction;
    double number;
} pair_attrs;

static tn_status pair_loss(const tn_build *build, const tn_rule *rule, const char *text,
                           const char *number, tn_array **outputs)
{
    const pair_attrs *attrs = rule->attrs;
    tn_status status = check_alike(build, rule, pair_names, 2);
    if (status)
        return status;
    const tn_attr item = {.name = number, .kind = TN_ATTR_F64, .f = attrs->number};
    tn_array *loss = build->expr(build, text, TN_IN(rule->inputs[0], rule->inputs[1]),
                                 TN_ATTR_LIST(&item, number ? 1 : 0));
    outputs[0] = reduced_loss(build, loss, attrs->reduction);
    return built(outputs[0]);
}

// X(name, expression of x and y, doc)
#define PAIR_LOSSES(X)                                                                     \
    X(mse_loss, "d = x - y; d * d", "The square of the difference.")                       \
    X(l1_loss, "abs(x - y)", "The absolute difference.")                                   \
    X(log_cosh_loss, "d = abs(x - y); d + log1p(exp(-2 * d)) - log(2)",                    \
      "The logarithm of the difference's cosh.")                                           \
    X(hinge_loss, "max(1 - x * y, 0)",                                                     \
      "What x * target, targets -1 or 1, falls short of 1.")

// X(name, attribute, default, what it is, expression, doc)
#define NUMBER_LOSSES(X)                                                                   \
    X(smooth_l1_loss, beta, 1, "difference from which on it is a line",                    \
      "d = abs(x - y); d < beta ? 0.5 * d * d / (beta > 0 ? beta : 1) : d - 0.5 * beta",   \
      "Half the square of a small difference, over beta; a large one less beta / 2.")      \
    X(huber_loss, delta, 1, "difference from which on it is a line",                       \
      "d = abs(x - y); d < delta ? 0.5 * d * d : delta * (d - 0.5 * delta)",               \
      "Half the square of a small difference; a large one times delta, less its half.")    \
    X(hinge_embedding_loss, margin, 1, "distance of targets of -1",                        \
      "y == 1 ? x : y == -1 ? max(margin - x, 0) : max(margin - x, 0) + x",                \
      "x where the target is 1, max(margin - x, 0) where it is -1.")

#define PAIR_RECORD(name, text, sentence)                                                  \
    static const tn_attr_field name##_fields[] = {REDUCTION_FIELD(pair_attrs)};            \
    DECOMPOSE(name)                                                                        \
    {                                                                                      \
        return pair_loss(build, rule, "x, y -> " text, NULL, outputs);                     \
    }                                                                                      \
    COMPOSITE(name, #name "/1", sentence, TN_INPUTS(pair_inputs),                          \
              .attrs = TN_ATTR_TABLE(pair_attrs, name##_fields));
PAIR_LOSSES(PAIR_RECORD)

#define NUMBER_RECORD(of, attr, value, what, text, sentence)                               \
    static const tn_attr_field of##_fields[] = {                                           \
        {#attr, what, TN_ATTR_F64, 0, offsetof(pair_attrs, number), 0, value, NULL},       \
        REDUCTION_FIELD(pair_attrs),                                                       \
    };                                                                                     \
    DECOMPOSE(of)                                                                          \
    {                                                                                      \
        return pair_loss(build, rule, "x, y -> " text, #attr, outputs);                    \
    }                                                                                      \
    COMPOSITE(of, #of "/1", sentence, TN_INPUTS(pair_inputs),                              \
              .attrs = TN_ATTR_TABLE(pair_attrs, of##_fields));
NUMBER_LOSSES(NUMBER_RECORD)

static const tn_attr_field soft_margin_loss_fields[] = {REDUCTION_FIELD(pair_attrs)};
DECOMPOSE(soft_margin_loss)
{
    const pair_attrs *attrs = rule->attrs;
    tn_status status = check_alike(build, rule, pair_names, 2);
    if (status)
        return status;
    tn_array *u = build->expr(build, "x, y -> x * y",
                              TN_IN(rule->inputs[0], rule->inputs[1]), TN_NO_ATTRS);
    tn_array *log = build->op(build, "nn.logsigmoid/1", TN_IN(u), TN_NO_ATTRS);
    outputs[0] = reduced_loss(build, build->expr(build, "l -> -l", TN_IN(log), TN_NO_ATTRS),
                              attrs->reduction);
    return built(outputs[0]);
}
COMPOSITE(soft_margin_loss, "soft_margin_loss/1",
          "log(1 + exp(-x * target)), targets -1 or 1.", TN_INPUTS(pair_inputs),
          .attrs = TN_ATTR_TABLE(pair_attrs, soft_margin_loss_fields));

// --- binary classes ---------------------------------------------------------------------

static const char *const binary_names[] = {"x", "target", "weight"};
static const tn_input_info binary_inputs[] = {
    {"x", "probabilities", 0, TN_FLOAT_DTYPES},
    {"target", "0 to 1, of x's shape", 0, TN_FLOAT_DTYPES},
    {"weight", "factors of losses, of x's shape", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
};
static const tn_input_info logits_inputs[] = {
    {"x", "logits", 0, TN_FLOAT_DTYPES},
    {"target", "0 to 1, of x's shape", 0, TN_FLOAT_DTYPES},
    {"weight", "factors of losses, of x's shape", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
    {"pos_weight", "factors of targets of 1, which broadcast with x", TN_INPUT_OPTIONAL,
     TN_FLOAT_DTYPES},
};
static const tn_attr_field binary_fields[] = {REDUCTION_FIELD(pair_attrs)};

static tn_status weighted_loss(const tn_build *build, const tn_rule *rule, tn_array *loss,
                               tn_array **outputs)
{
    const pair_attrs *attrs = rule->attrs;
    if (rule->num_inputs > 2 && rule->inputs[2])
        loss =
            build->expr(build, "l, w -> l * w", TN_IN(loss, rule->inputs[2]), TN_NO_ATTRS);
    outputs[0] = reduced_loss(build, loss, attrs->reduction);
    return built(outputs[0]);
}

DECOMPOSE(binary_cross_entropy)
{
    tn_status status = check_alike(build, rule, binary_names, 3);
    if (status)
        return status;
    return weighted_loss(build, rule,
                         build->expr(build,
                                     "x, y -> -(y * max(log(x), -100) + "
                                     "(1 - y) * max(log1p(-x), -100))",
                                     TN_IN(rule->inputs[0], rule->inputs[1]), TN_NO_ATTRS),
                         outputs);
}

DECOMPOSE(binary_cross_entropy_with_logits)
{
    tn_status status = check_alike(build, rule, binary_names, 3);
    if (status)
        return status;
    tn_array *x = rule->inputs[0], *y = rule->inputs[1], *loss;
    tn_array *log = build->op(build, "nn.logsigmoid/1", TN_IN(x), TN_NO_ATTRS);
    if (rule->num_inputs > 3 && rule->inputs[3]) {
        const tn_type *p = build->type(rule->inputs[3]);
        status = check_dtype(build->host, "pos_weight", p, dtype_of(build, x));
        tn_ints shape = tn_extents(build, x);
        if (status)
            return status;
        tn_array *weight = build->op(build, "base.broadcast_to/1", TN_IN(rule->inputs[3]),
                                     tn_attrs("shape", (const tn_ints *)&shape));
        loss = build->expr(build, "x, y, l, p -> (1 - y) * x - (1 + (p - 1) * y) * l",
                           TN_IN(x, y, log, weight), TN_NO_ATTRS);
    } else {
        loss =
            build->expr(build, "x, y, l -> (1 - y) * x - l", TN_IN(x, y, log), TN_NO_ATTRS);
    }
    return weighted_loss(build, rule, loss, outputs);
}

COMPOSITE(binary_cross_entropy, "binary_cross_entropy/1",
          "-target * log(x) - (1 - target) * log(1 - x); logarithms are at least -100.",
          TN_INPUTS(binary_inputs), .attrs = TN_ATTR_TABLE(pair_attrs, binary_fields));
COMPOSITE(binary_cross_entropy_with_logits, "binary_cross_entropy_with_logits/1",
          "binary_cross_entropy of sigmoid(x), without overflow.", TN_INPUTS(logits_inputs),
          .attrs = TN_ATTR_TABLE(pair_attrs, binary_fields));

// --- distributions ----------------------------------------------------------------------

typedef struct {
    int64_t log_target, reduction;
} kl_attrs;
static const char *const kl_reductions[] = {"none", "mean", "sum", "batchmean", NULL};
static const tn_attr_field kl_fields[] = {
    TN_BOOL_FIELD(kl_attrs, log_target, 0, "target is the logarithm of probabilities, too"),
    TN_CHOICE_FIELD(kl_attrs, reduction, REDUCE_MEAN, kl_reductions,
                    "elements; their mean; their sum; that over the first axis' extent"),
};
static const tn_input_info kl_inputs[] = {
    {"x", "logarithms of probabilities", 0, TN_FLOAT_DTYPES},
    {"target", "probabilities, of x's shape", 0, TN_FLOAT_DTYPES},
};

DECOMPOSE(kl_div)
{
    const kl_attrs *attrs = rule->attrs;
    tn_status status = check_alike(build, rule, pair_names, 2);
    if (status)
        return status;
    const tn_type *type = build->type(rule->inputs[0]);
    int64_t batch = type->rank ? type->extent[0] : 1;
    int is_batchmean = attrs->reduction == REDUCE_BATCHMEAN;
    tn_array *loss = build->expr(
        build,
        attrs->log_target ? "x, y -> exp(y) * (y - x)"
                          : "x, y -> y == 0 ? 0 * x : y * (log(y == 0 ? 1 : y) - x)",
        TN_IN(rule->inputs[0], rule->inputs[1]), TN_NO_ATTRS);
    loss = reduced_loss(build, loss, is_batchmean ? REDUCE_SUM : attrs->reduction);
    outputs[0] = is_batchmean
                     ? build->expr(build, "l -> l / n", TN_IN(loss), tn_attrs("n", batch))
                     : loss;
    return built(outputs[0]);
}
COMPOSITE(kl_div, "kl_div/1",
          "Kullback and Leibler's divergence, target * log(target / exp(x)).",
          TN_INPUTS(kl_inputs), .attrs = TN_ATTR_TABLE(kl_attrs, kl_fields));

typedef struct {
    int64_t log_input, full, reduction;
    double eps;
} poisson_attrs;
static const tn_attr_field poisson_fields[] = {
    TN_BOOL_FIELD(poisson_attrs, log_input, 1, "x is the logarithm of the mean"),
    TN_BOOL_FIELD(poisson_attrs, full, 0, "with Stirling's term of targets above 1"),
    TN_F64_FIELD(poisson_attrs, eps, 1e-8, "added to x before its logarithm"),
    REDUCTION_FIELD(poisson_attrs),
};

DECOMPOSE(poisson_nll_loss)
{
    const poisson_attrs *attrs = rule->attrs;
    tn_status status = check_alike(build, rule, pair_names, 2);
    if (status)
        return status;
    tn_array *x = rule->inputs[0], *y = rule->inputs[1];
    tn_array *loss =
        attrs->log_input
            ? build->expr(build, "x, y -> exp(x) - y * x", TN_IN(x, y), TN_NO_ATTRS)
            : build->expr(build, "x, y -> x - y * log(x + eps)", TN_IN(x, y),
                          tn_attrs("eps", attrs->eps));
    if (attrs->full)
        loss = build->expr(build,
                           "l, y -> z = y > 1 ? y : 1; "
                           "y > 1 ? l + z * log(z) - z + 0.5 * log(2 * pi * z) : l",
                           TN_IN(loss, y), TN_NO_ATTRS);
    outputs[0] = reduced_loss(build, loss, attrs->reduction);
    return built(outputs[0]);
}
COMPOSITE(poisson_nll_loss, "poisson_nll_loss/1",
          "Minus the log-likelihood of counts, exp(x) - target * x.",
          TN_INPUTS(pair_inputs), .attrs = TN_ATTR_TABLE(poisson_attrs, poisson_fields));

typedef struct {
    int64_t full, reduction;
    double eps;
} gaussian_attrs;
static const tn_attr_field gaussian_fields[] = {
    TN_BOOL_FIELD(gaussian_attrs, full, 0, "with the constant log(2 pi) / 2"),
    TN_F64_FIELD(gaussian_attrs, eps, 1e-6, "the least variance"),
    REDUCTION_FIELD(gaussian_attrs),
};
static const tn_input_info gaussian_inputs[] = {
    {"x", "means", 0, TN_FLOAT_DTYPES},
    {"target", "samples, of x's shape", 0, TN_FLOAT_DTYPES},
    {"var", "variances, which broadcast with x", 0, TN_FLOAT_DTYPES},
};

DECOMPOSE(gaussian_nll_loss)
{
    const gaussian_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0], *var = rule->inputs[2];
    tn_status status = check_alike(build, rule, pair_names, 2);
    if (status == TN_OK)
        status = check_dtype(build->host, "var", build->type(var), dtype_of(build, x));
    if (status)
        return status;
    tn_ints shape = tn_extents(build, x);
    var = build->op(build, "base.broadcast_to/1", TN_IN(var),
                    tn_attrs("shape", (const tn_ints *)&shape));
    // Below eps the slope is the slope at eps, as in PyTorch.
    tn_array *still = build->op(build, "base.stop_gradient/1", TN_IN(var), TN_NO_ATTRS);
    tn_array *loss = build->expr(
        build,
        "x, y, v, s -> w = v < eps ? eps + (v - s) : v; d = x - y; "
        "0.5 * (log(w) + d * d / w) + c",
        TN_IN(x, rule->inputs[1], var, still),
        tn_attrs("eps", attrs->eps, "c", attrs->full ? 0.9189385332046727 : 0.0));
    outputs[0] = reduced_loss(build, loss, attrs->reduction);
    return built(outputs[0]);
}
COMPOSITE(gaussian_nll_loss, "gaussian_nll_loss/1",
          "Minus the log-likelihood of samples of normal distributions.",
          TN_INPUTS(gaussian_inputs),
          .attrs = TN_ATTR_TABLE(gaussian_attrs, gaussian_fields));
