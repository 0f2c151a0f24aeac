// SPDX-License-Identifier: MIT
// Commands about operators.
#ifndef TOOLS_TENON_OPS_COMMANDS_H
#define TOOLS_TENON_OPS_COMMANDS_H

#include "base/args.h"

int cmd_ops(const struct command *self, int argc, char **argv);
int cmd_op(const struct command *self, int argc, char **argv);

#endif // TOOLS_TENON_OPS_COMMANDS_H
