// SPDX-License-Identifier: MIT
// The checking backend; see checking.h. Owns which launches are checked and how they run;
// the expected results are oracle.c's, their comparison is compare.c's.
//
// Later steps of a segment reuse the memory of earlier values, so a checked step is run
// alone: the steps before it, the step, and the steps after it are three executables over
// the same buffers, each waited for.
#include "checking.h"

#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/memory.h"
#include "../base/number.h"
#include "../base/shape.h"
#include "../device/device.h"
#include "compare.h"
#include "operands.h"
#include "oracle.h"
#include "values.h"

struct checker {
    tn_runtime *runtime;
    double rate;          // share of the launches to check, 0 to 1
    pthread_mutex_t lock; // of `state`
    uint64_t state;       // of the random generator
    atomic_uint num_devices;
};

// Wraps a device: device.handle points to this, and device.ops to `ops`.
struct checked_device {
    tn_backend ops;
    const tn_backend *inner; // the backend's own table and device
    tn_device *handle;
    struct device *device;
    struct checker *checker;
    atomic_uint_fast64_t submitted[TN_MAX_QUEUES]; // by queue: the last point's value
};

struct checked_executable {
    tn_executable *inner;
    tn_segment segment;
};

// Uniform in [0, 1): xorshift64* (Vigna, "An experimental exploration of Marsaglia's
// xorshift generators, scrambled", 2016).
static double checking_draw(struct checker *checker)
{
    uint64_t x = checker->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    checker->state = x;
    return (double)(x * UINT64_C(0x2545f4914f6cdd1d) >> 11) * 0x1p-53;
}

// A step without kernel and program runs the reference, which is the definition itself.
static bool can_check(const tn_step *step)
{
    bool has_effect = step->primitive && (step->primitive->flags & TN_PRIM_EFFECT);
    return (step->kernel || step->program) && !has_effect && step->num_outputs > 0 &&
           layout_elements(&tn_step_output(step, 0)->layout) > 0 && oracle_knows(step);
}

// Draws the steps of a segment to check: chosen[i] is 1 for step i. False: none.
static bool draw_steps(struct checker *checker, const tn_segment *segment, uint8_t *chosen)
{
    bool any = false;
    pthread_mutex_lock(&checker->lock);
    for (uint32_t i = 0; i < segment->num_steps; i++) {
        chosen[i] = checking_draw(checker) < checker->rate && can_check(&segment->steps[i]);
        any |= chosen[i];
    }
    pthread_mutex_unlock(&checker->lock);
    return any;
}

// --- one launch ------------------------------------------------------------------------

// A submission of which some steps are checked.
struct checking_run {
    struct checked_device *checked;
    const tn_segment *segment;
    const tn_submission *submission;
    tn_slot *slots; // the segment's, without TN_SLOT_SCRATCH: executables share this memory
    uint64_t value; // of the last timeline point; 0: nothing was submitted
    // The checked step's inputs, the device's outputs, and the expected outputs.
    tn_tensor *tensors;
};

// Reads a value into host memory: the range of bytes that its layout reaches, and `further`
// elements. The layout's offset counts from the start of this range.
static tn_status checking_fetch(const struct checking_run *c, const tn_value *value,
                                uint64_t further, tn_tensor *out)
{
    const tn_layout *layout = &value->layout;
    int64_t low = layout->offset, high = layout->offset;
    uint64_t size = dtype_size(layout->dtype);
    *out = (tn_tensor){.layout = *layout};
    if (!value_has_memory(value) || layout_elements(layout) == 0)
        return TN_OK;
    for (int32_t i = 0; i < layout->rank; i++) {
        int64_t reach = layout->stride[i] * (layout->extent[i] - 1);
        *(reach < 0 ? &low : &high) += reach;
    }
    uint64_t bytes = ((uint64_t)(high - low + 1) + further) * size;
    if (!(out->data = mem_alloc(bytes)))
        return TN_ERR_MEMORY;
    out->layout.offset -= low;
    const tn_binding *binding = tn_submission_binding(c->submission, value->slot);
    return c->checked->inner->buffer_read(
        c->checked->handle, binding->buffer,
        binding->offset + value->offset + (uint64_t)low * size, out->data, bytes);
}

static void free_tensors(struct checking_run *c, uint32_t count)
{
    for (uint32_t i = 0; c->tensors && i < count; i++)
        mem_free(c->tensors[i].data);
    mem_free(c->tensors);
    c->tensors = NULL;
}

