// SPDX-License-Identifier: MIT
// resample2d, which interpolation and adaptive means are made of, and its transpose:
// primitives with kernels. Both are linear, and each is the other's derivative.
#include "images.h"
#include <tenon/ops/rules.h>

// Reads rows and columns: `in` of the images that are read, `out` of the results; the
// transpose exchanges them.
static tn_status read_sides(const tn_host *host, const tn_resample2d_attrs *attrs,
                            const tn_type *x, int is_input, tn_resample_axis sides[2])
{
    int64_t extent[2];
    tn_status status = check_images(host, "x", x, 2, -1);
    if (status == TN_OK)
        status = read_pair(host, "extent", &attrs->extent, 0, 1, extent);
    for (int i = 0; i < 2 && status == TN_OK; i++) {
        double step = i ? attrs->column_step : attrs->row_step;
        int64_t given = x->extent[i + 1];
        if (given < 1)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "x has no elements along axis %d, expected at least 1",
                              i + 1);
        if (!(step >= 0 && step <= INT32_MAX))
            return host->fail(host, TN_ERR_ARGUMENT, "a step is %g, expected 0 to %d", step,
                              INT32_MAX);
        sides[i] =
            (tn_resample_axis){is_input ? extent[i] : given, is_input ? given : extent[i],
                               step, attrs->mode, attrs->align_corners};
        if (step == 0)
            sides[i].step = (double)sides[i].in / (double)sides[i].out;
    }
    return status;
}

static tn_status resample_type(const tn_infer *infer, int is_input, tn_type *types)
{
    const tn_type *x = &infer->types[0];
    tn_resample_axis sides[2];
    tn_status status = read_sides(infer->host, infer->attrs, x, is_input, sides);
    if (status == TN_OK)
        types[0] = (tn_type){x->dtype,
                             4,
                             {x->extent[0], is_input ? sides[0].in : sides[0].out,
                              is_input ? sides[1].in : sides[1].out, x->extent[3]}};
    return status;
}

static tn_status resample2d_infer(const tn_infer *infer, tn_type *types)
{
    return resample_type(infer, 0, types);
}

static tn_status resample2d_input_infer(const tn_infer *infer, tn_type *types)
{
    return resample_type(infer, 1, types);
}

// --- decompositions ---------------------------------------------------------------------

// An axis' f64 numbers as a column, in x's dtype.
static tn_array *resample_as_column(const tn_build *build, tn_array *numbers, int64_t n,
                                    tn_dtype dtype)
{
    return cast(build, with_shape(build, "base.reshape/1", numbers, 2, (int64_t[]){n, 1}),
                dtype);
}

// The positions of an axis' results between x's elements: f64.
static tn_array *positions_between(const tn_build *build, const tn_resample_axis *a)
{
    int is_plain = a->mode == TN_RESAMPLE_NEAREST ||
                   (a->align_corners && a->mode >= TN_RESAMPLE_LINEAR);
    return build->expr(build,
                       is_plain                               ? "i -> f64(i) * step"
                       : a->mode == TN_RESAMPLE_NEAREST_EXACT ? "i -> (f64(i) + 0.5) * step"
                       : a->mode == TN_RESAMPLE_CUBIC
                           ? "i -> (f64(i) + 0.5) * step - 0.5"
                           : "i -> max((f64(i) + 0.5) * step - 0.5, 0)",
                       TN_IN(counted(build, a->out, 0)), tn_attrs("step", a->step));
}

// Tap k of each result: its position in the axis, and its weight; NULL: 1.
static void taps_of(const tn_build *build, const tn_resample_axis *a, int64_t k,
                    tn_dtype dtype, tn_array *out[2])
{
    static const char *const weights[2][4] = {
        {"p -> 1 - (p - floor(p))", "p -> p - floor(p)"},
        {"p -> t = p - floor(p) + 1; ((-0.75 * t + 3.75) * t - 6) * t + 3",
         "p -> t = p - floor(p); (1.25 * t - 2.25) * t * t + 1",
         "p -> t = 1 - (p - floor(p)); (1.25 * t - 2.25) * t * t + 1",
         "p -> t = 2 - (p - floor(p)); ((-0.75 * t + 3.75) * t - 6) * t + 3"},
    };
    int is_cubic = a->mode == TN_RESAMPLE_CUBIC;
    tn_array *at = positions_between(build, a);
    out[0] = build->expr(build, "i -> j = i64(floor(i)) + k; min(max(j, 0), last)",
                         TN_IN(at), tn_attrs("k", is_cubic ? k - 1 : k, "last", a->in - 1));
    out[1] =
        a->mode < TN_RESAMPLE_LINEAR
            ? NULL
            : resample_as_column(
                  build, build->expr(build, weights[is_cubic][k], TN_IN(at), TN_NO_ATTRS),
                  a->out, dtype);
}

