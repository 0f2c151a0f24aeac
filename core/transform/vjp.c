// SPDX-License-Identifier: MIT
// Reverse mode: cotangents flow from the outputs to `wrt`, in reverse topological order.
// Only nodes on a path from `wrt` to an output are differentiated, once each, without
// recursion over the graph's depth.
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "flow.h"

static tn_status vjp_sweep(struct flow *flow, struct node **nodes, uint32_t count);

// Whether the cotangent of input i is needed: the input has a slot.
static bool vjp_is_wanted(const struct flow *flow, const struct node *node, uint32_t i)
{
    return flow_has(flow, node->inputs[i]) && flow_through(node, i);
}

// Gives a slot to each float output that depends on an array with a slot. One pass
// suffices, since `nodes` are in topological order.
static tn_status include_dependents(struct flow *flow, struct node **nodes, uint32_t count)
{
    for (uint32_t n = 0; n < count; n++) {
        struct node *node = nodes[n];
        bool depends = false;
        for (uint32_t i = 0; i < node->num_inputs && !depends; i++)
            depends = vjp_is_wanted(flow, node, i);
        for (uint32_t i = 0; depends && i < node->num_outputs; i++) {
            if (!dtype_is_inexact(node->outputs[i].type.dtype))
                continue;
            tn_status status = flow_include(flow, &node->outputs[i]);
            if (status != TN_OK)
                return status;
        }
    }
    return TN_OK;
}

// --- rules -----------------------------------------------------------------------------

static tn_status pull_decomposed(struct flow *flow, struct node *node,
                                 tn_array *const *cotangents);

// Whether the gradient of input i is a sum of the cotangent times a factor that is constant
// over the elements of each sum: as for `mean` in (x - mean) * factor.
static bool sums_first(const struct node *node, const struct expr *derived, uint32_t i)
{
    const tn_type *type = &node->inputs[i]->type;
    const struct expr *pruned;
    uint32_t kept[64], num_cotangents = 0;
    tn_type both;
    if (node->num_outputs != 1 || derived->num_inputs > 64 || derived->reduces ||
        shape_equal(type, &node->outputs[0].type) ||
        expr_prune(derived, &pruned, kept) != TN_OK || expr_is_input(pruned) >= 0)
        return false;
    for (uint32_t k = 0; k < pruned->num_inputs; k++) {
        if (kept[k] >= node->num_inputs)
            num_cotangents++;
        else if (shape_broadcast(&node->inputs[kept[k]]->type, type, &both) != TN_OK ||
                 !shape_equal(&both, type))
            return false;
    }
    return num_cotangents == 1;
}

