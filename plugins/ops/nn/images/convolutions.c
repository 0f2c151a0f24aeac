// SPDX-License-Identifier: MIT
// Convolutions of 1 to 3 dimensions and their transposes, by nn.conv2d/1, which has the
// kernels: a vector is an image of one row, and a filter's depth becomes channels.
#include "images.h"
#include <tenon/ops/rules.h>

typedef struct {
    tn_ints stride, padding, dilation, input_dilation;
    int64_t groups, flip, axis;
} convolution_attrs;

typedef struct {
    tn_ints stride, padding, output_padding, dilation;
    int64_t groups, flip, axis;
} transpose_attrs;

#define CONVOLUTION_FIELDS(type)                                                           \
    TN_INTS_FIELD(type, stride, "distance of windows, one for all or one an axis; 1"),     \
        TN_INTS_FIELD(type, padding,                                                       \
                      "zeros around: one for all, one an axis, or two an axis; 0"),        \
        TN_INTS_FIELD(type, dilation, "distance of elements in a window; 1")
#define FURTHER_FIELDS(type)                                                               \
    TN_I64_FIELD(type, groups, 1, "groups that channels and filters are split into"),      \
        TN_BOOL_FIELD(type, flip, 0, "filters are turned round: a convolution proper"),    \
        AXIS_FIELD(type)

static const tn_attr_field convolution_fields[] = {
    CONVOLUTION_FIELDS(convolution_attrs),
    TN_INTS_FIELD(convolution_attrs, input_dilation,
                  "distance of x's elements, with zeros between; 1"),
    FURTHER_FIELDS(convolution_attrs),
};
static const tn_attr_field transpose_fields[] = {
    CONVOLUTION_FIELDS(transpose_attrs),
    TN_INTS_FIELD(transpose_attrs, output_padding, "elements behind the result; 0"),
    FURTHER_FIELDS(transpose_attrs),
};
static const tn_input_info convolution_inputs[] = {
    {"x", "N, ..., C: channels last, or axis 1", 0, TN_FLOAT_DTYPES},
    {"w", "O, ..., C / groups: filters, channels where x has them", 0, TN_FLOAT_DTYPES},
    {"bias", "O: added to each filter's result", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
};
static const tn_input_info transpose_inputs[] = {
    {"x", "N, ..., C: channels last, or axis 1", 0, TN_FLOAT_DTYPES},
    {"w", "C, ..., O / groups: filters, channels where x has them", 0, TN_FLOAT_DTYPES},
    {"bias", "O: added to each filter's result", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
};

// --- numbers ----------------------------------------------------------------------------

// Reads the lists that both kinds share, and the filters' extents, channels last or not.
static tn_status read_lists(const tn_build *build, const tn_ints *const lists[3],
                            const tn_type *w, int32_t n, int64_t axis,
                            struct spatial axes[MOST_SPATIAL])
{
    int64_t stride[MOST_SPATIAL], dilation[MOST_SPATIAL];
    tn_status status = read_numbers(build->host, "stride", lists[0], n, 1, 1, stride);
    if (status == TN_OK)
        status = read_padding(build->host, lists[1], n, axes);
    if (status == TN_OK)
        status = read_numbers(build->host, "dilation", lists[2], n, 1, 1, dilation);
    for (int32_t i = 0; i < n && status == TN_OK; i++) {
        axes[i].stride = stride[i];
        axes[i].dilation = dilation[i];
        axes[i].window = w->extent[i + (axis == 1 ? 2 : 1)];
        if (axes[i].window < 1)
            return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                     "w has no elements, expected at least 1 along axis %d",
                                     i + (axis == 1 ? 2 : 1));
    }
    return status;
}

static tn_status check_convolution(const tn_build *build, const tn_rule *rule, int32_t n,
                                   int64_t axis)
{
    const tn_type *x = build->type(rule->inputs[0]), *w = build->type(rule->inputs[1]);
    tn_status status = check_images(build->host, "x", x, n, axis);
    if (status == TN_OK)
        status = check_dtype(build->host, "w", w, x->dtype);
    return status == TN_OK ? check_images(build->host, "w", w, n, axis) : status;
}

// Inserts `steps` - 1 zeros between the elements of x along each axis.
static tn_status spread_elements(const tn_build *build, tn_array **x, int32_t n,
                                 const int64_t *steps)
{
    for (int32_t i = 0; i < n; i++) {
        const tn_type *type = build->type(*x);
        if (!type)
            return TN_ERR_ARGUMENT;
        int64_t size = type->extent[i + 1];
        if (steps[i] == 1 || size < 2)
            continue;
        if (size > INT32_MAX / steps[i])
            return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                     "input_dilation is %" PRId64 ", too much for %" PRId64
                                     " elements",
                                     steps[i], size);
        tn_ints none = {.count = (uint32_t)n + 3, .given = 1}, zeros_behind = none;
        zeros_behind.value[i + 2] = steps[i] - 1;
        tn_ints shape = tn_extents(build, *x);
        tn_array *apart = build->op(build, "base.expand_dims/1", TN_IN(*x),
                                    tn_attrs("axis", TN_INTS((int64_t)i + 2)));
        apart = build->op(build, "base.pad_constant/1", TN_IN(apart),
                          tn_attrs("before", (const tn_ints *)&none, "after",
                                   (const tn_ints *)&zeros_behind));
        shape.value[i + 1] = size * steps[i];
        apart = with_shape(build, "base.reshape/1", apart, n + 2, shape.value);
        *x = part_of_axis(build, apart, i + 1, 0, 1, (size - 1) * steps[i] + 1);
    }
    return TN_OK;
}

