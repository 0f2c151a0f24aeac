// SPDX-License-Identifier: MIT
// A folder of files made from templates, which appears complete or not at all.
//
// In a template, @KEY@ stands for a value; a line "%if KEY" begins lines that are left out
// when the value is empty or was not set, "%else" turns this round, "%end" ends it. What
// looks like @KEY@ and was never set stays as it is.
#ifndef TOOLS_TENON_PROJECT_H
#define TOOLS_TENON_PROJECT_H

#include <limits.h>
#include "folder.h"

#define PROJECT_MAX_VALUES 48

struct project {
    const char *name;         // of the folder; borrowed
    char templates[PATH_MAX]; // where templates are
    struct folder staging;    // what is being written
    size_t num_values;
    struct {
        const char *key; // static
        char *value;     // owned
    } values[PROJECT_MAX_VALUES];
};

// Begins a folder `name` in the working directory. Fails when there is something of that
// name. project_finish() afterwards, in any case.
int project_begin(struct project *project, const char *name);
// Sets a value; printf's format.
int project_set(struct project *project, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Makes `file`, a path in the folder, from the template of this name.
int project_add(struct project *project, const char *template, const char *file);
// Moves the folder to its name.
int project_commit(struct project *project);
// Frees; removes what was not committed.
void project_finish(struct project *project);

#endif // TOOLS_TENON_PROJECT_H
