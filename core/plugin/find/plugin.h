// SPDX-License-Identifier: MIT
// One plugin, and the set of plugins of one runtime, as the files of core/plugin share
// them; and how they are found. The rest of the core uses load/plugins.h.
#ifndef CORE_PLUGIN_FIND_PLUGIN_H
#define CORE_PLUGIN_FIND_PLUGIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <tenon/plugin.h>
#include <tenon/tenon.h>
#include "../../base/runtime.h"
#include "manifest.h"
#include "reason.h"
#include "signature.h"

struct module;
struct plugin;

// Source of a plugin's call of the core.
struct tn_host_self {
    tn_runtime *runtime;
    struct plugin *plugin;
    const char *prefix; // of failure messages: the plugin's id; NULL for op packs, whose
                        // messages the core prefixes with the operator's name
};

// Internal states of a plugin, beside the TN_PLUGIN_... of tn_plugin_info.
enum {
    PLUGIN_LOADING = 100,   // being loaded by the thread `loader`
    PLUGIN_DESCRIBED = 101, // loaded by tn_plugin_describe(); not listed in set->plugins
};

// One plugin directory. After the search, `state` and `reason` change only under set->lock.
struct plugin {
    struct plugin_set *set;
    char *directory;
    char *file;               // path of the shared object; NULL without a manifest
    struct manifest manifest; // empty when plugin.json could not be read
    struct reason reason;     // why `state` is REFUSED, SHADOWED or DISABLED; constant then
    _Atomic int32_t state;    // TN_PLUGIN_... or PLUGIN_...
    pthread_t loader;         // the loading thread, while `state` is PLUGIN_LOADING

    // Written by the loader thread alone; constant once `state` is LOADED or REFUSED.
    struct plugin *newer; // the version in `directory` at load time, if upgraded since the
                          // search; else NULL
    struct module *module;
    const tn_plugin *entry;
    const tn_backend *backend; // or NULL
    const tn_ops *ops;         // or NULL
    struct tn_host_self self;
    tn_host host;          // that of the set, with `self` and the effective minor
    struct plugin **needs; // plugins that this one uses; under set->lock (needs.c)
    uint32_t num_needs, max_needs;
    bool is_initialised; // init succeeded, so deinit is due
    // Other threads may hold some of its primitives or kernels. Set by any thread of a
    // loaded plugin, too: primitives.add.
    _Atomic bool is_registered;
};

// Constant after plugin_set_create(), but for the state of its plugins.
struct plugin_set {
    tn_runtime *runtime;
    struct trust trust;
    tn_host host;            // what each plugin is given, but for `self` and abi_minor
    struct plugin **plugins; // in search order
    uint32_t count, capacity;
    char *directories; // directories that were searched, for messages: "/a, /b"; NULL: none
    pthread_mutex_t lock;   // guards state, reason and needs of all plugins
    pthread_cond_t changed; // signalled when a plugin leaves PLUGIN_LOADING
    const char **backend_names, **default_backends, **primitive_names; // NULL-terminated
};

// find.c: fills the set from the search path, and marks quarantined, shadowed and disabled
// plugins.
tn_status find_plugins(struct plugin_set *set, const char *extra_path);

// Reads the plugin in `directory`, which is `name` below the descriptor `at`. Gives a
// plugin, found or refused, or NULL when the directory holds no manifest.
tn_status find_plugin_at(const struct trust *trust, int at, const char *name,
                         const char *directory, struct plugin **out_plugin);
// Frees a plugin that is not loaded (any more). NULL is fine.
void plugin_destroy(struct plugin *plugin);

// quarantine.c: refuses the found plugins that are in quarantine.
void find_quarantined(struct plugin_set *set);

static inline bool plugin_is_available(const struct plugin *plugin)
{
    int32_t state = atomic_load_explicit(&plugin->state, memory_order_acquire);
    return state == TN_PLUGIN_FOUND || state == TN_PLUGIN_LOADED || state == PLUGIN_LOADING;
}

#endif // CORE_PLUGIN_FIND_PLUGIN_H
