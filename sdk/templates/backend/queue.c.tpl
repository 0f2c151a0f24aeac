// SPDX-License-Identifier: @LICENSE@
// Segments and the queue: steps run one after the other, on the thread that submits them.
#include <inttypes.h>
#include <tenon/ops/program.h>
#include <tenon/ops/stages.h>
#include "backend.h"

// --- compiling -------------------------------------------------------------------------

// Another backend generates code or records commands here. This one keeps the segment, whose
// steps outlive the executable, an array for the operands of one step, and what kernels
// prepared. State that a run changes belongs to the run; with one queue there is one run at a
// time.
struct tn_executable {
    tn_segment segment;
    void **states;        // by step: what its kernel's prepare gave
    tn_tensor operands[]; // of the running step: inputs, then outputs; under the device's lock
};

static void destroy(tn_device *device, tn_executable *executable)
{
    device->host->free(device->host, executable->states);
    device->host->free(device->host, executable);
}

tn_status segment_compile(tn_device *device, const tn_segment *segment,
                          tn_executable **out_executable)
{
    const tn_host *host = device->host;
    uint64_t most = 0;
    for (uint32_t i = 0; i < segment->num_steps; i++) {
        const tn_step *step = tn_segment_step(segment, i);
        uint64_t count = (uint64_t)step->num_inputs + step->num_outputs;
        most = count > most ? count : most;
    }
    tn_executable *executable =
        host->alloc(host, sizeof(*executable) + most * sizeof(tn_tensor), 0);
    if (!executable)
        return TN_ERR_MEMORY;
    executable->segment = *segment;
    executable->states = host->alloc(host, (segment->num_steps + 1) * sizeof(void *), 0);
    tn_status status = TN_ERR_MEMORY;
    if (executable->states)
        status = tn_segment_prepare(host, segment, 0, 1, executable->states);
    if (status == TN_OK)
        *out_executable = executable;
    else
        destroy(device, executable);
    return status;
}

void executable_destroy(tn_device *device, tn_executable *executable)
{
    if (!executable)
        return;
    tn_segment_finish(device->host, &executable->segment, executable->states);
    destroy(device, executable);
}

// --- running ---------------------------------------------------------------------------

static unsigned char *address(const tn_submission *submission, uint32_t slot, uint64_t offset)
{
    const tn_binding *binding = tn_submission_binding(submission, slot);
    return binding->buffer->bytes + binding->offset + offset;
}

static void bind(tn_tensor *tensor, const tn_value *value, const tn_submission *submission)
{
    tensor->layout = value->layout;
    tensor->data = value->layout.dtype == TN_DTYPE_NONE // an input that was not given
                       ? NULL
                       : address(submission, value->slot, value->offset);
}

// Runs one step: the program of an expression, or a function in C, which is a kernel of some op
// pack or the primitive's reference.
static tn_status run_step(tn_device *device, tn_tensor *operands, const tn_step *step,
                          void *state, const tn_submission *submission)
{
    tn_tensor *outputs = operands + step->num_inputs;
    for (uint32_t i = 0; i < step->num_inputs; i++)
        bind(&operands[i], tn_step_input(step, i), submission);
    for (uint32_t i = 0; i < step->num_outputs; i++)
        bind(&outputs[i], tn_step_output(step, i), submission);
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
                       ? address(submission, step->scratch_slot, step->scratch_offset)
                       : NULL,
        .scratch_size = step->scratch_size,
        .num_inputs = step->num_inputs,
        .num_outputs = step->num_outputs,
        .num_threads = 1,
        .parallel_for = tn_loop_here, // this device has one thread
        .state = state,
    };
    const tn_cpu_kernel *kernel = step->kernel ? step->kernel->payload : NULL;
    return kernel ? kernel->launch(&call) : step->primitive->reference(&call);
}

static tn_status run_steps(tn_device *device, const tn_submission *submission)
{
    tn_executable *executable = submission->executable;
    const tn_segment *segment = &executable->segment;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < segment->num_steps && status == TN_OK; i++)
        status = run_step(device, executable->operands, tn_segment_step(segment, i),
                          executable->states[i], submission);
    return status;
}

// With one queue there are no points of other queues: submission->waits is empty.
tn_status submit(tn_device *device, const tn_submission *submission, uint64_t *out_point)
{
    pthread_mutex_lock(&device->lock);
    tn_status status = run_steps(device, submission);
    if (status == TN_OK)
        *out_point = ++device->reached;
    pthread_mutex_unlock(&device->lock);
    return status;
}

tn_status wait(tn_device *device, uint32_t queue, uint64_t value)
{
    const tn_host *host = device->host;
    (void)queue; // the device has one
    pthread_mutex_lock(&device->lock);
    uint64_t reached = device->reached;
    pthread_mutex_unlock(&device->lock);
    if (value <= reached)
        return TN_OK;
    return host->fail(host, TN_ERR_INTERNAL,
                      "waiting for point %" PRIu64 ", submitted up to %" PRIu64, value,
                      reached);
}
