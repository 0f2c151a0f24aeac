// SPDX-License-Identifier: MIT
// The command that gives reasons.
#ifndef TOOLS_TENON_WHY_COMMANDS_H
#define TOOLS_TENON_WHY_COMMANDS_H

#include "base/args.h"

int cmd_why(const struct command *self, int argc, char **argv);

#endif // TOOLS_TENON_WHY_COMMANDS_H
