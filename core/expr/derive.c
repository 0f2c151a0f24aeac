// SPDX-License-Identifier: MIT
// Derivatives of the operations, and node builders that simplify to keep derivatives small.
// A NULL node stands for zero.
//
// Rounding, comparisons, logic and casts to integers have derivative zero. At a tie, max
// and min give half to each operand. Selections choose between the tangents of their
// branches instead of multiplying by 0 or 1, because 0 times an infinity in the branch not
// taken is NaN.
//
// Complex numbers. With tree.has_complex an argument may be complex, which a tree does not
// say: derivatives are then written so that they hold for both. g is a tangent, and the
// chain rule linear in real factors of it. What is not holomorphic (abs, real, imag, conj,
// conversions to real numbers) multiplies parts or conjugates of g.
#include <math.h>
#include "tree.h"

typedef const struct expr_node *subtree;

static bool expr_derive_is_number(subtree a, double number)
{
    if (a->op != TREE_NUMBER || a->kind == KIND_BOOL || a->kind == KIND_COMPLEX)
        return false;
    double have = a->kind == KIND_FLOAT    ? bits_to_double(a->bits)
                  : a->kind == KIND_SIGNED ? (double)(int64_t)a->bits
                                           : (double)a->bits;
    return have == number;
}

// Negations move outwards, where derive_add turns them into subtractions.
static subtree expr_derive_neg(struct tree *t, subtree a)
{
    if (!a)
        return NULL;
    return a->op == TN_EXPR_NEG ? a->args[0] : tree_op(t, TN_EXPR_NEG, a, NULL, NULL);
}

static subtree expr_derive_mul(struct tree *t, subtree a, subtree b)
{
    if (!a || !b)
        return NULL;
    if (expr_derive_is_number(a, 1))
        return b;
    if (expr_derive_is_number(b, 1))
        return a;
    if (expr_derive_is_number(a, -1))
        return expr_derive_neg(t, b);
    if (expr_derive_is_number(b, -1))
        return expr_derive_neg(t, a);
    if (a->op == TN_EXPR_NEG)
        return expr_derive_neg(t, expr_derive_mul(t, a->args[0], b));
    return tree_op(t, TN_EXPR_MUL, a, b, NULL);
}

subtree derive_product(struct tree *t, subtree a, subtree b)
{
    return expr_derive_mul(t, a, b);
}

static subtree expr_derive_divide(struct tree *t, subtree a, subtree b)
{
    if (!a || !b)
        return NULL;
    if (a->op == TN_EXPR_NEG)
        return expr_derive_neg(t, expr_derive_divide(t, a->args[0], b));
    return expr_derive_is_number(b, 1) ? a : tree_op(t, TN_EXPR_DIV, a, b, NULL);
}

static subtree expr_derive_sub(struct tree *t, subtree a, subtree b)
{
    return tree_op(t, TN_EXPR_SUB, a, b, NULL);
}

static subtree expr_derive_add(struct tree *t, subtree a, subtree b)
{
    return tree_op(t, TN_EXPR_ADD, a, b, NULL);
}

static subtree expr_derive_call(struct tree *t, int op, subtree a)
{
    return tree_op(t, op, a, NULL, NULL);
}

static subtree expr_derive_scale(struct tree *t, subtree a, double factor)
{
    return expr_derive_mul(t, a, tree_float(t, factor));
}

subtree derive_part(struct tree *t, int op, subtree a)
{
    bool is_imaginary = a && a->op == TREE_NUMBER && a->kind == KIND_COMPLEX;
    bool is_real = a && a->op == TREE_NUMBER && !is_imaginary;
    if (!a || (op == TN_EXPR_REAL && is_imaginary) || (op == TN_EXPR_IMAG && is_real))
        return NULL;
    if (is_real)
        return a;
    if (op == TN_EXPR_IMAG && is_imaginary)
        return tree_float(t, bits_to_double(a->bits));
    if (op == TN_EXPR_CONJ && a->op == TN_EXPR_CONJ)
        return a->args[0];
    return expr_derive_call(t, op, a);
}

