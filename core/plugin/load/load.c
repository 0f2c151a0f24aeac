// SPDX-License-Identifier: MIT
// Loads a plugin: trust, open, negotiate, init, register. One thread loads a plugin and
// other threads wait; no lock is held while plugin code runs.
#include "load.h"

#include <fcntl.h>
#include <stdio.h>
#include "../../primitive/prim_set.h"
#include "../find/abi.h"
#include "module.h"

// --- stages ----------------------------------------------------------------------------

// State of one attempt to load. Each stage reads what earlier stages wrote.
struct load {
    struct plugin *plugin;
    struct reason reason;
    struct checked checked; // closed by load_all()
    uint32_t minor;         // effective minor of the ABI
};

// Reads the directory again, sets plugin->newer and checks the files of that version, which
// has its own manifest.
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

// Checks the plugin's files. When the check fails, the plugin may have been upgraded since
// the search: then the new version is checked, and loaded.
static tn_status check_newest(struct load *load)
{
    struct plugin *plugin = load->plugin;
    plugin_destroy(plugin->newer); // left by an attempt that ran out of memory
    plugin->newer = NULL;
    tn_status status = plugin_check(&plugin->set->trust, plugin->directory,
                                    &plugin->manifest, &load->checked, &load->reason);
    for (int tries = 0; tries < 3 && status == TN_ERR_REFUSED; tries++)
        status = check_again(load);
    return status;
}

// The plugin as found by check_newest(): its manifest and file are those that are loaded.
static const struct plugin *plugin_load_newest(const struct plugin *plugin)
{
    return plugin->newer ? plugin->newer : plugin;
}

static tn_status load_open(struct load *load)
{
    struct plugin *plugin = load->plugin;
    struct checked *checked = &load->checked;
    tn_status status = check_newest(load);
    if (status == TN_OK)
        status = module_acquire(&checked->objects, plugin_load_newest(plugin)->file,
                                &plugin->module, &load->reason);
    return status;
}

static tn_status load_negotiate(struct load *load)
{
    struct plugin *plugin = load->plugin;
    const struct manifest *manifest = &plugin_load_newest(plugin)->manifest;
    const char *id = plugin->manifest.id, *file = plugin_load_newest(plugin)->file;
    uint64_t size = 0;
    plugin->entry = module_entry(plugin->module, &size);
    if (!plugin->entry)
        return reason_record(&load->reason, TN_ERR_REFUSED, REASON_CONTRACT, file,
                             "%s exports no tn_plugin_v1", file);
    tn_status status =
        abi_check_entry(plugin->entry, size, &load->checked.note, &load->reason);
    if (status == TN_OK)
        status = abi_negotiate(abi_host, manifest->abi, id, &load->minor, &load->reason);
    return status;
}

// Calls init. An op pack has no prefix for its messages: the core puts the operator's name
// in front.
static tn_status plugin_load_initialise(struct plugin *plugin, uint32_t minor,
                                        struct reason *reason)
{
    const char *id = plugin->manifest.id;
    bool is_pack = plugin_load_newest(plugin)->manifest.num_primitives > 0;
    plugin->self = (struct tn_host_self){plugin->set->runtime, plugin, is_pack ? NULL : id};
    plugin->host = plugin->set->host;
    plugin->host.self = &plugin->self;
    plugin->host.abi_minor = minor;
    if (!plugin->entry->init) {
        plugin->is_initialised = true;
        return TN_OK;
    }
    if (!module_enter(plugin->module))
        return reason_record(reason, TN_ERR_REFUSED, REASON_CONTRACT, id,
                             "%s is initialised from its own init", id);
    fail_clear();
    tn_status status = plugin->entry->init(&plugin->host);
    module_leave(plugin->module);
    plugin->is_initialised = status == TN_OK;
    if (status == TN_OK || status == TN_ERR_MEMORY)
        return status;
    // Copies the plugin's message, because reason_record() overwrites fail_text().
    char said[512];
    snprintf(said, sizeof(said), "%s", *fail_text() ? fail_text() : "it gave no reason");
    return reason_record(reason, TN_ERR_REFUSED, REASON_INIT, id,
                         "%s: init failed (%s): %s", id, tn_status_name(status), said);
}

