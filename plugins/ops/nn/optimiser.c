// SPDX-License-Identifier: MIT
// Optimisers: one expression gives all outputs, which may overwrite the inputs in place.
#include "pack.h"

// Each output has the type of the input that it replaces, not a promoted one: parameters of
// half precision may have moments in f32.
static tn_status keep_types(const tn_infer *infer, const char *const *names,
                            uint32_t num_arrays, tn_type *types)
{
    const tn_type *p = &infer->types[0];
    for (uint32_t i = 0; i < num_arrays; i++) {
        tn_status status = check_float(infer->host, names[i], &infer->types[i]);
        if (status == TN_OK)
            status =
                check_extents(infer->host, names[i], &infer->types[i], p->rank, p->extent);
        if (status)
            return status;
    }
    types[0] = *p;
    for (uint32_t i = 2; i < num_arrays; i++)
        types[i - 1] = infer->types[i];
    return TN_OK;
}

// --- sgd --------------------------------------------------------------------------------

static const tn_input_info sgd_inputs[] = {
    {"p", "parameters", 0, 0},
    {"g", "their gradient", 0, 0},
    {"m", "momentum, zeros at first", 0, 0},
};
static const tn_output_info sgd_outputs[] = {
    {"p", "parameters after the step", 0, 0},
    {"m", "momentum after the step", 0, 0},
};
static const tn_attr_field sgd_fields[] = {
    TN_RUNTIME_F64_FIELD(tn_sgd_attrs, lr, 0.01, "learning rate"),
    TN_F64_FIELD(tn_sgd_attrs, momentum, 0, "share of the momentum that stays"),
    TN_F64_FIELD(tn_sgd_attrs, weight_decay, 0, "share of p that is added to g"),
};
static const tn_in_place sgd_in_place[] = {{.input = 0, .output = 0},
                                           {.input = 2, .output = 1}};

static tn_status sgd_infer(const tn_infer *infer, tn_type *types)
{
    static const char *const names[] = {"p", "g", "m"};
    return keep_types(infer, names, 3, types);
}

const tn_primitive nn_sgd = {
    .struct_size = sizeof(tn_primitive),
    .flags = TN_PRIM_OWN_TYPE,
    .id = "nn.sgd/1",
    .doc = "A step of stochastic gradient descent with momentum.",
    TN_INPUTS(sgd_inputs),
    TN_OUTPUTS(sgd_outputs),
    .attrs = TN_ATTR_TABLE(tn_sgd_attrs, sgd_fields),
    .in_place = sgd_in_place,
    .num_in_place = 2,
    .in_place_size = sizeof(tn_in_place),
    .expr = "m1 = momentum * m + g + weight_decay * p; p - lr * m1, m1",
    .infer = sgd_infer,
};

// --- adam -------------------------------------------------------------------------------

static const tn_input_info adam_inputs[] = {
    {"p", "parameters", 0, 0},
    {"g", "their gradient", 0, 0},
    {"m", "first moment, zeros at first", 0, 0},
    {"v", "second moment, zeros at first", 0, 0},
    {"step", "number of the step, from 1: a scalar", TN_INPUT_CONSTANT, 0},
};
static const tn_output_info adam_outputs[] = {
    {"p", "parameters after the step", 0, 0},
    {"m", "first moment after the step", 0, 0},
    {"v", "second moment after the step", 0, 0},
};
static const tn_attr_field adam_fields[] = {
    TN_RUNTIME_F64_FIELD(tn_adam_attrs, lr, 1e-3, "learning rate"),
    TN_F64_FIELD(tn_adam_attrs, beta1, 0.9, "share of the first moment that stays"),
    TN_F64_FIELD(tn_adam_attrs, beta2, 0.999, "share of the second moment that stays"),
    TN_F64_FIELD(tn_adam_attrs, eps, 1e-8, "added to the divisor"),
    TN_F64_FIELD(tn_adam_attrs, weight_decay, 0,
                 "decoupled, as AdamW's: share of p that a step of lr 1 takes away"),
};
static const tn_in_place adam_in_place[] = {
    {.input = 0, .output = 0}, {.input = 2, .output = 1}, {.input = 3, .output = 2}};

static tn_status adam_infer(const tn_infer *infer, tn_type *types)
{
    static const char *const names[] = {"p", "g", "m", "v"};
    tn_status status = check_float(infer->host, "step", &infer->types[4]);
    if (status == TN_OK)
        status = check_rank(infer->host, "step", &infer->types[4], 0, "a scalar");
    if (status)
        return status;
    return keep_types(infer, names, 4, types);
}

// -expm1(step * log(beta)) is 1 - beta ** step without cancellation in the first steps.
// Divisions that are equal for all elements are done once: each element takes one root and
// one quotient.
const tn_primitive nn_adam = {
    .struct_size = sizeof(tn_primitive),
    .flags = TN_PRIM_OWN_TYPE,
    .id = "nn.adam/1",
    .doc = "A step of AdamW: Adam (Kingma and Ba 2015) with decoupled weight decay, unlike "
           "that of optim.adam, which is part of the gradient.",
    TN_INPUTS(adam_inputs),
    TN_OUTPUTS(adam_outputs),
    .attrs = TN_ATTR_TABLE(tn_adam_attrs, adam_fields),
    .in_place = adam_in_place,
    .num_in_place = 3,
    .in_place_size = sizeof(tn_in_place),
    .expr = "m1 = beta1 * m + (1 - beta1) * g; "
            "v1 = beta2 * v + (1 - beta2) * g * g; "
            "size = lr / -expm1(step * log(beta1)); "
            "share = 1 / -expm1(step * log(beta2)); "
            "p - (size * m1 / (sqrt(share * v1) + eps) + lr * weight_decay * p), m1, v1",
    .infer = adam_infer,
};
