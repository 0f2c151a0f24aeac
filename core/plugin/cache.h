// SPDX-License-Identifier: MIT
// The disk cache's upkeep, apart from its service.
#ifndef CORE_PLUGIN_CACHE_H
#define CORE_PLUGIN_CACHE_H

#include <stdint.h>
#include "../base/config.h"

// An entry by its key; mem_free it. TN_ERR_NOT_FOUND: there is none that is sound.
tn_status cache_load(const struct config *config, const void *key, uint64_t key_size,
                     void **out_data, uint64_t *out_size);
// The same for many entries: cache_open() gives the cache's directory to close(), or -1
// when there is none, in which nothing is found.
int cache_open(const struct config *config);
tn_status cache_load_from(int directory, const void *key, uint64_t key_size,
                          void **out_data, uint64_t *out_size);
// False when it could not be stored.
bool cache_store(const struct config *config, const void *key, uint64_t key_size,
                 const void *data, uint64_t size);
void cache_remove(const struct config *config, const void *key, uint64_t key_size);

// An empty file without a name in the cache's file system, to write and read; -1: none.
int cache_nameless_file(const struct config *config);

#define CACHE_MAX_TOTAL ((uint64_t)256 << 20)

// Removes the entries longest unused when they are more than max_total bytes in all, until
// three quarters of that are left. Gives the bytes left.
uint64_t cache_prune(int directory, uint64_t max_total);

#endif // CORE_PLUGIN_CACHE_H
