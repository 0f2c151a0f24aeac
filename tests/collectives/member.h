// SPDX-License-Identifier: MIT
// What the modes of `member` share.
#ifndef TESTS_COLLECTIVES_MEMBER_H
#define TESTS_COLLECTIVES_MEMBER_H

#include <tenon/dist.h>
#include <tenon/tenon.h>

extern tn_runtime *runtime;
extern const tn_dist *dist;
extern const tn_host *host;
extern int rank, size; // of this member in the world

// End the process where something does not hold, or a collective failed.
void check(int holds, const char *what);
void check_dist(tn_status status);

// `values` as an array of a dtype, and an array's elements as doubles.
tn_array *numbers(tn_scope *s, tn_dtype dtype, int count, const double *values);
void read_numbers(tn_scope *s, tn_array *x, int count, double *out);
void expect(tn_scope *s, tn_array *x, int count, const double *expected, const char *what);

double now(void); // in seconds

// All members reduce `count` elements.
void reduce_once(tn_scope *s, int count);

// --- member_waits.c ---------------------------------------------------------------------

void mode_late(tn_scope *s);
void mode_awaits(tn_scope *s);

#endif // TESTS_COLLECTIVES_MEMBER_H
