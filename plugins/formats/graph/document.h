// SPDX-License-Identifier: MIT
// A file of graphs as data: parse.c reads and checks the JSON text without looking up any
// operator. load.c builds graphs from the document, describe.c describes it.
// docs/graph-files.md explains each member.
#ifndef PLUGIN_GRAPH_DOCUMENT_H
#define PLUGIN_GRAPH_DOCUMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <tenon/checked.h>
#include <tenon/graph_format.h>

#define NO_ARRAY UINT32_MAX // in a list of inputs: an absent optional input
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define GRAPH_TEXT "tenon.graph" // the key of the JSON text in the safetensors file
#define GRAPH_VERSION 1
#define MAX_DEPTH 64 // of graphs among attributes of graphs
// The prefix of ids of operators whose rules an application made: they hold addresses.
#define CUSTOM_PREFIX "tn.custom"

// Names of the kinds of attributes in the file, by their number in <tenon/attr.h>.
extern const char *const attr_kinds[TN_ATTR_GRAPH + 1];

struct doc_attr {
    tn_attr attr;    // its `graph` is set by load.c
    bool is_runtime; // the value is an array, `number`
    uint32_t number; // of the array or graph that is the value
    uint32_t kind;   // TN_ATTR_BOOL ..; 0: a runtime attribute
};

enum { DOC_NUMBER = 1, DOC_OPERATOR = 2, DOC_EXPRESSION = 3 };

struct doc_node {
    uint32_t kind;    // DOC_...
    bool is_typed;    // EXPRESSION: `types` has the dtypes given, not inferred
    uint32_t op;      // OPERATOR: index among the operators
    const char *text; // EXPRESSION
    uint32_t *inputs; // numbers of arrays, or NO_ARRAY
    uint32_t num_inputs;
    uint64_t weak, number;
    tn_type *types;
    uint32_t num_outputs;
    struct doc_attr *attrs;
    uint32_t num_attrs;
};

struct doc_graph {
    tn_type *inputs;
    bool *weak; // whether each input is weak
    struct doc_node *nodes;
    uint32_t *outputs;
    uint32_t num_inputs, num_nodes, num_outputs;
    uint32_t num_arrays; // inputs and outputs of nodes
    uint32_t depth;      // 1: no attribute is a graph
    uint64_t expanded;   // nodes, with those of graphs among attributes; saturates
    tn_type *output_types;
};

struct doc_constant {
    const char *name;
    tn_type type;
};

struct doc_signature {
    const char *name;
    uint32_t graph;
    const char **input_names, **output_names;
    uint32_t *constants, *donated;
    uint32_t num_inputs, num_constants, num_donated;
};

struct document {
    const tn_host *host;
    const char *path; // of the file, for messages; borrowed
    json_t *root;     // owns the texts
    void *blocks;     // memory of doc_alloc
    char where[96];   // "graph 1, node 3: ", for messages
    const char **operators;
    uint32_t *uses; // number of nodes of each operator
    struct doc_graph *graphs;
    struct doc_constant *constants;
    struct doc_signature *signatures;
    uint32_t num_operators, num_graphs, num_constants, num_signatures;
    const char *beside; // name of the file with the constants; NULL: this file
};

// Reads a text. A failure is recorded with path and position, and frees everything.
tn_status document_parse(struct document *doc, const tn_host *host, const char *path,
                         const char *text);
void document_finish(struct document *doc);

// Cleared memory that lives as long as the document. NULL when out of memory.
void *doc_alloc(struct document *doc, uint64_t count, uint64_t size);

// Records why the file is refused, with path and position. Returns TN_ERR_REFUSED.
#define doc_refuse(doc, format, ...)                                                       \
    (doc)->host->fail((doc)->host, TN_ERR_REFUSED, "%s: %s" format, (doc)->path,           \
                      (doc)->where, ##__VA_ARGS__)

// Reads a node's attributes, in graph `graph` after `num_arrays` arrays (parse_attrs.c).
tn_status parse_attrs(struct document *doc, const json_t *attrs, uint32_t graph,
                      uint32_t num_arrays, struct doc_node *node);

// A number, which is finite; any double as its bits in hexadecimal: "0x7ff0...".
tn_status parse_double(struct document *doc, const json_t *value, double *out);
tn_status parse_int(struct document *doc, const json_t *value, int64_t *out);

// Whether constants of this dtype are stored as pairs of f64, because safetensors has no
// name for it.
static inline bool is_paired(tn_dtype dtype)
{
    return dtype == TN_COMPLEX128;
}

// The type under which a constant is stored in the safetensors file.
tn_type stored_type(const tn_type *type);

static inline bool same_type(const tn_type *a, const tn_type *b)
{
    bool same = a->dtype == b->dtype && a->rank == b->rank;
    for (int32_t i = 0; same && i < a->rank; i++)
        same = a->extent[i] == b->extent[i];
    return same;
}

static inline const tn_attr_field *field_at(const tn_attr_table *table, uint32_t i)
{
    return (const void *)((const char *)table->fields + i * table->field_size);
}

// --- the plugin's functions --------------------------------------------------------------

static inline const tn_host_graph_format *host_of(const tn_host *host)
{
    return host->query(host, TN_HOST_GRAPH_FORMAT);
}

tn_status graph_save(const tn_host *host, tn_scope *scope, const char *path,
                     const tn_graph_signature *signatures, uint64_t num_signatures,
                     const tn_graph_save_options *options);
tn_status graph_load(const tn_host *host, tn_scope *scope, const char *path,
                     const tn_graph_load_options *options, const tn_graph_file **out_file);
void graph_unload(const tn_host *host, const tn_graph_file *file);
tn_status graph_describe(const tn_host *host, tn_scope *scope, const char *path,
                         char **out_json);

// Copies an application's struct of `size` bytes (0: its size in ABI 1.0) to `own`. Members
// that it lacks become 0; bytes beyond `own_size` must be 0. NULL: all 0.
tn_status read_struct(const tn_host *host, void *own, uint64_t own_size, const void *given,
                      uint64_t size, const char *what);

// Opens a safetensors file, whatever its extension is.
tn_status arrays_open(const tn_host *host, tn_scope *scope, const char *path,
                      uint32_t flags, tn_file **out_file);
// Opens a file of graphs, and reads its text. The file may be closed at once.
tn_status document_open(struct document *doc, const tn_host *host, tn_scope *scope,
                        const char *path, uint32_t flags, tn_file **out_file);

#endif // PLUGIN_GRAPH_DOCUMENT_H
