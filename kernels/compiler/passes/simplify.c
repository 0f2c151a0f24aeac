// SPDX-License-Identifier: MIT
// Values that are known without computing them: members of a composite that was just built,
// selections between equal values, and identities that keep all bits. Of floats there are
// none: x + 0 is not x where x is -0, and NaNs may change.
#include "optimise.h"
#include "../../spirv/numbers.h"

#include <string.h>

enum { MOST_PATH = 16, MOST_STEPS = 64 };

// --- members of composites ---------------------------------------------------------------

// A member, by the indices that lead to it.
struct simplify_pass_member {
    uint32_t source, count;
    uint32_t path[MOST_PATH];
};

static void pop_front(struct simplify_pass_member *m, uint32_t count)
{
    m->count -= count;
    memmove(m->path, m->path + count, m->count * sizeof(*m->path));
}

static bool into_extract(struct simplify_pass_member *m, const struct ir_inst *from)
{
    uint32_t count = from->num_operands - 1;
    if (count + m->count > MOST_PATH)
        return false;
    memmove(m->path + count, m->path, m->count * sizeof(*m->path));
    memcpy(m->path, from->operands + 1, count * sizeof(*m->path));
    m->count += count;
    m->source = from->operands[0];
    return true;
}

// Constituents of a vector may be vectors.
static bool into_vector(const struct ir *ir, struct simplify_pass_member *m,
                        const struct ir_inst *from)
{
    uint32_t index = m->path[0];
    for (uint32_t i = 0; i < from->num_operands; i++) {
        uint32_t type = ir_definition(ir, from->operands[i])->type;
        uint32_t size = ir_num_members(ir, type);
        if (index < (size ? size : 1)) {
            m->source = from->operands[i];
            if (size)
                m->path[0] = index;
            else
                pop_front(m, 1);
            return true;
        }
        index -= size ? size : 1;
    }
    return false;
}

static bool into_construct(const struct ir *ir, struct simplify_pass_member *m,
                           const struct ir_inst *from)
{
    if (ir_definition(ir, from->type)->op == OpTypeVector)
        return into_vector(ir, m, from);
    if (from->num_operands != ir_num_members(ir, from->type) ||
        m->path[0] >= from->num_operands)
        return false;
    m->source = from->operands[m->path[0]];
    pop_front(m, 1);
    return true;
}

static bool into_insert(struct simplify_pass_member *m, const struct ir_inst *from)
{
    const uint32_t *path = from->operands + 2;
    uint32_t count = from->num_operands - 2, common = 0;
    while (common < count && common < m->count && path[common] == m->path[common])
        common++;
    if (common == count) { // what was inserted, or a part of it
        m->source = from->operands[0];
        pop_front(m, count);
        return true;
    }
    if (common == m->count)
        return false; // a part of it was inserted
    m->source = from->operands[1];
    return true;
}

static bool into_shuffle(const struct ir *ir, struct simplify_pass_member *m,
                         const struct ir_inst *from)
{
    if (m->path[0] + 2 >= from->num_operands)
        return false;
    uint32_t index = from->operands[2 + m->path[0]];
    uint32_t first = ir_num_members(ir, ir_definition(ir, from->operands[0])->type);
    uint32_t second = ir_num_members(ir, ir_definition(ir, from->operands[1])->type);
    if (index >= first + second)
        return false; // undefined
    m->source = from->operands[index < first ? 0 : 1];
    m->path[0] = index < first ? index : index - first;
    return true;
}

// One step from what makes the composite to what makes the member.
static bool step_into(const struct ir *ir, struct simplify_pass_member *m,
                      const struct ir_inst *from)
{
    switch (from->op) {
    case OpCompositeExtract:
        return into_extract(m, from);
    case OpCompositeConstruct:
    case OpConstantComposite:
    case OpSpecConstantComposite:
        return into_construct(ir, m, from);
    case OpCompositeInsert:
        return into_insert(m, from);
    case OpVectorShuffle:
        return into_shuffle(ir, m, from);
    case OpCopyObject:
        m->source = from->operands[0];
        return true;
    default:
        return false;
    }
}

