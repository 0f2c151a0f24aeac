// SPDX-License-Identifier: MIT
// Plans steps with kernels of the families vulkan.glsl/1 and vulkan.spirv/1: this backend's
// own and those of op packs, by <tenon/vulkan.h>. Checks what a plan asks for.
#include "plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenon/checked.h>
#include <tenon/ops/reference.h>
#include "../pipeline/module.h"
#include "plan_fused.h"
#include "../spirv/spirv_check.h"

#define KERNEL_NAME 256

// One call of a kernel's plan. The plan sees `face`.
struct planning {
    tn_vulkan_plan face; // first: its functions are called with its address
    struct vk_plan *plan;
    const tn_vulkan_kernel *payload;
    bool is_glsl;
    bool is_own;              // the modules are this backend's
    tn_status status;         // of the first launch that failed
    struct fused_part *parts; // the step's programs beside the kernel
    char name[KERNEL_NAME];   // see kernel_name
};

// "com.acme.axpby/glsl of acme.axpby/1", as TENON_KERNELS names it.
static const char *kernel_name(struct planning *p)
{
    const tn_step *step = p->face.step;
    bool known = TN_HAS(step, plugin);
    if (!p->name[0])
        snprintf(p->name, KERNEL_NAME, "%.80s%s%.60s of %.80s", known ? step->plugin : "",
                 known ? "/" : "", step->kernel->name, step->kernel->primitive);
    return p->name;
}

static tn_status vk_plan_refuse(struct planning *p, tn_status status, const char *format,
                                ...) __attribute__((format(printf, 3, 4)));
static tn_status vk_plan_refuse(struct planning *p, tn_status status, const char *format,
                                ...)
{
    const tn_host *host = p->plan->device->host;
    char text[VK_REASON];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    return host->fail(host, status, "kernel %s: %s", kernel_name(p), text);
}

// --- modules ---------------------------------------------------------------------------

// The module of a launch, until its pipeline exists.
struct vk_plan_source {
    struct planning *planning;
    struct kernel_module module;
    const struct vk_pipeline_desc *desc;
    uint32_t num_push;                           // words of the module's own
    struct fused_binding fused[VK_MAX_OPERANDS]; // in the order of their bindings
    uint32_t num_fused;
};

// Own modules were validated when this plugin was built: only under validation, in tests,
// they are compared with their launches.
static tn_status check_code(tn_device *device, const struct vk_plan_source *source,
                            uint32_t num_push, const struct vk_code *code)
{
    const struct vk_pipeline_desc *desc = source->desc;
    const struct spirv_wants wants = {.entry = desc->entry,
                                      .num_bindings = desc->num_bindings,
                                      .num_push = num_push,
                                      .num_spec = desc->num_spec,
                                      .spec = desc->spec};
    const char *name = source->module.record->name;
    char reason[VK_REASON];
    if (source->planning->is_own && !device->instance->messenger)
        return TN_OK;
    if (vk_spirv_check(&device->facts, code, &wants, reason))
        return TN_OK;
    return vk_plan_refuse(source->planning, TN_ERR_REFUSED, "its %s%.60s %.300s",
                          name ? "module " : "code", name ? name : "", reason);
}

// Links the programs that operands of the launch pass through into its module.
static tn_status link_programs(tn_device *device, const struct vk_plan_source *source,
                               struct vk_code *code)
{
    const char *name = source->module.record->name;
    char reason[VK_REASON];
    if (source->num_fused == 0)
        return TN_OK;
    tn_status status =
        plan_fused_link(device, source->fused, source->num_fused, code, reason);
    if (status != TN_OK && reason[0])
        return vk_plan_refuse(source->planning, status, "its %s%.60s %.300s",
                              name ? "module " : "code", name ? name : "", reason);
    return status != TN_OK || !device->instance->messenger
               ? status
               : check_code(device, source, source->desc->num_push, code);
}

