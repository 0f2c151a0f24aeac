// SPDX-License-Identifier: MIT
// What stands behind tn_host: the plugin and the runtime that a call comes from.
#ifndef CORE_PLUGIN_HOST_H
#define CORE_PLUGIN_HOST_H

#include <stdbool.h>
#include <tenon/plugin.h>
#include "../runtime.h"

struct plugin;

struct tn_host_self {
    tn_runtime *runtime;
    struct plugin *plugin;
    const char *prefix; // put in front of failures: the plugin's id, or NULL for op packs,
                        // whose failures the core puts the operator's name in front of
};

// Fills the table that one plugin of one runtime is called with.
void host_init(tn_host *host, struct tn_host_self *self, uint32_t abi_minor);

// The services. NULL: this runtime has none.
const tn_host_cache *cache_service(tn_runtime *runtime);
const tn_host_trace *trace_service(tn_runtime *runtime); // sched/trace.c
const tn_host_primitives *primitives_service(void);      // interface.c
const tn_host_callbacks *callbacks_service(void);        // callback.c
const tn_host_files *files_service(void);                // files.c

// TN_ERR_ARGUMENT when whatever waits for the runtime would never come back: the calling
// thread is in a callback that a kernel of this runtime called, or in a child of fork().
tn_status callback_check(const tn_runtime *runtime);
// The same for `what`, whose caller may not look: true when it has to do nothing, with the
// failure recorded and in the log. In a child of fork() nothing is waited for: false.
bool callback_keeps(const tn_runtime *runtime, const char *what);

#endif // CORE_PLUGIN_HOST_H