// --- channels last ----------------------------------------------------------------------

// Applies nn.conv2d/1 along the last two of `axes`, or to a vector as an image of one row.
static tn_array *image_conv_convolved(const tn_build *build, tn_array *x, tn_array *w,
                                      tn_array *bias, int32_t n, const struct spatial *axes,
                                      int64_t groups)
{
    struct spatial row = {.window = 1, .stride = 1, .dilation = 1};
    const struct spatial *r = n == 1 ? &row : &axes[0], *c = n == 1 ? &axes[0] : &axes[1];
    tn_array *in[3] = {x, w, bias};
    return build->op(build, "nn.conv2d/1", (const tn_array *const *)in, bias ? 3 : 2,
                     tn_attrs("stride", TN_INTS(r->stride, c->stride), "padding",
                              TN_INTS(r->before, c->before), "dilation",
                              TN_INTS(r->dilation, c->dilation), "groups", groups));
}

// Merges axes `first` and the next one of an array of rank `rank`, or inserts an axis of
// extent 1 in front of `first`.
static tn_array *merged_axes(const tn_build *build, tn_array *x, int32_t first)
{
    tn_ints shape = tn_extents(build, x);
    if (shape.count == 0)
        return NULL;
    shape.value[first] *= shape.value[first + 1];
    for (uint32_t i = (uint32_t)first + 1; i + 1 < shape.count; i++)
        shape.value[i] = shape.value[i + 1];
    return with_shape(build, "base.reshape/1", x, (int32_t)shape.count - 1, shape.value);
}

static tn_array *with_row(const tn_build *build, tn_array *x)
{
    return build->op(build, "base.expand_dims/1", TN_IN(x), tn_attrs("axis", TN_INTS(1)));
}

// The images at one position of the filters' depth: N, oD, H, W, C.
static tn_array *depth_part(const tn_build *build, tn_array *x, const struct spatial *depth,
                            int64_t at)
{
    return part_of_axis(build, x, 1, at * depth->dilation, depth->stride, depth->out);
}

// Convolves each channel by itself: the sum over positions of the filters' depth.
static tn_array *convolved_by_depth(const tn_build *build, tn_array *x, tn_array *w,
                                    const struct spatial *axes, int64_t groups)
{
    tn_array *sum = NULL;
    for (int64_t k = 0; k < axes[0].window; k++) {
        tn_array *images = merged_axes(build, depth_part(build, x, &axes[0], k), 0);
        tn_array *filters = merged_axes(build, part_of_axis(build, w, 1, k, 1, 1), 0);
        tn_array *term =
            image_conv_convolved(build, images, filters, NULL, 2, &axes[1], groups);
        sum = sum ? add(build, sum, term) : term;
    }
    return sum;
}