// Waits for earlier work in the queue and for the points that the submission waits for. A
// failure of this work belongs to its own outcome, so only a lost device is a failure here.
static tn_status wait_for_inputs(const struct checking_run *c)
{
    const tn_submission *s = c->submission;
    const struct checked_device *checked = c->checked;
    uint64_t before = atomic_load(&checked->submitted[s->queue]);
    tn_status status =
        before ? checked->inner->wait(checked->handle, s->queue, before) : TN_OK;
    for (uint32_t i = 0; i < s->num_waits && status != TN_ERR_DEVICE; i++)
        status =
            checked->inner->wait(checked->handle, s->waits[i].queue, s->waits[i].value);
    return status == TN_ERR_DEVICE ? status : TN_OK;
}

static void note_submitted(struct checked_device *checked, uint32_t queue, uint64_t value)
{
    uint64_t seen = atomic_load(&checked->submitted[queue]);
    while (seen < value &&
           !atomic_compare_exchange_weak(&checked->submitted[queue], &seen, value))
        ;
}

// Runs steps [first, first + count) as an executable of their own, and waits for them.
static tn_status checking_run_steps(struct checking_run *c, uint32_t first, uint32_t count)
{
    const tn_backend *inner = c->checked->inner;
    tn_segment piece = *c->segment;
    tn_submission submission = *c->submission;
    if (count == 0)
        return TN_OK;
    piece.steps = c->segment->steps + first;
    piece.num_steps = count;
    piece.slots = c->slots;
    submission.executable = NULL;
    fail_clear();
    tn_status status =
        inner->segment_compile(c->checked->handle, &piece, &submission.executable);
    if (status != TN_OK)
        return status;
    status = inner->submit(c->checked->handle, &submission, &c->value);
    if (status == TN_OK) {
        note_submitted(c->checked, submission.queue, c->value);
        status = inner->wait(c->checked->handle, submission.queue, c->value);
    }
    inner->executable_destroy(c->checked->handle, submission.executable);
    return status;
}

// --- a segment -------------------------------------------------------------------------

static tn_status fetch_inputs(struct checking_run *c, const tn_step *step)
{
    tn_status status = TN_OK;
    uint32_t num_inputs = step_num_inputs(step);
    uint32_t count = num_inputs + 2 * step_num_outputs(step);
    c->tensors = mem_zalloc(count * sizeof(*c->tensors));
    if (!c->tensors)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < num_inputs && status == TN_OK; i++)
        status = checking_fetch(c, step_input(step, i), step_input_reach(step, i),
                                &c->tensors[i]);
    return status;
}

static tn_status fetch_outputs(struct checking_run *c, const tn_step *step)
{
    uint32_t num_outputs = step_num_outputs(step);
    tn_tensor *got = c->tensors + step_num_inputs(step), *expected = got + num_outputs;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < num_outputs && status == TN_OK; i++) {
        status = checking_fetch(c, step_output(step, i), 0, &got[i]);
        expected[i].layout = got[i].layout;
        if (status != TN_OK || !got[i].data)
            continue;
        uint64_t bytes =
            (uint64_t)layout_elements(&got[i].layout) * dtype_size(got[i].layout.dtype);
        expected[i] = (tn_tensor){mem_zalloc(bytes + 8), got[i].layout};
        expected[i].layout.offset = 0;
        status = expected[i].data ? TN_OK : TN_ERR_MEMORY;
    }
    return status;
}

// Runs one step and checks it. A failure of the check itself is only logged.
static tn_status check_step(struct checking_run *c, uint32_t number)
{
    const tn_step *step = &c->segment->steps[number];
    tn_status checking = fetch_inputs(c, step);
    tn_status status = checking_run_steps(c, number, 1);
    if (status == TN_OK && checking == TN_OK)
        checking = fetch_outputs(c, step);
    if (status == TN_OK && checking == TN_OK)
        checking = oracle_step(c->checked->checker->runtime, step, c->tensors,
                               c->tensors + step_num_inputs(step) + step_num_outputs(step));
    if (status == TN_OK && checking == TN_OK)
        compare_step(c->checked->device, step, c->tensors);
    else if (status == TN_OK)
        log_write(c->checked->checker->runtime->config, TN_LOG_WARN, "check",
                  "%s was not checked: %s", step->label, fail_text());
    free_tensors(c, step_num_inputs(step) + 2 * step_num_outputs(step));
    return status;
}

