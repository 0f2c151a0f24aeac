// SPDX-License-Identifier: MIT
// Plans the dispatch of an expression program's kernel. Each plugin provides the kernel's
// code.
#ifndef VULKAN_DISPATCH_PLAN_PROGRAM_H
#define VULKAN_DISPATCH_PLAN_PROGRAM_H

#include "plan.h"
#include "../program/program.h"

// The context that `get_code` receives.
struct program_source {
    const tn_expr_program *program;
    const struct program_class *class;
};

// NULL if the device supports all dtypes that the program computes with; else a static
// sentence that names the missing dtype.
const char *program_device_lacks(tn_device *device, const tn_expr_program *program);

// Adds the dispatch of a program. `get_code` gives the kernel for the class that it finds
// in its context, a struct program_source.
tn_status plan_program_launch(struct vk_plan *plan, const tn_step *step,
                              tn_status (*get_code)(tn_device *device, void *context,
                                                    struct vk_code *out));

#endif // VULKAN_DISPATCH_PLAN_PROGRAM_H
