// SPDX-License-Identifier: MIT
// Quarantine: a plugin whose backend crashed or hung while a probe process watched is
// refused until its files change. An entry in the disk cache holds the reason; its key has
// the hashes of all files of the plugin. A second entry, `any`, says that there are such
// entries: an empty quarantine costs one lookup. The cache may evict the entries; then the
// plugin is tried again.
#include "plugin.h"

#include <string.h>
#include <unistd.h>
#include "../../base/sha256.h"
#include "../cache/cache.h"

#define KEY_HEAD "tenon.quarantine/1 "

struct key {
    char head[sizeof(KEY_HEAD)];
    unsigned char sha256[32]; // of the hashes of the plugin's files
};

static const char any[] = KEY_HEAD "any";

static struct key quarantine_key_of(const struct manifest *manifest)
{
    struct key key = {.head = KEY_HEAD};
    struct sha256_ctx state;
    sha256_init(&state);
    for (uint32_t i = 0; i < manifest->num_files; i++)
        sha256_update(&state, 32, manifest->files[i].sha256);
    sha256_digest(&state, 32, key.sha256);
    return key;
}

static void quarantine_refuse(struct plugin *plugin, const char *why, size_t size)
{
    const char *id = plugin->manifest.id;
    reason_record(&plugin->reason, TN_ERR_REFUSED, REASON_QUARANTINED, id,
                  "%s is in quarantine: %.*s", id, (int)size, why);
    plugin->state = TN_PLUGIN_REFUSED;
    log_write(plugin->set->runtime->config, TN_LOG_WARN, "plugin", "refused: %s",
              plugin->reason.text);
}

void find_quarantined(struct plugin_set *set)
{
    int cache = cache_open(set->runtime->config);
    void *why = NULL;
    uint64_t size;
    bool are_any = cache_load_from(cache, any, sizeof(any), &why, &size) == TN_OK;
    mem_free(why);
    for (uint32_t i = 0; i < set->count && are_any; i++) {
        struct plugin *plugin = set->plugins[i];
        if (plugin->state != TN_PLUGIN_FOUND || !plugin->manifest.num_backends)
            continue;
        struct key key = quarantine_key_of(&plugin->manifest);
        if (cache_load_from(cache, &key, sizeof(key), &why, &size) != TN_OK)
            continue;
        quarantine_refuse(plugin, why, size < 512 ? size : 512);
        mem_free(why);
    }
    if (cache >= 0)
        close(cache);
}

static tn_status find_quarantine(struct plugin *plugin, const char *reason)
{
    const struct config *config = plugin->set->runtime->config;
    struct key key = quarantine_key_of(&plugin->manifest);
    const char *id = plugin->manifest.id;
    const tn_cache_about about = {.struct_size = sizeof(about), .kind = "quarantine"};
    if (!cache_store(config, &key, sizeof(key), reason, strlen(reason), id, &about) ||
        !cache_store(config, any, sizeof(any), "yes", 3, NULL, &about))
        return fail(TN_ERR_IO,
                    "%s cannot be put in quarantine: no cache can be written; "
                    "TENON_CACHE_DIR names one",
                    plugin->manifest.id);
    pthread_mutex_lock(&plugin->set->lock);
    if (plugin->state == TN_PLUGIN_FOUND)
        quarantine_refuse(plugin, reason, strlen(reason));
    pthread_mutex_unlock(&plugin->set->lock);
    fail_clear();
    return TN_OK;
}

tn_status tn_plugin_quarantine(tn_runtime *runtime, const char *id, const char *reason)
{
    tn_status status = fail_if_null("plugin_quarantine", "the runtime", runtime);
    if (status == TN_OK)
        status = fail_if_null("plugin_quarantine", "the plugin's id", id);
    if (status == TN_OK)
        status = life_check(&runtime->life);
    if (status != TN_OK)
        return status;
    struct plugin_set *set = runtime->plugins;
    bool found = false;
    for (uint32_t i = 0; i < set->count; i++) {
        struct plugin *plugin = set->plugins[i];
        const struct manifest *manifest = &plugin->manifest;
        if (!manifest->id || strcmp(manifest->id, id) != 0 || !manifest->num_backends)
            continue;
        struct key key = quarantine_key_of(manifest);
        found |= !reason || plugin_is_available(plugin);
        if (!reason)
            cache_remove(runtime->config, &key, sizeof(key));
        else if (plugin_is_available(plugin))
            return find_quarantine(plugin, reason);
    }
    return found ? TN_OK
                 : fail(TN_ERR_NOT_FOUND, "no plugin '%s' with a backend %s", id,
                        reason ? "is in use" : "is installed");
}