static uint32_t zero_of(struct ir *ir, uint32_t type)
{
    uint32_t op = ir_definition(ir, type)->op;
    bool is_scalar = op == OpTypeInt || op == OpTypeFloat || op == OpTypeBool;
    return is_scalar ? ir_constant(ir, type, 0) : ir_null(ir, type);
}

static uint32_t simplify_extract(struct optimiser *o, struct ir_inst *inst)
{
    struct ir *ir = o->ir;
    struct simplify_pass_member m = {.source = inst->operands[0],
                                     .count = inst->num_operands - 1};
    bool changed = false;
    if (m.count > MOST_PATH)
        return 0;
    memcpy(m.path, inst->operands + 1, m.count * sizeof(*m.path));
    for (uint32_t steps = 0; steps < MOST_STEPS && m.count > 0; steps++) {
        const struct ir_inst *from = ir_definition(ir, m.source);
        if (from->op == OpConstantNull)
            return zero_of(ir, inst->type);
        if (from->op == OpUndef)
            return ir_undefined(ir, inst->type);
        if (!step_into(ir, &m, from))
            break;
        m.source = opt_same(o, m.source);
        changed = true;
    }
    if (m.count == 0)
        return m.source;
    if (changed) {
        uint32_t operands[MOST_PATH + 1] = {m.source};
        memcpy(operands + 1, m.path, m.count * sizeof(*m.path));
        ir_set_operands(ir, inst, m.count + 1, operands);
    }
    return 0;
}

static bool is_plain_constant(const struct ir *ir, uint32_t id)
{
    uint32_t op = ir_definition(ir, id)->op;
    return op >= OpConstantTrue && op <= OpConstantNull;
}

// Whether operand i is member i of one composite of the same type, for all i: then that is
// the value.
static uint32_t simplify_pass_whole_of(const struct optimiser *o,
                                       const struct ir_inst *inst)
{
    uint32_t whole = 0;
    for (uint32_t i = 0; i < inst->num_operands; i++) {
        const struct ir_inst *part = opt_definition(o, inst->operands[i]);
        if (part->op != OpCompositeExtract || part->num_operands != 2 ||
            part->operands[1] != i)
            return 0;
        uint32_t source = opt_same(o, part->operands[0]);
        if (i > 0 && source != whole)
            return 0;
        whole = source;
    }
    return whole && opt_definition(o, whole)->type == inst->type ? whole : 0;
}

static uint32_t simplify_construct(struct optimiser *o, struct ir_inst *inst)
{
    struct ir *ir = o->ir;
    if (inst->num_operands != ir_num_members(ir, inst->type))
        return 0;
    bool is_constant = true;
    for (uint32_t i = 0; i < inst->num_operands && is_constant; i++)
        is_constant = is_plain_constant(ir, inst->operands[i]);
    if (is_constant)
        return ir_composite(ir, inst->type, inst->num_operands, inst->operands);
    return simplify_pass_whole_of(o, inst);
}

static uint32_t simplify_shuffle(struct optimiser *o, const struct ir_inst *inst)
{
    struct ir *ir = o->ir;
    uint32_t count = inst->num_operands - 2, members[MOST_PATH];
    bool is_first = ir_definition(ir, inst->operands[0])->type == inst->type;
    for (uint32_t i = 0; i < count && is_first; i++)
        is_first = inst->operands[2 + i] == i;
    if (is_first)
        return inst->operands[0];
    if (count > MOST_PATH)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        struct simplify_pass_member m = {.source = inst->id, .count = 1, .path = {i}};
        if (!into_shuffle(ir, &m, inst))
            return 0;
        const struct ir_inst *from = ir_definition(ir, m.source);
        if (from->op != OpConstantComposite || m.path[0] >= from->num_operands)
            return 0;
        members[i] = from->operands[m.path[0]];
    }
    return ir_composite(ir, inst->type, count, members);
}

// Replaces an index that is a constant by a literal.
static void use_literal(struct optimiser *o, struct ir_inst *inst)
{
    struct ir *ir = o->ir;
    bool is_insert = inst->op == OpVectorInsertDynamic;
    uint32_t vector = inst->operands[0];
    uint64_t index;
    if (!opt_constant(ir, inst->operands[is_insert ? 2 : 1], &index) ||
        index >= ir_num_members(ir, ir_definition(ir, vector)->type))
        return;
    inst->op = is_insert ? OpCompositeInsert : OpCompositeExtract;
    if (is_insert)
        ir_set_operands(ir, inst, 3,
                        (uint32_t[]){inst->operands[1], vector, (uint32_t)index});
    else
        ir_set_operands(ir, inst, 2, (uint32_t[]){vector, (uint32_t)index});
}

