// SPDX-License-Identifier: MIT
// Functions of cooperative matrices.
#include "builtins.h"

static bool is_integer(const struct expr *e)
{
    return base_is_int(e->type->base) && type_is_scalar(e->type);
}

const struct type *coopmat_check(struct translator *t, const struct builtin *b,
                                 struct expr **arguments, uint32_t count)
{
    if (count == 0 || arguments[0]->type->base != TYPE_COOPMAT)
        return NULL;
    if (b->how == HOW_COOPMAT_MULTIPLY) {
        if (count < 3 || count > 4 || arguments[1]->type->base != TYPE_COOPMAT ||
            arguments[2]->type->base != TYPE_COOPMAT)
            return NULL;
        return arguments[2]->type;
    }
    // matrix, array, first element, stride, layout
    if (count != 5 || arguments[1]->type->base != TYPE_ARRAY)
        return NULL;
    for (uint32_t i = 2; i < 5; i++)
        if (!is_integer(arguments[i]))
            return NULL;
    return type_scalar(t, TYPE_VOID);
}

static uint32_t word(struct translator *t, struct expr *e)
{
    return emit_value(t, convert_base(t, e, TYPE_UINT32));
}

// The place of the first element: an element of the array.
static void first_element(struct translator *t, const struct expr *e, struct access *out)
{
    struct expr *index =
        expr_new(t, EXPR_INDEX, type_part(t, e->arguments[1]->type), &e->at);
    index->left = e->arguments[1];
    index->right = e->arguments[2];
    access_of(t, index, out);
}

enum {
    ALIGNED = 2,
    AVAILABLE = 8,
    VISIBLE = 16,
    NONPRIVATE = 32,
    SIGNED_A = 1,
    SIGNED_B = 2,
    SIGNED_C = 4,
    SIGNED_RESULT = 8,
    SCOPE_WORKGROUP = 2,
};

static uint32_t emit_transfer(struct translator *t, const struct expr *e)
{
    struct access memory;
    bool is_load = e->builtin->how == HOW_COOPMAT_LOAD;
    uint32_t operands[8], count = 0, mask = 0, value = 0;
    first_element(t, e, &memory);
    if (!is_load)
        value = emit_value(t, e->arguments[0]);
    operands[count++] = access_pointer(t, &memory);
    if (!is_load)
        operands[count++] = value;
    uint32_t stride = word(t, e->arguments[3]);
    operands[count++] = word(t, e->arguments[4]);
    operands[count++] = stride;
    uint32_t at_mask = count;
    if (memory.storage == STORAGE_PHYSICAL) {
        mask |= ALIGNED;
        operands[++count] = memory.align;
    }
    if (memory.storage == STORAGE_WORKGROUP || memory.memory & MEMORY_COHERENT) {
        mask |= NONPRIVATE | (is_load ? VISIBLE : AVAILABLE);
        operands[++count] =
            ir_u32(t->ir, memory.storage == STORAGE_WORKGROUP ? SCOPE_WORKGROUP : 5);
    }
    operands[at_mask] = mask;
    count = mask != 0 ? count + 1 : at_mask;
    if (!is_load) {
        ir_emit(t->ir, e->builtin->code[0], 0, count, operands);
        return 0;
    }
    struct access target;
    uint32_t id = emit(t, e->builtin->code[0], e->arguments[0]->type, count, operands);
    access_of(t, e->arguments[0], &target);
    access_store(t, &target, id);
    return 0;
}

static uint32_t emit_multiply(struct translator *t, const struct expr *e)
{
    static const uint32_t is_signed[3] = {SIGNED_A, SIGNED_B, SIGNED_C | SIGNED_RESULT};
    uint32_t operands[4], mask = 0;
    for (uint32_t i = 0; i < 3; i++) {
        operands[i] = emit_value(t, e->arguments[i]);
        if (base_is_signed(e->arguments[i]->type->element->base))
            mask |= is_signed[i];
    }
    if (e->number == 4) {
        const struct expr *extra = e->arguments[3];
        if (extra->kind != EXPR_CONSTANT)
            fail_at(t, &extra->at, "the operands of 'coopMatMulAdd' are no constant");
        mask |= (uint32_t)extra->bits[0];
    }
    operands[3] = mask;
    return emit(t, e->builtin->code[0], e->type, mask != 0 ? 4 : 3, operands);
}

uint32_t emit_coopmat(struct translator *t, const struct expr *e)
{
    return e->builtin->how == HOW_COOPMAT_MULTIPLY ? emit_multiply(t, e)
                                                   : emit_transfer(t, e);
}
