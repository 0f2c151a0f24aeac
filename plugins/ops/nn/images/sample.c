// SPDX-License-Identifier: MIT
// grid_sample: elements of images and volumes at positions given as data, by gathers of the
// nearest elements; affine_grid, which makes such positions.
#include "images.h"
#include <tenon/ops/rules.h>

enum { SAMPLE_LINEAR, SAMPLE_NEAREST, SAMPLE_CUBIC };
enum { AROUND_ZEROS, AROUND_BORDER, AROUND_REFLECTION };
static const char *const sample_modes[] = {"bilinear", "nearest", "bicubic", NULL};
static const char *const around_modes[] = {"zeros", "border", "reflection", NULL};
typedef struct {
    int64_t mode, padding_mode, align_corners, axis;
} sample_attrs;
static const tn_attr_field sample_fields[] = {
    TN_CHOICE_FIELD(sample_attrs, mode, SAMPLE_LINEAR, sample_modes,
                    "on lines between neighbours; the nearest; on cubics, of images"),
    TN_CHOICE_FIELD(sample_attrs, padding_mode, AROUND_ZEROS, around_modes,
                    "what is beyond x: zeros; its border; x reflected"),
    TN_BOOL_FIELD(sample_attrs, align_corners, 0,
                  "-1 and 1 are the first and the last element, else the ends of x"),
    AXIS_FIELD(sample_attrs),
};
static const tn_input_info sample_inputs[] = {
    {"x", "N, H, W, C or N, D, H, W, C: channels last, or axis 1", 0, TN_FLOAT_DTYPES},
    {"grid", "N, ..., 2 or 3: positions, columns first, from -1 to 1", 0, TN_FLOAT_DTYPES},
};

// An axis of x: its extent, and the results' positions along it, in elements.
struct sampled {
    int64_t size;
    tn_array *positions;
};

// An element of x near a position, along one axis: its index, and its weight.
struct neighbour {
    tn_array *position, *weight;
};

// Maps positions beyond the axis as padding_mode says; they stay floats.
static tn_array *grid_sample_within(const tn_build *build, tn_array *positions,
                                    int64_t size, const sample_attrs *attrs)
{
    const char *clipped = "p -> p <= 0 ? 0 : p >= last ? last : p";
    double last = (double)size - 1;
    if (attrs->padding_mode == AROUND_ZEROS)
        return positions;
    if (attrs->padding_mode == AROUND_REFLECTION) {
        double low = attrs->align_corners ? 0 : -0.5;
        double span = attrs->align_corners ? last : (double)size;
        positions =
            span == 0 ? build->expr(build, "p -> 0 * p", TN_IN(positions), TN_NO_ATTRS)
                      : build->expr(build,
                                    "p -> d = abs(p - low); n = floor(d / span); "
                                    "e = d - n * span; "
                                    "n - 2 * floor(n / 2) == 0 ? e + low : span - e + low",
                                    TN_IN(positions), tn_attrs("low", low, "span", span));
    }
    return build->expr(build, clipped, TN_IN(positions), tn_attrs("last", last));
}

// Converts the grid's -1 .. 1 to elements.
static tn_array *in_elements(const tn_build *build, tn_array *grid, int64_t size,
                             const sample_attrs *attrs)
{
    return build->expr(build,
                       attrs->align_corners ? "g -> (g + 1) * 0.5 * (n - 1)"
                                            : "g -> ((g + 1) * n - 1) * 0.5",
                       TN_IN(grid), tn_attrs("n", (double)size));
}

static struct neighbour neighbour_of(const tn_build *build, const struct sampled *a,
                                     int64_t k, const sample_attrs *attrs)
{
    static const char *const cubics[] = {
        "p -> t = p - floor(p) + 1; ((-0.75 * t + 3.75) * t - 6) * t + 3",
        "p -> t = p - floor(p); (1.25 * t - 2.25) * t * t + 1",
        "p -> t = 1 - (p - floor(p)); (1.25 * t - 2.25) * t * t + 1",
        "p -> t = 2 - (p - floor(p)); ((-0.75 * t + 3.75) * t - 6) * t + 3"};
    tn_array *p = a->positions;
    if (attrs->mode == SAMPLE_NEAREST)
        return (struct neighbour){
            build->expr(build, "p -> round(p)", TN_IN(p), TN_NO_ATTRS), NULL};
    if (attrs->mode == SAMPLE_LINEAR)
        return (struct neighbour){
            build->expr(build, "p -> floor(p) + k", TN_IN(p), tn_attrs("k", (double)k)),
            build->expr(build, k ? "p -> p - floor(p)" : "p -> 1 - (p - floor(p))",
                        TN_IN(p), TN_NO_ATTRS)};
    tn_array *position =
        build->expr(build, "p -> floor(p) + k", TN_IN(p), tn_attrs("k", (double)k - 1));
    return (struct neighbour){grid_sample_within(build, position, a->size, attrs),
                              build->expr(build, cubics[k], TN_IN(p), TN_NO_ATTRS)};
}

