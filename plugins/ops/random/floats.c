// SPDX-License-Identifier: MIT
// Distributions that are a function of one uniform or normal number: the derivatives by
// their parameters are the function's.
#include "pack.h"

static const tn_attr_field sample_fields[] = {
    SHAPE_FIELD(tn_random_bits_attrs),
    FLOAT_FIELD(tn_random_bits_attrs),
    LAYOUT_FIELD(tn_random_bits_attrs),
};
#define SAMPLE(inputs)                                                                     \
    TN_INPUTS(inputs), .attrs = TN_ATTR_TABLE(tn_random_bits_attrs, sample_fields)

static const tn_input_info bounds[] = {
    KEY_INPUT,
    {"low", "the least number; not given: 0", TN_INPUT_OPTIONAL, 0},
    {"high", "where the numbers end; not given: 1", TN_INPUT_OPTIONAL, 0},
};
static const tn_input_info loc_and_scale[] = {
    KEY_INPUT,
    {"loc", "where the middle is; not given: 0", TN_INPUT_OPTIONAL, 0},
    {"scale", "what distances are multiplied by; not given: 1", TN_INPUT_OPTIONAL, 0},
};
static const tn_input_info cuts[] = {
    KEY_INPUT,
    {"lower", "below it is nothing", 0, 0},
    {"upper", "beyond it is nothing", 0, 0},
};
static const tn_input_info scale_alone[] = {
    KEY_INPUT,
    {"scale", "the mean; not given: 1", TN_INPUT_OPTIONAL, 0},
};

DECOMPOSE(uniform)
{
    struct drawn s;
    tn_status status = read_sample(build, rule, rule->attrs, 1, &s);
    if (status)
        return status;
    tn_array *low = s.in[0], *high = s.in[1], *x = draw_floats(build, &s);
    if (low && high)
        x = build->expr(build, "x, a, b -> x * (b - a) + a", TN_IN(x, low, high),
                        TN_NO_ATTRS);
    else if (low)
        x = build->expr(build, "x, a -> x * (1 - a) + a", TN_IN(x, low), TN_NO_ATTRS);
    else if (high)
        x = build->expr(build, "x, b -> x * b", TN_IN(x, high), TN_NO_ATTRS);
    outputs[0] = x;
    return built(x);
}

COMPOSITE(uniform, "Random numbers spread evenly from low to high.", SAMPLE(bounds));

// x * scale + loc, as far as these are given.
static tn_array *random_floats_scaled(const tn_build *build, const struct drawn *s,
                                      tn_array *x)
{
    tn_array *loc = s->in[0], *scale = s->in[1];
    if (loc && scale)
        return build->expr(build, "x, m, s -> x * s + m", TN_IN(x, loc, scale),
                           TN_NO_ATTRS);
    if (scale)
        return build->expr(build, "x, s -> x * s", TN_IN(x, scale), TN_NO_ATTRS);
    return loc ? build->expr(build, "x, m -> x + m", TN_IN(x, loc), TN_NO_ATTRS) : x;
}

DECOMPOSE(normal)
{
    struct drawn s;
    tn_status status = read_sample(build, rule, rule->attrs, 1, &s);
    if (status)
        return status;
    tn_array *x =
        draw_numbers(build, "random.standard_normal/1", s.key, &s.shape, s.dtype, s.layout);
    outputs[0] = random_floats_scaled(build, &s, x);
    return built(outputs[0]);
}

COMPOSITE(normal, "Random numbers of the normal distribution.", SAMPLE(loc_and_scale));

// Applies a function to numbers in [0, 1), and then loc and scale.
static tn_status floats_map(const tn_build *build, const tn_rule *rule, tn_array **outputs,
                            const char *text, bool open)
{
    struct drawn s;
    tn_status status = read_sample(build, rule, rule->attrs, 1, &s);
    if (status)
        return status;
    // Replaces 0, or -1 for functions of numbers in (-1, 1).
    double least = open ? -below_one(s.dtype) : least_normal(s.dtype);
    tn_array *x =
        build->expr(build, text, TN_IN(draw_floats(build, &s)), tn_attrs("least", least));
    outputs[0] = random_floats_scaled(build, &s, x);
    return built(outputs[0]);
}

DECOMPOSE(gumbel)
{
    return floats_map(build, rule, outputs, "x -> -log(-log(max(x, least)))", false);
}

DECOMPOSE(laplace)
{
    return floats_map(build, rule, outputs,
                      "x -> u = max(x * 2 + least, least); sign(u) * log1p(-abs(u))", true);
}

COMPOSITE(gumbel, "Random numbers of the Gumbel distribution.", SAMPLE(loc_and_scale));
COMPOSITE(laplace, "Random numbers of the Laplace distribution.", SAMPLE(loc_and_scale));

