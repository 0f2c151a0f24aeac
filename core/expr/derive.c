// SPDX-License-Identifier: MIT
// Derivatives of the operations, and arithmetic that keeps derived expressions small.
//
// Rounding functions, comparisons, logic and casts to integers have derivative zero
// everywhere. At a tie, max and min give half to each side. Selections choose between the
// sides' tangents instead of multiplying by 0 or 1, so that an infinity on the side not
// taken is no NaN.
#include <math.h>
#include "tree.h"

typedef const struct expr_node *value;

static bool is_number(value a, double number)
{
    if (a->op != TREE_NUMBER || a->kind == KIND_BOOL)
        return false;
    double have = a->kind == KIND_FLOAT    ? bits_to_double(a->bits)
                  : a->kind == KIND_SIGNED ? (double)(int64_t)a->bits
                                           : (double)a->bits;
    return have == number;
}

static value neg(struct tree *t, value a)
{
    if (!a)
        return NULL;
    return a->op == TN_EXPR_NEG ? a->args[0] : tree_op(t, TN_EXPR_NEG, a, NULL, NULL);
}

static value mul(struct tree *t, value a, value b)
{
    if (!a || !b)
        return NULL;
    if (is_number(a, 1))
        return b;
    if (is_number(b, 1))
        return a;
    if (is_number(a, -1))
        return neg(t, b);
    if (is_number(b, -1))
        return neg(t, a);
    if (a->op == TN_EXPR_NEG)
        return neg(t, mul(t, a->args[0], b));
    return tree_op(t, TN_EXPR_MUL, a, b, NULL);
}

static value divide(struct tree *t, value a, value b)
{
    if (!a || !b)
        return NULL;
    if (a->op == TN_EXPR_NEG)
        return neg(t, divide(t, a->args[0], b));
    return is_number(b, 1) ? a : tree_op(t, TN_EXPR_DIV, a, b, NULL);
}

static value sub(struct tree *t, value a, value b)
{
    return tree_op(t, TN_EXPR_SUB, a, b, NULL);
}

static value add(struct tree *t, value a, value b)
{
    return tree_op(t, TN_EXPR_ADD, a, b, NULL);
}

static value call(struct tree *t, int op, value a)
{
    return tree_op(t, op, a, NULL, NULL);
}

static value scale(struct tree *t, value a, double factor)
{
    return mul(t, a, tree_float(t, factor));
}

value derive_add(struct tree *t, value a, value b)
{
    if (!a || !b)
        return a ? a : b;
    if (a == b)
        return mul(t, tree_int(t, 2), a);
    if (b->op == TN_EXPR_NEG)
        return sub(t, a, b->args[0]);
    if (a->op == TN_EXPR_NEG)
        return sub(t, b, a->args[0]);
    return add(t, a, b);
}

static value one_plus_square(struct tree *t, value a)
{
    return add(t, tree_int(t, 1), mul(t, a, a));
}

static value one_minus_square(struct tree *t, value a)
{
    return sub(t, tree_int(t, 1), mul(t, a, a));
}

// g * d(a ** b)/da. A number as the exponent needs no care at a == 0.
static value power_base(struct tree *t, value node, value g)
{
    value a = node->args[0], b = node->args[1];
    if (is_number(b, 0))
        return NULL;
    if (is_number(b, 1))
        return g;
    if (is_number(b, 2))
        return mul(t, g, mul(t, tree_int(t, 2), a));
    value slope = mul(t, b, tree_op(t, TN_EXPR_POW, a, sub(t, b, tree_int(t, 1)), NULL));
    if (b->op == TREE_NUMBER)
        return mul(t, g, slope);
    value is_constant = tree_op(t, TN_EXPR_EQ, b, tree_int(t, 0), NULL);
    return tree_op(t, TN_EXPR_SELECT, is_constant, tree_int(t, 0), mul(t, g, slope));
}

// g * d(a ** b)/db: 0 at a == 0, NaN for negative a, where no derivative exists.
static value power_exponent(struct tree *t, value node, value g)
{
    value a = node->args[0];
    value slope = mul(t, node, call(t, TN_EXPR_LOG, a));
    if (a->op == TREE_NUMBER)
        return is_number(a, 0) ? NULL : mul(t, g, slope);
    value at_zero = tree_op(t, TN_EXPR_EQ, a, tree_int(t, 0), NULL);
    return tree_op(t, TN_EXPR_SELECT, at_zero, tree_int(t, 0), mul(t, g, slope));
}

static value extremum(struct tree *t, value node, uint32_t k, value g)
{
    value mine = node->args[k], other = node->args[1 - k];
    int wins = node->op == TN_EXPR_MAX ? TN_EXPR_GT : TN_EXPR_LT;
    value tie = tree_op(t, TN_EXPR_EQ, mine, other, NULL);
    value rest = tree_op(t, TN_EXPR_SELECT, tie, scale(t, g, 0.5), tree_int(t, 0));
    return tree_op(t, TN_EXPR_SELECT, tree_op(t, wins, mine, other, NULL), g, rest);
}

