// SPDX-License-Identifier: MIT
// The interface that all groups of checks use.
//
// Each group of checks runs in a child process, which writes results to a pipe, one JSON
// object a line. A check that crashes or hangs ends its child, not the run: the parent
// fails this check, and starts the group again after it. So a check leaves nothing that a
// later check needs, and has the same number in every run.
//
//     if (check_begin(k, "process.locale", NULL)) {
//         if (...)
//             check_fail(k, "got \"%s\", expected \"C\"", ...);
//         check_end(k);
//     }
//
// Threads. A kit is used only by the thread that runs the group.
#ifndef CONFORMANCE_KIT_KIT_H
#define CONFORMANCE_KIT_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/plugin.h>
#include "numbers.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

// A check, as the table of all checks lists it.
struct check_info {
    const char *name;        // "group.name"
    const char *requirement; // its number in docs/abi.md: "P7"
    const char *expects;     // one sentence: what a sane plugin does
};

// The check of this name in a table that a NULL name ends. NULL: none.
const struct check_info *check_find(const struct check_info *checks, const char *name);

// The write end of the pipe, in a child.
enum { RESULTS_FD = 3 };

enum { SUBJECT_SIZE = 160, DETAIL_SIZE = 1024 };

struct kit {
    const struct check_info *checks; // all that there are, ended by a NULL name

    // Options of the run: constant.
    const char *file;     // the shared object
    const char *folder;   // an empty directory of this run, for what checks write
    const char *only;     // pattern of "check" or "check subject"; NULL: all
    const char *devices;  // pattern of "backend:index"; NULL: all
    const char *with;     // backends behind the one that is checked, "cpu-blas"; NULL: none
    const char *examples; // a file of examples for primitives, or NULL
    uint32_t samples;     // most applications of a primitive to draw
    uint64_t seed;
    uint64_t resume; // checks up to this number ran in an earlier child

    // The running check.
    uint64_t number;
    uint64_t random; // state of the generator
    const char *check;
    char subject[SUBJECT_SIZE];
    char detail[DETAIL_SIZE]; // the first failure or warning
    uint64_t cases, failures;
    const char *outcome; // "pass", "fail", "warn" or "skip"
};

// Begins a check, whose name is in the table. `subject` (a printf format, or
// NULL) names the primitive, kernel or device that is checked. False when the check is not
// wanted or ran earlier: then check_end is not called. Seeds the random numbers from both
// names, so that a check replays alone.
bool check_begin(struct kit *k, const char *check, const char *subject, ...)
    PRINTF_LIKE(3, 4);
void check_end(struct kit *k);

// For the running check. The first message is kept, further failures are counted.
void check_fail(struct kit *k, const char *format, ...) PRINTF_LIKE(2, 3);
// Reports a finding that is not a failure.
void check_warn(struct kit *k, const char *format, ...) PRINTF_LIKE(2, 3);
// Reports that the check cannot be made here.
void check_skip(struct kit *k, const char *format, ...) PRINTF_LIKE(2, 3);
// Counts one tried case.
void check_case(struct kit *k);
bool check_failed(const struct kit *k);

// Reports a whole check as skipped.
void skip(struct kit *k, const char *check, const char *reason);

uint64_t random_bits(struct kit *k);
double random_in(struct kit *k, double lo, double hi);
// A random integer in [0, n).
uint64_t random_below(struct kit *k, uint64_t n);

// Formats into `out`, truncated to `size` bytes. Returns `out`.
const char *format_text(char *out, size_t size, const char *format, ...) PRINTF_LIKE(3, 4);

#endif // CONFORMANCE_KIT_KIT_H