// The parts that divide an axis: positions of each part's elements, clamped to the part,
// and their number.
static void resample_parts_of(const tn_build *build, const tn_resample_axis *a,
                              tn_array *out[2])
{
    int64_t most = a->in / a->out + 2;
    const tn_attr_list attrs = tn_attrs("size", a->in, "out", a->out);
    out[0] = build->expr(build,
                         "i, k -> b = i * size // out; "
                         "e = ((i + 1) * size + out - 1) // out; min(b + k, e - 1)",
                         TN_IN(counted(build, a->out, 1), counted(build, most, 0)), attrs);
    out[1] = build->expr(build, "i -> ((i + 1) * size + out - 1) // out - i * size // out",
                         TN_IN(counted(build, a->out, 2)), attrs);
}

// The mean of each part along axis 1 of x (images, size, others).
static tn_array *mean_parts(const tn_build *build, tn_array *x, const tn_resample_axis *a)
{
    tn_array *of[2];
    resample_parts_of(build, a, of);
    x = build->op(build, "base.take/1", TN_IN(x, of[0]), tn_attrs("axis", (int64_t)1));
    x = build->expr(build, "x, n, k -> select(k < n, x, 0)",
                    TN_IN(x, of[1], counted(build, a->in / a->out + 2, 1)), TN_NO_ATTRS);
    x = build->op(build, "base.sum/1", TN_IN(x), tn_attrs("axis", TN_INTS(2)));
    tn_array *counts =
        with_shape(build, "base.reshape/1", of[1], 2, (int64_t[]){a->out, 1});
    return build->expr(build, "s, n -> s / n",
                       TN_IN(x, cast(build, counts, dtype_of(build, x))), TN_NO_ATTRS);
}

// The transpose of mean_parts(): g (images, parts, others) -> images, size, others.
static tn_array *share_parts(const tn_build *build, tn_array *g, const tn_resample_axis *a)
{
    const tn_type *type = build->type(g);
    tn_array *of[2];
    if (!type)
        return NULL;
    int64_t whole[3] = {type->extent[0], a->in, type->extent[2]};
    int64_t apart[4] = {type->extent[0], a->out, 1, type->extent[2]};
    resample_parts_of(build, a, of);
    tn_array *counts = cast(build, of[1], type->dtype);
    g = with_shape(build, "base.reshape/1", g, 4, apart);
    g = build->expr(build, "g, n, c, k -> select(k < n, g / c, 0)",
                    TN_IN(g, of[1], counts, counted(build, a->in / a->out + 2, 1)),
                    TN_NO_ATTRS);
    return build->op(build, "base.scatter_add/1",
                     TN_IN(zeros(build, dtype_of(build, g), 3, whole), of[0], g),
                     tn_attrs("axis", (int64_t)1));
}

// Repeats each element `times` times, side by side.
static tn_array *resample_repeated(const tn_build *build, tn_array *x, int64_t times)
{
    const tn_type *type = build->type(x);
    if (!type)
        return NULL;
    int64_t apart[4] = {type->extent[0], type->extent[1], 1, type->extent[2]};
    int64_t wide[4] = {apart[0], apart[1], times, apart[3]};
    int64_t joined[3] = {apart[0], apart[1] * times, apart[3]};
    x = with_shape(build, "base.reshape/1", x, 4, apart);
    x = with_shape(build, "base.broadcast_to/1", x, 4, wide);
    return with_shape(build, "base.reshape/1", x, 3, joined);
}

// Resamples x (images, size, others) along axis 1.
static tn_array *resampled_axis(const tn_build *build, tn_array *x,
                                const tn_resample_axis *a)
{
    static const int64_t counts[] = {1, 1, 2, 4};
    if (a->mode == TN_RESAMPLE_PARTS)
        return mean_parts(build, x, a);
    if (a->mode < TN_RESAMPLE_LINEAR && a->out % a->in == 0 &&
        a->step * (double)a->out == (double)a->in)
        return resample_repeated(build, x, a->out / a->in);
    tn_array *sum = NULL;
    for (int64_t k = 0; k < counts[a->mode]; k++) {
        tn_array *tap[2];
        taps_of(build, a, k, dtype_of(build, x), tap);
        tn_array *part =
            build->op(build, "base.take/1", TN_IN(x, tap[0]), tn_attrs("axis", (int64_t)1));
        if (tap[1])
            part = build->expr(build, "x, w -> x * w", TN_IN(part, tap[1]), TN_NO_ATTRS);
        sum = sum ? add(build, sum, part) : part;
    }
    return sum;
}

