// SPDX-License-Identifier: MIT
// Launches checked against their definitions; see shadow.h.
//
// Memory is used again within a segment, so a checked step runs by itself: what is before
// it, itself, what is after it, each an executable of its own over the same buffers.
#include "shadow.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/number.h"
#include "../base/shape.h"
#include "../plugin/plugin_set.h"
#include "oracle.h"

struct shadow {
    tn_runtime *runtime;
    double rate;
    pthread_mutex_t lock; // of the state
    uint64_t state;       // of the generator
    atomic_uint_fast64_t checked, differing;
};

// --- opening and closing ---------------------------------------------------------------

tn_status shadow_create(tn_runtime *runtime)
{
    char *end;
    const char *text = config_get(runtime->config, "TENON_CHECK");
    double rate = text ? text_to_double(text, &end) : 0;
    if (rate == 0)
        return TN_OK;
    struct shadow *shadow = mem_zalloc(sizeof(*shadow));
    if (!shadow)
        return TN_ERR_MEMORY;
    *shadow = (struct shadow){
        .runtime = runtime, .rate = rate, .state = UINT64_C(0x9e3779b97f4a7c15)};
    pthread_mutex_init(&shadow->lock, NULL);
    runtime->shadow = shadow;
    return TN_OK;
}

void shadow_destroy(tn_runtime *runtime)
{
    struct shadow *shadow = runtime->shadow;
    if (!shadow)
        return;
    log_write(runtime->config, TN_LOG_INFO, "check", "%llu launches checked, %llu differ",
              (unsigned long long)shadow->checked, (unsigned long long)shadow->differing);
    pthread_mutex_destroy(&shadow->lock);
    mem_free(shadow);
    runtime->shadow = NULL;
}

void shadow_counts(const struct shadow *shadow, uint64_t *out_checked,
                   uint64_t *out_differing)
{
    *out_checked = shadow ? shadow->checked : 0;
    *out_differing = shadow ? shadow->differing : 0;
}

// Uniform in [0, 1): xorshift64* (Vigna, "An experimental exploration of Marsaglia's
// xorshift generators, scrambled", 2016).
static double draw(struct shadow *shadow)
{
    uint64_t x = shadow->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    shadow->state = x;
    return (double)(x * UINT64_C(0x2545f4914f6cdd1d) >> 11) * 0x1p-53;
}

// A reference that runs for want of a kernel has nothing to be checked against.
static bool can_check(const tn_step *step)
{
    bool has_effect = step->primitive && (step->primitive->flags & TN_PRIM_EFFECT);
    return (step->kernel || step->program) && !has_effect && step->num_outputs > 0 &&
           layout_elements(&step->outputs[0].layout) > 0 && oracle_knows(step);
}

bool shadow_draw(struct shadow *shadow, const tn_segment *segment, uint8_t *chosen)
{
    bool any = false;
    pthread_mutex_lock(&shadow->lock);
    for (uint32_t i = 0; i < segment->num_steps; i++) {
        chosen[i] = draw(shadow) < shadow->rate && can_check(&segment->steps[i]);
        any |= chosen[i];
    }
    pthread_mutex_unlock(&shadow->lock);
    return any;
}

// --- one launch ------------------------------------------------------------------------

struct check {
    struct shadow *shadow;
    struct device *device;
    const tn_segment *segment;
    const tn_binding *bindings;
    struct storage *const *storages;
    tn_slot *slots; // the segment's: between its pieces scratch memory is kept
    // Of the step at hand: inputs, then what the device gave, then what is expected.
    tn_tensor *tensors;
};

// Bytes of the elements from the lowest to the highest in memory, on the host; the layout
// is moved to match.
static tn_status fetch(const struct check *c, const tn_value *value, tn_tensor *out)
{
    const tn_layout *layout = &value->layout;
    int64_t low = layout->offset, high = layout->offset;
    uint64_t size = dtype_size(layout->dtype);
    *out = (tn_tensor){.layout = *layout};
    if (layout->dtype == TN_DTYPE_NONE || layout_elements(layout) == 0)
        return TN_OK;
    for (int32_t i = 0; i < layout->rank; i++) {
        int64_t reach = layout->stride[i] * (layout->extent[i] - 1);
        *(reach < 0 ? &low : &high) += reach;
    }
    uint64_t bytes = (uint64_t)(high - low + 1) * size;
    if (!(out->data = mem_alloc(bytes)))
        return TN_ERR_MEMORY;
    out->layout.offset -= low;
    tn_status status = storage_wait(c->storages[value->slot]);
    if (status == TN_OK)
        status = c->device->ops->buffer_read(
            c->device->handle, c->bindings[value->slot].buffer,
            c->bindings[value->slot].offset + value->offset + (uint64_t)low * size,
            out->data, bytes);
    return status;
}

static void forget(struct check *c, uint32_t count)
{
    for (uint32_t i = 0; c->tensors && i < count; i++)
        mem_free(c->tensors[i].data);
    mem_free(c->tensors);
    c->tensors = NULL;
}

