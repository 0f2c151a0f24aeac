// SPDX-License-Identifier: MIT
// Calls rules that build graph, and checks what they built; see build.h.
#include "build.h"

#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"

// The status of a rule that built graph; the scope's failure comes first.
static tn_status build_rules_built(const tn_scope *scope, const struct prim *prim,
                                   const char *rule, tn_status status)
{
    if (scope->status != TN_OK)
        return scope->status;
    status = rule_called(prim, rule, status);
    if (status != TN_OK)
        fail_prefix("%s: %s: ", prim->record.id, rule);
    return status;
}

#define ALL_OPTIONAL UINT64_MAX

// An array of another scope is one that the rule kept from an earlier call.
// `optional`: bit i says that array i may be NULL.
static tn_status build_rules_check_arrays(const tn_scope *scope, const struct prim *prim,
                                          const char *rule, const char *what,
                                          uint64_t optional, tn_array *const *arrays,
                                          uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!arrays[i] && !(optional >> i % 64 & 1))
            return fail(TN_ERR_INTERNAL, "%s: %s of %s leaves %s %u NULL", prim->record.id,
                        rule, rule_owner(prim), what, i);
        if (arrays[i] && arrays[i]->scope != scope)
            return fail(TN_ERR_INTERNAL,
                        "%s: %s of %s gives an array of another scope for %s %u",
                        prim->record.id, rule, rule_owner(prim), what, i);
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
                        prim->record.id, rule, rule_owner(prim),
                        type_print(&arrays[i]->type, got), i,
                        type_print(&types[i], expected));
    return TN_OK;
}

tn_status rule_decompose(tn_scope *scope, const struct prim *prim, const tn_rule *rule,
                         const tn_type *types, tn_array **outputs)
{
    tn_build build = graph_build(scope, prim->host);
    fail_clear();
    tn_status status = build_rules_built(scope, prim, "decompose",
                                         prim->record.decompose(&build, rule, outputs));
    if (status == TN_OK)
        status = build_rules_check_arrays(scope, prim, "decompose", "output", rule->unread,
                                          outputs, rule->num_outputs);
    if (status == TN_OK)
        status = check_types(prim, "decompose", types, outputs, rule->num_outputs);
    return status;
}

tn_status rule_rewrite_pair(tn_scope *scope, const struct prim *prim,
                            const tn_pair_rule *pair_rule, const tn_rule *rule,
                            const tn_rule *made, const tn_type *type, tn_array **output)
{
    tn_build build = graph_build(scope, prim->host);
    fail_clear();
    *output = NULL;
    tn_status status = build_rules_built(scope, prim, "rewrite",
                                         pair_rule->rewrite(&build, rule, made, output));
    if (status == TN_OK)
        status = build_rules_check_arrays(scope, prim, "rewrite", "output", ALL_OPTIONAL,
                                          output, 1);
    return status == TN_OK ? check_types(prim, "rewrite", type, output, 1) : status;
}

tn_status rule_vjp(tn_scope *scope, const struct prim *prim, const tn_rule *rule,
                   tn_array *const *cotangents, const uint64_t *wanted,
                   tn_array **gradients)
{
    tn_build build = graph_build(scope, prim->host);
    fail_clear();
    tn_status status = build_rules_built(
        scope, prim, "vjp", prim->record.vjp(&build, rule, cotangents, wanted, gradients));
    return status != TN_OK
               ? status
               : build_rules_check_arrays(scope, prim, "vjp", "the gradient of input",
                                          ALL_OPTIONAL, gradients, rule->num_inputs);
}

tn_status rule_jvp(tn_scope *scope, const struct prim *prim, const tn_rule *rule,
                   tn_array *const *tangents, tn_array **out_tangents)
{
    tn_build build = graph_build(scope, prim->host);
    fail_clear();
    tn_status status = build_rules_built(
        scope, prim, "jvp", prim->record.jvp(&build, rule, tangents, out_tangents));
    return status != TN_OK
               ? status
               : build_rules_check_arrays(scope, prim, "jvp", "the tangent of output",
                                          ALL_OPTIONAL, out_tangents, rule->num_outputs);
}

tn_status rule_vmap(tn_scope *scope, const struct prim *prim, const tn_rule *rule,
                    const int32_t *axes, int64_t size, tn_array **outputs,
                    int32_t *out_axes)
{
    tn_build build = graph_build(scope, prim->host);
    fail_clear();
    tn_status status =
        build_rules_built(scope, prim, "vmap",
                          prim->record.vmap(&build, rule, axes, size, outputs, out_axes));
    return status != TN_OK ? status
                           : build_rules_check_arrays(scope, prim, "vmap", "output", 0,
                                                      outputs, rule->num_outputs);
}
