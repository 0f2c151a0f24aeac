// SPDX-License-Identifier: MIT
#include "bench_host.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *bench_threads;
_Thread_local char bench_message[1024];
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
    vsnprintf(bench_message, sizeof(bench_message), format, list);
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
    return strcmp(name, "TENON_THREADS") == 0 ? bench_threads : NULL;
}

static const void *host_query(const tn_host *host, const char *id)
{
    (void)host;
    (void)id;
    return NULL;
}

const tn_host bench_host = {
    .struct_size = sizeof(bench_host),
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

const tn_plugin *bench_load(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const tn_plugin *plugin = handle ? dlsym(handle, "tn_plugin_v1") : NULL;
    if (!plugin)
        die(path, dlerror());
    if (plugin->init && plugin->init(&bench_host) != TN_OK)
        die(path, bench_message);
    return plugin;
}

int64_t bench_leaks(void)
{
    return atomic_load(&allocations);
}

void bench_print_device(const tn_plugin *plugin)
{
    const tn_backend *backend = plugin->query(TN_IFACE_BACKEND);
    tn_device_info info = {.struct_size = sizeof(info)};
    if (backend->device_info(&bench_host, 0, &info) == TN_OK)
        printf("# device: %s, %s\n", info.name, info.driver);
}

void bench_open(struct bench *b, const tn_plugin *plugin)
{
    memset(b, 0, sizeof(*b));
    b->backend = plugin->query(TN_IFACE_BACKEND);
    if (b->backend->device_open(&bench_host, 0, &b->device) != TN_OK)
        die("device_open", bench_message);
}

void bench_clear(struct bench *b)
{
    b->backend->executable_destroy(b->device, b->executable);
    b->executable = NULL;
    for (uint32_t i = 0; i < b->num_slots; i++)
        b->backend->buffer_destroy(b->device, b->bindings[i].buffer);
    b->num_steps = b->num_values = b->num_slots = 0;
}

void bench_close(struct bench *b)
{
    bench_clear(b);
    b->backend->device_close(b->device);
}

uint32_t bench_slot(struct bench *b, uint64_t size)
{
    uint32_t slot = b->num_slots++;
    if (slot >= BENCH_MAX_SLOTS)
        die("bench_slot", "too many slots");
    b->slots[slot] = (tn_slot){.flags = TN_SLOT_READ | TN_SLOT_WRITE, .size = size};
    b->bindings[slot] = (tn_binding){0};
    if (b->backend->buffer_create(b->device, size ? size : 1, &b->bindings[slot].buffer))
        die("buffer_create", bench_message);
    return slot;
}

void *bench_memory(struct bench *b, uint32_t slot)
{
    return b->backend->buffer_map(b->device, b->bindings[slot].buffer);
}

tn_layout bench_layout(tn_dtype dtype, int32_t rank, const int64_t *extent)
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

int64_t bench_count(const tn_layout *layout)
{
    int64_t count = 1;
    for (int32_t i = 0; i < layout->rank; i++)
        count *= layout->extent[i];
    return count;
}

uint64_t bench_bytes(const tn_layout *layout)
{
    static const uint8_t sizes[TN_NUM_DTYPES] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8};
    return (uint64_t)bench_count(layout) * sizes[layout->dtype];
}

tn_step *bench_step(struct bench *b, uint32_t num_inputs, uint32_t num_outputs)
{
    tn_step *step = &b->steps[b->num_steps++];
    if (b->num_steps > BENCH_MAX_STEPS)
        die("bench_step", "too many steps");
    *step = (tn_step){
        .struct_size = sizeof(*step),
        .inputs = &b->values[b->num_values],
        .outputs = &b->values[b->num_values + num_inputs],
        .num_inputs = num_inputs,
        .num_outputs = num_outputs,
        .label = "test",
    };
    b->num_values += num_inputs + num_outputs;
    return step;
}

void bench_set(tn_step *step, uint32_t operand, uint32_t slot, const tn_layout *layout)
{
    tn_value *value = (tn_value *)step->inputs + operand;
    *value = (tn_value){.slot = slot, .layout = *layout};
}

void bench_scratch(struct bench *b, tn_step *step)
{
    tn_layout layouts[32];
    for (uint32_t i = 0; i < step->num_inputs + step->num_outputs; i++)
        layouts[i] = step->inputs[i].layout;
    tn_kernel_query query = {
        .struct_size = sizeof(query),
        .inputs = layouts,
        .outputs = layouts + step->num_inputs,
        .attrs = step->attrs,
        .num_inputs = step->num_inputs,
        .num_outputs = step->num_outputs,
    };
    if (!step->kernel->scratch_size)
        return;
    step->scratch_size = step->kernel->scratch_size(&query);
    if (step->scratch_size > 0)
        step->scratch_slot = bench_slot(b, step->scratch_size);
}

tn_status bench_compile(struct bench *b)
{
    tn_segment segment = {
        .struct_size = sizeof(segment),
        .steps = b->steps,
        .slots = b->slots,
        .num_steps = b->num_steps,
        .num_slots = b->num_slots,
        .step_size = sizeof(tn_step),
        .slot_size = sizeof(tn_slot),
    };
    return b->backend->segment_compile(b->device, &segment, &b->executable);
}

tn_status bench_submit(struct bench *b, uint32_t flags, uint64_t *out_point)
{
    tn_submission submission = {
        .struct_size = sizeof(submission),
        .flags = flags,
        .executable = b->executable,
        .bindings = b->bindings,
        .num_bindings = b->num_slots,
    };
    return b->backend->submit(b->device, &submission, out_point);
}

tn_status bench_run(struct bench *b)
{
    uint64_t point;
    tn_status status = b->executable ? TN_OK : bench_compile(b);
    if (status == TN_OK)
        status = bench_submit(b, 0, &point);
    return status == TN_OK ? b->backend->wait(b->device, point) : status;
}

const tn_kernel *bench_kernel(const tn_plugin *plugin, const char *primitive,
                              const char *name)
{
    const tn_ops *ops = plugin->query(TN_IFACE_OPS);
    for (uint32_t i = 0; ops && i < ops->num_kernels; i++)
        if (strcmp(ops->kernels[i]->primitive, primitive) == 0 &&
            (!name || strcmp(ops->kernels[i]->name, name) == 0))
            return ops->kernels[i];
    return NULL;
}

uint64_t bench_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
