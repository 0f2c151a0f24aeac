// SPDX-License-Identifier: MIT
// Reads the JSON text of a file of graphs. Nothing in it is trusted: members must be the
// format's, numbers in range, and arrays and graphs defined before they are used.
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/format.h>
#include "document.h"

void *doc_alloc(struct document *doc, uint64_t count, uint64_t size)
{
    uint64_t bytes;
    if (!tn_checked_multiply(count ? count : 1, size, &bytes) ||
        !tn_checked_add(bytes, sizeof(max_align_t), &bytes))
        bytes = UINT64_MAX; // more than any machine has
    char *block = doc->host->alloc(doc->host, bytes, 0);
    if (!block)
        return NULL;
    memset(block, 0, bytes);
    memcpy(block, &doc->blocks, sizeof(doc->blocks));
    doc->blocks = block;
    return block + sizeof(max_align_t);
}

void document_finish(struct document *doc)
{
    while (doc->blocks) {
        void *block = doc->blocks;
        memcpy(&doc->blocks, block, sizeof(doc->blocks));
        doc->host->free(doc->host, block);
    }
    json_decref(doc->root);
    doc->root = NULL;
}

// --- members -----------------------------------------------------------------------------

// Checks that an object has no members but those in `known`, which ends with NULL.
static tn_status check_members(struct document *doc, const json_t *object,
                               const char *const *known)
{
    const char *key;
    json_t *value;
    if (!json_is_object(object))
        return doc_refuse(doc, "expected an object");
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        uint32_t i = 0;
        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (!known[i])
            return doc_refuse(doc, "unknown member '%.64s'", key);
    }
    return TN_OK;
}

static tn_status get_array(struct document *doc, const json_t *object, const char *key,
                           const json_t **out, uint32_t *out_count)
{
    *out = json_object_get(object, key);
    if (!json_is_array(*out))
        return doc_refuse(doc, "expected a list '%s'", key);
    if (json_array_size(*out) > UINT32_MAX / 2)
        return doc_refuse(doc, "'%s' is too long", key);
    *out_count = (uint32_t)json_array_size(*out);
    return TN_OK;
}

static tn_status get_text(struct document *doc, const json_t *value, const char *what,
                          const char **out)
{
    *out = json_string_value(value);
    return *out && **out ? TN_OK : doc_refuse(doc, "expected a text for %s", what);
}

// Reads a number below `limit`.
static tn_status get_index(struct document *doc, const json_t *value, const char *what,
                           uint32_t limit, uint32_t *out)
{
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    if (number < 0 || number >= limit)
        return doc_refuse(doc, "%s: expected a number below %u", what, limit);
    *out = (uint32_t)number;
    return TN_OK;
}

// Reads a list of numbers below `limit`; with `optional`, null stands for NO_ARRAY.
static tn_status get_indices(struct document *doc, const json_t *object, const char *key,
                             uint32_t limit, bool optional, uint32_t **out,
                             uint32_t *out_count)
{
    const json_t *list;
    tn_status status = get_array(doc, object, key, &list, out_count);
    if (status != TN_OK)
        return status;
    if (!(*out = doc_alloc(doc, *out_count, sizeof(**out))))
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < *out_count && status == TN_OK; i++) {
        const json_t *value = json_array_get(list, i);
        if (optional && json_is_null(value))
            (*out)[i] = NO_ARRAY;
        else
            status = get_index(doc, value, key, limit, &(*out)[i]);
    }
    return status;
}

// Reads a list of texts, of which no two are equal.
static tn_status graph_parse_get_texts(struct document *doc, const json_t *object,
                                       const char *key, const char ***out,
                                       uint32_t *out_count)
{
    const json_t *list;
    json_t *seen = json_object();
    tn_status status = get_array(doc, object, key, &list, out_count);
    if (status == TN_OK &&
        (!seen || !(*out = doc_alloc(doc, (uint64_t)*out_count + 1, sizeof(**out)))))
        status = TN_ERR_MEMORY;
    for (uint32_t i = 0; status == TN_OK && i < *out_count; i++) {
        status = get_text(doc, json_array_get(list, i), key, &(*out)[i]);
        if (status == TN_OK && json_object_get(seen, (*out)[i]))
            status = doc_refuse(doc, "%s: '%.64s' is there twice", key, (*out)[i]);
        if (status == TN_OK && json_object_set_new(seen, (*out)[i], json_null()))
            status = TN_ERR_MEMORY;
    }
    json_decref(seen);
    return status;
}

// --- types -------------------------------------------------------------------------------

