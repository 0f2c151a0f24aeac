// SPDX-License-Identifier: MIT
// The gamma distribution by the method of Marsaglia and Tsang (2000, "A simple method for
// generating gamma variables"): numbers are drawn until every element has taken one. What
// is made of gamma numbers, beta and dirichlet, is made of their logarithms, which do not
// vanish for small shapes.
#include "pack.h"

// --- loops ------------------------------------------------------------------------------

static tn_status any_left(const tn_build *build, tn_array *const *inputs,
                          uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                          void *user)
{
    (void)num_inputs, (void)num_outputs, (void)user;
    outputs[0] = build->op(build, "base.any/1", TN_IN(inputs[0]), TN_NO_ATTRS);
    return built(outputs[0]);
}

#define MOST_VALUES 8

tn_status loop_while_any(const tn_build *build, tn_build_body body, void *user,
                         tn_array *const *inputs, uint64_t num_carried, uint64_t num_inputs,
                         tn_array **outputs)
{
    tn_type types[MOST_VALUES];
    for (uint64_t i = 0; i < num_inputs; i++) {
        const tn_type *type = build->type(inputs[i]);
        if (!type)
            return TN_ERR_ARGUMENT;
        types[i] = *type;
    }
    const tn_graph *more = build->trace(build, any_left, NULL, types, num_inputs, 1, NULL);
    const tn_graph *next =
        build->trace(build, body, user, types, num_inputs, num_carried, NULL);
    if (!more || !next)
        return TN_ERR_ARGUMENT;
    return build->op_n(build, "base.while_loop/1", (const tn_array *const *)inputs,
                       num_inputs, tn_attrs("cond", more, "body", next), outputs,
                       num_carried);
}

// --- gamma ------------------------------------------------------------------------------

// With d = a - 1/3 and a normal number x, d v = d (1 + x / sqrt(9 d))^3 is a gamma number
// where log(u) < x^2 / 2 + d - d v + d log(v): at least 95 of 100 times for a >= 1.
// Carried: which elements are left, the key, log(v). A constant: d.
static tn_status next_gamma(const tn_build *build, tn_array *const *inputs,
                            uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                            void *user)
{
    const struct drawn *s = user;
    (void)num_inputs, (void)num_outputs;
    tn_array *left = inputs[0], *key = inputs[1], *log_v = inputs[2], *d = inputs[3];
    tn_array *x = draw_numbers(build, "random.standard_normal/1",
                               split_key(build, key, 3, 1, s->layout), &s->shape, s->dtype,
                               s->layout);
    tn_array *u =
        draw_numbers(build, "random.random/1", split_key(build, key, 3, 2, s->layout),
                     &s->shape, s->dtype, s->layout);
    tn_array *root =
        build->expr(build, "x, d -> 1 + x * (1 / 3) * rsqrt(d)", TN_IN(x, d), TN_NO_ATTRS);
    tn_array *takes = build->expr(
        build,
        "left, x, u, t, d -> left & t > 0 & "
        "log1p(-u) < 0.5 * x * x + d - d * (t * t * t) + 3 * d * log(t > 0 ? t : 1)",
        TN_IN(left, x, u, root, d), TN_NO_ATTRS);
    outputs[0] =
        build->expr(build, "left, takes -> left & !takes", TN_IN(left, takes), TN_NO_ATTRS);
    outputs[1] = split_key(build, key, 3, 0, s->layout);
    outputs[2] = build->expr(build, "takes, t, v -> takes ? 3 * log(takes ? t : 1) : v",
                             TN_IN(takes, root, log_v), TN_NO_ATTRS);
    return built(outputs[0]) || built(outputs[1]) ? TN_ERR_ARGUMENT : built(outputs[2]);
}

tn_array *log_gamma_numbers(const tn_build *build, const struct drawn *s, tn_array *key,
                            tn_array *a)
{
    // Below 1 a number of a + 1 is multiplied by u^(1 / a). Of NaN, and of shapes not above
    // 0, nothing would ever be taken: these elements are NaN.
    tn_array *d = build->expr(build, "a -> (a > 0 ? (a < 1 ? a + 1 : a) : 1) - 1 / 3",
                              TN_IN(a), TN_NO_ATTRS);
    tn_array *left = build->expr(build, "a -> a > 0 & a < inf", TN_IN(a), TN_NO_ATTRS);
    tn_array *zero = build->op(build, "base.full/1", NULL, 0,
                               tn_attrs("shape", &s->shape, "dtype", (int64_t)s->dtype));
    tn_array *carried[] = {left, split_key(build, key, 2, 0, s->layout), zero, d};
    tn_array *results[3] = {NULL};
    if (loop_while_any(build, next_gamma, (void *)s, carried, 3, 4, results))
        return NULL;
    tn_array *u =
        draw_numbers(build, "random.random/1", split_key(build, key, 2, 1, s->layout),
                     &s->shape, s->dtype, s->layout);
    return build->expr(
        build, "v, d, a, u -> a > 0 ? log(d) + v + (a < 1 ? log1p(-u) / a : 0) : nan",
        TN_IN(results[2], d, a, u), TN_NO_ATTRS);
}

