// SPDX-License-Identifier: MIT
// Checks of arguments, and graph-building helpers: see pack.h.
#include "../pack.h"
#include <stdio.h>

// --- checks -----------------------------------------------------------------------------

const char *shape_text(const tn_type *type, char buffer[SHAPE_TEXT])
{
    int at = snprintf(buffer, SHAPE_TEXT, "[");
    for (int32_t i = 0; i < type->rank; i++)
        at += snprintf(buffer + at, (size_t)(SHAPE_TEXT - at), "%s%" PRId64, i ? ", " : "",
                       type->extent[i]);
    snprintf(buffer + at, (size_t)(SHAPE_TEXT - at), "]");
    return buffer;
}

tn_status check_float(const tn_host *host, const char *input, const tn_type *type)
{
    if (tn_dtype_in(type->dtype, TN_FLOAT_DTYPES))
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT, "%s is %s, expected a float dtype", input,
                      tn_dtype_name(type->dtype));
}

tn_status check_dtype(const tn_host *host, const char *input, const tn_type *type,
                      tn_dtype expected)
{
    if (type->dtype == expected)
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT, "%s is %s, expected %s", input,
                      tn_dtype_name(type->dtype), tn_dtype_name(expected));
}

tn_status check_rank(const tn_host *host, const char *input, const tn_type *type,
                     int32_t rank, const char *axes)
{
    char text[SHAPE_TEXT];
    if (type->rank == rank)
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT, "%s has shape %s, expected rank %d: %s", input,
                      shape_text(type, text), rank, axes);
}

tn_status check_extents(const tn_host *host, const char *input, const tn_type *type,
                        int32_t rank, const int64_t *extent)
{
    char got[SHAPE_TEXT], expected[SHAPE_TEXT];
    tn_type want = {.rank = rank};
    memcpy(want.extent, extent, sizeof(int64_t) * (size_t)rank);
    if (type->rank == rank &&
        memcmp(type->extent, extent, sizeof(int64_t) * (size_t)rank) == 0)
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT, "%s has shape %s, expected %s", input,
                      shape_text(type, got), shape_text(&want, expected));
}

tn_status read_pair(const tn_host *host, const char *name, const tn_ints *list,
                    int64_t absent, int64_t least, int64_t out[2])
{
    out[0] = out[1] = absent;
    if (!list->given)
        return TN_OK;
    if (list->count != 1 && list->count != 2)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "%s has %u values, expected 1, or 2 for rows and columns", name,
                          list->count);
    out[0] = list->value[0];
    out[1] = list->value[list->count - 1];
    // The product of two numbers below 2^31 fits 64 bits.
    for (int i = 0; i < 2; i++)
        if (out[i] < least || out[i] > INT32_MAX)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "%s is %" PRId64 ", expected at least %" PRId64
                              " and at most %d",
                              name, out[i], least, INT32_MAX);
    return TN_OK;
}

tn_status axis_within(const tn_host *host, int64_t axis, int32_t rank, int32_t *out)
{
    if (axis < -rank || axis >= rank)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "axis is %" PRId64 ", expected one of x's %d", axis, rank);
    *out = (int32_t)(axis < 0 ? axis + rank : axis);
    return TN_OK;
}

// --- graph building ---------------------------------------------------------------------

tn_dtype dtype_of(const tn_build *build, const tn_array *array)
{
    const tn_type *type = build->type(array);
    return type ? type->dtype : TN_F32;
}

tn_array *with_shape(const tn_build *build, const char *primitive, const tn_array *x,
                     int32_t rank, const int64_t *extent)
{
    tn_ints shape = {.count = (uint32_t)rank, .given = 1};
    if (rank < 0 || rank > TN_MAX_RANK) {
        build->host->fail(build->host, TN_ERR_ARGUMENT,
                          "an array of %d axes, expected 0 to %d", rank, TN_MAX_RANK);
        return NULL;
    }
    memcpy(shape.value, extent, sizeof(int64_t) * (size_t)rank);
    return build->op(build, primitive, TN_IN(x), tn_attrs("shape", &shape));
}

