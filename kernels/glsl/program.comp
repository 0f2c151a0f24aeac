#version 460
// SPDX-License-Identifier: MIT
// Runs any compiled expression: an interpreter, for backends without a compiler. All
// invocations are at the same instruction at the same time, each with PER elements.
//
// `code` holds, from word `at` on: elements, rank, extents [8], number of instructions, then
// an entry of 11 words for each operand (offset, access: 0 strided, 1 flat, 2 one element,
// dtype, strides [8]), then four words an instruction:
//
//   operation | class << 8 | class of the operand << 12 | dtype << 16, result register,
//   operand a | operand b << 16, operand c or constant (the high half of it: operand b)
//
// Without WIDE, classes up to 3 are known. Operations are those of <tenon/expr.h>, by their
// numbers, which never change, and STORE.
#define NEED_ALL
#ifdef WIDE
#define NEED_I64
#define NEED_F64
#define PER 1
#define REG uint64_t
#else
#define PER 4
#define REG uint
#endif
#include "types.glsl"
#include "scalar.glsl"
#include "functions.glsl"

#define DO_LOAD 0u
#define DO_CONST 1u
#define DO_PARAM 2u
#define DO_INDEX 3u
#define DO_CAST 4u
#define DO_NEG 5u
#define DO_NOT 6u
#define DO_INVERT 7u
#define DO_ABS 8u
#define DO_SIGN 9u
#define DO_FLOOR 10u
#define DO_CEIL 11u
#define DO_TRUNC 12u
#define DO_ROUND 13u
#define DO_SQRT 14u
#define DO_RSQRT 15u
#define DO_EXP 16u
#define DO_EXP2 17u
#define DO_EXPM1 18u
#define DO_LOG 19u
#define DO_LOG2 20u
#define DO_LOG10 21u
#define DO_LOG1P 22u
#define DO_SIN 23u
#define DO_COS 24u
#define DO_TAN 25u
#define DO_ASIN 26u
#define DO_ACOS 27u
#define DO_ATAN 28u
#define DO_SINH 29u
#define DO_COSH 30u
#define DO_TANH 31u
#define DO_ASINH 32u
#define DO_ACOSH 33u
#define DO_ATANH 34u
#define DO_ERF 35u
#define DO_ISNAN 36u
#define DO_ISINF 37u
#define DO_ISFINITE 38u
#define DO_ADD 39u
#define DO_SUB 40u
#define DO_MUL 41u
#define DO_DIV 42u
#define DO_MOD 43u
#define DO_POW 44u
#define DO_ATAN2 45u
#define DO_MIN 46u
#define DO_MAX 47u
#define DO_AND 48u
#define DO_OR 49u
#define DO_XOR 50u
#define DO_SHL 51u
#define DO_SHR 52u
#define DO_EQ 53u
#define DO_NE 54u
#define DO_LT 55u
#define DO_LE 56u
#define DO_GT 57u
#define DO_GE 58u
#define DO_SELECT 59u
#define DO_STORE 255u

#define CLASS_F32 0u
#define CLASS_INT 1u  // i8, i16, i32
#define CLASS_UINT 2u // u8, u16, u32
#define CLASS_BOOL 3u
#define CLASS_I64 4u
#define CLASS_U64 5u
#define CLASS_F64 6u

layout(local_size_x = 256) in;
// What the program uses: a driver leaves out the rest. Sets of operations (two words), of
// classes, of dtypes in memory, and whether any operand is strided.
layout(constant_id = 0) const uint NUM_REGISTERS = 16;
layout(constant_id = 1) const uint OPERATIONS_LOW = 0xffffffffu;
layout(constant_id = 2) const uint OPERATIONS_HIGH = 0xffffffffu;
layout(constant_id = 3) const uint CLASSES = 0xffffffffu;
layout(constant_id = 4) const uint DTYPES = 0xffffffffu;
layout(constant_id = 5) const uint STRIDED = 1u;

