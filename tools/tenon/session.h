// SPDX-License-Identifier: MIT
// An expression with its runtime, names and graph: what eval, why and graph work on.
#ifndef TOOLS_TENON_SESSION_H
#define TOOLS_TENON_SESSION_H

#include "lang.h"

struct session {
    tn_runtime *runtime;
    tn_scope *scope;
    struct lang_tree tree;
    struct lang_names names; // inputs, then what the program assigns
    size_t num_inputs;
    tn_array **inputs; // as given, in case the program reuses a name
    struct lang_results results;
};

// Opens a runtime, binds items[1 ..] and builds the graph of the expression items[0].
int session_open(struct session *session, char *const *items, int count);

// The same, with the expression mapped over the first axis of the values in `mapped`
// ("x,y"): in it they are one slice; its results have them side by side. NULL: none.
int session_open_mapped(struct session *session, char *const *items, int count,
                        const char *mapped);

// The number of the input that `option` ("--grad") names; says which name is near.
int session_find_input(const struct session *session, const char *option, const char *name,
                       size_t *out_index);
void session_close(struct session *session);

#endif // TOOLS_TENON_SESSION_H
