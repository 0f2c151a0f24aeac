// SPDX-License-Identifier: MIT
// The gamma distribution by the method of Marsaglia and Tsang (2000, "A simple method for
// generating gamma variables"): draws numbers until every element has accepted one. The
// first tries are unrolled so that few arrays need the loop, which waits for its device.
// beta and dirichlet are made from the logarithms of gamma numbers, which do not underflow
// for small shapes.
#include "pack.h"

// --- loops ------------------------------------------------------------------------------

static tn_status any_left(const tn_build *build, tn_array *const *inputs,
                          uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                          void *user)
{
    (void)num_inputs, (void)num_outputs;
    tn_array *left = build->expr(build, user, TN_IN(inputs[0]), TN_NO_ATTRS);
    outputs[0] = build->op(build, "base.any/1", TN_IN(left), TN_NO_ATTRS);
    return built(outputs[0]);
}

#define MOST_VALUES 8

tn_status loop_while_any(const tn_build *build, const char *is_left, tn_build_body body,
                         void *user, tn_array *const *inputs, uint64_t num_carried,
                         uint64_t num_inputs, tn_array **outputs)
{
    tn_type types[MOST_VALUES];
    for (uint64_t i = 0; i < num_inputs; i++) {
        const tn_type *type = build->type(inputs[i]);
        if (!type)
            return TN_ERR_ARGUMENT;
        types[i] = *type;
    }
    const tn_graph *more =
        build->trace(build, any_left, (void *)is_left, types, num_inputs, 1, NULL);
    const tn_graph *next =
        build->trace(build, body, user, types, num_inputs, num_carried, NULL);
    if (!more || !next)
        return TN_ERR_ARGUMENT;
    return build->op_n(build, "base.while_loop/1", (const tn_array *const *)inputs,
                       num_inputs, tn_attrs("cond", more, "body", next), outputs,
                       num_carried);
}

// --- gamma ------------------------------------------------------------------------------

// With d = a - 1/3, a normal number x and t = 1 + x / sqrt(9 d), d t^3 is a gamma number
// where log(u) < x^2 / 2 + d - d t^3 + d log(t^3): at least 95 times of 100 for a >= 1. An
// element holds its t, or 0 until a number is accepted. e = x / sqrt(2), and c = sqrt(2 /
// (9 d)). For negative t the logarithm is NaN, and the number is rejected.
#define TAKE                                                                               \
    "r = 1 + e * c; q = e * e + d * (1 - r * r * r + 3 * log(r)) - log_u; "                \
    "t > 0 ? t : f32(q > 0) * r"
// e and u from the two words of 64 bits.
#define TAKE_OF_BITS                                                                       \
    "t, w, d, c -> e = erfinv(max(f32(u32(w >> 32) >> 9) * 2.384185791015625e-7 + low, "   \
    "low)); log_u = log(1 - f32(u32(w) >> 9) * 1.1920928955078125e-7); " TAKE
#define TAKE_WIDE "t, x, u, d, c -> e = x * 0.7071067811865476; log_u = log1p(-u); " TAKE

static tn_array *split_row(const tn_build *build, tn_array *keys, int64_t row)
{
    const tn_ints two = {1, 1, {2}};
    return random_with_shape(
        build, "base.reshape/1",
        build->op(build, "base.slice/1", TN_IN(keys),
                  tn_attrs("start", TN_INTS(row), "stop", TN_INTS(row + 1))),
        &two);
}

static tn_array *next_gamma(const tn_build *build, const struct drawn *s, tn_array *key,
                            tn_array *t, tn_array *d, tn_array *c)
{
    if (s->dtype != TN_F64)
        return build->expr(
            build, TAKE_OF_BITS,
            TN_IN(t,
                  draw_numbers(build, "random.bits/1", key, &s->shape, TN_U64, s->layout),
                  d, c),
            tn_attrs("low", -below_one(s->dtype)));
    tn_array *x = draw_numbers(build, "random.standard_normal/1",
                               split_key(build, key, 2, 0, s->layout), &s->shape, s->dtype,
                               s->layout);
    tn_array *u =
        draw_numbers(build, "random.random/1", split_key(build, key, 2, 1, s->layout),
                     &s->shape, s->dtype, s->layout);
    return build->expr(build, TAKE_WIDE, TN_IN(t, x, u, d, c), TN_NO_ATTRS);
}

// The tries after which few arrays have an element left: a try leaves about 1 of 25.
static int64_t first_tries(const tn_ints *shape)
{
    double count = 1;
    for (uint32_t i = 0; i < shape->count; i++)
        count *= (double)shape->value[i];
    return (int64_t)fmax(1, ceil(log(fmax(1, count)) / log(25)));
}

