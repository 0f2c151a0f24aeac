// SPDX-License-Identifier: MIT
// Shared by the launch plans of attention and its derivative: the operands, and the push
// constants of the shaders (attention.glsl).
#ifndef KERNELS_VULKAN_ATTENTION_PLAN_ATTENTION_H
#define KERNELS_VULKAN_ATTENTION_PLAN_ATTENTION_H

#include <tenon/ops/nn_attrs.h>
#include "../launch.h"

#define VK_ATTENTION_COLUMNS 256 // most columns of values, and of sums
#define VK_ATTENTION_FEW 32      // rows that share keys; so few have own kernels
#define VK_ATTENTION_AXES (TN_MAX_RANK - 3u) // of batches
#define VK_ATTENTION_AXIS 5ull // words of an axis: its extent, strides of q, k, v and mask
#define VK_VECTOR 16           // bytes of four floats

struct vk_attention {
    const tn_layout *q, *k, *v, *mask, *lengths; // NULL: not given
    uint64_t batches, groups, heads, queries, keys, depth, width;
    uint32_t num_batch; // axes
    uint64_t splits;    // of the keys of a row; 1: one launch
    // Slots of caches that sequences share (plan_cache.c). NULL: not given.
    const tn_layout *slots;
    uint32_t mask_input, lengths_input, slots_input; // positions among the step's inputs
    const tn_layout *sinks; // a score more for each head: input 3. NULL: not given
    bool is_blocks;         // k and v are blocks of q8_0, and have bytes
    // Rows that the launch writes to k and v, and the number of the position
    // (APPENDS). NULL: it writes none.
    const tn_layout *new_k, *new_v, *start;
    const tn_attention_attrs *attrs;
};

// Rows of q that share keys.
static inline uint64_t vk_attention_rows(const struct vk_attention *a)
{
    return a->heads * a->queries;
}

// Inputs of a step that writes rows to its k and v, which are its outputs 1 and 2, too.
enum {
    VK_ATTENTION_NEW_K = 5,
    VK_ATTENTION_NEW_V,
    VK_ATTENTION_START,
    VK_ATTENTION_APPENDS // number of inputs
};

// The computation of a step of nn.scaled_dot_product_attention/1.
struct vk_attention vk_attention_of(const tn_step *step);
// in: q, k, v, and the mask and lengths, or NULL. One split.
struct vk_attention vk_attention_describe(const tn_layout *const in[5]);
// Chooses the splits of the keys.
void vk_attention_divide(struct vk_attention *a);
// Bytes that the sums of all splits take.
uint64_t vk_attention_sums(const struct vk_attention *a);
tn_status vk_attention_plan(const tn_vulkan_plan *plan, const struct vk_attention *a);
bool vk_attention_is_taken(const struct vk_attention *a, const tn_attention_attrs *attrs);
// Whether q, k and v are read by fours, and rows of outputs have a multiple of four.
bool vk_attention_by_vectors(const struct vk_attention *a);
// Whether rows of x begin with whole lines of `elements`, and have whole lines side by
// side.
bool vk_attention_by_lines(const tn_layout *x, uint64_t elements);

// Operands of attention_few.comp, which a device may not have room for.
#define VK_ATTENTION_FEW_OPERANDS 10
#define VK_ATTENTION_APPEND_OPERANDS 11
// Whether attention_few.comp takes the layouts, and the splits of the keys for it.
bool vk_attention_is_few(const struct vk_attention *a);
uint64_t vk_attention_few_splits(const struct vk_attention *a);
// Whether attention_few.comp may write rows to k and v, too: of one query, without a mask.
bool vk_attention_may_append(const struct vk_attention *a);
tn_status vk_attention_launch_few(const tn_vulkan_plan *plan, const struct vk_attention *a);
// Whether vk_attention_launch_few()'s launch combines all splits itself: the workgroup that
// is the last one to be done with its split does.
bool vk_attention_few_combines(const tn_vulkan_plan *plan, const struct vk_attention *a);

// Tiles on cooperative matrices: the most columns, rows of a workgroup, which has two
// invocations for each, and bytes of shared memory.
#define VK_MATRIX_LINE 8 // 16-bit floats
struct vk_matrix_tile {
    uint32_t columns, rows, shared;
};
// Chooses between tiles for fewer and for more columns. NULL: it runs without cooperative
// matrices.
const struct vk_matrix_tile *
vk_attention_choose_matrix(const tn_vulkan_limits *limits, const struct vk_attention *a,
                           const struct vk_matrix_tile tiles[2]);

// Binds the operands of the kernels of attention. Inputs that were not given are bound to
// q: no shader reads them.
void vk_attention_bind(struct kernel_launch *launch, const struct vk_attention *a,
                       const uint32_t *batches);
void vk_attention_push(struct kernel_launch *launch, const struct vk_attention *a,
                       const tn_layout *out);

// Push constants: of q, k, v and mask where each begins, and its strides; from the lengths
// to the soft cap.
void vk_attention_push_matrices(struct kernel_launch *launch, const struct vk_attention *a);
void vk_attention_push_options(struct kernel_launch *launch, const struct vk_attention *a,
                               const tn_attention_attrs *attrs);
// VK_ATTENTION_AXIS words for each axis of batches.
void vk_attention_batches(const struct vk_attention *a, uint32_t *out);

#endif // KERNELS_VULKAN_ATTENTION_PLAN_ATTENTION_H
