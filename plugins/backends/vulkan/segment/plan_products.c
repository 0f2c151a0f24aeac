// SPDX-License-Identifier: MIT
#include "plan_products.h"

#include <stdio.h>
#include <stdlib.h>
#include "groups.h"
#include "../dispatch/plan_fused.h"
#include "vulkan/matmul/plan_matmul.h"

// Joining saves launches, and the workgroups of several small products keep a device busy
// together. A product with more workgroups fills a large device by itself. The bound is an
// estimate: it was not measured around it.
#define MOST_TILES 512

// As the structure `product` in matmul_products.comp.
struct table_row {
    uint32_t rows, columns, terms;
    uint32_t a_offset, b_offset, out_offset;
    uint32_t a_row, a_k, b_k, b_column;
    uint32_t first_group, tiles_across;
};

bool products_is_own(const struct vk_plan *plan, const tn_step *step)
{
    return plan_own_kind(plan->device, step) == KERNEL_MATMUL;
}

static struct product plan_product_of(const tn_step *step)
{
    return product_describe(&tn_step_input(step, 0)->layout,
                            &tn_step_input(step, 1)->layout);
}

static uint64_t product_plan_count_tiles(const struct product *p,
                                         const struct tiling *tiling)
{
    return ceil_div(p->rows, tiling->rows) * ceil_div(p->columns, tiling->columns);
}

static bool product_plan_may_share(const struct vk_plan *plan, const tn_step *step)
{
    if (!products_is_own(plan, step))
        return false;
    const struct product p = plan_product_of(step);
    const struct tiling tiling = product_tiling(&plan->device->facts.limits, step, &p);
    return tiling.takes_any && p.num_axes == 0 && p.batches > 0 && p.rows > 0 &&
           p.columns > 0 && product_plan_count_tiles(&p, &tiling) <= MOST_TILES;
}

bool products_same_value(const tn_value *a, const tn_value *b)
{
    return a->slot == b->slot && a->offset == b->offset &&
           memcmp(&a->layout, &b->layout, sizeof(a->layout)) == 0;
}

// Whether all steps have the same left operand.
static bool product_plan_have_one_left(const tn_step *const *steps, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (!products_same_value(tn_step_input(steps[0], 0), tn_step_input(steps[i], 0)))
            return false;
    return true;
}

// Bindings of the launch, those of programs included.
static uint32_t product_plan_count_bindings(const tn_step *const *steps, uint32_t count)
{
    uint32_t bindings =
        1 + 2 * count + (product_plan_have_one_left(steps, count) ? 1 : count);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < steps[i]->num_fused; k++) {
            const tn_fused *fused = tn_step_fused(steps[i], k);
            bindings += fused->num_inputs + fused->num_outputs;
        }
    return bindings;
}

// Whether one kernel computes both: the same variant, and operands that lie alike.
static bool product_plan_is_alike(const struct vk_plan *plan, const tn_step *a,
                                  const tn_step *b)
{
    const tn_vulkan_limits *limits = &plan->device->facts.limits;
    const struct product p = plan_product_of(a), q = plan_product_of(b);
    const struct tiling of_a = product_tiling(limits, a, &p);
    const struct tiling of_b = product_tiling(limits, b, &q);
    return strcmp(of_a.name, of_b.name) == 0 &&
           product_a_along_k(&p) == product_a_along_k(&q) &&
           product_b_along_k(&p) == product_b_along_k(&q);
}

bool products_fit(const struct vk_plan *plan, const tn_step *const *steps, uint32_t count)
{
    uint32_t most = plan->device->facts.limits.max_operands;
    most = most < VK_MAX_OPERANDS ? most : VK_MAX_OPERANDS;
    return product_plan_may_share(plan, steps[count - 1]) &&
           (count == 1 || product_plan_is_alike(plan, steps[0], steps[count - 1])) &&
           product_plan_count_bindings(steps, count) <= most;
}

// --- the launch ------------------------------------------------------------------------

#define DEFINES 256

struct product_plan_launch {
    struct vk_plan *plan;
    struct vk_operand operands[VK_MAX_OPERANDS];
    uint32_t num_operands;
    struct fused_part *parts[GROUP_MAX_STEPS]; // by step, for free()
    struct fused_binding fused[GROUP_MAX_STEPS];
    uint32_t num_fused;
    struct table_row rows[GROUP_MAX_STEPS];
    uint64_t groups;
    tn_vulkan_module module;
    char name[VARIANT_NAME + 16], defines[DEFINES];
};

static void product_plan_add_row(struct product_plan_launch *l, uint32_t i,
                                 const tn_step *step, const struct tiling *tiling)
{
    const struct product p = plan_product_of(step);
    l->rows[i] =
        (struct table_row){.rows = (uint32_t)p.rows,
                           .columns = (uint32_t)p.columns,
                           .terms = (uint32_t)p.terms,
                           .a_offset = (uint32_t)tn_step_input(step, 0)->layout.offset,
                           .b_offset = (uint32_t)tn_step_input(step, 1)->layout.offset,
                           .out_offset = (uint32_t)tn_step_output(step, 0)->layout.offset,
                           .a_row = p.a.row,
                           .a_k = p.a.column,
                           .b_k = p.b.row,
                           .b_column = p.b.column,
                           .first_group = (uint32_t)l->groups,
                           .tiles_across = (uint32_t)ceil_div(p.columns, tiling->columns)};
    l->groups += product_plan_count_tiles(&p, tiling);
}

