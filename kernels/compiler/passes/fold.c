// SPDX-License-Identifier: MIT
// Operations on constants. Integers wrap as SPIR-V says. Floats are folded only where every
// device gives the same bits: the result is exact, and neither it nor an operand is a NaN,
// an infinity or a subnormal number. Specialisation constants are not folded.
#include "optimise.h"
#include "../../spirv/numbers.h"

#include <string.h>

struct scalar {
    uint64_t bits; // an integer's upper ones are 0
    uint32_t kind; // OpTypeBool, OpTypeInt, OpTypeFloat
    uint32_t width;
    bool is_signed;
};

static bool set_type(const struct ir *ir, uint32_t type, struct scalar *out)
{
    const struct ir_inst *inst = ir_definition(ir, type);
    *out = (struct scalar){.kind = inst->op, .width = 1};
    if (inst->op == OpTypeBool)
        return true;
    if (inst->op != OpTypeInt && (inst->op != OpTypeFloat || inst->num_operands > 1))
        return false; // not a number, or a float of another encoding
    out->width = inst->operands[0];
    out->is_signed = inst->op == OpTypeInt && inst->operands[1];
    return true;
}

static uint64_t fold_pass_cut(uint64_t bits, uint32_t width)
{
    return width < 64 ? bits & ((UINT64_C(1) << width) - 1) : bits;
}

// The value of an integer as one with a sign.
static int64_t fold_pass_extended(uint64_t bits, uint32_t width)
{
    uint64_t sign = UINT64_C(1) << (width - 1);
    bits = fold_pass_cut(bits, width);
    return bits & sign ? (int64_t)(bits - sign) - (int64_t)(sign - 1) - 1 : (int64_t)bits;
}

// --- integers ----------------------------------------------------------------------------

static bool fold_pass_divide(uint32_t op, uint64_t a, uint64_t b, uint32_t width,
                             uint64_t *out)
{
    int64_t x = fold_pass_extended(a, width), y = fold_pass_extended(b, width);
    if (b == 0 || (y == -1 && op != OpUDiv && op != OpUMod))
        return false; // undefined, or not worth the care
    switch (op) {
    case OpUDiv:
        *out = a / b;
        return true;
    case OpUMod:
        *out = a % b;
        return true;
    case OpSDiv:
        *out = (uint64_t)(x / y);
        return true;
    case OpSRem:
        *out = (uint64_t)(x % y);
        return true;
    default: // OpSMod: the sign of y
        *out = (uint64_t)(x % y && (x % y < 0) != (y < 0) ? x % y + y : x % y);
        return true;
    }
}

static bool fold_pass_shift(uint32_t op, uint64_t a, uint64_t b, uint32_t width,
                            uint64_t *out)
{
    if (b >= width)
        return false; // undefined
    if (op == OpShiftRightArithmetic) {
        int64_t x = fold_pass_extended(a, width);
        *out = x < 0 ? ~(~(uint64_t)x >> b) : (uint64_t)x >> b;
    } else {
        *out = op == OpShiftLeftLogical ? a << b : a >> b;
    }
    return true;
}

static bool compare_integers(uint32_t op, uint64_t a, uint64_t b, uint32_t width,
                             uint64_t *out)
{
    int64_t x = fold_pass_extended(a, width), y = fold_pass_extended(b, width);
    switch (op) {
    case OpIEqual:
    case OpLogicalEqual:
        *out = a == b;
        return true;
    case OpINotEqual:
    case OpLogicalNotEqual:
        *out = a != b;
        return true;
    case OpUGreaterThan:
        *out = a > b;
        return true;
    case OpSGreaterThan:
        *out = x > y;
        return true;
    case OpUGreaterThanEqual:
        *out = a >= b;
        return true;
    case OpSGreaterThanEqual:
        *out = x >= y;
        return true;
    case OpULessThan:
        *out = a < b;
        return true;
    case OpSLessThan:
        *out = x < y;
        return true;
    case OpULessThanEqual:
        *out = a <= b;
        return true;
    case OpSLessThanEqual:
        *out = x <= y;
        return true;
    default:
        return false;
    }
}

// Results wrap; the builtins do so without a report of the sanitizers.
static bool combine_integers(uint32_t op, uint64_t a, uint64_t b, uint32_t width,
                             uint64_t *out)
{
    switch (op) {
    case OpIAdd:
        (void)__builtin_add_overflow(a, b, out);
        return true;
    case OpISub:
        (void)__builtin_sub_overflow(a, b, out);
        return true;
    case OpIMul:
        (void)__builtin_mul_overflow(a, b, out);
        return true;
    case OpUDiv:
    case OpSDiv:
    case OpUMod:
    case OpSRem:
    case OpSMod:
        return fold_pass_divide(op, a, b, width, out);
    case OpShiftLeftLogical:
    case OpShiftRightLogical:
    case OpShiftRightArithmetic:
        return fold_pass_shift(op, a, b, width, out);
    case OpBitwiseAnd:
    case OpLogicalAnd:
        *out = a & b;
        return true;
    case OpBitwiseOr:
    case OpLogicalOr:
        *out = a | b;
        return true;
    case OpBitwiseXor:
        *out = a ^ b;
        return true;
    default:
        return compare_integers(op, a, b, width, out);
    }
}

