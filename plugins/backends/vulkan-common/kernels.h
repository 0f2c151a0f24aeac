// SPDX-License-Identifier: MIT
// The backend's own kernels: their planning functions, and helpers.
#ifndef VULKAN_COMMON_KERNELS_H
#define VULKAN_COMMON_KERNELS_H

#include <tenon/ops/base_attrs.h>
#include <tenon/ops/nn_attrs.h>
#include "plan.h"
#include "program.h"

static inline uint64_t layout_count(const tn_layout *layout)
{
    uint64_t n = 1;
    for (int32_t axis = 0; axis < layout->rank; axis++)
        n *= (uint64_t)layout->extent[axis];
    return n;
}

static inline uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

// Bytes of a variant's name, such as "reduce_sum_f32".
#define VARIANT_NAME 64

// plan_reduce.c
tn_status vk_plan_reduce(struct vk_plan *plan, const tn_step *step);
uint64_t vk_reduce_scratch(const tn_kernel_query *query);
// Sums `count` contiguous parts of `n` f32 each (f64 for an output of f64), in scratch from
// `offset` on, into output 0.
tn_status vk_plan_sum_parts(struct vk_plan *plan, const tn_step *step, uint64_t offset,
                            uint64_t n, uint32_t count);

// plan_matmul.c
tn_status vk_plan_matmul(struct vk_plan *plan, const tn_step *step);
int32_t vk_matmul_accepts(const tn_kernel_query *query);

// plan_rows.c
tn_status vk_plan_softmax(struct vk_plan *plan, const tn_step *step);
tn_status vk_plan_cross_entropy(struct vk_plan *plan, const tn_step *step);

// plan_index.c
tn_status vk_plan_take(struct vk_plan *plan, const tn_step *step);
tn_status vk_plan_scatter_add(struct vk_plan *plan, const tn_step *step);
int32_t vk_scatter_add_accepts(const tn_kernel_query *query);
uint64_t vk_scatter_add_scratch(const tn_kernel_query *query);

// plan_sort.c
// Indices `first` .. `first + count - 1` of a contiguous value, along an axis of `extent`.
struct vk_indices {
    const tn_value *value;
    uint64_t first, count, extent; // below 2^32
};
// Sorts the indices, in the step's scratch memory from its beginning on. *out_keys: `count`
// u32 in ascending order, each an index counted from the front, or `extent` for an index
// out of range. *out_positions: the positions of these keys among the indices, ascending
// for equal keys.
tn_status vk_plan_sort(struct vk_plan *plan, const tn_step *step,
                       const struct vk_indices *indices, struct vk_operand *out_keys,
                       struct vk_operand *out_positions);
// Bytes of scratch memory for vk_plan_sort. UINT64_MAX: more than 64 bits can count.
uint64_t vk_sort_scratch(uint64_t count, uint64_t extent);

// plan_copy.c
#define MAX_COPIED 16 // most bytes that an invocation of copy.comp or take.comp moves
// Copies `from` to the elements of `to` that `region` describes.
tn_status vk_plan_copy(struct vk_plan *plan, const tn_value *from, const tn_value *to,
                       const tn_layout *region);
// Whether a step's output is its first input, updated in place.
bool vk_is_in_place(const struct vk_plan *plan, const tn_step *step);
tn_status vk_plan_concatenate(struct vk_plan *plan, const tn_step *step);
tn_status vk_plan_slice_update(struct vk_plan *plan, const tn_step *step);
tn_status vk_plan_dynamic_slice(struct vk_plan *plan, const tn_step *step);
tn_status vk_plan_dynamic_slice_update(struct vk_plan *plan, const tn_step *step);

// plan_conv.c
tn_status vk_plan_conv2d(struct vk_plan *plan, const tn_step *step);
tn_status vk_plan_conv2d_input(struct vk_plan *plan, const tn_step *step);
tn_status vk_plan_conv2d_weight(struct vk_plan *plan, const tn_step *step);
uint64_t vk_conv2d_weight_scratch(const tn_kernel_query *query);

// plan_pool.c
tn_status vk_plan_max_pool2d(struct vk_plan *plan, const tn_step *step);

#endif // VULKAN_COMMON_KERNELS_H