// Functions, not constant expressions: with those spirv-opt 2023.1 loses its way.
bool uses_class(uint class_index)
{
    return (CLASSES >> class_index & 1u) != 0u;
}
bool uses_dtype(uint dtype)
{
    return (DTYPES >> dtype & 1u) != 0u;
}
bool uses(uint operation, uint class_index)
{
    uint set = operation < 32u ? OPERATIONS_LOW : OPERATIONS_HIGH;
    return (set >> (operation & 31u) & 1u) != 0u && uses_class(class_index);
}

layout(std430, binding = 0) buffer Bytes { uint8_t d[]; } m8[24];
layout(std430, binding = 0) buffer Halves { uint16_t d[]; } m16[24];
layout(std430, binding = 0) buffer Words { uint d[]; } m32[24];
layout(std430, binding = 0) buffer Pairs { uvec2 d[]; } m64[24];
layout(std430, binding = 1) readonly buffer Code { uint d[]; } code;
layout(push_constant) uniform Args { uint at; } args;

REG r[NUM_REGISTERS][PER];

// Registers as values, and back.
float as_f32(REG x)
{
    return uintBitsToFloat(uint(x));
}
int as_int(REG x)
{
    return int(uint(x));
}
uint as_uint(REG x)
{
    return uint(x);
}
bool as_bool(REG x)
{
    return x != REG(0);
}
REG to_reg(float x)
{
    return REG(floatBitsToUint(x));
}
REG to_reg(int x)
{
    return REG(uint(x));
}
REG to_reg(uint x)
{
    return REG(x);
}
REG to_reg(bool x)
{
    return x ? REG(1) : REG(0);
}
#ifdef WIDE
int64_t as_i64(REG x)
{
    return int64_t(x);
}
uint64_t as_u64(REG x)
{
    return x;
}
double as_f64(REG x)
{
    return packDouble2x32(unpackUint2x32(x));
}
REG to_reg(int64_t x)
{
    return uint64_t(x);
}
REG to_reg(uint64_t x)
{
    return x;
}
REG to_reg(double x)
{
    return packUint2x32(unpackDouble2x32(x));
}
#endif

uint element_index; // of the first of this invocation's elements

#define OPERANDS (args.at + 11u)
#define OPERAND_WORDS 11u
uint place(uint operand, uint lane)
{
    uint entry = OPERANDS + operand * OPERAND_WORDS;
    uint at = code.d[entry], access = code.d[entry + 1u];
    uint i = element_index + lane;
    if (access == 1u)
        return at + i;
    if (access == 2u)
        return at;
    if (STRIDED == 0u)
        return at;
    for (uint axis = code.d[args.at + 1u]; axis-- > 0u;) {
        uint extent = code.d[args.at + 2u + axis];
        uint next = axis > 0u ? i / extent : 0u;
        at += (i - next * extent) * code.d[entry + 3u + axis];
        i = next;
    }
    return at;
}

// dtypes by their numbers in <tenon/types.h>.
REG load_from(uint operand, uint at, uint dtype)
{
    switch (dtype) {
    case 1u: // bool
        if (uses_dtype(1u))
            return REG(uint(m8[operand].d[at]) != 0u ? 1 : 0);
        break;
    case 2u: // i8
        if (uses_dtype(2u))
            return to_reg(bitfieldExtract(int(m8[operand].d[at]), 0, 8));
        break;
    case 3u: // i16
        if (uses_dtype(3u))
            return to_reg(bitfieldExtract(int(m16[operand].d[at]), 0, 16));
        break;
    case 6u: // u8
        if (uses_dtype(6u))
            return REG(uint(m8[operand].d[at]));
        break;
    case 7u: // u16
        if (uses_dtype(7u))
            return REG(uint(m16[operand].d[at]));
        break;
    case 10u: // f16
        if (uses_dtype(10u))
            return to_reg(unpackHalf2x16(uint(m16[operand].d[at])).x);
        break;
    case 11u: // bf16
        if (uses_dtype(11u))
            return REG(uint(m16[operand].d[at]) << 16);
        break;
#ifdef WIDE
    case 5u:
    case 9u:
    case 13u:
        return packUint2x32(m64[operand].d[at]);
#endif
    default:
        return REG(m32[operand].d[at]);
    }
    return REG(0);
}

