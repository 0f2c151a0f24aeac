// SPDX-License-Identifier: MIT
// Commands that take expressions.
#ifndef TOOLS_TENON_EVAL_COMMANDS_H
#define TOOLS_TENON_EVAL_COMMANDS_H

#include "base/args.h"

int cmd_eval(const struct command *self, int argc, char **argv);
int cmd_graph(const struct command *self, int argc, char **argv);

#endif // TOOLS_TENON_EVAL_COMMANDS_H
