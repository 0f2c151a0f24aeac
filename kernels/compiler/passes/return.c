// SPDX-License-Identifier: MIT
// One return for each function, outside of selections and loops, so that its body can be
// inlined.
//
// A selection of which one way returns and the other goes on becomes a selection whose
// other way is all the rest of the function. Where both ways may go on, the body becomes a
// loop that runs once, and returns leave it. A function that returns from inside of a loop
// keeps its returns.
#include "optimise.h"
#include "../../spirv/numbers.h"

#include <string.h>

struct lowering {
    struct optimiser *o;
    struct ir_function *function;
    bool is_trial;   // nothing is changed: says whether it works
    uint32_t result; // variable that has the value to return; 0: none
    uint32_t depth;  // of selections that take in the rest of the function
    struct ir_block **queue;
    uint8_t *seen; // by id of a block
};

enum { MOST_DEPTH = 100, MOST_BLOCKS = 4096 };

static bool is_return(const struct ir_inst *end)
{
    return end->op == OpReturn || end->op == OpReturnValue;
}

bool opt_has_one_return(const struct ir *ir, const struct ir_function *function)
{
    uint32_t returns = 0, steps = 0, blocks = 0;
    for (const struct ir_block *b = function->first; b; b = b->next, blocks++)
        returns += is_return(b->insts.last);
    const struct ir_block *at = function->first;
    // Past each selection and each loop, to what ends the function.
    for (; steps <= blocks && !is_return(at->insts.last); steps++) {
        const struct ir_inst *merge = merge_of(at), *end = at->insts.last;
        if (!merge && end->op != OpBranch)
            break;
        at = ir->labels[merge ? merge->operands[0] : end->operands[0]];
    }
    return returns == (is_return(at->insts.last) ? 1U : 0U);
}

// Effects of a region of blocks, which does not go past `stop`.
struct region {
    bool returns;      // it has a return
    bool reaches_stop; // or it goes on
};

static struct region return_pass_look_at(struct lowering *l, uint32_t start, uint32_t stop)
{
    const struct ir *ir = l->o->ir;
    struct region region = {false, start == stop};
    uint32_t count = 0;
    if (start == stop)
        return region;
    l->queue[count++] = ir->labels[start];
    l->seen[start] = 1;
    for (uint32_t i = 0; i < count; i++) {
        const struct ir_inst *end = l->queue[i]->insts.last;
        struct targets targets = targets_of(ir, end);
        region.returns = region.returns || is_return(end);
        for (uint32_t k = 0; k < targets.count; k++) {
            uint32_t label = targets.first[k * targets.step];
            region.reaches_stop = region.reaches_stop || label == stop;
            if (label != stop && !l->seen[label]) {
                l->seen[label] = 1;
                l->queue[count++] = ir->labels[label];
            }
        }
    }
    for (uint32_t i = 0; i < count; i++)
        l->seen[l->queue[i]->id] = 0;
    return region;
}

// Makes a branch to `exit` of a return.
static void leave_by(struct lowering *l, struct ir_block *block, uint32_t exit)
{
    struct ir_inst *end = block->insts.last;
    if (l->is_trial)
        return;
    if (end->op == OpReturnValue && l->result)
        ir_insert(block, end,
                  opt_make(l->o, OpStore, 0, 2, (uint32_t[]){l->result, end->operands[0]}));
    ir_remove(end);
    ir_insert(block, NULL, opt_make(l->o, OpBranch, 0, 1, &exit));
}

static bool return_pass_lower(struct lowering *l, struct ir_block *block, uint32_t exit);

// A selection with returns: its ways meet in a new block, which leads to `exit`.
static bool lower_selection(struct lowering *l, struct ir_block *block, uint32_t exit)
{
    struct ir *ir = l->o->ir;
    struct ir_inst *merge = merge_of(block), *end = block->insts.last;
    uint32_t join = merge->operands[0];
    if (end->op != OpBranchConditional || l->depth == MOST_DEPTH)
        return false;
    struct region yes = return_pass_look_at(l, end->operands[1], join);
    struct region no = return_pass_look_at(l, end->operands[2], join);
    if (yes.reaches_stop && no.reaches_stop)
        return false;
    struct ir_block *meet = l->is_trial ? NULL : ir_block(ir);
    uint32_t to = meet ? meet->id : 0;
    if (meet)
        merge->operands[0] = to;
    l->depth++;
    bool works = return_pass_lower(l, ir->labels[end->operands[1]], to) &&
                 return_pass_lower(l, ir->labels[end->operands[2]], to);
    l->depth--;
    if (meet) {
        ir_append_block(ir, l->function, meet);
        ir_insert(meet, NULL, opt_make(l->o, OpBranch, 0, 1, &exit));
    }
    return works;
}

