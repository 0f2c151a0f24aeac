// SPDX-License-Identifier: MIT
// Products with quantised weights, and their values: quant.quantized_matmul/1,
// quant.quantized_take/1 and quant.dequantize/1 of the formats that quant.glsl reads, as
// files have them. x is never rounded, so that the attribute `exact` changes nothing.
#include "kernels.h"

#include <stdio.h>
#include <tenon/ops/quant.h>
#include <tenon/ops/quant_attrs.h>

#define PART 8          // elements that quant.glsl reads at a time
#define FEW_ROWS 8      // of x, at most, where weights are read for some rows at a time
#define EACH 4          // columns of an invocation, of quant_matmul.comp
#define AT_ONCE 2       // parts of a column that it loads at once, there
#define AT_MOST 4       // rows of x of a workgroup, there
#define GROUP 256       // invocations of a workgroup
#define ENOUGH_TILES 32 // of 64 x 64
#define MOST_COUNTED 0xffffffff
// Elements of x that a program computes for all workgroups of a launch: with more of them a
// launch of its own is as fast on a large device, by estimate.
#define MOST_REPEATED 1048576

// The format, if the shaders have it.
static const tn_quant_format *format_of(const char *name)
{
    static const char *const names[] = {"q4_0", "q4_1", "q5_0", "q5_1", "q8_0"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return tn_quant_find(name);
    return NULL;
}

// Whether the shaders' 32 bits count the elements of both, and words of w.
static int32_t is_counted(const tn_layout *w, const tn_layout *out)
{
    return layout_count(w) / 2 <= MOST_COUNTED && layout_count(out) <= MOST_COUNTED;
}

int32_t vk_dequantize_accepts(const tn_kernel_query *query)
{
    const tn_quant_dequantize_attrs *attrs = query->attrs;
    return format_of(attrs->format) && is_counted(&query->inputs[0], &query->outputs[0]);
}

int32_t vk_quantized_take_accepts(const tn_kernel_query *query)
{
    const tn_quant_take_attrs *attrs = query->attrs;
    return format_of(attrs->format) && is_counted(&query->inputs[0], &query->outputs[0]) &&
           layout_count(&query->inputs[1]) <= MOST_COUNTED / 8;
}

// Rows of values: with `ids` those that they mean.
static tn_status plan_values(const tn_vulkan_plan *plan, const char *format,
                             const tn_layout *ids)
{
    const tn_layout *w = &tn_step_input(plan->step, 0)->layout;
    const tn_layout *out = &tn_step_output(plan->step, 0)->layout;
    uint64_t count = layout_count(out);
    char name[VARIANT_NAME];
    if (count == 0)
        return TN_OK;
    snprintf(name, sizeof(name), "quant_values_%s_%s", format, dtype_glsl(out->dtype));
    struct kernel_launch launch = {.name = name, .groups = ceil_div(count / PART, 256)};
    uint32_t size = ids ? dtype_bytes(ids->dtype) : 0;
    kernel_spec(&launch, (uint32_t)(w->offset % 2));
    kernel_spec(&launch, ids != NULL);
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_input(ids ? 1 : 0));
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_push(&launch, count / PART);
    kernel_push(&launch, (uint64_t)out->extent[out->rank - 1] / PART);
    kernel_push(&launch, ids ? (uint64_t)w->extent[0] : 0);
    kernel_push(&launch, (uint64_t)w->offset / 2);
    kernel_push(&launch, (uint64_t)out->offset);
    kernel_push(&launch, ids ? (uint64_t)ids->offset * size : 0);
    kernel_push(&launch, size);
    kernel_push(&launch, ids && tn_dtype_in(ids->dtype, TN_SIGNED_DTYPES));
    return kernel_launch(plan, &launch);
}

tn_status vk_plan_dequantize(const tn_vulkan_plan *plan)
{
    const tn_quant_dequantize_attrs *attrs = plan->step->attrs;
    return plan_values(plan, attrs->format, NULL);
}

tn_status vk_plan_quantized_take(const tn_vulkan_plan *plan)
{
    const tn_quant_take_attrs *attrs = plan->step->attrs;
    return plan_values(plan, attrs->format, &tn_step_input(plan->step, 1)->layout);
}

