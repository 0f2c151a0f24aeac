// SPDX-License-Identifier: MIT
// Shared by the checks of segments: running a draft once, arrays in its slots.
#include "segment.h"

bool segment_accepts(struct fixture *f, const tn_step *step)
{
    const char *reason = NULL;
    if (!TN_HAS(f->backend, step_check) || f->backend->step_check(f->device, step, &reason))
        return true;
    if (!reason || !reason[0])
        check_fail(f->kit, "step_check refuses a step and gives no reason");
    return false;
}

bool segment_run(struct fixture *f, const struct draft *d, tn_buffer *const *buffers)
{
    tn_binding bindings[DRAFT_SLOTS] = {{0}};
    uint64_t point;
    tn_executable *executable = fixture_compile(f, &d->segment);
    for (uint32_t i = 0; i < d->segment.num_slots; i++)
        bindings[i].buffer = buffers[i];
    return executable &&
           fixture_submit(f, executable, bindings, d->segment.num_slots, 0, &point) &&
           fixture_wait(f, point);
}

tn_value segment_upload(struct fixture *f, struct draft *d, const struct array *a,
                        tn_buffer **out_buffer)
{
    tn_value value = {.layout = a->tensor.layout};
    value.slot = draft_slot(d, 0, a->size);
    *out_buffer = fixture_buffer(f, a->size);
    if (*out_buffer && !fixture_write(f, *out_buffer, 0, a->memory, a->size))
        *out_buffer = NULL;
    return value;
}

void segment_compare(struct fixture *f, tn_buffer *buffer, struct array *got,
                     const struct array *want, const char *what)
{
    if (!fixture_computes(f) || !fixture_read(f, buffer, 0, got->memory, got->size))
        return;
    const char *failure = array_compare(got, want, 0, 0, NULL);
    if (failure)
        check_fail(f->kit, "%s: %s", what, failure);
    else if (!array_guards_hold(got, 0x5a))
        check_fail(f->kit, "%s: something is written outside of the output", what);
}