static bool change_integer(uint32_t op, const struct scalar *a, uint64_t *out)
{
    switch (op) {
    case OpNot:
        *out = ~a->bits;
        return true;
    case OpLogicalNot:
        *out = !a->bits;
        return true;
    case OpSNegate:
        (void)__builtin_sub_overflow((uint64_t)0, a->bits, out);
        return true;
    case OpBitCount:
        *out = 0;
        for (uint64_t left = a->bits; left; left &= left - 1)
            ++*out;
        return true;
    case OpUConvert:
        *out = a->bits;
        return true;
    case OpSConvert:
        *out = (uint64_t)fold_pass_extended(a->bits, a->width);
        return true;
    default:
        return false;
    }
}

// --- floats ------------------------------------------------------------------------------

// Whether it is zero or a normal number, of 32 or 64 bits.
static bool fold_pass_is_usual(uint64_t bits, uint32_t width)
{
    uint32_t mantissa = width == 32 ? 23 : 52, most = width == 32 ? 0xff : 0x7ff;
    uint64_t exponent = bits >> mantissa & most;
    bool has_mantissa = (bits & ((UINT64_C(1) << mantissa) - 1)) != 0;
    return (width == 32 || width == 64) && exponent != most && (exponent || !has_mantissa);
}

static double fold_pass_number_of(uint64_t bits, uint32_t width)
{
    double number;
    float narrow;
    if (width == 64) {
        memcpy(&number, &bits, sizeof(number));
        return number;
    }
    uint32_t word = (uint32_t)bits;
    memcpy(&narrow, &word, sizeof(narrow));
    return narrow;
}

// The bits of a number that the width has exactly.
static bool fold_pass_bits_of(double number, uint32_t width, uint64_t *out)
{
    float narrow = (float)number;
    uint32_t word;
    if (width == 64) {
        memcpy(out, &number, sizeof(number));
    } else {
        if ((double)narrow != number)
            return false;
        memcpy(&word, &narrow, sizeof(narrow));
        *out = word;
    }
    return fold_pass_is_usual(*out, width);
}

// Knuth: what rounding took from a sum.
static bool is_exact_sum(double a, double b, double sum)
{
    double rest = sum - a;
    return (a - (sum - rest)) + (b - rest) == 0;
}

// Bits of the mantissa up to the last one that is set.
static uint32_t significant_bits(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof(bits));
    bits = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    uint32_t count = 53;
    for (; !(bits & 1); bits >>= 1)
        count--;
    return count;
}

static bool combine_floats(uint32_t op, double a, double b, uint32_t width, uint64_t *out)
{
    double result;
    switch (op) {
    case OpFAdd:
        result = a + b;
        return is_exact_sum(a, b, result) && fold_pass_bits_of(result, width, out);
    case OpFSub:
        result = a - b;
        return is_exact_sum(a, -b, result) && fold_pass_bits_of(result, width, out);
    case OpFMul:
        result = a * b;
        return (a == 0 || b == 0 || significant_bits(a) + significant_bits(b) <= 53) &&
               (result != 0 || a == 0 || b == 0) && fold_pass_bits_of(result, width, out);
    case OpFOrdEqual:
    case OpFUnordEqual:
        *out = a == b;
        return true;
    case OpFOrdNotEqual:
    case OpFUnordNotEqual:
        *out = a != b;
        return true;
    case OpFOrdLessThan:
    case OpFUnordLessThan:
        *out = a < b;
        return true;
    case OpFOrdGreaterThan:
    case OpFUnordGreaterThan:
        *out = a > b;
        return true;
    case OpFOrdLessThanEqual:
    case OpFUnordLessThanEqual:
        *out = a <= b;
        return true;
    case OpFOrdGreaterThanEqual:
    case OpFUnordGreaterThanEqual:
        *out = a >= b;
        return true;
    default:
        return false;
    }
}

// A float to an integer: towards zero, where the result has room.
static bool to_integer(double number, const struct scalar *to, bool is_signed,
                       uint64_t *out)
{
    const double most = is_signed ? (double)(UINT64_C(1) << (to->width - 1)) / 1.0
                                  : (double)(UINT64_C(1) << (to->width - 1)) * 2.0;
    if (is_signed ? !(number > -most && number < most) : !(number > -1.0 && number < most))
        return false;
    *out = is_signed ? (uint64_t)(int64_t)number : (uint64_t)number;
    return true;
}

// An integer to a float: exactly, or not at all.
static bool from_integer(const struct scalar *from, bool is_signed, uint32_t width,
                         uint64_t *out)
{
    const uint64_t most = UINT64_C(1) << 53;
    int64_t value = fold_pass_extended(from->bits, from->width);
    if (is_signed ? value > (int64_t)most || value < -(int64_t)most : from->bits > most)
        return false;
    return fold_pass_bits_of(is_signed ? (double)value : (double)from->bits, width, out);
}

