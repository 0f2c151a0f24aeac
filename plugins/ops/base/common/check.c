// SPDX-License-Identifier: MIT
// Checks of arguments, and graph-building helpers: see pack.h.
#include "../pack.h"
#include <stdio.h>

const tn_input_info base_x[1] = {{"x", "the array", 0, 0}};
const tn_input_info base_any_x[1] = {{"x", "the array", 0, TN_ALL_DTYPES}};
const tn_input_info base_number_x[1] = {
    {"x", "the array", 0, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES}};

const char *shape_text(int32_t rank, const int64_t *extent, char buffer[SHAPE_TEXT])
{
    int at = snprintf(buffer, SHAPE_TEXT, "[");
    for (int32_t i = 0; i < rank; i++)
        at += snprintf(buffer + at, (size_t)(SHAPE_TEXT - at), "%s%" PRId64, i ? ", " : "",
                       extent[i]);
    snprintf(buffer + at, (size_t)(SHAPE_TEXT - at), "]");
    return buffer;
}

const char *dtype_text(int64_t dtype)
{
    return tn_dtype_name(dtype > 0 && dtype < TN_NUM_DTYPES ? (tn_dtype)dtype : 0);
}

tn_status check_axis(const tn_host *host, int64_t axis, int32_t rank, int32_t *out_axis)
{
    int32_t from_front = axis >= -rank && axis < rank ? tn_axis(axis, rank) : -1;
    if (from_front < 0)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "axis %" PRId64 " is out of range for rank %d", axis, rank);
    *out_axis = from_front;
    return TN_OK;
}

tn_status check_axes(const tn_host *host, const char *name, const tn_ints *axes,
                     int32_t rank, uint32_t *out_set)
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < axes->count && axes->given; i++) {
        int32_t axis = 0;
        tn_status status = check_axis(host, axes->value[i], rank, &axis);
        if (status)
            return status;
        if (set >> axis & 1)
            return host->fail(host, TN_ERR_ARGUMENT, "%s: axis %" PRId64 " is given twice",
                              name, axes->value[i]);
        set |= UINT32_C(1) << axis;
    }
    *out_set = axes->given ? set : (UINT32_C(1) << rank) - 1;
    return TN_OK;
}

tn_status check_shape(const tn_host *host, const tn_ints *shape)
{
    char text[SHAPE_TEXT];
    if (!shape->given)
        return host->fail(host, TN_ERR_ARGUMENT, "shape is not given");
    for (uint32_t i = 0; i < shape->count; i++)
        if (shape->value[i] < 0)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "shape is %s, expected extents of at least 0",
                              shape_text((int32_t)shape->count, shape->value, text));
    return TN_OK;
}

void dtype_range(tn_dtype dtype, double *out_least, double *out_most)
{
    int bits = (int)tn_dtype_bytes(dtype) * 8;
    *out_least = -INFINITY;
    *out_most = INFINITY;
    if (tn_dtype_in(dtype, TN_SIGNED_DTYPES)) {
        *out_least = -ldexp(1, bits - 1);
        *out_most = ldexp(1, bits - 1) - (bits == 64 ? 1024 : 1);
    } else if (!tn_dtype_in(dtype, TN_FLOAT_DTYPES)) {
        *out_least = 0;
        *out_most = dtype == TN_BOOL ? 1 : ldexp(1, bits) - (bits == 64 ? 2048 : 1);
    }
}

tn_status check_holds(const tn_host *host, const char *name, double value, tn_dtype dtype)
{
    double least, most, whole = trunc(value);
    dtype_range(dtype, &least, &most);
    if (!tn_dtype_in(dtype, TN_INTEGER_DTYPES) || (whole >= least && whole <= most))
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT, "%s is %.17g, expected a number that %s holds",
                      name, value, dtype_text(dtype));
}

tn_status check_integers(const tn_host *host, const char *input, tn_dtype dtype)
{
    if (tn_dtype_in(dtype, TN_INTEGER_DTYPES))
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT, "%s is %s, expected an integer dtype", input,
                      dtype_text(dtype));
}

tn_status check_same_dtype(const tn_host *host, const char *name, tn_dtype other,
                           tn_dtype x)
{
    if (other == x)
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT, "%s is %s, expected x's dtype %s", name,
                      dtype_text(other), dtype_text(x));
}

int broadcast_types(const tn_type *x, const tn_type *y, tn_type *out)
{
    tn_type made = {.dtype = out->dtype, .rank = x->rank > y->rank ? x->rank : y->rank};
    for (int32_t i = 0; i < made.rank; i++) {
        int32_t at_x = i - (made.rank - x->rank), at_y = i - (made.rank - y->rank);
        int64_t a = at_x >= 0 ? x->extent[at_x] : 1, b = at_y >= 0 ? y->extent[at_y] : 1;
        if (a != b && a != 1 && b != 1)
            return 0;
        made.extent[i] = a == 1 ? b : a;
    }
    *out = made;
    return 1;
}

// --- graph building ---------------------------------------------------------------------

tn_array *cast(const tn_build *build, const tn_array *x, tn_dtype dtype)
{
    return build->op(build, "base.astype/1", TN_IN(x), tn_attrs("dtype", (int64_t)dtype));
}