// Positions of the filters' depth side by side as channels: N * oD, H, W, groups * kD * C /
// groups. `by_planes`: x is N, D, C, H, W, and planes are joined and then transposed, as
// pixels of few channels would be copied a few bytes at a time.
static tn_array *depth_as_channels(const tn_build *build, tn_array *x,
                                   const struct spatial *depth, int64_t groups,
                                   int by_planes)
{
    const tn_type *type = build->type(x);
    tn_array *parts[64];
    if (!type)
        return NULL;
    int32_t of_c = by_planes ? 2 : 4, of_h = by_planes ? 3 : 2;
    const int64_t *e = type->extent, channels = e[of_c] / groups;
    // Rows and columns are one axis, so that nested batches have room for their axes.
    const int64_t pixels = e[of_h] * e[of_h + 1];
    const int64_t split[2][5] = {{e[0], e[1], pixels, groups, channels},
                                 {e[0], e[1], groups, channels, pixels}};
    x = with_shape(build, "base.reshape/1", x, 5, split[by_planes]);
    for (int64_t k = 0; k < depth->window; k++)
        parts[k] = depth_part(build, x, depth, k);
    tn_array *all =
        build->op(build, "base.stack/1", (const tn_array *const *)parts,
                  (uint64_t)depth->window, tn_attrs("axis", (int64_t)(by_planes ? 3 : 4)));
    const int64_t count = e[0] * depth->out, wide = groups * depth->window * channels;
    const int64_t joined[2][4] = {{count, e[of_h], e[of_h + 1], wide},
                                  {count, wide, e[of_h], e[of_h + 1]}};
    all = with_shape(build, "base.reshape/1", all, 4, joined[by_planes]);
    return by_planes ? tn_move_axis(build, all, 1, 3) : all;
}

static tn_array *convolved_in_depth(const tn_build *build, tn_array *x, tn_array *w,
                                    tn_array *bias, const struct spatial *axes,
                                    int64_t groups, int by_planes)
{
    const tn_type *of_x = build->type(x), *of_w = build->type(w);
    if (!of_x || !of_w)
        return NULL;
    int64_t images = of_x->extent[0], filters = of_w->extent[0];
    tn_array *out;
    if (of_w->extent[4] == 1 || axes[0].window > 64) {
        out = convolved_by_depth(build, x, w, axes, groups);
        if (out && bias)
            out = add(build, out, bias);
    } else {
        int64_t shape[4] = {filters, axes[1].window, axes[2].window,
                            axes[0].window * of_w->extent[4]};
        w = with_shape(build, "base.reshape/1", tn_move_axis(build, w, 1, 3), 4, shape);
        x = depth_as_channels(build, x, &axes[0], groups, by_planes);
        out = image_conv_convolved(build, x, w, bias, 2, &axes[1], groups);
    }
    const tn_type *type = build->type(out);
    if (!type)
        return NULL;
    int64_t shape[5] = {images, axes[0].out, type->extent[1], type->extent[2], filters};
    return with_shape(build, "base.reshape/1", out, 5, shape);
}

// Counts the windows of an axis; fails where there is none.
static tn_status image_conv_count_windows(const tn_build *build, const tn_array *x,
                                          int32_t n, struct spatial *axes)
{
    const tn_type *type = build->type(x);
    if (!type)
        return TN_ERR_ARGUMENT;
    for (int32_t i = 0; i < n; i++) {
        int64_t reach = axes[i].dilation * (axes[i].window - 1) + 1;
        int64_t room = type->extent[i + 1] + axes[i].before + axes[i].after;
        axes[i].size = type->extent[i + 1];
        if (reach > room)
            return build->host->fail(
                build->host, TN_ERR_ARGUMENT,
                "w has %" PRId64 " elements along %c, which reach over "
                "%" PRId64 ", expected no more than the %" PRId64 " of x with its padding",
                axes[i].window, letter_of(n, i), reach, room);
        axes[i].out = (room - reach) / axes[i].stride + 1;
    }
    return TN_OK;
}

// Whether to copy planes in place of pixels (depth_as_channels): 8 channels are half a
// cache line. Zeros are then written along the depth alone.
static int image_conv_has_few_channels(const tn_build *build, const tn_array *w,
                                       const struct spatial *written)
{
    const tn_type *type = build->type(w);
    const int64_t *e = type ? type->extent : NULL;
    return e && e[4] > 1 && e[4] <= 8 && e[1] > 1 && e[1] <= 64 &&
           written[1].before + written[1].after + written[2].before + written[2].after == 0;
}

