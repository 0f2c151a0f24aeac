// SPDX-License-Identifier: MIT
// The host and the segments that vulkan_bench.h describes.
#include "vulkan_bench.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

atomic_int vb_messages, vb_allocations;
_Thread_local char vb_failure[1024];
bool vb_as_gpu;
void (*vb_on_log)(const char *line);
static bool validates;
int vb_cache_hits, vb_cache_puts;
bool vb_cache_damages;

// --- the host ---------------------------------------------------------------------------

static void *host_alloc(const tn_host *host, uint64_t size, uint64_t alignment)
{
    void *memory = NULL;
    (void)host;
    if (posix_memalign(&memory, alignment < 16 ? 16 : alignment, size ? size : 1))
        return NULL;
    atomic_fetch_add(&vb_allocations, 1);
    return memory;
}

static void host_free(const tn_host *host, void *memory)
{
    (void)host;
    if (memory)
        atomic_fetch_sub(&vb_allocations, 1);
    free(memory);
}

static tn_status host_fail(const tn_host *host, tn_status status, const char *format, ...)
{
    va_list list;
    (void)host;
    va_start(list, format);
    vsnprintf(vb_failure, sizeof(vb_failure), format, list);
    va_end(list);
    return status;
}

static void host_log(const tn_host *host, int32_t level, const char *topic,
                     const char *format, ...)
{
    char line[4096];
    va_list list;
    (void)host;
    va_start(list, format);
    vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    if (vb_on_log)
        vb_on_log(line);
    if (level > TN_LOG_WARN)
        return;
    atomic_fetch_add(&vb_messages, 1);
    fprintf(stderr, "# %s: %s\n", topic, line);
}

static const char *host_config(const tn_host *host, const char *name)
{
    (void)host;
    if (strcmp(name, "TENON_VULKAN_MATRICES") == 0)
        return getenv(name); // tests/gpu/run takes each
    bool set = (validates && strcmp(name, "TENON_VULKAN_VALIDATION") == 0) ||
               (vb_as_gpu && strcmp(name, "TENON_VULKAN_AS_GPU") == 0);
    return set ? "1" : NULL;
}

struct entry {
    struct entry *next;
    uint64_t key_size, size;
    unsigned char *key, *data;
};
static struct entry *entries;
static pthread_mutex_t entries_lock = PTHREAD_MUTEX_INITIALIZER;

static struct entry *find_entry(const void *key, uint64_t key_size)
{
    struct entry *entry = entries;
    while (entry && (entry->key_size != key_size || memcmp(entry->key, key, key_size) != 0))
        entry = entry->next;
    return entry;
}

static tn_status get_locked(const tn_host *host, const void *key, uint64_t key_size,
                            void **out_data, uint64_t *out_size)
{
    struct entry *entry = find_entry(key, key_size);
    if (!entry)
        return TN_ERR_NOT_FOUND;
    void *data = host->alloc(host, entry->size, 0);
    if (!data)
        return TN_ERR_MEMORY;
    memcpy(data, entry->data, entry->size);
    if (vb_cache_damages)
        memset(data, 0x5a, entry->size < 64 ? entry->size : 64);
    vb_cache_hits++;
    *out_data = data;
    *out_size = entry->size;
    return TN_OK;
}

static tn_status cache_get(const tn_host *host, const void *key, uint64_t key_size,
                           void **out_data, uint64_t *out_size)
{
    pthread_mutex_lock(&entries_lock);
    tn_status status = get_locked(host, key, key_size, out_data, out_size);
    pthread_mutex_unlock(&entries_lock);
    return status;
}

static void *copy_of(const void *data, uint64_t size)
{
    void *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    memcpy(copy, data, size);
    return copy;
}

static void cache_put(const tn_host *host, const void *key, uint64_t key_size,
                      const void *data, uint64_t size, const tn_cache_about *about)
{
    (void)host, (void)about;
    pthread_mutex_lock(&entries_lock);
    struct entry *entry = find_entry(key, key_size);
    if (!entry) {
        entry = calloc(1, sizeof(*entry));
        if (!entry)
            abort();
        entry->key = copy_of(key, key_size);
        entry->key_size = key_size;
        entry->next = entries;
        entries = entry;
    }
    free(entry->data);
    entry->data = copy_of(data, size);
    entry->size = size;
    vb_cache_puts++;
    pthread_mutex_unlock(&entries_lock);
}

void vb_cache_clear(void)
{
    while (entries) {
        struct entry *entry = entries;
        entries = entry->next;
        free(entry->key);
        free(entry->data);
        free(entry);
    }
}

static const tn_host_cache cache = {
    .struct_size = sizeof(cache), .get = cache_get, .put = cache_put};