static const tn_input_info gamma_inputs[] = {
    KEY_INPUT,
    {"a", "the shape, above 0", TN_INPUT_CONSTANT, 0},
    {"scale", "what numbers are multiplied by; not given: 1", TN_INPUT_OPTIONAL, 0},
};
static const tn_input_info beta_inputs[] = {
    KEY_INPUT,
    {"a", "the first shape, above 0", TN_INPUT_CONSTANT, 0},
    {"b", "the second shape, above 0", TN_INPUT_CONSTANT, 0},
};
static const tn_input_info dirichlet_inputs[] = {
    KEY_INPUT,
    {"alpha", "the shapes along the last axis, above 0", TN_INPUT_CONSTANT, 0},
};
static const tn_attr_field sample_fields[] = {
    SHAPE_FIELD(tn_random_bits_attrs),
    FLOAT_FIELD(tn_random_bits_attrs),
    LAYOUT_FIELD(tn_random_bits_attrs),
};
#define SAMPLE(inputs)                                                                     \
    TN_INPUTS(inputs), .attrs = TN_ATTR_TABLE(tn_random_bits_attrs, sample_fields)

// Half floats are computed in f32 and rounded at the end: numbers near 1 would repeat.
static tn_dtype gamma_begin(const tn_build *build, struct drawn *s)
{
    tn_dtype dtype = s->dtype;
    s->dtype = tn_dtype_computed(dtype);
    for (int i = 0; i < 2; i++)
        if (s->in[i])
            s->in[i] = random_cast(build, s->in[i], s->dtype);
    return dtype;
}

// A parameter without a derivative, of the sample's extents.
static tn_array *parameter(const tn_build *build, const struct drawn *s, tn_array *a)
{
    tn_array *still = build->op(build, "base.stop_gradient/1", TN_IN(a), TN_NO_ATTRS);
    return random_with_shape(build, "base.broadcast_to/1", still, &s->shape);
}

DECOMPOSE(gamma)
{
    struct drawn s;
    tn_status status = read_sample(build, rule, rule->attrs, 1, &s);
    if (status)
        return status;
    tn_dtype dtype = gamma_begin(build, &s);
    tn_array *x = build->expr(
        build, "x -> exp(x)",
        TN_IN(log_gamma_numbers(build, &s, s.key, parameter(build, &s, s.in[0]))),
        TN_NO_ATTRS);
    if (s.in[1])
        x = build->expr(build, "x, s -> x * s", TN_IN(x, s.in[1]), TN_NO_ATTRS);
    outputs[0] = random_cast(build, x, dtype);
    return built(outputs[0]);
}

DECOMPOSE(beta)
{
    struct drawn s;
    tn_status status = read_sample(build, rule, rule->attrs, 1, &s);
    if (status)
        return status;
    tn_dtype dtype = gamma_begin(build, &s);
    tn_array *logs[2];
    for (int64_t i = 0; i < 2; i++)
        logs[i] = log_gamma_numbers(build, &s, split_key(build, s.key, 2, i, s.layout),
                                    parameter(build, &s, s.in[i]));
    tn_array *x = build->expr(build, "x, y -> 1 / (1 + exp(y - x))",
                              TN_IN(logs[0], logs[1]), TN_NO_ATTRS);
    outputs[0] = random_cast(build, x, dtype);
    return built(outputs[0]);
}

// The shape of the result is `shape`, or alpha's extents but the last, and that.
DECOMPOSE(dirichlet)
{
    const tn_host *host = build->host;
    const tn_type *alpha = build->type(rule->inputs[1]);
    tn_random_bits_attrs attrs = *(const tn_random_bits_attrs *)rule->attrs;
    struct drawn s;
    if (alpha->rank == 0)
        return host->fail(host, TN_ERR_ARGUMENT, "alpha has rank 0, expected at least 1");
    if (attrs.shape.given && attrs.shape.count == TN_MAX_RANK)
        return host->fail(host, TN_ERR_ARGUMENT, "shape has %u axes, expected at most %d",
                          attrs.shape.count, TN_MAX_RANK - 1);
    if (attrs.shape.given)
        attrs.shape.value[attrs.shape.count++] = alpha->extent[alpha->rank - 1];
    tn_status status = read_sample(build, rule, &attrs, 1, &s);
    if (status)
        return status;
    tn_dtype dtype = gamma_begin(build, &s);
    tn_array *x = build->expr(
        build, "x -> e = exp(x - max(x)); e / sum(e)",
        TN_IN(log_gamma_numbers(build, &s, s.key, parameter(build, &s, s.in[0]))),
        TN_NO_ATTRS);
    outputs[0] = random_cast(build, x, dtype);
    return built(outputs[0]);
}

COMPOSITE(gamma, "Random numbers of the gamma distribution.", SAMPLE(gamma_inputs));
COMPOSITE(beta, "Random numbers of the beta distribution.", SAMPLE(beta_inputs));
COMPOSITE(dirichlet, "Random vectors of the Dirichlet distribution: they sum to 1.",
          SAMPLE(dirichlet_inputs));
