// SPDX-License-Identifier: MIT
// Special functions as expressions: gamma and lgamma by recurrence to an interval with a
// polynomial, digamma and trigamma by recurrence to at least 8; from 8 on (lgamma of f32
// from 3) by asymptotic series, below 0 by reflection; the modified Bessel functions i0e
// and i1e, scaled by exp(-abs(x)), by polynomials.
//
// Abramowitz and Stegun, "Handbook of mathematical functions", 1964: 6.1.15 (recurrence),
// 6.1.17 (reflection), 6.1.41, 6.3.18 and 6.4.12 (asymptotic), 9.6.26 and 9.7.1 (Bessel).
//
// An expression's part that only some numbers need stands on one side of a "?": devices
// that compile programs compute it for these alone.
#include <stdbool.h>
#include "../pack.h"

#include "special.h"

// A derivative: an expression over the cotangent or tangent g, x, and the values for x of
// the primitives in `with`.
struct slope {
    const char *text;
    const char *with[2];
};

static tn_array *slope_apply(const tn_build *build, const struct slope *slope, tn_array *x,
                             tn_array *g)
{
    tn_array *in[4] = {g, x};
    uint64_t count = 2;
    for (int32_t i = 0; i < 2 && slope->with[i]; i++)
        in[count++] = build->op(build, slope->with[i], TN_IN(x), TN_NO_ATTRS);
    return build->expr(build, slope->text, (const tn_array *const *)in, count, TN_NO_ATTRS);
}

// Whether x is computed in f64, as integers are.
static bool special_is_wide(tn_dtype dtype)
{
    return !tn_is_float(dtype) || dtype == TN_F64;
}

static tn_status special_infer(const tn_infer *infer, tn_type *types)
{
    tn_dtype dtype = infer->types[0].dtype;
    if (tn_is_complex(dtype))
        return infer->host->fail(infer->host, TN_ERR_UNSUPPORTED,
                                 "x is %s, expected a real number", dtype_text(dtype));
    types[0] = infer->types[0];
    types[0].dtype = tn_is_float(dtype) ? dtype : TN_F64;
    return TN_OK;
}

static tn_status special_decompose(const tn_build *build, const tn_rule *rule,
                                   const char *narrow, const char *wide, tn_array **outputs)
{
    tn_array *x = rule->inputs[0];
    const tn_type *type = build->type(x);
    if (!type)
        return TN_ERR_ARGUMENT;
    if (!tn_is_float(type->dtype))
        x = as_dtype(build, x, TN_F64);
    outputs[0] = build->expr(build, special_is_wide(type->dtype) ? wide : narrow, TN_IN(x),
                             TN_NO_ATTRS);
    return built(outputs[0]);
}

// vmap applies the same primitive, which keeps its derivatives.
static tn_status special_map(const tn_build *build, const tn_rule *rule,
                             const int32_t *axes, const char *id, tn_array **outputs,
                             int32_t *out_axes)
{
    return tn_vmap_elementwise(build, rule, axes, outputs, out_axes, id, TN_NO_ATTRS);
}

