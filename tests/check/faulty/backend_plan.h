// SPDX-License-Identifier: MIT
// Kernels of vulkan.glsl/1 in the small backend of backend.c: plans are called and checked
// when a segment is compiled, and called again when it runs. Of shaders it knows the kit's
// two, by their comments, and computes in C what they say.
#ifndef BACKEND_PLAN_H
#define BACKEND_PLAN_H

#include <tenon/vulkan.h>

enum shader { UNKNOWN, DOUBLE, MIX };

static enum shader shader_of(const tn_vulkan_module *module)
{
    if (module->code && memmem(module->code, module->code_size, "The kit's own kernel", 20))
        return DOUBLE;
    if (module->code &&
        memmem(module->code, module->code_size, "The kit's planned kernel", 24))
        return MIX;
    return UNKNOWN;
}

static bool is_vulkan(const tn_step *step)
{
    return step->kernel && strcmp(step->kernel->family, TN_FAMILY_VULKAN_GLSL) == 0;
}

static void *address(const tn_binding *bindings, uint32_t slot, uint64_t offset);
// Element `n` of an operand of a step, by the program that it passes through.
static void pass_element(const tn_step *step, const tn_binding *bindings, uint32_t operand,
                         int64_t n, void *value);

static const tn_vulkan_limits plan_limits = {.struct_size = sizeof(tn_vulkan_limits),
#ifndef FAULT_FAMILY_GLSL_PLAN_LIMITS
                                             .max_groups = {65535, 65535, 65535},
#endif
                                             .max_group_size = {128, 128, 64},
                                             .max_invocations = 128,
                                             .max_shared = 16384,
                                             .max_push = 128,
                                             .max_constants = 16,
                                             .max_operands = 8,
                                             .subgroup_size = 1,
                                             .max_range = UINT64_C(1) << 27};

// A plan that is called. Without bindings its launches are checked, else they run.
struct planning {
    tn_vulkan_plan face; // first: its functions are called with its address
    const tn_binding *bindings;
    tn_status status; // of the first launch that failed
    uint32_t launches;
    uint32_t push[5]; // of the first launch
};

static tn_status refused(struct planning *p, const char *why)
{
    p->status = p->face.host->fail(p->face.host, TN_ERR_REFUSED, "kernel %s: %s",
                                   p->face.step->kernel->name, why);
    return p->status;
}

// --- what a launch may ask for ---------------------------------------------------------

static const char *operand_fault(const tn_step *step, const tn_vulkan_operand *o)
{
#ifndef FAULT_FAMILY_PLAN_INPUT
    if (o->kind == TN_VULKAN_INPUT && o->index >= step->num_inputs)
        return "the step has no such input";
    if (o->kind == TN_VULKAN_INPUT && o->access & TN_VULKAN_WRITES)
        return "an input is written";
#endif
#ifndef FAULT_FAMILY_PLAN_SCRATCH
    if (o->kind == TN_VULKAN_SCRATCH && o->offset + o->size > step->scratch_size)
        return "there is less scratch memory";
    if (o->kind == TN_VULKAN_SCRATCH && o->offset % TN_VULKAN_ALIGNMENT)
        return "scratch memory is not aligned";
#endif
    return NULL;
}

static const char *launch_fault(const struct planning *p, const tn_vulkan_launch *launch)
{
    const tn_vulkan_kernel *kernel = p->face.step->kernel->payload;
#ifndef FAULT_FAMILY_PLAN_MODULE
    if (launch->module >= kernel->num_modules)
        return "there is no such module";
#endif
    for (int i = 0; i < 3; i++)
#ifdef FAULT_FAMILY_PLAN_GROUPS
        if (i < 2)
#endif
            if (launch->groups[i] > p->face.limits->max_groups[i])
                return "there are too many workgroups";
#ifndef FAULT_FAMILY_PLAN_PUSH
    if (launch->num_push * 4 > p->face.limits->max_push || launch->num_push != 5)
        return "the module's block has 5 words of push constants";
#endif
#ifndef FAULT_FAMILY_PLAN_CONSTANT
    for (uint32_t i = 0; i < launch->num_constants; i++)
        if (launch->constants[i].id != 5)
            return "the module has no such specialisation constant";
#endif
#ifndef FAULT_FAMILY_PLAN_OPERANDS
    if (launch->num_operands < 3)
        return "the module has three bindings";
#endif
    (void)kernel;
    for (uint32_t i = 0; i < launch->num_operands; i++)
        if (operand_fault(p->face.step, &launch->operands[i]))
            return operand_fault(p->face.step, &launch->operands[i]);
    return NULL;
}

// --- what the shaders compute ----------------------------------------------------------

static uint32_t *memory_of(const struct planning *p, const tn_vulkan_operand *o)
{
    const tn_step *step = p->face.step;
    if (o->kind == TN_VULKAN_SCRATCH)
        return address(p->bindings, step->scratch_slot, step->scratch_offset + o->offset);
    if (o->kind == TN_VULKAN_DATA)
        return (uint32_t *)(uintptr_t)o->data;
    const tn_value *value = o->kind == TN_VULKAN_INPUT ? tn_step_input(step, o->index)
                                                       : tn_step_output(step, o->index);
    return address(p->bindings, value->slot, value->offset);
}

