// SPDX-License-Identifier: MIT
// Commands of this folder, for the table in main.c.
#ifndef TOOLS_TENON_CACHE_COMMANDS_H
#define TOOLS_TENON_CACHE_COMMANDS_H

#include "base/args.h"

int cmd_cache(const struct command *self, int argc, char **argv);
int cmd_cache_prune(const struct command *self, int argc, char **argv);
int cmd_cache_warm(const struct command *self, int argc, char **argv);
int cmd_cache_pack(const struct command *self, int argc, char **argv);
int cmd_cache_unpack(const struct command *self, int argc, char **argv);

#endif // TOOLS_TENON_CACHE_COMMANDS_H
