// SPDX-License-Identifier: MIT
// base.take/1 and base.{scatter_add,scatter_set,scatter_max,scatter_min}/1.
#include "../record.h"

#include <stdio.h>
#include <tenon/ops/base_attrs.h>
#include "../move/plan_copy.h"
#include "../sort/plan_sort.h"
#include "plan_index.h"

static struct gather index_plan_describe(const tn_layout *x, const tn_layout *indices,
                                         const tn_take_attrs *attrs)
{
    int32_t axis = tn_axis(attrs->axis, x->rank);
    struct gather g = {.outer = 1,
                       .length = (uint64_t)x->extent[axis],
                       .inner = 1,
                       .count = layout_count(indices)};
    for (int32_t i = 0; i < axis; i++)
        g.outer *= (uint64_t)x->extent[i];
    for (int32_t i = axis + 1; i < x->rank; i++)
        g.inner *= (uint64_t)x->extent[i];
    return g;
}

static void push_start(struct kernel_launch *launch, uint64_t n, const struct gather *g)
{
    kernel_push(launch, n);
    kernel_push(launch, g->length);
    kernel_push(launch, g->count);
    kernel_push(launch, g->inner);
    launch->groups = ceil_div(n, 256);
}

// Doubles the elements' size while rows and offsets are whole pairs of elements.
static uint32_t index_plan_widen(const tn_step *step, struct gather *g, uint64_t offsets[2])
{
    uint32_t bytes = dtype_bytes(tn_step_input(step, 0)->layout.dtype);
    while (bytes < MAX_COPIED && !passes_program(tn_step_output(step, 0)) &&
           ((g->inner | offsets[0] | offsets[1]) & 1) == 0) {
        bytes *= 2;
        g->inner /= 2;
        offsets[0] /= 2;
        offsets[1] /= 2;
    }
    return bytes;
}

static tn_status take_plan(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_value *x = tn_step_input(step, 0), *out = tn_step_output(step, 0);
    struct gather g =
        index_plan_describe(&x->layout, &tn_step_input(step, 1)->layout, step->attrs);
    uint64_t offsets[] = {(uint64_t)x->layout.offset, (uint64_t)out->layout.offset};
    if (layout_count(&out->layout) == 0)
        return TN_OK;
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "take_%u_%s", index_plan_widen(step, &g, offsets),
             dtype_glsl(tn_step_input(step, 1)->layout.dtype));
    struct kernel_launch launch = {.name = name};
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_bind(&launch, tn_vulkan_output(0));
    push_start(&launch, g.outer * g.count * g.inner, &g);
    kernel_push(&launch, offsets[0]);
    kernel_push(&launch, (uint64_t)tn_step_input(step, 1)->layout.offset);
    kernel_push(&launch, offsets[1]);
    return kernel_launch(plan, &launch);
}

// --- scatters --------------------------------------------------------------------------
//
// With few indices, each output of scatter_add searches all of them, in one dispatch. Sums
// of integers, sums of short vectors and most replacements need no sorting
// (plan_scatter.c).
// Otherwise x is copied to the output, the indices are sorted, and each row that has
// updates puts them in order: one pass over the data.

#define SEARCHES 1048576 // most outputs times indices that are searched rather than sorted
#define FEW_INDICES 4    // so few are searched by any number of outputs
// Most indices that are sorted at once: bounds the scratch memory. Fills the sort's largest
// tiles.
#define PART_OF_INDICES 4194304

// Whether scatter_add.comp has a variant for these dtypes.
static bool has_search(const tn_layout *x, const tn_layout *indices)
{
    const uint32_t common = TN_DTYPE_BIT(TN_I32) | TN_DTYPE_BIT(TN_I64);
    return tn_dtype_computed(x->dtype) == TN_F32 || tn_dtype_in(indices->dtype, common);
}

// The effect of an update by the step's primitive: "add", "set", "max" or "min".
static const char *put_of(const tn_step *step)
{
    return step->kernel->primitive + strlen("base.scatter_");
}

static bool index_plan_is_sum(const tn_step *step)
{
    return strncmp(put_of(step), "add", 3) == 0;
}

static bool index_plan_is_set(const tn_step *step)
{
    return strncmp(put_of(step), "set", 3) == 0;
}

// The variant of scatter_sum.comp. Elements that are replaced are words of their size, and
// bool is ordered as u8.
static void index_plan_name_of(const tn_step *step, char name[VARIANT_NAME])
{
    static const int32_t words[] = {
        [1] = TN_U8, [2] = TN_U16, [4] = TN_U32, [8] = TN_U64, [16] = TN_COMPLEX128};
    tn_dtype dtype = tn_step_output(step, 0)->layout.dtype;
    if (index_plan_is_set(step))
        dtype = words[dtype_bytes(dtype)];
    else if (dtype == TN_BOOL)
        dtype = TN_U8;
    snprintf(name, VARIANT_NAME, "scatter_%.3s_%s",
             index_plan_is_sum(step) ? "sum" : put_of(step), dtype_glsl(dtype));
}

