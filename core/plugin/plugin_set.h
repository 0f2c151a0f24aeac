// SPDX-License-Identifier: MIT
// The plugin set of a runtime.
#ifndef CORE_PLUGIN_PLUGIN_SET_H
#define CORE_PLUGIN_PLUGIN_SET_H

#include "../base/runtime.h"

// Called when a runtime opens and closes. Creation reads manifests and loads no code.
tn_status plugin_set_create(tn_runtime *runtime, const char *extra_path);
void plugin_set_destroy(tn_runtime *runtime);

#endif // CORE_PLUGIN_PLUGIN_SET_H
