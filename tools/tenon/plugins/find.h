// SPDX-License-Identifier: MIT
// Plugins of a runtime by their ids.
#ifndef TOOLS_TENON_PLUGINS_FIND_H
#define TOOLS_TENON_PLUGINS_FIND_H

#include "base/tool.h"

// "found", "loaded", "refused", ...
const char *plugin_state_name(uint32_t state);

// True when the plugin can be used: found, perhaps loaded.
bool plugin_is_in_use(const tn_plugin_info *info);

// True when this is the plugin's id. A refused plugin without a known id goes by its
// directory.
bool plugin_is_named(const tn_plugin_info *info, const char *id);

// Finds the plugin of this id, one in use before others. False: there is none.
bool plugin_find(const tn_runtime *runtime, const char *id, tn_plugin_info *out);

// Fails, and names the nearest id.
int no_plugin(const tn_runtime *runtime, const char *id);

#endif // TOOLS_TENON_PLUGINS_FIND_H
