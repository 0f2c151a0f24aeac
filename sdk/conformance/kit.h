// SPDX-License-Identifier: MIT
// What every group of checks is written with.
//
// The kit runs each group of checks in a child process and reads what it finds from a pipe,
// one JSON object a line. A check that crashes or hangs ends its child, not the run: the
// parent notes it against that check, and starts the group again behind it. So a check
// keeps nothing that a later one needs, and is numbered the same in every run.
//
//     if (check_begin(k, "process.locale", NULL)) {
//         if (...)
//             check_fail(k, "got \"%s\", expected \"C\"", ...);
//         check_end(k);
//     }
//
// Threads. A kit is used by the thread that runs the group.
#ifndef CONFORMANCE_KIT_H
#define CONFORMANCE_KIT_H

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

// Children get the pipe as this descriptor.
enum { RESULTS_FD = 3 };

enum { SUBJECT_SIZE = 160, DETAIL_SIZE = 1024 };

struct kit {
    // What is checked, and how: constant.
    const char *file;     // the shared object
    const char *folder;   // an empty directory of this run, for what checks write
    const char *only;     // pattern of "check" or "check subject"; NULL: all
    const char *devices;  // pattern of "backend:index"; NULL: all
    const char *examples; // a file of examples for primitives, or NULL
    uint32_t samples;     // applications of a primitive, at most
    uint64_t seed;
    uint64_t resume; // checks up to this number are done already

    // The check that is running.
    uint64_t number;
    uint64_t random; // state of the generator
    const char *check;
    char subject[SUBJECT_SIZE];
    char detail[DETAIL_SIZE]; // the first failure or warning
    uint64_t cases, failures;
    const char *outcome; // "pass" until something else is said
};

// Begins a check, whose name is in the table of checks.c. `subject` says which of several
// things is checked (a primitive, a kernel, a device), or is NULL; printf's format. False
// when it was not asked for or is done: then nothing else is called. Seeds the generator
// from both names, so that a check replays alone.
bool check_begin(struct kit *k, const char *check, const char *subject, ...)
    PRINTF_LIKE(3, 4);
void check_end(struct kit *k);

// Within a check. The first text is kept, the others are counted.
void check_fail(struct kit *k, const char *format, ...) PRINTF_LIKE(2, 3);
// Not wrong, but to be known: it fails nothing.
void check_warn(struct kit *k, const char *format, ...) PRINTF_LIKE(2, 3);
// It cannot be checked here.
void check_skip(struct kit *k, const char *format, ...) PRINTF_LIKE(2, 3);
// One more case was tried.
void check_case(struct kit *k);
bool check_failed(const struct kit *k);

// A whole check that cannot be made.
void skip(struct kit *k, const char *check, const char *reason);

uint64_t random_bits(struct kit *k);
double random_in(struct kit *k, double lo, double hi);
// In [0, n).
uint64_t random_below(struct kit *k, uint64_t n);

// Prints a formatted text into `out`, cut where it does not fit. Returns `out`.
const char *format_text(char *out, size_t size, const char *format, ...) PRINTF_LIKE(3, 4);

#endif // CONFORMANCE_KIT_H
