// SPDX-License-Identifier: MIT
// Opens the devices that TENON_BACKEND selects, on first use.
#include "device_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/stats.h>
#include "../base/fail.h"
#include "../base/memory.h"
#include "../plugin/host/host.h"
#include "../plugin/load/plugins.h"
#include "../primitive/prim_set.h"
#include "mover.h"
#include "outcome.h"

// One entry of TENON_BACKEND: "vulkan-jit:1?".
struct device_request {
    char backend[64];
    int64_t index;   // of the device; -1: not given, which means device 0
    bool if_present; // a device that cannot be opened is left out
};

tn_status device_set_create(tn_runtime *runtime)
{
    struct device_set *set = mem_zalloc(sizeof(*set));
    if (!set)
        return TN_ERR_MEMORY;
    set->mover = mover_create();
    if (!set->mover) {
        mem_free(set);
        return TN_ERR_MEMORY;
    }
    pthread_mutex_init(&set->lock, NULL);
    pthread_cond_init(&set->changed, NULL);
    runtime->devices = set;
    return TN_OK;
}

static void device_destroy(struct device *device);

void device_set_destroy(tn_runtime *runtime)
{
    struct device_set *set = runtime->devices;
    if (!set)
        return;
    mover_destroy(set->mover);
    for (int64_t i = (int64_t)set->count - 1; i >= 0; i--)
        device_destroy(set->devices[i]);
    summaries_forget(set);
    pthread_cond_destroy(&set->changed);
    pthread_mutex_destroy(&set->lock);
    mem_free(set->devices);
    mem_free(set->failure);
    mem_free(set);
    runtime->devices = NULL;
}

bool device_set_is_open(struct device_set *set)
{
    pthread_mutex_lock(&set->lock);
    bool is_open = set->state == OPENED;
    pthread_mutex_unlock(&set->lock);
    return is_open;
}

void devices_trim(const tn_runtime *runtime, uint32_t flags)
{
    const struct device_set *set = runtime->devices;
    uint32_t count = device_set_is_open(runtime->devices) ? set->count : 0;
    for (uint32_t i = 0; i < count; i++) {
        struct device *device = set->devices[i];
        for (uint32_t q = 0; q < device->num_queues && flags & TN_TRIM_WAIT; q++)
            device_drain(device,
                         (tn_point){.queue = q,
                                    .value = atomic_load(&device->queues[q].last_given)});
        if (flags & TN_TRIM_SPARE)
            device_trim(device);
        // Credit of a queue is counted already: what it covers would raise no peak.
        for (uint32_t q = 0; q < device->num_queues && flags & TN_TRIM_PEAK; q++)
            atomic_fetch_sub(&device_stats(runtime)->counted,
                             atomic_exchange(&device->queues[q].credit, 0));
    }
}

struct device_stats *device_stats(const tn_runtime *runtime)
{
    return &runtime->devices->stats;
}

// --- requests ---------------------------------------------------------------------------

static tn_status parse_request(const char *text, size_t length, struct device_request *out)
{
    *out = (struct device_request){.index = -1};
    if (length > 0 && text[length - 1] == '?') {
        out->if_present = true;
        length--;
    }
    const char *colon = memchr(text, ':', length);
    size_t name_length = colon ? (size_t)(colon - text) : length;
    if (name_length == 0 || name_length >= sizeof(out->backend))
        return fail(TN_ERR_ARGUMENT,
                    "TENON_BACKEND: got \"%.*s\", expected a backend's name, such as "
                    "\"cpu-blas\" or \"vulkan:0\"",
                    (int)length, text);
    memcpy(out->backend, text, name_length);
    if (!colon)
        return TN_OK;
    char digits[16] = "";
    size_t num_digits = length - name_length - 1;
    if (num_digits > 0 && num_digits < sizeof(digits))
        memcpy(digits, colon + 1, num_digits);
    char *end;
    errno = 0;
    out->index = strtol(digits, &end, 10);
    if (!digits[0] || *end || errno || out->index < 0)
        return fail(TN_ERR_ARGUMENT,
                    "TENON_BACKEND: got \"%.*s\", expected a device number after the colon",
                    (int)length, text);
    return TN_OK;
}