// The transpose of resampled_axis().
static tn_array *spread_axis(const tn_build *build, tn_array *g, const tn_resample_axis *a)
{
    static const int64_t counts[] = {1, 1, 2, 4};
    const tn_type *type = build->type(g);
    if (!type || a->mode == TN_RESAMPLE_PARTS)
        return type ? share_parts(build, g, a) : NULL;
    tn_array *sum =
        zeros(build, type->dtype, 3, (int64_t[]){type->extent[0], a->in, type->extent[2]});
    for (int64_t k = 0; k < counts[a->mode]; k++) {
        tn_array *tap[2];
        taps_of(build, a, k, dtype_of(build, g), tap);
        tn_array *part =
            tap[1] ? build->expr(build, "g, w -> g * w", TN_IN(g, tap[1]), TN_NO_ATTRS) : g;
        sum = build->op(build, "base.scatter_add/1", TN_IN(sum, tap[0], part),
                        tn_attrs("axis", (int64_t)1));
    }
    return sum;
}

// Resamples rows before columns; the transpose goes the other way.
static tn_status resample_graph(const tn_build *build, const tn_rule *rule, int is_input,
                                tn_array **outputs)
{
    const tn_type *type = build->type(rule->inputs[0]);
    tn_resample_axis sides[2];
    if (!type || read_sides(build->host, rule->attrs, type, is_input, sides))
        return TN_ERR_ARGUMENT;
    tn_dtype dtype = type->dtype, wide = tn_dtype_computed(dtype);
    int64_t shape[4];
    memcpy(shape, type->extent, sizeof(shape));
    tn_array *x = wide != dtype ? cast(build, rule->inputs[0], wide) : rule->inputs[0];
    for (int turn = 0; turn < 2; turn++) {
        int i = is_input ? 1 - turn : turn;
        if (tn_resample_is_identity(&sides[i]))
            continue;
        int64_t flat[3] = {i ? shape[0] * shape[1] : shape[0], shape[i + 1],
                           i ? shape[3] : shape[2] * shape[3]};
        x = with_shape(build, "base.reshape/1", x, 3, flat);
        x = is_input ? spread_axis(build, x, &sides[i])
                     : resampled_axis(build, x, &sides[i]);
        shape[i + 1] = is_input ? sides[i].in : sides[i].out;
    }
    x = with_shape(build, "base.reshape/1", x, 4, shape);
    outputs[0] = wide != dtype ? cast(build, x, dtype) : x;
    return built(outputs[0]);
}

DECOMPOSE(resample2d)
{
    return resample_graph(build, rule, 0, outputs);
}

DECOMPOSE(resample2d_input)
{
    return resample_graph(build, rule, 1, outputs);
}

// --- derivatives ------------------------------------------------------------------------

// Applies `primitive` to x; the result has the rows and columns of `like`. Steps are given,
// as they would follow from extents that are not x's.
static tn_status resample_as(const tn_build *build, const tn_rule *rule, int to_input,
                             tn_array *x, const tn_array *like, tn_array **out)
{
    const tn_resample2d_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(like);
    if (!type)
        return TN_ERR_ARGUMENT;
    const tn_ints extent = {2, 1, {type->extent[1], type->extent[2]}};
    *out =
        build->op(build, to_input ? "nn.resample2d_input/1" : "nn.resample2d/1", TN_IN(x),
                  tn_attrs("extent", &extent, "row_step", attrs->row_step, "column_step",
                           attrs->column_step, "mode", attrs->mode, "align_corners",
                           attrs->align_corners));
    return built(*out);
}

// The batch is merged into the axis of images.
static tn_status resample_batch(const tn_build *build, const tn_rule *rule, int is_input,
                                int32_t axis, int64_t size, tn_array **outputs)
{
    tn_array *x = merge_batch(build, rule->inputs[0], axis, size), *out = NULL;
    if (!x)
        return TN_ERR_ARGUMENT;
    tn_status status = resample_as(build, rule, is_input, x, rule->outputs[0], &out);
    outputs[0] = split_batch(build, out, rule->outputs[0], size);
    return status ? status : built(outputs[0]);
}

// --- in other operators -----------------------------------------------------------------

