// SPDX-License-Identifier: MIT
// tn_graph_load: builds the graphs of a document, and loads its constants.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "document.h"

// State of a load.
struct loader {
    const tn_host *host;
    const tn_host_graph_format *api;
    tn_scope *scope;
    struct document doc;
    tn_file *file;                   // with the constants
    const tn_primitive **primitives; // by operator number
    const tn_graph **graphs;
};

// A loaded file, with the memory that it points to; the document owns texts and lists.
struct loaded {
    tn_graph_file file; // first: loaded is found from it by a cast
    struct document doc;
    const tn_host_graph_format *api;
    const tn_graph_signature **signatures;
    tn_array **constants; // retained; by number in the document
    uint32_t num_constants;
};

// --- operators ---------------------------------------------------------------------------

// "; acme.norm/2 is installed, the file was made by an older revision", or "".
static void say_installed(const struct loader *l, const char *id, char text[256])
{
    char stem[128];
    const char *slash = strrchr(id, '/');
    const tn_primitive *other = NULL;
    *text = 0;
    if (slash && (size_t)(slash - id) < sizeof(stem)) {
        snprintf(stem, sizeof(stem), "%.*s", (int)(slash - id), id);
        other = l->api->primitive_find(l->api->scope_runtime(l->scope), stem);
    }
    const char *own = other ? strrchr(other->id, '/') : NULL;
    if (own)
        snprintf(text, 256, " (%s is installed: the file was made by %s revision)",
                 other->id,
                 strtoul(slash + 1, NULL, 10) < strtoul(own + 1, NULL, 10) ? "an older"
                                                                           : "a newer");
}

// Finds all operators, so that one message names all missing ones.
static tn_status find_operators(struct loader *l)
{
    char missing[1024] = "", installed[256];
    size_t at = 0;
    for (uint32_t i = 0; i < l->doc.num_operators; i++) {
        const char *id = l->doc.operators[i];
        const tn_primitive *found =
            l->api->primitive_find(l->api->scope_runtime(l->scope), id);
        l->primitives[i] = found;
        if ((found && strcmp(found->id, id) == 0) || at >= sizeof(missing))
            continue;
        say_installed(l, id, installed);
        at += (size_t)snprintf(missing + at, sizeof(missing) - at, "%s%.80s%s",
                               at ? ", " : "", id, installed);
    }
    return at ? l->host->fail(l->host, TN_ERR_NOT_FOUND,
                              "%s: needs operators that no installed plugin provides: %s",
                              l->doc.path, missing)
              : TN_OK;
}

// --- nodes -------------------------------------------------------------------------------

// A graph that is being traced.
struct building {
    const struct loader *loader;
    const struct doc_graph *graph;
    tn_array **arrays;     // by number in the document
    const tn_array **list; // inputs of the current node
    tn_attr *attrs;        // of the current node
    uint32_t at;           // the current node
};

static const tn_attr_field *graph_load_find_field(const tn_attr_table *table,
                                                  const char *name)
{
    for (uint32_t i = 0; i < table->num_fields; i++)
        if (strcmp(field_at(table, i)->name, name) == 0)
            return field_at(table, i);
    return NULL;
}

// Checks that the kind in the file is the operator's. Unknown names are left to the core,
// which suggests the nearest name.
static tn_status check_kind(const struct loader *l, const struct doc_attr *attr,
                            const tn_primitive *op)
{
    const tn_attr_field *field = graph_load_find_field(&op->attrs, attr->attr.name);
    bool is_runtime = field && (field->flags & TN_ATTR_RUNTIME);
    if (!field ||
        (attr->is_runtime ? is_runtime : !is_runtime && field->kind == attr->kind))
        return TN_OK;
    return l->host->fail(l->host, TN_ERR_ARGUMENT,
                         "%s: attribute '%s' is %s in the file, expected %s", op->id,
                         field->name, attr->is_runtime ? "runtime" : attr_kinds[attr->kind],
                         is_runtime ? "runtime" : attr_kinds[field->kind]);
}

