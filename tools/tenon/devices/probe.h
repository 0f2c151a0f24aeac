// SPDX-License-Identifier: MIT
// Backends probed in child processes.
#ifndef TOOLS_TENON_DEVICES_PROBE_H
#define TOOLS_TENON_DEVICES_PROBE_H

#include "base/tool.h"

// Lists the devices of each plugin with backends, one plugin at a time, in a child that may
// take `seconds`. Calls `tell` for a child that crashes or hangs: `fault` is "crashed
// (Aborted)"; `is_own` is true when the plugin was being loaded and its code is to blame.
// Ends when `tell` fails.
typedef int probe_tell(void *context, const char *id, const char *fault, bool is_own);
int probe_each(tn_runtime *runtime, int seconds, probe_tell *tell, void *context);

// Puts plugins whose own code fails in quarantine, leaves out others that fail, and reports
// both on standard error.
int probe_backends(int seconds);

#endif // TOOLS_TENON_DEVICES_PROBE_H