tn_array *part_of_axis(const tn_build *build, const tn_array *x, int32_t axis,
                       int64_t first, int64_t step, int64_t count)
{
    tn_ints start = {.count = (uint32_t)axis + 1, .given = 1}, stop = start, steps = start;
    for (int32_t i = 0; i < axis; i++)
        start.value[i] = stop.value[i] = steps.value[i] = TN_SLICE_END;
    start.value[axis] = first;
    stop.value[axis] = count ? first + (count - 1) * step + 1 : first;
    steps.value[axis] = step;
    return build->op(build, "base.slice/1", TN_IN(x),
                     tn_attrs("start", (const tn_ints *)&start, "stop",
                              (const tn_ints *)&stop, "step", (const tn_ints *)&steps));
}

tn_array *counted(const tn_build *build, int64_t n, int32_t behind)
{
    tn_array *i = build->op(build, "base.arange/1", NULL, 0,
                            tn_attrs("stop", n, "dtype", (int64_t)TN_I64));
    int64_t column[TN_MAX_RANK] = {n, 1, 1, 1, 1, 1, 1, 1};
    return with_shape(build, "base.reshape/1", i, behind + 1, column);
}

tn_array *zeros(const tn_build *build, tn_dtype dtype, int32_t rank, const int64_t *extent)
{
    return with_shape(build, "base.broadcast_to/1", build->scalar(build, dtype, 0), rank,
                      extent);
}

tn_array *cast(const tn_build *build, const tn_array *x, tn_dtype dtype)
{
    return build->op(build, "base.astype/1", TN_IN(x), tn_attrs("dtype", (int64_t)dtype));
}

tn_array *add(const tn_build *build, const tn_array *x, const tn_array *y)
{
    return build->expr(build, "x, y -> x + y", TN_IN(x, y), TN_NO_ATTRS);
}

// The two halves of the seed are the key.
tn_array *words_of_seed(const tn_build *build, tn_array *seed, const tn_ints *shape)
{
    tn_array *key = build->expr(build, "s, i -> u32(s >> (i * 32))",
                                TN_IN(seed, counted(build, 2, 0)), TN_NO_ATTRS);
    return build->op(build, "base.random_bits/1", TN_IN(key), tn_attrs("shape", shape));
}

// A window as the attributes of base.slice.
struct window_lists {
    tn_ints start, stop, step;
};

static struct window_lists nn_check_lists_of(const struct window *w)
{
    return (struct window_lists){
        .start = {4, 1, {0, w->row, w->column, w->channel}},
        .stop = {4,
                 1,
                 {TN_SLICE_END, w->row + (w->rows - 1) * w->row_step + 1,
                  w->column + (w->columns - 1) * w->column_step + 1,
                  w->channel + w->channels}},
        .step = {4, 1, {1, w->row_step, w->column_step, 1}},
    };
}

tn_array *window_slice(const tn_build *build, const tn_array *image,
                       const struct window *window)
{
    struct window_lists lists = nn_check_lists_of(window);
    return build->op(
        build, "base.slice/1", TN_IN(image),
        tn_attrs("start", &lists.start, "stop", &lists.stop, "step", &lists.step));
}

tn_array *window_update(const tn_build *build, const tn_array *image,
                        const tn_array *update, const struct window *window)
{
    struct window_lists lists = nn_check_lists_of(window);
    return build->op(
        build, "base.slice_update/1", TN_IN(image, update),
        tn_attrs("start", &lists.start, "stop", &lists.stop, "step", &lists.step));
}

tn_array *pad_image(const tn_build *build, tn_array *image, const int64_t border[2],
                    double value)
{
    if (border[0] == 0 && border[1] == 0)
        return image;
    const tn_ints *sides = TN_INTS(0, border[0], border[1], 0);
    return build->op(build, "base.pad_constant/1", TN_IN(image),
                     tn_attrs("before", sides, "after", sides, "value", value));
}

tn_array *crop_image(const tn_build *build, tn_array *image, const int64_t border[2])
{
    const tn_type *type = build->type(image);
    if (!type || (border[0] == 0 && border[1] == 0))
        return image;
    struct window inside = {border[0],
                            border[1],
                            0,
                            type->extent[1] - 2 * border[0],
                            type->extent[2] - 2 * border[1],
                            type->extent[3],
                            1,
                            1};
    return window_slice(build, image, &inside);
}
