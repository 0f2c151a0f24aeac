// SPDX-License-Identifier: MIT
// Elements of channels as rows and columns, and back; windows of images as columns of a
// matrix, and sums of such columns. All are moves, gathers and scatters.
#include "images.h"
#include <tenon/ops/rules.h>

// Reshapes x to `from`, transposes it by `order`, and reshapes it to `to`.
static tn_array *nn_shuffle_rearranged(const tn_build *build, tn_array *x,
                                       const tn_ints *from, const tn_ints *order,
                                       const tn_ints *to)
{
    x = build->op(build, "base.reshape/1", TN_IN(x), tn_attrs("shape", from));
    x = build->op(build, "base.transpose/1", TN_IN(x), tn_attrs("axes", order));
    return build->op(build, "base.reshape/1", TN_IN(x), tn_attrs("shape", to));
}

// --- channels ---------------------------------------------------------------------------

typedef struct {
    int64_t factor, axis;
} shuffle_attrs;
#define SHUFFLE_FIELDS(name, text)                                                         \
    {                                                                                      \
        {#name, text, TN_ATTR_I64, TN_ATTR_REQUIRED, offsetof(shuffle_attrs, factor),      \
         0,     0.0,  NULL},                                                               \
            AXIS_FIELD(shuffle_attrs)                                                      \
    }
static const tn_attr_field pixel_shuffle_fields[] =
    SHUFFLE_FIELDS(upscale_factor, "how many rows and columns an element becomes");
static const tn_attr_field pixel_unshuffle_fields[] =
    SHUFFLE_FIELDS(downscale_factor, "how many rows and columns become an element");
static const tn_attr_field channel_shuffle_fields[] = {
    {"groups", "groups that channels are split into", TN_ATTR_I64, TN_ATTR_REQUIRED,
     offsetof(shuffle_attrs, factor), 0, 0.0, NULL},
    TN_I64_FIELD(shuffle_attrs, axis, -1, "of channels; PyTorch's is 1"),
};
static const tn_input_info images_input[] = {
    {"x", "N, H, W, C: channels last, or axis 1", 0, TN_FLOAT_DTYPES},
};

// Fails unless `factor`, squared where `is_square`, divides `extent`.
static tn_status check_divides(const tn_host *host, const char *name, int64_t factor,
                               int is_square, const char *what, int64_t extent)
{
    if (factor >= 1 && factor <= INT16_MAX &&
        extent % (is_square ? factor * factor : factor) == 0)
        return TN_OK;
    return host->fail(
        host, TN_ERR_ARGUMENT,
        "%s is %" PRId64 " and x has %" PRId64 " %s, expected %s that divides them", name,
        factor, extent, what,
        is_square ? "a number, 1 to 32767, with a square" : "a number, 1 to 32767,");
}

DECOMPOSE(pixel_shuffle)
{
    const shuffle_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    tn_status status = check_images(build->host, "x", x, 2, attrs->axis);
    int64_t r = attrs->factor;
    if (status == TN_OK)
        status = check_divides(build->host, "upscale_factor", r, 1, "channels",
                               x->extent[attrs->axis == 1 ? 1 : 3]);
    if (status)
        return status;
    const int64_t *e = x->extent;
    outputs[0] =
        attrs->axis == 1
            ? nn_shuffle_rearranged(build, rule->inputs[0],
                                    TN_INTS(e[0], e[1] / (r * r), r, r, e[2], e[3]),
                                    TN_INTS(0, 1, 4, 2, 5, 3),
                                    TN_INTS(e[0], e[1] / (r * r), e[2] * r, e[3] * r))
            : nn_shuffle_rearranged(build, rule->inputs[0],
                                    TN_INTS(e[0], e[1], e[2], e[3] / (r * r), r, r),
                                    TN_INTS(0, 1, 4, 2, 5, 3),
                                    TN_INTS(e[0], e[1] * r, e[2] * r, e[3] / (r * r)));
    return built(outputs[0]);
}

