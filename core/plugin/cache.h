// SPDX-License-Identifier: MIT
// The disk cache's upkeep, apart from its service.
#ifndef CORE_PLUGIN_CACHE_H
#define CORE_PLUGIN_CACHE_H

#include <stdint.h>

#define CACHE_MAX_TOTAL ((uint64_t)256 << 20)

// Removes the entries longest unused when they are more than max_total bytes in all, until
// three quarters of that are left. Gives the bytes left.
uint64_t cache_prune(int directory, uint64_t max_total);

#endif // CORE_PLUGIN_CACHE_H
