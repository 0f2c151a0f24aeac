// SPDX-License-Identifier: MIT
// The table of what an operation is: its text, its typing rule, how tightly it binds.
#include "tree.h"

#define INFIX(text, class, precedence)                                                     \
    {                                                                                      \
        text, class, 2, precedence, false                                                  \
    }
#define FLAT(text, class, precedence)                                                      \
    {                                                                                      \
        text, class, 2, precedence, true                                                   \
    }
#define PREFIX(text, class, flat)                                                          \
    {                                                                                      \
        text, class, 1, PREC_UNARY, flat                                                   \
    }
#define FUNCTION(text, class, num_args, flat)                                              \
    {                                                                                      \
        text, class, num_args, 0, flat                                                     \
    }
#define MATH(text) FUNCTION(text, OP_MATH, 1, false)

const struct op_info op_table[TREE_NUM_OPS] = {
    [TN_EXPR_LOAD] = {"load", OP_LEAF, 0, 0, true},
    [TN_EXPR_CONST] = {"const", OP_LEAF, 0, 0, true},
    [TN_EXPR_PARAM] = {"param", OP_LEAF, 0, 0, true},
    [TN_EXPR_INDEX] = {"index", OP_LEAF, 0, PREC_ATOM, true},
    [TREE_INPUT] = {"input", OP_LEAF, 0, PREC_ATOM, false},
    [TREE_ATTR] = {"attribute", OP_LEAF, 0, PREC_ATOM, true},
    [TREE_NUMBER] = {"number", OP_LEAF, 0, PREC_ATOM, true},
    [TN_EXPR_CAST] = FUNCTION("cast", OP_CAST, 1, false),
    [TN_EXPR_NEG] = PREFIX("-", OP_SIGN, false),
    [TN_EXPR_NOT] = PREFIX("!", OP_LOGIC, true),
    [TN_EXPR_INVERT] = PREFIX("~", OP_BITS, true),
    [TN_EXPR_ABS] = FUNCTION("abs", OP_SIGN, 1, false),
    [TN_EXPR_SIGN] = FUNCTION("sign", OP_SIGN, 1, true),
    [TN_EXPR_FLOOR] = FUNCTION("floor", OP_ROUND, 1, true),
    [TN_EXPR_CEIL] = FUNCTION("ceil", OP_ROUND, 1, true),
    [TN_EXPR_TRUNC] = FUNCTION("trunc", OP_ROUND, 1, true),
    [TN_EXPR_ROUND] = FUNCTION("round", OP_ROUND, 1, true),
    [TN_EXPR_SQRT] = MATH("sqrt"),
    [TN_EXPR_RSQRT] = MATH("rsqrt"),
    [TN_EXPR_EXP] = MATH("exp"),
    [TN_EXPR_EXP2] = MATH("exp2"),
    [TN_EXPR_EXPM1] = MATH("expm1"),
    [TN_EXPR_LOG] = MATH("log"),
    [TN_EXPR_LOG2] = MATH("log2"),
    [TN_EXPR_LOG10] = MATH("log10"),
    [TN_EXPR_LOG1P] = MATH("log1p"),
    [TN_EXPR_SIN] = MATH("sin"),
    [TN_EXPR_COS] = MATH("cos"),
    [TN_EXPR_TAN] = MATH("tan"),
    [TN_EXPR_ASIN] = MATH("asin"),
    [TN_EXPR_ACOS] = MATH("acos"),
    [TN_EXPR_ATAN] = MATH("atan"),
    [TN_EXPR_SINH] = MATH("sinh"),
    [TN_EXPR_COSH] = MATH("cosh"),
    [TN_EXPR_TANH] = MATH("tanh"),
    [TN_EXPR_ASINH] = MATH("asinh"),
    [TN_EXPR_ACOSH] = MATH("acosh"),
    [TN_EXPR_ATANH] = MATH("atanh"),
    [TN_EXPR_ERF] = MATH("erf"),
    [TN_EXPR_ISNAN] = FUNCTION("isnan", OP_TEST, 1, true),
    [TN_EXPR_ISINF] = FUNCTION("isinf", OP_TEST, 1, true),
    [TN_EXPR_ISFINITE] = FUNCTION("isfinite", OP_TEST, 1, true),
    [TN_EXPR_ADD] = INFIX("+", OP_ARITH, PREC_ADD),
    [TN_EXPR_SUB] = INFIX("-", OP_ARITH, PREC_ADD),
    [TN_EXPR_MUL] = INFIX("*", OP_ARITH, PREC_MUL),
    [TN_EXPR_DIV] = INFIX("/", OP_DIVIDE, PREC_MUL),
    [TN_EXPR_MOD] = INFIX("%", OP_WHOLE, PREC_MUL),
    [TREE_FLOOR_DIV] = FLAT("//", OP_WHOLE, PREC_MUL),
    [TN_EXPR_POW] = INFIX("**", OP_WHOLE, PREC_POWER),
    [TN_EXPR_ATAN2] = FUNCTION("atan2", OP_MATH, 2, false),
    [TN_EXPR_MIN] = FUNCTION("min", OP_ARITH, 2, false),
    [TN_EXPR_MAX] = FUNCTION("max", OP_ARITH, 2, false),
    [TN_EXPR_AND] = FLAT("&", OP_BITS, PREC_AND),
    [TN_EXPR_OR] = FLAT("|", OP_BITS, PREC_OR),
    [TN_EXPR_XOR] = FLAT("^", OP_BITS, PREC_XOR),
    [TN_EXPR_SHL] = FLAT("<<", OP_BITS, PREC_SHIFT),
    [TN_EXPR_SHR] = FLAT(">>", OP_BITS, PREC_SHIFT),
    [TREE_ALL] = FLAT("&&", OP_LOGIC, PREC_ALL),
    [TREE_ANY] = FLAT("||", OP_LOGIC, PREC_ANY),
    [TN_EXPR_EQ] = FLAT("==", OP_COMPARE, PREC_COMPARE),
    [TN_EXPR_NE] = FLAT("!=", OP_COMPARE, PREC_COMPARE),
    [TN_EXPR_LT] = FLAT("<", OP_COMPARE, PREC_COMPARE),
    [TN_EXPR_LE] = FLAT("<=", OP_COMPARE, PREC_COMPARE),
    [TN_EXPR_GT] = FLAT(">", OP_COMPARE, PREC_COMPARE),
    [TN_EXPR_GE] = FLAT(">=", OP_COMPARE, PREC_COMPARE),
    [TN_EXPR_SELECT] = FUNCTION("select", OP_SELECT, 3, false),
};