// Invocations that share the terms of a column: as many as have something to do at once,
// since each round of theirs waits for memory.
static uint32_t lanes_for(uint64_t terms)
{
    uint32_t lanes = 32;
    while (lanes < GROUP && terms / PART >= 2 * lanes * AT_ONCE)
        lanes *= 2;
    return lanes;
}

// Workgroups where the weights are read for few rows.
static uint64_t few_groups(uint64_t rows, uint64_t columns, uint64_t terms)
{
    uint64_t of_group = GROUP / lanes_for(terms) * EACH;
    return ceil_div(rows, rows == 1 ? 1 : AT_MOST) * ceil_div(columns, of_group);
}

// Whether x may pass through a program, which all who share a row compute anew.
static int32_t may_repeat(const tn_kernel_query *query)
{
    const tn_layout *x = &query->inputs[0];
    uint64_t terms = (uint64_t)x->extent[x->rank - 1], count = layout_count(x);
    uint64_t columns = (uint64_t)query->inputs[1].extent[0];
    if (count == 0 || count / terms > FEW_ROWS || terms > MOST_REPEATED)
        return 0;
    uint64_t groups = few_groups(count / terms, columns, terms);
    return groups <= MOST_REPEATED / terms / (GROUP / lanes_for(terms));
}

int32_t vk_quantized_matmul_accepts(const tn_kernel_query *query)
{
    const tn_quant_matmul_attrs *attrs = query->attrs;
    return format_of(attrs->format) && is_counted(&query->inputs[1], &query->outputs[0]) &&
           layout_count(&query->inputs[0]) <= MOST_COUNTED &&
           (!(query->fused & 1) || may_repeat(query));
}

// The variant's name and workgroups.
static void choose_product(struct kernel_launch *launch, const char *format, uint64_t rows,
                           uint64_t columns, uint64_t terms, char name[VARIANT_NAME])
{
    if (rows <= FEW_ROWS) {
        snprintf(name, VARIANT_NAME, "quant_matmul_%s_few_%u", format,
                 rows == 1 ? 1 : AT_MOST);
        launch->groups = few_groups(rows, columns, terms);
        kernel_spec(launch, lanes_for(terms));
        return;
    }
    uint64_t tiles = ceil_div(rows, 64) * ceil_div(columns, 64);
    uint32_t tile = tiles >= ENOUGH_TILES ? 64 : 16;
    snprintf(name, VARIANT_NAME, "quant_matmul_%s_%u", format, tile);
    launch->groups = ceil_div(rows, tile) * ceil_div(columns, tile);
}

tn_status vk_plan_quantized_matmul(const tn_vulkan_plan *plan)
{
    const tn_quant_matmul_attrs *attrs = plan->step->attrs;
    const tn_layout *x = &tn_step_input(plan->step, 0)->layout;
    const tn_layout *w = &tn_step_input(plan->step, 1)->layout;
    const tn_layout *out = &tn_step_output(plan->step, 0)->layout;
    char name[VARIANT_NAME];
    if (layout_count(out) == 0)
        return TN_OK;
    uint64_t columns = (uint64_t)w->extent[0], rows = layout_count(out) / columns;
    struct kernel_launch launch = {.name = name};
    uint64_t terms = (uint64_t)x->extent[x->rank - 1];
    kernel_spec(&launch, (uint32_t)(w->offset % 2));
    bool in_fours = x->offset % 4 == 0 && !passes_program(tn_step_input(plan->step, 0));
    kernel_spec(&launch, in_fours);
    choose_product(&launch, attrs->format, rows, columns, terms, name);
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_bind(&launch, tn_vulkan_output(0));
    if (rows <= FEW_ROWS)
        kernel_bind(&launch, tn_vulkan_input(in_fours ? 0 : 1));
    kernel_push(&launch, rows);
    kernel_push(&launch, columns);
    kernel_push(&launch, terms);
    kernel_push(&launch, (uint64_t)x->offset);
    kernel_push(&launch, (uint64_t)w->offset / 2);
    kernel_push(&launch, (uint64_t)out->offset);
    return kernel_launch(plan, &launch);
}
