// SPDX-License-Identifier: MIT
// Elements in another order or repeated: stack, flip, roll, repeat, tile, tril, triu. All
// are made of views and of concatenate, and so are their rules.
#include "../pack.h"

#include <tenon/checked.h>

// --- stack ------------------------------------------------------------------------------

static const tn_input_info stack_inputs[] = {
    {"arrays", "of one dtype and of equal extents", TN_INPUT_VARIADIC, TN_ALL_DTYPES},
};
static const tn_attr_field stack_fields[] = {
    TN_I64_FIELD(tn_concatenate_attrs, axis, 0, "axis of the result that is new"),
};

static tn_status stack_infer(const tn_infer *infer, tn_type *types)
{
    const tn_host *host = infer->host;
    const tn_concatenate_attrs *attrs = infer->attrs;
    char got[SHAPE_TEXT], first[SHAPE_TEXT];
    const tn_type *x = &infer->types[0];
    int32_t axis;
    if (x->rank == TN_MAX_RANK)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "the arrays have rank %d, expected at most %d", x->rank,
                          TN_MAX_RANK - 1);
    tn_status status = check_axis(host, attrs->axis, x->rank + 1, &axis);
    for (uint32_t i = 1; i < infer->num_inputs && status == TN_OK; i++) {
        const tn_type *other = &infer->types[i];
        if (other->dtype != x->dtype)
            status = host->fail(host, TN_ERR_ARGUMENT,
                                "array %u is %s, expected %s as the first", i,
                                dtype_text(other->dtype), dtype_text(x->dtype));
        else if (other->rank != x->rank ||
                 memcmp(other->extent, x->extent, sizeof(int64_t) * (size_t)x->rank) != 0)
            status = host->fail(host, TN_ERR_ARGUMENT,
                                "array %u has shape %s, expected %s as the first", i,
                                shape_text(other->rank, other->extent, got),
                                shape_text(x->rank, x->extent, first));
    }
    if (status)
        return status;
    types[0] = (tn_type){.dtype = x->dtype, .rank = x->rank + 1};
    for (int32_t i = 0; i <= x->rank; i++)
        types[0].extent[i] = i == axis ? infer->num_inputs : x->extent[i - (i > axis)];
    return TN_OK;
}

DECOMPOSE(stack)
{
    const tn_concatenate_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    const tn_type *x = build->type(rule->inputs[0]);
    tn_array **parts = host->alloc(host, rule->num_inputs * sizeof(*parts), 0);
    if (!parts || !x)
        return x ? TN_ERR_MEMORY : TN_ERR_ARGUMENT;
    int64_t axis = tn_axis(attrs->axis, x->rank + 1);
    for (uint32_t i = 0; i < rule->num_inputs; i++)
        parts[i] = build->op(build, "base.expand_dims/1", TN_IN(rule->inputs[i]),
                             tn_attrs("axis", TN_INTS(axis)));
    outputs[0] = joined(build, parts, rule->num_inputs, axis);
    host->free(host, parts);
    return built(outputs[0]);
}

DECOMPOSED(stack, tn_concatenate_attrs, stack_fields, "Arrays joined along a new axis.",
           TN_INPUTS(stack_inputs));

// --- flip -------------------------------------------------------------------------------

static const tn_attr_field flip_fields[] = {
    TN_INTS_FIELD(tn_axis_attrs, axis, "axes to reverse, one or several; not given: all"),
};

static tn_status flip_infer(const tn_infer *infer, tn_type *types)
{
    const tn_axis_attrs *attrs = infer->attrs;
    uint32_t set;
    tn_status status =
        check_axes(infer->host, "axis", &attrs->axis, infer->types[0].rank, &set);
    if (status == TN_OK)
        types[0] = infer->types[0];
    return status;
}

DECOMPOSE(flip)
{
    const tn_axis_attrs *attrs = rule->attrs;
    tn_ints shape = tn_extents(build, rule->inputs[0]), step = shape;
    uint32_t set = tn_axis_set(&attrs->axis, (int32_t)shape.count);
    for (uint32_t i = 0; i < shape.count; i++)
        step.value[i] = set >> i & 1 ? -1 : 1;
    outputs[0] = build->op(build, "base.slice/1", TN_IN(rule->inputs[0]),
                           tn_attrs("step", (const tn_ints *)&step));
    return built(outputs[0]);
}

DECOMPOSED(flip, tn_axis_attrs, flip_fields, "x with elements in reverse order.",
           TN_INPUTS(base_any_x));

