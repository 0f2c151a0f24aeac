// SPDX-License-Identifier: MIT
// Instructions with a result of a type of GLSL, and what they need.
#include "emit.h"

uint32_t emit(struct translator *t, uint32_t op, const struct type *type, uint32_t count,
              const uint32_t *operands)
{
    if (type == NULL)
        return ir_emit(t->ir, op, 0, count, operands);
    if (op == OpUConvert || op == OpSConvert || op == OpFConvert)
        use_needs(t, type->needs);
    else
        use_type(t, type);
    return ir_emit(t->ir, op, type_id(t, type, LAYOUT_NONE), count, operands);
}

uint32_t emit_extended(struct translator *t, uint32_t number, const struct type *type,
                       uint32_t count, const uint32_t *operands)
{
    use_type(t, type);
    return ir_extended(t->ir, number, type_id(t, type, LAYOUT_NONE), count, operands);
}

void start_block(struct translator *t, struct ir_block *block)
{
    ir_append_block(t->ir, t->function->ir, block);
}

void branch_to(struct translator *t, struct ir_block *block)
{
    if (!ir_is_ended(t->ir))
        IR_EMIT(t->ir, OpBranch, 0, block->id);
}

uint32_t emit_splat(struct translator *t, const struct type *type, uint32_t id)
{
    uint32_t parts[4] = {id, id, id, id};
    return emit(t, OpCompositeConstruct, type, type->rows, parts);
}
