// SPDX-License-Identifier: MIT
// Builds expressions: finds their types and folds constants.
#include "build.h"

#include <string.h>

static struct tree_expr *with_two(struct translator *t, enum expr_kind kind, uint32_t op,
                                  const struct type *type, struct tree_expr *left,
                                  struct tree_expr *right, const struct position *at)
{
    struct tree_expr *e = expr_new(t, kind, type, at);
    e->op = op;
    e->left = left;
    e->right = right;
    expr_child(t, e, left);
    if (right != NULL)
        expr_child(t, e, right);
    return e;
}

static const char *op_text(struct translator *t, uint32_t op)
{
    struct glsl_token token = {.kind = TOKEN_PUNCTUATOR, .punctuator = op};
    return token_text(t, &token);
}

_Noreturn static void fail_operands(struct translator *t, uint32_t op,
                                    const struct tree_expr *left,
                                    const struct tree_expr *right, const char *expected,
                                    const struct position *at)
{
    fail_at(t, at, "operator %s has operands of types '%s' and '%s', expected %s",
            op_text(t, op), type_text(t, left->type), type_text(t, right->type), expected);
}

// Types of 8 and 16 bits are only stored unless an extension has arithmetic on them.
static void check_arithmetic(struct translator *t, enum base base,
                             const struct position *at)
{
    uint32_t width = base_width(base);
    if (base == TYPE_BFLOAT16)
        fail_at(t, at, "bfloat16_t has no arithmetic: convert it to float");
    if (width != 8 && width != 16)
        return;
    uint64_t extension = base == TYPE_FLOAT16 ? EXTENSION_BIT(FLOAT16)
                         : width == 8         ? EXTENSION_BIT(INT8)
                                              : EXTENSION_BIT(INT16);
    if ((t->extensions & extension) == 0)
        fail_at(t, at, "arithmetic on '%s' needs '#extension %s : require'",
                type_base_text(base), extension_text(extension));
}

// --- unary -----------------------------------------------------------------------------

static uint32_t spec_unary(struct translator *t, uint32_t op, const struct tree_expr *e)
{
    uint32_t code = op == '!' ? OpLogicalNot : op == '~' ? OpNot : OpSNegate;
    if (!e->is_spec || !type_is_scalar(e->type) || base_is_float(e->type->base))
        return 0;
    return ir_spec_operation(t->ir, type_id(t, e->type, LAYOUT_NONE), code, 1, &e->id);
}

struct tree_expr *expr_unary(struct translator *t, uint32_t op, struct tree_expr *from,
                             const struct position *at)
{
    const struct type *type = from->type;
    enum base base = type->base == TYPE_COOPMAT ? type->element->base : type->base;
    const char *expected = NULL;
    if (op == '!' && !(base == TYPE_BOOL && type_is_scalar(type)))
        expected = "bool";
    else if (op == '~' && (type->base == TYPE_COOPMAT || !base_is_int(base)))
        expected = "an integer";
    else if ((op == '-' || op == '+') && !base_is_int(base) && !base_is_float(base))
        expected = "a number";
    if (expected != NULL)
        fail_at(t, at, "operator %s has an operand of type '%s', expected %s",
                op_text(t, op), type_text(t, type), expected);
    if (op != '!' && from->kind != EXPR_CONSTANT)
        check_arithmetic(t, base, at);
    if (from->kind == EXPR_CONSTANT && op != '+')
        return fold_unary(t, op, from, at);
    uint32_t id = op == '+' ? 0 : spec_unary(t, op, from);
    if (id != 0)
        return expr_spec(t, type, id, at);
    return with_two(t, EXPR_UNARY, op, type, from, NULL, at);
}

// --- binary ----------------------------------------------------------------------------

static bool is_comparison(uint32_t op)
{
    return op == '<' || op == '>' || op == PUNCTUATOR('<', '=') ||
           op == PUNCTUATOR('>', '=');
}

static bool is_equality(uint32_t op)
{
    return op == PUNCTUATOR('=', '=') || op == PUNCTUATOR('!', '=');
}

static bool is_shift(uint32_t op)
{
    return op == PUNCTUATOR('<', '<') || op == PUNCTUATOR('>', '>');
}

