// SPDX-License-Identifier: MIT
// The transforms along the last axis, and their rules. They are linear: the tangent is the
// transform of the tangent. The gradient is the transposed and conjugated transform of the
// cotangent; of a real input, its real part.
#include "pack.h"

static const tn_input_info complex_x[] = {{"x", "rows", 0, TN_COMPLEX_DTYPES}};
static const tn_input_info real_x[] = {
    {"x", "rows", 0, TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64)}};

// --- types ------------------------------------------------------------------------------

static tn_status check_rows(const tn_infer *infer, double scale)
{
    const tn_host *host = infer->host;
    const tn_type *x = &infer->types[0];
    char text[SHAPE_TEXT];
    if (x->rank < 1 || x->extent[x->rank - 1] < 1)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "x has shape %s, expected rows of at least 1 element",
                          shape_text(x, text));
    if (!isfinite(scale))
        return host->fail(host, TN_ERR_ARGUMENT, "scale is %g, expected a finite number",
                          scale);
    return TN_OK;
}

static tn_status dft_infer(const tn_infer *infer, tn_type *types)
{
    tn_status status = check_rows(infer, ((const tn_dft_attrs *)infer->attrs)->scale);
    if (status == TN_OK)
        types[0] = infer->types[0];
    return status;
}

static tn_status dft_of_real_infer(const tn_infer *infer, tn_type *types)
{
    const tn_type *x = &infer->types[0];
    tn_status status =
        check_rows(infer, ((const tn_dft_of_real_attrs *)infer->attrs)->scale);
    if (status)
        return status;
    types[0] = *x;
    types[0].dtype = tn_dtype_complex(x->dtype);
    types[0].extent[x->rank - 1] = x->extent[x->rank - 1] / 2 + 1;
    return TN_OK;
}

static tn_status dft_to_real_infer(const tn_infer *infer, tn_type *types)
{
    const tn_dft_to_real_attrs *attrs = infer->attrs;
    const tn_type *x = &infer->types[0];
    char text[SHAPE_TEXT];
    tn_status status = check_rows(infer, attrs->scale);
    if (status)
        return status;
    if (attrs->n < 1 || attrs->n / 2 + 1 != x->extent[x->rank - 1])
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "x has shape %s and n is %" PRId64
                                 ", expected rows of n / 2 + 1 elements",
                                 shape_text(x, text), attrs->n);
    types[0] = *x;
    types[0].dtype = tn_dtype_real(x->dtype);
    types[0].extent[x->rank - 1] = attrs->n;
    return TN_OK;
}

// --- rules ------------------------------------------------------------------------------

static tn_array *dft(const tn_build *build, tn_array *x, bool inverse, double scale)
{
    return build->op(build, "fft.dft/1", TN_IN(x),
                     tn_attrs("inverse", (int64_t)inverse, "scale", scale));
}

static tn_array *dft_of_real(const tn_build *build, tn_array *x, double scale)
{
    return build->op(build, "fft.dft_of_real/1", TN_IN(x), tn_attrs("scale", scale));
}

static tn_array *dft_to_real(const tn_build *build, tn_array *x, int64_t n, double scale)
{
    return build->op(build, "fft.dft_to_real/1", TN_IN(x),
                     tn_attrs("n", n, "scale", scale));
}

// Multiplies by `weight` those of elements 0 .. n / 2 that stand for their conjugates, too.
static tn_array *dft_weighted(const tn_build *build, tn_array *x, int64_t n, double weight)
{
    return build->expr(build,
                       "x -> k = index % i64(kept);"
                       "x * select(k == 0 | 2 * k == i64(n), f32(1), f32(weight))",
                       TN_IN(x), tn_attrs("kept", n / 2 + 1, "n", n, "weight", weight));
}

TN_VJP(dft_vjp)
{
    const tn_dft_attrs *attrs = rule->attrs;
    if (cotangents[0])
        gradients[0] = dft(build, cotangents[0], !attrs->inverse, attrs->scale);
    return TN_OK;
}

TN_JVP(dft_jvp)
{
    const tn_dft_attrs *attrs = rule->attrs;
    if (tangents[0])
        out_tangents[0] = dft(build, tangents[0], attrs->inverse != 0, attrs->scale);
    return TN_OK;
}

