// SPDX-License-Identifier: MIT
// base.nonzero/1 of a mask, and base.boolean_mask/1: the mask's bits and how many there are
// in each tile, sums of these, the numbers of true elements, and from these the indices or
// rows (compact.comp).
#include "../record.h"

#include <stdio.h>
#include <tenon/checked.h>
#include <tenon/ops/base_attrs.h>

// The same constants as in compact.comp.
#define GROUP 256
#define TILE 4096
#define TILE_BYTES (TILE / 8)

#define MOST (UINT32_C(1) << 31) // elements of the mask, and of the result

// Scratch memory has the bits, the counts with their sum, and the numbers.
struct compaction {
    uint64_t n, size, inner; // elements of the mask; most that are kept; elements of a row
    uint64_t tiles;
    uint64_t bits, counts, positions; // bytes
    uint32_t mask, count;             // numbers of the input and the output
};

static struct compaction compact_plan_describe(const tn_layout *x, const tn_layout *mask,
                                               int64_t size)
{
    struct compaction c = {.n = layout_count(mask), .size = (uint64_t)size, .inner = 1};
    for (int32_t i = mask->rank; i < x->rank; i++)
        c.inner *= (uint64_t)x->extent[i];
    c.tiles = ceil_div(c.n, TILE);
    uint64_t found = c.size < c.n ? c.size : c.n;
    c.bits = c.tiles * TILE_BYTES;
    c.counts = ceil_div(4 * (c.tiles + 1), TN_VULKAN_ALIGNMENT) * TN_VULKAN_ALIGNMENT;
    c.positions = 4 * found;
    return c;
}

// Whether these shaders take it: other steps are computed by the decomposition.
static bool compact_plan_suits(const struct compaction *c)
{
    uint64_t moved;
    return c->n > 0 && c->n < MOST && c->size > 0 && c->inner > 0 &&
           tn_checked_multiply(c->size, c->inner, &moved) && moved < MOST;
}

static tn_vulkan_operand compact_plan_bits_of(const struct compaction *c, uint16_t access)
{
    return tn_vulkan_scratch(0, c->bits, access);
}
static tn_vulkan_operand compact_plan_counts_of(const struct compaction *c, uint16_t access)
{
    return tn_vulkan_scratch(c->bits, c->counts, access);
}
static tn_vulkan_operand compact_plan_positions_of(const struct compaction *c,
                                                   uint16_t access)
{
    return tn_vulkan_scratch(c->bits + c->counts, c->positions, access);
}

// --- launches --------------------------------------------------------------------------

struct compact_last {
    uint64_t inner, extent, in_offset, out_offset;
    uint32_t fill[4];
};

static tn_status plan_launch_of(const tn_vulkan_plan *plan, const struct compaction *c,
                                struct kernel_launch *launch,
                                const struct compact_last *last)
{
    kernel_push(launch, c->n);
    kernel_push(launch, c->tiles);
    kernel_push(launch, c->size);
    kernel_push(launch, last->inner);
    kernel_push(launch, last->extent);
    kernel_push(launch, last->in_offset);
    kernel_push(launch, last->out_offset);
    for (int i = 0; i < 4; i++)
        kernel_push(launch, last->fill[i]);
    return kernel_launch(plan, launch);
}

// Whether to use ballots: only a device with shuffles, or in software, has subgroups of the
// size that limits tell.
static bool has_ballots(const tn_vulkan_limits *limits)
{
    return limits->subgroup_operations & TN_VULKAN_SUBGROUP_BALLOT &&
           (limits->subgroup_operations & TN_VULKAN_SUBGROUP_SHUFFLE ||
            limits->features & TN_VULKAN_IS_SOFTWARE);
}

// The numbers of the mask's true elements, and how many there are.
static tn_status plan_positions(const tn_vulkan_plan *plan, const struct compaction *c)
{
    const tn_step *step = plan->step;
    struct compact_last last = {
        .in_offset = (uint64_t)tn_step_input(step, c->mask)->layout.offset,
        .out_offset = (uint64_t)tn_step_output(step, c->count)->layout.offset};
    struct kernel_launch mark = {.name = has_ballots(plan->limits) ? "compact_mark_ballot"
                                                                   : "compact_mark",
                                 .groups = c->tiles};
    kernel_bind(&mark, tn_vulkan_input(c->mask));
    kernel_bind(&mark, compact_plan_bits_of(c, TN_VULKAN_WRITES));
    kernel_bind(&mark, compact_plan_counts_of(c, TN_VULKAN_WRITES));
    struct kernel_launch scan = {.name = "compact_scan", .groups = 1};
    kernel_bind(&scan, compact_plan_counts_of(c, TN_VULKAN_READS | TN_VULKAN_WRITES));
    kernel_bind(&scan, tn_vulkan_output(c->count));
    struct kernel_launch write = {.name = "compact_write", .groups = c->tiles};
    kernel_bind(&write, compact_plan_bits_of(c, TN_VULKAN_READS));
    kernel_bind(&write, compact_plan_counts_of(c, TN_VULKAN_READS));
    kernel_bind(&write, compact_plan_positions_of(c, TN_VULKAN_WRITES));
    tn_status status = plan_launch_of(plan, c, &mark, &last);
    if (status == TN_OK)
        status = plan_launch_of(plan, c, &scan, &last);
    return status ? status : plan_launch_of(plan, c, &write, &last);
}

