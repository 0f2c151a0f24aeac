// SPDX-License-Identifier: MIT
// Plugins of a runtime by their ids.
#include "find.h"
#include "base/args.h"

#include <string.h>

static const char *const state_names[] = {
    [0] = "unknown",
    [TN_PLUGIN_FOUND] = "found",
    [TN_PLUGIN_LOADED] = "loaded",
    [TN_PLUGIN_REFUSED] = "refused",
    [TN_PLUGIN_DISABLED] = "disabled",
    [TN_PLUGIN_SHADOWED] = "shadowed",
};

const char *plugin_state_name(uint32_t state)
{
    return state_names[state < COUNT(state_names) ? state : 0];
}

bool plugin_is_in_use(const tn_plugin_info *info)
{
    return info->state == TN_PLUGIN_FOUND || info->state == TN_PLUGIN_LOADED;
}

bool plugin_is_named(const tn_plugin_info *info, const char *id)
{
    const char *slash = strrchr(info->directory, '/');
    return strcmp(info->id[0] ? info->id : slash ? slash + 1 : "", id) == 0;
}

bool plugin_find(const tn_runtime *runtime, const char *id, tn_plugin_info *out)
{
    bool found = false;
    for (uint64_t i = 0, n = tn_plugin_count(runtime); i < n; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        if (tn_plugin_get(runtime, i, &info) || !plugin_is_named(&info, id))
            continue;
        if (!found || plugin_is_in_use(&info))
            *out = info;
        found = true;
        if (plugin_is_in_use(&info))
            break;
    }
    return found;
}

int no_plugin(const tn_runtime *runtime, const char *id)
{
    const char *names[257];
    uint64_t n = tn_plugin_count(runtime), used = 0;
    for (uint64_t i = 0; i < n && used < COUNT(names) - 1; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        if (tn_plugin_get(runtime, i, &info) == TN_OK && info.id[0])
            names[used++] = info.id;
    }
    names[used] = NULL;
    const char *near = nearest(id, names);
    if (near)
        return oops("no plugin '%s'; did you mean '%s'?", id, near);
    return oops("no plugin '%s'; 'tenon plugins --all' lists what was found", id);
}
