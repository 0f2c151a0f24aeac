// SPDX-License-Identifier: MIT
// Building an expression's graph from a command line.
#include "session.h"

#include <stdlib.h>

static int build(struct session *session, char *const *items, int count)
{
    // The expression first: its mistakes are told without opening anything.
    int failed = lang_parse(items[0], &session->tree);
    if (!failed)
        failed = open_runtime(&session->runtime);
    if (!failed && !(session->scope = tn_scope_open(session->runtime)))
        failed = oops_memory();
    if (!failed)
        failed = lang_bind(session->scope, items + 1, count - 1, &session->names);
    if (failed)
        return failed;
    session->num_inputs = session->names.count;
    session->inputs = calloc(session->num_inputs + 1, sizeof(*session->inputs));
    if (!session->inputs)
        return oops_memory();
    for (size_t i = 0; i < session->num_inputs; i++)
        session->inputs[i] = session->names.items[i].array;
    return lang_eval(&session->tree, session->scope, &session->names, &session->results);
}

int session_open(struct session *session, char *const *items, int count)
{
    *session = (struct session){0};
    int failed = build(session, items, count);
    if (failed)
        session_close(session);
    return failed;
}

void session_close(struct session *session)
{
    free(session->results.items);
    free(session->inputs);
    lang_names_finish(&session->names);
    lang_tree_finish(&session->tree);
    tn_scope_close(session->scope);
    tn_runtime_close(session->runtime);
    *session = (struct session){0};
}