static void run_mix(const struct planning *p, const tn_vulkan_launch *launch)
{
    const uint32_t *from = memory_of(p, &launch->operands[0]);
    const uint32_t *table = memory_of(p, &launch->operands[2]), *push = launch->push;
    uint32_t *to = memory_of(p, &launch->operands[1]);
    bool last = launch->num_constants > 0 && launch->constants[0].value;
#ifdef FAULT_FAMILY_GLSL_PLAN_PUSH
    push = p->push; // of the first launch, for all
#elif defined(FAULT_FAMILY_GLSL_PLAN_CONSTANTS)
    last = false;
#elif defined(FAULT_FAMILY_GLSL_PLAN_DATA)
    static const uint32_t nothing[4];
    table = nothing;
#endif
    for (uint32_t i = 0; i < push[0]; i++) {
        uint32_t k = last ? push[0] - 1 - i : i, value = from[push[1] + k * push[3]];
        to[push[2] + i] = last ? value + push[4] * table[3] : value * table[i % 4];
    }
}

static tn_status on_launch(const tn_vulkan_plan *face, const tn_vulkan_launch *launch)
{
    struct planning *p = (struct planning *)(uintptr_t)face;
    if (p->status != TN_OK)
        return p->status;
    const char *fault = launch_fault(p, launch);
    if (fault)
        return refused(p, fault);
    if (p->launches++ == 0)
        memcpy(p->push, launch->push, sizeof(p->push));
#ifdef FAULT_FAMILY_GLSL_PLAN
    if (p->launches > 1)
        return TN_OK; // one launch is enough for a kernel
#endif
    if (p->bindings)
        run_mix(p, launch);
    return TN_OK;
}

static int32_t on_shares(const tn_vulkan_plan *plan, uint32_t input, uint32_t output)
{
    (void)plan, (void)input, (void)output;
#ifdef FAULT_FAMILY_GLSL_PLAN_SHARES
    return 1;
#endif
    return 0;
}

static tn_status call_plan(const tn_host *host, const tn_step *step,
                           const tn_binding *bindings)
{
    const tn_vulkan_kernel *kernel = step->kernel->payload;
    struct planning p = {.face = {.struct_size = sizeof(p.face),
                                  .host = host,
                                  .step = step,
                                  .limits = &plan_limits,
                                  .launch = on_launch,
                                  .shares = on_shares},
                         .bindings = bindings};
    tn_status status = kernel->plan(&p.face);
#ifdef FAULT_FAMILY_PLAN
    return TN_OK; // what a plan says does not count
#elif defined(FAULT_FAMILY_PLAN_STATUS)
    return status == TN_OK ? TN_OK : TN_ERR_INTERNAL;
#elif defined(FAULT_FAMILY_PLAN_OVERLOOKED)
    return status;
#endif
    return p.status != TN_OK ? p.status : status;
}

// The plain form, of the kit's fields.
static uint32_t push_word(const tn_step *step, const tn_push_field *field)
{
    const tn_layout *layout = field->index < step->num_inputs
                                  ? &tn_step_input(step, field->index)->layout
                                  : &tn_step_output(step, 0)->layout;
    switch (field->kind) {
    case TN_PUSH_OFFSET:
        return (uint32_t)layout->offset;
    case TN_PUSH_STRIDE:
        return (uint32_t)layout->stride[0];
    case TN_PUSH_ATTR_I32:
#ifdef FAULT_FAMILY_GLSL
        return 0;
#endif
        return (uint32_t)((const int64_t *)step->attrs)[0];
    default:
        return (uint32_t)layout->extent[0];
    }
}

static tn_status run_plain(const tn_step *step, const tn_binding *bindings)
{
    const tn_vulkan_kernel *kernel = step->kernel->payload;
    const tn_value *in = tn_step_input(step, 0), *out = tn_step_output(step, 0);
    const uint32_t *x = address(bindings, in->slot, in->offset);
    uint32_t *y = address(bindings, out->slot, out->offset), push[6];
    for (uint32_t i = 0; i < 6; i++)
        push[i] = push_word(step, &kernel->push[i]);
    for (uint32_t i = 0; i < push[0]; i++) {
        uint32_t value;
        if (in->flags & TN_VALUE_FUSED)
            pass_element(step, bindings, 0, i, &value);
        else
            value = x[push[1] + i * push[3]];
        value = 2 * value + push[4] + push[5];
#ifndef FAULT_FAMILY_GLSL_FUSED
        if (out->flags & TN_VALUE_FUSED) {
            pass_element(step, bindings, 1, i, &value);
            continue;
        }
#endif
        y[push[2] + i] = value;
    }
    return TN_OK;
}

static tn_status run_planned(const tn_host *host, const tn_step *step,
                             const tn_binding *bindings)
{
    const tn_vulkan_kernel *kernel = step->kernel->payload;
    return kernel->plan ? call_plan(host, step, bindings) : run_plain(step, bindings);
}

static tn_status check_planned(const tn_host *host, const tn_step *step)
{
    const tn_vulkan_kernel *kernel = step->kernel->payload;
    if (shader_of(&kernel->modules[0]) == UNKNOWN)
        return host->fail(host, TN_ERR_REFUSED, "this shader is unknown");
    return kernel->plan ? call_plan(host, step, NULL) : TN_OK;
}

#endif // BACKEND_PLAN_H
