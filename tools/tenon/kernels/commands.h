// SPDX-License-Identifier: MIT
// Commands of this folder, for the table in main.c.
#ifndef TOOLS_TENON_KERNELS_COMMANDS_H
#define TOOLS_TENON_KERNELS_COMMANDS_H

#include <jansson.h>
#include "base/args.h"

// Gives each kernel of a report what its launches cost, from the costs of the launches, and
// the report the sums, and what all launches take in one run: as they are, and of baked
// code. (cost.c)
void add_costs(json_t *report, const double whole_us[2]);
int print_costs(const json_t *report);

int cmd_kernels(const struct command *self, int argc, char **argv);

#endif // TOOLS_TENON_KERNELS_COMMANDS_H
