// SPDX-License-Identifier: MIT
// Which arguments fit the functions of tensors' layouts and views, and those of cooperative
// matrices that take them or functions (GL_NV_cooperative_matrix2).
#include "builtins.h"

static bool tree_tensor_is_matrix(const struct type *type)
{
    return type->base == TYPE_COOPMAT;
}

static bool tree_tensor_is_number(const struct type *type)
{
    return type_is_number(type) && type_is_scalar(type) && !base_is_float(type->base);
}

static bool are_numbers(struct tree_expr **arguments, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < count; i++)
        if (!tree_tensor_is_number(arguments[i]->type))
            return false;
    return true;
}

// The type that the arguments of createTensor...() say.
static const struct type *check_create(struct translator *t, const struct builtin *b,
                                       struct tree_expr **arguments, uint32_t count)
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

static void tree_tensor_check_type(struct translator *t, const struct builtin *b,
                                   const struct tree_expr *argument, enum base base)
{
    if (argument->type->base != base)
        fail_at(t, &argument->at, "'%s' has an argument of type '%s', expected '%s'",
                b->name, type_text(t, argument->type),
                base == TYPE_TENSOR_VIEW ? "tensorViewNV" : "tensorLayoutNV");
}

static const struct type *check_set(struct translator *t, const struct builtin *b,
                                    struct tree_expr **arguments, uint32_t count)
{
    bool is_view = b->code[0] == OpTensorViewSetDimensionNV ||
                   b->code[0] == OpTensorViewSetStrideNV ||
                   b->code[0] == OpTensorViewSetClipNV;
    if (count == 0)
        return NULL;
    tree_tensor_check_type(t, b, arguments[0],
                           is_view ? TYPE_TENSOR_VIEW : TYPE_TENSOR_LAYOUT);
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
                           struct tree_expr **arguments, uint32_t count)
{
    uint32_t most = b->how == HOW_COOPMAT_LOAD_TENSOR ? 6 : 5, at = 4;
    if (count < 4 || count > most)
        return false;
    coopmat_check_memory(t, b, arguments);
    tree_tensor_check_type(t, b, arguments[3], TYPE_TENSOR_LAYOUT);
    if (!tree_tensor_is_number(arguments[2]->type))
        return false;
    if (at < count && arguments[at]->type->base == TYPE_TENSOR_VIEW)
        at++;
    if (at < count && most == 6 && arguments[at]->kind == EXPR_FUNCTION)
        at++;
    return at == count;
}

const struct type *tensor_check(struct translator *t, const struct builtin *b,
                                struct tree_expr **arguments, uint32_t count)
{
    bool fits = false;
    if (b->how == HOW_TENSOR)
        return b->number == 0 ? check_create(t, b, arguments, count)
                              : check_set(t, b, arguments, count);
    if (b->how == HOW_COOPMAT_LOAD_TENSOR || b->how == HOW_COOPMAT_STORE_TENSOR) {
        fits = check_transfer(t, b, arguments, count);
    } else {
        bool are_matrices = count >= 2 && tree_tensor_is_matrix(arguments[0]->type) &&
                            tree_tensor_is_matrix(arguments[1]->type);
        if (b->how == HOW_COOPMAT_REDUCE)
            fits = are_matrices && count == 4 &&
                   tree_tensor_is_number(arguments[2]->type) &&
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
