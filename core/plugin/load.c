// SPDX-License-Identifier: MIT
// Loading: trust, open, negotiate, init, register; once a plugin, by one thread, with no
// lock held.
#include "plugin.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include "../primitive/prim_set.h"
#include "abi.h"
#include "module.h"
#include "note.h"
#include "trust.h"

tn_status plugin_check(const struct trust *trust, const char *directory,
                       const struct manifest *manifest, struct checked *out,
                       struct reason *reason)
{
    struct checked made = {.objects.count = 0};
    int fd = -1;
    uint32_t minor;
    tn_status status = trust_open_directory(AT_FDCWD, directory, directory, &fd, reason);
    if (status != TN_OK)
        return status;
    status = trust_hash_files(trust, fd, directory, manifest, &made.objects, reason);
    close(fd);
    if (status == TN_OK)
        status = note_read(made.objects.contents[0].fd, directory, &made.note, reason);
    if (status == TN_OK)
        status = note_check(&made.note, manifest, directory, reason);
    if (status == TN_OK)
        status = abi_negotiate(abi_host, manifest->abi, manifest->id, &minor, reason);
    if (status == TN_OK)
        status = abi_check_sanitizer(manifest->sanitizer, manifest->id, reason);
    if (status != TN_OK) {
        objects_close(&made.objects);
        return status;
    }
    *out = made;
    return TN_OK;
}

// --- stages ----------------------------------------------------------------------------

// The state of one attempt. Later stages read what earlier ones wrote.
struct load {
    struct plugin *plugin;
    struct reason reason;
    struct checked checked; // open
};

// What lies there now may be another version, with a manifest of its own.
static tn_status check_again(struct load *load)
{
    struct plugin *plugin = load->plugin, *now = NULL;
    const struct trust *trust = &plugin->set->trust;
    const char *directory = plugin->directory;
    tn_status status = find_plugin_at(trust, AT_FDCWD, directory, directory, &now);
    if (status != TN_OK)
        return status;
    if (!now) // no manifest: the first reason stays
        return TN_ERR_REFUSED;
    plugin_destroy(plugin->newer);
    plugin->newer = now;
    if (now->state == TN_PLUGIN_FOUND)
        return plugin_check(trust, directory, &now->manifest, &load->checked,
                            &load->reason);
    load->reason = now->reason;
    return TN_ERR_REFUSED;
}

// The plugin may have been upgraded since it was found: then the new version is loaded.
static tn_status check_newest(struct load *load)
{
    struct plugin *plugin = load->plugin;
    plugin_destroy(plugin->newer); // of an attempt that ran out of memory
    plugin->newer = NULL;
    tn_status status = plugin_check(&plugin->set->trust, plugin->directory,
                                    &plugin->manifest, &load->checked, &load->reason);
    for (int tries = 0; tries < 3 && status == TN_ERR_REFUSED; tries++)
        status = check_again(load);
    return status;
}

// The version that is loaded.
static const struct plugin *newest(const struct plugin *plugin)
{
    return plugin->newer ? plugin->newer : plugin;
}

static tn_status load_open(struct load *load)
{
    struct plugin *plugin = load->plugin;
    struct checked *checked = &load->checked;
    tn_status status = check_newest(load);
    if (status == TN_OK)
        status = module_acquire(&checked->objects, newest(plugin)->file, &plugin->module,
                                &load->reason);
    return status;
}

static tn_status load_negotiate(struct load *load)
{
    struct plugin *plugin = load->plugin;
    const struct manifest *manifest = &newest(plugin)->manifest;
    const char *id = plugin->manifest.id, *file = newest(plugin)->file;
    uint64_t size = 0;
    plugin->entry = module_entry(plugin->module, &size);
    if (!plugin->entry)
        return reason_record(&load->reason, TN_ERR_REFUSED, REASON_CONTRACT, file,
                             "%s exports no tn_plugin_v1", file);
    uint32_t minor = 0;
    tn_status status =
        abi_check_entry(plugin->entry, size, &load->checked.note, &load->reason);
    if (status == TN_OK)
        status = abi_negotiate(abi_host, manifest->abi, id, &minor, &load->reason);
    if (status != TN_OK)
        return status;
    plugin->ops = plugin->entry->query(TN_IFACE_OPS);
    plugin->backend = plugin->entry->query(TN_IFACE_BACKEND);
    if (plugin->ops)
        status = abi_check_ops(plugin->ops, id, &load->reason);
    if (status == TN_OK && plugin->backend)
        status = abi_check_backend(plugin->backend, id, &load->reason);
    // Failures of primitives' rules get the operator's name from the core instead.
    bool is_pack = plugin->ops && plugin->ops->num_primitives;
    plugin->self = (struct tn_host_self){plugin->set->runtime, plugin, is_pack ? NULL : id};
    host_init(&plugin->host, &plugin->self, minor);
    return status;
}

