// SPDX-License-Identifier: MIT
// Tensors' layouts and views, and the functions of cooperative matrices that take them or
// functions (GL_NV_cooperative_matrix2).
#include "../tree/builtins.h"

static bool is_matrix(const struct type *type)
{
    return type->base == TYPE_COOPMAT;
}

static bool is_number(const struct type *type)
{
    return type_is_number(type) && type_is_scalar(type) && !base_is_float(type->base);
}

static bool are_numbers(struct expr **arguments, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < count; i++)
        if (!is_number(arguments[i]->type))
            return false;
    return true;
}

// The type that the arguments of createTensor...() say.
static const struct type *check_create(struct translator *t, const struct builtin *b,
                                       struct expr **arguments, uint32_t count)
{
    uint64_t values[8];
    if (count == 0 || count > 7 || !are_numbers(arguments, 0, count))
        return NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (arguments[i]->kind != EXPR_CONSTANT)
            fail_at(t, &arguments[i]->at, "an argument of '%s' is no constant", b->name);
        values[i] = arguments[i]->bits[0];
    }
    return type_tensor_of(
        t, b->code[0] == OpCreateTensorLayoutNV ? TYPE_TENSOR_LAYOUT : TYPE_TENSOR_VIEW,
        values, count, &arguments[0]->at);
}

static void check_type(struct translator *t, const struct builtin *b,
                       const struct expr *argument, enum base base)
{
    if (argument->type->base != base)
        fail_at(t, &argument->at, "'%s' has an argument of type '%s', expected '%s'",
                b->name, type_text(t, argument->type),
                base == TYPE_TENSOR_VIEW ? "tensorViewNV" : "tensorLayoutNV");
}

static const struct type *check_set(struct translator *t, const struct builtin *b,
                                    struct expr **arguments, uint32_t count)
{
    bool is_view = b->code[0] == OpTensorViewSetDimensionNV ||
                   b->code[0] == OpTensorViewSetStrideNV ||
                   b->code[0] == OpTensorViewSetClipNV;
    if (count == 0)
        return NULL;
    check_type(t, b, arguments[0], is_view ? TYPE_TENSOR_VIEW : TYPE_TENSOR_LAYOUT);
    uint32_t dimensions = arguments[0]->type->dimensions;
    uint32_t wanted = b->number == 1   ? dimensions
                      : b->number == 2 ? 2 * dimensions
                      : b->number == 3 ? 1
                                       : 4;
    if (count != 1 + wanted)
        fail_at(t, &arguments[0]->at, "'%s' of %u dimensions has %u arguments, expected %u",
                b->name, dimensions, count, 1 + wanted);
    return are_numbers(arguments, 1, count) ? arguments[0]->type : NULL;
}

// matrix, array, first element, layout, and perhaps a view and a function that decodes.
static bool check_transfer(struct translator *t, const struct builtin *b,
                           struct expr **arguments, uint32_t count)
{
    uint32_t most = b->how == HOW_COOPMAT_LOAD_TENSOR ? 6 : 5, at = 4;
    if (count < 4 || count > most)
        return false;
    coopmat_check_memory(t, b, arguments);
    check_type(t, b, arguments[3], TYPE_TENSOR_LAYOUT);
    if (!is_number(arguments[2]->type))
        return false;
    if (at < count && arguments[at]->type->base == TYPE_TENSOR_VIEW)
        at++;
    if (at < count && most == 6 && arguments[at]->kind == EXPR_FUNCTION)
        at++;
    return at == count;
}

const struct type *tensor_check(struct translator *t, const struct builtin *b,
                                struct expr **arguments, uint32_t count)
{
    bool fits = false;
    if (b->how == HOW_TENSOR)
        return b->number == 0 ? check_create(t, b, arguments, count)
                              : check_set(t, b, arguments, count);
    if (b->how == HOW_COOPMAT_LOAD_TENSOR || b->how == HOW_COOPMAT_STORE_TENSOR) {
        fits = check_transfer(t, b, arguments, count);
    } else {
        bool are_matrices =
            count >= 2 && is_matrix(arguments[0]->type) && is_matrix(arguments[1]->type);
        if (b->how == HOW_COOPMAT_REDUCE)
            fits = are_matrices && count == 4 && is_number(arguments[2]->type) &&
                   arguments[3]->kind == EXPR_FUNCTION;
        else if (b->how == HOW_COOPMAT_PER_ELEMENT)
            fits = are_matrices && count >= 3 && count <= MOST_ARGUMENTS &&
                   arguments[2]->kind == EXPR_FUNCTION &&
                   arguments[2]->function->num_parameters == count;
        else
            fits = are_matrices && count == 2;
    }
    return fits ? type_scalar(t, TYPE_VOID) : NULL;
}

