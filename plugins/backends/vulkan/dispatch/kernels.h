// SPDX-License-Identifier: MIT
// The backend's own kernels: their planning functions, and helpers.
#ifndef VULKAN_DISPATCH_KERNELS_H
#define VULKAN_DISPATCH_KERNELS_H

#include <string.h>
#include <tenon/ops/base_attrs.h>
#include <tenon/ops/nn_attrs.h>
#include <tenon/vulkan.h>
#include "../program/program.h"

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

// Whether a value passes through a program: then its elements are those of its dtype, and
// are not moved in pairs.
static inline bool passes_program(const tn_value *value)
{
    return (value->flags & TN_VALUE_FUSED) != 0;
}

// Bytes of a variant's name, such as "reduce_sum_f32".
#define VARIANT_NAME 64

// A launch under construction: by the name of its module in the variants.txt of
// kernels/vulkan.
#define KERNEL_OPERANDS 11
#define KERNEL_PUSH 32
#define KERNEL_CONSTANTS 13
struct kernel_launch {
    const char *name;
    uint32_t num_operands, num_push, num_constants;
    tn_vulkan_operand operands[KERNEL_OPERANDS];
    uint32_t push[KERNEL_PUSH];
    uint32_t values; // bit i: push[i] is a value; others are extents, strides and offsets
    tn_vulkan_constant constants[KERNEL_CONSTANTS + 1]; // ids 0, 1, ... and GRID_ROW
    // Either so many workgroups, which find their number by workgroup() of types.glsl, or
    // with `fixed_grid` these along each axis.
    uint64_t groups;
    bool fixed_grid;
    uint32_t grid[3];
};

static inline void kernel_bind(struct kernel_launch *launch, tn_vulkan_operand operand)
{
    launch->operands[launch->num_operands++] = operand;
}
static inline void kernel_push(struct kernel_launch *launch, uint64_t word)
{
    launch->push[launch->num_push++] = (uint32_t)word;
}
static inline void kernel_push_value(struct kernel_launch *launch, uint32_t bits)
{
    launch->values |= UINT32_C(1) << launch->num_push;
    kernel_push(launch, bits);
}
static inline void kernel_push_float(struct kernel_launch *launch, double value)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof(bits));
    kernel_push_value(launch, bits);
}
// What divide.glsl divides by: a factor and shifts.
static inline void kernel_push_divisor(struct kernel_launch *launch, uint64_t divisor)
{
    program_divisor(divisor, launch->push + launch->num_push);
    launch->num_push += 2;
}
static inline void kernel_spec(struct kernel_launch *launch, uint32_t value)
{
    uint32_t id = launch->num_constants++;
    launch->constants[id] = (tn_vulkan_constant){id, value};
}

// What own kernels launch: `face.struct_size` tells it from launches of others. It has
// `values` where this backend plans, and no other program, such as `tenon check`.
struct own_launch {
    tn_vulkan_launch face;
    uint64_t values; // as of a kernel_launch
};
bool kernel_plan_is_own(const tn_vulkan_plan *plan); // plan_kernel.c

// `count` words of memory that are 0 before and behind each launch: launches count with
// atomics, and the last one to count sets its word back. Runs that may be on a device at
// once have words of their own. Where kernel_plan_is_own alone.
#define VK_OPERAND_COUNTERS 255 // tn_vulkan_operand.kind
static inline tn_vulkan_operand kernel_counters(uint64_t count)
{
    tn_vulkan_operand operand = {.kind = VK_OPERAND_COUNTERS,
                                 .access = TN_VULKAN_READS | TN_VULKAN_WRITES,
                                 .size = 4 * count};
    return operand;
}

// The same memory for another use.
static inline tn_vulkan_operand operand_for(tn_vulkan_operand operand, uint16_t access)
{
    operand.access = access;
    return operand;
}

// kernel_launch.c
// A module of a table that is sorted by name; NULL: there is none of that name.
const tn_vulkan_module *module_find(const tn_vulkan_module *modules, uint32_t count,
                                    const char *name);
// Emits a launch.
tn_status kernel_launch(const tn_vulkan_plan *plan, struct kernel_launch *launch);

// plan_reduce.c
int32_t vk_logsumexp_accepts(const tn_kernel_query *query);
tn_status vk_plan_reduce(const tn_vulkan_plan *plan);
uint64_t vk_reduce_scratch(const tn_kernel_query *query);
// Sums `count` contiguous parts of `n` f32 each (f64 for an output of f64), at the
// beginning of the scratch memory, into output 0.
tn_status vk_plan_sum_parts(const tn_vulkan_plan *plan, uint64_t n, uint32_t count);

// plan_matmul.c
tn_status vk_plan_matmul(const tn_vulkan_plan *plan);
int32_t vk_matmul_accepts(const tn_kernel_query *query);
uint64_t vk_matmul_scratch(const tn_kernel_query *query); // plan_matmul_split.c

