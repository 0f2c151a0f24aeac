// SPDX-License-Identifier: MIT
// Kernels for the CPU: pure functions over memory, in several variants. One variant is
// chosen at run time, by the instruction sets that both the processor and the operating
// system offer.
//
// Each folder has loops of one kind. All variants are the same C, compiled for different
// instruction sets, with contraction into fused multiply-adds switched off and sums split
// into a fixed number of lanes. So every variant gives the same bits, and fusing operations
// into one pass changes none. Exceptions: exp, exp2, log, tanh and erf of f32 and depthwise
// convolutions use fused multiply-adds, which `baseline` lacks, so its last bits differ. So
// do those of products of matrices of floats (matmul/panels.h) and of convolutions
// (conv/tiles.h), whose order of sums also depends on the size of the registers.
//
// Threads. Everything here is pure: any thread, any number at once.
#ifndef KERNELS_CPU_H
#define KERNELS_CPU_H

#include <stdint.h>
#include <tenon/expr.h>
#include "cpu/conv/depthwise.h"
#include "cpu/conv/pool.h"
#include "cpu/conv/tiles.h"
#include "cpu/conv/vectors.h"
#include "cpu/elementwise/functions.h"
#include "cpu/elementwise/map.h"
#include "cpu/instruction_sets.h"
#include "cpu/fft/fft.h"
#include "cpu/matmul/few_rows.h"
#include "cpu/matmul/halves.h"
#include "cpu/matmul/panels.h"
#include "cpu/matmul/product.h"
#include "cpu/move/copy.h"
#include "cpu/quant/groupwise.h"
#include "cpu/quant/quant.h"
#include "cpu/random/random.h"
#include "cpu/recurrence/recurrence.h"
#include "cpu/reduce/reduce.h"
#include "cpu/sort/quick.h"

// One variant. Tables are indexed by the dtype of the operands (of the second operand for
// SELECT); an entry is NULL where the operation is not defined for the dtype. Storage
// dtypes (F16, BF16, F8_E4M3, F8_E5M2) have casts from and to F32 alone; callers cast them
// to other dtypes through F32.
struct cpu_kernels {
    const char *name;
    uint32_t needs;                           // CPU_HAS_..., instruction sets
    cpu_map_fn *const *const *map;            // [dtype][operation]
    cpu_map_fn *const (*cast)[TN_NUM_DTYPES]; // [from][to]
    const struct cpu_function_kernels *functions;
    cpu_copy_fn *const *copy;           // [log2 of the element's size]
    cpu_transpose_fn *const *transpose; // [log2 of the element's size]
    cpu_spread_fn *const *spread;       // [log2 of the element's size]
    cpu_stream_fn *stream;
    void (*fence)(void);
    cpu_product_fn *const *product; // [dtype]; NULL for floats
    const struct cpu_reduce_kernels *reduce;
    const struct cpu_argmax_kernels *argmax;
    cpu_layer_norm_grad_fn *layer_norm_grad;
    const struct cpu_random_kernels *random;
    const struct cpu_recurrence_kernels *recurrence;
    cpu_recurrence_row_fn *recurrence_row;
    const struct cpu_few_kernels *few;
    const struct cpu_quick_kernels *quick;
    const struct cpu_conv_kernels *conv;
    const struct cpu_tiles_kernels *tiles;
    const struct cpu_windows_kernels *windows;
    const struct cpu_depthwise_kernels *depthwise_f32, *depthwise_f64;
    cpu_fft_fn *fft_f32, *fft_f64;
    cpu_fft_stage_fn *fft_stage_f32, *fft_stage_f64;
    cpu_fft_fold_fn *fft_fold_f32, *fft_fold_f64;
};

// All variants of this build, the best first, ended by NULL. The last variant runs on every
// processor of the architecture.
const struct cpu_kernels *const *cpu_variants(void);

// The best variant whose instruction sets are all in `features`.
const struct cpu_kernels *cpu_pick(uint32_t features);

// Variants of products with quantised weights, listed and picked like cpu_kernels.
const struct cpu_quant_kernels *const *cpu_quant_variants(void);
const struct cpu_quant_kernels *cpu_quant_pick(uint32_t features);

// The convolutions on AMX, if `features` has CPU_HAS_AMX and the build has them; else NULL.
const struct cpu_tiles_amx *cpu_tiles_amx_pick(uint32_t features);

// Variants of products of matrices (matmul/panels.h), listed and picked like cpu_kernels.
const struct cpu_panels_variant *const *cpu_panels_variants(void);
const struct cpu_panels_variant *cpu_panels_pick(uint32_t features);

// Products with halves on the tiles of AMX; NULL: this build has none. For processors with
// CPU_HAS_AMX.
const struct cpu_halves_kernels *cpu_halves_tiles(void);

#endif // KERNELS_CPU_H
