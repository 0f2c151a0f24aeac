// SPDX-License-Identifier: MIT
// The frequencies of a transform's elements, and shifts to ascending order.
#include "pack.h"

// --- fftfreq and rfftfreq ---------------------------------------------------------------

static const tn_attr_field frequency_fields[] = {
    TN_REQUIRED_FIELD(tn_fftfreq_attrs, n, TN_ATTR_I64, "elements that are transformed"),
    TN_F64_FIELD(tn_fftfreq_attrs, d, 1, "distance of samples"),
    TN_DTYPE_FIELD(tn_fftfreq_attrs, dtype, 0, "a float dtype; not given: f64"),
};

static tn_status infer_frequencies(const tn_infer *infer, tn_type *types, bool real)
{
    const tn_fftfreq_attrs *attrs = infer->attrs;
    tn_dtype dtype = attrs->dtype ? (tn_dtype)attrs->dtype : TN_F64;
    if (attrs->n < 1 || !isfinite(attrs->d) || attrs->d == 0)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "n is %" PRId64
                                 " and d %g, expected n at least 1 and d finite and not 0",
                                 attrs->n, attrs->d);
    if (!tn_is_float(dtype))
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "dtype is %s, expected a float dtype",
                                 tn_dtype_name(dtype));
    types[0] = (tn_type){dtype, 1, {real ? attrs->n / 2 + 1 : attrs->n}};
    return TN_OK;
}

static tn_status build_frequencies(const tn_build *build, const tn_rule *rule,
                                   tn_array **outputs, bool real)
{
    const tn_fftfreq_attrs *attrs = rule->attrs;
    int64_t n = attrs->n, count = real ? n / 2 + 1 : n;
    tn_array *i = build->op(build, "base.arange/1", NULL, 0,
                            tn_attrs("stop", count, "dtype", (int64_t)TN_I64));
    tn_array *x = build->expr(
        build, "i -> f64(select(i < i64(positive), i, i - i64(n))) * f64(step)", TN_IN(i),
        tn_attrs("positive", real ? count : n / 2 + n % 2, "n", n, "step",
                 1 / ((double)n * attrs->d)));
    outputs[0] = cast(build, x, attrs->dtype ? (tn_dtype)attrs->dtype : TN_F64);
    return built(outputs[0]);
}

#define FREQUENCIES(name, real, sentence)                                                  \
    static tn_status name##_infer(const tn_infer *infer, tn_type *types)                   \
    {                                                                                      \
        return infer_frequencies(infer, types, real);                                      \
    }                                                                                      \
    DECOMPOSE(name)                                                                        \
    {                                                                                      \
        return build_frequencies(build, rule, outputs, real);                              \
    }                                                                                      \
    DECOMPOSED(name, tn_fftfreq_attrs, frequency_fields, sentence, .num_inputs = 0)
FREQUENCIES(fftfreq, false, "The frequencies of the elements of fft's result.");
FREQUENCIES(rfftfreq, true, "The frequencies of the elements of rfft's result.");

// --- fftshift and ifftshift -------------------------------------------------------------

static const tn_input_info any_x[] = {{"x", "the array", 0, TN_ALL_DTYPES}};
static const tn_attr_field shift_fields[] = {
    TN_INTS_FIELD(tn_fftshift_attrs, axes, "axes to move along; not given: all"),
};

static tn_status fftshift_infer(const tn_infer *infer, tn_type *types)
{
    const tn_fftshift_attrs *attrs = infer->attrs;
    int32_t axes[TN_MAX_RANK];
    tn_status status = check_axes(infer->host, &attrs->axes, infer->types[0].rank, axes);
    if (status == TN_OK)
        types[0] = infer->types[0];
    return status;
}
#define ifftshift_infer fftshift_infer

// The elements from `first` on, then the elements before it.
static tn_array *fft_frequencies_turned(const tn_build *build, tn_array *x, int32_t axis,
                                        int64_t first, int64_t count)
{
    tn_array *a = part_of_axis(build, x, axis, first, count - first);
    tn_array *b = part_of_axis(build, x, axis, 0, first);
    return build->op(build, "base.concatenate/1", TN_IN(a, b),
                     tn_attrs("axis", (int64_t)axis));
}

static tn_status build_shift(const tn_build *build, const tn_rule *rule, tn_array **outputs,
                             bool inverse)
{
    const tn_fftshift_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    tn_ints shape = tn_extents(build, x);
    int32_t axes[TN_MAX_RANK], rank = (int32_t)shape.count;
    for (int32_t i = 0; i < rank; i++)
        axes[i] = i;
    if (attrs->axes.given && check_axes(build->host, &attrs->axes, rank, axes))
        return TN_ERR_ARGUMENT;
    int32_t count = attrs->axes.given ? (int32_t)attrs->axes.count : rank;
    for (int32_t i = 0; i < count; i++) {
        int64_t n = shape.value[axes[i]];
        if (n > 1)
            x = fft_frequencies_turned(build, x, axes[i], inverse ? n / 2 : n - n / 2, n);
    }
    if (x == rule->inputs[0]) // the output must be a result of its own
        x = build->op(build, "base.reshape/1", TN_IN(x),
                      tn_attrs("shape", (const tn_ints *)&shape));
    outputs[0] = x;
    return built(x);
}

#define SHIFT(name, inverse, sentence)                                                     \
    DECOMPOSE(name)                                                                        \
    {                                                                                      \
        return build_shift(build, rule, outputs, inverse);                                 \
    }                                                                                      \
    DECOMPOSED(name, tn_fftshift_attrs, shift_fields, sentence, TN_INPUTS(any_x))
SHIFT(fftshift, false, "x with frequency 0 moved to the middle of axes.");
SHIFT(ifftshift, true, "The reverse of fftshift.");
