// SPDX-License-Identifier: MIT
// Forward mode: tangents are computed in topological order of the nodes.
//
// A primitive that has a vjp but no jvp is transposed: its vjp is linear in the cotangents,
// so the vjp of that linear map, applied to the tangents, is the jvp.
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "flow.h"

static tn_status jvp_sweep(struct flow *flow, struct node **nodes, uint32_t count);

static tn_array *jvp_tangent_of(struct flow *flow, const struct node *node, uint32_t i)
{
    bool has = flow_has(flow, node->inputs[i]) && flow_through(node, i);
    return has ? *flow_slot(flow, node->inputs[i]) : NULL;
}

static tn_status set_tangent(struct flow *flow, tn_array *output, tn_array *tangent)
{
    if (!tangent || !dtype_is_inexact(output->type.dtype))
        return TN_OK;
    tn_status status = flow_include(flow, output);
    return status == TN_OK ? flow_add(flow, output, tangent) : status;
}

static tn_status jvp_push_decomposed(struct flow *flow, struct node *node);

static tn_status jvp_push_expr(struct flow *flow, struct node *node,
                               tn_array *const *tangents)
{
    uint64_t given = 0;
    for (uint32_t i = 0; i < node->num_inputs; i++)
        given |= (uint64_t)(tangents[i] != NULL) << i;
    uint64_t complex_inputs = flow_complex_inputs(node);
    if (flow_outgrows(node, expr_jvp, node->num_outputs, given, complex_inputs))
        return jvp_push_decomposed(flow, node);
    for (uint32_t i = 0; i < node->num_outputs; i++) {
        tn_array *output = &node->outputs[i], *tangent = NULL;
        const struct expr *derived;
        if (!dtype_is_inexact(output->type.dtype))
            continue;
        tn_status status = expr_jvp(node->expr, i, given, complex_inputs, &derived);
        if (status == TN_OK && derived)
            status =
                flow_apply(flow, node, derived, tangents, output->type.dtype, &tangent);
        if (status == TN_OK)
            status = set_tangent(flow, output, tangent);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status jvp_push_rule(struct flow *flow, struct node *node,
                               tn_array *const *tangents)
{
    tn_array *out_tangents[MAX_OUTPUTS] = {NULL};
    struct rule_call call;
    tn_status status = rule_call_init(&call, node);
    if (status != TN_OK)
        return status;
    status = rule_jvp(flow->scope, node->prim, &call.rule, tangents, out_tangents);
    rule_call_finish(&call);
    for (uint32_t i = 0; i < node->num_outputs && status == TN_OK; i++)
        status = set_tangent(flow, &node->outputs[i], out_tangents[i]);
    return status;
}

// The map from cotangents to gradients is linear, so its transpose does not depend on the
// cotangents' values: zeros serve.
static tn_status make_cotangents(struct flow *flow, struct node *node,
                                 tn_array *cotangents[MAX_OUTPUTS])
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < node->num_outputs && status == TN_OK; i++)
        if (dtype_is_inexact(node->outputs[i].type.dtype))
            status = flow_fill(flow, &node->outputs[i].type, 0, &cotangents[i]);
    return status;
}