static tn_dtype graph_parse_dtype(const char *name)
{
    for (tn_dtype i = 1; name && i < TN_NUM_DTYPES; i++)
        if (strcmp(name, tn_dtype_name(i)) == 0)
            return i;
    return TN_DTYPE_NONE;
}

// ["f32", [2, 3]], or ["f32", [], "weak"].
static tn_status graph_parse_type(struct document *doc, const json_t *value, tn_type *out,
                                  bool *out_weak)
{
    const json_t *shape = json_array_get(value, 1);
    size_t size = json_array_size(value), rank = json_array_size(shape);
    const char *name = json_string_value(json_array_get(value, 0));
    const char *weak = json_string_value(json_array_get(value, 2));
    uint64_t bytes;
    *out = (tn_type){.dtype = graph_parse_dtype(name)};
    *out_weak = size == 3;
    if (size < 2 || size > 3 || (size == 3 && (!weak || strcmp(weak, "weak") != 0)))
        return doc_refuse(doc, "expected a type, such as [\"f32\", [2, 3]]");
    if (!out->dtype)
        return doc_refuse(doc, "'%.64s' is no dtype", name ? name : "");
    if (!json_is_array(shape) || rank > TN_MAX_RANK)
        return doc_refuse(doc, "expected a shape of at most %d axes", TN_MAX_RANK);
    for (size_t i = 0; i < rank; i++) {
        const json_t *extent = json_array_get(shape, i);
        if (!json_is_integer(extent) || json_integer_value(extent) < 0)
            return doc_refuse(doc, "extent %zu is no number from 0 to 2^63 - 1", i);
        out->extent[out->rank++] = json_integer_value(extent);
    }
    if (!tn_format_bytes(out, &bytes))
        return doc_refuse(doc, "the bytes of a shape overflow 63 bits");
    return TN_OK;
}

// --- nodes -------------------------------------------------------------------------------

static tn_status graph_parse_number(struct document *doc, const json_t *value,
                                    struct doc_node *node)
{
    tn_dtype dtype = node->types[0].dtype;
    bool is_float =
        tn_dtype_in(dtype, TN_FLOAT_DTYPES | TN_FLOAT8_DTYPES | TN_COMPLEX_DTYPES);
    int64_t whole = 0;
    double number = 0;
    if (node->types[0].rank)
        return doc_refuse(doc, "a number has no axes");
    tn_status status =
        is_float ? parse_double(doc, value, &number) : parse_int(doc, value, &whole);
    if (status != TN_OK)
        return status;
    node->number = (uint64_t)whole;
    if (is_float)
        memcpy(&node->number, &number, sizeof(number));
    if (dtype == TN_BOOL && node->number > 1)
        return doc_refuse(doc, "expected 0 or 1 for a bool");
    return TN_OK;
}

static tn_status graph_parse_outputs(struct document *doc, const json_t *types,
                                     struct doc_node *node)
{
    tn_status status = TN_OK;
    node->types = doc_alloc(doc, node->num_outputs, sizeof(*node->types));
    if (!node->types)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < node->num_outputs && status == TN_OK; i++) {
        bool weak = false;
        status = graph_parse_type(doc, json_array_get(types, i), &node->types[i], &weak);
        node->weak |= (uint64_t)weak << i;
    }
    return status;
}

static tn_status parse_application(struct document *doc, const json_t *value,
                                   uint32_t graph, uint32_t num_arrays,
                                   struct doc_node *node)
{
    static const char *const known[] = {"op", "expr", "typed", "in", "attrs", "out", NULL};
    const json_t *types, *typed = json_object_get(value, "typed");
    const json_t *op = json_object_get(value, "op"), *expr = json_object_get(value, "expr");
    tn_status status = check_members(doc, value, known);
    if (status != TN_OK)
        return status;
    node->kind = op ? DOC_OPERATOR : DOC_EXPRESSION;
    if (!op == !expr || (typed && (op || !json_is_true(typed))))
        return doc_refuse(doc, "expected 'number', 'op', or 'expr', which may be 'typed'");
    node->is_typed = typed;
    status = op ? get_index(doc, op, "op", doc->num_operators, &node->op)
                : get_text(doc, expr, "'expr'", &node->text);
    if (status == TN_OK && op)
        doc->uses[node->op]++;
    if (status == TN_OK)
        status = get_indices(doc, value, "in", num_arrays, true, &node->inputs,
                             &node->num_inputs);
    if (status == TN_OK)
        status = get_array(doc, value, "out", &types, &node->num_outputs);
    if (status == TN_OK && (node->num_outputs < 1 || node->num_outputs > TN_MAX_OUTPUTS))
        status = doc_refuse(doc, "%u outputs, expected 1 to %d", node->num_outputs,
                            TN_MAX_OUTPUTS);
    if (status == TN_OK)
        status = graph_parse_outputs(doc, types, node);
    if (status == TN_OK)
        status = parse_attrs(doc, json_object_get(value, "attrs"), graph, num_arrays, node);
    return status;
}