// Binds what the last launches read.
static void bind_positions(struct kernel_launch *launch, const struct compaction *c)
{
    kernel_bind(launch, compact_plan_positions_of(c, TN_VULKAN_READS));
    kernel_bind(launch, compact_plan_counts_of(c, TN_VULKAN_READS));
}

// --- nonzero ---------------------------------------------------------------------------

static struct compaction describe_nonzero(const tn_layout *x, const tn_bounded_attrs *attrs)
{
    struct compaction c = compact_plan_describe(x, x, attrs->size);
    c.count = (uint32_t)x->rank;
    return c;
}

static int32_t nonzero_accepts(const tn_kernel_query *query)
{
    struct compaction c = describe_nonzero(&query->inputs[0], query->attrs);
    return compact_plan_suits(&c);
}

static uint64_t nonzero_scratch(const tn_kernel_query *query)
{
    struct compaction c = describe_nonzero(&query->inputs[0], query->attrs);
    return c.bits + c.counts + c.positions;
}

static tn_status nonzero_plan(const tn_vulkan_plan *plan)
{
    const tn_layout *x = &tn_step_input(plan->step, 0)->layout;
    const tn_bounded_attrs *attrs = plan->step->attrs;
    struct compaction c = describe_nonzero(x, attrs);
    const uint64_t fill = (uint64_t)(int64_t)attrs->fill_value;
    struct compact_last last = {.inner = 1,
                                .fill = {(uint32_t)fill, (uint32_t)(fill >> 32)}};
    tn_status status = plan_positions(plan, &c);
    for (int32_t axis = x->rank - 1; axis >= 0 && status == TN_OK; axis--) {
        struct kernel_launch launch = {.name = "compact_indices",
                                       .groups = ceil_div(c.size, GROUP)};
        bind_positions(&launch, &c);
        kernel_bind(&launch, tn_vulkan_output((uint32_t)axis));
        last.extent = (uint64_t)x->extent[axis];
        last.out_offset =
            (uint64_t)tn_step_output(plan->step, (uint32_t)axis)->layout.offset;
        status = plan_launch_of(plan, &c, &launch, &last);
        last.inner *= last.extent;
    }
    return status;
}

// --- boolean_mask ----------------------------------------------------------------------

static struct compaction describe_mask(const tn_layout *x, const tn_layout *mask,
                                       const tn_bounded_attrs *attrs)
{
    struct compaction c = compact_plan_describe(x, mask, attrs->size);
    c.mask = c.count = 1;
    return c;
}

static int32_t boolean_mask_accepts(const tn_kernel_query *query)
{
    struct compaction c = describe_mask(&query->inputs[0], &query->inputs[1], query->attrs);
    return compact_plan_suits(&c);
}

static uint64_t boolean_mask_scratch(const tn_kernel_query *query)
{
    struct compaction c = describe_mask(&query->inputs[0], &query->inputs[1], query->attrs);
    return c.bits + c.counts + c.positions;
}

#define MOST_MOVED 16 // bytes

static tn_status boolean_mask_plan(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_layout *x = &tn_step_input(step, 0)->layout;
    const tn_layout *out = &tn_step_output(step, 0)->layout;
    const tn_bounded_attrs *attrs = step->attrs;
    struct compaction c = describe_mask(x, &tn_step_input(step, 1)->layout, attrs);
    uint64_t by = 1, all = c.inner | (uint64_t)x->offset | (uint64_t)out->offset;
    const uint32_t bytes = dtype_bytes(x->dtype);
    while (bytes * by < MOST_MOVED && (all & by) == 0)
        by *= 2;
    struct compact_last last = {.inner = c.inner / by,
                                .in_offset = (uint64_t)x->offset / by,
                                .out_offset = (uint64_t)out->offset / by};
    kernel_fill(x->dtype, attrs->fill_value, last.fill);
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "compact_take_%u", (uint32_t)by * bytes);
    tn_status status = plan_positions(plan, &c);
    struct kernel_launch launch = {.name = name,
                                   .groups = ceil_div(c.size * last.inner, GROUP)};
    bind_positions(&launch, &c);
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_output(0));
    return status ? status : plan_launch_of(plan, &c, &launch, &last);
}

// --- records ---------------------------------------------------------------------------

static const tn_operand_rule nonzero_rules[] = {
    {TN_DTYPE_BIT(TN_BOOL), TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES},
    {TN_DTYPE_BIT(TN_I64), TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule mask_rules[] = {
    {TN_ALL_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_BOOL), TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES},
    {TN_ALL_DTYPES, TN_NEEDS_CONTIGUOUS}};
OWN_KERNEL(nonzero, "base.nonzero/1", nonzero_plan, KERNEL_OTHER, nonzero_rules,
           .accepts = nonzero_accepts, .scratch_size = nonzero_scratch);
OWN_KERNEL(boolean_mask, "base.boolean_mask/1", boolean_mask_plan, KERNEL_OTHER, mask_rules,
           .accepts = boolean_mask_accepts, .scratch_size = boolean_mask_scratch);