static tn_status get_code(tn_device *device, void *context, struct vk_code *out)
{
    const struct vk_plan_source *source = context;
    struct vk_code code = {0};
    tn_status status = module_spirv(device, source->desc->name, &source->module, &code);
    if (status == TN_OK)
        status = check_code(device, source, source->num_push, &code);
    if (status == TN_OK)
        status = link_programs(device, source, &code);
    if (status == TN_OK)
        *out = code;
    else if (code.release)
        code.release(&code);
    return status;
}

// --- operands --------------------------------------------------------------------------

static const tn_value *step_value(const tn_step *step, uint32_t operand)
{
    return operand < step->num_inputs ? tn_step_input(step, operand)
                                      : tn_step_output(step, operand - step->num_inputs);
}

// The part whose program an operand of the step passes through.
static struct fused_part *vk_plan_part_of(const struct planning *p, const tn_value *value)
{
    const tn_step *step = p->face.step;
    for (uint32_t i = 0; i < step->num_inputs + step->num_outputs; i++)
        if (step_value(step, i) == value)
            return plan_fused_find(p->parts, step->num_fused, i);
    return NULL;
}

// A value that passes through a program has no memory: its binding gets the program's
// arguments, or where these are pushed other memory of the program, and the module with the
// program does not look at it.
static tn_status resolve_memory(struct planning *p, const tn_value *value, uint32_t access,
                                struct vk_operand *out)
{
    bool passes = value->flags & TN_VALUE_FUSED;
    struct fused_part *part = passes ? vk_plan_part_of(p, value) : NULL;
    if (part && part->is_pushed && plan_fused_memory(part, out))
        return TN_OK;
    if (part)
        return plan_fused_args(p->plan, part, out);
    if (passes)
        return vk_plan_refuse(p, TN_ERR_INTERNAL, "an operand passes through no program");
    *out = plan_operand(value, access);
    return TN_OK;
}

static tn_status resolve_value(struct planning *p, uint32_t i,
                               const tn_vulkan_operand *given, struct vk_operand *out)
{
    const tn_step *step = p->face.step;
    bool is_input = given->kind == TN_VULKAN_INPUT;
    uint32_t count = is_input ? step->num_inputs : step->num_outputs;
    if (given->index >= count)
        return vk_plan_refuse(p, TN_ERR_REFUSED, "operand %u is %s %u, but the step has %u",
                              i, is_input ? "input" : "output", given->index, count);
    if (is_input && (given->access & VK_WRITES))
        return vk_plan_refuse(p, TN_ERR_REFUSED, "operand %u writes to input %u", i,
                              given->index);
    const tn_value *value =
        is_input ? tn_step_input(step, given->index) : tn_step_output(step, given->index);
    // A descriptor needs a buffer: an absent input gets that of the first output.
    if (value->layout.dtype == TN_DTYPE_NONE)
        value = tn_step_output(step, 0);
    return resolve_memory(p, value, given->access, out);
}

static tn_status resolve_scratch(struct planning *p, uint32_t i,
                                 const tn_vulkan_operand *given, struct vk_operand *out)
{
    const tn_step *step = p->face.step;
    uint64_t has = step->scratch_size, size = given->size, offset = given->offset;
    if (size == 0 || size > has || offset > has - size)
        return vk_plan_refuse(p, TN_ERR_REFUSED,
                              "operand %u is bytes %llu to %llu of the scratch memory, but "
                              "scratch_size gave %llu",
                              i, (unsigned long long)offset,
                              (unsigned long long)tn_saturated_add(offset, size),
                              (unsigned long long)has);
    if (offset % TN_VULKAN_ALIGNMENT != 0 || size % 4 != 0)
        return vk_plan_refuse(
            p, TN_ERR_REFUSED,
            "operand %u is %llu bytes of scratch memory from byte %llu on, "
            "expected multiples of 4 and %d",
            i, (unsigned long long)size, (unsigned long long)offset, TN_VULKAN_ALIGNMENT);
    *out = plan_scratch(step, offset, size);
    out->access = given->access;
    return TN_OK;
}

