// SPDX-License-Identifier: MIT
// Commands that are programs of their own.
#ifndef TOOLS_TENON_PROGRAMS_COMMANDS_H
#define TOOLS_TENON_PROGRAMS_COMMANDS_H

#include "base/args.h"

int cmd_train(const struct command *self, int argc, char **argv);
int cmd_bench(const struct command *self, int argc, char **argv);
// generate, chat, embed, perplexity, train lora, model imatrix.
int cmd_lm(const struct command *self, int argc, char **argv);
int cmd_check(const struct command *self, int argc, char **argv);

#endif // TOOLS_TENON_PROGRAMS_COMMANDS_H