// Resamples rows and columns of x, with `before` images before them and `behind` channels
// behind.
static tn_array *resampled_plane(const tn_build *build, tn_array *x, int64_t before,
                                 const struct resampled_axis plane[2], int64_t behind,
                                 int64_t mode, int64_t align_corners)
{
    x = with_shape(build, "base.reshape/1", x, 4,
                   (int64_t[]){before, plane[0].in, plane[1].in, behind});
    return build->op(build, "nn.resample2d/1", TN_IN(x),
                     tn_attrs("extent", TN_INTS(plane[0].out, plane[1].out), "row_step",
                              plane[0].step, "column_step", plane[1].step, "mode", mode,
                              "align_corners", align_corners));
}

tn_array *resampled(const tn_build *build, tn_array *x, int32_t n, int32_t first,
                    const struct resampled_axis axes[MOST_SPATIAL], int64_t mode,
                    int64_t align_corners)
{
    const struct resampled_axis whole = {1, 1, 1}, none = {0};
    const struct resampled_axis *rows = n > 1 ? &axes[n - 2] : &whole;
    struct resampled_axis plane[2] = {*rows, axes[n - 1]}, deep[2] = {axes[0], none};
    tn_ints shape = tn_extents(build, x);
    int64_t before = n == 3 ? axes[0].in : 1, behind = 1;
    for (int32_t i = 0; i < first; i++)
        before *= shape.value[i];
    for (int32_t i = first + n; i < (int32_t)shape.count; i++)
        behind *= shape.value[i];
    x = resampled_plane(build, x, before, plane, behind, mode, align_corners);
    if (n == 3) {
        deep[1].in = deep[1].out = plane[0].out * plane[1].out;
        deep[1].step = 1;
        x = resampled_plane(build, x, before / axes[0].in, deep, behind, mode,
                            align_corners);
    }
    for (int32_t i = 0; i < n; i++)
        shape.value[first + i] = axes[i].out;
    return build->op(build, "base.reshape/1", TN_IN(x),
                     tn_attrs("shape", (const tn_ints *)&shape));
}

// --- records ----------------------------------------------------------------------------

static const char *const resample_modes[] = {"nearest", "nearest_exact", "linear",
                                             "cubic",   "parts",         NULL};
static const tn_attr_field resample_fields[] = {
    TN_REQUIRED_FIELD(tn_resample2d_attrs, extent, TN_ATTR_INTS,
                      "rows and columns of the result"),
    TN_F64_FIELD(tn_resample2d_attrs, row_step, 0,
                 "from a row of the result to the next; 0: what extents say"),
    TN_F64_FIELD(tn_resample2d_attrs, column_step, 0, "likewise"),
    TN_CHOICE_FIELD(tn_resample2d_attrs, mode, TN_RESAMPLE_LINEAR, resample_modes,
                    "the element at or before; the nearest; on lines; on cubics; means"),
    TN_BOOL_FIELD(tn_resample2d_attrs, align_corners, 0,
                  "linear and cubic: result 0 is element 0"),
};
static const tn_input_info resample_inputs[] = {
    {"x", "N, H, W, C: images, channels last", 0, TN_FLOAT_DTYPES},
};

#define RESAMPLE(name, is_input, sentence)                                                 \
    TN_VJP(name##_vjp)                                                                     \
    {                                                                                      \
        return resample_as(build, rule, !is_input, cotangents[0], rule->inputs[0],         \
                           gradients);                                                     \
    }                                                                                      \
    TN_JVP(name##_jvp)                                                                     \
    {                                                                                      \
        return resample_as(build, rule, is_input, tangents[0], rule->outputs[0],           \
                           out_tangents);                                                  \
    }                                                                                      \
    TN_VMAP(name##_vmap)                                                                   \
    {                                                                                      \
        out_axes[0] = 0;                                                                   \
        return resample_batch(build, rule, is_input, axes[0], size, outputs);              \
    }                                                                                      \
    const tn_primitive nn_##name = {                                                       \
        .struct_size = sizeof(tn_primitive),                                               \
        .id = "nn." #name "/1",                                                            \
        .doc = sentence,                                                                   \
        TN_INPUTS(resample_inputs),                                                        \
        .attrs = TN_ATTR_TABLE(tn_resample2d_attrs, resample_fields),                      \
        .infer = name##_infer,                                                             \
        .decompose = name##_decompose,                                                     \
        .vjp = name##_vjp,                                                                 \
        .jvp = name##_jvp,                                                                 \
        .vmap = name##_vmap,                                                               \
    }
RESAMPLE(resample2d, 0, "Rows and columns made of others by weights: see interpolate.");
RESAMPLE(resample2d_input, 1,
         "resample2d's transpose: each element is shared out among those it is made of.");
