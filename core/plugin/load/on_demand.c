// SPDX-License-Identifier: MIT
// Loads the plugins whose manifests list a primitive, kernel or backend, and tells why
// there is no such plugin.
#include "load.h"

#include <stdio.h>
#include <string.h>
#include "../../base/fail.h"
#include "../find/names.h"

static bool has_primitive(const struct plugin *plugin, const char *name)
{
    const struct manifest *manifest = &plugin->manifest;
    for (uint32_t i = 0; i < manifest->num_primitives; i++)
        if (primitive_matches(name, manifest->primitives[i].id))
            return true;
    return false;
}

static bool on_demand_has_backend(const struct plugin *plugin, const char *name)
{
    const struct manifest *manifest = &plugin->manifest;
    for (uint32_t i = 0; i < manifest->num_backends; i++)
        if (strcmp(manifest->backends[i].name, name) == 0)
            return true;
    return false;
}

static bool has_kernel(const struct plugin *plugin, const char *primitive,
                       const char *const *families)
{
    const struct manifest *manifest = &plugin->manifest;
    for (uint32_t i = 0; i < manifest->num_kernels; i++) {
        const struct manifest_kernel *kernel = &manifest->kernels[i];
        if (strcmp(kernel->primitive, primitive) != 0)
            continue;
        for (const char *const *family = families; *family; family++)
            if (strcmp(kernel->family, *family) == 0)
                return true;
    }
    return false;
}

// --- no plugin has it ------------------------------------------------------------------

// Why a refused or disabled plugin that `has` the name is not used; NULL when there is
// none. Shadowed plugins do not count: the version that shadows them was asked.
static const char *reason_of(const struct plugin_set *set, const char *name,
                             bool (*has)(const struct plugin *, const char *))
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct plugin *plugin = set->plugins[i];
        int32_t state = atomic_load_explicit(&plugin->state, memory_order_acquire);
        if ((state == TN_PLUGIN_REFUSED || state == TN_PLUGIN_DISABLED) &&
            has(plugin, name))
            return plugin->reason.text;
    }
    return NULL;
}

// Gives the nearest of `names` without its revision, or, for a name without dots, the
// nearest of their last parts. "" when none is near.
static void nearest_primitive(const char *const *names, const char *name, char out[128])
{
    size_t count = 0;
    bool is_short = !strchr(name, '.');
    out[0] = 0;
    for (size_t i = 0; names[i]; i++)
        count++;
    char(*parts)[128] = mem_alloc((count + 1) * sizeof(*parts));
    const char **list = mem_zalloc((count + 1) * sizeof(*list));
    for (size_t i = 0; parts && list && i < count; i++) {
        snprintf(parts[i], sizeof(parts[i]), "%.*s", (int)strcspn(names[i], "/"), names[i]);
        const char *dot = is_short ? strrchr(parts[i], '.') : NULL;
        list[i] = dot ? dot + 1 : parts[i];
    }
    const char *nearest = parts && list ? config_nearest(name, list) : NULL;
    if (nearest)
        snprintf(out, 128, "%s", nearest);
    mem_free(parts);
    mem_free(list);
}

// The end of the message that a name is not known, when no plugin was found at all: why,
// and the remedy. "" when plugins were found.
static const char *explain_no_plugins(const struct plugin_set *set, char text[700])
{
    const struct config *config = set->runtime->config;
    bool is_any = false;
    for (uint32_t i = 0; i < set->count; i++)
        is_any |= set->plugins[i]->manifest.id != NULL;
    text[0] = 0;
    if (!is_any && !set->directories && config_switch(config, "TENON_PLUGINS_ONLY"))
        snprintf(
            text, 700,
            ": no folder of plugins is searched, as TENON_PLUGINS_ONLY=1 leaves those "
            "of TENON_PLUGIN_PATH, which is empty: set it, or unset TENON_PLUGINS_ONLY");
    else if (!is_any)
        snprintf(text, 700,
                 ": no plugin was found in %.500s: install some, or name their folder in "
                 "TENON_PLUGIN_PATH",
                 set->directories ? set->directories : "any folder");
    return text;
}

// Size of the pack's name: that of "base" in "base.add/1". 0 for a name without pack.
static size_t pack_size(const char *name)
{
    const char *point = memrchr(name, '.', strcspn(name, "/"));
    return point ? (size_t)(point - name) : 0;
}

static bool has_pack(const struct plugin_set *set, const char *name)
{
    size_t size = pack_size(name);
    for (const char *const *known = set->primitive_names; size && *known; known++)
        if (strncmp(*known, name, size + 1) == 0)
            return true;
    return size == 0;
}

