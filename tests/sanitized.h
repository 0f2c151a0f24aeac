// SPDX-License-Identifier: MIT
// What tests repeat less under sanitizers, where it takes ten times as long: a fault that
// these see is in each round or in few, and the values are those of the build without.
#ifndef TESTS_SANITIZED_H
#define TESTS_SANITIZED_H

#include <tenon/plugin.h>

#define IS_SANITIZED (TN_SANITIZER_HERE != TN_SANITIZER_NONE)
#define LOOKS_FOR_RACES (TN_SANITIZER_HERE == TN_SANITIZER_THREAD)

// So many rounds, or one eighth of them.
#define ROUNDS(count) (IS_SANITIZED ? ((count) + 7) / 8 : (count))

#endif
