// SPDX-License-Identifier: MIT
// interpolate: other extents of vectors, images and volumes, an axis after the other, each
// by gathers of its neighbours, whose places and weights depend on extents alone.
#include "images.h"
#include <tenon/ops/rules.h>

enum { NEAREST, NEAREST_EXACT, LINEAR, CUBIC, AREA };
static const char *const interpolations[] = {"nearest", "nearest_exact", "linear",
                                             "cubic",   "area",          NULL};
typedef struct {
    tn_ints size;
    const tn_float_list *scale_factor;
    int64_t mode, align_corners, axis;
} interpolate_attrs;
static const tn_attr_field interpolate_fields[] = {
    TN_INTS_FIELD(interpolate_attrs, size, "extents, one for all axes or one an axis"),
    TN_FLOAT_LIST_FIELD(interpolate_attrs, scale_factor,
                        "instead of size: how many times x's extents they are"),
    TN_CHOICE_FIELD(interpolate_attrs, mode, NEAREST, interpolations,
                    "the element at or before; the nearest; on lines; on cubics; means"),
    TN_BOOL_FIELD(interpolate_attrs, align_corners, 0,
                  "linear and cubic: first and last elements stay where they are"),
    AXIS_FIELD(interpolate_attrs),
};
static const tn_input_info interpolate_inputs[] = {
    {"x", "N, ..., C: channels last, or axis 1", 0, TN_FLOAT_DTYPES},
};

// An axis: its extents, and how far apart results are in elements of x.
struct resampled {
    int64_t in, out;
    double step;
};

static tn_status read_extents(const tn_build *build, const interpolate_attrs *attrs,
                              const tn_type *x, int32_t n, int32_t first,
                              struct resampled axes[MOST_SPATIAL])
{
    const tn_float_list *scale = attrs->scale_factor;
    const tn_host *host = build->host;
    int64_t size[MOST_SPATIAL] = {0};
    if (!scale == !attrs->size.given)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "size and scale_factor are %s given, expected one of both",
                          scale ? "both" : "not");
    if (scale && scale->count != 1 && scale->count != (uint64_t)n)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "scale_factor has %" PRIu64 " values, expected 1 or %d",
                          scale->count, n);
    tn_status status =
        scale ? TN_OK : read_numbers(host, "size", &attrs->size, n, 1, 1, size);
    for (int32_t i = 0; i < n && status == TN_OK; i++) {
        double factor = scale ? scale->value[scale->count > 1 ? i : 0] : 0;
        double out = scale ? floor((double)x->extent[first + i] * factor) : (double)size[i];
        if (x->extent[first + i] < 1 || !(out >= 1 && out <= INT32_MAX))
            return host->fail(host, TN_ERR_ARGUMENT,
                              "axis %d has %" PRId64
                              " elements and would have %g, expected 1 to %d",
                              first + i, x->extent[first + i], out, INT32_MAX);
        axes[i] = (struct resampled){.in = x->extent[first + i], .out = (int64_t)out};
        axes[i].step = scale ? 1 / factor : (double)axes[i].in / (double)axes[i].out;
        if (attrs->align_corners && attrs->mode >= LINEAR)
            axes[i].step =
                axes[i].out > 1 ? ((double)axes[i].in - 1) / ((double)axes[i].out - 1) : 0;
    }
    return status;
}

// Elements of axis 1 of x at `places`, held within it.
static tn_array *gathered(const tn_build *build, tn_array *x, tn_array *places,
                          int64_t more, int64_t n)
{
    places = build->expr(build, "i -> j = i64(floor(i)) + k; min(max(j, 0), last)",
                         TN_IN(places), tn_attrs("k", more, "last", n - 1));
    return build->op(build, "base.take/1", TN_IN(x, places), tn_attrs("axis", (int64_t)1));
}

// x (images, size, others) along axis 1.
static tn_array *nearest_along(const tn_build *build, tn_array *x,
                               const struct resampled *a, int64_t mode)
{
    const tn_type *type = build->type(x);
    if (!type)
        return NULL;
    if (a->out % a->in == 0 && a->step * (double)a->out == (double)a->in) {
        int64_t apart[4] = {type->extent[0], a->in, 1, type->extent[2]};
        int64_t wide[4] = {type->extent[0], a->in, a->out / a->in, type->extent[2]};
        int64_t joined[3] = {type->extent[0], a->out, type->extent[2]};
        x = with_shape(build, "base.reshape/1", x, 4, apart);
        x = with_shape(build, "base.broadcast_to/1", x, 4, wide);
        return with_shape(build, "base.reshape/1", x, 3, joined);
    }
    tn_array *places = build->expr(
        build, mode == NEAREST ? "i -> f64(i) * step" : "i -> (f64(i) + 0.5) * step",
        TN_IN(counted(build, a->out, 0)), tn_attrs("step", a->step));
    return gathered(build, x, places, 0, a->in);
}