tn_array *as_dtype(const tn_build *build, tn_array *x, tn_dtype dtype)
{
    const tn_type *type = build->type(x);
    return !type || type->dtype == dtype ? x : cast(build, x, dtype);
}

tn_array *reduced_over(const tn_build *build, const char *primitive, const tn_array *x,
                       const tn_ints *axes, int64_t keepdims)
{
    const tn_attr items[] = {
        {.name = "keepdims", .kind = TN_ATTR_I64, .i = keepdims},
        {.name = "axis", .kind = TN_ATTR_INTS, .ints = axes},
    };
    return build->op(build, primitive, TN_IN(x), TN_ATTR_LIST(items, axes->given ? 2 : 1));
}

tn_array *sum_along(const tn_build *build, const tn_array *x, int64_t axis, tn_dtype dtype)
{
    tn_array *sum =
        build->op(build, "base.sum/1", TN_IN(x), tn_attrs("axis", TN_INTS(axis)));
    return as_dtype(build, sum, dtype);
}

tn_status output_each_input(const tn_infer *infer, uint64_t *out_count)
{
    *out_count = infer->num_inputs;
    return TN_OK;
}

tn_array *flattened(const tn_build *build, const tn_array *x)
{
    const tn_type *type = build->type(x);
    return type ? with_shape(build, "base.reshape/1", x,
                             ints_of(1, (int64_t[]){type_count(type)}))
                : NULL;
}

tn_array *counted(const tn_build *build, int64_t n, int32_t behind)
{
    tn_array *i = build->op(build, "base.arange/1", NULL, 0,
                            tn_attrs("stop", n, "dtype", (int64_t)TN_I64));
    tn_ints column = {.count = (uint32_t)behind + 1, .given = 1, .value = {n}};
    for (int32_t k = 1; k <= behind; k++)
        column.value[k] = 1;
    return behind ? with_shape(build, "base.reshape/1", i, column) : i;
}

tn_array *batch_along(const tn_build *build, tn_array *x, int32_t batch_axis,
                      int64_t *along)
{
    tn_array *batch = tn_move_axis(build, x, batch_axis, 0);
    const tn_type *type = build->type(batch);
    *along = type ? 1 + tn_axis(*along, type->rank - 1) : 0;
    return batch;
}

tn_array *part_of_axis(const tn_build *build, const tn_array *x, int32_t axis,
                       int64_t first, int64_t step, int64_t count)
{
    tn_ints start = {.count = (uint32_t)axis + 1, .given = 1}, stop = start, steps = start;
    for (int32_t i = 0; i < axis; i++)
        start.value[i] = stop.value[i] = steps.value[i] = TN_SLICE_END;
    int64_t end = first + count * step; // below 0: behind the first element, backwards
    start.value[axis] = first;
    stop.value[axis] = count == 0 ? first : end < 0 ? TN_SLICE_END : end;
    steps.value[axis] = step;
    return build->op(build, "base.slice/1", TN_IN(x),
                     tn_attrs("start", (const tn_ints *)&start, "stop",
                              (const tn_ints *)&stop, "step", (const tn_ints *)&steps));
}

tn_array *turned(const tn_build *build, const tn_array *x, const tn_ints *order)
{
    return build->op(build, "base.transpose/1", TN_IN(x), tn_attrs("axes", order));
}

tn_array *joined(const tn_build *build, tn_array *const *parts, uint64_t count,
                 int64_t axis)
{
    return build->op(build, "base.concatenate/1", (const tn_array *const *)parts, count,
                     tn_attrs("axis", axis));
}

tn_array *passed(const tn_build *build, const tn_array *x)
{
    return build->expr(build, "x -> x", TN_IN(x), TN_NO_ATTRS);
}

tn_array *with_shape(const tn_build *build, const char *primitive, const tn_array *x,
                     tn_ints shape)
{
    return build->op(build, primitive, TN_IN(x), tn_attrs("shape", &shape));
}

tn_array *zeros_like(const tn_build *build, const tn_array *like, tn_dtype dtype)
{
    return with_shape(build, "base.broadcast_to/1", build->scalar(build, dtype, 0),
                      tn_extents(build, like));
}

tn_array *joined_batch(const tn_build *build, tn_array *x, int32_t from, int32_t axis)
{
    x = tn_move_axis(build, x, from, axis);
    tn_ints shape = tn_extents(build, x);
    if (axis < 0 || shape.count < (uint32_t)axis + 2)
        return NULL;
    shape.count--;
    shape.value[axis] *= shape.value[axis + 1];
    for (uint32_t i = (uint32_t)axis + 1; i < shape.count; i++)
        shape.value[i] = shape.value[i + 1];
    return with_shape(build, "base.reshape/1", x, shape);
}

tn_status zero_vjp(const tn_build *build, const tn_rule *rule, tn_array *const *cotangents,
                   const uint64_t *wanted, tn_array **gradients)
{
    (void)build, (void)rule, (void)cotangents, (void)wanted, (void)gradients;
    return TN_OK;
}

tn_status zero_jvp(const tn_build *build, const tn_rule *rule, tn_array *const *tangents,
                   tn_array **out_tangents)
{
    (void)build, (void)rule, (void)tangents, (void)out_tangents;
    return TN_OK;
}