static tn_status resolve_data(struct planning *p, uint32_t i,
                              const tn_vulkan_operand *given, struct vk_operand *out)
{
    uint32_t at;
    if (!given->data || given->size == 0 || given->size % 4 != 0 ||
        given->size > p->face.limits->max_range || given->size > UINT32_MAX ||
        given->access != VK_READS)
        return vk_plan_refuse(
            p, TN_ERR_REFUSED,
            "operand %u is %llu bytes of data%s with access %u, expected a "
            "multiple of 4 that is read",
            i, (unsigned long long)given->size, given->data ? "" : " at no address",
            given->access);
    tn_status status = plan_constants_at(p->plan, given->data, (uint32_t)given->size / 4,
                                         TN_VULKAN_ALIGNMENT / 4, &at);
    *out = (struct vk_operand){VK_SLOT_CONSTANTS, VK_READS, (uint64_t)at * 4, given->size};
    return status;
}

// Reserves words that no other launch of the plan has.
static tn_status resolve_counters(struct planning *p, const tn_vulkan_operand *given,
                                  struct vk_operand *out)
{
    struct vk_plan *plan = p->plan;
    uint32_t step = TN_VULKAN_ALIGNMENT / 4;
    *out = (struct vk_operand){VK_SLOT_COUNTERS, given->access,
                               (uint64_t)plan->num_counters * 4, given->size};
    plan->num_counters += (uint32_t)(given->size / 4 + step - 1) / step * step;
    return TN_OK;
}

static tn_status vk_plan_resolve(struct planning *p, uint32_t i,
                                 const tn_vulkan_operand *given, struct vk_operand *out)
{
    if (given->access == 0 || (given->access & ~(VK_READS | VK_WRITES)))
        return vk_plan_refuse(p, TN_ERR_REFUSED,
                              "operand %u has access %u, expected 1 to 3", i,
                              given->access);
    switch (given->kind) {
    case TN_VULKAN_INPUT:
    case TN_VULKAN_OUTPUT:
        return resolve_value(p, i, given, out);
    case TN_VULKAN_SCRATCH:
        return resolve_scratch(p, i, given, out);
    case TN_VULKAN_DATA:
        return resolve_data(p, i, given, out);
    case VK_OPERAND_COUNTERS:
        if (p->is_own)
            return resolve_counters(p, given, out);
        // fall through
    default:
        return vk_plan_refuse(p, TN_ERR_REFUSED,
                              "operand %u is of kind %u, expected 1 to 4", i, given->kind);
    }
}

// --- launches --------------------------------------------------------------------------

static const tn_vulkan_operand *operand_at(const tn_vulkan_launch *given, uint32_t i)
{
    const void *at = (const char *)given->operands + (size_t)i * given->operand_size;
    return at;
}

// Checks that a list of `count` elements is given, and not longer than `most`.
static tn_status vk_plan_check_list(struct planning *p, const char *what, const void *list,
                                    uint32_t count, uint32_t most)
{
    if (count > most)
        return vk_plan_refuse(p, TN_ERR_UNSUPPORTED, "got %u %s, but %s takes at most %u",
                              count, what, p->plan->device->facts.properties.deviceName,
                              most);
    if (count > 0 && !list)
        return vk_plan_refuse(p, TN_ERR_REFUSED, "got %u %s at no address", count, what);
    return TN_OK;
}

static tn_status check_launch(struct planning *p, const tn_vulkan_launch *given)
{
    const tn_vulkan_limits *limits = p->face.limits;
    if (given->struct_size < TN_END_OF(given, constants))
        return vk_plan_refuse(
            p, TN_ERR_REFUSED, "a launch of %u bytes, expected at least %llu",
            given->struct_size, (unsigned long long)TN_END_OF(given, constants));
    if (given->module >= p->payload->num_modules)
        return vk_plan_refuse(p, TN_ERR_REFUSED, "a launch of module %u, but it has %u",
                              given->module, p->payload->num_modules);
    if (given->groups[0] != 0 && given->groups[1] == 0 && given->groups[2] == 0)
        return vk_plan_refuse(p, TN_ERR_REFUSED,
                              "%u x 0 x 0 workgroups, expected %u x 1 x 1",
                              given->groups[0], given->groups[0]);
    if ((given->num_operands > 0 && given->operand_size < sizeof(tn_vulkan_operand)) ||
        (given->num_constants > 0 && given->constant_size < sizeof(tn_vulkan_constant)))
        return vk_plan_refuse(p, TN_ERR_REFUSED,
                              "operands or constants without their size");
    tn_status status = vk_plan_check_list(p, "operands", given->operands,
                                          given->num_operands, limits->max_operands);
    if (status == TN_OK)
        status = vk_plan_check_list(p, "words of push constants", given->push,
                                    given->num_push, limits->max_push / 4);
    if (status == TN_OK)
        status = vk_plan_check_list(p, "specialisation constants", given->constants,
                                    given->num_constants, limits->max_constants);
    return status;
}

