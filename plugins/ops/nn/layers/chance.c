// SPDX-License-Identifier: MIT
// Random operators of training beside dropout: channels zeroed as a whole, dropout that
// keeps means and variances, random slopes and samples. Seeds are data.
#include "../pack.h"
#include <tenon/ops/rules.h>

typedef struct {
    double p;
    int64_t training, axis, seed;
} drop_attrs;
#define DROP_FIELDS(...)                                                                   \
    {                                                                                      \
        TN_F64_FIELD(drop_attrs, p, 0.5, "the share that is dropped"),                     \
            TN_BOOL_FIELD(drop_attrs, training, 1, "false: x as it is"),                   \
            __VA_ARGS__ TN_RUNTIME_I64_FIELD(drop_attrs, seed, 0, "which they are")        \
    }
#define CHANNEL_FIELD TN_I64_FIELD(drop_attrs, axis, -1, "of channels; PyTorch's is 1"),
static const tn_attr_field drop_fields[] = DROP_FIELDS();
static const tn_attr_field channel_fields[] = DROP_FIELDS(CHANNEL_FIELD);
static const tn_input_info chance_input[] = {{"x", "the array", 0, TN_FLOAT_DTYPES}};
static const tn_input_info channels_input[] = {
    {"x", "N, ..., C: samples of channels", 0, TN_FLOAT_DTYPES},
};

static tn_array *seed_of(const tn_rule *rule)
{
    return rule->inputs[rule->num_inputs - 1];
}

static tn_status check_share(const tn_host *host, double p)
{
    if (p >= 0 && p <= 1)
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT, "p is %g, expected 0 to 1", p);
}

// The extents of x with 1 for all axes but those of samples and of channels.
static tn_status channels_of(const tn_build *build, const tn_array *x, int64_t channels,
                             tn_ints *out)
{
    const tn_type *type = build->type(x);
    char text[SHAPE_TEXT];
    int32_t axis;
    if (type->rank < 2)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "x has shape %s, expected 2 axes or more",
                                 shape_text(type, text));
    tn_status status = axis_within(build->host, channels, type->rank, &axis);
    *out = tn_extents(build, x);
    for (int32_t i = 1; i < type->rank && status == TN_OK; i++)
        if (i != axis)
            out->value[i] = 1;
    return status;
}

// Drops elements of x by chance, one chance for each element of `shape`, and scales the
// rest.
static tn_array *chance_dropped(const tn_build *build, const tn_rule *rule,
                                const tn_ints *shape)
{
    const drop_attrs *attrs = rule->attrs;
    if (!attrs->training || attrs->p == 0)
        return rule->inputs[0];
    if (attrs->p == 1)
        return build->expr(build, "x -> select(true, 0, x)", TN_IN(rule->inputs[0]),
                           TN_NO_ATTRS);
    return build->expr(
        build, "x, b -> select(b >= u32(least), x * scale, 0)",
        TN_IN(rule->inputs[0], words_of_seed(build, seed_of(rule), shape)),
        tn_attrs("least", floor(attrs->p * 4294967296.0), "scale", 1 / (1 - attrs->p)));
}

// Sets dropped elements to selu's limit, and scales and shifts all of them so that mean 0
// and variance 1 are kept.
static tn_array *dropped_to_limit(const tn_build *build, const tn_rule *rule,
                                  const tn_ints *shape)
{
    const drop_attrs *attrs = rule->attrs;
    const double limit = -1.7580993408473766, p = attrs->p;
    if (!attrs->training || p == 0)
        return rule->inputs[0];
    if (p == 1)
        return build->expr(build, "x -> select(true, 0, x)", TN_IN(rule->inputs[0]),
                           TN_NO_ATTRS);
    double a = 1 / sqrt((1 - p) * (1 + p * limit * limit));
    return build->expr(build, "x, b -> select(b >= u32(least), x, limit) * a + c",
                       TN_IN(rule->inputs[0], words_of_seed(build, seed_of(rule), shape)),
                       tn_attrs("least", floor(p * 4294967296.0), "limit", limit, "a", a,
                                "c", -a * limit * p));
}