static tn_status pull_expr(struct flow *flow, struct node *node,
                           tn_array *const *cotangents)
{
    uint64_t given = 0;
    for (uint32_t i = 0; i < node->num_outputs && i < TN_EXPR_MAX_OUTPUTS; i++)
        given |= (uint64_t)(cotangents[i] != NULL) << i;
    uint64_t complex_inputs = flow_complex_inputs(node);
    if (flow_outgrows(node, expr_vjp, node->num_inputs, given, complex_inputs))
        return pull_decomposed(flow, node, cotangents);
    for (uint32_t i = 0; i < node->num_inputs; i++) {
        if (!vjp_is_wanted(flow, node, i))
            continue;
        const struct expr *derived;
        tn_array *gradient = NULL, *input = node->inputs[i], *sum = NULL;
        tn_status status = expr_vjp(node->expr, i, given, complex_inputs, &derived);
        if (status == TN_OK && derived && sums_first(node, derived, i)) {
            tn_type type = input->type;
            type.dtype = cotangents[0]->type.dtype;
            status = flow_fit(flow, cotangents[0], &type, &sum);
        }
        if (status == TN_OK && derived)
            status = flow_apply(flow, node, derived, sum ? &sum : cotangents,
                                input->type.dtype, &gradient);
        if (status == TN_OK)
            status = flow_add(flow, input, gradient);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

tn_status vjp_call(struct flow *flow, struct node *node, tn_array *const *cotangents,
                   const uint64_t *wanted, tn_array **gradients)
{
    struct rule_call call;
    tn_status status = rule_call_init(&call, node);
    if (status != TN_OK)
        return status;
    status = rule_vjp(flow->scope, node->prim, &call.rule, cotangents, wanted, gradients);
    rule_call_finish(&call);
    return status;
}

static tn_status pull_rule(struct flow *flow, struct node *node,
                           tn_array *const *cotangents)
{
    uint32_t words = (node->num_inputs + 63) / 64;
    tn_array **gradients = mem_zalloc((node->num_inputs + 1) * sizeof(*gradients));
    uint64_t *wanted = mem_zalloc((words + 1) * sizeof(*wanted));
    tn_status status = gradients && wanted ? TN_OK : TN_ERR_MEMORY;
    for (uint32_t i = 0; status == TN_OK && i < node->num_inputs; i++)
        if (vjp_is_wanted(flow, node, i))
            wanted[i / 64] |= UINT64_C(1) << i % 64;
    if (status == TN_OK)
        status = vjp_call(flow, node, cotangents, wanted, gradients);
    for (uint32_t i = 0; status == TN_OK && i < node->num_inputs; i++) {
        if (!(wanted[i / 64] >> i % 64 & 1) || !gradients[i])
            continue;
        status = flow_add(flow, node->inputs[i], gradients[i]);
        if (status != TN_OK && flow->scope->status == TN_OK)
            fail_prefix("%s: input %u: ", node->prim->record.id, i);
    }
    mem_free(gradients);
    mem_free(wanted);
    return status;
}

// Differentiates the node's parts instead of the node.
static tn_status pull_decomposed(struct flow *flow, struct node *node,
                                 tn_array *const *cotangents)
{
    tn_array *outputs[MAX_OUTPUTS] = {NULL};
    struct node **nodes = NULL;
    uint32_t count = 0;
    tn_status status = flow_parts(flow, node, outputs, &nodes, &count);
    if (status == TN_OK)
        status = include_dependents(flow, nodes, count);
    for (uint32_t i = 0; i < node->num_outputs && status == TN_OK; i++)
        if (cotangents[i] && flow_has(flow, outputs[i]))
            status = flow_add(flow, outputs[i], cotangents[i]);
    flow->level++;
    if (status == TN_OK)
        status = vjp_sweep(flow, nodes, count);
    flow->level--;
    mem_free(nodes);
    return status;
}

static tn_status vjp_pull(struct flow *flow, struct node *node)
{
    tn_array *cotangents[MAX_OUTPUTS] = {NULL};
    bool any_given = false, any_wanted = false, is_kept = false;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < node->num_outputs && status == TN_OK; i++) {
        if (flow_has(flow, &node->outputs[i])) {
            status = flow_join_slices(flow, &node->outputs[i]);
            cotangents[i] = *flow_slot(flow, &node->outputs[i]);
        }
        any_given |= cotangents[i] != NULL;
    }
    for (uint32_t i = 0; i < node->num_inputs && !any_wanted; i++)
        any_wanted = vjp_is_wanted(flow, node, i);
    if (status != TN_OK || !any_given || !any_wanted)
        return status;
    if (node->kind == NODE_PRIM && node->prim->record.vjp) {
        status = flow_keep_slice(flow, node, cotangents[0], &is_kept);
        return status || is_kept ? status : pull_rule(flow, node, cotangents);
    }
    status = flow_refuse_effects(node, "a derivative through it");
    if (status != TN_OK)
        return status;
    if (node->expr)
        return pull_expr(flow, node, cotangents);
    if (node->kind == NODE_PRIM && node->prim->record.decompose)
        return pull_decomposed(flow, node, cotangents);
    return node->kind == NODE_PRIM ? flow_no_rule(node, "vjp") : TN_OK;
}

static tn_status vjp_sweep(struct flow *flow, struct node **nodes, uint32_t count)
{
    tn_status status = TN_OK;
    for (int64_t i = (int64_t)count - 1; i >= 0 && status == TN_OK; i--) {
        uint32_t before = flow_enter(flow, nodes[i]);
        status = vjp_pull(flow, nodes[i]);
        flow_leave(flow, before);
    }
    return status;
}

// --- tn_vjp ----------------------------------------------------------------------------

tn_status vjp_since(tn_scope *scope, uint32_t since, tn_array *const *outputs,
                    tn_array *const *cotangents, uint64_t num_outputs, tn_array *const *wrt,
                    uint64_t num_wrt, tn_array **gradients)
{
    struct flow flow;
    struct node **nodes = NULL;
    uint32_t count = 0;
    tn_status status = flow_init(&flow, scope);
    if (status == TN_OK)
        status = flow_order(scope, outputs, num_outputs, since, &nodes, &count);
    for (uint64_t i = 0; i < num_wrt && status == TN_OK; i++)
        status = flow_include(&flow, wrt[i]);
    if (status == TN_OK)
        status = include_dependents(&flow, nodes, count);
    for (uint64_t i = 0; i < num_outputs && status == TN_OK; i++)
        if (cotangents[i] && flow_has(&flow, outputs[i]))
            status = flow_add(&flow, outputs[i], cotangents[i]);
    if (status == TN_OK)
        status = vjp_sweep(&flow, nodes, count);
    for (uint64_t i = 0; i < num_wrt && status == TN_OK; i++) {
        status = flow_join_slices(&flow, wrt[i]);
        gradients[i] = *flow_slot(&flow, wrt[i]);
    }
    mem_free(nodes);
    flow_finish(&flow);
    return status;
}

static tn_status check_cotangent(const tn_array *output, const tn_array *cotangent,
                                 uint64_t i)
{
    char got[TYPE_TEXT], expected[TYPE_TEXT];
    if (!dtype_is_inexact(output->type.dtype))
        return fail(TN_ERR_ARGUMENT,
                    "output %llu is %s, expected a float dtype or a "
                    "complex one",
                    (unsigned long long)i, type_print(&output->type, got));
    if (cotangent && !type_equal(&output->type, &cotangent->type))
        return fail(TN_ERR_ARGUMENT, "cotangent %llu is %s, expected %s as the output is",
                    (unsigned long long)i, type_print(&cotangent->type, got),
                    type_print(&output->type, expected));
    return TN_OK;
}

static tn_status vjp_ones(struct flow *flow, const tn_array *output, uint64_t i,
                          tn_array **out)
{
    char text[TYPE_TEXT];
    if (tn_is_complex(output->type.dtype))
        return fail(TN_ERR_ARGUMENT,
                    "output %llu is %s: without cotangents, expected a real dtype: take "
                    "real(), imag() or abs()",
                    (unsigned long long)i, type_print(&output->type, text));
    if (type_elements(&output->type) != 1)
        return fail(TN_ERR_ARGUMENT,
                    "output %llu is %s: without cotangents, expected one element",
                    (unsigned long long)i, type_print(&output->type, text));
    return flow_fill(flow, &output->type, 1, out);
}

static tn_status local_arrays(tn_scope *scope, tn_array *const *arrays, uint64_t count,
                              const char *what, tn_array **out)
{
    for (uint64_t i = 0; i < count; i++) {
        if (!arrays[i])
            return fail(TN_ERR_ARGUMENT, "%s %llu is NULL", what, (unsigned long long)i);
        out[i] = scope_local(scope, arrays[i]);
        if (!out[i])
            return scope->status;
    }
    return TN_OK;
}

static tn_status prepare_cotangents(struct flow *flow, tn_array *const *outputs,
                                    tn_array *const *cotangents, uint64_t count,
                                    tn_array **out)
{
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < count && status == TN_OK; i++) {
        status = check_cotangent(outputs[i], cotangents ? cotangents[i] : NULL, i);
        if (status == TN_OK && !cotangents)
            status = vjp_ones(flow, outputs[i], i, &out[i]);
        else if (status == TN_OK && cotangents[i] &&
                 !(out[i] = scope_local(flow->scope, cotangents[i])))
            status = flow->scope->status;
    }
    return status;
}