// Type of a product of operands of one base. NULL: there is none.
static const struct type *
tree_build_product_type(struct translator *t, const struct type *a, const struct type *b)
{
    if (type_is_matrix(a) && type_is_matrix(b))
        return a->columns == b->rows ? type_number(t, a->base, b->columns, a->rows) : NULL;
    if (type_is_matrix(a))
        return a->columns == b->rows ? type_vector(t, a->base, a->rows) : NULL;
    return b->rows == a->rows ? type_vector(t, a->base, b->columns) : NULL;
}

static const struct type *result_type(struct translator *t, uint32_t op,
                                      const struct type *a, const struct type *b)
{
    if (type_is_scalar(a))
        return b;
    if (type_is_scalar(b) || a == b) {
        if (op == '*' && a == b && type_is_matrix(a))
            return tree_build_product_type(t, a, b);
        return a;
    }
    if (op == '*' && (type_is_matrix(a) || type_is_matrix(b)))
        return tree_build_product_type(t, a, b);
    return NULL;
}

static struct tree_expr *coopmat_binary(struct translator *t, uint32_t op,
                                        struct tree_expr *left, struct tree_expr *right,
                                        const struct position *at)
{
    bool is_scaled = op == '*' && right->type->base < NUM_SCALARS &&
                     left->type->base == TYPE_COOPMAT && type_is_scalar(right->type);
    if (op == '*' && left->type->base < NUM_SCALARS && type_is_scalar(left->type))
        return coopmat_binary(t, op, right, left, at);
    if (is_scaled)
        right = convert_to(t, right, left->type->element, "a factor of a matrix");
    else if (left->type != right->type ||
             (op != '+' && op != '-' && op != '*' && op != '/'))
        fail_operands(t, op, left, right, "cooperative matrices of one type, or a factor",
                      at);
    check_arithmetic(t, left->type->element->base, at);
    return with_two(t, EXPR_BINARY, op, left->type, left, right, at);
}

static uint32_t spec_opcode(uint32_t op, enum base base)
{
    bool is_signed = base_is_signed(base);
    switch (op) {
    case '+':
        return OpIAdd;
    case '-':
        return OpISub;
    case '*':
        return OpIMul;
    case '/':
        return is_signed ? OpSDiv : OpUDiv;
    case '%':
        return is_signed ? OpSMod : OpUMod;
    case '&':
        return OpBitwiseAnd;
    case '|':
        return OpBitwiseOr;
    case '^':
        return OpBitwiseXor;
    case PUNCTUATOR('<', '<'):
        return OpShiftLeftLogical;
    case PUNCTUATOR('>', '>'):
        return is_signed ? OpShiftRightArithmetic : OpShiftRightLogical;
    case '<':
        return is_signed ? OpSLessThan : OpULessThan;
    case '>':
        return is_signed ? OpSGreaterThan : OpUGreaterThan;
    case PUNCTUATOR('<', '='):
        return is_signed ? OpSLessThanEqual : OpULessThanEqual;
    case PUNCTUATOR('>', '='):
        return is_signed ? OpSGreaterThanEqual : OpUGreaterThanEqual;
    case PUNCTUATOR('=', '='):
        return base == TYPE_BOOL ? OpLogicalEqual : OpIEqual;
    case PUNCTUATOR('!', '='):
        return base == TYPE_BOOL ? OpLogicalNotEqual : OpINotEqual;
    default:
        return 0;
    }
}

static uint32_t id_of_constant(struct translator *t, const struct tree_expr *e)
{
    return e->is_spec ? e->id : constant_id(t, e->type, e->bits);
}

// Constants fold, and integers and bools of specialisation constants are operations on
// them.
static struct tree_expr *tree_build_binary(struct translator *t, uint32_t op,
                                           const struct type *type, struct tree_expr *left,
                                           struct tree_expr *right,
                                           const struct position *at)
{
    struct tree_expr *e = NULL;
    if (left->kind == EXPR_CONSTANT && right->kind == EXPR_CONSTANT)
        e = fold_binary(t, op, type, left, right, at);
    if (e != NULL)
        return e;
    enum base base = left->type->base;
    if (expr_is_constant(left) && expr_is_constant(right) && base < NUM_SCALARS &&
        type_is_scalar(left->type) && type_is_scalar(right->type) && !base_is_float(base)) {
        uint32_t operands[2] = {id_of_constant(t, left), id_of_constant(t, right)};
        return expr_spec(t, type,
                         ir_spec_operation(t->ir, type_id(t, type, LAYOUT_NONE),
                                           spec_opcode(op, base), 2, operands),
                         at);
    }
    return with_two(t, EXPR_BINARY, op, type, left, right, at);
}

