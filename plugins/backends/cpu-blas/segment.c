// SPDX-License-Identifier: MIT
// Executables: steps flattened into launches with all their arguments prepared, so that a
// submission only patches addresses and calls.
#include "program.h"

#include <time.h>

// Where an operand's address comes from.
struct operand {
    uint32_t slot;
    uint32_t reserved;
    uint64_t offset; // bytes
};

struct launch {
    struct program *program; // or NULL: then `function` is called
    tn_status (*function)(const tn_cpu_call *call);
    tn_cpu_call call;
    struct operand *operands; // inputs, then outputs
    tn_tensor *tensors;       // the same, for a function
    uint32_t num_operands;
    uint32_t scratch_slot;
    uint64_t scratch_offset;
    const char *label, *detail, *plugin; // for people; plugin NULL: no kernel
};

struct tn_executable {
    struct arena arena;
    struct launch *launches;
    uint32_t num_launches;
};

// --- compiling -------------------------------------------------------------------------

struct loop {
    void (*body)(void *context, int64_t begin, int64_t end);
    void *context;
};

static void loop_piece(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct loop *loop = context;
    (void)worker;
    loop->body(loop->context, begin, end);
}

static void parallel_for(const tn_cpu_call *call, int64_t n, int64_t grain,
                         void (*body)(void *context, int64_t begin, int64_t end),
                         void *context)
{
    struct loop loop = {body, context};
    pool_run(cpu_device_of(call->host)->pool, n, grain, loop_piece, &loop);
}

// Operands keep where they are; what their layout adds is counted in for programs.
static void set_operand(struct operand *operand, const tn_value *value, bool first_element)
{
    operand->slot = value->slot;
    operand->offset = value->offset;
    if (first_element)
        operand->offset +=
            (uint64_t)(value->layout.offset * (int64_t)cpu_dtype_size(value->layout.dtype));
}

static tn_status compile_operands(struct arena *arena, const tn_step *step, bool is_program,
                                  struct launch *launch)
{
    launch->num_operands = step->num_inputs + step->num_outputs;
    launch->operands = arena_alloc(arena, launch->num_operands * sizeof(struct operand));
    if (!launch->operands)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < step->num_inputs; i++)
        set_operand(&launch->operands[i], &step->inputs[i], is_program);
    for (uint32_t i = 0; i < step->num_outputs; i++)
        set_operand(&launch->operands[step->num_inputs + i], &step->outputs[i], is_program);
    return TN_OK;
}

static tn_status compile_call(tn_device *device, struct arena *arena, const tn_step *step,
                              struct launch *launch)
{
    tn_tensor *tensors = arena_alloc(arena, launch->num_operands * sizeof(tn_tensor));
    if (!tensors)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < step->num_inputs; i++)
        tensors[i].layout = step->inputs[i].layout;
    for (uint32_t i = 0; i < step->num_outputs; i++)
        tensors[step->num_inputs + i].layout = step->outputs[i].layout;
    launch->tensors = tensors;
    launch->call = (tn_cpu_call){
        .struct_size = sizeof(tn_cpu_call),
        .host = &device->kernel_host.table,
        .inputs = tensors,
        .outputs = tensors + step->num_inputs,
        .attrs = step->attrs,
        .scratch_size = step->scratch_size,
        .num_inputs = step->num_inputs,
        .num_outputs = step->num_outputs,
        .cpu_features = device->cpu_features,
        .num_threads = device->num_threads,
        .parallel_for = parallel_for,
    };
    launch->scratch_slot = step->scratch_slot;
    launch->scratch_offset = step->scratch_offset;
    return TN_OK;
}

static tn_status find_function(tn_device *device, const tn_step *step,
                               struct launch *launch)
{
    if (step->kernel) {
        const tn_cpu_kernel *kernel = step->kernel->payload;
        launch->function = kernel->launch;
        launch->detail = step->kernel->name;
        return TN_OK;
    }
    if (!step->primitive || !TN_HAS(step->primitive, reference))
        return device->host->fail(device->host, TN_ERR_INTERNAL,
                                  "step \"%s\" has no program, no kernel and no reference",
                                  step->label ? step->label : "?");
    launch->function = step->primitive->reference;
    launch->detail = "reference";
    return TN_OK;
}