// plan_cross_entropy.c
int32_t vk_cross_entropy_accepts(const tn_kernel_query *query);
tn_status vk_plan_cross_entropy(const tn_vulkan_plan *plan);

// plan_index.c
tn_status vk_plan_take(const tn_vulkan_plan *plan);
tn_status vk_plan_scatter(const tn_vulkan_plan *plan);
int32_t vk_scatter_add_accepts(const tn_kernel_query *query);
uint64_t vk_scatter_scratch(const tn_kernel_query *query);

// plan_sort.c
// Indices `first` .. `first + count - 1` of input `input`, which is contiguous, along an
// axis of `extent`.
struct vk_indices {
    uint32_t input;
    uint64_t first, count, extent; // below 2^32
};
// Sorts the indices, in the step's scratch memory from its beginning on. *out_keys: `count`
// u32 in ascending order, each an index counted from the front, or `extent` for an index
// out of range. *out_positions: the positions of these keys among the indices, ascending
// for equal keys.
tn_status vk_plan_sort(const tn_vulkan_plan *plan, const struct vk_indices *indices,
                       tn_vulkan_operand *out_keys, tn_vulkan_operand *out_positions);
// Bytes of scratch memory for vk_plan_sort. UINT64_MAX: more than 64 bits can count.
uint64_t vk_sort_scratch(uint64_t count, uint64_t extent);

// plan_argsort.c
tn_status vk_plan_argsort(const tn_vulkan_plan *plan);
uint64_t vk_argsort_scratch(const tn_kernel_query *query);

// plan_cumulative.c
tn_status vk_plan_cumulative(const tn_vulkan_plan *plan);
uint64_t vk_cumulative_scratch(const tn_kernel_query *query);

// plan_copy.c
#define MAX_COPIED 16 // most bytes that an invocation of copy.comp or take.comp moves
// Copies input `from` to the elements of output 0 that `region` describes.
tn_status vk_plan_copy(const tn_vulkan_plan *plan, uint32_t from, const tn_layout *region);
tn_status vk_plan_concatenate(const tn_vulkan_plan *plan);
tn_status vk_plan_slice_update(const tn_vulkan_plan *plan);
tn_status vk_plan_dynamic_slice(const tn_vulkan_plan *plan);
tn_status vk_plan_dynamic_slice_update(const tn_vulkan_plan *plan);

// plan_conv.c
int32_t vk_conv_accepts(const tn_kernel_query *query);
tn_status vk_plan_conv2d(const tn_vulkan_plan *plan);
uint64_t vk_conv2d_scratch(const tn_kernel_query *query);
tn_status vk_plan_conv2d_input(const tn_vulkan_plan *plan);
tn_status vk_plan_conv2d_weight(const tn_vulkan_plan *plan);
uint64_t vk_conv2d_weight_scratch(const tn_kernel_query *query);

// plan_attention.c
tn_status vk_plan_attention(const tn_vulkan_plan *plan);
int32_t vk_attention_accepts(const tn_kernel_query *query);
uint64_t vk_attention_scratch(const tn_kernel_query *query);

// plan_cache.c
tn_status vk_plan_cached_attention(const tn_vulkan_plan *plan);
int32_t vk_cached_attention_accepts(const tn_kernel_query *query);
uint64_t vk_cached_attention_scratch(const tn_kernel_query *query);
tn_status vk_plan_cache_update(const tn_vulkan_plan *plan);
int32_t vk_cache_update_accepts(const tn_kernel_query *query);

// plan_attention_grad.c
tn_status vk_plan_attention_grad(const tn_vulkan_plan *plan);
int32_t vk_attention_grad_accepts(const tn_kernel_query *query);
uint64_t vk_attention_grad_scratch(const tn_kernel_query *query);

// plan_pool.c
tn_status vk_plan_max_pool2d(const tn_vulkan_plan *plan);

// plan_experts.c
int32_t vk_experts_matmul_accepts(const tn_kernel_query *query);
tn_status vk_plan_experts_matmul(const tn_vulkan_plan *plan);

// plan_quant.c
int32_t vk_dequantize_accepts(const tn_kernel_query *query);
int32_t vk_quantized_take_accepts(const tn_kernel_query *query);
int32_t vk_quantized_matmul_accepts(const tn_kernel_query *query);
uint64_t vk_quantized_matmul_scratch(const tn_kernel_query *query);
int32_t vk_quantized_pack_accepts(const tn_kernel_query *query);
tn_status vk_plan_quantized_pack(const tn_vulkan_plan *plan);
tn_status vk_plan_dequantize(const tn_vulkan_plan *plan);
tn_status vk_plan_quantized_take(const tn_vulkan_plan *plan);
tn_status vk_plan_quantized_matmul(const tn_vulkan_plan *plan);
int32_t vk_normed_matmul_accepts(const tn_kernel_query *query);
tn_status vk_plan_normed_matmul(const tn_vulkan_plan *plan);

#endif // VULKAN_DISPATCH_KERNELS_H
