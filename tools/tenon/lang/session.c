// SPDX-License-Identifier: MIT
// Builds an expression's graph from a command line.
#include "session.h"

#include <stdlib.h>
#include <string.h>

#include "base/args.h"
#include "base/table.h"

int session_find_input(const struct session *session, const char *option, const char *name,
                       size_t *out_index)
{
    const char *known[65];
    size_t n = 0;
    for (size_t i = 0; i < session->num_inputs && n < COUNT(known) - 1; i++) {
        *out_index = i;
        if (strcmp(session->names.items[i].name, name) == 0)
            return 0;
        known[n++] = session->names.items[i].name;
    }
    known[n] = NULL;
    const char *near = nearest(name, known);
    return misuse("%s: no value is named '%s'%s%s%s", option, name,
                  near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

// --- mapping ---------------------------------------------------------------------------

// Placeholders for one slice of each mapped input, while the graph is built.
struct lang_session_slices {
    tn_array **arrays; // owned; NULL entries: not mapped
    int32_t *axes;     // owned
};

static int lang_session_make_slice(struct session *session,
                                   struct lang_session_slices *slices, const char *name)
{
    size_t i = 0;
    int failed = session_find_input(session, "--vmap", name, &i);
    if (failed)
        return failed;
    const tn_type *type = tn_array_type(session->inputs[i]);
    tn_ints shape = {.given = 1};
    if (type->rank == 0)
        return misuse("--vmap: %s is a single number, expected an axis to slice", name);
    for (int32_t k = 1; k < type->rank; k++)
        shape.value[shape.count++] = type->extent[k];
    slices->axes[i] = 0;
    slices->arrays[i] = session->names.items[i].array =
        tn_op(session->scope, "base.full", NULL, 0,
              tn_attrs("shape", &shape, "dtype", (int64_t)type->dtype));
    return slices->arrays[i] ? 0 : oops_scope(session->scope);
}

static int lang_session_make_slices(struct session *session,
                                    struct lang_session_slices *slices, const char *mapped)
{
    slices->arrays = calloc(session->num_inputs + 1, sizeof(*slices->arrays));
    slices->axes = calloc(session->num_inputs + 1, sizeof(*slices->axes));
    char *list = strdup(mapped), *rest = list, *word;
    int failed = slices->arrays && slices->axes && list ? 0 : oops_memory();
    for (size_t i = 0; !failed && i < session->num_inputs; i++)
        slices->axes[i] = -1;
    while (!failed && (word = strsep(&rest, ",")))
        failed = lang_session_make_slice(session, slices, word);
    free(list);
    return failed;
}

static int build_mapped(struct session *session, const char *mapped)
{
    struct lang_session_slices slices = {0};
    struct lang_results *results = &session->results;
    int failed = lang_session_make_slices(session, &slices, mapped);
    if (!failed)
        failed = session_build(session);
    if (!failed &&
        tn_vmap(session->scope, results->items, NULL, results->count, slices.arrays,
                session->inputs, slices.axes, session->num_inputs, results->items))
        failed = oops_scope(session->scope);
    free(slices.arrays);
    free(slices.axes);
    return failed;
}

// --- opening ---------------------------------------------------------------------------

int session_build(struct session *session)
{
    if (session->signature)
        return session_apply(session);
    return lang_eval(&session->tree, session->scope, &session->names, &session->results);
}

static int lang_session_build(struct session *session, char *const *items, int count,
                              const char *mapped)
{
    // The expression is parsed first: its errors are reported without opening anything.
    bool is_file = items[0][0] == '@';
    int failed = is_file ? 0 : lang_parse(items[0], &session->tree);
    if (!failed)
        failed = open_runtime(&session->runtime);
    if (!failed && is_file)
        failed = session_load(session, items[0]);
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
    if (mapped)
        return build_mapped(session, mapped);
    return session_build(session);
}

static int open_session(struct session *session, char *const *items, int count,
                        const char *mapped)
{
    int failed = lang_session_build(session, items, count, mapped);
    if (failed)
        session_close(session);
    return failed;
}

int session_open(struct session *session, char *const *items, int count)
{
    return session_open_mapped(session, items, count, NULL);
}

int session_open_drawn(struct session *session, char *const *items, int count)
{
    *session = (struct session){.draws = true};
    return open_session(session, items, count, NULL);
}

int session_open_warm(struct session *session, char *const *items, int count)
{
    *session = (struct session){.draws = true, .warms = true};
    return open_session(session, items, count, NULL);
}

int session_open_mapped(struct session *session, char *const *items, int count,
                        const char *mapped)
{
    *session = (struct session){0};
    return open_session(session, items, count, mapped);
}

// Asks for an explanation, which plans the results and compiles their kernels.
int session_plan(struct session *session)
{
    char *text = NULL;
    json_error_t error;
    if (tn_explain(session->scope, session->results.items, session->results.count, &text))
        return oops_scope(session->scope);
    json_t *explanation = json_loads(text, 0, &error);
    tn_text_free(text);
    const char *message = explanation ? text_of(explanation, "message") : error.text;
    int failed = *message || !explanation ? oops("%s", message) : 0;
    json_decref(explanation);
    return failed;
}

void session_close(struct session *session)
{
    free(session->results.items);
    free(session->inputs);
    lang_names_finish(&session->names);
    lang_tree_finish(&session->tree);
    tn_scope_close(session->scope);
    if (session->runtime)
        tn_graph_unload(session->runtime, session->file);
    tn_runtime_close(session->runtime);
    *session = (struct session){0};
}