// Finds the operands of a launch that pass through programs, and appends the programs' own
// operands to those of the launch.
static tn_status vk_plan_add_programs(struct planning *p, const tn_vulkan_launch *given,
                                      struct vk_operand *operands, uint32_t *push,
                                      struct vk_plan_source *source,
                                      struct vk_pipeline_desc *desc)
{
    const tn_step *step = p->face.step;
    for (uint32_t i = 0; i < given->num_operands; i++) {
        const tn_vulkan_operand *operand = operand_at(given, i);
        bool is_input = operand->kind == TN_VULKAN_INPUT;
        if (!is_input && operand->kind != TN_VULKAN_OUTPUT)
            continue;
        uint32_t number = is_input ? operand->index : step->num_inputs + operand->index;
        const tn_value *value = step_value(step, number);
        if (value->flags & TN_VALUE_FUSED)
            source->fused[source->num_fused++] =
                (struct fused_binding){.part = vk_plan_part_of(p, value),
                                       .binding = i,
                                       .dtype = value->layout.dtype};
    }
    plan_fused_push(source->fused, source->num_fused, push, desc);
    if (!plan_fused_operands(source->fused, source->num_fused, operands,
                             &desc->num_bindings, p->face.limits->max_operands))
        return vk_plan_refuse(
            p, TN_ERR_REFUSED,
            "a launch of %u operands, expected at most %d where operands pass "
            "through programs",
            given->num_operands, TN_VULKAN_FUSED_OPERANDS);
    desc->key = plan_fused_key(desc->key, source->fused, source->num_fused);
    return TN_OK;
}

static tn_status vk_plan_add_launch(struct planning *p, const tn_vulkan_launch *given,
                                    struct vk_operand *operands,
                                    const tn_vulkan_constant *constants)
{
    const tn_vulkan_module *record = tn_vulkan_module_at(p->payload, given->module);
    bool can_unpack = TN_HAS(p->payload, unpack);
    if ((!record->code && !can_unpack) || record->code_size == 0)
        return vk_plan_refuse(p, TN_ERR_REFUSED, "it has no code in module %u",
                              given->module);
    struct vk_plan_source source;
    source.planning = p;
    source.module =
        (struct kernel_module){.record = record,
                               .number = given->module,
                               .is_glsl = p->is_glsl,
                               .unpack = can_unpack ? p->payload->unpack : NULL};
    struct vk_pipeline_desc desc = {.name = p->is_own ? record->name : kernel_name(p),
                                    .num_bindings = given->num_operands,
                                    .num_push = given->num_push,
                                    .num_spec = given->num_constants,
                                    .spec = constants,
                                    .entry = record->entry,
                                    .code = get_code,
                                    .context = &source};
    // Other plugins' launches do not tell which of their words are values.
    bool is_known = p->is_own && given->struct_size >= sizeof(struct own_launch);
    desc.values =
        is_known ? ((const struct own_launch *)(const void *)given)->values : UINT64_MAX;
    source.desc = &desc;
    source.num_push = given->num_push;
    source.num_fused = 0;
    uint32_t push[VK_MOST_PUSH];
    tn_status status = TN_OK;
    if (given->num_push > 0)
        memcpy(push, given->push, given->num_push * sizeof(push[0]));
    if (p->is_own)
        desc.key = module_own_key(&source.module);
    else
        status = module_others_key(p->plan->device, &source.module, &desc.key);
    if (status == TN_OK && p->parts)
        status = vk_plan_add_programs(p, given, operands, push, &source, &desc);
    return status != TN_OK ? status
                           : plan_add(p->plan, &desc, operands, push, given->groups);
}

