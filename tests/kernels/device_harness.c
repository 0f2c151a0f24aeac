// SPDX-License-Identifier: MIT
#include "device_harness.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *harness_threads, *harness_stream;
_Thread_local char harness_message[1024];
static _Atomic int64_t allocations;

static void *host_alloc(const tn_host *host, uint64_t size, uint64_t alignment)
{
    void *memory = NULL;
    (void)host;
    if (posix_memalign(&memory, alignment < 16 ? 16 : alignment, size ? size : 1))
        return NULL;
    atomic_fetch_add(&allocations, 1);
    return memory;
}

static void host_free(const tn_host *host, void *memory)
{
    (void)host;
    if (memory)
        atomic_fetch_sub(&allocations, 1);
    free(memory);
}

static tn_status host_fail(const tn_host *host, tn_status status, const char *format, ...)
{
    va_list list;
    (void)host;
    va_start(list, format);
    vsnprintf(harness_message, sizeof(harness_message), format, list);
    va_end(list);
    return status;
}

static void host_log(const tn_host *host, int32_t level, const char *topic,
                     const char *format, ...)
{
    va_list list;
    (void)host;
    if (level > TN_LOG_WARN)
        return;
    fprintf(stderr, "# %s: ", topic);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
}

static const char *host_config(const tn_host *host, const char *name)
{
    (void)host;
    return strcmp(name, "TENON_THREADS") == 0      ? harness_threads
           : strcmp(name, "TENON_CPU_STREAM") == 0 ? harness_stream
           : strcmp(name, "TENON_CPU") == 0        ? getenv(name)
                                                   : NULL;
}

static const void *host_query(const tn_host *host, const char *id)
{
    (void)host;
    (void)id;
    return NULL;
}

const tn_host harness_host = {
    .struct_size = sizeof(harness_host),
    .alloc = host_alloc,
    .free = host_free,
    .fail = host_fail,
    .log = host_log,
    .config = host_config,
    .query = host_query,
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

const tn_plugin *harness_load(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const tn_plugin *plugin = handle ? dlsym(handle, "tn_plugin_v1") : NULL;
    if (!plugin)
        die(path, dlerror());
    if (plugin->init && plugin->init(&harness_host) != TN_OK)
        die(path, harness_message);
    return plugin;
}

int64_t harness_leaks(void)
{
    return atomic_load(&allocations);
}

void harness_print_device(const tn_plugin *plugin)
{
    const tn_backend *backend = plugin->query(TN_IFACE_BACKEND);
    tn_device_info info = {.struct_size = sizeof(info)};
    if (backend->device_info(&harness_host, 0, &info) == TN_OK)
        fprintf(stderr, "# device: %s, %s\n", info.name, info.driver);
}

void harness_open(struct device_harness *h, const tn_plugin *plugin)
{
    tn_device_info info = {.struct_size = sizeof(info)};
    memset(h, 0, sizeof(*h));
    h->backend = plugin->query(TN_IFACE_BACKEND);
    if (h->backend->device_info(&harness_host, 0, &info) != TN_OK)
        die("device_info", harness_message);
    h->num_workers = info.num_workers ? info.num_workers : 1;
    if (h->backend->device_open(&harness_host, 0, &h->device) != TN_OK)
        die("device_open", harness_message);
}

void harness_clear(struct device_harness *h)
{
    h->backend->executable_destroy(h->device, h->executable);
    h->executable = NULL;
    for (uint32_t i = 0; i < h->num_slots; i++)
        h->backend->buffer_destroy(h->device, h->bindings[i].buffer);
    h->num_steps = h->num_values = h->num_slots = 0;
}

void harness_close(struct device_harness *h)
{
    harness_clear(h);
    h->backend->device_close(h->device);
}

uint32_t harness_slot(struct device_harness *h, uint64_t size)
{
    uint32_t slot = h->num_slots++;
    if (slot >= HARNESS_MAX_SLOTS)
        die("harness_slot", "too many slots");
    h->slots[slot] = (tn_slot){.flags = TN_SLOT_READ | TN_SLOT_WRITE, .size = size};
    h->bindings[slot] = (tn_binding){0};
    if (h->backend->buffer_create(h->device, size ? size : 1, &h->bindings[slot].buffer))
        die("buffer_create", harness_message);
    return slot;
}

void *harness_memory(struct device_harness *h, uint32_t slot)
{
    return h->backend->buffer_map(h->device, h->bindings[slot].buffer);
}

tn_layout harness_layout(tn_dtype dtype, int32_t rank, const int64_t *extent)
{
    tn_layout layout = {.dtype = dtype, .rank = rank};
    int64_t stride = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        layout.extent[i] = extent[i];
        layout.stride[i] = stride;
        stride *= extent[i];
    }
    return layout;
}