// --- roll -------------------------------------------------------------------------------

static const tn_attr_field roll_fields[] = {
    TN_REQUIRED_FIELD(tn_roll_attrs, shift, TN_ATTR_INTS,
                      "how far to move elements, one number or one an axis"),
    TN_INTS_FIELD(tn_roll_attrs, axis, "axes to roll along; not given: x flattened"),
};

static tn_status roll_infer(const tn_infer *infer, tn_type *types)
{
    const tn_host *host = infer->host;
    const tn_roll_attrs *attrs = infer->attrs;
    uint32_t axes = attrs->axis.given ? attrs->axis.count : 1;
    for (uint32_t i = 0; i < attrs->axis.count && attrs->axis.given; i++) {
        int32_t axis;
        tn_status status =
            check_axis(host, attrs->axis.value[i], infer->types[0].rank, &axis);
        if (status)
            return status;
    }
    if (attrs->shift.count != 1 && attrs->shift.count != axes)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "shift has %u values, expected 1, or one for each of %u axes",
                          attrs->shift.count, axes);
    types[0] = infer->types[0];
    return TN_OK;
}

// Rolls x along one axis: its last `shift` elements come first.
static tn_array *arrange_rolled(const tn_build *build, tn_array *x, int32_t axis,
                                int64_t shift)
{
    const tn_type *type = build->type(x);
    int64_t n = type ? type->extent[axis] : 0;
    shift = n ? shift % n : 0;
    shift = shift < 0 ? shift + n : shift;
    if (shift == 0)
        return x;
    tn_array *parts[] = {part_of_axis(build, x, axis, n - shift, 1, shift),
                         part_of_axis(build, x, axis, 0, 1, n - shift)};
    return joined(build, parts, 2, axis);
}

DECOMPOSE(roll)
{
    const tn_roll_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    tn_ints shape = tn_extents(build, x);
    if (!attrs->axis.given)
        x = with_shape(build, "base.reshape/1",
                       arrange_rolled(build, flattened(build, x), 0, attrs->shift.value[0]),
                       shape);
    for (uint32_t i = 0; i < attrs->axis.count && attrs->axis.given; i++)
        x = arrange_rolled(build, x, tn_axis(attrs->axis.value[i], (int32_t)shape.count),
                           attrs->shift.value[attrs->shift.count == 1 ? 0 : i]);
    outputs[0] = x == rule->inputs[0] ? passed(build, x) : x;
    return built(outputs[0]);
}

DECOMPOSED(roll, tn_roll_attrs, roll_fields,
           "x with elements moved along axes, those beyond the end to the start.",
           TN_INPUTS(base_any_x));

// --- repeat -----------------------------------------------------------------------------

static const tn_attr_field repeat_fields[] = {
    TN_REQUIRED_FIELD(tn_repeat_attrs, repeats, TN_ATTR_INT_LIST,
                      "how many times, one or one for each element"),
    TN_I64_FIELD(tn_repeat_attrs, axis, TN_NO_AXIS,
                 "axis to repeat along; not given: x flattened"),
};

// How often element i is repeated.
static int64_t times_of(const tn_repeat_attrs *attrs, int64_t i)
{
    return attrs->repeats->value[attrs->repeats->count == 1 ? 0 : i];
}

static tn_status repeat_infer(const tn_infer *infer, tn_type *types)
{
    const tn_host *host = infer->host;
    const tn_repeat_attrs *attrs = infer->attrs;
    tn_type out = infer->types[0];
    int32_t axis = 0;
    tn_status status = TN_OK;
    if (attrs->axis == TN_NO_AXIS)
        out = (tn_type){out.dtype, 1, {type_count(&out)}};
    else
        status = check_axis(host, attrs->axis, out.rank, &axis);
    if (status)
        return status;
    int64_t n = out.extent[axis], given = (int64_t)attrs->repeats->count;
    if (given != 1 && given != n)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "repeats has %" PRId64 " values, expected 1, or one for each of "
                          "%" PRId64 " elements",
                          given, n);
    for (int64_t i = 0; i < given; i++)
        if (attrs->repeats->value[i] < 0)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "repeats[%" PRId64 "] is %" PRId64 ", expected at least 0", i,
                              attrs->repeats->value[i]);
    int64_t total = 0;
    int fits =
        given != 1 || tn_checked_multiply_extents(n, attrs->repeats->value[0], &total);
    for (int64_t i = 0; fits && given != 1 && i < n; i++)
        fits = tn_checked_add_signed(total, attrs->repeats->value[i], &total);
    if (!fits)
        return host->fail(host, TN_ERR_ARGUMENT, "the sum of repeats overflows");
    out.extent[axis] = total;
    types[0] = out;
    return TN_OK;
}