static tn_status check_wrt(tn_array *const *wrt, uint64_t count)
{
    char text[TYPE_TEXT];
    for (uint64_t i = 0; i < count; i++)
        if (!dtype_is_inexact(wrt[i]->type.dtype))
            return fail(
                TN_ERR_ARGUMENT,
                "no derivative with respect to array %llu: it is %s, expected a float "
                "dtype or a complex one",
                (unsigned long long)i, type_print(&wrt[i]->type, text));
    return TN_OK;
}

// `arrays` has room for the outputs, their cotangents, `wrt` and the gradients, in this
// order.
static tn_status vjp_differentiate(struct flow *flow, tn_array **arrays,
                                   tn_array *const *outputs, tn_array *const *cotangents,
                                   uint64_t num_outputs, tn_array *const *wrt,
                                   uint64_t num_wrt)
{
    tn_scope *scope = flow->scope;
    tn_array **own_outputs = arrays, **own_cotangents = own_outputs + num_outputs;
    tn_array **own_wrt = own_cotangents + num_outputs, **gradients = own_wrt + num_wrt;
    tn_status status = local_arrays(scope, outputs, num_outputs, "output", own_outputs);
    if (status == TN_OK)
        status = local_arrays(scope, wrt, num_wrt, "array", own_wrt);
    if (status == TN_OK)
        status = check_wrt(own_wrt, num_wrt);
    if (status == TN_OK)
        status =
            prepare_cotangents(flow, own_outputs, cotangents, num_outputs, own_cotangents);
    if (status == TN_OK)
        status = vjp_since(scope, 0, own_outputs, own_cotangents, num_outputs, own_wrt,
                           num_wrt, gradients);
    for (uint64_t i = 0; i < num_wrt && status == TN_OK; i++)
        if (!gradients[i])
            status = flow_fill(flow, &own_wrt[i]->type, 0, &gradients[i]);
    return status;
}

tn_status tn_vjp(tn_scope *scope, tn_array *const *outputs, tn_array *const *cotangents,
                 uint64_t num_outputs, tn_array *const *wrt, uint64_t num_wrt,
                 tn_array **gradients)
{
    tn_status status =
        scope_begin(scope, "vjp",
                    GIVEN({"outputs", outputs, num_outputs}, {"wrt", wrt, num_wrt},
                          {"gradients", gradients, num_wrt}));
    if (status != TN_OK)
        return status;
    struct flow flow = {0};
    tn_array **arrays = mem_zalloc((num_outputs + num_wrt + 1) * 2 * sizeof(*arrays));
    status = arrays ? flow_init(&flow, scope) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = vjp_differentiate(&flow, arrays, outputs, cotangents, num_outputs, wrt,
                                   num_wrt);
    if (status == TN_OK)
        memcpy(gradients, arrays + 2 * num_outputs + num_wrt, num_wrt * sizeof(*gradients));
    else if (scope->status == TN_OK)
        fail_prefix_name("vjp");
    flow_finish(&flow);
    mem_free(arrays);
    return scope_take_failure(scope, status);
}
