// SPDX-License-Identifier: MIT
// Shared by the checks of segments: group_segment.c and takes.c.
#ifndef CONFORMANCE_SEGMENT_SEGMENT_H
#define CONFORMANCE_SEGMENT_SEGMENT_H

#include "../kit/array.h"
#include "draft.h"

// True when step_check accepts the step. A refusal without a reason fails the check.
bool segment_accepts(struct fixture *f, const tn_step *step);

// Compiles the draft, submits it once and waits. Each buffer is bound at offset 0.
bool segment_run(struct fixture *f, const struct draft *draft, tn_buffer *const *buffers);

// Creates a slot and a buffer that holds the array's memory; NULL when that fails. Returns
// the value in the slot.
tn_value segment_upload(struct fixture *f, struct draft *draft, const struct array *a,
                        tn_buffer **out_buffer);

// Compares the buffer's contents with `want`, exactly. `got` is the array that was uploaded
// there, with bytes 0x5a around its elements. `what` names the case in the message.
void segment_compare(struct fixture *f, tn_buffer *buffer, struct array *got,
                     const struct array *want, const char *what);

// The checks of programs that gather.
void segment_takes(struct kit *k);

#endif // CONFORMANCE_SEGMENT_SEGMENT_H