// Chooses the programs whose arguments are pushed, as far as they fit behind the words of a
// launch. For own kernels alone: how others use their push constants is not known before
// their code is.
static void choose_pushed(struct planning *p, const tn_vulkan_launch *given)
{
    uint32_t room = p->is_own ? p->face.limits->max_push / 4 - given->num_push : 0;
    for (uint32_t i = 0; p->parts && i < p->face.step->num_fused; i++) {
        struct fused_part *part = &p->parts[i];
        part->is_pushed = part->args.num_words <= room;
        room -= part->is_pushed ? part->args.num_words : 0;
    }
}

static tn_status vk_plan_read_launch(struct planning *p, const tn_vulkan_launch *given)
{
    struct vk_operand operands[VK_MAX_OPERANDS];
    tn_vulkan_constant constants[VK_MAX_SPEC];
    tn_status status = check_launch(p, given);
    if (status == TN_OK)
        choose_pushed(p, given);
    for (uint32_t i = 0; i < given->num_operands && status == TN_OK; i++)
        status = vk_plan_resolve(p, i, operand_at(given, i), &operands[i]);
    if (status != TN_OK)
        return status;
    if (given->num_constants == 0 || given->constant_size == sizeof(constants[0]))
        return vk_plan_add_launch(p, given, operands, given->constants);
    for (uint32_t i = 0; i < given->num_constants; i++)
        memcpy(&constants[i],
               (const char *)given->constants + (size_t)i * given->constant_size,
               sizeof(constants[0]));
    return vk_plan_add_launch(p, given, operands, constants);
}

static tn_status vk_plan_launch(const tn_vulkan_plan *face, const tn_vulkan_launch *given)
{
    struct planning *p = (struct planning *)(uintptr_t)face;
    if (p->status == TN_OK)
        p->status = vk_plan_read_launch(p, given);
    return p->status;
}

static int32_t vk_plan_shares(const tn_vulkan_plan *face, uint32_t input, uint32_t output)
{
    const struct planning *p = (const struct planning *)face;
    const tn_step *step = face->step;
    if (input >= step->num_inputs || output >= step->num_outputs)
        return 0;
    const tn_value *x = tn_step_input(step, input), *out = tn_step_output(step, output);
    return x->layout.dtype != TN_DTYPE_NONE &&
           !((x->flags | out->flags) & TN_VALUE_FUSED) &&
           plan_memory(p->plan, x->slot) == plan_memory(p->plan, out->slot) &&
           x->offset == out->offset && x->layout.offset == out->layout.offset;
}

// --- the plain form --------------------------------------------------------------------

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
        return (uint32_t)layout_count(&tn_step_output(step, 0)->layout);
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
        return (uint32_t)layout_count(layout);
    default:
        return 0;
    }
}

// The form without a `plan`: one launch on all operands.
static tn_status plan_plain(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_vulkan_kernel *payload = step->kernel->payload;
    uint64_t n = layout_count(&tn_step_output(step, 0)->layout);
    tn_vulkan_operand operands[VK_MAX_OPERANDS];
    uint32_t push[VK_MAX_PUSH];
    tn_vulkan_launch launch = {.struct_size = sizeof(launch),
                               .operands = operands,
                               .num_operands = step->num_inputs + step->num_outputs,
                               .operand_size = sizeof(operands[0]),
                               .push = push,
                               .num_push = payload->num_push};
    for (uint32_t i = 0; i < launch.num_operands; i++) {
        bool is_input = i < step->num_inputs;
        operands[i] =
            is_input ? tn_vulkan_input(i) : tn_vulkan_output(i - step->num_inputs);
        operands[i].access = is_input ? VK_READS : VK_READS | VK_WRITES;
    }
    for (uint32_t i = 0; i < payload->num_push; i++)
        push[i] = push_word(step, &payload->push[i]);
    tn_vulkan_rows(plan->limits,
                   n / payload->elements_per_group + (n % payload->elements_per_group > 0),
                   launch.groups);
    return plan->launch(plan, &launch);
}

