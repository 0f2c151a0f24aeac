// SPDX-License-Identifier: MIT
// The list of devices.
#ifndef TOOLS_TENON_DEVICES_DEVICES_H
#define TOOLS_TENON_DEVICES_DEVICES_H

#include <jansson.h>
#include "base/tool.h"

// Appends the rows of `tenon devices`: one for each device, or one with a "reason" for a
// backend without devices.
int devices_json(tn_runtime *runtime, json_t *rows);

#endif // TOOLS_TENON_DEVICES_DEVICES_H
