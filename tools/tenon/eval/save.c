// SPDX-License-Identifier: MIT
// tenon eval --save: the graph of an expression in a file.
#include "save.h"

#include <stdlib.h>
#include <string.h>

// Trace for a file. The outputs are counted before: a trace is asked for a number of them.
struct saving {
    struct session *session;
    save_build build;
    void *user;
    struct save_results results;
    int failed; // its message is recorded
};

// Builds in the scope of the trace, with the inputs of the graph as the named values.
static tn_status build_traced(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                              tn_array **outputs, uint64_t num_outputs, void *user)
{
    struct saving *s = user;
    struct session inner = *s->session;
    inner.scope = scope;
    inner.names = (struct lang_names){0};
    inner.results = (struct lang_results){0};
    inner.inputs = (tn_array **)(uintptr_t)inputs;
    for (uint64_t i = 0; !s->failed && i < num_inputs; i++)
        s->failed =
            lang_names_set(&inner.names, s->session->names.items[i].name, inputs[i]);
    if (!s->failed)
        s->failed = s->build(&inner, s->user, &s->results);
    for (uint64_t i = 0; !s->failed && i < num_outputs; i++)
        outputs[i] = s->results.items[i];
    lang_names_finish(&inner.names);
    free(inner.results.items);
    return s->failed ? TN_ERR_ARGUMENT : TN_OK;
}

static int eval_save_trace(struct saving *s, tn_captures *captures,
                           const tn_graph **out_graph)
{
    struct session *session = s->session;
    tn_type *types = calloc(session->num_inputs + 1, sizeof(*types));
    if (!types)
        return oops_memory();
    for (size_t i = 0; i < session->num_inputs; i++)
        types[i] = *tn_array_type(session->inputs[i]);
    tn_status status =
        tn_graph_trace(session->scope, build_traced, s, types, session->num_inputs,
                       s->results.count, captures, out_graph);
    free(types);
    return s->failed ? s->failed : status ? oops_scope(session->scope) : 0;
}

// Gives the names of the inputs, or of the outputs, as a list. Free it.
static const char **list_names(const struct saving *s, bool inputs)
{
    size_t count = inputs ? s->session->num_inputs : s->results.count;
    const char **list = calloc(count + 1, sizeof(*list));
    for (size_t i = 0; list && i < count; i++)
        list[i] = inputs ? s->session->names.items[i].name : s->results.names[i];
    return list;
}

int graph_write(struct session *session, save_build build, void *user, const char *name,
                const char *path)
{
    struct saving *s = calloc(1, sizeof(*s));
    tn_captures captures = {0};
    if (!s)
        return oops_memory();
    *s = (struct saving){.session = session, .build = build, .user = user};
    tn_graph_signature signature = {
        .struct_size = sizeof(signature), .name = name, .num_inputs = session->num_inputs};
    int failed = build(session, user, &s->results); // counts the outputs
    if (!failed)
        failed = eval_save_trace(s, &captures, &signature.graph);
    signature.input_names = list_names(s, true);
    signature.output_names = list_names(s, false);
    signature.constants = captures.arrays;
    signature.num_constants = captures.count;
    if (!failed && (!signature.input_names || !signature.output_names))
        failed = oops_memory();
    if (!failed && tn_graph_save(session->scope, path, &signature, 1, NULL))
        failed = oops_scope(session->scope);
    free((void *)(uintptr_t)signature.input_names);
    free((void *)(uintptr_t)signature.output_names);
    free(s);
    return failed;
}
