// SPDX-License-Identifier: MIT
// Shortens a generated shader, by lines and blocks, as long as it fails.
#ifndef TESTS_COMPILER_REDUCE_H
#define TESTS_COMPILER_REDUCE_H

#include <stdbool.h>

// `fails` is asked about each candidate; at most `tries` are. The result is the shortest
// text that fails; free() it.
char *reduce_text(const char *text, bool (*fails)(void *context, const char *text),
                  void *context, unsigned tries);

#endif // TESTS_COMPILER_REDUCE_H
