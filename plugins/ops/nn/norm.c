// SPDX-License-Identifier: MIT
// softmax, log_softmax and the norms of rows: one expression each, so one launch; and
// group_norm, whose groups are rows where their elements are adjacent.
#include "pack.h"

static const tn_input_info x_input[] = {{"x", "the array", 0, 0}};

#define AXIS(type, doc) TN_I64_FIELD(type, axis, -1, doc)
static const tn_attr_field softmax_fields[] = {
    AXIS(tn_softmax_attrs, "axis along which the exponentials sum to 1"),
};

// --- softmax ---------------------------------------------------------------------------

// The derivatives use the result, which spares the exponentials.

static tn_array *nn_norm_along_axis(const tn_build *build, const tn_rule *rule,
                                    const char *text, const tn_array *t)
{
    const tn_softmax_attrs *attrs = rule->attrs;
    return build->expr(build, text, TN_IN(t, rule->outputs[0]),
                       tn_attrs("axis", attrs->axis));
}

// The Jacobian of softmax is symmetric, so the vjp and the jvp are one text.
static const char softmax_derivative[] = "t, y -> y * (t - sum(t * y))";

static tn_status softmax_vjp(const tn_build *build, const tn_rule *rule,
                             tn_array *const *cotangents, const uint64_t *wanted,
                             tn_array **gradients)
{
    (void)wanted;
    gradients[0] = nn_norm_along_axis(build, rule, softmax_derivative, cotangents[0]);
    return built(gradients[0]);
}

static tn_status softmax_jvp(const tn_build *build, const tn_rule *rule,
                             tn_array *const *tangents, tn_array **out_tangents)
{
    out_tangents[0] = nn_norm_along_axis(build, rule, softmax_derivative, tangents[0]);
    return built(out_tangents[0]);
}

static tn_status log_softmax_vjp(const tn_build *build, const tn_rule *rule,
                                 tn_array *const *cotangents, const uint64_t *wanted,
                                 tn_array **gradients)
{
    (void)wanted;
    gradients[0] =
        nn_norm_along_axis(build, rule, "t, y -> t - exp(y) * sum(t)", cotangents[0]);
    return built(gradients[0]);
}

static tn_status log_softmax_jvp(const tn_build *build, const tn_rule *rule,
                                 tn_array *const *tangents, tn_array **out_tangents)
{
    out_tangents[0] =
        nn_norm_along_axis(build, rule, "t, y -> t - sum(t * exp(y))", tangents[0]);
    return built(out_tangents[0]);
}

// One division a row.
const tn_primitive nn_softmax = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.softmax/1",
    .doc = "exp(x) over its sum along an axis, without overflow.",
    TN_INPUTS(x_input),
    .attrs = TN_ATTR_TABLE(tn_softmax_attrs, softmax_fields),
    .expr = "e = exp(x - max(x)); e * (1 / sum(e))",
    .vjp = softmax_vjp,
    .jvp = softmax_jvp,
};

const tn_primitive nn_log_softmax = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.log_softmax/1",
    .doc = "The logarithm of softmax, exact where softmax is 0.",
    TN_INPUTS(x_input),
    .attrs = TN_ATTR_TABLE(tn_softmax_attrs, softmax_fields),
    .expr = "d = x - max(x); d - log(sum(exp(d)))",
    .vjp = log_softmax_vjp,
    .jvp = log_softmax_jvp,
};

// --- norms -----------------------------------------------------------------------------

