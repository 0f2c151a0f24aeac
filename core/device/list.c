// SPDX-License-Identifier: MIT
// tn_devices(): lists the devices of all installed backends, for people.
#include <stdio.h>
#include <string.h>
#include "../base/fail.h"
#include "../base/memory.h"
#include "../plugin/load/plugins.h"
#include "device_set.h"

void summaries_forget(struct device_set *set)
{
    for (uint64_t i = 0; i < set->num_summaries; i++)
        if (*set->summaries[i].reason)
            mem_free((char *)set->summaries[i].reason);
    mem_free(set->summaries);
    set->summaries = NULL;
    set->num_summaries = 0;
}

// 1 + the device's index in the order of TENON_BACKEND; 0 when the device is not selected.
static uint32_t selected_number(const tn_runtime *runtime, const char *backend,
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

// Adds the backend's device_details. A failure there becomes the summary's warning: the
// device itself can still be listed. Each text ends with NUL.
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
        snprintf(summary->warning, sizeof(summary->warning), "%.*s",
                 (int)sizeof(summary->warning) - 1, fail_text());
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
        status = device_ask_count(ops, plugin, &count);
    }
    if (status == TN_ERR_MEMORY)
        return status;
    if (status != TN_OK || count == 0) {
        const char *why = status != TN_OK ? fail_text() : "it found no device";
        char *reason = mem_strdup(why); // owned by the summaries
        summary.reason = reason;
        status = reason ? add_summary(runtime->devices, &summary) : TN_ERR_MEMORY;
        if (status != TN_OK)
            mem_free(reason);
        return status;
    }
    for (uint32_t i = 0; i < count && status == TN_OK; i++) {
        tn_device_info info = {.struct_size = sizeof(info)};
        status = device_ask_info(ops, plugin, i, &info);
        if (status != TN_OK)
            return status;
        summary.flags = info.flags;
        summary.index = i;
        summary.memory_size = info.memory_size;
        summary.selected = selected_number(runtime, name, i);
        memcpy(summary.name, info.name, sizeof(summary.name));
        memcpy(summary.driver, info.driver, sizeof(summary.driver));
        memcpy(summary.features, info.features, sizeof(summary.features));
        add_details(ops, plugin, i, &summary);
        status = add_summary(runtime->devices, &summary);
    }
    return status;
}

// Copies to the caller's array, whose structs may be older and shorter.
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
    devices_open(runtime, &devices, &num_devices); // fills tn_device_summary.selected
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
        if (status != TN_OK) // the next call lists again
            summaries_forget(set);
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
