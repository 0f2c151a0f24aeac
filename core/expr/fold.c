// SPDX-License-Identifier: MIT
// Operations on integer numbers that are known when a graph is built: exact, in 128 bits,
// as Python computes them. The result is a number again when i64 or u64 holds it.
#include "tree.h"

typedef __int128 wide;

static wide wide_of(int kind, uint64_t bits)
{
    return kind == KIND_SIGNED ? (wide)(int64_t)bits : (wide)bits;
}

// False when the power is too large, also for `wide`.
static bool wide_power(wide base, wide exponent, wide *out)
{
    *out = 1;
    if (base == 1 || base == -1 || base == 0) // whose powers repeat
        exponent = exponent > 2 ? 2 + (exponent & 1) : exponent;
    for (; exponent > 0; exponent--)
        if (__builtin_mul_overflow(*out, base, out))
            return false;
    return true;
}

static wide wide_quotient(wide a, wide b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

// Whether the operation on these operands is folded; programs compute the others.
static bool can_fold(int op, wide b)
{
    switch (op) {
    case TN_EXPR_FLOOR_DIV:
    case TN_EXPR_MOD:
        return b != 0;
    case TN_EXPR_POW:
    case TN_EXPR_SHL:
    case TN_EXPR_SHR:
        return b >= 0;
    case TN_EXPR_NEG:
    case TN_EXPR_ABS:
    case TN_EXPR_INVERT:
    case TN_EXPR_ADD:
    case TN_EXPR_SUB:
    case TN_EXPR_MUL:
    case TN_EXPR_MIN:
    case TN_EXPR_MAX:
    case TN_EXPR_AND:
    case TN_EXPR_OR:
    case TN_EXPR_XOR:
        return true;
    default:
        return false;
    }
}

// Operands are of 65 bits, so only products and powers may be too large for `wide`.
static bool expr_fold_compute(int op, wide a, wide b, wide *out)
{
    switch (op) {
    case TN_EXPR_NEG:
        return *out = -a, true;
    case TN_EXPR_ABS:
        return *out = a < 0 ? -a : a, true;
    case TN_EXPR_INVERT:
        return *out = ~a, true;
    case TN_EXPR_ADD:
        return *out = a + b, true;
    case TN_EXPR_SUB:
        return *out = a - b, true;
    case TN_EXPR_MUL:
        return !__builtin_mul_overflow(a, b, out);
    case TN_EXPR_FLOOR_DIV:
        return *out = wide_quotient(a, b), true;
    case TN_EXPR_MOD:
        return *out = a - wide_quotient(a, b) * b, true;
    case TN_EXPR_POW:
        return wide_power(a, b, out);
    case TN_EXPR_SHL: // a * 2^b
        return *out = b < 64 ? a * ((wide)1 << b) : a, b < 64 || a == 0;
    case TN_EXPR_SHR:
        return *out = b < 64 ? a >> b : a < 0 ? -1 : 0, true;
    case TN_EXPR_MIN:
        return *out = a < b ? a : b, true;
    case TN_EXPR_MAX:
        return *out = a < b ? b : a, true;
    case TN_EXPR_AND:
        return *out = a & b, true;
    case TN_EXPR_OR:
        return *out = a | b, true;
    default:
        return *out = a ^ b, true;
    }
}

tn_status fold_integers(int op, const int *kinds, const uint64_t *values, int *out_kind,
                        uint64_t *out_bits)
{
    wide a = wide_of(kinds[0], values[0]), b = wide_of(kinds[1], values[1]), result;
    *out_kind = 0;
    if (!can_fold(op, b))
        return TN_OK;
    if (!expr_fold_compute(op, a, b, &result) || result < INT64_MIN ||
        result > (wide)UINT64_MAX)
        return fail(TN_ERR_ARGUMENT,
                    "'%s' of numbers: the result fits neither i64 nor u64; write a number "
                    "as a float, such as 2.0",
                    op_table[op].text);
    *out_kind = result > INT64_MAX ? KIND_UNSIGNED : KIND_SIGNED;
    *out_bits = (uint64_t)result;
    return TN_OK;
}

struct expr_fold_known {
    int kind; // KIND_SIGNED or KIND_UNSIGNED; 0: not known
    uint64_t bits;
};

static bool is_integer_kind(int kind)
{
    return kind == KIND_SIGNED || kind == KIND_UNSIGNED;
}

static tn_status fold_node(const struct expr_node *node, const struct walk *walk,
                           const struct expr_input *inputs,
                           const struct expr_fold_known *known, struct expr_fold_known *out)
{
    int kinds[3] = {KIND_SIGNED, KIND_SIGNED, KIND_SIGNED};
    uint64_t values[3] = {0};
    *out = (struct expr_fold_known){0};
    if (node->op == TREE_NUMBER && is_integer_kind(node->kind))
        *out = (struct expr_fold_known){node->kind, node->bits};
    if (node->op == TREE_INPUT && inputs[node->index].is_known &&
        is_integer_kind(inputs[node->index].weak_kind))
        *out = (struct expr_fold_known){inputs[node->index].weak_kind,
                                        inputs[node->index].bits};
    if (node->num_args == 0)
        return TN_OK;
    for (uint32_t k = 0; k < node->num_args; k++) {
        const struct expr_fold_known *arg = &known[walk_position(walk, node->args[k])];
        if (!arg->kind)
            return TN_OK;
        kinds[k] = arg->kind;
        values[k] = arg->bits;
    }
    return fold_integers(node->op, kinds, values, &out->kind, &out->bits);
}

tn_status expr_fold(const struct expr *expr, const struct expr_input *inputs, int *out_kind,
                    uint64_t *out_bits)
{
    struct walk walk = {0};
    tn_status status = walk_init(&walk, expr->outputs, expr->num_outputs);
    struct expr_fold_known *known =
        status == TN_OK ? mem_alloc(walk.count * sizeof(*known) + 1) : NULL;
    if (status == TN_OK && !known)
        status = TN_ERR_MEMORY;
    for (uint32_t i = 0; i < walk.count && status == TN_OK; i++)
        status = fold_node(walk.nodes[i], &walk, inputs, known, &known[i]);
    if (status == TN_OK) {
        const struct expr_fold_known *result =
            &known[walk_position(&walk, expr->outputs[0])];
        *out_kind = result->kind;
        *out_bits = result->bits;
    }
    mem_free(known);
    walk_finish(&walk);
    return status;
}
