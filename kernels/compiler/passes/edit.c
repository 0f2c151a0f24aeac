// SPDX-License-Identifier: MIT
// What the passes share: tables by id, replacements, and edits of blocks.
#include "optimise.h"
#include "../../spirv/numbers.h"

#include <string.h>

// --- tables by id ------------------------------------------------------------------------

static void *edit_pass_larger(struct optimiser *o, const void *items, uint32_t capacity,
                              size_t size)
{
    void *copy = compiler_allocate(o->ir->compiler, capacity * size);
    if (o->capacity)
        memcpy(copy, items, o->capacity * size);
    return copy;
}

void optimiser_grow(struct optimiser *o)
{
    if (o->ir->bound <= o->capacity)
        return;
    uint32_t capacity = 2 * o->ir->bound + 64;
    o->same = edit_pass_larger(o, o->same, capacity, sizeof(*o->same));
    o->flags = edit_pass_larger(o, o->flags, capacity, sizeof(*o->flags));
    o->capacity = capacity;
}

static uint8_t flag_of(const struct ir_inst *inst)
{
    if (inst->op != OpDecorate)
        return IS_DECORATED;
    switch (inst->operands[1]) {
    case DecorationNoContraction:
        return IS_PRECISE;
    case DecorationRelaxedPrecision:
        return IS_RELAXED;
    default:
        return IS_DECORATED;
    }
}

enum { NUM_BUCKETS = 256 };

static void add_decoration(struct optimiser *o, struct ir_inst *inst)
{
    uint32_t id = inst->operands[0];
    struct decoration *decoration = compiler_allocate(o->ir->compiler, sizeof(*decoration));
    struct decoration **bucket = &o->buckets[id % NUM_BUCKETS];
    *decoration = (struct decoration){inst, *bucket};
    *bucket = decoration;
    o->flags[id] |= flag_of(inst);
}

static struct decoration *edit_pass_first_of(struct decoration *decoration, uint32_t id)
{
    while (decoration && decoration->inst->operands[0] != id)
        decoration = decoration->next;
    return decoration;
}

struct decoration *opt_decoration(const struct optimiser *o, uint32_t id)
{
    return o->flags[id] ? edit_pass_first_of(o->buckets[id % NUM_BUCKETS], id) : NULL;
}

struct decoration *opt_next_decoration(struct decoration *decoration, uint32_t id)
{
    return edit_pass_first_of(decoration->next, id);
}

struct optimiser *optimiser_create(struct ir *ir)
{
    struct optimiser *o = compiler_allocate(ir->compiler, sizeof(*o));
    uint32_t count = 0;
    o->ir = ir;
    optimiser_grow(o);
    o->buckets = compiler_allocate(ir->compiler, NUM_BUCKETS * sizeof(struct decoration *));
    for (struct ir_inst *inst = ir->decorations.first; inst; inst = inst->next)
        add_decoration(o, inst);
    for (struct ir_function *f = ir->functions; f; f = f->next)
        count++;
    if (count > UINT16_MAX - 1)
        compiler_fail(ir->compiler, NULL, "%u functions, expected at most %u", count,
                      UINT16_MAX - 1);
    o->functions =
        compiler_allocate(ir->compiler, (count + 1) * sizeof(struct ir_function *));
    for (struct ir_function *f = ir->functions; f; f = f->next) {
        o->functions[++o->num_functions] = f;
        f->head->mark = (uint16_t)o->num_functions;
    }
    return o;
}

void opt_copy_decorations(struct optimiser *o, uint32_t from, uint32_t to)
{
    for (struct decoration *d = opt_decoration(o, from); d;
         d = opt_next_decoration(d, from)) {
        struct ir_inst *copy =
            ir_inst(o->ir, d->inst->op, 0, 0, d->inst->num_operands, d->inst->operands);
        copy->operands[0] = to;
        ir_append(&o->ir->decorations, copy);
        add_decoration(o, copy);
    }
}

void opt_replace(struct optimiser *o, uint32_t id, uint32_t with)
{
    optimiser_grow(o);
    with = opt_same(o, with);
    if (with == id)
        return;
    o->same[id] = with;
    o->has_replaced = true;
}

void opt_apply(struct optimiser *o, const struct ir_function *function)
{
    optimiser_grow(o);
    if (!o->has_replaced || o->delays)
        return;
    o->has_replaced = false;
    for (const struct ir_block *block = function->first; block; block = block->next)
        for (const struct ir_inst *inst = block->insts.first; inst; inst = inst->next) {
            struct spirv_ids ids = ir_ids_quick(o->ir, inst);
            for (uint32_t *id; (id = ir_next_id(&ids)) != NULL;)
                *id = opt_same(o, *id);
        }
}

struct ir_inst *opt_make(struct optimiser *o, uint32_t op, uint32_t type, uint32_t count,
                         const uint32_t *operands)
{
    uint32_t id = type ? ir_new_id(o->ir) : 0;
    optimiser_grow(o);
    return ir_inst(o->ir, op, type, id, count, operands);
}

bool opt_constant(const struct ir *ir, uint32_t id, uint64_t *bits)
{
    const struct ir_inst *inst = ir_definition(ir, id);
    if (!inst || inst->block)
        return false;
    const struct ir_inst *type = inst->type ? ir_definition(ir, inst->type) : NULL;
    switch (inst->op) {
    case OpConstantTrue:
    case OpConstantFalse:
        *bits = inst->op == OpConstantTrue;
        return true;
    case OpConstant:
        *bits = inst->operands[0];
        if (inst->num_operands > 1)
            *bits |= (uint64_t)inst->operands[1] << 32;
        return true;
    case OpConstantNull:
        *bits = 0;
        return type->op == OpTypeInt || type->op == OpTypeFloat || type->op == OpTypeBool;
    default:
        return false;
    }
}

// --- blocks ------------------------------------------------------------------------------

void opt_insert_block(struct ir_block *after, struct ir_block *block)
{
    struct ir_function *function = after->function;
    block->function = function;
    block->previous = after;
    block->next = after->next;
    *(after->next ? &after->next->previous : &function->last) = block;
    after->next = block;
}

void opt_remove_block(struct ir *ir, struct ir_block *block)
{
    struct ir_function *function = block->function;
    *(block->previous ? &block->previous->next : &function->first) = block->next;
    *(block->next ? &block->next->previous : &function->last) = block->previous;
    ir->labels[block->id] = NULL;
    block->function = NULL;
}

void opt_rename_pred(struct optimiser *o, const struct ir_inst *end, uint32_t from,
                     uint32_t to)
{
    struct targets targets = targets_of(o->ir, end);
    for (uint32_t i = 0; i < targets.count; i++) {
        const struct ir_block *block = o->ir->labels[targets.first[i * targets.step]];
        for (struct ir_inst *phi = block->insts.first; phi && phi->op == OpPhi;
             phi = phi->next)
            for (uint32_t k = 1; k < phi->num_operands; k += 2)
                if (phi->operands[k] == from)
                    phi->operands[k] = to;
    }
}

void opt_drop_pred(struct ir_block *block, uint32_t pred)
{
    for (struct ir_inst *phi = block->insts.first; phi && phi->op == OpPhi;
         phi = phi->next) {
        uint32_t left = 0;
        for (uint32_t k = 0; k + 1 < phi->num_operands; k += 2)
            if (phi->operands[k + 1] != pred) {
                phi->operands[left++] = phi->operands[k];
                phi->operands[left++] = phi->operands[k + 1];
            }
        phi->num_operands = left;
    }
}
