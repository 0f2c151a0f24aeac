// SPDX-License-Identifier: MIT
// Runs executables: sets the addresses in the queue's frames, and calls programs and
// functions.
#include "executable.h"
#include "run.h"

#include <inttypes.h>
#include <time.h>

// --- frames ----------------------------------------------------------------------------

static void parallel_for(const tn_cpu_call *call, int64_t n, int64_t grain, pool_body *body,
                         void *context)
{
    pool_run(cpu_queue_of(call->host)->device->pool, n, grain, body, context);
}

// Runs the program of an operand that has no memory.
static void pass_through(const tn_cpu_call *call, uint32_t operand, int64_t first,
                         int64_t count, void *values, uint32_t worker)
{
    const struct launch_call *own = (const struct launch_call *)(const void *)call;
    const struct launch_fused *fused = own->launch->fused;
    const struct program_frame *frame = own->fused;
    for (; fused->operand != operand; fused++)
        frame++;
    program_run_part(own->queue, fused->program, frame, fused->through, values, first,
                     first + count, worker);
}

static void cpu_run_load(const tn_cpu_call *call, uint32_t input, int64_t first,
                         int64_t count, void *values, uint32_t worker)
{
    pass_through(call, input, first, count, values, worker);
}

static void cpu_run_store(const tn_cpu_call *call, uint32_t output, int64_t first,
                          int64_t count, const void *values, uint32_t worker)
{
    pass_through(call, call->num_inputs + output, first, count, (void *)(uintptr_t)values,
                 worker);
}

static uint64_t frame_bytes(const struct launch *launch)
{
    if (launch->program)
        return program_frame_bytes(launch->program);
    uint64_t size = sizeof(struct launch_call) + launch->num_operands * sizeof(tn_tensor) +
                    launch->num_fused * sizeof(struct program_frame);
    for (uint32_t i = 0; i < launch->num_fused; i++)
        size += program_frame_bytes(launch->fused[i].program);
    return size;
}

static void init_fused(const struct launch *launch, struct cpu_queue *queue,
                       struct program_frame *frames)
{
    unsigned char *memory = (unsigned char *)(frames + launch->num_fused);
    for (uint32_t i = 0; i < launch->num_fused; i++) {
        program_frame_init(launch->fused[i].program, queue, memory, &frames[i]);
        memory += program_frame_bytes(launch->fused[i].program);
    }
}

static void init_call(const struct launch *launch, struct cpu_queue *queue, void *memory,
                      struct launch_frame *frame)
{
    const tn_step *step = launch->step;
    struct launch_call *own = memory;
    tn_tensor *tensors = (tn_tensor *)(own + 1);
    for (uint32_t i = 0; i < step->num_inputs; i++)
        tensors[i] = (tn_tensor){.layout = tn_step_input(step, i)->layout};
    for (uint32_t i = 0; i < step->num_outputs; i++)
        tensors[step->num_inputs + i] =
            (tn_tensor){.layout = tn_step_output(step, i)->layout};
    *own = (struct launch_call){
        .queue = queue,
        .launch = launch,
        .fused = (struct program_frame *)(void *)(tensors + launch->num_operands)};
    own->call = (tn_cpu_call){
        .struct_size = sizeof(tn_cpu_call),
        .host = &queue->kernel_host.table,
        .inputs = tensors,
        .outputs = tensors + step->num_inputs,
        .attrs = step->attrs,
        .scratch_size = step->scratch_size,
        .num_inputs = step->num_inputs,
        .num_outputs = step->num_outputs,
        .cpu_features = queue->device->cpu_features,
        .num_threads = queue->device->num_threads,
        .parallel_for = parallel_for,
        .state = launch->state,
        .load = cpu_run_load,
        .store = cpu_run_store,
    };
    init_fused(launch, queue, own->fused);
    frame->call = own;
    frame->tensors = tensors;
}

// Gives the frames of all launches for runs on `queue`, in one allocation.
static tn_status frames_create(const tn_executable *executable, struct cpu_queue *queue,
                               struct launch_frame **out_frames)
{
    const tn_host *host = queue->device->host;
    uint64_t size = executable->num_launches * sizeof(struct launch_frame);
    for (uint32_t i = 0; i < executable->num_launches; i++)
        size += frame_bytes(&executable->launches[i]);
    size = (size + 127) / 128 * 128; // apart from what other queues write
    struct launch_frame *frames = host->alloc(host, size, 128);
    if (!frames) // fails through the queue's table, so that cpu_wait reports it too
        return queue->kernel_host.table.fail(&queue->kernel_host.table, TN_ERR_MEMORY,
                                             "out of memory for the %" PRIu64
                                             " bytes that a run of %" PRIu32
                                             " steps changes",
                                             size, executable->num_launches);
    unsigned char *memory = (unsigned char *)(frames + executable->num_launches);
    for (uint32_t i = 0; i < executable->num_launches; i++) {
        const struct launch *launch = &executable->launches[i];
        frames[i] = (struct launch_frame){0};
        if (launch->program)
            program_frame_init(launch->program, queue, memory, &frames[i].program);
        else
            init_call(launch, queue, memory, &frames[i]);
        memory += frame_bytes(launch);
    }
    *out_frames = frames;
    return TN_OK;
}

