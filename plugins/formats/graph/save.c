// SPDX-License-Identifier: MIT
// tn_graph_save: graphs as JSON, constants as the arrays of the safetensors file around it.
// Members are written in the order of creation, so equal graphs give equal files.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "save.h"

// A graph that is being saved.
struct graph_saving {
    struct saver *saver;
    json_t *inputs, *nodes, *outputs;
    uint32_t next; // the number of the next array
};

tn_status out_of_memory(const struct saver *s)
{
    return save_fail(s, TN_ERR_MEMORY, "out of memory, or a text is not UTF-8");
}

// The number of `key` in `numbers`; -1: none.
static json_int_t find_number(const json_t *numbers, const char *key)
{
    const json_t *number = json_object_get(numbers, key);
    return number ? json_integer_value(number) : -1;
}

static void print_address(const void *pointer, char text[32])
{
    snprintf(text, 32, "%" PRIxPTR, (uintptr_t)pointer);
}

// --- nodes -------------------------------------------------------------------------------

static tn_status save_operator(struct saver *s, const char *id, json_int_t *out_number)
{
    if (strncmp(id, CUSTOM_PREFIX, strlen(CUSTOM_PREFIX)) == 0)
        return save_fail(
            s, TN_ERR_UNSUPPORTED,
            "the graph has rules of the application (tn_custom_call), which no "
            "other process has");
    *out_number = find_number(s->operator_numbers, id);
    if (*out_number >= 0)
        return TN_OK;
    *out_number = (json_int_t)json_array_size(s->operators);
    return json_array_append_new(s->operators, json_string(id)) ||
                   json_object_set_new(s->operator_numbers, id, json_integer(*out_number))
               ? out_of_memory(s)
               : TN_OK;
}

// "x, y -> x * y"
static json_t *expression_json(const tn_graph_node *node)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    for (uint64_t i = 0; stream && i < node->num_inputs; i++)
        fprintf(stream, "%s%s", i ? ", " : "", node->input_names[i]);
    if (stream)
        fprintf(stream, " -> %s", node->expr);
    bool failed = !stream || fclose(stream);
    json_t *json = failed ? NULL : json_string(text);
    free(text);
    return json;
}

// Appends the numbers of arrays to `list`. A known scalar becomes a node at its first use.
static tn_status save_uses(struct graph_saving *saving, tn_array *const *arrays,
                           uint64_t count, json_t *list)
{
    struct saver *s = saving->saver;
    for (uint64_t i = 0; i < count; i++) {
        tn_graph_array look = {.number = NO_ARRAY};
        if (arrays[i])
            s->api->array(arrays[i], &look);
        bool is_new = look.is_number && look.number == saving->next;
        saving->next += is_new;
        if (is_new && json_array_append_new(
                          saving->nodes, number_json(s->api->array_type(arrays[i]), &look)))
            return out_of_memory(s);
        if (list && json_array_append_new(list, arrays[i] ? json_integer(look.number)
                                                          : json_null()))
            return out_of_memory(s);
    }
    return TN_OK;
}

static const tn_array *output_at(const tn_graph_node *node, uint64_t i)
{
    return (const void *)((const char *)node->outputs + i * node->array_size);
}

static tn_status save_type(struct saver *s, const tn_array *array, json_t *list)
{
    tn_graph_array look;
    s->api->array(array, &look);
    return json_array_append_new(list, type_json(s->api->array_type(array), look.is_weak))
               ? out_of_memory(s)
               : TN_OK;
}

static tn_status fill_application(struct graph_saving *saving, const tn_graph_node *node,
                                  json_t *inputs, json_t *attrs, json_t *types)
{
    uint64_t num_inputs = 0;
    // Scalars of runtime attributes are numbered like inputs, but listed by attribute name.
    tn_status status = save_attrs(saving->saver, node, attrs, &num_inputs);
    if (status == TN_OK)
        status = save_uses(saving, node->inputs, num_inputs, inputs);
    if (status == TN_OK)
        status = save_uses(saving, node->inputs + num_inputs, node->num_inputs - num_inputs,
                           NULL);
    for (uint64_t i = 0; i < node->num_outputs && status == TN_OK; i++)
        status = save_type(saving->saver, output_at(node, i), types);
    saving->next += (uint32_t)node->num_outputs;
    return status;
}

