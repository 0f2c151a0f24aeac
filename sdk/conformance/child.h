// SPDX-License-Identifier: MIT
// The parent's side of the pipe: children are started, watched and read.
#ifndef CONFORMANCE_CHILD_H
#define CONFORMANCE_CHILD_H

#include "report.h"

struct run_options {
    const char *file, *folder, *only, *examples; // as in struct kit
    const char *samples, *devices;               // as given, or NULL
    uint64_t seed;
    double timeout; // seconds that one check may take
};

// Runs a group to its end, in as many children as it crashes or hangs. Adds its results.
void child_run(struct report *report, const struct run_options *options,
               const struct group *group);

#endif // CONFORMANCE_CHILD_H
