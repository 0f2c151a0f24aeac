// SPDX-License-Identifier: MIT
// Backends tried in processes of their own.
#ifndef TOOLS_TENON_PROBE_H
#define TOOLS_TENON_PROBE_H

#include "tool.h"

// Lists the devices of each plugin with backends, alone, in a child that may take
// `seconds`. A child that does not end by itself is told: `fault` is "crashed (Aborted)".
// `is_own`: the plugin's code is to blame; it was at least loaded. Ends when `tell` fails.
typedef int probe_tell(void *context, const char *id, const char *fault, bool is_own);
int probe_each(tn_runtime *runtime, int seconds, probe_tell *tell, void *context);

// Puts those in quarantine, with the reason, and tells them on standard error.
int probe_backends(int seconds);

#endif // TOOLS_TENON_PROBE_H
