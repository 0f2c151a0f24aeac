// SPDX-License-Identifier: MIT
// The tn_build table, through which rules of plugins build graph in a scope.
#include "graph.h"

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
        .type = tn_array_type,
    };
}
