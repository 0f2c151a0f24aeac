// SPDX-License-Identifier: MIT
// The functions of f64, exp, log, sin, ..., which GLSL lacks for double. Needs scalar.glsl;
// compiled with NEED_F64_FUNCTIONS (and NEED_NAME for each).
//
// Bounds, in units in the last place, checked by the tests over the whole range: exp, exp2,
// expm1, log, log2, log10, log1p, sin, cos, atan, atan2, erf, pow 2; tan, asin, acos, cosh,
// sinh, tanh, asinh, acosh, atanh 3. Angles are reduced exactly, however large.
//
// No function relies on fma being fused, nor on arithmetic with subnormal numbers, which drivers
// may take for zero: subnormals are composed and decomposed by their bits. Series are Taylor
// series; all other coefficients come from coefficients.py.
#ifdef NEED_F64_FUNCTIONS

double infinity_f64()
{
    return packDouble2x32(uvec2(0u, 0x7ff00000u));
}
double not_a_number_f64()
{
    return packDouble2x32(uvec2(0u, 0x7ff80000u));
}
bool is_negative(double x) // by the sign bit: true for -0.0
{
    return (unpackDouble2x32(x).y & 0x80000000u) != 0u;
}
bool is_zero(double x) // by the bits: false for subnormal numbers
{
    uvec2 bits = unpackDouble2x32(x);
    return ((bits.y & 0x7fffffffu) | bits.x) == 0u;
}
// |a| with the sign of b.
double with_sign(double a, double b)
{
    uvec2 bits = unpackDouble2x32(a);
    uint sign = unpackDouble2x32(b).y & 0x80000000u;
    return packDouble2x32(uvec2(bits.x, (bits.y & 0x7fffffffu) | sign));
}
// The whole number nearest to x, |x| < 2^31, read from the low bits of x + 1.5 * 2^52. Subtracting
// the constant again would do, but optimisers that ignore `precise` cancel it.
double nearest(double x, out int n)
{
    n = int(unpackDouble2x32(x + 6755399441055744.0LF).x); // 1.5 * 2^52
    return double(n);
}
// p * 2^n, rounded once, for p within 1/2 .. 2.
double scale_by(double p, int n)
{
    if (p < 1.0LF) {
        p *= 2.0LF;
        n--;
    }
    if (n > 1023)
        return infinity_f64();
    if (n >= -1022)
        return p * power_of_two(n);
    if (n < -1080)
        return 0.0LF;
    // Subnormal results: rounds p at the last bit of the result, and extracts the bits.
    double unit = power_of_two(-1022 - n);
    precise double sum = p + unit;
    uvec2 bits = unpackDouble2x32(sum);
    bits.y -= unpackDouble2x32(unit).y;
    return packDouble2x32(bits);
}
// x = result * 2^e with a result within 1 .. 2, for x > 0 and finite.
double significand(double x, out int e)
{
    uvec2 bits = unpackDouble2x32(x);
    int shift = 1023;
    if (bits.y < 0x100000u) { // in units of 2^-1074
        bits = unpackDouble2x32(double(bits.y) * 4294967296.0LF + double(bits.x));
        shift = 1023 + 1074;
    }
    e = int(bits.y >> 20) - shift;
    return packDouble2x32(uvec2(bits.x, (bits.y & 0xfffffu) | 0x3ff00000u));
}

#if defined(NEED_SINCOS) || defined(NEED_POW)
// A number of twice the precision, high + low, with |low| at most half an ulp of high.
struct pair {
    double high, low;
};
// a + b, exactly (Knuth, The Art of Computer Programming, volume 2, section 4.2.2: TwoSum).
pair sum_of(double a, double b)
{
    precise double high = a + b;
    precise double of_b = high - a;
    precise double low = (a - (high - of_b)) + (b - of_b);
    return pair(high, low);
}
// The upper 26 bits of x.
double upper_half(double x)
{
    uvec2 bits = unpackDouble2x32(x);
    return packDouble2x32(uvec2(bits.x & 0xf8000000u, bits.y));
}
// a * b with an error below 2^-106 of it (Dekker 1971: splitting into halves of 26 bits).
pair product_of(double a, double b)
{
    double a1 = upper_half(a), b1 = upper_half(b);
    precise double high = a * b;
    precise double a2 = a - a1;
    precise double b2 = b - b1;
    precise double low = ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2;
    return pair(high, low);
}
#endif

