// SPDX-License-Identifier: MIT
// Compiles segments: each step becomes one launch of the executable.
#include <tenon/ops/stages.h>
#include "executable.h"
#include "run.h"

// Sets slot and byte offset. Programs address an operand's first element (`first_element`),
// so the layout's offset is added here; functions receive the layout and add its offset
// themselves.
static void set_operand(struct cpu_operand *operand, const tn_value *value,
                        bool first_element)
{
    operand->slot = value->slot;
    operand->has_memory =
        value->layout.dtype != TN_DTYPE_NONE && !(value->flags & TN_VALUE_FUSED);
    operand->offset = value->offset;
    if (first_element)
        operand->offset +=
            (uint64_t)(value->layout.offset * (int64_t)cpu_dtype_size(value->layout.dtype));
}

static tn_status compile_operands(struct cpu_arena *arena, const tn_step *step,
                                  bool is_program, struct launch *launch)
{
    launch->num_operands = step->num_inputs + step->num_outputs;
    launch->operands =
        arena_alloc(arena, launch->num_operands * sizeof(struct cpu_operand));
    if (!launch->operands)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < step->num_inputs; i++)
        set_operand(&launch->operands[i], tn_step_input(step, i), is_program);
    for (uint32_t i = 0; i < step->num_outputs; i++)
        set_operand(&launch->operands[step->num_inputs + i], tn_step_output(step, i),
                    is_program);
    return TN_OK;
}

// --- programs beside a kernel ----------------------------------------------------------

// The fused program as a step of its own.
static tn_step cpu_segment_step_of(const tn_step *step, const tn_fused *fused)
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

static tn_status compile_fused(tn_device *device, struct cpu_arena *arena,
                               const tn_step *step, const tn_fused *fused,
                               struct launch_fused *out)
{
    const tn_step alone = cpu_segment_step_of(step, fused);
    struct launch operands = {0};
    tn_status status = compile_operands(arena, &alone, true, &operands);
    out->operand = fused->operand;
    out->operands = operands.operands;
    for (uint32_t i = 0; status == TN_OK && i < operands.num_operands; i++) {
        const tn_value *value = i < alone.num_inputs
                                    ? tn_step_input(&alone, i)
                                    : tn_step_output(&alone, i - alone.num_inputs);
        if (value->flags & TN_VALUE_FUSED)
            out->through |= UINT32_C(1) << i;
    }
    return status == TN_OK ? program_prepare(device, arena, &alone, true, &out->program)
                           : status;
}

static tn_status compile_all_fused(tn_device *device, struct cpu_arena *arena,
                                   const tn_step *step, struct launch *launch)
{
    launch->num_fused = step->num_fused;
    launch->fused = arena_alloc(arena, step->num_fused * sizeof(*launch->fused));
    tn_status status = launch->fused ? TN_OK : TN_ERR_MEMORY;
    for (uint32_t i = 0; i < step->num_fused && status == TN_OK; i++)
        status =
            compile_fused(device, arena, step, tn_step_fused(step, i), &launch->fused[i]);
    return status;
}

// --- functions -------------------------------------------------------------------------

static tn_status cpu_segment_find_function(tn_device *device, const tn_step *step,
                                           struct launch *launch)
{
    if (step->kernel) {
        const tn_cpu_kernel *kernel = step->kernel->payload;
        launch->function = kernel->launch;
        launch->detail = step->kernel->name;
        tn_status status = tn_step_prepare(device->host, step, device->cpu_features,
                                           device->num_threads, &launch->state);
        launch->is_prepared = status == TN_OK;
        return status;
    }
    if (!step->primitive || !TN_HAS(step->primitive, reference))
        return device->host->fail(device->host, TN_ERR_INTERNAL,
                                  "step \"%s\" has no program, no kernel and no reference",
                                  step->label ? step->label : "?");
    launch->function = step->primitive->reference;
    launch->detail = "reference";
    return TN_OK;
}

// The slot that stands for the memory of this one.
static uint32_t cpu_segment_memory_of(const tn_segment *segment, uint32_t slot)
{
    uint32_t alias = tn_segment_slot(segment, slot)->alias;
    return alias ? alias - 1 : slot;
}