static const void *host_query(const tn_host *host, const char *id)
{
    (void)host;
    return strcmp(id, TN_HOST_CACHE) == 0 ? &cache : NULL;
}

const tn_host vb_host = {
    .struct_size = sizeof(vb_host),
    .alloc = host_alloc,
    .free = host_free,
    .fail = host_fail,
    .log = host_log,
    .config = host_config,
    .query = host_query,
};

// --- segments --------------------------------------------------------------------------

static void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

const tn_plugin *vb_load(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const tn_plugin *plugin = handle ? dlsym(handle, "tn_plugin_v1") : NULL;
    if (!plugin)
        die(path, dlerror());
    if (plugin->init && plugin->init(&vb_host) != TN_OK)
        die(path, vb_failure);
    return plugin;
}

bool vb_open(struct vulkan_bench *b, const tn_plugin *plugin)
{
    uint32_t count = 0;
    memset(b, 0, sizeof(*b));
    b->plugin = plugin;
    b->backend = plugin->query(TN_IFACE_BACKEND);
    if (b->backend->device_count(&vb_host, &count) != TN_OK || count == 0)
        return false;
    b->info.struct_size = sizeof(b->info);
    if (b->backend->device_info(&vb_host, 0, &b->info) != TN_OK ||
        b->backend->device_open(&vb_host, 0, &b->device) != TN_OK)
        die("device_open", vb_failure);
    return true;
}

void vb_clear(struct vulkan_bench *b)
{
    b->backend->executable_destroy(b->device, b->executable);
    b->executable = NULL;
    for (uint32_t i = 0; i < b->num_slots; i++) {
        b->backend->buffer_destroy(b->device, b->bindings[i].buffer);
        free(b->memory[i]);
    }
    b->num_steps = b->num_values = b->num_slots = 0;
}

void vb_close(struct vulkan_bench *b)
{
    vb_clear(b);
    b->backend->device_close(b->device);
    b->device = NULL;
}

bool vb_begin(struct vulkan_bench *b, const char *path)
{
    validates = getenv("TENON_VULKAN_VALIDATION") != NULL;
    if (!vb_open(b, vb_load(path)))
        return false;
    fprintf(stderr, "# %s: %s, %s\n", b->backend->name, b->info.name, b->info.driver);
    return true;
}

bool vb_end(struct vulkan_bench *b)
{
    vb_close(b);
    vb_cache_clear();
    if (b->plugin->deinit)
        b->plugin->deinit(&vb_host);
    int left = atomic_load(&vb_allocations), messages = atomic_load(&vb_messages);
    if (left || messages)
        fprintf(stderr, "# %d allocations are left, %d messages were logged\n", left,
                messages);
    return !left && !messages;
}

uint32_t vb_slot(struct vulkan_bench *b, uint64_t size)
{
    uint32_t slot = b->num_slots++;
    if (slot >= VB_MAX_SLOTS)
        die("vb_slot", "too many slots");
    size = size ? size : 1;
    b->slots[slot] = (tn_slot){.flags = TN_SLOT_READ | TN_SLOT_WRITE, .size = size};
    b->bindings[slot] = (tn_binding){0};
    b->memory[slot] = calloc(1, size);
    if (!b->memory[slot])
        die("vb_slot", "out of memory");
    if (b->backend->buffer_create(b->device, size, &b->bindings[slot].buffer) != TN_OK)
        die("buffer_create", vb_failure);
    return slot;
}

tn_step *vb_step(struct vulkan_bench *b, uint32_t num_inputs, uint32_t num_outputs)
{
    if (b->num_steps >= VB_MAX_STEPS ||
        b->num_values + num_inputs + num_outputs > VB_MAX_VALUES)
        die("vb_step", "too many steps");
    tn_step *step = &b->steps[b->num_steps++];
    *step = (tn_step){
        .struct_size = sizeof(*step),
        .inputs = &b->values[b->num_values],
        .outputs = &b->values[b->num_values + num_inputs],
        .num_inputs = num_inputs,
        .num_outputs = num_outputs,
        .value_size = sizeof(tn_value),
        .label = "test",
    };
    b->num_values += num_inputs + num_outputs;
    return step;
}

void vb_set(tn_step *step, uint32_t operand, uint32_t slot, const tn_layout *layout)
{
    tn_value *value = (tn_value *)(uintptr_t)step->inputs + operand;
    *value = (tn_value){.slot = slot, .layout = *layout};
}

// Whether the kernel's rules take these inputs and its own function all operands, where
// they lie. Which rules are the outputs' depends on how many inputs the primitive has.
static bool takes(const tn_kernel *kernel, const tn_kernel_query *query)
{
    for (uint32_t i = 0; i < query->num_inputs; i++) {
        uint32_t last = kernel->num_operands - 1;
        uint32_t dtypes =
            kernel->operands ? kernel->operands[i < last ? i : last].dtypes : 0;
        tn_dtype dtype = query->inputs[i].dtype;
        if (dtypes && dtype != TN_DTYPE_NONE && !(dtypes & TN_DTYPE_BIT(dtype)))
            return false;
    }
    return !kernel->accepts || kernel->accepts(query);
}

