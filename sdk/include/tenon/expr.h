// SPDX-License-Identifier: MIT
// Compiled expressions (family "expr/1"): programs that the core compiles from one-line
// primitives, fuses from chains of such primitives, and hands to backends.
//
// A program is a straight line of typed instructions over one element, in static single
// assignment. It runs for every element of the step's common extents: LOAD reads an input
// at that element through its layout (the core has already broadcast it), and each output
// is written there. Elements are independent, so a backend chooses order, lanes and
// threads. "alpha * x + 1", on f32, is
//
//   0  LOAD   f32  a = 0      input 0
//   1  PARAM  f32  a = 0      params[0] of the step: alpha
//   2  MUL    f32  a = 1, b = 0
//   3  CONST  f32  a = 0      constants[0]: 1
//   4  ADD    f32  a = 2, b = 3
//   outputs = {4}
//
// Rows. A program with TN_EXPR_ROWS in its flags is a *row program*: it also reduces. The
// last axis of the step's layouts is the row's, which the core never merges with another,
// so their rank is at least 1. An instruction of class REDUCE folds its operand over the
// row; its result, and that of EXTENT, is one value a row, which stands for itself at each
// element of the row. Rows are independent of each other. "x / sum(x)" is
//
//   0  LOAD        f32  a = 0      input 0
//   1  REDUCE_SUM  f32  a = 0      one value a row
//   2  DIV         f32  a = 0, b = 1
//   outputs = {2}
//
// The extents of the step are those of its inputs, and without inputs those of output 0. An
// output has these extents, or extent 1 along the last axis: then its instruction has the
// same value at each element of a row. Rows may be empty, and such an output then has one
// element nevertheless.
//
// Gathers. TAKE reads input `a` at an index that the program computes: the input's layout
// says where the element lies for index 0, by stride 0 along the axes that are the index's,
// and what the index adds is no constant: params[c] is the number n of elements that it
// counts along, at least 1, and params[c + 1] the stride from one to the next in elements,
// both below 2^63. The index, of any integer dtype, is the value of instruction `b`.
// Negative ones count from the end, and one that is out of range is the nearest. The core
// writes TAKE for devices with TN_DEVICE_TAKES alone, in row programs for those that have
// TN_DEVICE_ROWS too; an input of TAKE is not LOADed, and no output lies in its memory.
// "table[codes] * scale", on f32, is
//
//   0  LOAD  i32  a = 0                    codes
//   1  TAKE  f32  a = 1, b = 0, c = 0      the table, whose layout has stride 0
//   2  LOAD  f32  a = 2                    scale
//   3  MUL   f32  a = 1, b = 2
//   outputs = {3}, params = {extent of the table, 1}
//
// Reductions fold in any order and in partial results, but in the same one in each run of
// an executable. Integers wrap. Sums and products of floats: each addition or
// multiplication is rounded to the instruction's dtype or a wider one, so a sum differs
// from the exact one by at most n units of the sum of the absolute values. REDUCE_MIN and
// REDUCE_MAX of a NaN are NaN. Of an empty row: 0, 1, and for REDUCE_MIN and REDUCE_MAX the
// greatest and the least value of the dtype (of floats an infinity).
//
// Arithmetic. An instruction computes in its own dtype, which is never F16, BF16 or a float
// of 8 bits: LOAD widens inputs of these dtypes to F32, and outputs are rounded to nearest
// even when stored. Integers wrap. Integer DIV and MOD round towards minus infinity
// (NumPy's floor_divide and remainder); by zero they give 0. Shifts by the width or more,
// and by a negative amount, give 0, or the sign for SHR of a signed dtype (NumPy's
// left_shift and right_shift). + - * / and SQRT of floats are rounded once, to nearest even
// (IEEE 754-2019, clause 5.4.1); special cases of the functions are those of C11, annex
// F.10. MIN and MAX of a NaN are NaN (NumPy's minimum and maximum); which of 0.0 and -0.0
// they choose is open. A GPU may divide and take roots with an error of 2.5 units in the
// last place, lose the sign of a zero in functions, and take an F32 below 2^-126 for 0.
//
// Complex numbers. Only devices that list a complex dtype get instructions of it. Errors
// are measured against the magnitude of the result, not part by part. MUL of a + bi and
// c + di is (ac - bd) + (ad + bc)i, without C's annex G: a product of infinities may be
// NaN, as in NumPy. EQ and NE compare both parts; ISNAN and ISINF hold when they do for one
// part. Functions have the branch cuts of C11, annex G. Instructions that need an order are
// not defined.
//
// Conversions, by CAST and wherever a value is stored in another dtype, on every backend:
//   float to integer    cut towards zero; out of range, the nearest integer of the dtype;
//                       NaN gives 0
//   any to bool         1 when the value is not 0; a NaN is not 0
//   integer to integer  the low bits: modulo 2^width
//   integer to float    to nearest even; to F16 or BF16 by way of F32
//   float to float      to nearest even, too large is infinity; F64 to F16, BF16 and 8 bits
//                       by way of F32, in which the program computes. F8_E4M3 has no
//                       infinity: NaN from beyond 464 on, as in PyTorch
//   real to complex     the real part is converted, the imaginary one is 0
//   complex to real     the real part, converted; to bool 1 when one part is not 0
//
// <tenon/ops/program.h> defines conversions and operations in C (tn_value_cast,
// tn_operation): where this text and that code differ, the code holds.
//
// Threads. Programs are constant and shared: any thread reads them, no lock. The functions
// are pure, and do not fail.
#ifndef TENON_EXPR_H
#define TENON_EXPR_H

