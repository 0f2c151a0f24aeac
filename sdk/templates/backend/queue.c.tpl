// SPDX-License-Identifier: @LICENSE@
// Segments and the queue: steps run one after the other, on the thread that submits them.
#include <inttypes.h>
#include <tenon/ops/program.h>
#include "backend.h"

// --- compiling -------------------------------------------------------------------------

// Another backend makes code or records commands here. This one keeps the list of steps,
// which outlives the executable, and room for the operands of one.
struct tn_executable {
    tn_segment segment;
    tn_tensor operands[]; // of the step that runs: inputs, then outputs
};

// The core may be newer and its steps larger: they are step_size bytes apart.
static const tn_step *step_at(const tn_segment *segment, uint32_t i)
{
    const char *steps = (const char *)segment->steps;
    return (const tn_step *)(const void *)(steps + (uint64_t)i * segment->step_size);
}

tn_status segment_compile(tn_device *device, const tn_segment *segment,
                          tn_executable **out_executable)
{
    const tn_host *host = device->host;
    uint64_t most = 0;
    for (uint32_t i = 0; i < segment->num_steps; i++) {
        const tn_step *step = step_at(segment, i);
        uint64_t count = (uint64_t)step->num_inputs + step->num_outputs;
        most = count > most ? count : most;
    }
    tn_executable *executable =
        host->alloc(host, sizeof(*executable) + most * sizeof(tn_tensor), 0);
    if (!executable)
        return TN_ERR_MEMORY;
    executable->segment = *segment;
    *out_executable = executable;
    return TN_OK;
}

void executable_destroy(tn_device *device, tn_executable *executable)
{
    device->host->free(device->host, executable);
}

// --- running ---------------------------------------------------------------------------

static unsigned char *address(const tn_binding *bindings, uint32_t slot, uint64_t offset)
{
    return bindings[slot].buffer->bytes + bindings[slot].offset + offset;
}

static void bind(tn_tensor *tensor, const tn_value *value, const tn_binding *bindings)
{
    tensor->layout = value->layout;
    tensor->data = value->layout.dtype == TN_DTYPE_NONE // an input that was not given
                       ? NULL
                       : address(bindings, value->slot, value->offset);
}

// Kernels ask for threads through this: there is one.
static void parallel_for(const tn_cpu_call *call, int64_t n, int64_t grain,
                         void (*body)(void *context, int64_t begin, int64_t end),
                         void *context)
{
    (void)call, (void)grain;
    if (n > 0)
        body(context, 0, n);
}

// A step is an expression's program, or else a function in C: a kernel that some op pack
// brings, or the primitive's reference.
static tn_status run_step(tn_device *device, tn_tensor *operands, const tn_step *step,
                          const tn_binding *bindings)
{
    tn_tensor *outputs = operands + step->num_inputs;
    for (uint32_t i = 0; i < step->num_inputs; i++)
        bind(&operands[i], &step->inputs[i], bindings);
    for (uint32_t i = 0; i < step->num_outputs; i++)
        bind(&outputs[i], &step->outputs[i], bindings);
    if (step->program) {
        tn_program_run(step->program, step->params, operands, outputs);
        return TN_OK;
    }
    const tn_cpu_call call = {
        .struct_size = sizeof(call),
        .host = device->host,
        .inputs = operands,
        .outputs = outputs,
        .attrs = step->attrs,
        .scratch = step->scratch_size > 0
                       ? address(bindings, step->scratch_slot, step->scratch_offset)
                       : NULL,
        .scratch_size = step->scratch_size,
        .num_inputs = step->num_inputs,
        .num_outputs = step->num_outputs,
        .num_threads = 1,
        .parallel_for = parallel_for,
    };
    const tn_cpu_kernel *kernel = step->kernel ? step->kernel->payload : NULL;
    return kernel ? kernel->launch(&call) : step->primitive->reference(&call);
}

tn_status submit(tn_device *device, const tn_submission *submission, uint64_t *out_point)
{
    tn_executable *executable = submission->executable;
    const tn_segment *segment = &executable->segment;
    for (uint32_t i = 0; i < segment->num_steps; i++) {
        tn_status status = run_step(device, executable->operands, step_at(segment, i),
                                    submission->bindings);
        if (status)
            return status;
    }
    *out_point = atomic_fetch_add(&device->reached, 1) + 1;
    return TN_OK;
}

tn_status wait(tn_device *device, uint64_t point)
{
    const tn_host *host = device->host;
    uint64_t reached = device->reached;
    if (point <= reached)
        return TN_OK;
    return host->fail(host, TN_ERR_INTERNAL,
                      "waiting for point %" PRIu64 ", submitted up to %" PRIu64, point,
                      reached);
}
