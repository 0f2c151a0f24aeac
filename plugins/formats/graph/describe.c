// SPDX-License-Identifier: MIT
// Describes a file of graphs as JSON, whether its operators are installed or not.
#include <stdlib.h>
#include <string.h>
#include <tenon/format.h>
#include "document.h"

static json_t *shape_json(const tn_type *type)
{
    json_t *shape = json_array();
    for (int32_t i = 0; i < type->rank; i++)
        json_array_append_new(shape, json_integer(type->extent[i]));
    return shape;
}

static json_t *value_json(const char *name, const tn_type *type)
{
    return json_pack("{s:s, s:s, s:o}", "name", name, "dtype", tn_dtype_name(type->dtype),
                     "shape", shape_json(type));
}

static json_t *values_json(const char *const *names, const tn_type *types, uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(list, value_json(names[i], &types[i]));
    return list;
}

static json_t *signature_json(const struct document *doc, const struct doc_signature *s)
{
    const struct doc_graph *g = &doc->graphs[s->graph];
    json_t *constants = json_array(), *donated = json_array();
    for (uint32_t i = 0; i < s->num_constants; i++)
        json_array_append_new(constants, json_string(doc->constants[s->constants[i]].name));
    for (uint32_t i = 0; i < s->num_donated; i++)
        json_array_append_new(donated, json_integer(s->donated[i]));
    return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "name", s->name, "nodes",
                     (json_int_t)(g->expanded < INT64_MAX ? g->expanded : INT64_MAX),
                     "donated", donated, "inputs",
                     values_json(s->input_names, g->inputs, s->num_inputs), "outputs",
                     values_json(s->output_names, g->output_types, g->num_outputs),
                     "constants", constants);
}

static json_t *operator_json(const tn_host_graph_format *api, tn_scope *scope,
                             const char *id, uint32_t count)
{
    char stem[128] = "";
    const char *slash = strrchr(id, '/');
    const tn_primitive *installed = NULL;
    if (slash && (size_t)(slash - id) < sizeof(stem)) {
        memcpy(stem, id, (size_t)(slash - id));
        installed = api->primitive_find(api->scope_runtime(scope), id);
        if (!installed)
            installed = api->primitive_find(api->scope_runtime(scope), stem);
    }
    return json_pack("{s:s, s:I, s:s?}", "id", id, "count", (json_int_t)count, "installed",
                     installed ? installed->id : NULL);
}

static json_t *constant_json(const struct doc_constant *c)
{
    uint64_t bytes = 0;
    json_t *value = value_json(c->name, &c->type);
    if (tn_format_bytes(&c->type, &bytes))
        json_object_set_new(value, "bytes", json_integer((json_int_t)bytes));
    return value;
}

static json_t *document_json(const struct document *doc, const tn_host_graph_format *api,
                             tn_scope *scope)
{
    json_t *signatures = json_array(), *operators = json_array(), *constants = json_array();
    for (uint32_t i = 0; i < doc->num_signatures; i++)
        json_array_append_new(signatures, signature_json(doc, &doc->signatures[i]));
    for (uint32_t i = 0; i < doc->num_operators; i++)
        json_array_append_new(operators,
                              operator_json(api, scope, doc->operators[i], doc->uses[i]));
    for (uint32_t i = 0; i < doc->num_constants; i++)
        json_array_append_new(constants, constant_json(&doc->constants[i]));
    return json_pack("{s:o, s:o, s:o, s:s?}", "signatures", signatures, "operators",
                     operators, "constants", constants, "beside", doc->beside);
}

tn_status graph_describe(const tn_host *host, tn_scope *scope, const char *path,
                         char **out_json)
{
    const tn_host_graph_format *api = host_of(host);
    struct document doc;
    tn_file *file = NULL;
    tn_status status = document_open(&doc, host, scope, path, 0, &file);
    if (status != TN_OK)
        return status;
    api->file_close(file);
    json_t *all = document_json(&doc, api, scope);
    char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    char *own = text ? host->alloc(host, strlen(text) + 1, 0) : NULL;
    if (own)
        strcpy(own, text);
    *out_json = own ? own : *out_json;
    free(text);
    json_decref(all);
    document_finish(&doc);
    return own ? TN_OK : host->fail(host, TN_ERR_MEMORY, "%s: out of memory", path);
}