#include <tenon/types.h>

// The family of programs. A backend that lists it in tn_backend.families runs every
// tn_expr_program that its step_check accepts.
#define TN_FAMILY_EXPR "expr/1"

// The table of instructions, one row for each:
//
//   X(NAME, "name in expressions", operands, CLASS, DTYPES)
//
// NAME: TN_EXPR_NAME is the instruction's number, the row's position from 0. Numbers are
// ABI: new rows are added at the end only. Operands: 0 .. 3, all of one dtype; those of
// SELECT are a bool and two of one dtype. CLASS: a TN_EXPR_CLASS_ below. DTYPES: a
// TN_EXPR_OF_ below, the dtypes that the operands may have (of SELECT the second and
// third). The result is bool for the classes TEST, COMPARE and LOGIC, the dtype of one part
// for PART, the complex dtype of such parts for JOIN, and otherwise of the operands' dtype.
//
// Instructions without a comment are the operator of C, or the C library's function, of
// that name; SHL and SHR, and DIV and MOD of integers, are described above.
// clang-format off
#define TN_EXPR_OPS(X)                                                                  \
    X(LOAD, "load", 0, LEAF, NONE) /* input number `a` */                                \
    X(CONST, "const", 0, LEAF, NONE) /* constants[a] */                                  \
    X(PARAM, "param", 0, LEAF, NONE) /* params[a] of the step */                         \
    X(INDEX, "index", 0, LEAF, NONE) /* i64: number of the element in row-major order */ \
    X(CAST, "cast", 1, CAST, NONE) /* to this dtype; see above */                        \
    X(NEG, "-", 1, SIGN, NUMBER_COMPLEX)                                                        \
    X(NOT, "!", 1, LOGIC, BOOL)                                                         \
    X(INVERT, "~", 1, BITS, BITS)                                                       \
    X(ABS, "abs", 1, SIGN, NUMBER)                                                      \
    X(SIGN, "sign", 1, SIGN, NUMBER) /* -1, 0 or 1; NaN for NaN */                      \
    X(FLOOR, "floor", 1, ROUND, FLOAT)                                                  \
    X(CEIL, "ceil", 1, ROUND, FLOAT)                                                    \
    X(TRUNC, "trunc", 1, ROUND, FLOAT)                                                  \
    X(ROUND, "round", 1, ROUND, FLOAT) /* half to even */                               \
    X(SQRT, "sqrt", 1, ROOT, FLOAT_COMPLEX)                                                     \
    X(RSQRT, "rsqrt", 1, ROOT, FLOAT_COMPLEX) /* 1 / sqrt, each rounded */                      \
    X(EXP, "exp", 1, FUNCTION, FLOAT_COMPLEX)                                                   \
    X(EXP2, "exp2", 1, FUNCTION, FLOAT_COMPLEX)                                                 \
    X(EXPM1, "expm1", 1, FUNCTION, FLOAT_COMPLEX)                                               \
    X(LOG, "log", 1, FUNCTION, FLOAT_COMPLEX)                                                   \
    X(LOG2, "log2", 1, FUNCTION, FLOAT_COMPLEX)                                                 \
    X(LOG10, "log10", 1, FUNCTION, FLOAT_COMPLEX)                                               \
    X(LOG1P, "log1p", 1, FUNCTION, FLOAT_COMPLEX)                                               \
    X(SIN, "sin", 1, CIRCULAR, FLOAT_COMPLEX)                                                   \
    X(COS, "cos", 1, CIRCULAR, FLOAT_COMPLEX)                                                   \
    X(TAN, "tan", 1, CIRCULAR, FLOAT_COMPLEX)                                                   \
    X(ASIN, "asin", 1, FUNCTION, FLOAT_COMPLEX)                                                 \
    X(ACOS, "acos", 1, FUNCTION, FLOAT_COMPLEX)                                                 \
    X(ATAN, "atan", 1, FUNCTION, FLOAT_COMPLEX)                                                 \
    X(SINH, "sinh", 1, FUNCTION, FLOAT_COMPLEX)                                                 \
    X(COSH, "cosh", 1, FUNCTION, FLOAT_COMPLEX)                                                 \
    X(TANH, "tanh", 1, FUNCTION, FLOAT_COMPLEX)                                                 \
    X(ASINH, "asinh", 1, FUNCTION, FLOAT_COMPLEX)                                               \
    X(ACOSH, "acosh", 1, FUNCTION, FLOAT_COMPLEX)                                               \
    X(ATANH, "atanh", 1, FUNCTION, FLOAT_COMPLEX)                                               \
    X(ERF, "erf", 1, FUNCTION, FLOAT)                                                   \
    X(ISNAN, "isnan", 1, TEST, FLOAT_COMPLEX)                                                   \
    X(ISINF, "isinf", 1, TEST, FLOAT_COMPLEX)                                                   \
    X(ISFINITE, "isfinite", 1, TEST, FLOAT_COMPLEX)                                             \
    X(ADD, "+", 2, ARITHMETIC, NUMBER_COMPLEX)                                                  \
    X(SUB, "-", 2, ARITHMETIC, NUMBER_COMPLEX)                                                  \
    X(MUL, "*", 2, ARITHMETIC, NUMBER_COMPLEX)                                                  \
    X(DIV, "/", 2, DIVIDE, NUMBER_COMPLEX) /* integers: floor */                                \
    X(MOD, "%", 2, POWER, NUMBER) /* the divisor's sign, as NumPy's remainder */        \
    X(POW, "**", 2, POWER, NUMBER_COMPLEX) /* integers: a negative exponent gives 0 (1 and -1 apart) */ \
    X(ATAN2, "atan2", 2, FUNCTION, FLOAT)                                               \
    X(MIN, "min", 2, EXTREME, ANY)                                                      \
    X(MAX, "max", 2, EXTREME, ANY)                                                      \
    X(AND, "&", 2, BITS, BITS)                                                          \
    X(OR, "|", 2, BITS, BITS)                                                           \
    X(XOR, "^", 2, BITS, BITS)                                                          \
    X(SHL, "<<", 2, SHIFT, INTEGER)                                                     \
    X(SHR, ">>", 2, SHIFT, INTEGER)                                                     \
    X(EQ, "==", 2, COMPARE, ANY_COMPLEX)                                                        \
    X(NE, "!=", 2, COMPARE, ANY_COMPLEX)                                                        \
    X(LT, "<", 2, COMPARE, ANY)                                                         \
    X(LE, "<=", 2, COMPARE, ANY)                                                        \
    X(GT, ">", 2, COMPARE, ANY)                                                         \
    X(GE, ">=", 2, COMPARE, ANY)                                                        \
    X(SELECT, "select", 3, SELECT, ANY_COMPLEX) /* a (bool) ? b : c */                          \
    X(ERFINV, "erfinv", 1, FUNCTION, FLOAT)                                             \
    X(REDUCE_SUM, "sum", 1, REDUCE, ROW_NUMBER) /* over the row */                      \
    X(REDUCE_PROD, "prod", 1, REDUCE, ROW_NUMBER)                                       \
    X(REDUCE_MIN, "min", 1, REDUCE, ROW_ANY)                                            \
    X(REDUCE_MAX, "max", 1, REDUCE, ROW_ANY)                                            \
    X(EXTENT, "extent", 0, LEAF, NONE) /* i64: number of elements of a row */              \
    X(REAL, "real", 1, PART, COMPLEX)                                                   \
    X(IMAG, "imag", 1, PART, COMPLEX)                                                   \
    X(MODULUS, "abs", 1, PART, COMPLEX) /* hypot(real, imag) */                         \
    X(CONJ, "conj", 1, SIGN, COMPLEX)                                                   \
    X(COMPLEX, "complex", 2, JOIN, PARTS) /* a + b i */                                 \
    X(TAKE, "take", 0, LEAF, NONE) /* input `a` at index `b`; see above */              \
    X(FLOOR_DIV, "//", 2, POWER, FLOAT) /* the quotient rounded down, as NumPy's floor_divide */
