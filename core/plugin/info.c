// SPDX-License-Identifier: MIT
// Public functions about plugins: list them, load one by id, compare versions, verify a
// directory.
#include "load/load.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../base/fail.h"
#include "find/names.h"
#include "host/host.h"

static const char *const no_names[] = {NULL};

uint64_t tn_plugin_count(const tn_runtime *runtime)
{
    return runtime ? runtime->plugins->count : 0;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static const char *const *or_none(const char **names)
{
    return names ? names : no_names;
}

static tn_plugin_info plugin_info_describe(const struct plugin *plugin)
{
    int32_t state = atomic_load_explicit(&plugin->state, memory_order_acquire);
    if (state == PLUGIN_LOADING)
        state = TN_PLUGIN_FOUND;
    bool has_reason = state != TN_PLUGIN_FOUND && state != TN_PLUGIN_LOADED;
    const char *reason = has_reason ? plugin->reason.text : "";
    bool was_loaded = state == TN_PLUGIN_LOADED || state == TN_PLUGIN_REFUSED;
    if (was_loaded && plugin->newer && plugin->newer->manifest.id)
        plugin = plugin->newer;
    const struct manifest *manifest = &plugin->manifest;
    return (tn_plugin_info){
        .struct_size = sizeof(tn_plugin_info),
        .state = (uint32_t)state,
        .id = or_empty(manifest->id),
        .version = or_empty(manifest->version),
        .vendor = or_empty(manifest->vendor),
        .directory = plugin->directory,
        .file = or_empty(plugin->file),
        .reason = reason,
        .backends = or_none(manifest->backend_names),
        .primitives = or_none(manifest->primitive_ids),
        .kernels = or_none(manifest->kernel_texts),
    };
}

tn_status tn_plugin_get(const tn_runtime *runtime, uint64_t index, tn_plugin_info *out)
{
    tn_status status = fail_if_null("plugin_get", "the runtime", runtime);
    if (status == TN_OK)
        status = fail_if_null("plugin_get", "out", out);
    if (status != TN_OK)
        return status;
    const struct plugin_set *set = runtime->plugins;
    if (index >= set->count)
        return fail(TN_ERR_ARGUMENT, "plugin %" PRIu64 ": there are %" PRIu32, index,
                    set->count);
    // The caller's struct may be older and shorter; size 0 means the size in ABI 1.0.
    tn_plugin_info info = plugin_info_describe(set->plugins[index]);
    uint32_t size = out->struct_size ? out->struct_size : TN_END_OF(out, kernels);
    memcpy(out, &info, size < sizeof(info) ? size : sizeof(info));
    out->struct_size = size;
    return TN_OK;
}

// The plugin with this id that is not shadowed; else the first shadowed plugin with this
// id, for its reason.
static struct plugin *find_id(const struct plugin_set *set, const char *id)
{
    struct plugin *first = NULL;
    for (uint32_t i = 0; i < set->count; i++) {
        struct plugin *plugin = set->plugins[i];
        if (!plugin->manifest.id || strcmp(plugin->manifest.id, id) != 0)
            continue;
        if (plugin->state != TN_PLUGIN_SHADOWED)
            return plugin;
        first = first ? first : plugin;
    }
    return first;
}

// Finds a plugin by its directory's name, all that is known when the manifest was refused.
static struct plugin *plugin_info_find_directory(const struct plugin_set *set,
                                                 const char *id)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const char *slash = strrchr(set->plugins[i]->directory, '/');
        if (slash && strcmp(slash + 1, id) == 0)
            return set->plugins[i];
    }
    return NULL;
}

