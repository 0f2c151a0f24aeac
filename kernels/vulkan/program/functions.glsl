// SPDX-License-Identifier: MIT
// The functions of f32, exp, log, sin, ..., with the bounds that scalar.glsl states. Needs
// scalar.glsl.

// Functions that other functions call. NEED_EXP_c, NEED_LOG_c, NEED_SQRT_c: the parts of
// complex_functions.glsl.
#ifdef NEED_COMPLEX_NUMBERS
#if defined(NEED_SQRT) || defined(NEED_RSQRT)
#define NEED_SQRT_c
#endif
#if defined(NEED_LOG) || defined(NEED_LOG2) || defined(NEED_LOG10) || defined(NEED_LOG1P) ||     \
    defined(NEED_ASIN) || defined(NEED_ACOS) || defined(NEED_ATAN) || defined(NEED_ASINH) ||     \
    defined(NEED_ACOSH) || defined(NEED_ATANH) || defined(NEED_POW)
#define NEED_LOG_c
#endif
#if defined(NEED_EXP) || defined(NEED_EXP2) || defined(NEED_EXPM1) || defined(NEED_SIN) ||       \
    defined(NEED_COS) || defined(NEED_TAN) || defined(NEED_SINH) || defined(NEED_COSH) ||        \
    defined(NEED_TANH) || defined(NEED_POW)
#define NEED_EXP_c
#define NEED_EXP
#define NEED_EXP2
#define NEED_SIN
#define NEED_COS
#define NEED_SINH
#define NEED_COSH
#endif
#ifdef NEED_LOG_c
#define NEED_LOG
#define NEED_LOG1P
#define NEED_ASIN
#define NEED_ACOS
#define NEED_ATAN2
#endif
#endif
#ifdef NEED_ERFINV
#define NEED_LOG
#ifdef NEED_F64_FUNCTIONS
#define NEED_ERF
#endif
#endif
#if defined(NEED_SINH) || defined(NEED_TANH)
#define NEED_EXPM1
#endif
#if defined(NEED_SINH) || defined(NEED_COSH) || defined(NEED_EXPM1) || defined(NEED_ERF)
#define NEED_EXP
#endif
#if defined(NEED_POW)
#define NEED_EXP2
#define NEED_LOG2
#endif
#if defined(NEED_ASINH) || defined(NEED_ACOSH) || defined(NEED_ATANH)
#define NEED_LOG1P
#endif
#if defined(NEED_LOG1P) || defined(NEED_ASINH) || defined(NEED_ACOSH)
#define NEED_LOG
#endif
#if defined(NEED_ASIN) || defined(NEED_ACOS) || defined(NEED_ATAN2)
#define NEED_ATAN
#endif
#if defined(NEED_SIN) || defined(NEED_COS) || defined(NEED_TAN)
#define NEED_SINCOS
#endif

// --- exponentials -------------------------------------------------------------------------

#if defined(NEED_EXP) || defined(NEED_EXP2)
// p * 2^n for n within -252 .. 254, in two steps, since 2^n itself may be out of range.
float scale_by(float p, int n)
{
    int half_n = n >> 1;
    precise float scaled = p * uintBitsToFloat(uint(127 + half_n) << 23);
    scaled *= uintBitsToFloat(uint(127 + n - half_n) << 23);
    return scaled;
}
// e^r - 1 for |r| <= log(2) / 2, by its Taylor series; the first omitted term is below 2^-27.
float exp_series(float r)
{
    float p = fma(r, 1.0 / 5040.0, 1.0 / 720.0);
    p = fma(p, r, 1.0 / 120.0);
    p = fma(p, r, 1.0 / 24.0);
    p = fma(p, r, 1.0 / 6.0);
    p = fma(p, r, 0.5);
    return fma(p * r, r, r);
}
// x = n log(2) + r. The high part of log(2) has 12 bits: n times it is exact.
float exp_reduce(float x, out int n)
{
    float k = roundEven(x * 1.44269504);
    n = int(k);
    precise float high = x - k * 0.693115234; // no compiler may add the parts
    return high - k * 3.19461849e-05;
}
#endif
#ifdef NEED_EXP
float op_EXP(float x)
{
    if (is_nan(x))
        return x;
    if (x > 88.7228394)
        return infinity();
    if (x < -104.0)
        return 0.0;
    int n;
    float r = exp_reduce(x, n);
    return scale_by(1.0 + exp_series(r), n);
}
#endif
#ifdef NEED_EXP2
float op_EXP2(float x)
{
    if (is_nan(x))
        return x;
    if (x >= 128.0)
        return infinity();
    if (x < -150.0)
        return 0.0;
    float k = roundEven(x);
    return scale_by(1.0 + exp_series((x - k) * 0.693147181), int(k));
}
#endif
#ifdef NEED_EXPM1
float op_EXPM1(float x)
{
    if (is_nan(x))
        return x;
    if (x > 40.0)
        return op_EXP(x);
    if (x < -20.0)
        return -1.0;
    int n;
    float r = exp_reduce(x, n);
    if (n == 0)
        return exp_series(x);
    float scale = uintBitsToFloat(uint(127 + n) << 23);
    return fma(scale, exp_series(r), scale - 1.0);
}
#endif

