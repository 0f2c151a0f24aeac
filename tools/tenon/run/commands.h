// SPDX-License-Identifier: MIT
// tenon run: starts a command as several processes, and watches them.
#ifndef TOOLS_TENON_RUN_COMMANDS_H
#define TOOLS_TENON_RUN_COMMANDS_H

#include "base/args.h"

int cmd_run(const struct command *self, int argc, char **argv);

#endif // TOOLS_TENON_RUN_COMMANDS_H