// Runs the segment in pieces and checks the chosen steps. All work is done when this
// returns.
static tn_status run_checked(struct checking_run *c, const uint8_t *chosen)
{
    const tn_segment *segment = c->segment;
    uint32_t begin = 0;
    tn_status status = wait_for_inputs(c);
    for (uint32_t i = 0; i < segment->num_steps && status == TN_OK; i++) {
        if (!chosen[i])
            continue;
        status = checking_run_steps(c, begin, i - begin);
        if (status == TN_OK)
            status = check_step(c, i);
        begin = i + 1;
    }
    return status == TN_OK ? checking_run_steps(c, begin, segment->num_steps - begin)
                           : status;
}

static tn_status submit_checked(struct checked_device *checked, const tn_segment *segment,
                                const tn_submission *submission, const uint8_t *chosen,
                                uint64_t *out_value)
{
    struct checking_run c = {
        .checked = checked, .segment = segment, .submission = submission};
    c.slots = mem_alloc((segment->num_slots + 1) * sizeof(*c.slots));
    if (!c.slots)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < segment->num_slots; i++) {
        c.slots[i] = segment->slots[i];
        c.slots[i].flags = TN_SLOT_READ | TN_SLOT_WRITE;
    }
    tn_status status = run_checked(&c, chosen);
    mem_free(c.slots);
    if (status == TN_OK)
        *out_value = c.value;
    return status;
}

// --- the backend -----------------------------------------------------------------------

static struct checked_device *checked_of(tn_device *device)
{
    return (struct checked_device *)(void *)device;
}

static void device_close(tn_device *device)
{
    struct checked_device *checked = checked_of(device);
    struct checker *checker = checked->checker;
    checked->inner->device_close(checked->handle);
    mem_free(checked);
    if (atomic_fetch_sub(&checker->num_devices, 1) == 1)
        log_write(checker->runtime->config, TN_LOG_INFO, "check",
                  "%llu launches checked, %llu differ",
                  (unsigned long long)stats_sum(checker->runtime, STATS_CHECKED),
                  (unsigned long long)stats_sum(checker->runtime, STATS_DIFFERING));
}

static int32_t step_check(tn_device *device, const tn_step *step, const char **out_reason)
{
    const struct checked_device *checked = checked_of(device);
    return checked->inner->step_check(checked->handle, step, out_reason);
}

static tn_status buffer_create(tn_device *device, uint64_t size, tn_buffer **out_buffer)
{
    const struct checked_device *checked = checked_of(device);
    return checked->inner->buffer_create(checked->handle, size, out_buffer);
}

static void buffer_destroy(tn_device *device, tn_buffer *buffer)
{
    const struct checked_device *checked = checked_of(device);
    checked->inner->buffer_destroy(checked->handle, buffer);
}

static tn_status buffer_write(tn_device *device, tn_buffer *buffer, uint64_t offset,
                              const void *data, uint64_t size)
{
    const struct checked_device *checked = checked_of(device);
    return checked->inner->buffer_write(checked->handle, buffer, offset, data, size);
}

static tn_status buffer_read(tn_device *device, tn_buffer *buffer, uint64_t offset,
                             void *data, uint64_t size)
{
    const struct checked_device *checked = checked_of(device);
    return checked->inner->buffer_read(checked->handle, buffer, offset, data, size);
}

static void *buffer_map(tn_device *device, tn_buffer *buffer)
{
    const struct checked_device *checked = checked_of(device);
    return checked->inner->buffer_map(checked->handle, buffer);
}

static tn_status buffer_import(tn_device *device, const tn_buffer_import *import,
                               tn_buffer **out_buffer)
{
    const struct checked_device *checked = checked_of(device);
    return checked->inner->buffer_import(checked->handle, import, out_buffer);
}

static tn_status segment_compile(tn_device *device, const tn_segment *segment,
                                 tn_executable **out_executable)
{
    const struct checked_device *checked = checked_of(device);
    struct checked_executable *executable = mem_zalloc(sizeof(*executable));
    if (!executable)
        return TN_ERR_MEMORY;
    executable->segment = *segment;
    tn_status status = values_check(segment);
    if (status == TN_OK)
        status =
            checked->inner->segment_compile(checked->handle, segment, &executable->inner);
    if (status == TN_OK)
        *out_executable = (tn_executable *)(void *)executable;
    else
        mem_free(executable);
    return status;
}

static void executable_destroy(tn_device *device, tn_executable *executable)
{
    const struct checked_device *checked = checked_of(device);
    struct checked_executable *own = (struct checked_executable *)(void *)executable;
    if (!own)
        return;
    checked->inner->executable_destroy(checked->handle, own->inner);
    mem_free(own);
}

