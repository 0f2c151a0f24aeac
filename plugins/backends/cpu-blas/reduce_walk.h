// SPDX-License-Identifier: MIT
// Reductions over any axes: how an array is walked.
//
// Axes are split into kept and reduced ones, each list with neighbours merged. Elements of
// one output are numbered row-major over the reduced axes; those of the last reduced axis
// are a run.
#ifndef CPU_BLAS_REDUCE_WALK_H
#define CPU_BLAS_REDUCE_WALK_H

#include <tenon/ops/base_attrs.h>
#include "kernels.h"
#include "reduce.h"

struct axes {
    int32_t rank;
    int64_t count; // product of the extents
    int64_t extent[TN_MAX_RANK], stride[TN_MAX_RANK];
};

struct reduction {
    const struct cpu_kernels *kernels;
    const char *base; // the first element
    int32_t dtype;
    int64_t size; // bytes of an element
    struct axes kept, reduced;
};

// Splits the axes of `layout` by the bits of `set`.
void reduction_split(const tn_layout *layout, uint32_t set, struct axes *kept,
                     struct axes *reduced);

// Elements from the first to number `index` (row-major over the axes).
int64_t axes_offset(const struct axes *axes, int64_t index);

// Elements of a block that is gathered, and widened to f32 from halves.
#define REDUCE_BLOCK 1024

// Calls body for runs of stride 1 that make up elements [begin, end) of an output's
// reduced elements, in order; halves arrive as f32 (reduction_loop_dtype).
typedef void reduce_run(void *context, const void *run, int64_t n);
void reduction_walk(const struct reduction *r, const char *first, int64_t begin,
                    int64_t end, reduce_run *body, void *context);

static inline int32_t reduction_loop_dtype(int32_t dtype)
{
    return dtype == CPU_F16 || dtype == CPU_BF16 ? CPU_F32 : dtype;
}

#endif // CPU_BLAS_REDUCE_WALK_H
