// SPDX-License-Identifier: MIT
// Compiled expressions (family "expr/1"): what the core makes of one-line primitives and of
// fused chains of them, and what a backend runs.
//
// A program is a straight line of typed instructions over one element. It is run for
// every element of the step's common extents; each input is read at that element through
// its layout (the core has already broadcast it), each output is written there.
//
// Arithmetic. An instruction computes in its own dtype, which is never F16 or BF16: inputs
// of these are widened to F32 by LOAD and outputs rounded to nearest even when stored.
// Integers wrap. Integer DIV and MOD round towards minus infinity; by zero they give 0.
// Shifts by the width or more, and by a negative amount, give 0 (or the sign, for SHR of a
// signed type). MIN, MAX, comparisons and the functions follow IEEE 754 and C; MIN and MAX
// of a NaN is NaN, as in NumPy; which of 0.0 and -0.0 they choose is open.
//
// Conversions (CAST, and what is stored as another dtype), the same on every backend:
//   float to integer  cut towards zero; out of range the nearest integer that the dtype has
//                     (so infinities give its ends); NaN gives 0
//   any to bool       is it not 0? (a NaN is not)
//   integer to integer  the low bits: modulo 2^width
//   integer to float, float to float  rounded to nearest even; too large is infinity. What
//                     becomes F16 or BF16 is rounded to F32 first, as it is computed in it.
// <tenon/ops/program.h> has them and all operations in C (tn_value_cast, tn_operation).
//
// Threads. Constant data.
#ifndef TENON_EXPR_H
#define TENON_EXPR_H

#include <tenon/types.h>

// The family of what the core makes of expressions: see tn_expr_program.
#define TN_FAMILY_EXPR "expr/1"

// X(NAME, "name in expressions", operands). The numbers are the order here; new ones are
// added at the end only. Dtypes: all floats; i all integers; n both; b bool.
#define TN_EXPR_OPS(X)                                                                     \
    X(LOAD, "", 0)       /* n b: input number `a` */                                       \
    X(CONST, "", 0)      /* n b: constants[a] */                                           \
    X(PARAM, "", 0)      /* n b: params[a] of the step */                                  \
    X(INDEX, "index", 0) /* i64: number of the element in row-major order */               \
    X(CAST, "", 1)       /* n b: from the operand's dtype to this one; see above */        \
    X(NEG, "-", 1)       /* n */                                                           \
    X(NOT, "!", 1)       /* b */                                                           \
    X(INVERT, "~", 1)    /* i b */                                                         \
    X(ABS, "abs", 1)     /* n */                                                           \
    X(SIGN, "sign", 1)   /* n: -1, 0 or 1; NaN for NaN */                                  \
    X(FLOOR, "floor", 1) /* floats, as all below to ERF */                                 \
    X(CEIL, "ceil", 1)                                                                     \
    X(TRUNC, "trunc", 1)                                                                   \
    X(ROUND, "round", 1) /* half to even */                                                \
    X(SQRT, "sqrt", 1)                                                                     \
    X(RSQRT, "rsqrt", 1)                                                                   \
    X(EXP, "exp", 1)                                                                       \
    X(EXP2, "exp2", 1)                                                                     \
    X(EXPM1, "expm1", 1)                                                                   \
    X(LOG, "log", 1)                                                                       \
    X(LOG2, "log2", 1)                                                                     \
    X(LOG10, "log10", 1)                                                                   \
    X(LOG1P, "log1p", 1)                                                                   \
    X(SIN, "sin", 1)                                                                       \
    X(COS, "cos", 1)                                                                       \
    X(TAN, "tan", 1)                                                                       \
    X(ASIN, "asin", 1)                                                                     \
    X(ACOS, "acos", 1)                                                                     \
    X(ATAN, "atan", 1)                                                                     \
    X(SINH, "sinh", 1)                                                                     \
    X(COSH, "cosh", 1)                                                                     \
    X(TANH, "tanh", 1)                                                                     \
    X(ASINH, "asinh", 1)                                                                   \
    X(ACOSH, "acosh", 1)                                                                   \
    X(ATANH, "atanh", 1)                                                                   \
    X(ERF, "erf", 1)                                                                       \
    X(ISNAN, "isnan", 1) /* b of a float, as the two below */                              \
    X(ISINF, "isinf", 1)                                                                   \
    X(ISFINITE, "isfinite", 1)                                                             \
    X(ADD, "+", 2)       /* n */                                                           \
    X(SUB, "-", 2)       /* n */                                                           \
    X(MUL, "*", 2)       /* n */                                                           \
    X(DIV, "/", 2)       /* n; integers: floor */                                          \
    X(MOD, "%", 2)       /* n; sign of the divisor, as NumPy's remainder */                \
    X(POW, "**", 2)      /* n; integers: a negative exponent gives 0 (1 and -1 apart) */   \
    X(ATAN2, "atan2", 2) /* floats */                                                      \
    X(MIN, "min", 2)     /* n b */                                                         \
    X(MAX, "max", 2)     /* n b */                                                         \
    X(AND, "&", 2)       /* i b */                                                         \
    X(OR, "|", 2)        /* i b */                                                         \
    X(XOR, "^", 2)       /* i b */                                                         \
    X(SHL, "<<", 2)      /* i */                                                           \
    X(SHR, ">>", 2)      /* i */                                                           \
    X(EQ, "==", 2)       /* b of two operands of one dtype, as all below to GE */          \
    X(NE, "!=", 2)                                                                         \
    X(LT, "<", 2)                                                                          \
    X(LE, "<=", 2)                                                                         \
    X(GT, ">", 2)                                                                          \
    X(GE, ">=", 2)                                                                         \
    X(SELECT, "select", 3) /* n b: a (bool) ? b : c */

// The operations' numbers: TN_EXPR_ and the names above, in their order.
enum {
#define TN_EXPR_ENUM(name, text, operands) TN_EXPR_##name,
    TN_EXPR_OPS(TN_EXPR_ENUM)
#undef TN_EXPR_ENUM
        TN_EXPR_NUM_OPS
};

// One instruction; its result is known by its position. Operands a, b, c are positions of
// earlier instructions, or the number said above.
typedef struct tn_expr_insn {
    uint16_t op;
    uint16_t dtype; // of the result
    uint32_t a, b, c;
} tn_expr_insn;

// Limits that the core keeps: a backend may size fixed arrays by them.
#define TN_EXPR_MAX_INSNS 256
#define TN_EXPR_MAX_INPUTS 16
#define TN_EXPR_MAX_OUTPUTS 8

// Immutable and shared by all steps whose expressions have the same structure: values of
// attributes are not in it but in the step's params. Constants and params are 8 bytes a
// piece: the bits of a double for float dtypes, of an int64_t or uint64_t for the others.
typedef struct tn_expr_program {
    uint32_t struct_size;
    uint32_t flags; // 0
    const tn_expr_insn *insns;
    const uint64_t *constants;
    const tn_dtype *input_dtypes;  // as stored in memory
    const tn_dtype *output_dtypes; // as stored in memory
    const uint32_t *outputs;       // positions of the instructions that give them
    uint32_t num_insns;
    uint32_t num_constants;
    uint32_t num_params;
    uint32_t num_inputs;
    uint32_t num_outputs;
    uint32_t reserved;
    uint64_t hash[2]; // of the structure, the same in every process: a key for caches
    const char *name; // for people: "base.mul+base.add"
} tn_expr_program;

#endif // TENON_EXPR_H