static tn_status parse_node(struct document *doc, const json_t *value, uint32_t graph,
                            uint32_t num_arrays, struct doc_node *node)
{
    static const char *const known[] = {"number", "type", NULL};
    const json_t *number = json_object_get(value, "number");
    if (!number)
        return parse_application(doc, value, graph, num_arrays, node);
    bool weak = false;
    node->kind = DOC_NUMBER;
    node->num_outputs = 1;
    tn_status status = check_members(doc, value, known);
    if (status != TN_OK)
        return status;
    if (!(node->types = doc_alloc(doc, 1, sizeof(*node->types))))
        return TN_ERR_MEMORY;
    status = graph_parse_type(doc, json_object_get(value, "type"), node->types, &weak);
    node->weak = weak;
    return status == TN_OK ? graph_parse_number(doc, number, node) : status;
}

// --- graphs ------------------------------------------------------------------------------

static tn_status parse_inputs(struct document *doc, const json_t *value,
                              struct doc_graph *g)
{
    const json_t *types;
    tn_status status = get_array(doc, value, "inputs", &types, &g->num_inputs);
    if (status != TN_OK)
        return status;
    g->inputs = doc_alloc(doc, g->num_inputs, sizeof(*g->inputs));
    g->weak = doc_alloc(doc, g->num_inputs, sizeof(*g->weak));
    if (!g->inputs || !g->weak)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < g->num_inputs && status == TN_OK; i++)
        status =
            graph_parse_type(doc, json_array_get(types, i), &g->inputs[i], &g->weak[i]);
    g->num_arrays = g->num_inputs;
    return status;
}

// Adds the depth and the nodes of graphs among the attributes to those of `g`.
static tn_status count_nested(struct document *doc, struct doc_graph *g,
                              const struct doc_node *node)
{
    for (uint32_t i = 0; i < node->num_attrs; i++) {
        if (node->attrs[i].kind != TN_ATTR_GRAPH)
            continue;
        const struct doc_graph *inner = &doc->graphs[node->attrs[i].number];
        g->expanded = tn_saturated_add(g->expanded, inner->expanded);
        if (inner->depth >= g->depth)
            g->depth = inner->depth + 1;
    }
    if (g->depth > MAX_DEPTH)
        return doc_refuse(doc, "graphs in graphs are deeper than %d", MAX_DEPTH);
    return TN_OK;
}

static tn_status parse_nodes(struct document *doc, const json_t *value, uint32_t index)
{
    struct doc_graph *g = &doc->graphs[index];
    const json_t *nodes;
    tn_status status = get_array(doc, value, "nodes", &nodes, &g->num_nodes);
    if (status != TN_OK)
        return status;
    if (!(g->nodes = doc_alloc(doc, g->num_nodes, sizeof(*g->nodes))))
        return TN_ERR_MEMORY;
    g->depth = 1;
    for (uint32_t i = 0; i < g->num_nodes && status == TN_OK; i++) {
        snprintf(doc->where, sizeof(doc->where), "graph %u, node %u: ", index, i);
        status =
            parse_node(doc, json_array_get(nodes, i), index, g->num_arrays, &g->nodes[i]);
        g->expanded = tn_saturated_add(g->expanded, 1);
        if (status == TN_OK)
            status = count_nested(doc, g, &g->nodes[i]);
        if (status == TN_OK && g->num_arrays > UINT32_MAX / 2)
            status = doc_refuse(doc, "too many arrays");
        g->num_arrays += g->nodes[i].num_outputs;
    }
    return status;
}

// Stores the types of the outputs, for describe.c.
static tn_status find_output_types(struct document *doc, struct doc_graph *g)
{
    tn_type *all = doc_alloc(doc, g->num_arrays, sizeof(*all));
    uint32_t count = g->num_inputs;
    g->output_types = doc_alloc(doc, g->num_outputs, sizeof(*g->output_types));
    if (!all || !g->output_types)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < g->num_inputs; i++)
        all[i] = g->inputs[i];
    for (uint32_t i = 0; i < g->num_nodes; i++)
        for (uint32_t k = 0; k < g->nodes[i].num_outputs; k++)
            all[count++] = g->nodes[i].types[k];
    for (uint32_t i = 0; i < g->num_outputs; i++)
        g->output_types[i] = all[g->outputs[i]];
    return TN_OK;
}

