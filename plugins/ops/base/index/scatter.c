// SPDX-License-Identifier: MIT
// scatter_set, scatter_max and scatter_min: as scatter_add (index.c), but with other ways
// to combine an update with its element.
#include "index.h"

static const tn_input_info set_inputs[] = {
    {"x", "the array", 0, TN_ALL_DTYPES},
    {"indices", "integers; negative ones count from the end", TN_INPUT_CONSTANT, 0},
    {"updates", "what is put there: x's dtype, and the extents that take would give", 0,
     TN_ALL_DTYPES},
};
static const tn_input_info scatter_inputs[] = {
    {"x", "the array", 0, 0},
    {"indices", "integers; negative ones count from the end", TN_INPUT_CONSTANT, 0},
    {"updates", "what is put there: x's dtype, and the extents that take would give", 0, 0},
};

// --- references -------------------------------------------------------------------------

static void set_element(const tn_tensor *to, int64_t a, const tn_tensor *from, int64_t b)
{
    memcpy(tn_element(to, a), tn_element(from, b),
           (size_t)tn_dtype_bytes(to->layout.dtype));
}

// Stores the update where it is greater (direction 1) or less (-1), or NaN.
static void extreme_element(const tn_tensor *to, int64_t a, const tn_tensor *from,
                            int64_t b, int direction)
{
    tn_dtype dtype = to->layout.dtype;
    int more;
    if (tn_is_float(dtype)) {
        double x = tn_get_f64(to, a), y = tn_get_f64(from, b);
        more = !isnan(x) && (isnan(y) || (direction > 0 ? y > x : y < x));
    } else {
        // Unsigned integers are ordered by their bits; the offset keeps the order of signed
        // ones.
        uint64_t sign = tn_is_signed(dtype) ? UINT64_C(1) << 63 : 0;
        uint64_t x = (uint64_t)tn_get_i64(to, a) ^ sign;
        uint64_t y = (uint64_t)tn_get_i64(from, b) ^ sign;
        more = direction > 0 ? y > x : y < x;
    }
    if (more)
        set_element(to, a, from, b);
}

static void max_element(const tn_tensor *to, int64_t a, const tn_tensor *from, int64_t b)
{
    extreme_element(to, a, from, b, 1);
}

static void min_element(const tn_tensor *to, int64_t a, const tn_tensor *from, int64_t b)
{
    extreme_element(to, a, from, b, -1);
}

// --- derivatives ------------------------------------------------------------------------

static tn_array *base_scatter_apply(const tn_build *build, const tn_rule *rule,
                                    const char *primitive, const tn_array *x,
                                    const tn_array *updates)
{
    const tn_take_attrs *attrs = rule->attrs;
    return build->op(build, primitive, TN_IN(x, rule->inputs[1], updates),
                     tn_attrs("axis", attrs->axis));
}

// `array` at the index of each update; 0 for dropped updates.
static tn_array *base_scatter_taken(const tn_build *build, const tn_rule *rule,
                                    tn_array *array)
{
    const tn_type *x = build->type(rule->inputs[0]);
    return x ? take_kept(build, array, rule->inputs[1], x, rule->attrs) : NULL;
}

// The gradient of scatter_set's updates: a replaced update gets none. Scatters the updates'
// numbers, so that each element knows its last update.
static tn_array *last_updates(const tn_build *build, const tn_rule *rule, tn_array *g)
{
    const tn_type *x = build->type(rule->inputs[0]);
    const tn_type *u = build->type(rule->inputs[2]);
    const tn_type *indices = build->type(rule->inputs[1]);
    if (!x || !u || !indices)
        return NULL;
    int32_t axis = tn_axis(((const tn_take_attrs *)rule->attrs)->axis, x->rank);
    if (x->extent[axis] == 0) // all updates are dropped
        return zeros_like(build, rule->inputs[2], x->dtype);
    tn_array *number =
        with_shape(build, "base.reshape/1", counted(build, type_count(indices), 0),
                   ints_of(indices->rank, indices->extent));
    tn_array *last =
        build->op(build, "base.scatter_set/1",
                  TN_IN(zeros_like(build, counted(build, x->extent[axis], 0), TN_I64),
                        rule->inputs[1], number),
                  TN_NO_ATTRS);
    tn_array *winner =
        build->op(build, "base.take/1", TN_IN(last, rule->inputs[1]), TN_NO_ATTRS);
    tn_array *wins =
        build->expr(build, "a, b -> a == b", TN_IN(winner, number), TN_NO_ATTRS);
    tn_ints column = ints_of(indices->rank, indices->extent);
    for (int32_t i = axis + 1; i < x->rank; i++)
        column.value[column.count++] = 1;
    return build->expr(build, "w, g -> select(w, g, 0)",
                       TN_IN(with_shape(build, "base.reshape/1", wins, column),
                             base_scatter_taken(build, rule, g)),
                       TN_NO_ATTRS);
}

static tn_status scatter_set_vjp(const tn_build *build, const tn_rule *rule,
                                 tn_array *const *cotangents, const uint64_t *wanted,
                                 tn_array **gradients)
{
    tn_array *g = cotangents[0];
    const tn_type *type = build->type(g);
    if (wants(wanted, 0) && type)
        gradients[0] = base_scatter_apply(build, rule, "base.scatter_set/1", g,
                                          zeros_like(build, rule->inputs[2], type->dtype));
    if (wants(wanted, 2))
        gradients[2] = last_updates(build, rule, g);
    return built_wanted(wanted, gradients, 3);
}

