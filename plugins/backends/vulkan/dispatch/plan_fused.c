// SPDX-License-Identifier: MIT
// Plans programs that are fused into a kernel: their operands, their arguments, their code.
#include "plan_fused.h"

#include <stdlib.h>
#include <string.h>
#include "plan_program.h"
#include "../spirv/spirv_fuse.h"
#include "../spirv/spirv_push.h"

tn_step plan_fused_step(const tn_step *step, const tn_fused *fused)
{
    return (tn_step){.struct_size = sizeof(tn_step),
                     .program = fused->program,
                     .params = fused->params,
                     .inputs = fused->inputs,
                     .outputs = fused->outputs,
                     .num_inputs = fused->num_inputs,
                     .num_outputs = fused->num_outputs,
                     .value_size = step->value_size};
}

static const tn_value *fused_plan_value_of(const tn_step *alone, uint32_t operand)
{
    return operand < alone->num_inputs ? tn_step_input(alone, operand)
                                       : tn_step_output(alone, operand - alone->num_inputs);
}

static uint32_t num_values(const tn_step *alone)
{
    return alone->num_inputs + alone->num_outputs;
}

// Bindings of a program: operands with memory, and the arguments.
static uint32_t num_bindings(const tn_step *alone)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < num_values(alone); i++)
        count += !(fused_plan_value_of(alone, i)->flags & TN_VALUE_FUSED);
    return count;
}

const char *plan_fused_refused(tn_device *device, const tn_step *step, uint32_t operands)
{
    uint32_t count = operands;
    for (uint32_t i = 0; i < step->num_fused; i++) {
        const tn_fused *fused = tn_step_fused(step, i);
        const tn_step alone = plan_fused_step(step, fused);
        if (fused->program->flags & TN_EXPR_ROWS || fused->num_outputs == 0)
            return "it runs no row program beside a kernel";
        count += num_bindings(&alone);
    }
    return count > device->facts.limits.max_operands
               ? "kernel and programs have more operands than the device binds"
               : NULL;
}

tn_status plan_fused_parts(struct vk_plan *plan, const tn_step *step,
                           struct fused_part **out_parts)
{
    *out_parts = NULL;
    if (step->num_fused == 0)
        return TN_OK;
    struct fused_part *parts = calloc(step->num_fused, sizeof(*parts));
    if (!parts)
        return plan->device->host->fail(plan->device->host, TN_ERR_MEMORY, "out of memory");
    for (uint32_t i = 0; i < step->num_fused; i++) {
        parts[i].fused = tn_step_fused(step, i);
        parts[i].alone = plan_fused_step(step, parts[i].fused);
        program_classify_function(&parts[i].alone, &parts[i].class, &parts[i].args);
    }
    *out_parts = parts;
    return TN_OK;
}

struct fused_part *plan_fused_find(struct fused_part *parts, uint32_t num_parts,
                                   uint32_t operand)
{
    for (uint32_t i = 0; i < num_parts; i++)
        if (parts[i].fused->operand == operand)
            return &parts[i];
    return NULL;
}

static struct vk_operand operand_of(const tn_step *alone, uint32_t i)
{
    return i < alone->num_inputs ? plan_program_input(alone, i)
                                 : plan_operand(fused_plan_value_of(alone, i), VK_WRITES);
}

bool plan_fused_memory(const struct fused_part *part, struct vk_operand *out)
{
    uint32_t i = 0, count = num_values(&part->alone);
    while (i < count && fused_plan_value_of(&part->alone, i)->flags & TN_VALUE_FUSED)
        i++;
    if (i < count)
        *out = operand_of(&part->alone, i);
    return i < count;
}

tn_status plan_fused_args(struct vk_plan *plan, struct fused_part *part,
                          struct vk_operand *out)
{
    uint32_t count = part->args.num_words;
    if (!part->is_placed) {
        tn_status status = plan_constants_at(plan, part->args.words, count,
                                             TN_VULKAN_ALIGNMENT / 4, &part->constants);
        if (status != TN_OK)
            return status;
        part->is_placed = true;
    }
    *out = (struct vk_operand){VK_SLOT_CONSTANTS, VK_READS, (uint64_t)part->constants * 4,
                               (uint64_t)count * 4};
    return TN_OK;
}

// --- bindings --------------------------------------------------------------------------

// The binding before `i` that has the same program, or `i`.
static uint32_t same_part(const struct fused_binding *bindings, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (bindings[k].part == bindings[i].part)
            return k;
    return i;
}

void plan_fused_push(struct fused_binding *bindings, uint32_t count, uint32_t *push,
                     struct vk_pipeline_desc *desc)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct program_args *args = &bindings[i].part->args;
        uint32_t same = same_part(bindings, i);
        bindings[i].is_pushed = bindings[i].part->is_pushed;
        if (!bindings[i].is_pushed)
            continue;
        bindings[i].push = same < i ? bindings[same].push : desc->num_push;
        if (same < i)
            continue;
        memcpy(push + desc->num_push, args->words, args->num_words * sizeof(*push));
        desc->num_push += args->num_words;
        desc->values |= bindings[i].push < 64 ? args->values << bindings[i].push : 0;
    }
}