static tn_status compile_step(tn_device *device, struct arena *arena, const tn_step *step,
                              struct launch *launch)
{
    launch->label = step->label ? step->label : "step";
    launch->plugin = step->kernel ? step->plugin : NULL;
    tn_status status = compile_operands(arena, step, step->program != NULL, launch);
    if (status != TN_OK)
        return status;
    if (step->program) {
        launch->detail = "program";
        return program_prepare(device, arena, step, &launch->program);
    }
    status = find_function(device, step, launch);
    if (status != TN_OK)
        return status;
    return compile_call(device, arena, step, launch);
}

static tn_status compile_steps(tn_device *device, const tn_segment *segment,
                               tn_executable *executable)
{
    executable->num_launches = segment->num_steps;
    executable->launches =
        arena_alloc(&executable->arena, segment->num_steps * sizeof(struct launch));
    if (!executable->launches)
        return TN_ERR_MEMORY;
    const char *step = (const char *)segment->steps;
    for (uint32_t i = 0; i < segment->num_steps; i++, step += segment->step_size) {
        tn_status status =
            compile_step(device, &executable->arena, (const tn_step *)(const void *)step,
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
    arena_finish(&executable->arena);
    device->host->free(device->host, executable);
}

// --- running ---------------------------------------------------------------------------

static unsigned char *address(tn_device *device, const tn_binding *bindings, uint32_t slot,
                              uint64_t offset)
{
    const tn_binding *binding = &bindings[slot];
    return (unsigned char *)cpu_buffer_map(device, binding->buffer) + binding->offset +
           offset;
}

static tn_status run_launch(tn_device *device, struct launch *launch,
                            const tn_binding *bindings)
{
    struct program *program = launch->program;
    if (program) {
        for (uint32_t i = 0; i < launch->num_operands; i++)
            program->bases[i] = address(device, bindings, launch->operands[i].slot,
                                        launch->operands[i].offset);
        program_run(device, program);
        return TN_OK;
    }
    for (uint32_t i = 0; i < launch->num_operands; i++)
        if (launch->tensors[i].layout.dtype != TN_DTYPE_NONE)
            launch->tensors[i].data = address(device, bindings, launch->operands[i].slot,
                                              launch->operands[i].offset);
    if (launch->call.scratch_size > 0)
        launch->call.scratch =
            address(device, bindings, launch->scratch_slot, launch->scratch_offset);
    return launch->function(&launch->call);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static tn_status run_traced(tn_device *device, struct launch *launch,
                            const tn_binding *bindings)
{
    uint64_t begin = now_ns();
    tn_status status = run_launch(device, launch, bindings);
    device->trace->event(device->host, &(tn_trace_event){
                                           .struct_size = sizeof(tn_trace_event),
                                           .name = launch->label,
                                           .detail = launch->detail,
                                           .track = "cpu-blas:0",
                                           .begin_ns = begin,
                                           .duration_ns = now_ns() - begin,
                                       });
    return status;
}

// A launch that gave no reason gets one.
static tn_status launch_failed(tn_device *device, const struct launch *launch,
                               tn_status status)
{
    const tn_host *host = &device->kernel_host.table;
    if (device->message[0])
        return status;
    if (!launch->plugin)
        return host->fail(host, status, "%s, %s, failed (status %d) and gave no reason",
                          launch->label, launch->detail, status);
    return host->fail(host, status,
                      "%s, kernel %s of %s, failed (status %d) and gave no reason",
                      launch->label, launch->detail, launch->plugin, status);
}

tn_status cpu_executable_run(tn_device *device, tn_executable *executable,
                             const tn_binding *bindings)
{
    device->message[0] = 0;
    for (uint32_t i = 0; i < executable->num_launches; i++) {
        struct launch *launch = &executable->launches[i];
        tn_status status = device->trace ? run_traced(device, launch, bindings)
                                         : run_launch(device, launch, bindings);
        if (status != TN_OK)
            return launch_failed(device, launch, status);
    }
    return TN_OK;
}