// Lowers what follows from a block on, to the end of the function or to `exit`.
static bool return_pass_lower(struct lowering *l, struct ir_block *block, uint32_t exit)
{
    const struct ir *ir = l->o->ir;
    for (uint32_t steps = 0; steps < MOST_BLOCKS; steps++) {
        const struct ir_inst *merge = merge_of(block), *end = block->insts.last;
        if (is_return(end)) {
            leave_by(l, block, exit);
            return true;
        }
        if (end->op == OpUnreachable || end->op == OpKill)
            return true;
        if (!merge && end->op != OpBranch)
            return false;
        if (!merge) {
            block = ir->labels[end->operands[0]];
            continue;
        }
        struct targets targets = targets_of(ir, end);
        bool returns = false;
        for (uint32_t i = 0; i < targets.count && !returns; i++)
            returns =
                return_pass_look_at(l, targets.first[i * targets.step], merge->operands[0])
                    .returns;
        if (returns)
            return merge->op == OpSelectionMerge && lower_selection(l, block, exit);
        block = ir->labels[merge->operands[0]];
    }
    return false;
}

// --- a loop that runs once ---------------------------------------------------------------

static bool returns_in_loop(struct lowering *l)
{
    const struct ir *ir = l->o->ir;
    for (const struct ir_block *b = l->function->first; b; b = b->next) {
        const struct ir_inst *merge = merge_of(b);
        if (!merge || merge->op != OpLoopMerge)
            continue;
        struct targets targets = targets_of(ir, b->insts.last);
        for (uint32_t i = 0; i < targets.count; i++)
            if (return_pass_look_at(l, targets.first[i * targets.step], merge->operands[0])
                    .returns)
                return true;
    }
    return false;
}

// Puts the body into a loop whose merge block is `exit`.
static void wrap_in_loop(struct lowering *l, uint32_t exit)
{
    struct optimiser *o = l->o;
    struct ir *ir = o->ir;
    struct ir_block *first = l->function->first, *header = ir_block(ir),
                    *body = ir_block(ir), *back = ir_block(ir);
    opt_insert_block(first, header);
    opt_insert_block(header, body);
    opt_rename_pred(o, first->insts.last, first->id, body->id);
    for (struct ir_inst *inst = first->insts.first, *next; inst; inst = next) {
        next = inst->next;
        if (inst->op == OpVariable)
            continue;
        ir_remove(inst);
        ir_insert(body, NULL, inst);
    }
    ir_insert(first, NULL, opt_make(o, OpBranch, 0, 1, &header->id));
    ir_insert(
        header, NULL,
        opt_make(o, OpLoopMerge, 0, 3, (uint32_t[]){exit, back->id, LoopControlNone}));
    ir_insert(header, NULL, opt_make(o, OpBranch, 0, 1, &body->id));
    for (struct ir_block *block = body; block; block = block->next)
        if (is_return(block->insts.last))
            leave_by(l, block, exit);
    ir_append_block(ir, l->function, back);
    ir_insert(back, NULL, opt_make(o, OpBranch, 0, 1, &header->id));
}

static void return_pass_add_result(struct lowering *l)
{
    struct ir *ir = l->o->ir;
    uint32_t type = l->function->head->type;
    if (ir_definition(ir, type)->op == OpTypeVoid)
        return;
    ir->at = l->function->first;
    l->result = ir_local(ir, ir_pointer(ir, StorageClassFunction, type));
}

static void exit_append(struct lowering *l, struct ir_block *exit)
{
    struct optimiser *o = l->o;
    ir_append_block(o->ir, l->function, exit);
    if (!l->result) {
        ir_insert(exit, NULL, opt_make(o, OpReturn, 0, 0, NULL));
        return;
    }
    struct ir_inst *load = opt_make(o, OpLoad, l->function->head->type, 1, &l->result);
    ir_insert(exit, NULL, load);
    ir_insert(exit, NULL, opt_make(o, OpReturnValue, 0, 1, &load->id));
}

bool opt_return(struct optimiser *o, struct ir_function *function)
{
    uint32_t count = 0;
    for (const struct ir_block *b = function->first; b; b = b->next)
        count++;
    if (count > MOST_BLOCKS || opt_has_one_return(o->ir, function))
        return false;
    struct lowering l = {.o = o, .function = function, .is_trial = true};
    // Each selection may get one more block.
    l.queue =
        compiler_allocate(o->ir->compiler, (2 * count + 4) * sizeof(struct ir_block *));
    l.seen = ir_scratch(o->ir, o->ir->bound + 2 * count + 4);
    bool works = return_pass_lower(&l, function->first, 0);
    if (!works && returns_in_loop(&l))
        return false;
    return_pass_add_result(&l);
    l.is_trial = false;
    struct ir_block *exit = ir_block(o->ir);
    if (works)
        return_pass_lower(&l, function->first, exit->id);
    else
        wrap_in_loop(&l, exit->id);
    exit_append(&l, exit);
    o->ir->at = NULL;
    return true;
}
