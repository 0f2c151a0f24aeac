// SPDX-License-Identifier: MIT
// Steps divided by running magnitudes of the gradient's elements; values are PyTorch's.
//
// -expm1(step * log(beta)) is 1 - beta ** step without cancellation in the first steps.
#include "pack.h"

#define M_INPUT                                                                            \
    {                                                                                      \
        "m", "first moment, zeros at first", 0, 0                                          \
    }
#define V_INPUT                                                                            \
    {                                                                                      \
        "v", "second moment, zeros at first", 0, 0                                         \
    }
#define OUTPUT(name, what)                                                                 \
    {                                                                                      \
        name, what " after the step", 0, 0                                                 \
    }
#define BETA_FIELDS(type)                                                                  \
    TN_F64_FIELD(type, beta1, 0.9, "share of the first moment that stays"),                \
        TN_F64_FIELD(type, beta2, 0.999, "share of the second moment that stays")
#define EPS_FIELD(type, value) TN_F64_FIELD(type, eps, value, "added to the divisor")

// --- Adam and its like ------------------------------------------------------------------

typedef struct {
    double lr, beta1, beta2, eps, weight_decay;
    int64_t decoupled;
} adam_attrs, adamw_attrs, amsgrad_attrs, adamax_attrs;

#define MEAN "(m1 / -expm1(step * log(beta1)))"
#define ROOT(v) "(sqrt(" v " / -expm1(step * log(beta2))) + eps)"

static const tn_input_info adam_inputs[] = {P_INPUT, G_INPUT, M_INPUT, V_INPUT, STEP_INPUT};
static const tn_output_info adam_outputs[] = {
    OUTPUT("p", "parameters"), OUTPUT("m", "first moment"), OUTPUT("v", "second moment")};
static const tn_attr_field adam_fields[] = {
    LR_FIELD(adam_attrs, 1e-3), BETA_FIELDS(adam_attrs), EPS_FIELD(adam_attrs, 1e-8),
    DECAY_FIELD(adam_attrs, 0)};
STEP(adam, true,
     "A step of Adam (Kingma and Ba 2015); weight decay is part of the gradient, unlike "
     "that of nn.adam, which is AdamW's.",
     "d = g + weight_decay * p; "
     "m1 = beta1 * m + (1 - beta1) * d; v1 = beta2 * v + (1 - beta2) * d * d; "
     "p - lr * (" MEAN " / " ROOT("v1") "), m1, v1");

#define adamw_inputs adam_inputs
#define adamw_outputs adam_outputs
static const tn_attr_field adamw_fields[] = {
    LR_FIELD(adamw_attrs, 1e-3), BETA_FIELDS(adamw_attrs), EPS_FIELD(adamw_attrs, 1e-8),
    DECOUPLED_FIELD(adamw_attrs, 0.01)};
STEP(adamw, true, "A step of AdamW (Loshchilov and Hutter 2019): decoupled weight decay.",
     "m1 = beta1 * m + (1 - beta1) * g; v1 = beta2 * v + (1 - beta2) * g * g; "
     "p - lr * (" MEAN " / " ROOT("v1") " + weight_decay * p), m1, v1");

static const tn_input_info amsgrad_inputs[] = {
    P_INPUT,
    G_INPUT,
    M_INPUT,
    V_INPUT,
    {"most", "greatest second moment so far, zeros at first", 0, 0},
    STEP_INPUT};
static const tn_output_info amsgrad_outputs[] = {
    OUTPUT("p", "parameters"), OUTPUT("m", "first moment"), OUTPUT("v", "second moment"),
    OUTPUT("most", "greatest second moment")};
static const tn_attr_field amsgrad_fields[] = {
    LR_FIELD(amsgrad_attrs, 1e-3), BETA_FIELDS(amsgrad_attrs),
    EPS_FIELD(amsgrad_attrs, 1e-8), DECAY_FIELD(amsgrad_attrs, 0),
    TN_BOOL_FIELD(amsgrad_attrs, decoupled, 0, "weight decay as AdamW's")};
STEP(amsgrad, true,
     "A step of Adam or AdamW by the greatest second moment (Reddi et al. 2018).",
     "d = decoupled ? g : g + weight_decay * p; "
     "m1 = beta1 * m + (1 - beta1) * d; v1 = beta2 * v + (1 - beta2) * d * d; "
     "most1 = max(most, v1); "
     "p - lr * (" MEAN " / " ROOT("most1") " + (decoupled ? weight_decay * p : 0)), "
                                           "m1, v1, most1");

static const tn_input_info adamax_inputs[] = {
    P_INPUT,
    G_INPUT,
    M_INPUT,
    {"u", "greatest size so far, zeros at first", 0, 0},
    STEP_INPUT};
static const tn_output_info adamax_outputs[] = {
    OUTPUT("p", "parameters"), OUTPUT("m", "first moment"), OUTPUT("u", "greatest size")};
static const tn_attr_field adamax_fields[] = {
    LR_FIELD(adamax_attrs, 2e-3), BETA_FIELDS(adamax_attrs),
    TN_F64_FIELD(adamax_attrs, eps, 1e-8, "added to sizes"), DECAY_FIELD(adamax_attrs, 0)};
STEP(adamax, true,
     "A step of Adamax (Kingma and Ba 2015): by the greatest size, not the mean.",
     "d = g + weight_decay * p; "
     "m1 = beta1 * m + (1 - beta1) * d; u1 = max(beta2 * u, abs(d) + eps); "
     "p - lr * " MEAN " / u1, m1, u1");

