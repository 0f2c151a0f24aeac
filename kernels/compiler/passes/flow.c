// SPDX-License-Identifier: MIT
// Control flow: branches on constants, blocks that no path leads to, selections that do
// nothing, chains of blocks. What stays is structured as before.
#include "optimise.h"
#include "../../spirv/numbers.h"

#include <string.h>

// --- blocks without a path ---------------------------------------------------------------

// Makes a block with one instruction of a block.
static void empty_block(struct optimiser *o, struct ir_block *block, uint32_t op,
                        uint32_t count, const uint32_t *operands)
{
    while (block->insts.first)
        ir_remove(block->insts.first);
    ir_insert(block, NULL, opt_make(o, op, 0, count, operands));
}

// Phis of a loop's header want a value for the branch back, taken or not.
static void add_back_edge(struct optimiser *o, const struct ir_block *header, uint32_t from)
{
    for (struct ir_inst *phi = header->insts.first; phi && phi->op == OpPhi;
         phi = phi->next) {
        uint32_t count = phi->num_operands;
        uint32_t *operands =
            compiler_allocate(o->ir->compiler, (count + 2) * sizeof(*operands));
        memcpy(operands, phi->operands, count * sizeof(*operands));
        operands[count] = ir_undefined(o->ir, phi->type);
        operands[count + 1] = from;
        ir_set_operands(o->ir, phi, count + 2, operands);
    }
}

enum { IS_MERGE = UINT32_MAX, IS_CONTINUE = UINT32_MAX - 1 }; // in marks of blocks

// Keeps the blocks that merge instructions name, though no path leads to them.
static void keep_named(struct optimiser *o, const struct ir_flow *flow)
{
    for (uint32_t i = 0; i < flow->num; i++) {
        const struct ir_inst *merge = merge_of(flow->blocks[i]);
        if (!merge)
            continue;
        struct ir_block *target = o->ir->labels[merge->operands[0]];
        if (!target->mark) {
            target->mark = IS_MERGE;
            empty_block(o, target, OpUnreachable, 0, NULL);
        }
        if (merge->op != OpLoopMerge)
            continue;
        target = o->ir->labels[merge->operands[1]];
        if (!target->mark) {
            target->mark = IS_CONTINUE;
            empty_block(o, target, OpBranch, 1, &flow->blocks[i]->id);
        }
    }
}

// Drops the values of phis that come from blocks without a path.
static void trim_phis(struct optimiser *o, const struct ir_flow *flow, uint32_t at)
{
    for (struct ir_inst *phi = flow->blocks[at]->insts.first; phi && phi->op == OpPhi;
         phi = phi->next) {
        uint32_t left = 0;
        for (uint32_t k = 0; k + 1 < phi->num_operands; k += 2) {
            const struct ir_block *pred = o->ir->labels[phi->operands[k + 1]];
            if (pred && pred->mark > 0 && pred->mark <= flow->num) {
                phi->operands[left++] = phi->operands[k];
                phi->operands[left++] = phi->operands[k + 1];
            }
        }
        phi->num_operands = left;
    }
}

// A phi with one value is that value.
static void replace_single_phis(struct optimiser *o, struct ir_block *block)
{
    for (struct ir_inst *phi = block->insts.first, *next; phi && phi->op == OpPhi;
         phi = next) {
        next = phi->next;
        if (phi->num_operands != 2)
            continue;
        opt_replace(o, phi->id, phi->operands[0]);
        ir_remove(phi);
    }
}

static struct ir_flow *drop_unreachable(struct optimiser *o, struct ir_function *function)
{
    struct ir_flow *flow = flow_without_dominators(o->ir, function);
    keep_named(o, flow);
    for (uint32_t i = 0; i < flow->num; i++)
        trim_phis(o, flow, i);
    for (struct ir_block *block = function->first, *next; block; block = next) {
        next = block->next;
        if (block->mark == IS_CONTINUE) {
            struct ir_block *header = o->ir->labels[block->insts.last->operands[0]];
            if (header->insts.first->op == OpPhi && header->insts.first->num_operands > 2)
                add_back_edge(o, header, block->id);
        }
        if (!block->mark)
            opt_remove_block(o->ir, block);
        else if (block->mark > flow->num)
            block->mark = 0;
    }
    for (uint32_t i = 0; i < flow->num; i++)
        replace_single_phis(o, flow->blocks[i]);
    return flow;
}

void opt_unreachable(struct optimiser *o, struct ir_function *function)
{
    drop_unreachable(o, function);
    opt_apply(o, function);
}

// --- branches on constants ---------------------------------------------------------------