// --- one device -------------------------------------------------------------------------

tn_status device_ask_count(const tn_backend *ops, const struct plugin *plugin,
                           uint32_t *out_count)
{
    fail_clear();
    return fail_from(ops->device_count(plugin_host(plugin), out_count),
                     "device_count of %s", plugin_id(plugin));
}

tn_status device_ask_info(const tn_backend *ops, const struct plugin *plugin,
                          uint32_t index, tn_device_info *out)
{
    fail_clear();
    tn_status status = fail_from(ops->device_info(plugin_host(plugin), index, out),
                                 "device_info of %s", plugin_id(plugin));
    out->name[sizeof(out->name) - 1] = 0;
    out->driver[sizeof(out->driver) - 1] = 0;
    out->features[sizeof(out->features) - 1] = 0;
    out->dtypes = out->dtypes ? out->dtypes : TN_FIRST_DTYPES;
    return status;
}

static void device_destroy(struct device *device)
{
    device_trim(device);
    for (uint32_t i = 0; i < device->num_timelines; i++)
        outcomes_settle(device, (tn_point){.queue = i, .value = UINT64_MAX});
    device->ops->device_close(device->handle);
    for (uint32_t i = 0; i < MAX_TIMELINES; i++)
        pthread_mutex_destroy(&device->queues[i].lock);
    pthread_mutex_destroy(&device->lock);
    map_finish(&device->ready);
    mem_free(device);
}

static void fill_families(struct device *device)
{
    for (uint32_t i = 0; device->ops->families[i]; i++) {
        if (strcmp(device->ops->families[i], TN_FAMILY_EXPR) == 0)
            device->runs_expr = true;
        if (strcmp(device->ops->families[i], TN_FAMILY_CPU) == 0)
            device->runs_reference = true;
    }
}

// The limit for spare storages: an eighth of the device's memory, but at most 512 MiB of
// the host's memory, which other programs need.
static uint64_t spare_limit(const tn_device_info *info)
{
    const uint64_t most = UINT64_C(1) << 29;
    uint64_t limit = info->memory_size ? info->memory_size / 8 : most;
    return (info->flags & TN_DEVICE_HOST_MEMORY) && limit > most ? most : limit;
}

static tn_status device_create(tn_runtime *runtime, const tn_backend *ops,
                               struct plugin *plugin, uint32_t index,
                               const tn_device_info *info)
{
    struct device_set *set = runtime->devices;
    tn_status status = mem_grow((void **)&set->devices, &set->capacity, set->count + 1,
                                sizeof(*set->devices));
    struct device *device = status == TN_OK ? mem_zalloc(sizeof(*device)) : NULL;
    if (!device)
        return TN_ERR_MEMORY;
    *device = (struct device){.ops = ops,
                              .host = plugin_host(plugin),
                              .plugin = plugin,
                              .runtime = runtime,
                              .info = *info,
                              .number = set->count};
    if (device->info.buffer_alignment == 0)
        device->info.buffer_alignment = 1;
    device->num_queues = info->num_queues < 1               ? 1
                         : info->num_queues > TN_MAX_QUEUES ? TN_MAX_QUEUES
                                                            : info->num_queues;
    device->num_timelines = device->num_queues;
    device->spare_limit = spare_limit(info);
    snprintf(device->name, sizeof(device->name), "%s:%u", ops->name, index);
    fill_families(device);
    fail_clear();
    status = ops->device_open(device->host, index, &device->handle);
    if (status != TN_OK) {
        status = fail_from(status, "device_open of %s", plugin_id(plugin));
        fail_prefix("device %s: ", device->name);
        mem_free(device);
        return status;
    }
    pthread_mutex_init(&device->lock, NULL);
    for (uint32_t i = 0; i < MAX_TIMELINES; i++)
        pthread_mutex_init(&device->queues[i].lock, NULL);
    device->num_workers = device->info.num_workers ? device->info.num_workers : 1;
    if (TN_HAS(ops, fusion_limit))
        device->fusion_limit = ops->fusion_limit(device->handle);
    if (device->fusion_limit > TN_EXPR_MAX_INSNS)
        device->fusion_limit = TN_EXPR_MAX_INSNS;
    if (runtime->wrap_device && (status = runtime->wrap_device(device)) != TN_OK) {
        device_destroy(device);
        return status;
    }
    set->devices[set->count++] = device;
    log_write(runtime->config, TN_LOG_INFO, "device", "opened %s (%s)", device->name,
              info->name);
    return TN_OK;
}

