// SPDX-License-Identifier: MIT
// Activations: each is its one-line expression, with PyTorch's names, meanings and slopes
// at kinks. NaN stays NaN.
#include "../pack.h"
#include <tenon/ops/rules.h>

static const tn_input_info activation_input[] = {{"x", "the array", 0, TN_FLOAT_DTYPES}};

// X(name, expression, doc)
#define PLAIN(X)                                                                           \
    X(relu6, "x <= 0 ? 0 : x >= 6 ? 6 : x", "x clamped between 0 and 6.")                  \
    X(relu2, "x <= 0 ? 0 : x * x", "The square of x where it is positive, else 0.")        \
    X(selu,                                                                                \
      "1.0507009873554805 * "                                                              \
      "(x > 0 ? x : 1.6732632423543772 * expm1(x > 0 ? 0 : x))",                           \
      "elu scaled so that means and variances keep to 0 and 1.")                           \
    X(hardswish,                                                                           \
      "c = x <= -3 ? -3 : x >= 3 ? 3 : x; x <= -3 ? 0 : x * ((c + 3) * (1 / 6))",          \
      "x times hardsigmoid(x).")                                                           \
    X(hardsigmoid, "c = x <= -3 ? -3 : x >= 3 ? 3 : x; (c + 3) * (1 / 6)",                 \
      "x / 6 + 1 / 2, clamped between 0 and 1.")                                           \
    X(logsigmoid, "x < 0 ? x - log1p(exp(x < 0 ? x : 0)) : -log1p(exp(x < 0 ? 0 : -x))",   \
      "The logarithm of sigmoid(x).")

#define PLAIN_RECORD(name, text, sentence)                                                 \
    const tn_primitive nn_##name = {                                                       \
        .struct_size = sizeof(tn_primitive),                                               \
        .id = "nn." #name "/1",                                                            \
        .doc = sentence,                                                                   \
        TN_INPUTS(activation_input),                                                       \
        .expr = text,                                                                      \
    };
PLAIN(PLAIN_RECORD)

// Activations whose derivative, taken from the expression, would be a difference of close
// numbers: X(name, expression, slope of x, doc). In mish, tanh(log(1 + e)) is n / (n + 2)
// with n = e (e + 2), where e is exp(x), bounded where the quotient is 1 anyway.
#define MISH_E "exp(x > 20 ? 20 : x)"
#define MISH_N "(" MISH_E " * (" MISH_E " + 2))"
#define SLOPED(X)                                                                          \
    X(softsign, "x / (1 + abs(x))", "1 / ((1 + abs(x)) * (1 + abs(x)))",                   \
      "x / (1 + abs(x)): from -1 to 1.")                                                   \
    X(tanhshrink, "x - tanh(x)", "tanh(x) * tanh(x)", "x less tanh(x).")                   \
    X(mish, "x * (" MISH_N " / (" MISH_N " + 2))",                                         \
      MISH_N " / (" MISH_N " + 2) + 4 * x * (" MISH_E " * (" MISH_E " + 1)) / ((" MISH_N   \
             " + 2) * (" MISH_N " + 2))",                                                  \
      "x times tanh(softplus(x)).")

