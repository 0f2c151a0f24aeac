// SPDX-License-Identifier: MIT
// A few rows of x times a transposed matrix of groupwise codes, quant.groupwise_matmul/1,
// which are read beside x, and rows of such codes as floats, quant.groupwise_dequantize/1,
// of which products with more rows are made.
#include <stdio.h>
#include <tenon/ops/quant_attrs.h>
#include <tenon/ops/quant_groups.h>
#include "../record.h"

#define EACH 2 // columns of an invocation; EACH_OF_ONE: where x has one row
#define EACH_OF_ONE 4
#define LINES 8 // sums of an invocation, at most, and invocations that share a column
#define MOST_LANES 128
#define GROUP 256   // invocations of a workgroup
#define MOST_FEW 16 // rows of x
#define WIDE 16     // bytes that are read at a time
#define EIGHT 8     // codes that an invocation decodes
#define UNIT 32     // codes that an invocation takes at a time
#define MOST_COUNTED 0xffffffff

static uint64_t rows_of(const tn_layout *x)
{
    const uint64_t k = (uint64_t)x->extent[x->rank - 1];
    return k > 0 ? layout_count(x) / k : 0;
}

static int32_t groupwise_matmul_accepts(const tn_kernel_query *query)
{
    const tn_groupwise_matmul_attrs *attrs = query->attrs;
    const tn_layout *x = &query->inputs[0], *w = &query->inputs[1];
    for (uint32_t i = 0; i < query->num_inputs; i++)
        if (query->inputs[i].dtype != TN_DTYPE_NONE &&
            layout_count(&query->inputs[i]) + (uint64_t)query->inputs[i].offset >
                MOST_COUNTED)
            return 0;
    return attrs->transpose && w->rank == 2 && rows_of(x) <= MOST_FEW &&
           x->extent[x->rank - 1] > 0 && x->extent[x->rank - 1] % UNIT == 0 &&
           x->dtype == query->outputs[0].dtype &&
           layout_count(&query->outputs[0]) <= MOST_COUNTED;
}

// Invocations that share a column: as many as have something to do.
static uint32_t lanes_for(uint64_t terms)
{
    uint32_t lanes = LINES;
    while (lanes < MOST_LANES && terms / UNIT >= 2 * lanes)
        lanes *= 2;
    return lanes;
}

// The number of a dtype in the shader.
static uint32_t kind_of(tn_dtype dtype)
{
    return dtype == TN_F16 ? 1 : dtype == TN_BF16 ? 2 : dtype == TN_U8 ? 3 : 0;
}

// A format: `mode`, `bits` and `group` are the first members of all structs of attributes;
// 0 stands for the mode's default.
struct code_format {
    uint32_t mode, bits, group;
};

static struct code_format code_format_of(const void *attrs)
{
    static const uint32_t usual[][2] = {
#define USUAL(name, bits, group) {bits, group},
        TN_GROUPWISE_MODES(USUAL)
#undef USUAL
    };
    const tn_groupwise_quantize_attrs *a = attrs;
    return (struct code_format){
        .mode = (uint32_t)a->mode,
        .bits = a->bits ? (uint32_t)a->bits : usual[a->mode][0],
        .group = a->group ? (uint32_t)a->group : usual[a->mode][1],
    };
}

static uint32_t is_aligned(const tn_layout *layout)
{
    return (uint64_t)layout->offset * (uint64_t)tn_dtype_bytes(layout->dtype) % WIDE == 0;
}

static tn_status groupwise_matmul_plan(const tn_vulkan_plan *plan)
{
    const tn_groupwise_matmul_attrs *attrs = plan->step->attrs;
    const tn_layout *x = &tn_step_input(plan->step, 0)->layout;
    const tn_layout *w = &tn_step_input(plan->step, 1)->layout;
    const tn_layout *scales = &tn_step_input(plan->step, 2)->layout;
    const bool has_biases = attrs->mode == TN_GROUPWISE_affine;
    const uint32_t last = has_biases ? 3 : 2;
    const tn_layout *biases = &tn_step_input(plan->step, last)->layout;
    const tn_layout *out = &tn_step_output(plan->step, 0)->layout;
    const uint64_t rows = rows_of(x), columns = (uint64_t)w->extent[0];
    const uint64_t terms = (uint64_t)x->extent[x->rank - 1];
    const uint32_t lanes = lanes_for(terms), at_once = rows == 1 ? 1 : 4;
    const uint32_t each = rows == 1 ? EACH_OF_ONE : EACH;
    const struct code_format format = code_format_of(attrs);
    char name[VARIANT_NAME];
    if (layout_count(out) == 0)
        return TN_OK;
    snprintf(name, sizeof(name), "groupwise_few_%s_%u", dtype_glsl(x->dtype), at_once);
    struct kernel_launch launch = {.name = name,
                                   .groups = ceil_div(rows, at_once) *
                                             ceil_div(columns, GROUP / lanes * each)};
    kernel_spec(&launch, lanes);
    kernel_spec(&launch, format.mode);
    kernel_spec(&launch, format.bits);
    kernel_spec(&launch, format.group);
    kernel_spec(&launch, kind_of(scales->dtype));
    kernel_spec(&launch, kind_of(biases->dtype));
    kernel_spec(&launch, is_aligned(x));
    kernel_spec(&launch, format.bits % 4 == 0 && w->offset % 4 == 0);
    for (uint32_t i = 0; i < 3; i++)
        kernel_bind(&launch, tn_vulkan_input(i));
    kernel_bind(&launch, tn_vulkan_input(last));
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_push(&launch, rows);
    kernel_push(&launch, columns);
    kernel_push(&launch, terms);
    kernel_push(&launch, (uint64_t)x->offset);
    kernel_push(&launch, (uint64_t)w->offset);
    kernel_push(&launch, (uint64_t)scales->offset);
    kernel_push(&launch, (uint64_t)biases->offset);
    kernel_push(&launch, (uint64_t)out->offset);
    return kernel_launch(plan, &launch);
}