// Whether the device is open: a device that is listed twice is opened once.
static bool device_is_open(const struct device_set *set, const char *backend,
                           uint32_t index)
{
    char name[96];
    snprintf(name, sizeof(name), "%s:%u", backend, index);
    for (uint32_t i = 0; i < set->count; i++)
        if (strcmp(set->devices[i]->name, name) == 0)
            return true;
    return false;
}

static tn_status open_index(tn_runtime *runtime, const tn_backend *ops,
                            struct plugin *plugin, uint32_t index, bool named)
{
    tn_device_info info = {.struct_size = sizeof(info)};
    tn_status status = device_ask_info(ops, plugin, index, &info);
    if (status != TN_OK)
        return status;
    // `named`: the user chose this device, so any kind is opened. A default is never a
    // software device, nor a device that computes nothing.
    if (!named && (info.flags & (TN_DEVICE_SOFTWARE | TN_DEVICE_COMPUTES_NOTHING)))
        return fail(TN_ERR_NOT_FOUND, "its only device, %s, is never chosen automatically",
                    info.name);
    if (device_is_open(runtime->devices, ops->name, index))
        return TN_OK;
    return device_create(runtime, ops, plugin, index, &info);
}

static tn_status open_request(tn_runtime *runtime, const struct device_request *request,
                              bool named)
{
    const tn_backend *ops;
    struct plugin *plugin;
    tn_status status = plugin_backend(runtime, request->backend, &ops, &plugin);
    if (status != TN_OK)
        return status;
    uint32_t count = 0;
    status = device_ask_count(ops, plugin, &count);
    if (status == TN_OK && count == 0)
        status = fail(TN_ERR_NOT_FOUND, "backend %s has no device here", ops->name);
    else if (status == TN_ERR_NOT_FOUND)
        fail_prefix("backend %s has no device here: ", ops->name);
    else if (status != TN_OK)
        fail_prefix("backend %s: ", ops->name);
    if (status == TN_OK && request->index >= (int64_t)count)
        status = fail(TN_ERR_NOT_FOUND, "backend %s has devices 0 to %u, got %lld",
                      ops->name, count - 1, (long long)request->index);
    if (status != TN_OK)
        return status;
    return open_index(runtime, ops, plugin,
                      request->index < 0 ? 0 : (uint32_t)request->index, named);
}

// Logs that an optional device is left out, as a warning when its name looks misspelt.
static void device_open_leave_out(tn_runtime *runtime, const char *backend)
{
    const char *near = config_nearest(backend, plugin_backend_names(runtime));
    bool misspelt = near && strcmp(near, backend) != 0;
    log_write(runtime->config, misspelt ? TN_LOG_WARN : TN_LOG_INFO, "device",
              "TENON_BACKEND: %s is left out: %s", backend, fail_text());
}

static tn_status open_listed(tn_runtime *runtime, const char *list)
{
    for (const char *at = list;;) {
        size_t length = strcspn(at, ",");
        struct device_request request;
        tn_status status = parse_request(at, length, &request);
        if (status != TN_OK)
            return status;
        status = open_request(runtime, &request, true);
        if (status != TN_OK && status != TN_ERR_MEMORY && request.if_present) {
            device_open_leave_out(runtime, request.backend);
        } else if (status != TN_OK) {
            fail_prefix("TENON_BACKEND: ");
            return status;
        }
        at += length;
        if (!*at)
            break;
        at++;
    }
    if (runtime->devices->count == 0) {
        fail_prefix("TENON_BACKEND=%s: none of these is present: ", list);
        return TN_ERR_NOT_FOUND;
    }
    return TN_OK;
}