bool vb_use_kernel(struct vulkan_bench *b, tn_step *step, const char *primitive)
{
    const tn_ops *ops = b->plugin->query(TN_IFACE_OPS);
    tn_layout layouts[32];
    for (uint32_t i = 0; i < step->num_inputs + step->num_outputs; i++)
        layouts[i] = tn_step_input(step, i)->layout;
    tn_kernel_query query = {.struct_size = sizeof(query),
                             .inputs = layouts,
                             .outputs = layouts + step->num_inputs,
                             .attrs = step->attrs,
                             .num_inputs = step->num_inputs,
                             .num_outputs = step->num_outputs,
                             .num_workers = 1};
    for (uint32_t i = 0; i < ops->num_kernels; i++) {
        const tn_kernel *kernel = ops->kernels[i];
        if (strcmp(kernel->primitive, primitive) == 0 && takes(kernel, &query) &&
            (!step->kernel || kernel->priority > step->kernel->priority))
            step->kernel = kernel;
    }
    if (!step->kernel)
        return false;
    if (step->kernel->scratch_size)
        step->scratch_size = step->kernel->scratch_size(&query);
    if (step->scratch_size > 0)
        step->scratch_slot = vb_slot(b, step->scratch_size);
    return true;
}

tn_status vb_compile(struct vulkan_bench *b)
{
    tn_segment segment = {.struct_size = sizeof(segment),
                          .steps = b->steps,
                          .slots = b->slots,
                          .num_steps = b->num_steps,
                          .num_slots = b->num_slots,
                          .step_size = sizeof(tn_step),
                          .slot_size = sizeof(tn_slot)};
    return b->backend->segment_compile(b->device, &segment, &b->executable);
}

tn_status vb_upload(struct vulkan_bench *b)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < b->num_slots && status == TN_OK; i++)
        status = b->backend->buffer_write(b->device, b->bindings[i].buffer, 0, b->memory[i],
                                          b->slots[i].size);
    return status;
}

tn_status vb_download(struct vulkan_bench *b)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < b->num_slots && status == TN_OK; i++)
        status = b->backend->buffer_read(b->device, b->bindings[i].buffer, 0, b->memory[i],
                                         b->slots[i].size);
    return status;
}

tn_status vb_submit(struct vulkan_bench *b, int times)
{
    tn_submission submission = {.struct_size = sizeof(submission),
                                .executable = b->executable,
                                .bindings = b->bindings,
                                .num_bindings = b->num_slots,
                                .binding_size = sizeof(tn_binding)};
    uint64_t point = 0;
    tn_status status = TN_OK;
    for (int i = 0; i < times && status == TN_OK; i++)
        status = b->backend->submit(b->device, &submission, &point);
    return status == TN_OK ? b->backend->wait(b->device, 0, point) : status;
}

// Appends a line for each output to the file that TENON_TEST_DIGESTS names: what computed
// it, its size, and a hash of its bytes (FNV-1a).
static void record_digests(const struct vulkan_bench *b)
{
    const char *path = getenv("TENON_TEST_DIGESTS");
    FILE *file = path && *path ? fopen(path, "a") : NULL;
    for (uint32_t i = 0; file && i < b->num_steps; i++) {
        const tn_step *step = &b->steps[i];
        for (uint32_t k = 0; k < step->num_outputs; k++) {
            uint32_t slot = tn_step_output(step, k)->slot;
            uint64_t hash = UINT64_C(0xcbf29ce484222325);
            for (uint64_t at = 0; at < b->slots[slot].size; at++)
                hash = (hash ^ b->memory[slot][at]) * UINT64_C(0x100000001b3);
            fprintf(file, "%s step %u output %u of dtype %d, %llu bytes: %016llx\n",
                    step->kernel ? step->kernel->primitive : "program", i, k,
                    (int)tn_step_output(step, k)->layout.dtype,
                    (unsigned long long)b->slots[slot].size, (unsigned long long)hash);
        }
    }
    if (file)
        fclose(file);
}

tn_status vb_run(struct vulkan_bench *b)
{
    tn_status status = b->executable ? TN_OK : vb_compile(b);
    if (status == TN_OK)
        status = vb_upload(b);
    if (status == TN_OK)
        status = vb_submit(b, 1);
    if (status == TN_OK)
        status = vb_download(b);
    if (status == TN_OK)
        record_digests(b);
    return status;
}

uint64_t vb_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
