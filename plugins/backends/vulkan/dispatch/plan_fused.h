// SPDX-License-Identifier: MIT
// Programs beside a kernel (tn_fused of <tenon/backend.h>). A launch that binds an operand
// that passes through a program gets the program's function linked into its module, and the
// program's own operands as further bindings behind its own, and its arguments behind the
// words that it pushes, or else in a buffer as one binding more.
#ifndef VULKAN_DISPATCH_PLAN_FUSED_H
#define VULKAN_DISPATCH_PLAN_FUSED_H

#include "plan.h"
#include "../program/program.h"

// A program of the step that is planned.
struct fused_part {
    const tn_fused *fused;
    tn_step alone; // the program as a step
    struct program_class class;
    struct program_args args;
    uint32_t constants; // where the arguments lie, in words
    bool is_placed;     // the arguments are in the constants
    bool is_pushed; // the launch that is planned has them among the words that it pushes
};

// A binding of one launch whose elements pass through a program.
struct fused_binding {
    struct fused_part *part;
    uint32_t binding; // of the kernel's module
    uint32_t first;   // binding of the launch: the program's operands begin there
    tn_dtype dtype;   // of the operand
    bool is_pushed;   // the program's arguments are, from word `push` on
    uint32_t push;
};

// The program beside a kernel as a step of its own.
tn_step plan_fused_step(const tn_step *step, const tn_fused *fused);

// Why the device cannot fuse the programs of a step into its kernel, whose launches have at
// most so many operands; NULL: it can.
const char *plan_fused_refused(tn_device *device, const tn_step *step, uint32_t operands);

// The programs of a step, in its order, for free(). NULL: there are none, or memory is
// short, and then the status says so.
tn_status plan_fused_parts(struct vk_plan *plan, const tn_step *step,
                           struct fused_part **out_parts);

// The part of operand `operand` of the step (inputs, then outputs).
struct fused_part *plan_fused_find(struct fused_part *parts, uint32_t num_parts,
                                   uint32_t operand);

// Memory that the part's program reads or writes. False: it has none.
bool plan_fused_memory(const struct fused_part *part, struct vk_operand *out);

// The position of the arguments in the constants, for a binding: they are put there once.
tn_status plan_fused_args(struct vk_plan *plan, struct fused_part *part,
                          struct vk_operand *out);

// Appends the arguments of the bindings' programs to the words that a launch pushes, each
// program's once; sets num_push and `values` of *desc. Call it before
// plan_fused_operands.
void plan_fused_push(struct fused_binding *bindings, uint32_t count, uint32_t *push,
                     struct vk_pipeline_desc *desc);

// Appends the operands of the bindings' programs, each program once, and sets `first`.
// False: they would be more than `most`.
bool plan_fused_operands(struct fused_binding *bindings, uint32_t count,
                         struct vk_operand *operands, uint32_t *num_operands,
                         uint32_t most);

// The key of the linked module.
struct vk_hash plan_fused_key(struct vk_hash key, const struct fused_binding *bindings,
                              uint32_t count);

// Replaces *code, the kernel's module, by the module with all programs. False:
// `reason` says why not, or a status does.
tn_status plan_fused_link(tn_device *device, const struct fused_binding *bindings,
                          uint32_t count, struct vk_code *code, char reason[VK_REASON]);

#endif // VULKAN_DISPATCH_PLAN_FUSED_H