#define SLOPED_RECORD(name, text, slope, sentence)                                         \
    TN_VJP(name##_vjp)                                                                     \
    {                                                                                      \
        gradients[0] = build->expr(build, "g, x -> g * (" slope ")",                       \
                                   TN_IN(cotangents[0], rule->inputs[0]), TN_NO_ATTRS);    \
        return built(gradients[0]);                                                        \
    }                                                                                      \
    TN_JVP(name##_jvp)                                                                     \
    {                                                                                      \
        out_tangents[0] = build->expr(build, "t, x -> t * (" slope ")",                    \
                                      TN_IN(tangents[0], rule->inputs[0]), TN_NO_ATTRS);   \
        return built(out_tangents[0]);                                                     \
    }                                                                                      \
    const tn_primitive nn_##name = {                                                       \
        .struct_size = sizeof(tn_primitive),                                               \
        .id = "nn." #name "/1",                                                            \
        .doc = sentence,                                                                   \
        TN_INPUTS(activation_input),                                                       \
        .expr = text,                                                                      \
        .vjp = name##_vjp,                                                                 \
        .jvp = name##_jvp,                                                                 \
    };
SLOPED(SLOPED_RECORD)

// Activations with one attribute: X(name, attribute, default, its meaning, expression, doc)
#define WITH_NUMBER(X)                                                                     \
    X(leaky_relu, negative_slope, 0.01, "factor of what is negative",                      \
      "x > 0 ? x : negative_slope * x", "x, where it is negative times a slope.")          \
    X(elu, alpha, 1, "what it nears below, negated",                                       \
      "x > 0 ? x : alpha * expm1(x > 0 ? 0 : x)",                                          \
      "x where it is positive, else alpha * (exp(x) - 1).")                                \
    X(hardshrink, lambd, 0.5, "the greatest number that is 0",                             \
      "x >= -lambd & x <= lambd ? 0 : x", "x, or 0 where it is no greater than lambd.")    \
    X(softshrink, lambd, 0.5, "what is subtracted",                                        \
      "x > lambd ? x - lambd : x < -lambd ? x + lambd : 0 * x",                            \
      "x nearer to 0 by lambd, at most 0.")                                                \
    X(squareplus, b, 4, "the square of twice its value at 0",                              \
      "r = sqrt(x * x + b); x >= 0 ? (x + r) / 2 : b / (2 * (r - x))",                     \
      "(x + sqrt(x * x + b)) / 2: a smooth relu.")

#define NUMBER_RECORD(name, attr, value, what, text, sentence)                             \
    typedef struct {                                                                       \
        double attr;                                                                       \
    } name##_attrs;                                                                        \
    static const tn_attr_field name##_fields[] = {                                         \
        TN_F64_FIELD(name##_attrs, attr, value, what),                                     \
    };                                                                                     \
    const tn_primitive nn_##name = {                                                       \
        .struct_size = sizeof(tn_primitive),                                               \
        .id = "nn." #name "/1",                                                            \
        .doc = sentence,                                                                   \
        TN_INPUTS(activation_input),                                                       \
        .attrs = TN_ATTR_TABLE(name##_attrs, name##_fields),                               \
        .expr = text,                                                                      \
    };
WITH_NUMBER(NUMBER_RECORD)

typedef struct {
    double alpha;
} celu_attrs;
static const tn_attr_field celu_fields[] = {
    TN_F64_FIELD(celu_attrs, alpha, 1, "what it nears below, negated; not 0"),
};

static tn_status celu_infer(const tn_infer *infer, tn_type *types)
{
    const celu_attrs *attrs = infer->attrs;
    if (attrs->alpha == 0)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "alpha is 0, expected another number");
    types[0] = infer->types[0];
    return TN_OK;
}

const tn_primitive nn_celu = {
    .struct_size = sizeof(tn_primitive),
    .flags = TN_PRIM_OWN_TYPE,
    .id = "nn.celu/1",
    .doc = "x where it is positive, else alpha * (exp(x / alpha) - 1).",
    TN_INPUTS(activation_input),
    .attrs = TN_ATTR_TABLE(celu_attrs, celu_fields),
    .expr = "x > 0 ? x : alpha * expm1((x > 0 ? 0 : x) / alpha)",
    .infer = celu_infer,
};

// --- of two numbers ---------------------------------------------------------------------

typedef struct {
    double beta, threshold;
} softplus_attrs;
static const tn_attr_field softplus_fields[] = {
    TN_F64_FIELD(softplus_attrs, beta, 1, "how sharp the bend is"),
    TN_F64_FIELD(softplus_attrs, threshold, 20, "of beta * x, from which on it is x"),
};
const tn_primitive nn_softplus = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.softplus/1",
    .doc = "log(1 + exp(beta * x)) / beta: a smooth relu.",
    TN_INPUTS(activation_input),
    .attrs = TN_ATTR_TABLE(softplus_attrs, softplus_fields),
    .expr = "u = beta * x; "
            "u > threshold ? x : log1p(exp(u > threshold ? threshold : u)) / beta",
};

typedef struct {
    double min_val, max_val;
} hardtanh_attrs;
static const tn_attr_field hardtanh_fields[] = {
    TN_F64_FIELD(hardtanh_attrs, min_val, -1, "the least value"),
    TN_F64_FIELD(hardtanh_attrs, max_val, 1, "the greatest value"),
};
const tn_primitive nn_hardtanh = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.hardtanh/1",
    .doc = "x clamped between two numbers.",
    TN_INPUTS(activation_input),
    .attrs = TN_ATTR_TABLE(hardtanh_attrs, hardtanh_fields),
    .expr = "x <= min_val ? min_val : x >= max_val ? max_val : x",
};

