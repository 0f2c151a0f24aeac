// SPDX-License-Identifier: MIT
// Value numbering: replaces values that are known without computing them, or that were
// computed before. A walk over the dominator tree: a value holds below the block that makes
// it.
#include "optimise.h"
#include "memory.h"
#include "../../spirv/numbers.h"

#include <string.h>

// An instruction whose value is known, in its bucket.
struct value_pass_known {
    struct ir_inst *inst;
    struct value_pass_known *next;
    uint32_t bucket;
};

struct values {
    struct optimiser *o;
    const struct ir_flow *flow;
    struct value_pass_known **buckets;
    uint32_t num_buckets;            // a power of two
    struct value_pass_known **stack; // in the order in which they became known
    uint32_t depth, capacity;
    struct memory memory;
    bool forwards;
};

static bool is_commutative(uint32_t op)
{
    switch (op) {
    case OpIAdd:
    case OpIMul:
    case OpBitwiseAnd:
    case OpBitwiseOr:
    case OpBitwiseXor:
    case OpLogicalAnd:
    case OpLogicalOr:
    case OpLogicalEqual:
    case OpLogicalNotEqual:
    case OpIEqual:
    case OpINotEqual:
        return true;
    default:
        return false; // of floats, which NaN results from two may depend on their order
    }
}

static uint32_t value_pass_mix(uint32_t hash, uint32_t word)
{
    uint64_t product = (uint64_t)(hash ^ word) * UINT32_C(0x9e3779b1);
    return (uint32_t)((product ^ product >> 32) & UINT32_MAX);
}

static uint32_t value_pass_hash_of(const struct ir_inst *inst)
{
    uint32_t hash = value_pass_mix(value_pass_mix(1, inst->op), inst->type);
    for (uint32_t i = 0; i < inst->num_operands; i++)
        hash = value_pass_mix(hash, inst->operands[i]);
    return hash;
}

static bool value_pass_is_same(const struct values *v, const struct ir_inst *a,
                               const struct ir_inst *b)
{
    return a->op == b->op && a->type == b->type && a->num_operands == b->num_operands &&
           v->o->flags[a->id] == v->o->flags[b->id] &&
           (!a->num_operands ||
            !memcmp(a->operands, b->operands, a->num_operands * sizeof(*a->operands)));
}

static void add_known(struct values *v, struct ir_inst *inst, uint32_t bucket)
{
    struct value_pass_known *known = ir_scratch(v->o->ir, sizeof(*known));
    *known = (struct value_pass_known){inst, v->buckets[bucket], bucket};
    v->buckets[bucket] = known;
    if (v->depth == v->capacity)
        v->stack = compiler_grow(v->o->ir->compiler, v->stack, v->depth, &v->capacity,
                                 sizeof(struct value_pass_known *));
    v->stack[v->depth++] = known;
}

// An equal value that is known here, or NULL; the instruction is known from now on.
static const struct ir_inst *find_equal(struct values *v, struct ir_inst *inst)
{
    if (is_commutative(inst->op) && inst->operands[0] > inst->operands[1]) {
        uint32_t first = inst->operands[0];
        inst->operands[0] = inst->operands[1];
        inst->operands[1] = first;
    }
    uint32_t bucket = value_pass_hash_of(inst) & (v->num_buckets - 1);
    for (const struct value_pass_known *k = v->buckets[bucket]; k; k = k->next)
        if (value_pass_is_same(v, k->inst, inst))
            return k->inst;
    add_known(v, inst, bucket);
    return NULL;
}

// A phi whose values are all one, or the phi itself.
static uint32_t single_value(const struct optimiser *o, const struct ir_inst *phi)
{
    uint32_t found = 0;
    for (uint32_t k = 0; k + 1 < phi->num_operands; k += 2) {
        uint32_t value = opt_same(o, phi->operands[k]);
        if (value == phi->id || value == found)
            continue;
        if (found)
            return 0;
        found = value;
    }
    return found;
}

// Gives the id that an instruction's value equals, or 0: the instruction stays.
static uint32_t value_pass_replacement(struct values *v, struct ir_inst *inst)
{
    struct optimiser *o = v->o;
    if (inst->op == OpPhi)
        return single_value(o, inst);
    struct spirv_ids ids = ir_ids(o->ir, inst);
    for (uint32_t *id; (id = ir_next_id(&ids)) != NULL;)
        *id = opt_same(o, *id);
    uint32_t found = inst->id ? opt_simplify(o, inst) : 0;
    if (found)
        return found;
    optimiser_grow(o);
    if (inst->id && !(o->flags[inst->id] & IS_DECORATED) &&
        (ir_is_pure(o->ir, inst) || memory_is_constant(o->ir, inst))) {
        const struct ir_inst *equal = find_equal(v, inst);
        return equal ? equal->id : 0;
    }
    return v->forwards ? memory_access(&v->memory, inst) : 0;
}

static void value_pass_visit(struct values *v, struct ir_block *block)
{
    memory_forget(&v->memory);
    for (struct ir_inst *inst = block->insts.first, *next; inst; inst = next) {
        next = inst->next;
        uint32_t found = value_pass_replacement(v, inst);
        if (!found || found == inst->id)
            continue;
        opt_replace(v->o, inst->id, found);
        ir_remove(inst);
    }
}

static void value_pass_walk(struct values *v)
{
    const struct ir_flow *flow = v->flow;
    struct ir *ir = v->o->ir;
    size_t size = ((size_t)flow->num + 1) * sizeof(uint32_t);
    uint32_t *stack = ir_scratch(ir, size), *undo = ir_scratch(ir, size),
             *next = ir_scratch(ir, size), depth = 1;
    memcpy(next, flow->first_child, flow->num * sizeof(*next));
    value_pass_visit(v, flow->blocks[0]);
    while (depth > 0) {
        uint32_t at = stack[depth - 1];
        if (next[at] < flow->first_child[at + 1]) {
            uint32_t child = flow->children[next[at]++];
            undo[depth] = v->depth;
            stack[depth++] = child;
            value_pass_visit(v, flow->blocks[child]);
            continue;
        }
        for (depth--; v->depth > undo[depth];) {
            const struct value_pass_known *known = v->stack[--v->depth];
            v->buckets[known->bucket] = known->next;
        }
    }
}

void opt_values(struct optimiser *o, struct ir_function *function, bool forwards)
{
    uint32_t count = 0;
    for (const struct ir_block *b = function->first; b; b = b->next)
        for (const struct ir_inst *inst = b->insts.first; inst; inst = inst->next)
            count++;
    struct values v = {.o = o, .num_buckets = 64, .forwards = forwards};
    while (v.num_buckets < count)
        v.num_buckets *= 2;
    v.buckets = ir_scratch(o->ir, v.num_buckets * sizeof(struct value_pass_known *));
    v.flow = flow_of(o->ir, function);
    v.memory.ir = o->ir;
    value_pass_walk(&v);
    opt_apply(o, function);
}
