// SPDX-License-Identifier: MIT
// Attention of few rows (attention_few.comp): dtypes and layouts that it takes, and its
// workgroups. Those are small enough for each device of Vulkan.
#include "plan_attention.h"

#include <stdio.h>
#include <tenon/checked.h>

#define LINE_BYTES 16
#define BLOCK_LINE 8 // elements
#define MOST_ROWS 8  // of a workgroup
#define STEPS 4      // keys that a slot takes at a time
#define LEAST_LANES 4
#define MOST_LANES 64
#define ENOUGH 65536   // invocations for a large device
#define LEAST_SPLIT 32 // keys
#define MOST_SPLITS 32
#define PARTS_BINDING 6
#define COUNTER_PITCH 32 // words: counters have cache lines of their own
#define MOST_SUMS 640    // vectors of sums that slots exchange in the end at a time
#define DIRECT_TILES 2   // keys of at most this many tiles are one split

static uint64_t attention_few_plan_columns_of(const struct vk_attention *a)
{
    return a->depth > a->width ? a->depth : a->width;
}

// Elements that an invocation has of a row.
static uint64_t attention_few_plan_line_of(const struct vk_attention *a)
{
    return a->is_blocks ? BLOCK_LINE : LINE_BYTES / (uint64_t)tn_dtype_bytes(a->q->dtype);
}

bool vk_attention_is_few(const struct vk_attention *a)
{
    uint64_t rows = vk_attention_rows(a), line = attention_few_plan_line_of(a);
    uint64_t of_keys = a->is_blocks ? 2 : line; // bytes
    return rows > 0 && rows <= VK_ATTENTION_FEW && a->keys > 0 && a->depth > 0 &&
           a->width > 0 && attention_few_plan_columns_of(a) <= MOST_LANES * line &&
           vk_attention_by_lines(a->q, line) && vk_attention_by_lines(a->k, of_keys) &&
           vk_attention_by_lines(a->v, of_keys);
}

// Invocations of a workgroup: with more rows fewer, as shared memory has their products.
static uint32_t group_of(uint64_t rows)
{
    return rows > MOST_ROWS / 2 ? 64 : 128;
}

// Invocations that have a row.
static uint32_t attention_few_plan_lanes_of(const struct vk_attention *a)
{
    uint32_t lanes = LEAST_LANES;
    while (lanes * attention_few_plan_line_of(a) < attention_few_plan_columns_of(a))
        lanes *= 2;
    return lanes;
}

// Workgroups of `rows` rows that take keys once each, without splits.
static uint64_t groups_of(const struct vk_attention *a, uint64_t rows)
{
    return ceil_div(vk_attention_rows(a), rows) * a->groups * a->batches;
}

// Rows of a workgroup. The fewer there are the sooner each is done, and the more workgroups
// read the same keys: few rows where a large device runs all workgroups at once.
static uint64_t attention_few_plan_rows_of(const struct vk_attention *a)
{
    uint64_t rows = 1, lines = a->keys * attention_few_plan_lanes_of(a) / STEPS;
    while (rows < MOST_ROWS && rows < vk_attention_rows(a) &&
           tn_saturated_multiply(groups_of(a, rows), lines) > ENOUGH)
        rows *= 2;
    return ceil_div(vk_attention_rows(a), ceil_div(vk_attention_rows(a), rows));
}

uint64_t vk_attention_few_splits(const struct vk_attention *a)
{
    uint64_t rows = attention_few_plan_rows_of(a), most = a->keys / LEAST_SPLIT;
    uint64_t alone = groups_of(a, rows) * group_of(rows); // invocations
    uint64_t wanted = alone < ENOUGH / 2 ? ceil_div(ENOUGH, alone) : 1;
    most = most < MOST_SPLITS ? most : MOST_SPLITS;
    wanted = wanted < most ? wanted : most;
    return wanted > 1 ? wanted : 1;
}

// Vectors of the rows of q, and of a row of keys and one of values, which lie in the memory
// of products until products are computed.
_Static_assert((MOST_ROWS + 2) * VK_ATTENTION_COLUMNS / 4 <= MOST_SUMS, "they have room");
static uint64_t of_new_rows(const struct vk_attention *a)
{
    return (attention_few_plan_rows_of(a) + 2) * attention_few_plan_lanes_of(a) *
           (attention_few_plan_line_of(a) / 4);
}

