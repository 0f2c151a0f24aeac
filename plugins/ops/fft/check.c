// SPDX-License-Identifier: MIT
// Checks of arguments that several primitives share, and pieces of graph.
#include "pack.h"

#include <stdio.h>

const tn_input_info fft_x[1] = {{"x", "the array", 0, FFT_DTYPES}};
const char *const fft_norms[] = {"backward", "ortho", "forward", NULL};

const char *shape_text(const tn_type *type, char buffer[SHAPE_TEXT])
{
    int at = snprintf(buffer, SHAPE_TEXT, "[");
    for (int32_t i = 0; i < type->rank; i++)
        at += snprintf(buffer + at, (size_t)(SHAPE_TEXT - at), "%s%" PRId64, i ? ", " : "",
                       type->extent[i]);
    snprintf(buffer + at, (size_t)(SHAPE_TEXT - at), "]");
    return buffer;
}

tn_status check_axis(const tn_host *host, int64_t axis, int32_t rank, int32_t *out_axis)
{
    if (axis < -rank || axis >= rank)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "axis %" PRId64 " is out of range for rank %d", axis, rank);
    *out_axis = (int32_t)(axis < 0 ? axis + rank : axis);
    return TN_OK;
}

tn_status check_axes(const tn_host *host, const tn_ints *axes, int32_t rank,
                     int32_t out_axes[TN_MAX_RANK])
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < axes->count; i++) {
        tn_status status = check_axis(host, axes->value[i], rank, &out_axes[i]);
        if (status)
            return status;
        if (set >> out_axes[i] & 1)
            return host->fail(host, TN_ERR_ARGUMENT, "axis %" PRId64 " is given twice",
                              axes->value[i]);
        set |= UINT32_C(1) << out_axes[i];
    }
    return TN_OK;
}

tn_status check_length(const tn_host *host, const char *name, enum kind kind,
                       const tn_type *x, int32_t axis, int64_t given, int64_t *out_n)
{
    char text[SHAPE_TEXT];
    int64_t extent = x->extent[axis], n = given;
    if (given == TN_FFT_WHOLE &&
        (kind != TO_REAL || !tn_checked_multiply_extents(extent - 1, 2, &n)))
        n = extent;
    if (n >= 1) {
        *out_n = n;
        return TN_OK;
    }
    if (given != TN_FFT_WHOLE)
        return host->fail(host, TN_ERR_ARGUMENT, "%s is %" PRId64 ", expected at least 1",
                          name, n);
    return host->fail(host, TN_ERR_ARGUMENT,
                      "x has shape %s, expected at least %d along axis %d, or %s",
                      shape_text(x, text), kind == TO_REAL ? 2 : 1, axis, name);
}

tn_dtype complex_of(tn_dtype x)
{
    return tn_is_float(x) || tn_is_complex(x) ? tn_dtype_complex(x) : TN_COMPLEX128;
}

tn_status check_real(const tn_host *host, enum kind kind, tn_dtype x)
{
    if (kind != OF_REAL || !tn_is_complex(x))
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT,
                      "x is %s, expected real numbers: fft takes complex ones",
                      tn_dtype_name(x));
}

tn_array *cast(const tn_build *build, tn_array *x, tn_dtype dtype)
{
    const tn_type *type = build->type(x);
    return type && type->dtype == dtype ? x
                                        : build->op(build, "base.astype/1", TN_IN(x),
                                                    tn_attrs("dtype", (int64_t)dtype));
}

tn_array *part_of_axis(const tn_build *build, tn_array *x, int32_t axis, int64_t first,
                       int64_t count)
{
    tn_ints start = {.count = (uint32_t)axis + 1, .given = 1}, stop = start;
    for (int32_t i = 0; i < axis; i++)
        start.value[i] = stop.value[i] = TN_SLICE_END;
    start.value[axis] = first;
    stop.value[axis] = first + count;
    return build->op(
        build, "base.slice/1", TN_IN(x),
        tn_attrs("start", (const tn_ints *)&start, "stop", (const tn_ints *)&stop));
}