typedef struct {
    double threshold, value;
} threshold_attrs;
static const tn_attr_field threshold_fields[] = {
    TN_REQUIRED_FIELD(threshold_attrs, threshold, TN_ATTR_F64, "what x has to exceed"),
    TN_REQUIRED_FIELD(threshold_attrs, value, TN_ATTR_F64, "what is there otherwise"),
};
const tn_primitive nn_threshold = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.threshold/1",
    .doc = "x where it exceeds a threshold, else a value.",
    TN_INPUTS(activation_input),
    .attrs = TN_ATTR_TABLE(threshold_attrs, threshold_fields),
    .expr = "x <= threshold ? value : x",
};

// --- along an axis ----------------------------------------------------------------------

typedef struct {
    int64_t axis;
} axis_attrs;
#define ALONG(text)                                                                        \
    {                                                                                      \
        TN_I64_FIELD(axis_attrs, axis, -1, text)                                           \
    }
static const tn_attr_field softmin_fields[] = ALONG("axis of what sums to 1");
static const tn_attr_field glu_fields[] = ALONG("axis whose second half is the gate");
static const tn_attr_field prelu_fields[] = ALONG("of channels; PyTorch's is 1");

DECOMPOSE(softmin)
{
    const axis_attrs *attrs = rule->attrs;
    tn_array *x = build->expr(build, "x -> -x", TN_IN(rule->inputs[0]), TN_NO_ATTRS);
    outputs[0] = build->op(build, "nn.softmax/1", TN_IN(x), tn_attrs("axis", attrs->axis));
    return built(outputs[0]);
}

DECOMPOSE(glu)
{
    const axis_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    const tn_type *type = build->type(x);
    int32_t axis;
    tn_status status = axis_within(build->host, attrs->axis, type->rank, &axis);
    if (status)
        return status;
    int64_t n = type->extent[axis];
    if (n % 2)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "x has %" PRId64 " elements along axis %d, expected an "
                                 "even number: values and their gates",
                                 n, axis);
    tn_array *gate = part_of_axis(build, x, axis, n / 2, 1, n / 2);
    gate = build->op(build, "base.sigmoid/1", TN_IN(gate), TN_NO_ATTRS);
    outputs[0] =
        build->expr(build, "x, s -> x * s",
                    TN_IN(part_of_axis(build, x, axis, 0, 1, n / 2), gate), TN_NO_ATTRS);
    return built(outputs[0]);
}

static const tn_input_info prelu_inputs[] = {
    {"x", "the array", 0, TN_FLOAT_DTYPES},
    {"weight", "slopes: one, or one a channel", 0, TN_FLOAT_DTYPES},
};

DECOMPOSE(prelu)
{
    const axis_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]), *w = build->type(rule->inputs[1]);
    tn_array *weight = rule->inputs[1];
    int32_t axis;
    tn_status status = check_dtype(build->host, "weight", w, x->dtype);
    if (status == TN_OK && w->rank == 1 && w->extent[0] != 1) {
        status = axis_within(build->host, attrs->axis, x->rank, &axis);
        if (status)
            return status;
        int64_t column[TN_MAX_RANK] = {w->extent[0], 1, 1, 1, 1, 1, 1, 1};
        status = check_extents(build->host, "weight", w, 1, &x->extent[axis]);
        if (status)
            return status;
        weight = with_shape(build, "base.reshape/1", weight, x->rank - axis, column);
    } else if (status == TN_OK && w->rank != 0) {
        int64_t one = 1;
        status = check_extents(build->host, "weight", w, 1, &one);
        if (status)
            return status;
        weight = with_shape(build, "base.reshape/1", weight, 0, &one);
    }
    if (status)
        return status;
    outputs[0] = build->expr(build, "x, w -> x > 0 ? x : w * x",
                             TN_IN(rule->inputs[0], weight), TN_NO_ATTRS);
    return built(outputs[0]);
}

COMPOSITE(softmin, "softmin/1", "softmax of -x.", TN_INPUTS(activation_input),
          .attrs = TN_ATTR_TABLE(axis_attrs, softmin_fields));
COMPOSITE(glu, "glu/1", "One half of an axis times the sigmoid of the other.",
          TN_INPUTS(activation_input), .attrs = TN_ATTR_TABLE(axis_attrs, glu_fields));
COMPOSITE(prelu, "prelu/1", "x, where it is negative times a slope that is learnt.",
          TN_INPUTS(prelu_inputs), .attrs = TN_ATTR_TABLE(axis_attrs, prelu_fields));
