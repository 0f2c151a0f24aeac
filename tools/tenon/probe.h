// SPDX-License-Identifier: MIT
// Backends tried in processes of their own.
#ifndef TOOLS_TENON_PROBE_H
#define TOOLS_TENON_PROBE_H

#include "tool.h"

// Lists the devices of each backend's plugin in a child that may take `seconds`. Those that
// crash or hang are put in quarantine with the reason, told on standard error.
int probe_backends(int seconds);

#endif // TOOLS_TENON_PROBE_H