// The sum over all combinations of a near element along each of `n` axes. x is N *
// elements, C; all other arrays are N, results, 1.
// else N, results, 1.
static tn_array *sum_of_neighbours(const tn_build *build, tn_array *x, int32_t n,
                                   const struct sampled *axes, tn_array *images,
                                   const sample_attrs *attrs)
{
    static const int64_t counts[] = {2, 1, 4};
    int64_t each = counts[attrs->mode], choices = 1;
    struct neighbour of[MOST_SPATIAL][4];
    tn_array *sum = NULL;
    for (int32_t i = 0; i < n; i++, choices *= each)
        for (int64_t k = 0; k < each; k++)
            of[i][k] = neighbour_of(build, &axes[i], k, attrs);
    for (int64_t choice = 0; choice < choices; choice++) {
        tn_array *at = images, *known = NULL, *weight = NULL;
        int64_t rest = choice;
        for (int32_t i = n - 1; i >= 0; i--, rest /= each) {
            const struct neighbour *one = &of[i][rest % each];
            const double last = (double)axes[i].size - 1;
            tn_array *is_within = build->expr(build, "p -> p >= 0 & p <= last",
                                              TN_IN(one->position), tn_attrs("last", last));
            known = known ? build->expr(build, "a, b -> a & b", TN_IN(known, is_within),
                                        TN_NO_ATTRS)
                          : is_within;
            weight = weight && one->weight
                         ? build->expr(build, "a, b -> a * b", TN_IN(weight, one->weight),
                                       TN_NO_ATTRS)
                         : one->weight;
        }
        for (int32_t i = 0; i < n; i++) {
            rest = choice;
            for (int32_t j = n - 1; j > i; j--)
                rest /= each;
            at =
                build->expr(build, "a, p -> a * n + i64(p <= 0 ? 0 : p >= last ? last : p)",
                            TN_IN(at, of[i][rest % each].position),
                            tn_attrs("n", axes[i].size, "last", (double)axes[i].size - 1));
        }
        at = build->op(build, "base.squeeze/1", TN_IN(at), tn_attrs("axis", TN_INTS(-1)));
        tn_array *part =
            build->op(build, "base.take/1", TN_IN(x, at), tn_attrs("axis", (int64_t)0));
        part = weight ? build->expr(build, "k, x, w -> select(k, x * w, 0)",
                                    TN_IN(known, part, weight), TN_NO_ATTRS)
                      : build->expr(build, "k, x -> select(k, x, 0)", TN_IN(known, part),
                                    TN_NO_ATTRS);
        sum = sum ? add(build, sum, part) : part;
    }
    return sum;
}

static tn_status check_sample(const tn_build *build, const tn_rule *rule, int32_t n)
{
    const sample_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    const tn_type *x = build->type(rule->inputs[0]), *grid = build->type(rule->inputs[1]);
    char text[SHAPE_TEXT];
    if (n != 2 && n != 3)
        return check_rank(host, "x", x, 4, "images, or 5: volumes");
    tn_status status = check_images(host, "x", x, n, attrs->axis);
    if (status == TN_OK)
        status = check_dtype(host, "grid", grid, x->dtype);
    if (status)
        return status;
    if (grid->rank != n + 2 || grid->extent[0] != x->extent[0] || grid->extent[n + 1] != n)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "grid has shape %s, expected %" PRId64
                          " grids of %d axes, and %d "
                          "coordinates last",
                          shape_text(grid, text), x->extent[0], n, n);
    for (int32_t i = 0; i < n; i++)
        if (x->extent[i + (attrs->axis == 1 ? 2 : 1)] < 1)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "x has shape %s, expected elements along each axis of its "
                              "images",
                              shape_text(x, text));
    if (attrs->mode == SAMPLE_CUBIC && n != 2)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "mode is bicubic and x has rank 5, expected 4: images");
    return TN_OK;
}

