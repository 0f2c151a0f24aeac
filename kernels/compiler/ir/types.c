// SPDX-License-Identifier: MIT
// Types, constants and global variables: interned by their words.
#include "ir.h"
#include "intern.h"
#include "../../spirv/numbers.h"

#include <string.h>

// --- tables ------------------------------------------------------------------------------

static uint32_t ir_types_mix(uint32_t hash, uint32_t word)
{
    uint64_t product = (uint64_t)(hash ^ word) * UINT32_C(0x9e3779b1);
    return (uint32_t)((product ^ product >> 32) & UINT32_MAX);
}

static uint32_t ir_types_hash_of(uint32_t op, uint32_t type, uint32_t count,
                                 const uint32_t *operands)
{
    uint32_t hash = ir_types_mix(ir_types_mix(0, op), type);
    for (uint32_t i = 0; i < count; i++)
        hash = ir_types_mix(hash, operands[i]);
    return hash;
}

// The slot of these words: the instruction's, or the free one where it belongs.
static struct ir_inst **ir_types_slot_of(const struct ir_intern *interned, uint32_t op,
                                         uint32_t type, uint32_t count,
                                         const uint32_t *operands)
{
    uint32_t mask = interned->num_slots - 1;
    for (uint32_t at = ir_types_hash_of(op, type, count, operands) & mask;;
         at = (at + 1) & mask) {
        struct ir_inst *inst = interned->slots[at];
        if (!inst)
            return &interned->slots[at];
        if (inst->op == op && inst->type == type && inst->num_operands == count &&
            (!count || !memcmp(inst->operands, operands, count * sizeof(*operands))))
            return &interned->slots[at];
    }
}

static void ir_types_make_room(struct ir *ir)
{
    struct ir_intern *interned = ir->interned;
    if (interned->num_used * 2 < interned->num_slots)
        return;
    struct ir_inst **old = interned->slots;
    uint32_t num_old = interned->num_slots;
    interned->num_slots = num_old ? num_old * 2 : 128;
    interned->slots =
        compiler_allocate(ir->compiler, interned->num_slots * sizeof(*interned->slots));
    for (uint32_t i = 0; i < num_old; i++)
        if (old[i])
            *ir_types_slot_of(interned, old[i]->op, old[i]->type, old[i]->num_operands,
                              old[i]->operands) = old[i];
}

void ir_intern(struct ir *ir, struct ir_inst *inst)
{
    ir_types_make_room(ir);
    struct ir_inst **slot = ir_types_slot_of(ir->interned, inst->op, inst->type,
                                             inst->num_operands, inst->operands);
    if (*slot)
        return;
    *slot = inst;
    ir->interned->num_used++;
}

static uint32_t add_global(struct ir *ir, uint32_t op, uint32_t type, uint32_t count,
                           const uint32_t *operands)
{
    struct ir_inst *inst = ir_inst(ir, op, type, ir_new_id(ir), count, operands);
    ir_append(&ir->globals, inst);
    return inst->id;
}

static uint32_t ir_types_find_or_add(struct ir *ir, uint32_t op, uint32_t type,
                                     uint32_t count, const uint32_t *operands)
{
    ir_types_make_room(ir);
    struct ir_inst **slot = ir_types_slot_of(ir->interned, op, type, count, operands);
    if (*slot)
        return (*slot)->id;
    uint32_t id = add_global(ir, op, type, count, operands);
    *slot = ir_definition(ir, id);
    ir->interned->num_used++;
    return id;
}

static uint64_t *pair_of(const struct ir_intern *interned, uint64_t pair)
{
    uint32_t mask = interned->num_pairs - 1;
    uint32_t at =
        ir_types_mix(ir_types_mix(0, (uint32_t)(pair >> 32)), (uint32_t)pair) & mask;
    while (interned->decorated[at] && interned->decorated[at] != pair)
        at = (at + 1) & mask;
    return &interned->decorated[at];
}