static tn_status load_init(struct load *load)
{
    struct plugin *plugin = load->plugin;
    if (!plugin->entry->init) {
        plugin->is_initialised = true;
        return TN_OK;
    }
    if (!module_enter(plugin->module))
        return reason_record(&load->reason, TN_ERR_REFUSED, REASON_CONTRACT,
                             plugin->manifest.id, "%s is initialised from its own init",
                             plugin->manifest.id);
    fail_clear();
    tn_status status = plugin->entry->init(&plugin->host);
    module_leave(plugin->module);
    plugin->is_initialised = status == TN_OK;
    if (status == TN_OK || status == TN_ERR_MEMORY)
        return status;
    // What the plugin said is copied: it lies where the new failure is written.
    char said[512];
    snprintf(said, sizeof(said), "%s", *fail_text() ? fail_text() : "it gave no reason");
    return reason_record(&load->reason, TN_ERR_REFUSED, REASON_INIT, plugin->manifest.id,
                         "%s: init failed (%s): %s", plugin->manifest.id,
                         tn_status_name(status), said);
}

static tn_status record_failed(struct load *load, tn_status status)
{
    if (status == TN_ERR_MEMORY)
        return status;
    char said[512];
    snprintf(said, sizeof(said), "%s", fail_text());
    return reason_record(&load->reason, TN_ERR_REFUSED, REASON_RECORD,
                         load->plugin->manifest.id, "%s", said);
}

static tn_status load_register(struct load *load)
{
    struct plugin *plugin = load->plugin;
    tn_runtime *runtime = plugin->set->runtime;
    const tn_ops *ops = plugin->ops;
    for (uint32_t i = 0; ops && i < ops->num_primitives; i++) {
        plugin->is_registered = true;
        tn_status status =
            prim_register(runtime, plugin, &plugin->host, ops->primitives[i]);
        if (status != TN_OK)
            return record_failed(load, status);
    }
    for (uint32_t i = 0; ops && i < ops->num_kernels; i++) {
        plugin->is_registered = true;
        tn_status status =
            kernel_register(runtime, plugin, plugin->manifest.id, ops->kernels[i]);
        if (status != TN_OK)
            return record_failed(load, status);
    }
    return TN_OK;
}

// A failed attempt leaves nothing behind, but for code of which another thread may have
// found a primitive meanwhile: that stays in memory.
static void load_undo(struct plugin *plugin)
{
    prims_forget(plugin->set->runtime, plugin);
    plugin_unload(plugin);
}

static tn_status load_all(struct load *load)
{
    struct plugin *plugin = load->plugin;
    tn_status status = load_open(load);
    if (status == TN_OK)
        status = load_negotiate(load);
    if (status == TN_OK)
        status = load_init(load);
    if (status == TN_OK)
        status = load_register(load);
    objects_close(&load->checked.objects);
    if (status != TN_OK)
        load_undo(plugin);
    return status;
}

void plugin_unload(struct plugin *plugin)
{
    if (plugin->is_initialised && plugin->entry->deinit) {
        bool entered = module_enter(plugin->module);
        plugin->entry->deinit(&plugin->host);
        if (entered)
            module_leave(plugin->module);
    }
    plugin->is_initialised = false;
    bool closes = config_switch(plugin->set->runtime->config, "TENON_DLCLOSE");
    bool is_refused = plugin->state == PLUGIN_LOADING;
    module_release(plugin->module, closes && !(is_refused && plugin->is_registered));
    plugin->is_registered = false;
    plugin->module = NULL;
    plugin->entry = NULL;
    plugin->backend = NULL;
    plugin->ops = NULL;
}

