// SPDX-License-Identifier: MIT
// A backend on ordinary memory: it runs programs, kernels for the CPU and references, one
// after the other, when they are submitted.
#include <stdatomic.h>
#include <string.h>
#include <tenon/ops/program.h>
#include <tenon/ops/stages.h>
#include <tenon/plugin.h>

enum { MAX_OPERANDS = 32 };

struct tn_device {
    const tn_host *host;
    _Atomic uint64_t point, used;
};

struct tn_buffer {
    uint64_t size;
    char *bytes;
};

struct tn_executable {
    tn_segment segment;
    void **states; // by step
};

// --- devices and memory ----------------------------------------------------------------

static tn_status device_count(const tn_host *host, uint32_t *out_count)
{
    (void)host;
    *out_count = 1;
    return TN_OK;
}

static tn_status device_info(const tn_host *host, uint32_t index, tn_device_info *out)
{
    (void)host, (void)index;
    const tn_device_info info = {.struct_size = out->struct_size,
                                 .flags = TN_DEVICE_HOST_MEMORY,
                                 .name = "exhibit",
                                 .driver = "museum 1.0.0",
                                 .features = "f64",
                                 .buffer_alignment = 64};
    memcpy(out, &info, out->struct_size < sizeof(info) ? out->struct_size : sizeof(info));
    return TN_OK;
}

static tn_status device_open(const tn_host *host, uint32_t index, tn_device **out_device)
{
    (void)index;
    tn_device *device = host->alloc(host, sizeof(*device), 0);
    if (!device)
        return TN_ERR_MEMORY;
    memset(device, 0, sizeof(*device));
    device->host = host;
    *out_device = device;
    return TN_OK;
}

static void device_close(tn_device *device)
{
    if (device)
        device->host->free(device->host, device);
}

static tn_status buffer_create(tn_device *device, uint64_t size, tn_buffer **out_buffer)
{
    const tn_host *host = device->host;
    tn_buffer *buffer = host->alloc(host, sizeof(*buffer), 0);
    char *bytes = buffer ? host->alloc(host, size, 64) : NULL;
    if (!bytes) {
        host->free(host, buffer);
        return TN_ERR_MEMORY;
    }
    *buffer = (tn_buffer){size, bytes};
    device->used += size;
    *out_buffer = buffer;
    return TN_OK;
}

static void buffer_destroy(tn_device *device, tn_buffer *buffer)
{
    if (!buffer)
        return;
    device->used -= buffer->size;
    device->host->free(device->host, buffer->bytes);
    device->host->free(device->host, buffer);
}

static tn_status buffer_write(tn_device *device, tn_buffer *buffer, uint64_t offset,
                              const void *data, uint64_t size)
{
    (void)device;
    memcpy(buffer->bytes + offset, data, size);
    return TN_OK;
}

static tn_status buffer_read(tn_device *device, tn_buffer *buffer, uint64_t offset,
                             void *data, uint64_t size)
{
    (void)device;
    memcpy(data, buffer->bytes + offset, size);
    return TN_OK;
}

static void *buffer_map(tn_device *device, tn_buffer *buffer)
{
    (void)device;
    return buffer->bytes;
}

static tn_status memory_info(tn_device *device, tn_memory_info *out)
{
    const tn_memory_info info = {.struct_size = out->struct_size, .used = device->used};
    memcpy(out, &info, out->struct_size < sizeof(info) ? out->struct_size : sizeof(info));
    return TN_OK;
}

// --- segments --------------------------------------------------------------------------

static int32_t step_check(tn_device *device, const tn_step *step, const char **out_reason)
{
    (void)device;
    *out_reason = "has too many operands for a museum";
    return step->num_inputs + step->num_outputs <= MAX_OPERANDS;
}

