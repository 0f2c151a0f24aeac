// SPDX-License-Identifier: MIT
// Lists of attributes and the order of axes: see images.h.
#include "images.h"
#include <tenon/ops/rules.h>

static tn_status nn_images_check_number(const tn_host *host, const char *name,
                                        int64_t value, int64_t least)
{
    if (value >= least && value <= INT32_MAX)
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT,
                      "%s is %" PRId64 ", expected at least %" PRId64 " and at most %d",
                      name, value, least, INT32_MAX);
}

tn_status read_numbers(const tn_host *host, const char *name, const tn_ints *list,
                       int32_t n, int64_t absent, int64_t least, int64_t out[MOST_SPATIAL])
{
    tn_status status = TN_OK;
    if (list->given && list->count != 1 && list->count != (uint32_t)n)
        return host->fail(host, TN_ERR_ARGUMENT, "%s has %u values, expected 1%s", name,
                          list->count,
                          n == 1   ? ""
                          : n == 2 ? ", or 2 for rows and columns"
                                   : ", or 3 for depth, rows and columns");
    for (int32_t i = 0; i < n && status == TN_OK; i++) {
        out[i] = list->given ? list->value[list->count > 1 ? i : 0] : absent;
        status = nn_images_check_number(host, name, out[i], least);
    }
    return status;
}

tn_status read_padding(const tn_host *host, const tn_ints *list, int32_t n,
                       struct spatial axes[MOST_SPATIAL])
{
    int is_pairs = list->given && n > 0 && list->count == 2 * (uint32_t)n;
    tn_status status = TN_OK;
    if (list->given && list->count != 1 && list->count != (uint32_t)n && !is_pairs)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "padding has %u values, expected 1, %sor %d: two an axis",
                          list->count,
                          n == 1   ? ""
                          : n == 2 ? "2, "
                                   : "3, ",
                          2 * n);
    for (int32_t i = 0; i < n && status == TN_OK; i++) {
        int32_t at = is_pairs ? 2 * i : list->count > 1 ? i : 0;
        axes[i].before = list->given ? list->value[at] : 0;
        axes[i].after = is_pairs ? list->value[at + 1] : axes[i].before;
        status = nn_images_check_number(host, "padding", axes[i].before, 0);
        if (status == TN_OK)
            status = nn_images_check_number(host, "padding", axes[i].after, 0);
    }
    return status;
}

tn_status check_elements(const tn_host *host, int32_t n,
                         const struct spatial axes[MOST_SPATIAL])
{
    double total = 1;
    for (int32_t i = 0; i < n; i++)
        total *= (double)axes[i].out * (double)(axes[i].window ? axes[i].window : 1);
    if (total <= 0x1p48)
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT,
                      "all windows together have %g elements, expected at most 2^48",
                      total);
}

tn_status check_images(const tn_host *host, const char *input, const tn_type *type,
                       int32_t n, int64_t axis)
{
    static const char *const orders[2][MOST_SPATIAL] = {
        {"N, L, C", "N, H, W, C", "N, D, H, W, C"},
        {"N, C, L", "N, C, H, W", "N, C, D, H, W"},
    };
    char text[SHAPE_TEXT];
    tn_status status = check_float(host, input, type);
    if (status)
        return status;
    if (axis != 1 && axis != -1 && axis != n + 1)
        return host->fail(host, TN_ERR_ARGUMENT, "axis is %" PRId64 ", expected 1 or %d",
                          axis, n + 1);
    if (type->rank != n + 2)
        return host->fail(host, TN_ERR_ARGUMENT, "%s has shape %s, expected %d axes: %s",
                          input, shape_text(type, text), n + 2, orders[axis == 1][n - 1]);
    for (int32_t i = 0; i < type->rank; i++)
        if (type->extent[i] > INT32_MAX)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "%s has shape %s, expected extents of at most %d", input,
                              shape_text(type, text), INT32_MAX);
    return TN_OK;
}

tn_array *channels_last(const tn_build *build, tn_array *x, int32_t n, int64_t axis)
{
    return axis == 1 ? tn_move_axis(build, x, 1, n + 1) : x;
}

tn_array *channels_back(const tn_build *build, tn_array *x, int32_t n, int64_t axis)
{
    return axis == 1 ? tn_move_axis(build, x, n + 1, 1) : x;
}

tn_array *padded_images(const tn_build *build, tn_array *x, int32_t n,
                        const struct spatial axes[MOST_SPATIAL], double value)
{
    tn_ints before = {.count = (uint32_t)n + 2, .given = 1}, after = before;
    int64_t most = 0;
    for (int32_t i = 0; i < n; i++) {
        before.value[i + 1] = axes[i].before > 0 ? axes[i].before : 0;
        after.value[i + 1] = axes[i].after > 0 ? axes[i].after : 0;
        most |= before.value[i + 1] | after.value[i + 1];
    }
    if (most == 0)
        return x;
    return build->op(build, "base.pad_constant/1", TN_IN(x),
                     tn_attrs("before", (const tn_ints *)&before, "after",
                              (const tn_ints *)&after, "value", value));
}

tn_array *merge_batch(const tn_build *build, tn_array *x, int32_t axis, int64_t size)
{
    x = tn_batch_whole(build, x, axis, size);
    const tn_type *type = build->type(x);
    if (!type)
        return NULL;
    int64_t merged[4] = {size * type->extent[1], type->extent[2], type->extent[3],
                         type->extent[4]};
    return with_shape(build, "base.reshape/1", x, 4, merged);
}

tn_array *split_batch(const tn_build *build, tn_array *x, const tn_array *slice,
                      int64_t size)
{
    const int64_t *of = build->type(slice)->extent;
    int64_t extent[5] = {size, of[0], of[1], of[2], of[3]};
    return with_shape(build, "base.reshape/1", x, 5, extent);
}