static tn_status save_node(struct graph_saving *saving, const tn_graph_node *node)
{
    struct saver *s = saving->saver;
    json_int_t number = 0;
    tn_status status = node->primitive ? save_operator(s, node->primitive, &number) : TN_OK;
    if (status != TN_OK)
        return status;
    json_t *out = json_object(), *inputs = json_array(), *attrs = json_object(),
           *types = json_array();
    bool failed =
        json_object_set_new(out, node->primitive ? "op" : "expr",
                            node->primitive ? json_integer(number) : expression_json(node));
    if (node->flags & TN_NODE_TYPED)
        failed = json_object_set_new(out, "typed", json_true()) || failed;
    status = fill_application(saving, node, inputs, attrs, types);
    failed = json_object_set_new(out, "in", inputs) || failed;
    if (json_object_size(attrs))
        failed = json_object_set(out, "attrs", attrs) || failed;
    json_decref(attrs);
    failed = json_object_set_new(out, "out", types) || failed;
    failed = json_array_append_new(saving->nodes, out) || failed;
    return status == TN_OK && failed ? out_of_memory(s) : status;
}

static tn_status save_nodes(struct graph_saving *saving, const tn_graph *graph)
{
    struct saver *s = saving->saver;
    tn_graph_node node;
    tn_status status = TN_OK;
    s->api->node(graph, (uint64_t)graph->num_nodes + 1, &node);
    for (uint64_t i = 0; i < node.num_inputs && status == TN_OK; i++)
        status = save_type(s, node.inputs[i], saving->inputs);
    saving->next = graph->num_inputs;
    for (uint64_t i = 0; i < graph->num_nodes && status == TN_OK; i++) {
        s->api->node(graph, i, &node);
        status = save_node(saving, &node);
    }
    s->api->node(graph, graph->num_nodes, &node);
    return status == TN_OK
               ? save_uses(saving, node.inputs, node.num_inputs, saving->outputs)
               : status;
}

// Graphs among the attributes are saved first, each once.
tn_status save_graph(struct saver *s, const tn_graph *graph, uint32_t *out_number)
{
    char key[32];
    print_address(graph, key);
    json_int_t number = find_number(s->graph_numbers, key);
    *out_number = (uint32_t)number;
    if (number >= 0)
        return TN_OK;
    if (s->depth == MAX_DEPTH)
        return save_fail(s, TN_ERR_UNSUPPORTED, "graphs in graphs are deeper than %d",
                         MAX_DEPTH);
    struct graph_saving saving = {s, json_array(), json_array(), json_array(), 0};
    s->depth++;
    tn_status status = save_nodes(&saving, graph);
    s->depth--;
    json_t *all = json_pack("{s:o, s:o, s:o}", "inputs", saving.inputs, "nodes",
                            saving.nodes, "outputs", saving.outputs);
    number = (json_int_t)json_array_size(s->graphs);
    *out_number = (uint32_t)number;
    bool failed = json_array_append_new(s->graphs, all) ||
                  json_object_set_new(s->graph_numbers, key, json_integer(number));
    return status == TN_OK && failed ? out_of_memory(s) : status;
}

// --- constants ---------------------------------------------------------------------------

static tn_status named_add(struct saver *s, tn_array *array, const char *name)
{
    struct named_arrays *n = &s->named;
    if (n->count == n->room) {
        uint32_t room = n->room ? n->room * 2 : 16;
        tn_array **arrays = realloc(n->arrays, room * sizeof(*arrays));
        n->arrays = arrays ? arrays : n->arrays;
        const char **names = realloc(n->names, room * sizeof(*names));
        n->names = names ? names : n->names;
        if (!arrays || !names)
            return out_of_memory(s);
        n->room = room;
    }
    n->arrays[n->count] = array;
    n->names[n->count++] = name;
    return TN_OK;
}