// The byte of the slot after a value's last one.
static uint64_t end_of(const tn_value *value)
{
    int64_t last = value->layout.offset;
    for (int32_t i = 0; i < value->layout.rank; i++)
        if (value->layout.stride[i] > 0 && value->layout.extent[i] > 0)
            last += (value->layout.extent[i] - 1) * value->layout.stride[i];
    return value->offset + (uint64_t)(last + 1) * cpu_dtype_size(value->layout.dtype);
}

// Whether an output may be in an input's memory.
static bool cpu_segment_is_in_place(const tn_segment *segment, const tn_step *step)
{
    for (uint32_t k = 0; k < step->num_outputs; k++)
        for (uint32_t i = 0; i < step->num_inputs; i++) {
            const tn_value *in = tn_step_input(step, i), *out = tn_step_output(step, k);
            if (cpu_segment_memory_of(segment, in->slot) ==
                    cpu_segment_memory_of(segment, out->slot) &&
                in->offset < end_of(out) && out->offset < end_of(in))
                return true;
        }
    return false;
}

static tn_status compile_step(tn_device *device, struct cpu_arena *arena,
                              const tn_segment *segment, const tn_step *step,
                              struct launch *launch)
{
    launch->label = step->label ? step->label : "step";
    launch->plugin = step->kernel ? step->plugin : NULL;
    tn_status status = compile_operands(arena, step, step->program != NULL, launch);
    if (status != TN_OK)
        return status;
    if (step->program) {
        launch->detail = "program";
        return program_prepare(device, arena, step, cpu_segment_is_in_place(segment, step),
                               &launch->program);
    }
    launch->step = step;
    if (step->num_fused > 0)
        status = compile_all_fused(device, arena, step, launch);
    return status == TN_OK ? cpu_segment_find_function(device, step, launch) : status;
}

// Why the device does not fuse this program into the kernel; NULL: it does.
static const char *cpu_segment_fused_refused(const tn_fused *fused)
{
    const tn_value *value = fused->num_outputs ? fused->outputs : NULL;
    if (fused->program->flags & TN_EXPR_ROWS || !value)
        return "it runs no row program beside a kernel";
    if (fused->program->flags & TN_EXPR_TAKES)
        return "its programs do not gather";
    for (int32_t i = 0; i < value->layout.rank; i++)
        if (value->layout.extent[i] > 1)
            return NULL;
    return "programs of one element run alone"; // their values would be uniform
}

int32_t cpu_step_check(tn_device *device, const tn_step *step, const char **out_reason)
{
    const char *reason = NULL;
    if (step->program && step->program->flags & TN_EXPR_TAKES)
        reason = "its programs do not gather";
    else if (step->program && step->program->flags & TN_EXPR_ROWS)
        reason = program_rows_refused(device, step);
    for (uint32_t i = 0; i < step->num_fused && !reason; i++)
        reason = cpu_segment_fused_refused(tn_step_fused(step, i));
    if (reason)
        *out_reason = reason;
    return !reason;
}

static tn_status compile_steps(tn_device *device, const tn_segment *segment,
                               tn_executable *executable)
{
    executable->launches =
        arena_alloc(&executable->arena, segment->num_steps * sizeof(struct launch));
    if (!executable->launches)
        return TN_ERR_MEMORY;
    executable->num_launches = segment->num_steps;
    for (uint32_t i = 0; i < segment->num_steps; i++) {
        tn_status status =
            compile_step(device, &executable->arena, segment, tn_segment_step(segment, i),
                         &executable->launches[i]);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

tn_status cpu_segment_compile(tn_device *device, const tn_segment *segment,
                              tn_executable **out_executable)
{
    tn_executable *executable = device->host->alloc(device->host, sizeof(*executable), 0);
    if (!executable)
        return TN_ERR_MEMORY;
    *executable = (tn_executable){.arena = {.host = device->host}};
    tn_status status = compile_steps(device, segment, executable);
    if (status != TN_OK) {
        cpu_executable_destroy(device, executable);
        return status;
    }
    *out_executable = executable;
    return TN_OK;
}

void cpu_executable_destroy(tn_device *device, tn_executable *executable)
{
    if (!executable)
        return;
    for (uint32_t i = 0; i < executable->num_launches; i++)
        if (executable->launches[i].is_prepared)
            tn_step_finish(device->host, executable->launches[i].step,
                           executable->launches[i].state);
    for (uint32_t i = 0; i < TN_MAX_QUEUES; i++)
        device->host->free(device->host, executable->frames[i]);
    arena_finish(&executable->arena);
    device->host->free(device->host, executable);
}
