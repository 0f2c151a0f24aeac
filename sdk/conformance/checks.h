// SPDX-License-Identifier: MIT
// The table of all checks, and the groups that run them. Only the program includes this
// file, which stands above all groups.
#ifndef CONFORMANCE_CHECKS_H
#define CONFORMANCE_CHECKS_H

#include "kit/kit.h"

extern const struct check_info all_checks[]; // ended by a NULL name

// A group runs in a child process of its own.
struct check_group {
    const char *name;
    void (*run)(struct kit *k);
};

extern const struct check_group all_groups[]; // ended by a NULL name
const struct check_group *group_find(const char *name);

#endif // CONFORMANCE_CHECKS_H