static const tn_input_info layer_norm_inputs[] = {
    {"x", "the array", 0, 0},
    {"weight",
     "factors of rows; broadcasts with x, so behind an axis but the last it has 1s", 0, 0},
    {"bias", "added to rows, likewise", 0, 0},
};
static const tn_attr_field layer_norm_fields[] = {
    TN_F64_FIELD(tn_layer_norm_attrs, eps, 1e-5, "added to the variance"),
    AXIS(tn_layer_norm_attrs, "axis of the rows"),
};
const tn_primitive nn_layer_norm = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.layer_norm/1",
    .doc = "Rows minus their mean, over their standard deviation, times weight plus bias.",
    TN_INPUTS(layer_norm_inputs),
    .attrs = TN_ATTR_TABLE(tn_layer_norm_attrs, layer_norm_fields),
    .expr = "d = x - mean(x); d * rsqrt(mean(d * d) + eps) * weight + bias",
    .vjp = layer_norm_vjp,
};

static const tn_attr_field rms_norm_fields[] = {
    TN_F64_FIELD(tn_rms_norm_attrs, eps, 1e-5, "added to the mean of the squares"),
    AXIS(tn_rms_norm_attrs, "axis of the rows"),
};
const tn_primitive nn_rms_norm = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.rms_norm/1",
    .doc = "Rows over the root of the mean of their squares, times weight.",
    .inputs = layer_norm_inputs,
    .input_size = sizeof(layer_norm_inputs[0]),
    .num_inputs = 2,
    .attrs = TN_ATTR_TABLE(tn_rms_norm_attrs, rms_norm_fields),
    .expr = "x * rsqrt(mean(x * x) + eps) * weight",
};

// --- group_norm ------------------------------------------------------------------------

static const tn_input_info group_norm_inputs[] = {
    {"x", "samples along the first axis, channels along another", 0, TN_FLOAT_DTYPES},
    {"weight", "a factor for each channel", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
    {"bias", "what is added to each channel", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
};
static const tn_attr_field group_norm_fields[] = {
    TN_REQUIRED_FIELD(tn_group_norm_attrs, groups, TN_ATTR_I64,
                      "groups of equally many channels, a mean and variance each"),
    TN_F64_FIELD(tn_group_norm_attrs, eps, 1e-5, "added to the variance"),
    AXIS(tn_group_norm_attrs, "axis of the channels"),
};

static tn_status group_norm_infer(const tn_infer *infer, tn_type *types)
{
    static const char *const names[] = {"x", "weight", "bias"};
    const tn_host *host = infer->host;
    const tn_group_norm_attrs *attrs = infer->attrs;
    const tn_type *x = &infer->types[0];
    char text[SHAPE_TEXT];
    int32_t axis = tn_axis(attrs->axis, x->rank);
    if (axis < 1)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "axis is %" PRId64 " and x has shape %s, expected an axis of "
                          "channels behind that of samples",
                          attrs->axis, shape_text(x, text));
    if (attrs->groups < 1 || x->extent[axis] % attrs->groups != 0)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "groups is %" PRId64 ", expected a divisor of x's %" PRId64
                          " channels",
                          attrs->groups, x->extent[axis]);
    for (uint32_t i = 1; i < infer->num_inputs; i++) {
        if (!infer->types[i].dtype)
            continue;
        tn_status status =
            check_extents(host, names[i], &infer->types[i], 1, &x->extent[axis]);
        if (status)
            return status;
    }
    types[0] = *x;
    return TN_OK;
}

struct grouped {
    int64_t groups, each;        // channels of a group
    int64_t extent[4];           // samples, axes before channels, channels, axes behind
    int is_rows;                 // a group's elements are adjacent
    tn_array *x, *weight, *bias; // x in the dtype of computation; NULL: not given
};

static struct grouped grouped_of(const tn_build *build, const tn_rule *rule,
                                 const tn_type *type)
{
    const tn_group_norm_attrs *attrs = rule->attrs;
    int32_t axis = tn_axis(attrs->axis, type->rank);
    int64_t channels = type->extent[axis];
    tn_dtype dtype = tn_dtype_computed(type->dtype);
    tn_array *const *in = rule->inputs;
    struct grouped g = {.groups = attrs->groups,
                        .each = channels / attrs->groups,
                        .extent = {type->extent[0], 1, channels, 1},
                        .x = dtype == type->dtype ? in[0] : cast(build, in[0], dtype),
                        .weight = rule->num_inputs > 1 ? in[1] : NULL,
                        .bias = rule->num_inputs > 2 ? in[2] : NULL};
    for (int32_t i = 1; i < type->rank; i++)
        if (i != axis)
            g.extent[i < axis ? 1 : 3] *= type->extent[i];
    g.is_rows = g.extent[1] == 1;
    return g;
}