tn_status plugin_start(struct plugin *plugin, uint32_t minor, struct reason *reason)
{
    const char *id = plugin->manifest.id;
    tn_status status = plugin_load_initialise(plugin, minor, reason);
    if (status != TN_OK)
        return status;
    plugin->ops = plugin->entry->query(TN_IFACE_OPS);
    plugin->backend = plugin->entry->query(TN_IFACE_BACKEND);
    if (plugin->ops)
        status = abi_check_ops(plugin->ops, id, reason);
    if (status == TN_OK && plugin->backend)
        status = abi_check_backend(plugin->backend, id, reason);
    return status;
}

// Makes the failure to register a primitive or kernel the reason of the plugin.
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
    const struct provider provider = {plugin, plugin->manifest.id, &plugin->host};
    for (uint32_t i = 0; ops && i < ops->num_primitives; i++) {
        plugin->is_registered = true;
        tn_status status = prim_register(runtime, &provider, ops->primitives[i]);
        if (status != TN_OK)
            return record_failed(load, status);
    }
    for (uint32_t i = 0; ops && i < ops->num_kernels; i++) {
        plugin->is_registered = true;
        tn_status status = kernel_register(runtime, &provider, ops->kernels[i]);
        if (status != TN_OK)
            return record_failed(load, status);
    }
    return TN_OK;
}

// Undoes a failed attempt. The code stays in memory when another thread may have found one
// of its primitives (plugin->is_registered).
static void load_undo(struct plugin *plugin)
{
    prims_forget(plugin->set->runtime, plugin, plugin->manifest.id);
    plugin_unload(plugin);
}

static tn_status load_all(struct load *load)
{
    struct plugin *plugin = load->plugin;
    tn_status status = load_open(load);
    if (status == TN_OK)
        status = load_negotiate(load);
    if (status == TN_OK)
        status = plugin_start(plugin, load->minor, &load->reason);
    if (status == TN_OK)
        status = load_register(load);
    objects_close(&load->checked.objects);
    if (status != TN_OK)
        load_undo(plugin);
    return status;
}

void plugin_stop(struct plugin *plugin)
{
    if (plugin->is_initialised && plugin->entry->deinit) {
        bool entered = module_enter(plugin->module);
        plugin->entry->deinit(&plugin->host);
        if (entered)
            module_leave(plugin->module);
    }
    plugin->is_initialised = false;
    plugin->entry = NULL;
    plugin->backend = NULL;
    plugin->ops = NULL;
}

void plugin_unload(struct plugin *plugin)
{
    plugin_stop(plugin);
    bool closes = config_switch(plugin->set->runtime->config, "TENON_DLCLOSE");
    bool is_refused = plugin->state == PLUGIN_LOADING;
    module_release(plugin->module, closes && !(is_refused && plugin->is_registered));
    plugin->is_registered = false;
    plugin->module = NULL;
    plugin_drop_needs(plugin);
}

// --- one loader thread -----------------------------------------------------------------

static tn_status not_available(const struct plugin *plugin)
{
    return fail(TN_ERR_REFUSED, "%s", plugin->reason.text);
}

// True when the calling thread becomes the loader. Else waits for the loader thread, and
// gives the result in *out_status.
static bool plugin_load_claim(struct plugin *plugin, tn_status *out_status)
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

// Publishes the result of the attempt and wakes the threads that wait for it.
static void publish_result(struct load *load, tn_status status)
{
    struct plugin *plugin = load->plugin;
    struct plugin_set *set = plugin->set;
    int32_t state = TN_PLUGIN_LOADED;
    if (status != TN_OK) // after a shortage of memory a later call tries again
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

// Logs the dynamic linker's name of the module, which debuggers show: that of a private
// copy.
static void tell_loaded(const struct plugin *plugin)
{
    const struct config *config = plugin->set->runtime->config;
    const char *displaced = module_displaced(plugin->module);
    log_write(config, TN_LOG_DEBUG, "plugin", "loaded %s %s: %s as %s", plugin->manifest.id,
              plugin_load_newest(plugin)->manifest.version,
              plugin_load_newest(plugin)->file, module_name(plugin->module));
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
    if (!plugin_load_claim(plugin, &status))
        return status;
    struct load load = {.plugin = plugin};
    // `tenon` reads this line while it probes a plugin: the plugin's code may run from here
    // on.
    log_write(plugin->set->runtime->config, TN_LOG_DEBUG, "plugin", "loading %s from %s",
              plugin->manifest.id, plugin->file);
    const tn_runtime *runtime = plugin->set->runtime;
    uint64_t begin = trace_begin(runtime->trace);
    status = load_all(&load);
    publish_result(&load, status);
    trace_end(runtime->trace, begin, "load plugin", "\"plugin\":\"%s\"",
              plugin->manifest.id);
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