// Repeats elements [first, last) of `axis`, each `times` times: views until the reshape.
static tn_array *repeated_run(const tn_build *build, tn_array *x, int32_t axis,
                              int64_t first, int64_t last, int64_t times)
{
    tn_ints shape = tn_extents(build, x), whole = shape;
    int64_t before = 1, behind = 1, n = last - first;
    for (int32_t i = 0; i < (int32_t)shape.count; i++) {
        before *= i < axis ? shape.value[i] : 1;
        behind *= i > axis ? shape.value[i] : 1;
    }
    whole.value[axis] = n * times;
    tn_array *run = part_of_axis(build, x, axis, first, 1, n);
    run = with_shape(build, "base.reshape/1", run,
                     ints_of(4, (int64_t[]){before, n, 1, behind}));
    run = with_shape(build, "base.broadcast_to/1", run,
                     ints_of(4, (int64_t[]){before, n, times, behind}));
    return with_shape(build, "base.reshape/1", run, whole);
}

DECOMPOSE(repeat)
{
    const tn_repeat_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    int flat = attrs->axis == TN_NO_AXIS;
    tn_array *x = flat ? flattened(build, rule->inputs[0]) : rule->inputs[0];
    const tn_type *type = build->type(x);
    if (!type)
        return TN_ERR_ARGUMENT;
    int32_t axis = flat ? 0 : tn_axis(attrs->axis, type->rank);
    int64_t n = type->extent[axis];
    if (attrs->repeats->count == 1 || n == 0) {
        outputs[0] = repeated_run(build, x, axis, 0, n, n ? times_of(attrs, 0) : 0);
        return built(outputs[0]);
    }
    tn_array **runs = host->alloc(host, (uint64_t)n * sizeof(*runs), 0);
    uint64_t count = 0;
    if (!runs)
        return TN_ERR_MEMORY;
    for (int64_t i = 0, next; i < n; i = next) { // a run of equal counts is one part
        for (next = i + 1; next < n && times_of(attrs, next) == times_of(attrs, i);)
            next++;
        if (times_of(attrs, i) > 0 || (next == n && count == 0))
            runs[count++] = repeated_run(build, x, axis, i, next, times_of(attrs, i));
    }
    outputs[0] = joined(build, runs, count, axis);
    host->free(host, runs);
    return built(outputs[0]);
}

DECOMPOSED(repeat, tn_repeat_attrs, repeat_fields,
           "Each element of x several times in a row.", TN_INPUTS(base_any_x));

// --- tile -------------------------------------------------------------------------------

static const tn_attr_field tile_fields[] = {
    TN_REQUIRED_FIELD(tn_tile_attrs, reps, TN_ATTR_INTS, "how many times, for each axis"),
};

static tn_status tile_infer(const tn_infer *infer, tn_type *types)
{
    const tn_host *host = infer->host;
    const tn_ints *reps = &((const tn_tile_attrs *)infer->attrs)->reps;
    const tn_type *x = &infer->types[0];
    int32_t count = (int32_t)reps->count;
    tn_type out = {.dtype = x->dtype, .rank = count > x->rank ? count : x->rank};
    for (int32_t i = 0; i < out.rank; i++) {
        int32_t own = i - (out.rank - x->rank), rep = i - (out.rank - count);
        int64_t times = rep >= 0 ? reps->value[rep] : 1;
        if (times < 0)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "reps[%d] is %" PRId64 ", expected at least 0", rep, times);
        if (!tn_checked_multiply_extents(own >= 0 ? x->extent[own] : 1, times,
                                         &out.extent[i]))
            return host->fail(host, TN_ERR_ARGUMENT, "the extent of axis %d overflows", i);
    }
    types[0] = out;
    return TN_OK;
}

#define TILED_AXES 2 // axes repeated in one copy: a batch's axes need room, too

