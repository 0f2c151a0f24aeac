// SPDX-License-Identifier: MIT
// Steps along the gradient or its sign, with momentum.
#include "pack.h"

// --- sgd --------------------------------------------------------------------------------

typedef struct {
    double lr, momentum, dampening, weight_decay;
    int64_t nesterov;
} sgd_attrs;
static const tn_input_info sgd_inputs[] = {
    P_INPUT, G_INPUT, {"m", "momentum, zeros at first", 0, 0}, STEP_INPUT};
static const tn_output_info sgd_outputs[] = {
    {"p", "parameters after the step", 0, 0},
    {"m", "momentum after the step", 0, 0},
};
static const tn_attr_field sgd_fields[] = {
    LR_FIELD(sgd_attrs, 1e-3),
    TN_F64_FIELD(sgd_attrs, momentum, 0, "share of the momentum that stays"),
    TN_F64_FIELD(sgd_attrs, dampening, 0, "share of g that is left out, but in step 1"),
    DECAY_FIELD(sgd_attrs, 0),
    TN_BOOL_FIELD(sgd_attrs, nesterov, 0, "along g and the new momentum"),
};
STEP(sgd, true, "A step of stochastic gradient descent, as PyTorch's SGD.",
     "d = g + weight_decay * p; "
     "m1 = step > 1 && momentum != 0 ? momentum * m + (1 - dampening) * d : d; "
     "p - lr * (nesterov ? d + momentum * m1 : m1), m1");

// --- lion -------------------------------------------------------------------------------

typedef struct {
    double lr, beta1, beta2, weight_decay;
} lion_attrs;
static const tn_input_info lion_inputs[] = {
    P_INPUT, G_INPUT, {"m", "momentum, zeros at first", 0, 0}};
static const tn_output_info lion_outputs[] = {
    {"p", "parameters after the step", 0, 0},
    {"m", "momentum after the step", 0, 0},
};
static const tn_attr_field lion_fields[] = {
    LR_FIELD(lion_attrs, 1e-4),
    TN_F64_FIELD(lion_attrs, beta1, 0.9, "share of the momentum in the direction"),
    TN_F64_FIELD(lion_attrs, beta2, 0.99, "share of the momentum that stays"),
    DECOUPLED_FIELD(lion_attrs, 0),
};
STEP(lion, false, "A step of Lion (Chen et al. 2023): along the sign of the momentum.",
     "p - lr * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * p), "
     "beta2 * m + (1 - beta2) * g");