// Gives the node's attributes.
static tn_status list_attrs(const struct building *b, const struct doc_node *node,
                            const tn_primitive *op)
{
    const struct loader *l = b->loader;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < node->num_attrs && status == TN_OK; i++) {
        const struct doc_attr *attr = &node->attrs[i];
        status = op ? check_kind(l, attr, op) : TN_OK;
        b->attrs[i] = attr->attr;
        if (attr->kind == TN_ATTR_GRAPH)
            b->attrs[i].graph = l->graphs[attr->number];
        if (attr->is_runtime) {
            b->attrs[i].kind = TN_ATTR_ARRAY;
            b->attrs[i].array = b->arrays[attr->number];
        }
    }
    return status;
}

static tn_status graph_load_building_apply(const struct building *b, tn_scope *scope,
                                           const struct doc_node *node, tn_array **outputs)
{
    const struct loader *l = b->loader;
    const tn_attr_list attrs = TN_ATTR_LIST(b->attrs, node->num_attrs);
    tn_dtype dtypes[TN_MAX_OUTPUTS];
    for (uint32_t i = 0; i < node->num_outputs; i++)
        dtypes[i] = node->types[i].dtype;
    if (node->kind == DOC_OPERATOR)
        return l->api->op_n(scope, l->doc.operators[node->op], b->list, node->num_inputs,
                            attrs, outputs, node->num_outputs);
    if (node->kind == DOC_EXPRESSION)
        return l->api->expr_n(scope, node->text, b->list, node->num_inputs, attrs,
                              node->is_typed ? dtypes : NULL, outputs, node->num_outputs);
    outputs[0] = l->api->number(scope, dtypes[0], node->number);
    return l->api->scope_status(scope);
}

static void print_type(const tn_type *type, char text[256])
{
    int at = snprintf(text, 256, "%s [", tn_dtype_name(type->dtype));
    for (int32_t i = 0; i < type->rank; i++)
        at += snprintf(text + at, 256 - (size_t)at, "%s%lld", i ? ", " : "",
                       (long long)type->extent[i]);
    snprintf(text + at, 256 - (size_t)at, "]");
}

// Checks that the operator's output types are those in the file.
static tn_status graph_load_check_outputs(const struct building *b,
                                          const struct doc_node *node, const char *what,
                                          tn_array *const *outputs)
{
    const struct loader *l = b->loader;
    char got[256], expected[256];
    for (uint32_t i = 0; i < node->num_outputs; i++) {
        const tn_type *type = l->api->array_type(outputs[i]);
        l->api->set_weak(outputs[i], (int32_t)(node->weak >> i & 1));
        if (same_type(type, &node->types[i]))
            continue;
        print_type(type, got);
        print_type(&node->types[i], expected);
        return l->host->fail(l->host, TN_ERR_REFUSED,
                             "%.80s: output %u is %s, the file has %s", what, i, got,
                             expected);
    }
    return TN_OK;
}

static tn_status build_node(const struct building *b, tn_scope *scope,
                            const struct doc_node *node, tn_array **outputs)
{
    const struct loader *l = b->loader;
    const tn_primitive *op = node->kind == DOC_OPERATOR ? l->primitives[node->op] : NULL;
    for (uint32_t i = 0; i < node->num_inputs; i++)
        b->list[i] = node->inputs[i] == NO_ARRAY ? NULL : b->arrays[node->inputs[i]];
    tn_status status = list_attrs(b, node, op);
    if (status == TN_OK)
        status = graph_load_building_apply(b, scope, node, outputs);
    return status == TN_OK ? graph_load_check_outputs(b, node,
                                                      op           ? op->id
                                                      : node->text ? node->text
                                                                   : "a number",
                                                      outputs)
                           : status;
}

// --- graphs ------------------------------------------------------------------------------

static tn_status build_body(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                            tn_array **outputs, uint64_t num_outputs, void *user)
{
    struct building *b = user;
    const struct doc_graph *g = b->graph;
    uint32_t next = (uint32_t)num_inputs;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < g->num_inputs; i++) {
        b->arrays[i] = inputs[i];
        b->loader->api->set_weak(inputs[i], g->weak[i]);
    }
    for (b->at = 0; b->at < g->num_nodes && status == TN_OK; b->at++) {
        const struct doc_node *node = &g->nodes[b->at];
        status = build_node(b, scope, node, b->arrays + next);
        next += node->num_outputs;
    }
    for (uint64_t i = 0; i < num_outputs && status == TN_OK; i++)
        outputs[i] = b->arrays[g->outputs[i]];
    return status;
}

