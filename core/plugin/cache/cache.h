// SPDX-License-Identifier: MIT
// The disk cache: entries found by key, of bounded total size. Plugins use it as the
// service TN_HOST_CACHE (host.h).
#ifndef CORE_PLUGIN_CACHE_CACHE_H
#define CORE_PLUGIN_CACHE_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <tenon/host.h>
#include "../../base/config.h"

// Opens the cache's directory; the caller closes it. -1 when there is no usable directory;
// cache_load_from() then finds nothing.
int cache_open(const struct config *config);
// Gives a copy of the entry under `key` (mem_free). TN_ERR_NOT_FOUND when there is no
// entry, or a damaged one, which is removed.
tn_status cache_load_from(int directory, const void *key, uint64_t key_size,
                          void **out_data, uint64_t *out_size);
// As cache_load_from(), in the cache's own directory.
tn_status cache_load(const struct config *config, const void *key, uint64_t key_size,
                     void **out_data, uint64_t *out_size);
// Stores a copy of `data` under `key`; false when that failed. `plugin`: the id of whose it
// is, or NULL. `about` may be NULL.
bool cache_store(const struct config *config, const void *key, uint64_t key_size,
                 const void *data, uint64_t size, const char *plugin,
                 const tn_cache_about *about);
void cache_remove(const struct config *config, const void *key, uint64_t key_size);

// Opens an empty, unnamed file (O_TMPFILE) in the cache's file system for writing and
// reading; the caller closes it. -1 when that failed.
int cache_nameless_file(const struct config *config);

#define CACHE_MAX_TOTAL ((uint64_t)256 << 20) // bytes

// Cache eviction (LRU): when all entries together exceed `max_total` bytes, removes the
// least recently used ones until three quarters of `max_total` are left. Returns the bytes
// left.
uint64_t cache_prune(int directory, uint64_t max_total);

#endif // CORE_PLUGIN_CACHE_CACHE_H
