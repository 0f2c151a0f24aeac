// SPDX-License-Identifier: MIT
// Scatters of many indices that need not be sorted: sums of integers are the same in any
// order (scatter_atomic.comp), and of replacements the last one is found by its number
// (scatter_last.comp).
#include "../record.h"
#include "plan_index.h"

#include <stdio.h>

#define MANY 1024 // more indices are sorted by digits, in several passes
#define MOST_UPDATES (UINT32_C(1) << 31)

// --- sums of integers ------------------------------------------------------------------

// The same constants as in scatter_atomic.comp.
#define GROUP 256
#define AT_ONCE 4
#define LEAST_PART 4096  // updates of a workgroup that sums in shared memory first
#define PARTS 1024       // workgroups that keep a device busy
#define SHARED_STEP 4096 // words of shared memory: 16 KiB, which each device has
#define MOST_SHARED (3 * SHARED_STEP)
#define MOST_COPIES 32

bool vk_scatter_is_atomic(tn_dtype dtype, const struct gather *g)
{
    const uint32_t words = TN_DTYPE_BIT(TN_I32) | TN_DTYPE_BIT(TN_U32) |
                           TN_DTYPE_BIT(TN_I64) | TN_DTYPE_BIT(TN_U64);
    return tn_dtype_in(dtype, words) && g->count > MANY &&
           g->outer * g->count * g->inner < MOST_UPDATES;
}

tn_status vk_plan_scatter_atomic(const tn_vulkan_plan *plan, const struct gather *g)
{
    const tn_step *step = plan->step;
    const tn_layout *out = &tn_step_output(step, 0)->layout;
    uint64_t n = g->outer * g->count * g->inner;
    uint64_t bins = g->length * dtype_bytes(out->dtype) / 4;
    uint64_t words = ceil_div(bins, SHARED_STEP) * SHARED_STEP, copies = 1;
    bool staged = g->outer == 1 && g->inner == 1 && words <= MOST_SHARED &&
                  words * 4 <= plan->limits->max_shared;
    uint64_t part = GROUP * AT_ONCE;
    if (staged) {
        part = ceil_div(ceil_div(n, PARTS), part) * part;
        part = part < LEAST_PART ? LEAST_PART : part;
    }
    while (staged && copies < MOST_COPIES && 2 * copies * bins <= words)
        copies *= 2;
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "scatter_atomic_u%u_%s", 8 * dtype_bytes(out->dtype),
             dtype_glsl(tn_step_input(step, 1)->layout.dtype));
    struct kernel_launch launch = {.name = name, .groups = ceil_div(n, part)};
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_bind(&launch, tn_vulkan_input(2));
    kernel_bind(&launch,
                operand_for(tn_vulkan_output(0), TN_VULKAN_READS | TN_VULKAN_WRITES));
    const uint64_t push[] = {n,
                             g->length,
                             g->count,
                             g->inner,
                             (uint64_t)tn_step_input(step, 1)->layout.offset,
                             (uint64_t)tn_step_input(step, 2)->layout.offset,
                             (uint64_t)out->offset,
                             launch.groups,
                             part,
                             copies};
    for (size_t i = 0; i < sizeof(push) / sizeof(push[0]); i++)
        kernel_push(&launch, push[i]);
    kernel_spec(&launch, staged);
    kernel_spec(&launch, staged ? (uint32_t)words : 1);
    return kernel_launch(plan, &launch);
}

// --- replacements ----------------------------------------------------------------------

// Rows are looked through: there may be some more of them than indices.
bool vk_scatter_is_last(const struct gather *g)
{
    return g->count > MANY && g->count < UINT32_MAX && g->length / 4 <= g->count;
}

uint64_t vk_scatter_last_scratch(const struct gather *g)
{
    return g->length * 4;
}

// `by`: what the elements are divided by, as they move in larger ones.
static tn_status plan_last(const tn_vulkan_plan *plan, const struct gather *g,
                           struct kernel_launch *launch, uint64_t n, uint64_t by)
{
    const tn_step *step = plan->step;
    const uint64_t push[] = {n,
                             g->length,
                             g->count,
                             g->inner / by,
                             (uint64_t)tn_step_input(step, 1)->layout.offset,
                             (uint64_t)tn_step_input(step, 0)->layout.offset / by,
                             (uint64_t)tn_step_input(step, 2)->layout.offset / by,
                             (uint64_t)tn_step_output(step, 0)->layout.offset / by};
    for (size_t i = 0; i < sizeof(push) / sizeof(push[0]); i++)
        kernel_push(launch, push[i]);
    kernel_spec(launch, plan->shares(plan, 0, 0) != 0);
    launch->groups = ceil_div(n, GROUP);
    return kernel_launch(plan, launch);
}

#define MOST_MOVED 16 // bytes

// So many elements that rows, offsets and invocations are whole multiples of move at once.
static uint64_t moved_at_once(const tn_step *step, const struct gather *g)
{
    uint64_t by = 1, all = g->inner;
    for (uint32_t i = 0; i < 3; i++) {
        const tn_value *value =
            i < 2 ? tn_step_input(step, 2 * i) : tn_step_output(step, 0);
        all |= (uint64_t)value->layout.offset;
        if (passes_program(value))
            return 1;
    }
    uint32_t bytes = dtype_bytes(tn_step_output(step, 0)->layout.dtype);
    while (bytes * by < MOST_MOVED && (all & by) == 0)
        by *= 2;
    return by;
}

tn_status vk_plan_scatter_last(const tn_vulkan_plan *plan, const struct gather *g)
{
    const tn_step *step = plan->step;
    uint64_t size = vk_scatter_last_scratch(g), by = moved_at_once(step, g);
    char name[VARIANT_NAME];
    struct kernel_launch clear = {.name = "scatter_last_clear"};
    kernel_bind(&clear, tn_vulkan_scratch(0, size, TN_VULKAN_WRITES));
    tn_status status = plan_last(plan, g, &clear, g->length, 1);
    if (status)
        return status;
    snprintf(name, sizeof(name), "scatter_last_mark_%s",
             dtype_glsl(tn_step_input(step, 1)->layout.dtype));
    struct kernel_launch mark = {.name = name};
    kernel_bind(&mark, tn_vulkan_input(1));
    kernel_bind(&mark, tn_vulkan_scratch(0, size, TN_VULKAN_READS | TN_VULKAN_WRITES));
    status = plan_last(plan, g, &mark, g->count, 1);
    if (status)
        return status;
    snprintf(name, sizeof(name), "scatter_last_put_%u",
             (uint32_t)by * dtype_bytes(tn_step_output(step, 0)->layout.dtype));
    struct kernel_launch put = {.name = name};
    kernel_bind(&put, tn_vulkan_input(0));
    kernel_bind(&put, tn_vulkan_scratch(0, size, TN_VULKAN_READS));
    kernel_bind(&put, tn_vulkan_input(2));
    kernel_bind(&put, tn_vulkan_output(0));
    return plan_last(plan, g, &put, g->outer * g->length * g->inner / by, by);
}