// Allocates room for the graph's arrays, and for the largest node.
static tn_status building_init(struct building *b, struct loader *l, uint32_t index)
{
    const struct doc_graph *g = &l->doc.graphs[index];
    uint32_t most_inputs = 1, most_attrs = 1;
    for (uint32_t i = 0; i < g->num_nodes; i++) {
        const struct doc_node *node = &g->nodes[i];
        most_inputs = node->num_inputs > most_inputs ? node->num_inputs : most_inputs;
        most_attrs = node->num_attrs > most_attrs ? node->num_attrs : most_attrs;
    }
    *b = (struct building){.loader = l, .graph = g};
    b->arrays = doc_alloc(&l->doc, g->num_arrays, sizeof(*b->arrays));
    b->list = doc_alloc(&l->doc, most_inputs, sizeof(*b->list));
    b->attrs = doc_alloc(&l->doc, most_attrs, sizeof(*b->attrs));
    return b->arrays && b->list && b->attrs ? TN_OK : TN_ERR_MEMORY;
}

static tn_status build_graph(struct loader *l, uint32_t index)
{
    struct building b;
    const struct doc_graph *g = &l->doc.graphs[index];
    tn_status status = building_init(&b, l, index);
    if (status != TN_OK)
        return status;
    status = l->api->graph_trace(l->scope, build_body, &b, g->inputs, g->num_inputs,
                                 g->num_outputs, NULL, &l->graphs[index]);
    if (status == TN_OK)
        return TN_OK;
    const char *reason = l->api->scope_error(l->scope);
    if (strncmp(reason, "graph: ", 7) == 0)
        reason += 7;
    // The loop in build_body has gone past the node that failed.
    return l->host->fail(l->host, status, "%s: graph %u, node %u: %s", l->doc.path, index,
                         b.at ? b.at - 1 : 0, reason);
}

static tn_status build_graphs(struct loader *l)
{
    l->primitives = doc_alloc(&l->doc, l->doc.num_operators, sizeof(*l->primitives));
    l->graphs = doc_alloc(&l->doc, l->doc.num_graphs, sizeof(*l->graphs));
    if (!l->primitives || !l->graphs)
        return TN_ERR_MEMORY;
    tn_status status = find_operators(l);
    for (uint32_t i = 0; i < l->doc.num_graphs && status == TN_OK; i++)
        status = build_graph(l, i);
    return status;
}

// --- bounds of planning ------------------------------------------------------------------

// Bytes that planning a graph of the file may need: at least LEAST_LIMIT, and else so many
// for each byte of the file. A node takes 3,000 to 6,000 bytes while it is planned.
#define LEAST_LIMIT (UINT64_C(64) << 20)
#define LIMIT_PER_BYTE 1000
#define NODE_BYTES 6144
#define FREE_NODES 256 // how many nested nodes may exceed the file's own

static uint64_t find_limit(const struct loader *l)
{
    struct stat info;
    const char *given = l->host->config(l->host, "TENON_GRAPH_LIMIT");
    if (given)
        return strtoull(given, NULL, 10);
    uint64_t size = stat(l->doc.path, &info) == 0 ? (uint64_t)info.st_size : 0;
    uint64_t limit = tn_saturated_multiply(size, LIMIT_PER_BYTE);
    return limit > LEAST_LIMIT ? limit : LEAST_LIMIT;
}

static uint64_t count_listed(const struct document *doc)
{
    uint64_t nodes = 0;
    for (uint32_t i = 0; i < doc->num_graphs; i++)
        nodes += doc->graphs[i].num_nodes;
    return nodes;
}

