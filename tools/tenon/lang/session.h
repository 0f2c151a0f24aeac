// SPDX-License-Identifier: MIT
// An expression with its runtime, names and graph, for eval, why and graph.
#ifndef TOOLS_TENON_LANG_SESSION_H
#define TOOLS_TENON_LANG_SESSION_H

#include <tenon/graph_file.h>
#include "lang.h"

struct session {
    tn_runtime *runtime;
    tn_scope *scope;
    struct lang_tree tree;
    struct lang_names names; // inputs, then names that the program assigns
    size_t num_inputs;
    tn_array **inputs; // as given: the program may assign their names anew
    struct lang_results results;
    // Graph of "@FILE" instead of an expression; NULL: there is a tree.
    const tn_graph_file *file;
    const tn_graph_signature *signature; // of the file
    // draws: nothing is computed, so values of a signature may be left out. warms: kernels
    // are compiled for later values, so their stand-ins have to be data, too.
    bool draws, warms;
};

// Opens a runtime, binds items[1 ..] and builds the graph of the expression items[0], or of
// the saved graph "@FILE" or "@FILE:SIGNATURE".
int session_open(struct session *session, char *const *items, int count);
// The same for a picture.
int session_open_drawn(struct session *session, char *const *items, int count);

// The same for compiling.
int session_open_warm(struct session *session, char *const *items, int count);

// The same, with the expression mapped over the first axis of the inputs in `mapped`
// ("x,y"; NULL: none): the expression sees one slice, and the results are stacked along a
// new first axis.
int session_open_mapped(struct session *session, char *const *items, int count,
                        const char *mapped);

// Finds the input that the value of `option` ("--grad") names; on failure tells the nearest
// name.
int session_find_input(const struct session *session, const char *option, const char *name,
                       size_t *out_index);

// Plans the results, and compiles what they need: runs nothing.
int session_plan(struct session *session);

void session_close(struct session *session);

// Builds the results in session->scope from session->names.
int session_build(struct session *session);

// Opens the file of "@FILE:SIGNATURE", and applies the signature to the names. (file.c)
int session_load(struct session *session, const char *item);
int session_apply(struct session *session);

#endif // TOOLS_TENON_LANG_SESSION_H
