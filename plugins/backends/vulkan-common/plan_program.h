// SPDX-License-Identifier: MIT
// The launch of an elementwise program's kernel, however its code was come by.
#ifndef VULKAN_COMMON_PLAN_PROGRAM_H
#define VULKAN_COMMON_PLAN_PROGRAM_H

#include "plan.h"
#include "program.h"

// What `get_code` is given as its context.
struct program_source {
    const tn_expr_program *program;
    const struct program_class *class;
};

// NULL when the device has all that the program computes with; else what it lacks.
const char *program_device_lacks(tn_device *device, const tn_expr_program *program);

// Adds the one dispatch of a program whose kernel was made for exactly its class.
tn_status plan_program_launch(struct vk_plan *plan, const tn_step *step,
                              const struct program_class *class,
                              const struct program_args *args,
                              tn_status (*get_code)(tn_device *device, void *context,
                                                    struct vk_code *out));

#endif // VULKAN_COMMON_PLAN_PROGRAM_H
