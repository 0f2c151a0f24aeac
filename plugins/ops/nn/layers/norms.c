// SPDX-License-Identifier: MIT
// linear; batch_norm, with running statistics as state; instance_norm.
#include "../pack.h"
#include <tenon/ops/rules.h>

// --- linear -----------------------------------------------------------------------------

static const tn_input_info linear_inputs[] = {
    {"x", "..., I: the array", 0, TN_FLOAT_DTYPES},
    {"w", "O, I: a row of weights for each result", 0, TN_FLOAT_DTYPES},
    {"bias", "O: added to each result", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
};

DECOMPOSE(linear)
{
    const tn_host *host = build->host;
    const tn_type *x = build->type(rule->inputs[0]), *w = build->type(rule->inputs[1]);
    tn_array *bias = rule->num_inputs > 2 ? rule->inputs[2] : NULL;
    char got[SHAPE_TEXT], expected[SHAPE_TEXT];
    tn_status status = check_rank(host, "w", w, 2, "O, I");
    if (status == TN_OK)
        status = check_dtype(host, "w", w, x->dtype);
    if (status == TN_OK && (x->rank < 1 || x->extent[x->rank - 1] != w->extent[1]))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "x has shape %s and w %s, expected %" PRId64
                          " elements along the last axis of both",
                          shape_text(x, got), shape_text(w, expected), w->extent[1]);
    if (status == TN_OK && bias)
        status = check_dtype(host, "bias", build->type(bias), x->dtype);
    if (status == TN_OK && bias)
        status = check_extents(host, "bias", build->type(bias), 1, w->extent);
    if (status)
        return status;
    tn_array *turned = tn_move_axis(build, rule->inputs[1], 0, 1);
    outputs[0] =
        build->op(build, "base.matmul/1", TN_IN(rule->inputs[0], turned), TN_NO_ATTRS);
    if (bias)
        outputs[0] = add(build, outputs[0], bias);
    return built(outputs[0]);
}
COMPOSITE(linear, "linear/1", "x times the transpose of w, and a bias.",
          TN_INPUTS(linear_inputs));

// --- batch_norm -------------------------------------------------------------------------