// Convolves x and w, channels last. Equal padding on both sides of rows and columns is left
// to the kernels; other zeros are written.
static tn_status convolve_images(const tn_build *build, tn_array *x, tn_array *w,
                                 tn_array *bias, int32_t n,
                                 const struct spatial given[MOST_SPATIAL], int64_t groups,
                                 tn_array **out)
{
    struct spatial axes[MOST_SPATIAL], written[MOST_SPATIAL];
    memcpy(axes, given, sizeof(axes));
    tn_status status = image_conv_count_windows(build, x, n, axes);
    if (status)
        return status;
    memcpy(written, axes, sizeof(axes));
    for (int32_t i = 0; i < n; i++)
        if (axes[i].before == axes[i].after && (n < 3 || i > 0))
            written[i].before = written[i].after = 0;
        else
            axes[i].before = axes[i].after = 0;
    int by_planes = n == 3 && image_conv_has_few_channels(build, w, written);
    x = padded_images(build, by_planes ? tn_move_axis(build, x, 4, 2) : x, n, written, 0);
    if (n == 3)
        *out = convolved_in_depth(build, x, w, bias, axes, groups, by_planes);
    else if (n == 2)
        *out = image_conv_convolved(build, x, w, bias, n, axes, groups);
    else
        *out = merged_axes(build,
                           image_conv_convolved(build, with_row(build, x),
                                                with_row(build, w), bias, n, axes, groups),
                           0);
    return built(*out);
}

// --- convolutions -----------------------------------------------------------------------

static tn_array *turned_filters(const tn_build *build, tn_array *w, int32_t n, int64_t flip)
{
    const tn_ints axes = {(uint32_t)n, 1, {1, 2, 3}};
    return flip ? build->op(build, "base.flip/1", TN_IN(w), tn_attrs("axis", &axes)) : w;
}

static tn_status check_groups_of(const tn_build *build, int64_t groups, int64_t channels,
                                 int64_t expected, int64_t filters)
{
    if (groups >= 1 && channels % groups == 0 && channels / groups == expected &&
        filters % groups == 0)
        return TN_OK;
    return build->host->fail(build->host, TN_ERR_ARGUMENT,
                             "x has %" PRId64 " channels, w takes %" PRId64
                             " and has %" PRId64 " filters: expected groups of them, "
                             "groups is %" PRId64,
                             channels, expected, filters, groups);
}

static tn_status check_bias(const tn_build *build, const tn_rule *rule, int64_t filters)
{
    const tn_type *x = build->type(rule->inputs[0]);
    if (rule->num_inputs < 3 || !rule->inputs[2])
        return TN_OK;
    const tn_type *bias = build->type(rule->inputs[2]);
    tn_status status = check_dtype(build->host, "bias", bias, x->dtype);
    return status ? status : check_extents(build->host, "bias", bias, 1, &filters);
}

static tn_status image_conv_convolution(const tn_build *build, const tn_rule *rule,
                                        int32_t n, tn_array **outputs)
{
    const convolution_attrs *attrs = rule->attrs;
    const tn_type *of_x = build->type(rule->inputs[0]),
                  *of_w = build->type(rule->inputs[1]);
    const tn_ints *lists[3] = {&attrs->stride, &attrs->padding, &attrs->dilation};
    struct spatial axes[MOST_SPATIAL] = {{0}};
    int64_t steps[MOST_SPATIAL];
    int32_t at = attrs->axis == 1 ? 1 : n + 1;
    tn_status status = check_convolution(build, rule, n, attrs->axis);
    if (status == TN_OK)
        status = read_lists(build, lists, of_w, n, attrs->axis, axes);
    if (status == TN_OK)
        status = read_numbers(build->host, "input_dilation", &attrs->input_dilation, n, 1,
                              1, steps);
    if (status == TN_OK)
        status = check_groups_of(build, attrs->groups, of_x->extent[at], of_w->extent[at],
                                 of_w->extent[0]);
    if (status == TN_OK)
        status = check_bias(build, rule, of_w->extent[0]);
    if (status)
        return status;
    tn_array *x = channels_last(build, rule->inputs[0], n, attrs->axis);
    tn_array *w = channels_last(build, rule->inputs[1], n, attrs->axis);
    status = spread_elements(build, &x, n, steps);
    if (status == TN_OK)
        status = convolve_images(build, x, turned_filters(build, w, n, attrs->flip),
                                 rule->num_inputs > 2 ? rule->inputs[2] : NULL, n, axes,
                                 attrs->groups, outputs);
    if (status == TN_OK)
        outputs[0] = channels_back(build, outputs[0], n, attrs->axis);
    return status ? status : built(outputs[0]);
}