static tn_status run_steps(const struct check *c, uint32_t first, uint32_t count)
{
    struct device *device = c->device;
    tn_segment piece = *c->segment;
    tn_submission submission = {.struct_size = sizeof(submission),
                                .bindings = c->bindings,
                                .num_bindings = piece.num_slots};
    uint64_t point;
    if (count == 0)
        return TN_OK;
    piece.steps = c->segment->steps + first;
    piece.num_steps = count;
    piece.slots = c->slots;
    fail_clear();
    const char *slot = "segment_compile";
    pthread_mutex_lock(&device->lock);
    tn_status status =
        device->ops->segment_compile(device->handle, &piece, &submission.executable);
    if (status == TN_OK) {
        slot = "submit";
        status = device->ops->submit(device->handle, &submission, &point);
    }
    pthread_mutex_unlock(&device->lock);
    status =
        status == TN_OK ? device_ask(device, point) : device_failed(device, slot, status);
    pthread_mutex_lock(&device->lock);
    device->ops->executable_destroy(device->handle, submission.executable);
    pthread_mutex_unlock(&device->lock);
    return status;
}

// --- comparing -------------------------------------------------------------------------

// How far a kernel may be from the definition, of the largest magnitude in the output and a
// 64th of that in the inputs, which may cancel: it may sum in another order and round in
// between. 512 units in the last place of f32 and f64, 8 of f16, 4 of bf16.
static double allowed_of(tn_dtype dtype)
{
    switch (dtype) {
    case TN_F16:
        return 0x1p-7;
    case TN_BF16:
        return 0x1p-5;
    case TN_F32:
        return 0x1p-14;
    case TN_F64:
        return 0x1p-43;
    default:
        return 0;
    }
}

struct difference {
    uint32_t output;
    int64_t count, elements, worst; // worst: number of the element, row-major
    double error, allowed, got, expected;
};

static bool is_float_step(const tn_step *step)
{
    for (uint32_t i = 0; i < step->num_inputs; i++)
        if (dtype_is_float(step->inputs[i].layout.dtype))
            return true;
    return false;
}

static double get(const tn_tensor *tensor, int64_t offset)
{
    return dtype_load(tensor->layout.dtype, tensor_element(tensor, offset));
}

static double largest(const tn_tensor *tensor)
{
    int64_t at[TN_MAX_RANK] = {0}, count = layout_elements(&tensor->layout);
    double most = 0;
    for (int64_t i = 0; i < count; i++) {
        double value = fabs(get(tensor, tensor_offset(&tensor->layout, at)));
        if (isfinite(value) && value > most)
            most = value;
        tensor_next(&tensor->layout, at);
    }
    return most;
}

static double largest_input(const struct check *c, const tn_step *step)
{
    double most = 0;
    for (uint32_t i = 0; i < step->num_inputs; i++)
        if (dtype_is_float(step->inputs[i].layout.dtype))
            most = fmax(most, largest(&c->tensors[i]));
    return most;
}

// Both are contiguous. False when they agree.
static bool compare(const tn_tensor *got, const tn_tensor *expected, double from_inputs,
                    struct difference *out)
{
    tn_dtype dtype = expected->layout.dtype;
    bool floats = dtype_is_float(dtype);
    out->elements = layout_elements(&expected->layout);
    out->allowed = allowed_of(dtype) * fmax(largest(expected) + from_inputs / 64, 1e-30);
    out->count = 0;
    out->error = -1;
    for (int64_t i = 0; i < out->elements; i++) {
        int64_t a = got->layout.offset + i, b = expected->layout.offset + i;
        double x = get(got, a), y = get(expected, b), error = fabs(x - y);
        bool same = floats ? x == y || (isnan(x) && isnan(y)) || error <= out->allowed
                           : memcmp(tensor_element(got, a), tensor_element(expected, b),
                                    dtype_size(dtype)) == 0;
        if (same)
            continue;
        out->count++;
        error = isnan(error) ? INFINITY : error;
        if (error <= out->error)
            continue;
        out->error = error;
        out->worst = i;
        out->got = x;
        out->expected = y;
    }
    return out->count > 0;
}

static void describe_inputs(const tn_step *step, char *text, size_t size)
{
    size_t length = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < step->num_inputs && length + TYPE_TEXT < size; i++) {
        const tn_layout *layout = &step->inputs[i].layout;
        char one[TYPE_TEXT];
        tn_type type = layout_type(layout);
        length += (size_t)snprintf(text + length, size - length, "%s%s", i ? ", " : "",
                                   layout->dtype == TN_DTYPE_NONE ? "none"
                                                                  : type_print(&type, one));
    }
}

