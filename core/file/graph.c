// SPDX-License-Identifier: MIT
// tn_graph_save and tn_graph_load: the entries. A plugin knows what the file looks like.
#include <tenon/graph_format.h>
#include "../base/fail.h"
#include "../graph/graph.h"
#include "../graph/nodes.h"
#include "../transform/decompose.h"
#include "file.h"

const tn_host_graph_format graph_format_service = {
    .struct_size = sizeof(graph_format_service),
    .node = graph_node,
    .array = graph_array,
    .number = build_number,
    .expr_n = build_expr,
    .set_weak = array_set_weak,
    .op_n = tn_op_n,
    .scope_runtime = tn_scope_runtime,
    .scope_status = tn_scope_status,
    .scope_error = tn_scope_error,
    .primitive_find = tn_primitive_find,
    .provider_find = tn_provider_find,
    .graph_trace = tn_graph_trace,
    .graph_retain = tn_graph_retain,
    .graph_release = tn_graph_release,
    .array_type = array_type_or_null,
    .data = tn_data,
    .from_data = tn_from_data,
    .keep = tn_keep,
    .release = tn_release,
    .file_open = tn_file_open,
    .file_close = tn_file_close,
    .file_name = tn_file_name,
    .file_type = tn_file_type,
    .file_text = tn_file_text,
    .file_array = tn_file_array,
    .save = tn_save,
    .graph_steps = graph_steps,
};

static tn_status graph_file_find_format(tn_runtime *runtime,
                                        const tn_graph_format **out_format,
                                        const tn_host **out_host)
{
    const void *table = NULL;
    tn_status status = tn_interface_find(runtime, TN_IFACE_GRAPH_FORMAT, &table, out_host);
    *out_format = table;
    if (status == TN_OK)
        fail_clear();
    return status;
}

tn_status tn_graph_save(tn_scope *scope, const char *path,
                        const tn_graph_signature *signatures, uint64_t num_signatures,
                        const tn_graph_save_options *options)
{
    const tn_graph_format *format;
    const tn_host *host;
    tn_status status = scope_begin(
        scope, "graph_save",
        GIVEN({"the path", path, 1}, {"signatures", signatures, num_signatures}));
    if (status != TN_OK)
        return status;
    status = graph_file_find_format(scope->runtime, &format, &host);
    if (status == TN_OK)
        status =
            fail_from(format->save(host, scope, path, signatures, num_signatures, options),
                      "writing %s", path);
    return scope_take_failure(scope, status);
}

tn_status tn_graph_load(tn_runtime *runtime, const char *path,
                        const tn_graph_load_options *options,
                        const tn_graph_file **out_file)
{
    const tn_graph_format *format;
    const tn_host *host;
    tn_status status = fail_if_null("graph_load", "the path", path);
    if (status == TN_OK)
        status = fail_if_null("graph_load", "the output pointer", out_file);
    if (status == TN_OK)
        status = graph_file_find_format(runtime, &format, &host);
    if (status != TN_OK)
        return status;
    tn_scope *scope = tn_scope_open(runtime);
    if (!scope)
        return TN_ERR_MEMORY;
    status =
        fail_from(format->load(host, scope, path, options, out_file), "opening %s", path);
    tn_scope_close(scope);
    return status;
}

void tn_graph_unload(tn_runtime *runtime, const tn_graph_file *file)
{
    const tn_graph_format *format;
    const tn_host *host;
    if (file && graph_file_find_format(runtime, &format, &host) == TN_OK)
        format->unload(host, file);
}

tn_status tn_graph_body(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                        tn_array **outputs, uint64_t num_outputs, void *user)
{
    const tn_graph_signature *s = user;
    uint64_t count = num_inputs + s->num_constants;
    tn_array **all = arena_alloc(&scope->arena, (count + 1) * sizeof(*all));
    if (!all || num_inputs != s->num_inputs)
        return tn_scope_fail(scope, all ? TN_ERR_ARGUMENT : TN_ERR_MEMORY,
                             "%s: got %u inputs, expected %u", s->name,
                             (unsigned)num_inputs, (unsigned)s->num_inputs);
    for (uint64_t i = 0; i < count; i++)
        all[i] = i < num_inputs ? inputs[i] : s->constants[i - num_inputs];
    return tn_graph_call(scope, s->graph, all, count, outputs, num_outputs);
}