// --- transposes -------------------------------------------------------------------------

// The extents of a result that a convolution with the same attributes takes to x's.
// output_padding beyond a stride reduces the padding, and then adds `zeros` without a
// window. *is_nothing: no window reaches the result.
static tn_status find_sources(const tn_build *build, const tn_type *x, int32_t n,
                              const int64_t *more, struct spatial *axes, int64_t *zeros,
                              int *is_nothing)
{
    for (int32_t i = 0; i < n; i++) {
        struct spatial *a = &axes[i];
        double most = ((double)x->extent[i + 1] - 1) * (double)a->stride +
                      (double)a->dilation * (double)(a->window - 1) + 1 + (double)more[i];
        if (x->extent[i + 1] < 1 || most > INT32_MAX)
            return build->host->fail(
                build->host, TN_ERR_ARGUMENT,
                "x has %" PRId64
                " elements along %c, expected at least 1, and at most %d of the result",
                x->extent[i + 1], letter_of(n, i), INT32_MAX);
        int64_t beyond = more[i] - more[i] % a->stride, around = a->before + a->after;
        int64_t less = beyond < a->after ? beyond : a->after;
        if (around >= (int64_t)most)
            return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                     "padding is %" PRId64 " and %" PRId64
                                     " along %c, and nothing is left of the result: "
                                     "expected less than %" PRId64 " together",
                                     a->before, a->after, letter_of(n, i), (int64_t)most);
        a->after -= less;
        zeros[i] = beyond - less;
        a->size = (int64_t)most - around - zeros[i];
        *is_nothing |= a->size < 1;
    }
    return TN_OK;
}

// Applies nn.conv2d_input/1 as image_conv_convolved() does nn.conv2d/1.
static tn_array *spread_out(const tn_build *build, tn_array *x, tn_array *w, int32_t n,
                            const struct spatial *axes, int64_t groups)
{
    struct spatial row = {.size = 1, .window = 1, .stride = 1, .dilation = 1};
    const struct spatial *r = n == 1 ? &row : &axes[0], *c = n == 1 ? &axes[0] : &axes[1];
    return build->op(build, "nn.conv2d_input/1", TN_IN(x, w),
                     tn_attrs("stride", TN_INTS(r->stride, c->stride), "padding",
                              TN_INTS(r->before, c->before), "dilation",
                              TN_INTS(r->dilation, c->dilation), "groups", groups, "extent",
                              TN_INTS(r->size, c->size)));
}

// Adds `part`, N, oD, H, W, C, to zeros of the whole depth, where depth_part() reads it.
static tn_array *depth_scattered(const tn_build *build, tn_array *part,
                                 const struct spatial *depth, int64_t at)
{
    const tn_type *type = build->type(part);
    if (!type)
        return NULL;
    tn_ints start = {.count = 2, .given = 1, .value = {TN_SLICE_END, at * depth->dilation}};
    tn_ints stop = start, step = start;
    int64_t whole[5];
    memcpy(whole, type->extent, sizeof(whole));
    whole[1] = depth->size;
    stop.value[1] = start.value[1] + (depth->out - 1) * depth->stride + 1;
    step.value[1] = depth->stride;
    return build->op(build, "base.slice_update/1",
                     TN_IN(zeros(build, type->dtype, 5, whole), part),
                     tn_attrs("start", (const tn_ints *)&start, "stop",
                              (const tn_ints *)&stop, "step", (const tn_ints *)&step));
}

