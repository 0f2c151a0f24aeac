// SPDX-License-Identifier: MIT
// pad in NumPy's modes: a border of one value, of elements further in, or of statistics of
// an axis' elements. Axes are padded one after the other, so that corners get both.
#include "../pack.h"

enum {
    PAD_CONSTANT,
    PAD_EDGE,
    PAD_REFLECT,
    PAD_SYMMETRIC,
    PAD_WRAP,
    PAD_LINEAR_RAMP,
    PAD_MAXIMUM,
    PAD_MEAN,
    PAD_MEDIAN,
    PAD_MINIMUM,
    PAD_EMPTY
};

typedef struct {
    tn_ints before, after;
    int64_t mode;
    double value;
    int64_t stat_length;
} pad_attrs;

static const char *const pad_modes[] = {"constant", "edge",        "reflect", "symmetric",
                                        "wrap",     "linear_ramp", "maximum", "mean",
                                        "median",   "minimum",     "empty",   NULL};
static const tn_input_info pad_inputs[] = {
    {"x", "the array", 0, TN_ALL_DTYPES},
    {"values", "one number, of x's dtype, instead of value", TN_INPUT_OPTIONAL,
     TN_ALL_DTYPES},
};
static const tn_attr_field pad_fields[] = {
    TN_REQUIRED_FIELD(pad_attrs, before, TN_ATTR_INTS,
                      "elements put in front, one count for each axis of x"),
    TN_REQUIRED_FIELD(pad_attrs, after, TN_ATTR_INTS, "elements put behind, likewise"),
    TN_CHOICE_FIELD(pad_attrs, mode, PAD_CONSTANT, pad_modes,
                    "a value; the edge; mirrored without and with it; from the other end; "
                    "from the edge to value; of the axis' elements"),
    TN_F64_FIELD(pad_attrs, value, 0, "of the border; linear_ramp: its ends"),
    TN_I64_FIELD(pad_attrs, stat_length, -1,
                 "maximum to minimum: of so many elements at each edge; -1: of all"),
};

// The element of an axis of n elements that position i outside of it repeats.
static const char *const repeated[] = {
    [PAD_EDGE] = "i -> min(max(i, 0), n - 1)",
    [PAD_REFLECT] = "i -> j = i % max(2 * n - 2, 1); min(j, 2 * n - 2 - j)",
    [PAD_SYMMETRIC] = "i -> j = i % (2 * n); min(j, 2 * n - 1 - j)",
    [PAD_WRAP] = "i -> i % n",
};

static tn_array *pad_with_constant(const tn_build *build, const tn_array *x,
                                   const tn_ints *before, const tn_ints *after,
                                   double value)
{
    return build->op(build, "base.pad_constant/1", TN_IN(x),
                     tn_attrs("before", before, "after", after, "value", value));
}

// Pads with a number that the graph computes: selects it outside of x.
static tn_array *pad_with_computed(const tn_build *build, tn_array *x,
                                   const pad_attrs *attrs, tn_array *value)
{
    tn_ints shape = tn_extents(build, x);
    tn_array *inside = build->scalar(build, TN_BOOL, 1);
    for (uint32_t i = 0; i < shape.count; i++) {
        int64_t from = attrs->before.value[i], n = shape.value[i];
        tn_array *at = counted(build, from + n + attrs->after.value[i],
                               (int32_t)(shape.count - 1 - i));
        inside = build->expr(build, "in, at -> in & at >= first & at < last",
                             TN_IN(inside, at), tn_attrs("first", from, "last", from + n));
    }
    return build->expr(
        build, "in, x, v -> in ? x : v",
        TN_IN(inside, pad_with_constant(build, x, &attrs->before, &attrs->after, 0), value),
        TN_NO_ATTRS);
}