DECOMPOSE(exponential)
{
    struct drawn s;
    tn_status status = read_sample(build, rule, rule->attrs, 1, &s);
    if (status)
        return status;
    tn_array *x = draw_floats(build, &s), *scale = s.in[0];
    // In layout counters 1 - x is exact: x has as many fraction bits as a mantissa.
    bool exact = s.layout == TN_RANDOM_COUNTERS;
    x = build->expr(build, exact ? "x -> -log(1 - x)" : "x -> -log1p(-x)", TN_IN(x),
                    TN_NO_ATTRS);
    outputs[0] =
        scale ? build->expr(build, "x, s -> x * s", TN_IN(x, scale), TN_NO_ATTRS) : x;
    return built(outputs[0]);
}

COMPOSITE(exponential, "Random numbers of the exponential distribution.",
          SAMPLE(scale_alone));

// --- truncated_normal -------------------------------------------------------------------

// The number next to `x` in the direction of `sign`; x itself in layout halves.
static tn_array *cut_within(const tn_build *build, const struct drawn *s, tn_array *x,
                            double sign)
{
    tn_array *bound = build->op(build, "base.stop_gradient/1", TN_IN(x), TN_NO_ATTRS);
    if (s->layout == TN_RANDOM_HALVES)
        return bound;
    return build->op(build, "base.nextafter/1",
                     TN_IN(bound, build->scalar(build, s->dtype, sign * (double)INFINITY)),
                     TN_NO_ATTRS);
}

DECOMPOSE(truncated_normal)
{
    struct drawn s;
    tn_status status = read_sample(build, rule, rule->attrs, 1, &s);
    if (status)
        return status;
    tn_array *lower = s.in[0], *upper = s.in[1], *ends[2];
    const tn_attr_list root = tn_attrs("root", sqrt(2));
    // Computes at the bounds' own extents: a scalar once, not for each element. Halves stay
    // f32 here, as within one expression.
    for (int i = 0; i < 2; i++)
        ends[i] = build->expr(
            build, "x -> erf(x / root)",
            TN_IN(random_cast(build, s.in[i], tn_dtype_computed(s.dtype))), root);
    tn_array *x = build->expr(
        build,
        "x, a, b, least, most -> "
        "min(max(root * erfinv(max(x * (b - a) + a, a)), least), most)",
        TN_IN(draw_floats(build, &s), ends[0], ends[1], cut_within(build, &s, lower, 1),
              cut_within(build, &s, upper, -1)),
        root);
    outputs[0] = random_cast(build, x, s.dtype);
    return built(outputs[0]);
}

COMPOSITE(truncated_normal, "Random numbers of the normal distribution between two bounds.",
          SAMPLE(cuts));

// --- bernoulli --------------------------------------------------------------------------

typedef struct {
    tn_ints shape;
    double p;
    int64_t layout;
} bernoulli_attrs;

static const tn_input_info bernoulli_inputs[] = {
    KEY_INPUT,
    {"probs", "the probability of true, in place of p",
     TN_INPUT_OPTIONAL | TN_INPUT_CONSTANT, TN_FLOAT_DTYPES},
};
static const tn_attr_field bernoulli_fields[] = {
    SHAPE_FIELD(bernoulli_attrs),
    TN_F64_FIELD(bernoulli_attrs, p, 0.5, "the probability of true"),
    LAYOUT_FIELD(bernoulli_attrs),
};

DECOMPOSE(bernoulli)
{
    const bernoulli_attrs *attrs = rule->attrs;
    const tn_random_bits_attrs common = {.shape = attrs->shape, .layout = attrs->layout};
    struct drawn s;
    if (!(attrs->p >= 0 && attrs->p <= 1))
        return build->host->fail(build->host, TN_ERR_ARGUMENT, "p is %g, expected 0 to 1",
                                 attrs->p);
    tn_status status = read_sample(build, rule, &common, 1, &s);
    if (status)
        return status;
    tn_array *p = s.in[0] ? s.in[0] : build->scalar(build, s.dtype, attrs->p);
    if (attrs->layout == TN_RANDOM_HALVES) { // a 32-bit word below p * (2^32 + 512)
        tn_array *w =
            draw_numbers(build, "random.bits/1", s.key, &s.shape, TN_U32, s.layout);
        outputs[0] = build->expr(build, "w, p -> f32(w) < f32(p) * f32(4294967808)",
                                 TN_IN(w, p), TN_NO_ATTRS);
    } else {
        outputs[0] = build->expr(build, "x, p -> x < p", TN_IN(draw_floats(build, &s), p),
                                 TN_NO_ATTRS);
    }
    return built(outputs[0]);
}

COMPOSITE(bernoulli, "True with a probability, else false.", TN_INPUTS(bernoulli_inputs),
          .attrs = TN_ATTR_TABLE(bernoulli_attrs, bernoulli_fields));
