// SPDX-License-Identifier: MIT
// Installed plugins, for a plugin that compares them with those of other processes: a
// service of the host.
//
//   const tn_host_installed *installed = host->query(host, TN_HOST_INSTALLED);
//   const char *id, *version;
//   for (uint64_t i = 0; installed && installed->get(host, i, &id, &version); i++)
//       ...
//
// Threads. Any thread.
#ifndef TENON_INSTALLED_H
#define TENON_INSTALLED_H

#include <tenon/host.h>

// Service: ids and versions of plugins.
#define TN_HOST_INSTALLED "tn.host.installed/1"
typedef struct tn_host_installed {
    uint32_t struct_size;
    uint32_t flags; // 0

    // Gives id and version of plugin `index` of those that this runtime has loaded or can
    // load, from 0, in the order of the search. 0: there are no more. Borrows; the texts
    // live as long as the host.
    int32_t (*get)(const tn_host *host, uint64_t index, const char **out_id,
                   const char **out_version);
} tn_host_installed;

#endif // TENON_INSTALLED_H