DECOMPOSE(pixel_unshuffle)
{
    const shuffle_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    tn_status status = check_images(build->host, "x", x, 2, attrs->axis);
    int64_t r = attrs->factor;
    int32_t row = attrs->axis == 1 ? 2 : 1;
    for (int32_t i = 0; i < 2 && status == TN_OK; i++)
        status = check_divides(build->host, "downscale_factor", r, 0,
                               i ? "columns" : "rows", x->extent[row + i]);
    if (status)
        return status;
    const int64_t *e = x->extent;
    outputs[0] =
        attrs->axis == 1
            ? nn_shuffle_rearranged(build, rule->inputs[0],
                                    TN_INTS(e[0], e[1], e[2] / r, r, e[3] / r, r),
                                    TN_INTS(0, 1, 3, 5, 2, 4),
                                    TN_INTS(e[0], e[1] * r * r, e[2] / r, e[3] / r))
            : nn_shuffle_rearranged(build, rule->inputs[0],
                                    TN_INTS(e[0], e[1] / r, r, e[2] / r, r, e[3]),
                                    TN_INTS(0, 1, 3, 5, 2, 4),
                                    TN_INTS(e[0], e[1] / r, e[2] / r, e[3] * r * r));
    return built(outputs[0]);
}

DECOMPOSE(channel_shuffle)
{
    const shuffle_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    tn_ints shape = tn_extents(build, rule->inputs[0]);
    int64_t before = 1, behind = 1, groups = attrs->factor;
    int32_t axis;
    tn_status status = axis_within(build->host, attrs->axis, x->rank, &axis);
    if (status == TN_OK)
        status =
            check_divides(build->host, "groups", groups, 0, "channels", x->extent[axis]);
    if (status)
        return status;
    for (int32_t i = 0; i < x->rank; i++)
        *(i < axis ? &before : &behind) *= i == axis ? 1 : x->extent[i];
    outputs[0] = nn_shuffle_rearranged(
        build, rule->inputs[0], TN_INTS(before, groups, x->extent[axis] / groups, behind),
        TN_INTS(0, 2, 1, 3), &shape);
    return built(outputs[0]);
}

COMPOSITE(pixel_shuffle, "pixel_shuffle/1",
          "Channels become rows and columns: less channels of larger images.",
          TN_INPUTS(images_input),
          .attrs = TN_ATTR_TABLE(shuffle_attrs, pixel_shuffle_fields));
COMPOSITE(pixel_unshuffle, "pixel_unshuffle/1",
          "Rows and columns become channels: the inverse of pixel_shuffle.",
          TN_INPUTS(images_input),
          .attrs = TN_ATTR_TABLE(shuffle_attrs, pixel_unshuffle_fields));
static const tn_input_info shuffled_input[] = {{"x", "the array", 0, TN_ALL_DTYPES}};
COMPOSITE(channel_shuffle, "channel_shuffle/1",
          "The first channel of each group, then the second one of each, ...",
          TN_INPUTS(shuffled_input),
          .attrs = TN_ATTR_TABLE(shuffle_attrs, channel_shuffle_fields));

// --- windows as columns -----------------------------------------------------------------

typedef struct {
    tn_ints output_size, window, dilation, padding, stride;
    int64_t axis;
} columns_attrs;
#define COLUMNS_FIELDS                                                                     \
    TN_REQUIRED_FIELD(columns_attrs, window, TN_ATTR_INTS,                                 \
                      "extents of a window, one for all or one an axis"),                  \
        TN_INTS_FIELD(columns_attrs, dilation, "distance of elements in a window; 1"),     \
        TN_INTS_FIELD(columns_attrs, padding,                                              \
                      "zeros around: one for all, one an axis, or two an axis; 0"),        \
        TN_INTS_FIELD(columns_attrs, stride, "distance of windows; 1"),                    \
        AXIS_FIELD(columns_attrs)
static const tn_attr_field unfold_fields[] = {COLUMNS_FIELDS};
static const tn_attr_field fold_fields[] = {
    TN_REQUIRED_FIELD(columns_attrs, output_size, TN_ATTR_INTS,
                      "extents of the result, one an axis"),
    COLUMNS_FIELDS,
};

