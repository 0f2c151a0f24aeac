// SPDX-License-Identifier: MIT
#include "program_branches.h"

#include <string.h>

#define WORTH_BRANCH 24 // instructions of one side that a branch is worth
#define MOST_NESTED 6

// About how many instructions of a GPU an instruction becomes.
static uint32_t branch_weight(const tn_expr_insn *insn)
{
    uint32_t wide = insn->dtype == TN_F64 ? 2 : 1;
    switch (tn_expr_class(insn->op)) {
    case TN_EXPR_CLASS_LEAF:
        return 0;
    case TN_EXPR_CLASS_FUNCTION:
    case TN_EXPR_CLASS_CIRCULAR:
    case TN_EXPR_CLASS_POWER:
        return 30 * wide;
    case TN_EXPR_CLASS_DIVIDE:
    case TN_EXPR_CLASS_ROOT:
        return 8 * wide;
    default:
        return wide;
    }
}

static uint32_t parent_of(const struct program_branches *b, uint32_t region)
{
    return b->region[(region - 1) / 2];
}

static uint32_t program_branches_depth_of(const struct program_branches *b, uint32_t region)
{
    uint32_t depth = 0;
    for (; region != REGION_PROGRAM; region = parent_of(b, region))
        depth++;
    return depth;
}

// The least region around both.
static uint32_t region_around(const struct program_branches *b, uint32_t x, uint32_t y)
{
    while (x != y) {
        // A SELECT stands behind what its sides compute: the inner region is the one whose
        // SELECT comes first.
        if (x == REGION_PROGRAM || y == REGION_PROGRAM)
            return REGION_PROGRAM;
        if ((x - 1) / 2 < (y - 1) / 2)
            x = parent_of(b, x);
        else if ((x - 1) / 2 > (y - 1) / 2)
            y = parent_of(b, y);
        else // two sides of one
            return parent_of(b, x);
    }
    return x;
}

// Puts each instruction into the least region around all that reads it, from the last one
// on: users come behind what they use.
static void branches_assign_regions(const tn_expr_program *program,
                                    struct program_branches *b)
{
    bool is_used[TN_EXPR_MAX_INSNS] = {false};
    memset(b->region, 0, sizeof(b->region));
    for (uint32_t i = 0; i < program->num_outputs; i++)
        is_used[program->outputs[i]] = true;
    for (uint32_t left = program->num_insns; left > 0; left--) {
        uint32_t user = left - 1;
        const tn_expr_insn *insn = &program->insns[user];
        uint32_t from[] = {insn->a, insn->b, insn->c}, first = 0;
        uint32_t count = tn_expr_operands(insn->op);
        if (insn->op == TN_EXPR_TAKE)
            first = 1, count = 2;
        for (uint32_t k = first; k < count; k++) {
            uint32_t region =
                k > 0 && b->is_branch[user] ? region_of_side(user, k - 1) : b->region[user];
            uint32_t at = from[k];
            b->region[at] =
                (uint16_t)(is_used[at] ? region_around(b, b->region[at], region) : region);
            is_used[at] = true;
        }
    }
}

void program_find_branches(const tn_expr_program *program, struct program_branches *out)
{
    uint32_t weight[1 + 2 * TN_EXPR_MAX_INSNS] = {0};
    bool any = false;
    for (uint32_t i = 0; i < program->num_insns; i++)
        any |= out->is_branch[i] = program->insns[i].op == TN_EXPR_SELECT;
    branches_assign_regions(program, out);
    if (!any)
        return;
    for (uint32_t i = 0; i < program->num_insns; i++)
        for (uint32_t region = out->region[i]; region != REGION_PROGRAM;
             region = parent_of(out, region))
            weight[region] += branch_weight(&program->insns[i]);
    for (uint32_t i = 0; i < program->num_insns; i++) {
        uint32_t one = weight[region_of_side(i, 0)], other = weight[region_of_side(i, 1)];
        out->is_branch[i] = out->is_branch[i] &&
                            (one >= WORTH_BRANCH || other >= WORTH_BRANCH) &&
                            program_branches_depth_of(out, out->region[i]) < MOST_NESTED;
    }
    branches_assign_regions(program, out);
}
