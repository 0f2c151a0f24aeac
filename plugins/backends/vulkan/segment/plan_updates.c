// SPDX-License-Identifier: MIT
#include "plan_updates.h"

#include <stdio.h>
#include <stdlib.h>
#include "vulkan/attention/plan_cache.h"
#include "../dispatch/plan_fused.h"
#include "../pipeline/module.h"
#include "plan_products.h"

#define MOST_ELEMENTS 65536   // of a part: more are quicker four at a time
#define MOST_OF_CACHES 524288 // of one beside caches, which are written one by one anyway

// --- steps -----------------------------------------------------------------------------

// Whether the step writes rows of sequences to a cache.
static bool is_cache(const struct vk_plan *plan, const tn_step *step)
{
    return plan_own_kind(plan->device, step) == KERNEL_CACHE_UPDATE;
}

// Whether the step is an update in place by this backend's own kernel, of a region that
// moves along one axis, or of a cache.
static bool is_update(const struct vk_plan *plan, const tn_step *step)
{
    bool writes_rows = is_cache(plan, step);
    if (plan_own_kind(plan->device, step) != KERNEL_UPDATE && !writes_rows)
        return false;
    const tn_value *x = tn_step_input(step, 0), *out = tn_step_output(step, 0);
    const tn_layout *update = &tn_step_input(step, 1)->layout;
    uint32_t moved = writes_rows;
    for (int32_t i = 0; i < update->rank && !writes_rows; i++)
        moved += update->extent[i] < out->layout.extent[i];
    return !((x->flags | out->flags) & TN_VALUE_FUSED) && moved == 1 &&
           plan_memory(plan, x->slot) == plan_memory(plan, out->slot) &&
           x->offset == out->offset && x->layout.offset == out->layout.offset;
}

static bool is_program(const tn_step *step)
{
    return step->program && !(step->program->flags & TN_EXPR_ROWS) &&
           step->num_outputs == 1;
}

// Layout of a part's result, over the elements that it reads.
static const tn_layout *layout_of(const tn_step *step)
{
    return step->program ? &tn_step_output(step, 0)->layout
                         : &tn_step_input(step, 1)->layout;
}

// Appends an axis behind the others, or makes the last one longer where that is the same.
static bool update_plan_add_axis(struct updates_region *r, uint32_t *count, int64_t extent,
                                 int64_t from, int64_t to)
{
    uint32_t last = UPDATES_AXES - 1;
    if (extent == 1)
        return true;
    bool merges = *count > 0 && r->from_stride[last] == (uint32_t)(from * extent) &&
                  r->to_stride[last] == (uint32_t)(to * extent);
    if (!merges && ++*count > UPDATES_AXES)
        return false;
    for (uint32_t i = 0; i < last && !merges; i++) {
        r->from_stride[i] = r->from_stride[i + 1];
        r->to_stride[i] = r->to_stride[i + 1];
        if (i + 1 < last)
            r->extent[i] = r->extent[i + 1];
    }
    uint32_t *own = &r->extent[last - 1];
    *own = merges ? *own * (uint32_t)extent : (uint32_t)extent;
    r->from_stride[last] = (uint32_t)from;
    r->to_stride[last] = (uint32_t)to;
    return true;
}

// Describes a part. False: it has too many axes.
static bool read_region(const struct vk_plan *plan, const tn_step *step,
                        struct updates_region *out)
{
    const tn_layout *from = layout_of(step), *to = &tn_step_output(step, 0)->layout;
    int64_t stride = 1, contiguous[TN_MAX_RANK];
    uint32_t axes = 0;
    if (is_cache(plan, step)) {
        *out = vk_cache_region(step);
        return true;
    }
    *out =
        (struct updates_region){.n = (uint32_t)layout_count(from),
                                .from_offset = step->program ? 0 : (uint32_t)from->offset,
                                .to_offset = (uint32_t)to->offset,
                                .extent = {1, 1, 1}};
    for (int32_t i = from->rank - 1; i >= 0; i--) {
        contiguous[i] = stride;
        stride *= from->extent[i];
    }
    for (int32_t i = 0; i < from->rank; i++) {
        if (!step->program && from->extent[i] < to->extent[i]) {
            const tn_layout *start = &tn_step_input(step, 2)->layout;
            int64_t apart = start->rank > 0 ? start->stride[0] : 0;
            out->number = (uint32_t)(i * apart);
            out->length = (uint32_t)to->extent[i];
            out->most = (uint32_t)(to->extent[i] - from->extent[i]);
            out->stride = (uint32_t)to->stride[i];
        }
        if (!update_plan_add_axis(out, &axes, from->extent[i],
                                  step->program ? contiguous[i] : from->stride[i],
                                  to->stride[i]))
            return false;
    }
    return true;
}