// The channels, of N * oD, H, W, groups * kD * C / groups, that depth_as_channels() made
// from one position of the filters' depth, as images.
static tn_array *channels_of_depth(const tn_build *build, tn_array *x, int64_t positions,
                                   int64_t groups, int64_t at)
{
    tn_ints shape = tn_extents(build, x);
    if (shape.count != 4)
        return NULL;
    int64_t channels = shape.value[3] / positions;
    int64_t split[6] = {shape.value[0], shape.value[1], shape.value[2],
                        groups,         positions,      channels / groups};
    x = part_of_axis(build, with_shape(build, "base.reshape/1", x, 6, split), 4, at, 1, 1);
    shape.value[3] = channels;
    return with_shape(build, "base.reshape/1", x, 4, shape.value);
}

static tn_array *spread_in_depth(const tn_build *build, tn_array *x, tn_array *w,
                                 const struct spatial *axes, int64_t groups)
{
    const tn_type *of_x = build->type(x), *of_w = build->type(w);
    if (!of_x || !of_w)
        return NULL;
    int by_depth = of_w->extent[4] == 1 || axes[0].window > 64;
    int64_t channels = of_w->extent[4], images = of_x->extent[0];
    int64_t shape[4] = {of_w->extent[0], axes[1].window, axes[2].window,
                        axes[0].window * channels};
    int64_t volume[5] = {images, axes[0].out, axes[1].size, axes[2].size,
                         channels * groups};
    tn_array *sum = NULL, *all = NULL, *g = merged_axes(build, x, 0);
    if (!by_depth) {
        tn_array *filters =
            with_shape(build, "base.reshape/1", tn_move_axis(build, w, 1, 3), 4, shape);
        all = spread_out(build, g, filters, 2, &axes[1], groups);
    }
    for (int64_t k = 0; k < axes[0].window; k++) {
        tn_array *part =
            by_depth ? spread_out(build, g,
                                  merged_axes(build, part_of_axis(build, w, 1, k, 1, 1), 0),
                                  2, &axes[1], groups)
                     : channels_of_depth(build, all, axes[0].window, groups, k);
        part = depth_scattered(build, with_shape(build, "base.reshape/1", part, 5, volume),
                               &axes[0], k);
        sum = sum ? add(build, sum, part) : part;
    }
    return sum;
}

// The transpose of convolve_images(), for images with the extents in `given`: cuts off the
// zeros that convolve_images() writes.
static tn_status image_conv_transposed(const tn_build *build, tn_array *x, tn_array *w,
                                       int32_t n, const struct spatial *given,
                                       int64_t groups, tn_array **out)
{
    const tn_type *type = build->type(x);
    struct spatial axes[MOST_SPATIAL];
    int64_t first[MOST_SPATIAL] = {0};
    if (!type)
        return TN_ERR_ARGUMENT;
    memcpy(axes, given, sizeof(axes));
    for (int32_t i = 0; i < n; i++) {
        axes[i].out = type->extent[i + 1];
        if (axes[i].before == axes[i].after && (n < 3 || i > 0))
            continue;
        first[i] = axes[i].before;
        axes[i].size += axes[i].before + axes[i].after;
        axes[i].before = 0;
    }
    *out = n == 3   ? spread_in_depth(build, x, w, axes, groups)
           : n == 2 ? spread_out(build, x, w, n, axes, groups)
                    : merged_axes(build,
                                  spread_out(build, with_row(build, x), with_row(build, w),
                                             n, axes, groups),
                                  0);
    for (int32_t i = 0; i < n; i++)
        if (axes[i].size != given[i].size)
            *out = part_of_axis(build, *out, i + 1, first[i], 1, given[i].size);
    return built(*out);
}

// A result that no window reaches.
static tn_array *nothing_but_zeros(const tn_build *build, const tn_type *x, int32_t n,
                                   const struct spatial *axes, int64_t *behind,
                                   int64_t filters)
{
    int64_t shape[5] = {x->extent[0]};
    for (int32_t i = 0; i < n; i++) {
        shape[i + 1] = axes[i].size + behind[i];
        behind[i] = 0;
    }
    shape[n + 1] = filters;
    return zeros(build, x->dtype, n + 2, shape);
}