void store_to(uint operand, uint at, uint dtype, REG x)
{
    switch (dtype) {
    case 1u:
    case 2u:
    case 6u:
        if (uses_dtype(1u) || uses_dtype(2u) || uses_dtype(6u))
            m8[operand].d[at] = uint8_t(uint(x));
        break;
    case 3u:
    case 7u:
        if (uses_dtype(3u) || uses_dtype(7u))
            m16[operand].d[at] = uint16_t(uint(x));
        break;
    case 10u:
        if (uses_dtype(10u))
            m16[operand].d[at] = uint16_t(half_bits(as_f32(x)));
        break;
    case 11u:
        if (uses_dtype(11u))
            m16[operand].d[at] = uint16_t(bfloat_bits(as_f32(x)));
        break;
#ifdef WIDE
    case 5u:
    case 9u:
    case 13u:
        m64[operand].d[at] = unpackUint2x32(x);
        break;
#endif
    default:
        m32[operand].d[at] = uint(x);
    }
}

// Reduces a narrow integer to its width.
REG wrap(REG x, uint dtype)
{
    switch (dtype) {
    case 2u:
        return to_reg(WRAP_i8(as_int(x)));
    case 3u:
        return to_reg(WRAP_i16(as_int(x)));
    case 6u:
        return to_reg(WRAP_u8(as_uint(x)));
    case 7u:
        return to_reg(WRAP_u16(as_uint(x)));
    }
    return x;
}

int width_of(uint dtype)
{
    return dtype == 2u || dtype == 6u ? 8 : dtype == 3u || dtype == 7u ? 16 : dtype == 5u || dtype == 9u ? 64 : 32;
}

#define CASTS(FROM)                                                                        \
    switch (to) {                                                                          \
    case CLASS_F32:                                                                        \
        return to_reg(float(FROM));                                                        \
    case CLASS_INT:                                                                        \
        return to_reg(int(FROM));                                                          \
    case CLASS_UINT:                                                                       \
        return to_reg(uint(FROM));                                                         \
        WIDE_CASTS(FROM)                                                                   \
    }
#ifdef WIDE
#define WIDE_CASTS(FROM)                                                                   \
    case CLASS_I64:                                                                        \
        return to_reg(int64_t(FROM));                                                      \
    case CLASS_U64:                                                                        \
        return to_reg(uint64_t(FROM));                                                     \
    case CLASS_F64:                                                                        \
        return to_reg(double(FROM));
#else
#define WIDE_CASTS(FROM)
#endif
REG convert(REG x, uint from, uint to)
{
    if (to == CLASS_BOOL) {
        if (from == CLASS_F32)
            return to_reg(!(as_f32(x) == 0.0));
#ifdef WIDE
        if (from == CLASS_F64)
            return to_reg(!(as_f64(x) == 0.0LF));
#endif
        return to_reg(x != REG(0));
    }
    switch (from) {
    case CLASS_F32:
        if (uses_class(CLASS_F32))
            CASTS(as_f32(x))
        break;
    case CLASS_INT:
        if (uses_class(CLASS_INT))
            CASTS(as_int(x))
        break;
    case CLASS_UINT:
        if (uses_class(CLASS_UINT))
            CASTS(as_uint(x))
        break;
    case CLASS_BOOL:
        if (uses_class(CLASS_BOOL))
            CASTS(as_uint(x))
        break;
#ifdef WIDE
    case CLASS_I64:
        if (uses_class(CLASS_I64))
            CASTS(as_i64(x))
        break;
    case CLASS_U64:
        if (uses_class(CLASS_U64))
            CASTS(as_u64(x))
        break;
    case CLASS_F64:
        if (uses_class(CLASS_F64))
            CASTS(as_f64(x))
        break;
#endif
    }
    return x;
}

