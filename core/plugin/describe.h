// SPDX-License-Identifier: MIT
// Texts about a plugin: its manifest (describe.c), and its operators (describe_ops.c).
#ifndef CORE_PLUGIN_DESCRIBE_H
#define CORE_PLUGIN_DESCRIBE_H

#include <jansson.h>
#include <tenon/tenon.h>

#define OPS_FORMAT 1

// Gives the entry of ops.json for a plugin's record, which it checks.
tn_status describe_operator(tn_runtime *runtime, const tn_primitive *given, json_t **out);

#endif // CORE_PLUGIN_DESCRIBE_H
