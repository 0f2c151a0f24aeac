// SPDX-License-Identifier: MIT
// Checks of the group `family` that are in files of their own, and what their kernels
// share.
#ifndef CONFORMANCE_FAMILY_FAMILY_H
#define CONFORMANCE_FAMILY_FAMILY_H

#include "../kit/fixture.h"

// Kernels get no kit: they record faults of their calls here, and the check that ran them
// reports the first one. The first note counts; "": none (fault.c).
void fault_clear(void);
void fault_note(const char *format, ...) PRINTF_LIKE(1, 2);
const char *fault_text(void);

// stages.c: the calls of the steps of a segment, and what they fuse.
void family_stages(struct kit *k);

// plan.c: kernels that plan their launches (<tenon/vulkan.h>).
void check_glsl_plan(struct fixture *f);
void check_spirv_plan(struct fixture *f);
// Plans that ask for too much fail the compilation, with words, and leave nothing behind.
void check_wrong_plans(struct fixture *f);

#endif // CONFORMANCE_FAMILY_FAMILY_H