static void report(const struct check *c, const tn_step *step, const struct difference *d)
{
    char inputs[1024], kernel[256];
    if (step->kernel) {
        snprintf(kernel, sizeof(kernel), "kernel %s (%s) of %s",
                 step->kernel->name ? step->kernel->name : step->primitive->id,
                 step->kernel->family, kernel_plugin(step->kernel));
    } else {
        snprintf(kernel, sizeof(kernel), "an expression as %s runs it",
                 plugin_id(c->device->plugin));
    }
    describe_inputs(step, inputs, sizeof(inputs));
    log_write(c->shadow->runtime->config, TN_LOG_WARN, "check",
              "%s: %s on %s differs from the definition in %lld of %lld elements of output "
              "%u, inputs %s: element %lld is %.9g, expected %.9g (error %.3g, allowed "
              "%.3g)",
              step->label, kernel, c->device->name, (long long)d->count,
              (long long)d->elements, d->output, inputs, (long long)d->worst, d->got,
              d->expected, d->error, d->allowed);
}

// A rounding can carry a comparison or an index made from floats to the other side: of such
// integers one in a thousand may differ.
static bool is_rounding(const tn_step *step, const struct difference *d)
{
    return !dtype_is_float(step->outputs[d->output].layout.dtype) && is_float_step(step) &&
           d->count <= 1 + d->elements / 1000;
}

static void compare_all(const struct check *c, const tn_step *step)
{
    const tn_tensor *got = c->tensors + step->num_inputs;
    const tn_tensor *expected = got + step->num_outputs;
    double from_inputs = largest_input(c, step);
    atomic_fetch_add_explicit(&c->shadow->checked, 1, memory_order_relaxed);
    for (uint32_t i = 0; i < step->num_outputs; i++) {
        struct difference d = {.output = i};
        if (!compare(&got[i], &expected[i], from_inputs, &d) || is_rounding(step, &d))
            continue;
        atomic_fetch_add_explicit(&c->shadow->differing, 1, memory_order_relaxed);
        report(c, step, &d);
        return;
    }
}

// --- a segment -------------------------------------------------------------------------

static tn_status fetch_inputs(struct check *c, const tn_step *step)
{
    tn_status status = TN_OK;
    uint32_t count = step->num_inputs + 2 * step->num_outputs;
    c->tensors = mem_zalloc(count * sizeof(*c->tensors));
    if (!c->tensors)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < step->num_inputs && status == TN_OK; i++)
        status = fetch(c, &step->inputs[i], &c->tensors[i]);
    return status;
}

static tn_status fetch_outputs(struct check *c, const tn_step *step)
{
    tn_tensor *got = c->tensors + step->num_inputs, *expected = got + step->num_outputs;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < step->num_outputs && status == TN_OK; i++) {
        status = fetch(c, &step->outputs[i], &got[i]);
        if (status != TN_OK)
            break;
        uint64_t bytes =
            (uint64_t)layout_elements(&got[i].layout) * dtype_size(got[i].layout.dtype);
        expected[i] = (tn_tensor){mem_zalloc(bytes + 8), got[i].layout};
        expected[i].layout.offset = 0;
        status = expected[i].data ? TN_OK : TN_ERR_MEMORY;
    }
    return status;
}

// Runs one step and checks it. Only what the step itself does can fail the run.
static tn_status check_step(struct check *c, uint32_t number)
{
    const tn_step *step = &c->segment->steps[number];
    tn_status checking = fetch_inputs(c, step);
    tn_status status = run_steps(c, number, 1);
    if (status == TN_OK && checking == TN_OK)
        checking = fetch_outputs(c, step);
    if (status == TN_OK && checking == TN_OK)
        checking = oracle_step(c->shadow->runtime, step, c->tensors,
                               c->tensors + step->num_inputs + step->num_outputs);
    if (status == TN_OK && checking == TN_OK)
        compare_all(c, step);
    else if (status == TN_OK)
        log_write(c->shadow->runtime->config, TN_LOG_WARN, "check",
                  "%s was not checked: %s", step->label, fail_text());
    forget(c, step->num_inputs + 2 * step->num_outputs);
    return status;
}

tn_status shadow_segment(struct shadow *shadow, struct device *device,
                         const tn_segment *segment, const tn_binding *bindings,
                         struct storage *const *storages, const uint8_t *chosen)
{
    struct check c = {shadow, device, segment, bindings, storages, NULL, NULL};
    tn_status status = TN_OK;
    uint32_t begin = 0;
    c.slots = mem_alloc((segment->num_slots + 1) * sizeof(*c.slots));
    if (!c.slots)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < segment->num_slots; i++) {
        c.slots[i] = segment->slots[i];
        c.slots[i].flags = TN_SLOT_READ | TN_SLOT_WRITE;
    }
    for (uint32_t i = 0; i < segment->num_steps && status == TN_OK; i++) {
        if (!chosen[i])
            continue;
        status = run_steps(&c, begin, i - begin);
        if (status == TN_OK)
            status = check_step(&c, i);
        begin = i + 1;
    }
    if (status == TN_OK)
        status = run_steps(&c, begin, segment->num_steps - begin);
    mem_free(c.slots);
    return status;
}
