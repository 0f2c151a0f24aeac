// SPDX-License-Identifier: MIT
// Loading a plugin, as the files of core/plugin share it. The rest of the core uses
// plugins.h.
#ifndef CORE_PLUGIN_LOAD_LOAD_H
#define CORE_PLUGIN_LOAD_LOAD_H

#include "../find/plugin.h"
#include "copy.h"
#include "plugins.h"

// load.c: calls init, queries the interface tables and checks them. `entry` and `module`
// are set before.
tn_status plugin_start(struct plugin *plugin, uint32_t minor, struct reason *reason);
// Calls deinit if init succeeded, and clears the interface tables.
void plugin_stop(struct plugin *plugin);
// Stops the plugin and releases its module.
void plugin_unload(struct plugin *plugin);

// provider.c: whether the manifest lists the interface; loads the plugin, and gives the
// interface.
bool plugin_offers(const struct plugin *plugin, const char *id);
tn_status plugin_interface(struct plugin *plugin, const char *id,
                           const void **out_interface, const tn_host **out_host);
// Loads the plugin that offers the interface `id`. `asker` is the plugin that asks, NULL
// for the application. `maker`, or NULL, is what the message tells to install when no
// plugin offers the interface.
tn_status plugin_find_interface(tn_runtime *runtime, struct plugin *asker, const char *id,
                                const char *maker, const void **out_interface,
                                const tn_host **out_host);

// needs.c: records that `asker` uses `interface` of `provider`, so that `provider` stays
// loaded until `asker` is unloaded. TN_ERR_REFUSED when the provider needs the asker,
// directly or through other plugins.
tn_status plugin_need(struct plugin *asker, struct plugin *provider, const char *interface);
void plugin_drop_needs(struct plugin *asker);
bool plugin_needs(const struct plugin *asker, const struct plugin *provider); // directly

// Result of plugin_check(), which checks everything that can be checked without running the
// plugin's code.
struct checked {
    struct objects objects; // owned: objects_close()
    tn_note note;
};
tn_status plugin_check(const struct trust *trust, const char *directory,
                       const struct manifest *manifest, struct checked *out,
                       struct reason *reason);

#endif // CORE_PLUGIN_LOAD_LOAD_H
