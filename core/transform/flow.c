// SPDX-License-Identifier: MIT
// Slots, arrays fitted to types, topological order, and calls of rules and bodies; see
// flow.h.
#include "flow.h"

#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "../plugin/load/primitives.h"

tn_status flow_init(struct flow *flow, tn_scope *scope)
{
    *flow = (struct flow){.scope = scope, .epoch = ++scope->epoch};
    scope->num_flows++;
    tn_status status = expr_parse_arrow(scope->runtime, "a, b -> a + b", &flow->sum);
    if (status == TN_OK)
        status = expr_parse_arrow(scope->runtime, "x -> x", &flow->same);
    return status;
}

void flow_finish(struct flow *flow)
{
    if (flow->scope)
        flow->scope->num_flows--;
    mem_free(flow->slots);
    mem_free(flow->slices);
    mem_free(flow->heads);
}

bool flow_has(const struct flow *flow, const tn_array *array)
{
    return array && array->mark == flow->epoch;
}

tn_array **flow_slot(struct flow *flow, const tn_array *array)
{
    return &flow->slots[array->id];
}

tn_status flow_include(struct flow *flow, tn_array *array)
{
    if (flow_has(flow, array))
        return TN_OK;
    tn_status status = mem_grow((void **)&flow->slots, &flow->max_slots,
                                flow->num_slots + 1, sizeof(*flow->slots));
    if (status != TN_OK)
        return status;
    array->mark = flow->epoch;
    array->id = flow->num_slots;
    flow->slots[flow->num_slots++] = NULL;
    return TN_OK;
}

bool flow_through(const struct node *node, uint32_t i)
{
    if (!node->inputs[i] || !dtype_is_inexact(node->inputs[i]->type.dtype))
        return false;
    if (!node->prim)
        return true;
    if (i >= node->num_inputs - node->prim->num_runtime)
        return false;
    if (node->prim->record.num_inputs == 0)
        return true;
    const tn_primitive *record = &node->prim->record;
    uint32_t slot = i < record->num_inputs ? i : record->num_inputs - 1;
    return !(record->inputs[slot].flags & TN_INPUT_CONSTANT);
}

uint64_t flow_complex_inputs(const struct node *node)
{
    uint64_t set = 0;
    for (uint32_t i = 0; i < node->num_inputs && i < 64; i++)
        set |= (uint64_t)(node->inputs[i] && tn_is_complex(node->inputs[i]->type.dtype))
               << i;
    return set;
}

// --- fitting ---------------------------------------------------------------------------

tn_status flow_apply_prim(struct flow *flow, const struct prim *prim,
                          const tn_array *const *inputs, uint32_t num_inputs,
                          tn_attr_list given, tn_array **out_array)
{
    void *attrs = mem_alloc(prim->record.attrs.size);
    if (!attrs)
        return TN_ERR_MEMORY;
    tn_status status =
        attrs_fill(&flow->scope->interned, &prim->record.attrs, given, attrs, NULL);
    if (status == TN_OK)
        status = graph_apply(flow->scope, prim, inputs, num_inputs, attrs, out_array, 1);
    mem_free(attrs);
    return status;
}

tn_status flow_apply_role(struct flow *flow, const char *role, const char *attribute,
                          const tn_ints *ints, tn_array *array, tn_array **out_array)
{
    const struct prim *prim;
    tn_status status = prim_find_role(flow->scope->runtime, role, &prim);
    if (status != TN_OK)
        return status;
    tn_attr attr = {.name = attribute, .kind = TN_ATTR_INTS, .ints = ints};
    return flow_apply_prim(flow, prim, TN_IN(array), TN_ATTR_LIST(&attr, 1), out_array);
}

tn_status flow_reshape(struct flow *flow, const char *role, tn_array *array,
                       const tn_type *type, tn_array **out_array)
{
    tn_ints shape = {.count = (uint32_t)type->rank, .given = 1};
    memcpy(shape.value, type->extent, (size_t)type->rank * sizeof(shape.value[0]));
    return flow_apply_role(flow, role, "shape", &shape, array, out_array);
}

static tn_status fit_shape(struct flow *flow, tn_array *array, const tn_type *type,
                           tn_array **out_array)
{
    tn_type both;
    *out_array = array;
    if (shape_equal(&array->type, type))
        return TN_OK;
    tn_status status = shape_broadcast(&array->type, type, &both);
    if (status != TN_OK)
        return status;
    if (shape_equal(&both, type))
        return flow_reshape(flow, TN_ROLE_BROADCAST_TO, array, type, out_array);
    if (shape_equal(&both, &array->type))
        return flow_reshape(flow, TN_ROLE_SUM_TO, array, type, out_array);
    char got[TYPE_TEXT], expected[TYPE_TEXT];
    return fail(TN_ERR_ARGUMENT, "a derivative has shape %s, expected %s",
                shape_print(&array->type, got), shape_print(type, expected));
}

