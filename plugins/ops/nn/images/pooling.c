// SPDX-License-Identifier: MIT
// Pooling of 1 to 3 dimensions by nn.max_pool2d/1 and nn.mean_pool2d/1, which have the
// kernels: a vector is an image of one row, and a volume is pooled plane by plane, then in
// depth. Channels in front are images of one channel.
#include "maxima.h"
#include <tenon/ops/rules.h>

typedef struct {
    tn_ints window, stride, padding;
    int64_t ceil_mode, axis;
    tn_ints dilation;
} max_attrs;

typedef struct {
    tn_ints window, stride, padding;
    int64_t ceil_mode, count_include_pad, divisor_override, axis;
} avg_attrs;

typedef struct {
    tn_ints output_size;
    int64_t axis;
} adaptive_attrs;

typedef struct {
    int64_t axis, keepdims;
} global_attrs;

// The kind and the results of a pooling.
struct pooling {
    int is_max, with_indices;
    int64_t count_padding, divisor; // of means: whether padding counts; given divisor
};

// --- planes -----------------------------------------------------------------------------

// Applies nn.max_pool2d/1, channels last. Borders that it does not support are written.
static tn_array *max_plane(const tn_build *build, tn_array *x,
                           const struct spatial plane[2])
{
    struct spatial border[MOST_SPATIAL] = {{0}};
    int64_t inside[2];
    for (int i = 0; i < 2; i++) {
        const struct spatial *a = &plane[i];
        int64_t end = (a->out - 1) * a->stride + a->window - a->before;
        inside[i] = a->before * 2 <= a->window && a->before == a->after &&
                    end <= a->size + a->before;
        if (!inside[i])
            border[i] = (struct spatial){.before = a->before, .after = end - a->size};
    }
    x = padded_images(build, x, 2, border, -INFINITY);
    return build->op(build, "nn.max_pool2d/1", TN_IN(x),
                     tn_attrs("window", TN_INTS(plane[0].window, plane[1].window), "stride",
                              TN_INTS(plane[0].stride, plane[1].stride), "padding",
                              TN_INTS(inside[0] ? plane[0].before : 0,
                                      inside[1] ? plane[1].before : 0)));
}

static tn_array *pooled_plane(const tn_build *build, tn_array *x,
                              const struct spatial plane[2], const struct pooling *how)
{
    const struct spatial *r = &plane[0], *c = &plane[1];
    if (how->is_max)
        return max_plane(build, x, plane);
    return build->op(
        build, "nn.mean_pool2d/1", TN_IN(x),
        tn_attrs("window", TN_INTS(r->window, c->window), "stride",
                 TN_INTS(r->stride, c->stride), "before", TN_INTS(r->before, c->before),
                 "after", TN_INTS(r->after, c->after), "extent", TN_INTS(r->out, c->out),
                 "count_padding", how->count_padding, "divisor", how->divisor));
}

static const struct spatial whole_axis = {.size = 1, .window = 1, .stride = 1, .out = 1};

// Pools x, of `images`, n axes and `channels`, along all n axes.
static tn_array *pooled_axes(const tn_build *build, tn_array *x, int64_t images,
                             int64_t channels, int32_t n, const struct spatial *axes,
                             const struct pooling *how)
{
    const struct spatial *d = &axes[0], *h = &axes[n == 3], *w = &axes[n - 1];
    struct spatial plane[2] = {n == 1 ? whole_axis : *h, *w};
    int64_t in[4] = {n == 3 ? images * d->size : images, plane[0].size, plane[1].size,
                     channels};
    x = pooled_plane(build, with_shape(build, "base.reshape/1", x, 4, in), plane, how);
    if (n == 3) {
        struct pooling then = *how;
        struct spatial deep[2] = {*d, whole_axis};
        int64_t planes[4] = {images, d->size, h->out * w->out, channels};
        deep[1].size = deep[1].out = planes[2];
        then.divisor = how->divisor ? 1 : 0;
        x = pooled_plane(build, with_shape(build, "base.reshape/1", x, 4, planes), deep,
                         &then);
    }
    return x;
}

// The extents of x, and of the result: images, n axes, channels. Channels in front of the
// axes become images of one channel.
struct ends {
    int64_t images, channels; // of the planes
    tn_ints shape;            // of x, and later of the result
    int32_t first;            // of the n axes
};

