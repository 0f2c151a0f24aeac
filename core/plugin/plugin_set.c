// SPDX-License-Identifier: MIT
// Creates and destroys the plugin set of a runtime, with the lists of names from all
// manifests.
#include "plugin_set.h"

#include <stdlib.h>
#include <string.h>
#include "host/host.h"
#include "load/load.h"

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static uint32_t drop_repeats(const char **names, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 || strcmp(names[kept - 1], names[i]) != 0)
            names[kept++] = names[i];
    return kept;
}

// Writes the names that one manifest adds to a list, at most as many as it has backends or
// primitives, and returns their number.
typedef uint32_t (*collector)(const struct manifest *manifest, const char **names);

static uint32_t all_backends(const struct manifest *manifest, const char **names)
{
    for (uint32_t i = 0; i < manifest->num_backends; i++)
        names[i] = manifest->backends[i].name;
    return manifest->num_backends;
}

static uint32_t default_backends(const struct manifest *manifest, const char **names)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < manifest->num_backends; i++)
        if (manifest->backends[i].is_default)
            names[count++] = manifest->backends[i].name;
    return count;
}

static uint32_t all_primitives(const struct manifest *manifest, const char **names)
{
    for (uint32_t i = 0; i < manifest->num_primitives; i++)
        names[i] = manifest->primitives[i].id;
    return manifest->num_primitives;
}

// Gives the names in all manifests of usable plugins, sorted, each once, NULL-terminated.
// NULL: out of memory.
static const char **plugin_set_make_list(const struct plugin_set *set, collector collect)
{
    size_t room = 1;
    for (uint32_t i = 0; i < set->count; i++)
        room += set->plugins[i]->manifest.num_backends +
                (size_t)set->plugins[i]->manifest.num_primitives;
    const char **names = mem_zalloc(room * sizeof(*names));
    if (!names)
        return NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < set->count; i++)
        if (plugin_is_available(set->plugins[i]))
            count += collect(&set->plugins[i]->manifest, names + count);
    qsort(names, count, sizeof(*names), by_bytes);
    names[drop_repeats(names, count)] = NULL;
    return names;
}

static tn_status make_lists(struct plugin_set *set)
{
    set->backend_names = plugin_set_make_list(set, all_backends);
    set->default_backends = plugin_set_make_list(set, default_backends);
    set->primitive_names = plugin_set_make_list(set, all_primitives);
    bool made = set->backend_names && set->default_backends && set->primitive_names;
    return made ? TN_OK : TN_ERR_MEMORY;
}

// Unloads each plugin before those that it needs. Unloading twice is fine.
static void unload_after_users(struct plugin *plugin)
{
    const struct plugin_set *set = plugin->set;
    for (uint32_t i = set->count; i > 0; i--)
        if (plugin_needs(set->plugins[i - 1], plugin))
            unload_after_users(set->plugins[i - 1]);
    plugin_unload(plugin);
}

static void unload_all(struct plugin_set *set)
{
    for (uint32_t i = set->count; i > 0; i--)
        unload_after_users(set->plugins[i - 1]);
}

tn_status plugin_set_create(tn_runtime *runtime, const char *extra_path)
{
    struct plugin_set *set = mem_zalloc(sizeof(*set));
    if (!set)
        return TN_ERR_MEMORY;
    set->runtime = runtime;
    set->host = host_table;
    pthread_mutex_init(&set->lock, NULL);
    pthread_cond_init(&set->changed, NULL);
    runtime->plugins = set;
    tn_status status = trust_open(runtime->config, &set->trust);
    if (status == TN_OK)
        status = find_plugins(set, extra_path);
    if (status == TN_OK)
        status = make_lists(set);
    if (status != TN_OK)
        plugin_set_destroy(runtime);
    return status;
}

void plugin_set_destroy(tn_runtime *runtime)
{
    struct plugin_set *set = runtime->plugins;
    if (!set)
        return;
    unload_all(set);
    for (int64_t i = (int64_t)set->count - 1; i >= 0; i--)
        plugin_destroy(set->plugins[i]);
    mem_free(set->plugins);
    trust_close(&set->trust);
    mem_free(set->directories);
    mem_free(set->backend_names);
    mem_free(set->default_backends);
    mem_free(set->primitive_names);
    pthread_cond_destroy(&set->changed);
    pthread_mutex_destroy(&set->lock);
    mem_free(set);
    runtime->plugins = NULL;
}