static tn_array *group_rows(const tn_build *build, const struct grouped *g)
{
    const int64_t rows[3] = {g->extent[0], g->groups, g->each * g->extent[3]};
    return with_shape(build, "base.reshape/1", g->x, 3, rows);
}

// `y` times the weight plus the bias, both broadcast from these extents.
static tn_array *nn_norm_scaled(const tn_build *build, const struct grouped *g, tn_array *y,
                                int32_t rank, const int64_t *channels)
{
    if (g->weight)
        y = build->expr(
            build, "y, w -> y * w",
            TN_IN(y, with_shape(build, "base.reshape/1", g->weight, rank, channels)),
            TN_NO_ATTRS);
    if (g->bias)
        y = build->expr(
            build, "y, b -> y + b",
            TN_IN(y, with_shape(build, "base.reshape/1", g->bias, rank, channels)),
            TN_NO_ATTRS);
    return y;
}

// Normalises groups that are rows, by one expression.
static tn_array *norm_of_rows(const tn_build *build, const struct grouped *g, double eps)
{
    const int64_t channels[2] = {g->groups, g->each};
    tn_array *y =
        build->expr(build, "x -> d = x - mean(x); d * rsqrt(mean(d * d) + eps)",
                    TN_IN(group_rows(build, g)), tn_attrs("eps", eps, "axis", (int64_t)-1));
    return nn_norm_scaled(build, g, y, 2, channels);
}

// Spreads a value of each group, [N, groups, 1], over its channels.
static tn_array *for_channels(const tn_build *build, const struct grouped *g,
                              const tn_array *of_group)
{
    const int64_t each[3] = {g->extent[0], g->groups, g->each};
    const int64_t column[4] = {g->extent[0], 1, g->extent[2], 1};
    return with_shape(build, "base.reshape/1",
                      with_shape(build, "base.broadcast_to/1", of_group, 3, each), 4,
                      column);
}

// The mean of each group of x, [N, groups, 1]: where groups are no rows, from the means of
// channels.
static tn_array *group_mean(const tn_build *build, const struct grouped *g, tn_array *x)
{
    const int64_t each[3] = {g->extent[0], g->groups, g->each};
    if (!g->is_rows)
        x = with_shape(
            build, "base.reshape/1",
            build->op(build, "base.mean/1", TN_IN(x), tn_attrs("axis", TN_INTS(1, 3))), 3,
            each);
    return build->op(build, "base.mean/1", TN_IN(x),
                     tn_attrs("axis", TN_INTS(-1), "keepdims", (int64_t)1));
}

// Normalises by the mean and variance of each group, read at each element. The scale is the
// operand before the mean: nothing else reads the mean before the variance is computed, so
// both are one step where groups are rows.
static tn_array *norm_by_parts(const tn_build *build, const struct grouped *g, double eps)
{
    const int64_t channels[2] = {g->extent[2], 1};
    tn_array *all = with_shape(build, "base.reshape/1", g->x, 4, g->extent);
    tn_array *x = g->is_rows ? group_rows(build, g) : all;
    tn_array *mean = group_mean(build, g, x),
             *mean_of_channel = for_channels(build, g, mean);
    tn_array *squares =
        build->expr(build, "x, m -> (x - m) * (x - m)",
                    TN_IN(x, g->is_rows ? mean : mean_of_channel), TN_NO_ATTRS);
    tn_array *scale =
        build->expr(build, "v -> rsqrt(v + eps)", TN_IN(group_mean(build, g, squares)),
                    tn_attrs("eps", eps));
    struct grouped rest = *g;
    if (g->weight && !g->is_rows) { // one factor for each channel, not two at each element
        const int64_t each[2] = {g->groups, g->each};
        scale = build->expr(
            build, "s, w -> s * w",
            TN_IN(scale, with_shape(build, "base.reshape/1", g->weight, 2, each)),
            TN_NO_ATTRS);
        rest.weight = NULL;
    }
    tn_array *y = build->expr(build, "x, s, m -> (x - m) * s",
                              TN_IN(all, for_channels(build, g, scale), mean_of_channel),
                              TN_NO_ATTRS);
    return nn_norm_scaled(build, &rest, y, 2, channels);
}

