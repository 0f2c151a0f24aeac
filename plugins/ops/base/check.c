// SPDX-License-Identifier: MIT
// Checks of arguments, and graph-building helpers: see pack.h.
#include "pack.h"
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

tn_status check_integers(const tn_host *host, const char *input, tn_dtype dtype)
{
    if (tn_dtype_in(dtype, TN_INTEGER_DTYPES))
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT, "%s is %s, expected an integer dtype", input,
                      dtype_text(dtype));
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