// One instruction of an operation, a class: key = operation | class << 8.
#define ON(NAME, CLASS, EXPRESSION)                                                        \
    case DO_##NAME | CLASS << 8:                                                           \
        if (uses(DO_##NAME, CLASS))                                                        \
            for (uint lane = 0u; lane < PER; lane++)                                       \
                r[d][lane] = to_reg(EXPRESSION);                                           \
        break;
#define UNARY(NAME, CLASS, AS) ON(NAME, CLASS, op_##NAME(AS(r[a][lane])))
#define BINARY(NAME, CLASS, AS) ON(NAME, CLASS, op_##NAME(AS(r[a][lane]), AS(r[b][lane])))
#define BINARY_BOOL(NAME)                                                                  \
    ON(NAME, CLASS_BOOL, op_##NAME##_b(as_bool(r[a][lane]), as_bool(r[b][lane])))
#define SHIFT(NAME, CLASS, AS)                                                             \
    ON(NAME, CLASS, op_##NAME(AS(r[a][lane]), AS(r[b][lane]), width))
#define COMPARE(CLASS, AS)                                                                 \
    BINARY(EQ, CLASS, AS)                                                                  \
    BINARY(NE, CLASS, AS)                                                                  \
    BINARY(LT, CLASS, AS)                                                                  \
    BINARY(LE, CLASS, AS)                                                                  \
    BINARY(GT, CLASS, AS)                                                                  \
    BINARY(GE, CLASS, AS)
#define INTEGER(CLASS, AS)                                                                 \
    UNARY(NEG, CLASS, AS)                                                                  \
    UNARY(ABS, CLASS, AS)                                                                  \
    UNARY(SIGN, CLASS, AS)                                                                 \
    UNARY(INVERT, CLASS, AS)                                                               \
    BINARY(ADD, CLASS, AS)                                                                 \
    BINARY(SUB, CLASS, AS)                                                                 \
    BINARY(MUL, CLASS, AS)                                                                 \
    BINARY(DIV, CLASS, AS)                                                                 \
    BINARY(MOD, CLASS, AS)                                                                 \
    BINARY(POW, CLASS, AS)                                                                 \
    BINARY(MIN, CLASS, AS)                                                                 \
    BINARY(MAX, CLASS, AS)                                                                 \
    BINARY(AND, CLASS, AS)                                                                 \
    BINARY(OR, CLASS, AS)                                                                  \
    BINARY(XOR, CLASS, AS)                                                                 \
    SHIFT(SHL, CLASS, AS)                                                                  \
    SHIFT(SHR, CLASS, AS)                                                                  \
    COMPARE(CLASS, AS)
#define REAL(CLASS, AS)                                                                    \
    UNARY(NEG, CLASS, AS)                                                                  \
    UNARY(ABS, CLASS, AS)                                                                  \
    UNARY(SIGN, CLASS, AS)                                                                 \
    UNARY(FLOOR, CLASS, AS)                                                                \
    UNARY(CEIL, CLASS, AS)                                                                 \
    UNARY(TRUNC, CLASS, AS)                                                                \
    UNARY(ROUND, CLASS, AS)                                                                \
    UNARY(SQRT, CLASS, AS)                                                                 \
    UNARY(RSQRT, CLASS, AS)                                                                \
    UNARY(ISNAN, CLASS, AS)                                                                \
    UNARY(ISINF, CLASS, AS)                                                                \
    UNARY(ISFINITE, CLASS, AS)                                                             \
    BINARY(ADD, CLASS, AS)                                                                 \
    BINARY(SUB, CLASS, AS)                                                                 \
    BINARY(MUL, CLASS, AS)                                                                 \
    BINARY(DIV, CLASS, AS)                                                                 \
    BINARY(MOD, CLASS, AS)                                                                 \
    BINARY(MIN, CLASS, AS)                                                                 \
    BINARY(MAX, CLASS, AS)                                                                 \
    COMPARE(CLASS, AS)
#define FUNCTION(NAME) UNARY(NAME, CLASS_F32, as_f32)

void compute(uint key, uint width_dtype, uint d, uint a, uint b)
{
    int width = width_of(width_dtype);
    switch (key) {
        REAL(CLASS_F32, as_f32)
        FUNCTION(EXP)
        FUNCTION(EXP2)
        FUNCTION(EXPM1)
        FUNCTION(LOG)
        FUNCTION(LOG2)
        FUNCTION(LOG10)
        FUNCTION(LOG1P)
        FUNCTION(SIN)
        FUNCTION(COS)
        FUNCTION(TAN)
        FUNCTION(ASIN)
        FUNCTION(ACOS)
        FUNCTION(ATAN)
        FUNCTION(SINH)
        FUNCTION(COSH)
        FUNCTION(TANH)
        FUNCTION(ASINH)
        FUNCTION(ACOSH)
        FUNCTION(ATANH)
        FUNCTION(ERF)
        BINARY(POW, CLASS_F32, as_f32)
        BINARY(ATAN2, CLASS_F32, as_f32)
        INTEGER(CLASS_INT, as_int)
        INTEGER(CLASS_UINT, as_uint)
        UNARY(NOT, CLASS_BOOL, as_bool)
        ON(INVERT, CLASS_BOOL, !as_bool(r[a][lane]))
        BINARY(EQ, CLASS_BOOL, as_bool)
        BINARY(NE, CLASS_BOOL, as_bool)
        BINARY_BOOL(AND)
        BINARY_BOOL(OR)
        BINARY_BOOL(XOR)
        BINARY_BOOL(MIN)
        BINARY_BOOL(MAX)
        BINARY_BOOL(LT)
        BINARY_BOOL(LE)
        BINARY_BOOL(GT)
        BINARY_BOOL(GE)
#ifdef WIDE
        INTEGER(CLASS_I64, as_i64)
        INTEGER(CLASS_U64, as_u64)
        REAL(CLASS_F64, as_f64)
#endif
    }
}

void main()
{
    element_index = (group_number() * 256u + gl_LocalInvocationIndex) * PER;
    uint n = code.d[args.at];
    if (element_index >= n)
        return;
    uint lanes = min(uint(PER), n - element_index);
    uint num_insns = code.d[args.at + 10u] & 0xffffu;
    uint num_operands = code.d[args.at + 10u] >> 16;
    uint pc = OPERANDS + num_operands * OPERAND_WORDS;
    for (uint end = pc + num_insns * 4u; pc < end; pc += 4u) {
        uint head = code.d[pc], d = code.d[pc + 1u];
        uint a = code.d[pc + 2u] & 0xffffu, b = code.d[pc + 2u] >> 16, c = code.d[pc + 3u];
        uint operation = head & 0xffu, dtype = head >> 16;
        uint result_class = head >> 8 & 0xfu, operand_class = head >> 12 & 0xfu;
        switch (operation) {
        case DO_LOAD:
            for (uint lane = 0u; lane < lanes; lane++)
                r[d][lane] = load_from(a, place(a, lane), dtype);
            break;
        case DO_STORE:
            for (uint lane = 0u; lane < lanes; lane++)
                store_to(b, place(b, lane), dtype, r[a][lane]);
            break;
        case DO_CONST:
        case DO_PARAM:
            for (uint lane = 0u; lane < PER; lane++)
#ifdef WIDE
                r[d][lane] = packUint2x32(uvec2(code.d[pc + 2u], c));
#else
                r[d][lane] = code.d[pc + 2u];
#endif
            break;
        case DO_INDEX:
            for (uint lane = 0u; lane < PER; lane++)
                r[d][lane] = REG(element_index + lane);
            break;
        case DO_CAST:
            for (uint lane = 0u; lane < PER; lane++)
                r[d][lane] = wrap(convert(r[a][lane], operand_class, result_class), dtype);
            break;
        case DO_SELECT:
            for (uint lane = 0u; lane < PER; lane++)
                r[d][lane] = as_bool(r[a][lane]) ? r[b][lane] : r[c][lane];
            break;
        default:
            compute(operation | operand_class << 8, dtype, d, a, b);
            if (result_class == CLASS_INT || result_class == CLASS_UINT)
                for (uint lane = 0u; lane < PER; lane++)
                    r[d][lane] = wrap(r[d][lane], dtype);
        }
    }
}