// --- exponentials -------------------------------------------------------------------------

#if defined(NEED_EXP) || defined(NEED_EXP2) || defined(NEED_POW)
// e^r - 1 for |r| <= log(2) / 2; the first omitted term is below 2^-56 of the result.
double exp_series(double r)
{
    double p = fma(r, 1.0LF / 6227020800.0LF, 1.0LF / 479001600.0LF);
    p = fma(p, r, 1.0LF / 39916800.0LF);
    p = fma(p, r, 1.0LF / 3628800.0LF);
    p = fma(p, r, 1.0LF / 362880.0LF);
    p = fma(p, r, 1.0LF / 40320.0LF);
    p = fma(p, r, 1.0LF / 5040.0LF);
    p = fma(p, r, 1.0LF / 720.0LF);
    p = fma(p, r, 1.0LF / 120.0LF);
    p = fma(p, r, 1.0LF / 24.0LF);
    p = fma(p, r, 1.0LF / 6.0LF);
    p = fma(p, r, 0.5LF);
    return fma(p * r, r, r);
}
// x = n log(2) + r. The high part of log(2) has 42 bits: n times it is exact.
double exp_reduce(double x, out int n)
{
    double k = nearest(x * 1.4426950408889634LF, n);
    precise double r = (x - k * 0.6931471805598903LF) - k * 5.497923018708371e-14LF;
    return r;
}
#endif
#ifdef NEED_EXP
double op_EXP(double x)
{
    if (is_nan(x))
        return x;
    if (x > 709.782712893384LF)
        return infinity_f64();
    if (x < -745.2LF)
        return 0.0LF;
    int n;
    double r = exp_reduce(x, n);
    return scale_by(1.0LF + exp_series(r), n);
}
#endif
#ifdef NEED_EXP2
double op_EXP2(double x)
{
    if (is_nan(x))
        return x;
    if (x >= 1024.0LF)
        return infinity_f64();
    if (x < -1080.0LF)
        return 0.0LF;
    int n;
    double k = nearest(x, n);
    return scale_by(1.0LF + exp_series((x - k) * 0.6931471805599453LF), n);
}
#endif
#ifdef NEED_EXPM1
double op_EXPM1(double x)
{
    if (is_nan(x) || abs(x) < 1e-17LF)
        return x;
    if (x > 40.0LF)
        return op_EXP(x);
    if (x < -40.0LF)
        return -1.0LF;
    int n;
    double r = exp_reduce(x, n);
    if (n == 0)
        return exp_series(x);
    double scale = power_of_two(n);
    return fma(scale, exp_series(r), scale - 1.0LF);
}
#endif

// --- logarithms ---------------------------------------------------------------------------

