// SPDX-License-Identifier: MIT
// What reaches over the standard interfaces: a plugin's own, found by id; primitives that a
// plugin makes while it runs; and asking a pack whether a primitive could run now.
#include "plugin.h"

#include <inttypes.h>
#include <string.h>
#include "../base/fail.h"
#include "../primitive/prim_set.h"

// --- interfaces by id ------------------------------------------------------------------

static bool offers(const struct plugin *plugin, const char *id)
{
    const char **interfaces = plugin->manifest.interfaces;
    for (uint32_t i = 0; interfaces && interfaces[i]; i++)
        if (strcmp(interfaces[i], id) == 0)
            return true;
    return false;
}

// Of several plugins, the one whose id comes first; else one that cannot be used.
static struct plugin *choose_provider(const struct plugin_set *set, const char *id)
{
    struct plugin *chosen = NULL, *unusable = NULL;
    for (uint32_t i = 0; i < set->count; i++) {
        struct plugin *plugin = set->plugins[i];
        if (!offers(plugin, id))
            continue;
        if (!plugin_is_available(plugin))
            unusable = unusable ? unusable : plugin;
        else if (!chosen || strcmp(plugin->manifest.id, chosen->manifest.id) < 0)
            chosen = plugin;
    }
    return chosen ? chosen : unusable;
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
    struct plugin *plugin = choose_provider(runtime->plugins, id);
    if (!plugin)
        return fail(TN_ERR_NOT_FOUND,
                    "no installed plugin offers the interface '%s': install one that does",
                    id);
    status = plugin_load(plugin);
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

// --- primitives made while running -----------------------------------------------------

static tn_status add_primitive(const tn_host *host, const tn_primitive *record,
                               const tn_kernel *const *kernels, uint64_t num_kernels)
{
    tn_runtime *runtime = host->self->runtime;
    struct plugin *plugin = host->self->plugin;
    const struct prim *known;
    tn_status status = fail_if_null("primitives.add", "the record", record);
    for (uint64_t i = 0; i < num_kernels && status == TN_OK; i++)
        status = fail_if_null("primitives.add", "a kernel", kernels ? kernels[i] : NULL);
    if (status != TN_OK)
        return status;
    if (record->id) // an id that a pack has which is not loaded is taken, too
        (void)prim_find(runtime, record->id, &known);
    fail_clear();
    plugin->is_registered = true;
    status = prim_register(runtime, plugin, host, record);
    for (uint64_t i = 0; i < num_kernels && status == TN_OK; i++)
        status = kernel_register(runtime, plugin, plugin_id(plugin), kernels[i]);
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

// --- could it run? ---------------------------------------------------------------------

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