static tn_status group_norm_decompose(const tn_build *build, const tn_rule *rule,
                                      tn_array **outputs)
{
    const tn_group_norm_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(rule->inputs[0]);
    if (!type)
        return TN_ERR_ARGUMENT;
    const tn_type out = *type;
    struct grouped g = grouped_of(build, rule, &out);
    int is_one = g.is_rows && (g.extent[3] == 1 || (!g.weight && !g.bias));
    tn_array *y =
        is_one ? norm_of_rows(build, &g, attrs->eps) : norm_by_parts(build, &g, attrs->eps);
    if (dtype_of(build, y) != out.dtype)
        y = cast(build, y, out.dtype);
    outputs[0] = with_shape(build, "base.reshape/1", y, out.rank, out.extent);
    return built(outputs[0]);
}

// The sum of each channel of each sample, N, C.
static tn_array *channel_sums(const tn_build *build, tn_array *x)
{
    return build->op(build, "base.sum/1", TN_IN(x), tn_attrs("axis", TN_INTS(1, 3)));
}

// Means of `of_channel`, [N, C], over each group's elements: [N, groups, 1].
static tn_array *group_shares(const tn_build *build, const struct grouped *g,
                              tn_array *of_channel)
{
    const int64_t each[3] = {g->extent[0], g->groups, g->each};
    const double count = (double)(g->each * g->extent[1] * g->extent[3]);
    if (g->weight)
        of_channel =
            build->expr(build, "x, w -> x * w", TN_IN(of_channel, g->weight), TN_NO_ATTRS);
    tn_array *sum =
        build->op(build, "base.sum/1",
                  TN_IN(with_shape(build, "base.reshape/1", of_channel, 3, each)),
                  tn_attrs("axis", TN_INTS(-1), "keepdims", (int64_t)1));
    return build->expr(build, "s -> s / n", TN_IN(sum), tn_attrs("n", count));
}

// The gradient of the weight or the bias: sums the samples' own.
static tn_array *over_samples(const tn_build *build, tn_array *of_channel, tn_dtype dtype)
{
    tn_array *sum =
        build->op(build, "base.sum/1", TN_IN(of_channel), tn_attrs("axis", TN_INTS(0)));
    return dtype_of(build, sum) == dtype ? sum : cast(build, sum, dtype);
}

// x's gradient. With d = x - mean and r = rsqrt(variance + eps) of a group: r * (w * g -
// mean(w * g) - d * r * r * mean(w * g * d)).
static tn_array *group_norm_input(const tn_build *build, const struct grouped *g,
                                  tn_array *all, tn_array *cotangent, tn_array *mean,
                                  tn_array *scale, tn_array *const sums[2])
{
    const int64_t channels[2] = {g->extent[2], 1};
    tn_array *factor = for_channels(build, g, scale);
    if (g->weight)
        factor = build->expr(
            build, "r, w -> r * w",
            TN_IN(factor, with_shape(build, "base.reshape/1", g->weight, 2, channels)),
            TN_NO_ATTRS);
    tn_array *less = build->expr(
        build, "r, s -> r * s", TN_IN(scale, group_shares(build, g, sums[0])), TN_NO_ATTRS);
    tn_array *slope =
        build->expr(build, "r, s -> r * r * r * s",
                    TN_IN(scale, group_shares(build, g, sums[1])), TN_NO_ATTRS);
    return build->expr(build, "g, x, m, f, l, s -> f * g - l - (x - m) * s",
                       TN_IN(cotangent, all, mean, factor, for_channels(build, g, less),
                             for_channels(build, g, slope)),
                       TN_NO_ATTRS);
}