static struct tree_expr *tree_build_equality(struct translator *t, uint32_t op,
                                             struct tree_expr *left,
                                             struct tree_expr *right,
                                             const struct position *at)
{
    if (left->type != right->type) {
        if (convert_rank(t, left->type, right->type) != RANK_NONE)
            left = convert_base(t, left, right->type->base);
        else if (convert_rank(t, right->type, left->type) != RANK_NONE)
            right = convert_base(t, right, left->type->base);
        else
            fail_operands(t, op, left, right, "operands of one type", at);
    }
    if (left->type->components == COMPONENTS_UNKNOWN && left->type->base != TYPE_REFERENCE)
        fail_operands(t, op, left, right, "types of known size", at);
    if (left->type->base < NUM_SCALARS && left->kind != EXPR_CONSTANT)
        check_arithmetic(t, left->type->base, at);
    return tree_build_binary(t, op, type_scalar(t, TYPE_BOOL), left, right, at);
}

struct tree_expr *expr_binary(struct translator *t, uint32_t op, struct tree_expr *left,
                              struct tree_expr *right, const struct position *at)
{
    if (is_equality(op))
        return tree_build_equality(t, op, left, right, at);
    if (left->type->base == TYPE_COOPMAT || right->type->base == TYPE_COOPMAT)
        return coopmat_binary(t, op, left, right, at);
    if (left->type->base == TYPE_REFERENCE && (op == '+' || op == '-'))
        return expr_index(t, left, op == '-' ? expr_unary(t, '-', right, at) : right, at);
    bool is_bitwise = op == '&' || op == '|' || op == '^' || op == '%' || is_shift(op);
    enum base base = TYPE_VOID;
    if (type_is_number(left->type) && type_is_number(right->type) &&
        left->type->base != TYPE_BOOL && right->type->base != TYPE_BOOL)
        base = is_shift(op) ? left->type->base
                            : common_base(t, left->type->base, right->type->base);
    if (base == TYPE_VOID ||
        (is_bitwise && (!base_is_int(left->type->base) || !base_is_int(right->type->base))))
        fail_operands(t, op, left, right, is_bitwise ? "integers" : "numbers", at);
    if (left->kind != EXPR_CONSTANT || right->kind != EXPR_CONSTANT)
        check_arithmetic(t, base, at);
    if (!is_shift(op)) {
        left = convert_base(t, left, base);
        right = convert_base(t, right, base);
    }
    const struct type *type;
    if (is_shift(op))
        type = type_is_scalar(right->type) || right->type->rows == left->type->rows
                   ? left->type
                   : NULL;
    else
        type = result_type(t, op, left->type, right->type);
    if (is_comparison(op)) {
        if (!type_is_scalar(left->type) || !type_is_scalar(right->type))
            fail_operands(t, op, left, right, "scalars: vectors have lessThan() and so on",
                          at);
        type = type_scalar(t, TYPE_BOOL);
    }
    if (type == NULL)
        fail_operands(t, op, left, right, "matching sizes", at);
    return tree_build_binary(t, op, type, left, right, at);
}

struct tree_expr *expr_logical(struct translator *t, uint32_t op, struct tree_expr *left,
                               struct tree_expr *right, const struct position *at)
{
    const struct type *type = type_scalar(t, TYPE_BOOL);
    if (left->type != type || right->type != type)
        fail_operands(t, op * 0x101, left, right, "bool", at);
    if (left->kind == EXPR_CONSTANT && op != '^')
        return (left->bits[0] != 0) == (op == '&') ? right : left;
    if (op == '^' && left->kind == EXPR_CONSTANT && right->kind == EXPR_CONSTANT) {
        struct tree_expr *e = expr_constant(t, type, at);
        e->bits[0] = left->bits[0] != right->bits[0];
        return e;
    }
    if (expr_is_constant(left) && expr_is_constant(right)) {
        uint32_t operands[2] = {id_of_constant(t, left), id_of_constant(t, right)};
        uint32_t code = op == '&'   ? OpLogicalAnd
                        : op == '|' ? OpLogicalOr
                                    : OpLogicalNotEqual;
        return expr_spec(
            t, type,
            ir_spec_operation(t->ir, type_id(t, type, LAYOUT_NONE), code, 2, operands), at);
    }
    return with_two(t, EXPR_LOGICAL, op, type, left, right, at);
}

