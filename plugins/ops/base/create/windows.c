// SPDX-License-Identifier: MIT
// Windows of signal processing, symmetric as NumPy's: sums of cosines over t, which goes
// from -1 to 1, and Bartlett's triangle.
//
// Harris, "On the use of windows for harmonic analysis with the discrete Fourier
// transform", Proceedings of the IEEE 66(1), 1978.
#include "../pack.h"

typedef struct {
    int64_t m;
    int64_t dtype;
} window_attrs;

static const tn_attr_field window_fields[] = {
    TN_REQUIRED_FIELD(window_attrs, m, TN_ATTR_I64, "elements; below 1: none"),
    TN_DTYPE_FIELD(window_attrs, dtype, 0, "a float dtype; not given: f64"),
};

typedef struct {
    int64_t m;
    double beta;
    int64_t dtype;
} kaiser_attrs;

static const tn_attr_field kaiser_fields[] = {
    TN_REQUIRED_FIELD(kaiser_attrs, m, TN_ATTR_I64, "elements; below 1: none"),
    TN_REQUIRED_FIELD(kaiser_attrs, beta, TN_ATTR_F64, "how narrow: 0 is a rectangle"),
    TN_DTYPE_FIELD(kaiser_attrs, dtype, 0, "a float dtype; not given: f64"),
};

// The positions from -1 to 1 in m steps, in f64; 0 where m is 1.
static tn_array *window_positions(const tn_build *build, int64_t m)
{
    tn_array *i = counted(build, m < 0 ? 0 : m, 0);
    return build->expr(build, "i -> (2.0 * i - last) / max(last, 1)", TN_IN(i),
                       tn_attrs("last", m > 0 ? m - 1 : 0));
}

static tn_status window_build(const tn_build *build, int64_t m, int64_t dtype,
                              const char *text, tn_attr_list attrs, tn_array **outputs)
{
    if (dtype && !tn_is_float((tn_dtype)dtype))
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "dtype is %s, expected a float dtype", dtype_text(dtype));
    outputs[0] = build->expr(build, text, TN_IN(window_positions(build, m)), attrs);
    if (dtype && dtype != TN_F64)
        outputs[0] = cast(build, outputs[0], (tn_dtype)dtype);
    return built(outputs[0]);
}

#define WINDOW(name, sentence, text)                                                       \
    DECOMPOSE(name)                                                                        \
    {                                                                                      \
        const window_attrs *attrs = rule->attrs;                                           \
        return window_build(build, attrs->m, attrs->dtype, text, TN_NO_ATTRS, outputs);    \
    }                                                                                      \
    COMPOSITE(name, sentence, .attrs = TN_ATTR_TABLE(window_attrs, window_fields))

WINDOW(hanning, "The Hann window.", "t -> 0.5 + 0.5 * cos(pi * t)");
WINDOW(hamming, "The Hamming window.", "t -> 0.54 + 0.46 * cos(pi * t)");
WINDOW(blackman, "The Blackman window.",
       "t -> 0.42 + 0.5 * cos(pi * t) + 0.08 * cos(2 * pi * t)");
WINDOW(bartlett, "The Bartlett window, a triangle.", "t -> 1 - abs(t)");

DECOMPOSE(kaiser)
{
    const kaiser_attrs *attrs = rule->attrs;
    // i0(u) / i0(b) with i0(u) = i0e(u) * exp(u): the quotient of the exponentials is
    // bounded.
    double b = fabs(attrs->beta);
    tn_array *u = build->expr(build, "t -> b * sqrt(max(1 - t * t, 0))",
                              TN_IN(window_positions(build, attrs->m)), tn_attrs("b", b));
    tn_array *of_u = build->op(build, "base.i0e/1", TN_IN(u), TN_NO_ATTRS);
    tn_array *of_b =
        build->op(build, "base.i0e/1", TN_IN(build->scalar(build, TN_F64, b)), TN_NO_ATTRS);
    if (attrs->dtype && !tn_is_float((tn_dtype)attrs->dtype))
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "dtype is %s, expected a float dtype",
                                 dtype_text(attrs->dtype));
    outputs[0] = build->expr(build, "u, f, g -> f / g * exp(u - b)", TN_IN(u, of_u, of_b),
                             tn_attrs("b", b));
    if (attrs->dtype && attrs->dtype != TN_F64)
        outputs[0] = cast(build, outputs[0], (tn_dtype)attrs->dtype);
    return built(outputs[0]);
}

COMPOSITE(kaiser, "The Kaiser window: Bessel functions of a half circle.",
          .attrs = TN_ATTR_TABLE(kaiser_attrs, kaiser_fields));