// --- Adagrad and its like ---------------------------------------------------------------

typedef struct {
    double lr, lr_decay, weight_decay, eps;
} adagrad_attrs;
static const tn_input_info adagrad_inputs[] = {
    P_INPUT, G_INPUT, {"v", "sum of squares so far", 0, 0}, STEP_INPUT};
static const tn_output_info adagrad_outputs[] = {OUTPUT("p", "parameters"),
                                                 OUTPUT("v", "sum of squares")};
static const tn_attr_field adagrad_fields[] = {
    LR_FIELD(adagrad_attrs, 1e-2),
    TN_F64_FIELD(adagrad_attrs, lr_decay, 0, "lr is divided by 1 + lr_decay * (step - 1)"),
    DECAY_FIELD(adagrad_attrs, 0), EPS_FIELD(adagrad_attrs, 1e-10)};
STEP(adagrad, true, "A step of Adagrad (Duchi, Hazan and Singer 2011).",
     "d = g + weight_decay * p; v1 = v + d * d; "
     "p - lr / (1 + (step - 1) * lr_decay) * (d / (sqrt(v1) + eps)), v1");

typedef struct {
    double lr, rho, eps, weight_decay;
} adadelta_attrs;
static const tn_input_info adadelta_inputs[] = {
    P_INPUT, G_INPUT, V_INPUT, {"u", "running square of steps, zeros at first", 0, 0}};
static const tn_output_info adadelta_outputs[] = {OUTPUT("p", "parameters"),
                                                  OUTPUT("v", "second moment"),
                                                  OUTPUT("u", "square of steps")};
static const tn_attr_field adadelta_fields[] = {
    LR_FIELD(adadelta_attrs, 1),
    TN_F64_FIELD(adadelta_attrs, rho, 0.9, "share of both that stays"),
    TN_F64_FIELD(adadelta_attrs, eps, 1e-6, "added to squares"),
    DECAY_FIELD(adadelta_attrs, 0)};
STEP(adadelta, false, "A step of AdaDelta (Zeiler 2012).",
     "d = g + weight_decay * p; v1 = rho * v + (1 - rho) * d * d; "
     "delta = sqrt(u + eps) / sqrt(v1 + eps) * d; "
     "p - lr * delta, v1, rho * u + (1 - rho) * delta * delta");

// --- RMSprop ----------------------------------------------------------------------------

typedef struct {
    double lr, alpha, eps, weight_decay, momentum;
} rmsprop_attrs, rmsprop_momentum_attrs, rmsprop_centered_attrs;
#define RMSPROP_FIELDS                                                                     \
    LR_FIELD(rmsprop_attrs, 1e-2),                                                         \
        TN_F64_FIELD(rmsprop_attrs, alpha, 0.99, "share of the second moment that stays"), \
        EPS_FIELD(rmsprop_attrs, 1e-8), DECAY_FIELD(rmsprop_attrs, 0)
#define MOMENTUM_FIELD                                                                     \
    TN_F64_FIELD(rmsprop_attrs, momentum, 0, "share of the momentum that stays")
#define BUFFER_INPUT                                                                       \
    {                                                                                      \
        "m", "momentum, zeros at first", 0, 0                                              \
    }
static const tn_input_info rmsprop_inputs[] = {P_INPUT, G_INPUT, V_INPUT};
static const tn_output_info rmsprop_outputs[] = {OUTPUT("p", "parameters"),
                                                 OUTPUT("v", "second moment")};
static const tn_attr_field rmsprop_fields[] = {RMSPROP_FIELDS};
STEP(rmsprop, false, "A step of RMSprop (Tieleman and Hinton 2012).",
     "d = g + weight_decay * p; v1 = alpha * v + (1 - alpha) * d * d; "
     "p - lr * (d / (sqrt(v1) + eps)), v1");

static const tn_input_info rmsprop_momentum_inputs[] = {P_INPUT, G_INPUT, V_INPUT,
                                                        BUFFER_INPUT};
static const tn_output_info rmsprop_momentum_outputs[] = {
    OUTPUT("p", "parameters"), OUTPUT("v", "second moment"), OUTPUT("m", "momentum")};
static const tn_attr_field rmsprop_momentum_fields[] = {RMSPROP_FIELDS, MOMENTUM_FIELD};
STEP(rmsprop_momentum, false, "A step of RMSprop with momentum.",
     "d = g + weight_decay * p; v1 = alpha * v + (1 - alpha) * d * d; "
     "m1 = momentum * m + d / (sqrt(v1) + eps); p - lr * m1, v1, m1");

static const tn_input_info rmsprop_centered_inputs[] = {
    P_INPUT,
    G_INPUT,
    V_INPUT,
    {"mean", "running mean of g, zeros at first", 0, 0},
    BUFFER_INPUT};
static const tn_output_info rmsprop_centered_outputs[] = {
    OUTPUT("p", "parameters"), OUTPUT("v", "second moment"), OUTPUT("mean", "mean"),
    OUTPUT("m", "momentum")};
static const tn_attr_field rmsprop_centered_fields[] = {RMSPROP_FIELDS, MOMENTUM_FIELD};
STEP(rmsprop_centered, false, "A step of RMSprop by the variance, with momentum.",
     "d = g + weight_decay * p; v1 = alpha * v + (1 - alpha) * d * d; "
     "mean1 = alpha * mean + (1 - alpha) * d; "
     "m1 = momentum * m + d / (sqrt(v1 - mean1 * mean1) + eps); "
     "p - lr * m1, v1, mean1, m1");