// clang-format on

// The numbers of instructions, for tn_expr_insn.op. A backend refuses numbers that it does
// not know in step_check: a newer core may know more.
enum {
#define TN_EXPR_ENUM(name, ...) TN_EXPR_##name,
    TN_EXPR_OPS(TN_EXPR_ENUM)
#undef TN_EXPR_ENUM
        TN_EXPR_NUM_OPS
};

// Classes of instructions, by what an implementation of them has in common: tests take
// tolerances from the class, generators of code their templates. These numbers are no part
// of the ABI: a plugin uses those of the header that it is compiled with.
enum {
    TN_EXPR_CLASS_LEAF,       // no operands
    TN_EXPR_CLASS_CAST,       // its operand may have another dtype than its result
    TN_EXPR_CLASS_SIGN,       // exact, by the sign alone
    TN_EXPR_CLASS_ROUND,      // to a whole number
    TN_EXPR_CLASS_ROOT,       // each square root and division is rounded (a GPU: nearly)
    TN_EXPR_CLASS_FUNCTION,   // approximated: a few units in the last place
    TN_EXPR_CLASS_CIRCULAR,   // approximated, of an angle in radians
    TN_EXPR_CLASS_TEST,       // bool of one float
    TN_EXPR_CLASS_ARITHMETIC, // floats rounded once, integers wrap
    TN_EXPR_CLASS_DIVIDE,     // floats rounded once (a GPU: nearly), integers floored
    TN_EXPR_CLASS_POWER,      // remainders, their quotients, and powers
    TN_EXPR_CLASS_EXTREME,    // one of the operands
    TN_EXPR_CLASS_BITS,       // bit by bit
    TN_EXPR_CLASS_SHIFT,      // by the second operand
    TN_EXPR_CLASS_COMPARE,    // bool of two operands
    TN_EXPR_CLASS_LOGIC,      // bool of bools
    TN_EXPR_CLASS_SELECT,     // by a bool, one of the other operands
    TN_EXPR_CLASS_REDUCE,     // of a row; see above
    TN_EXPR_CLASS_PART,       // a real number of a complex one
    TN_EXPR_CLASS_JOIN,       // a complex number of its parts
};

