// SPDX-License-Identifier: MIT
// Steps that treat a matrix as a whole: Adafactor, Muon. Composites; values are PyTorch's.
#include "pack.h"

#include <tenon/checked.h>

// Fails unless p, g and the state fit, and the step's number is a scalar.
static tn_status optim_matrix_check_alike(const tn_build *build, const tn_rule *rule,
                                          uint32_t num_alike, int32_t least_rank)
{
    static const char *const names[] = {"p", "g", "the state"};
    const tn_type *p = rule->inputs[0] ? build->type(rule->inputs[0]) : NULL;
    for (uint32_t i = 0; i < num_alike; i++) {
        const tn_type *type = rule->inputs[i] ? build->type(rule->inputs[i]) : NULL;
        if (!type || !p)
            return TN_ERR_ARGUMENT;
        tn_status status = optim_check_float(build->host, names[i], type);
        if (status)
            return status;
        if (type->rank < least_rank)
            return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                     "%s has rank %d, expected at least %d", names[i],
                                     type->rank, least_rank);
        if (type->rank != p->rank ||
            memcmp(type->extent, p->extent, sizeof(int64_t) * (size_t)p->rank) != 0)
            return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                     "%s has other extents than p", names[i]);
    }
    return TN_OK;
}

// --- adafactor --------------------------------------------------------------------------

typedef struct {
    double lr, beta2_decay, eps1, eps2, d, weight_decay;
} adafactor_attrs;
static const tn_input_info adafactor_inputs[] = {
    P_INPUT,
    G_INPUT,
    {"row", "means of squares along the last axis, which has extent 1; zeros at first", 0,
     0},
    {"column", "those along the axis before, which has extent 1; zeros at first", 0, 0},
    STEP_INPUT,
};
static const tn_output_info adafactor_outputs[] = {
    {"p", "parameters after the step", 0, 0},
    {"row", "means of rows after the step", 0, 0},
    {"column", "means of columns after the step", 0, 0},
};
static const tn_input_info adafactor_vector_inputs[] = {
    P_INPUT, G_INPUT, {"v", "means of squares, zeros at first", 0, 0}, STEP_INPUT};
static const tn_output_info adafactor_vector_outputs[] = {
    {"p", "parameters after the step", 0, 0},
    {"v", "means of squares after the step", 0, 0},
};
static const tn_attr_field adafactor_fields[] = {
    LR_FIELD(adafactor_attrs, 1e-2),
    TN_F64_FIELD(adafactor_attrs, beta2_decay, -0.8,
                 "step ** beta2_decay of the means is new"),
    TN_F64_FIELD(adafactor_attrs, eps1, 0,
                 "least divisor; 0: the distance from 1 to the next number of p's dtype"),
    TN_F64_FIELD(adafactor_attrs, eps2, 1e-3, "least scale of p"),
    TN_F64_FIELD(adafactor_attrs, d, 1, "greatest root mean square of a step of lr 1"),
    DECOUPLED_FIELD(adafactor_attrs, 0),
};

static double distance_from_one(tn_dtype dtype)
{
    return dtype == TN_F64    ? 0x1p-52
           : dtype == TN_F16  ? 0x1p-10
           : dtype == TN_BF16 ? 0x1p-7
                              : 0x1p-23;
}

// Shared by both forms: new parameters from `estimate`, the means of squares.
static tn_array *adafactor_apply(const tn_build *build, const tn_rule *rule, tn_array *g,
                                 tn_array *estimate)
{
    const adafactor_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(rule->inputs[0]);
    if (!type || !estimate)
        return NULL;
    double eps1 = attrs->eps1 > 0 ? attrs->eps1 : distance_from_one(type->dtype);
    tn_array *step = optim_constant(build, rule->inputs[rule->num_inputs - 2]);
    tn_array *lr = optim_constant(build, rule->inputs[rule->num_inputs - 1]);
    tn_array *p = optim_cast(build, rule->inputs[0], tn_dtype_computed(type->dtype));
    tn_array *update = build->expr(build, "g, v -> g * rsqrt(max(v, least))",
                                   TN_IN(g, estimate), tn_attrs("least", eps1 * eps1));
    tn_array *rate =
        build->expr(build,
                    "size, rms, step, lr -> max(least, size) * min(lr, 1 / sqrt(step)) / "
                    "max(1, rms / d)",
                    TN_IN(optim_rms(build, p), optim_rms(build, update), step, lr),
                    tn_attrs("least", attrs->eps2, "d", attrs->d));
    tn_array *moved =
        build->expr(build, "p, u, rate, lr -> p * (1 - lr * decay) - rate * u",
                    TN_IN(p, update, rate, lr), tn_attrs("decay", attrs->weight_decay));
    return optim_cast(build, moved, type->dtype);
}

