// SPDX-License-Identifier: MIT
// The struct cpu_kernels of one variant, made of the tables of all folders.
#include "cpu.h"
#include "conv/variants.h"
#include "elementwise/variants.h"
#include "fft/variants.h"
#include "matmul/variants.h"
#include "move/variants.h"
#include "random/variants.h"
#include "recurrence/variants.h"
#include "reduce/variants.h"
#include "sort/variants.h"

#define TEXT_(variant) #variant
#define TEXT(variant) TEXT_(variant)

static cpu_map_fn *const *const maps[TN_NUM_DTYPES] = {
    [TN_BOOL] = V(cpu_map_bool),
#define MAP(name, dtype) [dtype] = V(cpu_map_##name),
    CPU_REAL_DTYPES(MAP)
#undef MAP
        [TN_COMPLEX64] = VC(cpu_map_complex64),
    [TN_COMPLEX128] = VC(cpu_map_complex128),
};

static const struct cpu_few_kernels few = {
    .by_rows = V(cpu_few_by_rows),
    .by_columns = V(cpu_few_by_columns),
};

extern const struct cpu_kernels V(cpu_kernels);
const struct cpu_kernels V(cpu_kernels) = {
    .name = TEXT(CPU_VARIANT),
    .needs = CPU_VARIANT_NEEDS,
    .map = maps,
    .cast = V(cpu_casts),
    .functions = &V(cpu_functions),
    .copy = V(cpu_copies),
    .transpose = V(cpu_transposes),
    .spread = V(cpu_spreads),
    .stream = V(cpu_stream),
    .fence = V(cpu_fence),
    .product = V(cpu_products),
    .reduce = &V(cpu_reductions),
    .argmax = &V(cpu_argmax),
    .layer_norm_grad = V(cpu_layer_norm_grad),
    .random = &V(cpu_random),
    .recurrence = &V(cpu_recurrence),
    .recurrence_row = V(cpu_recurrence_row),
    .few = &few,
    .quick = &V(cpu_quick),
    .conv = &V(cpu_conv),
    .tiles = &V(cpu_tiles),
    .windows = &V(cpu_windows),
    .depthwise_f32 = &V(cpu_depthwise_f32),
    .depthwise_f64 = &V(cpu_depthwise_f64),
    .fft_f32 = V(cpu_fft_f32),
    .fft_f64 = V(cpu_fft_f64),
    .fft_stage_f32 = V(cpu_fft_stage_f32),
    .fft_stage_f64 = V(cpu_fft_stage_f64),
    .fft_fold_f32 = V(cpu_fft_fold_f32),
    .fft_fold_f64 = V(cpu_fft_fold_f64),
};
