// SPDX-License-Identifier: MIT
// Sets of values: intersect1d, setdiff1d, setxor1d; trim_zeros; lexsort; interp.
#include "../pack.h"

// --- sets and trim_zeros ----------------------------------------------------------------

typedef struct {
    int64_t size;
    double fill_value;
} set_attrs;

static const tn_attr_field set_fields[] = {
    TN_REQUIRED_FIELD(set_attrs, size, TN_ATTR_I64, "the most values"),
    TN_F64_FIELD(set_attrs, fill_value, 0, "what values behind the last are"),
};
static const tn_input_info set_inputs[] = {
    {"x", "the array", TN_INPUT_CONSTANT, 0},
    {"y", "the other one", TN_INPUT_CONSTANT, 0},
};
static const tn_output_info set_outputs[] = {
    {"values", "in order", 0, 0},
    {"count", "how many there are, i64", 0, 0},
};

// The elements of a vector where a mask is true; `size` bounds their number.
static tn_status set_keep(const tn_build *build, tn_array *x, tn_array *mask,
                          const set_attrs *attrs, tn_array **outputs)
{
    return build->op_n(build, "base.boolean_mask/1", TN_IN(x, mask),
                       tn_attrs("size", attrs->size, "fill_value", attrs->fill_value),
                       outputs, 2);
}

// The distinct values of x and y, or of x alone, for which `text` holds: an expression of
// whether the value is in x, whether it is in y, and whether its position holds a value.
static tn_status base_set_of(const tn_build *build, const tn_rule *rule, int is_joined,
                             const char *text, tn_array **outputs)
{
    tn_dtype dtype = tn_dtype_promote(build->type(rule->inputs[0])->dtype,
                                      build->type(rule->inputs[1])->dtype);
    tn_array *both[2], *found[2] = {NULL};
    for (int32_t i = 0; i < 2; i++)
        both[i] = as_dtype(build, flattened(build, rule->inputs[i]), dtype);
    tn_array *all = is_joined ? joined(build, both, 2, 0) : both[0];
    int64_t n = build->type(all) ? build->type(all)->extent[0] : 0;
    tn_status status = build->op_n(build, "base.unique_values/1", TN_IN(all),
                                   tn_attrs("size", n, "equal_nan", 1), found, 2);
    if (status)
        return status;
    tn_array *mask = build->expr(
        build, text,
        TN_IN(build->op(build, "base.isin/1", TN_IN(found[0], both[0]), TN_NO_ATTRS),
              build->op(build, "base.isin/1", TN_IN(found[0], both[1]), TN_NO_ATTRS),
              counted(build, n, 0), found[1]),
        TN_NO_ATTRS);
    return set_keep(build, found[0], mask, rule->attrs, outputs);
}

DECOMPOSE(intersect1d)
{
    return base_set_of(build, rule, 1, "x, y, i, n -> x & y & i < n", outputs);
}

DECOMPOSE(setdiff1d)
{
    return base_set_of(build, rule, 0, "x, y, i, n -> !y & i < n", outputs);
}

DECOMPOSE(setxor1d)
{
    return base_set_of(build, rule, 1, "x, y, i, n -> !(x & y) & i < n", outputs);
}

// Attributes of trim_zeros, which keeps the elements from the first to the last nonzero
// one.
typedef struct {
    int64_t size;
    double fill_value;
    int64_t trim; // index in trim_names
} trim_attrs;

static const char *const trim_names[] = {"fb", "f", "b", NULL};
static const tn_attr_field trim_fields[] = {
    TN_REQUIRED_FIELD(trim_attrs, size, TN_ATTR_I64, "the most elements"),
    TN_F64_FIELD(trim_attrs, fill_value, 0, "what elements behind the last are"),
    TN_CHOICE_FIELD(trim_attrs, trim, 0, trim_names, "zeros in front, behind, or both"),
};

