// SPDX-License-Identifier: MIT
// Products whose rows choose their matrices, quant.experts_matmul/1, of plain formats of
// <tenon/ops/quant.h> and of floats. x is never rounded, so that the attribute `exact`
// changes nothing. Where matrices are chosen often, as in prompts, workgroups take the rows
// of a matrix together.
#include "../record.h"

#include <stdio.h>
#include <tenon/ops/quant_attrs.h>
#include "plan_quant.h"

#define GROUP 256 // invocations of a workgroup
#define EACH 4    // columns of an invocation
#define PART 8    // elements that an invocation reads at a time
#define ROWS 8    // pairs that a workgroup takes together
#define OFTEN 2   // pairs of a matrix, from which on workgroups take ROWS of them
#define MOST_COUNTED 0xffffffff

static bool experts_plan_is_blocks(const tn_quant_experts_attrs *attrs)
{
    return attrs->format && *attrs->format;
}

// Whether the kernel reads this w: floats four at a time, and eight of a row.
static bool experts_plan_reads(const tn_quant_experts_attrs *attrs, const tn_layout *w)
{
    if (experts_plan_is_blocks(attrs))
        return w->dtype == TN_U8 && quant_find_plain(attrs->format);
    return w->dtype != TN_U8 && w->extent[2] % PART == 0 && w->offset % 4 == 0;
}

static int32_t experts_matmul_accepts(const tn_kernel_query *query)
{
    const tn_layout *w = &query->inputs[1];
    return experts_plan_reads(query->attrs, w) &&
           layout_count(w) + (uint64_t)w->offset <= MOST_COUNTED &&
           layout_count(&query->inputs[0]) <= MOST_COUNTED &&
           layout_count(&query->inputs[2]) <= MOST_COUNTED / 8 &&
           layout_count(&query->outputs[0]) <= MOST_COUNTED;
}

// Invocations that share a column: as many as have parts of it.
static uint32_t experts_plan_lanes_for(uint64_t terms)
{
    uint32_t lanes = 32;
    while (lanes < GROUP && terms / PART >= 4 * lanes)
        lanes *= 2;
    return lanes;
}

static tn_status experts_matmul_plan(const tn_vulkan_plan *plan)
{
    const tn_quant_experts_attrs *attrs = plan->step->attrs;
    const tn_quant_format *format =
        experts_plan_is_blocks(attrs) ? quant_find_plain(attrs->format) : NULL;
    const tn_layout *x = &tn_step_input(plan->step, 0)->layout;
    const tn_layout *w = &tn_step_input(plan->step, 1)->layout;
    const tn_layout *ids = &tn_step_input(plan->step, 2)->layout;
    const tn_layout *out = &tn_step_output(plan->step, 0)->layout;
    // Units by which quant.glsl counts: words, or bytes of blocks that are no whole words;
    // of floats elements.
    uint64_t unit = !format || format->bytes % 2 ? 1 : 2, size = dtype_bytes(ids->dtype);
    uint64_t pairs = layout_count(ids), columns = (uint64_t)w->extent[1];
    uint64_t terms = (uint64_t)x->extent[2];
    char name[VARIANT_NAME];
    if (layout_count(out) == 0)
        return TN_OK;
    snprintf(name, sizeof(name), "quant_experts_%s",
             format ? format->name : dtype_glsl(w->dtype));
    uint32_t lanes = experts_plan_lanes_for(terms);
    uint64_t experts = (uint64_t)w->extent[0];
    uint32_t rows = pairs >= OFTEN * experts ? ROWS : 1;
    struct kernel_launch launch = {.name = name,
                                   .groups = (rows == 1 ? pairs : experts) *
                                             ceil_div(columns, GROUP / lanes * EACH)};
    kernel_spec(&launch, (uint32_t)(w->offset % 2));
    kernel_spec(&launch, lanes);
    kernel_spec(&launch, rows);
    kernel_spec(&launch, rows * EACH);
    kernel_spec(&launch, x->offset % 4 == 0);
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_bind(&launch, tn_vulkan_input(2));
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_push(&launch, pairs);
    kernel_push(&launch, columns);
    kernel_push(&launch, terms);
    kernel_push(&launch, x->extent[1] == 1 ? (uint64_t)ids->extent[1] : 1);
    kernel_push(&launch, experts);
    kernel_push(&launch, columns * (uint64_t)w->extent[2] / unit);
    kernel_push(&launch, (uint64_t)x->offset);
    kernel_push(&launch, (uint64_t)w->offset / unit);
    kernel_push(&launch, (uint64_t)out->offset);
    kernel_push(&launch, (uint64_t)ids->offset * size);
    kernel_push(&launch, size);
    kernel_push(&launch, tn_dtype_in(ids->dtype, TN_SIGNED_DTYPES));
    return kernel_launch(plan, &launch);
}

// --- records ---------------------------------------------------------------------------

static const tn_operand_rule experts_matmul_rules[] = {
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_U8) | HALF_OR_F32, TN_NEEDS_CONTIGUOUS},
    {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS}};
OWN_KERNEL(experts_matmul, "quant.experts_matmul/1", experts_matmul_plan, KERNEL_OTHER,
           experts_matmul_rules, .accepts = experts_matmul_accepts);
