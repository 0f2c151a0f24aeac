// SPDX-License-Identifier: MIT
// base.argsort/1: by digits (radix.h); or, where there is little to sort, blocks of rows
// are sorted in shared memory, and runs merged in pairs until one is left (argsort.comp).
#include "../record.h"
#include "radix.h"

#include <stdio.h>
#include <tenon/checked.h>

#define BLOCK 1024

bool vk_order_measure(struct vk_order *o)
{
    o->blocks = ceil_div(o->n, BLOCK);
    o->bits = 8 * dtype_bytes(o->dtype);
    o->key_bytes = o->bits == 64 ? 8 : 4;
    uint64_t all, keys, positions, both;
    return tn_checked_multiply(o->rows, o->n, &all) &&
           tn_checked_multiply(all, o->key_bytes, &keys) &&
           tn_checked_round_up(keys, TN_VULKAN_ALIGNMENT, &o->keys) &&
           tn_checked_multiply(all, sizeof(uint32_t), &positions) &&
           tn_checked_round_up(positions, TN_VULKAN_ALIGNMENT, &o->positions) &&
           tn_checked_add(o->keys, o->positions, &both) &&
           tn_checked_multiply(both, 2, &o->bytes);
}

bool vk_order_describe(const tn_layout *x, const tn_sort_attrs *attrs, struct vk_order *out)
{
    int32_t axis = tn_axis(attrs->axis, x->rank);
    *out = (struct vk_order){.rows = 1,
                             .inner = 1,
                             .n = (uint64_t)x->extent[axis],
                             .dtype = x->dtype,
                             .descending = attrs->descending != 0};
    for (int32_t i = 0; i < x->rank; i++) {
        out->rows *= i == axis ? 1 : (uint64_t)x->extent[i];
        out->inner *= i > axis ? (uint64_t)x->extent[i] : 1;
    }
    return vk_order_measure(out);
}

static uint64_t argsort_scratch(const tn_kernel_query *query)
{
    struct vk_order o;
    if (!vk_order_describe(&query->inputs[0], query->attrs, &o))
        return UINT64_MAX;
    if (vk_radix_suits(&o))
        return vk_radix_scratch(&o, true);
    return o.blocks > 1 ? o.bytes : 0;
}

tn_vulkan_operand vk_order_pairs(const struct vk_order *o, uint32_t which, bool is_key,
                                 uint16_t access)
{
    uint64_t at = o->begin + which * (o->keys + o->positions);
    return is_key ? tn_vulkan_scratch(at, o->keys, access)
                  : tn_vulkan_scratch(at + o->keys, o->positions, access);
}

// Binds keys and positions of buffer `which`; `unused` where there are none.
static void bind_pairs(struct kernel_launch *launch, const struct vk_order *o,
                       bool has_pairs, uint32_t which, tn_vulkan_operand unused)
{
    for (int i = 0; i < 2; i++)
        kernel_bind(launch,
                    has_pairs ? vk_order_pairs(o, which, i == 0, unused.access) : unused);
}

static void push_order(struct kernel_launch *launch, const tn_step *step,
                       const struct vk_order *o, uint64_t width, bool is_last)
{
    const tn_layout *x = &tn_step_input(step, 0)->layout;
    kernel_push(launch, o->rows);
    kernel_push(launch, o->n);
    kernel_push(launch, o->inner);
    kernel_push(launch, o->blocks);
    kernel_push(launch, width);
    kernel_push(launch, (uint64_t)x->offset);
    kernel_push(launch, (uint64_t)tn_step_output(step, o->output)->layout.offset);
    kernel_spec(launch, is_last);
}

void vk_order_specify(struct kernel_launch *launch, tn_dtype dtype, bool descending)
{
    static const uint32_t infinities[TN_NUM_DTYPES] = {[TN_F16] = 0x7c000000,
                                                       [TN_BF16] = 0x7f800000,
                                                       [TN_F32] = 0x7f800000,
                                                       [TN_F64] = 0x7ff00000};
    kernel_spec(launch, tn_is_float(dtype) ? 2 : tn_is_signed(dtype) ? 1 : 0);
    kernel_spec(launch, descending);
    kernel_spec(launch, infinities[dtype]);
}

static tn_status plan_blocks(const tn_vulkan_plan *plan, const struct vk_order *o)
{
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "argsort_block_%u", o->bits);
    tn_vulkan_operand out = tn_vulkan_output(o->output);
    struct kernel_launch launch = {.name = name, .groups = o->rows * o->blocks};
    kernel_bind(&launch, tn_vulkan_input(0));
    bind_pairs(&launch, o, o->blocks > 1, 0, out);
    kernel_bind(&launch, out);
    bind_pairs(&launch, o, o->from_pairs, 1, tn_vulkan_input(0));
    push_order(&launch, plan->step, o, BLOCK, o->blocks == 1);
    vk_order_specify(&launch, o->dtype, o->descending);
    kernel_spec(&launch, o->from_pairs);
    return kernel_launch(plan, &launch);
}

static tn_status plan_merge(const tn_vulkan_plan *plan, const struct vk_order *o,
                            uint64_t width, uint32_t from)
{
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "argsort_merge_%u", 8 * o->key_bytes);
    tn_vulkan_operand out = tn_vulkan_output(o->output), in = out;
    struct kernel_launch launch = {.name = name, .groups = ceil_div(o->rows * o->n, 256)};
    in.access = TN_VULKAN_READS;
    bind_pairs(&launch, o, true, from, in);
    bind_pairs(&launch, o, true, 1 - from, out);
    kernel_bind(&launch, out);
    push_order(&launch, plan->step, o, width, 2 * width >= o->n);
    return kernel_launch(plan, &launch);
}

tn_status vk_plan_order(const tn_vulkan_plan *plan, const struct vk_order *o)
{
    tn_status status = plan_blocks(plan, o);
    uint32_t from = 0;
    for (uint64_t width = BLOCK; width < o->n && status == TN_OK; width *= 2) {
        status = plan_merge(plan, o, width, from);
        from = 1 - from;
    }
    return status;
}

static tn_status argsort_plan(const tn_vulkan_plan *plan)
{
    const tn_layout *x = &tn_step_input(plan->step, 0)->layout;
    struct vk_order o;
    if (layout_count(x) == 0)
        return TN_OK;
    if (!vk_order_describe(x, plan->step->attrs, &o))
        return plan->host->fail(plan->host, TN_ERR_MEMORY,
                                "%llu elements are too many to be sorted",
                                (unsigned long long)layout_count(x));
    return vk_radix_suits(&o) ? vk_plan_radix(plan, &o, true) : vk_plan_order(plan, &o);
}

// --- records ---------------------------------------------------------------------------

OWN_KERNEL(argsort, "base.argsort/1", argsort_plan, KERNEL_OTHER, contiguous_rules,
           .scratch_size = argsort_scratch);
