// SPDX-License-Identifier: MIT
// Scatters of many indices that need not be sorted: sums of integers are the same in any
// order (scatter_atomic.comp), updates of a short vector are moved to where those of an
// element lie behind each other (scatter_split.comp), and of replacements the last one is
// found by its number (scatter_last.comp).
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

// --- updates of a short vector ---------------------------------------------------------

// The same constants as in scatter_split.comp.
#define SPLIT_TILE 8192
#define SPLIT_GROUP 128
#define SPLIT_MOST 1536 // elements: 8 words of shared memory each, 48 KiB

#define SPLIT_LEAST 65536   // updates: fewer are sorted as fast
#define SPLIT_PART 16777216 // updates that are moved at once: bounds the scratch memory

// The layout of the scratch memory: updates, keys of 16 bits, and counts.
struct scatter_split {
    uint64_t count, extent, tiles;
    uint64_t values, keys, counts; // bytes
};

static struct scatter_split split_of(const struct gather *g, tn_dtype dtype)
{
    const uint64_t align = TN_VULKAN_ALIGNMENT;
    struct scatter_split s = {.count = g->count < SPLIT_PART ? g->count : SPLIT_PART,
                              .extent = g->length};
    s.tiles = ceil_div(s.count, SPLIT_TILE);
    s.values = ceil_div(s.count * dtype_bytes(dtype), align) * align;
    s.keys = ceil_div(s.count * 2, align) * align;
    s.counts = 4 * ((s.tiles + 2) * s.extent + 1);
    return s;
}

bool vk_scatter_is_split(tn_dtype dtype, const struct gather *g)
{
    return tn_dtype_in(dtype, TN_FLOAT_DTYPES) && g->outer == 1 && g->inner == 1 &&
           g->count >= SPLIT_LEAST && g->count < MOST_UPDATES && g->length <= SPLIT_MOST;
}

uint64_t vk_scatter_split_scratch(tn_dtype dtype, const struct gather *g)
{
    struct scatter_split s = split_of(g, dtype);
    return s.values + s.keys + s.counts;
}

static tn_vulkan_operand scatter_plan_values_of(const struct scatter_split *s,
                                                uint16_t access)
{
    return tn_vulkan_scratch(0, s->values, access);
}
static tn_vulkan_operand scatter_plan_keys_of(const struct scatter_split *s,
                                              uint16_t access)
{
    return tn_vulkan_scratch(s->values, s->keys, access);
}
static tn_vulkan_operand scatter_plan_counts_of(const struct scatter_split *s,
                                                uint16_t access)
{
    return tn_vulkan_scratch(s->values + s->keys, s->counts, access);
}

// `words`: of shared memory for each element.
static tn_status plan_part(const tn_vulkan_plan *plan, const struct scatter_split *s,
                           uint64_t first, struct kernel_launch *launch, uint32_t words)
{
    const tn_step *step = plan->step;
    const tn_vulkan_limits *limits = plan->limits;
    const uint64_t push[] = {s->count,
                             first,
                             s->extent,
                             s->tiles,
                             s->tiles * s->extent,
                             (s->tiles + 1) * s->extent,
                             (uint64_t)tn_step_input(step, 1)->layout.offset,
                             (uint64_t)tn_step_input(step, 2)->layout.offset,
                             (uint64_t)tn_step_output(step, 0)->layout.offset};
    for (size_t i = 0; i < sizeof(push) / sizeof(push[0]); i++)
        kernel_push(launch, push[i]);
    // Few pipelines: for multiples of 128 elements.
    kernel_spec(launch, words * (uint32_t)ceil_div(s->extent, 128) * 128);
    // Where there are shuffles, subgroups have the size of the limits.
    kernel_spec(launch, limits->subgroup_size >= 32 &&
                            (limits->subgroup_operations & TN_VULKAN_SUBGROUP_SHUFFLE));
    return kernel_launch(plan, launch);
}