#if defined(NEED_LOG) || defined(NEED_LOG2) || defined(NEED_LOG10) || defined(NEED_POW)
// x = 2^e (1 + f) with 1 + f within sqrt(1/2) .. sqrt(2). x > 0 and finite.
double log_reduce(double x, out double e)
{
    int n;
    double m = significand(x, n);
    if (m > 1.4142135623730951LF) {
        m *= 0.5LF;
        n++;
    }
    e = double(n);
    return m - 1.0LF;
}
// log(1 + f) = 2 atanh(s) with s = f / (2 + f), as f minus a small correction, which keeps the
// digits of f.
double log_series(double f)
{
    double s = f / (2.0LF + f);
    double z = s * s;
    double r = fma(z, 2.0LF / 23.0LF, 2.0LF / 21.0LF);
    r = fma(r, z, 2.0LF / 19.0LF);
    r = fma(r, z, 2.0LF / 17.0LF);
    r = fma(r, z, 2.0LF / 15.0LF);
    r = fma(r, z, 2.0LF / 13.0LF);
    r = fma(r, z, 2.0LF / 11.0LF);
    r = fma(r, z, 2.0LF / 9.0LF);
    r = fma(r, z, 2.0LF / 7.0LF);
    r = fma(r, z, 2.0LF / 5.0LF);
    r = fma(r, z, 2.0LF / 3.0LF);
    return f - s * (f - r * z);
}
// True when x is 0, negative, infinite or a NaN; `result` is then the logarithm.
bool log_special(double x, out double result)
{
    bool zero = is_zero(x), negative = is_negative(x);
    result = is_nan(x) ? x : zero ? -infinity_f64() : negative ? not_a_number_f64() : x;
    return zero || negative || !is_finite(x);
}
#endif
#ifdef NEED_LOG
double op_LOG(double x)
{
    double special;
    if (log_special(x, special))
        return special;
    double e, f = log_reduce(x, e);
    return fma(e, 0.6931471805598903LF, fma(e, 5.497923018708371e-14LF, log_series(f)));
}
#endif
#ifdef NEED_LOG2
double op_LOG2(double x)
{
    double special;
    if (log_special(x, special))
        return special;
    double e, f = log_reduce(x, e);
    return fma(log_series(f), 1.4426950408889634LF, e);
}
#endif
#ifdef NEED_LOG10
double op_LOG10(double x)
{
    double special;
    if (log_special(x, special))
        return special;
    double e, f = log_reduce(x, e);
    double low = fma(e, 2.8363394551044964e-14LF, log_series(f) * 0.4342944819032518LF);
    return fma(e, 0.30102999566395283LF, low);
}
#endif
#ifdef NEED_LOG1P
// With u = 1 + x rounded, adds what the rounding lost, times the derivative 1 / u.
double op_LOG1P(double x)
{
    if (abs(x) < 1e-17LF)
        return x;
    if (x > -0.29LF && x < 0.41LF)
        return log_series(x);
    precise double u = 1.0LF + x;
    precise double lost = x - (u - 1.0LF);
    double y = op_LOG(u);
    return is_finite(y) && x < 1e17LF ? y + lost / u : y;
}
#endif

// --- hyperbolic functions -----------------------------------------------------------------

#if defined(NEED_SINH) || defined(NEED_COSH)
// sinh(x) and cosh(x) for x > 40: e^x / 2, where e^x alone may be too large.
double half_exp(double x)
{
    int n;
    double r = exp_reduce(min(x, 1000.0LF), n);
    return scale_by(1.0LF + exp_series(r), n - 1);
}
#endif
#ifdef NEED_SINH
double op_SINH(double x)
{
    double a = abs(x), y;
    if (!is_finite(x) || a < 1e-9LF)
        return x;
    if (a > 40.0LF) {
        y = half_exp(a);
    } else {
        double e = op_EXPM1(a);
        y = 0.5LF * (e + e / (e + 1.0LF));
    }
    return with_sign(y, x);
}
#endif
#ifdef NEED_COSH
double op_COSH(double x)
{
    double a = abs(x);
    if (a > 40.0LF)
        return half_exp(a);
    double e = op_EXP(a);
    return 0.5LF * e + 0.5LF / e;
}
#endif
#ifdef NEED_TANH
double op_TANH(double x)
{
    double a = abs(x);
    if (is_nan(x) || a < 1e-9LF)
        return x;
    if (a > 22.0LF)
        return with_sign(1.0LF, x);
    double e = op_EXPM1(2.0LF * a);
    return with_sign(e / (e + 2.0LF), x);
}
#endif
#ifdef NEED_ASINH
double op_ASINH(double x)
{
    double a = abs(x);
    if (!is_finite(x) || a < 1e-9LF)
        return x;
    double y = a > 1e9LF ? op_LOG(a) + 0.6931471805599453LF
                         : op_LOG1P(a + a * a / (1.0LF + sqrt(a * a + 1.0LF)));
    return with_sign(y, x);
}
#endif
#ifdef NEED_ACOSH
double op_ACOSH(double x)
{
    if (!(x >= 1.0LF))
        return not_a_number_f64();
    if (x > 1e9LF)
        return op_LOG(x) + 0.6931471805599453LF;
    double t = x - 1.0LF;
    return op_LOG1P(t + sqrt(2.0LF * t + t * t));
}
#endif
#ifdef NEED_ATANH
double op_ATANH(double x)
{
    double a = abs(x);
    if (!(a <= 1.0LF))
        return not_a_number_f64();
    if (a < 1e-9LF)
        return x;
    double y = a == 1.0LF ? infinity_f64() : 0.5LF * op_LOG1P(2.0LF * a / (1.0LF - a));
    return with_sign(y, x);
}
#endif