// Sets of dtypes that operands may have, for the DTYPES column. TN_EXPR_OF_NONE: the
// instruction has no operands, or, for CAST, takes any dtype.
#define TN_EXPR_OF_NONE UINT32_C(0)
#define TN_EXPR_OF_BOOL TN_DTYPE_BIT(TN_BOOL)
#define TN_EXPR_OF_INTEGER TN_INTEGER_DTYPES
#define TN_EXPR_OF_FLOAT TN_FLOAT_DTYPES
#define TN_EXPR_OF_BITS (TN_EXPR_OF_INTEGER | TN_EXPR_OF_BOOL)
#define TN_EXPR_OF_NUMBER (TN_EXPR_OF_INTEGER | TN_EXPR_OF_FLOAT)
#define TN_EXPR_OF_ANY (TN_EXPR_OF_NUMBER | TN_EXPR_OF_BOOL)
// Sets for functions that complex numbers have, too; that they alone have; that give or
// take their parts.
#define TN_EXPR_OF_FLOAT_COMPLEX (TN_EXPR_OF_FLOAT | TN_COMPLEX_DTYPES)
#define TN_EXPR_OF_NUMBER_COMPLEX (TN_EXPR_OF_NUMBER | TN_COMPLEX_DTYPES)
#define TN_EXPR_OF_ANY_COMPLEX (TN_EXPR_OF_ANY | TN_COMPLEX_DTYPES)
#define TN_EXPR_OF_COMPLEX TN_COMPLEX_DTYPES
#define TN_EXPR_OF_PARTS (TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64))
// The same sets for class REDUCE, so that tables of loops over elements leave these out.
#define TN_EXPR_OF_ROW_NUMBER TN_EXPR_OF_NUMBER
#define TN_EXPR_OF_ROW_ANY TN_EXPR_OF_ANY

