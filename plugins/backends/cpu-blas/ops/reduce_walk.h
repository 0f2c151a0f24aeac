// SPDX-License-Identifier: MIT
// Reductions over any axes: how the elements of an array are visited.
//
// Axes are split into kept and reduced ones, with adjacent ones merged in each list.
// Elements of one output are numbered row-major over the reduced axes; a run is the
// elements along the last reduced axis.
#ifndef CPU_BLAS_REDUCE_WALK_H
#define CPU_BLAS_REDUCE_WALK_H

#include <tenon/ops/base_attrs.h>
#include "kernels.h"
#include "cpu/reduce/reduce.h"

struct axes {
    int32_t rank;
    int64_t count;                                            // product of the extents
    int64_t extent[TN_MAX_RANK + 1], stride[TN_MAX_RANK + 1]; // + 1: reduction_split_parts
};

struct reduction_walk {
    const struct cpu_kernels *kernels;
    const char *base; // the first element
    int32_t dtype;
    int64_t size;      // bytes of an element
    bool takes_halves; // the loop widens them itself
    struct axes kept, reduced;
};

// Splits the axes of `layout`: those in `set` (bit i: axis i) are reduced.
void reduction_split(const tn_layout *layout, uint32_t set, struct axes *kept,
                     struct axes *reduced);

// reduction_split() of complex numbers as pairs of their parts, which are a last kept axis;
// strides count parts.
void reduction_split_parts(const tn_layout *layout, uint32_t set, struct axes *kept,
                           struct axes *reduced);

// The offset of element `index` (row-major over the axes), in elements.
int64_t axes_offset(const struct axes *axes, int64_t index);

// Elements that are gathered, or widened from half floats to f32, at a time.
#define REDUCE_BLOCK 1024

// Calls body, in order, for runs of stride 1 that make up elements [begin, end) of an
// output's reduced elements. Half floats arrive as f32 (reduction_loop_dtype), unless the
// loop takes them.
typedef void reduce_run(void *context, const void *run, int64_t n);
void reduction_walk(const struct reduction_walk *r, const char *first, int64_t begin,
                    int64_t end, reduce_run *body, void *context);

static inline int32_t reduction_loop_dtype(int32_t dtype)
{
    return tn_dtype_computed(dtype);
}

#endif // CPU_BLAS_REDUCE_WALK_H