static void update_plan_write_name(const struct vk_plan *plan, const tn_step *const *steps,
                                   uint32_t count, char name[VARIANT_NAME])
{
    if (is_cache(plan, steps[0])) {
        snprintf(name, VARIANT_NAME, "updates_%s_%u", vk_cache_kind(steps[0]), count);
        return;
    }
    const tn_layout *start = &tn_step_input(steps[0], 2)->layout;
    int used = snprintf(name, VARIANT_NAME, "updates_%s_", dtype_glsl(start->dtype));
    for (uint32_t i = 0; i < count; i++)
        used += snprintf(name + used, (size_t)(VARIANT_NAME - used), "%u",
                         dtype_bytes(layout_of(steps[i])->dtype));
}

// Bindings of the launch, those of programs included.
static uint32_t update_plan_count_bindings(const struct vk_plan *plan,
                                           const tn_step *const *steps, uint32_t count)
{
    uint32_t bindings = 2 + is_cache(plan, steps[0]) + 2 * count;
    for (uint32_t i = 0; i < count; i++) {
        const tn_fused *fused = steps[i]->num_fused ? tn_step_fused(steps[i], 0) : NULL;
        if (steps[i]->program)
            bindings += steps[i]->num_inputs + 1;
        else if (fused)
            bindings += fused->num_inputs + fused->num_outputs + 1;
    }
    return bindings;
}

// Whether the last of several steps fits behind caches: a cache of the same kind and of the
// same sequences, or behind two of them a program with elements as the module has them.
static bool fits_caches(const struct vk_plan *plan, const tn_step *const *steps,
                        uint32_t count)
{
    const tn_step *last = steps[count - 1];
    const char *kind = vk_cache_kind(steps[0]);
    if (is_cache(plan, last))
        return count == 2 && kind == vk_cache_kind(last) &&
               products_same_value(tn_step_input(steps[0], 3), tn_step_input(last, 3));
    return count == 3 && is_program(last) &&
           dtype_bytes(layout_of(last)->dtype) == (strcmp(kind, "f16") == 0 ? 2 : 4);
}

bool updates_fit(const struct vk_plan *plan, const tn_step *const *steps, uint32_t count)
{
    const struct vk_flavour *flavour = plan->device->flavour;
    const tn_step *last = steps[count - 1];
    struct updates_region region;
    char name[VARIANT_NAME];
    uint32_t most = plan->device->facts.limits.max_operands;
    most = most < VK_MAX_OPERANDS ? most : VK_MAX_OPERANDS;
    bool updates = is_update(plan, last);
    if (!updates && (count == 1 || !is_program(last)))
        return false;
    uint64_t elements = layout_count(layout_of(last));
    uint64_t most_elements = is_cache(plan, steps[0]) ? MOST_OF_CACHES : MOST_ELEMENTS;
    if (elements == 0 || elements > most_elements || !read_region(plan, last, &region) ||
        update_plan_count_bindings(plan, steps, count) > most)
        return false;
    if (count == 1)
        return true;
    if (is_cache(plan, steps[0]) ? !fits_caches(plan, steps, count) : is_cache(plan, last))
        return false;
    update_plan_write_name(plan, steps, count, name);
    return module_find(flavour->modules, flavour->num_modules, name) &&
           (!updates ||
            products_same_value(tn_step_input(steps[0], 2), tn_step_input(last, 2)));
}

// --- the launch ------------------------------------------------------------------------

struct update_plan_launch {
    struct vk_plan *plan;
    struct vk_pipeline_desc module; // without programs
    struct vk_operand operands[VK_MAX_OPERANDS];
    uint32_t num_operands;
    struct updates_region regions[UPDATES_MAX_STEPS];
    uint64_t groups;
    const tn_step *cache;                        // the first one; NULL: there is none
    struct fused_part *parts[UPDATES_MAX_STEPS]; // of updates, for free()
    struct fused_part own[UPDATES_MAX_STEPS];    // of steps that are programs
    tn_fused fused[UPDATES_MAX_STEPS];           // and their records
    tn_value outputs[UPDATES_MAX_STEPS];
    struct fused_binding bindings[UPDATES_MAX_STEPS];
    uint32_t num_bindings;
};

// A program as what a copy reads: its result has no memory.
static struct fused_part *part_of_program(struct update_plan_launch *l, uint32_t i,
                                          const tn_step *step)
{
    struct fused_part *part = &l->own[i];
    l->outputs[i] = *tn_step_output(step, 0);
    l->outputs[i].flags |= TN_VALUE_FUSED;
    l->fused[i] = (tn_fused){.operand = 0,
                             .program = step->program,
                             .params = step->params,
                             .inputs = step->inputs,
                             .outputs = &l->outputs[i],
                             .num_inputs = step->num_inputs,
                             .num_outputs = 1};
    *part = (struct fused_part){.fused = &l->fused[i]};
    part->alone = plan_fused_step(step, &l->fused[i]);
    program_classify_function(&part->alone, &part->class, &part->args);
    return part;
}