// The tangents of x and of the updates, zeros for an absent one.
static void both_tangents(const tn_build *build, const tn_rule *rule,
                          tn_array *const *tangents, tn_array *out[2])
{
    for (int i = 0; i < 2; i++) {
        const tn_type *type =
            build->type(tangents[2 * i] ? tangents[2 * i] : tangents[2 - 2 * i]);
        out[i] = tangents[2 * i] ? tangents[2 * i]
                 : type          ? zeros_like(build, rule->inputs[2 * i], type->dtype)
                                 : NULL;
    }
}

static tn_status scatter_set_jvp(const tn_build *build, const tn_rule *rule,
                                 tn_array *const *tangents, tn_array **out_tangents)
{
    tn_array *both[2];
    both_tangents(build, rule, tangents, both);
    out_tangents[0] =
        base_scatter_apply(build, rule, "base.scatter_set/1", both[0], both[1]);
    return built(out_tangents[0]);
}

// The shares of x's elements and of the updates in the result of scatter_max or
// scatter_min: 1 / k for each of the k that equal it, else 0.
struct shares {
    tn_array *x, *updates;
};

static struct shares base_scatter_shares_of(const tn_build *build, const tn_rule *rule)
{
    const char *hit_text = "x, y -> f64(x == y)";
    tn_array *out = rule->outputs[0];
    const tn_type *type = build->type(out);
    if (type && type->dtype != TN_F64)
        hit_text = "x, y -> f32(x == y)";
    tn_array *x = build->expr(build, hit_text, TN_IN(rule->inputs[0], out), TN_NO_ATTRS);
    tn_array *updates = build->expr(
        build, hit_text, TN_IN(rule->inputs[2], base_scatter_taken(build, rule, out)),
        TN_NO_ATTRS);
    tn_array *count = base_scatter_apply(build, rule, "base.scatter_add/1", x, updates);
    // A dropped update may find a count of 0.
    return (struct shares){
        build->expr(build, "h, n -> h / max(n, 1)", TN_IN(x, count), TN_NO_ATTRS),
        build->expr(build, "h, n -> h / max(n, 1)",
                    TN_IN(updates, base_scatter_taken(build, rule, count)), TN_NO_ATTRS)};
}

static tn_status extreme_vjp(const tn_build *build, const tn_rule *rule,
                             tn_array *const *cotangents, const uint64_t *wanted,
                             tn_array **gradients)
{
    struct shares shares = base_scatter_shares_of(build, rule);
    tn_array *g = cotangents[0];
    if (wants(wanted, 0))
        gradients[0] = build->expr(build, "g, s -> g * s", TN_IN(g, shares.x), TN_NO_ATTRS);
    if (wants(wanted, 2))
        gradients[2] = build->expr(
            build, "g, s -> g * s",
            TN_IN(base_scatter_taken(build, rule, g), shares.updates), TN_NO_ATTRS);
    return built_wanted(wanted, gradients, 3);
}

static tn_status extreme_jvp(const tn_build *build, const tn_rule *rule,
                             tn_array *const *tangents, tn_array **out_tangents)
{
    struct shares shares = base_scatter_shares_of(build, rule);
    tn_array *both[2];
    both_tangents(build, rule, tangents, both);
    tn_array *of_x =
        build->expr(build, "t, s -> t * s", TN_IN(both[0], shares.x), TN_NO_ATTRS);
    tn_array *of_updates =
        build->expr(build, "t, s -> t * s", TN_IN(both[1], shares.updates), TN_NO_ATTRS);
    const tn_type *a = build->type(of_x), *b = build->type(of_updates);
    if (a && b && a->dtype != b->dtype)
        of_updates = cast(build, of_updates, a->dtype);
    out_tangents[0] =
        base_scatter_apply(build, rule, "base.scatter_add/1", of_x, of_updates);
    return built(out_tangents[0]);
}

// --- records ----------------------------------------------------------------------------

#define SCATTER(name, inputs, put, vjp_rule, jvp_rule, sentence)                           \
    static tn_status name##_reference(const tn_cpu_call *call)                             \
    {                                                                                      \
        return scatter_reference(call, put);                                               \
    }                                                                                      \
    tn_status name##_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes, \
                          int64_t size, tn_array **outputs, int32_t *out_axes)             \
    {                                                                                      \
        return scatter_vmap(build, rule, "base." #name "/1", axes, size, outputs,          \
                            out_axes);                                                     \
    }                                                                                      \
    const tn_primitive base_##name = {                                                     \
        .struct_size = sizeof(tn_primitive),                                               \
        .id = "base." #name "/1",                                                          \
        .doc = sentence,                                                                   \
        TN_INPUTS(inputs),                                                                 \
        .attrs = TN_ATTR_TABLE(tn_take_attrs, take_fields),                                \
        .in_place = scatter_in_place,                                                      \
        .num_in_place = 1,                                                                 \
        .in_place_size = sizeof(tn_in_place),                                              \
        .infer = scatter_infer,                                                            \
        .reference = name##_reference,                                                     \
        .vjp = vjp_rule,                                                                   \
        .jvp = jvp_rule,                                                                   \
        .vmap = name##_vmap,                                                               \
    }
SCATTER(
    scatter_set, set_inputs, set_element, scatter_set_vjp, scatter_set_jvp,
    "x with updates at the indices along an axis, the last of equal ones; out of range: "
    "dropped.");
SCATTER(scatter_max, scatter_inputs, max_element, extreme_vjp, extreme_jvp,
        "x, or updates at the indices along an axis where they are greater.");
SCATTER(scatter_min, scatter_inputs, min_element, extreme_vjp, extreme_jvp,
        "x, or updates at the indices along an axis where they are less.");