static struct ends ends_of(const tn_build *build, const tn_array *x, int32_t n,
                           int64_t axis)
{
    struct ends ends = {.shape = tn_extents(build, x), .first = axis == 1 ? 2 : 1};
    const int64_t *e = ends.shape.value;
    ends.images = axis == 1 ? e[0] * e[1] : e[0];
    ends.channels = axis == 1 ? 1 : e[n + 1];
    return ends;
}

static tn_array *with_ends(const tn_build *build, tn_array *x, struct ends *ends, int32_t n,
                           const struct spatial *axes)
{
    for (int32_t i = 0; i < n; i++)
        ends->shape.value[ends->first + i] = axes[i].out;
    return with_shape(build, "base.reshape/1", x, n + 2, ends->shape.value);
}

// --- windows of one extent --------------------------------------------------------------

// Counts the windows of an axis: whole ones, and with `ceil_mode` also partial ones that
// begin in x or in the zeros before it. The first window is whole unless the stride exceeds
// it.
static tn_status nn_pooling_count_windows(const tn_build *build, struct spatial *a,
                                          int64_t ceil_mode)
{
    int64_t room = a->size + a->before + a->after;
    int64_t reach = (a->window - 1) * a->dilation + 1;
    if (a->before * 2 > reach || a->after * 2 > reach)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "padding is %" PRId64 " and %" PRId64
                                 ", expected at most half of the window's %" PRId64,
                                 a->before, a->after, reach);
    if (a->size < 1 || reach - room >= (ceil_mode ? a->stride : 1))
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "window is %" PRId64 ", expected no more than the %" PRId64
                                 " elements of x with its padding, of which x has one",
                                 reach, room);
    if (a->size < a->dilation && (a->before || a->after || ceil_mode))
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "dilation is %" PRId64 ", expected at most the %" PRId64
                                 " elements of x, so that each window has one",
                                 a->dilation, a->size);
    a->out = (room - reach + (ceil_mode ? a->stride - 1 : 0)) / a->stride + 1;
    if (ceil_mode && (a->out - 1) * a->stride >= a->size + a->before)
        a->out--;
    return TN_OK;
}

// The greatest elements of windows that have gaps, and, if wanted, their positions.
static tn_status pool_indices(const tn_build *build, const tn_rule *rule, int32_t n,
                              const struct spatial *axes, struct ends *ends,
                              int with_indices, tn_array **outputs)
{
    tn_array *found[2];
    tn_status status =
        maxima_of(build, rule->inputs[0], ends->images, ends->channels, n, axes, found);
    for (int i = 0; i < 1 + with_indices && status == TN_OK; i++) {
        outputs[i] = with_ends(build, found[i], ends, n, axes);
        status = built(outputs[i]);
    }
    return status;
}

static tn_status pool_windows(const tn_build *build, const tn_rule *rule, int32_t n,
                              const max_attrs *attrs, const struct pooling *how,
                              tn_array **outputs)
{
    const tn_type *type = build->type(rule->inputs[0]);
    struct spatial axes[MOST_SPATIAL] = {{0}};
    int64_t window[MOST_SPATIAL] = {0}, stride[MOST_SPATIAL], dilation[MOST_SPATIAL];
    int has_gaps = 0;
    tn_status status = check_images(build->host, "x", type, n, attrs->axis);
    if (status == TN_OK)
        status = read_numbers(build->host, "dilation", &attrs->dilation, n, 1, 1, dilation);
    if (status == TN_OK)
        status = read_numbers(build->host, "window", &attrs->window, n, 0, 1, window);
    if (status == TN_OK)
        status = read_numbers(build->host, "stride", &attrs->stride, n, 1, 1, stride);
    if (status == TN_OK)
        status = read_padding(build->host, &attrs->padding, n, axes);
    struct ends ends = ends_of(build, rule->inputs[0], n, attrs->axis);
    for (int32_t i = 0; i < n && status == TN_OK; i++) {
        axes[i].size = type->extent[ends.first + i];
        axes[i].window = window[i];
        axes[i].stride = attrs->stride.given ? stride[i] : window[i];
        axes[i].dilation = window[i] > 1 ? dilation[i] : 1;
        has_gaps |= axes[i].dilation > 1;
        status = nn_pooling_count_windows(build, &axes[i], attrs->ceil_mode);
    }
    if (status)
        return status;
    if (has_gaps || how->with_indices)
        return pool_indices(build, rule, n, axes, &ends, how->with_indices, outputs);
    tn_array *x =
        pooled_axes(build, rule->inputs[0], ends.images, ends.channels, n, axes, how);
    outputs[0] = with_ends(build, x, &ends, n, axes);
    return built(outputs[0]);
}