// Nested graphs multiply: a small file could ask for endless work.
static tn_status graph_load_check_steps(struct loader *l)
{
    if (!TN_HAS(l->api, graph_steps))
        return TN_OK;
    uint64_t limit = find_limit(l), most = limit / NODE_BYTES, steps = 0;
    uint64_t plain = count_listed(&l->doc) + FREE_NODES;
    for (uint32_t i = 0; i < l->doc.num_signatures; i++) {
        const struct doc_signature *s = &l->doc.signatures[i];
        uint64_t own = 0;
        if (l->doc.graphs[s->graph].expanded <= plain)
            continue;
        tn_status status =
            l->api->graph_steps(l->scope, l->graphs[s->graph], most - steps, &own);
        steps += own;
        if (status != TN_OK)
            return status;
        if (steps > most)
            return l->host->fail(
                l->host, TN_ERR_REFUSED,
                "%s: '%.64s': with the graphs in it and its operators decomposed, it has "
                "more than %" PRIu64 " nodes, which take more than %" PRIu64
                " bytes; TENON_GRAPH_LIMIT=BYTES raises the limit",
                l->doc.path, s->name, most, limit);
    }
    return TN_OK;
}

// --- constants ---------------------------------------------------------------------------

tn_status arrays_open(const tn_host *host, tn_scope *scope, const char *path,
                      uint32_t flags, tn_file **out_file)
{
    const tn_host_graph_format *api = host_of(host);
    tn_runtime *runtime = api->scope_runtime(scope);
    tn_file_options options = {.struct_size = sizeof(options), .flags = flags};
    tn_status status = api->provider_find(runtime, "tn.format/1", "extension",
                                          "safetensors", &options.plugin);
    return status == TN_OK ? api->file_open(runtime, path, &options, out_file) : status;
}

tn_status document_open(struct document *doc, const tn_host *host, tn_scope *scope,
                        const char *path, uint32_t flags, tn_file **out_file)
{
    const tn_host_graph_format *api = host_of(host);
    tn_status status = arrays_open(host, scope, path, flags, out_file);
    if (status != TN_OK)
        return status;
    const char *text = api->file_text(*out_file, GRAPH_TEXT);
    status =
        text ? document_parse(doc, host, path, text)
             : host->fail(host, TN_ERR_REFUSED,
                          "%s: no file of graphs: it has no text '" GRAPH_TEXT "'", path);
    if (status != TN_OK) {
        api->file_close(*out_file);
        *out_file = NULL;
    }
    return status;
}

// Opens the file of the constants: `given`, the one beside this file, or this file.
static tn_status open_constants(struct loader *l, const tn_graph_load_options *options)
{
    const char *path = options->constants;
    const char *slash = strrchr(l->doc.path, '/');
    if (!path && !l->doc.beside)
        return TN_OK;
    if (!path) {
        size_t folder = slash ? (size_t)(slash - l->doc.path) + 1 : 0;
        uint64_t size = folder + strlen(l->doc.beside) + 1;
        char *joined = doc_alloc(&l->doc, size, 1);
        if (!joined)
            return TN_ERR_MEMORY;
        snprintf(joined, size, "%.*s%s", (int)folder, l->doc.path, l->doc.beside);
        path = joined;
    }
    l->api->file_close(l->file);
    l->file = NULL;
    return arrays_open(l->host, l->scope, path, options->flags, &l->file);
}

static tn_status load_constant(const struct loader *l, const struct doc_constant *c,
                               tn_array **out)
{
    tn_type expected = stored_type(&c->type);
    tn_array *array = l->api->file_array(l->scope, l->file, c->name);
    if (array && !same_type(l->api->array_type(array), &expected))
        return l->host->fail(l->host, TN_ERR_REFUSED,
                             "%s: constant '%.64s' in the file of arrays has another type "
                             "than the graph says",
                             l->doc.path, c->name);
    if (array && is_paired(c->type.dtype)) {
        tn_shape shape = {.rank = c->type.rank};
        memcpy(shape.extent, c->type.extent, sizeof(shape.extent));
        const void *pairs = l->api->data(l->scope, array);
        array = l->api->from_data(l->scope, c->type.dtype, &shape, pairs);
    }
    *out = array ? l->api->keep(l->scope, array) : NULL;
    return *out ? TN_OK
                : l->host->fail(l->host, l->api->scope_status(l->scope),
                                "%s: constant '%.64s': %s", l->doc.path, c->name,
                                l->api->scope_error(l->scope));
}

// --- the result --------------------------------------------------------------------------

