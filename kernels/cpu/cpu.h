// SPDX-License-Identifier: MIT
// Kernels for the CPU: pure functions over memory, in several variants. One variant is
// chosen at run time, by the instruction sets that both the processor and the operating
// system offer.
//
// All variants are the same C (vector/), compiled for different instruction sets, with
// contraction into fused multiply-adds switched off and sums split into a fixed number of
// lanes. So every variant gives the same bits, and fusing operations into one pass changes
// none. Only exp, exp2, log, tanh and erf of f32 say where they multiply and add at once:
// `baseline` is for processors that cannot, and differs there in the last bits.
//
// Threads. Everything here is pure: any thread, any number at once.
#ifndef KERNELS_CPU_H
#define KERNELS_CPU_H

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
    X(SUB_MUL_MUL_ADD, 5) /* (a - b) * c * d + e */

// Numbers of operations: those of the instructions of <tenon/expr.h>, then those of the
// fused operations.
enum {
    CPU_OP_BEFORE_FUSED = TN_EXPR_NUM_OPS - 1, // so that the first one is TN_EXPR_NUM_OPS
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

// The most operands of an operation.
#define CPU_MAX_OPERANDS 5

// out[i] = op(in[0][i], in[1][i], ...) for i in [0, n). Bit k of `scalars`: in[k] is a
// scalar, one element that is read for every i; see cpu_takes_scalars(). `out` may begin
// where an operand of the same element size begins, and overlaps no operand otherwise.
typedef void cpu_map_fn(void *out, const void *const *in, int64_t n, uint32_t scalars);

// dst[i * dst_stride] = src[i * src_stride] for i in [0, n). Strides in elements; 0 and
// negative ones are fine.
typedef void cpu_copy_fn(void *dst, int64_t dst_stride, const void *src, int64_t src_stride,
                         int64_t n);

// Copies `bytes` bytes from src to dst past the caches, where the processor can: for large
// results that nobody reads soon. They do not overlap. Other threads see them after a call
// of the variant's `fence` by the thread that wrote them.
typedef void cpu_stream_fn(void *dst, const void *src, uint64_t bytes);

// dst[c * dst_stride + r] = src[r * src_stride + c]: strides in elements.
typedef void cpu_transpose_fn(void *dst, int64_t dst_stride, const void *src,
                              int64_t src_stride, int64_t rows, int64_t columns);

// A matrix product, c = a * b, of integers, which wrap, or of bool, whose sum is OR and
// whose product is AND. Strides in elements; the columns of b and of c are adjacent. c
// overlaps neither a nor b.
struct cpu_product {
    const void *a, *b;
    void *c;
    int64_t m, n, k; // a is m by k, b is k by n
    int64_t a_row, a_column, b_row, c_row;
};
typedef void cpu_product_fn(const struct cpu_product *product);

#include "fft.h"
#include "quant.h"
#include "reduce.h"

// One variant. Tables are indexed by the dtype of the operands (of the second operand for
// SELECT); an entry is NULL where the operation is not defined for the dtype. Casts between
// formats of storage (F16, BF16, F8_E4M3, F8_E5M2) and other dtypes go by F32: only those
// from and to F32 exist.
struct cpu_kernels {
    const char *name;
    uint32_t needs;                           // CPU_HAS_..., instruction sets
    cpu_map_fn *const *const *map;            // [dtype][operation]
    cpu_map_fn *const (*cast)[TN_NUM_DTYPES]; // [from][to]
    cpu_copy_fn *const *copy;                 // [log2 of the element's size]
    cpu_transpose_fn *const *transpose;       // [log2 of the element's size]
    cpu_stream_fn *stream;
    void (*fence)(void);
    cpu_product_fn *const *product; // [dtype]; NULL for floats
    const struct cpu_reduce_kernels *reduce;
    const struct cpu_argmax_kernels *argmax;
    const struct cpu_nn_kernels *nn;
    cpu_fft_fn *fft_f32, *fft_f64;
    cpu_fft_part_fn *fft_part_f32, *fft_part_f64;
    cpu_fft_fold_fn *fft_fold_f32, *fft_fold_f64;
};

// Instruction sets, as bits.
enum {
    CPU_HAS_AVX2 = 1,   // AVX2, FMA, F16C
    CPU_HAS_AVX512 = 2, // AVX-512 F, BW, CD, DQ, VL
    CPU_HAS_VNNI = 8,   // AVX-512 VNNI
    CPU_HAS_AMX = 16,   // AMX-INT8, beside AVX-512 VNNI
};

// The instruction sets that both the processor and the operating system offer: CPU_HAS_...
// The system is asked for the registers of AMX, which the process then may use; some 8 KB
// more are saved when a thread is interrupted that does.
uint32_t cpu_features(void);

// All variants of this build, the best first, ended by NULL. The last variant runs on every
// processor of the architecture.
const struct cpu_kernels *const *cpu_variants(void);

// The best variant whose instruction sets are all in `features`.
const struct cpu_kernels *cpu_pick(uint32_t features);

// Bytes of an element of the dtype.
static inline uint32_t cpu_dtype_size(int32_t dtype)
{
    return (uint32_t)tn_dtype_bytes(dtype);
}

// Whether the map function of this operation and dtype accepts `scalars` other than 0.
bool cpu_takes_scalars(int32_t op, int32_t dtype);

#endif // KERNELS_CPU_H
