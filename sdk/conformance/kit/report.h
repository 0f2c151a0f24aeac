// SPDX-License-Identifier: MIT
// The results of a run, and their output as text or JSON.
#ifndef CONFORMANCE_KIT_REPORT_H
#define CONFORMANCE_KIT_REPORT_H

#include "exceptions.h"
#include "kit.h"

enum outcome { PASSED, FAILED, WARNED, SKIPPED, EXCEPTED, NUM_OUTCOMES };

struct result {
    const struct check_info *check;
    char *subject, *detail; // owned
    enum outcome outcome;
    uint64_t cases, failures;
    const struct exception *exception; // the exception that matches, or NULL
};

struct report {
    const char *file;
    const char *examples, *samples, *devices, *with; // as on the command line, or NULL
    uint64_t seed;
    struct result *results; // owned
    size_t count, capacity;
    uint64_t counts[NUM_OUTCOMES];
    double seconds;
};

// Adds a result. Copies the texts.
void report_add(struct report *report, const struct check_info *check, const char *subject,
                enum outcome outcome, const char *detail, uint64_t cases,
                uint64_t failures);
void report_finish(struct report *report);

// Applies the exceptions, and counts outcomes: a failure that is listed becomes EXCEPTED, a
// pass that is listed becomes FAILED.
void report_settle(struct report *report, struct exceptions *exceptions);

// Prints the report as text, or as JSON.
void report_text(const struct report *report, FILE *out);
void report_json(const struct report *report, FILE *out);

#endif // CONFORMANCE_KIT_REPORT_H