// Turns a block's terminator into a branch. A selection is none any more; a loop stays one.
static void flow_pass_branch_to(struct optimiser *o, struct ir_block *block,
                                uint32_t target)
{
    struct ir_inst *merge = merge_of(block), *end = block->insts.last;
    struct targets targets = targets_of(o->ir, end);
    for (uint32_t i = 0; i < targets.count; i++)
        if (targets.first[i * targets.step] != target)
            opt_drop_pred(o->ir->labels[targets.first[i * targets.step]], block->id);
    if (merge && merge->op == OpSelectionMerge)
        ir_remove(merge);
    ir_remove(end);
    ir_insert(block, NULL, opt_make(o, OpBranch, 0, 1, &target));
}

// Whether a branch leads back to a loop's header. Blocks are numbered in their order, in
// which a loop's blocks are behind its header.
static bool leads_back(const struct optimiser *o, const struct ir_block *block,
                       uint32_t target)
{
    const struct ir_block *header = o->ir->labels[target];
    const struct ir_inst *merge = merge_of(header);
    return header->mark <= block->mark && merge && merge->op == OpLoopMerge;
}

static bool fold_condition(struct optimiser *o, struct ir_block *block)
{
    const struct ir_inst *end = block->insts.last;
    uint64_t value;
    if (end->op != OpBranchConditional)
        return false;
    if (end->operands[1] == end->operands[2]) {
        flow_pass_branch_to(o, block, end->operands[1]);
        return true;
    }
    if (!opt_constant(o->ir, end->operands[0], &value))
        return false;
    // A loop keeps its branch back, though it is not taken.
    if (leads_back(o, block, end->operands[value ? 2 : 1]))
        return false;
    flow_pass_branch_to(o, block, end->operands[value ? 1 : 2]);
    return true;
}

static uint32_t chosen_case(const struct ir_inst *end, const struct targets *targets,
                            uint64_t value)
{
    for (uint32_t i = 1; i < targets->count; i++) {
        const uint32_t *label = &targets->first[i * targets->step];
        uint64_t literal = label[-1];
        if (targets->step > 2)
            literal = label[-2] | (uint64_t)label[-1] << 32;
        if (literal == value)
            return *label;
    }
    return end->operands[1];
}

// A switch on a constant keeps one path. It stays a switch, as breaks lead to its merge
// block from inside of other selections.
static bool fold_switch(struct optimiser *o, struct ir_block *block)
{
    struct ir_inst *end = block->insts.last;
    uint64_t value;
    if (end->op != OpSwitch || end->num_operands == 2 ||
        !opt_constant(o->ir, end->operands[0], &value))
        return false;
    struct targets targets = targets_of(o->ir, end);
    uint32_t chosen = chosen_case(end, &targets, value);
    for (uint32_t i = 0; i < targets.count; i++)
        if (targets.first[i * targets.step] != chosen)
            opt_drop_pred(o->ir->labels[targets.first[i * targets.step]], block->id);
    end->operands[1] = chosen;
    end->num_operands = 2;
    return true;
}

static bool fold_branches(struct optimiser *o, const struct ir_function *function)
{
    bool changed = false;
    uint32_t number = 0;
    for (struct ir_block *block = function->first; block; block = block->next)
        block->mark = number++;
    for (struct ir_block *block = function->first; block; block = block->next)
        changed = fold_condition(o, block) || fold_switch(o, block) || changed;
    return changed;
}

// --- selections that do nothing ----------------------------------------------------------

// Where a block leads that does nothing but branch, and has one predecessor; otherwise 0.
static uint32_t passes_to(const struct optimiser *o, const struct ir_flow *flow,
                          uint32_t label)
{
    const struct ir_block *block = o->ir->labels[label];
    const struct ir_inst *only = block->insts.first;
    uint32_t at = block->mark - 1;
    if (!block->mark || only->op != OpBranch || block->previous == NULL ||
        flow->first_pred[at + 1] - flow->first_pred[at] != 1)
        return 0;
    return only->operands[0];
}

// The value that a phi has for a predecessor.
static uint32_t value_from(const struct ir_inst *phi, uint32_t pred)
{
    for (uint32_t k = 0; k + 1 < phi->num_operands; k += 2)
        if (phi->operands[k + 1] == pred)
            return phi->operands[k];
    return 0;
}

