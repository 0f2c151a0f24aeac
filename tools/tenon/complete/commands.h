// SPDX-License-Identifier: MIT
// Commands about the commands themselves.
#ifndef TOOLS_TENON_COMPLETE_COMMANDS_H
#define TOOLS_TENON_COMPLETE_COMMANDS_H

#include "base/args.h"

int cmd_commands(const struct command *self, int argc, char **argv);
int cmd_completion(const struct command *self, int argc, char **argv);

#endif // TOOLS_TENON_COMPLETE_COMMANDS_H