static tn_status max_windows(const tn_build *build, const tn_rule *rule, int32_t n,
                             int with_indices, tn_array **outputs)
{
    const struct pooling how = {.is_max = 1, .with_indices = with_indices};
    return pool_windows(build, rule, n, rule->attrs, &how, outputs);
}

static tn_status avg_windows(const tn_build *build, const tn_rule *rule, int32_t n,
                             tn_array **outputs)
{
    const avg_attrs *a = rule->attrs;
    const max_attrs attrs = {a->window, a->stride, a->padding, a->ceil_mode, a->axis, {0}};
    const struct pooling how = {.count_padding = a->count_include_pad,
                                .divisor = a->divisor_override};
    return pool_windows(build, rule, n, &attrs, &how, outputs);
}

// --- windows that divide an axis --------------------------------------------------------

// Window i begins at i * size / out rounded down, and ends at (i + 1) * size / out rounded
// up. Gathers `most` elements of each along axis 1 of x (images, size, others, channels);
// elements behind a window's end repeat its last one.
static tn_array *gathered_windows(const tn_build *build, tn_array *x,
                                  const struct spatial *a, int64_t most)
{
    tn_array *positions =
        build->expr(build,
                    "i, k -> b = i * size // out; e = ((i + 1) * size + out - 1) // out; "
                    "min(b + k, e - 1)",
                    TN_IN(counted(build, a->out, 1), counted(build, most, 0)),
                    tn_attrs("size", a->size, "out", a->out));
    return build->op(build, "base.take/1", TN_IN(x, positions),
                     tn_attrs("axis", (int64_t)1));
}

// The number of elements of the largest window.
static int64_t size_of_divided(const struct spatial *a)
{
    return a->size % a->out ? a->size / a->out + 2 : a->size / a->out;
}

// Pools x (images, size, others, channels) along axis 1.
static tn_array *divided_axis(const tn_build *build, tn_array *x, const struct spatial *a,
                              const struct pooling *how)
{
    const tn_type *type = build->type(x);
    if (!type)
        return NULL;
    int64_t shape[4] = {type->extent[0], a->out, type->extent[2], type->extent[3]};
    struct spatial plane[2] = {*a, whole_axis};
    plane[1].size = plane[1].out = shape[2];
    plane[0].window = plane[0].stride = a->size / a->out;
    if (a->size % a->out) {
        int64_t most = size_of_divided(a);
        tn_array *windows = gathered_windows(build, x, a, most);
        int64_t flat[4] = {shape[0], a->out * most, shape[2], shape[3]};
        x = with_shape(build, "base.reshape/1", windows, 4, flat);
        plane[0].size = flat[1];
        plane[0].window = plane[0].stride = most;
    }
    return pooled_plane(build, x, plane, how);
}