static tn_status open_default(tn_runtime *runtime)
{
    const char *const *names = plugin_default_backends(runtime);
    for (uint32_t i = 0; names && names[i]; i++) {
        struct device_request request = {.index = -1};
        snprintf(request.backend, sizeof(request.backend), "%s", names[i]);
        tn_status status = open_request(runtime, &request, false);
        if (status == TN_OK || status == TN_ERR_MEMORY)
            return status;
        log_write(runtime->config, TN_LOG_WARN, "device", "%s: %s", names[i], fail_text());
    }
    return plugin_no_default(runtime);
}

// Several devices that wait for the host get its timeline.
static void add_host_timelines(const struct device_set *set)
{
    for (uint32_t i = 0; set->count > 1 && i < set->count; i++) {
        struct device *device = set->devices[i];
        if ((device->info.flags & TN_DEVICE_HOST_POINTS) && TN_HAS(device->ops, signal))
            device->num_timelines = device->num_queues + 1;
    }
}

static tn_status open_all(tn_runtime *runtime)
{
    const char *list = config_get(runtime->config, "TENON_BACKEND");
    tn_status status = list && *list ? open_listed(runtime, list) : open_default(runtime);
    if (status == TN_OK)
        add_host_timelines(runtime->devices);
    return status;
}

tn_status devices_open(tn_runtime *runtime, struct device ***out_devices,
                       uint32_t *out_count)
{
    struct device_set *set = runtime->devices;
    tn_status status = life_check(&runtime->life);
    if (status != TN_OK)
        return status;
    pthread_mutex_lock(&set->lock);
    while (set->state == OPENING)
        pthread_cond_wait(&set->changed, &set->lock);
    if (set->state == CLOSED) {
        set->state = OPENING;
        pthread_mutex_unlock(&set->lock);
        tn_status opened = open_all(runtime);
        pthread_mutex_lock(&set->lock);
        set->failed = opened;
        if (opened != TN_OK && opened != TN_ERR_MEMORY)
            set->failure = mem_strdup(fail_text());
        // A shortage of memory is temporary, so a later call tries again.
        set->state = opened == TN_ERR_MEMORY ? CLOSED : OPENED;
        pthread_cond_broadcast(&set->changed);
    } else if (set->failed != TN_OK) {
        fail(set->failed, "%s", set->failure ? set->failure : "out of memory");
    }
    status = set->failed;
    pthread_mutex_unlock(&set->lock);
    if (status != TN_OK)
        return status;
    *out_devices = set->devices;
    *out_count = set->count;
    return TN_OK;
}

tn_status device_find(tn_runtime *runtime, const char *call, const char *name,
                      struct device **out_device)
{
    struct device **devices;
    uint32_t count;
    char list[256] = "";
    size_t used = 0;
    tn_status status = devices_open(runtime, &devices, &count);
    if (status != TN_OK)
        return status;
    for (uint32_t i = 0; i < count; i++) {
        size_t length = strlen(name);
        const char *full = devices[i]->name;
        if (strcmp(full, name) == 0 ||
            (strncmp(full, name, length) == 0 && strcmp(full + length, ":0") == 0)) {
            *out_device = devices[i];
            return TN_OK;
        }
        if (used < sizeof(list))
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
                                     i ? ", " : "", full);
    }
    return fail(TN_ERR_NOT_FOUND,
                "%s: \"%.80s\" is none of the selected devices (%s): add it to "
                "TENON_BACKEND",
                call, name, list);
}

tn_status device_load_kernels(struct device *device, const struct prim *prim,
                              const char *family)
{
    const char *const families[] = {family, NULL};
    struct hash key = {(uint64_t)(uintptr_t)prim, (uint64_t)(uintptr_t)family};
    pthread_mutex_lock(&device->lock);
    bool ready = map_get(&device->ready, key) != NULL;
    pthread_mutex_unlock(&device->lock);
    if (ready)
        return TN_OK;
    tn_status status = plugin_load_kernels(device->runtime, prim->record.id, families);
    if (status != TN_OK)
        return status;
    pthread_mutex_lock(&device->lock);
    status = map_put(&device->ready, key, device);
    pthread_mutex_unlock(&device->lock);
    return status;
}