bool vk_attention_may_append(const struct vk_attention *a)
{
    return a->batches == 1 && a->queries == 1 && !a->mask && vk_attention_is_few(a) &&
           vk_attention_by_vectors(a);
}

// The constants of attention_few.comp, in the order of their ids.
struct attention_few_plan_constants {
    uint32_t group, rows, lanes, q_size, own, p_pitch, slot_pitch, p_size, s_size,
        by_subgroup, combines, at_once, direct_tiles;
};
#define NUM_CONSTANTS (sizeof(struct attention_few_plan_constants) / sizeof(uint32_t))

static struct attention_few_plan_constants
attention_few_plan_constants_of(const tn_vulkan_limits *limits,
                                const struct vk_attention *a)
{
    uint32_t rows = (uint32_t)attention_few_plan_rows_of(a);
    uint32_t lanes = attention_few_plan_lanes_of(a);
    struct attention_few_plan_constants c = {
        .group = group_of(rows),
        .rows = rows,
        .lanes = lanes,
        .q_size = rows * (uint32_t)(attention_few_plan_line_of(a) / 4),
        .own = (uint32_t)ceil_div(STEPS * rows, lanes),
        .p_pitch = lanes / 4 + (lanes > LEAST_LANES)};
    // Slots of a subgroup begin at different ones of the 8 vectors that banks have.
    c.slot_pitch = STEPS * rows * c.p_pitch;
    while (lanes < 32 && c.slot_pitch % 8 != lanes / 4)
        c.slot_pitch++;
    c.s_size = c.group / lanes * rows;
    c.p_size = c.group / lanes * c.slot_pitch;
    uint32_t of_row = c.group * c.q_size / rows; // sums in the end
    c.at_once = MOST_SUMS / of_row < 1 ? 1 : MOST_SUMS / of_row;
    c.at_once = c.at_once < rows ? c.at_once : rows;
    if (c.p_size < c.at_once * of_row)
        c.p_size = c.at_once * of_row;
    if (a->new_k && c.p_size < of_new_rows(a))
        c.p_size = (uint32_t)of_new_rows(a);
    c.direct_tiles = DIRECT_TILES;
    c.by_subgroup = limits->subgroup_size >= lanes && c.group % limits->subgroup_size == 0;
    return c;
}

bool vk_attention_few_combines(const tn_vulkan_plan *plan, const struct vk_attention *a)
{
    return a->splits > 1 && plan->flags & KERNEL_PLAN_OWN;
}

// Memory for a binding that the shader does not access. An output that passes through a
// program may be bound only where it is written.
static tn_vulkan_operand attention_few_plan_unused(const tn_vulkan_plan *plan)
{
    return plan->flags & KERNEL_PLAN_OWN ? kernel_counters(1) : tn_vulkan_output(0);
}

tn_status vk_attention_launch_few(const tn_vulkan_plan *plan, const struct vk_attention *a)
{
    const tn_layout *out = &tn_step_output(plan->step, 0)->layout;
    char name[VARIANT_NAME];
    struct kernel_launch launch = {.name = name};
    uint32_t batches[VK_ATTENTION_AXES * VK_ATTENTION_AXIS], values[NUM_CONSTANTS];
    struct attention_few_plan_constants constants =
        attention_few_plan_constants_of(plan->limits, a);
    uint64_t workgroups = groups_of(a, constants.rows); // of each split
    constants.combines = vk_attention_few_combines(plan, a);
    snprintf(name, sizeof(name), "attention_%s_%s", a->new_k ? "append" : "few",
             a->is_blocks ? "q8_0" : dtype_glsl(out->dtype));
    vk_attention_batches(a, batches);
    memcpy(values, &constants, sizeof(values));
    for (uint32_t i = 0; i < NUM_CONSTANTS; i++)
        kernel_spec(&launch, values[i]);
    vk_attention_bind(&launch, a, batches);
    if (a->splits == 1)
        launch.operands[PARTS_BINDING] = attention_few_plan_unused(plan);
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_bind(&launch, constants.combines ? kernel_counters(workgroups * COUNTER_PITCH)
                                            : attention_few_plan_unused(plan));
    if (a->new_k)
        kernel_bind(&launch, tn_vulkan_input(VK_ATTENTION_START));
    vk_attention_push(&launch, a, out);
    kernel_push(&launch, a->groups * a->batches);
    launch.groups = workgroups * a->splits;
    return kernel_launch(plan, &launch);
}