DECOMPOSE(trim_zeros)
{
    const trim_attrs *attrs = rule->attrs;
    const set_attrs bound = {attrs->size, attrs->fill_value};
    const tn_type *x = build->type(rule->inputs[0]);
    if (x->rank != 1)
        return build->host->fail(build->host, TN_ERR_ARGUMENT, "x has rank %d, expected 1",
                                 x->rank);
    tn_array *is =
        build->expr(build, "x -> i64(x != 0)", TN_IN(rule->inputs[0]), TN_NO_ATTRS);
    // The numbers of nonzero elements up to each element, and from each element on.
    tn_array *before = build->op(build, "base.cumsum/1", TN_IN(is), tn_attrs("axis", 0));
    tn_array *behind =
        build->op(build, "base.cumsum/1", TN_IN(is), tn_attrs("axis", 0, "reverse", 1));
    tn_array *mask = build->expr(build,
                                 attrs->trim == 1   ? "f, b -> f > 0"
                                 : attrs->trim == 2 ? "f, b -> b > 0"
                                                    : "f, b -> f > 0 & b > 0",
                                 TN_IN(before, behind), TN_NO_ATTRS);
    return set_keep(build, rule->inputs[0], mask, &bound, outputs);
}

static const tn_input_info trim_inputs[] = {{"x", "a vector", 0, TN_ALL_DTYPES}};
#define SET                                                                                \
    TN_INPUTS(set_inputs), TN_OUTPUTS(set_outputs),                                        \
        .attrs = TN_ATTR_TABLE(set_attrs, set_fields)
COMPOSITE(intersect1d, "The values that are in both, once each.", SET);
COMPOSITE(setdiff1d, "The values of x that are not in y, once each.", SET);
COMPOSITE(setxor1d, "The values that are in one of both, once each.", SET);
COMPOSITE(trim_zeros, "A vector without the zeros at its ends.", TN_INPUTS(trim_inputs),
          TN_OUTPUTS(set_outputs), .attrs = TN_ATTR_TABLE(trim_attrs, trim_fields));

// --- lexsort ----------------------------------------------------------------------------

typedef struct {
    int64_t axis;
} lexsort_attrs;

static const tn_attr_field lexsort_fields[] = {
    TN_I64_FIELD(lexsort_attrs, axis, -1, "the axis"),
};
static const tn_input_info lexsort_inputs[] = {
    {"keys", "of equal extents; the last one is compared first",
     TN_INPUT_VARIADIC | TN_INPUT_CONSTANT, 0},
};

// Sorts are stable: sorts by each key in turn, the most significant (the last) at the end.
DECOMPOSE(lexsort)
{
    const lexsort_attrs *attrs = rule->attrs;
    const tn_attr_list along = tn_attrs("axis", attrs->axis);
    char got[SHAPE_TEXT], first[SHAPE_TEXT];
    tn_array *order = NULL;
    const tn_type *x = build->type(rule->inputs[0]);
    for (uint32_t i = 0; i < rule->num_inputs; i++) {
        const tn_type *key = build->type(rule->inputs[i]);
        if (key->rank != x->rank ||
            memcmp(key->extent, x->extent, sizeof(int64_t) * (size_t)x->rank) != 0)
            return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                     "key %u has shape %s, expected that of key 0, %s", i,
                                     shape_text(key->rank, key->extent, got),
                                     shape_text(x->rank, x->extent, first));
        tn_array *sorted = order ? build->op(build, "base.take_along_axis/1",
                                             TN_IN(rule->inputs[i], order), along)
                                 : rule->inputs[i];
        tn_array *next = build->op(build, "base.argsort/1", TN_IN(sorted), along);
        order = order
                    ? build->op(build, "base.take_along_axis/1", TN_IN(order, next), along)
                    : next;
    }
    outputs[0] = order;
    return built(order);
}

COMPOSITE(lexsort, "The order of elements by several keys: i64.", TN_INPUTS(lexsort_inputs),
          .attrs = TN_ATTR_TABLE(lexsort_attrs, lexsort_fields));

// --- interp -----------------------------------------------------------------------------

typedef struct {
    double period;
} interp_attrs;

static const tn_attr_field interp_fields[] = {
    TN_F64_FIELD(interp_attrs, period, 0, "of x and xp, which need not be sorted then"),
};
static const tn_input_info interp_inputs[] = {
    {"x", "where", 0, 0},
    {"xp", "the points in ascending order: a vector", 0, 0},
    {"fp", "the values there", 0, 0},
    {"left", "the value before the first point; not given: fp's first", TN_INPUT_OPTIONAL,
     0},
    {"right", "behind the last point; not given: fp's last", TN_INPUT_OPTIONAL, 0},
};

