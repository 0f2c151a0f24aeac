// SPDX-License-Identifier: MIT
// Commands of this folder, for the table in main.c.
#ifndef TOOLS_TENON_KERNELS_COMMANDS_H
#define TOOLS_TENON_KERNELS_COMMANDS_H

#include "base/args.h"

int cmd_kernels(const struct command *self, int argc, char **argv);

#endif // TOOLS_TENON_KERNELS_COMMANDS_H