tn_status flow_fit(struct flow *flow, tn_array *array, const tn_type *type,
                   tn_array **out_array)
{
    *out_array = NULL;
    if (!array)
        return TN_OK;
    tn_array *fitted;
    tn_status status = fit_shape(flow, array, type, &fitted);
    if (status == TN_OK && fitted->type.dtype != type->dtype)
        status = graph_apply_expr(flow->scope, flow->same, TN_IN(fitted), NULL, NULL,
                                  &type->dtype, &fitted);
    if (status == TN_OK)
        *out_array = fitted;
    return status;
}

tn_status flow_fill(struct flow *flow, const tn_type *type, double value,
                    tn_array **out_array)
{
    tn_array *scalar = tn_scalar(flow->scope, type->dtype, value);
    if (!scalar)
        return flow->scope->status;
    return flow_fit(flow, scalar, type, out_array);
}

tn_status flow_add(struct flow *flow, tn_array *array, tn_array *amount)
{
    tn_array *fitted, **slot = flow_slot(flow, array);
    tn_status status = flow_fit(flow, amount, &array->type, &fitted);
    if (status != TN_OK || !fitted)
        return status;
    if (*slot)
        status = graph_apply_expr(flow->scope, flow->sum, TN_IN(*slot, fitted), NULL, NULL,
                                  &array->type.dtype, &fitted);
    if (status == TN_OK)
        *slot = fitted;
    return status;
}

// A reduction counts each element of the node's rows: one of the inputs is broadcast where
// those that were kept broadcast to less.
static tn_status cover_rows(struct flow *flow, const struct node *node,
                            const tn_array **inputs, uint32_t count)
{
    const tn_type *whole = &node->outputs[0].type;
    tn_type common = {0};
    tn_array *first = NULL;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < count && status == TN_OK; i++)
        status = shape_broadcast(&common, &inputs[i]->type, &common);
    if (status != TN_OK || shape_equal(&common, whole))
        return status;
    status = flow_reshape(flow, TN_ROLE_BROADCAST_TO, (tn_array *)inputs[0], whole, &first);
    inputs[0] = first;
    return status;
}

// Whether all elements are 1, as those of the cotangent of a sum that nothing scales are.
static bool flow_is_one(const tn_array *x)
{
    const double one = 1;
    while (x->node->kind == NODE_PRIM && x->node->prim->record.view && !x->node->is_lazy)
        x = x->node->inputs[0];
    return x->node->kind == NODE_NUMBER && memcmp(&x->node->number, &one, sizeof(one)) == 0;
}

tn_status flow_apply(struct flow *flow, const struct node *node, const struct expr *derived,
                     tn_array *const *others, tn_dtype dtype, tn_array **out_array)
{
    const struct expr *pruned;
    const tn_array *inputs[64];
    uint32_t kept[64];
    if (derived->num_inputs > 64)
        return fail(TN_ERR_UNSUPPORTED,
                    "the derivative of '%.80s' has %u inputs, at most 64", node->expr->text,
                    derived->num_inputs);
    tn_status status = expr_prune(derived, &pruned, kept);
    if (status != TN_OK)
        return status;
    for (uint32_t i = 0; i < pruned->num_inputs; i++)
        inputs[i] = kept[i] < node->num_inputs ? node->inputs[kept[i]]
                                               : others[kept[i] - node->num_inputs];
    int same = expr_is_input(pruned);
    // A cotangent is the last input. A product by 1 is the other factor.
    if (expr_is_product(pruned) && flow_is_one(inputs[1]) &&
        type_equal(&inputs[0]->type, &inputs[1]->type) && inputs[0]->type.dtype == dtype &&
        !inputs[0]->weak_kind)
        same = 0;
    if (same >= 0) {
        *out_array = (tn_array *)inputs[same];
        return TN_OK;
    }
    if (pruned->reduces)
        status = cover_rows(flow, node, inputs, pruned->num_inputs);
    if (status != TN_OK)
        return status;
    bool has_attrs = pruned->num_attrs > 0 || pruned->reduces;
    return graph_apply_expr(flow->scope, pruned, inputs, pruned->num_inputs,
                            has_attrs ? node->table : NULL, has_attrs ? node->attrs : NULL,
                            &dtype, out_array);
}

// --- order -----------------------------------------------------------------------------