static tn_status drop_channels(const tn_build *build, const tn_rule *rule, int32_t rank,
                               const char *axes, tn_array **outputs)
{
    const drop_attrs *attrs = rule->attrs;
    tn_ints shape = {0};
    tn_status status = check_share(build->host, attrs->p);
    if (status == TN_OK && rank)
        status = check_rank(build->host, "x", build->type(rule->inputs[0]), rank, axes);
    if (status == TN_OK)
        status = channels_of(build, rule->inputs[0], attrs->axis, &shape);
    if (status)
        return status;
    outputs[0] =
        rank ? chance_dropped(build, rule, &shape) : dropped_to_limit(build, rule, &shape);
    return built(outputs[0]);
}

DECOMPOSE(dropout1d)
{
    return drop_channels(build, rule, 3, "N, L, C", outputs);
}
DECOMPOSE(dropout2d)
{
    return drop_channels(build, rule, 4, "N, H, W, C", outputs);
}
DECOMPOSE(dropout3d)
{
    return drop_channels(build, rule, 5, "N, D, H, W, C", outputs);
}
DECOMPOSE(feature_alpha_dropout)
{
    return drop_channels(build, rule, 0, NULL, outputs);
}
DECOMPOSE(alpha_dropout)
{
    const drop_attrs *attrs = rule->attrs;
    const tn_ints shape = tn_extents(build, rule->inputs[0]);
    tn_status status = check_share(build->host, attrs->p);
    if (status)
        return status;
    outputs[0] = dropped_to_limit(build, rule, &shape);
    return built(outputs[0]);
}

#define DROP_CHANNELS(name)                                                                \
    COMPOSITE(name, #name "/1", "x with a share of its channels 0, the others scaled up.", \
              TN_INPUTS(channels_input),                                                   \
              .attrs = TN_ATTR_TABLE(drop_attrs, channel_fields))
DROP_CHANNELS(dropout1d);
DROP_CHANNELS(dropout2d);
DROP_CHANNELS(dropout3d);
COMPOSITE(alpha_dropout, "alpha_dropout/1",
          "dropout for selu, which keeps means of 0 and variances of 1.",
          TN_INPUTS(chance_input), .attrs = TN_ATTR_TABLE(drop_attrs, drop_fields));
COMPOSITE(feature_alpha_dropout, "feature_alpha_dropout/1",
          "alpha_dropout of whole channels.", TN_INPUTS(channels_input),
          .attrs = TN_ATTR_TABLE(drop_attrs, channel_fields));

// --- rrelu ------------------------------------------------------------------------------

typedef struct {
    double lower, upper;
    int64_t training, seed;
} rrelu_attrs;
static const tn_attr_field rrelu_fields[] = {
    TN_F64_FIELD(rrelu_attrs, lower, 0.125, "the least slope"),
    TN_F64_FIELD(rrelu_attrs, upper, 1.0 / 3, "the greatest slope"),
    TN_BOOL_FIELD(rrelu_attrs, training, 0, "slopes by chance; false: their mean"),
    TN_RUNTIME_I64_FIELD(rrelu_attrs, seed, 0, "which slopes they are"),
};

// Random numbers in (0, 1), in x's dtype of computation.
static tn_array *chance_shares(const tn_build *build, const tn_rule *rule, tn_dtype wide)
{
    const tn_ints shape = tn_extents(build, rule->inputs[0]);
    tn_array *words = words_of_seed(build, seed_of(rule), &shape);
    return build->expr(build,
                       wide == TN_F64 ? "b -> (f64(b >> 9) + 0.5) / 8388608"
                                      : "b -> (f32(b >> 9) + 0.5) / 8388608",
                       TN_IN(words), TN_NO_ATTRS);
}

