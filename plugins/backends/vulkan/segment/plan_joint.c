// SPDX-License-Identifier: MIT
#include "plan_joint.h"

#include <stdio.h>
#include "../dispatch/plan_fused.h"
#include "vulkan/matmul/plan_matmul.h"
#include "plan_products.h"

#define MOST_ROWS 16
#define MOST_SHARED 26624 // bytes of shared memory that the kernel takes

static struct product joint_plan_product_of(const tn_step *step)
{
    return product_describe(&tn_step_input(step, 0)->layout,
                            &tn_step_input(step, 1)->layout);
}

// The columns of a workgroup: more of them where it brings many rows to shared memory, and
// enough workgroups are left for a large device.
static uint32_t count_columns(const struct product *p)
{
    uint32_t columns = PRODUCT_FEW_COLUMNS;
    while (p->rows > PRODUCT_FEW_ROWS && columns < 32 && p->columns / columns >= 256)
        columns *= 2;
    return columns;
}

static bool joint_plan_has_few_rows(const struct product *p)
{
    return p->num_axes == 0 && p->batches > 0 && p->rows > 0 && p->rows <= MOST_ROWS &&
           p->columns > 0;
}

bool joint_begins(const struct vk_plan *plan, const tn_step *step)
{
    if (step->num_fused != 1 || !products_is_own(plan, step) ||
        tn_step_fused(step, 0)->operand != step->num_inputs ||
        tn_dtype_computed(tn_step_output(step, 0)->layout.dtype) != TN_F32 ||
        plan->device->facts.limits.max_shared < MOST_SHARED)
        return false;
    const struct product p = joint_plan_product_of(step);
    return joint_plan_has_few_rows(&p);
}

// Whether both have the same extents, and operands that lie alike.
static bool joint_plan_is_alike(const tn_step *a, const tn_step *b)
{
    const struct product p = joint_plan_product_of(a), q = joint_plan_product_of(b);
    return joint_plan_has_few_rows(&q) && p.rows == q.rows && p.columns == q.columns &&
           p.terms == q.terms && p.a.row == q.a.row && p.a.column == q.a.column &&
           p.b.row == q.b.row && p.b.column == q.b.column &&
           tn_step_output(a, 0)->layout.dtype == tn_step_output(b, 0)->layout.dtype;
}

// Whether all steps have the same left operand.
static bool joint_plan_have_one_left(const tn_step *const *steps, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (!products_same_value(tn_step_input(steps[0], 0), tn_step_input(steps[i], 0)))
            return false;
    return true;
}

// The step whose result is this input of the program of the first one; count: none is.
static uint32_t step_of_input(const tn_step *const *steps, uint32_t count,
                              const tn_value *in)
{
    if (in->flags & TN_VALUE_FUSED)
        return 0;
    uint32_t i = 1;
    while (i < count && (in->id == 0 || tn_step_output(steps[i], 0)->id != in->id))
        i++;
    return i;
}

// --- the program -----------------------------------------------------------------------

// The program of the first step, through which the results of all steps pass.
struct joint_program {
    tn_value values[PROGRAM_MAX_OPERANDS];
    tn_fused fused;
    struct fused_part part;
};

static void joint_plan_describe(const tn_step *const *steps, uint32_t count,
                                struct joint_program *out)
{
    const tn_fused *fused = tn_step_fused(steps[0], 0);
    struct fused_part *part = &out->part;
    char access[PROGRAM_MAX_OPERANDS] = {0};
    for (uint32_t i = 0; i < fused->num_inputs; i++) {
        out->values[i] = *tn_fused_input(steps[0], fused, i);
        uint32_t step = step_of_input(steps, count, &out->values[i]);
        if (step < count) {
            out->values[i].flags |= TN_VALUE_FUSED;
            access[i] = (char)(ACCESS_PART + step);
        }
    }
    for (uint32_t i = 0; i < fused->num_outputs; i++)
        out->values[fused->num_inputs + i] = *tn_fused_output(steps[0], fused, i);
    out->fused = *fused;
    out->fused.inputs = out->values;
    out->fused.outputs = out->values + fused->num_inputs;
    *part = (struct fused_part){.fused = &out->fused};
    part->alone = plan_fused_step(steps[0], &out->fused);
    part->alone.value_size = sizeof(tn_value);
    program_classify_function(&part->alone, &part->class, &part->args);
    part->class.parts = count;
    for (uint32_t i = 0; i < fused->num_inputs; i++)
        if (access[i])
            part->class.access[i] = access[i];
}

// Whether the program reads the result of the last step, and only element by element.
static bool reads_in_order(const tn_step *const *steps, uint32_t count)
{
    const tn_fused *fused = tn_step_fused(steps[0], 0);
    const tn_value *result = tn_step_output(steps[count - 1], 0);
    const tn_step alone = plan_fused_step(steps[0], fused);
    struct program_class class;
    struct program_args args;
    bool found = false;
    program_classify_function(&alone, &class, &args);
    for (uint32_t i = 0; i < fused->num_inputs; i++) {
        const tn_value *in = tn_fused_input(steps[0], fused, i);
        if (step_of_input(steps, count, in) != count - 1)
            continue;
        found = true;
        if (class.access[i] != ACCESS_LOOSE || in->layout.dtype != result->layout.dtype ||
            in->offset != result->offset || in->layout.offset != result->layout.offset ||
            layout_count(&in->layout) != layout_count(&result->layout))
            return false;
    }
    return found;
}

