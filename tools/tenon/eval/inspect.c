// SPDX-License-Identifier: MIT
// tenon graph FILE: what is in a file of graphs, whether its operators are installed or
// not.
#include "save.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/graph_format.h>

#include "base/table.h"

// Sets "type" of each value: "f32 (2, 3)".
static int add_types(json_t *values)
{
    size_t i, k;
    json_t *value, *extent;
    json_array_foreach(values, i, value)
    {
        tn_shape shape = {0};
        char text[SHAPE_TEXT];
        json_array_foreach(json_object_get(value, "shape"), k, extent) if (k < TN_MAX_RANK)
            shape.extent[shape.rank++] = json_integer_value(extent);
        if (json_object_set_new(
                value, "type",
                json_sprintf("%s %s", text_of(value, "dtype"), shape_text(&shape, text))))
            return oops_memory();
    }
    return 0;
}

// Inputs and outputs of a signature as rows of one table.
static int print_signature(const json_t *signature)
{
    static const struct column columns[] = {
        {"what", "VALUE"}, {"name", "NAME"}, {"type", "TYPE"}, {"donated", "DONATED"}};
    json_t *rows = json_array(), *value;
    const json_t *inputs = json_object_get(signature, "inputs");
    size_t i;
    say_line("signature %s: %lld nodes, %zu constants", text_of(signature, "name"),
             (long long)json_integer_value(json_object_get(signature, "nodes")),
             json_array_size(json_object_get(signature, "constants")));
    json_array_foreach(inputs, i, value)
    {
        json_object_set_new(value, "what", json_string("input"));
        json_array_append(rows, value);
    }
    json_array_foreach(json_object_get(signature, "donated"), i, value) json_object_set_new(
        json_array_get(inputs, (size_t)json_integer_value(value)), "donated", json_true());
    json_array_foreach(json_object_get(signature, "outputs"), i, value)
    {
        json_object_set_new(value, "what", json_string("output"));
        json_array_append(rows, value);
    }
    int failed = add_types(rows);
    if (!failed && json_array_size(rows))
        failed = table_print(rows, columns, COUNT(columns));
    json_decref(rows);
    return failed;
}

static int print_rest(const json_t *file)
{
    static const struct column operators[] = {
        {"id", "OPERATOR"}, {"count", "USES"}, {"installed", "INSTALLED"}};
    static const struct column constants[] = {
        {"name", "CONSTANT"}, {"type", "TYPE"}, {"bytes", "BYTES"}};
    json_t *used = json_object_get(file, "operators");
    json_t *values = json_object_get(file, "constants");
    int failed = 0;
    if (json_array_size(used)) {
        say_line("%s", "");
        failed = table_print(used, operators, COUNT(operators));
    }
    if (!failed && json_array_size(values)) {
        say_line("%s", "");
        failed = add_types(values);
        if (!failed)
            failed = table_print(values, constants, COUNT(constants));
    }
    if (!failed && json_is_string(json_object_get(file, "beside")))
        say_line("the constants are beside, in %s", text_of(file, "beside"));
    return failed;
}

static int print_file(const json_t *file)
{
    size_t i;
    const json_t *signature;
    int failed = 0;
    json_array_foreach(json_object_get(file, "signatures"), i, signature)
    {
        if (i)
            say_line("%s", "");
        failed = failed ? failed : print_signature(signature);
    }
    return failed ? failed : print_rest(file);
}

static int eval_inspect_describe(tn_runtime *runtime, const char *path, json_t **out)
{
    const void *table = NULL;
    const tn_host *host = NULL;
    char *text = NULL;
    if (tn_interface_find(runtime, TN_IFACE_GRAPH_FORMAT, &table, &host))
        return oops_library();
    const tn_graph_format *format = table;
    tn_scope *scope = tn_scope_open(runtime);
    if (!scope)
        return oops_memory();
    int failed = format->describe(host, scope, path, &text) ? oops_library() : 0;
    if (!failed && !(*out = json_loads(text, 0, NULL)))
        failed = oops_memory();
    host->free(host, text);
    tn_scope_close(scope);
    return failed;
}

int graph_inspect(const char *path, bool as_json)
{
    tn_runtime *runtime = NULL;
    json_t *file = NULL;
    int failed = open_runtime(&runtime);
    if (!failed)
        failed = eval_inspect_describe(runtime, path[0] == '@' ? path + 1 : path, &file);
    if (!failed)
        failed = as_json ? json_print(file) : print_file(file);
    json_decref(file);
    tn_runtime_close(runtime);
    return failed;
}