// The tangent of |a|: the real part of g * conj(a), divided by |a|; 0 at 0, as in PyTorch.
static subtree expr_derive_modulus(struct tree *t, subtree node, subtree g)
{
    subtree a = node->args[0], zero = tree_int(t, 0);
    subtree along = derive_part(t, TN_EXPR_REAL,
                                expr_derive_mul(t, g, derive_part(t, TN_EXPR_CONJ, a)));
    return tree_op(t, TN_EXPR_SELECT, tree_op(t, TN_EXPR_EQ, a, zero, NULL), zero,
                   expr_derive_divide(t, along, node));
}

// The tangent of s = a / |a|: the component of g perpendicular to s, divided by |a|; 0 at 0
// and for real numbers, where g has no such component.
static subtree expr_derive_direction(struct tree *t, subtree node, subtree g)
{
    subtree a = node->args[0], zero = tree_int(t, 0);
    subtree along = derive_part(t, TN_EXPR_REAL,
                                expr_derive_mul(t, g, derive_part(t, TN_EXPR_CONJ, node)));
    return tree_op(
        t, TN_EXPR_SELECT, tree_op(t, TN_EXPR_EQ, a, zero, NULL), zero,
        expr_derive_divide(t, expr_derive_sub(t, g, expr_derive_mul(t, node, along)),
                           expr_derive_call(t, TN_EXPR_ABS, a)));
}

subtree derive_add(struct tree *t, subtree a, subtree b)
{
    if (!a || !b)
        return a ? a : b;
    if (a == b)
        return expr_derive_mul(t, tree_int(t, 2), a);
    if (b->op == TN_EXPR_NEG)
        return expr_derive_sub(t, a, b->args[0]);
    if (a->op == TN_EXPR_NEG)
        return expr_derive_sub(t, b, a->args[0]);
    return expr_derive_add(t, a, b);
}

static subtree one_plus_square(struct tree *t, subtree a)
{
    return expr_derive_add(t, tree_int(t, 1), expr_derive_mul(t, a, a));
}

static subtree one_minus_square(struct tree *t, subtree a)
{
    return expr_derive_sub(t, tree_int(t, 1), expr_derive_mul(t, a, a));
}

// g * d(a ** b)/da = g * b * a ** (b - 1). For b == 0 the result is set to 0, because at a
// == 0 the formula gives 0 * infinity; a literal exponent is known not to be 0 here.
static subtree power_base(struct tree *t, subtree node, subtree g)
{
    subtree a = node->args[0], b = node->args[1];
    if (expr_derive_is_number(b, 0))
        return NULL;
    if (expr_derive_is_number(b, 1))
        return g;
    if (expr_derive_is_number(b, 2))
        return expr_derive_mul(t, g, expr_derive_mul(t, tree_int(t, 2), a));
    subtree slope = expr_derive_mul(
        t, b, tree_op(t, TN_EXPR_POW, a, expr_derive_sub(t, b, tree_int(t, 1)), NULL));
    if (b->op == TREE_NUMBER)
        return expr_derive_mul(t, g, slope);
    subtree is_constant = tree_op(t, TN_EXPR_EQ, b, tree_int(t, 0), NULL);
    return tree_op(t, TN_EXPR_SELECT, is_constant, tree_int(t, 0),
                   expr_derive_mul(t, g, slope));
}

// g * d(a ** b)/db = g * a ** b * log(a). Set to 0 at a == 0; NaN for negative a, where no
// derivative exists but beside complex numbers.
static subtree power_exponent(struct tree *t, subtree node, subtree g)
{
    subtree a = node->args[0];
    subtree base = t->has_complex ? expr_derive_add(t, a, tree_imaginary(t, 0)) : a;
    subtree slope = expr_derive_mul(t, node, expr_derive_call(t, TN_EXPR_LOG, base));
    if (a->op == TREE_NUMBER)
        return expr_derive_is_number(a, 0) ? NULL : expr_derive_mul(t, g, slope);
    subtree at_zero = tree_op(t, TN_EXPR_EQ, a, tree_int(t, 0), NULL);
    return tree_op(t, TN_EXPR_SELECT, at_zero, tree_int(t, 0),
                   expr_derive_mul(t, g, slope));
}

