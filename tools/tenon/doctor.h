// SPDX-License-Identifier: MIT
// What the examinations of `tenon doctor` share. Each adds what it finds to the report;
// none loads a plugin's code into this process.
#ifndef TOOLS_TENON_DOCTOR_H
#define TOOLS_TENON_DOCTOR_H

#include <jansson.h>
#include "tool.h"

struct doctor {
    json_t *findings;
    unsigned num_wrong;
    int seconds;         // that a child may take
    tn_runtime *runtime; // NULL when none can be opened
};

enum finding { GOOD, NOTE, WRONG };

// Adds a finding about `topic` ("plugins"). `remedy`: what to do, or NULL.
void found(struct doctor *doctor, enum finding kind, const char *topic, const char *remedy,
           const char *format, ...) __attribute__((format(printf, 5, 6)));

// doctor_variables.c: opens the runtime, in a child first.
void examine_variables(struct doctor *doctor);

// doctor_plugins.c
void examine_folders(struct doctor *doctor);
void examine_plugins(struct doctor *doctor);
void examine_trust(struct doctor *doctor);
// Whether an installed plugin that can be used has a backend whose name starts so.
bool has_backend(const struct doctor *doctor, const char *start);

// doctor_machine.c
void examine_processor(struct doctor *doctor);
void examine_cache(struct doctor *doctor);

// doctor_devices.c
void examine_drivers(struct doctor *doctor);
void examine_devices(struct doctor *doctor);
void examine_run(struct doctor *doctor);

#endif // TOOLS_TENON_DOCTOR_H
