// SPDX-License-Identifier: MIT
// Running the program of language models.
#ifndef TOOLS_TENON_PROGRAMS_LM_H
#define TOOLS_TENON_PROGRAMS_LM_H

#include "base/args.h"

// Executes tenon-lm in place of this process, for `mode`, with what was parsed.
int lm_run(const char *mode, const struct option *options, size_t num_options,
           const struct args *args);

#endif // TOOLS_TENON_PROGRAMS_LM_H