void ir_note_decoration(struct ir *ir, uint32_t id, uint32_t decoration)
{
    struct ir_intern *interned = ir->interned;
    if (interned->num_decorated * 2 >= interned->num_pairs) {
        uint64_t *old = interned->decorated;
        uint32_t num_old = interned->num_pairs;
        interned->num_pairs = num_old ? num_old * 2 : 64;
        interned->decorated = compiler_allocate(
            ir->compiler, interned->num_pairs * sizeof(*interned->decorated));
        for (uint32_t i = 0; i < num_old; i++)
            if (old[i])
                *pair_of(interned, old[i]) = old[i];
    }
    uint64_t pair = (uint64_t)id << 32 | decoration, *slot = pair_of(interned, pair);
    interned->num_decorated += *slot != pair;
    *slot = pair;
}

bool ir_is_decorated(const struct ir *ir, uint32_t id, uint32_t decoration)
{
    uint64_t pair = (uint64_t)id << 32 | decoration;
    return ir->interned->num_pairs && *pair_of(ir->interned, pair) == pair;
}

bool ir_has_decorated_member(const struct ir *ir, uint32_t id, uint32_t decoration)
{
    return ir_is_decorated(ir, id, IR_MEMBER | decoration);
}

// --- types -------------------------------------------------------------------------------

uint32_t ir_type(struct ir *ir, uint32_t op, uint32_t count, const uint32_t *operands)
{
    return ir_types_find_or_add(ir, op, 0, count, operands);
}

uint32_t ir_type_of_its_own(struct ir *ir, uint32_t op, uint32_t count,
                            const uint32_t *operands)
{
    return add_global(ir, op, 0, count, operands);
}

uint32_t ir_pointer(struct ir *ir, uint32_t storage_class, uint32_t type)
{
    return ir_type(ir, OpTypePointer, 2, (uint32_t[]){storage_class, type});
}

uint32_t ir_forward_pointer(struct ir *ir, uint32_t storage_class)
{
    uint32_t id = ir_new_id(ir);
    ir_append(&ir->globals,
              ir_inst(ir, OpTypeForwardPointer, 0, 0, 2, (uint32_t[]){id, storage_class}));
    return id;
}

void ir_point(struct ir *ir, uint32_t pointer, uint32_t storage_class, uint32_t type)
{
    struct ir_inst *inst =
        ir_inst(ir, OpTypePointer, 0, pointer, 2, (uint32_t[]){storage_class, type});
    ir_append(&ir->globals, inst);
    ir_intern(ir, inst);
}

uint32_t ir_num_members(const struct ir *ir, uint32_t type)
{
    const struct ir_inst *inst = ir_definition(ir, type), *length;
    switch (inst->op) {
    case OpTypeVector:
    case OpTypeMatrix:
        return inst->operands[1];
    case OpTypeStruct:
        return inst->num_operands;
    case OpTypeArray:
        length = ir_definition(ir, inst->operands[1]);
        return length->op == OpConstant ? length->operands[0] : 0;
    default:
        return 0;
    }
}

uint32_t ir_member_type(const struct ir *ir, uint32_t type, uint32_t index)
{
    const struct ir_inst *inst = ir_definition(ir, type);
    switch (inst->op) {
    case OpTypeVector:
    case OpTypeMatrix:
        return index < inst->operands[1] ? inst->operands[0] : 0;
    case OpTypeStruct:
        return index < inst->num_operands ? inst->operands[index] : 0;
    case OpTypeArray:
        return index < ir_num_members(ir, type) ? inst->operands[0] : 0;
    default:
        return 0;
    }
}

// --- constants ---------------------------------------------------------------------------

static uint32_t integer_type(struct ir *ir, uint32_t *cached, uint32_t is_signed)
{
    if (!*cached)
        *cached = ir_type(ir, OpTypeInt, 2, (uint32_t[]){32, is_signed});
    return *cached;
}

