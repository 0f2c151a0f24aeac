// SPDX-License-Identifier: MIT
#include "flow.h"

#include <string.h>

struct targets targets_of(const struct ir *ir, const struct ir_inst *end)
{
    uint32_t step;
    switch (end->op) {
    case OpBranch:
        return (struct targets){end->operands, 1, 1};
    case OpBranchConditional:
        return (struct targets){end->operands + 1, 2, 1};
    case OpSwitch:
        step = ir_ids(ir, end).width + 1;
        return (struct targets){end->operands + 1, 1 + (end->num_operands - 2) / step,
                                step};
    default:
        return (struct targets){NULL, 0, 1};
    }
}

static void *ir_flow_array(struct ir *ir, uint32_t count)
{
    return ir_scratch(ir, ((size_t)count + 1) * sizeof(uint32_t));
}

// --- reverse postorder -------------------------------------------------------------------

struct ir_flow_step {
    struct ir_block *block;
    struct targets targets;
    uint32_t next;
};

static void number_blocks(struct ir *ir, const struct ir_function *function,
                          struct ir_flow *flow)
{
    uint32_t count = 0;
    for (struct ir_block *block = function->first; block; block = block->next, count++)
        block->mark = 0;
    flow->blocks = ir_scratch(ir, count * sizeof(*flow->blocks));
    struct ir_flow_step *stack = ir_scratch(ir, count * sizeof(*stack));
    uint32_t depth = 1, left = count;
    function->first->mark = 1;
    stack[0] = (struct ir_flow_step){function->first,
                                     targets_of(ir, function->first->insts.last), 0};
    while (depth > 0) {
        struct ir_flow_step *top = &stack[depth - 1];
        if (top->next == top->targets.count) {
            flow->blocks[--left] = top->block;
            depth--;
            continue;
        }
        struct ir_block *to =
            ir->labels[top->targets.first[top->next++ * top->targets.step]];
        if (to->mark)
            continue;
        to->mark = 1;
        stack[depth++] = (struct ir_flow_step){to, targets_of(ir, to->insts.last), 0};
    }
    flow->num = count - left;
    memmove(flow->blocks, flow->blocks + left, flow->num * sizeof(*flow->blocks));
    for (uint32_t i = 0; i < flow->num; i++)
        flow->blocks[i]->mark = i + 1;
}

// --- predecessors ------------------------------------------------------------------------

static void find_preds(struct ir *ir, struct ir_flow *flow)
{
    flow->first_pred = ir_flow_array(ir, flow->num + 1);
    uint32_t *last =
        ir_flow_array(ir, flow->num); // that counted block i, + 1: each counts once
    for (uint32_t pass = 0, total = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < flow->num; i++) {
            struct targets targets = targets_of(ir, flow->blocks[i]->insts.last);
            for (uint32_t k = 0; k < targets.count; k++) {
                uint32_t to = ir->labels[targets.first[k * targets.step]]->mark - 1;
                if (last[to] == i + 1 + pass * flow->num)
                    continue;
                last[to] = i + 1 + pass * flow->num;
                if (pass == 0)
                    flow->first_pred[to + 1]++;
                else
                    flow->preds[flow->first_pred[to]++] = i;
            }
        }
        if (pass == 0) {
            for (uint32_t i = 0; i < flow->num; i++)
                flow->first_pred[i + 1] += flow->first_pred[i];
            total = flow->first_pred[flow->num];
            flow->preds = ir_flow_array(ir, total);
        }
    }
    // Filling has moved each start to its end.
    memmove(flow->first_pred + 1, flow->first_pred, flow->num * sizeof(uint32_t));
    flow->first_pred[0] = 0;
}

// --- dominators: Cooper, Harvey, Kennedy -------------------------------------------------

static uint32_t ir_flow_common(const uint32_t *dominator, uint32_t a, uint32_t b)
{
    while (a != b)
        if (a > b)
            a = dominator[a];
        else
            b = dominator[b];
    return a;
}

static void find_dominators(struct ir *ir, struct ir_flow *flow)
{
    flow->dominator = ir_flow_array(ir, flow->num);
    for (uint32_t i = 1; i < flow->num; i++)
        flow->dominator[i] = UINT32_MAX;
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 1; i < flow->num; i++) {
            uint32_t found = UINT32_MAX;
            for (uint32_t p = flow->first_pred[i]; p < flow->first_pred[i + 1]; p++) {
                uint32_t pred = flow->preds[p];
                if (flow->dominator[pred] != UINT32_MAX)
                    found = found == UINT32_MAX
                                ? pred
                                : ir_flow_common(flow->dominator, pred, found);
            }
            again = again || flow->dominator[i] != found;
            flow->dominator[i] = found;
        }
    }
}

static void find_children(struct ir *ir, struct ir_flow *flow)
{
    flow->first_child = ir_flow_array(ir, flow->num + 1);
    flow->children = ir_flow_array(ir, flow->num);
    for (uint32_t i = 1; i < flow->num; i++)
        flow->first_child[flow->dominator[i] + 1]++;
    for (uint32_t i = 0; i < flow->num; i++)
        flow->first_child[i + 1] += flow->first_child[i];
    for (uint32_t i = 1; i < flow->num; i++)
        flow->children[flow->first_child[flow->dominator[i]]++] = i;
    memmove(flow->first_child + 1, flow->first_child, flow->num * sizeof(uint32_t));
    flow->first_child[0] = 0;
}

static void time_tree(struct ir *ir, struct ir_flow *flow)
{
    flow->enter = ir_flow_array(ir, flow->num);
    flow->leave = ir_flow_array(ir, flow->num);
    uint32_t *stack = ir_flow_array(ir, flow->num), *next = ir_flow_array(ir, flow->num);
    uint32_t depth = 1, time = 0;
    memcpy(next, flow->first_child, flow->num * sizeof(*next));
    while (depth > 0) {
        uint32_t at = stack[depth - 1];
        if (next[at] < flow->first_child[at + 1]) {
            uint32_t child = flow->children[next[at]++];
            flow->enter[child] = ++time;
            stack[depth++] = child;
        } else {
            flow->leave[at] = ++time;
            depth--;
        }
    }
}

struct ir_flow *flow_without_dominators(struct ir *ir, const struct ir_function *function)
{
    struct ir_flow *flow = ir_scratch(ir, sizeof(*flow));
    number_blocks(ir, function, flow);
    find_preds(ir, flow);
    return flow;
}

struct ir_flow *flow_of(struct ir *ir, const struct ir_function *function)
{
    struct ir_flow *flow = flow_without_dominators(ir, function);
    find_dominators(ir, flow);
    find_children(ir, flow);
    time_tree(ir, flow);
    return flow;
}