static tn_status convolution_transpose(const tn_build *build, const tn_rule *rule,
                                       int32_t n, tn_array **outputs)
{
    const transpose_attrs *attrs = rule->attrs;
    const tn_type *of_x = build->type(rule->inputs[0]),
                  *of_w = build->type(rule->inputs[1]);
    const tn_ints *lists[3] = {&attrs->stride, &attrs->padding, &attrs->dilation};
    struct spatial axes[MOST_SPATIAL] = {{0}};
    int64_t more[MOST_SPATIAL], zeros_behind[MOST_SPATIAL];
    int is_nothing = 0;
    int32_t at = attrs->axis == 1 ? 1 : n + 1;
    tn_status status = check_convolution(build, rule, n, attrs->axis);
    if (status == TN_OK)
        status = read_lists(build, lists, of_w, n, attrs->axis, axes);
    if (status == TN_OK)
        status = read_numbers(build->host, "output_padding", &attrs->output_padding, n, 0,
                              0, more);
    if (status == TN_OK && (attrs->groups < 1 || of_w->extent[0] % attrs->groups ||
                            of_w->extent[0] != of_x->extent[at] ||
                            of_w->extent[at] > INT32_MAX / attrs->groups))
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "x has %" PRId64 " channels, w takes %" PRId64
                                 ": expected as many, in groups, and groups is %" PRId64,
                                 of_x->extent[at], of_w->extent[0], attrs->groups);
    if (status == TN_OK)
        status = check_bias(build, rule, of_w->extent[at] * attrs->groups);
    if (status)
        return status;
    tn_array *x = channels_last(build, rule->inputs[0], n, attrs->axis);
    tn_array *w = channels_last(build, rule->inputs[1], n, attrs->axis);
    of_x = build->type(x);
    if (!of_x)
        return TN_ERR_ARGUMENT;
    status = find_sources(build, of_x, n, more, axes, zeros_behind, &is_nothing);
    if (status == TN_OK && is_nothing)
        outputs[0] = nothing_but_zeros(build, of_x, n, axes, zeros_behind,
                                       of_w->extent[at] * attrs->groups);
    else if (status == TN_OK)
        status = image_conv_transposed(build, x, turned_filters(build, w, n, attrs->flip),
                                       n, axes, attrs->groups, outputs);
    if (status)
        return status;
    for (int32_t i = 0; i < n; i++) {
        axes[i].before = 0;
        axes[i].after = zeros_behind[i];
    }
    outputs[0] = padded_images(build, outputs[0], n, axes, 0);
    if (rule->num_inputs > 2 && rule->inputs[2])
        outputs[0] = add(build, outputs[0], rule->inputs[2]);
    outputs[0] = channels_back(build, outputs[0], n, attrs->axis);
    return built(outputs[0]);
}

// --- records ----------------------------------------------------------------------------

#define CONVOLUTION(name, id, n, sentence)                                                 \
    DECOMPOSE(name)                                                                        \
    {                                                                                      \
        return image_conv_convolution(build, rule, n, outputs);                            \
    }                                                                                      \
    COMPOSITE(name, id, sentence, TN_INPUTS(convolution_inputs),                           \
              .attrs = TN_ATTR_TABLE(convolution_attrs, convolution_fields))
#define TRANSPOSE(name, id, n, sentence)                                                   \
    DECOMPOSE(name)                                                                        \
    {                                                                                      \
        return convolution_transpose(build, rule, n, outputs);                             \
    }                                                                                      \
    COMPOSITE(name, id, sentence, TN_INPUTS(transpose_inputs),                             \
              .attrs = TN_ATTR_TABLE(transpose_attrs, transpose_fields))

CONVOLUTION(conv1d, "conv1d/1", 1, "Cross-correlation of vectors, N, L, C, with filters.");
CONVOLUTION(conv2d_2, "conv2d/2", 2,
            "Cross-correlation of images, N, H, W, C, with filters.");
CONVOLUTION(conv3d, "conv3d/1", 3,
            "Cross-correlation of volumes, N, D, H, W, C, with filters.");
TRANSPOSE(conv_transpose1d, "conv_transpose1d/1", 1,
          "The transpose of conv1d: as its gradient, of filters C, L, O / groups.");
TRANSPOSE(conv_transpose2d, "conv_transpose2d/1", 2,
          "The transpose of conv2d: as its gradient, of filters C, H, W, O / groups.");
TRANSPOSE(conv_transpose3d, "conv_transpose3d/1", 3,
          "The transpose of conv3d: as its gradient, of filters C, D, H, W, O / groups.");