// --- running ---------------------------------------------------------------------------

static unsigned char *cpu_run_address(const tn_submission *submission, uint32_t slot,
                                      uint64_t offset)
{
    const tn_binding *binding = tn_submission_binding(submission, slot);
    return binding->buffer->bytes + binding->offset + offset;
}

static void begin_fused(const struct launch_fused *fused, const struct program_frame *frame,
                        const tn_submission *submission)
{
    for (uint32_t i = 0; i < fused->program->num_operands; i++)
        if (fused->operands[i].has_memory)
            frame->bases[i] = cpu_run_address(submission, fused->operands[i].slot,
                                              fused->operands[i].offset);
    program_begin(fused->program, frame);
}

static tn_status cpu_run_launch(struct cpu_queue *queue, const struct launch *launch,
                                const struct launch_frame *frame,
                                const tn_submission *submission)
{
    const struct cpu_operand *operands = launch->operands;
    if (launch->program) {
        for (uint32_t i = 0; i < launch->num_operands; i++)
            frame->program.bases[i] =
                cpu_run_address(submission, operands[i].slot, operands[i].offset);
        program_run(queue, launch->program, &frame->program);
        return TN_OK;
    }
    tn_cpu_call *call = &frame->call->call;
    for (uint32_t i = 0; i < launch->num_operands; i++)
        if (operands[i].has_memory)
            frame->tensors[i].data =
                cpu_run_address(submission, operands[i].slot, operands[i].offset);
    if (call->scratch_size > 0)
        call->scratch = cpu_run_address(submission, launch->step->scratch_slot,
                                        launch->step->scratch_offset);
    for (uint32_t i = 0; i < launch->num_fused; i++)
        begin_fused(&launch->fused[i], &frame->call->fused[i], submission);
    return launch->function(call);
}

static uint64_t cpu_run_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static tn_status run_traced(struct cpu_queue *queue, const struct launch *launch,
                            const struct launch_frame *frame,
                            const tn_submission *submission)
{
    const tn_device *device = queue->device;
    uint64_t begin = cpu_run_now_ns();
    tn_status status = cpu_run_launch(queue, launch, frame, submission);
    device->trace->event(device->host, &(tn_trace_event){
                                           .struct_size = sizeof(tn_trace_event),
                                           .name = launch->label,
                                           .detail = launch->detail,
                                           .track = queue->track,
                                           .begin_ns = begin,
                                           .duration_ns = cpu_run_now_ns() - begin,
                                       });
    return status;
}

// Reports the failure of a launch that reported none itself.
static tn_status launch_failed(const struct cpu_queue *queue, const struct launch *launch,
                               tn_status status)
{
    const tn_host *host = &queue->kernel_host.table;
    if (queue->kernel_host.message[0])
        return status;
    if (!launch->plugin)
        return host->fail(host, status, "%s, %s, failed (status %d) and gave no reason",
                          launch->label, launch->detail, status);
    return host->fail(host, status,
                      "%s, kernel %s of %s, failed (status %d) and gave no reason",
                      launch->label, launch->detail, launch->plugin, status);
}

tn_status cpu_executable_run(struct cpu_queue *queue, const tn_submission *submission)
{
    tn_executable *executable = submission->executable;
    const bool is_traced = queue->device->trace != NULL;
    struct launch_frame **frames = &executable->frames[queue->index];
    queue->kernel_host.message[0] = 0;
    if (!*frames) {
        tn_status status = frames_create(executable, queue, frames);
        if (status != TN_OK)
            return status;
    }
    for (uint32_t i = 0; i < executable->num_launches; i++) {
        const struct launch *launch = &executable->launches[i];
        tn_status status = is_traced
                               ? run_traced(queue, launch, &(*frames)[i], submission)
                               : cpu_run_launch(queue, launch, &(*frames)[i], submission);
        if (status != TN_OK)
            return launch_failed(queue, launch, status);
    }
    return TN_OK;
}
