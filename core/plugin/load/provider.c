// SPDX-License-Identifier: MIT
// Providers: plugins that offer one interface, told apart by the selectors in their
// manifests, so that the one that is wanted is found without loading any.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../base/fail.h"
#include "../../base/memory.h"
#include "../find/names.h"
#include "load.h"

// --- the list --------------------------------------------------------------------------

static int provider_by_id(const void *a, const void *b)
{
    const struct plugin *const *x = a, *const *y = b;
    return strcmp((*x)->manifest.id, (*y)->manifest.id);
}

// Gives the usable plugins that offer the interface, by id, in a new list (mem_free).
static struct plugin **list_providers(const struct plugin_set *set, const char *id,
                                      uint32_t *out_count)
{
    struct plugin **list = mem_alloc((set->count + 1) * sizeof(struct plugin *));
    uint32_t count = 0;
    for (uint32_t i = 0; list && i < set->count; i++)
        if (plugin_offers(set->plugins[i], id) && plugin_is_available(set->plugins[i]))
            list[count++] = set->plugins[i];
    if (list)
        qsort(list, count, sizeof(struct plugin *), provider_by_id);
    *out_count = count;
    return list;
}

static tn_status provider_check_call(const char *function, tn_runtime *runtime,
                                     const char *id, const void *out)
{
    if (!runtime || !id || !out)
        return fail(TN_ERR_ARGUMENT, "%s: %s is NULL", function,
                    !runtime ? "the runtime"
                    : !id    ? "the interface's id"
                             : "the output pointer");
    return life_check(&runtime->life);
}

tn_status tn_providers(tn_runtime *runtime, const char *id, tn_provider *out,
                       uint64_t *count)
{
    uint32_t found;
    tn_status status = provider_check_call("tn_providers", runtime, id, count);
    if (status != TN_OK)
        return status;
    struct plugin **list = list_providers(runtime->plugins, id, &found);
    if (!list)
        return TN_ERR_MEMORY;
    uint32_t size = 0;
    if (out)
        size = *count && out->struct_size ? out->struct_size : TN_END_OF(out, selectors);
    for (uint32_t i = 0; out && i < found && i < *count; i++) {
        const tn_provider mine = {
            .struct_size = sizeof(mine),
            .plugin = list[i]->manifest.id,
            .selectors = list[i]->manifest.selector_texts,
        };
        memcpy((char *)out + (uint64_t)i * size, &mine,
               size < sizeof(mine) ? size : sizeof(mine));
    }
    *count = found;
    mem_free(list);
    return TN_OK;
}

// --- one of them -----------------------------------------------------------------------

// Search for a plugin: by a kind and a value, or by the bytes of a file.
struct wanted {
    const char *interface, *kind, *value;
    const void *data;
    size_t size;
    int directory;
};

// Whether the value of a selector names a file of the folder.
static bool provider_is_within(const char *value, int directory)
{
    return !strchr(value, '/') && faccessat(directory, value, F_OK, 0) == 0;
}

// How well a plugin answers: 0 not at all; for bytes, the length of the longest match.
static size_t provider_answers(const struct plugin *plugin, const struct wanted *wanted)
{
    size_t best = 0;
    for (uint32_t i = 0; i < plugin->manifest.num_selectors; i++) {
        const struct manifest_selector *selector = &plugin->manifest.selectors[i];
        if (strcmp(selector->interface, wanted->interface) != 0 ||
            strcmp(selector->kind, wanted->kind) != 0)
            continue;
        size_t match = wanted->value ? strcmp(selector->value, wanted->value) == 0
                       : wanted->directory >= 0
                           ? provider_is_within(selector->value, wanted->directory)
                           : magic_matches(selector->value, wanted->data, wanted->size);
        best = match > best ? match : best;
    }
    return best;
}

struct provider_choice {
    struct plugin *first, *second; // usable, of the best match
    struct plugin *unusable;
    size_t match;
};

static struct provider_choice provider_choose(const struct plugin_set *set,
                                              const struct wanted *wanted)
{
    struct provider_choice choice = {0};
    for (uint32_t i = 0; i < set->count; i++) {
        struct plugin *plugin = set->plugins[i];
        size_t match =
            plugin_offers(plugin, wanted->interface) ? provider_answers(plugin, wanted) : 0;
        if (!match)
            continue;
        if (!plugin_is_available(plugin)) {
            // A shadowed version is replaced by another, which answers for itself.
            if (plugin->state != TN_PLUGIN_SHADOWED && !choice.unusable)
                choice.unusable = plugin;
        } else if (match > choice.match) {
            choice.first = plugin;
            choice.second = NULL;
            choice.match = match;
        } else if (match == choice.match) {
            choice.second = plugin;
        }
    }
    return choice;
}

// Lists the values of a kind that usable plugins have: "npy, safetensors".
static void list_values(const struct plugin_set *set, const struct wanted *wanted,
                        char *out, size_t size)
{
    size_t at = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct plugin *plugin = set->plugins[i];
        if (!plugin_is_available(plugin) || !plugin_offers(plugin, wanted->interface))
            continue;
        for (uint32_t k = 0; k < plugin->manifest.num_selectors && at < size; k++) {
            const struct manifest_selector *selector = &plugin->manifest.selectors[k];
            if (strcmp(selector->interface, wanted->interface) == 0 &&
                strcmp(selector->kind, wanted->kind) == 0)
                at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "",
                                       selector->value);
        }
    }
}

