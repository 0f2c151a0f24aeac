// SPDX-License-Identifier: MIT
// Products with weights of f16 or bf16, quant.quantized_matmul/1 without a format. x is
// f32, and so are sums: weights become f32 where they are multiplied, and nothing else is
// rounded.
//
// A few rows of x are read beside the weights (quant_halves_few.comp). Many are multiplied
// on cooperative matrices (plan_halves_matrix.c); without them, and with `exact`, they have
// the tiles of products of f32, of which the right operand becomes f32 on its way to shared
// memory.
#include "plan_halves.h"

#include <stdio.h>
#include <tenon/ops/quant_attrs.h>
#include "../record.h"

#define PART 8 // halves that are read at a time
#define EACH 4 // columns of an invocation
#define EACH_OF_ONE 2
#define GROUP 256   // invocations of a workgroup
#define MOST_FEW 16 // rows of x, up to which they are few
#define MOST_AT_ONCE 8
#define ENOUGH_TILES 32 // of 64 x 64
#define SMALL_TILE                                                                         \
    1024 // elements of the tile with a variant for programs; products that
         // take larger tiles are too large for a program
#define MOST_COUNTED 0xffffffff

// The product of x and of w turned round.
static struct product halves_plan_describe(const tn_layout *x, const tn_layout *w)
{
    tn_layout turned = *w;
    turned.extent[0] = w->extent[1];
    turned.extent[1] = w->extent[0];
    turned.stride[0] = w->stride[1];
    turned.stride[1] = w->stride[0];
    return product_describe(x, &turned);
}

static int32_t halves_matmul_accepts(const tn_kernel_query *query)
{
    const tn_layout *x = &query->inputs[0], *w = &query->inputs[1];
    return layout_count(x) + (uint64_t)x->offset <= MOST_COUNTED &&
           layout_count(w) + (uint64_t)w->offset <= MOST_COUNTED &&
           layout_count(&query->outputs[0]) <= MOST_COUNTED;
}

// --- a few rows -------------------------------------------------------------------------

// Invocations that share a column: as many as have something to do at once, since each
// round of theirs waits for memory.
static uint32_t halves_plan_lanes_for(uint64_t terms)
{
    uint32_t lanes = 32;
    while (lanes < GROUP && terms / PART >= 2 * lanes)
        lanes *= 2;
    return lanes;
}

static bool halves_plan_is_few(const tn_layout *w, const struct product *p)
{
    return p->rows <= MOST_FEW && p->terms > 0 &&
           ((uint64_t)w->offset | p->terms) % PART == 0;
}

static tn_status plan_few(const tn_vulkan_plan *plan, const struct product *p)
{
    const tn_layout *x = &tn_step_input(plan->step, 0)->layout;
    const tn_layout *w = &tn_step_input(plan->step, 1)->layout;
    uint32_t lanes = halves_plan_lanes_for(p->terms), at_once = 1;
    char name[VARIANT_NAME];
    while (at_once < p->rows && at_once < MOST_AT_ONCE)
        at_once *= 2;
    snprintf(name, sizeof(name), "quant_halves_few_%s_%u", dtype_glsl(w->dtype), at_once);
    uint32_t each = at_once == 1 ? EACH_OF_ONE : EACH;
    struct kernel_launch launch = {.name = name,
                                   .groups = ceil_div(p->rows, at_once) *
                                             ceil_div(p->columns, GROUP / lanes * each)};
    kernel_spec(&launch, lanes);
    kernel_spec(&launch, x->offset % 4 == 0);
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_push(&launch, p->rows);
    kernel_push(&launch, p->columns);
    kernel_push(&launch, p->terms);
    kernel_push(&launch, (uint64_t)x->offset);
    kernel_push(&launch, (uint64_t)w->offset / PART);
    kernel_push(&launch, (uint64_t)tn_step_output(plan->step, 0)->layout.offset);
    return kernel_launch(plan, &launch);
}

// --- tiles ------------------------------------------------------------------------------

// The tile that is read four elements at a time; NULL: the product has none.
static const struct product_wide *halves_plan_choose_wide(const tn_vulkan_plan *plan,
                                                          const struct product *p)
{
    const tn_step *step = plan->step;
    const tn_layout *out = &tn_step_output(step, 0)->layout;
    if (((uint64_t)out->offset | p->columns) % WIDE_ALIGNMENT != 0 ||
        !product_aligned(step, p, WIDE_ALIGNMENT))
        return NULL;
    const struct product_wide *wide = product_wide(plan->limits, p->rows, p->columns, 1);
    bool is_small = wide && wide->rows * wide->columns == SMALL_TILE;
    return is_small || (wide && step->num_fused == 0) ? wide : NULL;
}

static tn_status plan_tiles(const tn_vulkan_plan *plan, const struct product *p)
{
    const struct product_wide *wide = halves_plan_choose_wide(plan, p);
    const char *dtype = dtype_glsl(tn_step_input(plan->step, 1)->layout.dtype);
    uint64_t tiles = ceil_div(p->rows, 64) * ceil_div(p->columns, 64);
    struct tiling tiling = {.b_along_k = true};
    tiling.rows = wide ? wide->rows : tiles >= ENOUGH_TILES ? 64 : 16;
    tiling.columns = wide ? wide->columns : tiling.rows;
    if (wide)
        snprintf(tiling.name, sizeof(tiling.name), "matmul_wide_%s_%s%s", wide->name, dtype,
                 plan->step->num_fused > 0 ? "_by_element" : "");
    else
        snprintf(tiling.name, sizeof(tiling.name), "matmul_f32_%s_%u", dtype, tiling.rows);
    return product_launch(plan, p, &tiling, tn_vulkan_output(0),
                          (uint64_t)tn_step_output(plan->step, 0)->layout.offset);
}

static tn_status halves_matmul_plan(const tn_vulkan_plan *plan)
{
    const tn_layout *w = &tn_step_input(plan->step, 1)->layout;
    struct product p = halves_plan_describe(&tn_step_input(plan->step, 0)->layout, w);
    if (layout_count(&tn_step_output(plan->step, 0)->layout) == 0)
        return TN_OK;
    if (halves_plan_is_few(w, &p))
        return plan_few(plan, &p);
    const tn_quant_matmul_attrs *attrs = plan->step->attrs;
    return !attrs->exact && halves_takes_matrices(plan->limits, w, &p)
               ? halves_plan_matrices(plan, &p)
               : plan_tiles(plan, &p);
}

static uint64_t halves_matmul_scratch(const tn_kernel_query *query)
{
    const tn_layout *w = &query->inputs[1];
    struct product p = halves_plan_describe(&query->inputs[0], w);
    const tn_quant_matmul_attrs *attrs = query->attrs;
    return halves_plan_is_few(w, &p) || attrs->exact ? 0 : halves_matrix_scratch(w, &p);
}

// --- records ---------------------------------------------------------------------------

static const tn_operand_rule halves_matmul_rules[] = {
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_BF16), TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES}};
OWN_KERNEL_NAMED("vulkan_halves", halves_matmul, "quant.quantized_matmul/1",
                 halves_matmul_plan, KERNEL_PRODUCT, halves_matmul_rules,
                 .accepts = halves_matmul_accepts, .scratch_size = halves_matmul_scratch);
