// SPDX-License-Identifier: MIT
// Conditions, loops and checkpoints for applications: traces their bodies, and applies the
// primitive that has the role.
#include "../base/fail.h"
#include "../plugin/load/primitives.h"
#include "../primitive/registry.h"
#include "graph.h"

// Arguments that the functions have in common.
struct control {
    tn_scope *scope;
    void *user;
    tn_array *const *inputs;
    uint64_t num_inputs, num_outputs;
    uint64_t first_cut; // inputs from here on are slices for the body
    tn_captures captures;
};

static tn_status control_check_given(struct control *c, const char *function,
                                     tn_array **outputs)
{
    tn_status status = scope_begin(
        c->scope, function,
        GIVEN({"inputs", c->inputs, c->num_inputs}, {"outputs", outputs, c->num_outputs}));
    for (uint64_t i = 0; i < c->num_inputs && status == TN_OK; i++)
        if (!c->inputs[i])
            status = tn_scope_fail(c->scope, TN_ERR_ARGUMENT, "%s: input %llu is NULL",
                                   function, (unsigned long long)i);
    return status;
}

// The types of a body's inputs, in new memory (mem_free). NULL with the scope's failure
// set.
static tn_type *body_types(const struct control *c)
{
    tn_type *types = mem_alloc((c->num_inputs + 1) * sizeof(*types));
    if (!types)
        scope_take_failure(c->scope, TN_ERR_MEMORY);
    for (uint64_t i = 0; i < c->num_inputs && types; i++) {
        const tn_type *type = &c->inputs[i]->type;
        types[i] = *type;
        if (i < c->first_cut || type->rank == 0) // rank 0: the primitive refuses the input
            continue;
        types[i].rank--;
        for (int32_t k = 0; k < type->rank; k++)
            types[i].extent[k] = k + 1 < type->rank ? type->extent[k + 1] : 0;
    }
    return types;
}

// The graph of a body, or NULL with the scope's failure set.
static const tn_graph *control_trace(struct control *c, tn_function_body body,
                                     uint64_t num_outputs)
{
    const tn_graph *graph = NULL;
    tn_type *types = body_types(c);
    if (types && c->scope->status == TN_OK)
        (void)tn_graph_trace(c->scope, body, c->user, types, c->num_inputs, num_outputs,
                             &c->captures, &graph);
    mem_free(types);
    return graph;
}

static tn_status control_apply(const struct control *c, const struct prim *prim,
                               tn_array *first, const void *attrs, tn_array **outputs,
                               uint64_t num_outputs)
{
    uint64_t count = 0;
    const tn_array **all =
        mem_alloc((c->num_inputs + c->captures.count + 2) * sizeof(*all));
    if (!all)
        return TN_ERR_MEMORY;
    if (first)
        all[count++] = first;
    for (uint64_t i = 0; i < c->num_inputs; i++)
        all[count++] = c->inputs[i];
    for (uint64_t i = 0; i < c->captures.count; i++)
        all[count++] = c->captures.arrays[i];
    tn_status status =
        graph_apply(c->scope, prim, all, (uint32_t)count, attrs, outputs, num_outputs);
    mem_free(all);
    return status;
}

// Applies the primitive to `first` (NULL: none), the inputs, and the arrays that the bodies
// captured.
static tn_status apply_prim(const struct control *c, const struct prim *prim,
                            tn_array *first, tn_attr_list list, tn_array **outputs,
                            uint64_t num_outputs)
{
    void *attrs = mem_alloc(prim->record.attrs.size + 1u);
    if (!attrs)
        return scope_take_failure(c->scope, TN_ERR_MEMORY);
    tn_status status =
        attrs_fill(&c->scope->interned, &prim->record.attrs, list, attrs, NULL);
    if (status == TN_OK)
        status = control_apply(c, prim, first, attrs, outputs, num_outputs);
    mem_free(attrs);
    return scope_take_failure(c->scope, status);
}

