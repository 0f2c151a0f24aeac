// SPDX-License-Identifier: MIT
// Devices: which ones TENON_BACKEND selects, opened when first needed.
#include "device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/fail.h"
#include "../base/memory.h"
#include "../plugin/host.h"
#include "../plugin/plugin_set.h"
#include "fate.h"

struct device_set {
    pthread_mutex_t lock; // of the state; not held while plugin code runs
    pthread_cond_t changed;
    enum { CLOSED, OPENING, OPENED } state;
    bool listing;     // a thread makes the summaries
    tn_status failed; // of opening: it is not tried again
    char *failure;
    struct device **devices;
    uint32_t count, capacity;
    struct sched_stats stats;
    tn_device_summary *summaries; // for tn_devices
    uint64_t num_summaries;
};

// One entry of TENON_BACKEND: "vulkan-jit:1?".
struct wish {
    char backend[64];
    int64_t index; // -1: all its devices when listed, the first when not software
    bool if_present;
};

tn_status device_set_create(tn_runtime *runtime)
{
    struct device_set *set = mem_zalloc(sizeof(*set));
    if (!set)
        return TN_ERR_MEMORY;
    pthread_mutex_init(&set->lock, NULL);
    pthread_cond_init(&set->changed, NULL);
    runtime->devices = set;
    return TN_OK;
}

static void device_destroy(struct device *device);

static void forget_summaries(struct device_set *set)
{
    for (uint64_t i = 0; i < set->num_summaries; i++)
        if (*set->summaries[i].reason)
            mem_free((char *)set->summaries[i].reason);
    mem_free(set->summaries);
    set->summaries = NULL;
    set->num_summaries = 0;
}

void device_set_destroy(tn_runtime *runtime)
{
    struct device_set *set = runtime->devices;
    if (!set)
        return;
    for (int64_t i = (int64_t)set->count - 1; i >= 0; i--)
        device_destroy(set->devices[i]);
    forget_summaries(set);
    pthread_cond_destroy(&set->changed);
    pthread_mutex_destroy(&set->lock);
    mem_free(set->devices);
    mem_free(set->failure);
    mem_free(set);
    runtime->devices = NULL;
}

struct sched_stats *sched_stats(const tn_runtime *runtime)
{
    return &runtime->devices->stats;
}

// --- wishes -----------------------------------------------------------------------------

static tn_status parse_wish(const char *text, size_t length, struct wish *out)
{
    *out = (struct wish){.index = -1};
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

static tn_status ask_count(const tn_backend *ops, const struct plugin *plugin,
                           uint32_t *out_count)
{
    fail_clear();
    return fail_from(ops->device_count(plugin_host(plugin), out_count),
                     "device_count of %s", plugin_id(plugin));
}

// Texts of the answer end within their fields.
static tn_status ask_info(const tn_backend *ops, const struct plugin *plugin,
                          uint32_t index, tn_device_info *out)
{
    fail_clear();
    tn_status status = fail_from(ops->device_info(plugin_host(plugin), index, out),
                                 "device_info of %s", plugin_id(plugin));
    out->name[sizeof(out->name) - 1] = 0;
    out->driver[sizeof(out->driver) - 1] = 0;
    out->features[sizeof(out->features) - 1] = 0;
    return status;
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
    pthread_mutex_init(&device->late_lock, NULL);
    if (TN_HAS(ops, fusion_limit))
        device->fusion_limit = ops->fusion_limit(device->handle);
    if (device->fusion_limit > TN_EXPR_MAX_INSNS)
        device->fusion_limit = TN_EXPR_MAX_INSNS;
    set->devices[set->count++] = device;
    log_write(runtime->config, TN_LOG_INFO, "device", "opened %s (%s)", device->name,
              info->name);
    return TN_OK;
}

// A device given twice is opened once.
static bool is_open(const struct device_set *set, const char *backend, uint32_t index)
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
    tn_status status = ask_info(ops, plugin, index, &info);
    if (status != TN_OK)
        return status;
    // Named by the user, anything will do; chosen by us, only hardware that computes.
    if (!named && (info.flags & (TN_DEVICE_SOFTWARE | TN_DEVICE_COMPUTES_NOTHING)))
        return fail(TN_ERR_NOT_FOUND, "its only device, %s, is never chosen automatically",
                    info.name);
    if (is_open(runtime->devices, ops->name, index))
        return TN_OK;
    return device_create(runtime, ops, plugin, index, &info);
}

