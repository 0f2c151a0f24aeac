// SPDX-License-Identifier: MIT
// The services TN_HOST_INTERFACES and TN_HOST_PRIMITIVES: a plugin's own interfaces, found
// by id for other plugins, and primitives that a plugin registers at run time.
#include "host.h"

#include "../../base/fail.h"
#include "../load/load.h"
#include "../load/primitives.h"

static tn_status find_for_plugin(const tn_host *host, const char *id, const char *maker,
                                 const void **out_interface, const tn_host **out_host)
{
    struct plugin *asker = host->self->plugin;
    if (!id || !out_interface || !out_host)
        return fail(TN_ERR_ARGUMENT, "interfaces.find: %s is NULL",
                    id ? "the output pointer" : "the interface's id");
    return plugin_find_interface(host->self->runtime, asker, id, maker, out_interface,
                                 out_host);
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
