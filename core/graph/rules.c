// SPDX-License-Identifier: MIT
// Calls rules and checks their answers; see rules.h.
#include "rules.h"

#include <inttypes.h>
#include <tenon/checked.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"

static const char *owner(const struct prim *prim)
{
    return prim->plugin_id ? prim->plugin_id : "the application";
}

// The status of a rule's call; a failure without a message gets one.
static tn_status called(const struct prim *prim, const char *rule, tn_status status)
{
    return fail_from(status, "rule %s of %s", rule, owner(prim));
}

// --- types ------------------------------------------------------------------------------

tn_status rule_infer(const struct prim *prim, const tn_infer *infer, tn_type *types)
{
    fail_clear();
    tn_status status = called(prim, "infer", prim->record.infer(infer, types));
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
        called(prim, "count_outputs", prim->record.count_outputs(infer, &count));
    if (status == TN_OK && (count == 0 || count > MAX_OUTPUTS))
        return fail(TN_ERR_INTERNAL,
                    "rule count_outputs of %s gives %" PRIu64 ", expected 1 .. %d",
                    owner(prim), count, MAX_OUTPUTS);
    if (status == TN_OK)
        *out_count = (uint32_t)count;
    return status;
}

// --- layouts ----------------------------------------------------------------------------

static tn_status wrong_view(const struct prim *prim, const tn_layout *input,
                            const tn_layout *got, const char *what)
{
    char from[LAYOUT_TEXT], to[LAYOUT_TEXT];
    return fail(TN_ERR_INTERNAL, "rule view of %s gives %s of %s: %s", owner(prim),
                layout_print(got, to), layout_print(input, from), what);
}

static tn_status check_view(const struct prim *prim, const tn_layout *input,
                            const tn_type *type, const tn_layout *got)
{
    struct span whole, part;
    if (got->dtype != type->dtype || got->rank != type->rank)
        return wrong_view(prim, input, got, "dtype or rank is not what infer said");
    if (got->flags || got->reserved)
        return wrong_view(prim, input, got, "flags are set, and none is known");
    for (int32_t i = 0; i < type->rank; i++)
        if (got->extent[i] != type->extent[i])
            return wrong_view(prim, input, got, "an extent is not what infer said");
    if (layout_elements(got) == 0)
        return TN_OK;
    if (layout_elements(input) == 0)
        return wrong_view(prim, input, got, "the input has no elements");
    if (!layout_span(got, &part) || !layout_span(input, &whole) || part.low < whole.low ||
        part.high > whole.high)
        return wrong_view(prim, input, got, "it leaves the memory of its input");
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
        status = called(prim, "view", status);
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
    return called(prim, "reference", prim->record.reference(call));
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
    return check_scratch(size, "the", "reference", owner(prim), record->id, out_size);
}

// --- rules that build graph --------------------------------------------------------------

// The status of a rule that built graph; the scope's failure comes first.
static tn_status built(const tn_scope *scope, const struct prim *prim, const char *rule,
                       tn_status status)
{
    if (scope->status != TN_OK)
        return scope->status;
    status = called(prim, rule, status);
    if (status != TN_OK)
        fail_prefix("%s: %s: ", prim->record.id, rule);
    return status;
}

#define ALL_OPTIONAL UINT64_MAX

// An array of another scope is one that the rule kept from an earlier call.
// `optional`: bit i says that array i may be NULL.
static tn_status check_arrays(const tn_scope *scope, const struct prim *prim,
                              const char *rule, const char *what, uint64_t optional,
                              tn_array *const *arrays, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!arrays[i] && !(optional >> i % 64 & 1))
            return fail(TN_ERR_INTERNAL, "%s: %s of %s leaves %s %u NULL", prim->record.id,
                        rule, owner(prim), what, i);
        if (arrays[i] && arrays[i]->scope != scope)
            return fail(TN_ERR_INTERNAL,
                        "%s: %s of %s gives an array of another scope for %s %u",
                        prim->record.id, rule, owner(prim), what, i);
    }
    return TN_OK;
}

static tn_status check_types(const struct prim *prim, const char *rule,
                             const tn_type *types, tn_array *const *arrays, uint32_t count)
{
    char got[TYPE_TEXT], expected[TYPE_TEXT];
    for (uint32_t i = 0; i < count; i++)
        if (arrays[i] && !type_equal(&arrays[i]->type, &types[i]))
            return fail(TN_ERR_INTERNAL, "%s: %s of %s gives %s for output %u, infer %s",
                        prim->record.id, rule, owner(prim),
                        type_print(&arrays[i]->type, got), i,
                        type_print(&types[i], expected));
    return TN_OK;
}

tn_status rule_decompose(tn_scope *scope, const struct prim *prim, const tn_rule *rule,
                         const tn_type *types, tn_array **outputs)
{
    tn_build build = graph_build(scope, prim->host);
    fail_clear();
    tn_status status =
        built(scope, prim, "decompose", prim->record.decompose(&build, rule, outputs));
    if (status == TN_OK)
        status = check_arrays(scope, prim, "decompose", "output", rule->unread, outputs,
                              rule->num_outputs);
    if (status == TN_OK)
        status = check_types(prim, "decompose", types, outputs, rule->num_outputs);
    return status;
}

tn_status rule_merge(tn_scope *scope, const struct prim *prim,
                     const tn_neighbour *neighbour, const tn_rule *rule,
                     const tn_rule *made, const tn_type *type, tn_array **output)
{
    tn_build build = graph_build(scope, prim->host);
    fail_clear();
    *output = NULL;
    tn_status status =
        built(scope, prim, "merge", neighbour->merge(&build, rule, made, output));
    if (status == TN_OK)
        status = check_arrays(scope, prim, "merge", "output", ALL_OPTIONAL, output, 1);
    return status == TN_OK ? check_types(prim, "merge", type, output, 1) : status;
}

tn_status rule_vjp(tn_scope *scope, const struct prim *prim, const tn_rule *rule,
                   tn_array *const *cotangents, const uint64_t *wanted,
                   tn_array **gradients)
{
    tn_build build = graph_build(scope, prim->host);
    fail_clear();
    tn_status status = built(scope, prim, "vjp",
                             prim->record.vjp(&build, rule, cotangents, wanted, gradients));
    return status != TN_OK ? status
                           : check_arrays(scope, prim, "vjp", "the gradient of input",
                                          ALL_OPTIONAL, gradients, rule->num_inputs);
}

tn_status rule_jvp(tn_scope *scope, const struct prim *prim, const tn_rule *rule,
                   tn_array *const *tangents, tn_array **out_tangents)
{
    tn_build build = graph_build(scope, prim->host);
    fail_clear();
    tn_status status =
        built(scope, prim, "jvp", prim->record.jvp(&build, rule, tangents, out_tangents));
    return status != TN_OK ? status
                           : check_arrays(scope, prim, "jvp", "the tangent of output",
                                          ALL_OPTIONAL, out_tangents, rule->num_outputs);
}

tn_status rule_vmap(tn_scope *scope, const struct prim *prim, const tn_rule *rule,
                    const int32_t *axes, int64_t size, tn_array **outputs,
                    int32_t *out_axes)
{
    tn_build build = graph_build(scope, prim->host);
    fail_clear();
    tn_status status =
        built(scope, prim, "vmap",
              prim->record.vmap(&build, rule, axes, size, outputs, out_axes));
    return status != TN_OK
               ? status
               : check_arrays(scope, prim, "vmap", "output", 0, outputs, rule->num_outputs);
}