// A depth-first search. Marks visited nodes with `epoch`.
struct flow_search {
    tn_scope *scope;
    uint32_t epoch, since;
    struct node **stack, **order;
    uint32_t num_stack, max_stack, num_order, max_order;
};

static tn_status flow_push(struct flow_search *s, tn_array *array)
{
    struct node *node = array ? array->node : NULL;
    if (!node || node->mark == s->epoch || node->serial < s->since)
        return TN_OK;
    tn_status status = node_expand(s->scope, node);
    if (status != TN_OK || node->num_inputs == 0)
        return status;
    status =
        mem_grow((void **)&s->stack, &s->max_stack, s->num_stack + 1, sizeof(*s->stack));
    if (status != TN_OK)
        return status;
    node->mark = s->epoch;
    node->position = 0; // how many inputs were visited
    s->stack[s->num_stack++] = node;
    return TN_OK;
}

static tn_status search_from(struct flow_search *s, tn_array *root)
{
    tn_status status = flow_push(s, root);
    while (status == TN_OK && s->num_stack > 0) {
        struct node *node = s->stack[s->num_stack - 1];
        if (node->position < node->num_inputs) {
            status = flow_push(s, node->inputs[node->position++]);
            continue;
        }
        status = mem_grow((void **)&s->order, &s->max_order, s->num_order + 1,
                          sizeof(*s->order));
        if (status == TN_OK)
            s->order[s->num_order++] = node;
        s->num_stack--;
    }
    return status;
}

tn_status flow_order(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays,
                     uint32_t since, struct node ***out_nodes, uint32_t *out_count)
{
    struct flow_search search = {.scope = scope, .epoch = ++scope->epoch, .since = since};
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < num_arrays && status == TN_OK; i++)
        status = search_from(&search, arrays[i]);
    mem_free(search.stack);
    if (status != TN_OK) {
        mem_free(search.order);
        return status;
    }
    *out_nodes = search.order;
    *out_count = search.num_order;
    return TN_OK;
}

// --- rules -----------------------------------------------------------------------------

tn_status rule_call_init(struct rule_call *call, const struct node *node)
{
    call->outputs = mem_alloc((node->num_outputs + 1) * sizeof(*call->outputs));
    if (!call->outputs)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < node->num_outputs; i++)
        call->outputs[i] = &node->outputs[i];
    call->rule = (tn_rule){
        .struct_size = sizeof(call->rule),
        .attrs = node->attrs,
        .inputs = node->inputs,
        .outputs = call->outputs,
        .num_inputs = node->num_inputs,
        .num_outputs = node->num_outputs,
    };
    return TN_OK;
}

void rule_call_finish(struct rule_call *call)
{
    mem_free(call->outputs);
}

static tn_status flow_decompose(struct flow *flow, const struct node *node,
                                tn_array **outputs)
{
    struct rule_call call;
    tn_type types[MAX_OUTPUTS];
    tn_status status = rule_call_init(&call, node);
    if (status != TN_OK)
        return status;
    call.rule.outputs = NULL;
    for (uint32_t i = 0; i < node->num_outputs; i++)
        types[i] = node->outputs[i].type;
    status = rule_decompose(flow->scope, node->prim, &call.rule, types, outputs);
    rule_call_finish(&call);
    return status;
}

tn_status flow_parts(struct flow *flow, struct node *node, tn_array **outputs,
                     struct node ***out_nodes, uint32_t *out_count)
{
    uint32_t since = flow->scope->serial;
    if (!node->expr && flow->level == MAX_LEVELS)
        return fail(TN_ERR_INTERNAL, "%s: decompositions nest deeper than %d",
                    node->prim->record.id, MAX_LEVELS);
    tn_status status =
        node->expr ? flow_unfold(flow, node, outputs) : flow_decompose(flow, node, outputs);
    return status == TN_OK ? flow_order(flow->scope, outputs, node->num_outputs, since,
                                        out_nodes, out_count)
                           : status;
}

tn_status flow_refuse_effects(const struct node *node, const char *what)
{
    if (node->kind != NODE_PRIM || !node->prim->record.effects)
        return TN_OK;
    return fail(TN_ERR_UNSUPPORTED,
                "%s has an effect (%s), which %s would repeat or leave "
                "out: apply it to a result",
                node->prim->record.id, node->prim->record.effects, what);
}

tn_status flow_no_rule(const struct node *node, const char *rule)
{
    bool is_derivative = strcmp(rule, "vmap") != 0;
    return fail(TN_ERR_UNSUPPORTED,
                "%s has no %s, and no expression or decomposition to derive one from: add "
                "the rule to its pack%s",
                node->prim->record.id, rule,
                is_derivative ? ", or cut the derivative with base.stop_gradient" : "");
}
