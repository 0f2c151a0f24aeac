// SPDX-License-Identifier: MIT
// What the tests of libtenon-train share.
#ifndef TESTS_TRAIN_SUPPORT_H
#define TESTS_TRAIN_SUPPORT_H

#include "check.h"
#include <tenon/train.h>

extern tn_runtime *rt; // of the test that runs

void train_begin(void);
void train_finish(void);
void must(tn_status status);
void must_scope(const tn_scope *s);

// Parameters whose element i is 0.4 sin(0.7 i + k), for k the number of the parameter; read
// from a file of the test's folder. At most 32, of at most 128 elements.
tn_params *given(const char *const *names, const tn_shape *const *shapes, int count);

#endif // TESTS_TRAIN_SUPPORT_H
