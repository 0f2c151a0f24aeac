// SPDX-License-Identifier: MIT
// Binary operators.
#include "emit.h"

// By operator: of floats, of signed integers, of unsigned ones.
static bool arithmetic_op(uint32_t op, uint32_t kind, uint32_t *out)
{
    static const struct {
        uint32_t op;
        uint16_t codes[3];
    } table[] = {
        {'+', {OpFAdd, OpIAdd, OpIAdd}},
        {'-', {OpFSub, OpISub, OpISub}},
        {'*', {OpFMul, OpIMul, OpIMul}},
        {'/', {OpFDiv, OpSDiv, OpUDiv}},
        {'%', {OpFMod, OpSMod, OpUMod}},
        {'&', {0, OpBitwiseAnd, OpBitwiseAnd}},
        {'|', {0, OpBitwiseOr, OpBitwiseOr}},
        {'^', {0, OpBitwiseXor, OpBitwiseXor}},
        {PUNCTUATOR('<', '<'), {0, OpShiftLeftLogical, OpShiftLeftLogical}},
        {PUNCTUATOR('>', '>'), {0, OpShiftRightArithmetic, OpShiftRightLogical}},
        {'<', {OpFOrdLessThan, OpSLessThan, OpULessThan}},
        {'>', {OpFOrdGreaterThan, OpSGreaterThan, OpUGreaterThan}},
        {PUNCTUATOR('<', '='), {OpFOrdLessThanEqual, OpSLessThanEqual, OpULessThanEqual}},
        {PUNCTUATOR('>', '='),
         {OpFOrdGreaterThanEqual, OpSGreaterThanEqual, OpUGreaterThanEqual}},
        {PUNCTUATOR('=', '='), {OpFOrdEqual, OpIEqual, OpIEqual}},
        {PUNCTUATOR('!', '='), {OpFUnordNotEqual, OpINotEqual, OpINotEqual}},
    };
    for (uint32_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].op == op) {
            *out = table[i].codes[kind];
            return true;
        }
    return false;
}

static uint32_t opcode_of(uint32_t op, enum base base)
{
    uint32_t code = OpNop;
    if (base == TYPE_BOOL)
        return op == PUNCTUATOR('=', '=') ? OpLogicalEqual : OpLogicalNotEqual;
    arithmetic_op(op, base_is_float(base) ? 0 : base_is_signed(base) ? 1 : 2, &code);
    return code;
}

// --- equality --------------------------------------------------------------------------

static uint32_t emit_equality(struct translator *t, uint32_t op, const struct type *type,
                              uint32_t left, uint32_t right)
{
    const struct type *boolean = type_scalar(t, TYPE_BOOL);
    bool is_equal = op == PUNCTUATOR('=', '=');
    if (type->base == TYPE_REFERENCE) {
        const struct type *address = type_scalar(t, TYPE_UINT64);
        left = EMIT(t, OpConvertPtrToU, address, left);
        right = EMIT(t, OpConvertPtrToU, address, right);
        return EMIT(t, is_equal ? OpIEqual : OpINotEqual, boolean, left, right);
    }
    if (type_is_number(type) && !type_is_matrix(type)) {
        const struct type *result = type_like(t, type, TYPE_BOOL);
        use_type(t, type);
        uint32_t id = EMIT(t, opcode_of(op, type->base), result, left, right);
        return type_is_scalar(type) ? id : EMIT(t, is_equal ? OpAll : OpAny, boolean, id);
    }
    uint32_t count = type->base == TYPE_STRUCT  ? type->record->num_members
                     : type->base == TYPE_ARRAY ? type->length
                                                : type->columns;
    uint32_t all = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct type *part =
            type->base == TYPE_STRUCT ? type->record->members[i].type : type_part(t, type);
        uint32_t a = EMIT(t, OpCompositeExtract, part, left, i);
        uint32_t b = EMIT(t, OpCompositeExtract, part, right, i);
        uint32_t id = emit_equality(t, op, part, a, b);
        all =
            i == 0 ? id : EMIT(t, is_equal ? OpLogicalAnd : OpLogicalOr, boolean, all, id);
    }
    return all;
}

// --- matrices --------------------------------------------------------------------------

static uint32_t binary_emit_matrix_product(struct translator *t, const struct type *type,
                                           const struct type *left_type, uint32_t left,
                                           const struct type *right_type, uint32_t right)
{
    if (type_is_scalar(right_type))
        return EMIT(t, OpMatrixTimesScalar, type, left, right);
    if (type_is_scalar(left_type))
        return EMIT(t, OpMatrixTimesScalar, type, right, left);
    uint32_t op = !type_is_matrix(left_type)    ? OpVectorTimesMatrix
                  : !type_is_matrix(right_type) ? OpMatrixTimesVector
                                                : OpMatrixTimesMatrix;
    return EMIT(t, op, type, left, right);
}

// Applies `op` column by column; a scalar operand is each column's.
static uint32_t emit_columns(struct translator *t, uint32_t op, const struct type *type,
                             const struct type *left_type, uint32_t left,
                             const struct type *right_type, uint32_t right)
{
    uint32_t columns[4];
    const struct type *column = type_part(t, type);
    if (op == '/' && type_is_scalar(right_type)) {
        right = EMIT(t, OpFDiv, right_type, constant_splat(t, right_type, 1), right);
        return EMIT(t, OpMatrixTimesScalar, type, left, right);
    }
    if (type_is_scalar(left_type))
        left = emit_splat(t, column, left);
    if (type_is_scalar(right_type))
        right = emit_splat(t, column, right);
    for (uint32_t i = 0; i < type->columns; i++) {
        uint32_t a =
            type_is_scalar(left_type) ? left : EMIT(t, OpCompositeExtract, column, left, i);
        uint32_t b = type_is_scalar(right_type)
                         ? right
                         : EMIT(t, OpCompositeExtract, column, right, i);
        columns[i] = EMIT(t, opcode_of(op, type->base), column, a, b);
    }
    return emit(t, OpCompositeConstruct, type, type->columns, columns);
}

uint32_t emit_binary(struct translator *t, uint32_t op, const struct type *type,
                     const struct type *left_type, uint32_t left,
                     const struct type *right_type, uint32_t right)
{
    if (op == PUNCTUATOR('=', '=') || op == PUNCTUATOR('!', '='))
        return emit_equality(t, op, left_type, left, right);
    if (left_type->base == TYPE_COOPMAT) {
        if (right_type->base != TYPE_COOPMAT)
            return EMIT(t, OpMatrixTimesScalar, type, left, right);
        return EMIT(t, opcode_of(op, left_type->element->base), type, left, right);
    }
    enum base base = left_type->base;
    if (type_is_matrix(left_type) || type_is_matrix(right_type))
        return op == '*'
                   ? binary_emit_matrix_product(t, type, left_type, left, right_type, right)
                   : emit_columns(t, op, type, left_type, left, right_type, right);
    bool is_left_scalar = type_is_scalar(left_type),
         is_right_scalar = type_is_scalar(right_type);
    if (op == '*' && base_is_float(base) && is_left_scalar != is_right_scalar)
        return is_left_scalar ? EMIT(t, OpVectorTimesScalar, type, right, left)
                              : EMIT(t, OpVectorTimesScalar, type, left, right);
    if (is_left_scalar && !is_right_scalar)
        left = emit_splat(t, type_like(t, right_type, left_type->base), left);
    if (is_right_scalar && !is_left_scalar)
        right = emit_splat(t, type_like(t, left_type, right_type->base), right);
    use_type(t, left_type);
    return EMIT(t, opcode_of(op, base), type, left, right);
}