// The border on one side of an axis in modes from PAD_LINEAR_RAMP on: `count` elements, or
// one that is repeated.
static tn_array *pad_border(const tn_build *build, tn_array *x, int32_t axis, int64_t count,
                            int is_behind, const pad_attrs *attrs)
{
    static const char *const statistics[] = {"base.max/1", "base.mean/1", "base.median/1",
                                             "base.min/1"};
    const tn_type *type = build->type(x);
    if (!type)
        return NULL;
    tn_dtype dtype = type->dtype;
    tn_ints shape = tn_extents(build, x);
    int64_t n = shape.value[axis], length = attrs->stat_length;
    shape.value[axis] = count;
    if (attrs->mode == PAD_LINEAR_RAMP) {
        tn_array *edge = part_of_axis(build, x, axis, is_behind ? n - 1 : 0, 1, 1);
        tn_array *at = counted(build, count, type->rank - 1 - axis);
        tn_array *ramp = build->expr(
            build,
            is_behind ? "e, i -> t = f64(i + 1) / count; f64(e) + (value - f64(e)) * t"
                      : "e, i -> t = f64(i) / count; value + (f64(e) - value) * t",
            TN_IN(edge, at), tn_attrs("value", attrs->value, "count", count));
        if (!tn_is_float(dtype)) // NumPy's linspace rounds down
            ramp = build->expr(build, "x -> floor(x)", TN_IN(ramp), TN_NO_ATTRS);
        return as_dtype(build, ramp, dtype);
    }
    length = length < 0 || length > n ? n : length;
    tn_array *part = part_of_axis(build, x, axis, is_behind ? n - length : 0, 1, length);
    tn_array *one = build->op(build, statistics[attrs->mode - PAD_MAXIMUM], TN_IN(part),
                              tn_attrs("axis", TN_INTS((int64_t)axis), "keepdims", 1));
    const tn_type *of_one = build->type(one);
    if (of_one && of_one->dtype != dtype && !tn_is_float(dtype))
        one = build->expr(build, "x -> round(x)", TN_IN(one), TN_NO_ATTRS);
    return with_shape(build, "base.broadcast_to/1", as_dtype(build, one, dtype), shape);
}

// Border elements at positions `at` of an axis of x, whose n elements stand between: each
// repeats one of these.
static tn_array *pad_repeat(const tn_build *build, tn_array *x, int32_t axis, int64_t n,
                            tn_array *at, const pad_attrs *attrs)
{
    int64_t before = attrs->before.value[axis];
    tn_array *from =
        build->expr(build, "i -> i - before", TN_IN(at), tn_attrs("before", before));
    from = build->expr(build, repeated[attrs->mode], TN_IN(from), tn_attrs("n", n));
    from = build->expr(build, "i -> i + before", TN_IN(from), tn_attrs("before", before));
    return build->op(build, "base.take/1", TN_IN(x, from), tn_attrs("axis", (int64_t)axis));
}

// As pad_repeat(), in a mode from PAD_LINEAR_RAMP on: both sides.
static tn_array *pad_sides(const tn_build *build, tn_array *x, int32_t axis, int64_t n,
                           const pad_attrs *attrs)
{
    int64_t before = attrs->before.value[axis], after = attrs->after.value[axis];
    tn_array *between = part_of_axis(build, x, axis, before, 1, n), *parts[2];
    uint64_t count = 0;
    if (before)
        parts[count++] = pad_border(build, between, axis, before, 0, attrs);
    if (after)
        parts[count++] = pad_border(build, between, axis, after, 1, attrs);
    return joined(build, parts, count, axis);
}

// Writes the border of one axis into x, which already has room for it. In place, so only
// the border is copied where nothing else reads x. A later axis' border overwrites the
// corners.
static tn_array *pad_axis(const tn_build *build, tn_array *x, int32_t axis, int64_t n,
                          const pad_attrs *attrs)
{
    int64_t before = attrs->before.value[axis], after = attrs->after.value[axis];
    tn_array *at = build->expr(build, "i -> i < before ? i : i + n",
                               TN_IN(counted(build, before + after, 0)),
                               tn_attrs("before", before, "n", n));
    tn_array *border = attrs->mode <= PAD_WRAP ? pad_repeat(build, x, axis, n, at, attrs)
                                               : pad_sides(build, x, axis, n, attrs);
    return build->op(build, "base.scatter_set/1", TN_IN(x, at, border),
                     tn_attrs("axis", (int64_t)axis));
}