int64_t harness_count(const tn_layout *layout)
{
    int64_t count = 1;
    for (int32_t i = 0; i < layout->rank; i++)
        count *= layout->extent[i];
    return count;
}

uint64_t harness_bytes(const tn_layout *layout)
{
    static const uint8_t sizes[TN_NUM_DTYPES] = {0, 1, 1, 2, 4, 8, 1,  2, 4,
                                                 8, 2, 2, 4, 8, 8, 16, 1, 1};
    return (uint64_t)harness_count(layout) * sizes[layout->dtype];
}

tn_step *harness_step(struct device_harness *h, uint32_t num_inputs, uint32_t num_outputs)
{
    tn_step *step = &h->steps[h->num_steps++];
    if (h->num_steps > HARNESS_MAX_STEPS)
        die("harness_step", "too many steps");
    *step = (tn_step){
        .struct_size = sizeof(*step),
        .inputs = &h->values[h->num_values],
        .outputs = &h->values[h->num_values + num_inputs],
        .num_inputs = num_inputs,
        .num_outputs = num_outputs,
        .value_size = sizeof(tn_value),
        .label = "test",
    };
    h->num_values += num_inputs + num_outputs;
    return step;
}

void harness_set(tn_step *step, uint32_t operand, uint32_t slot, const tn_layout *layout)
{
    tn_value *value = (tn_value *)step->inputs + operand;
    *value = (tn_value){.slot = slot, .layout = *layout};
}

void harness_scratch(struct device_harness *h, tn_step *step)
{
    tn_layout layouts[32];
    for (uint32_t i = 0; i < step->num_inputs + step->num_outputs; i++)
        layouts[i] = tn_step_input(step, i)->layout;
    tn_kernel_query query = {
        .struct_size = sizeof(query),
        .inputs = layouts,
        .outputs = layouts + step->num_inputs,
        .attrs = step->attrs,
        .num_inputs = step->num_inputs,
        .num_outputs = step->num_outputs,
        .num_workers = h->num_workers,
    };
    if (!step->kernel->scratch_size)
        return;
    step->scratch_size = step->kernel->scratch_size(&query);
    if (step->scratch_size > 0)
        step->scratch_slot = harness_slot(h, step->scratch_size);
}

tn_status harness_compile(struct device_harness *h)
{
    tn_segment segment = {
        .struct_size = sizeof(segment),
        .steps = h->steps,
        .slots = h->slots,
        .num_steps = h->num_steps,
        .num_slots = h->num_slots,
        .step_size = sizeof(tn_step),
        .slot_size = sizeof(tn_slot),
    };
    return h->backend->segment_compile(h->device, &segment, &h->executable);
}

tn_status harness_submit(struct device_harness *h, uint32_t flags, uint64_t *out_point)
{
    tn_submission submission = {
        .struct_size = sizeof(submission),
        .flags = flags,
        .executable = h->executable,
        .bindings = h->bindings,
        .num_bindings = h->num_slots,
        .binding_size = sizeof(tn_binding),
    };
    return h->backend->submit(h->device, &submission, out_point);
}

tn_status harness_run(struct device_harness *h)
{
    uint64_t point;
    tn_status status = h->executable ? TN_OK : harness_compile(h);
    if (status == TN_OK)
        status = harness_submit(h, 0, &point);
    return status == TN_OK ? h->backend->wait(h->device, 0, point) : status;
}

const tn_kernel *harness_kernel(const tn_plugin *plugin, const char *primitive,
                                const char *name)
{
    const tn_ops *ops = plugin->query(TN_IFACE_OPS);
    for (uint32_t i = 0; ops && i < ops->num_kernels; i++)
        if (strcmp(ops->kernels[i]->primitive, primitive) == 0 &&
            (!name || strcmp(ops->kernels[i]->name, name) == 0))
            return ops->kernels[i];
    return NULL;
}

uint64_t harness_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