struct tree_expr *expr_select(struct translator *t, struct tree_expr *condition,
                              struct tree_expr *left, struct tree_expr *right,
                              const struct position *at)
{
    if (condition->type != type_scalar(t, TYPE_BOOL))
        fail_at(t, &condition->at, "the condition of ?: is of type '%s', expected 'bool'",
                type_text(t, condition->type));
    if (left->type != right->type) {
        if (convert_rank(t, left->type, right->type) != RANK_NONE)
            left = convert_base(t, left, right->type->base);
        else if (convert_rank(t, right->type, left->type) != RANK_NONE)
            right = convert_base(t, right, left->type->base);
        else
            fail_at(t, at, "?: chooses between types '%s' and '%s', expected one type",
                    type_text(t, left->type), type_text(t, right->type));
    }
    if (condition->kind == EXPR_CONSTANT)
        return condition->bits[0] ? left : right;
    const struct type *type = left->type;
    if (condition->is_spec && expr_is_constant(left) && expr_is_constant(right) &&
        type_is_number(type) && type_is_scalar(type) && !base_is_float(type->base)) {
        uint32_t operands[3] = {condition->id, id_of_constant(t, left),
                                id_of_constant(t, right)};
        return expr_spec(
            t, type,
            ir_spec_operation(t->ir, type_id(t, type, LAYOUT_NONE), OpSelect, 3, operands),
            at);
    }
    struct tree_expr *e = with_two(t, EXPR_SELECT, 0, type, condition, left, at);
    e->right = left;
    e->third = right;
    expr_child(t, e, right);
    return e;
}

// --- assignment ------------------------------------------------------------------------

struct tree_expr *expr_assign(struct translator *t, uint32_t op, struct tree_expr *left,
                              struct tree_expr *right, const struct position *at)
{
    expr_check_lvalue(t, left, op == 0 ? "operator =" : "an assignment");
    if (op != 0 && left->type->base == TYPE_REFERENCE && !left->has_effects) {
        right = expr_binary(t, op, left, right, at);
        op = 0;
    }
    if (op == 0) {
        right = convert_to(t, right, left->type, "the assigned value");
        if (type_is_unsized(left->type))
            fail_at(t, at, "an array without a size is assigned, expected an element");
    } else {
        struct tree_expr *result = expr_binary(t, op, left, right, at);
        if (result->type != left->type) {
            if (!type_is_number(result->type) || result->type->base == left->type->base ||
                convert_rank(t, right->type, type_like(t, right->type, left->type->base)) ==
                    RANK_NONE)
                fail_operands(t, op, left, right, "a result of the left type", at);
        }
        if (result->kind == EXPR_BINARY && result->left == left)
            right = result->right;
        else if (type_is_number(right->type) && !is_shift(op))
            right = convert_base(t, right, left->type->base);
    }
    struct tree_expr *e = with_two(t, EXPR_ASSIGN, op, left->type, left, right, at);
    e->has_effects = true;
    return e;
}

struct tree_expr *expr_increment(struct translator *t, uint32_t op, struct tree_expr *left,
                                 bool is_post, const struct position *at)
{
    expr_check_lvalue(t, left, op == '+' ? "++" : "--");
    if (!type_is_number(left->type) || left->type->base == TYPE_BOOL)
        fail_at(t, at, "%s has an operand of type '%s', expected a number",
                op == '+' ? "++" : "--", type_text(t, left->type));
    check_arithmetic(t, left->type->base, at);
    struct tree_expr *e = with_two(t, EXPR_INCREMENT, op, left->type, left, NULL, at);
    e->number = is_post;
    e->has_effects = true;
    return e;
}
