// SPDX-License-Identifier: MIT
// The command that examines the installation.
#ifndef TOOLS_TENON_DOCTOR_COMMANDS_H
#define TOOLS_TENON_DOCTOR_COMMANDS_H

#include "base/args.h"

int cmd_doctor(const struct command *self, int argc, char **argv);

#endif // TOOLS_TENON_DOCTOR_COMMANDS_H
