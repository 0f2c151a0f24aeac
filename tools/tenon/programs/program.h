// SPDX-License-Identifier: MIT
// Installed programs that replace the command's process: they link more libraries, or use
// Tenon as an application does.
#ifndef TOOLS_TENON_PROGRAMS_PROGRAM_H
#define TOOLS_TENON_PROGRAMS_PROGRAM_H

#include "base/args.h"

// Executes the program `name` in place of this process, with the given options and
// arguments. Looks for it in the installation's folder for such programs, then in `built`,
// a folder relative to the command's in a build folder. Returns on failure only; fails with
// `missing` when the program is not there.
int program_run(const char *name, const char *built, const char *missing,
                const struct option *options, size_t num_options, const struct args *args);

#endif // TOOLS_TENON_PROGRAMS_PROGRAM_H