TN_VMAP(dft_vmap)
{
    const tn_dft_attrs *attrs = rule->attrs;
    outputs[0] = dft(build, tn_move_axis(build, rule->inputs[0], axes[0], 0),
                     attrs->inverse != 0, attrs->scale);
    out_axes[0] = 0;
    return built(outputs[0]);
}

TN_VJP(dft_of_real_vjp)
{
    const tn_dft_of_real_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    if (!cotangents[0] || !x)
        return TN_OK;
    int64_t n = x->extent[x->rank - 1];
    gradients[0] =
        dft_to_real(build, dft_weighted(build, cotangents[0], n, 0.5), n, attrs->scale);
    return TN_OK;
}

TN_JVP(dft_of_real_jvp)
{
    const tn_dft_of_real_attrs *attrs = rule->attrs;
    if (tangents[0])
        out_tangents[0] = dft_of_real(build, tangents[0], attrs->scale);
    return TN_OK;
}

TN_VMAP(dft_of_real_vmap)
{
    const tn_dft_of_real_attrs *attrs = rule->attrs;
    outputs[0] =
        dft_of_real(build, tn_move_axis(build, rule->inputs[0], axes[0], 0), attrs->scale);
    out_axes[0] = 0;
    return built(outputs[0]);
}

TN_VJP(dft_to_real_vjp)
{
    const tn_dft_to_real_attrs *attrs = rule->attrs;
    if (cotangents[0])
        gradients[0] = dft_weighted(build, dft_of_real(build, cotangents[0], attrs->scale),
                                    attrs->n, 2);
    return TN_OK;
}

TN_JVP(dft_to_real_jvp)
{
    const tn_dft_to_real_attrs *attrs = rule->attrs;
    if (tangents[0])
        out_tangents[0] = dft_to_real(build, tangents[0], attrs->n, attrs->scale);
    return TN_OK;
}

TN_VMAP(dft_to_real_vmap)
{
    const tn_dft_to_real_attrs *attrs = rule->attrs;
    outputs[0] = dft_to_real(build, tn_move_axis(build, rule->inputs[0], axes[0], 0),
                             attrs->n, attrs->scale);
    out_axes[0] = 0;
    return built(outputs[0]);
}

// --- records ----------------------------------------------------------------------------

static const tn_attr_field dft_fields[] = {
    TN_BOOL_FIELD(tn_dft_attrs, inverse, 0, "whether exponents are positive"),
    TN_F64_FIELD(tn_dft_attrs, scale, 1, "what sums are multiplied by"),
};
static const tn_attr_field dft_of_real_fields[] = {
    TN_F64_FIELD(tn_dft_of_real_attrs, scale, 1, "what sums are multiplied by"),
};
static const tn_attr_field dft_to_real_fields[] = {
    TN_REQUIRED_FIELD(tn_dft_to_real_attrs, n, TN_ATTR_I64,
                      "elements of a row of the result"),
    TN_F64_FIELD(tn_dft_to_real_attrs, scale, 1, "what sums are multiplied by"),
};
static const tn_in_place dft_in_place[] = {{.input = 0, .output = 0}};

#define RECORD(name, x, sentence, ...)                                                     \
    const tn_primitive fft_##name = {.struct_size = sizeof(tn_primitive),                  \
                                     .id = "fft." #name "/1",                              \
                                     .doc = sentence,                                      \
                                     TN_INPUTS(x),                                         \
                                     .attrs =                                              \
                                         TN_ATTR_TABLE(tn_##name##_attrs, name##_fields),  \
                                     .infer = name##_infer,                                \
                                     .reference = name##_reference,                        \
                                     .reference_scratch = dft_reference_scratch,           \
                                     .vjp = name##_vjp,                                    \
                                     .jvp = name##_jvp,                                    \
                                     .vmap = name##_vmap,                                  \
                                     __VA_ARGS__}
RECORD(dft, complex_x, "The discrete Fourier transform along the last axis, scaled.",
       .in_place = dft_in_place, .num_in_place = 1, .in_place_size = sizeof(tn_in_place));
RECORD(dft_of_real, real_x,
       "The first n / 2 + 1 elements of the transform of n real numbers.");
RECORD(dft_to_real, complex_x,
       "The real numbers that n / 2 + 1 elements of a transform belong to.");
