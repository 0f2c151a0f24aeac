// SPDX-License-Identifier: MIT
// The parent process: starts, watches and reads the children that run the checks.
#ifndef CONFORMANCE_KIT_CHILD_H
#define CONFORMANCE_KIT_CHILD_H

#include "report.h"

struct run_options {
    const struct check_info *checks;             // all that there are
    const char *file, *folder, *only, *examples; // as in struct kit
    const char *samples, *devices, *with;        // as on the command line, or NULL
    uint64_t seed;
    double timeout; // seconds that one check may take
};

// Runs the group of this name to its end; starts a new child after each crash or hang. Adds
// the results to `report`.
void child_run(struct report *report, const struct run_options *options, const char *group);

#endif // CONFORMANCE_KIT_CHILD_H
