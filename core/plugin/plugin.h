// SPDX-License-Identifier: MIT
// The plugins of one runtime, as the files of this folder see them.
#ifndef CORE_PLUGIN_PLUGIN_H
#define CORE_PLUGIN_PLUGIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <tenon/plugin.h>
#include <tenon/tenon.h>
#include "copy.h"
#include "host.h"
#include "manifest.h"
#include "plugin_set.h"
#include "reason.h"
#include "signature.h"

struct module;

// A state beside those of tn_plugin_info: a thread is at it.
enum { PLUGIN_LOADING = 100 };

struct plugin {
    struct plugin_set *set;
    char *directory;
    char *file;               // path of the shared object; NULL without a manifest
    struct manifest manifest; // empty when it was refused
    struct reason reason;     // constant once the state says that there is one
    _Atomic int32_t state;    // TN_PLUGIN_..., or PLUGIN_LOADING; changed under set->lock
    pthread_t loader;         // who is loading it

    // Written by the loader; constant once LOADED or REFUSED.
    struct plugin *newer; // what lay there then, when it was upgraded since it was found
    struct module *module;
    const tn_plugin *entry;
    const tn_backend *backend; // or NULL
    const tn_ops *ops;         // or NULL
    struct tn_host_self self;
    tn_host host;
    bool is_initialised; // deinit is due
    bool is_registered;  // some of its primitives or kernels were found by others, perhaps
};

struct plugin_set {
    tn_runtime *runtime;
    struct trust trust;
    struct plugin **plugins; // in the order of search
    uint32_t count, capacity;
    char *folders; // those that were searched, for messages: "/a, /b"; NULL: none
    pthread_mutex_t lock;
    pthread_cond_t changed; // a plugin is no longer LOADING
    const char **backend_names, **default_backends, **primitive_names; // ended by NULL
};

// find.c: fills the set from the search path; decides on duplicates and disabled ones.
tn_status find_plugins(struct plugin_set *set, const char *extra_path);

// Reads what lies in `directory`, already open. Gives a plugin, refused or not, or NULL
// when it holds no manifest.
tn_status find_plugin_at(const struct trust *trust, int at, const char *name,
                         const char *directory, struct plugin **out_plugin);
void plugin_destroy(struct plugin *plugin);

// load.c
void plugin_unload(struct plugin *plugin);

// Everything that can be checked without running code.
struct checked {
    struct objects objects; // close them
    tn_note note;
};
tn_status plugin_check(const struct trust *trust, const char *directory,
                       const struct manifest *manifest, struct checked *out,
                       struct reason *reason);

// quarantine.c: refuses the found plugins that are in quarantine.
void find_quarantined(struct plugin_set *set);

static inline bool plugin_is_available(const struct plugin *plugin)
{
    int32_t state = atomic_load_explicit(&plugin->state, memory_order_acquire);
    return state == TN_PLUGIN_FOUND || state == TN_PLUGIN_LOADED || state == PLUGIN_LOADING;
}

#endif // CORE_PLUGIN_PLUGIN_H