// Reads the windows of `n` axes, whose window sizes are known.
static tn_status read_columns(const tn_build *build, const columns_attrs *attrs, int32_t n,
                              struct spatial axes[MOST_SPATIAL])
{
    const tn_host *host = build->host;
    int64_t window[MOST_SPATIAL], dilation[MOST_SPATIAL], stride[MOST_SPATIAL];
    tn_status status = read_numbers(host, "window", &attrs->window, n, 0, 1, window);
    if (status == TN_OK)
        status = read_numbers(host, "dilation", &attrs->dilation, n, 1, 1, dilation);
    if (status == TN_OK)
        status = read_numbers(host, "stride", &attrs->stride, n, 1, 1, stride);
    if (status == TN_OK)
        status = read_padding(host, &attrs->padding, n, axes);
    for (int32_t i = 0; i < n && status == TN_OK; i++) {
        struct spatial *a = &axes[i];
        *a = (struct spatial){a->size,  window[i],   stride[i], a->before,
                              a->after, dilation[i], 0};
        int64_t reach = (a->window - 1) * a->dilation + 1;
        int64_t room = a->size + a->before + a->after;
        if (reach > room || room > INT32_MAX)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "a window reaches over %" PRId64
                              " elements, expected no more than the %" PRId64
                              " of an axis with its padding, and these at most %d",
                              reach, room, INT32_MAX);
        a->out = (room - reach) / a->stride + 1;
    }
    return status ? status : check_elements(host, n, axes);
}

// The positions of each window's elements in the padded axis: windows, elements.
static tn_array *nn_shuffle_positions_of(const tn_build *build, const struct spatial *a)
{
    return build->expr(build, "i, k -> i * stride + k * dilation",
                       TN_IN(counted(build, a->out, 1), counted(build, a->window, 0)),
                       tn_attrs("stride", a->stride, "dilation", a->dilation));
}

// The order of axes from windows and elements in turns, o0, k0, o1, k1, ..., from axis
// `first` on, to that of columns: all windows behind all elements, or before them with
// channels last.
static tn_ints order_of_columns(int32_t n, int64_t axis)
{
    tn_ints order = {.given = 1};
    int32_t first = axis == 1 ? 2 : 1;
    order.value[order.count++] = 0;
    if (axis == 1)
        order.value[order.count++] = 1;
    for (int32_t half = 0; half < 2; half++) {
        for (int32_t i = 0; i < n; i++)
            order.value[order.count++] = first + 2 * i + (axis == 1 ? 1 - half : half);
        if (axis != 1 && half == 0)
            order.value[order.count++] = 2 * n + 1;
    }
    return order;
}

DECOMPOSE(unfold)
{
    const columns_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    const tn_type *type = build->type(x);
    int32_t n = type->rank >= 3 && type->rank <= 5 ? type->rank - 2 : 2;
    int32_t first = attrs->axis == 1 ? 2 : 1;
    struct spatial axes[MOST_SPATIAL] = {{0}};
    tn_status status = check_images(build->host, "x", type, n, attrs->axis);
    for (int32_t i = 0; i < n && status == TN_OK; i++)
        axes[i].size = type->extent[first + i];
    if (status == TN_OK)
        status = read_columns(build, attrs, n, axes);
    if (status)
        return status;
    int64_t windows = 1, rows = type->extent[attrs->axis == 1 ? 1 : n + 1];
    tn_ints before = {.count = (uint32_t)n + 2, .given = 1}, after = before;
    for (int32_t i = 0; i < n; i++) {
        before.value[first + i] = axes[i].before;
        after.value[first + i] = axes[i].after;
        windows *= axes[i].out;
        rows *= axes[i].window;
    }
    x = build->op(
        build, "base.pad_constant/1", TN_IN(x),
        tn_attrs("before", (const tn_ints *)&before, "after", (const tn_ints *)&after));
    for (int32_t i = n - 1; i >= 0; i--)
        x = build->op(build, "base.take/1",
                      TN_IN(x, nn_shuffle_positions_of(build, &axes[i])),
                      tn_attrs("axis", (int64_t)(first + i)));
    tn_ints order = order_of_columns(n, attrs->axis);
    x = build->op(build, "base.transpose/1", TN_IN(x),
                  tn_attrs("axes", (const tn_ints *)&order));
    outputs[0] = with_shape(build, "base.reshape/1", x, 3,
                            attrs->axis == 1 ? (int64_t[]){type->extent[0], rows, windows}
                                             : (int64_t[]){type->extent[0], windows, rows});
    return built(outputs[0]);
}