// Where the updates of each element go.
static tn_status plan_counts(const tn_vulkan_plan *plan, const struct scatter_split *s,
                             uint64_t first)
{
    const uint16_t both = TN_VULKAN_READS | TN_VULKAN_WRITES;
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "scatter_split_count_%s",
             dtype_glsl(tn_step_input(plan->step, 1)->layout.dtype));
    struct kernel_launch count = {.name = name, .groups = s->tiles};
    kernel_bind(&count, tn_vulkan_input(1));
    kernel_bind(&count, scatter_plan_keys_of(s, TN_VULKAN_WRITES));
    kernel_bind(&count, scatter_plan_counts_of(s, TN_VULKAN_WRITES));
    struct kernel_launch scan = {.name = "scatter_split_scan",
                                 .groups = ceil_div(s->extent, 16)};
    kernel_bind(&scan, scatter_plan_counts_of(s, both));
    struct kernel_launch bases = {.name = "scatter_split_bases", .groups = 1};
    kernel_bind(&bases, scatter_plan_counts_of(s, both));
    tn_status status = plan_part(plan, s, first, &count, 1);
    if (status == TN_OK)
        status = plan_part(plan, s, first, &scan, 1);
    return status ? status : plan_part(plan, s, first, &bases, 1);
}

static tn_status scatter_plan_values(const tn_vulkan_plan *plan,
                                     const struct scatter_split *s, uint64_t first)
{
    char name[VARIANT_NAME];
    tn_dtype dtype = tn_step_output(plan->step, 0)->layout.dtype;
    snprintf(name, sizeof(name), "scatter_split_write_%u", dtype_bytes(dtype));
    struct kernel_launch write = {.name = name, .groups = s->tiles};
    kernel_bind(&write, scatter_plan_keys_of(s, TN_VULKAN_READS));
    kernel_bind(&write, scatter_plan_counts_of(s, TN_VULKAN_READS));
    kernel_bind(&write, tn_vulkan_input(2));
    kernel_bind(&write, scatter_plan_values_of(s, TN_VULKAN_WRITES));
    tn_status status = plan_part(plan, s, first, &write, 8);
    if (status)
        return status;
    snprintf(name, sizeof(name), "scatter_split_sum_%s", dtype_glsl(dtype));
    struct kernel_launch sum = {.name = name, .groups = s->extent};
    kernel_bind(&sum, scatter_plan_counts_of(s, TN_VULKAN_READS));
    kernel_bind(&sum, scatter_plan_values_of(s, TN_VULKAN_READS));
    kernel_bind(&sum, operand_for(tn_vulkan_output(0), TN_VULKAN_READS | TN_VULKAN_WRITES));
    return plan_part(plan, s, first, &sum, 1);
}

bool vk_scatter_split_fits(const tn_vulkan_limits *limits, const struct gather *g)
{
    return ceil_div(g->length, 128) * 128 * 8 * 4 <= limits->max_shared;
}

tn_status vk_plan_scatter_split(const tn_vulkan_plan *plan, const struct gather *g)
{
    struct scatter_split s = split_of(g, tn_step_output(plan->step, 0)->layout.dtype);
    tn_status status = TN_OK;
    for (uint64_t first = 0; first < g->count && status == TN_OK; first += SPLIT_PART) {
        if (s.count > g->count - first) {
            s.count = g->count - first;
            s.tiles = ceil_div(s.count, SPLIT_TILE);
        }
        status = plan_counts(plan, &s, first);
        if (status == TN_OK)
            status = scatter_plan_values(plan, &s, first);
    }
    return status;
}

// --- replacements ----------------------------------------------------------------------

// The shaders go through all rows: there may be about 4 times as many of them as indices.
bool vk_scatter_is_last(const struct gather *g)
{
    return g->count > MANY && g->count < UINT32_MAX && g->length / 4 <= g->count;
}

uint64_t vk_scatter_last_scratch(const struct gather *g)
{
    return g->length * 4;
}

// `by`: elements that are moved as one.
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

// The most elements that move at once: rows, offsets and invocations are whole multiples.
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
