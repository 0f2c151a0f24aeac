// SPDX-License-Identifier: MIT
// Checks of the group `family`: kernels that plan their launches (<tenon/vulkan.h>).
#ifndef CONFORMANCE_FAMILY_PLAN_H
#define CONFORMANCE_FAMILY_PLAN_H

#include "fixture.h"

void check_glsl_plan(struct fixture *f);
void check_spirv_plan(struct fixture *f);
// What a plan may not ask for fails the compilation, with words, and leaves nothing behind.
void check_wrong_plans(struct fixture *f);

#endif // CONFORMANCE_FAMILY_PLAN_H