static tn_status parse_graph(struct document *doc, const json_t *value, uint32_t index)
{
    static const char *const known[] = {"inputs", "nodes", "outputs", NULL};
    struct doc_graph *g = &doc->graphs[index];
    snprintf(doc->where, sizeof(doc->where), "graph %u: ", index);
    tn_status status = check_members(doc, value, known);
    if (status == TN_OK)
        status = parse_inputs(doc, value, g);
    if (status == TN_OK)
        status = parse_nodes(doc, value, index);
    if (status != TN_OK)
        return status;
    snprintf(doc->where, sizeof(doc->where), "graph %u: ", index);
    status = get_indices(doc, value, "outputs", g->num_arrays, false, &g->outputs,
                         &g->num_outputs);
    return status == TN_OK ? find_output_types(doc, g) : status;
}

static tn_status parse_graphs(struct document *doc)
{
    const json_t *list;
    uint32_t count = 0;
    tn_status status = get_array(doc, doc->root, "graphs", &list, &count);
    if (status != TN_OK)
        return status;
    if (!(doc->graphs = doc_alloc(doc, count, sizeof(*doc->graphs))))
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < count && status == TN_OK; i++) {
        status = parse_graph(doc, json_array_get(list, i), i);
        doc->num_graphs = i + 1;
    }
    return status;
}

// --- constants and signatures ------------------------------------------------------------

static tn_status parse_constants(struct document *doc)
{
    static const char *const known[] = {"name", "type", NULL};
    const json_t *list;
    json_t *names = json_object();
    tn_status status = get_array(doc, doc->root, "constants", &list, &doc->num_constants);
    if (status == TN_OK)
        doc->constants = doc_alloc(doc, doc->num_constants, sizeof(*doc->constants));
    if (status == TN_OK && (!doc->constants || !names))
        status = TN_ERR_MEMORY;
    for (uint32_t i = 0; status == TN_OK && i < doc->num_constants; i++) {
        struct doc_constant *c = &doc->constants[i];
        const json_t *value = json_array_get(list, i);
        bool weak = false;
        snprintf(doc->where, sizeof(doc->where), "constant %u: ", i);
        status = check_members(doc, value, known);
        if (status == TN_OK)
            status = get_text(doc, json_object_get(value, "name"), "the name", &c->name);
        if (status == TN_OK && json_object_get(names, c->name))
            status = doc_refuse(doc, "there are two of the name '%.64s'", c->name);
        if (status == TN_OK && json_object_set_new(names, c->name, json_null()))
            status = TN_ERR_MEMORY;
        if (status == TN_OK)
            status = graph_parse_type(doc, json_object_get(value, "type"), &c->type, &weak);
    }
    json_decref(names);
    return status;
}

// Checks that the graph's inputs are the caller's and then the constants.
static tn_status graph_parse_check_signature(struct document *doc,
                                             const struct doc_signature *s)
{
    const struct doc_graph *g = &doc->graphs[s->graph];
    if ((uint64_t)s->num_inputs + s->num_constants != g->num_inputs)
        return doc_refuse(doc, "%u inputs and %u constants for a graph with %u inputs",
                          s->num_inputs, s->num_constants, g->num_inputs);
    for (uint32_t i = 0; i < s->num_constants; i++)
        if (!same_type(&doc->constants[s->constants[i]].type,
                       &g->inputs[s->num_inputs + i]))
            return doc_refuse(doc, "constant '%.64s' has another type than its input",
                              doc->constants[s->constants[i]].name);
    bool *seen = doc_alloc(doc, s->num_inputs, sizeof(*seen));
    for (uint32_t i = 0; seen && i < s->num_donated; i++) {
        if (seen[s->donated[i]])
            return doc_refuse(doc, "input %u is donated twice", s->donated[i]);
        seen[s->donated[i]] = true;
    }
    return seen ? TN_OK : TN_ERR_MEMORY;
}