// Sorts the points of a period, with the last point repeated before and the first behind
// them.
static void interp_periodic(const tn_build *build, double period, tn_array **x,
                            tn_array **xp, tn_array **fp)
{
    const tn_attr_list attrs = tn_attrs("p", period < 0 ? -period : period);
    *x = build->expr(build, "x -> x % p", TN_IN(*x), attrs);
    *xp = build->expr(build, "x -> x % p", TN_IN(*xp), attrs);
    tn_array *order = build->op(build, "base.argsort/1", TN_IN(*xp), TN_NO_ATTRS);
    *xp = build->op(build, "base.take/1", TN_IN(*xp, order), TN_NO_ATTRS);
    *fp = build->op(build, "base.take/1", TN_IN(*fp, order), TN_NO_ATTRS);
    int64_t n = build->type(*xp) ? build->type(*xp)->extent[0] : 1;
    tn_array *first = part_of_axis(build, *xp, 0, 0, 1, 1),
             *last = part_of_axis(build, *xp, 0, n - 1, 1, 1);
    tn_array *points[] = {build->expr(build, "x -> x - p", TN_IN(last), attrs), *xp,
                          build->expr(build, "x -> x + p", TN_IN(first), attrs)};
    tn_array *values[] = {part_of_axis(build, *fp, 0, n - 1, 1, 1), *fp,
                          part_of_axis(build, *fp, 0, 0, 1, 1)};
    *xp = joined(build, points, 3, 0);
    *fp = joined(build, values, 3, 0);
}

static tn_status interp_check(const tn_build *build, const tn_rule *rule)
{
    const tn_type *xp = build->type(rule->inputs[1]), *fp = build->type(rule->inputs[2]);
    char points[SHAPE_TEXT], values[SHAPE_TEXT];
    if (xp->rank != 1 || fp->rank != 1 || xp->extent[0] != fp->extent[0] ||
        xp->extent[0] == 0)
        return build->host->fail(
            build->host, TN_ERR_ARGUMENT,
            "xp has shape %s and fp %s, expected equal vectors of at least one element",
            shape_text(xp->rank, xp->extent, points),
            shape_text(fp->rank, fp->extent, values));
    return TN_OK;
}

DECOMPOSE(interp)
{
    const interp_attrs *attrs = rule->attrs;
    tn_status status = interp_check(build, rule);
    if (status)
        return status;
    tn_array *in[5] = {NULL}, *end[2];
    tn_dtype dtype = TN_BOOL;
    for (uint32_t i = 0; i < 3; i++)
        dtype = tn_dtype_promote(dtype, build->type(rule->inputs[i])->dtype);
    dtype = tn_is_float(dtype) ? dtype : TN_F64;
    for (uint32_t i = 0; i < rule->num_inputs; i++)
        in[i] = rule->inputs[i] ? as_dtype(build, rule->inputs[i], tn_dtype_computed(dtype))
                                : NULL;
    if (attrs->period != 0)
        interp_periodic(build, attrs->period, &in[0], &in[1], &in[2]);
    int64_t n = build->type(in[1]) ? build->type(in[1])->extent[0] : 1;
    for (int32_t i = 0; i < 2; i++)
        end[i] = in[3 + i] && attrs->period == 0
                     ? in[3 + i]
                     : part_of_axis(build, in[2], 0, i ? n - 1 : 0, 1, 1);
    tn_array *position = build->op(build, "base.searchsorted/1", TN_IN(in[1], in[0]),
                                   tn_attrs("side", "right"));
    tn_array *low =
        build->expr(build, "i -> j = i < last ? i : last; j > 0 ? j - 1 : j - j",
                    TN_IN(position), tn_attrs("last", n - 1));
    tn_array *high = build->expr(build, "i -> i < last ? i + 1 : i", TN_IN(low),
                                 tn_attrs("last", n - 1));
    tn_array *at[4];
    for (int32_t i = 0; i < 4; i++)
        at[i] = build->op(build, "base.take/1", TN_IN(in[1 + i / 2], i % 2 ? high : low),
                          TN_NO_ATTRS);
    tn_array *y = build->expr(
        build,
        "x, a, b, u, v, l, r -> isnan(x) ? x : x < a ? l : x > b ? r : x == b ? v "
        ": (v - u) / (b - a) * (x - a) + u",
        TN_IN(in[0], at[0], at[1], at[2], at[3], end[0], end[1]), TN_NO_ATTRS);
    const tn_ints shape = tn_extents(build, rule->inputs[0]);
    outputs[0] = as_dtype(build, with_shape(build, "base.reshape/1", y, shape), dtype);
    return built(outputs[0]);
}

COMPOSITE(interp, "Values on lines between points.", TN_INPUTS(interp_inputs),
          .attrs = TN_ATTR_TABLE(interp_attrs, interp_fields));
