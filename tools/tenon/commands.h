// SPDX-License-Identifier: MIT
// The subcommands, one file each (cmd_NAME.c), and what some of them share.
#ifndef TOOLS_TENON_COMMANDS_H
#define TOOLS_TENON_COMMANDS_H

#include "args.h"
#include "table.h"

int cmd_plugins(const struct command *self, int argc, char **argv);
int cmd_plugin(const struct command *self, int argc, char **argv);
int cmd_plugin_install(const struct command *self, int argc, char **argv);
int cmd_plugin_upgrade(const struct command *self, int argc, char **argv);
int cmd_plugin_pack(const struct command *self, int argc, char **argv);
int cmd_plugin_sign(const struct command *self, int argc, char **argv);
int cmd_plugin_remove(const struct command *self, int argc, char **argv);
int cmd_trust(const struct command *self, int argc, char **argv);
int cmd_devices(const struct command *self, int argc, char **argv);
int cmd_ops(const struct command *self, int argc, char **argv);
int cmd_op(const struct command *self, int argc, char **argv);
int cmd_header(const struct command *self, int argc, char **argv);
int cmd_eval(const struct command *self, int argc, char **argv);
int cmd_why(const struct command *self, int argc, char **argv);
int cmd_check(const struct command *self, int argc, char **argv);
int cmd_graph(const struct command *self, int argc, char **argv);
int cmd_train(const struct command *self, int argc, char **argv);
int cmd_ffi(const struct command *self, int argc, char **argv);
int cmd_new(const struct command *self, int argc, char **argv);
int cmd_bench(const struct command *self, int argc, char **argv);
int cmd_commands(const struct command *self, int argc, char **argv);
int cmd_doctor(const struct command *self, int argc, char **argv);
int cmd_completion(const struct command *self, int argc, char **argv);

// What every command says of itself: see commands_describe().
int describe_all(json_t *rows);

// "found", "loaded", "refused", ...
const char *plugin_state_name(uint32_t state);
// Whether this is its id; a refused one whose id is not known goes by its directory.
bool plugin_is_named(const tn_plugin_info *info, const char *id);
// The plugin of this id, the one in use before those that are not. False when none.
bool plugin_find(const tn_runtime *runtime, const char *id, tn_plugin_info *out);
// Fails with the nearest id.
int no_plugin(const tn_runtime *runtime, const char *id);
// Fails with the nearest primitive, and says when a plugin that is not in use provides it.
int no_primitive(tn_runtime *runtime, const char *name);

// Appends what `tenon devices` lists: an object a device, or one with a "reason" for a
// backend without.
int devices_json(tn_runtime *runtime, json_t *rows);

// Everything known of a primitive, as JSON.
json_t *op_json(tn_runtime *runtime, const tn_primitive *primitive);

#endif // TOOLS_TENON_COMMANDS_H