// Converts a constant whose dtype safetensors has no name for.
static tn_status stored_array(struct saver *s, tn_array *array, tn_array **out)
{
    const tn_type *type = s->api->array_type(array);
    tn_type stored = stored_type(type);
    tn_shape shape = {.rank = stored.rank};
    *out = array;
    if (!is_paired(type->dtype))
        return TN_OK;
    memcpy(shape.extent, stored.extent, sizeof(shape.extent));
    const void *pairs = s->api->data(s->scope, array);
    *out = s->api->from_data(s->scope, stored.dtype, &shape, pairs);
    return s->api->scope_status(s->scope);
}

// Gives the number of an array among the constants; adds the array on first use.
static tn_status save_constant(struct saver *s, tn_array *array, const char *name,
                               json_int_t *out_number)
{
    char key[32], made[32];
    print_address(array, key);
    *out_number = find_number(s->constant_numbers, key);
    const json_t *known = json_array_get(s->constants, (size_t)*out_number);
    const char *known_name = json_string_value(json_object_get(known, "name"));
    if (*out_number >= 0)
        return !name || strcmp(name, known_name) == 0
                   ? TN_OK
                   : save_fail(s, TN_ERR_ARGUMENT,
                               "a constant has two names, '%s' and '%s'", known_name, name);
    *out_number = (json_int_t)json_array_size(s->constants);
    snprintf(made, sizeof(made), "c%lld", (long long)*out_number);
    name = name ? name : made;
    if (!*name || json_object_get(s->constant_names, name))
        return save_fail(s, TN_ERR_ARGUMENT, "%s named '%s'",
                         *name ? "two constants are" : "a constant is", name);
    json_t *entry = json_pack("{s:s, s:o}", "name", name, "type",
                              type_json(s->api->array_type(array), false));
    if (json_array_append_new(s->constants, entry) ||
        json_object_set_new(s->constant_names, name, json_null()) ||
        json_object_set_new(s->constant_numbers, key, json_integer(*out_number)))
        return out_of_memory(s);
    tn_array *stored = NULL;
    tn_status status = stored_array(s, array, &stored);
    return status == TN_OK
               ? named_add(s, stored, json_string_value(json_object_get(entry, "name")))
               : status;
}

// --- signatures --------------------------------------------------------------------------

// Saves names, or "x0", "x1", ..., of which no two may be equal.
static tn_status save_names(struct saver *s, const tn_graph_signature *sig,
                            const char *const *names, char letter, uint64_t count,
                            json_t *list)
{
    char made[32];
    json_t *seen = json_object();
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < count && status == TN_OK; i++) {
        snprintf(made, sizeof(made), "%c%" PRIu64, letter, i);
        const char *name = names ? names[i] : made;
        if (!name || !*name || json_object_get(seen, name))
            status =
                save_fail(s, TN_ERR_ARGUMENT, "'%s': %s %" PRIu64 " %s", sig->name,
                          letter == 'x' ? "input" : "output", i,
                          name && *name ? "has the name of another one" : "has no name");
        else if (json_array_append_new(list, json_string(name)) ||
                 json_object_set_new(seen, name, json_null()))
            status = out_of_memory(s);
    }
    json_decref(seen);
    return status;
}

static tn_status save_constants(struct saver *s, const tn_graph_signature *sig,
                                json_t *list)
{
    uint64_t count = sig->graph->num_inputs - sig->num_inputs;
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < count && status == TN_OK; i++) {
        json_int_t number = 0;
        const tn_type *type =
            sig->constants[i] ? s->api->array_type(sig->constants[i]) : NULL;
        if (!type || !same_type(type, &sig->graph->inputs[sig->num_inputs + i]))
            return save_fail(s, TN_ERR_ARGUMENT, "'%s': constant %" PRIu64 " %s", sig->name,
                             i,
                             type ? "has another type than the graph's input" : "is NULL");
        status =
            save_constant(s, sig->constants[i],
                          sig->constant_names ? sig->constant_names[i] : NULL, &number);
        if (status == TN_OK && json_array_append_new(list, json_integer(number)))
            status = out_of_memory(s);
    }
    return status;
}