bool plan_fused_operands(struct fused_binding *bindings, uint32_t count,
                         struct vk_operand *operands, uint32_t *num_operands, uint32_t most)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct fused_part *part = bindings[i].part;
        const tn_step *alone = &part->alone;
        uint32_t same = same_part(bindings, i);
        bindings[i].first = same < i ? bindings[same].first : *num_operands;
        if (same < i)
            continue;
        if (num_bindings(alone) > most || *num_operands > most - num_bindings(alone))
            return false;
        for (uint32_t k = 0; k < num_values(alone); k++)
            if (!(fused_plan_value_of(alone, k)->flags & TN_VALUE_FUSED))
                operands[(*num_operands)++] = operand_of(alone, k);
        // The arguments: the operand at the kernel's binding is the same memory.
        if (!bindings[i].is_pushed)
            operands[(*num_operands)++] = operands[bindings[i].binding];
    }
    return true;
}

struct vk_hash plan_fused_key(struct vk_hash key, const struct fused_binding *bindings,
                              uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct fused_part *part = bindings[i].part;
        struct vk_hash own = program_class_hash(part->fused->program, &part->class);
        key = vk_hash_u64(key, (uint64_t)bindings[i].binding << 32 | bindings[i].first);
        key = vk_hash_u64(key, (uint64_t)bindings[i].is_pushed << 32 | bindings[i].push);
        key = vk_hash_u64(vk_hash_u64(key, own.lo), own.hi);
    }
    return key;
}

// The binding of the linked module at which the program finds its arguments. For arguments
// that are to be pushed it is behind the bindings of the launch, and of this program alone.
static uint32_t args_binding(const struct fused_binding *binding)
{
    return binding->is_pushed ? VK_MAX_OPERANDS + binding->part->fused->operand
                              : binding->first + num_bindings(&binding->part->alone) - 1;
}

// Maps bindings of the program's module (operands, then arguments) to those of the launch;
// gives their number.
static uint32_t map_bindings(const struct fused_binding *binding,
                             uint32_t map[PROGRAM_MAX_OPERANDS + 1])
{
    const tn_step *alone = &binding->part->alone;
    uint32_t next = binding->first, count = num_values(alone);
    for (uint32_t i = 0; i < count; i++)
        map[i] = fused_plan_value_of(alone, i)->flags & TN_VALUE_FUSED ? 0 : next++;
    map[count] = args_binding(binding);
    return count + 1;
}

static tn_status link_one(tn_device *device, const struct fused_binding *binding,
                          struct vk_code *code, char reason[VK_REASON])
{
    const struct fused_part *part = binding->part;
    struct program_source source = {part->fused->program, &part->class};
    uint32_t map[PROGRAM_MAX_OPERANDS + 1];
    struct vk_code program = {0}, linked;
    tn_status status = device->flavour->program_code(device, &source, &program);
    if (status != TN_OK)
        return status;
    const struct spirv_fused fused = {.binding = binding->binding,
                                      .dtype = binding->dtype,
                                      .count = part->class.parts,
                                      .is_output = program_through(&part->class) <
                                                   part->class.num_inputs,
                                      .has_i16 = device->facts.i16,
                                      .program = &program,
                                      .bindings = map,
                                      .num_bindings = map_bindings(binding, map)};
    bool done = spirv_fuse(code, &fused, &linked, reason);
    if (program.release)
        program.release(&program);
    if (!done)
        return TN_ERR_REFUSED;
    if (code->release)
        code->release(code);
    *code = linked;
    return TN_OK;
}

// Moves the arguments of the programs to the push constants, where the launch has them.
static tn_status fused_plan_push_args(const struct fused_binding *bindings, uint32_t count,
                                      struct vk_code *code, char reason[VK_REASON])
{
    struct spirv_pushed lists[VK_MAX_OPERANDS];
    struct vk_code pushed;
    uint32_t num_lists = 0;
    for (uint32_t i = 0; i < count; i++)
        if (bindings[i].is_pushed && same_part(bindings, i) == i)
            lists[num_lists++] =
                (struct spirv_pushed){.binding = args_binding(&bindings[i]),
                                      .first = bindings[i].push,
                                      .count = bindings[i].part->args.num_words};
    if (num_lists == 0)
        return TN_OK;
    if (!spirv_push(code, lists, num_lists, &pushed, reason))
        return TN_ERR_REFUSED;
    if (code->release)
        code->release(code);
    *code = pushed;
    return TN_OK;
}

tn_status plan_fused_link(tn_device *device, const struct fused_binding *bindings,
                          uint32_t count, struct vk_code *code, char reason[VK_REASON])
{
    tn_status status = TN_OK;
    reason[0] = '\0';
    for (uint32_t i = 0; i < count && status == TN_OK; i++)
        status = link_one(device, &bindings[i], code, reason);
    return status == TN_OK ? fused_plan_push_args(bindings, count, code, reason) : status;
}