// Columns of the table for instruction `op`, which is below TN_EXPR_NUM_OPS (not checked):
// its NAME ("ERF"; static text), its number of operands, its TN_EXPR_CLASS_, and the set of
// dtypes that its operands may have.
static inline const char *tn_expr_name(uint32_t op)
{
    static const char *const names[] = {
#define TN_EXPR_NAME(name, ...) #name,
        TN_EXPR_OPS(TN_EXPR_NAME)
#undef TN_EXPR_NAME
    };
    return names[op];
}
static inline uint32_t tn_expr_operands(uint32_t op)
{
    static const uint8_t counts[] = {
#define TN_EXPR_COUNT(name, text, operands, ...) operands,
        TN_EXPR_OPS(TN_EXPR_COUNT)
#undef TN_EXPR_COUNT
    };
    return counts[op];
}
static inline uint32_t tn_expr_class(uint32_t op)
{
    static const uint8_t classes[] = {
#define TN_EXPR_KIND(name, text, operands, kind, ...) TN_EXPR_CLASS_##kind,
        TN_EXPR_OPS(TN_EXPR_KIND)
#undef TN_EXPR_KIND
    };
    return classes[op];
}
static inline uint32_t tn_expr_dtypes(uint32_t op)
{
    static const uint32_t sets[] = {
#define TN_EXPR_SET(name, text, operands, kind, dtypes) TN_EXPR_OF_##dtypes,
        TN_EXPR_OPS(TN_EXPR_SET)
#undef TN_EXPR_SET
    };
    return sets[op];
}