// Pools columns before rows, and depth last: of equal elements the first one counts.
static tn_status adaptive_pool(const tn_build *build, const tn_rule *rule, int32_t n,
                               int is_max, int with_indices, tn_array **outputs)
{
    const adaptive_attrs *attrs = rule->attrs;
    const struct pooling how = {.is_max = is_max, .count_padding = 1};
    const tn_type *type = build->type(rule->inputs[0]);
    int64_t out[MOST_SPATIAL] = {0};
    struct spatial axes[MOST_SPATIAL];
    tn_status status = check_images(build->host, "x", type, n, attrs->axis);
    if (status == TN_OK)
        status =
            read_numbers(build->host, "output_size", &attrs->output_size, n, 0, 1, out);
    if (status)
        return status;
    struct ends ends = ends_of(build, rule->inputs[0], n, attrs->axis);
    int divides = 1;
    for (int32_t i = 0; i < n; i++) {
        int64_t size = type->extent[ends.first + i];
        if (size < 1)
            return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                     "x has no elements along axis %d, expected at least 1",
                                     ends.first + i);
        axes[i] = (struct spatial){.size = size,
                                   .window = size / out[i] + (size < out[i]),
                                   .stride = size / out[i] + (size < out[i]),
                                   .out = out[i]};
        divides &= size % out[i] == 0;
    }
    tn_array *x = rule->inputs[0];
    for (int32_t i = 0; i < n && with_indices; i++) {
        axes[i].stride = 0;
        axes[i].window = size_of_divided(&axes[i]);
    }
    if (with_indices)
        return pool_indices(build, rule, n, axes, &ends, 1, outputs);
    if (divides)
        x = pooled_axes(build, x, ends.images, ends.channels, n, axes, &how);
    if (!divides && !is_max) {
        struct resampled_axis parts[MOST_SPATIAL] = {{0}};
        for (int32_t i = 0; i < n; i++)
            parts[i] = (struct resampled_axis){axes[i].size, out[i], 0};
        outputs[0] = resampled(build, x, n, ends.first, parts, TN_RESAMPLE_PARTS, 0);
        return built(outputs[0]);
    }
    // Gathering rows of all channels is faster than gathering elements.
    if (!divides) {
        x = channels_last(build, x, n, attrs->axis);
        ends = ends_of(build, x, n, -1);
    }
    for (int32_t i = n - 1; i >= 0 && !divides; i--) {
        int64_t shape[4] = {ends.images, axes[i].size, 1, ends.channels};
        for (int32_t k = 0; k < n; k++)
            shape[k < i ? 0 : 2] *= k == i ? 1 : k < i ? axes[k].size : axes[k].out;
        x = divided_axis(build, with_shape(build, "base.reshape/1", x, 4, shape), &axes[i],
                         &how);
    }
    outputs[0] = with_ends(build, x, &ends, n, axes);
    if (!divides)
        outputs[0] = channels_back(build, outputs[0], n, attrs->axis);
    return built(outputs[0]);
}

static tn_status nn_pooling_global_pool(const tn_build *build, const tn_rule *rule,
                                        const char *primitive, tn_array **outputs)
{
    const global_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(rule->inputs[0]);
    tn_ints axes = {.given = 1};
    char text[SHAPE_TEXT];
    if (type->rank < 3 || (attrs->axis != 1 && attrs->axis != -1))
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "x has shape %s and axis is %" PRId64
                                 ", expected 3 axes or more, and axis 1 or -1",
                                 shape_text(type, text), attrs->axis);
    for (int32_t i = 0; i < type->rank - 2; i++)
        axes.value[axes.count++] = i + (attrs->axis == 1 ? 2 : 1);
    outputs[0] =
        build->op(build, primitive, TN_IN(rule->inputs[0]),
                  tn_attrs("axis", (const tn_ints *)&axes, "keepdims", attrs->keepdims));
    return built(outputs[0]);
}

// --- records ----------------------------------------------------------------------------

#define WINDOW_FIELDS(type)                                                                \
    TN_REQUIRED_FIELD(type, window, TN_ATTR_INTS,                                          \
                      "extents of a window, one for all or one an axis"),                  \
        TN_INTS_FIELD(type, stride, "distance of windows; not given: the window"),         \
        TN_INTS_FIELD(type, padding,                                                       \
                      "elements around: one for all, one an axis, or two an axis; 0"),     \
        TN_BOOL_FIELD(type, ceil_mode, 0, "windows may go beyond x and its padding"),
static const tn_attr_field max_fields[] = {
    WINDOW_FIELDS(max_attrs) AXIS_FIELD(max_attrs),
    TN_INTS_FIELD(max_attrs, dilation, "distance of elements in a window; 1"),
};
static const tn_attr_field avg_fields[] = {
    WINDOW_FIELDS(avg_attrs)
        TN_BOOL_FIELD(avg_attrs, count_include_pad, 1, "zeros around x count as elements"),
    TN_I64_FIELD(avg_attrs, divisor_override, 0,
                 "what sums are divided by; 0: the elements that count"),
    AXIS_FIELD(avg_attrs),
};
static const tn_attr_field adaptive_fields[] = {
    TN_REQUIRED_FIELD(adaptive_attrs, output_size, TN_ATTR_INTS,
                      "windows, one number for all axes or one an axis"),
    AXIS_FIELD(adaptive_attrs),
};
static const tn_attr_field global_fields[] = {
    AXIS_FIELD(global_attrs),
    TN_BOOL_FIELD(global_attrs, keepdims, 1, "keep reduced axes with extent 1"),
};
static const tn_input_info pooling_inputs[] = {
    {"x", "N, ..., C: channels last, or axis 1", 0, TN_FLOAT_DTYPES},
};
static const tn_output_info indices_outputs[] = {
    {"out", "the greatest elements", 0, 0},
    {"indices", "i64: where in its image or volume each one was, row after row", 0, 0},
};