// --- who loads -------------------------------------------------------------------------

static tn_status not_available(const struct plugin *plugin)
{
    return fail(TN_ERR_REFUSED, "%s", plugin->reason.text);
}

// True when the caller is to load it; else *out_status is the result.
static bool claim(struct plugin *plugin, tn_status *out_status)
{
    struct plugin_set *set = plugin->set;
    bool mine = false;
    pthread_mutex_lock(&set->lock);
    while (plugin->state == PLUGIN_LOADING &&
           !pthread_equal(plugin->loader, pthread_self()))
        pthread_cond_wait(&set->changed, &set->lock);
    if (plugin->state == PLUGIN_LOADING) {
        *out_status = fail(TN_ERR_INTERNAL, "plugin %s asks for itself while it is loaded",
                           plugin->manifest.id);
    } else if (plugin->state == TN_PLUGIN_FOUND) {
        plugin->state = PLUGIN_LOADING;
        plugin->loader = pthread_self();
        mine = true;
    } else {
        *out_status = plugin->state == TN_PLUGIN_LOADED ? TN_OK : not_available(plugin);
    }
    pthread_mutex_unlock(&set->lock);
    return mine;
}

static void settle(struct load *load, tn_status status)
{
    struct plugin *plugin = load->plugin;
    struct plugin_set *set = plugin->set;
    int32_t state = TN_PLUGIN_LOADED;
    if (status != TN_OK) // out of memory: to be tried again
        state = status == TN_ERR_MEMORY ? TN_PLUGIN_FOUND : TN_PLUGIN_REFUSED;
    pthread_mutex_lock(&set->lock);
    if (state == TN_PLUGIN_REFUSED)
        plugin->reason = load->reason;
    atomic_store_explicit(&plugin->state, state, memory_order_release);
    pthread_cond_broadcast(&set->changed);
    pthread_mutex_unlock(&set->lock);
    if (state == TN_PLUGIN_REFUSED)
        log_write(set->runtime->config, TN_LOG_WARN, "plugin", "refused: %s",
                  load->reason.text);
}

// Debuggers show a module by the linker's name, which is that of a private copy.
static void tell_loaded(const struct plugin *plugin)
{
    const struct config *config = plugin->set->runtime->config;
    const char *displaced = module_displaced(plugin->module);
    log_write(config, TN_LOG_DEBUG, "plugin", "loaded %s %s: %s as %s", plugin->manifest.id,
              newest(plugin)->manifest.version, newest(plugin)->file,
              module_name(plugin->module));
    if (displaced)
        log_write(
            config, TN_LOG_WARN, "plugin",
            "%s: its own %s is not used: the process has another library of that name",
            plugin->manifest.id, displaced);
}

tn_status plugin_load(struct plugin *plugin)
{
    if (atomic_load_explicit(&plugin->state, memory_order_acquire) == TN_PLUGIN_LOADED)
        return TN_OK;
    tn_status status = TN_OK;
    if (!claim(plugin, &status))
        return status;
    struct load load = {.plugin = plugin};
    // The command's probe reads this line: from here on the plugin's code may run.
    log_write(plugin->set->runtime->config, TN_LOG_DEBUG, "plugin", "loading %s from %s",
              plugin->manifest.id, plugin->file);
    const tn_runtime *runtime = plugin->set->runtime;
    uint64_t begin = trace_begin(runtime);
    status = load_all(&load);
    settle(&load, status);
    trace_end(runtime, begin, "load plugin", "\"plugin\":\"%s\"", plugin->manifest.id);
    if (status != TN_OK && status != TN_ERR_MEMORY)
        return not_available(plugin);
    if (status == TN_OK)
        tell_loaded(plugin);
    return status;
}

const char *plugin_id(const struct plugin *plugin)
{
    return plugin->manifest.id ? plugin->manifest.id : "";
}

const tn_host *plugin_host(const struct plugin *plugin)
{
    return &plugin->host;
}