// Moves the state towards `now`, in the state's dtype.
static tn_array *adafactor_mean(const tn_build *build, const tn_rule *rule, tn_array *state,
                                tn_array *now)
{
    const adafactor_attrs *attrs = rule->attrs;
    const tn_type *type = state ? build->type(state) : NULL;
    tn_array *step = optim_constant(build, rule->inputs[rule->num_inputs - 2]);
    tn_array *moved =
        build->expr(build, "old, now, step -> old + (now - old) * step ** decay",
                    TN_IN(state, now, step), tn_attrs("decay", attrs->beta2_decay));
    return type ? optim_cast(build, moved, type->dtype) : NULL;
}

// The gradient in the dtype of computation, and its squares.
static tn_array *squares_of(const tn_build *build, const tn_rule *rule, tn_array **out_g)
{
    const tn_type *type = build->type(rule->inputs[1]);
    *out_g =
        type ? optim_cast(build, rule->inputs[1], tn_dtype_computed(type->dtype)) : NULL;
    return build->expr(build, "g -> g * g", TN_IN(*out_g), TN_NO_ATTRS);
}

DECOMPOSE(adafactor)
{
    tn_array *g;
    tn_status status = optim_matrix_check_alike(build, rule, 2, 2);
    if (status)
        return status;
    const tn_type *p = build->type(rule->inputs[0]);
    for (uint32_t i = 2; i < 4; i++) {
        const tn_type *mean = rule->inputs[i] ? build->type(rule->inputs[i]) : NULL;
        int32_t axis = p->rank + 1 - (int32_t)i;
        if (!mean || mean->rank != p->rank || mean->extent[axis] != 1 ||
            mean->extent[2 * p->rank - 3 - axis] != p->extent[2 * p->rank - 3 - axis])
            return build->host->fail(
                build->host, TN_ERR_ARGUMENT,
                "%s does not have p's extents with axis %d of extent 1",
                i == 2 ? "row" : "column", axis);
    }
    tn_array *squares = squares_of(build, rule, &g);
    outputs[1] = adafactor_mean(build, rule, rule->inputs[2],
                                optim_reduce(build, "base.mean/1", squares, -1));
    outputs[2] = adafactor_mean(build, rule, rule->inputs[3],
                                optim_reduce(build, "base.mean/1", squares, -2));
    double eps1 = ((const adafactor_attrs *)rule->attrs)->eps1;
    tn_array *estimate = build->expr(
        build, "row, column, mean -> row * column / max(mean, least)",
        TN_IN(outputs[1], outputs[2], optim_reduce(build, "base.mean/1", outputs[1], -2)),
        tn_attrs("least", eps1 > 0 ? eps1 : distance_from_one(p->dtype)));
    outputs[0] = adafactor_apply(build, rule, g, estimate);
    return built(outputs[0]);
}

DECOMPOSE(adafactor_vector)
{
    tn_array *g;
    tn_status status = optim_matrix_check_alike(build, rule, 3, 0);
    if (status)
        return status;
    tn_array *squares = squares_of(build, rule, &g);
    outputs[1] = adafactor_mean(build, rule, rule->inputs[2], squares);
    outputs[0] = adafactor_apply(build, rule, g, outputs[1]);
    return built(outputs[0]);
}

COMPOSITE(adafactor,
          "A step of Adafactor (Shazeer and Stern 2018) for matrices, the last two axes.",
          TN_INPUTS(adafactor_inputs), TN_OUTPUTS(adafactor_outputs),
          .attrs = TN_ATTR_TABLE(adafactor_attrs, adafactor_fields));
COMPOSITE(adafactor_vector, "A step of Adafactor that keeps a mean for each element.",
          TN_INPUTS(adafactor_vector_inputs), TN_OUTPUTS(adafactor_vector_outputs),
          .attrs = TN_ATTR_TABLE(adafactor_attrs, adafactor_fields));

// --- muon -------------------------------------------------------------------------------

enum { ADJUST_ORIGINAL, ADJUST_MATCH_RMS_ADAMW };
static const char *const adjustments[] = {"original", "match_rms_adamw", NULL};
typedef struct {
    double lr, momentum, weight_decay, eps;
    int64_t nesterov, ns_steps, adjust_lr, dtype;
} muon_attrs;
static const tn_input_info muon_inputs[] = {
    P_INPUT, G_INPUT, {"m", "momentum, zeros at first", 0, 0}};
static const tn_output_info muon_outputs[] = {
    {"p", "parameters after the step", 0, 0},
    {"m", "momentum after the step", 0, 0},
};
static const tn_attr_field muon_fields[] = {
    LR_FIELD(muon_attrs, 1e-3),
    TN_F64_FIELD(muon_attrs, momentum, 0.95, "share of the momentum that stays"),
    DECOUPLED_FIELD(muon_attrs, 0.1),
    TN_F64_FIELD(muon_attrs, eps, 1e-7, "least norm that is divided by"),
    TN_BOOL_FIELD(muon_attrs, nesterov, 1, "along g and the new momentum"),
    TN_I64_FIELD(muon_attrs, ns_steps, 5, "iterations of Newton and Schulz"),
    TN_CHOICE_FIELD(
        muon_attrs, adjust_lr, ADJUST_ORIGINAL, adjustments,
        "lr times sqrt(max(1, rows / columns)), or 0.2 sqrt(max(rows, columns))"),
    TN_DTYPE_FIELD(muon_attrs, dtype, 0, "of the iterations; not given: g's"),
};