#define POOLING(name, id, call, kind, sentence, ...)                                       \
    DECOMPOSE(name)                                                                        \
    {                                                                                      \
        return call;                                                                       \
    }                                                                                      \
    COMPOSITE(name, id, sentence, TN_INPUTS(pooling_inputs),                               \
              .attrs = TN_ATTR_TABLE(kind##_attrs, kind##_fields), __VA_ARGS__)
#define MAX_POOL(name, id, n)                                                              \
    POOLING(name, id, max_windows(build, rule, n, 0, outputs), max,                        \
            "The greatest element of each window, channel by channel.")
#define MAX_INDICES(name, n)                                                               \
    POOLING(name, #name "/1", max_windows(build, rule, n, 1, outputs), max,                \
            "max_pool" #n "d, and where the greatest elements were.",                      \
            TN_OUTPUTS(indices_outputs))
#define AVG_POOL(name, id, n)                                                              \
    POOLING(name, id, avg_windows(build, rule, n, outputs), avg,                           \
            "The mean of each window, channel by channel.")
#define ADAPTIVE(name, id, n, is_max, what)                                                \
    POOLING(name, id, adaptive_pool(build, rule, n, is_max, 0, outputs), adaptive,         \
            what " of each of output_size windows that divide an axis.")
#define ADAPTIVE_INDICES(name, n)                                                          \
    POOLING(name, #name "/1", adaptive_pool(build, rule, n, 1, 1, outputs), adaptive,      \
            "adaptive_max_pool" #n "d, and where the greatest elements were.",             \
            TN_OUTPUTS(indices_outputs))

MAX_POOL(max_pool1d, "max_pool1d/1", 1);
MAX_POOL(max_pool2d_2, "max_pool2d/2", 2);
MAX_POOL(max_pool3d, "max_pool3d/1", 3);
AVG_POOL(avg_pool1d, "avg_pool1d/1", 1);
AVG_POOL(avg_pool2d, "avg_pool2d/1", 2);
AVG_POOL(avg_pool3d, "avg_pool3d/1", 3);
ADAPTIVE(adaptive_max_pool1d, "adaptive_max_pool1d/1", 1, 1, "The greatest element");
ADAPTIVE(adaptive_max_pool2d, "adaptive_max_pool2d/1", 2, 1, "The greatest element");
ADAPTIVE(adaptive_max_pool3d, "adaptive_max_pool3d/1", 3, 1, "The greatest element");
ADAPTIVE(adaptive_avg_pool1d, "adaptive_avg_pool1d/1", 1, 0, "The mean");
ADAPTIVE(adaptive_avg_pool2d, "adaptive_avg_pool2d/1", 2, 0, "The mean");
ADAPTIVE(adaptive_avg_pool3d, "adaptive_avg_pool3d/1", 3, 0, "The mean");
MAX_INDICES(max_pool1d_with_indices, 1);
MAX_INDICES(max_pool2d_with_indices, 2);
MAX_INDICES(max_pool3d_with_indices, 3);
ADAPTIVE_INDICES(adaptive_max_pool1d_with_indices, 1);
ADAPTIVE_INDICES(adaptive_max_pool2d_with_indices, 2);
ADAPTIVE_INDICES(adaptive_max_pool3d_with_indices, 3);
POOLING(global_avg_pool, "global_avg_pool/1",
        nn_pooling_global_pool(build, rule, "base.mean/1", outputs), global,
        "The mean of each channel of each sample.");
POOLING(global_max_pool, "global_max_pool/1",
        nn_pooling_global_pool(build, rule, "base.max/1", outputs), global,
        "The greatest element of each channel of each sample.");
