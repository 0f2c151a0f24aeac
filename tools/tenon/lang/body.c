// SPDX-License-Identifier: MIT
// Graphs as attributes: a text "x, n -> x / 2, n + 1" whose names stand for the inputs of
// the operator, and whose program is traced. It may use all names around it.
#include "evaluator.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// Body to trace: the program behind the arrow.
struct lang_body {
    struct evaluator *e;
    const char *text;
    const char *program;
    struct lang_tree tree;
    int failed; // of the evaluation, whose message is recorded
};

// The next name of the list before the arrow, at *at; NULL at its end.
static char *next_name(const char **at, const char *end)
{
    while (*at < end && (isspace((unsigned char)**at) || **at == ','))
        ++*at;
    const char *begin = *at;
    bool is_name = *at < end && !isdigit((unsigned char)**at);
    while (is_name && *at < end && (isalnum((unsigned char)**at) || **at == '_'))
        ++*at;
    return *at > begin ? strndup(begin, (size_t)(*at - begin)) : NULL;
}

// Binds the names around the body, then the body's own.
static int lang_body_bind_names(const struct lang_body *b, tn_array *const *inputs,
                                uint64_t num_inputs, struct lang_names *names)
{
    const char *at = b->text, *end = b->program - strlen("->");
    int failed = 0;
    for (size_t i = 0; i < b->e->names->count && !failed; i++)
        failed =
            lang_names_set(names, b->e->names->items[i].name, b->e->names->items[i].array);
    for (uint64_t i = 0; at < end && !failed; i++) {
        char *name = next_name(&at, end);
        if (!name && at < end)
            return lang_oops(b->text, (uint32_t)(at - b->text),
                             "expected names before '->'");
        if (!name)
            break;
        failed = i < num_inputs ? lang_names_set(names, name, inputs[i])
                                : lang_oops(b->text, 0,
                                            "there are %d arrays for the names before '->'",
                                            (int)num_inputs);
        free(name);
    }
    return failed;
}

static tn_status lang_body_build(tn_scope *scope, tn_array *const *inputs,
                                 uint64_t num_inputs, tn_array **outputs,
                                 uint64_t num_outputs, void *user)
{
    struct lang_body *b = user;
    struct lang_names names = {0};
    struct lang_results results = {0};
    b->failed = lang_body_bind_names(b, inputs, num_inputs, &names);
    if (!b->failed)
        b->failed = lang_eval(&b->tree, scope, &names, &results);
    if (!b->failed && results.count != num_outputs)
        b->failed = lang_oops(b->text, (uint32_t)(b->program - b->text),
                              "this gives %d arrays, expected %d, one for each expression",
                              (int)results.count, (int)num_outputs);
    for (uint64_t i = 0; i < num_outputs && !b->failed; i++)
        outputs[i] = results.items[i];
    if (!b->failed)
        free(results.items);
    lang_names_finish(&names);
    return b->failed ? TN_ERR_ARGUMENT : TN_OK;
}

int eval_body(struct evaluator *e, const struct lang_node *node, const char *text,
              const tn_type *types, uint32_t num_types, tn_captures *captures,
              const tn_graph **out_graph)
{
    const char *arrow = strstr(text, "->");
    if (!arrow)
        return node_oops(e, node, "a graph is a text such as \"x -> x / 2\", got \"%s\"",
                         text);
    struct lang_body b = {.e = e, .text = text, .program = arrow + strlen("->")};
    int failed = lang_parse(b.program, &b.tree);
    if (failed)
        return failed;
    const struct lang_node *last = &b.tree.nodes[b.tree.num_nodes - 1];
    uint32_t right = b.tree.children[last->first + last->count - 1];
    tn_graph_trace(e->scope, lang_body_build, &b, types, num_types,
                   b.tree.nodes[right].count, captures, out_graph);
    lang_tree_finish(&b.tree);
    return b.failed ? b.failed : check_scope(e, node);
}
