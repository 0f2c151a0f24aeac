// SPDX-License-Identifier: MIT
// Plugins as the rest of the core sees them: who provides what, loaded on first use.
//
// Threads. All functions may be called from any thread. No lock is held while plugin code
// runs.
#ifndef CORE_PLUGIN_PLUGIN_SET_H
#define CORE_PLUGIN_PLUGIN_SET_H

#include <tenon/plugin.h>
#include "../runtime.h"

struct plugin; // one plugin of one runtime

const char *plugin_id(const struct plugin *plugin);
const tn_host *plugin_host(const struct plugin *plugin); // valid once loaded

// Loads a plugin unless it is loaded: trust, dlopen, negotiate, init, and registration of
// its primitives and kernels (prim_register, kernel_register).
tn_status plugin_load(struct plugin *plugin);

// Loads the plugins that by their manifests provide this primitive ("acme.axpby/1",
// "acme.axpby", or "axpby" alone). TN_ERR_NOT_FOUND, with the nearest name or the refused
// plugin that would have it and why, when nobody does.
tn_status plugin_load_primitive(tn_runtime *runtime, const char *name);

// Loads the plugins that bring kernels for the primitive `id` in one of `families` (ended
// by NULL). One that cannot be loaded is left out; its reason is kept.
tn_status plugin_load_kernels(tn_runtime *runtime, const char *id,
                              const char *const *families);

// The backend named as in TENON_BACKEND, its plugin loaded. The plugin's host is what the
// slots are called with.
tn_status plugin_backend(tn_runtime *runtime, const char *name,
                         const tn_backend **out_backend, struct plugin **out_plugin);

// Records why no backend could be chosen, and what lacks; returns TN_ERR_NOT_FOUND.
tn_status plugin_no_default(const tn_runtime *runtime);

// Names of all backends by their manifests, in byte order, ended by NULL. Borrowed.
const char *const *plugin_backend_names(tn_runtime *runtime);

// Ids of all primitives by the manifests, in byte order, each once, ended by NULL. Borrowed
// until the runtime closes.
const char *const *plugin_primitive_names(tn_runtime *runtime);

// Names of the backends that may be used when TENON_BACKEND is unset: those whose manifest
// carries the flag TN_BACKEND_DEFAULT, in byte order, ended by NULL. Borrowed.
const char *const *plugin_default_backends(tn_runtime *runtime);

#endif // CORE_PLUGIN_PLUGIN_SET_H