static tn_status save_donated(struct saver *s, const tn_graph_signature *sig, json_t *list)
{
    json_t *seen = json_object();
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < sig->num_donated && status == TN_OK; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%" PRIu32, sig->donated[i]);
        if (sig->donated[i] >= sig->num_inputs || json_object_get(seen, key))
            status = save_fail(s, TN_ERR_ARGUMENT, "'%s': input %u is donated, %s",
                               sig->name, sig->donated[i],
                               json_object_get(seen, key) ? "twice" : "but there is none");
        else if (json_array_append_new(list, json_integer(sig->donated[i])) ||
                 json_object_set_new(seen, key, json_null()))
            status = out_of_memory(s);
    }
    json_decref(seen);
    return status;
}

static tn_status graph_save_check_signature(struct saver *s, const tn_graph_signature *sig,
                                            uint64_t i)
{
    if (!sig->name || !*sig->name || !sig->graph)
        return save_fail(s, TN_ERR_ARGUMENT, "signature %" PRIu64 " has no %s", i,
                         sig->graph ? "name" : "graph");
    if (sig->flags || json_object_get(s->signature_names, sig->name))
        return save_fail(s, TN_ERR_ARGUMENT, "'%s': %s", sig->name,
                         sig->flags ? "flags are not 0" : "two signatures have this name");
    uint64_t total = sig->graph->num_inputs;
    if (sig->num_inputs > total || sig->num_constants < total - sig->num_inputs ||
        (total > sig->num_inputs && !sig->constants))
        return save_fail(s, TN_ERR_ARGUMENT,
                         "'%s': %" PRIu64 " inputs and %" PRIu64
                         " constants for a graph with %" PRIu64 " inputs",
                         sig->name, sig->num_inputs,
                         sig->constants ? sig->num_constants : 0, total);
    if (sig->num_donated && !sig->donated)
        return save_fail(s, TN_ERR_ARGUMENT, "'%s': donated inputs in no list", sig->name);
    return json_object_set_new(s->signature_names, sig->name, json_null())
               ? out_of_memory(s)
               : TN_OK;
}

static tn_status save_signature(struct saver *s, const tn_graph_signature *sig, uint64_t i)
{
    uint32_t graph = 0;
    tn_status status = graph_save_check_signature(s, sig, i);
    if (status != TN_OK)
        return status;
    json_t *inputs = json_array(), *outputs = json_array(), *constants = json_array(),
           *donated = json_array();
    status = save_graph(s, sig->graph, &graph);
    if (status == TN_OK)
        status = save_names(s, sig, sig->input_names, 'x', sig->num_inputs, inputs);
    if (status == TN_OK)
        status =
            save_names(s, sig, sig->output_names, 'y', sig->graph->num_outputs, outputs);
    if (status == TN_OK)
        status = save_constants(s, sig, constants);
    if (status == TN_OK)
        status = save_donated(s, sig, donated);
    json_t *all = json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "name", sig->name, "graph",
                            (json_int_t)graph, "inputs", inputs, "outputs", outputs,
                            "constants", constants, "donated", donated);
    bool failed = json_array_append_new(s->signatures, all);
    return status == TN_OK && failed ? out_of_memory(s) : status;
}

// --- the file ----------------------------------------------------------------------------

static tn_status write_arrays(struct saver *s, const char *path, uint32_t count,
                              const char *text)
{
    const char *const key = GRAPH_TEXT;
    tn_save_options options = {.struct_size = sizeof(options),
                               .keys = &key,
                               .texts = &text,
                               .num_texts = text ? 1 : 0};
    tn_status status = s->api->provider_find(s->api->scope_runtime(s->scope), "tn.format/1",
                                             "extension", "safetensors", &options.plugin);
    return status == TN_OK ? s->api->save(s->scope, path, s->named.arrays, s->named.names,
                                          count, &options)
                           : status;
}

