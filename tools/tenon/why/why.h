// SPDX-License-Identifier: MIT
// Shared by the parts of `tenon why`.
#ifndef TOOLS_TENON_WHY_WHY_H
#define TOOLS_TENON_WHY_WHY_H

#include <jansson.h>
#include <stdbool.h>

// Prints a plan of tn_explain in sentences. `full`: with expressions as a whole.
int say_plan(const json_t *plan, bool full);

// Prints the last run in a file that TENON_WHY wrote, or all runs. `path` NULL: the file
// that TENON_WHY names now.
int why_last(const char *path, bool all, bool json, bool full);

#endif // TOOLS_TENON_WHY_WHY_H