// The derivatives of base.NAME/1, a struct slope.
#define SLOPE(name, ...)                                                                   \
    static const struct slope name##_slope = {__VA_ARGS__};                                \
    TN_VJP(name##_vjp)                                                                     \
    {                                                                                      \
        gradients[0] = slope_apply(build, &name##_slope, rule->inputs[0], cotangents[0]);  \
        return built(gradients[0]);                                                        \
    }                                                                                      \
    TN_JVP(name##_jvp)                                                                     \
    {                                                                                      \
        out_tangents[0] = slope_apply(build, &name##_slope, rule->inputs[0], tangents[0]); \
        return built(out_tangents[0]);                                                     \
    }
#define RECORD(name, sentence, ...)                                                        \
    const tn_primitive base_##name = {                                                     \
        .struct_size = sizeof(tn_primitive),                                               \
        .id = "base." #name "/1",                                                          \
        .doc = sentence,                                                                   \
        TN_INPUTS(base_x),                                                                 \
        .vjp = name##_vjp,                                                                 \
        .jvp = name##_jvp,                                                                 \
        __VA_ARGS__,                                                                       \
    }
// base.NAME/1 by two expressions: for dtypes that are computed in f32, and in f64.
#define SPECIAL(name, sentence, narrow, wide)                                              \
    DECOMPOSE(name)                                                                        \
    {                                                                                      \
        return special_decompose(build, rule, "x -> " narrow, "x -> " wide, outputs);      \
    }                                                                                      \
    TN_VMAP(name##_vmap)                                                                   \
    {                                                                                      \
        return special_map(build, rule, axes, "base." #name "/1", outputs, out_axes);      \
    }                                                                                      \
    RECORD(name, sentence, .infer = special_infer, .decompose = name##_decompose,          \
           .vmap = name##_vmap)

// --- gamma ------------------------------------------------------------------------------

// y: x, reflected to the right of 0.
#define REFLECTED "y = x < 0 ? 1 - x : x; "
#define REFLECT_LOG                                                                        \
    "isinf(x) ? inf : x < 0 ? log(pi / abs(sin(pi * (x - round(x))))) - right : right"
// Below 3 a polynomial of u, the distance from 1, which is exact; below 1 for y + 1. From 3
// on (y - 1/2) (log(y) - 1), which loses fewer digits than its terms apart.
#define LOG_GAMMA_NARROW                                                                   \
    REFLECTED "u = y < 1 ? y : y - 1; t = u - 1; l = log(y); " LOG_GAMMA_32                \
              "i = 1 / y; r = i * i; "                                                     \
              "right = y < 3 ? u * t * g + (y < 1 ? -l : 0) : (y - 0.5) * (l - 1) + "      \
              "(0.41893853320467274 + i * (1 / 12.0 - r * (1 / 360.0 - "                   \
              "r * (1 / 1260.0 - r * (1 / 1680.0 - r * (1 / 1188.0)))))); " REFLECT_LOG
// From 3 to 8, y is z + k with z below 3: adds the logarithm of p = z (z + 1) ... .
#define LOG_GAMMA_WIDE                                                                     \
    REFLECTED "k = y >= 3 & y < 8 ? floor(y) - 2 : 0; z = y - k; "                         \
              "p = k > 0 ? z * (k > 1 ? z + 1 : 1) * (k > 2 ? z + 2 : 1) * "               \
              "(k > 3 ? z + 3 : 1) * (k > 4 ? z + 4 : 1) : y; "                            \
              "u = y < 1 ? y : z - 1; t = u - 1; l = log(p); " LOG_GAMMA_64                \
              "i = 1 / y; r = i * i; "                                                     \
              "right = y < 8 ? u * t * g + (y < 1 ? -l : k > 0 ? l : 0) : "                \
              "(y - 0.5) * (l - 1) + (0.41893853320467274 + " TAIL "); " REFLECT_LOG
// The asymptotic series of lgamma from 8 on, in i = 1 / y and r = i * i.
#define TAIL                                                                               \
    "i * (1 / 12.0 - r * (1 / 360.0 - r * (1 / 1260.0 - r * (1 / 1680.0 - "                \
    "r * (1 / 1188.0 - r * (691 / 360360.0 - r * (1 / 156.0 - "                            \
    "r * (3617 / 122400.0))))))))"
#define TAIL_NARROW "i * (1 / 12.0 - r * (1 / 360.0 - r * (1 / 1260.0)))"

SLOPE(lgamma, "g, x, d -> g * d", {"base.digamma/1"})
SPECIAL(lgamma, "The logarithm of the absolute value of the gamma function.",
        LOG_GAMMA_NARROW, LOG_GAMMA_WIDE);

// Below 8, y is z + k with z in [1, 2); below 1 the polynomial is for y + 1. From 8 on
// gamma is sqrt(2 pi / y) * (y / e) ** y * exp(tail), above 172 more than f64 holds: `half`
// is its square root but for the constant and the tail.
#define GAMMA(series, tail)                                                                \
    REFLECTED                                                                              \
    "k = y >= 1 & y < 8 ? floor(y) - 1 : 0; z = y - k; "                                   \
    "p = k > 0 ? z * (k > 1 ? z + 1 : 1) * (k > 2 ? z + 2 : 1) * "                         \
    "(k > 3 ? z + 3 : 1) * (k > 4 ? z + 4 : 1) * (k > 5 ? z + 5 : 1) : 1; "                \
    "t = 2 * z - (y < 1 ? 1 : 3); " series "i = 1 / y; r = i * i; "                        \
    "half = y ** (0.5 * y - 0.25) * exp(-0.5 * y); "                                       \
    "right = y < 8 ? (y < 1 ? g / y : p * g) : y > 172 ? inf : "                           \
    "half * half * (2.50662827463100050242 * exp(" tail ")); "                             \
    "x == -inf | x < 0 & x == floor(x) ? nan "                                             \
    ": x < 0 ? pi / sin(pi * (x - 2 * round(x / 2))) / right : right"

SLOPE(gamma, "g, x, f, d -> g * f * d", {"base.gamma/1", "base.digamma/1"})
SPECIAL(gamma, "The gamma function: (x - 1)! of whole numbers.",
        GAMMA(GAMMA_NEAR_32, TAIL_NARROW), GAMMA(GAMMA_NEAR_64, TAIL));

// --- digamma and trigamma ---------------------------------------------------------------

// y: x, reflected. Below 8 the recurrence goes up eight steps.
#define UP_EIGHT                                                                           \
    "y = x < 0 ? 1 - x : 1.0 * x; "                                                        \
    "v = y < 8 ? y + 8 : y; "                                                              \
    "r = 1 / (v * v); "

// The eight reciprocals of y to y + 7 have one denominator: with q = y (y + 7), those of y
// and y + 7, of y + 1 and y + 6, ... sum to 2 y + 7 over q, q + 6, q + 10 and q + 12.
SLOPE(digamma, "g, x, d -> g * d", {"base.trigamma/1"})
RECORD(digamma, "The derivative of lgamma.",
       .expr = "y = x < 0 ? 1 - x : 1.0 * x; v = y < 8 ? y + 8 : y; i = 1 / v; r = i * i; "
               "q = y * (y + 7); "
               "s = y < 8 ? (2 * y + 7) * (((4 * q + 84) * q + 504) * q + 720) / "
               "(q * ((q + 6) * ((q + 10) * (q + 12)))) : 0; "
               "right = log(v) - 0.5 * i - r * (1 / 12.0 - r * (1 / 120.0 - r * (1 / 252.0 "
               "- r * (1 / 240.0 - r * (1 / 132.0 - r * (691 / 32760.0 - r / 12)))))) - s; "
               "x == inf ? inf : x < 0 & x == floor(x) ? nan "
               ": x < 0 ? right - pi / tan(pi * (x - round(x))) : right");

const tn_primitive base_trigamma = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.trigamma/1",
    .doc = "The second derivative of lgamma.",
    TN_INPUTS(base_x),
    .expr = UP_EIGHT
    "a = 1 / y; b = 1 / (y + 1); c = 1 / (y + 2); d = 1 / (y + 3); "
    "f = 1 / (y + 4); g = 1 / (y + 5); h = 1 / (y + 6); i = 1 / (y + 7); "
    "s = a * a + b * b + c * c + d * d + f * f + g * g + h * h + i * i; "
    "right = (1 + 0.5 / v + r * (1 / 6.0 - r * (1 / 30.0 - r * (1 / 42.0 - r * (1 / 30.0 - "
    "r * (5 / 66.0 - r * (691 / 2730.0 - r * (7 / 6.0)))))))) / v + (y < 8 ? s : 0); "
    "m = pi / sin(pi * (x - round(x))); "
    "isinf(x) ? (x > 0 ? 0 : nan) : x < 0 ? m * m - right : right",
};

// --- Bessel -----------------------------------------------------------------------------

#define BESSEL(below, near, above, far)                                                    \
    "m = abs(x); t = 0.25 * m - 1; o = 16 / m - 1; " below above "m < 8 ? " near " : " far \
    "b / sqrt(m)"

SLOPE(i0e, "g, x, f, d -> g * (d - sign(x) * f)", {"base.i0e/1", "base.i1e/1"})
SPECIAL(i0e, "exp(-abs(x)) * I0(x), I0 the modified Bessel function of order 0.",
        BESSEL(I0E_BELOW_32, "(m > 0 ? a : 1)", I0E_ABOVE_32, ""),
        BESSEL(I0E_BELOW_64, "(m > 0 ? a : 1)", I0E_ABOVE_64, ""));

SLOPE(i1e, "g, x, f, d -> g * (f - d * sign(x) - (x == 0 ? 0.5 : d / x))",
      {"base.i0e/1", "base.i1e/1"})
SPECIAL(i1e, "exp(-abs(x)) * I1(x), I1 the modified Bessel function of order 1.",
        BESSEL(I1E_BELOW_32, "a * x", I1E_ABOVE_32, "sign(x) * "),
        BESSEL(I1E_BELOW_64, "a * x", I1E_ABOVE_64, "sign(x) * "));
