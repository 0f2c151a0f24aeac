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
    if (b->how >= HOW_TENSOR)
        return tensor_check(t, b, arguments, count);
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

// An array's element: the place where a transfer begins.
void coopmat_element(struct translator *t, const struct expr *array, struct expr *index,
                     struct access *out)
{
    struct expr *e = expr_new(t, EXPR_INDEX, type_part(t, array->type), &array->at);
    e->left = (struct expr *)array; // it is only read
    e->right = index;
    access_of(t, e, out);
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

uint32_t coopmat_memory(struct translator *t, const struct access *memory, bool is_load,
                        uint32_t *out)
{
    uint32_t count = 1;
    out[0] = 0;
    if (memory->storage == STORAGE_PHYSICAL) {
        out[0] |= ALIGNED;
        out[count++] = memory->align;
    }
    if (memory->storage == STORAGE_WORKGROUP || memory->memory & MEMORY_COHERENT) {
        out[0] |= NONPRIVATE | (is_load ? VISIBLE : AVAILABLE);
        out[count++] =
            ir_u32(t->ir, memory->storage == STORAGE_WORKGROUP ? SCOPE_WORKGROUP : 5);
    }
    return count;
}

static uint32_t emit_transfer(struct translator *t, const struct expr *e)
{
    struct access memory;
    bool is_load = e->builtin->how == HOW_COOPMAT_LOAD;
    uint32_t operands[8], count = 0, value = 0;
    coopmat_element(t, e->arguments[1], e->arguments[2], &memory);
    if (!is_load)
        value = emit_value(t, e->arguments[0]);
    operands[count++] = access_pointer(t, &memory);
    if (!is_load)
        operands[count++] = value;
    uint32_t stride = word(t, e->arguments[3]);
    operands[count++] = word(t, e->arguments[4]);
    operands[count++] = stride;
    uint32_t num_memory = coopmat_memory(t, &memory, is_load, operands + count);
    count += operands[count] != 0 ? num_memory : 0;
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