// Carried: t of each element, and the key. Constants: d and c.
static tn_status draw_gammas(const tn_build *build, const struct drawn *s, int64_t tries,
                             tn_array *const *inputs, tn_array **outputs)
{
    tn_array *keys = build->op(build, "random.split/1", TN_IN(inputs[1]),
                               tn_attrs("num", tries + 1, "layout", s->layout));
    outputs[0] = inputs[0];
    for (int64_t i = 0; i < tries; i++)
        outputs[0] = next_gamma(build, s, split_row(build, keys, i), outputs[0], inputs[2],
                                inputs[3]);
    outputs[1] = split_row(build, keys, tries);
    return built(outputs[0]) ? TN_ERR_ARGUMENT : built(outputs[1]);
}

static tn_status next_gammas(const tn_build *build, tn_array *const *inputs,
                             uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                             void *user)
{
    (void)num_inputs, (void)num_outputs;
    return draw_gammas(build, user, 2, inputs, outputs);
}

tn_array *log_gamma_numbers(const tn_build *build, const struct drawn *s, tn_array *key,
                            tn_array *a)
{
    // For a below 1 a gamma number of a + 1 is multiplied by u^(1 / a). NaN and shapes not
    // above 0 would never be accepted: such elements are NaN.
    tn_array *d = build->expr(build, "a -> (a > 0 ? (a < 1 ? a + 1 : a) : 1) - 1 / 3",
                              TN_IN(a), TN_NO_ATTRS);
    tn_array *none =
        build->expr(build, "a -> a > 0 & a < inf ? 0 * a : 1", TN_IN(a), TN_NO_ATTRS);
    tn_array *c =
        build->expr(build, "d -> 0.4714045207910317 / sqrt(d)", TN_IN(d), TN_NO_ATTRS);
    tn_array *carried[] = {none, split_key(build, key, 2, 0, s->layout), d, c};
    tn_array *results[2] = {NULL};
    if (draw_gammas(build, s, first_tries(&s->shape), carried, results))
        return NULL;
    carried[0] = results[0];
    carried[1] = results[1];
    if (loop_while_any(build, "t -> t == 0", next_gammas, (void *)s, carried, 2, 4,
                       results))
        return NULL;
    tn_array *u =
        draw_numbers(build, "random.random/1", split_key(build, key, 2, 1, s->layout),
                     &s->shape, s->dtype, s->layout);
    return build->expr(
        build,
        "t, d, a, u -> a > 0 ? log(d) + 3 * log(t) + (a < 1 ? log1p(-u) / a : 0) : nan",
        TN_IN(results[0], d, a, u), TN_NO_ATTRS);
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

// Half floats are computed in f32 and rounded at the end, as numbers near 1 would repeat.
static tn_dtype gamma_begin(const tn_build *build, struct drawn *s)
{
    tn_dtype dtype = s->dtype;
    s->dtype = tn_dtype_computed(dtype);
    for (int i = 0; i < 2; i++)
        if (s->in[i])
            s->in[i] = random_cast(build, s->in[i], s->dtype);
    return dtype;
}

// A parameter without a derivative, broadcast to the sample's extents.
static tn_array *random_gamma_parameter(const tn_build *build, const struct drawn *s,
                                        tn_array *a)
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
    tn_array *x =
        build->expr(build, "x -> exp(x)",
                    TN_IN(log_gamma_numbers(build, &s, s.key,
                                            random_gamma_parameter(build, &s, s.in[0]))),
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
                                    random_gamma_parameter(build, &s, s.in[i]));
    tn_array *x = build->expr(build, "x, y -> 1 / (1 + exp(y - x))",
                              TN_IN(logs[0], logs[1]), TN_NO_ATTRS);
    outputs[0] = random_cast(build, x, dtype);
    return built(outputs[0]);
}

// The shape of the result is `shape` or alpha's extents without the last, then that one.
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
    tn_array *x =
        build->expr(build, "x -> e = exp(x - max(x)); e / sum(e)",
                    TN_IN(log_gamma_numbers(build, &s, s.key,
                                            random_gamma_parameter(build, &s, s.in[0]))),
                    TN_NO_ATTRS);
    outputs[0] = random_cast(build, x, dtype);
    return built(outputs[0]);
}

COMPOSITE(gamma, "Random numbers of the gamma distribution.", SAMPLE(gamma_inputs));
COMPOSITE(beta, "Random numbers of the beta distribution.", SAMPLE(beta_inputs));
COMPOSITE(dirichlet, "Random vectors of the Dirichlet distribution: they sum to 1.",
          SAMPLE(dirichlet_inputs));