static tn_status open_wish(tn_runtime *runtime, const struct wish *wish, bool named)
{
    const tn_backend *ops;
    struct plugin *plugin;
    tn_status status = plugin_backend(runtime, wish->backend, &ops, &plugin);
    if (status != TN_OK)
        return status;
    uint32_t count = 0;
    status = ask_count(ops, plugin, &count);
    if (status == TN_OK && count == 0)
        status = fail(TN_ERR_NOT_FOUND, "backend %s has no device here", ops->name);
    else if (status == TN_ERR_NOT_FOUND)
        fail_prefix("backend %s has no device here: ", ops->name);
    else if (status != TN_OK)
        fail_prefix("backend %s: ", ops->name);
    if (status == TN_OK && wish->index >= (int64_t)count)
        status = fail(TN_ERR_NOT_FOUND, "backend %s has devices 0 to %u, got %lld",
                      ops->name, count - 1, (long long)wish->index);
    if (status != TN_OK)
        return status;
    return open_index(runtime, ops, plugin, wish->index < 0 ? 0 : (uint32_t)wish->index,
                      named);
}

// Tells of a device that may be absent; loudly when its name looks misspelt.
static void leave_out(tn_runtime *runtime, const char *backend)
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
        struct wish wish;
        tn_status status = parse_wish(at, length, &wish);
        if (status != TN_OK)
            return status;
        status = open_wish(runtime, &wish, true);
        if (status != TN_OK && status != TN_ERR_MEMORY && wish.if_present) {
            leave_out(runtime, wish.backend);
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
        struct wish wish = {.index = -1};
        snprintf(wish.backend, sizeof(wish.backend), "%s", names[i]);
        tn_status status = open_wish(runtime, &wish, false);
        if (status == TN_OK || status == TN_ERR_MEMORY)
            return status;
        log_write(runtime->config, TN_LOG_WARN, "device", "%s: %s", names[i], fail_text());
    }
    return plugin_no_default(runtime);
}

