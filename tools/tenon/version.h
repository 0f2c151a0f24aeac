// SPDX-License-Identifier: MIT
// Order of semantic versions (https://semver.org).
#ifndef TOOLS_TENON_VERSION_H
#define TOOLS_TENON_VERSION_H

// Negative, 0 or positive, as `a` is lower, the same or higher. "1.0.0-rc.1" is lower than
// "1.0.0"; what follows a '+' does not count.
int version_order(const char *a, const char *b);

#endif // TOOLS_TENON_VERSION_H