// `names`: those of the signatures before.
static tn_status graph_parse_signature(struct document *doc, const json_t *value,
                                       uint32_t index, json_t *names)
{
    static const char *const known[] = {"name",      "graph",   "inputs", "outputs",
                                        "constants", "donated", NULL};
    struct doc_signature *s = &doc->signatures[index];
    uint32_t num_outputs = 0;
    snprintf(doc->where, sizeof(doc->where), "signature %u: ", index);
    tn_status status = check_members(doc, value, known);
    if (status == TN_OK)
        status = get_text(doc, json_object_get(value, "name"), "the name", &s->name);
    if (status == TN_OK && json_object_get(names, s->name))
        status = doc_refuse(doc, "there are two of the name '%.64s'", s->name);
    if (status == TN_OK && json_object_set_new(names, s->name, json_null()))
        status = TN_ERR_MEMORY;
    if (status == TN_OK)
        status = get_index(doc, json_object_get(value, "graph"), "graph", doc->num_graphs,
                           &s->graph);
    if (status == TN_OK)
        status =
            graph_parse_get_texts(doc, value, "inputs", &s->input_names, &s->num_inputs);
    if (status == TN_OK)
        status =
            graph_parse_get_texts(doc, value, "outputs", &s->output_names, &num_outputs);
    if (status == TN_OK && num_outputs != doc->graphs[s->graph].num_outputs)
        status = doc_refuse(doc, "%u names for the %u outputs of graph %u", num_outputs,
                            doc->graphs[s->graph].num_outputs, s->graph);
    if (status == TN_OK)
        status = get_indices(doc, value, "constants", doc->num_constants, false,
                             &s->constants, &s->num_constants);
    if (status == TN_OK)
        status = get_indices(doc, value, "donated", s->num_inputs, false, &s->donated,
                             &s->num_donated);
    return status == TN_OK ? graph_parse_check_signature(doc, s) : status;
}

static tn_status parse_signatures(struct document *doc)
{
    const json_t *list;
    uint32_t count = 0;
    tn_status status = get_array(doc, doc->root, "signatures", &list, &count);
    if (status != TN_OK)
        return status;
    if (!count)
        return doc_refuse(doc, "no signatures");
    json_t *names = json_object();
    doc->signatures = doc_alloc(doc, count, sizeof(*doc->signatures));
    if (!doc->signatures || !names)
        status = TN_ERR_MEMORY;
    for (uint32_t i = 0; i < count && status == TN_OK; i++)
        status = graph_parse_signature(doc, json_array_get(list, i), i, names);
    json_decref(names);
    doc->num_signatures = count;
    return status;
}

// --- the document ------------------------------------------------------------------------

static tn_status parse_operators(struct document *doc)
{
    tn_status status = graph_parse_get_texts(doc, doc->root, "operators", &doc->operators,
                                             &doc->num_operators);
    if (status == TN_OK &&
        !(doc->uses = doc_alloc(doc, doc->num_operators, sizeof(*doc->uses))))
        status = TN_ERR_MEMORY;
    for (uint32_t i = 0; status == TN_OK && i < doc->num_operators; i++)
        if (strncmp(doc->operators[i], CUSTOM_PREFIX, strlen(CUSTOM_PREFIX)) == 0)
            status = doc_refuse(doc,
                                "'%.64s' has rules of an application, which are in no "
                                "file",
                                doc->operators[i]);
    return status;
}

// Reads the name of a file in the same folder.
static tn_status parse_beside(struct document *doc)
{
    const json_t *value = json_object_get(doc->root, "beside");
    if (!value)
        return TN_OK;
    tn_status status = get_text(doc, value, "'beside'", &doc->beside);
    if (status == TN_OK && (strchr(doc->beside, '/') || strcmp(doc->beside, ".") == 0 ||
                            strcmp(doc->beside, "..") == 0))
        status = doc_refuse(doc, "'beside' is '%.64s', expected a name without a folder",
                            doc->beside);
    return status;
}

static tn_status parse_root(struct document *doc)
{
    static const char *const known[] = {"version",    "operators", "graphs", "constants",
                                        "signatures", "beside",    NULL};
    const json_t *version = json_object_get(doc->root, "version");
    if (!json_is_integer(version))
        return doc_refuse(doc, "no version of the format");
    if (json_integer_value(version) != GRAPH_VERSION)
        return doc_refuse(doc, "version %lld of the format, expected %d",
                          (long long)json_integer_value(version), GRAPH_VERSION);
    tn_status status = check_members(doc, doc->root, known);
    if (status == TN_OK)
        status = parse_operators(doc);
    if (status == TN_OK)
        status = parse_graphs(doc);
    doc->where[0] = 0;
    if (status == TN_OK)
        status = parse_constants(doc);
    doc->where[0] = 0;
    if (status == TN_OK)
        status = parse_signatures(doc);
    doc->where[0] = 0;
    return status == TN_OK ? parse_beside(doc) : status;
}

tn_status document_parse(struct document *doc, const tn_host *host, const char *path,
                         const char *text)
{
    json_error_t error = {0};
    *doc = (struct document){.host = host, .path = path};
    doc->root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    tn_status status =
        doc->root ? parse_root(doc)
                  : doc_refuse(doc, "damaged text '" GRAPH_TEXT "': %s", error.text);
    if (status != TN_OK)
        document_finish(doc);
    return status;
}
