// SPDX-License-Identifier: MIT
// Commands of this folder, for the table in main.c.
#ifndef TOOLS_TENON_KERNELS_COMMANDS_H
#define TOOLS_TENON_KERNELS_COMMANDS_H

#include <jansson.h>
#include "base/args.h"

// Adds to each kernel of a report the cost of its launches, and to the report the sums.
// whole_us: microseconds of all launches in one run, as they are and with baked code, for
// the report. (cost.c)
void add_costs(json_t *report, const double whole_us[2]);
int print_costs(const json_t *report);

int cmd_kernels(const struct command *self, int argc, char **argv);

#endif // TOOLS_TENON_KERNELS_COMMANDS_H