DECOMPOSE(grid_sample)
{
    const sample_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(rule->inputs[0]);
    int32_t n = type->rank - 2;
    tn_status status = check_sample(build, rule, n);
    if (status)
        return status;
    tn_dtype dtype = type->dtype, wide = tn_dtype_computed(dtype);
    tn_array *x = channels_last(build, rule->inputs[0], n, attrs->axis);
    tn_array *grid = rule->inputs[1];
    if (wide != dtype) {
        x = cast(build, x, wide);
        grid = cast(build, grid, wide);
    }
    tn_ints shape = tn_extents(build, grid);
    const tn_ints of_x = tn_extents(build, x);
    int64_t images = of_x.value[0], channels = of_x.value[n + 1], results = 1, elements = 1;
    struct sampled axes[MOST_SPATIAL];
    for (int32_t i = 0; i < n; i++) {
        results *= shape.value[i + 1];
        elements *= of_x.value[i + 1];
    }
    x = with_shape(build, "base.reshape/1", x, 2, (int64_t[]){images * elements, channels});
    grid = with_shape(build, "base.reshape/1", grid, 3, (int64_t[]){images, results, n});
    for (int32_t i = 0; i < n; i++) {
        axes[i].size = of_x.value[i + 1];
        axes[i].positions = in_elements(
            build, part_of_axis(build, grid, 2, n - 1 - i, 1, 1), axes[i].size, attrs);
        if (attrs->mode != SAMPLE_CUBIC)
            axes[i].positions =
                grid_sample_within(build, axes[i].positions, axes[i].size, attrs);
    }
    tn_array *y = sum_of_neighbours(build, x, n, axes, counted(build, images, 2), attrs);
    shape.value[n + 1] = channels;
    y = build->op(build, "base.reshape/1", TN_IN(y),
                  tn_attrs("shape", (const tn_ints *)&shape));
    if (wide != dtype)
        y = cast(build, y, dtype);
    outputs[0] = channels_back(build, y, n, attrs->axis);
    return built(outputs[0]);
}
COMPOSITE(grid_sample, "grid_sample/1",
          "Elements of x, or what is between them, at the positions of a grid.",
          TN_INPUTS(sample_inputs), .attrs = TN_ATTR_TABLE(sample_attrs, sample_fields));

// --- affine_grid ------------------------------------------------------------------------

typedef struct {
    tn_ints size;
    int64_t align_corners;
} grid_attrs;
static const tn_attr_field grid_fields[] = {
    TN_REQUIRED_FIELD(grid_attrs, size, TN_ATTR_INTS,
                      "N, C, H, W or N, C, D, H, W of the images to sample"),
    TN_BOOL_FIELD(grid_attrs, align_corners, 0, "as grid_sample's"),
};
static const tn_input_info grid_inputs[] = {
    {"theta", "N, 2, 3 or N, 3, 4: a matrix for each image", 0, TN_FLOAT_DTYPES},
};

DECOMPOSE(affine_grid)
{
    const grid_attrs *attrs = rule->attrs;
    const tn_type *theta = build->type(rule->inputs[0]);
    const int64_t *size = attrs->size.value;
    int32_t n = (int32_t)attrs->size.count - 2;
    if (n != 2 && n != 3)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "size has %d values, expected 4 or 5", n + 2);
    for (int32_t i = 0; i < n + 2; i++)
        if (size[i] < (i > 1) || size[i] > INT32_MAX)
            return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                     "size is %" PRId64 " for axis %d, expected %d to %d",
                                     size[i], i, i > 1, INT32_MAX);
    tn_status status =
        check_extents(build->host, "theta", theta, 3, (int64_t[]){size[0], n, n + 1});
    if (status)
        return status;
    tn_dtype dtype = theta->dtype, wide = tn_dtype_computed(dtype);
    tn_array *matrix = wide != dtype ? cast(build, rule->inputs[0], wide) : rule->inputs[0];
    // [N, n, 1, ...]: column i of the matrix, times the coordinate of axis i; and the last
    // column.
    tn_ints column = {.count = (uint32_t)n + 2, .given = 1, .value = {size[0], n, 1, 1, 1}};
    tn_array *sum = NULL;
    for (int32_t i = 0; i <= n; i++) {
        tn_array *factor = build->op(build, "base.reshape/1",
                                     TN_IN(part_of_axis(build, matrix, 2, i, 1, 1)),
                                     tn_attrs("shape", (const tn_ints *)&column));
        if (i == n) {
            sum = add(build, sum, factor);
            break;
        }
        // Coordinate 0 belongs to columns, the last axis.
        double count = (double)size[n + 1 - i];
        double step = count > 1 ? 2 / (attrs->align_corners ? count - 1 : count) : 0;
        tn_array *at = cast(build,
                            build->expr(build, "i -> (f64(i) - middle) * step",
                                        TN_IN(counted(build, size[n + 1 - i], i)),
                                        tn_attrs("middle", (count - 1) / 2, "step", step)),
                            wide);
        sum = sum ? build->expr(build, "s, f, x -> s + f * x", TN_IN(sum, factor, at),
                                TN_NO_ATTRS)
                  : build->expr(build, "f, x -> f * x", TN_IN(factor, at), TN_NO_ATTRS);
    }
    sum = tn_move_axis(build, sum, 1, n + 1);
    tn_ints shape = {.count = (uint32_t)n + 2, .given = 1, .value = {size[0]}};
    memcpy(&shape.value[1], &size[2], sizeof(int64_t) * (size_t)n);
    shape.value[n + 1] = n;
    sum = build->op(build, "base.broadcast_to/1", TN_IN(sum),
                    tn_attrs("shape", (const tn_ints *)&shape));
    outputs[0] = wide != dtype ? cast(build, sum, dtype) : sum;
    return built(outputs[0]);
}
COMPOSITE(affine_grid, "affine_grid/1",
          "Positions in images, which matrices rotate, scale and move, for grid_sample.",
          TN_INPUTS(grid_inputs), .attrs = TN_ATTR_TABLE(grid_attrs, grid_fields));