static tn_status fill_signature(struct loader *l, const struct doc_signature *s,
                                tn_array *const *constants, const tn_graph_signature **out)
{
    tn_graph_signature *own = doc_alloc(&l->doc, 1, sizeof(*own));
    tn_array **arrays = doc_alloc(&l->doc, s->num_constants, sizeof(*arrays));
    const char **names = doc_alloc(&l->doc, s->num_constants, sizeof(*names));
    if (!own || !arrays || !names)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < s->num_constants; i++) {
        arrays[i] = constants[s->constants[i]];
        names[i] = l->doc.constants[s->constants[i]].name;
    }
    *own = (tn_graph_signature){.struct_size = sizeof(*own),
                                .name = s->name,
                                .graph = l->api->graph_retain(l->graphs[s->graph]),
                                .num_inputs = s->num_inputs,
                                .input_names = s->input_names,
                                .output_names = s->output_names,
                                .constants = arrays,
                                .constant_names = names,
                                .num_constants = s->num_constants,
                                .donated = s->donated,
                                .num_donated = s->num_donated};
    *out = own;
    return TN_OK;
}

void graph_unload(const tn_host *host, const tn_graph_file *file)
{
    struct loaded *loaded = (struct loaded *)(uintptr_t)file;
    for (uint64_t i = 0; loaded->signatures && i < loaded->file.num_signatures; i++)
        if (loaded->signatures[i])
            loaded->api->graph_release(loaded->signatures[i]->graph);
    for (uint32_t i = 0; i < loaded->num_constants; i++)
        loaded->api->release(loaded->constants[i]);
    document_finish(&loaded->doc);
    host->free(host, loaded);
}

static tn_status loader_fill(struct loader *l, struct loaded *loaded)
{
    loaded->constants = doc_alloc(&l->doc, l->doc.num_constants, sizeof(tn_array *));
    loaded->signatures = doc_alloc(&l->doc, l->doc.num_signatures, sizeof(void *));
    if (!loaded->constants || !loaded->signatures)
        return TN_ERR_MEMORY;
    loaded->num_constants = l->doc.num_constants;
    loaded->file = (tn_graph_file){.struct_size = sizeof(loaded->file),
                                   .signatures = loaded->signatures,
                                   .num_signatures = l->doc.num_signatures};
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < l->doc.num_constants && status == TN_OK; i++)
        status = load_constant(l, &l->doc.constants[i], &loaded->constants[i]);
    for (uint32_t i = 0; i < l->doc.num_signatures && status == TN_OK; i++)
        status = fill_signature(l, &l->doc.signatures[i], loaded->constants,
                                &loaded->signatures[i]);
    return status;
}

static tn_status load_document(struct loader *l, const tn_graph_load_options *options,
                               const tn_graph_file **out_file)
{
    tn_status status = build_graphs(l);
    if (status == TN_OK)
        status = graph_load_check_steps(l);
    if (status == TN_OK)
        status = open_constants(l, options);
    struct loaded *loaded =
        status == TN_OK ? l->host->alloc(l->host, sizeof(*loaded), 0) : NULL;
    if (!loaded) {
        document_finish(&l->doc);
        return status == TN_OK ? TN_ERR_MEMORY : status;
    }
    *loaded = (struct loaded){.api = l->api};
    status = loader_fill(l, loaded);
    loaded->doc = l->doc;
    if (status == TN_OK)
        *out_file = &loaded->file;
    else
        graph_unload(l->host, &loaded->file);
    return status;
}

tn_status graph_load(const tn_host *host, tn_scope *scope, const char *path,
                     const tn_graph_load_options *options, const tn_graph_file **out_file)
{
    struct loader l = {.host = host, .api = host_of(host), .scope = scope};
    tn_graph_load_options own;
    tn_status status =
        read_struct(host, &own, sizeof(own), options, options ? options->struct_size : 0,
                    "tn_graph_load_options");
    if (status == TN_OK && (own.flags & ~(uint32_t)TN_FILE_MAP))
        status = host->fail(host, TN_ERR_ARGUMENT, "%s: flags 0x%x are unknown", path,
                            own.flags);
    if (status == TN_OK)
        status = document_open(&l.doc, host, scope, path, own.flags, &l.file);
    if (status != TN_OK)
        return status;
    status = load_document(&l, &own, out_file);
    l.api->file_close(l.file);
    return status;
}