static subtree expr_derive_extremum(struct tree *t, subtree node, uint32_t k, subtree g)
{
    subtree mine = node->args[k], other = node->args[1 - k];
    int wins = node->op == TN_EXPR_MAX ? TN_EXPR_GT : TN_EXPR_LT;
    subtree tie = tree_op(t, TN_EXPR_EQ, mine, other, NULL);
    subtree rest =
        tree_op(t, TN_EXPR_SELECT, tie, expr_derive_scale(t, g, 0.5), tree_int(t, 0));
    return tree_op(t, TN_EXPR_SELECT, tree_op(t, wins, mine, other, NULL), g, rest);
}

// At the origin, which has no derivative, 0.
static subtree arc_tangent(struct tree *t, subtree node, uint32_t k, subtree g)
{
    subtree y = node->args[0], x = node->args[1];
    subtree square = expr_derive_add(t, expr_derive_mul(t, x, x), expr_derive_mul(t, y, y));
    subtree is_origin = tree_op(t, TN_EXPR_EQ, square, tree_int(t, 0), NULL);
    square = tree_op(t, TN_EXPR_SELECT, is_origin, tree_int(t, 1), square);
    return k == 0 ? expr_derive_divide(t, expr_derive_mul(t, g, x), square)
                  : expr_derive_neg(
                        t, expr_derive_divide(t, expr_derive_mul(t, g, y), square));
}

static subtree chain_binary(struct tree *t, subtree node, uint32_t k, subtree g)
{
    subtree a = node->args[0], b = node->args[1];
    switch (node->op) {
    case TN_EXPR_ADD:
        return g;
    case TN_EXPR_SUB:
        return k == 0 ? g : expr_derive_neg(t, g);
    case TN_EXPR_MUL:
        return expr_derive_mul(t, g, k == 0 ? b : a);
    case TN_EXPR_DIV:
        return k == 0 ? expr_derive_divide(t, g, b)
                      : expr_derive_neg(
                            t, expr_derive_divide(t, expr_derive_mul(t, g, node), b));
    case TN_EXPR_MOD:
        return k == 0 ? g
                      : expr_derive_neg(
                            t, expr_derive_mul(t, g,
                                               tree_op(t, TN_EXPR_FLOOR_DIV, a, b, NULL)));
    case TN_EXPR_POW:
        return k == 0 ? power_base(t, node, g) : power_exponent(t, node, g);
    case TN_EXPR_ATAN2:
        return arc_tangent(t, node, k, g);
    case TN_EXPR_COMPLEX:
        return k == 0 ? g : expr_derive_mul(t, g, tree_imaginary(t, 1));
    default:
        return expr_derive_extremum(t, node, k, g);
    }
}

static subtree chain_trigonometric(struct tree *t, subtree node, subtree g)
{
    subtree a = node->args[0];
    switch (node->op) {
    case TN_EXPR_SIN:
        return expr_derive_mul(t, g, expr_derive_call(t, TN_EXPR_COS, a));
    case TN_EXPR_COS:
        return expr_derive_neg(t,
                               expr_derive_mul(t, g, expr_derive_call(t, TN_EXPR_SIN, a)));
    case TN_EXPR_TAN:
        return expr_derive_mul(t, g, one_plus_square(t, node));
    case TN_EXPR_ASIN:
        return expr_derive_mul(t, g,
                               expr_derive_call(t, TN_EXPR_RSQRT, one_minus_square(t, a)));
    case TN_EXPR_ACOS:
        return expr_derive_neg(
            t, expr_derive_mul(t, g,
                               expr_derive_call(t, TN_EXPR_RSQRT, one_minus_square(t, a))));
    case TN_EXPR_ATAN:
        return expr_derive_divide(t, g, one_plus_square(t, a));
    case TN_EXPR_SINH:
        return expr_derive_mul(t, g, expr_derive_call(t, TN_EXPR_COSH, a));
    case TN_EXPR_COSH:
        return expr_derive_mul(t, g, expr_derive_call(t, TN_EXPR_SINH, a));
    case TN_EXPR_TANH:
        return expr_derive_mul(t, g, one_minus_square(t, node));
    case TN_EXPR_ASINH:
        return expr_derive_mul(t, g,
                               expr_derive_call(t, TN_EXPR_RSQRT, one_plus_square(t, a)));
    case TN_EXPR_ACOSH:     // (a - 1) * (a + 1), because a * a - 1 cancels near 1
        if (t->has_complex) // the root of the product has another branch
            return expr_derive_mul(
                t, g,
                expr_derive_mul(t,
                                expr_derive_call(t, TN_EXPR_RSQRT,
                                                 expr_derive_sub(t, a, tree_int(t, 1))),
                                expr_derive_call(t, TN_EXPR_RSQRT,
                                                 expr_derive_add(t, a, tree_int(t, 1)))));
        return expr_derive_mul(
            t, g,
            expr_derive_call(t, TN_EXPR_RSQRT,
                             expr_derive_mul(t, expr_derive_sub(t, a, tree_int(t, 1)),
                                             expr_derive_add(t, a, tree_int(t, 1)))));
    default: // atanh
        return expr_derive_divide(t, g, one_minus_square(t, a));
    }
}

