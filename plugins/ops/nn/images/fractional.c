// SPDX-License-Identifier: MIT
// fractional_max_pool2d and fractional_max_pool3d (Graham, "Fractional max-pooling", 2014):
// windows of one size at random distances, so that extents shrink by any ratio. Each
// channel of each image has its own random number for each axis.
#include "images.h"
#include <tenon/ops/rules.h>

typedef struct {
    tn_ints window, output_size;
    const tn_float_list *output_ratio;
    int64_t axis, seed;
} fractional_attrs;
static const tn_attr_field fractional_fields[] = {
    TN_REQUIRED_FIELD(fractional_attrs, window, TN_ATTR_INTS,
                      "extents of a window, one for all or one an axis"),
    TN_INTS_FIELD(fractional_attrs, output_size,
                  "extents of the result, one for all or one an axis"),
    TN_FLOAT_LIST_FIELD(fractional_attrs, output_ratio,
                        "instead of output_size: their share of x's extents"),
    AXIS_FIELD(fractional_attrs),
    TN_RUNTIME_I64_FIELD(fractional_attrs, seed, 0, "where windows lie, without samples"),
};
static const tn_input_info fractional_inputs[] = {
    {"x", "N, ..., C: images or volumes, channels last, or axis 1", 0, TN_FLOAT_DTYPES},
    {"samples", "N, C, axes: numbers of [0, 1), of images for columns and rows",
     TN_INPUT_OPTIONAL | TN_INPUT_CONSTANT, TN_FLOAT_DTYPES},
};
static const tn_output_info fractional_outputs[] = {
    {"y", "the maxima", 0, 0},
    {"indices", "where in its image or volume each one is", 0, 0},
};

static tn_status fractional_windows(const tn_host *host, const fractional_attrs *attrs,
                                    int32_t n, struct spatial axes[MOST_SPATIAL])
{
    const tn_float_list *ratio = attrs->output_ratio;
    int64_t window[MOST_SPATIAL], out[MOST_SPATIAL] = {0};
    if (!ratio == !attrs->output_size.given)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "output_size and output_ratio are %s given, expected one of both",
                          ratio ? "both" : "not");
    if (ratio && ratio->count != 1 && ratio->count != (uint64_t)n)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "output_ratio has %" PRIu64 " values, expected 1 or %d",
                          ratio->count, n);
    tn_status status = read_numbers(host, "window", &attrs->window, n, 0, 1, window);
    if (status == TN_OK && !ratio)
        status = read_numbers(host, "output_size", &attrs->output_size, n, 1, 1, out);
    for (int32_t i = 0; i < n && status == TN_OK; i++) {
        struct spatial *a = &axes[i];
        double share = ratio ? ratio->value[ratio->count > 1 ? i : 0] : 0;
        if (ratio && !(share > 0 && share < 1))
            return host->fail(host, TN_ERR_ARGUMENT,
                              "output_ratio has %g, expected more than 0, less than 1",
                              share);
        a->window = window[i];
        a->out = ratio ? (int64_t)((double)a->size * share) : out[i];
        if (a->out < 1 || a->window > a->size || a->out - 1 > a->size - a->window)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "%" PRId64 " windows of %" PRId64
                              " do not begin at elements of their own among the %" PRId64
                              " of an axis",
                              a->out, a->window, a->size);
    }
    return status ? status : check_elements(host, n, axes);
}

// A random number for each plane and axis, [N * C, axes], in x's dtype of computation.
static tn_array *plane_samples(const tn_build *build, const tn_rule *rule, int64_t images,
                               int64_t channels, int32_t n, tn_dtype dtype)
{
    const int64_t flat[2] = {images * channels, n};
    const tn_ints shape = {3, 1, {images, channels, n}};
    tn_array *given = rule->num_inputs > 2 ? rule->inputs[1] : NULL;
    if (given && check_extents(build->host, "samples", build->type(given), 3, shape.value))
        return NULL;
    if (given)
        given =
            cast(build, build->op(build, "base.stop_gradient/1", TN_IN(given), TN_NO_ATTRS),
                 dtype);
    else
        given = build->expr(
            build,
            dtype == TN_F64 ? "b -> f64(b >> 9) / 8388608" : "b -> f32(b >> 9) / 8388608",
            TN_IN(words_of_seed(build, rule->inputs[rule->num_inputs - 1], &shape)),
            TN_NO_ATTRS);
    return with_shape(build, "base.reshape/1", given, 2, flat);
}

// Where windows of axis i begin, and their elements: N * C, then windows and elements of
// each axis. As in PyTorch the last window is at the end.
static tn_array *window_positions(const tn_build *build, const struct spatial *a, int32_t n,
                                  int32_t i, tn_array *samples, tn_dtype dtype)
{
    const int64_t planes = build->type(samples)->extent[0];
    const int64_t column[TN_MAX_RANK] = {planes, 1, 1, 1, 1, 1, 1, 1};
    const double gaps = (double)(a->out - 1), far = (double)(a->size - a->window);
    int32_t number = n == 2 ? 1 - i : i;
    tn_array *u = part_of_axis(build, samples, 1, number, 1, 1);
    u = with_shape(build, "base.reshape/1", u, 2 * n + 1, column);
    tn_array *at = counted(build, a->out, 2 * n - 1 - i);
    at = build->expr(build,
                     dtype == TN_F64
                         ? "u, i -> p = i64(floor((f64(i) + u) * step)) - "
                           "i64(floor(u * step)); i < last ? min(max(p, 0), end) : end"
                         : "u, i -> p = i64(floor((f32(i) + u) * step)) - "
                           "i64(floor(u * step)); i < last ? min(max(p, 0), end) : end",
                     TN_IN(u, at),
                     tn_attrs("step", gaps > 0 ? far / gaps : 0, "last", a->out - 1, "end",
                              a->size - a->window));
    return build->expr(build, "p, k -> p + k",
                       TN_IN(at, counted(build, a->window, n - 1 - i)), TN_NO_ATTRS);
}

