// SPDX-License-Identifier: MIT
// `precise`: the instructions that a precise variable's values come from are not
// contracted. They are found from its stores backwards, through values and through the
// other variables of the function that they are loaded from.
#include "emit.h"

struct precise {
    struct precise *next;
    uint32_t id; // of a variable
};

void precise_mark(struct translator *t, uint32_t variable)
{
    struct precise *precise = compiler_allocate(t->c, sizeof *precise);
    precise->next = t->precise;
    precise->id = variable;
    t->precise = precise;
}

static bool is_arithmetic(uint32_t op)
{
    return op == OpFNegate || op == OpFAdd || op == OpFSub || op == OpFMul ||
           op == OpFDiv || op == OpFRem || op == OpFMod ||
           (op >= OpVectorTimesScalar && op <= OpDot);
}

struct precise_search {
    struct translator *t;
    uint32_t *stack;
    uint32_t count, capacity;
    uint8_t *is_seen; // by id
};

static void precise_push(struct precise_search *s, uint32_t id)
{
    const struct ir_inst *inst = s->t->ir->definitions[id];
    if (s->is_seen[id] || inst == NULL || inst->op == OpFunction)
        return;
    s->is_seen[id] = 1;
    if (s->count == s->capacity)
        s->stack =
            compiler_grow(s->t->c, s->stack, s->count, &s->capacity, sizeof *s->stack);
    s->stack[s->count++] = id;
}

// The variable behind a pointer.
static uint32_t precise_root_of(const struct ir *ir, uint32_t id)
{
    const struct ir_inst *inst = ir->definitions[id];
    while (inst != NULL && inst->op == OpAccessChain) {
        id = inst->operands[0];
        inst = ir->definitions[id];
    }
    return id;
}

static void visit_stores(struct precise_search *s, const struct function *f,
                         uint32_t variable)
{
    for (struct ir_block *block = f->ir->first; block != NULL; block = block->next)
        for (struct ir_inst *inst = block->insts.first; inst != NULL; inst = inst->next)
            if (inst->op == OpStore &&
                precise_root_of(s->t->ir, inst->operands[0]) == variable)
                precise_push(s, inst->operands[1]);
}

static void precise_visit(struct precise_search *s, const struct function *f, uint32_t id)
{
    struct ir *ir = s->t->ir;
    struct ir_inst *inst = ir->definitions[id];
    if (inst->op == OpVariable) {
        if (inst->operands[0] == StorageClassFunction)
            visit_stores(s, f, id);
        return;
    }
    if (inst->op == OpLoad) {
        precise_push(s, precise_root_of(ir, inst->operands[0]));
        return;
    }
    if (is_arithmetic(inst->op) && !ir_is_decorated(ir, id, DecorationNoContraction))
        ir_decorate(ir, id, DecorationNoContraction, 0, NULL);
    if (inst->op == OpAccessChain || inst->block == NULL)
        return;
    // A call's arguments are precise; the function's own operations are not.
    if (inst->op == OpFunctionCall) {
        for (uint32_t i = 1; i < inst->num_operands; i++)
            precise_push(s, precise_root_of(ir, inst->operands[i]));
        return;
    }
    struct spirv_ids ids = ir_ids(ir, inst);
    for (uint32_t *operand; (operand = ir_next_id(&ids)) != NULL;)
        precise_push(s, *operand);
}

void precise_spread(struct translator *t, struct function *f)
{
    struct precise_search search = {.t = t};
    search.is_seen = compiler_allocate(t->c, t->ir->bound);
    for (; t->precise != NULL; t->precise = t->precise->next)
        precise_push(&search, t->precise->id);
    while (search.count > 0)
        precise_visit(&search, f, search.stack[--search.count]);
}