static subtree chain_unary(struct tree *t, subtree node, subtree g)
{
    subtree a = node->args[0];
    switch (node->op) {
    case TN_EXPR_NEG:
        return expr_derive_neg(t, g);
    case TN_EXPR_REAL:
    case TN_EXPR_IMAG:
    case TN_EXPR_CONJ:
        return derive_part(t, node->op, g);
    case TN_EXPR_ABS:
        if (t->has_complex)
            return expr_derive_modulus(t, node, g);
        return expr_derive_mul(t, g, expr_derive_call(t, TN_EXPR_SIGN, a));
    case TN_EXPR_SIGN:
        return expr_derive_direction(t, node, g);
    case TN_EXPR_SQRT:
        return expr_derive_divide(t, expr_derive_scale(t, g, 0.5), node);
    case TN_EXPR_RSQRT:
        return expr_derive_mul(t, expr_derive_scale(t, g, -0.5),
                               expr_derive_divide(t, node, a));
    case TN_EXPR_EXP:
        return expr_derive_mul(t, g, node);
    case TN_EXPR_EXP2:
        return expr_derive_mul(t, g, expr_derive_scale(t, node, M_LN2));
    case TN_EXPR_EXPM1:
        return expr_derive_mul(t, g, expr_derive_call(t, TN_EXPR_EXP, a));
    case TN_EXPR_LOG:
        return expr_derive_divide(t, g, a);
    case TN_EXPR_LOG2:
        return expr_derive_divide(t, expr_derive_scale(t, g, M_LOG2E), a);
    case TN_EXPR_LOG10:
        return expr_derive_divide(t, expr_derive_scale(t, g, M_LOG10E), a);
    case TN_EXPR_LOG1P:
        return expr_derive_divide(t, g, expr_derive_add(t, tree_int(t, 1), a));
    case TN_EXPR_ERF:
        return expr_derive_mul(
            t, g,
            expr_derive_scale(
                t,
                expr_derive_call(t, TN_EXPR_EXP,
                                 expr_derive_neg(t, expr_derive_mul(t, a, a))),
                M_2_SQRTPI));
    case TN_EXPR_ERFINV:
        return expr_derive_mul(
            t, g,
            expr_derive_scale(
                t, expr_derive_call(t, TN_EXPR_EXP, expr_derive_mul(t, node, node)),
                1 / M_2_SQRTPI));
    default:
        return chain_trigonometric(t, node, g);
    }
}

// --- reductions ------------------------------------------------------------------------

// 1 / k at each of the k elements of a row with the least or greatest value, else 0.
static subtree expr_derive_extremum_share(struct tree *t, subtree node)
{
    subtree hit = tree_op(t, TN_EXPR_EQ, node->args[0], node, NULL);
    subtree one = tree_op(t, TN_EXPR_SELECT, hit, tree_float(t, 1), tree_float(t, 0));
    return expr_derive_divide(t, one, expr_derive_call(t, TN_EXPR_REDUCE_SUM, one));
}

