// SPDX-License-Identifier: MIT
// The primitives behind tn_custom_call: a graph with rules of the application. There is one
// primitive for each set of given rules, so that missing rules follow from the graph, the
// decomposition. They are found by their full ids alone, as tn.copy/1 is.
#include <tenon/control.h>
#include "../base/fail.h"
#include "registry.h"

typedef struct custom_attrs {
    const tn_graph *body;
    uint64_t rules; // address of the tn_custom_rules
} custom_attrs;

static const tn_attr_field fields[] = {
    TN_REQUIRED_FIELD(custom_attrs, body, TN_ATTR_GRAPH, "what is computed"),
    TN_BITS_FIELD(custom_attrs, rules, 0, "address of the rules"),
};
static const tn_input_info inputs[] = {
    {"x", "what the body takes", TN_INPUT_OPTIONAL | TN_INPUT_VARIADIC, TN_ALL_DTYPES},
};
static const tn_output_info outputs[] = {{"out", "what the body gives", 0, 0}};

static const tn_graph *custom_body_of(const void *attrs)
{
    return ((const custom_attrs *)attrs)->body;
}

static const tn_custom_rules *custom_rules_of(const tn_rule *rule)
{
    return (const tn_custom_rules *)(uintptr_t)((const custom_attrs *)rule->attrs)->rules;
}

static tn_status custom_count(const tn_infer *infer, uint64_t *out_count)
{
    *out_count = custom_body_of(infer->attrs)->num_outputs;
    return TN_OK;
}

static tn_status custom_infer(const tn_infer *infer, tn_type *types)
{
    if (!((const custom_attrs *)infer->attrs)->rules)
        return fail(TN_ERR_ARGUMENT, "rules is 0: tn_custom_call applies this");
    for (uint32_t i = 0; i < infer->num_outputs; i++)
        types[i] = custom_body_of(infer->attrs)->outputs[i];
    return TN_OK;
}

static tn_status custom_decompose(const tn_build *build, const tn_rule *rule,
                                  tn_array **results)
{
    return build->call(build, custom_body_of(rule->attrs), rule->inputs, rule->num_inputs,
                       results, rule->num_outputs);
}

static tn_status custom_vjp(const tn_build *build, const tn_rule *rule,
                            tn_array *const *cotangents, const uint64_t *wanted,
                            tn_array **gradients)
{
    const tn_custom_rules *rules = custom_rules_of(rule);
    return rules->vjp(build->scope, rule, cotangents, wanted, gradients, rules->user);
}

static tn_status custom_jvp(const tn_build *build, const tn_rule *rule,
                            tn_array *const *tangents, tn_array **out_tangents)
{
    const tn_custom_rules *rules = custom_rules_of(rule);
    return rules->jvp(build->scope, rule, tangents, out_tangents, rules->user);
}

static tn_status custom_vmap(const tn_build *build, const tn_rule *rule,
                             const int32_t *axes, int64_t size, tn_array **results,
                             int32_t *out_axes)
{
    const tn_custom_rules *rules = custom_rules_of(rule);
    return rules->vmap(build->scope, rule, axes, size, results, out_axes, rules->user);
}

const char *custom_id(uint32_t given)
{
    static const char *const ids[CUSTOM_SETS] = {
        "tn.custom/1",          "tn.custom_vjp/1",         "tn.custom_jvp/1",
        "tn.custom_vjp_jvp/1",  "tn.custom_vmap/1",        "tn.custom_vjp_vmap/1",
        "tn.custom_jvp_vmap/1", "tn.custom_vjp_jvp_vmap/1"};
    return ids[given];
}

tn_status custom_register(tn_runtime *runtime, uint32_t given)
{
    const tn_primitive record = {
        .struct_size = sizeof(record),
        .id = custom_id(given),
        .doc = "A graph with rules of the application.",
        TN_INPUTS(inputs),
        TN_OUTPUTS(outputs),
        .attrs = TN_ATTR_TABLE(custom_attrs, fields),
        .infer = custom_infer,
        .count_outputs = custom_count,
        .decompose = custom_decompose,
        .vjp = given & CUSTOM_VJP ? custom_vjp : NULL,
        .jvp = given & CUSTOM_JVP ? custom_jvp : NULL,
        .vmap = given & CUSTOM_VMAP ? custom_vmap : NULL,
    };
    return prim_register(runtime, NULL, &record);
}
