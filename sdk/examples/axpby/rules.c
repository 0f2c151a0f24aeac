// SPDX-License-Identifier: MIT
// acme.axpby_rules/1: derivatives and batching written by hand.
//
// Rules build graph through the table they are given, and so run on any device. The host
// derives all three from the expression when they are absent: write one where you know
// something that the expression does not say.
#include "axpby.h"

// factor * array, where factor is an attribute's value.
static tn_array *scaled(const tn_build *build, double factor, const tn_array *array)
{
    return build->expr(build, "g -> factor * g", TN_IN(array), tn_attrs("factor", factor));
}

// Reverse mode: d loss/dx = alpha * g and d loss/dy = beta * g. Where x or y was broadcast,
// the host sums the gradient down to its shape.
static tn_status vjp(const tn_build *build, const tn_rule *rule,
                     tn_array *const *cotangents, const uint64_t *wanted,
                     tn_array **gradients)
{
    const axpby_attrs *attrs = rule->attrs;
    if (!cotangents[0])
        return TN_OK; // the loss does not depend on us: gradients left NULL are zero
    if (wanted[0] & 1)
        gradients[0] = scaled(build, attrs->alpha, cotangents[0]);
    if (wanted[0] & 2)
        gradients[1] = scaled(build, attrs->beta, cotangents[0]);
    return TN_OK;
}

// Forward mode: out' = alpha * x' + beta * y'. A tangent that is NULL is zero.
static tn_status jvp(const tn_build *build, const tn_rule *rule, tn_array *const *tangents,
                     tn_array **out_tangents)
{
    const axpby_attrs *attrs = rule->attrs;
    if (tangents[0] && tangents[1])
        out_tangents[0] =
            build->op(build, "acme.axpby_rules/1", TN_IN(tangents[0], tangents[1]),
                      tn_attrs("alpha", attrs->alpha, "beta", attrs->beta));
    else if (tangents[0])
        out_tangents[0] = scaled(build, attrs->alpha, tangents[0]);
    else if (tangents[1])
        out_tangents[0] = scaled(build, attrs->beta, tangents[1]);
    return TN_OK;
}

// `array` with its batch axis brought to the front, and then axes of extent 1 put behind it
// until there are `rank` axes: so that the others still meet those of the other input.
static tn_array *batch_first(const tn_build *build, tn_array *array, int32_t axis,
                             int32_t rank)
{
    const tn_type *type = build->type(array);
    if (!type)
        return NULL;
    tn_ints order = {.count = (uint32_t)type->rank, .given = 1, .value = {axis}};
    for (int32_t i = 0, next = 1; i < type->rank; i++)
        if (i != axis)
            order.value[next++] = i;
    tn_array *moved = build->op(build, "base.transpose", TN_IN(array),
                                tn_attrs("axes", (const tn_ints *)&order));

    tn_ints added = {.count = (uint32_t)(rank - type->rank), .given = 1};
    for (uint32_t i = 0; i < added.count; i++)
        added.value[i] = 1 + i;
    return added.count == 0 ? moved
                            : build->op(build, "base.expand_dims", TN_IN(moved),
                                        tn_attrs("axes", (const tn_ints *)&added));
}

// Batching: the primitive works element by element, so a batch is one more leading axis. An
// input without one broadcasts.
static tn_status vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                      int64_t size, tn_array **outputs, int32_t *out_axes)
{
    const axpby_attrs *attrs = rule->attrs;
    int32_t rank = 0; // of the output, the batch axis included
    (void)size;
    for (int i = 0; i < 2; i++) {
        const tn_type *type = build->type(rule->inputs[i]);
        int32_t own = type ? type->rank + (axes[i] < 0) : 0;
        rank = own > rank ? own : rank;
    }
    tn_array *in[2];
    for (int i = 0; i < 2; i++)
        in[i] = axes[i] < 0 ? rule->inputs[i]
                            : batch_first(build, rule->inputs[i], axes[i], rank);
    outputs[0] = build->op(build, "acme.axpby_rules/1", TN_IN(in[0], in[1]),
                           tn_attrs("alpha", attrs->alpha, "beta", attrs->beta));
    out_axes[0] = 0;
    return TN_OK;
}

const tn_primitive axpby_with_rules = {
    .struct_size = sizeof(tn_primitive),
    .id = "acme.axpby_rules/1",
    .doc = "alpha * x + beta * y, with rules written by hand.",
    .inputs = axpby_inputs,
    .num_inputs = 2,
    .attrs = AXPBY_TABLE,
    .expr = "alpha * x + beta * y",
    .vjp = vjp,
    .jvp = jvp,
    .vmap = vmap,
};
