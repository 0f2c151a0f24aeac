// SPDX-License-Identifier: MIT
// base.argsort/1: blocks of rows are sorted in shared memory, and runs merged in pairs
// until one is left (argsort.comp).
#include "../record.h"

#include <stdio.h>
#include <tenon/checked.h>
#include <tenon/ops/base_attrs.h>

#define BLOCK 1024

// The rows, and the layout of the scratch memory: keys and places, twice.
struct order {
    uint64_t rows, n, inner, blocks;
    uint32_t bits, key_bytes;
    uint64_t keys, places, bytes; // of an array of keys, of one of places, of all
};

// Fills *out. False: more bytes than 64 bits can count.
static bool describe(const tn_layout *x, const tn_sort_attrs *attrs, struct order *out)
{
    int32_t axis = tn_axis(attrs->axis, x->rank);
    struct order o = {.rows = 1, .inner = 1, .n = (uint64_t)x->extent[axis]};
    for (int32_t i = 0; i < x->rank; i++) {
        o.rows *= i == axis ? 1 : (uint64_t)x->extent[i];
        o.inner *= i > axis ? (uint64_t)x->extent[i] : 1;
    }
    o.blocks = ceil_div(o.n, BLOCK);
    o.bits = 8 * dtype_bytes(x->dtype);
    o.key_bytes = o.bits == 64 ? 8 : 4;
    uint64_t all = layout_count(x), keys, places, both;
    bool fits = tn_checked_multiply(all, o.key_bytes, &keys) &&
                tn_checked_round_up(keys, TN_VULKAN_ALIGNMENT, &o.keys) &&
                tn_checked_multiply(all, sizeof(uint32_t), &places) &&
                tn_checked_round_up(places, TN_VULKAN_ALIGNMENT, &o.places) &&
                tn_checked_add(o.keys, o.places, &both) &&
                tn_checked_multiply(both, 2, &o.bytes);
    *out = o;
    return fits;
}

static uint64_t argsort_scratch(const tn_kernel_query *query)
{
    struct order o;
    bool fits = describe(&query->inputs[0], query->attrs, &o);
    return !fits ? UINT64_MAX : o.blocks > 1 ? o.bytes : 0;
}

// Binds keys and places of buffer `which`, 0 or 1; `unused` where there is no scratch.
static void bind_pairs(struct kernel_launch *launch, const struct order *o, uint32_t which,
                       uint16_t access, tn_vulkan_operand unused)
{
    tn_vulkan_operand keys = unused, places = unused;
    if (o->blocks > 1) {
        uint64_t at = which * (o->keys + o->places);
        keys = tn_vulkan_scratch(at, o->keys, access);
        places = tn_vulkan_scratch(at + o->keys, o->places, access);
    }
    kernel_bind(launch, keys);
    kernel_bind(launch, places);
}

static void push_order(struct kernel_launch *launch, const tn_step *step,
                       const struct order *o, uint64_t width, bool is_last)
{
    const tn_layout *x = &tn_step_input(step, 0)->layout;
    kernel_push(launch, o->rows);
    kernel_push(launch, o->n);
    kernel_push(launch, o->inner);
    kernel_push(launch, o->blocks);
    kernel_push(launch, width);
    kernel_push(launch, (uint64_t)x->offset);
    kernel_push(launch, (uint64_t)tn_step_output(step, 0)->layout.offset);
    kernel_spec(launch, is_last);
}

// How elements become keys.
static void specify_keys(struct kernel_launch *launch, const tn_step *step)
{
    tn_dtype dtype = tn_step_input(step, 0)->layout.dtype;
    const tn_sort_attrs *attrs = step->attrs;
    static const uint32_t infinities[TN_NUM_DTYPES] = {[TN_F16] = 0x7c000000,
                                                       [TN_BF16] = 0x7f800000,
                                                       [TN_F32] = 0x7f800000,
                                                       [TN_F64] = 0x7ff00000};
    kernel_spec(launch, tn_is_float(dtype) ? 2 : tn_is_signed(dtype) ? 1 : 0);
    kernel_spec(launch, attrs->descending != 0);
    kernel_spec(launch, infinities[dtype]);
}

static tn_status plan_blocks(const tn_vulkan_plan *plan, const struct order *o)
{
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "argsort_block_%u", o->bits);
    tn_vulkan_operand out = tn_vulkan_output(0);
    struct kernel_launch launch = {.name = name, .groups = o->rows * o->blocks};
    kernel_bind(&launch, tn_vulkan_input(0));
    bind_pairs(&launch, o, 0, TN_VULKAN_WRITES, out);
    kernel_bind(&launch, out);
    push_order(&launch, plan->step, o, BLOCK, o->blocks == 1);
    specify_keys(&launch, plan->step);
    return kernel_launch(plan, &launch);
}

static tn_status plan_merge(const tn_vulkan_plan *plan, const struct order *o,
                            uint64_t width, uint32_t from)
{
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "argsort_merge_%u", 8 * o->key_bytes);
    tn_vulkan_operand out = tn_vulkan_output(0);
    struct kernel_launch launch = {.name = name, .groups = ceil_div(o->rows * o->n, 256)};
    bind_pairs(&launch, o, from, TN_VULKAN_READS, out);
    bind_pairs(&launch, o, 1 - from, TN_VULKAN_WRITES, out);
    kernel_bind(&launch, out);
    push_order(&launch, plan->step, o, width, 2 * width >= o->n);
    return kernel_launch(plan, &launch);
}

static tn_status argsort_plan(const tn_vulkan_plan *plan)
{
    const tn_layout *x = &tn_step_input(plan->step, 0)->layout;
    struct order o;
    if (layout_count(x) == 0)
        return TN_OK;
    if (!describe(x, plan->step->attrs, &o))
        return plan->host->fail(plan->host, TN_ERR_MEMORY,
                                "%llu elements are too many to be sorted",
                                (unsigned long long)layout_count(x));
    tn_status status = plan_blocks(plan, &o);
    uint32_t from = 0;
    for (uint64_t width = BLOCK; width < o.n && status == TN_OK; width *= 2) {
        status = plan_merge(plan, &o, width, from);
        from = 1 - from;
    }
    return status;
}

// --- records ---------------------------------------------------------------------------

OWN_KERNEL(argsort, "base.argsort/1", argsort_plan, KERNEL_OTHER, contiguous_rules,
           .scratch_size = argsort_scratch);