static tn_status load_provider_find(tn_runtime *runtime, const struct wanted *wanted,
                                    const char **out_plugin)
{
    const struct plugin_set *set = runtime->plugins;
    struct provider_choice choice = provider_choose(set, wanted);
    const char *value = wanted->value            ? wanted->value
                        : wanted->directory >= 0 ? "(by a file in it)"
                                                 : "(the file's first bytes)";
    if (choice.second) {
        const char *a = choice.first->manifest.id, *b = choice.second->manifest.id;
        bool in_order = strcmp(a, b) < 0;
        return fail(TN_ERR_ARGUMENT,
                    "two plugins provide %s for %s %s: %s and %s: name the one that is "
                    "meant, or leave the other out with TENON_PLUGINS_DISABLE",
                    wanted->interface, wanted->kind, value, in_order ? a : b,
                    in_order ? b : a);
    }
    if (choice.first) {
        *out_plugin = choice.first->manifest.id;
        return TN_OK;
    }
    if (choice.unusable)
        return plugin_load(choice.unusable); // fails, with the reason
    char known[512];
    list_values(set, wanted, known, sizeof(known));
    return fail(TN_ERR_NOT_FOUND,
                "no installed plugin provides %s for %s %s (known: %s): install one that "
                "does",
                wanted->interface, wanted->kind, value, *known ? known : "none");
}

tn_status tn_provider_find(tn_runtime *runtime, const char *id, const char *kind,
                           const char *value, const char **out_plugin)
{
    tn_status status = provider_check_call("tn_provider_find", runtime, id, out_plugin);
    if (status == TN_OK)
        status = fail_if_null("tn_provider_find", "the kind", kind);
    if (status == TN_OK)
        status = fail_if_null("tn_provider_find", "the value", value);
    if (status != TN_OK)
        return status;
    const struct wanted wanted = {.interface = id, .kind = kind, .value = value};
    return load_provider_find(runtime, &wanted, out_plugin);
}

tn_status tn_provider_match(tn_runtime *runtime, const char *id, const void *data,
                            uint64_t size, const char **out_plugin)
{
    tn_status status = provider_check_call("tn_provider_match", runtime, id, out_plugin);
    if (status == TN_OK && size > 0)
        status = fail_if_null("tn_provider_match", "the data", data);
    if (status != TN_OK)
        return status;
    const struct wanted wanted = {.interface = id,
                                  .kind = TN_SELECT_MAGIC,
                                  .data = data,
                                  .size = size,
                                  .directory = -1};
    return load_provider_find(runtime, &wanted, out_plugin);
}

tn_status plugin_in_folder(tn_runtime *runtime, const char *id, int directory,
                           const char **out_plugin)
{
    const struct wanted wanted = {
        .interface = id, .kind = "folder", .directory = directory};
    return load_provider_find(runtime, &wanted, out_plugin);
}

tn_status tn_provider_load(tn_runtime *runtime, const char *id, const char *plugin,
                           const void **out_interface, const tn_host **out_host)
{
    struct plugin *found = NULL;
    tn_status status = provider_check_call("tn_provider_load", runtime, id, out_interface);
    if (status == TN_OK)
        status = fail_if_null("tn_provider_load", "the plugin's id", plugin);
    if (status == TN_OK)
        status = fail_if_null("tn_provider_load", "the output pointer of the host table",
                              out_host);
    if (status != TN_OK)
        return status;
    for (uint32_t i = 0; i < runtime->plugins->count; i++) {
        struct plugin *other = runtime->plugins->plugins[i];
        bool is_named = other->manifest.id && strcmp(other->manifest.id, plugin) == 0;
        if (is_named && (!found || plugin_is_available(other)))
            found = other;
    }
    if (!found)
        return fail(TN_ERR_NOT_FOUND, "plugin %s is not installed", plugin);
    if (!plugin_offers(found, id))
        return fail(TN_ERR_NOT_FOUND, "plugin %s does not provide %s", plugin, id);
    return plugin_interface(found, id, out_interface, out_host);
}

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

tn_status plugin_find_interface(tn_runtime *runtime, struct plugin *asker, const char *id,
                                const char *maker, const void **out_interface,
                                const tn_host **out_host)
{
    struct plugin *plugin = choose_provider(runtime->plugins, id);
    if (!plugin)
        return fail(TN_ERR_NOT_FOUND,
                    "no installed plugin offers the interface '%s': install %s", id,
                    maker ? maker : "one that does");
    // A backend asks for its own where it runs references of a pack that asks.
    bool is_own =
        asker == plugin &&
        atomic_load_explicit(&plugin->state, memory_order_acquire) == TN_PLUGIN_LOADED;
    tn_status status = asker && !is_own ? plugin_need(asker, plugin, id) : TN_OK;
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
                             : "the output pointer");
    tn_status status = life_check(&runtime->life);
    if (status != TN_OK)
        return status;
    return plugin_find_interface(runtime, NULL, id, NULL, out_interface, out_host);
}