static tn_status add_part(struct update_plan_launch *l, uint32_t i, const tn_step *step)
{
    struct fused_part *part = NULL;
    tn_status status = TN_OK;
    (void)read_region(l->plan, step, &l->regions[i]);
    l->regions[i].first_group = (uint32_t)l->groups;
    l->groups += ceil_div(l->regions[i].n, UPDATES_GROUP);
    if (step->program) {
        part = part_of_program(l, i, step);
    } else {
        status = plan_fused_parts(l->plan, step, &l->parts[i]);
        part = plan_fused_find(l->parts[i], status == TN_OK ? step->num_fused : 0, 1);
    }
    uint32_t binding = l->num_operands++;
    if (part && status == TN_OK) {
        l->bindings[l->num_bindings++] = (struct fused_binding){
            .part = part, .binding = binding, .dtype = layout_of(step)->dtype};
        status = plan_fused_args(l->plan, part, &l->operands[binding]);
    } else {
        l->operands[binding] = plan_operand(tn_step_input(step, 1), VK_READS);
    }
    l->operands[l->num_operands++] = plan_operand(tn_step_output(step, 0), VK_WRITES);
    return status;
}

static tn_status update_plan_get_code(tn_device *device, void *context, struct vk_code *out)
{
    const struct update_plan_launch *l = context;
    char reason[VK_REASON] = "";
    tn_status status = l->module.code(device, l->module.context, out);
    if (status == TN_OK && l->num_bindings > 0)
        status = plan_fused_link(device, l->bindings, l->num_bindings, out, reason);
    if (status != TN_OK && reason[0])
        return device->host->fail(device->host, status, "%s: %s", l->module.name, reason);
    return status;
}

// Where the positions begin; of caches the slots, too, and how many there are.
static void push_starts(const struct update_plan_launch *l, const tn_layout *start,
                        struct vk_launch *launch)
{
    launch_push(launch, (uint64_t)start->offset);
    if (!l->cache)
        return;
    launch_push(launch, (uint64_t)tn_step_input(l->cache, 3)->layout.offset);
    launch_push(launch, (uint64_t)start->extent[0]);
}

static tn_status update_plan_add_launch(struct update_plan_launch *l,
                                        const tn_layout *start)
{
    struct vk_launch launch = {.pipeline = l->module, .groups = l->groups};
    if (!plan_fused_operands(l->bindings, l->num_bindings, l->operands, &l->num_operands,
                             VK_MAX_OPERANDS))
        return l->plan->device->host->fail(l->plan->device->host, TN_ERR_INTERNAL,
                                           "%s: too many operands", l->module.name);
    launch.pipeline.code = update_plan_get_code;
    launch.pipeline.context = l;
    launch.pipeline.key = plan_fused_key(l->module.key, l->bindings, l->num_bindings);
    for (uint32_t i = 0; i < l->num_operands; i++)
        launch_bind(&launch, l->operands[i]);
    push_starts(l, start, &launch);
    return plan_launch(l->plan, &launch);
}

tn_status updates_plan(struct vk_plan *plan, const tn_step *const *steps, uint32_t count)
{
    struct update_plan_launch l = {.plan = plan, .num_operands = 2};
    l.cache = is_cache(plan, steps[0]) ? steps[0] : NULL;
    const tn_value *start = tn_step_input(steps[0], 2);
    char name[VARIANT_NAME];
    uint32_t at = 0, words = count * sizeof(l.regions[0]) / sizeof(uint32_t);
    tn_status status = TN_OK;
    update_plan_write_name(plan, steps, count, name);
    if (l.cache)
        l.operands[l.num_operands++] = plan_operand(tn_step_input(l.cache, 3), VK_READS);
    if (!module_find_own(plan->device, name, &l.module))
        return plan->device->host->fail(plan->device->host, TN_ERR_INTERNAL,
                                        "no module named %s", name);
    for (uint32_t i = 0; i < count && status == TN_OK; i++)
        status = add_part(&l, i, steps[i]);
    if (status == TN_OK)
        status = plan_constants_at(plan, (const uint32_t *)l.regions, words,
                                   TN_VULKAN_ALIGNMENT / 4, &at);
    l.operands[0] = (struct vk_operand){VK_SLOT_CONSTANTS, VK_READS, (uint64_t)at * 4,
                                        (uint64_t)words * 4};
    l.operands[1] = plan_operand(start, VK_READS);
    if (status == TN_OK)
        status = update_plan_add_launch(&l, &start->layout);
    for (uint32_t i = 0; i < count; i++)
        free(l.parts[i]);
    return status;
}