// `gradients`, `wanted` and `own_tangents` are zeroed memory, one entry (one bit) an input.
static tn_status jvp_transpose(struct flow *flow, struct node *node,
                               tn_array *const *tangents, tn_array **gradients,
                               uint64_t *wanted, tn_array **own_tangents)
{
    tn_array *cotangents[MAX_OUTPUTS] = {NULL}, *wrt[MAX_OUTPUTS],
             *results[MAX_OUTPUTS] = {NULL};
    uint32_t num_wrt = 0;
    tn_status status = make_cotangents(flow, node, cotangents);
    uint32_t since = flow->scope->serial;
    for (uint32_t i = 0; i < node->num_inputs; i++)
        if (tangents[i])
            wanted[i / 64] |= UINT64_C(1) << i % 64;
    if (status == TN_OK)
        status = vjp_call(flow, node, cotangents, wanted, gradients);
    for (uint32_t i = 0; i < node->num_inputs && status == TN_OK; i++)
        if (tangents[i] && gradients[i]) // flow_add() fits a vjp's gradients too
            status = flow_fit(flow, gradients[i], &node->inputs[i]->type, &gradients[i]);
    for (uint32_t i = 0; i < node->num_inputs; i++)
        own_tangents[i] = gradients[i] ? tangents[i] : NULL;
    for (uint32_t i = 0; i < node->num_outputs; i++)
        if (cotangents[i])
            wrt[num_wrt++] = cotangents[i];
    if (status == TN_OK)
        status = vjp_since(flow->scope, since, gradients, own_tangents, node->num_inputs,
                           wrt, num_wrt, results);
    for (uint32_t i = 0, k = 0; i < node->num_outputs && status == TN_OK; i++)
        if (cotangents[i])
            status = set_tangent(flow, &node->outputs[i], results[k++]);
    return status;
}

static tn_status push_transposed(struct flow *flow, struct node *node,
                                 tn_array *const *tangents)
{
    uint32_t n = node->num_inputs;
    tn_array **gradients = mem_zalloc((n + 1) * sizeof(*gradients));
    tn_array **own_tangents = mem_zalloc((n + 1) * sizeof(*own_tangents));
    uint64_t *wanted = mem_zalloc((n / 64 + 1) * sizeof(*wanted));
    tn_status status = TN_ERR_MEMORY;
    if (gradients && own_tangents && wanted)
        status = jvp_transpose(flow, node, tangents, gradients, wanted, own_tangents);
    mem_free(gradients);
    mem_free(own_tangents);
    mem_free(wanted);
    return status;
}

static tn_status jvp_push_decomposed(struct flow *flow, struct node *node)
{
    tn_array *outputs[MAX_OUTPUTS] = {NULL};
    struct node **nodes = NULL;
    uint32_t count = 0;
    tn_status status = flow_parts(flow, node, outputs, &nodes, &count);
    flow->level++;
    if (status == TN_OK)
        status = jvp_sweep(flow, nodes, count);
    flow->level--;
    mem_free(nodes);
    for (uint32_t i = 0; i < node->num_outputs && status == TN_OK; i++)
        if (flow_has(flow, outputs[i]))
            status = set_tangent(flow, &node->outputs[i], *flow_slot(flow, outputs[i]));
    return status;
}

static tn_status push_node(struct flow *flow, struct node *node, tn_array *const *tangents)
{
    const tn_primitive *record = node->kind == NODE_PRIM ? &node->prim->record : NULL;
    if (record && record->jvp)
        return jvp_push_rule(flow, node, tangents);
    tn_status status = flow_refuse_effects(node, "a derivative through it");
    if (status != TN_OK)
        return status;
    if (node->expr)
        return jvp_push_expr(flow, node, tangents);
    if (record && record->decompose)
        return jvp_push_decomposed(flow, node);
    if (record && record->vjp)
        return push_transposed(flow, node, tangents);
    return record ? flow_no_rule(node, "jvp") : TN_OK;
}

static tn_status jvp_push(struct flow *flow, struct node *node)
{
    tn_array **tangents = mem_zalloc((node->num_inputs + 1) * sizeof(*tangents));
    if (!tangents)
        return TN_ERR_MEMORY;
    bool any = false;
    for (uint32_t i = 0; i < node->num_inputs; i++) {
        tangents[i] = jvp_tangent_of(flow, node, i);
        any |= tangents[i] != NULL;
    }
    tn_status status = any ? push_node(flow, node, tangents) : TN_OK;
    mem_free(tangents);
    return status;
}

static tn_status jvp_sweep(struct flow *flow, struct node **nodes, uint32_t count)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < count && status == TN_OK; i++) {
        uint32_t before = flow_enter(flow, nodes[i]);
        status = jvp_push(flow, nodes[i]);
        flow_leave(flow, before);
    }
    return status;
}

