// SPDX-License-Identifier: MIT
// Transforms along one axis: x is cropped or padded with zeros, the axis becomes the last
// one, its rows are transformed, and the axis moves back.
#include "pack.h"

static const tn_attr_field fields[] = {
    TN_I64_FIELD(tn_fft_attrs, n, TN_FFT_WHOLE,
                 "elements that are transformed; not given: x's, of irfft 2 (x's - 1)"),
    TN_I64_FIELD(tn_fft_attrs, axis, -1, "axis to transform along"),
    TN_CHOICE_FIELD(tn_fft_attrs, norm, TN_FFT_BACKWARD, fft_norms,
                    "which of the two directions is divided by n"),
};

static tn_status fft_transform_infer_kind(const tn_infer *infer, tn_type *types,
                                          enum kind kind)
{
    const tn_fft_attrs *attrs = infer->attrs;
    const tn_type *x = &infer->types[0];
    int32_t axis;
    int64_t n;
    tn_status status = check_real(infer->host, kind, x->dtype);
    if (status == TN_OK)
        status = check_axis(infer->host, attrs->axis, x->rank, &axis);
    if (status == TN_OK)
        status = check_length(infer->host, "n", kind, x, axis, attrs->n, &n);
    if (status)
        return status;
    types[0] = *x;
    types[0].dtype =
        kind == TO_REAL ? tn_dtype_real(complex_of(x->dtype)) : complex_of(x->dtype);
    types[0].extent[axis] = kind == OF_REAL ? n / 2 + 1 : n;
    return TN_OK;
}

// x cropped or padded to `count` elements along `axis`.
static tn_array *fft_transform_fitted(const tn_build *build, tn_array *x, int32_t axis,
                                      int64_t count)
{
    const tn_type *type = build->type(x);
    if (!type || type->extent[axis] == count)
        return x;
    if (type->extent[axis] > count)
        return part_of_axis(build, x, axis, 0, count);
    tn_ints before = {.count = (uint32_t)type->rank, .given = 1}, after = before;
    after.value[axis] = count - type->extent[axis];
    return build->op(
        build, "base.pad_constant/1", TN_IN(x),
        tn_attrs("before", (const tn_ints *)&before, "after", (const tn_ints *)&after));
}

static double fft_transform_scale_of(int64_t norm, enum kind kind, int64_t n)
{
    bool inverse = kind == INVERSE || kind == TO_REAL;
    if (norm == TN_FFT_ORTHO)
        return 1 / sqrt((double)n);
    return inverse == (norm == TN_FFT_BACKWARD) ? 1 / (double)n : 1;
}

static tn_status fft_transform_decompose_kind(const tn_build *build, const tn_rule *rule,
                                              tn_array **outputs, enum kind kind)
{
    const tn_fft_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(rule->inputs[0]);
    int32_t axis;
    int64_t n;
    if (!type || check_axis(build->host, attrs->axis, type->rank, &axis) ||
        check_length(build->host, "n", kind, type, axis, attrs->n, &n))
        return TN_ERR_ARGUMENT;
    tn_dtype dtype = complex_of(type->dtype);
    double scale = fft_transform_scale_of(attrs->norm, kind, n);
    tn_array *x =
        fft_transform_fitted(build, rule->inputs[0], axis, kind == TO_REAL ? n / 2 + 1 : n);
    x = tn_move_axis(build, x, axis, type->rank - 1);
    x = cast(build, x, kind == OF_REAL ? tn_dtype_real(dtype) : dtype);
    if (kind == OF_REAL)
        x = build->op(build, "fft.dft_of_real/1", TN_IN(x), tn_attrs("scale", scale));
    else if (kind == TO_REAL)
        x = build->op(build, "fft.dft_to_real/1", TN_IN(x),
                      tn_attrs("n", n, "scale", scale));
    else
        x = build->op(build, "fft.dft/1", TN_IN(x),
                      tn_attrs("inverse", (int64_t)(kind == INVERSE), "scale", scale));
    outputs[0] = tn_move_axis(build, x, type->rank - 1, axis);
    return built(outputs[0]);
}

#define TRANSFORM(name, kind, sentence)                                                    \
    static tn_status name##_infer(const tn_infer *infer, tn_type *types)                   \
    {                                                                                      \
        return fft_transform_infer_kind(infer, types, kind);                               \
    }                                                                                      \
    DECOMPOSE(name)                                                                        \
    {                                                                                      \
        return fft_transform_decompose_kind(build, rule, outputs, kind);                   \
    }                                                                                      \
    DECOMPOSED(name, tn_fft_attrs, fields, sentence, TN_INPUTS(fft_x))
TRANSFORM(fft, FORWARD, "The discrete Fourier transform along an axis.");
TRANSFORM(ifft, INVERSE, "The inverse of the discrete Fourier transform along an axis.");
TRANSFORM(rfft, OF_REAL,
          "The first n / 2 + 1 elements of the transform of real numbers along an axis.");
TRANSFORM(irfft, TO_REAL, "The inverse of rfft: real numbers.");