static value arc_tangent(struct tree *t, value node, uint32_t k, value g)
{
    value y = node->args[0], x = node->args[1];
    value square = add(t, mul(t, x, x), mul(t, y, y));
    return k == 0 ? divide(t, mul(t, g, x), square)
                  : neg(t, divide(t, mul(t, g, y), square));
}

static value chain_binary(struct tree *t, value node, uint32_t k, value g)
{
    value a = node->args[0], b = node->args[1];
    switch (node->op) {
    case TN_EXPR_ADD:
        return g;
    case TN_EXPR_SUB:
        return k == 0 ? g : neg(t, g);
    case TN_EXPR_MUL:
        return mul(t, g, k == 0 ? b : a);
    case TN_EXPR_DIV:
        return k == 0 ? divide(t, g, b) : neg(t, divide(t, mul(t, g, node), b));
    case TN_EXPR_MOD:
        return k == 0 ? g : neg(t, mul(t, g, call(t, TN_EXPR_FLOOR, divide(t, a, b))));
    case TN_EXPR_POW:
        return k == 0 ? power_base(t, node, g) : power_exponent(t, node, g);
    case TN_EXPR_ATAN2:
        return arc_tangent(t, node, k, g);
    default:
        return extremum(t, node, k, g);
    }
}

static value chain_trigonometric(struct tree *t, value node, value g)
{
    value a = node->args[0];
    switch (node->op) {
    case TN_EXPR_SIN:
        return mul(t, g, call(t, TN_EXPR_COS, a));
    case TN_EXPR_COS:
        return neg(t, mul(t, g, call(t, TN_EXPR_SIN, a)));
    case TN_EXPR_TAN:
        return mul(t, g, one_plus_square(t, node));
    case TN_EXPR_ASIN:
        return mul(t, g, call(t, TN_EXPR_RSQRT, one_minus_square(t, a)));
    case TN_EXPR_ACOS:
        return neg(t, mul(t, g, call(t, TN_EXPR_RSQRT, one_minus_square(t, a))));
    case TN_EXPR_ATAN:
        return divide(t, g, one_plus_square(t, a));
    case TN_EXPR_SINH:
        return mul(t, g, call(t, TN_EXPR_COSH, a));
    case TN_EXPR_COSH:
        return mul(t, g, call(t, TN_EXPR_SINH, a));
    case TN_EXPR_TANH:
        return mul(t, g, one_minus_square(t, node));
    case TN_EXPR_ASINH:
        return mul(t, g, call(t, TN_EXPR_RSQRT, one_plus_square(t, a)));
    case TN_EXPR_ACOSH: // by factors: a * a - 1 loses all digits next to 1
        return mul(t, g,
                   call(t, TN_EXPR_RSQRT,
                        mul(t, sub(t, a, tree_int(t, 1)), add(t, a, tree_int(t, 1)))));
    default: // atanh
        return divide(t, g, one_minus_square(t, a));
    }
}

static value chain_unary(struct tree *t, value node, value g)
{
    value a = node->args[0];
    switch (node->op) {
    case TN_EXPR_NEG:
        return neg(t, g);
    case TN_EXPR_ABS:
        return mul(t, g, call(t, TN_EXPR_SIGN, a));
    case TN_EXPR_SQRT:
        return divide(t, scale(t, g, 0.5), node);
    case TN_EXPR_RSQRT:
        return mul(t, scale(t, g, -0.5), divide(t, node, a));
    case TN_EXPR_EXP:
        return mul(t, g, node);
    case TN_EXPR_EXP2:
        return mul(t, g, scale(t, node, M_LN2));
    case TN_EXPR_EXPM1:
        return mul(t, g, call(t, TN_EXPR_EXP, a));
    case TN_EXPR_LOG:
        return divide(t, g, a);
    case TN_EXPR_LOG2:
        return divide(t, scale(t, g, M_LOG2E), a);
    case TN_EXPR_LOG10:
        return divide(t, scale(t, g, M_LOG10E), a);
    case TN_EXPR_LOG1P:
        return divide(t, g, add(t, tree_int(t, 1), a));
    case TN_EXPR_ERF:
        return mul(t, g, scale(t, call(t, TN_EXPR_EXP, neg(t, mul(t, a, a))), M_2_SQRTPI));
    default:
        return chain_trigonometric(t, node, g);
    }
}

value derive_chain(struct tree *t, value node, uint32_t k, value g)
{
    if (!g || op_table[node->op].zero_derivative)
        return NULL;
    if (node->op == TN_EXPR_CAST)
        return dtype_is_float(node->dtype) ? g : NULL;
    if (node->op == TN_EXPR_SELECT) {
        if (k == 0)
            return NULL;
        value zero = tree_int(t, 0);
        return tree_op(t, TN_EXPR_SELECT, node->args[0], k == 1 ? g : zero,
                       k == 1 ? zero : g);
    }
    return node->num_args == 1 ? chain_unary(t, node, g) : chain_binary(t, node, k, g);
}