// The result of step `i`: its memory, or the arguments of the program that takes it.
static tn_status product_plan_add_result(struct product_plan_launch *l, uint32_t i,
                                         const tn_step *step)
{
    const tn_value *out = tn_step_output(step, 0);
    tn_status status = plan_fused_parts(l->plan, step, &l->parts[i]);
    struct fused_part *part =
        plan_fused_find(l->parts[i], step->num_fused, step->num_inputs);
    if (status != TN_OK || !part) {
        l->operands[l->num_operands++] = plan_operand(out, VK_WRITES);
        return status;
    }
    l->fused[l->num_fused++] = (struct fused_binding){
        .part = part, .binding = l->num_operands, .dtype = out->layout.dtype};
    return plan_fused_args(l->plan, part, &l->operands[l->num_operands++]);
}

static tn_status product_plan_bind(struct product_plan_launch *l,
                                   const tn_step *const *steps, uint32_t count)
{
    uint32_t at, words = count * sizeof(l->rows[0]) / sizeof(uint32_t);
    tn_status status = plan_constants_at(l->plan, (const uint32_t *)l->rows, words,
                                         TN_VULKAN_ALIGNMENT / 4, &at);
    l->operands[l->num_operands++] = (struct vk_operand){
        VK_SLOT_CONSTANTS, VK_READS, (uint64_t)at * 4, (uint64_t)words * 4};
    for (uint32_t i = 0; i < count && status == TN_OK; i++) {
        status = product_plan_add_result(l, i, steps[i]);
        l->operands[l->num_operands++] = plan_operand(tn_step_input(steps[i], 1), VK_READS);
    }
    uint32_t num_left = product_plan_have_one_left(steps, count) ? 1 : count;
    for (uint32_t i = 0; i < num_left; i++)
        l->operands[l->num_operands++] = plan_operand(tn_step_input(steps[i], 0), VK_READS);
    return status;
}

static tn_status get_code(tn_device *device, void *context, struct vk_code *out)
{
    const struct product_plan_launch *l = context;
    char reason[VK_REASON] = "";
    tn_status status = device->flavour->compile(device, l->name, &l->module, out);
    if (status == TN_OK && l->num_fused > 0)
        status = plan_fused_link(device, l->fused, l->num_fused, out, reason);
    if (status != TN_OK && reason[0])
        return device->host->fail(device->host, status, "%s: %s", l->name, reason);
    return status;
}

// The variant's macros and more.
static tn_status product_plan_choose_module(struct product_plan_launch *l,
                                            const char *variant, uint32_t count,
                                            bool has_one_left)
{
    const struct vk_flavour *flavour = l->plan->device->flavour;
    const tn_host *host = l->plan->device->host;
    const tn_vulkan_module *module =
        module_find(flavour->modules, flavour->num_modules, variant);
    const char *text = flavour->products();
    if (!module)
        return host->fail(host, TN_ERR_INTERNAL, "no module named %s", variant);
    if (!text)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    snprintf(l->name, sizeof(l->name), "%s of %u", variant, count);
    snprintf(l->defines, sizeof(l->defines), "%s PRODUCTS=%u%s", module->defines, count,
             has_one_left ? " SHARED_A" : "");
    l->module = (tn_vulkan_module){
        .name = l->name, .code = text, .code_size = strlen(text), .defines = l->defines};
    return TN_OK;
}

static tn_status product_plan_add_launch(struct product_plan_launch *l,
                                         const struct product *like)
{
    struct vk_launch launch = {
        .pipeline = {.name = l->name,
                     .key = vk_hash_text((struct vk_hash){7, 0}, l->defines),
                     .code = get_code,
                     .context = l},
        .groups = l->groups};
    if (!plan_fused_operands(l->fused, l->num_fused, l->operands, &l->num_operands,
                             VK_MAX_OPERANDS))
        return l->plan->device->host->fail(l->plan->device->host, TN_ERR_INTERNAL,
                                           "%s: too many operands", l->name);
    launch.pipeline.key = plan_fused_key(launch.pipeline.key, l->fused, l->num_fused);
    for (uint32_t i = 0; i < l->num_operands; i++)
        launch_bind(&launch, l->operands[i]);
    launch_spec(&launch, product_a_along_k(like));
    launch_spec(&launch, product_b_along_k(like));
    return plan_launch(l->plan, &launch);
}

tn_status products_plan(struct vk_plan *plan, const tn_step *const *steps, uint32_t count)
{
    const struct product like = plan_product_of(steps[0]);
    struct product_plan_launch l = {.plan = plan};
    const struct tiling tiling =
        product_tiling(&plan->device->facts.limits, steps[0], &like);
    tn_status status = product_plan_choose_module(&l, tiling.name, count,
                                                  product_plan_have_one_left(steps, count));
    if (status != TN_OK)
        return status;
    for (uint32_t i = 0; i < count; i++)
        product_plan_add_row(&l, i, steps[i], &tiling);
    status = product_plan_bind(&l, steps, count);
    if (status == TN_OK)
        status = product_plan_add_launch(&l, &like);
    for (uint32_t i = 0; i < count; i++)
        free(l.parts[i]);
    return status;
}
