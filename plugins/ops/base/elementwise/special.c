// SPDX-License-Identifier: MIT
// Special functions, each an expression: gamma, lgamma, digamma, trigamma by recurrence to
// an interval, by asymptotic series from 8 on and by reflection below 0; the modified
// Bessel functions i0e and i1e, scaled by exp(-abs(x)), by Chebyshev series.
//
// Abramowitz and Stegun, "Handbook of mathematical functions", 1964: 6.1.15 (recurrence),
// 6.1.17 (reflection), 6.1.41, 6.3.18 and 6.4.12 (asymptotic), 9.6.26 and 9.7.1 (Bessel).
#include "../pack.h"

#include "special.h"

// A function of x with its derivative as an expression over the cotangent or tangent g, x
// and values of other primitives, which `with` names, of x.
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

// base.NAME/1: an expression with the derivative of a struct slope.
#define SPECIAL(name, sentence, value, ...)                                                \
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
    }                                                                                      \
    const tn_primitive base_##name = {                                                     \
        .struct_size = sizeof(tn_primitive),                                               \
        .id = "base." #name "/1",                                                          \
        .doc = sentence,                                                                   \
        TN_INPUTS(base_x),                                                                 \
        .expr = value,                                                                     \
        .vjp = name##_vjp,                                                                 \
        .jvp = name##_jvp,                                                                 \
    }

// --- gamma ------------------------------------------------------------------------------

// y: x, reflected to the right of 0. w: y or y + 1, at least 1. Below 8 it is z + k with z
// below 3, and gamma(w) = p * gamma(z), where log(gamma(z)) = q. From 8 on v is w, and
// gamma(v) = sqrt(2 pi / v) * (v / e) ** v * exp(tail).
#define GAMMA                                                                              \
    "y = x < 0 ? 1 - x : 1.0 * x; "                                                        \
    "w = y < 1 ? y + 1 : y; "                                                              \
    "k = w < 8 ? max(floor(w) - 2, 0) : 0; "                                               \
    "z = min(w - k, 3); "                                                                  \
    "p = (k > 0 ? z : 1) * (k > 1 ? z + 1 : 1) * (k > 2 ? z + 2 : 1) * "                   \
    "(k > 3 ? z + 3 : 1) * (k > 4 ? z + 4 : 1); "                                          \
    "u = 2 * (z - 2); " LOG_GAMMA_SERIES "q = (z - 1) * (z - 2) * g; "                     \
    "v = max(w, 8); "                                                                      \
    "r = 1 / (v * v); "                                                                    \
    "tail = (1 / 12.0 - r * (1 / 360.0 - r * (1 / 1260.0 - r * (1 / 1680.0 - "             \
    "r * (1 / 1188.0 - r * (691 / 360360.0 - r * (1 / 156.0 - "                            \
    "r * (3617 / 122400.0)))))))) / v; "

SPECIAL(lgamma, "The logarithm of the absolute value of the gamma function.",
        GAMMA
        "below = log(p) + q; "
        "above = (v - 0.5) * log(v) - v + 0.91893853320467274178 + tail; "
        "right = (w < 8 ? below : above) - (y < 1 ? log(y) : 0); "
        "isinf(x) ? inf : x < 0 ? log(pi / abs(sin(pi * (x - round(x))))) - right : right",
        "g, x, d -> g * d", {"base.digamma/1"});

// Above 172 it is more than f64 holds. half is its square root for v, but for the tail.
SPECIAL(gamma, "The gamma function: (x - 1)! of whole numbers.",
        GAMMA "half = v ** (0.5 * v - 0.25) * exp(-0.5 * v); "
              "above = w > 172 ? inf : half * half * (2.50662827463100050242 * exp(tail)); "
              "right = (w < 8 ? p * exp(q) : above) / (y < 1 ? y : 1); "
              "x == 0 ? 1 / x : x == -inf | x < 0 & x == floor(x) ? nan "
              ": x < 0 ? pi / sin(pi * (x - 2 * round(x / 2))) / right : right",
        "g, x, f, d -> g * f * d", {"base.gamma/1", "base.digamma/1"});

// --- digamma and trigamma ---------------------------------------------------------------

// y: x, reflected. Below 8 the recurrence goes up eight steps.
#define UP_EIGHT                                                                           \
    "y = x < 0 ? 1 - x : 1.0 * x; "                                                        \
    "v = y < 8 ? y + 8 : y; "                                                              \
    "r = 1 / (v * v); "

SPECIAL(digamma, "The derivative of lgamma.",
        UP_EIGHT
        "s = 1 / y + 1 / (y + 1) + 1 / (y + 2) + 1 / (y + 3) + 1 / (y + 4) + 1 / (y + 5) + "
        "1 / (y + 6) + 1 / (y + 7); "
        "right = log(v) - 0.5 / v - r * (1 / 12.0 - r * (1 / 120.0 - r * (1 / 252.0 - "
        "r * (1 / 240.0 - r * (1 / 132.0 - r * (691 / 32760.0 - r / 12)))))) - "
        "(y < 8 ? s : 0); "
        "x == inf ? inf : x < 0 & x == floor(x) ? nan "
        ": x < 0 ? right - pi / tan(pi * (x - round(x))) : right",
        "g, x, d -> g * d", {"base.trigamma/1"});

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

SPECIAL(
    i0e, "exp(-abs(x)) * I0(x), I0 the modified Bessel function of order 0.",
    "m = abs(1.0 * x); w = min(m, 8) / 2 - 2; o = 32 / max(m, 8) - 2; " I0E_BELOW I0E_ABOVE
    "m < 8 ? a : b / sqrt(m)",
    "g, x, f, d -> g * (d - sign(x) * f)", {"base.i0e/1", "base.i1e/1"});

SPECIAL(
    i1e, "exp(-abs(x)) * I1(x), I1 the modified Bessel function of order 1.",
    "m = abs(1.0 * x); w = min(m, 8) / 2 - 2; o = 32 / max(m, 8) - 2; " I1E_BELOW I1E_ABOVE
    "m < 8 ? a * x : sign(x) * b / sqrt(m)",
    "g, x, f, d -> g * (f - d * sign(x) - (x == 0 ? 0.5 : d / x))",
    {"base.i0e/1", "base.i1e/1"});
