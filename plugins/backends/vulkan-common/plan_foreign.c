// SPDX-License-Identifier: MIT
// Kernels that op packs bring: families vulkan.glsl/1 and vulkan.spirv/1.
#include "plan.h"

#include "program.h"

static const tn_value *step_value(const tn_step *step, uint32_t operand)
{
    return operand < step->num_inputs ? &step->inputs[operand]
                                      : &step->outputs[operand - step->num_inputs];
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
    const char *at = (const char *)step->attrs + attr->offset;
    double real;
    int64_t whole;
    memcpy(&real, at, sizeof(real));
    memcpy(&whole, at, sizeof(whole));
    if (field->kind == TN_PUSH_ATTR_I32)
        return (uint32_t)(attr->kind == TN_ATTR_F64 ? (int64_t)real : whole);
    float narrow = (float)(attr->kind == TN_ATTR_F64 ? real : (double)whole);
    uint32_t word;
    memcpy(&word, &narrow, sizeof(word));
    return word;
}

static uint32_t push_word(const tn_step *step, const tn_push_field *field)
{
    if (field->kind == TN_PUSH_COUNT)
        return (uint32_t)count_elements(&step->outputs[0].layout);
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

struct source {
    const tn_kernel *kernel;
    const tn_vulkan_kernel *payload;
};

static tn_status get_code(tn_device *device, void *context, struct vk_code *out)
{
    const struct source *source = context;
    if (strcmp(source->kernel->family, TN_FAMILY_VULKAN_SPIRV) == 0) {
        *out = (struct vk_code){.words = source->payload->code,
                                .size = source->payload->code_size};
        return TN_OK;
    }
    return device->flavour->compile(device, source->kernel->name, source->payload->code,
                                    source->payload->code_size, out);
}

static tn_status check(struct vk_plan *plan, const tn_step *step,
                       const tn_vulkan_kernel *payload)
{
    const tn_host *host = plan->device->host;
    const tn_kernel *kernel = step->kernel;
    bool is_spirv = strcmp(kernel->family, TN_FAMILY_VULKAN_SPIRV) == 0;
    bool is_glsl = strcmp(kernel->family, TN_FAMILY_VULKAN_GLSL) == 0;
    if (!is_spirv && !(is_glsl && plan->device->flavour->compile))
        return host->fail(host, TN_ERR_UNSUPPORTED, "kernel %s: %s does not run family %s",
                          kernel->name, plan->device->flavour->name, kernel->family);
    if (!payload || !payload->code || payload->num_push > VK_MAX_PUSH ||
        payload->elements_per_group == 0 ||
        step->num_inputs + step->num_outputs > VK_MAX_OPERANDS)
        return host->fail(host, TN_ERR_REFUSED,
                          "kernel %s: needs code, at most %d push fields and %d operands, "
                          "and elements_per_group",
                          kernel->name, VK_MAX_PUSH, VK_MAX_OPERANDS);
    const uint32_t *words = payload->code;
    if (is_spirv && (payload->code_size < 20 || payload->code_size % 4 != 0 ||
                     (uintptr_t)words % 4 != 0 || words[0] != 0x07230203))
        return host->fail(host, TN_ERR_REFUSED, "kernel %s: its code is not SPIR-V",
                          kernel->name);
    return TN_OK;
}

tn_status plan_foreign(struct vk_plan *plan, const tn_step *step)
{
    struct source source = {step->kernel, step->kernel->payload};
    tn_status status = check(plan, step, source.payload);
    if (status != TN_OK)
        return status;
    const tn_vulkan_kernel *payload = source.payload;
    struct vk_launch launch = {.pipeline = {.name = step->kernel->name,
                                            .code = get_code,
                                            .context = &source,
                                            .entry = payload->entry}};
    launch.pipeline.key =
        vk_hash_bytes((struct vk_hash){3, 4}, payload->code, payload->code_size);
    uint64_t n = count_elements(&step->outputs[0].layout);
    launch.groups = (n + payload->elements_per_group - 1) / payload->elements_per_group;
    for (uint32_t i = 0; i < step->num_inputs + step->num_outputs; i++) {
        const tn_value *value = step_value(step, i);
        // A binding must have something in it: an absent input sees the first output.
        bool absent = value->layout.dtype == TN_DTYPE_NONE;
        uint32_t access = i < step->num_inputs ? VK_READS : VK_WRITES | VK_READS;
        launch_bind(&launch, plan_operand(absent ? &step->outputs[0] : value, access));
    }
    for (uint32_t i = 0; i < payload->num_push; i++)
        launch_push(&launch, push_word(step, &payload->push[i]));
    return plan_launch(plan, &launch);
}
