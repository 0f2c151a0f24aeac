// SPDX-License-Identifier: MIT
// One operator, by name.
#ifndef TOOLS_TENON_OPS_OP_H
#define TOOLS_TENON_OPS_OP_H

#include <jansson.h>
#include "base/tool.h"

// Fails with the nearest primitive, or with the unused plugin that provides the operator.
int no_primitive(tn_runtime *runtime, const char *name);

// All facts about a primitive, as JSON.
json_t *op_json(const tn_runtime *runtime, const tn_primitive *primitive);

#endif // TOOLS_TENON_OPS_OP_H
