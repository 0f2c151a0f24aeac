// SPDX-License-Identifier: MIT
// Operations on elements: one function for each operation and dtype.
#ifndef KERNELS_CPU_MAP_H
#define KERNELS_CPU_MAP_H

#include <stdbool.h>
#include <stdint.h>
#include <tenon/expr.h>

// The table of fused operations, X(NAME, operands): several instructions in one pass over
// memory, each rounded on its own. a, b, c, d, e are the operands in order.
#define CPU_FUSED_OPS(X)                                                                   \
    X(MUL_ADD, 3)         /* a * b + c */                                                  \
    X(MUL_SUB, 3)         /* a * b - c */                                                  \
    X(SUB_MUL, 3)         /* c - a * b */                                                  \
    X(MUL_ADD_MUL, 4)     /* a * b + c * d */                                              \
    X(ADD_MUL, 3)         /* (a + b) * c */                                                \
    X(SUB_THEN_MUL, 3)    /* (a - b) * c */                                                \
    X(SUB_THEN_EXP, 2)    /* exp(a - b) */                                                 \
    X(MUL_MUL, 3)         /* a * b * c */                                                  \
    X(MUL_MUL_ADD, 4)     /* a * b * c + d */                                              \
    X(SUB_MUL_MUL, 4)     /* (a - b) * c * d */                                            \
    X(SUB_MUL_MUL_ADD, 5) /* (a - b) * c * d + e */                                        \
    X(CLIP, 3)            /* min(max(a, b), c) */                                          \
    X(SELECT_LT, 4)       /* a < b ? c : d */                                              \
    X(SELECT_LE, 4)       /* a <= b ? c : d */                                             \
    X(REPLACE_NAN, 2)     /* isnan(a) ? b : a */                                           \
    X(FOURTH, 1)          /* (a * a) * (a * a) */                                          \
    X(SIGMOID, 1)         /* e / (1 + e), e = min(exp(a), CPU_SIGMOID_MOST) */             \
    X(ONE_PLUS_ERF, 1)    /* 1 + erf(a) */                                                 \
    X(GELU, 1)            /* 0.5 * a * (1 + erf(a * CPU_SQRT_HALF)) */

#define CPU_SIGMOID_MOST 1e30
#define CPU_SQRT_HALF 0.7071067811865476

// Numbers of operations: those of the instructions of <tenon/expr.h>, then those of the
// fused operations.
enum {
    CPU_OP_BEFORE_FUSED = TN_EXPR_NUM_OPS - 1, // the first fused one is TN_EXPR_NUM_OPS
#define CPU_ENUM(name, operands) CPU_OP_##name,
    CPU_FUSED_OPS(CPU_ENUM)
#undef CPU_ENUM
        CPU_NUM_OPS
};

// Whether `op` is one of CPU_FUSED_OPS.
static inline bool cpu_is_fused(int32_t op)
{
    return op >= TN_EXPR_NUM_OPS;
}

// The class (TN_EXPR_CLASS_...) of `op`, which says what an element costs.
static inline uint32_t cpu_op_class(int32_t op)
{
    if (cpu_is_fused(op))
        return op >= CPU_OP_SIGMOID ? TN_EXPR_CLASS_FUNCTION : TN_EXPR_CLASS_ARITHMETIC;
    return tn_expr_class((uint32_t)op);
}

// The most operands of an operation.
#define CPU_MAX_OPERANDS 5

// out[i] = op(in[0][i], in[1][i], ...) for i in [0, n). Bit k of `scalars`: in[k] is a
// scalar, one element that is read for every i; see cpu_takes_scalars(). `out` may begin
// where an operand of the same element size begins, and overlaps no operand otherwise.
typedef void cpu_map_fn(void *out, const void *const *in, int64_t n, uint32_t scalars);

// Whether the map function of this operation and dtype accepts `scalars` other than 0.
bool cpu_takes_scalars(int32_t op, int32_t dtype);

// Bytes of an element of the dtype.
static inline uint32_t cpu_dtype_size(int32_t dtype)
{
    return (uint32_t)tn_dtype_bytes(dtype);
}

#endif // KERNELS_CPU_MAP_H