// --- logarithms ---------------------------------------------------------------------------

#if defined(NEED_LOG) || defined(NEED_LOG2) || defined(NEED_LOG10)
// x = 2^e (1 + f) with 1 + f within sqrt(1/2) .. sqrt(2). x is a normal number above 0.
float log_reduce_normal(float x, out float e)
{
    uint bits = floatBitsToUint(x) + (0x3f800000u - 0x3f3504f3u);
    e = float(int(bits >> 23) - 127);
    return uintBitsToFloat((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0;
}
// The same of x > 0 and finite.
float log_reduce(float x, out float e)
{
    float shift = 0.0;
    if (x < 1.17549435e-38) {
        x *= 8388608.0;
        shift = 23.0;
    }
    float f = log_reduce_normal(x, e);
    e -= shift;
    return f;
}
// log(1 + f) = 2 atanh(s) with s = f / (2 + f), as f minus a small correction, which keeps the
// digits of f.
float log_series(float f)
{
    float s = f / (2.0 + f);
    float z = s * s;
    float r = fma(z, 2.0 / 11.0, 2.0 / 9.0);
    r = fma(r, z, 2.0 / 7.0);
    r = fma(r, z, 2.0 / 5.0);
    r = fma(r, z, 2.0 / 3.0);
    return f - s * (f - r * z);
}
// True when x is 0, negative, infinite or a NaN; `result` is then the logarithm.
bool log_special(float x, out float result)
{
    result = x == 0.0 ? -infinity() : x < 0.0 ? not_a_number() : x;
    return !(x > 0.0) || is_inf(x) || is_nan(x);
}
#endif
#ifdef NEED_LOG
float log_of_parts(float e, float f)
{
    precise float low = e * 3.19461849e-05 + log_series(f); // as in exp_reduce
    return fma(e, 0.693115234, low);
}
// log(x) of a normal number above 0.
float log_normal(float x)
{
    float e, f = log_reduce_normal(x, e);
    return log_of_parts(e, f);
}
float op_LOG(float x)
{
    float special;
    if (log_special(x, special))
        return special;
    float e, f = log_reduce(x, e);
    return log_of_parts(e, f);
}
#endif
#ifdef NEED_LOG2
float op_LOG2(float x)
{
    float special;
    if (log_special(x, special))
        return special;
    float e, f = log_reduce(x, e);
    return fma(log_series(f), 1.44269504, e);
}
#endif
#ifdef NEED_LOG10
float op_LOG10(float x)
{
    float special;
    if (log_special(x, special))
        return special;
    float e, f = log_reduce(x, e);
    precise float low = e * 4.60503898e-06 + log_series(f) * 0.434294482;
    return fma(e, 0.301025391, low);
}
#endif
#ifdef NEED_LOG1P
// With u = 1 + x rounded, the sum has what the rounding lost: log(u + c) is log(u) + c / u.
float op_LOG1P(float x)
{
    if (abs(x) < 1e-4)
        return x - x * x * (0.5 - x * (1.0 / 3.0));
    precise float u = 1.0 + x;
    precise float d = u - 1.0;
    float y = op_LOG(u);
    return is_finite(y) ? y + (x - d) / u : y;
}
#endif
#if defined(NEED_ASINH) || defined(NEED_ATANH)
// log(1 + x) of a finite x >= 0, the same way.
float log1p_positive(float x)
{
    precise float u = 1.0 + x;
    precise float d = u - 1.0;
    return log_normal(u) + (x - d) / u;
}
#endif

// --- circular functions ----------------------------------------------------------------------

#ifdef NEED_SINCOS
// 2 / pi in binary, from its first bit on. From coefficients.py.
const uint two_over_pi[8] =
    uint[](0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
           0xfe5163abu, 0xdebbc561u);

// The 32 bits of 2 / pi from bit `at` on (bit 0 is worth 1/2; before it are zeros).
uint two_over_pi_bits(int at)
{
    if (at <= -32)
        return 0u;
    if (at < 0)
        return two_over_pi[0] >> uint(-at);
    int word = at >> 5, bit = at & 31;
    uint high = two_over_pi[word] << uint(bit);
    return bit == 0 ? high : high | (two_over_pi[word + 1] >> uint(32 - bit));
}

// The reduction of large x (Payne and Hanek): of x * 2 / pi only the two bits before the point and
// 62 behind it matter. They are computed in integers, from 96 bits of 2 / pi.
float reduce_large(float x, out int quadrant)
{
    int e = int((floatBitsToUint(x) >> 23) & 0xffu) - 150; // x = m * 2^e
    uint m = (floatBitsToUint(x) & 0x7fffffu) | 0x800000u;
    uint w0 = two_over_pi_bits(e - 2), w1 = two_over_pi_bits(e + 30);
    uint w2 = two_over_pi_bits(e + 62);
    uint high, low, p0, p1, carry;
    umulExtended(m, w2, high, low);
    umulExtended(m, w1, p1, p0);
    p0 = uaddCarry(p0, high, carry);
    p1 = p1 + carry + m * w0;
    // p1:p0 is x * 2 / pi modulo 4, times 2^62.
    quadrant = int(p1 >> 30);
    uint f1 = (p1 << 2) | (p0 >> 30), f0 = p0 << 2;
    bool negative = (f1 & 0x80000000u) != 0u; // nearer to the next quadrant
    if (negative) {
        quadrant++;
        f0 = ~f0 + 1u;
        f1 = ~f1 + (f0 == 0u ? 1u : 0u);
    }
    int zeros = f1 == 0u ? 32 : 31 - findMSB(f1);
    if (zeros > 0)
        f1 = zeros == 32 ? f0 : (f1 << uint(zeros)) | (f0 >> uint(32 - zeros));
    // Times pi / 2, whose first part times the upper half is exact.
    float upper = float(f1 >> 16), lower = float(f1 & 0xffffu) * 1.52587891e-05;
    precise float r = upper * 1.5703125 + (upper * 0.000483826795 + lower * 1.57079637);
    r *= uintBitsToFloat(uint(127 - 16 - zeros) << 23);
    return negative ? -r : r;
}

// x = quadrant * pi / 2 + r with |r| a little over pi / 4 at most.
float reduce_angle(float x, out int quadrant)
{
    float y = abs(x);
    float r;
    if (y < 8192.0) {
        // pi / 2 in four parts; the first three times k are exact.
        float k = roundEven(y * 0.636619772);
        quadrant = int(k);
        precise float r1 = y - k * 1.5703125;
        precise float r2 = r1 - k * 0.000483751297;
        precise float r3 = r2 - k * 7.54953362e-08;
        r = r3 - k * 2.56334407e-12;
    } else {
        r = reduce_large(y, quadrant);
    }
    if (x < 0.0) {
        quadrant = -quadrant;
        r = -r;
    }
    return r;
}
float sin_series(float r)
{
    float z = r * r;
    float p = fma(z, 1.0 / 362880.0, -1.0 / 5040.0);
    p = fma(p, z, 1.0 / 120.0);
    p = fma(p, z, -1.0 / 6.0);
    return fma(p * z, r, r);
}
float cos_series(float r)
{
    float z = r * r;
    float p = fma(z, -1.0 / 3628800.0, 1.0 / 40320.0);
    p = fma(p, z, -1.0 / 720.0);
    p = fma(p, z, 1.0 / 24.0);
    return 1.0 - (0.5 * z - p * z * z);
}
float sine_of_quadrant(float r, int quadrant)
{
    float y = (quadrant & 1) == 0 ? sin_series(r) : cos_series(r);
    return (quadrant & 2) == 0 ? y : -y;
}
#endif
#ifdef NEED_SIN
float op_SIN(float x)
{
    if (!is_finite(x))
        return not_a_number();
    int quadrant;
    float r = reduce_angle(x, quadrant);
    return sine_of_quadrant(r, quadrant);
}
#endif
#ifdef NEED_COS
float op_COS(float x)
{
    if (!is_finite(x))
        return not_a_number();
    int quadrant;
    float r = reduce_angle(x, quadrant);
    return sine_of_quadrant(r, quadrant + 1);
}
#endif
#ifdef NEED_TAN
// tan(r) for |r| up to pi / 4. The polynomial's error is 2.1e-8 of it.
float tan_near(float r)
{
    float z = r * r;
    float p = fma(z, 0.00947651081, 0.00295612379);
    p = fma(p, z, 0.0245396234);
    p = fma(p, z, 0.0533780828);
    p = fma(p, z, 0.133392379);
    p = fma(p, z, 0.333331376);
    return fma(p * z, r, r);
}
float op_TAN(float x)
{
    if (!is_finite(x))
        return not_a_number();
    int quadrant;
    float t = tan_near(reduce_angle(x, quadrant));
    return (quadrant & 1) == 0 ? t : -1.0 / t;
}
#endif

#ifdef NEED_ATAN
// atan(x) for 0 <= x <= 1. The polynomial's error is 2.3e-9 of it.
float atan_near(float x)
{
    float z = x * x;
    float p = fma(z, -0.00182720739, 0.0110644158);
    p = fma(p, z, -0.0314556547);
    p = fma(p, z, 0.0582345016);
    p = fma(p, z, -0.0841945633);
    p = fma(p, z, 0.109575756);
    p = fma(p, z, -0.142652452);
    p = fma(p, z, 0.199986383);
    p = fma(p, z, -0.333333015);
    return fma(p * z, x, x);
}
// pi / 2 - x and pi - x: the nearest floats are above by what is added to x.
float from_half_turn(float x)
{
    return 1.57079637 - (x + 4.371139e-08);
}
float from_turn(float x)
{
    return 3.14159274 - (x + 8.742278e-08);
}
// atan(x) for x >= 0, infinity included.
float atan_positive(float x)
{
    return x > 1.0 ? from_half_turn(atan_near(1.0 / x)) : atan_near(x);
}
float op_ATAN(float x)
{
    return is_nan(x) ? x : with_sign(atan_positive(abs(x)), x);
}
#endif
#ifdef NEED_ATAN2
float op_ATAN2(float y, float x)
{
    if (is_nan(x) || is_nan(y))
        return not_a_number();
    float a = abs(y), b = abs(x), angle;
    if (a == b)
        angle = a == 0.0 ? 0.0 : 0.785398163;
    else if (a < b)
        angle = atan_near(a / b);
    else
        angle = from_half_turn(atan_near(b / a));
    if ((floatBitsToUint(x) & 0x80000000u) != 0u)
        angle = from_turn(angle);
    return with_sign(angle, y);
}
#endif
#if defined(NEED_ASIN) || defined(NEED_ACOS)
// asin(x) for |x| <= 1 / 2. The polynomial's error is 5e-9 of it.
float asin_near(float x)
{
    float z = x * x;
    float p = fma(z, 0.0422185697, 0.0241475999);
    p = fma(p, z, 0.0454770997);
    p = fma(p, z, 0.0749524161);
    p = fma(p, z, 0.166667536);
    return fma(p * z, x, x);
}
// acos(x) for 1 / 2 <= x <= 1, by the half angle.
float acos_far(float x)
{
    return 2.0 * asin_near(sqrt((1.0 - x) * 0.5));
}
#endif
#ifdef NEED_ASIN
float op_ASIN(float x)
{
    float a = abs(x);
    if (!(a <= 1.0))
        return not_a_number();
    return a > 0.5 ? with_sign(from_half_turn(acos_far(a)), x) : asin_near(x);
}
#endif
#ifdef NEED_ACOS
float op_ACOS(float x)
{
    float a = abs(x);
    if (!(a <= 1.0))
        return not_a_number();
    if (a <= 0.5)
        return from_half_turn(asin_near(x));
    return x > 0.0 ? acos_far(a) : from_turn(acos_far(a));
}
#endif

// --- hyperbolic functions ------------------------------------------------------------------

#ifdef NEED_SINH
float op_SINH(float x)
{
    if (!is_finite(x))
        return x;
    float a = abs(x), y;
    if (a > 88.0) {
        float e = op_EXP(a * 0.5);
        precise float product = 0.5 * e; // e * e may overflow
        product *= e;
        y = product;
    } else {
        float e = op_EXPM1(a);
        y = 0.5 * (e + e / (e + 1.0));
    }
    return with_sign(y, x);
}
#endif
#ifdef NEED_COSH
float op_COSH(float x)
{
    float a = abs(x);
    if (a > 88.0) {
        float e = op_EXP(a * 0.5);
        precise float product = 0.5 * e; // e * e may overflow
        product *= e;
        return product;
    }
    float e = op_EXP(a);
    return 0.5 * e + 0.5 / e;
}
#endif
#ifdef NEED_TANH
float op_TANH(float x)
{
    if (is_nan(x))
        return x;
    float a = abs(x);
    if (a > 10.0)
        return with_sign(1.0, x);
    if (a < 0.36) { // within 6.2e-10 of it
        float z = x * x;
        float p = fma(z, 0.0192952566, -0.053696163);
        p = fma(p, z, 0.133321851);
        p = fma(p, z, -0.333333194);
        return with_sign(fma(p * z, a, a), x);
    }
    float e = op_EXPM1(2.0 * a);
    return with_sign(e / (e + 2.0), x);
}
#endif
#ifdef NEED_ASINH
float op_ASINH(float x)
{
    if (!is_finite(x))
        return x;
    float a = abs(x);
    float y = a > 1e9 ? op_LOG(a) + 0.693147181
                      : log1p_positive(a + a * a / (1.0 + sqrt(a * a + 1.0)));
    return with_sign(y, x);
}
#endif
#ifdef NEED_ACOSH
float op_ACOSH(float x)
{
    if (!(x >= 1.0))
        return not_a_number();
    if (x > 1e9)
        return op_LOG(x) + 0.693147181;
    float t = x - 1.0;
    return op_LOG1P(t + sqrt(2.0 * t + t * t));
}
#endif
#ifdef NEED_ATANH
float op_ATANH(float x)
{
    if (!(abs(x) <= 1.0))
        return not_a_number();
    float a = abs(x);
    float y = a == 1.0 ? infinity() : 0.5 * log1p_positive(2.0 * a / (1.0 - a));
    return with_sign(y, x);
}
#endif

#ifdef NEED_ERF
// Up to 1 the Taylor series. Beyond, 1 - exp(-x^2) t P(t) with t = 1 / (1 + x / 2), where P was
// fitted to erfc(x) exp(x^2) / t over 0.9 .. 10, with an error in erfc below 3e-10.
float op_ERF(float x)
{
    if (is_nan(x))
        return x;
    float a = abs(x);
    if (a <= 1.0) {
        float z = x * x;
        float p = fma(z, 1.48071928e-08, -1.63658447e-07);
        p = fma(p, z, 1.64621144e-06);
        p = fma(p, z, -1.49256504e-05);
        p = fma(p, z, 0.00012055333);
        p = fma(p, z, -0.000854832702);
        p = fma(p, z, 0.00522397763);
        p = fma(p, z, -0.0268661706);
        p = fma(p, z, 0.112837917);
        p = fma(p, z, -0.376126389);
        p = fma(p, z, 0.128379167);
        return fma(p, x, x);
    }
    if (a > 4.0)
        return with_sign(1.0, x);
    float t = 1.0 / fma(a, 0.5, 1.0);
    float p = fma(t, -0.0497829772, 0.257909537);
    p = fma(p, t, -0.457584931);
    p = fma(p, t, 0.263154936);
    p = fma(p, t, -0.0245295536);
    p = fma(p, t, 0.203853944);
    p = fma(p, t, 0.242526257);
    p = fma(p, t, 0.282472546);
    p = fma(p, t, 0.282080589);
    return with_sign(1.0 - op_EXP(-a * a) * p * t, x);
}
#endif

#ifdef NEED_ERFINV
// erfinv(x) / x as a function of w = -log(1 - x^2), 0 <= w <= 37, within 3e-8: tn_erfinv_ratio() of
// <tenon/ops/program.h>.
float erfinv_ratio(float w)
{
    float s = w - 2.5, t = sqrt(w) - 4.0;
    float near = fma(s, 3.35479438e-10, -8.77275944e-09);
    near = fma(near, s, 1.80385779e-08);
    near = fma(near, s, 4.65892273e-07);
    near = fma(near, s, -3.43462237e-06);
    near = fma(near, s, -4.96191926e-06);
    near = fma(near, s, 0.000218282665);
    near = fma(near, s, -0.00125274463);
    near = fma(near, s, -0.00417733944);
    near = fma(near, s, 0.246640288);
    near = fma(near, s, 1.50140935);
    float far = fma(t, -3.98004485e-07, 1.59991808e-06);
    far = fma(far, t, 1.53877613e-06);
    far = fma(far, t, -1.56311317e-05);
    far = fma(far, t, 2.52149023e-05);
    far = fma(far, t, -2.07961727e-05);
    far = fma(far, t, 4.49189831e-05);
    far = fma(far, t, -0.000128598611);
    far = fma(far, t, 0.000328518934);
    far = fma(far, t, -0.000864487751);
    far = fma(far, t, 0.00125797101);
    far = fma(far, t, 1.00949268);
    far = fma(far, t, 3.83978387);
    return w < 5.0 ? near : far;
}
float op_ERFINV(float x)
{
    float a = abs(x);
    if (!(a < 1.0))
        return a == 1.0 ? with_sign(infinity(), x) : not_a_number();
    return x * erfinv_ratio(-log_normal((1.0 - a) * (1.0 + a)));
}
#endif

#ifdef NEED_POW
// |x|^y for finite x > 0, as 2^(y (e + l)) with x = 2^e m, m within sqrt(1/2) .. sqrt(2), and l =
// log2(m). y e is split exactly, so that the error grows with y l alone.
float pow_positive(float x, float y)
{
    float n = roundEven(y);
    if (n == y && abs(y) <= 32.0) { // by squaring: exact for small bases
        uint k = uint(abs(y));
        float result = 1.0, base = x;
        for (; k > 0u; k >>= 1) {
            if ((k & 1u) != 0u)
                result *= base;
            base *= base;
        }
        return y < 0.0 ? 1.0 / result : result;
    }
    float e, f = log_reduce(x, e);
    float l = log_series(f) * 1.44269504;
    precise float high = y * e;
    precise float rest = fma(y, e, -high);
    if (abs(high) > 16384.0)
        return high + y * l > 0.0 ? infinity() : 0.0;
    float whole = roundEven(high);
    float part = (high - whole) + rest + y * l;
    float whole_part = roundEven(part);
    float total = whole + whole_part;
    if (total >= 129.0)
        return infinity();
    if (total < -151.0)
        return 0.0;
    return scale_by(1.0 + exp_series((part - whole_part) * 0.693147181), int(total));
}
float op_POW(float x, float y)
{
    if (y == 0.0 || x == 1.0)
        return 1.0;
    if (is_nan(x) || is_nan(y))
        return not_a_number();
    float a = abs(x);
    bool y_whole = roundEven(y) == y;
    bool y_odd = y_whole && abs(y) < 16777216.0 && (int(y) & 1) != 0;
    bool negative = (floatBitsToUint(x) & 0x80000000u) != 0u && y_odd;
    float result;
    if (is_inf(y))
        result = a == 1.0 ? 1.0 : (a > 1.0) == (y > 0.0) ? infinity() : 0.0;
    else if (a == 0.0 || is_inf(a))
        result = (a == 0.0) == (y > 0.0) ? 0.0 : infinity();
    else if (x < 0.0 && !y_whole)
        return not_a_number();
    else
        result = pow_positive(a, y);
    return negative ? -result : result;
}
#endif