// Writes the constants' file, in the folder of the graph's file.
static tn_status write_beside(struct saver *s, const char *name)
{
    const char *slash = strrchr(s->path, '/');
    char *path = NULL;
    if (!*name || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        strcmp(name, slash ? slash + 1 : s->path) == 0)
        return save_fail(s, TN_ERR_ARGUMENT,
                         "constants beside in '%s': expected the name of another file, "
                         "without a folder",
                         name);
    size_t folder = slash ? (size_t)(slash - s->path) + 1 : 0,
           size = folder + strlen(name) + 1;
    if (!(path = malloc(size)))
        return out_of_memory(s);
    snprintf(path, size, "%.*s%s", (int)folder, s->path, name);
    tn_status status = write_arrays(s, path, s->named.count, NULL);
    free(path);
    return status;
}

static tn_status write_file(struct saver *s, const char *beside)
{
    json_t *root = json_pack("{s:i, s:O, s:O, s:O, s:O}", "version", GRAPH_VERSION,
                             "operators", s->operators, "graphs", s->graphs, "constants",
                             s->constants, "signatures", s->signatures);
    if (beside && root)
        json_object_set_new(root, "beside", json_string(beside));
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    tn_status status = text ? TN_OK : out_of_memory(s);
    if (status == TN_OK && beside)
        status = write_beside(s, beside);
    if (status == TN_OK)
        status = write_arrays(s, s->path, beside ? 0 : s->named.count, text);
    free(text);
    json_decref(root);
    return status;
}

static tn_status save_signatures(struct saver *s, const tn_graph_signature *signatures,
                                 uint64_t count)
{
    tn_status status =
        count ? TN_OK
              : save_fail(s, TN_ERR_ARGUMENT, "no signatures, expected at least one");
    uint64_t size =
        count && signatures->struct_size ? signatures->struct_size : sizeof(*signatures);
    for (uint64_t i = 0; i < count && status == TN_OK; i++) {
        tn_graph_signature own;
        status =
            read_struct(s->host, &own, sizeof(own), (const char *)signatures + i * size,
                        size, "tn_graph_signature");
        if (status == TN_OK)
            status = save_signature(s, &own, i);
    }
    return status;
}

tn_status graph_save(const tn_host *host, tn_scope *scope, const char *path,
                     const tn_graph_signature *signatures, uint64_t num_signatures,
                     const tn_graph_save_options *options)
{
    struct saver s = {.host = host,
                      .api = host_of(host),
                      .scope = scope,
                      .path = path,
                      .operators = json_array(),
                      .operator_numbers = json_object(),
                      .graphs = json_array(),
                      .graph_numbers = json_object(),
                      .constants = json_array(),
                      .constant_numbers = json_object(),
                      .constant_names = json_object(),
                      .signatures = json_array(),
                      .signature_names = json_object()};
    json_t *const owned[] = {s.operators,      s.operator_numbers, s.graphs,
                             s.graph_numbers,  s.constants,        s.constant_numbers,
                             s.constant_names, s.signatures,       s.signature_names};
    tn_graph_save_options own;
    tn_status status =
        read_struct(host, &own, sizeof(own), options, options ? options->struct_size : 0,
                    "tn_graph_save_options");
    if (status == TN_OK && own.flags)
        status = save_fail(&s, TN_ERR_ARGUMENT, "flags 0x%x, expected 0", own.flags);
    if (status == TN_OK)
        status = save_signatures(&s, signatures, num_signatures);
    if (status == TN_OK)
        status = write_file(&s, own.constants);
    for (uint32_t i = 0; i < COUNT(owned); i++)
        json_decref(owned[i]);
    free(s.named.arrays);
    free(s.named.names);
    return status;
}