uint32_t ir_u32(struct ir *ir, uint32_t value)
{
    uint32_t type = integer_type(ir, &ir->interned->u32, 0);
    return ir_types_find_or_add(ir, OpConstant, type, 1, &value);
}

uint32_t ir_i32(struct ir *ir, int32_t value)
{
    uint32_t type = integer_type(ir, &ir->interned->i32, 1);
    return ir_types_find_or_add(ir, OpConstant, type, 1, &(uint32_t){(uint32_t)value});
}

uint32_t ir_bool(struct ir *ir, bool value)
{
    if (!ir->interned->boolean)
        ir->interned->boolean = ir_type(ir, OpTypeBool, 0, NULL);
    return ir_types_find_or_add(ir, value ? OpConstantTrue : OpConstantFalse,
                                ir->interned->boolean, 0, NULL);
}

// The words of a scalar: their number.
static uint32_t words_of(const struct ir *ir, uint32_t type, uint64_t bits,
                         uint32_t words[2])
{
    const struct ir_inst *scalar = ir_definition(ir, type);
    uint32_t width = scalar->operands[0];
    words[0] = (uint32_t)bits;
    words[1] = (uint32_t)(bits >> 32);
    if (width > 32)
        return 2;
    if (width < 32) {
        uint32_t sign = UINT32_C(1) << (width - 1), mask = sign * 2 - 1;
        bool is_signed = scalar->op == OpTypeInt && scalar->operands[1];
        words[0] &= mask;
        if (is_signed && (words[0] & sign))
            words[0] |= ~mask;
    }
    return 1;
}

uint32_t ir_constant(struct ir *ir, uint32_t type, uint64_t bits)
{
    uint32_t words[2];
    if (ir_definition(ir, type)->op == OpTypeBool)
        return ir_types_find_or_add(ir, bits ? OpConstantTrue : OpConstantFalse, type, 0,
                                    NULL);
    uint32_t count = words_of(ir, type, bits, words);
    return ir_types_find_or_add(ir, OpConstant, type, count, words);
}

uint32_t ir_composite(struct ir *ir, uint32_t type, uint32_t count,
                      const uint32_t *constants)
{
    return ir_types_find_or_add(ir, OpConstantComposite, type, count, constants);
}

uint32_t ir_null(struct ir *ir, uint32_t type)
{
    return ir_types_find_or_add(ir, OpConstantNull, type, 0, NULL);
}

uint32_t ir_undefined(struct ir *ir, uint32_t type)
{
    return ir_types_find_or_add(ir, OpUndef, type, 0, NULL);
}

uint32_t ir_spec_constant(struct ir *ir, uint32_t type, uint64_t bits, uint32_t spec_id)
{
    uint32_t words[2], count = 0, op = bits ? OpSpecConstantTrue : OpSpecConstantFalse;
    if (ir_definition(ir, type)->op != OpTypeBool) {
        op = OpSpecConstant;
        count = words_of(ir, type, bits, words);
    }
    uint32_t id = add_global(ir, op, type, count, words);
    ir_decorate(ir, id, DecorationSpecId, 1, &spec_id);
    return id;
}

uint32_t ir_spec_composite(struct ir *ir, uint32_t type, uint32_t count,
                           const uint32_t *constants)
{
    return add_global(ir, OpSpecConstantComposite, type, count, constants);
}

uint32_t ir_spec_operation(struct ir *ir, uint32_t type, uint32_t op, uint32_t count,
                           const uint32_t *operands)
{
    uint32_t *words = compiler_allocate(ir->compiler, (count + 1) * sizeof(*words));
    words[0] = op;
    if (count)
        memcpy(words + 1, operands, count * sizeof(*words));
    return ir_types_find_or_add(ir, OpSpecConstantOp, type, count + 1, words);
}

uint32_t ir_global(struct ir *ir, uint32_t pointer_type, uint32_t storage_class,
                   uint32_t initial)
{
    return add_global(ir, OpVariable, pointer_type, initial ? 2 : 1,
                      (uint32_t[]){storage_class, initial});
}
