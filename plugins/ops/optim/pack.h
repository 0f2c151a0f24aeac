// SPDX-License-Identifier: MIT
// Shared by this pack's files: the list of its primitives, and what their records share.
#ifndef OPTIM_PACK_H
#define OPTIM_PACK_H

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <tenon/ops/base_attrs.h>
#include <tenon/ops/rules.h>
#include <tenon/plugin.h>
#include <tenon/primitive.h>

// The primitives, optim_<name>: X(name).
#define OPTIM_PRIMITIVES(X)                                                                \
    X(sgd)                                                                                 \
    X(lion)                                                                                \
    X(adam)                                                                                \
    X(adamw)                                                                               \
    X(amsgrad)                                                                             \
    X(adamax)                                                                              \
    X(adagrad)                                                                             \
    X(adadelta)                                                                            \
    X(rmsprop)                                                                             \
    X(rmsprop_momentum)                                                                    \
    X(rmsprop_centered)                                                                    \
    X(adafactor)                                                                           \
    X(adafactor_vector)                                                                    \
    X(muon)                                                                                \
    X(global_norm)                                                                         \
    X(clip_grad_norm)                                                                      \
    X(constant_schedule)                                                                   \
    X(step_decay)                                                                          \
    X(exponential_decay)                                                                   \
    X(cosine_decay)                                                                        \
    X(linear_schedule)                                                                     \
    X(polynomial_decay)                                                                    \
    X(join_schedules)
#define OPTIM_DECLARE(name) extern const tn_primitive optim_##name;
OPTIM_PRIMITIVES(OPTIM_DECLARE)
#undef OPTIM_DECLARE

// --- steps that are one expression ------------------------------------------------------

#define P_INPUT                                                                            \
    {                                                                                      \
        "p", "parameters", 0, 0                                                            \
    }
#define G_INPUT                                                                            \
    {                                                                                      \
        "g", "their gradient", 0, 0                                                        \
    }
#define STEP_INPUT                                                                         \
    {                                                                                      \
        "step", "number of the step, from 1: a scalar", TN_INPUT_CONSTANT, 0               \
    }
#define LR_FIELD(type, value) TN_RUNTIME_F64_FIELD(type, lr, value, "learning rate")
#define DECAY_FIELD(type, value)                                                           \
    TN_F64_FIELD(type, weight_decay, value, "share of p that is added to g")
#define DECOUPLED_FIELD(type, value)                                                       \
    TN_F64_FIELD(type, weight_decay, value, "share of p that a step of lr 1 takes away")

// Output 0 may overwrite p, and output i the state input behind g that it replaces.
extern const tn_in_place optim_in_place[4];

// Types of a step's outputs: each has the type of the input that it replaces, so half
// precision parameters may have moments in f32. `inputs` are the record's; the last one is
// the step's number where `counts`.
tn_status optim_infer(const tn_infer *infer, const tn_input_info *inputs, bool counts,
                      tn_type *types);

// The record of a step. NAME_inputs, NAME_outputs and NAME_fields of NAME_attrs are defined
// before.
#define STEP(name, counts, sentence, text)                                                 \
    static tn_status name##_infer(const tn_infer *infer, tn_type *types)                   \
    {                                                                                      \
        return optim_infer(infer, name##_inputs, counts, types);                           \
    }                                                                                      \
    const tn_primitive optim_##name = {                                                    \
        .struct_size = sizeof(tn_primitive),                                               \
        .flags = TN_PRIM_OWN_TYPE,                                                         \
        .id = "optim." #name "/1",                                                         \
        .doc = sentence,                                                                   \
        TN_INPUTS(name##_inputs),                                                          \
        TN_OUTPUTS(name##_outputs),                                                        \
        .attrs = TN_ATTR_TABLE(name##_attrs, name##_fields),                               \
        .in_place = optim_in_place,                                                        \
        .num_in_place = sizeof(name##_outputs) / sizeof(name##_outputs[0]),                \
        .in_place_size = sizeof(tn_in_place),                                              \
        .expr = text,                                                                      \
        .infer = name##_infer}

// --- composites -------------------------------------------------------------------------

// The record of a composite. Further fields may follow.
#define COMPOSITE(name, sentence, ...)                                                     \
    const tn_primitive optim_##name = {.struct_size = sizeof(tn_primitive),                \
                                       .id = "optim." #name "/1",                          \
                                       .doc = sentence,                                    \
                                       .decompose = name##_decompose,                      \
                                       __VA_ARGS__}
#define DECOMPOSE(name)                                                                    \
    static tn_status name##_decompose(const tn_build *build, const tn_rule *rule,          \
                                      tn_array **outputs)

// Status of a rule that built `array`. The builder has recorded the failure behind a NULL.
static inline tn_status built(const tn_array *array)
{
    return array ? TN_OK : TN_ERR_ARGUMENT;
}

// Fails unless input `input` is of a real float dtype.
tn_status optim_check_float(const tn_host *host, const char *input, const tn_type *type);

tn_array *optim_cast(const tn_build *build, tn_array *x, tn_dtype dtype);

// x as a constant for derivatives, for step numbers and rates. NULL for NULL.
tn_array *optim_constant(const tn_build *build, tn_array *x);

// Applies `op` to x over an axis that keeps extent 1, or over all axes (TN_ALL_AXES).
#define TN_ALL_AXES INT64_MIN
tn_array *optim_reduce(const tn_build *build, const char *op, tn_array *x, int64_t axis);

// The square root of the mean of the squares of all elements.
tn_array *optim_rms(const tn_build *build, tn_array *x);

#endif // OPTIM_PACK_H
