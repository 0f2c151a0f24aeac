// SPDX-License-Identifier: MIT
// The plugin behind tn_graph_save and tn_graph_load of <tenon/graph_file.h>: it knows what
// a file of graphs looks like, and the core lets it look into graphs and build them.
//
//   static const tn_graph_format format = {.struct_size = sizeof(format), .save = save,
//                                          .load = load, .unload = unload,
//                                          .describe = describe};
//
// org.tenon.graph is that plugin. Another one takes its place by an id that is lower in
// byte order: see tn_interface_find().
//
// Threads. The slots of tn_graph_format are called on the thread of the scope that they
// get. Those of the service have the thread rules of the functions whose names they have.
#ifndef TENON_GRAPH_FORMAT_H
#define TENON_GRAPH_FORMAT_H

#include <tenon/graph_file.h>

// The id by which query() is asked for a tn_graph_format.
#define TN_IFACE_GRAPH_FORMAT "tn.graph_format/1"

// The interface of a format for graphs. Failures are recorded with host->fail, or are the
// scope's; messages begin with the path.
typedef struct tn_graph_format {
    uint32_t struct_size;
    uint32_t flags; // 0

    // tn_graph_save. `signatures` and `options` are of this host's version, and are not
    // NULL; nothing in them is checked.
    tn_status (*save)(const tn_host *host, tn_scope *scope, const char *path,
                      const tn_graph_signature *signatures, uint64_t num_signatures,
                      const tn_graph_save_options *options);

    // tn_graph_load, in a scope that is closed behind the call. Gives a file, which
    // `unload` takes back.
    tn_status (*load)(const tn_host *host, tn_scope *scope, const char *path,
                      const tn_graph_load_options *options, const tn_graph_file **out_file);
    void (*unload)(const tn_host *host, const tn_graph_file *file);

    // Describes a file, whose operators need not be installed, as JSON. Gives a text, to be
    // freed with host->free.
    //
    //   {"signatures": [{"name", "nodes", "donated", "inputs": [{"name", "dtype",
    //     "shape"}], "outputs": [the same], "constants": [names]}],
    //    "operators": [{"id", "count", "installed"}],
    //    "constants": [{"name", "dtype", "shape", "bytes"}], "beside"}
    //
    // "nodes" and "count" have those of graphs among attributes, too. "installed" is the id
    // of the newest installed revision, or null. "beside": the file of the constants, or
    // null.
    tn_status (*describe)(const tn_host *host, tn_scope *scope, const char *path,
                          char **out_json);
} tn_graph_format;

// Kinds of a tn_graph_node.
enum {
    TN_NODE_INPUT = 1,      // of the graph: one output
    TN_NODE_NUMBER = 2,     // a scalar that is known: one output
    TN_NODE_PRIMITIVE = 3,  // applies `text`, an id with its revision
    TN_NODE_EXPRESSION = 4, // applies `text`, an expression
    TN_NODE_OUTPUTS = 5,    // the last one: its inputs are the graph's outputs
};

// Flags of a tn_graph_node.
enum {
    // Of an expression: the dtypes of its outputs are given, and do not follow from those
    // of
    // its inputs.
    TN_NODE_TYPED = 1,
    // Of an expression, for `visit`: it reduces along the axis of an attribute "axis".
    TN_NODE_REDUCES = 2,
};

// What stands in the list of inputs for an optional one that is not given.
#define TN_NO_ARRAY UINT32_MAX

