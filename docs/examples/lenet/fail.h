// SPDX-License-Identifier: MIT
// How this program fails. The line that finds a fault records it and returns what that
// returns; callers pass it on, and main() prints it. 0 is success throughout.
#ifndef LENET_FAIL_H
#define LENET_FAIL_H

#include <stdint.h>
#include <stdio.h>
#include <tenon/tenon.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { FAILED = 1, MISUSED = 2 };

// Records why the program fails, when nothing is recorded yet. Returns FAILED.
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The same for wrong usage. Returns MISUSED.
int fail_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
int fail_memory(void);
// The library's last failure; a scope's.
int fail_library(void);
int fail_scope(const tn_scope *scope);

// What was recorded, or "". forget_failure() clears it.
const char *failure_text(void);
void forget_failure(void);

// Prints what may hold text of others: nothing in it is left that a terminal would obey.
void show(FILE *stream, const char *text, uint32_t flags);

#endif // LENET_FAIL_H
