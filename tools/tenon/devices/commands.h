// SPDX-License-Identifier: MIT
// The command about devices.
#ifndef TOOLS_TENON_DEVICES_COMMANDS_H
#define TOOLS_TENON_DEVICES_COMMANDS_H

#include "base/args.h"

int cmd_devices(const struct command *self, int argc, char **argv);

#endif // TOOLS_TENON_DEVICES_COMMANDS_H
