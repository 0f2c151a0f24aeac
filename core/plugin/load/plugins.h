// SPDX-License-Identifier: MIT
// The plugins of one runtime as the rest of the core uses them: found by their manifests,
// loaded on first use.
#ifndef CORE_PLUGIN_LOAD_PLUGINS_H
#define CORE_PLUGIN_LOAD_PLUGINS_H

#include <tenon/plugin.h>
#include "../../base/runtime.h"

struct plugin; // one plugin of one runtime

const char *plugin_id(const struct plugin *plugin);
const tn_host *plugin_host(const struct plugin *plugin); // valid once loaded

// Loads a plugin unless it is loaded: trust, dlopen, ABI negotiation, init, and
// registration of its primitives and kernels (prim_register, kernel_register). Waits when
// another thread is loading the plugin.
tn_status plugin_load(struct plugin *plugin);

// Loads all plugins whose manifest lists the primitive `name` ("acme.axpby/1",
// "acme.axpby", or "axpby" alone). TN_ERR_NOT_FOUND when none could be loaded; the message
// gives the refused plugin that has the primitive, and why, or the nearest known name.
tn_status plugin_load_primitive(tn_runtime *runtime, const char *name);

// Loads the plugins that bring kernels for the primitive `id` in one of `families`
// (NULL-terminated). A plugin that cannot be loaded is skipped; its reason is kept.
tn_status plugin_load_kernels(tn_runtime *runtime, const char *id,
                              const char *const *families);

// Loads the plugin with the backend `name` (as in TENON_BACKEND) and gives the backend's
// table. The backend's slots take plugin_host(*out_plugin).
tn_status plugin_backend(tn_runtime *runtime, const char *name,
                         const tn_backend **out_backend, struct plugin **out_plugin);

// Fails with TN_ERR_NOT_FOUND and the reason why no backend can be chosen by default.
tn_status plugin_no_default(const tn_runtime *runtime);

// provider.c: as tn_provider_find, for the plugin with a selector of kind "folder" that
// names a file in the open folder `directory`.
tn_status plugin_in_folder(tn_runtime *runtime, const char *id, int directory,
                           const char **out_plugin);

// Names of all backends in the manifests of usable plugins, in byte order, NULL-terminated.
// Borrowed until the runtime closes.
const char *const *plugin_backend_names(tn_runtime *runtime);

// Ids of all primitives in the manifests of usable plugins, in byte order, each once,
// NULL-terminated. Borrowed until the runtime closes.
const char *const *plugin_primitive_names(tn_runtime *runtime);

// Names of the backends that may be used when TENON_BACKEND is unset: those whose manifest
// carries the flag TN_BACKEND_DEFAULT, in byte order, NULL-terminated. Borrowed until the
// runtime closes.
const char *const *plugin_default_backends(tn_runtime *runtime);

#endif // CORE_PLUGIN_LOAD_PLUGINS_H
