// SPDX-License-Identifier: MIT
// Plans kernels of op packs: families vulkan.glsl/1 and vulkan.spirv/1.
#include "plan.h"

#include <stdio.h>
#include <tenon/ops/reference.h>
#include "program.h"
#include "spirv_check.h"

static const tn_value *step_value(const tn_step *step, uint32_t operand)
{
    return operand < step->num_inputs ? tn_step_input(step, operand)
                                      : tn_step_output(step, operand - step->num_inputs);
}

static uint64_t count_elements(const tn_layout *layout)
{
    uint64_t n = 1;
    for (int32_t axis = 0; axis < layout->rank; axis++)
        n *= (uint64_t)layout->extent[axis];
    return n;
}

static uint32_t push_attr(const tn_step *step, const tn_push_field *field)
{
    const tn_attr_table *table = &step->primitive->attrs;
    if (field->index >= table->num_fields)
        return 0;
    const tn_attr_field *attr = (const tn_attr_field *)((const char *)table->fields +
                                                        field->index * table->field_size);
    if (attr->kind == TN_ATTR_INTS || attr->kind > TN_ATTR_BITS)
        return 0; // a text or a list
    const char *at = (const char *)step->attrs + attr->offset;
    double real;
    int64_t whole;
    memcpy(&real, at, sizeof(real));
    memcpy(&whole, at, sizeof(whole));
    if (field->kind == TN_PUSH_ATTR_I32)
        return (uint32_t)(attr->kind == TN_ATTR_F64 ? tn_integer_of_f64(TN_I32, real)
                                                    : whole);
    float narrow = (float)(attr->kind == TN_ATTR_F64 ? real : (double)whole);
    uint32_t word;
    memcpy(&word, &narrow, sizeof(word));
    return word;
}

static uint32_t push_word(const tn_step *step, const tn_push_field *field)
{
    if (field->kind == TN_PUSH_COUNT)
        return (uint32_t)count_elements(&tn_step_output(step, 0)->layout);
    if (field->kind == TN_PUSH_ATTR_F32 || field->kind == TN_PUSH_ATTR_I32)
        return push_attr(step, field);
    if (field->index >= step->num_inputs + step->num_outputs)
        return 0;
    const tn_layout *layout = &step_value(step, field->index)->layout;
    int32_t axis = field->axis < 0 ? field->axis + layout->rank : field->axis;
    bool has_axis = axis >= 0 && axis < layout->rank;
    switch (field->kind) {
    case TN_PUSH_OFFSET:
        return (uint32_t)layout->offset;
    case TN_PUSH_EXTENT:
        return has_axis ? (uint32_t)layout->extent[axis] : 1;
    case TN_PUSH_STRIDE:
        return has_axis ? (uint32_t)layout->stride[axis] : 0;
    case TN_PUSH_ELEMENTS:
        return (uint32_t)count_elements(layout);
    default:
        return 0;
    }
}

// "com.acme.axpby/glsl of acme.axpby/1", as TENON_KERNELS names it.
#define KERNEL_NAME 256
static void name_kernel(const tn_step *step, char name[KERNEL_NAME])
{
    bool known = TN_HAS(step, plugin);
    snprintf(name, KERNEL_NAME, "%.80s%s%.60s of %.80s", known ? step->plugin : "",
             known ? "/" : "", step->kernel->name, step->kernel->primitive);
}

struct source {
    const tn_kernel *kernel;
    const tn_vulkan_kernel *payload;
    const char *name;
    struct spirv_wants wants;
};

static bool is_glsl(const tn_kernel *kernel)
{
    return strcmp(kernel->family, TN_FAMILY_VULKAN_GLSL) == 0;
}

static tn_status get_code(tn_device *device, void *context, struct vk_code *out)
{
    const struct source *source = context;
    const tn_vulkan_kernel *payload = source->payload;
    struct vk_code code = {.words = payload->code, .size = payload->code_size};
    tn_status status = TN_OK;
    if (is_glsl(source->kernel))
        status = device->flavour->compile(device, source->name, payload->code,
                                          payload->code_size, &code);
    if (status != TN_OK)
        return status;
    char reason[VK_REASON];
    if (!vk_spirv_check(&device->facts, &code, &source->wants, reason)) {
        if (code.release)
            code.release(&code);
        return device->host->fail(device->host, TN_ERR_REFUSED, "kernel %s: its code %s",
                                  source->name, reason);
    }
    *out = code;
    return TN_OK;
}

static tn_status check(struct vk_plan *plan, const tn_step *step, const char *name)
{
    const tn_host *host = plan->device->host;
    const tn_kernel *kernel = step->kernel;
    const tn_vulkan_kernel *payload = kernel->payload;
    bool is_spirv = strcmp(kernel->family, TN_FAMILY_VULKAN_SPIRV) == 0;
    uint32_t num_operands = step->num_inputs + step->num_outputs;
    if (!is_spirv && !(is_glsl(kernel) && plan->device->flavour->compile))
        return host->fail(host, TN_ERR_UNSUPPORTED, "kernel %s: %s does not run family %s",
                          name, plan->device->flavour->name, kernel->family);
    if (!payload || !payload->code || payload->code_size == 0)
        return host->fail(host, TN_ERR_REFUSED, "kernel %s: it has no code", name);
    if (payload->num_push > VK_MAX_PUSH || (payload->num_push > 0 && !payload->push))
        return host->fail(host, TN_ERR_REFUSED,
                          "kernel %s: got %u push fields, expected at most %d", name,
                          payload->num_push, VK_MAX_PUSH);
    if (payload->elements_per_group == 0)
        return host->fail(host, TN_ERR_REFUSED,
                          "kernel %s: elements_per_group is 0, expected 1 at least", name);
    if (num_operands > VK_MAX_OPERANDS)
        return host->fail(host, TN_ERR_REFUSED,
                          "kernel %s: got %u operands, expected at most %d", name,
                          num_operands, VK_MAX_OPERANDS);
    return TN_OK;
}

tn_status plan_foreign(struct vk_plan *plan, const tn_step *step)
{
    char name[KERNEL_NAME];
    name_kernel(step, name);
    tn_status status = check(plan, step, name);
    if (status != TN_OK)
        return status;
    const tn_vulkan_kernel *payload = step->kernel->payload;
    uint32_t num_operands = step->num_inputs + step->num_outputs;
    struct source source = {step->kernel, payload, name, {payload->entry, num_operands}};
    struct vk_launch launch = {.pipeline = {.name = name,
                                            .code = get_code,
                                            .context = &source,
                                            .entry = payload->entry},
                               .no_grid_row = true};
    // The family counts: equal bytes as GLSL and as SPIR-V are different kernels.
    launch.pipeline.key = vk_hash_bytes((struct vk_hash){3, is_glsl(step->kernel) ? 5 : 4},
                                        payload->code, payload->code_size);
    uint64_t n = count_elements(&tn_step_output(step, 0)->layout);
    launch.groups = n / payload->elements_per_group + (n % payload->elements_per_group > 0);
    for (uint32_t i = 0; i < num_operands; i++) {
        const tn_value *value = step_value(step, i);
        // A descriptor needs a buffer: an absent input gets that of the first output.
        bool absent = value->layout.dtype == TN_DTYPE_NONE;
        uint32_t access = i < step->num_inputs ? VK_READS : VK_WRITES | VK_READS;
        launch_bind(&launch,
                    plan_operand(absent ? tn_step_output(step, 0) : value, access));
    }
    for (uint32_t i = 0; i < payload->num_push; i++)
        launch_push(&launch, push_word(step, &payload->push[i]));
    return plan_launch(plan, &launch);
}