// --- tn_jvp ----------------------------------------------------------------------------

static tn_status jvp_seed(struct flow *flow, tn_array *wrt, tn_array *tangent, uint64_t i)
{
    char got[TYPE_TEXT], expected[TYPE_TEXT];
    if (!wrt)
        return fail(TN_ERR_ARGUMENT, "array %llu is NULL", (unsigned long long)i);
    wrt = scope_local(flow->scope, wrt);
    if (!wrt)
        return flow->scope->status;
    if (!dtype_is_inexact(wrt->type.dtype))
        return fail(TN_ERR_ARGUMENT,
                    "no derivative with respect to array %llu: it is %s, expected a float "
                    "dtype or a complex one",
                    (unsigned long long)i, type_print(&wrt->type, got));
    if (!tangent)
        return TN_OK;
    if (!type_equal(&wrt->type, &tangent->type))
        return fail(TN_ERR_ARGUMENT, "tangent %llu is %s, expected %s as the array is",
                    (unsigned long long)i, type_print(&tangent->type, got),
                    type_print(&wrt->type, expected));
    tangent = scope_local(flow->scope, tangent);
    return tangent ? set_tangent(flow, wrt, tangent) : flow->scope->status;
}

static tn_status jvp_take_output(struct flow *flow, tn_array *output,
                                 tn_array **out_tangent)
{
    *out_tangent = flow_has(flow, output) ? *flow_slot(flow, output) : NULL;
    return *out_tangent ? TN_OK : flow_fill(flow, &output->type, 0, out_tangent);
}

// `own` has 2 * num_outputs entries: the outputs as the scope knows them, then their
// tangents.
static tn_status jvp_differentiate(struct flow *flow, tn_array **own,
                                   tn_array *const *outputs, uint64_t num_outputs,
                                   tn_array *const *wrt, tn_array *const *tangents,
                                   uint64_t num_wrt)
{
    struct node **nodes = NULL;
    uint32_t count = 0;
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < num_outputs && status == TN_OK; i++) {
        if (!outputs[i])
            status = fail(TN_ERR_ARGUMENT, "output %llu is NULL", (unsigned long long)i);
        else if (!(own[i] = scope_local(flow->scope, outputs[i])))
            status = flow->scope->status;
    }
    for (uint64_t i = 0; i < num_wrt && status == TN_OK; i++)
        status = jvp_seed(flow, wrt[i], tangents ? tangents[i] : NULL, i);
    if (status == TN_OK)
        status = flow_order(flow->scope, own, num_outputs, 0, &nodes, &count);
    if (status == TN_OK)
        status = jvp_sweep(flow, nodes, count);
    for (uint64_t i = 0; i < num_outputs && status == TN_OK; i++)
        status = jvp_take_output(flow, own[i], &own[num_outputs + i]);
    mem_free(nodes);
    return status;
}

tn_status tn_jvp(tn_scope *scope, tn_array *const *outputs, uint64_t num_outputs,
                 tn_array *const *wrt, tn_array *const *tangents, uint64_t num_wrt,
                 tn_array **out_tangents)
{
    tn_status status =
        scope_begin(scope, "jvp",
                    GIVEN({"outputs", outputs, num_outputs}, {"wrt", wrt, num_wrt},
                          {"out_tangents", out_tangents, num_outputs}));
    if (status != TN_OK)
        return status;
    struct flow flow = {0};
    tn_array **own = mem_zalloc((num_outputs + 1) * 2 * sizeof(*own));
    status = own ? flow_init(&flow, scope) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status =
            jvp_differentiate(&flow, own, outputs, num_outputs, wrt, tangents, num_wrt);
    if (status == TN_OK)
        memcpy(out_tangents, own + num_outputs, num_outputs * sizeof(*out_tangents));
    else if (scope->status == TN_OK)
        fail_prefix_name("jvp");
    flow_finish(&flow);
    mem_free(own);
    return scope_take_failure(scope, status);
}
