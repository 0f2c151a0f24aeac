// SPDX-License-Identifier: MIT
// The service TN_HOST_INSTALLED: ids and versions of the runtime's plugins.
#include <tenon/installed.h>
#include "host.h"

static bool installed_is_usable(const struct plugin *plugin)
{
    return plugin->state == TN_PLUGIN_FOUND || plugin->state == TN_PLUGIN_LOADED ||
           plugin->state == PLUGIN_LOADING;
}

static int32_t installed_get(const tn_host *host, uint64_t index, const char **out_id,
                             const char **out_version)
{
    const struct plugin_set *set = host->self->runtime->plugins;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct plugin *plugin = set->plugins[i];
        if (!installed_is_usable(plugin))
            continue;
        if (index > 0) {
            index--;
            continue;
        }
        const struct manifest *manifest =
            plugin->newer ? &plugin->newer->manifest : &plugin->manifest;
        *out_id = manifest->id;
        *out_version = manifest->version;
        return 1;
    }
    return 0;
}

const tn_host_installed *installed_service(void)
{
    static const tn_host_installed service = {
        .struct_size = sizeof(service),
        .get = installed_get,
    };
    return &service;
}
