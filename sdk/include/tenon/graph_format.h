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

    // tn_graph_save. `signatures` and `options` are the application's: they have the sizes
    // that they say, and nothing in them is checked.
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

// Flags of a tn_graph_node.
enum {
    // The dtypes of an expression's outputs were given, and do not follow from those of its
    // inputs.
    TN_NODE_TYPED = 1,
    // The expression reduces along the axis of an attribute "axis".
    TN_NODE_REDUCES = 2,
};

// One operation of a graph. All that it points to is borrowed from the graph.
typedef struct tn_graph_node {
    uint32_t struct_size;  // sizeof(tn_graph_node) as the core was compiled
    uint32_t flags;        // TN_NODE_TYPED ..., or 0
    const char *primitive; // id with revision; NULL: an expression
    const char *expr;      // the right side of "x, y -> x * y + 1.0"; NULL: a primitive
    // The scalars of runtime attributes are the last; NULL: an optional input that is not
    // given.
    tn_array *const *inputs;
    uint64_t num_inputs;
    tn_array *outputs; // output i is at byte i * array_size
    uint64_t array_size;
    uint64_t num_outputs;
    // The attributes; NULL: none. An expression has those whose names are listed, and
    // "axis" if it reduces; the table may have others.
    const tn_attr_table *table;
    const void *attrs;
    const char *const *input_names; // of an expression
    const char *const *attr_names;  // of an expression, num_attr_names of them
    uint64_t num_attr_names;
} tn_graph_node;

// Facts about an array of a graph that tn_array_type() does not give.
typedef struct tn_graph_array {
    // Number of the array in its graph: inputs first; then, node by node, the node's
    // outputs, and known scalars that no node before has as input.
    uint32_t number;
    uint32_t is_number; // 1: a known scalar
    uint64_t bits;      // of a double, for a dtype of integers of an int64_t
    uint32_t is_weak;   // 1: it takes the other operand's dtype, as arrays of tn_int do
    uint32_t reserved;
} tn_graph_array;

// Service: looks into graphs, builds them again, and has functions of the application's
// headers, for the plugin that offers TN_IFACE_GRAPH_FORMAT.
#define TN_HOST_GRAPH_FORMAT "tn.host.graph_format/1"
typedef struct tn_host_graph_format {
    uint32_t struct_size;
    uint32_t flags; // 0

    // Shows node `index`, inputs before users: equal graphs have equal nodes. Behind the
    // last one the graph's outputs, and behind these its inputs, are the inputs of `out`,
    // which has nothing else. Any thread.
    void (*node)(const tn_graph *graph, uint64_t index, tn_graph_node *out);

    // Shows an array of such a node. Any thread.
    void (*array)(const tn_array *array, tn_graph_array *out);

    // Builds a known scalar; rounds it to the dtype, which is valid. NULL on failure, which
    // is the scope's.
    tn_array *(*number)(tn_scope *scope, tn_dtype dtype, uint64_t bits);

    // As tn_expr, for any number of outputs; `dtypes` of them, or NULL: they are inferred.
    tn_status (*expr_n)(tn_scope *scope, const char *text, const tn_array *const *inputs,
                        uint64_t num_inputs, tn_attr_list attrs, const tn_dtype *dtypes,
                        tn_array **outputs, uint64_t num_outputs);

    // Makes an array that was built just now weak (1), or not (0).
    void (*set_weak)(tn_array *array, int32_t weak);

    // As tn_op_n. A runtime attribute that is given as an array which was the input of such
    // a node becomes that input again, without a conversion.
    tn_status (*op_n)(tn_scope *scope, const char *name, const tn_array *const *inputs,
                      uint64_t num_inputs, tn_attr_list attrs, tn_array **outputs,
                      uint64_t num_outputs);

    // tn_scope_runtime, and so on: the contracts are those of the functions.
    tn_runtime *(*scope_runtime)(const tn_scope *scope);
    tn_status (*scope_status)(const tn_scope *scope);
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

    // Gives how many nodes a graph of the scope's runtime has once its operators are
    // decomposed as far as they can be, with all graphs among its attributes in place; any
    // number above `most` when there are more than that. Takes time in proportion to the
    // result. Failures are recorded as host->fail does. The thread of the scope.
    tn_status (*graph_steps)(tn_scope *scope, const tn_graph *graph, uint64_t most,
                             uint64_t *out_steps);
} tn_host_graph_format;

#endif // TENON_GRAPH_FORMAT_H