static bool fold_pass_convert(uint32_t op, const struct scalar *from,
                              const struct scalar *to, uint64_t *out)
{
    bool is_float = from->kind == OpTypeFloat;
    if (op == OpBitcast) {
        *out = from->bits;
        return from->width == to->width && from->kind != OpTypeBool &&
               to->kind != OpTypeBool;
    }
    if (is_float && !fold_pass_is_usual(from->bits, from->width))
        return false;
    if (to->kind == OpTypeFloat && to->width < 32)
        return false;
    double number = is_float ? fold_pass_number_of(from->bits, from->width) : 0;
    switch (op) {
    case OpConvertFToS:
    case OpConvertFToU:
        return is_float && to->kind == OpTypeInt &&
               to_integer(number, to, op == OpConvertFToS, out);
    case OpConvertSToF:
    case OpConvertUToF:
        return from->kind == OpTypeInt && to->kind == OpTypeFloat &&
               from_integer(from, op == OpConvertSToF, to->width, out);
    case OpFConvert:
        return is_float && to->kind == OpTypeFloat &&
               fold_pass_bits_of(number, to->width, out);
    default:
        return false;
    }
}

// --- scalars and vectors -----------------------------------------------------------------

static bool fold_scalar(uint32_t op, const struct scalar *a, const struct scalar *b,
                        const struct scalar *to, uint64_t *out)
{
    if (!b)
        return fold_pass_convert(op, a, to, out) ||
               (a->kind != OpTypeFloat && to->kind != OpTypeFloat &&
                change_integer(op, a, out));
    bool is_shift = op >= OpShiftRightLogical && op <= OpShiftLeftLogical;
    if (a->kind != b->kind || (a->width != b->width && !is_shift))
        return false;
    if (a->kind != OpTypeFloat)
        return combine_integers(op, a->bits, b->bits, a->width, out);
    return fold_pass_is_usual(a->bits, a->width) && fold_pass_is_usual(b->bits, b->width) &&
           combine_floats(op, fold_pass_number_of(a->bits, a->width),
                          fold_pass_number_of(b->bits, b->width), a->width, out);
}

// Component `i` of a constant, or a constant scalar.
static bool fold_pass_component(const struct ir *ir, uint32_t id, uint32_t i,
                                struct scalar *out)
{
    const struct ir_inst *inst = ir_definition(ir, id);
    if (inst && inst->op == OpConstantComposite && i < inst->num_operands)
        inst = ir_definition(ir, inst->operands[i]);
    else if (inst && inst->op == OpConstantNull && ir_member_type(ir, inst->type, i))
        return set_type(ir, ir_member_type(ir, inst->type, i), out);
    if (!inst || !inst->type || !set_type(ir, inst->type, out) ||
        !opt_constant(ir, inst->id, &out->bits))
        return false;
    if (out->kind == OpTypeInt)
        out->bits = fold_pass_cut(out->bits, out->width);
    return true;
}

// Whether the operation can be folded at all: so that others cost nothing.
static bool is_foldable(uint32_t op)
{
    return (op >= OpConvertFToU && op <= OpFConvert) || op == OpBitcast ||
           (op >= OpSNegate && op <= OpSMod && op != OpFNegate && op != OpFDiv) ||
           (op >= OpLogicalEqual && op <= OpLogicalNot) ||
           (op >= OpIEqual && op <= OpFUnordGreaterThanEqual) ||
           (op >= OpShiftRightLogical && op <= OpNot) || op == OpBitCount;
}

static bool is_vector(const struct ir *ir, uint32_t id)
{
    const struct ir_inst *inst = ir_definition(ir, id);
    return inst && inst->type && ir_definition(ir, inst->type)->op == OpTypeVector;
}

uint32_t opt_fold(struct ir *ir, const struct ir_inst *inst)
{
    enum { MOST = 16 };
    uint32_t members[MOST], count = 1, type = inst->type;
    if (!is_foldable(inst->op) || inst->num_operands < 1 || inst->num_operands > 2)
        return 0;
    bool is_many = ir_definition(ir, type)->op == OpTypeVector;
    if (is_many != is_vector(ir, inst->operands[0]))
        return 0; // a bit cast that changes the number of components
    if (is_many) {
        count = ir_num_members(ir, type);
        type = ir_definition(ir, type)->operands[0];
    }
    for (uint32_t i = 0; i < count; i++) {
        struct scalar a, b, to;
        uint64_t bits;
        bool has_two = inst->num_operands == 2;
        if (!fold_pass_component(ir, inst->operands[0], i, &a) ||
            (has_two && !fold_pass_component(ir, inst->operands[1], i, &b)) ||
            !set_type(ir, type, &to) ||
            !fold_scalar(inst->op, &a, has_two ? &b : NULL, &to, &bits))
            return 0;
        members[i] = ir_constant(ir, type, bits);
    }
    return is_many ? ir_composite(ir, inst->type, count, members) : members[0];
}
