// SPDX-License-Identifier: MIT
// Shared by the files that write a file of graphs.
#ifndef PLUGIN_GRAPH_SAVE_H
#define PLUGIN_GRAPH_SAVE_H

#include "document.h"

// The arrays of one file, with their names.
struct named_arrays {
    tn_array **arrays;
    const char **names;
    uint32_t count, room;
};

struct saver {
    const tn_host *host;
    const tn_host_graph_format *api;
    tn_scope *scope;
    const char *path;
    json_t *operators, *operator_numbers; // ids; id -> number
    json_t *graphs, *graph_numbers;       // address -> number
    json_t *constants, *constant_numbers; // address -> number
    json_t *constant_names;               // names in use
    json_t *signatures, *signature_names;
    struct named_arrays named;
    uint32_t depth; // of nesting at the graph that is being saved
};

#define save_fail(s, status, format, ...)                                                  \
    (s)->host->fail((s)->host, status, "%s: " format, (s)->path, ##__VA_ARGS__)

tn_status out_of_memory(const struct saver *s);

// Gives the number of a graph in the file; adds the graph, and all graphs among its
// attributes, on first use. (save.c)
tn_status save_graph(struct saver *s, const tn_graph *graph, uint32_t *out_number);

// Types and numbers in the form that parse.c and parse_attrs.c read. (save_values.c)
json_t *type_json(const tn_type *type, bool weak);
json_t *number_json(const tn_type *type, const tn_graph_array *array);

// Fills `attrs`. *out_inputs is the number of inputs before the scalars of runtime
// attributes. (save_values.c)
tn_status save_attrs(struct saver *s, const tn_graph_node *node, json_t *attrs,
                     uint64_t *out_inputs);

#endif // PLUGIN_GRAPH_SAVE_H