// Repeats axes [low, high) of x, whose shape is given, as `times` says: inserts an axis
// before each of them, along which x is broadcast. The other axes become one before and one
// behind.
static tn_array *tile_axes(const tn_build *build, tn_array *x, tn_ints *shape, int32_t low,
                           int32_t high, const int64_t *times)
{
    tn_ints from = {.given = 1}, to;
    int32_t rank = (int32_t)shape->count;
    for (int32_t i = 0; i < rank; i++) {
        int32_t is_outside = i < low || i >= high;
        int32_t joins = is_outside && i > 0 && i != high;
        if (!is_outside && times[i] != 1)
            from.value[from.count++] = 1;
        if (joins)
            from.value[from.count - 1] *= shape->value[i];
        else
            from.value[from.count++] = shape->value[i];
    }
    to = from;
    uint32_t at = low > 0 ? 1 : 0;
    for (int32_t i = low; i < high; i++, at++) {
        if (times[i] == 1)
            continue;
        to.value[at++] = times[i];
        shape->value[i] *= times[i];
    }
    x = with_shape(build, "base.reshape/1", x, from);
    x = with_shape(build, "base.broadcast_to/1", x, to);
    return with_shape(build, "base.reshape/1", x, *shape);
}

DECOMPOSE(tile)
{
    const tn_ints *reps = &((const tn_tile_attrs *)rule->attrs)->reps;
    tn_array *x = rule->inputs[0];
    tn_ints shape = tn_extents(build, x);
    while (shape.count < reps->count)
        shape = tn_ints_after(1, &shape);
    int32_t rank = (int32_t)shape.count, shift = rank - (int32_t)reps->count;
    int64_t times[TN_MAX_RANK];
    for (int32_t i = 0; i < rank; i++)
        times[i] = i < shift ? 1 : reps->value[i - shift];
    x = with_shape(build, "base.reshape/1", x, shape);
    for (int32_t high = rank; high > 0;) {
        int32_t low = high > TILED_AXES ? high - TILED_AXES : 0;
        int32_t repeats = 0;
        for (int32_t i = low; i < high; i++)
            repeats |= times[i] != 1;
        if (repeats)
            x = tile_axes(build, x, &shape, low, high, times);
        high = low;
    }
    outputs[0] = x;
    return built(x);
}

DECOMPOSED(tile, tn_tile_attrs, tile_fields, "x several times along each axis.",
           TN_INPUTS(base_any_x));

// --- tril and triu ----------------------------------------------------------------------

static const tn_attr_field diagonal_fields[] = {
    TN_I64_FIELD(tn_diagonal_attrs, k, 0, "the diagonal; above 0: above the main one"),
};

static tn_status triangle_infer(const tn_infer *infer, tn_type *types)
{
    char text[SHAPE_TEXT];
    const tn_type *x = &infer->types[0];
    if (x->rank < 2)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "x has shape %s, expected rank 2 or more",
                                 shape_text(x->rank, x->extent, text));
    types[0] = *x;
    return TN_OK;
}
#define tril_infer triangle_infer
#define triu_infer triangle_infer

// x on and below diagonal k, or on and above it; 0 elsewhere.
static tn_status arrange_triangle(const tn_build *build, const tn_rule *rule, int is_upper,
                                  tn_array **outputs)
{
    const tn_diagonal_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    if (!x)
        return TN_ERR_ARGUMENT;
    int64_t m = x->extent[x->rank - 2], n = x->extent[x->rank - 1];
    int64_t k = attrs->k > n ? n : attrs->k < -m ? -m : attrs->k; // no sum overflows
    tn_array *kept =
        build->expr(build, is_upper ? "i, j -> j - i >= i64(k)" : "i, j -> j - i <= i64(k)",
                    TN_IN(counted(build, m, 1), counted(build, n, 0)), tn_attrs("k", k));
    if (tn_dtype_in(x->dtype, TN_FLOAT8_DTYPES)) // literals have none of these dtypes
        outputs[0] = build->expr(
            build, "c, x, z -> select(c, x, z)",
            TN_IN(kept, rule->inputs[0], build->scalar(build, x->dtype, 0)), TN_NO_ATTRS);
    else
        outputs[0] = build->expr(
            build, x->dtype == TN_BOOL ? "c, x -> c & x" : "c, x -> select(c, x, 0)",
            TN_IN(kept, rule->inputs[0]), TN_NO_ATTRS);
    return built(outputs[0]);
}

DECOMPOSE(tril)
{
    return arrange_triangle(build, rule, 0, outputs);
}

DECOMPOSE(triu)
{
    return arrange_triangle(build, rule, 1, outputs);
}

DECOMPOSED(tril, tn_diagonal_attrs, diagonal_fields,
           "x with zeros above a diagonal of its last two axes.", TN_INPUTS(base_any_x));
DECOMPOSED(triu, tn_diagonal_attrs, diagonal_fields,
           "x with zeros below a diagonal of its last two axes.", TN_INPUTS(base_any_x));
