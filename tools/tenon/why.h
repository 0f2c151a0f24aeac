// SPDX-License-Identifier: MIT
// What the parts of `tenon why` share.
#ifndef TOOLS_TENON_WHY_H
#define TOOLS_TENON_WHY_H

#include <jansson.h>
#include <stdbool.h>

// The value of a member as text; "" when it has none.
const char *text_of(const json_t *object, const char *key);

// A plan as tn_explain gives it, in sentences. `full`: long expressions as a whole.
int say_plan(const json_t *plan, bool full);

// The last run that TENON_WHY wrote to a file, or all of them.
int why_last(const char *path, bool all, bool json, bool full);

#endif // TOOLS_TENON_WHY_H