// The sum over windows at each position of the axes, without their padding: x is N, C, o0,
// k0, o1, k1, ... with channels at axis 1, else N, o0, k0, ..., C.
static tn_array *summed_windows(const tn_build *build, tn_array *x, int32_t n,
                                int32_t first, const struct spatial *axes)
{
    for (int32_t i = 0; i < n; i++) {
        const tn_type *type = build->type(x);
        if (!type)
            return NULL;
        int64_t shape[TN_MAX_RANK];
        int32_t rank = type->rank - 1, at = first + i;
        for (int32_t k = 0; k < rank; k++)
            shape[k] = type->extent[k < at ? k : k + 1];
        shape[at] = axes[i].size + axes[i].before + axes[i].after;
        x = build->op(build, "base.scatter_add/1",
                      TN_IN(zeros(build, type->dtype, rank, shape),
                            nn_shuffle_positions_of(build, &axes[i]), x),
                      tn_attrs("axis", (int64_t)at));
        x = part_of_axis(build, x, at, axes[i].before, 1, axes[i].size);
    }
    return x;
}

DECOMPOSE(fold)
{
    const columns_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    int32_t n = (int32_t)attrs->output_size.count, first = attrs->axis == 1 ? 2 : 1;
    int64_t size[MOST_SPATIAL] = {0}, windows = 1, elements = 1;
    struct spatial axes[MOST_SPATIAL] = {{0}};
    char text[SHAPE_TEXT];
    if (n < 1 || n > MOST_SPATIAL)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "output_size has %d values, expected 1 to %d, one an axis",
                                 n, MOST_SPATIAL);
    tn_status status = check_images(build->host, "x", x, 1, attrs->axis);
    if (status == TN_OK)
        status =
            read_numbers(build->host, "output_size", &attrs->output_size, n, 0, 1, size);
    for (int32_t i = 0; i < n && status == TN_OK; i++)
        axes[i].size = size[i];
    if (status == TN_OK)
        status = read_columns(build, attrs, n, axes);
    for (int32_t i = 0; i < n && status == TN_OK; i++) {
        windows *= axes[i].out;
        elements *= axes[i].window;
    }
    if (status)
        return status;
    int64_t rows = x->extent[3 - first], columns = x->extent[first];
    if (columns != windows || rows % elements)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "x has shape %s, expected %" PRId64
                                 " windows and a multiple of their %" PRId64 " elements",
                                 shape_text(x, text), windows, elements);
    tn_ints order = order_of_columns(n, attrs->axis), back = order, shape = order;
    const int64_t whole[2] = {x->extent[0], rows / elements};
    for (uint32_t k = 0; k < order.count; k++) {
        int64_t from = order.value[k];
        int32_t at = (int32_t)from - first;
        back.value[from] = k;
        shape.value[k] = from == 0               ? whole[0]
                         : at < 0 || at >= 2 * n ? whole[1]
                         : at % 2                ? axes[at / 2].window
                                                 : axes[at / 2].out;
    }
    tn_array *y = build->op(build, "base.reshape/1", TN_IN(rule->inputs[0]),
                            tn_attrs("shape", (const tn_ints *)&shape));
    tn_dtype wide = tn_dtype_computed(x->dtype), dtype = x->dtype;
    if (wide != dtype)
        y = cast(build, y, wide);
    y = build->op(build, "base.transpose/1", TN_IN(y),
                  tn_attrs("axes", (const tn_ints *)&back));
    y = summed_windows(build, y, n, first, axes);
    outputs[0] = wide != dtype ? cast(build, y, dtype) : y;
    return built(outputs[0]);
}

COMPOSITE(unfold, "unfold/1",
          "The elements of each window as a column, channel by channel.",
          TN_INPUTS(images_input), .attrs = TN_ATTR_TABLE(columns_attrs, unfold_fields));
static const tn_input_info fold_inputs[] = {
    {"x", "N, L, C * elements: of each window, or with channels at axis 1", 0,
     TN_FLOAT_DTYPES},
};
COMPOSITE(fold, "fold/1",
          "The sum of what windows have at each position: unfold's transpose.",
          TN_INPUTS(fold_inputs), .attrs = TN_ATTR_TABLE(columns_attrs, fold_fields));