// --- erf and pow ----------------------------------------------------------------------------

#ifdef NEED_ERF
// 1 - erf(a) for 1 <= a <= 6: exp(-a^2) t P(t) with t = 1 / (1 + a / 2), where P interpolates
// erfc(a) exp(a^2) / t at the Chebyshev nodes of that range, within 2^-58 of erf(a).
double erfc_of(double a)
{
    double t = 1.0LF / fma(a, 0.5LF, 1.0LF);
    double s = (t - 0.4583333333333333LF) * 4.8LF; // -1 .. 1
    double p = fma(s, 2.1355305933530831e-13LF, 2.2597413890646148e-13LF);
    p = fma(p, s, -5.932415489164651e-12LF);
    p = fma(p, s, 1.2383185380495637e-11LF);
    p = fma(p, s, 8.071826357728391e-11LF);
    p = fma(p, s, -5.308906841037205e-10LF);
    p = fma(p, s, -1.2346575890585087e-10LF);
    p = fma(p, s, 1.2866836239110086e-08LF);
    p = fma(p, s, -3.1131398012060204e-08LF);
    p = fma(p, s, -2.677662146152839e-07LF);
    p = fma(p, s, 1.3738823540243283e-06LF);
    p = fma(p, s, 6.479355537245569e-06LF);
    p = fma(p, s, -4.94890682284715e-05LF);
    p = fma(p, s, -0.00027892663035705765LF);
    p = fma(p, s, 0.0015599066398745622LF);
    p = fma(p, s, 0.023394523545105916LF);
    p = fma(p, s, 0.1336227862416428LF);
    p = fma(p, s, 0.48311899686530574LF);
    return op_EXP(-a * a) * (p * t);
}
// erf(x) / x - 1 for |x| <= 1, z = x^2, by its Taylor series; the first omitted term is below
// 2^-62.
double erf_series(double z)
{
    double p = fma(z, 4.763348040515068e-18LF, -9.063970842808673e-17LF);
    p = fma(p, z, 1.6342614095367152e-15LF);
    p = fma(p, z, -2.7835162072109215e-14LF);
    p = fma(p, z, 4.4632242632864775e-13LF);
    p = fma(p, z, -6.7113668551641105e-12LF);
    p = fma(p, z, 9.422759064650411e-11LF);
    p = fma(p, z, -1.2290555301717928e-09LF);
    p = fma(p, z, 1.4807192815879218e-08LF);
    p = fma(p, z, -1.6365844691234924e-07LF);
    p = fma(p, z, 1.6462114365889248e-06LF);
    p = fma(p, z, -1.492565035840625e-05LF);
    p = fma(p, z, 0.00012055332981789664LF);
    p = fma(p, z, -0.0008548327023450853LF);
    p = fma(p, z, 0.005223977625442188LF);
    p = fma(p, z, -0.026866170645131252LF);
    p = fma(p, z, 0.11283791670955126LF);
    p = fma(p, z, -0.37612638903183754LF);
    return fma(p, z, 0.1283791670955126LF);
}
double op_ERF(double x)
{
    double a = abs(x);
    if (is_nan(x) || is_zero(x))
        return x;
    if (a < 1e-9LF) { // 2 / sqrt(pi) times x
        int e;
        double m = significand(with_sign(x, 1.0LF), e);
        return with_sign(scale_by(m * 0.5641895835477563LF, e + 1), x);
    }
    if (a <= 1.0LF)
        return fma(erf_series(x * x), x, x);
    return with_sign(a > 6.0LF ? 1.0LF : 1.0LF - erfc_of(a), x);
}
#endif

#ifdef NEED_ERFINV
// An estimate as exact as f32, and one step of Halley's method, which cubes its relative error.
// From erf(1) on, the step compares the complements, which keeps their digits: tn_erfinv() of
// <tenon/ops/program.h>.
double op_ERFINV(double x)
{
    double a = abs(x), rest = 1.0LF - a;
    if (is_nan(x) || is_zero(x))
        return x;
    if (!(a < 1.0LF))
        return a == 1.0LF ? with_sign(infinity_f64(), x) : not_a_number_f64();
    if (a < 1e-9LF) { // sqrt(pi) / 2 times x
        int e;
        double m = significand(with_sign(x, 1.0LF), e);
        return with_sign(scale_by(m * 0.886226925452758LF, e), x);
    }
    double y = a * double(erfinv_ratio(-op_LOG(float(rest * (1.0LF + a)))));
    double error = y < 1.0LF ? op_ERF(y) - a : rest - erfc_of(y);
    double s = error * 0.886226925452758LF * op_EXP(y * y);
    return with_sign(y - s / fma(y, s, 1.0LF), x);
}
#endif