DECOMPOSE(rrelu)
{
    const rrelu_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    tn_dtype dtype = dtype_of(build, x);
    if (!(attrs->lower <= attrs->upper))
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "lower is %g and upper %g, expected lower to be no more",
                                 attrs->lower, attrs->upper);
    if (!attrs->training) {
        outputs[0] =
            build->op(build, "nn.leaky_relu/1", TN_IN(x),
                      tn_attrs("negative_slope", (attrs->lower + attrs->upper) / 2));
        return built(outputs[0]);
    }
    tn_array *slopes =
        build->expr(build, "u -> low + u * span",
                    TN_IN(chance_shares(build, rule, tn_dtype_computed(dtype))),
                    tn_attrs("low", attrs->lower, "span", attrs->upper - attrs->lower));
    outputs[0] = build->expr(
        build, "x, s -> x >= 0 ? x : s * x",
        TN_IN(x, dtype == dtype_of(build, slopes) ? slopes : cast(build, slopes, dtype)),
        TN_NO_ATTRS);
    return built(outputs[0]);
}
COMPOSITE(rrelu, "rrelu/1", "x, where it is negative times a slope by chance.",
          TN_INPUTS(chance_input), .attrs = TN_ATTR_TABLE(rrelu_attrs, rrelu_fields));

// --- gumbel_softmax ---------------------------------------------------------------------

typedef struct {
    double tau;
    int64_t hard, axis, seed;
} gumbel_attrs;
static const tn_attr_field gumbel_fields[] = {
    TN_F64_FIELD(gumbel_attrs, tau, 1, "temperature: less is nearer to one class"),
    TN_BOOL_FIELD(gumbel_attrs, hard, 0, "one class, with the slopes of the soft result"),
    TN_I64_FIELD(gumbel_attrs, axis, -1, "of classes"),
    TN_RUNTIME_I64_FIELD(gumbel_attrs, seed, 0, "which sample it is"),
};
static const tn_input_info gumbel_input[] = {
    {"logits", "unnormalised log-probabilities", 0, TN_FLOAT_DTYPES},
};

DECOMPOSE(gumbel_softmax)
{
    const gumbel_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    const tn_type *type = build->type(x);
    tn_dtype dtype = type->dtype, wide = tn_dtype_computed(dtype);
    int32_t axis;
    tn_status status = axis_within(build->host, attrs->axis, type->rank, &axis);
    if (status)
        return status;
    if (!(attrs->tau > 0))
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "tau is %g, expected more than 0", attrs->tau);
    int64_t classes = type->extent[axis];
    if (wide != dtype)
        x = cast(build, x, wide);
    x = build->expr(build, "x, u -> (x - log(-log(u))) / tau",
                    TN_IN(x, chance_shares(build, rule, wide)),
                    tn_attrs("tau", attrs->tau));
    tn_array *soft =
        build->op(build, "nn.softmax/1", TN_IN(x), tn_attrs("axis", (int64_t)axis));
    if (attrs->hard && classes > 0) {
        tn_array *best = build->op(build, "base.argmax/1", TN_IN(x),
                                   tn_attrs("axis", (int64_t)axis, "keepdims", (int64_t)1));
        tn_array *rest = build->expr(
            build, "s, b, i -> (b == i ? 1 : 0) - s",
            TN_IN(soft, best, counted(build, classes, type->rank - 1 - axis)), TN_NO_ATTRS);
        rest = build->op(build, "base.stop_gradient/1", TN_IN(rest), TN_NO_ATTRS);
        soft = build->expr(build, "r, s -> r + s", TN_IN(rest, soft), TN_NO_ATTRS);
    }
    outputs[0] = wide != dtype ? cast(build, soft, dtype) : soft;
    return built(outputs[0]);
}
COMPOSITE(gumbel_softmax, "gumbel_softmax/1",
          "softmax of logits with noise: a sample of classes that has slopes.",
          TN_INPUTS(gumbel_input), .attrs = TN_ATTR_TABLE(gumbel_attrs, gumbel_fields));
