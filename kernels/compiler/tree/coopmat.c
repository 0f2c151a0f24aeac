// SPDX-License-Identifier: MIT
// Which arguments fit the functions of cooperative matrices.
#include "builtins.h"

static bool coopmat_is_integer(const struct tree_expr *e)
{
    return base_is_int(e->type->base) && type_is_scalar(e->type);
}

// The value of a type's parameter; false: a specialisation says it.
static bool coopmat_is_known(struct translator *t, uint32_t id, uint32_t *value)
{
    const struct ir_inst *inst = ir_definition(t->ir, id);
    if (inst == NULL || inst->op != OpConstant)
        return false;
    *value = inst->operands[0];
    return true;
}

static void check_same(struct translator *t, const struct position *at, uint32_t a,
                       uint32_t b, const char *what)
{
    uint32_t left, right;
    if (coopmat_is_known(t, a, &left) && coopmat_is_known(t, b, &right) && left != right)
        fail_at(t, at, "'coopMatMulAdd' has matrices of %s %u and %u, expected the same",
                what, left, right);
}

void coopmat_check_parameter(struct translator *t, const struct tree_expr *e,
                             uint32_t number)
{
    bool is_fine = true, has_more = t->extensions & EXTENSION_BIT(MATRIX_2);
    const char *expected[] = {"gl_ScopeSubgroup", "a positive number of rows",
                              "a positive number of columns", "one of gl_MatrixUse*"};
    if (e->is_spec)
        return;
    uint64_t value = e->bits[0];
    if (number == 0)
        is_fine = value == ScopeSubgroup || (has_more && value == ScopeWorkgroup);
    else
        is_fine = number == 3 ? value <= CooperativeMatrixUseMatrixAccumulatorKHR
                              : value > 0 && value <= UINT16_MAX;
    if (!is_fine)
        fail_at(t, &e->at, "a parameter of 'coopmat' is %lld, expected %s%s",
                (long long)value, expected[number],
                number == 0 && has_more ? " or gl_ScopeWorkgroup" : "");
}

static const struct type *check_multiply(struct translator *t, struct tree_expr **arguments,
                                         uint32_t count)
{
    static const char *const uses[] = {"gl_MatrixUseA", "gl_MatrixUseB",
                                       "gl_MatrixUseAccumulator"};
    const struct type *types[3];
    if (count < 3 || count > 4)
        return NULL;
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t use;
        types[i] = arguments[i]->type;
        if (types[i]->base != TYPE_COOPMAT)
            fail_at(t, &arguments[i]->at,
                    "'coopMatMulAdd' has an operand of type '%s', expected a matrix",
                    type_text(t, types[i]));
        if (coopmat_is_known(t, types[i]->use, &use) && use != i)
            fail_at(t, &arguments[i]->at,
                    "operand %u of 'coopMatMulAdd' is for %s, expected %s", i + 1,
                    uses[use], uses[i]);
        if (base_is_float(types[i]->element->base) !=
            base_is_float(types[0]->element->base))
            fail_at(t, &arguments[i]->at,
                    "'coopMatMulAdd' has matrices of '%s' and '%s', expected floats or "
                    "integers",
                    type_text(t, types[0]->element), type_text(t, types[i]->element));
        check_same(t, &arguments[i]->at, types[0]->scope, types[i]->scope, "scopes");
    }
    check_same(t, &arguments[1]->at, types[0]->matrix_columns, types[1]->matrix_rows,
               "columns and rows");
    check_same(t, &arguments[2]->at, types[0]->matrix_rows, types[2]->matrix_rows, "rows");
    check_same(t, &arguments[2]->at, types[1]->matrix_columns, types[2]->matrix_columns,
               "columns");
    if (count == 4 && !coopmat_is_integer(arguments[3]))
        return NULL;
    return types[2];
}

void coopmat_check_memory(struct translator *t, const struct builtin *b,
                          struct tree_expr **arguments)
{
    const struct type *memory = arguments[1]->type, *element = memory->element;
    if (arguments[0]->type->base != TYPE_COOPMAT)
        fail_at(t, &arguments[0]->at,
                "'%s' has a first argument of type '%s', expected a "
                "cooperative matrix",
                b->name, type_text(t, arguments[0]->type));
    if (memory->base != TYPE_ARRAY || !type_is_number(element) || type_is_matrix(element) ||
        element->base == TYPE_BOOL)
        fail_at(t, &arguments[1]->at,
                "'%s' has memory of type '%s', expected an array of numbers or vectors",
                b->name, type_text(t, memory));
}

const struct type *coopmat_check(struct translator *t, const struct builtin *b,
                                 struct tree_expr **arguments, uint32_t count)
{
    if (b->how == HOW_COOPMAT_MULTIPLY)
        return check_multiply(t, arguments, count);
    // matrix, array, first element, stride, layout
    if (count != 5)
        return NULL;
    coopmat_check_memory(t, b, arguments);
    for (uint32_t i = 2; i < 5; i++)
        if (!coopmat_is_integer(arguments[i]))
            return NULL;
    if (!expr_is_constant(arguments[4]))
        fail_at(t, &arguments[4]->at, "the layout of '%s' is no constant", b->name);
    return type_scalar(t, TYPE_VOID);
}
