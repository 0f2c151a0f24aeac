// SPDX-License-Identifier: MIT
// Calls rules and checks their answers; see rules.h.
#include "rules.h"

#include <inttypes.h>
#include <string.h>
#include <tenon/checked.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"

const char *rule_owner(const struct prim *prim)
{
    return prim->plugin_id ? prim->plugin_id : "the application";
}

tn_status rule_called(const struct prim *prim, const char *rule, tn_status status)
{
    return fail_from(status, "rule %s of %s", rule, rule_owner(prim));
}

// --- types ------------------------------------------------------------------------------

tn_status rule_infer(const struct prim *prim, const tn_infer *infer, tn_type *types)
{
    fail_clear();
    tn_status status = rule_called(prim, "infer", prim->record.infer(infer, types));
    for (uint32_t i = 0; i < infer->num_outputs && status == TN_OK; i++)
        status = type_check(&types[i]);
    return status;
}

tn_status rule_count_outputs(const struct prim *prim, const tn_infer *infer,
                             uint32_t *out_count)
{
    uint64_t count = 0;
    *out_count = prim->record.num_outputs;
    if (!prim->record.count_outputs)
        return TN_OK;
    fail_clear();
    tn_status status =
        rule_called(prim, "count_outputs", prim->record.count_outputs(infer, &count));
    if (status == TN_OK && (count == 0 || count > MAX_OUTPUTS))
        return fail(TN_ERR_INTERNAL,
                    "rule count_outputs of %s gives %" PRIu64 ", expected 1 .. %d",
                    rule_owner(prim), count, MAX_OUTPUTS);
    if (status == TN_OK)
        *out_count = (uint32_t)count;
    return status;
}

// --- composites -------------------------------------------------------------------------

// The failure of an operator within a composite tells of the composite first.
static tn_status expansion_failed(tn_scope *scope, const struct prim *prim)
{
    fail(scope->status, "%s: %s", prim->record.id, tn_scope_error(scope));
    char *error = mem_strdup(fail_text());
    if (error) {
        mem_free(scope->error);
        scope->error = error;
    }
    return scope->status;
}

tn_status rule_expand(tn_scope *scope, const struct prim *prim,
                      const tn_array *const *inputs, uint32_t num_inputs, const void *attrs,
                      tn_array **outputs, uint32_t num_outputs)
{
    const tn_host_graph *service = scope->runtime->graph_service;
    tn_build build = {.struct_size = sizeof(build)};
    tn_array **locals = arena_alloc(&scope->arena, (num_inputs + 1) * sizeof(*locals));
    const tn_rule rule = {.struct_size = sizeof(rule),
                          .attrs = attrs,
                          .inputs = locals,
                          .num_inputs = num_inputs,
                          .num_outputs = num_outputs};
    tn_status status = locals ? service->build(prim->host, scope, &build) : TN_ERR_MEMORY;
    if (status != TN_OK)
        return status;
    for (uint32_t i = 0; i < num_inputs; i++)
        locals[i] = scope_local(scope, inputs[i]);
    memset(outputs, 0, num_outputs * sizeof(*outputs));
    fail_clear();
    if (scope->status == TN_OK)
        status = prim->record.decompose(&build, &rule, outputs);
    if (scope->status != TN_OK)
        return expansion_failed(scope, prim);
    status = rule_called(prim, "decompose", status);
    for (uint32_t i = 0; i < num_outputs && status == TN_OK; i++)
        if (!outputs[i] || outputs[i]->scope != scope)
            status = fail(TN_ERR_INTERNAL, "rule decompose of %s gives %s for output %u",
                          rule_owner(prim),
                          outputs[i] ? "an array of another scope" : "NULL", i);
    return status;
}

// --- layouts ----------------------------------------------------------------------------

static tn_status graph_rules_wrong_view(const struct prim *prim, const tn_layout *input,
                                        const tn_layout *got, const char *what)
{
    char from[LAYOUT_TEXT], to[LAYOUT_TEXT];
    return fail(TN_ERR_INTERNAL, "rule view of %s gives %s of %s: %s", rule_owner(prim),
                layout_print(got, to), layout_print(input, from), what);
}

static tn_status check_view(const struct prim *prim, const tn_layout *input,
                            const tn_type *type, const tn_layout *got)
{
    struct span whole, part;
    if (got->dtype != type->dtype || got->rank != type->rank)
        return graph_rules_wrong_view(prim, input, got,
                                      "dtype or rank is not what infer said");
    if (got->flags || got->reserved)
        return graph_rules_wrong_view(prim, input, got, "flags are set, and none is known");
    for (int32_t i = 0; i < type->rank; i++)
        if (got->extent[i] != type->extent[i])
            return graph_rules_wrong_view(prim, input, got,
                                          "an extent is not what infer said");
    if (layout_elements(got) == 0)
        return TN_OK;
    if (layout_elements(input) == 0)
        return graph_rules_wrong_view(prim, input, got, "the input has no elements");
    if (!layout_span(got, &part) || !layout_span(input, &whole) || part.low < whole.low ||
        part.high > whole.high)
        return graph_rules_wrong_view(prim, input, got,
                                      "it leaves the memory of its input");
    return TN_OK;
}

tn_status rule_view(const struct prim *prim, const tn_layout *input, const tn_type *type,
                    const void *attrs, tn_layout *out)
{
    tn_view view = {
        .struct_size = sizeof(view), .input = input, .output = type, .attrs = attrs};
    tn_layout got = {0};
    fail_clear();
    tn_status status = prim->record.view(&view, &got);
    if (status != TN_ERR_UNSUPPORTED)
        status = rule_called(prim, "view", status);
    if (status == TN_OK)
        status = check_view(prim, input, type, &got);
    if (status != TN_OK)
        return status;
    for (int32_t i = got.rank; i < TN_MAX_RANK; i++)
        got.extent[i] = got.stride[i] = 0;
    *out = got;
    return TN_OK;
}

// --- kernels ----------------------------------------------------------------------------

tn_status rule_reference(const struct prim *prim, const tn_cpu_call *call)
{
    fail_clear();
    return rule_called(prim, "reference", prim->record.reference(call));
}

static tn_status check_scratch(uint64_t size, const char *what, const char *name,
                               const char *plugin, const char *id, uint64_t *out_size)
{
    if (size > INT64_MAX)
        return fail(TN_ERR_INTERNAL,
                    "%s %s of %s, for %s: scratch_size gives %" PRIu64
                    " bytes, at most %" PRId64 " are possible",
                    what, name, plugin, id, size, INT64_MAX);
    *out_size = size;
    return TN_OK;
}

tn_status rule_scratch(const tn_kernel *kernel, const tn_kernel_query *query,
                       uint64_t *out_size)
{
    uint64_t size = kernel->scratch_size ? kernel->scratch_size(query) : 0;
    return check_scratch(size, "kernel", kernel->name, kernel_plugin(kernel),
                         kernel->primitive, out_size);
}

tn_status rule_reference_scratch(const struct prim *prim, const tn_kernel_query *query,
                                 uint64_t *out_size)
{
    const tn_primitive *record = &prim->record;
    uint64_t size = record->reference_scratch ? record->reference_scratch(query) : 0;
    return check_scratch(size, "the", "reference", rule_owner(prim), record->id, out_size);
}