// One step of a graph. Arrays have numbers: those of the outputs of the first node begin at
// 0, and those of each further node follow.
typedef struct tn_graph_node {
    uint32_t struct_size; // sizeof(tn_graph_node)
    uint32_t flags;       // TN_NODE_TYPED ..., or 0
    uint32_t kind;        // TN_NODE_...
    uint32_t num_inputs;  // with the scalars of runtime attributes, which are the last
    // PRIMITIVE: its id. EXPRESSION: for `visit` the right side of "x, y -> x * y + 1.0",
    // for `apply` all of it. Else NULL.
    const char *text;
    // The numbers of arrays, each of an earlier node, or TN_NO_ARRAY. NULL for `apply`.
    const uint32_t *inputs;
    // Outputs: their types, and the weak ones among them (tn_int), bit i for output i.
    const tn_type *types;
    uint64_t weak;
    uint64_t num_outputs; // at most TN_MAX_OUTPUTS
    uint64_t number;      // NUMBER: bits of a double, for a dtype of integers of an int64_t
    // Of `visit`: the attributes, of which those of an expression are in the table that its
    // text names, and "axis" if it reduces; names of an expression's inputs and attributes.
    // NULL for `apply` and where there are none.
    const tn_attr_table *table;
    const void *attrs;
    const char *const *input_names;
    const char *const *attr_names;
    uint64_t num_attr_names;
} tn_graph_node;

// Service: looks into graphs, builds them node by node, and has functions of the
// application's headers, for the plugin that offers TN_IFACE_GRAPH_FORMAT.
#define TN_HOST_GRAPH_FORMAT "tn.host.graph_format/1"
typedef struct tn_host_graph_format {
    uint32_t struct_size;
    uint32_t flags; // 0

    // Calls `see` with each node of the graph: its inputs, then numbers and applications,
    // each behind what it reads, and the outputs. Equal graphs give equal nodes. Ends at
    // the first status that is not TN_OK, and returns it. Any thread.
    tn_status (*visit)(const tn_graph *graph,
                       tn_status (*see)(void *user, const tn_graph_node *node), void *user);

    // Builds in `scope` what `visit` showed, from node->num_inputs inputs; NULL stands for
    // TN_NO_ARRAY. Gives outputs[node->num_outputs]. `attrs` has the attributes, without
    // runtime ones. Of an INPUT, inputs[0] is the input itself, which becomes weak if the
    // node says so. Not for OUTPUTS.
    //
    // Checks everything: the application as tn_op does, the scalars of runtime attributes,
    // and that the outputs have the node's types (TN_ERR_REFUSED). Failures are the
    // scope's.
    tn_status (*apply)(tn_scope *scope, const tn_graph_node *node,
                       const tn_array *const *inputs, tn_attr_list attrs,
                       tn_array **outputs);

    // tn_scope_runtime, and so on: the contracts are those of the functions.
    tn_runtime *(*scope_runtime)(const tn_scope *scope);
    const char *(*scope_error)(const tn_scope *scope);
    const tn_primitive *(*primitive_find)(tn_runtime *runtime, const char *name);
    tn_status (*provider_find)(tn_runtime *runtime, const char *id, const char *kind,
                               const char *value, const char **out_plugin);
    tn_status (*graph_trace)(tn_scope *scope, tn_function_body body, void *user,
                             const tn_type *inputs, uint64_t num_inputs,
                             uint64_t num_outputs, tn_captures *captures,
                             const tn_graph **out_graph);
    const tn_graph *(*graph_retain)(const tn_graph *graph);
    void (*graph_release)(const tn_graph *graph);
    const tn_type *(*array_type)(const tn_array *array);
    const void *(*data)(tn_scope *scope, tn_array *array);
    tn_array *(*from_data)(tn_scope *scope, tn_dtype dtype, const tn_shape *shape,
                           const void *data);
    tn_array *(*keep)(tn_scope *scope, tn_array *array);
    void (*release)(tn_array *array);
    tn_status (*file_open)(tn_runtime *runtime, const char *path,
                           const tn_file_options *options, tn_file **out_file);
    void (*file_close)(tn_file *file);
    const char *(*file_name)(const tn_file *file, uint64_t index);
    const tn_type *(*file_type)(const tn_file *file, uint64_t index);
    const char *(*file_text)(const tn_file *file, const char *key);
    tn_array *(*file_array)(tn_scope *scope, const tn_file *file, const char *name);
    tn_status (*save)(tn_scope *scope, const char *path, tn_array *const *arrays,
                      const char *const *names, uint64_t num_arrays,
                      const tn_save_options *options);
} tn_host_graph_format;

#endif // TENON_GRAPH_FORMAT_H