// At each element of a row the product of all other elements. With one zero in the row this
// is the product of the rest at the zero, and 0 elsewhere; with more zeros, 0.
static subtree product_of_others(struct tree *t, subtree node)
{
    subtree a = node->args[0], zero = tree_int(t, 0);
    subtree is_zero = tree_op(t, TN_EXPR_EQ, a, zero, NULL);
    subtree factor = tree_op(t, TN_EXPR_SELECT, is_zero, tree_int(t, 1), a);
    subtree product = expr_derive_call(t, TN_EXPR_REDUCE_PROD, factor);
    subtree zeros = expr_derive_call(
        t, TN_EXPR_REDUCE_SUM, tree_op(t, TN_EXPR_SELECT, is_zero, tree_float(t, 1), zero));
    subtree here = tree_op(t, TN_EXPR_EQ, zeros, tree_float(t, 1), NULL);
    subtree none = tree_op(t, TN_EXPR_EQ, zeros, tree_float(t, 0), NULL);
    return tree_op(
        t, TN_EXPR_SELECT, is_zero, tree_op(t, TN_EXPR_SELECT, here, product, zero),
        tree_op(t, TN_EXPR_SELECT, none, expr_derive_divide(t, product, factor), zero));
}

subtree derive_reduced(struct tree *t, subtree node, subtree g)
{
    if (!g)
        return NULL;
    switch (node->op) {
    case TN_EXPR_REDUCE_SUM:
    case TREE_MEAN:
        return expr_derive_call(t, node->op, g);
    case TN_EXPR_REDUCE_PROD:
        return expr_derive_call(t, TN_EXPR_REDUCE_SUM,
                                expr_derive_mul(t, g, product_of_others(t, node)));
    default:
        return expr_derive_call(t, TN_EXPR_REDUCE_SUM,
                                expr_derive_mul(t, g, expr_derive_extremum_share(t, node)));
    }
}

subtree derive_spread(struct tree *t, subtree node, subtree g)
{
    if (!g)
        return NULL;
    if (node->op == TREE_MEAN)
        return expr_derive_call(t, TREE_MEAN, g);
    subtree sum = expr_derive_call(t, TN_EXPR_REDUCE_SUM, g);
    if (node->op == TN_EXPR_REDUCE_SUM)
        return sum;
    subtree share = node->op == TN_EXPR_REDUCE_PROD ? product_of_others(t, node)
                                                    : expr_derive_extremum_share(t, node);
    return expr_derive_mul(t, sum,
                           t->has_complex ? derive_part(t, TN_EXPR_CONJ, share) : share);
}

// --- the chain rule --------------------------------------------------------------------

// True when the derivative is zero wherever it exists.
static bool is_flat(const struct tree *t, int op)
{
    switch (op_table[op].class) {
    case TN_EXPR_CLASS_ROUND:
    case TN_EXPR_CLASS_TEST:
    case TN_EXPR_CLASS_BITS:
    case TN_EXPR_CLASS_SHIFT:
    case TN_EXPR_CLASS_COMPARE:
    case TN_EXPR_CLASS_LOGIC:
        return true;
    default:
        return (op == TN_EXPR_SIGN && !t->has_complex) || op == TN_EXPR_FLOOR_DIV;
    }
}

subtree derive_chain(struct tree *t, subtree node, uint32_t k, subtree g)
{
    if (!g || is_flat(t, node->op))
        return NULL;
    if (node->op == TN_EXPR_CAST && !dtype_is_inexact(node->dtype))
        return NULL;
    if (node->op == TN_EXPR_CAST)
        return t->has_complex && !tn_is_complex(node->dtype)
                   ? derive_part(t, TN_EXPR_REAL, g)
                   : g;
    if (node->op == TN_EXPR_SELECT) {
        if (k == 0)
            return NULL;
        subtree zero = tree_int(t, 0);
        return tree_op(t, TN_EXPR_SELECT, node->args[0], k == 1 ? g : zero,
                       k == 1 ? zero : g);
    }
    return node->num_args == 1 ? chain_unary(t, node, g) : chain_binary(t, node, k, g);
}