// The dtype of the result of instruction `op` on operands of `dtype`, by its class: bool, a
// dtype of parts, a complex one, or `dtype`. `op` has operands and is not CAST, whose
// result tn_expr_insn.dtype alone says.
static inline tn_dtype tn_expr_result(uint32_t op, tn_dtype dtype)
{
    uint32_t kind = tn_expr_class(op);
    int32_t is_bool = kind == TN_EXPR_CLASS_TEST || kind == TN_EXPR_CLASS_COMPARE ||
                      kind == TN_EXPR_CLASS_LOGIC;
    return is_bool                      ? TN_BOOL
           : kind == TN_EXPR_CLASS_PART ? tn_dtype_real(dtype)
           : kind == TN_EXPR_CLASS_JOIN ? tn_dtype_complex(dtype)
                                        : dtype;
}

// One instruction. Its result is named by its position in `insns`, and its operands a, b, c
// are positions of earlier instructions; of LOAD, CONST and PARAM, `a` is an index into the
// inputs, constants or params. Of TAKE `a` is an input, `b` the position of an earlier
// instruction, and `c` the first of two params. Operands that an instruction does not have
// are not read.
typedef struct tn_expr_insn {
    uint16_t op;      // TN_EXPR_...
    uint16_t dtype;   // of the result; never a format of storage only, such as F16
    uint32_t a, b, c; // below the instruction's own position, or an index
} tn_expr_insn;

// The most instructions, inputs and outputs of a program. The core refuses larger
// expressions with TN_ERR_UNSUPPORTED and fuses no further, so a backend may size fixed
// arrays by these.
#define TN_EXPR_MAX_INSNS 256
#define TN_EXPR_MAX_INPUTS 16
#define TN_EXPR_MAX_OUTPUTS 8

// Flags of a program.
enum {
    // It has instructions of class REDUCE, or EXTENT. Only devices with TN_DEVICE_ROWS of
    // <tenon/backend.h> get row programs.
    TN_EXPR_ROWS = 1,
    // It has instructions TAKE. Only devices with TN_DEVICE_TAKES get such programs.
    TN_EXPR_TAKES = 2,
};

// A program. The core makes it, has checked that every index is in range, and owns it; it
// is immutable, and outlives each executable that a step with it was compiled to. All steps
// whose expressions have the same structure share one program: the values of attributes are
// in tn_step.params.
//
// A constant or param is 8 bytes: the bits of a double for an instruction of a float dtype,
// and of a complex dtype, whose imaginary part is 0; of an int64_t or uint64_t for the
// others (bool: 0 or 1).
typedef struct tn_expr_program {
    uint32_t struct_size;          // sizeof(tn_expr_program) as the core was compiled
    uint32_t flags;                // TN_EXPR_ROWS, TN_EXPR_TAKES, or 0
    const tn_expr_insn *insns;     // num_insns
    const uint64_t *constants;     // num_constants
    const tn_dtype *input_dtypes;  // num_inputs, as stored in memory
    const tn_dtype *output_dtypes; // num_outputs, as stored in memory
    const uint32_t *outputs; // num_outputs positions of the instructions that give them
    uint32_t num_insns;      // 1 .. TN_EXPR_MAX_INSNS
    uint32_t num_constants;
    uint32_t num_params;
    uint32_t num_inputs;  // 0 .. TN_EXPR_MAX_INPUTS
    uint32_t num_outputs; // 1 .. TN_EXPR_MAX_OUTPUTS
    uint32_t reserved;    // 0
    uint64_t hash[2];     // of the structure, the same in every process: a key for caches
    const char *name;     // for people: "base.mul+base.add"
} tn_expr_program;

// How many elements behind those of its layout the program may read of input `input`, which
// TAKE reads: (n - 1) * stride of its params. 0 for other inputs. The strides are those of
// arrays, never below 0.
static inline uint64_t tn_taken_reach(const tn_expr_program *program,
                                      const uint64_t *params, uint32_t input)
{
    for (uint32_t i = 0; i < program->num_insns; i++) {
        const tn_expr_insn *insn = &program->insns[i];
        if (insn->op == TN_EXPR_TAKE && insn->a == input)
            return (params[insn->c] - 1) * params[insn->c + 1];
    }
    return 0;
}

#endif // TENON_EXPR_H