// --- choices and truth -------------------------------------------------------------------

static uint32_t simplify_select(struct optimiser *o, struct ir_inst *inst)
{
    uint64_t condition, yes, no;
    const uint32_t *operands = inst->operands;
    if (operands[1] == operands[2])
        return operands[1];
    if (opt_constant(o->ir, operands[0], &condition) &&
        opt_definition(o, opt_definition(o, operands[0])->type)->op == OpTypeBool)
        return operands[condition ? 1 : 2];
    if (opt_definition(o, inst->type)->op != OpTypeBool ||
        !opt_constant(o->ir, operands[1], &yes) || !opt_constant(o->ir, operands[2], &no))
        return 0;
    if (yes)
        return operands[0]; // they differ
    inst->op = OpLogicalNot;
    inst->num_operands = 1;
    return 0;
}

// `id`, or 0 if its type is not the result's: operands may have the other sign.
static uint32_t of_type(const struct ir *ir, uint32_t id, const struct ir_inst *inst)
{
    return id && ir_definition(ir, id)->type == inst->type ? id : 0;
}

static uint32_t simplify_not(const struct optimiser *o, const struct ir_inst *inst)
{
    const struct ir_inst *inner = opt_definition(o, inst->operands[0]);
    return inner->op == inst->op ? of_type(o->ir, opt_same(o, inner->operands[0]), inst)
                                 : 0;
}

// Simplifies an operation on two truth values: `value` is known, `rest` is not.
static uint32_t simplify_truth(struct ir *ir, struct ir_inst *inst, bool value,
                               uint32_t rest)
{
    switch (inst->op) {
    case OpLogicalAnd:
        return value ? rest : ir_bool(ir, false);
    case OpLogicalOr:
        return value ? ir_bool(ir, true) : rest;
    default: // OpLogicalEqual, OpLogicalNotEqual
        if (value == (inst->op == OpLogicalEqual))
            return rest;
        inst->op = OpLogicalNot;
        ir_set_operands(ir, inst, 1, &rest);
        return 0;
    }
}

static uint32_t simplify_logic(struct optimiser *o, struct ir_inst *inst)
{
    struct ir *ir = o->ir;
    uint64_t value;
    bool is_scalar = ir_definition(ir, inst->type)->op == OpTypeBool;
    if (is_scalar && opt_constant(ir, inst->operands[0], &value))
        return simplify_truth(ir, inst, value != 0, inst->operands[1]);
    if (is_scalar && opt_constant(ir, inst->operands[1], &value))
        return simplify_truth(ir, inst, value != 0, inst->operands[0]);
    bool is_same = inst->operands[0] == inst->operands[1];
    return is_same && (inst->op == OpLogicalAnd || inst->op == OpLogicalOr)
               ? inst->operands[0]
               : 0;
}

// --- integers ----------------------------------------------------------------------------

// The value of a constant integer, or of a vector of which each component has it.
static bool simplify_pass_integer_of(const struct ir *ir, uint32_t id, uint64_t *value)
{
    const struct ir_inst *inst = ir_definition(ir, id);
    if (inst->op == OpConstantComposite) {
        for (uint32_t i = 1; i < inst->num_operands; i++)
            if (inst->operands[i] != inst->operands[0])
                return false;
        id = inst->operands[0];
    }
    return opt_constant(ir, id, value);
}

// Simplifies `x op x`.
static uint32_t simplify_twins(struct ir *ir, const struct ir_inst *inst)
{
    switch (inst->op) {
    case OpBitwiseAnd:
    case OpBitwiseOr:
        return inst->operands[0];
    case OpBitwiseXor:
    case OpISub:
        return zero_of(ir, inst->type);
    case OpIEqual:
    case OpUGreaterThanEqual:
    case OpSGreaterThanEqual:
    case OpULessThanEqual:
    case OpSLessThanEqual:
        return ir_definition(ir, inst->type)->op == OpTypeBool ? ir_bool(ir, true) : 0;
    case OpINotEqual:
    case OpUGreaterThan:
    case OpSGreaterThan:
    case OpULessThan:
    case OpSLessThan:
        return ir_definition(ir, inst->type)->op == OpTypeBool ? ir_bool(ir, false) : 0;
    default:
        return 0;
    }
}

