// SPDX-License-Identifier: MIT
// Iterates over reduced elements, in runs of stride 1.
#include "reduce_walk.h"

static void reduce_walk_add_axis(struct axes *axes, int64_t extent, int64_t stride)
{
    int32_t last = axes->rank - 1;
    axes->count *= extent;
    if (extent == 1)
        return;
    // Merged with the axis before, if the stride of that axis spans exactly this axis.
    if (last >= 0 && axes->stride[last] == stride * extent) {
        axes->extent[last] *= extent;
        axes->stride[last] = stride;
        return;
    }
    axes->extent[axes->rank] = extent;
    axes->stride[axes->rank++] = stride;
}

void reduction_split(const tn_layout *layout, uint32_t set, struct axes *kept,
                     struct axes *reduced)
{
    // Entries beyond `rank` stay unset: this runs at each launch.
    kept->rank = reduced->rank = 0;
    kept->count = reduced->count = 1;
    for (int32_t i = 0; i < layout->rank; i++)
        reduce_walk_add_axis(set >> i & 1 ? reduced : kept, layout->extent[i],
                             layout->stride[i]);
}

void reduction_split_parts(const tn_layout *layout, uint32_t set, struct axes *kept,
                           struct axes *reduced)
{
    reduction_split(layout, set, kept, reduced);
    for (int32_t i = 0; i < kept->rank; i++)
        kept->stride[i] *= 2;
    for (int32_t i = 0; i < reduced->rank; i++)
        reduced->stride[i] *= 2;
    reduce_walk_add_axis(kept, 2, 1);
}

int64_t axes_offset(const struct axes *axes, int64_t index)
{
    int64_t offset = 0;
    for (int32_t i = axes->rank - 1; i > 0; i--) {
        offset += index % axes->extent[i] * axes->stride[i];
        index /= axes->extent[i];
    }
    return axes->rank > 0 ? offset + index * axes->stride[0] : 0;
}

// Passes a run of any stride and dtype to the body, in blocks of stride 1 that the loops
// take.
static void give_run(const struct reduction_walk *r, const char *run, int64_t stride,
                     int64_t n, reduce_run *body, void *context)
{
    _Alignas(64) char block[REDUCE_BLOCK * 16], wide[REDUCE_BLOCK * 4];
    int32_t loop = reduction_loop_dtype(r->dtype);
    bool is_half = loop != r->dtype && !r->takes_halves;
    uint32_t size_log2 = (uint32_t)__builtin_ctz((uint32_t)r->size);

    if (stride == 1 && !is_half) {
        body(context, run, n);
        return;
    }
    for (int64_t i = 0; i < n; i += REDUCE_BLOCK) {
        int64_t m = n - i < REDUCE_BLOCK ? n - i : REDUCE_BLOCK;
        const void *in = run + i * stride * r->size;
        if (stride != 1) {
            r->kernels->copy[size_log2](block, 1, in, stride, m);
            in = block;
        }
        if (is_half) {
            r->kernels->cast[r->dtype][loop](wide, &in, m, 0);
            in = wide;
        }
        body(context, in, m);
    }
}

void reduction_walk(const struct reduction_walk *r, const char *first, int64_t begin,
                    int64_t end, reduce_run *body, void *context)
{
    const struct axes *axes = &r->reduced;
    int64_t length = axes->rank > 0 ? axes->extent[axes->rank - 1] : 1;
    int64_t stride = axes->rank > 0 ? axes->stride[axes->rank - 1] : 1;

    while (begin < end) {
        int64_t at = begin % length, left = length - at;
        int64_t n = end - begin < left ? end - begin : left;
        give_run(r, first + axes_offset(axes, begin) * r->size, n == 1 ? 1 : stride, n,
                 body, context);
        begin += n;
    }
}
