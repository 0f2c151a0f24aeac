// SPDX-License-Identifier: MIT
// Commands about plugins.
#ifndef TOOLS_TENON_PLUGINS_COMMANDS_H
#define TOOLS_TENON_PLUGINS_COMMANDS_H

#include "base/args.h"

int cmd_plugins(const struct command *self, int argc, char **argv);
int cmd_plugin(const struct command *self, int argc, char **argv);
int cmd_plugin_install(const struct command *self, int argc, char **argv);
int cmd_plugin_upgrade(const struct command *self, int argc, char **argv);
int cmd_plugin_remove(const struct command *self, int argc, char **argv);
int cmd_plugin_bundle(const struct command *self, int argc, char **argv);
int cmd_plugin_pack(const struct command *self, int argc, char **argv);
int cmd_plugin_sign(const struct command *self, int argc, char **argv);
int cmd_trust(const struct command *self, int argc, char **argv);
int cmd_ffi(const struct command *self, int argc, char **argv);

#endif // TOOLS_TENON_PLUGINS_COMMANDS_H
