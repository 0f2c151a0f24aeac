// SPDX-License-Identifier: MIT
// Kernels for the CPU: pure functions over memory, in several variants of which one is
// chosen at run time by what processor and operating system offer.
//
// All variants are the same C (vector/), compiled for different instruction sets with
// contraction into fused multiply-adds switched off and sums split into a fixed number of
// lanes. So every variant gives the same bits, and fusing instructions changes none.
//
// Threads. Everything here is pure: any thread, any number at once.
#ifndef KERNELS_CPU_H
#define KERNELS_CPU_H

#include <stdbool.h>
#include <stdint.h>

// Element types; the numbers are those of tn_dtype.
enum {
    CPU_BOOL = 1,
    CPU_I8,
    CPU_I16,
    CPU_I32,
    CPU_I64,
    CPU_U8,
    CPU_U16,
    CPU_U32,
    CPU_U64,
    CPU_F16,
    CPU_BF16,
    CPU_F32,
    CPU_F64,
    CPU_NUM_DTYPES
};

// Operations on one element; names, numbers and meaning are those of TN_EXPR_OPS. The
// first five are never in a table: they are what the caller makes of them.
// clang-format off
#define CPU_OPS(X)                                                                         \
    X(LOAD, 0) X(CONST, 0) X(PARAM, 0) X(INDEX, 0) X(CAST, 1) X(NEG, 1) X(NOT, 1)          \
    X(INVERT, 1) X(ABS, 1) X(SIGN, 1) X(FLOOR, 1) X(CEIL, 1) X(TRUNC, 1) X(ROUND, 1)       \
    X(SQRT, 1) X(RSQRT, 1) X(EXP, 1) X(EXP2, 1) X(EXPM1, 1) X(LOG, 1) X(LOG2, 1)           \
    X(LOG10, 1) X(LOG1P, 1) X(SIN, 1) X(COS, 1) X(TAN, 1) X(ASIN, 1) X(ACOS, 1)            \
    X(ATAN, 1) X(SINH, 1) X(COSH, 1) X(TANH, 1) X(ASINH, 1) X(ACOSH, 1) X(ATANH, 1)        \
    X(ERF, 1) X(ISNAN, 1) X(ISINF, 1) X(ISFINITE, 1) X(ADD, 2) X(SUB, 2) X(MUL, 2)         \
    X(DIV, 2) X(MOD, 2) X(POW, 2) X(ATAN2, 2) X(MIN, 2) X(MAX, 2) X(AND, 2) X(OR, 2)       \
    X(XOR, 2) X(SHL, 2) X(SHR, 2) X(EQ, 2) X(NE, 2) X(LT, 2) X(LE, 2) X(GT, 2) X(GE, 2)    \
    X(SELECT, 3)
// clang-format on

// Several operations in one pass, each rounded on its own as if they were apart. Operands
// in order; in the names, s is a value and x, y are arrays.
#define CPU_FUSED_OPS(X)                                                                   \
    X(MUL_ADD, 3)      /* a * b + c */                                                     \
    X(MUL_SUB, 3)      /* a * b - c */                                                     \
    X(SUB_MUL, 3)      /* c - a * b */                                                     \
    X(MUL_ADD_MUL, 4)  /* a * b + c * d */                                                 \
    X(ADD_MUL, 3)      /* (a + b) * c */                                                   \
    X(SUB_THEN_MUL, 3) /* (a - b) * c */

enum {
#define CPU_ENUM(name, operands) CPU_OP_##name,
    CPU_OPS(CPU_ENUM) CPU_FUSED_OPS(CPU_ENUM)
#undef CPU_ENUM
        CPU_NUM_OPS
};

#define CPU_MAX_OPERANDS 4

// out[i] = op(in[0][i], in[1][i], ...) for i in [0, n). Bit k of `scalars`: in[k] is one
// element that stands for all. `out` may begin where an operand of the same element size
// begins, and overlaps none otherwise.
typedef void cpu_map_fn(void *out, const void *const *in, int64_t n, uint32_t scalars);

// dst[i * dst_stride] = src[i * src_stride], strides in elements (0 and negative are fine).
typedef void cpu_copy_fn(void *dst, int64_t dst_stride, const void *src, int64_t src_stride,
                         int64_t n);

// dst[c * dst_stride + r] = src[r * src_stride + c]: strides in elements.
typedef void cpu_transpose_fn(void *dst, int64_t dst_stride, const void *src,
                              int64_t src_stride, int64_t rows, int64_t columns);

// c = a * b for integers, which wrap, and for bool (or of ands). Strides in elements; the
// columns of b and c lie together. c overlaps nothing.
struct cpu_product {
    const void *a, *b;
    void *c;
    int64_t m, n, k; // a is m by k, b is k by n
    int64_t a_row, a_column, b_row, c_row;
};
typedef void cpu_product_fn(const struct cpu_product *product);

#include "reduce.h"

// One variant. Tables are indexed by the dtype of the operands (of the second one for
// SELECT); NULL where an operation has no meaning. Casts to and from F16 and BF16 exist
// from and to F32 only.
struct cpu_kernels {
    const char *name;
    uint32_t needs;                            // CPU_HAS_...
    cpu_map_fn *const *const *map;             // [dtype][operation]
    cpu_map_fn *const (*cast)[CPU_NUM_DTYPES]; // [from][to]
    cpu_copy_fn *const *copy;                  // [log2 of the element's size]
    cpu_transpose_fn *const *transpose;        // [log2 of the element's size]
    cpu_product_fn *const *product;            // [dtype]; NULL for floats
    const struct cpu_reduce_kernels *reduce;
    const struct cpu_nn_kernels *nn;
};

// Instruction sets that processor and operating system both offer.
enum {
    CPU_HAS_AVX2 = 1,   // AVX2, FMA, F16C
    CPU_HAS_AVX512 = 2, // AVX-512 F, BW, CD, DQ, VL
};
uint32_t cpu_features(void);

// All variants of this build, the best first; the last needs nothing. Ended by NULL.
const struct cpu_kernels *const *cpu_variants(void);

// The best that `features` allow.
const struct cpu_kernels *cpu_pick(uint32_t features);

// Bytes of an element.
uint32_t cpu_dtype_size(int32_t dtype);

// May the operation's `scalars` be other than 0?
bool cpu_takes_scalars(int32_t op, int32_t dtype);

#endif // KERNELS_CPU_H