static tn_status open_all(tn_runtime *runtime)
{
    const char *list = config_get(runtime->config, "TENON_BACKEND");
    return list && *list ? open_listed(runtime, list) : open_default(runtime);
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
        set->state = opened == TN_ERR_MEMORY ? CLOSED : OPENED; // a shortage passes
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

// --- points and late buffers -----------------------------------------------------------

struct late_buffer {
    struct late_buffer *next;
    tn_buffer *buffer;
    uint64_t size, point;
};

static void destroy_buffer(struct device *device, tn_buffer *buffer, uint64_t size)
{
    device->ops->buffer_destroy(device->handle, buffer);
    stats_add_bytes(sched_stats(device->runtime), -(int64_t)size);
}

static void sweep_late(struct device *device, uint64_t reached)
{
    struct late_buffer *due = NULL;
    pthread_mutex_lock(&device->late_lock);
    for (struct late_buffer **link = &device->late; *link;) {
        struct late_buffer *late = *link;
        if (late->point > reached) {
            link = &late->next;
            continue;
        }
        *link = late->next;
        late->next = due;
        due = late;
    }
    pthread_mutex_unlock(&device->late_lock);
    while (due) {
        struct late_buffer *next = due->next;
        destroy_buffer(device, due->buffer, due->size);
        mem_free(due);
        due = next;
    }
}

static void raise_reached(struct device *device, uint64_t point)
{
    uint64_t seen = atomic_load_explicit(&device->reached, memory_order_acquire);
    while (seen < point &&
           !atomic_compare_exchange_weak_explicit(
               &device->reached, &seen, point, memory_order_acq_rel, memory_order_acquire))
        ;
}

tn_status device_failed(struct device *device, const char *slot, tn_status status)
{
    status = fail_from(status, "%s of %s", slot, plugin_id(device->plugin));
    if (status == TN_ERR_DEVICE)
        atomic_store_explicit(&device->lost, true, memory_order_release);
    fail_prefix("device %s: ", device->name);
    return status;
}

tn_status device_ask(struct device *device, uint64_t point)
{
    fail_clear();
    uint64_t begin = trace_begin(device->runtime);
    tn_status status = device->ops->wait(device->handle, point);
    trace_end(device->runtime, begin, "wait", "\"device\":\"%s\",\"point\":%llu",
              device->name, (unsigned long long)point);
    if (status != TN_OK)
        status = device_failed(device, "wait", status);
    raise_reached(device, point); // failed or not, nothing runs any more
    sweep_late(device, point);
    fates_settle(device, point);
    return status;
}

tn_status device_wait(struct device *device, uint64_t point)
{
    bool is_reached =
        point <= atomic_load_explicit(&device->reached, memory_order_acquire) &&
        !atomic_load_explicit(&device->lost, memory_order_acquire);
    tn_status status = is_reached ? TN_OK : device_ask(device, point);
    return status == TN_ERR_DEVICE ? status : TN_OK;
}

void device_settle(struct device *device, uint64_t point)
{
    char message[2048]; // of what goes wrong at present, perhaps
    if (point <= atomic_load_explicit(&device->reached, memory_order_acquire))
        return;
    snprintf(message, sizeof(message), "%s", fail_text());
    device_wait(device, point);
    fail(TN_OK, "%s", message);
}

void device_drop_buffer(struct device *device, tn_buffer *buffer, uint64_t size,
                        uint64_t point)
{
    if (life_is_inherited(&device->runtime->life)) // the device is the parent's
        return;
    if (point <= atomic_load_explicit(&device->reached, memory_order_acquire)) {
        destroy_buffer(device, buffer, size);
        return;
    }
    struct late_buffer *late = mem_alloc(sizeof(*late));
    if (!late) { // wait instead
        device_settle(device, point);
        destroy_buffer(device, buffer, size);
        return;
    }
    *late = (struct late_buffer){NULL, buffer, size, point};
    pthread_mutex_lock(&device->late_lock);
    late->next = device->late;
    device->late = late;
    pthread_mutex_unlock(&device->late_lock);
}

static void device_destroy(struct device *device)
{
    uint64_t last = 0;
    for (struct late_buffer *late = device->late; late; late = late->next)
        last = late->point > last ? late->point : last;
    device_settle(device, last);
    sweep_late(device, UINT64_MAX);
    fates_settle(device, UINT64_MAX);
    device->ops->device_close(device->handle);
    pthread_mutex_destroy(&device->lock);
    pthread_mutex_destroy(&device->late_lock);
    map_finish(&device->kernels_loaded);
    mem_free(device);
}

// --- listing ----------------------------------------------------------------------------

static uint32_t selected_place(const tn_runtime *runtime, const char *backend,
                               uint32_t index)
{
    char name[96];
    const struct device_set *set = runtime->devices;
    snprintf(name, sizeof(name), "%s:%u", backend, index);
    for (uint32_t i = 0; i < set->count; i++)
        if (strcmp(set->devices[i]->name, name) == 0)
            return i + 1;
    return 0;
}

static tn_status add_summary(struct device_set *set, const tn_device_summary *summary)
{
    tn_device_summary *grown = mem_realloc(
        set->summaries, (size_t)(set->num_summaries + 1) * sizeof(*set->summaries));
    if (!grown)
        return TN_ERR_MEMORY;
    set->summaries = grown;
    set->summaries[set->num_summaries++] = *summary;
    return TN_OK;
}

// A backend that cannot say what it computes with still has its device. Texts of the answer
// end within their fields.
static void add_details(const tn_backend *ops, const struct plugin *plugin, uint32_t index,
                        tn_device_summary *summary)
{
    tn_device_details details = {.struct_size = sizeof(details)};
    summary->libraries[0] = summary->warning[0] = summary->remedy[0] = 0;
    if (!TN_HAS(ops, device_details))
        return;
    fail_clear();
    tn_status status = fail_from(ops->device_details(plugin_host(plugin), index, &details),
                                 "device_details of %s", plugin_id(plugin));
    if (status != TN_OK) {
        snprintf(summary->warning, sizeof(summary->warning), "%s", fail_text());
        return;
    }
    memcpy(summary->libraries, details.libraries, sizeof(summary->libraries) - 1);
    memcpy(summary->warning, details.warning, sizeof(summary->warning) - 1);
    memcpy(summary->remedy, details.remedy, sizeof(summary->remedy) - 1);
}

static tn_status list_backend(tn_runtime *runtime, const char *name)
{
    tn_device_summary summary = {
        .struct_size = sizeof(summary), .backend = name, .plugin = "", .reason = ""};
    const tn_backend *ops;
    struct plugin *plugin;
    uint32_t count = 0;
    fail_clear();
    tn_status status = plugin_backend(runtime, name, &ops, &plugin);
    if (status == TN_OK) {
        summary.plugin = plugin_id(plugin);
        status = ask_count(ops, plugin, &count);
    }
    if (status == TN_ERR_MEMORY)
        return status;
    if (status != TN_OK || count == 0) {
        const char *why = status != TN_OK ? fail_text() : "it found no device";
        char *reason = mem_strdup(why); // lives with the runtime's list
        summary.reason = reason;
        status = reason ? add_summary(runtime->devices, &summary) : TN_ERR_MEMORY;
        if (status != TN_OK)
            mem_free(reason);
        return status;
    }
    for (uint32_t i = 0; i < count && status == TN_OK; i++) {
        tn_device_info info = {.struct_size = sizeof(info)};
        status = ask_info(ops, plugin, i, &info);
        if (status != TN_OK)
            return status;
        summary.flags = info.flags;
        summary.index = i;
        summary.memory_size = info.memory_size;
        summary.selected = selected_place(runtime, name, i);
        memcpy(summary.name, info.name, sizeof(summary.name));
        memcpy(summary.driver, info.driver, sizeof(summary.driver));
        memcpy(summary.features, info.features, sizeof(summary.features));
        add_details(ops, plugin, i, &summary);
        status = add_summary(runtime->devices, &summary);
    }
    return status;
}

// Into records of the size that the caller knows.
static void copy_summaries(tn_device_summary *out, const tn_device_summary *from,
                           uint64_t n)
{
    uint32_t size = out->struct_size ? out->struct_size : TN_END_OF(out, remedy);
    for (uint64_t i = 0; i < n; i++) {
        char *to = (char *)out + i * size;
        memcpy(to, &from[i], size < sizeof(*from) ? size : sizeof(*from));
        memcpy(to, &size, sizeof(size));
    }
}

tn_status tn_devices(tn_runtime *runtime, tn_device_summary *out, uint64_t *count)
{
    struct device **devices;
    uint32_t num_devices;
    tn_status status = fail_if_null("devices", "the runtime", runtime);
    if (status == TN_OK)
        status = fail_if_null("devices", "count", count);
    if (status == TN_OK)
        status = life_check(&runtime->life);
    if (status != TN_OK)
        return status;
    struct device_set *set = runtime->devices;
    devices_open(runtime, &devices, &num_devices); // so that `selected` is known
    pthread_mutex_lock(&set->lock);
    while (set->listing)
        pthread_cond_wait(&set->changed, &set->lock);
    if (!set->summaries) {
        set->listing = true;
        pthread_mutex_unlock(&set->lock);
        const char *const *names = plugin_backend_names(runtime);
        for (uint32_t i = 0; names && names[i] && status == TN_OK; i++)
            status = list_backend(runtime, names[i]);
        pthread_mutex_lock(&set->lock);
        if (status != TN_OK) // what is missing is looked for again
            forget_summaries(set);
        set->listing = false;
        pthread_cond_broadcast(&set->changed);
    }
    if (status == TN_OK && out) {
        uint64_t n = *count < set->num_summaries ? *count : set->num_summaries;
        copy_summaries(out, set->summaries, n);
    }
    if (status == TN_OK)
        *count = set->num_summaries;
    pthread_mutex_unlock(&set->lock);
    return status;
}
