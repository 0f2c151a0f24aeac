// SPDX-License-Identifier: MIT
// Builds graphs from samples, and implements the tn_build table that rules use.
#include "apply.h"

#include <tenon/control.h>

uint32_t graph_inputs(tn_scope *scope, const struct sample *s, tn_array *in[MAX_IN])
{
    uint32_t count = sample_given(s);
    for (uint32_t i = 0; i < count; i++)
        in[i] = s->in[i].tensor.data ? graph_data(scope, &s->in[i]) : NULL;
    for (uint32_t i = 0, n = s->num_inputs; i < s->primitive->attrs.num_fields; i++) {
        const tn_attr_field *field = &s->primitive->attrs.fields[i];
        if (field->flags & TN_ATTR_RUNTIME)
            in[n++] = field->kind == TN_ATTR_F64 ? tn_float(scope, s->runtime[i])
                                                 : tn_int(scope, (int64_t)s->runtime[i]);
    }
    return count;
}

tn_status graph_op(tn_scope *scope, const struct sample *s, tn_array *const *in,
                   tn_array *out[MAX_OUT])
{
    tn_attr items[MAX_FIELDS];
    return tn_op_n(scope, s->primitive->id, (const tn_array *const *)in, sample_given(s),
                   sample_attr_list(s, items), out, s->num_outputs);
}

tn_status graph_expr(tn_scope *scope, const struct sample *s, tn_array *const *in,
                     tn_array *out[MAX_OUT])
{
    tn_attr items[MAX_FIELDS];
    char text[2048];
    size_t at = 0;
    // tn_expr knows no attribute defaults, so every attribute is passed.
    struct sample all = *s;
    all.given = UINT64_MAX;
    for (uint32_t i = 0; i < s->primitive->num_inputs && at + 80 < sizeof(text); i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? ", " : "",
                               s->primitive->inputs[i].name);
    snprintf(text + at, sizeof(text) - at, " -> %s", s->primitive->expr);
    out[0] = tn_expr(scope, text, (const tn_array *const *)in, s->num_inputs,
                     sample_attr_list(&all, items));
    return tn_scope_status(scope);
}

tn_status graph_decompose(tn_scope *scope, const struct sample *s, tn_array *const *in,
                          tn_array *out[MAX_OUT])
{
    static struct fake_host host;
    if (!host.table && !fake_host_init(&host, 0))
        return TN_ERR_MEMORY;
    host.text[0] = 0;
    tn_build build = graph_build(scope, host.table);
    tn_rule rule = {.struct_size = sizeof(rule),
                    .attrs = s->attrs,
                    .inputs = in,
                    .num_inputs = sample_operands(s),
                    .num_outputs = s->num_outputs};
    tn_status status = s->primitive->decompose(&build, &rule, out);
    if (status != TN_OK)
        return tn_scope_fail(scope, status, "%s", host.text);
    return tn_scope_status(scope);
}

tn_status graph_read(tn_scope *scope, tn_array *array, struct array *out)
{
    const tn_type *type = tn_array_type(array);
    if (!array || tn_scope_status(scope) != TN_OK)
        return tn_scope_fail(scope, TN_ERR_INTERNAL, "an output was not built");
    struct array result = array_new(type, PLAIN, 0);
    int64_t bytes = tn_dtype_bytes(type->dtype);
    char *first = (char *)result.tensor.data + result.tensor.layout.offset * bytes;
    tn_status status = tn_read(scope, array, first, (uint64_t)(result.count * bytes));
    if (status == TN_OK)
        *out = result;
    else
        array_free(&result);
    return status;
}

tn_status graph_read_all(tn_scope *scope, const struct sample *s, tn_array *const *results,
                         struct array out[MAX_OUT])
{
    tn_status status = tn_scope_status(scope);
    memset(out, 0, MAX_OUT * sizeof(*out));
    for (uint32_t i = 0; status == TN_OK && i < s->num_outputs; i++)
        status = graph_read(scope, results[i], &out[i]);
    if (status != TN_OK)
        outputs_free(out);
    return status;
}

// --- tn_build --------------------------------------------------------------------------

static tn_array *build_op(const tn_build *build, const char *primitive,
                          const tn_array *const *inputs, uint64_t num_inputs,
                          tn_attr_list attrs)
{
    for (uint64_t i = 0; i < num_inputs; i++)
        if (!inputs[i] && tn_scope_status(build->scope) != TN_OK)
            return NULL;
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

// A rule's body, with the arguments of its call.
struct rule_body {
    tn_build_body body;
    void *user;
    const tn_host *host;
};

static tn_status apply_graph_call_own(tn_scope *scope, tn_array *const *inputs,
                                      uint64_t num_inputs, tn_array **outputs,
                                      uint64_t num_outputs, void *user)
{
    const struct rule_body *own = user;
    tn_build build = graph_build(scope, own->host);
    return own->body(&build, inputs, num_inputs, outputs, num_outputs, own->user);
}

static const tn_graph *build_trace(const tn_build *build, tn_build_body body, void *user,
                                   const tn_type *inputs, uint64_t num_inputs,
                                   uint64_t num_outputs, tn_captures *captures)
{
    struct rule_body own = {body, user, build->host};
    const tn_graph *graph = NULL;
    tn_status status = tn_graph_trace(build->scope, apply_graph_call_own, &own, inputs,
                                      num_inputs, num_outputs, captures, &graph);
    return status ? NULL : graph;
}

static tn_status build_call(const tn_build *build, const tn_graph *graph,
                            tn_array *const *inputs, uint64_t num_inputs,
                            tn_array **outputs, uint64_t num_outputs)
{
    return tn_graph_call(build->scope, graph, inputs, num_inputs, outputs, num_outputs);
}

static tn_status build_vjp(const tn_build *build, tn_array *const *outputs,
                           tn_array *const *cotangents, uint64_t num_outputs,
                           tn_array *const *wrt, uint64_t num_wrt, tn_array **gradients)
{
    return tn_vjp(build->scope, outputs, cotangents, num_outputs, wrt, num_wrt, gradients);
}

static tn_status build_jvp(const tn_build *build, tn_array *const *outputs,
                           uint64_t num_outputs, tn_array *const *wrt,
                           tn_array *const *tangents, uint64_t num_wrt,
                           tn_array **out_tangents)
{
    return tn_jvp(build->scope, outputs, num_outputs, wrt, tangents, num_wrt, out_tangents);
}

static tn_status build_vmap(const tn_build *build, tn_build_body body, void *user,
                            tn_array *const *inputs, const int32_t *in_axes,
                            uint64_t num_inputs, tn_array **outputs,
                            const int32_t *out_axes, uint64_t num_outputs)
{
    struct rule_body own = {body, user, build->host};
    return tn_vmap_call(build->scope, body ? apply_graph_call_own : NULL, &own, inputs,
                        in_axes, num_inputs, outputs, out_axes, num_outputs);
}

// The type of an array; NULL for an input that is not given, or that was not built.
static const tn_type *build_type(const tn_array *array)
{
    return array ? tn_array_type(array) : NULL;
}

tn_build graph_build(tn_scope *scope, const tn_host *host)
{
    return (tn_build){.struct_size = sizeof(tn_build),
                      .host = host,
                      .scope = scope,
                      .op = build_op,
                      .op_n = build_op_n,
                      .expr = build_expr,
                      .scalar = build_scalar,
                      .type = build_type,
                      .trace = build_trace,
                      .call = build_call,
                      .vjp = build_vjp,
                      .jvp = build_jvp,
                      .vmap = build_vmap};
}