static bool is_searched(const tn_vulkan_plan *plan, uint64_t n, const struct gather *g)
{
    const tn_step *step = plan->step;
    return index_plan_is_sum(step) &&
           has_search(&tn_step_input(step, 0)->layout, &tn_step_input(step, 1)->layout) &&
           (n * g->count <= SEARCHES ||
            (g->count <= FEW_INDICES && !plan->shares(plan, 0, 0)));
}

// Whether a kernel that needs no sorted indices takes the scatter, by the layouts alone.
static bool is_atomic(bool sums, const tn_layout *out, const struct gather *g)
{
    return sums && vk_scatter_is_atomic(out->dtype, g) &&
           layout_count(out) > SEARCHES / g->count;
}

static bool is_split(bool sums, const tn_layout *out, const struct gather *g)
{
    return sums && vk_scatter_is_split(out->dtype, g) &&
           layout_count(out) > SEARCHES / g->count;
}

static bool index_plan_is_last(bool sets, const struct gather *g)
{
    return sets && vk_scatter_is_last(g);
}

// Programs pass where each update is read once: what is sorted was slower with one, 0.73 ms
// instead of 0.31 for 200,000 messages of 64 on an H200, since the program stands in
// branches that few lanes take.
static int32_t scatter_add_accepts(const tn_kernel_query *query)
{
    struct gather g =
        index_plan_describe(&query->inputs[0], &query->inputs[1], query->attrs);
    return query->inputs[0].dtype != TN_BOOL &&
           (query->fused == 0 || is_atomic(true, &query->outputs[0], &g) ||
            is_split(true, &query->outputs[0], &g));
}

static int32_t scatter_set_accepts(const tn_kernel_query *query)
{
    struct gather g =
        index_plan_describe(&query->inputs[0], &query->inputs[1], query->attrs);
    return query->fused == 0 || index_plan_is_last(true, &g);
}

static uint64_t index_plan_part_of(const struct gather *g)
{
    return g->count < PART_OF_INDICES ? g->count : PART_OF_INDICES;
}

static uint64_t scatter_scratch(const tn_kernel_query *query)
{
    struct gather g =
        index_plan_describe(&query->inputs[0], &query->inputs[1], query->attrs);
    uint64_t n = layout_count(&query->outputs[0]);
    return n == 0 || g.count == 0 ? 0 : vk_sort_scratch(index_plan_part_of(&g), g.length);
}

static uint64_t scatter_add_scratch(const tn_kernel_query *query)
{
    struct gather g =
        index_plan_describe(&query->inputs[0], &query->inputs[1], query->attrs);
    uint64_t sorts = scatter_scratch(query), splits = 0;
    if (is_atomic(true, &query->outputs[0], &g))
        return 0;
    if (is_split(true, &query->outputs[0], &g)) // where the device has the shared memory
        splits = vk_scatter_split_scratch(query->outputs[0].dtype, &g);
    return splits > sorts ? splits : sorts;
}

static uint64_t scatter_set_scratch(const tn_kernel_query *query)
{
    struct gather g =
        index_plan_describe(&query->inputs[0], &query->inputs[1], query->attrs);
    return index_plan_is_last(true, &g) ? vk_scatter_last_scratch(&g)
                                        : scatter_scratch(query);
}

static tn_status plan_search(const tn_vulkan_plan *plan, uint64_t n, const struct gather *g)
{
    const tn_step *step = plan->step;
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "scatter_add_%s_%s",
             dtype_glsl(tn_step_input(step, 0)->layout.dtype),
             dtype_glsl(tn_step_input(step, 1)->layout.dtype));
    struct kernel_launch launch = {.name = name};
    for (uint32_t i = 0; i < 3; i++)
        kernel_bind(&launch, tn_vulkan_input(i));
    kernel_bind(&launch, tn_vulkan_output(0));
    push_start(&launch, n, g);
    for (uint32_t i = 0; i < 3; i++)
        kernel_push(&launch, (uint64_t)tn_step_input(step, i)->layout.offset);
    kernel_push(&launch, (uint64_t)tn_step_output(step, 0)->layout.offset);
    return kernel_launch(plan, &launch);
}

// The same constants as in scatter_sum.comp.
#define GROUP_SHIFT 8
#define COLUMNS 4
#define MAX_STRIP_SHIFT 3 // 32 bytes of f32, what memory moves at once
#define LONG_ROW 64
#define LONG_BLOCK (32 * LONG_ROW)

// The least shift with 1 << shift >= value, but at most `most`.
static uint32_t shift_for(uint64_t value, uint32_t most)
{
    uint32_t shift = 0;
    while (shift < most && UINT64_C(1) << shift < value)
        shift++;
    return shift;
}

