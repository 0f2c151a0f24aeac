// SPDX-License-Identifier: MIT
// The command that writes headers.
#ifndef TOOLS_TENON_HEADER_COMMANDS_H
#define TOOLS_TENON_HEADER_COMMANDS_H

#include "base/args.h"

int cmd_header(const struct command *self, int argc, char **argv);

#endif // TOOLS_TENON_HEADER_COMMANDS_H