// Pads in modes whose border depends on x, axis after axis.
static tn_status pad_from_elements(const tn_build *build, tn_array **x,
                                   const pad_attrs *attrs)
{
    const tn_ints shape = tn_extents(build, *x);
    for (uint32_t i = 0; i < shape.count; i++)
        if (shape.value[i] == 0 && (attrs->before.value[i] || attrs->after.value[i]))
            return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                     "axis %u has no elements: only mode constant pads it",
                                     i);
    *x = pad_with_constant(build, *x, &attrs->before, &attrs->after, 0);
    for (uint32_t i = 0; i < shape.count && *x; i++)
        if (attrs->before.value[i] || attrs->after.value[i])
            *x = pad_axis(build, *x, (int32_t)i, shape.value[i], attrs);
    return built(*x);
}

static tn_status pad_check(const tn_build *build, const tn_rule *rule)
{
    const pad_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    const tn_type *x = build->type(rule->inputs[0]);
    const tn_ints *sides[] = {&attrs->before, &attrs->after};
    for (uint32_t k = 0; k < 2; k++) {
        if ((int32_t)sides[k]->count != x->rank)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "%s has %u counts, expected one for each of %d axes",
                              k ? "after" : "before", sides[k]->count, x->rank);
        for (uint32_t i = 0; i < sides[k]->count; i++)
            if (sides[k]->value[i] < 0 || sides[k]->value[i] > INT64_MAX / 4)
                return host->fail(host, TN_ERR_ARGUMENT, "%s of axis %u is %" PRId64 ", %s",
                                  k ? "after" : "before", i, sides[k]->value[i],
                                  sides[k]->value[i] < 0 ? "expected at least 0"
                                                         : "and the extent overflows");
    }
    if (rule->num_inputs > 1 && rule->inputs[1]) {
        const tn_type *value = build->type(rule->inputs[1]);
        if (attrs->mode != PAD_CONSTANT || type_count(value) != 1)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "values has %" PRId64 " elements in mode %s, expected 1 and "
                              "mode constant",
                              type_count(value), pad_modes[attrs->mode]);
        return check_same_dtype(host, "values", value->dtype, x->dtype);
    }
    if (attrs->mode >= PAD_LINEAR_RAMP && attrs->mode != PAD_EMPTY &&
        !tn_dtype_in(x->dtype, TN_FLOAT_DTYPES | TN_INTEGER_DTYPES))
        return host->fail(host, TN_ERR_ARGUMENT, "x is %s, expected a number in mode %s",
                          dtype_text(x->dtype), pad_modes[attrs->mode]);
    if (attrs->stat_length == 0)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "stat_length is 0, expected at least 1, or -1");
    return TN_OK;
}

DECOMPOSE(pad)
{
    const pad_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    tn_status status = pad_check(build, rule);
    if (status)
        return status;
    if (rule->num_inputs > 1 && rule->inputs[1])
        x = pad_with_computed(
            build, x, attrs,
            with_shape(build, "base.reshape/1", rule->inputs[1], (tn_ints){.given = 1}));
    else if (attrs->mode == PAD_CONSTANT || attrs->mode == PAD_EMPTY)
        x = pad_with_constant(build, x, &attrs->before, &attrs->after,
                              attrs->mode == PAD_EMPTY ? 0 : attrs->value);
    else
        status = pad_from_elements(build, &x, attrs);
    outputs[0] = x;
    return status == TN_OK ? built(x) : status;
}

COMPOSITE(pad, "x with a border.", TN_INPUTS(pad_inputs),
          .attrs = TN_ATTR_TABLE(pad_attrs, pad_fields));