// A selection whose two ways are empty is a branch, where the phis do not tell the ways
// apart.
static bool drop_selection(struct optimiser *o, const struct ir_flow *flow,
                           struct ir_block *block)
{
    struct ir_inst *merge = merge_of(block), *end = block->insts.last;
    if (!merge || merge->op != OpSelectionMerge || end->op != OpBranchConditional)
        return false;
    uint32_t join = merge->operands[0], ways[2];
    for (uint32_t i = 0; i < 2; i++) {
        ways[i] = end->operands[1 + i];
        if (ways[i] == join)
            ways[i] = block->id;
        else if (passes_to(o, flow, ways[i]) != join)
            return false;
    }
    struct ir_block *to = o->ir->labels[join];
    for (struct ir_inst *phi = to->insts.first; phi && phi->op == OpPhi; phi = phi->next)
        if (value_from(phi, ways[0]) != value_from(phi, ways[1]))
            return false;
    if (ways[0] != ways[1])
        opt_drop_pred(to, ways[1] == block->id ? ways[0] : ways[1]);
    for (struct ir_inst *phi = to->insts.first; phi && phi->op == OpPhi; phi = phi->next)
        for (uint32_t k = 1; k < phi->num_operands; k += 2)
            if (phi->operands[k] == ways[0] || phi->operands[k] == ways[1])
                phi->operands[k] = block->id;
    ir_remove(merge);
    ir_remove(end);
    ir_insert(block, NULL, opt_make(o, OpBranch, 0, 1, &join));
    return true;
}

// --- chains of blocks --------------------------------------------------------------------

// Whether `second`, the only way on from `first`, may be a part of it.
static bool can_join(const struct ir_block *first, const struct ir_block *second)
{
    const struct ir_inst *merge = merge_of(first), *end = second->insts.last;
    const struct ir_inst *inner = merge_of(second);
    if (inner && inner->op == OpLoopMerge)
        return false; // a branch back may name it, taken or not
    if (!merge)
        return true;
    return merge->op == OpLoopMerge && !inner &&
           (end->op == OpBranch || end->op == OpBranchConditional);
}

static void flow_pass_join(struct optimiser *o, struct ir_block *first,
                           struct ir_block *second)
{
    struct ir_inst *merge = merge_of(first);
    ir_remove(first->insts.last);
    if (merge)
        ir_remove(merge);
    replace_single_phis(o, second);
    for (struct ir_inst *inst = second->insts.first; inst; inst = inst->next)
        inst->block = first;
    if (first->insts.last) {
        first->insts.last->next = second->insts.first;
        second->insts.first->previous = first->insts.last;
    } else {
        first->insts.first = second->insts.first;
    }
    first->insts.last = second->insts.last;
    if (merge)
        ir_insert(first, first->insts.last, merge);
    opt_rename_pred(o, first->insts.last, second->id, first->id);
    second->insts = (struct ir_insts){NULL, NULL};
    opt_remove_block(o->ir, second);
}

// Blocks that merge instructions name stay blocks of their own.
static void mark_named(const struct ir_function *function, uint8_t *is_named)
{
    for (const struct ir_block *block = function->first; block; block = block->next) {
        const struct ir_inst *merge = merge_of(block);
        if (merge)
            is_named[merge->operands[0]] = 1;
        if (merge && merge->op == OpLoopMerge)
            is_named[merge->operands[1]] = 1;
    }
}

static void flow_pass_join_chains(struct optimiser *o, const struct ir_flow *flow,
                                  const struct ir_function *function)
{
    uint8_t *is_named = ir_scratch(o->ir, o->ir->bound);
    mark_named(function, is_named);
    for (uint32_t i = 0; i < flow->num; i++) {
        struct ir_block *block = flow->blocks[i];
        while (block->function && block->insts.last->op == OpBranch) {
            struct ir_block *next = o->ir->labels[block->insts.last->operands[0]];
            uint32_t at = next->mark - 1;
            if (is_named[next->id] || next == block || !next->mark ||
                flow->first_pred[at + 1] - flow->first_pred[at] != 1 ||
                !can_join(block, next))
                break;
            flow_pass_join(o, block, next);
        }
    }
}

bool opt_flow(struct optimiser *o, struct ir_function *function)
{
    enum { MOST_ROUNDS = 4 };
    bool changed = false;
    for (uint32_t round = 0, again = 1; again && round < MOST_ROUNDS; round++) {
        again = fold_branches(o, function);
        struct ir_flow *flow = drop_unreachable(o, function);
        bool dropped = false;
        for (uint32_t left = flow->num; left > 0; left--)
            dropped = drop_selection(o, flow, flow->blocks[left - 1]) || dropped;
        if (dropped)
            flow = drop_unreachable(o, function);
        flow_pass_join_chains(o, flow, function);
        again |= dropped;
        changed = changed || again;
    }
    opt_apply(o, function);
    return changed;
}