static tn_status info_no_plugin(const struct plugin_set *set, const char *id)
{
    const char **ids = mem_zalloc((set->count + 1) * sizeof(*ids));
    if (!ids)
        return TN_ERR_MEMORY;
    uint32_t count = 0;
    for (uint32_t i = 0; i < set->count; i++)
        if (set->plugins[i]->manifest.id)
            ids[count++] = set->plugins[i]->manifest.id;
    const char *nearest = config_nearest(id, ids);
    fail(TN_ERR_NOT_FOUND, "plugin '%s' is not installed%s%s%s", id,
         nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
    mem_free(ids);
    return TN_ERR_NOT_FOUND;
}

tn_status tn_plugin_load(tn_runtime *runtime, const char *id)
{
    tn_status status = fail_if_null("plugin_load", "the runtime", runtime);
    if (status == TN_OK)
        status = fail_if_null("plugin_load", "the plugin's id", id);
    if (status == TN_OK)
        status = life_check(&runtime->life);
    if (status != TN_OK)
        return status;
    struct plugin *plugin = find_id(runtime->plugins, id);
    if (!plugin)
        plugin = plugin_info_find_directory(runtime->plugins, id);
    return plugin ? plugin_load(plugin) : info_no_plugin(runtime->plugins, id);
}

tn_status tn_plugin_read(tn_runtime *runtime, const char *id, const char *name,
                         uint64_t most, char **out_text, uint64_t *out_size)
{
    tn_status status = fail_if_null("plugin_read", "the runtime", runtime);
    if (status == TN_OK)
        status = fail_if_null("plugin_read", "the plugin's id", id);
    if (status == TN_OK)
        status = fail_if_null("plugin_read", "the file's name", name);
    if (status == TN_OK)
        status = fail_if_null("plugin_read", "out_text", out_text);
    if (status != TN_OK)
        return status;
    const struct plugin *plugin = find_id(runtime->plugins, id);
    if (!plugin)
        return info_no_plugin(runtime->plugins, id);
    const struct manifest_file *file = plugin_file(plugin, name);
    if (!file)
        return fail(TN_ERR_NOT_FOUND, "'%s' is not among the files of %s/" MANIFEST_FILE,
                    name, plugin->directory);
    if (file->size > most)
        return fail(TN_ERR_REFUSED, "%s/%s: %" PRIu64 " bytes, at most %" PRIu64,
                    plugin->directory, name, file->size, most);
    size_t size = 0;
    char *text = NULL;
    status = plugin_read_file(plugin, name, file, &text, &size);
    if (status != TN_OK)
        return status;
    *out_text = text;
    if (out_size)
        *out_size = size;
    return TN_OK;
}

// --- versions --------------------------------------------------------------------------

int32_t tn_version_compare(const char *a, const char *b)
{
    bool valid_a = a && version_valid(a), valid_b = b && version_valid(b);
    return valid_a && valid_b ? version_compare(a, b) : valid_a - valid_b;
}

// --- verifying -------------------------------------------------------------------------

static tn_status plugin_info_verify(const struct trust *trust, struct plugin *plugin)
{
    if (plugin->state == TN_PLUGIN_REFUSED)
        return fail(TN_ERR_REFUSED, "%s", plugin->reason.text);
    struct checked checked;
    struct reason reason;
    tn_status status =
        plugin_check(trust, plugin->directory, &plugin->manifest, &checked, &reason);
    if (status == TN_OK)
        objects_close(&checked.objects);
    return status;
}

static tn_status verify_at(const struct trust *trust, const char *path)
{
    struct plugin *plugin = NULL;
    tn_status status = find_plugin_at(trust, AT_FDCWD, path, path, &plugin);
    if (status == TN_OK && !plugin)
        return fail(TN_ERR_NOT_FOUND, "%s holds no %s", path, MANIFEST_FILE);
    if (status == TN_OK)
        status = plugin_info_verify(trust, plugin);
    plugin_destroy(plugin);
    return status;
}

tn_status tn_plugin_verify(const char *directory)
{
    // The last component must be the plugin's id, so "." and symbolic links are resolved.
    char path[PATH_MAX];
    if (fail_if_null("plugin_verify", "the directory", directory) != TN_OK)
        return TN_ERR_ARGUMENT;
    if (!realpath(directory, path))
        return fail(TN_ERR_IO, "%s: %s", directory, strerror(errno));
    // Other mistakes in the environment are reported when a runtime opens, so warnings are
    // off.
    const char *const quiet[] = {"TENON_LOG=error", NULL};
    struct config *config = NULL;
    struct trust trust;
    tn_status status = config_create(quiet, &config);
    if (status != TN_OK)
        return status;
    status = trust_open(config, &trust);
    if (status == TN_OK) {
        status = verify_at(&trust, path);
        trust_close(&trust);
    }
    config_destroy(config);
    return status;
}
