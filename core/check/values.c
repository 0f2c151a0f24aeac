// SPDX-License-Identifier: MIT
// Checks the values of a segment before a backend sees them: each id is in range, written
// at most once, and not read after the step that TN_VALUE_LAST names.
#include <stdio.h>
#include "../base/fail.h"
#include "../base/memory.h"
#include "operands.h"
#include "values.h"

struct state {                             // state of one id
    uint32_t written_by, last_of, read_by; // 1 + the step; 0: none so far
};

static tn_status check_values_wrong(const tn_step *step, const char *side, uint32_t k,
                                    const tn_value *value, const char *what, uint32_t other)
{
    char number[32] = "";
    if (other)
        snprintf(number, sizeof(number), " (step %u)", other - 1);
    return fail(TN_ERR_INTERNAL, "step '%s', %s %u: id %llu %s%s",
                step->label ? step->label : "", side, k, (unsigned long long)value->id,
                what, number);
}

static tn_status check_fused(const tn_step *step, const char *side, uint32_t k,
                             const tn_value *value)
{
    return value->id
               ? check_values_wrong(step, side, k, value, "passes through a program", 0)
               : TN_OK;
}

static tn_status values_check_input(const tn_step *step, uint32_t at, uint32_t k,
                                    struct state *states, uint64_t num_values)
{
    const tn_value *value = step_input(step, k);
    if (value->flags & TN_VALUE_FUSED)
        return check_fused(step, "input", k, value);
    if (value->layout.dtype == TN_DTYPE_NONE)
        return TN_OK;
    if (value->id == 0 || value->id > num_values)
        return check_values_wrong(step, "input", k, value, "is out of range", 0);
    struct state *state = &states[value->id];
    if (state->last_of && state->last_of <= at)
        return check_values_wrong(step, "input", k, value,
                                  "was read for the last time before", state->last_of);
    state->read_by = at + 1;
    if (value->flags & TN_VALUE_LAST)
        state->last_of = at + 1;
    return TN_OK;
}

static tn_status check_output(const tn_step *step, uint32_t at, uint32_t k,
                              struct state *states, uint64_t num_values)
{
    const tn_value *value = step_output(step, k);
    if (value->flags & TN_VALUE_FUSED)
        return check_fused(step, "output", k, value);
    if (value->id == 0 || value->id > num_values)
        return check_values_wrong(step, "output", k, value, "is out of range", 0);
    struct state *state = &states[value->id];
    if (state->written_by)
        return check_values_wrong(step, "output", k, value, "was written before",
                                  state->written_by);
    if (state->read_by)
        return check_values_wrong(step, "output", k, value, "was read before",
                                  state->read_by);
    state->written_by = at + 1;
    if (value->flags & TN_VALUE_LAST)
        state->last_of = at + 1;
    return TN_OK;
}

tn_status values_check(const tn_segment *segment)
{
    struct state *states = mem_zalloc((segment->num_values + 1) * sizeof(*states));
    tn_status status = states ? TN_OK : TN_ERR_MEMORY;
    for (uint32_t i = 0; i < segment->num_steps && status == TN_OK; i++) {
        const tn_step *step = tn_segment_step(segment, i);
        for (uint32_t k = 0; k < step_num_inputs(step) && status == TN_OK; k++)
            status = values_check_input(step, i, k, states, segment->num_values);
        for (uint32_t k = 0; k < step_num_outputs(step) && status == TN_OK; k++)
            status = check_output(step, i, k, states, segment->num_values);
    }
    mem_free(states);
    return status;
}