static const tn_operand_rule groupwise_matmul_rules[] = {
    {HALF_OR_F32, TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_U32), TN_NEEDS_CONTIGUOUS},
    {HALF_OR_F32 | TN_DTYPE_BIT(TN_U8), TN_NEEDS_CONTIGUOUS},
    {HALF_OR_F32, TN_NEEDS_CONTIGUOUS},
    {HALF_OR_F32, TN_NEEDS_CONTIGUOUS}};
OWN_KERNEL(groupwise_matmul, "quant.groupwise_matmul/1", groupwise_matmul_plan,
           KERNEL_PRODUCT, groupwise_matmul_rules, .accepts = groupwise_matmul_accepts);

// --- values -----------------------------------------------------------------------------

// Codes with a factor of the whole matrix are left to the decomposition.
static int32_t groupwise_dequantize_accepts(const tn_kernel_query *query)
{
    const bool has_factor =
        query->num_inputs > 3 && query->inputs[3].dtype != TN_DTYPE_NONE;
    for (uint32_t i = 0; i < query->num_inputs; i++)
        if (query->inputs[i].dtype != TN_DTYPE_NONE &&
            layout_count(&query->inputs[i]) + (uint64_t)query->inputs[i].offset >
                MOST_COUNTED)
            return 0;
    const tn_layout *out = &query->outputs[0];
    return !has_factor && layout_count(out) + (uint64_t)out->offset <= MOST_COUNTED &&
           out->extent[out->rank - 1] % UNIT == 0;
}

static tn_status groupwise_dequantize_plan(const tn_vulkan_plan *plan)
{
    const struct code_format format = code_format_of(plan->step->attrs);
    const uint32_t last = format.mode == TN_GROUPWISE_affine ? 2 : 1;
    const tn_layout *w = &tn_step_input(plan->step, 0)->layout;
    const tn_layout *scales = &tn_step_input(plan->step, 1)->layout;
    const tn_layout *biases = &tn_step_input(plan->step, last)->layout;
    const tn_layout *out = &tn_step_output(plan->step, 0)->layout;
    const uint64_t eights = layout_count(out) / EIGHT;
    char name[VARIANT_NAME];
    if (eights == 0)
        return TN_OK;
    snprintf(name, sizeof(name), "groupwise_values_%s", dtype_glsl(out->dtype));
    struct kernel_launch launch = {.name = name, .groups = ceil_div(eights, GROUP)};
    kernel_spec(&launch, format.mode);
    kernel_spec(&launch, format.bits);
    kernel_spec(&launch, format.group);
    kernel_spec(&launch, kind_of(scales->dtype));
    kernel_spec(&launch, kind_of(biases->dtype));
    kernel_spec(&launch, is_aligned(out));
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_bind(&launch, tn_vulkan_input(last));
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_push(&launch, eights);
    kernel_push(&launch, (uint64_t)w->offset);
    kernel_push(&launch, (uint64_t)scales->offset);
    kernel_push(&launch, (uint64_t)biases->offset);
    kernel_push(&launch, (uint64_t)out->offset);
    return kernel_launch(plan, &launch);
}

static const tn_operand_rule groupwise_dequantize_rules[] = {
    {TN_DTYPE_BIT(TN_U32), TN_NEEDS_CONTIGUOUS},
    {HALF_OR_F32 | TN_DTYPE_BIT(TN_U8), TN_NEEDS_CONTIGUOUS},
    {HALF_OR_F32, TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS},
    {HALF_OR_F32, TN_NEEDS_CONTIGUOUS}};
OWN_KERNEL(groupwise_dequantize, "quant.groupwise_dequantize/1", groupwise_dequantize_plan,
           KERNEL_OTHER, groupwise_dequantize_rules,
           .accepts = groupwise_dequantize_accepts);
