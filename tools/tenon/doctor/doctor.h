// SPDX-License-Identifier: MIT
// Shared by the examinations of `tenon doctor`. Each adds findings to the report; none
// loads a plugin's code into this process.
#ifndef TOOLS_TENON_DOCTOR_DOCTOR_H
#define TOOLS_TENON_DOCTOR_DOCTOR_H

#include <jansson.h>
#include "base/child.h"
#include "base/tool.h"

struct doctor {
    json_t *findings;
    unsigned num_wrong;
    int seconds;         // time limit of a child
    tn_runtime *runtime; // NULL when none can be opened
};

enum finding { GOOD, NOTE, WRONG };

// Adds a finding about `topic` ("plugins"). `remedy`: what to do, or NULL.
void found(struct doctor *doctor, enum finding kind, const char *topic, const char *remedy,
           const char *format, ...) __attribute__((format(printf, 5, 6)));

// Runs this program in a child, as child_run() does. False, with a finding about `topic`,
// when no child can be started.
bool run_child(struct doctor *doctor, const char *topic, const char *const *args,
               const char *const *variables, struct child *out);

// variables.c: opens doctor->runtime, then another one in a child for its warnings.
void examine_variables(struct doctor *doctor);

// plugins.c
void examine_folders(struct doctor *doctor);
void examine_plugins(struct doctor *doctor);
void examine_trust(struct doctor *doctor);
// True when a usable plugin has a backend, and kernels of a family that starts with
// `family`.
bool has_device_kernels(const struct doctor *doctor, const char *family);

// machine.c
void examine_processor(struct doctor *doctor);
void examine_cache(struct doctor *doctor);

// devices.c
void examine_drivers(struct doctor *doctor);
void examine_devices(struct doctor *doctor);
void examine_run(struct doctor *doctor);

#endif // TOOLS_TENON_DOCTOR_DOCTOR_H