// Adds the updates of sorted indices to the output.
static tn_status plan_sum(const tn_vulkan_plan *plan, const struct gather *g,
                          const struct vk_indices *part, tn_vulkan_operand keys,
                          tn_vulkan_operand positions)
{
    const tn_step *step = plan->step;
    char name[VARIANT_NAME];
    index_plan_name_of(step, name);
    uint32_t row_shift = shift_for(ceil_div(g->inner, COLUMNS), GROUP_SHIFT);
    uint32_t strip_shift = shift_for(g->inner, MAX_STRIP_SHIFT);
    uint64_t chunks = ceil_div(g->inner, (uint64_t)COLUMNS << row_shift);
    uint64_t row_groups = ceil_div(part->count, UINT64_C(1) << (GROUP_SHIFT - row_shift));
    uint64_t strips = ceil_div(g->inner, UINT64_C(1) << strip_shift);
    uint64_t blocks = part->count > LONG_ROW ? ceil_div(part->count, LONG_BLOCK) : 0;
    uint64_t long_groups = g->outer * strips * blocks;
    uint64_t short_groups = g->outer * chunks * row_groups;
    struct kernel_launch launch = {.name = name, .groups = long_groups + short_groups};
    kernel_bind(&launch, keys);
    kernel_bind(&launch, positions);
    kernel_bind(&launch, tn_vulkan_input(2));
    kernel_bind(&launch,
                operand_for(tn_vulkan_output(0), TN_VULKAN_READS | TN_VULKAN_WRITES));
    const uint64_t push[] = {part->count,
                             part->first,
                             g->count,
                             g->length,
                             g->inner,
                             (uint64_t)tn_step_input(step, 2)->layout.offset,
                             (uint64_t)tn_step_output(step, 0)->layout.offset,
                             row_shift,
                             chunks,
                             row_groups,
                             long_groups,
                             short_groups,
                             strip_shift,
                             strips,
                             blocks};
    for (size_t i = 0; i < sizeof(push) / sizeof(push[0]); i++)
        kernel_push(&launch, push[i]);
    return kernel_launch(plan, &launch);
}

static tn_status scatter_plan(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_value *x = tn_step_input(step, 0), *out = tn_step_output(step, 0);
    struct gather g =
        index_plan_describe(&x->layout, &tn_step_input(step, 1)->layout, step->attrs);
    uint64_t n = layout_count(&out->layout);
    if (n == 0)
        return TN_OK;
    if (g.count > 0 && is_searched(plan, n, &g))
        return plan_search(plan, n, &g);
    if (index_plan_is_last(index_plan_is_set(step), &g))
        return vk_plan_scatter_last(plan, &g);
    tn_status status =
        plan->shares(plan, 0, 0) ? TN_OK : vk_plan_copy(plan, 0, &out->layout);
    if (is_atomic(index_plan_is_sum(step), &out->layout, &g))
        return status ? status : vk_plan_scatter_atomic(plan, &g);
    if (is_split(index_plan_is_sum(step), &out->layout, &g) &&
        vk_scatter_split_fits(plan->limits, &g))
        return status ? status : vk_plan_scatter_split(plan, &g);
    struct vk_indices part = {1, 0, index_plan_part_of(&g), g.length};
    for (; part.first < g.count && status == TN_OK; part.first += part.count) {
        tn_vulkan_operand keys, positions;
        if (part.count > g.count - part.first)
            part.count = g.count - part.first;
        status = vk_plan_sort(plan, &part, &keys, &positions);
        if (status == TN_OK)
            status = plan_sum(plan, &g, &part, keys, positions);
    }
    return status;
}

// --- records ---------------------------------------------------------------------------

static const tn_operand_rule take_rules[] = {
    {TN_ALL_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_ALL_DTYPES, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES}};
static const tn_operand_rule add_rules[] = {
    {TN_FIRST_DTYPES | TN_COMPLEX_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES},
    {TN_FIRST_DTYPES | TN_COMPLEX_DTYPES, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES},
    {TN_FIRST_DTYPES | TN_COMPLEX_DTYPES, TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule set_rules[] = {
    {TN_ALL_DTYPES, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES},
    {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES},
    {TN_ALL_DTYPES, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES},
    {TN_ALL_DTYPES, TN_NEEDS_CONTIGUOUS}};
// Rules of scatters that compare.
static const tn_operand_rule put_rules[] = {{0, TN_NEEDS_CONTIGUOUS},
                                            {0, TN_NEEDS_CONTIGUOUS},
                                            {0, TN_NEEDS_CONTIGUOUS},
                                            {0, TN_NEEDS_CONTIGUOUS}};
OWN_KERNEL(take, "base.take/1", take_plan, KERNEL_OTHER, take_rules);
OWN_KERNEL(scatter_add, "base.scatter_add/1", scatter_plan, KERNEL_OTHER, add_rules,
           .accepts = scatter_add_accepts, .scratch_size = scatter_add_scratch);
OWN_KERNEL(scatter_set, "base.scatter_set/1", scatter_plan, KERNEL_OTHER, set_rules,
           .accepts = scatter_set_accepts, .scratch_size = scatter_set_scratch);
OWN_KERNEL(scatter_max, "base.scatter_max/1", scatter_plan, KERNEL_OTHER, put_rules,
           .scratch_size = scatter_scratch);
OWN_KERNEL(scatter_min, "base.scatter_min/1", scatter_plan, KERNEL_OTHER, put_rules,
           .scratch_size = scatter_scratch);
