// SPDX-License-Identifier: MIT
// The expression of `tenon eval` as a graph in a file, and what is in such a file.
#ifndef TOOLS_TENON_EVAL_SAVE_H
#define TOOLS_TENON_EVAL_SAVE_H

#include "lang/session.h"

// Results to save, with their names in the file.
struct save_results {
    tn_array *items[512];
    char names[512][80];
    size_t count;
};

// Builds the results from the session's names, in the session's scope.
typedef int (*save_build)(struct session *session, void *user, struct save_results *out);

// Writes the graph of what `build` builds, for values of the types that the session's
// inputs have, as signature `name`.
int graph_write(struct session *session, save_build build, void *user, const char *name,
                const char *path);

// Prints what is in a file of graphs.
int graph_inspect(const char *path, bool as_json);

#endif // TOOLS_TENON_EVAL_SAVE_H
