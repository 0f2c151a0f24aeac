// SPDX-License-Identifier: MIT
// An expression with its runtime, names and graph, for eval, why and graph.
#ifndef TOOLS_TENON_LANG_SESSION_H
#define TOOLS_TENON_LANG_SESSION_H

#include "lang.h"

struct session {
    tn_runtime *runtime;
    tn_scope *scope;
    struct lang_tree tree;
    struct lang_names names; // inputs, then names that the program assigns
    size_t num_inputs;
    tn_array **inputs; // as given: the program may assign their names anew
    struct lang_results results;
};

// Opens a runtime, binds items[1 ..] and builds the graph of the expression items[0].
int session_open(struct session *session, char *const *items, int count);

// The same, with the expression mapped over the first axis of the inputs in `mapped`
// ("x,y"; NULL: none): the expression sees one slice, and the results are stacked along a
// new first axis.
int session_open_mapped(struct session *session, char *const *items, int count,
                        const char *mapped);

// Finds the input that the value of `option` ("--grad") names; on failure tells the nearest
// name.
int session_find_input(const struct session *session, const char *option, const char *name,
                       size_t *out_index);
void session_close(struct session *session);

#endif // TOOLS_TENON_LANG_SESSION_H
