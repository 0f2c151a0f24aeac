// SPDX-License-Identifier: MIT
// Which instructions of an elementwise program only one side of a SELECT needs: where they
// are many, the SELECT is a branch, and an invocation computes the side that it takes.
#ifndef VULKAN_PROGRAM_PROGRAM_BRANCHES_H
#define VULKAN_PROGRAM_PROGRAM_BRANCHES_H

#include "program.h"

// A region: the program itself, or a side of a SELECT that is a branch.
#define REGION_PROGRAM 0
static inline uint32_t region_of_side(uint32_t select, uint32_t side)
{
    return 1 + 2 * select + side;
}

// side 0: where the condition is true.
struct program_branches {
    uint16_t region[TN_EXPR_MAX_INSNS]; // in which the instruction is computed
    bool is_branch[TN_EXPR_MAX_INSNS];  // of SELECT
};

void program_find_branches(const tn_expr_program *program, struct program_branches *out);

#endif // VULKAN_PROGRAM_PROGRAM_BRANCHES_H