static tn_array *weighted_along(const tn_build *build, tn_array *x,
                                const struct resampled *a, const interpolate_attrs *attrs)
{
    static const char *const weights[2][4] = {
        {"p -> 1 - (p - floor(p))", "p -> p - floor(p)"},
        {"p -> t = p - floor(p) + 1; ((-0.75 * t + 3.75) * t - 6) * t + 3",
         "p -> t = p - floor(p); (1.25 * t - 2.25) * t * t + 1",
         "p -> t = 1 - (p - floor(p)); (1.25 * t - 2.25) * t * t + 1",
         "p -> t = 2 - (p - floor(p)); ((-0.75 * t + 3.75) * t - 6) * t + 3"},
    };
    int is_cubic = attrs->mode == CUBIC;
    tn_dtype dtype = dtype_of(build, x);
    tn_array *places =
        build->expr(build,
                    attrs->align_corners ? "i -> f64(i) * step"
                    : is_cubic           ? "i -> (f64(i) + 0.5) * step - 0.5"
                                         : "i -> max((f64(i) + 0.5) * step - 0.5, 0)",
                    TN_IN(counted(build, a->out, 0)), tn_attrs("step", a->step));
    tn_array *sum = NULL;
    int64_t column[2] = {a->out, 1};
    for (int64_t k = 0; k < (is_cubic ? 4 : 2); k++) {
        tn_array *weight =
            build->expr(build, weights[is_cubic][k], TN_IN(places), TN_NO_ATTRS);
        weight = cast(build, with_shape(build, "base.reshape/1", weight, 2, column), dtype);
        tn_array *part = gathered(build, x, places, is_cubic ? k - 1 : k, a->in);
        sum = sum ? build->expr(build, "s, x, w -> s + x * w", TN_IN(sum, part, weight),
                                TN_NO_ATTRS)
                  : build->expr(build, "x, w -> x * w", TN_IN(part, weight), TN_NO_ATTRS);
    }
    return sum;
}

DECOMPOSE(interpolate)
{
    const interpolate_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    const tn_type *type = build->type(x);
    struct resampled axes[MOST_SPATIAL];
    int32_t n = type->rank - 2, first = attrs->axis == 1 ? 2 : 1;
    tn_status status = n >= 1 && n <= MOST_SPATIAL
                           ? check_images(build->host, "x", type, n, attrs->axis)
                           : check_rank(build->host, "x", type, 4,
                                        "images, or one axis less "
                                        "or more");
    if (status == TN_OK)
        status = read_extents(build, attrs, type, n, first, axes);
    if (status)
        return status;
    tn_ints shape = tn_extents(build, x);
    if (attrs->mode == AREA) {
        tn_ints size = {.count = (uint32_t)n, .given = 1};
        const char *const pools[] = {"nn.adaptive_avg_pool1d/1", "nn.adaptive_avg_pool2d/1",
                                     "nn.adaptive_avg_pool3d/1"};
        for (int32_t i = 0; i < n; i++)
            size.value[i] = axes[i].out;
        outputs[0] =
            build->op(build, pools[n - 1], TN_IN(x),
                      tn_attrs("output_size", (const tn_ints *)&size, "axis", attrs->axis));
        return built(outputs[0]);
    }
    tn_dtype dtype = type->dtype, wide = tn_dtype_computed(dtype);
    if (attrs->mode >= LINEAR && wide != dtype)
        x = cast(build, x, wide);
    for (int32_t i = 0; i < n; i++) {
        int64_t flat[3] = {1, axes[i].in, 1};
        if (axes[i].in == axes[i].out && axes[i].step == 1)
            continue;
        for (uint32_t k = 0; k < shape.count; k++)
            flat[(int32_t)k < first + i ? 0 : 2] *=
                (int32_t)k == first + i ? 1 : shape.value[k];
        x = with_shape(build, "base.reshape/1", x, 3, flat);
        x = attrs->mode < LINEAR ? nearest_along(build, x, &axes[i], attrs->mode)
                                 : weighted_along(build, x, &axes[i], attrs);
        shape.value[first + i] = axes[i].out;
    }
    x = with_shape(build, "base.reshape/1", x, n + 2, shape.value);
    outputs[0] = dtype_of(build, x) == dtype ? x : cast(build, x, dtype);
    return built(outputs[0]);
}
COMPOSITE(interpolate, "interpolate/1",
          "x with other extents: its elements, lines or cubics between them, or means.",
          TN_INPUTS(interpolate_inputs),
          .attrs = TN_ATTR_TABLE(interpolate_attrs, interpolate_fields));
