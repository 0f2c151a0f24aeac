// SPDX-License-Identifier: MIT
// The service TN_HOST_CACHE: a plugin stores and finds entries of the disk cache.
#include "host.h"

#include "../cache/cache.h"

static tn_status cache_get(const tn_host *host, const void *key, uint64_t key_size,
                           void **out_data, uint64_t *out_size)
{
    tn_runtime *runtime = host->self->runtime;
    tn_status status = cache_load(runtime->config, key, key_size, out_data, out_size);
    atomic_fetch_add(status == TN_OK ? &runtime->cache_found : &runtime->cache_missed, 1);
    return status;
}

static void cache_put(const tn_host *host, const void *key, uint64_t key_size,
                      const void *data, uint64_t size, const tn_cache_about *about)
{
    tn_runtime *runtime = host->self->runtime;
    const struct plugin *plugin = host->self->plugin;
    if (!cache_store(runtime->config, key, key_size, data, size,
                     plugin ? plugin->manifest.id : NULL, about))
        atomic_fetch_add(&runtime->cache_unstored, 1);
}

const tn_host_cache *cache_service(tn_runtime *runtime)
{
    static const tn_host_cache cache = {
        .struct_size = sizeof(cache), .get = cache_get, .put = cache_put};
    const struct config *config = runtime->config;
    bool has_directory = config_get(config, "TENON_CACHE_DIR") || config_cache_home(config);
    return has_directory ? &cache : NULL;
}
