// SPDX-License-Identifier: MIT
// The tn_build table, through which rules of plugins build graph in a scope.
#include "build.h"

#include <string.h>
#include "../base/fail.h"
#include "../plugin/host/host.h"

static tn_array *build_op(const tn_build *build, const char *primitive,
                          const tn_array *const *inputs, uint64_t num_inputs,
                          tn_attr_list attrs)
{
    return tn_op(build->scope, primitive, inputs, num_inputs, attrs);
}

static tn_status build_op_n(const tn_build *build, const char *primitive,
                            const tn_array *const *inputs, uint64_t num_inputs,
                            tn_attr_list attrs, tn_array **outputs, uint64_t num_outputs)
{
    return tn_op_n(build->scope, primitive, inputs, num_inputs, attrs, outputs,
                   num_outputs);
}

static tn_array *build_expr(const tn_build *build, const char *text,
                            const tn_array *const *inputs, uint64_t num_inputs,
                            tn_attr_list attrs)
{
    return tn_expr(build->scope, text, inputs, num_inputs, attrs);
}

static tn_array *build_scalar(const tn_build *build, tn_dtype dtype, double value)
{
    return tn_scalar(build->scope, dtype, value);
}

// A body of a plugin as one of the core.
struct own_body {
    tn_build_body body;
    void *user;
    const tn_host *host;
};

static tn_status build_call_own(tn_scope *scope, tn_array *const *inputs,
                                uint64_t num_inputs, tn_array **outputs,
                                uint64_t num_outputs, void *user)
{
    const struct own_body *own = user;
    tn_build build = graph_build(scope, own->host);
    return own->body(&build, inputs, num_inputs, outputs, num_outputs, own->user);
}

static const tn_graph *build_trace(const tn_build *build, tn_build_body body, void *user,
                                   const tn_type *inputs, uint64_t num_inputs,
                                   uint64_t num_outputs, tn_captures *captures)
{
    struct own_body own = {body, user, build->host};
    const tn_graph *graph = NULL;
    tn_status status = tn_graph_trace(build->scope, body ? build_call_own : NULL, &own,
                                      inputs, num_inputs, num_outputs, captures, &graph);
    return status == TN_OK ? graph : NULL;
}

static tn_status build_call(const tn_build *build, const tn_graph *graph,
                            tn_array *const *inputs, uint64_t num_inputs,
                            tn_array **outputs, uint64_t num_outputs)
{
    return tn_graph_call(build->scope, graph, inputs, num_inputs, outputs, num_outputs);
}

// Fails within a transform of the same scope: arrays have one slot (tn_array.mark, .id),
// which the transform that runs uses.
static tn_status build_check_transform(const tn_build *build, const char *slot)
{
    if (!build->scope->num_flows)
        return TN_OK;
    return tn_scope_fail(build->scope, TN_ERR_ARGUMENT,
                         "%s in a rule of the same scope: call it in the body of a trace",
                         slot);
}

static tn_status build_vjp(const tn_build *build, tn_array *const *outputs,
                           tn_array *const *cotangents, uint64_t num_outputs,
                           tn_array *const *wrt, uint64_t num_wrt, tn_array **gradients)
{
    tn_status status = build_check_transform(build, "vjp");
    return status == TN_OK ? tn_vjp(build->scope, outputs, cotangents, num_outputs, wrt,
                                    num_wrt, gradients)
                           : status;
}

static tn_status build_jvp(const tn_build *build, tn_array *const *outputs,
                           uint64_t num_outputs, tn_array *const *wrt,
                           tn_array *const *tangents, uint64_t num_wrt,
                           tn_array **out_tangents)
{
    tn_status status = build_check_transform(build, "jvp");
    return status == TN_OK ? tn_jvp(build->scope, outputs, num_outputs, wrt, tangents,
                                    num_wrt, out_tangents)
                           : status;
}

static tn_status build_vmap(const tn_build *build, tn_build_body body, void *user,
                            tn_array *const *inputs, const int32_t *in_axes,
                            uint64_t num_inputs, tn_array **outputs,
                            const int32_t *out_axes, uint64_t num_outputs)
{
    struct own_body own = {body, user, build->host};
    tn_status status = build_check_transform(build, "vmap");
    return status == TN_OK
               ? tn_vmap_call(build->scope, body ? build_call_own : NULL, &own, inputs,
                              in_axes, num_inputs, outputs, out_axes, num_outputs)
               : status;
}

tn_build graph_build(tn_scope *scope, const tn_host *host)
{
    return (tn_build){
        .struct_size = sizeof(tn_build),
        .host = host,
        .scope = scope,
        .op = build_op,
        .op_n = build_op_n,
        .expr = build_expr,
        .scalar = build_scalar,
        .type = array_type_or_null,
        .trace = build_trace,
        .call = build_call,
        .vjp = build_vjp,
        .jvp = build_jvp,
        .vmap = build_vmap,
    };
}

static tn_status service_build(const tn_host *host, tn_scope *scope, tn_build *out)
{
    tn_status status = fail_if_null(TN_HOST_GRAPH, "the scope", scope);
    if (status == TN_OK)
        status = fail_if_null(TN_HOST_GRAPH, "the table", out);
    if (status != TN_OK)
        return status;
    if (host && scope->runtime != host->self->runtime)
        return fail(TN_ERR_ARGUMENT, TN_HOST_GRAPH ": the scope is of another runtime");
    tn_build build = graph_build(scope, host);
    uint32_t size = out->struct_size < sizeof(build) ? out->struct_size : sizeof(build);
    build.struct_size = size;
    memcpy(out, &build, size);
    return TN_OK;
}

const tn_host_graph graph_service = {
    .struct_size = sizeof(graph_service),
    .build = service_build,
};
