// SPDX-License-Identifier: MIT
// For those who write derivative and batching rules by hand: what they have in common.
//
// Threads. As the rules that call them.
#ifndef TENON_OPS_RULES_H
#define TENON_OPS_RULES_H

#include <tenon/primitive.h>

#ifndef __cplusplus

// The heads of rules, as <tenon/primitive.h> declares them: TN_VJP(name) { ... }. Their
// parameters are
//   TN_VJP   build, rule, cotangents, wanted, gradients
//   TN_JVP   build, rule, tangents, out_tangents
//   TN_VMAP  build, rule, axes, size, outputs, out_axes
#define TN_UNUSED __attribute__((unused))
#define TN_VJP(name)                                                                       \
    static tn_status name(const tn_build *build, const tn_rule *rule TN_UNUSED,            \
                          tn_array *const *cotangents, const uint64_t *wanted TN_UNUSED,   \
                          tn_array **gradients)
#define TN_JVP(name)                                                                       \
    static tn_status name(const tn_build *build, const tn_rule *rule TN_UNUSED,            \
                          tn_array *const *tangents, tn_array **out_tangents)
#define TN_VMAP(name)                                                                      \
    static tn_status name(const tn_build *build, const tn_rule *rule, const int32_t *axes, \
                          int64_t size TN_UNUSED, tn_array **outputs, int32_t *out_axes)

// a + b, where NULL is zero: for rules that add what flows from several inputs.
static inline tn_array *tn_add_terms(const tn_build *build, tn_array *a, tn_array *b)
{
    return !a ? b : !b ? a : build->expr(build, "a, b -> a + b", TN_IN(a, b), TN_NO_ATTRS);
}

// factor * a, where NULL is zero.
static inline tn_array *tn_scaled(const tn_build *build, tn_array *a, double factor)
{
    const tn_attr_list attrs = tn_attrs("factor", factor);
    return a ? build->expr(build, "a -> factor * a", TN_IN(a), attrs) : NULL;
}

// --- batching ---------------------------------------------------------------------------

// A list with one more value in front. One that gets too long is refused where it is used.
static inline tn_ints tn_ints_after(int64_t first, const tn_ints *rest)
{
    tn_ints ints = {.count = rest->count + 1, .given = 1, .value = {first}};
    for (uint32_t i = 0; i < rest->count && i + 1 < TN_MAX_RANK; i++)
        ints.value[i + 1] = rest->value[i];
    return ints;
}

// The extents of an array; of NULL none.
static inline tn_ints tn_extents(const tn_build *build, const tn_array *array)
{
    const tn_type *type = build->type(array);
    tn_ints extents = {.count = type ? (uint32_t)type->rank : 0, .given = 1};
    for (uint32_t i = 0; i < extents.count; i++)
        extents.value[i] = type->extent[i];
    return extents;
}

// `array` with axis `from` brought to place `to`; the others keep their order.
static inline tn_array *tn_move_axis(const tn_build *build, tn_array *array, int32_t from,
                                     int32_t to)
{
    const tn_type *type = build->type(array);
    if (!type || from == to)
        return array;
    tn_ints order = {.count = (uint32_t)type->rank, .given = 1};
    for (int32_t i = 0, next = 0; i < type->rank; i++) {
        next += next == from;
        order.value[i] = i == to ? from : next++;
    }
    return build->op(build, "base.transpose", TN_IN(array),
                     tn_attrs("axes", (const tn_ints *)&order));
}

// `array` with its batch axis in front, repeated `size` times where it has none (axis -1):
// for primitives whose inputs do not broadcast.
static inline tn_array *tn_batch_whole(const tn_build *build, tn_array *array, int32_t axis,
                                       int64_t size)
{
    if (!array || axis >= 0)
        return tn_move_axis(build, array, axis, 0);
    tn_ints slice = tn_extents(build, array);
    const tn_ints shape = tn_ints_after(size, &slice);
    return build->op(build, "base.broadcast_to", TN_IN(array), tn_attrs("shape", &shape));
}

// `array` with its batch axis brought to the front, and axes of extent 1 put behind it
// until there are `rank` axes: so that the others still meet those of the other inputs.
static inline tn_array *tn_batch_first(const tn_build *build, tn_array *array, int32_t axis,
                                       int32_t rank)
{
    const tn_type *type = build->type(array);
    if (!type)
        return NULL;
    tn_array *moved = tn_move_axis(build, array, axis, 0);
    tn_ints added = {.count = (uint32_t)(rank - type->rank), .given = 1};
    for (uint32_t i = 0; i < added.count; i++)
        added.value[i] = 1 + i;
    return added.count == 0 ? moved
                            : build->op(build, "base.expand_dims", TN_IN(moved),
                                        tn_attrs("axis", (const tn_ints *)&added));
}

// The inputs of an elementwise primitive, ready for a batch as one more leading axis: what
// its vmap applies it to. Fills arrays[0 .. rule->num_inputs); an input without a batch
// broadcasts. out_axes[0] is then 0.
static inline void tn_batch_inputs(const tn_build *build, const tn_rule *rule,
                                   const int32_t *axes, tn_array **arrays)
{
    int32_t rank = 0; // of the output, the batch axis included
    for (uint32_t i = 0; i < rule->num_inputs; i++) {
        const tn_type *type = build->type(rule->inputs[i]);
        int32_t own = type ? type->rank + (axes[i] < 0) : 0;
        rank = own > rank ? own : rank;
    }
    for (uint32_t i = 0; i < rule->num_inputs; i++)
        arrays[i] = axes[i] < 0 ? rule->inputs[i]
                                : tn_batch_first(build, rule->inputs[i], axes[i], rank);
}

// The whole vmap of an elementwise primitive with one output and at most eight inputs: the
// primitive again, over the batch.
static inline tn_status tn_vmap_elementwise(const tn_build *build, const tn_rule *rule,
                                            const int32_t *axes, tn_array **outputs,
                                            int32_t *out_axes, const char *primitive,
                                            tn_attr_list attrs)
{
    tn_array *in[8] = {NULL};
    if (rule->num_inputs > 8)
        return build->host->fail(build->host, TN_ERR_UNSUPPORTED,
                                 "vmap of %u inputs, expected at most 8", rule->num_inputs);
    tn_batch_inputs(build, rule, axes, in);
    outputs[0] =
        build->op(build, primitive, (const tn_array *const *)in, rule->num_inputs, attrs);
    out_axes[0] = 0;
    return TN_OK;
}

#endif // __cplusplus

#endif // TENON_OPS_RULES_H
