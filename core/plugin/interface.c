// SPDX-License-Identifier: MIT
// Beyond the standard interfaces: a plugin's own interfaces, found by id, for applications
// and other plugins; primitives that a plugin registers at run time (TN_HOST_PRIMITIVES);
// and the check whether a primitive can run on this system (TN_IFACE_OPS_CHECK).
#include "plugin.h"

#include <inttypes.h>
#include <string.h>
#include "../base/fail.h"
#include "primitives.h"

// --- interfaces by id ------------------------------------------------------------------

bool plugin_offers(const struct plugin *plugin, const char *id)
{
    const char **interfaces = plugin->manifest.interfaces;
    for (uint32_t i = 0; interfaces && interfaces[i]; i++)
        if (strcmp(interfaces[i], id) == 0)
            return true;
    return false;
}

// The plugin that offers the interface `id`: of several usable ones the lowest plugin id,
// so that the order of directories does not matter; else an unusable one, for its reason.
static struct plugin *choose_provider(const struct plugin_set *set, const char *id)
{
    struct plugin *chosen = NULL, *unusable = NULL;
    for (uint32_t i = 0; i < set->count; i++) {
        struct plugin *plugin = set->plugins[i];
        if (!plugin_offers(plugin, id))
            continue;
        if (!plugin_is_available(plugin))
            unusable = unusable ? unusable : plugin;
        else if (!chosen || strcmp(plugin->manifest.id, chosen->manifest.id) < 0)
            chosen = plugin;
    }
    return chosen ? chosen : unusable;
}

// Loads the plugin that offers the interface `id`. `asker` is the plugin that asks, NULL
// for the application. `maker`, or NULL, is what the message tells to install when no
// plugin offers the interface.
static tn_status find_interface(tn_runtime *runtime, struct plugin *asker, const char *id,
                                const char *maker, const void **out_interface,
                                const tn_host **out_host)
{
    struct plugin *plugin = choose_provider(runtime->plugins, id);
    if (!plugin)
        return fail(TN_ERR_NOT_FOUND,
                    "no installed plugin offers the interface '%s': install %s", id,
                    maker ? maker : "one that does");
    tn_status status = asker ? plugin_need(asker, plugin, id) : TN_OK;
    return status == TN_OK ? plugin_interface(plugin, id, out_interface, out_host) : status;
}

tn_status plugin_interface(struct plugin *plugin, const char *id,
                           const void **out_interface, const tn_host **out_host)
{
    tn_status status = plugin_load(plugin);
    if (status != TN_OK)
        return status;
    const void *table = plugin->entry->query(id);
    if (!table)
        return fail(TN_ERR_REFUSED,
                    "plugin %s does not offer '%s', as its manifest says: reinstall it",
                    plugin->manifest.id, id);
    *out_interface = table;
    *out_host = &plugin->host;
    return TN_OK;
}

tn_status tn_interface_find(tn_runtime *runtime, const char *id, const void **out_interface,
                            const tn_host **out_host)
{
    if (!runtime || !id || !out_interface || !out_host)
        return fail(TN_ERR_ARGUMENT, "tn_interface_find: %s is NULL",
                    !runtime ? "the runtime"
                    : !id    ? "the interface's id"
                             : "the place for a result");
    tn_status status = life_check(&runtime->life);
    if (status != TN_OK)
        return status;
    return find_interface(runtime, NULL, id, NULL, out_interface, out_host);
}

static tn_status find_for_plugin(const tn_host *host, const char *id, const char *maker,
                                 const void **out_interface, const tn_host **out_host)
{
    struct plugin *asker = host->self->plugin;
    if (!id || !out_interface || !out_host)
        return fail(TN_ERR_ARGUMENT, "interfaces.find: %s is NULL",
                    id ? "the place for a result" : "the interface's id");
    return find_interface(host->self->runtime, asker, id, maker, out_interface, out_host);
}

const tn_host_interfaces *interfaces_service(void)
{
    static const tn_host_interfaces service = {
        .struct_size = sizeof(service),
        .find = find_for_plugin,
    };
    return &service;
}

// --- primitives registered at run time -------------------------------------------------

static tn_status add_primitive(const tn_host *host, const tn_primitive *record,
                               const tn_kernel *const *kernels, uint64_t num_kernels)
{
    tn_runtime *runtime = host->self->runtime;
    struct plugin *plugin = host->self->plugin;
    const struct prim *known;
    tn_status status = fail_if_null("primitives.add", "the record", record);
    for (uint64_t i = 0; i < num_kernels && status == TN_OK; i++)
        status = fail_if_null("primitives.add", "a kernel", kernels ? kernels[i] : NULL);
    // tn_plugin_describe() runs the plugin, but registers nothing.
    if (status != TN_OK || plugin->state == PLUGIN_DESCRIBED)
        return status;
    if (record->id) // loads a pack that has this id: the id is taken then
        (void)prim_find(runtime, record->id, &known);
    fail_clear();
    plugin->is_registered = true;
    const struct provider provider = {plugin, plugin_id(plugin), host};
    status = prim_register(runtime, &provider, record);
    for (uint64_t i = 0; i < num_kernels && status == TN_OK; i++)
        status = kernel_register(runtime, &provider, kernels[i]);
    return status;
}

const tn_host_primitives *primitives_service(void)
{
    static const tn_host_primitives service = {
        .struct_size = sizeof(service),
        .add = add_primitive,
    };
    return &service;
}

// --- can a primitive run on this system? -----------------------------------------------

tn_status tn_primitive_check(tn_runtime *runtime, const char *name)
{
    const struct prim *prim = NULL;
    if (!runtime)
        return fail(TN_ERR_ARGUMENT, "tn_primitive_check: the runtime is NULL");
    tn_status status = life_check(&runtime->life);
    if (status == TN_OK)
        status = prim_find(runtime, name, &prim);
    if (status != TN_OK || !prim->plugin)
        return status;
    const tn_ops_check *check = prim->plugin->entry->query(TN_IFACE_OPS_CHECK);
    if (!TN_HAS(check, check))
        return TN_OK;
    fail_clear();
    status = check->check(&prim->plugin->host, prim->record.id);
    if (status != TN_OK)
        fail_prefix("%s: ", prim->record.id);
    return status;
}