static tn_status check_plain(struct planning *p)
{
    const tn_vulkan_kernel *payload = p->payload;
    uint32_t num_operands = p->face.step->num_inputs + p->face.step->num_outputs;
    if (payload->num_push > VK_MAX_PUSH || (payload->num_push > 0 && !payload->push))
        return vk_plan_refuse(p, TN_ERR_REFUSED, "got %u push fields, expected at most %d",
                              payload->num_push, VK_MAX_PUSH);
    if (payload->elements_per_group == 0)
        return vk_plan_refuse(
            p, TN_ERR_REFUSED,
            "it has no plan, and elements_per_group is 0, expected 1 at least");
    if (num_operands > VK_MAX_OPERANDS)
        return vk_plan_refuse(p, TN_ERR_REFUSED, "got %u operands, expected at most %d",
                              num_operands, VK_MAX_OPERANDS);
    return TN_OK;
}

// --- a step ----------------------------------------------------------------------------

static tn_status vk_plan_check_payload(struct planning *p, const tn_kernel *kernel)
{
    const struct vk_flavour *flavour = p->plan->device->flavour;
    bool is_spirv = strcmp(kernel->family, TN_FAMILY_VULKAN_SPIRV) == 0;
    if (!is_spirv && !(p->is_glsl && flavour->compile))
        return vk_plan_refuse(p, TN_ERR_UNSUPPORTED, "%s does not run kernel family %s",
                              flavour->name, kernel->family);
    if (!TN_HAS(p->payload, modules) || p->payload->num_modules == 0 ||
        p->payload->module_size < sizeof(tn_vulkan_module))
        return vk_plan_refuse(p, TN_ERR_REFUSED, "it has no modules");
    return TN_OK;
}

static bool is_own_payload(const tn_device *device, const tn_vulkan_kernel *payload)
{
    return payload && payload->modules == device->flavour->modules;
}

enum kernel_kind plan_own_kind(const tn_device *device, const tn_step *step)
{
    const tn_vulkan_kernel *payload = step->kernel ? step->kernel->payload : NULL;
    if (!is_own_payload(device, payload))
        return KERNEL_OTHER;
    return ((const struct own_kernel *)payload)->kind;
}

static bool vk_plan_is_empty(const tn_step *step)
{
    for (uint32_t i = 0; i < step->num_outputs; i++)
        if (layout_count(&tn_step_output(step, i)->layout) > 0)
            return false;
    return true;
}

tn_status plan_kernel(struct vk_plan *plan, const tn_step *step)
{
    const tn_vulkan_kernel *payload = step->kernel->payload;
    struct planning p;
    bool is_own = is_own_payload(plan->device, payload);
    p.face = (tn_vulkan_plan){.struct_size = sizeof(p.face),
                              .flags = is_own ? KERNEL_PLAN_OWN : 0,
                              .host = plan->device->host,
                              .step = step,
                              .limits = &plan->device->facts.limits,
                              .launch = vk_plan_launch,
                              .shares = vk_plan_shares};
    p.plan = plan;
    p.payload = payload;
    p.is_glsl = strcmp(step->kernel->family, TN_FAMILY_VULKAN_GLSL) == 0;
    p.is_own = is_own;
    p.status = TN_OK;
    p.parts = NULL;
    p.name[0] = '\0';
    tn_status status = vk_plan_check_payload(&p, step->kernel);
    if (status != TN_OK || vk_plan_is_empty(step))
        return status;
    bool has_plan = TN_HAS(payload, plan);
    status = has_plan ? TN_OK : check_plain(&p);
    if (status == TN_OK && step->num_fused > 0)
        status = plan_fused_parts(plan, step, &p.parts);
    if (status == TN_OK)
        status = has_plan ? payload->plan(&p.face) : plan_plain(&p.face);
    free(p.parts);
    return p.status != TN_OK ? p.status : status;
}
