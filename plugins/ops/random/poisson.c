// SPDX-License-Identifier: MIT
// The Poisson distribution. Means below 10: Knuth's products of uniform numbers, as sums of
// their logarithms; others: transformed rejection (Hoermann 1993, "The transformed
// rejection method for generating Poisson random variables").
#include "pack.h"

typedef struct {
    tn_ints shape;
    int64_t dtype, layout;
} poisson_attrs;

static const tn_input_info poisson_inputs[] = {
    KEY_INPUT,
    {"lam", "the mean, at least 0", TN_INPUT_CONSTANT, 0},
};
static const tn_attr_field poisson_fields[] = {
    SHAPE_FIELD(poisson_attrs),
    TN_DTYPE_FIELD(poisson_attrs, dtype, 0, "an integer or float dtype; not given: i64"),
    LAYOUT_FIELD(poisson_attrs),
};

// One more factor. Carried: which elements go on, the key, the sum of logarithms, the
// count. A constant: lam.
static tn_status next_factor(const tn_build *build, tn_array *const *inputs,
                             uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                             void *user)
{
    const struct drawn *s = user;
    (void)num_inputs, (void)num_outputs;
    tn_array *left = inputs[0], *key = inputs[1], *count = inputs[3];
    tn_array *u =
        draw_numbers(build, "random.random/1", split_key(build, key, 2, 1, s->layout),
                     &s->shape, s->dtype, s->layout);
    outputs[1] = split_key(build, key, 2, 0, s->layout);
    outputs[2] =
        build->expr(build, "sum, u -> sum + log1p(-u)", TN_IN(inputs[2], u), TN_NO_ATTRS);
    outputs[0] = build->expr(build, "left, sum, lam -> left & sum > -lam",
                             TN_IN(left, outputs[2], inputs[4]), TN_NO_ATTRS);
    outputs[3] = build->expr(build, "left, n -> left ? n + 1 : n", TN_IN(outputs[0], count),
                             TN_NO_ATTRS);
    return built(outputs[1]) || built(outputs[3]) ? TN_ERR_ARGUMENT : TN_OK;
}

// One more try. Carried: which elements are left, the key, the count. Constants: lam and
// its logarithm.
static tn_status next_try(const tn_build *build, tn_array *const *inputs,
                          uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                          void *user)
{
    const struct drawn *s = user;
    (void)num_inputs, (void)num_outputs;
    tn_array *left = inputs[0], *key = inputs[1], *lam = inputs[3];
    tn_array *uniform[2];
    for (int64_t i = 0; i < 2; i++)
        uniform[i] = draw_numbers(build, "random.random/1",
                                  split_key(build, key, 3, i + 1, s->layout), &s->shape,
                                  s->dtype, s->layout);
    tn_array *k =
        build->expr(build,
                    "w, lam -> b = 0.931 + 2.53 * sqrt(lam); a = -0.059 + 0.02483 * b; "
                    "u = w - 0.5; floor((2 * a / (0.5 - abs(u)) + b) * u + lam + 0.43)",
                    TN_IN(uniform[0], lam), TN_NO_ATTRS);
    tn_array *factorial =
        build->op(build, "base.lgamma/1",
                  TN_IN(build->expr(build, "k -> max(k, 0) + 1", TN_IN(k), TN_NO_ATTRS)),
                  TN_NO_ATTRS);
    tn_array *takes = build->expr(
        build,
        "left, w, z, k, f, lam, log_lam -> "
        "b = 0.931 + 2.53 * sqrt(lam); a = -0.059 + 0.02483 * b; v = 1 - z; "
        "r = 0.5 - abs(w - 0.5); "
        "quick = r >= 0.07 & v <= 0.9277 - 3.6224 / (b - 2); "
        "out = k < 0 | r < 0.013 & v > r; "
        "s = log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (r * r) + b)); "
        "left & (quick | !out & s <= k * log_lam - lam - f)",
        TN_IN(left, uniform[0], uniform[1], k, factorial, lam, inputs[4]), TN_NO_ATTRS);
    outputs[0] =
        build->expr(build, "left, takes -> left & !takes", TN_IN(left, takes), TN_NO_ATTRS);
    outputs[1] = split_key(build, key, 3, 0, s->layout);
    outputs[2] = build->expr(build, "takes, k, n -> takes ? k : n",
                             TN_IN(takes, k, inputs[2]), TN_NO_ATTRS);
    return built(outputs[0]) || built(outputs[1]) ? TN_ERR_ARGUMENT : built(outputs[2]);
}

static tn_array *poisson_counts(const tn_build *build, const struct drawn *s, tn_array *lam)
{
    tn_array *zero = build->op(build, "base.full/1", NULL, 0,
                               tn_attrs("shape", &s->shape, "dtype", (int64_t)s->dtype));
    tn_array *few[4] = {NULL}, *many[3] = {NULL};
    tn_array *low = build->expr(build, "l -> l < 10 ? l : 0", TN_IN(lam), TN_NO_ATTRS);
    tn_array *high =
        build->expr(build, "l -> l >= 10 & l < inf ? l : 10", TN_IN(lam), TN_NO_ATTRS);
    tn_array *factors[] = {
        build->expr(build, "l -> l > 0 & l < 10", TN_IN(lam), TN_NO_ATTRS),
        split_key(build, s->key, 2, 0, s->layout), zero, zero, low};
    tn_array *tries[] = {
        build->expr(build, "l -> l >= 10 & l < inf", TN_IN(lam), TN_NO_ATTRS),
        split_key(build, s->key, 2, 1, s->layout), zero, high,
        build->expr(build, "l -> log(l)", TN_IN(high), TN_NO_ATTRS)};
    if (loop_while_any(build, next_factor, (void *)s, factors, 4, 5, few) ||
        loop_while_any(build, next_try, (void *)s, tries, 3, 5, many))
        return NULL;
    return build->expr(build, "l, few, many -> l < 10 ? few : many",
                       TN_IN(lam, few[3], many[2]), TN_NO_ATTRS);
}

DECOMPOSE(poisson)
{
    const poisson_attrs *attrs = rule->attrs;
    tn_random_bits_attrs common = {.shape = attrs->shape, .layout = attrs->layout};
    tn_dtype dtype = attrs->dtype ? (tn_dtype)attrs->dtype : TN_I64;
    struct drawn s;
    if (!tn_dtype_in(dtype, TN_INTEGER_DTYPES | TN_FLOAT_DTYPES))
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "dtype is %s, expected an integer or float dtype",
                                 tn_dtype_name(dtype));
    tn_status status = read_sample(build, rule, &common, 1, &s);
    if (status)
        return status;
    s.dtype = tn_dtype_computed(s.dtype);
    tn_array *still = build->op(build, "base.stop_gradient/1",
                                TN_IN(random_cast(build, s.in[0], s.dtype)), TN_NO_ATTRS);
    tn_array *lam = random_with_shape(build, "base.broadcast_to/1", still, &s.shape);
    outputs[0] = random_cast(build, poisson_counts(build, &s, lam), dtype);
    return built(outputs[0]);
}

COMPOSITE(poisson, "Random counts of the Poisson distribution.", TN_INPUTS(poisson_inputs),
          .attrs = TN_ATTR_TABLE(poisson_attrs, poisson_fields));
