// SPDX-License-Identifier: MIT
// The commands about models.
#ifndef TOOLS_TENON_MODEL_COMMANDS_H
#define TOOLS_TENON_MODEL_COMMANDS_H

#include "base/args.h"

int cmd_model(const struct command *self, int argc, char **argv);

#endif // TOOLS_TENON_MODEL_COMMANDS_H