static tn_status on_demand_no_primitive(const struct plugin_set *set, const char *name)
{
    const char *reason = reason_of(set, name, has_primitive);
    if (reason)
        return fail(TN_ERR_NOT_FOUND, "primitive '%s': a plugin has it, but: %s", name,
                    reason);
    char nearest[128], explanation[700];
    if (*explain_no_plugins(set, explanation))
        return fail(TN_ERR_NOT_FOUND, "primitive '%s' is not known%s", name, explanation);
    nearest_primitive(set->primitive_names, name, nearest);
    if (!*nearest && !has_pack(set, name))
        return fail(TN_ERR_NOT_FOUND,
                    "primitive '%s' is not known: no plugin that was found has the pack "
                    "'%.*s' (`tenon plugins` lists them)",
                    name, (int)pack_size(name), name);
    return fail(TN_ERR_NOT_FOUND, "primitive '%s' is not known%s%s%s", name,
                *nearest ? "; did you mean " : "", nearest, *nearest ? "?" : "");
}

static tn_status on_demand_no_backend(const struct plugin_set *set, const char *name)
{
    const char *reason = reason_of(set, name, on_demand_has_backend);
    if (reason)
        return fail(TN_ERR_NOT_FOUND, "backend '%s': a plugin has it, but: %s", name,
                    reason);
    const char *nearest = config_nearest(name, set->backend_names);
    char known[512] = "", explanation[700];
    if (*explain_no_plugins(set, explanation))
        return fail(TN_ERR_NOT_FOUND, "backend '%s' is not known%s", name, explanation);
    for (size_t i = 0, at = 0; set->backend_names[i] && at < sizeof(known); i++)
        at += (size_t)snprintf(known + at, sizeof(known) - at, "%s%s", i ? ", " : "",
                               set->backend_names[i]);
    return fail(TN_ERR_NOT_FOUND, "backend '%s' is not known%s%s%s (installed: %s)", name,
                nearest ? "; did you mean " : "", nearest ? nearest : "",
                nearest ? "?" : "", *known ? known : "none");
}

tn_status plugin_no_default(const tn_runtime *runtime)
{
    char explanation[700];
    if (*explain_no_plugins(runtime->plugins, explanation))
        return fail(TN_ERR_NOT_FOUND, "there is no backend%s", explanation);
    return fail(
        TN_ERR_NOT_FOUND,
        "no backend can be chosen automatically: install one (such as cpu-blas), or "
        "name one in TENON_BACKEND; `tenon devices` lists what there is");
}

// --- loading ---------------------------------------------------------------------------

tn_status plugin_load_primitive(tn_runtime *runtime, const char *name)
{
    struct plugin_set *set = runtime->plugins;
    bool loaded = false;
    for (uint32_t i = 0; i < set->count; i++) {
        struct plugin *plugin = set->plugins[i];
        if (!plugin_is_available(plugin) || !has_primitive(plugin, name))
            continue;
        tn_status status = plugin_load(plugin);
        if (status == TN_ERR_MEMORY || status == TN_ERR_INTERNAL)
            return status;
        loaded |= status == TN_OK;
    }
    return loaded ? TN_OK : on_demand_no_primitive(set, name);
}

tn_status plugin_load_kernels(tn_runtime *runtime, const char *id,
                              const char *const *families)
{
    struct plugin_set *set = runtime->plugins;
    for (uint32_t i = 0; i < set->count; i++) {
        struct plugin *plugin = set->plugins[i];
        if (!plugin_is_available(plugin) || !has_kernel(plugin, id, families))
            continue;
        if (plugin_load(plugin) == TN_ERR_MEMORY)
            return TN_ERR_MEMORY;
    }
    return TN_OK;
}

// The usable plugin with a backend of this name; of several the lowest plugin id, so that
// the order of directories does not matter.
static struct plugin *choose_backend(const struct plugin_set *set, const char *name)
{
    struct plugin *chosen = NULL;
    for (uint32_t i = 0; i < set->count; i++) {
        struct plugin *plugin = set->plugins[i];
        if (plugin_is_available(plugin) && on_demand_has_backend(plugin, name) &&
            (!chosen || strcmp(plugin->manifest.id, chosen->manifest.id) < 0))
            chosen = plugin;
    }
    return chosen;
}

tn_status plugin_backend(tn_runtime *runtime, const char *name,
                         const tn_backend **out_backend, struct plugin **out_plugin)
{
    struct plugin *plugin = choose_backend(runtime->plugins, name);
    tn_status status = plugin ? plugin_load(plugin) : TN_OK;
    if (status == TN_ERR_MEMORY || status == TN_ERR_INTERNAL)
        return status;
    if (!plugin || status != TN_OK)
        return on_demand_no_backend(runtime->plugins, name);
    if (!plugin->backend || strcmp(plugin->backend->name, name) != 0)
        return fail(TN_ERR_REFUSED,
                    "plugin %s has no backend '%s', as its manifest says: reinstall it",
                    plugin->manifest.id, name);
    *out_backend = plugin->backend;
    *out_plugin = plugin;
    return TN_OK;
}

const char *const *plugin_backend_names(tn_runtime *runtime)
{
    return runtime->plugins->backend_names;
}

const char *const *plugin_default_backends(tn_runtime *runtime)
{
    return runtime->plugins->default_backends;
}

const char *const *plugin_primitive_names(tn_runtime *runtime)
{
    return runtime->plugins->primitive_names;
}