// The orthogonal matrix nearest to x, [rows, columns], approximately, by the iteration
// whose coefficients grow singular values fastest (Jordan et al. 2024).
static tn_array *optim_matrix_orthogonal(const tn_build *build, const muon_attrs *attrs,
                                         tn_array *x, const int64_t *extent, tn_dtype dtype)
{
    bool turned = extent[0] > extent[1];
    x = optim_cast(build, x, dtype);
    if (turned)
        x = build->op(build, "base.transpose/1", TN_IN(x), TN_NO_ATTRS);
    tn_array *squares =
        build->expr(build, "x -> x * x",
                    TN_IN(optim_cast(build, x, tn_dtype_computed(dtype))), TN_NO_ATTRS);
    tn_array *sum = optim_reduce(build, "base.sum/1", squares, TN_ALL_AXES);
    x = optim_cast(build,
                   build->expr(build, "x, sum -> x / max(sqrt(sum), eps)", TN_IN(x, sum),
                               tn_attrs("eps", attrs->eps)),
                   dtype);
    for (int64_t i = 0; i < attrs->ns_steps; i++) {
        tn_array *t = build->op(build, "base.transpose/1", TN_IN(x), TN_NO_ATTRS);
        tn_array *gram = build->op(build, "base.matmul/1", TN_IN(x, t), TN_NO_ATTRS);
        tn_array *square =
            build->op(build, "base.matmul/1", TN_IN(gram, gram), TN_NO_ATTRS);
        tn_array *by = build->expr(build, "a, aa -> -4.775 * a + 2.0315 * aa",
                                   TN_IN(gram, square), TN_NO_ATTRS);
        x = build->expr(
            build, "x, y -> 3.4445 * x + y",
            TN_IN(x, build->op(build, "base.matmul/1", TN_IN(by, x), TN_NO_ATTRS)),
            TN_NO_ATTRS);
    }
    return turned ? build->op(build, "base.transpose/1", TN_IN(x), TN_NO_ATTRS) : x;
}

static double optim_matrix_adjusted(const muon_attrs *attrs, const int64_t *extent)
{
    double rows = (double)extent[0], columns = (double)extent[1];
    return attrs->adjust_lr == ADJUST_ORIGINAL ? sqrt(fmax(1, rows / fmax(columns, 1)))
                                               : 0.2 * sqrt(fmax(rows, columns));
}

DECOMPOSE(muon)
{
    const muon_attrs *attrs = rule->attrs;
    tn_status status = optim_matrix_check_alike(build, rule, 3, 2);
    if (status)
        return status;
    const tn_type *p = build->type(rule->inputs[0]), *g = build->type(rule->inputs[1]);
    if (attrs->ns_steps < 0 || attrs->ns_steps >= 100)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "ns_steps is %lld, expected 0 to 99",
                                 (long long)attrs->ns_steps);
    tn_dtype dtype = attrs->dtype ? (tn_dtype)attrs->dtype : g->dtype;
    int64_t extent[2] = {p->extent[0], 1};
    for (int32_t i = 1; i < p->rank; i++)
        extent[1] *= p->extent[i];
    tn_array *m = build->expr(build, "m, g -> m + (g - m) * (1 - momentum)",
                              TN_IN(rule->inputs[2], rule->inputs[1]),
                              tn_attrs("momentum", attrs->momentum));
    tn_array *along = m;
    if (attrs->nesterov)
        along =
            build->expr(build, "g, m -> g + (m - g) * momentum", TN_IN(rule->inputs[1], m),
                        tn_attrs("momentum", attrs->momentum));
    along = build->op(build, "base.reshape/1", TN_IN(along),
                      tn_attrs("shape", TN_INTS(extent[0], extent[1])));
    tn_ints whole = tn_extents(build, rule->inputs[0]);
    const tn_ints *shape = &whole;
    tn_array *update =
        build->op(build, "base.reshape/1",
                  TN_IN(optim_matrix_orthogonal(build, attrs, along, extent, dtype)),
                  tn_attrs("shape", shape));
    outputs[0] = optim_cast(
        build,
        build->expr(build, "p, u, lr -> p * (1 - lr * decay) - lr * factor * u",
                    TN_IN(rule->inputs[0], update, optim_constant(build, rule->inputs[3])),
                    tn_attrs("decay", attrs->weight_decay, "factor",
                             optim_matrix_adjusted(attrs, extent))),
        p->dtype);
    outputs[1] = optim_cast(build, m, build->type(rule->inputs[2])->dtype);
    return built(outputs[0]);
}

COMPOSITE(muon,
          "A step of Muon (Jordan et al. 2024): an orthogonal matrix near the momentum.",
          TN_INPUTS(muon_inputs), TN_OUTPUTS(muon_outputs),
          .attrs = TN_ATTR_TABLE(muon_attrs, muon_fields));
