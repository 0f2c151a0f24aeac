// SPDX-License-Identifier: MIT
// Reductions over the same axes of arrays of the same extents, some of which they all read,
// in one launch: each array is read once. Reductions that are spread over the device have a
// second launch, which joins the parts of all of them. Each computes what its own kernel
// does, in the same order (kernels/vulkan/reduce/reduce_op.glsl and reduce_loop.glsl).
#ifndef VULKAN_JIT_SIBLINGS_H
#define VULKAN_JIT_SIBLINGS_H

#include "../segment/groups.h"
#include "../program/program.h"
#include "vulkan/reduce/plan_reduce.h"

#define SIBLINGS_MAX GROUP_MAX_STEPS
#define SIBLINGS_OPERANDS 8 // arrays, which lie in registers AT_ONCE times

enum siblings_role {
    SIBLINGS_WHOLE,  // from elements to results
    SIBLINGS_FIRST,  // from elements to parts
    SIBLINGS_SECOND, // from parts to results
};

// An array that is read. Strides are by the launch's axes.
struct siblings_operand {
    const tn_value *value;
    uint32_t stride[TN_MAX_RANK];
    bool is_kept; // it has one element for all that are reduced to one
};

// A reduction. `computed` is the dtype of its accumulator's numbers.
struct sibling {
    const char *op; // "sum", of `length` bytes
    uint32_t length;
    tn_dtype in, out, computed;
    const tn_fused *before; // the program before it, or NULL
    // The operands of the program's inputs; without it the first.
    uint8_t operands[TN_EXPR_MAX_INPUTS];
};

// A launch. `extent` and strides: of the kept axes, then of the reduced ones.
struct siblings {
    uint32_t count, num_operands, num_kept, num_axes;
    struct sibling all[SIBLINGS_MAX];
    struct siblings_operand operands[SIBLINGS_OPERANDS];
    uint32_t extent[TN_MAX_RANK];
    struct reduction shape; // how each of them is spread
};

// Arguments, as 32-bit words: the numbers of outputs, of elements that the launch reduces
// to each, of their parts, and of all elements that are reduced to one; the extents; for
// each operand its offset and strides; the offset of each result; the params of each
// program.
enum {
    SIBLINGS_ARG_OUTPUTS,
    SIBLINGS_ARG_REDUCED,
    SIBLINGS_ARG_SPLITS,
    SIBLINGS_ARG_COUNT,
    SIBLINGS_ARGS
};

// The kernel's GLSL. Bindings: of SECOND the parts, of others the operands; of FIRST the
// parts, of others the results; with `args_in_buffer` the arguments.
tn_status siblings_write_glsl(struct text *out, const struct siblings *s,
                              enum siblings_role role, bool args_in_buffer);

extern const struct vk_group_kind siblings_kind;

#endif // VULKAN_JIT_SIBLINGS_H
