// SPDX-License-Identifier: MIT
// The operands of a step in one list, those of its fused programs included.
#ifndef CORE_CHECK_OPERANDS_H
#define CORE_CHECK_OPERANDS_H

#include <stdbool.h>
#include <tenon/backend.h>

// Inputs and outputs of a step that are in memory or were not given: the step's own, then
// those of each fused program. One with TN_VALUE_FUSED has no memory.
static inline uint32_t step_num_inputs(const tn_step *step)
{
    uint32_t count = step->num_inputs;
    for (uint32_t i = 0; i < step->num_fused; i++)
        count += tn_step_fused(step, i)->num_inputs;
    return count;
}
static inline uint32_t step_num_outputs(const tn_step *step)
{
    uint32_t count = step->num_outputs;
    for (uint32_t i = 0; i < step->num_fused; i++)
        count += tn_step_fused(step, i)->num_outputs;
    return count;
}

// Input or output `at` of that list.
static inline const tn_value *step_input(const tn_step *step, uint32_t at)
{
    if (at < step->num_inputs)
        return tn_step_input(step, at);
    at -= step->num_inputs;
    uint32_t i = 0;
    for (; at >= tn_step_fused(step, i)->num_inputs; i++)
        at -= tn_step_fused(step, i)->num_inputs;
    return tn_fused_input(step, tn_step_fused(step, i), at);
}
static inline const tn_value *step_output(const tn_step *step, uint32_t at)
{
    if (at < step->num_outputs)
        return tn_step_output(step, at);
    at -= step->num_outputs;
    uint32_t i = 0;
    for (; at >= tn_step_fused(step, i)->num_outputs; i++)
        at -= tn_step_fused(step, i)->num_outputs;
    return tn_fused_output(step, tn_step_fused(step, i), at);
}

// The number of elements behind its layout that a program may read of input `at`.
static inline uint64_t step_input_reach(const tn_step *step, uint32_t at)
{
    if (at < step->num_inputs)
        return step->program ? tn_taken_reach(step->program, step->params, at) : 0;
    at -= step->num_inputs;
    uint32_t i = 0;
    for (; at >= tn_step_fused(step, i)->num_inputs; i++)
        at -= tn_step_fused(step, i)->num_inputs;
    const tn_fused *fused = tn_step_fused(step, i);
    return tn_taken_reach(fused->program, fused->params, at);
}

static inline bool value_has_memory(const tn_value *value)
{
    return value->layout.dtype != TN_DTYPE_NONE && !(value->flags & TN_VALUE_FUSED);
}

#endif // CORE_CHECK_OPERANDS_H
