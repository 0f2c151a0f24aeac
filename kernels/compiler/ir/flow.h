// SPDX-License-Identifier: MIT
// The control flow of a function: blocks in reverse postorder, predecessors, dominators.
// Later changes of the function do not change it.
#ifndef KERNELS_COMPILER_FLOW_H
#define KERNELS_COMPILER_FLOW_H

#include "ir.h"

// Blocks have numbers: their positions in `blocks`. block->mark is the number + 1, or 0
// where no path leads to the block.
struct ir_flow {
    struct ir_block **blocks; // in reverse postorder: the function's first one first
    uint32_t num;
    uint32_t *first_pred, *preds;     // of block i: preds[first_pred[i]] and on, each once
    uint32_t *dominator;              // immediate one; of block 0 itself
    uint32_t *first_child, *children; // of the dominator tree
    uint32_t *enter, *leave;          // times of a walk over that tree
};

// The flow lives in the scratch memory. Without dominators, `dominator` and the members
// behind it are NULL.
struct ir_flow *flow_without_dominators(struct ir *ir, const struct ir_function *function);
struct ir_flow *flow_of(struct ir *ir, const struct ir_function *function);

static inline bool flow_dominates(const struct ir_flow *flow, uint32_t a, uint32_t b)
{
    return flow->enter[a] <= flow->enter[b] && flow->leave[b] <= flow->leave[a];
}

// Labels that a terminator branches to: first[0], first[step], ...
struct targets {
    uint32_t *first, count, step;
};
struct targets targets_of(const struct ir *ir, const struct ir_inst *end);

// The merge instruction of a block, or NULL.
static inline struct ir_inst *merge_of(const struct ir_block *block)
{
    struct ir_inst *merge = block->insts.last ? block->insts.last->previous : NULL;
    return merge && (merge->op == OpLoopMerge || merge->op == OpSelectionMerge) ? merge
                                                                                : NULL;
}

#endif // KERNELS_COMPILER_FLOW_H
