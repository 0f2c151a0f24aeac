// SPDX-License-Identifier: MIT
// The command that begins plugins.
#ifndef TOOLS_TENON_NEW_COMMANDS_H
#define TOOLS_TENON_NEW_COMMANDS_H

#include "base/args.h"

int cmd_new(const struct command *self, int argc, char **argv);

#endif // TOOLS_TENON_NEW_COMMANDS_H