static tn_status group_norm_vjp(const tn_build *build, const tn_rule *rule,
                                tn_array *const *cotangents, const uint64_t *wanted,
                                tn_array **gradients)
{
    const tn_group_norm_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(rule->inputs[0]);
    if (!type)
        return TN_ERR_ARGUMENT;
    const tn_type out = *type;
    struct grouped g = grouped_of(build, rule, &out);
    tn_dtype wide = tn_dtype_computed(out.dtype);
    tn_array *of_weight = g.weight, *of_bias = g.bias, *cotangent = cotangents[0];
    if (wide != out.dtype)
        cotangent = cast(build, cotangent, wide);
    if (g.weight && dtype_of(build, g.weight) != wide)
        g.weight = cast(build, g.weight, wide);
    tn_array *all = with_shape(build, "base.reshape/1", g.x, 4, g.extent);
    tn_array *x = g.is_rows ? group_rows(build, &g) : all;
    tn_array *mean = group_mean(build, &g, x), *means = for_channels(build, &g, mean);
    tn_array *squares = build->expr(build, "x, m -> (x - m) * (x - m)",
                                    TN_IN(x, g.is_rows ? mean : means), TN_NO_ATTRS);
    tn_array *scale =
        build->expr(build, "v -> rsqrt(v + eps)", TN_IN(group_mean(build, &g, squares)),
                    tn_attrs("eps", attrs->eps));
    cotangent = with_shape(build, "base.reshape/1", cotangent, 4, g.extent);
    tn_array *sums[2] = {
        channel_sums(build, cotangent),
        channel_sums(build, build->expr(build, "g, x, m -> g * (x - m)",
                                        TN_IN(cotangent, all, means), TN_NO_ATTRS))};
    if (wants(wanted, 0)) {
        tn_array *of_x = group_norm_input(build, &g, all, cotangent, means, scale, sums);
        if (wide != out.dtype)
            of_x = cast(build, of_x, out.dtype);
        gradients[0] = with_shape(build, "base.reshape/1", of_x, out.rank, out.extent);
    }
    const int64_t each[3] = {g.extent[0], g.groups, g.each},
                  flat[2] = {each[0], g.extent[2]};
    if (of_weight && wants(wanted, 1)) {
        tn_array *scaled_sums =
            build->expr(build, "s, r -> s * r",
                        TN_IN(with_shape(build, "base.reshape/1", sums[1], 3, each), scale),
                        TN_NO_ATTRS);
        gradients[1] =
            over_samples(build, with_shape(build, "base.reshape/1", scaled_sums, 2, flat),
                         dtype_of(build, of_weight));
    }
    if (of_bias && wants(wanted, 2))
        gradients[2] = over_samples(build, sums[0], dtype_of(build, of_bias));
    return built_wanted(wanted, gradients, rule->num_inputs < 3 ? rule->num_inputs : 3);
}

const tn_primitive nn_group_norm = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.group_norm/1",
    .doc =
        "Groups of channels minus their mean, over their standard deviation, times weight "
        "plus bias.",
    TN_INPUTS(group_norm_inputs),
    .attrs = TN_ATTR_TABLE(tn_group_norm_attrs, group_norm_fields),
    .infer = group_norm_infer,
    .decompose = group_norm_decompose,
    .vjp = group_norm_vjp,
};
