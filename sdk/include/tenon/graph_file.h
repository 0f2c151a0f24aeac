// SPDX-License-Identifier: MIT
// Files of graphs, for applications: a traced function is saved in one process, and runs in
// another one without the code that built it.
//
//   #include <tenon/graph_file.h> // link with -ltenon
//
//   tn_captures weights = {0};    // the arrays of the scope that `body` uses
//   tn_graph_trace(s, body, NULL, types, 2, 1, &weights, &graph);
//   const tn_graph_signature step = {.struct_size = sizeof(step),
//                                    .name = "step",
//                                    .graph = graph,
//                                    .num_inputs = 2,
//                                    .constants = weights.arrays,
//                                    .num_constants = weights.count};
//   tn_graph_save(s, "model.graph", &step, 1, NULL);
//   ...
//   const tn_graph_file *file;
//   tn_graph_load(rt, "model.graph", NULL, &file);
//   tn_function_create(rt, tn_graph_body, (void *)file->signatures[0], NULL, &f);
//   tn_function_call(f, s, inputs, 2, &output, 1);
//   tn_function_destroy(f);
//   tn_graph_unload(rt, file);
//
// A file has signatures: graphs with a name, whose inputs and outputs have names. Operators
// stand in it by id and revision, attributes by name, graphs among attributes too; so a
// file needs the plugins that it was made with, or later ones that still have these
// revisions. Devices (tn_scope_device) and names of inner arrays (tn_name) are not in it.
// docs/graph-files.md describes the format.
//
// Threads. A tn_graph_file is constant, and may be used by any thread until it is unloaded;
// scopes as <tenon/tenon.h> says.
#ifndef TENON_GRAPH_FILE_H
#define TENON_GRAPH_FILE_H

#include <tenon/control.h>
#include <tenon/file.h>

#ifdef __cplusplus
extern "C" {
#endif

// A graph under a name. For tn_graph_save filled by the application, and borrowed for the
// call; of a loaded file constant, until that is unloaded.
typedef struct tn_graph_signature {
    uint32_t struct_size; // sizeof(tn_graph_signature); 0: that of ABI 1.0
    uint32_t flags;       // 0
    const char *name;     // UTF-8, not empty; one of its own in the file
    const tn_graph *graph;
    uint64_t num_inputs; // of whoever calls it; the graph's other inputs are constants
    // Names of the inputs and outputs, num_inputs and graph->num_outputs of them; UTF-8,
    // not empty, each once. NULL for tn_graph_save: "x0", "x1", ... and "y0", "y1", ...
    const char *const *input_names;
    const char *const *output_names;
    // Arrays for the graph's inputs behind the first num_inputs, in order, as tn_captures
    // lists them: at least graph->num_inputs - num_inputs; arrays beyond that number are
    // not saved. An array that several signatures have is in the file once.
    tn_array *const *constants;
    // Names of the constants in the file, num_constants of them; NULL for tn_graph_save:
    // "c0", "c1", ... One array has one name.
    const char *const *constant_names;
    uint64_t num_constants;
    // Numbers of the inputs that a caller may donate, for tn_function_options.
    const uint32_t *donated; // num_donated of them; each once
    uint64_t num_donated;
} tn_graph_signature;

// Options of tn_graph_save. All zero is the default.
typedef struct tn_graph_save_options {
    uint32_t struct_size; // sizeof(tn_graph_save_options); 0: that of ABI 1.0
    uint32_t flags;       // 0
    // The name, without a folder, of a safetensors file beside the graph's, in which the
    // constants go. NULL: they are inside the graph's file.
    const char *constants;
} tn_graph_save_options;

// Writes a file of `num_signatures` signatures, one or more; evaluates the constants.
// signatures[0].struct_size is the size of the records. Equal graphs give equal files. Each
// file appears complete, or what was there is unchanged, as tn_save says; that of the
// constants comes first.
//
// TN_ERR_UNSUPPORTED: a graph that no other process could run, because it has callbacks or
// rules of the application (tn_custom_call), or that has graphs in graphs deeper than 64.
// TN_ERR_NOT_FOUND: no installed plugin knows graph files (org.tenon.graph does). Returns
// the scope's first failure.
TN_API tn_status tn_graph_save(tn_scope *scope, const char *path,
                               const tn_graph_signature *signatures,
                               uint64_t num_signatures,
                               const tn_graph_save_options *options);

// Contents of a file of graphs. Made by tn_graph_load.
typedef struct tn_graph_file {
    uint32_t struct_size; // sizeof(tn_graph_file) as the core was compiled
    uint32_t flags;       // 0
    // num_signatures of them, in the file's order. Their graphs and constants are kept.
    const tn_graph_signature *const *signatures;
    uint64_t num_signatures;
} tn_graph_file;

// Options of tn_graph_load. All zero is the default.
typedef struct tn_graph_load_options {
    uint32_t struct_size; // sizeof(tn_graph_load_options); 0: that of ABI 1.0
    uint32_t flags;       // TN_FILE_MAP: constants are the mapped file's own memory
    // The path of the file with the constants; NULL: inside, or the file beside that the
    // graph's file names.
    const char *constants;
} tn_graph_load_options;

// Gives what is in a file, which tn_graph_unload takes back; loads the constants, and the
// packs of the operators. Nothing in the file is trusted: each number is checked, and each
// operator infers its types anew. `options` may be NULL. On failure *out_file is left
// alone, and tn_last_error() says why.
//
// TN_ERR_NOT_FOUND: operators that no installed plugin provides, by id; where another
// revision is installed, the message says which, and whether the file is older or newer.
// TN_ERR_REFUSED: a damaged file, or one whose operators give other types than it says.
// TN_ERR_ARGUMENT: an attribute that an operator does not have, or does not take. Any
// thread.
TN_API tn_status tn_graph_load(tn_runtime *runtime, const char *path,
                               const tn_graph_load_options *options,
                               const tn_graph_file **out_file);

// Releases the graphs and constants. Before, destroy the functions that use them. NULL is
// fine. While a file is loaded, tn_runtime_close refuses.
TN_API void tn_graph_unload(tn_runtime *runtime, const tn_graph_file *file);

// The body of a function that runs a signature: `user` is a tn_graph_signature, which lives
// as long as the function. Puts its graph in the scope for these inputs and its constants,
// which are kept arrays or of the scope. TN_ERR_ARGUMENT: another number of inputs or
// outputs, or inputs of other types, than the signature has.
TN_API tn_status tn_graph_body(tn_scope *scope, tn_array *const *inputs,
                               uint64_t num_inputs, tn_array **outputs,
                               uint64_t num_outputs, void *user);

#ifdef __cplusplus
}
#endif

#endif // TENON_GRAPH_FILE_H