static tn_status segment_compile(tn_device *device, const tn_segment *segment,
                                 tn_executable **out_executable)
{
    tn_executable *executable = device->host->alloc(device->host, sizeof(*executable), 0);
    if (!executable)
        return TN_ERR_MEMORY;
    // By members: an older host's segment is shorter.
    executable->segment = (tn_segment){.steps = segment->steps,
                                       .num_steps = segment->num_steps,
                                       .step_size = segment->step_size};
    executable->states =
        device->host->alloc(device->host, (segment->num_steps + 1) * sizeof(void *), 0);
    tn_status status = TN_ERR_MEMORY;
    if (executable->states)
        status = tn_segment_prepare(device->host, segment, 0, 1, executable->states);
    if (status == TN_OK) {
        *out_executable = executable;
        return TN_OK;
    }
    device->host->free(device->host, executable->states);
    device->host->free(device->host, executable);
    return status;
}

static void executable_destroy(tn_device *device, tn_executable *executable)
{
    if (executable) {
        tn_segment_finish(device->host, &executable->segment, executable->states);
        device->host->free(device->host, executable->states);
    }
    device->host->free(device->host, executable);
}

static tn_tensor tensor_of(const tn_submission *submission, const tn_value *value)
{
    tn_tensor tensor = {.layout = value->layout};
    if (value->layout.dtype != TN_DTYPE_NONE) {
        const tn_binding *at = tn_submission_binding(submission, value->slot);
        tensor.data = at->buffer->bytes + at->offset + value->offset;
    }
    return tensor;
}

static tn_status run(const tn_host *host, const tn_step *step, void *state,
                     const tn_submission *submission)
{
    tn_tensor tensors[MAX_OPERANDS], *outputs = tensors + step->num_inputs;
    for (uint32_t i = 0; i < step->num_inputs; i++)
        tensors[i] = tensor_of(submission, tn_step_input(step, i));
    for (uint32_t i = 0; i < step->num_outputs; i++)
        outputs[i] = tensor_of(submission, tn_step_output(step, i));
    if (step->program) {
        tn_program_run(step->program, step->params, tensors, outputs);
        return TN_OK;
    }
    tn_cpu_call call = {.struct_size = sizeof(call),
                        .host = host,
                        .inputs = tensors,
                        .outputs = outputs,
                        .attrs = step->attrs,
                        .scratch_size = step->scratch_size,
                        .num_inputs = step->num_inputs,
                        .num_outputs = step->num_outputs,
                        .num_threads = 1,
                        .parallel_for = tn_loop_here,
                        .state = state};
    if (step->scratch_size) {
        const tn_binding *at = tn_submission_binding(submission, step->scratch_slot);
        call.scratch = at->buffer->bytes + at->offset + step->scratch_offset;
    }
    if (!step->kernel)
        return step->primitive->reference(&call);
    const tn_cpu_kernel *kernel = step->kernel->payload;
    return kernel->launch(&call);
}

static tn_status submit(tn_device *device, const tn_submission *submission,
                        uint64_t *out_point)
{
    const tn_executable *executable = submission->executable;
    for (uint32_t i = 0; i < executable->segment.num_steps; i++) {
        tn_status status = run(device->host, tn_segment_step(&executable->segment, i),
                               executable->states[i], submission);
        if (status != TN_OK)
            return status;
    }
    *out_point = ++device->point;
    return TN_OK;
}

static tn_status wait_for(tn_device *device, uint32_t queue, uint64_t value)
{
    (void)device, (void)queue, (void)value;
    return TN_OK;
}

// --- the plugin ------------------------------------------------------------------------

static const char *const families[] = {TN_FAMILY_CPU, TN_FAMILY_EXPR, NULL};
static const tn_backend backend = {
    .struct_size = sizeof(backend),
    .name = "museum",
    .families = families,
    .device_count = device_count,
    .device_info = device_info,
    .device_open = device_open,
    .device_close = device_close,
    .step_check = step_check,
    .buffer_create = buffer_create,
    .buffer_destroy = buffer_destroy,
    .buffer_write = buffer_write,
    .buffer_read = buffer_read,
    .buffer_map = buffer_map,
    .segment_compile = segment_compile,
    .executable_destroy = executable_destroy,
    .submit = submit,
    .wait = wait_for,
    .memory_info = memory_info,
};

static const void *query(const char *id)
{
    return strcmp(id, TN_IFACE_BACKEND) == 0 ? &backend : NULL;
}

TN_PLUGIN("org.tenon.museum.backend", "1.0.0", "Tenon", .query = query);
