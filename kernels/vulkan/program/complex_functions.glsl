// SPDX-License-Identifier: MIT
// The functions of complex.glsl for vec2. tables.py makes those for dvec2 of this text:
// complex_functions_f64.glsl. So numbers are written with the digits of f64, and thresholds suit
// both.

vec2 op_CONJ_c(vec2 a)
{
    return vec2(a.x, -a.y);
}
vec2 op_COMPLEX(float a, float b)
{
    return vec2(a, b);
}
vec2 op_MUL_c(vec2 a, vec2 b)
{
    return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
#ifdef NEED_CAST
bool to_bool(vec2 a)
{
    return to_bool(a.x) || to_bool(a.y);
}
#endif

// The distance from 0. It does not overflow before the result does.
float op_MODULUS_c(vec2 a)
{
    float x = abs(a.x), y = abs(a.y);
    if (is_inf(x) || is_inf(y))
        return infinity();
    if (is_nan(x) || is_nan(y))
        return not_a_number();
    float large = max(x, y), ratio = min(x, y) / large;
    return large == 0.0 ? large : large * sqrt(1.0 + ratio * ratio);
}

// a * ratio and a / 0, whose NaNs a driver loses that takes products and quotients of 0 for 0.
float quotient_term(float a, float ratio)
{
    return ratio == 0.0 && !is_finite(a) ? not_a_number() : a * ratio;
}
float quotient_by_zero(float a)
{
    return a == 0.0 || is_nan(a) ? not_a_number() : with_sign(infinity(), a);
}

// By Smith's method, scaled where sums of large parts would overflow. By 0: each part divided by
// 0. By NaN: NaN, which some drivers' reciprocals are not.
vec2 op_DIV_c(vec2 a, vec2 b)
{
    float x = abs(b.x), y = abs(b.y), back = 1.0;
    if (x == 0.0 && y == 0.0)
        return vec2(quotient_by_zero(a.x), quotient_by_zero(a.y));
    if (is_nan(x) || is_nan(y))
        return vec2(not_a_number());
    if (max(abs(a.x), abs(a.y)) > 1.0e37) {
        a *= 0.25;
        back = 4.0;
    }
    if (max(x, y) > 1.0e37) {
        b *= 0.25;
        back *= 0.25;
    }
    if (x >= y) {
        float ratio = b.y / b.x, scale = b.x + b.y * ratio;
        return vec2(a.x + quotient_term(a.y, ratio), a.y - quotient_term(a.x, ratio)) / scale * back;
    }
    float ratio = b.x / b.y, scale = b.x * ratio + b.y;
    return vec2(quotient_term(a.x, ratio) + a.y, quotient_term(a.y, ratio) - a.x) / scale * back;
}

// --- roots --------------------------------------------------------------------------------

#ifdef NEED_SQRT_c
vec2 op_SQRT_c(vec2 a)
{
    float x = abs(a.x), y = abs(a.y), back = 1.0;
    if (is_inf(y))
        return vec2(y, a.y);
    if (x == 0.0 && y == 0.0)
        return vec2(0.0, a.y);
    if (is_inf(x)) {
        float other = is_nan(y) ? y : 0.0;
        return a.x > 0.0 ? vec2(x, with_sign(other, a.y)) : vec2(other, with_sign(x, a.y));
    }
    if (max(x, y) > 1.0e37) {
        x *= 0.25;
        y *= 0.25;
        back = 2.0;
    } else if (max(x, y) < 1.0e-18) { // 2^60 makes subnormal numbers normal
        x *= 1152921504606846976.0;
        y *= 1152921504606846976.0;
        back = 9.31322574615478515625e-10;
    }
    float t = sqrt(0.5 * (x + op_MODULUS_c(vec2(x, y))));
    float u = 0.5 * y / t * back;
    t *= back;
    return with_sign(1.0, a.x) > 0.0 ? vec2(t, with_sign(u, a.y)) : vec2(u, with_sign(t, a.y));
}
vec2 op_RSQRT_c(vec2 a)
{
    return op_DIV_c(vec2(1.0, 0.0), op_SQRT_c(a));
}
#endif

// --- exponentials -------------------------------------------------------------------------

#ifdef NEED_EXP_c
// factor * exp(a), for a factor near 1. Where exp(a.x) may overflow and the result may not, the
// last factor is exp(40).
vec2 scaled_exp(vec2 a, float factor)
{
    if (is_inf(a.x) && !is_finite(a.y))
        return a.x > 0.0 ? vec2(a.x, not_a_number()) : vec2(0.0);
    float shift = a.x > 40.0 ? 40.0 : 0.0, scale = op_EXP(a.x - shift);
    if (a.x > 40.0)
        factor *= 235385266837019985.4078999;
    if (a.y == 0.0)
        return vec2(scale * factor, a.y);
    return vec2(scale * op_COS(a.y) * factor, scale * op_SIN(a.y) * factor);
}
vec2 op_EXP_c(vec2 a)
{
    return scaled_exp(a, 1.0);
}
vec2 op_EXP2_c(vec2 a)
{
    if (is_inf(a.x) && !is_finite(a.y))
        return op_EXP_c(a);
    float shift = a.x > 40.0 ? 40.0 : 0.0, factor = a.x > 40.0 ? 1099511627776.0 : 1.0; // 2^40
    float scale = op_EXP2(a.x - shift), angle = a.y * 0.69314718055994530942;
    if (a.y == 0.0)
        return vec2(scale * factor, a.y);
    return vec2(scale * op_COS(angle) * factor, scale * op_SIN(angle) * factor);
}
// expm1(x) cos(y) - 2 sin(y / 2)^2 + i exp(x) sin(y)
vec2 op_EXPM1_c(vec2 a)
{
    if (a.x > 40.0)
        return op_EXP_c(a);
    if (a.y == 0.0)
        return vec2(op_EXPM1(a.x), a.y);
    if (is_inf(a.x))
        return op_EXP_c(a) - vec2(1.0, 0.0);
    float half_ = op_SIN(0.5 * a.y);
    return vec2(op_EXPM1(a.x) * op_COS(a.y) - 2.0 * half_ * half_, op_EXP(a.x) * op_SIN(a.y));
}
#endif

// --- logarithms ---------------------------------------------------------------------------

#ifdef NEED_LOG_c
// log |a|: near the unit circle by the excess of |a|^2 over 1.
float log_modulus(vec2 a)
{
    float x = abs(a.x), y = abs(a.y), large = max(x, y), small = min(x, y);
    if (is_inf(x) || is_inf(y))
        return infinity();
    if (is_nan(x) || is_nan(y))
        return not_a_number();
    if (large == 0.0)
        return -infinity();
    if (large > 0.5 && large < 2.0)
        return 0.5 * op_LOG1P((large - 1.0) * (large + 1.0) + small * small);
    float ratio = small / large;
    return op_LOG(large) + 0.5 * op_LOG1P(ratio * ratio);
}
vec2 op_LOG_c(vec2 a)
{
    return vec2(log_modulus(a), op_ATAN2(a.y, a.x));
}
vec2 op_LOG2_c(vec2 a)
{
    return op_LOG_c(a) * 1.4426950408889634074;
}
vec2 op_LOG10_c(vec2 a)
{
    return op_LOG_c(a) * 0.43429448190325182765;
}
// |1 + x + iy|^2 = 1 + x (2 + x) + y^2
vec2 op_LOG1P_c(vec2 a)
{
    float excess = a.x * (2.0 + a.x) + a.y * a.y;
    if (!(abs(excess) < 0.5))
        return op_LOG_c(vec2(1.0 + a.x, a.y));
    return vec2(0.5 * op_LOG1P(excess), op_ATAN2(a.y, 1.0 + a.x));
}
#endif

// --- powers -------------------------------------------------------------------------------

#ifdef NEED_POW
// Small whole powers are products, unless these overflow or are 0.
vec2 op_POW_c(vec2 a, vec2 b)
{
    float n = abs(b.x);
    if (a == vec2(0.0) && b != vec2(0.0))
        return b.x > 0.0 ? vec2(0.0) : vec2(not_a_number());
    if (b.y == 0.0 && n <= 100.0 && n == floor(n)) {
        vec2 result = vec2(1.0, 0.0), square = a;
        for (uint left = uint(n); left > 0u; left >>= 1) {
            if ((left & 1u) != 0u)
                result = op_MUL_c(result, square);
            square = op_MUL_c(square, square);
        }
        if (op_ISFINITE_c(result) && result != vec2(0.0))
            return b.x < 0.0 ? op_DIV_c(vec2(1.0, 0.0), result) : result;
    }
    return op_EXP_c(op_MUL_c(b, op_LOG_c(a)));
}
#endif

// --- hyperbolic and circular functions ----------------------------------------------------

#ifdef NEED_EXP_c
// Beyond 40, sinh and cosh are half an exponential.
vec2 op_SINH_c(vec2 a)
{
    if (abs(a.x) > 40.0) {
        vec2 y = scaled_exp(vec2(abs(a.x), a.y), 0.5);
        return vec2(with_sign(1.0, a.x) * y.x, y.y);
    }
    if (a.y == 0.0)
        return vec2(op_SINH(a.x), a.y);
    return vec2(op_SINH(a.x) * op_COS(a.y), op_COSH(a.x) * op_SIN(a.y));
}
vec2 op_COSH_c(vec2 a)
{
    if (abs(a.x) > 40.0) {
        vec2 y = scaled_exp(vec2(abs(a.x), a.y), 0.5);
        return vec2(y.x, with_sign(1.0, a.x) * y.y);
    }
    return vec2(op_COSH(a.x) * op_COS(a.y), op_SINH(a.x) * op_SIN(a.y));
}
// (sinh(x) cosh(x) + i sin(y) cos(y)) / (sinh(x)^2 + cos(y)^2). Beyond 20 the real part is 1.
vec2 op_TANH_c(vec2 a)
{
    if (is_inf(a.x))
        return vec2(with_sign(1.0, a.x), with_sign(0.0, a.y));
    float s = op_SIN(a.y), c = op_COS(a.y);
    if (abs(a.x) > 20.0)
        return vec2(with_sign(1.0, a.x), 4.0 * s * c * op_EXP(-2.0 * abs(a.x)));
    float sinh_ = op_SINH(a.x), below = sinh_ * sinh_ + c * c;
    return vec2(sinh_ * op_COSH(a.x) / below, a.y == 0.0 ? a.y : s * c / below);
}
// f(i a) / i, or f(i a)
vec2 op_SIN_c(vec2 a)
{
    vec2 y = op_SINH_c(vec2(-a.y, a.x));
    return vec2(y.y, -y.x);
}
vec2 op_COS_c(vec2 a)
{
    return op_COSH_c(vec2(-a.y, a.x));
}
vec2 op_TAN_c(vec2 a)
{
    vec2 y = op_TANH_c(vec2(-a.y, a.x));
    return vec2(y.y, -y.x);
}
#endif

// --- their inverses -----------------------------------------------------------------------

#ifdef NEED_LOG_c
// asin(x + iy) and acos(x + iy) for x, y >= 0, by Hull, Fairgrieve and Tang ("Implementing the
// complex arcsine and arccosine functions using exception handling", ACM Transactions on
// Mathematical Software 23, 1997). Returns the real part of asin, that of acos, and the imaginary
// part of asin, which is that of acos negated.
vec3 arc_parts(float x, float y)
{
    if (is_nan(x) || is_nan(y))
        return vec3(not_a_number());
    if (max(x, y) > 1.0e9)
        return vec3(op_ATAN2(x, y), op_ATAN2(y, x),
                    log_modulus(vec2(x, y)) + 0.69314718055994530942);
    if (max(x, y) < 1.0e-9)
        return vec3(x, 1.57079632679489661923 - x, y);
    float r = op_MODULUS_c(vec2(x + 1.0, y)), s = op_MODULUS_c(vec2(x - 1.0, y));
    float a = 0.5 * (r + s), b = x / a, far = x + a, sine, cosine, excess;
    if (b <= 0.6417) {
        sine = op_ASIN(b);
        cosine = op_ACOS(b);
    } else {
        float root = x <= 1.0 ? sqrt(0.5 * far * (y * y / (r + x + 1.0) + (s + (1.0 - x))))
                              : y * sqrt(0.5 * (far / (r + x + 1.0) + far / (s + (x - 1.0))));
        sine = op_ATAN2(x, root);
        cosine = op_ATAN2(root, x);
    }
    if (a > 1.5)
        return vec3(sine, cosine, op_LOG(a + sqrt((a - 1.0) * (a + 1.0))));
    excess = 0.5 * y * y / (r + x + 1.0); // of a over 1
    excess += x < 1.0 ? 0.5 * y * y / (s + (1.0 - x)) : 0.5 * (s + (x - 1.0));
    return vec3(sine, cosine, op_LOG1P(excess + sqrt(excess * (a + 1.0))));
}
vec2 op_ASIN_c(vec2 a)
{
    vec3 parts = arc_parts(abs(a.x), abs(a.y));
    return vec2(with_sign(parts.x, a.x), with_sign(parts.z, a.y));
}
vec2 op_ACOS_c(vec2 a)
{
    vec3 parts = arc_parts(abs(a.x), abs(a.y));
    bool left = with_sign(1.0, a.x) < 0.0;
    return vec2(left ? 3.14159265358979323846 - parts.y : parts.y, -with_sign(parts.z, a.y));
}
vec2 op_ASINH_c(vec2 a)
{
    vec2 y = op_ASIN_c(vec2(-a.y, a.x));
    return vec2(y.y, -y.x);
}
vec2 op_ACOSH_c(vec2 a)
{
    vec2 y = op_ACOS_c(a);
    return vec2(abs(y.y), with_sign(y.x, a.y));
}
// log1p(4 x / ((1 - x)^2 + y^2)) / 4 + i atan2(2 y, (1 - x) (1 + x) - y^2) / 2, for x, y >= 0.
vec2 op_ATANH_c(vec2 a)
{
    float x = abs(a.x), y = abs(a.y), re, im, large = max(x, y);
    if (is_nan(x) || is_nan(y))
        return vec2(not_a_number());
    if (large < 1.0e-9)
        return a;
    if (is_inf(large)) {
        re = 0.0;
        im = 1.57079632679489661923;
    } else if (large > 1.0e9) { // 1 / a, beside which powers of it are nothing
        float ratio = min(x, y) / large, below = large * (1.0 + ratio * ratio);
        re = x / large / below;
        im = 1.57079632679489661923 - y / large / below;
    } else {
        re = x == 1.0 && y < 1.0e-9
                 ? 0.5 * (0.69314718055994530942 - op_LOG(y))
                 : 0.25 * op_LOG1P(4.0 * x / ((1.0 - x) * (1.0 - x) + y * y));
        im = 0.5 * op_ATAN2(2.0 * y, (1.0 - x) * (1.0 + x) - y * y);
    }
    return vec2(with_sign(re, a.x), with_sign(im, a.y));
}
vec2 op_ATAN_c(vec2 a)
{
    vec2 y = op_ATANH_c(vec2(-a.y, a.x));
    return vec2(y.y, -y.x);
}
#endif