// Bindings of the launch, those of the program included.
static uint32_t joint_plan_count_bindings(const tn_step *const *steps, uint32_t count)
{
    const tn_fused *fused = tn_step_fused(steps[0], 0);
    uint32_t own = 1 + count + (joint_plan_have_one_left(steps, count) ? 1 : count);
    return own + fused->num_inputs + fused->num_outputs + 1;
}

bool joint_fits(const struct vk_plan *plan, const tn_step *const *steps, uint32_t count)
{
    const tn_step *last = steps[count - 1];
    uint32_t most = plan->device->facts.limits.max_operands;
    most = most < VK_MAX_OPERANDS ? most : VK_MAX_OPERANDS;
    return count <= JOINT_MAX_STEPS && last->num_fused == 0 &&
           products_is_own(plan, last) && joint_plan_is_alike(steps[0], last) &&
           joint_plan_count_bindings(steps, count) <= most && reads_in_order(steps, count);
}

// --- the launch ------------------------------------------------------------------------

#define DEFINES 96

struct joint_plan_launch {
    struct fused_binding fused;
    tn_vulkan_module module;
    char name[VARIANT_NAME], defines[DEFINES];
};

static tn_status get_code(tn_device *device, void *context, struct vk_code *out)
{
    const struct joint_plan_launch *l = context;
    char reason[VK_REASON] = "";
    tn_status status = device->flavour->compile(device, l->name, &l->module, out);
    if (status == TN_OK)
        status = plan_fused_link(device, &l->fused, 1, out, reason);
    if (status != TN_OK && reason[0])
        return device->host->fail(device->host, status, "%s: %s", l->name, reason);
    return status;
}

static tn_status joint_plan_choose_module(const struct vk_plan *plan,
                                          const tn_step *const *steps, uint32_t count,
                                          struct joint_plan_launch *l)
{
    const char *text = plan->device->flavour->joint();
    const struct product p = joint_plan_product_of(steps[0]);
    const char *dtype = dtype_glsl(tn_step_output(steps[0], 0)->layout.dtype);
    uint32_t rows = 1;
    while (rows < p.rows)
        rows *= 2;
    if (!text)
        return plan->device->host->fail(plan->device->host, TN_ERR_MEMORY, "out of memory");
    snprintf(l->name, sizeof(l->name), "matmul_joint_%s_%u of %u", dtype, rows, count);
    snprintf(l->defines, sizeof(l->defines), "IN=%s ROWS=%u FACTORS=%u COLUMNS=%u%s", dtype,
             rows, count, count_columns(&p),
             joint_plan_have_one_left(steps, count) ? " SHARED_A" : "");
    l->module = (tn_vulkan_module){
        .name = l->name, .code = text, .code_size = strlen(text), .defines = l->defines};
    return TN_OK;
}

static void joint_plan_push_product(const tn_step *const *steps, uint32_t count,
                                    struct vk_launch *launch)
{
    const struct product p = joint_plan_product_of(steps[0]);
    const uint64_t words[] = {p.rows,     p.columns, p.terms,   p.a.row,
                              p.a.column, p.b.row,   p.b.column};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        launch->push[launch->num_push++] = (uint32_t)words[i];
    for (uint32_t operand = 0; operand < 2; operand++)
        for (uint32_t i = 0; i < JOINT_MAX_STEPS; i++)
            launch->push[launch->num_push++] =
                i < count ? (uint32_t)tn_step_input(steps[i], operand)->layout.offset : 0;
    launch_spec(launch, product_a_along_k(&p));
    launch_spec(launch, product_b_along_k(&p));
    launch->groups = ceil_div(p.columns, count_columns(&p));
}

static tn_status joint_plan_add_launch(struct vk_plan *plan, const tn_step *const *steps,
                                       uint32_t count, struct joint_plan_launch *l)
{
    struct fused_binding *fused = &l->fused;
    struct vk_operand operands[VK_MAX_OPERANDS];
    uint32_t num_operands = 1,
             num_left = joint_plan_have_one_left(steps, count) ? 1 : count;
    struct vk_launch launch = {
        .pipeline = {.name = l->name,
                     .key = vk_hash_text((struct vk_hash){8, 0}, l->defines),
                     .code = get_code,
                     .context = l}};
    tn_status status = plan_fused_args(plan, fused->part, &operands[0]);
    if (status != TN_OK)
        return status;
    for (uint32_t i = 0; i < count; i++)
        operands[num_operands++] = plan_operand(tn_step_input(steps[i], 1), VK_READS);
    for (uint32_t i = 0; i < num_left; i++)
        operands[num_operands++] = plan_operand(tn_step_input(steps[i], 0), VK_READS);
    if (!plan_fused_operands(fused, 1, operands, &num_operands, VK_MAX_OPERANDS))
        return plan->device->host->fail(plan->device->host, TN_ERR_INTERNAL,
                                        "%s: too many operands", l->name);
    launch.pipeline.key = plan_fused_key(launch.pipeline.key, fused, 1);
    for (uint32_t i = 0; i < num_operands; i++)
        launch_bind(&launch, operands[i]);
    joint_plan_push_product(steps, count, &launch);
    return plan_launch(plan, &launch);
}

tn_status joint_plan(struct vk_plan *plan, const tn_step *const *steps, uint32_t count)
{
    struct joint_program program;
    struct joint_plan_launch l = {.fused = {.part = &program.part, .dtype = TN_F32}};
    joint_plan_describe(steps, count, &program);
    tn_status status = joint_plan_choose_module(plan, steps, count, &l);
    return status == TN_OK ? joint_plan_add_launch(plan, steps, count, &l) : status;
}
