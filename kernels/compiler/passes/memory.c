// SPDX-License-Identifier: MIT
#include "memory.h"
#include "../../spirv/numbers.h"

// A root: the pointer that its chain of accesses begins with.
struct memory_root {
    uint32_t root, storage;
    bool is_plain; // neither volatile nor coherent
};

static bool has_special(const struct ir *ir, uint32_t id)
{
    return ir_is_decorated(ir, id, DecorationVolatile) ||
           ir_is_decorated(ir, id, DecorationCoherent) ||
           ir_has_decorated_member(ir, id, DecorationVolatile) ||
           ir_has_decorated_member(ir, id, DecorationCoherent);
}

// Whether the memory, or a part of it, is volatile or coherent.
static bool is_special(const struct ir *ir, uint32_t root, uint32_t type)
{
    const struct ir_inst *inner = ir_definition(ir, type);
    while (inner && (inner->op == OpTypeArray || inner->op == OpTypeRuntimeArray))
        inner = ir_definition(ir, inner->operands[0]);
    return has_special(ir, root) || (inner && has_special(ir, inner->id));
}

static struct memory_root memory_pass_root_of(const struct ir *ir, uint32_t pointer)
{
    enum { MOST_STEPS = 16 };
    const struct ir_inst *inst = ir_definition(ir, pointer);
    for (uint32_t i = 0; i < MOST_STEPS && inst; i++) {
        if (inst->op != OpAccessChain && inst->op != OpInBoundsAccessChain &&
            inst->op != OpCopyObject)
            break;
        if (is_special(ir, inst->id, ir_definition(ir, inst->type)->operands[1]))
            return (struct memory_root){0, 0, false};
        inst = ir_definition(ir, inst->operands[0]);
    }
    const struct ir_inst *type = inst ? ir_definition(ir, inst->type) : NULL;
    if (!type || type->op != OpTypePointer)
        return (struct memory_root){0, 0, false};
    return (struct memory_root){inst->id, type->operands[0],
                                !is_special(ir, inst->id, type->operands[1])};
}

static bool is_private(uint32_t storage)
{
    return storage == StorageClassFunction || storage == StorageClassPrivate;
}

static bool is_buffer(uint32_t storage)
{
    return storage == StorageClassStorageBuffer || storage == StorageClassUniform ||
           storage == StorageClassPhysicalStorageBuffer;
}

// Whether a write through one pointer may change what another one points to.
static bool may_alias(const struct ir *ir, uint32_t root, uint32_t storage, uint32_t other,
                      uint32_t other_storage)
{
    if (is_buffer(storage) && is_buffer(other_storage))
        return true;
    if (storage != other_storage)
        return false;
    const struct ir_inst *a = ir_definition(ir, root), *b = ir_definition(ir, other);
    bool are_variables = a->op == OpVariable && b->op == OpVariable;
    return !are_variables || root == other ||
           ir_is_decorated(ir, root, DecorationAliased) ||
           ir_is_decorated(ir, other, DecorationAliased);
}

void memory_forget(struct memory *memory)
{
    memory->num = memory->next = 0;
}

static void forget_at(struct memory *memory, uint32_t i)
{
    memory->known[i] = memory->known[--memory->num];
}

static void forget_shared(struct memory *memory)
{
    for (uint32_t left = memory->num; left > 0; left--)
        if (!is_private(memory->known[left - 1].storage))
            forget_at(memory, left - 1);
}

static void memory_pass_note(struct memory *memory, uint32_t pointer, uint32_t value,
                             const struct memory_root *at)
{
    uint32_t i = memory->num;
    if (memory->num < MOST_KNOWN)
        memory->num++;
    else
        i = memory->next++ % MOST_KNOWN;
    memory->known[i].pointer = pointer;
    memory->known[i].value = value;
    memory->known[i].root = at->root;
    memory->known[i].storage = at->storage;
}

// Whether the memory operands say nothing but the alignment.
static bool memory_pass_is_usual(const struct ir_inst *inst, uint32_t mask_at)
{
    return inst->num_operands <= mask_at ||
           !(inst->operands[mask_at] & ~(uint32_t)MemoryAccessAligned);
}

static uint32_t memory_pass_load(struct memory *memory, const struct ir_inst *inst)
{
    struct memory_root at = memory_pass_root_of(memory->ir, inst->operands[0]);
    if (!at.is_plain || !memory_pass_is_usual(inst, 1))
        return 0;
    for (uint32_t i = 0; i < memory->num; i++)
        if (memory->known[i].pointer == inst->operands[0])
            return memory->known[i].value;
    memory_pass_note(memory, inst->operands[0], inst->id, &at);
    return 0;
}

static void memory_pass_store(struct memory *memory, const struct ir_inst *inst)
{
    struct memory_root at = memory_pass_root_of(memory->ir, inst->operands[0]);
    if (!at.root) {
        memory_forget(memory);
        return;
    }
    for (uint32_t left = memory->num; left > 0; left--)
        if (may_alias(memory->ir, at.root, at.storage, memory->known[left - 1].root,
                      memory->known[left - 1].storage))
            forget_at(memory, left - 1);
    if (at.is_plain && memory_pass_is_usual(inst, 2))
        memory_pass_note(memory, inst->operands[0], inst->operands[1], &at);
}

uint32_t memory_access(struct memory *memory, const struct ir_inst *inst)
{
    switch (inst->op) {
    case OpLoad:
        return memory_pass_load(memory, inst);
    case OpStore:
        memory_pass_store(memory, inst);
        return 0;
    case OpControlBarrier:
    case OpMemoryBarrier:
        forget_shared(memory);
        return 0;
    default:
        if (ir_has_effects(memory->ir, inst) && !spirv_is_end(inst->op))
            memory_forget(memory);
        return 0;
    }
}

bool memory_is_constant(const struct ir *ir, const struct ir_inst *inst)
{
    if (inst->op != OpLoad || !memory_pass_is_usual(inst, 1))
        return false;
    struct memory_root at = memory_pass_root_of(ir, inst->operands[0]);
    if (!at.is_plain)
        return false;
    const struct ir_inst *root = ir_definition(ir, at.root);
    const struct ir_inst *type =
        ir_definition(ir, ir_definition(ir, root->type)->operands[1]);
    switch (at.storage) {
    case StorageClassInput:
    case StorageClassPushConstant:
        return true;
    case StorageClassUniform: // a storage buffer in old modules, which can be written
        return !ir_is_decorated(ir, type->id, DecorationBufferBlock) &&
               type->op == OpTypeStruct;
    default:
        return false;
    }
}
