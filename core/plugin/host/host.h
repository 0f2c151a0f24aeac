// SPDX-License-Identifier: MIT
// The core's side of tn_host: the table, and the services that tn_host.query gives.
#ifndef CORE_PLUGIN_HOST_HOST_H
#define CORE_PLUGIN_HOST_HOST_H

#include <stdbool.h>
#include <tenon/installed.h>
#include <tenon/plugin.h>
#include "../find/plugin.h"

// The tn_host table, but for `self` and abi_minor, which differ by plugin.
extern const tn_host host_table;

// Tables of the services; NULL when the runtime lacks the service.
const tn_host_cache *cache_service(tn_runtime *runtime);
const tn_host_primitives *primitives_service(void); // interface.c
const tn_host_interfaces *interfaces_service(void); // interface.c
const tn_host_callbacks *callbacks_service(void);   // callback.c
const tn_host_files *files_service(void);           // files.c
const tn_host_installed *installed_service(void);   // installed.c

// A file's entry in the manifest of the version that is loaded; NULL: it is not listed.
const struct manifest_file *plugin_file(const struct plugin *plugin, const char *name);

// Reads a file of the plugin's directory. `listed` is its entry, which the content must
// match. NULL while tn_plugin_describe() runs: plugin.json does not exist yet, so each file
// of the directory may be read. mem_free the data, behind which a 0 stands.
tn_status plugin_read_file(const struct plugin *plugin, const char *name,
                           const struct manifest_file *listed, char **out_data,
                           size_t *out_size);

// TN_ERR_ARGUMENT when waiting for the runtime would deadlock: the calling thread is in a
// callback that a kernel of this runtime called, or the runtime was inherited by fork().
tn_status callback_check(const tn_runtime *runtime);
// For a function without a status, named `what` in the message: true when the calling
// thread is in a callback of this runtime, so that the function must do nothing. The
// failure is recorded and logged. Does not refuse a runtime inherited by fork(), for which
// nothing is waited for.
bool callback_refuses(const tn_runtime *runtime, const char *what);

#endif // CORE_PLUGIN_HOST_HOST_H