#ifdef NEED_POW
// log2(x) with a relative error below 2^-64, for x > 0 and finite: e + 2 atanh(s) / log(2), with
// s = f / (2 + f), z = s^2 and atanh(s) = s + s z (1/3 + z/5 + ...).
pair log2_pair(double x)
{
    double e, f = log_reduce(x, e);
    pair below = sum_of(2.0LF, f);
    double s1 = f / below.high;
    pair back = product_of(s1, below.high);
    precise double rest = ((f - back.high) - back.low) - s1 * below.low;
    double s2 = rest / below.high;

    pair z = product_of(s1, s1);
    z = sum_of(z.high, z.low + 2.0LF * s1 * s2);
    double q = fma(z.high, 1.0LF / 25.0LF, 1.0LF / 23.0LF);
    q = fma(q, z.high, 1.0LF / 21.0LF);
    q = fma(q, z.high, 1.0LF / 19.0LF);
    q = fma(q, z.high, 1.0LF / 17.0LF);
    q = fma(q, z.high, 1.0LF / 15.0LF);
    q = fma(q, z.high, 1.0LF / 13.0LF);
    q = fma(q, z.high, 1.0LF / 11.0LF);
    q = fma(q, z.high, 1.0LF / 9.0LF);
    q = fma(q, z.high, 1.0LF / 7.0LF);
    q = fma(q, z.high, 1.0LF / 5.0LF);
    pair w = sum_of(0.3333333333333333LF, q * z.high);
    w.low += 1.850371707708594e-17LF;

    pair v = product_of(z.high, w.high);
    v.low += z.high * w.low + z.low * w.high;
    pair u = product_of(s1, v.high);
    u.low += s1 * v.low + s2 * v.high;
    pair half_log = sum_of(s1, u.high);
    half_log = sum_of(half_log.high, half_log.low + (s2 + u.low));

    pair l = product_of(half_log.high, 2.8853900817779268LF); // 2 / log(2)
    l.low += half_log.high * 4.0710547481862066e-17LF + half_log.low * 2.8853900817779268LF;
    pair result = sum_of(e, l.high);
    return sum_of(result.high, result.low + l.low);
}
// x^y for x > 0 and finite, y finite.
double pow_positive(double x, double y)
{
    pair l = log2_pair(x);
    double estimate = y * l.high;
    if (estimate > 1025.0LF)
        return infinity_f64();
    if (estimate < -1080.0LF)
        return 0.0LF;
    pair p = product_of(y, l.high);
    int n;
    double k = nearest(p.high, n);
    double r = (p.high - k) + fma(y, l.low, p.low);
    return scale_by(1.0LF + exp_series(r * 0.6931471805599453LF), n);
}
double op_POW(double x, double y)
{
    if (is_zero(y) || x == 1.0LF)
        return 1.0LF;
    if (is_nan(x) || is_nan(y))
        return not_a_number_f64();
    double a = with_sign(x, 1.0LF);
    bool large = abs(y) >= 9007199254740992.0LF; // 2^53: from there on all numbers are even
    bool y_whole = large || floor(y) == y;
    if (!large && !is_inf(y) && abs(y) < 2.2250738585072014e-308LF)
        y_whole = false;
    bool y_odd = y_whole && !large && floor(0.5LF * y) * 2.0LF != y;
    bool negative = is_negative(x) && y_odd;
    double result;
    if (is_inf(y))
        result = a == 1.0LF ? 1.0LF : (a > 1.0LF) == (y > 0.0LF) ? infinity_f64() : 0.0LF;
    else if (is_zero(a) || is_inf(a))
        result = is_zero(a) != is_negative(y) ? 0.0LF : infinity_f64();
    else if (is_negative(x) && !y_whole)
        return not_a_number_f64();
    else
        result = pow_positive(a, y);
    return negative ? -result : result;
}
#endif
#endif