static tn_status checking_submit(tn_device *device, const tn_submission *submission,
                                 uint64_t *out_value)
{
    struct checked_device *checked = checked_of(device);
    const struct checked_executable *executable =
        (const struct checked_executable *)(void *)submission->executable;
    tn_submission inner = *submission;
    inner.executable = executable->inner;
    uint8_t *chosen = mem_zalloc(executable->segment.num_steps + 1);
    if (!chosen)
        return TN_ERR_MEMORY;
    bool any = draw_steps(checked->checker, &executable->segment, chosen);
    tn_status status =
        any ? submit_checked(checked, &executable->segment, &inner, chosen, out_value)
            : checked->inner->submit(checked->handle, &inner, out_value);
    mem_free(chosen);
    if (status == TN_OK)
        note_submitted(checked, submission->queue, *out_value);
    return status;
}

static tn_status checking_wait(tn_device *device, uint32_t queue, uint64_t value)
{
    const struct checked_device *checked = checked_of(device);
    return checked->inner->wait(checked->handle, queue, value);
}

static tn_status memory_info(tn_device *device, tn_memory_info *out)
{
    const struct checked_device *checked = checked_of(device);
    return checked->inner->memory_info(checked->handle, out);
}

// Puts the checking backend in front of the device. Functions that take no tn_device stay
// the backend's own; optional functions that the backend lacks stay NULL.
static tn_status wrap_device(struct device *device)
{
    const tn_backend *inner = device->ops;
    struct checked_device *checked = mem_zalloc(sizeof(*checked));
    if (!checked)
        return TN_ERR_MEMORY;
    checked->inner = inner;
    checked->handle = device->handle;
    checked->device = device;
    checked->checker = device->runtime->checker;
    atomic_fetch_add(&checked->checker->num_devices, 1);
    memcpy(&checked->ops, inner,
           inner->struct_size < sizeof(checked->ops) ? inner->struct_size
                                                     : sizeof(checked->ops));
    checked->ops.struct_size = sizeof(checked->ops);
    checked->ops.device_close = device_close;
    checked->ops.step_check = TN_HAS(inner, step_check) ? step_check : NULL;
    checked->ops.buffer_create = buffer_create;
    checked->ops.buffer_destroy = buffer_destroy;
    checked->ops.buffer_write = buffer_write;
    checked->ops.buffer_read = buffer_read;
    checked->ops.buffer_map = TN_HAS(inner, buffer_map) ? buffer_map : NULL;
    checked->ops.buffer_import = TN_HAS(inner, buffer_import) ? buffer_import : NULL;
    checked->ops.segment_compile = segment_compile;
    checked->ops.executable_destroy = executable_destroy;
    checked->ops.submit = checking_submit;
    checked->ops.wait = checking_wait;
    checked->ops.memory_info = TN_HAS(inner, memory_info) ? memory_info : NULL;
    checked->ops.fusion_limit = NULL; // asked already, when the device was opened
    checked->ops.signal = NULL;       // submit waits for what a launch reads
    // The core does without these: data pass by the functions above.
    checked->ops.buffer_export_fd = NULL;
    checked->ops.buffer_import_fd = NULL;
    checked->ops.buffer_copy = NULL;
    checked->ops.buffer_read_after = NULL;
    checked->ops.buffer_export = NULL;
    checked->ops.point_export_fd = NULL;
    device->ops = &checked->ops;
    device->handle = (tn_device *)(void *)checked;
    return TN_OK;
}

// --- opening and closing ---------------------------------------------------------------

tn_status checker_create(tn_runtime *runtime)
{
    char *end;
    const char *text = config_get(runtime->config, "TENON_CHECK");
    double rate = text ? text_to_double(text, &end) : 0;
    if (rate == 0)
        return TN_OK;
    struct checker *checker = mem_zalloc(sizeof(*checker));
    if (!checker)
        return TN_ERR_MEMORY;
    *checker = (struct checker){
        .runtime = runtime, .rate = rate, .state = UINT64_C(0x9e3779b97f4a7c15)};
    pthread_mutex_init(&checker->lock, NULL);
    runtime->checker = checker;
    runtime->wrap_device = wrap_device;
    return TN_OK;
}

void checker_destroy(tn_runtime *runtime)
{
    struct checker *checker = runtime->checker;
    if (!checker)
        return;
    pthread_mutex_destroy(&checker->lock);
    mem_free(checker);
    runtime->checker = NULL;
}
