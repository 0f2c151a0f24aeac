// SPDX-License-Identifier: MIT
// interpolate: resizes vectors, images and volumes by nn.resample2d, which has the kernels;
// depth is resized by itself.
#include "images.h"
#include <tenon/ops/rules.h>

enum { LINEAR = TN_RESAMPLE_LINEAR, AREA = TN_RESAMPLE_PARTS };
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
    TN_CHOICE_FIELD(interpolate_attrs, mode, TN_RESAMPLE_NEAREST, interpolations,
                    "the element at or before; the nearest; on lines; on cubics; means"),
    TN_BOOL_FIELD(interpolate_attrs, align_corners, 0,
                  "linear and cubic: first and last elements stay where they are"),
    AXIS_FIELD(interpolate_attrs),
};
static const tn_input_info interpolate_inputs[] = {
    {"x", "N, ..., C: channels last, or axis 1", 0, TN_FLOAT_DTYPES},
};

static tn_status interpolate_read_extents(const tn_build *build,
                                          const interpolate_attrs *attrs, const tn_type *x,
                                          int32_t n, int32_t first,
                                          struct resampled_axis axes[MOST_SPATIAL])
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
        axes[i] = (struct resampled_axis){.in = x->extent[first + i], .out = (int64_t)out};
        axes[i].step = scale ? 1 / factor : (double)axes[i].in / (double)axes[i].out;
        if (attrs->align_corners && attrs->mode >= LINEAR)
            axes[i].step =
                axes[i].out > 1 ? ((double)axes[i].in - 1) / ((double)axes[i].out - 1) : 0;
    }
    return status;
}

DECOMPOSE(interpolate)
{
    const interpolate_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    const tn_type *type = build->type(x);
    struct resampled_axis axes[MOST_SPATIAL];
    int32_t n = type->rank - 2, first = attrs->axis == 1 ? 2 : 1;
    tn_status status = n >= 1 && n <= MOST_SPATIAL
                           ? check_images(build->host, "x", type, n, attrs->axis)
                           : check_rank(build->host, "x", type, 4,
                                        "images, or one axis less "
                                        "or more");
    if (status == TN_OK)
        status = interpolate_read_extents(build, attrs, type, n, first, axes);
    if (status)
        return status;
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
    outputs[0] = resampled(build, x, n, first, axes, attrs->mode, attrs->align_corners);
    return built(outputs[0]);
}
COMPOSITE(interpolate, "interpolate/1",
          "x with other extents: its elements, lines or cubics between them, or means.",
          TN_INPUTS(interpolate_inputs),
          .attrs = TN_ATTR_TABLE(interpolate_attrs, interpolate_fields));
