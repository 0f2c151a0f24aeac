// SPDX-License-Identifier: MIT
// Transforms along several axes, one after the other, from the last axis on. Real input is
// transformed first along the last axis; real output is made last along it.
#include "pack.h"

#define FIELDS(name, without)                                                              \
    static const tn_attr_field name[] = {                                                  \
        TN_INTS_FIELD(tn_fftn_attrs, s,                                                    \
                      "elements that are transformed along each axis; -1: x's"),           \
        TN_INTS_FIELD(tn_fftn_attrs, axes,                                                 \
                      "axes to transform along; not given: " without),                     \
        TN_CHOICE_FIELD(tn_fftn_attrs, norm, TN_FFT_BACKWARD, fft_norms,                   \
                        "which of the two directions is divided by n"),                    \
    }
FIELDS(two_fields, "the last two");
FIELDS(fields, "the last ones, as many as s has, or all");

// The axes of a transform of x, with the length `n` of each.
struct fft_several_along {
    int32_t count, axes[TN_MAX_RANK];
    int64_t n[TN_MAX_RANK];
};

// Finds the axes: the given ones, or the last ones, whose number the name or s determines.
static tn_status fft_several_find_axes(const tn_host *host, const tn_fftn_attrs *attrs,
                                       int32_t rank, bool two,
                                       struct fft_several_along *out)
{
    const tn_ints *s = &attrs->s;
    tn_ints axes = attrs->axes;
    if (!axes.given) {
        axes = (tn_ints){.count = two        ? 2
                                  : s->given ? s->count
                                             : (uint32_t)rank,
                         .given = 1};
        for (uint32_t i = 0; i < axes.count; i++)
            axes.value[i] = (int64_t)i - (int64_t)axes.count;
    }
    if (axes.count == 0)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "there are 0 axes to transform along, expected at least 1");
    if (s->given && s->count != axes.count)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "s has %u values, expected one for each of %u axes", s->count,
                          axes.count);
    out->count = (int32_t)axes.count;
    return check_axes(host, &axes, rank, out->axes);
}

static tn_status fft_several_find(const tn_host *host, const tn_fftn_attrs *attrs,
                                  const tn_type *x, enum kind kind, bool two,
                                  struct fft_several_along *out)
{
    tn_status status = fft_several_find_axes(host, attrs, x->rank, two, out);
    for (int32_t i = 0; i < out->count && status == TN_OK; i++) {
        bool is_last = i == out->count - 1;
        int64_t n = attrs->s.given ? attrs->s.value[i] : TN_FFT_WHOLE;
        if (n == -1)
            n = TN_FFT_WHOLE;
        // A -1 in s is x's extent, even on the axis that stores half of the elements.
        enum kind own = is_last && !attrs->s.given ? kind : FORWARD;
        status = check_length(host, "s", own, x, out->axes[i], n, &out->n[i]);
    }
    return status;
}

static tn_status fft_several_infer_kind(const tn_infer *infer, tn_type *types,
                                        enum kind kind, bool two)
{
    const tn_type *x = &infer->types[0];
    struct fft_several_along along = {0};
    tn_status status = check_real(infer->host, kind, x->dtype);
    if (status == TN_OK)
        status = fft_several_find(infer->host, infer->attrs, x, kind, two, &along);
    if (status)
        return status;
    tn_dtype dtype = complex_of(x->dtype);
    types[0] = *x;
    types[0].dtype = kind == TO_REAL ? tn_dtype_real(dtype) : dtype;
    for (int32_t i = 0; i < along.count; i++)
        types[0].extent[along.axes[i]] = along.n[i];
    if (kind == OF_REAL) {
        int64_t *last = &types[0].extent[along.axes[along.count - 1]];
        *last = *last / 2 + 1;
    }
    return TN_OK;
}

static tn_status fft_several_decompose_kind(const tn_build *build, const tn_rule *rule,
                                            tn_array **outputs, enum kind kind, bool two)
{
    static const char *const single[] = {"fft.fft/1", "fft.ifft/1", "fft.rfft/1",
                                         "fft.irfft/1"};
    const tn_fftn_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(rule->inputs[0]);
    struct fft_several_along along = {0};
    if (!type || fft_several_find(build->host, attrs, type, kind, two, &along))
        return TN_ERR_ARGUMENT;
    tn_array *x = rule->inputs[0];
    enum kind others = kind == INVERSE || kind == TO_REAL ? INVERSE : FORWARD;
    int32_t last = along.count - 1;
    for (int32_t step = 0; step <= last; step++) {
        // irfftn transforms the last axis at the end.
        int32_t i = kind != TO_REAL ? last - step : step < last ? last - 1 - step : last;
        x = build->op(
            build, single[i == last ? kind : others], TN_IN(x),
            tn_attrs("n", along.n[i], "axis", (int64_t)along.axes[i], "norm", attrs->norm));
    }
    outputs[0] = x;
    return built(x);
}

#define TRANSFORM(name, kind, two, table, sentence)                                        \
    static tn_status name##_infer(const tn_infer *infer, tn_type *types)                   \
    {                                                                                      \
        return fft_several_infer_kind(infer, types, kind, two);                            \
    }                                                                                      \
    DECOMPOSE(name)                                                                        \
    {                                                                                      \
        return fft_several_decompose_kind(build, rule, outputs, kind, two);                \
    }                                                                                      \
    DECOMPOSED(name, tn_fftn_attrs, table, sentence, TN_INPUTS(fft_x))
TRANSFORM(fft2, FORWARD, true, two_fields,
          "The discrete Fourier transform along two axes.");
TRANSFORM(ifft2, INVERSE, true, two_fields, "The inverse of fft2.");
TRANSFORM(rfft2, OF_REAL, true, two_fields,
          "The transform of real numbers along two axes.");
TRANSFORM(irfft2, TO_REAL, true, two_fields, "The inverse of rfft2: real numbers.");
TRANSFORM(fftn, FORWARD, false, fields,
          "The discrete Fourier transform along several axes.");
TRANSFORM(ifftn, INVERSE, false, fields, "The inverse of fftn.");
TRANSFORM(rfftn, OF_REAL, false, fields,
          "The transform of real numbers along several axes.");
TRANSFORM(irfftn, TO_REAL, false, fields, "The inverse of rfftn: real numbers.");
