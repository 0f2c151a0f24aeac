// SPDX-License-Identifier: MIT
// A folder of files made from templates, which appears complete or not at all.
//
// In a template, @KEY@ stands for a value. Lines between "%if KEY" and "%end" are left out
// when the value is empty or not set, lines after "%else" when it is neither. @KEY@ without
// a value stays as it is.
#ifndef TOOLS_TENON_NEW_PROJECT_H
#define TOOLS_TENON_NEW_PROJECT_H

#include <limits.h>
#include "files/folder.h"

#define PROJECT_MAX_VALUES 48

struct project {
    const char *name;         // of the folder; borrowed
    char templates[PATH_MAX]; // the folder of the templates
    struct folder staging;    // the folder that is being written
    size_t num_values;
    struct {
        const char *key; // static
        char *value;     // owned
    } values[PROJECT_MAX_VALUES];
};

// Begins a folder `name` in the working directory. Fails when the name exists. Call
// project_finish() afterwards, in any case.
int project_begin(struct project *project, const char *name);
// Sets a value by a printf format. Keeps `key`.
int project_set(struct project *project, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Adds `file`, a path in the folder, made from the template of this name.
int project_add(struct project *project, const char *template, const char *file);
// Moves the folder to its name.
int project_commit(struct project *project);
// Frees the project; removes the folder unless it was committed.
void project_finish(struct project *project);

#endif // TOOLS_TENON_NEW_PROJECT_H
