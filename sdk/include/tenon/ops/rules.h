// SPDX-License-Identifier: MIT
// For authors of rules: the heads of those for derivatives and batches (vjp, jvp, vmap of
// <tenon/primitive.h>), and functions that rules share. A primitive with an expression
// needs none of them.
//
//   // z = x * y. A failure of `expr` is in the scope, where the core finds it.
//   TN_VJP(multiply_vjp)
//   {
//       tn_array *g = cotangents[0], *x = rule->inputs[0], *y = rule->inputs[1];
//       gradients[0] = build->expr(build, "g, y -> g * y", TN_IN(g, y), TN_NO_ATTRS);
//       gradients[1] = build->expr(build, "g, x -> g * x", TN_IN(g, x), TN_NO_ATTRS);
//       return TN_OK;
//   }
//   TN_JVP(multiply_jvp) // a tangent that is NULL, zero, gives a term that is NULL
//   {
//       tn_array *x = rule->inputs[0], *y = rule->inputs[1];
//       tn_array *a = build->expr(build, "t,y -> t*y", TN_IN(tangents[0], y), TN_NO_ATTRS);
//       tn_array *b = build->expr(build, "t,x -> t*x", TN_IN(tangents[1], x), TN_NO_ATTRS);
//       out_tangents[0] = tn_add_terms(build, a, b); return TN_OK;
//   }
//   TN_VMAP(multiply_vmap)
//   {
//       return tn_vmap_elementwise(build, rule, axes, outputs, out_axes, "acme.multiply",
//                                  TN_NO_ATTRS);
//   }
//   ... .vjp = multiply_vjp, .jvp = multiply_jvp, .vmap = multiply_vmap ...
//
// The functions build graph through the tn_build of the rule. Arrays that they return
// belong to its scope. They return NULL for NULL and after a failure, which the scope
// keeps: a rule need not test their results. Those that apply primitives need pack "base"
// to be installed.
//
// C only.
//
// Threads. On the thread that called the rule, during that call. No state.
#ifndef TENON_OPS_RULES_H
#define TENON_OPS_RULES_H

#include <tenon/primitive.h>

#ifndef __cplusplus

// The heads of rules, static functions of the types that tn_primitive declares:
// TN_VJP(name) { ... }. <tenon/primitive.h> says what the parameters mean. They are
//   TN_VJP   build, rule, cotangents, wanted, gradients
//   TN_JVP   build, rule, tangents, out_tangents
//   TN_VMAP  build, rule, axes, size, outputs, out_axes
// TN_UNUSED keeps the compiler silent about parameters that simple rules do not read.
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

// For `infer`: the extent to which two types broadcast in the axis that lies `i` axes
// before their last one, the last `skipped` axes of both not counted (2: of batches of
// matrices). -1: they do not broadcast there.
static inline int64_t tn_broadcast_extent(const tn_type *a, const tn_type *b,
                                          int32_t skipped, int32_t i)
{
    const int32_t of_a = a->rank - skipped - 1 - i, of_b = b->rank - skipped - 1 - i;
    const int64_t m = of_a >= 0 ? a->extent[of_a] : 1, n = of_b >= 0 ? b->extent[of_b] : 1;
    return m == n || n == 1 ? m : m == 1 ? n : -1;
}

// a + b elementwise, where NULL stands for zero: for a jvp, which sums the tangents of
// several inputs, any of which may be NULL. NULL when both are.
static inline tn_array *tn_add_terms(const tn_build *build, tn_array *a, tn_array *b)
{
    return !a ? b : !b ? a : build->expr(build, "a, b -> a + b", TN_IN(a, b), TN_NO_ATTRS);
}

// factor * a, where NULL stands for zero. Keeps a's dtype when that is a float.
static inline tn_array *tn_scaled(const tn_build *build, tn_array *a, double factor)
{
    const tn_attr_list attrs = tn_attrs("factor", factor);
    return a ? build->expr(build, "a -> factor * a", TN_IN(a), attrs) : NULL;
}

// --- batching ---------------------------------------------------------------------------

// A list with one more value in front: extents or axes with those of the batch. Of a list
// of TN_MAX_RANK values the last is dropped while `count` becomes TN_MAX_RANK + 1: the core
// refuses such a list when it is used, with a message.
//
//   tn_ints slice = tn_extents(build, array);
//   const tn_ints batch = tn_ints_after(size, &slice); // the extents of `size` such slices
static inline tn_ints tn_ints_after(int64_t first, const tn_ints *rest)
{
    tn_ints ints = {.count = rest->count + 1, .given = 1, .value = {first}};
    for (uint32_t i = 0; i < rest->count && i + 1 < TN_MAX_RANK; i++)
        ints.value[i + 1] = rest->value[i];
    return ints;
}

// The extents of an array as a list, for an attribute `shape`; of NULL an empty list.
static inline tn_ints tn_extents(const tn_build *build, const tn_array *array)
{
    const tn_type *type = build->type(array);
    tn_ints extents = {.count = type ? (uint32_t)type->rank : 0, .given = 1};
    for (uint32_t i = 0; i < extents.count; i++)
        extents.value[i] = type->extent[i];
    return extents;
}

// `array` with axis `from` moved to position `to`, both counted from 0; the other axes keep
// their order; numpy.moveaxis. A view, by base.transpose. `array` itself when from == to.
static inline tn_array *tn_move_axis(const tn_build *build, tn_array *array, int32_t from,
                                     int32_t to)
{
    const tn_type *type = build->type(array);
    if (!type || from == to)
        return array;
    tn_ints order = {.count = (uint32_t)type->rank, .given = 1};
    // `next` runs through the axes of `array` other than `from`, which fill the other
    // positions.
    for (int32_t i = 0, next = 0; i < type->rank; i++) {
        next += next == from;
        order.value[i] = i == to ? from : next++;
    }
    return build->op(build, "base.transpose", TN_IN(array),
                     tn_attrs("axes", (const tn_ints *)&order));
}

// `array` with its batch axis moved to the front; an array without a batch axis (`axis` is
// -1) is repeated `size` times along a new one, by base.broadcast_to. For primitives whose
// inputs do not broadcast, and which take a leading batch axis.
static inline tn_array *tn_batch_whole(const tn_build *build, tn_array *array, int32_t axis,
                                       int64_t size)
{
    if (!array || axis >= 0)
        return tn_move_axis(build, array, axis, 0);
    tn_ints slice = tn_extents(build, array);
    const tn_ints shape = tn_ints_after(size, &slice);
    return build->op(build, "base.broadcast_to", TN_IN(array), tn_attrs("shape", &shape));
}

// `array` with its batch axis, `axis` (at least 0), moved to the front, and axes of extent
// 1 inserted behind it until there are `rank` axes. Broadcasting aligns axes from the last
// one, so without the inserted axes the batch axis of an array of lower rank would meet an
// axis of a slice. `rank` is at least the array's, the batch axis included.
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

// The inputs of an elementwise primitive with the batch as one more leading axis: the
// inputs that its vmap applies the primitive to, with an output whose batch axis is 0.
// Fills arrays[0 .. rule->num_inputs). An input without a batch axis stays as it is, and
// broadcasts.
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

// The whole vmap of an elementwise primitive with one output: applies `primitive` with
// `attrs` to tn_batch_inputs(), and sets outputs[0] and out_axes[0]. `primitive` is the
// rule's own id as a rule, and `attrs` are its attributes given again by name.
//
// TN_OK, also when building failed (the scope then has the failure); TN_ERR_UNSUPPORTED,
// with a failure recorded, for more than eight inputs.
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
