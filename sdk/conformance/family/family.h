// SPDX-License-Identifier: MIT
// Checks of the group `family` that are in files of their own.
#ifndef CONFORMANCE_FAMILY_FAMILY_H
#define CONFORMANCE_FAMILY_FAMILY_H

#include "../kit/fixture.h"

// stages.c: the calls of the steps of a segment, and what they fuse.
void family_stages(struct kit *k);

// plan.c: kernels that plan their launches (<tenon/vulkan.h>).
void check_glsl_plan(struct fixture *f);
void check_spirv_plan(struct fixture *f);
// What a plan may not ask for fails the compilation, with words, and leaves nothing behind.
void check_wrong_plans(struct fixture *f);

#endif // CONFORMANCE_FAMILY_FAMILY_H