static tn_status control_apply_role(const struct control *c, const char *role,
                                    tn_array *first, tn_attr_list list, tn_array **outputs,
                                    uint64_t num_outputs)
{
    const struct prim *prim = NULL;
    if (c->scope->status != TN_OK)
        return c->scope->status;
    tn_status status = prim_find_role(c->scope->runtime, role, &prim);
    if (status != TN_OK)
        return scope_take_failure(c->scope, status);
    return apply_prim(c, prim, first, list, outputs, num_outputs);
}

tn_status tn_cond_call(tn_scope *scope, tn_array *pred, tn_function_body then,
                       tn_function_body otherwise, void *user, tn_array *const *inputs,
                       uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs)
{
    struct control c = {scope, user, inputs, num_inputs, num_outputs, num_inputs, {0}};
    tn_status status = control_check_given(&c, "cond_call", outputs);
    if (status != TN_OK)
        return status;
    if (!pred)
        return tn_scope_fail(scope, TN_ERR_ARGUMENT, "cond_call: pred is NULL");
    const tn_graph *a = control_trace(&c, then, num_outputs);
    const tn_graph *b = control_trace(&c, otherwise, num_outputs);
    return control_apply_role(&c, TN_ROLE_COND, pred, tn_attrs("then", a, "otherwise", b),
                              outputs, num_outputs);
}

tn_status tn_while_call(tn_scope *scope, tn_function_body cond, tn_function_body body,
                        void *user, int64_t times, tn_array *const *carried,
                        uint64_t num_carried, tn_array **outputs)
{
    struct control c = {scope, user, carried, num_carried, num_carried, num_carried, {0}};
    tn_status status = control_check_given(&c, "while_call", outputs);
    if (status != TN_OK)
        return status;
    const tn_graph *test = cond ? control_trace(&c, cond, 1) : NULL;
    const tn_graph *graph = control_trace(&c, body, num_carried);
    return control_apply_role(&c, TN_ROLE_WHILE_LOOP, NULL,
                              tn_attrs("cond", test, "body", graph, "times", times),
                              outputs, num_carried);
}

static tn_status control_read_options(const tn_scan_call_options *given,
                                      tn_scan_call_options *mine)
{
    uint32_t size = given && given->struct_size ? given->struct_size : sizeof(*mine);
    *mine = (tn_scan_call_options){0};
    tn_status status = given
                           ? abi_struct_read(mine, sizeof(*mine), given, size,
                                             TN_END_OF(mine, flags), "tn_scan_call_options")
                           : TN_OK;
    if (status == TN_OK && mine->flags)
        return fail(TN_ERR_ARGUMENT, "tn_scan_call_options: flags 0x%x, expected 0",
                    mine->flags);
    return status;
}

tn_status tn_scan_call(tn_scope *scope, tn_function_body body, void *user,
                       const tn_scan_call_options *options, tn_array *const *inputs,
                       uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs)
{
    struct control c = {scope, user, inputs, num_inputs, num_outputs, num_inputs, {0}};
    tn_scan_call_options o;
    tn_array *results[MAX_OUTPUTS];
    tn_status status = control_check_given(&c, "scan_call", outputs);
    if (status != TN_OK)
        return status;
    status = control_read_options(options, &o);
    if (status == TN_OK && (o.carries > num_inputs || o.carries > MAX_OUTPUTS ||
                            num_outputs > MAX_OUTPUTS - o.carries))
        status = fail(TN_ERR_ARGUMENT,
                      "scan_call: %llu carried values, %llu inputs and %llu outputs, "
                      "expected at most as many as there are inputs, and with the outputs "
                      "%d",
                      (unsigned long long)o.carries, (unsigned long long)num_inputs,
                      (unsigned long long)num_outputs, MAX_OUTPUTS);
    if (status != TN_OK)
        return scope_take_failure(scope, status);
    int64_t slices = (int64_t)(num_inputs - o.carries);
    c.first_cut = o.carries;
    const tn_graph *graph = control_trace(&c, body, num_outputs);
    status = control_apply_role(&c, TN_ROLE_SCAN, NULL,
                                tn_attrs("body", graph, "carries", (int64_t)o.carries,
                                         "slices", slices, "length", slices ? -1 : o.length,
                                         "reverse", (int64_t)(o.reverse != 0)),
                                results, num_outputs + o.carries);
    for (uint64_t i = 0; i < num_outputs && status == TN_OK; i++)
        outputs[i] = results[i];
    return status;
}