typedef struct {
    int64_t training, axis;
    double momentum, eps;
} batch_norm_attrs;
static const tn_attr_field batch_norm_fields[] = {
    TN_BOOL_FIELD(batch_norm_attrs, training, 0,
                  "by the statistics of x, with which the running ones are updated"),
    TN_F64_FIELD(batch_norm_attrs, momentum, 0.1, "share of x in the running statistics"),
    TN_F64_FIELD(batch_norm_attrs, eps, 1e-5, "added to the variance"),
    TN_I64_FIELD(batch_norm_attrs, axis, -1, "of channels; PyTorch's is 1"),
};
static const tn_input_info batch_norm_inputs[] = {
    {"x", "N, ..., C: the array", 0, TN_FLOAT_DTYPES},
    {"running_mean", "C: of what was seen before", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
    {"running_var", "C: likewise", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
    {"weight", "C: factors of the result", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
    {"bias", "C: added to the result", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
};
static const tn_output_info batch_norm_outputs[] = {
    {"out", "of x's type", 0, 0},
    {"running_mean", "C: with x in training, else as it was", 0, 0},
    {"running_var", "C: likewise", 0, 0},
};

static tn_array *batch_input(const tn_rule *rule, uint32_t i)
{
    return i < rule->num_inputs ? rule->inputs[i] : NULL;
}

// The mean over all axes but that of channels; reduced axes keep extent 1.
static tn_array *channel_mean(const tn_build *build, tn_array *x, int32_t rank,
                              int32_t axis)
{
    tn_ints axes = {.given = 1};
    for (int32_t i = 0; i < rank; i++)
        if (i != axis)
            axes.value[axes.count++] = i;
    return build->op(build, "base.mean/1", TN_IN(x),
                     tn_attrs("axis", (const tn_ints *)&axes, "keepdims", (int64_t)1));
}

// A vector of channels as an array of x's computed dtype that broadcasts along `axis` of
// `rank`: with the axes of the statistics, so that their gradients are summed as one.
static tn_array *layer_norms_as_column(const tn_build *build, tn_array *vector,
                                       int32_t rank, int32_t axis, tn_dtype dtype)
{
    int64_t shape[TN_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    const tn_type *type = build->type(vector);
    if (!type)
        return NULL;
    shape[axis] = type->extent[0];
    vector = with_shape(build, "base.reshape/1", vector, rank, shape);
    return dtype_of(build, vector) == dtype ? vector : cast(build, vector, dtype);
}

static tn_array *layer_norms_updated(const tn_build *build, tn_array *running,
                                     tn_array *now, double momentum, int64_t channels)
{
    now = with_shape(build, "base.reshape/1", now, 1, &channels);
    if (!running)
        return now;
    tn_dtype dtype = dtype_of(build, running);
    tn_array *next = build->expr(build, "r, n -> r + m * (n - r)", TN_IN(running, now),
                                 tn_attrs("m", momentum));
    return dtype_of(build, next) == dtype ? next : cast(build, next, dtype);
}

static tn_status check_batch_norm(const tn_build *build, const tn_rule *rule, int32_t *axis)
{
    static const char *const names[] = {"", "running_mean", "running_var", "weight",
                                        "bias"};
    const batch_norm_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    tn_status status = axis_within(build->host, attrs->axis, x->rank, axis);
    for (uint32_t i = 1; i < 5 && status == TN_OK; i++)
        if (batch_input(rule, i))
            status = check_extents(build->host, names[i], build->type(batch_input(rule, i)),
                                   1, &x->extent[*axis]);
    int both = batch_input(rule, 1) && batch_input(rule, 2);
    int none = !batch_input(rule, 1) && !batch_input(rule, 2);
    if (status == TN_OK && !both && !(none && attrs->training))
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "running_mean and running_var are not given, expected "
                                 "both, or in training neither");
    return status;
}

// The statistics of x, and the running statistics after x.
static tn_status batch_statistics(const tn_build *build, const tn_rule *rule, tn_array *x,
                                  int32_t axis, tn_array *of_x[2], tn_array **outputs)
{
    const batch_norm_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(x);
    int64_t channels = type->extent[axis], count = 1;
    int32_t rank = type->rank;
    for (int32_t i = 0; i < rank; i++)
        count *= i == axis ? 1 : type->extent[i];
    if (count < 2 && channels > 0)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "x has %" PRId64
                                 " elements a channel, expected more than 1 in training",
                                 count);
    of_x[0] = channel_mean(build, x, rank, axis);
    // For any c the variance is the mean of (x - c) ** 2 less (m - c) ** 2. As c equals m,
    // and no derivative flows through it, no pass over x sums the distances, whose sum is
    // 0.
    tn_array *c = build->op(build, "base.stop_gradient/1", TN_IN(of_x[0]), TN_NO_ATTRS);
    tn_array *squares =
        build->expr(build, "x, c -> d = x - c; d * d", TN_IN(x, c), TN_NO_ATTRS);
    of_x[1] = build->expr(build, "v, m, c -> d = m - c; v - d * d",
                          TN_IN(channel_mean(build, squares, rank, axis), of_x[0], c),
                          TN_NO_ATTRS);
    tn_array *unbiased = build->expr(build, "v -> v * f", TN_IN(of_x[1]),
                                     tn_attrs("f", (double)count / ((double)count - 1)));
    outputs[1] = layer_norms_updated(build, batch_input(rule, 1), of_x[0], attrs->momentum,
                                     channels);
    outputs[2] = layer_norms_updated(build, batch_input(rule, 2), unbiased, attrs->momentum,
                                     channels);
    return outputs[1] && outputs[2] ? TN_OK : TN_ERR_ARGUMENT;
}

DECOMPOSE(batch_norm)
{
    const batch_norm_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0], *of_x[2] = {NULL, NULL};
    int32_t axis;
    tn_status status = check_batch_norm(build, rule, &axis);
    if (status)
        return status;
    const tn_type *type = build->type(x);
    tn_dtype dtype = type->dtype, wide = tn_dtype_computed(dtype);
    int32_t rank = type->rank;
    if (wide != dtype)
        x = cast(build, x, wide);
    if (attrs->training) {
        status = batch_statistics(build, rule, x, axis, of_x, outputs);
        if (status)
            return status;
    } else {
        for (uint32_t i = 0; i < 2; i++) {
            outputs[i + 1] = rule->inputs[i + 1];
            of_x[i] = layer_norms_as_column(build, rule->inputs[i + 1], rank, axis, wide);
        }
    }
    // One factor for each channel, computed before it is multiplied by x.
    tn_array *weight = batch_input(rule, 3), *bias = batch_input(rule, 4);
    tn_array *factor = build->expr(build, "v -> rsqrt(v + eps)", TN_IN(of_x[1]),
                                   tn_attrs("eps", attrs->eps));
    if (weight)
        factor = build->expr(
            build, "f, w -> f * w",
            TN_IN(factor, layer_norms_as_column(build, weight, rank, axis, wide)),
            TN_NO_ATTRS);
    tn_array *y =
        bias ? build->expr(build, "x, m, f, b -> (x - m) * f + b",
                           TN_IN(x, of_x[0], factor,
                                 layer_norms_as_column(build, bias, rank, axis, wide)),
                           TN_NO_ATTRS)
             : build->expr(build, "x, m, f -> (x - m) * f", TN_IN(x, of_x[0], factor),
                           TN_NO_ATTRS);
    outputs[0] = wide != dtype ? cast(build, y, dtype) : y;
    return built(outputs[0]);
}
COMPOSITE(batch_norm, "batch_norm/1",
          "Each channel less its mean, over its deviation; and running statistics.",
          TN_INPUTS(batch_norm_inputs), TN_OUTPUTS(batch_norm_outputs),
          .attrs = TN_ATTR_TABLE(batch_norm_attrs, batch_norm_fields));

// --- instance_norm ----------------------------------------------------------------------

typedef struct {
    double eps;
    int64_t axis;
} instance_norm_attrs;
static const tn_attr_field instance_norm_fields[] = {
    TN_F64_FIELD(instance_norm_attrs, eps, 1e-5, "added to the variance"),
    TN_I64_FIELD(instance_norm_attrs, axis, -1, "of channels; PyTorch's is 1"),
};
static const tn_input_info instance_norm_inputs[] = {
    {"x", "N, ..., C: the array", 0, TN_FLOAT_DTYPES},
    {"weight", "C: factors of the result", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
    {"bias", "C: added to the result", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
};

DECOMPOSE(instance_norm)
{
    const instance_norm_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    int32_t axis;
    tn_status status = axis_within(build->host, attrs->axis, x->rank, &axis);
    if (status)
        return status;
    outputs[0] = build->op(
        build, "nn.group_norm/1", (const tn_array *const *)rule->inputs, rule->num_inputs,
        tn_attrs("groups", x->extent[axis], "eps", attrs->eps, "axis", attrs->axis));
    return built(outputs[0]);
}
COMPOSITE(instance_norm, "instance_norm/1",
          "Each channel of each sample less its mean, over its deviation.",
          TN_INPUTS(instance_norm_inputs),
          .attrs = TN_ATTR_TABLE(instance_norm_attrs, instance_norm_fields));