// --- instructions ----------------------------------------------------------------------

static uint32_t emit_set(struct translator *t, const struct expr *e)
{
    uint32_t operands[MOST_ARGUMENTS];
    if (e->builtin->number == 0)
        return emit(t, e->builtin->code[0], e->type, 0, NULL);
    operands[0] = emit_value(t, e->arguments[0]);
    for (uint32_t i = 1; i < e->number; i++)
        operands[i] = emit_value(t, convert_base(t, e->arguments[i], TYPE_UINT32));
    return emit(t, e->builtin->code[0], e->type, e->number, operands);
}

static void store_first(struct translator *t, const struct expr *e, uint32_t id)
{
    struct access target;
    access_of(t, e->arguments[0], &target);
    access_store(t, &target, id);
}

static void emit_transfer(struct translator *t, const struct expr *e)
{
    enum { HAS_VIEW = 1, HAS_DECODER = 2 };
    struct access memory;
    bool is_load = e->builtin->how == HOW_COOPMAT_LOAD_TENSOR;
    uint32_t operands[12], count = 3, mask = 0;
    uint32_t value = emit_value(t, e->arguments[0]);
    coopmat_element(t, e, &memory);
    operands[0] = access_pointer(t, &memory);
    operands[1] = value;
    operands[2] = emit_value(t, e->arguments[3]);
    uint32_t num_memory = memory_operands(t, &memory, !is_load, operands + count);
    count += num_memory > 0 ? num_memory : 1; // a mask of 0
    uint32_t at_mask = count++;
    for (uint32_t i = 4; i < e->number; i++) {
        const struct expr *argument = e->arguments[i];
        bool is_view = argument->kind != EXPR_FUNCTION;
        mask |= is_view ? HAS_VIEW : HAS_DECODER;
        operands[count++] =
            is_view ? emit_value(t, argument) : argument->function->ir->head->id;
        if (!is_view)
            use_needs(t, NEED(MATRIX_BLOCK_LOADS));
    }
    operands[at_mask] = mask;
    if (is_load)
        store_first(t, e,
                    emit(t, e->builtin->code[0], e->arguments[0]->type, count, operands));
    else
        ir_emit(t->ir, e->builtin->code[0], 0, count, operands);
}

static void emit_per_element(struct translator *t, const struct expr *e)
{
    const struct function *f = e->arguments[2]->function;
    uint32_t operands[MOST_ARGUMENTS], count = 2;
    operands[0] = emit_value(t, e->arguments[1]);
    operands[1] = f->ir->head->id;
    for (uint32_t i = 3; i < e->number; i++) { // row, column and element come before them
        struct expr *argument = e->arguments[i];
        if (!is_matrix(argument->type))
            argument = convert_to(t, argument, f->parameters[i].type, "an argument");
        operands[count++] = emit_value(t, argument);
    }
    store_first(t, e, emit(t, e->builtin->code[0], e->arguments[0]->type, count, operands));
}

static void emit_reduce(struct translator *t, const struct expr *e)
{
    const struct expr *mask = e->arguments[2];
    if (mask->kind != EXPR_CONSTANT)
        fail_at(t, &mask->at, "the kind of a reduction is no constant");
    uint32_t value = emit_value(t, e->arguments[1]);
    store_first(t, e,
                EMIT(t, e->builtin->code[0], e->arguments[0]->type, value,
                     (uint32_t)mask->bits[0], e->arguments[3]->function->ir->head->id));
}

uint32_t emit_tensor(struct translator *t, const struct expr *e)
{
    switch (e->builtin->how) {
    case HOW_TENSOR:
        return emit_set(t, e);
    case HOW_COOPMAT_REDUCE:
        emit_reduce(t, e);
        return 0;
    case HOW_COOPMAT_PER_ELEMENT:
        emit_per_element(t, e);
        return 0;
    case HOW_COOPMAT_TRANSPOSE:
        store_first(t, e,
                    EMIT(t, e->builtin->code[0], e->arguments[0]->type,
                         emit_value(t, e->arguments[1])));
        return 0;
    default:
        emit_transfer(t, e);
        return 0;
    }
}
