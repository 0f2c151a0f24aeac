// SPDX-License-Identifier: MIT
// The operations of trees: the SDK's table of instructions, the operations that only trees
// have, and their precedence.
#include "tree.h"

#define INSTRUCTION(name, text, operands, class, dtypes)                                   \
    [TN_EXPR_##name] = {text, TN_EXPR_CLASS_##class, operands},

const struct op_info op_table[TREE_NUM_OPS] = {
    TN_EXPR_OPS(INSTRUCTION) // clang-format off
    [TREE_INPUT] = {"input", TN_EXPR_CLASS_LEAF, 0},
    [TREE_ATTR] = {"attribute", TN_EXPR_CLASS_LEAF, 0},
    [TREE_NUMBER] = {"number", TN_EXPR_CLASS_LEAF, 0},
    [TREE_ALL] = {"&&", TN_EXPR_CLASS_LOGIC, 2},
    [TREE_ANY] = {"||", TN_EXPR_CLASS_LOGIC, 2},
    [TREE_MEAN] = {"mean", TN_EXPR_CLASS_REDUCE, 1},
}; // clang-format on

const uint8_t op_precedence[TREE_NUM_OPS] = {
    [TN_EXPR_INDEX] = PREC_ATOM,    [TREE_INPUT] = PREC_ATOM,
    [TREE_ATTR] = PREC_ATOM,        [TREE_NUMBER] = PREC_ATOM,
    [TN_EXPR_NEG] = PREC_UNARY,     [TN_EXPR_NOT] = PREC_UNARY,
    [TN_EXPR_INVERT] = PREC_UNARY,  [TN_EXPR_ADD] = PREC_ADD,
    [TN_EXPR_SUB] = PREC_ADD,       [TN_EXPR_MUL] = PREC_MUL,
    [TN_EXPR_DIV] = PREC_MUL,       [TN_EXPR_MOD] = PREC_MUL,
    [TN_EXPR_FLOOR_DIV] = PREC_MUL, [TN_EXPR_POW] = PREC_POWER,
    [TN_EXPR_AND] = PREC_AND,       [TN_EXPR_OR] = PREC_OR,
    [TN_EXPR_XOR] = PREC_XOR,       [TN_EXPR_SHL] = PREC_SHIFT,
    [TN_EXPR_SHR] = PREC_SHIFT,     [TREE_ALL] = PREC_ALL,
    [TREE_ANY] = PREC_ANY,          [TN_EXPR_EQ] = PREC_COMPARE,
    [TN_EXPR_NE] = PREC_COMPARE,    [TN_EXPR_LT] = PREC_COMPARE,
    [TN_EXPR_LE] = PREC_COMPARE,    [TN_EXPR_GT] = PREC_COMPARE,
    [TN_EXPR_GE] = PREC_COMPARE,
};