// x: planes, elements. out: maxima and their positions; planes, windows.
static tn_status pool_planes(const tn_build *build, tn_array *x, tn_array *samples,
                             int32_t n, const struct spatial axes[MOST_SPATIAL],
                             tn_dtype dtype, tn_array *out[2])
{
    int64_t windows = 1, elements = 1,
            planes = samples ? build->type(samples)->extent[0] : 0;
    tn_array *table = NULL;
    if (!samples)
        return TN_ERR_ARGUMENT;
    for (int32_t i = 0; i < n; i++) {
        tn_array *positions = window_positions(build, &axes[i], n, i, samples, dtype);
        table = table ? build->expr(build, "t, p -> t * size + p", TN_IN(table, positions),
                                    tn_attrs("size", axes[i].size))
                      : positions;
        windows *= axes[i].out;
        elements *= axes[i].window;
    }
    tn_array *flat = with_shape(build, "base.reshape/1", table, 2,
                                (int64_t[]){planes, windows * elements});
    const tn_attr_list along = tn_attrs("axis", (int64_t)1);
    tn_array *all = build->op(build, "base.take_along_axis/1", TN_IN(x, flat), along);
    all =
        with_shape(build, "base.reshape/1", all, 3, (int64_t[]){planes, windows, elements});
    tn_array *best =
        build->op(build, "base.argmax/1", TN_IN(all), tn_attrs("axis", (int64_t)2));
    best = build->expr(build, "i, b -> i * n + b", TN_IN(counted(build, windows, 0), best),
                       tn_attrs("n", elements));
    out[1] = build->op(build, "base.take_along_axis/1", TN_IN(flat, best), along);
    out[0] = build->op(build, "base.take_along_axis/1", TN_IN(x, out[1]), along);
    return built(out[0]);
}

static tn_status fractional_max_pool(const tn_build *build, const tn_rule *rule, int32_t n,
                                     uint32_t count, tn_array **outputs)
{
    const fractional_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(rule->inputs[0]);
    struct spatial axes[MOST_SPATIAL] = {{0}};
    tn_status status = check_images(build->host, "x", type, n, attrs->axis);
    if (status)
        return status;
    int is_first = attrs->axis == 1;
    int64_t images = type->extent[0], channels = type->extent[is_first ? 1 : n + 1];
    int64_t flat[2] = {images * channels, 1}, whole[MOST_SPATIAL + 2] = {images, channels};
    for (int32_t i = 0; i < n; i++) {
        axes[i].size = type->extent[(is_first ? 2 : 1) + i];
        flat[1] *= axes[i].size;
    }
    status = fractional_windows(build->host, attrs, n, axes);
    if (status)
        return status;
    for (int32_t i = 0; i < n; i++)
        whole[2 + i] = axes[i].out;
    tn_dtype dtype = tn_dtype_computed(type->dtype);
    tn_array *x = rule->inputs[0], *made[2];
    x = is_first ? x : tn_move_axis(build, x, n + 1, 1);
    x = with_shape(build, "base.reshape/1", x, 2, flat);
    status = pool_planes(build, x, plane_samples(build, rule, images, channels, n, dtype),
                         n, axes, dtype, made);
    for (uint32_t i = 0; i < count && status == TN_OK; i++) {
        tn_array *y = with_shape(build, "base.reshape/1", made[i], n + 2, whole);
        outputs[i] = is_first ? y : tn_move_axis(build, y, 1, n + 1);
        status = built(outputs[i]);
    }
    return status;
}

#define FRACTIONAL(name, n, count, sentence)                                               \
    DECOMPOSE(name)                                                                        \
    {                                                                                      \
        return fractional_max_pool(build, rule, n, count, outputs);                        \
    }                                                                                      \
    COMPOSITE(name, #name "/1", sentence, TN_INPUTS(fractional_inputs),                    \
              .outputs = fractional_outputs, .num_outputs = count,                         \
              .output_size = sizeof(tn_output_info),                                       \
              .attrs = TN_ATTR_TABLE(fractional_attrs, fractional_fields))
FRACTIONAL(fractional_max_pool2d, 2, 1,
           "The greatest of each window of images, windows by chance.");
FRACTIONAL(fractional_max_pool3d, 3, 1,
           "The greatest of each window of volumes, windows by chance.");
FRACTIONAL(fractional_max_pool2d_with_indices, 2, 2,
           "fractional_max_pool2d, and where the maxima are.");
FRACTIONAL(fractional_max_pool3d_with_indices, 3, 2,
           "fractional_max_pool3d, and where the maxima are.");