tn_status tn_checkpoint_call(tn_scope *scope, tn_function_body body, void *user,
                             tn_array *const *inputs, uint64_t num_inputs,
                             tn_array **outputs, uint64_t num_outputs)
{
    struct control c = {scope, user, inputs, num_inputs, num_outputs, num_inputs, {0}};
    tn_status status = control_check_given(&c, "checkpoint_call", outputs);
    if (status != TN_OK)
        return status;
    const tn_graph *graph = control_trace(&c, body, num_outputs);
    return control_apply_role(&c, TN_ROLE_CHECKPOINT, NULL, tn_attrs("body", graph),
                              outputs, num_outputs);
}

// Copies the rules into this host's struct; rules of an older build end before `destroy`.
static tn_status read_rules(const tn_custom_rules *given, tn_custom_rules *mine)
{
    if (!given)
        return fail(TN_ERR_ARGUMENT, "custom_call: the rules are NULL");
    uint32_t size = given->struct_size ? given->struct_size : sizeof(*mine);
    *mine = (tn_custom_rules){0};
    tn_status status = abi_struct_read(mine, sizeof(*mine), given, size,
                                       TN_END_OF(mine, vmap), "tn_custom_rules");
    if (status == TN_OK && mine->flags)
        return fail(TN_ERR_ARGUMENT, "tn_custom_rules: flags 0x%x, expected 0",
                    mine->flags);
    return status;
}

static const tn_graph *trace_custom(struct control *c, tn_function_body body,
                                    uint64_t num_outputs, const struct graph_owned *owned)
{
    const tn_graph *graph = NULL;
    tn_type *types = body_types(c);
    const struct trace_request request = {body,        c->user,      types, c->num_inputs,
                                          num_outputs, &c->captures, *owned};
    if (types)
        (void)graph_trace(c->scope, &request, &graph);
    else if (owned->release)
        owned->release(owned->user);
    mem_free(types);
    return graph;
}

tn_status tn_custom_call(tn_scope *scope, tn_function_body body, void *user,
                         const tn_custom_rules *rules, tn_array *const *inputs,
                         uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs)
{
    struct control c = {scope, user, inputs, num_inputs, num_outputs, num_inputs, {0}};
    tn_custom_rules mine = {0};
    tn_status status = control_check_given(&c, "custom_call", outputs);
    if (status == TN_OK && !body)
        status = tn_scope_fail(scope, TN_ERR_ARGUMENT, "custom_call: the body is NULL");
    if (status == TN_OK)
        status = scope_take_failure(scope, read_rules(rules, &mine));
    if (status != TN_OK) {
        const bool has_destroy =
            rules && (rules->struct_size == 0 || rules->struct_size >= sizeof(*rules));
        if (has_destroy && rules->destroy)
            rules->destroy(rules->user);
        return status;
    }
    const struct graph_owned owned = {mine.destroy, mine.user, rules};
    const tn_graph *graph = trace_custom(&c, body, num_outputs, &owned);
    if (!graph)
        return scope->status;
    if (c.captures.count > 0)
        return tn_scope_fail(scope, TN_ERR_ARGUMENT,
                             "custom_call: the body uses %llu arrays of the scope that are "
                             "not its inputs, and the rules would not see them",
                             (unsigned long long)c.captures.count);
    const uint32_t given = (mine.vjp ? CUSTOM_VJP : 0) | (mine.jvp ? CUSTOM_JVP : 0) |
                           (mine.vmap ? CUSTOM_VMAP : 0);
    const tn_attr items[] = {
        TN_ATTR_INIT("body", graph),
        {.name = "rules", .kind = TN_ATTR_BITS, .i = (int64_t)(uintptr_t)rules}};
    return apply_prim(&c, prim_recall(scope->runtime->prims, custom_id(given)), NULL,
                      TN_ATTR_LIST(items, 2), outputs, num_outputs);
}