// Simplifies `x op value`.
static uint32_t simplify_right(struct ir *ir, const struct ir_inst *inst, uint64_t value)
{
    uint32_t x = inst->operands[0];
    switch (inst->op) {
    case OpIAdd:
    case OpISub:
    case OpBitwiseOr:
    case OpBitwiseXor:
    case OpShiftLeftLogical:
    case OpShiftRightLogical:
    case OpShiftRightArithmetic:
        return value == 0 ? x : 0;
    case OpIMul:
        return value == 1 ? x : value == 0 ? zero_of(ir, inst->type) : 0;
    case OpUDiv:
    case OpSDiv:
        return value == 1 ? x : 0;
    case OpUMod:
        return value == 1 ? zero_of(ir, inst->type) : 0;
    case OpBitwiseAnd:
        return value == 0 ? zero_of(ir, inst->type) : 0;
    default:
        return 0;
    }
}

// Simplifies `value op x`.
static uint32_t simplify_left(struct ir *ir, const struct ir_inst *inst, uint64_t value)
{
    uint32_t x = inst->operands[1];
    switch (inst->op) {
    case OpIAdd:
    case OpBitwiseOr:
    case OpBitwiseXor:
        return value == 0 ? x : 0;
    case OpIMul:
        return value == 1 ? x : value == 0 ? zero_of(ir, inst->type) : 0;
    case OpBitwiseAnd:
        return value == 0 ? zero_of(ir, inst->type) : 0;
    default:
        return 0;
    }
}

static uint32_t simplify_integers(struct ir *ir, struct ir_inst *inst)
{
    uint64_t value;
    uint32_t found = 0;
    if (inst->operands[0] == inst->operands[1])
        found = of_type(ir, simplify_twins(ir, inst), inst);
    if (!found && simplify_pass_integer_of(ir, inst->operands[1], &value))
        found = of_type(ir, simplify_right(ir, inst, value), inst);
    if (!found && simplify_pass_integer_of(ir, inst->operands[0], &value))
        found = of_type(ir, simplify_left(ir, inst, value), inst);
    return found;
}

static bool is_integer_op(uint32_t op)
{
    switch (op) {
    case OpIAdd:
    case OpISub:
    case OpIMul:
    case OpUDiv:
    case OpSDiv:
    case OpUMod:
        return true;
    default:
        return (op >= OpIEqual && op <= OpSLessThanEqual) ||
               (op >= OpShiftRightLogical && op <= OpBitwiseAnd);
    }
}

uint32_t opt_simplify(struct optimiser *o, struct ir_inst *inst)
{
    struct ir *ir = o->ir;
    switch (inst->op) {
    case OpCopyObject:
        return inst->operands[0];
    case OpVectorExtractDynamic:
    case OpVectorInsertDynamic:
        use_literal(o, inst);
        return inst->op == OpCompositeExtract ? simplify_extract(o, inst) : 0;
    case OpCompositeExtract:
        return simplify_extract(o, inst);
    case OpCompositeConstruct:
        return simplify_construct(o, inst);
    case OpVectorShuffle:
        return simplify_shuffle(o, inst);
    case OpSelect:
        return simplify_select(o, inst);
    default:
        break;
    }
    uint32_t found = opt_fold(ir, inst);
    if (found)
        return found;
    if (inst->op == OpLogicalNot || inst->op == OpNot)
        return simplify_not(o, inst);
    if (inst->op >= OpLogicalEqual && inst->op <= OpLogicalAnd)
        return simplify_logic(o, inst);
    if (inst->op == OpBitcast || inst->op == OpUConvert || inst->op == OpSConvert ||
        inst->op == OpFConvert)
        return of_type(ir, inst->operands[0], inst);
    return is_integer_op(inst->op) ? simplify_integers(ir, inst) : 0;
}
