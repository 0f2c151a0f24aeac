// SPDX-License-Identifier: MIT
// The circular functions of f64, with the bounds that functions_f64.glsl states. Needs
// functions_f64.glsl.
#ifdef NEED_F64_FUNCTIONS

// --- circular functions ---------------------------------------------------------------------

#ifdef NEED_SINCOS
// 2 / pi in binary: 32 zeros, then its bits from the first one on. From coefficients.py.
const uvec4 two_over_pi0 = uvec4(0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u);
const uvec4 two_over_pi1 = uvec4(0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu);
const uvec4 two_over_pi2 = uvec4(0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau);
const uvec4 two_over_pi3 = uvec4(0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu, 0xe88235f5u);
const uvec4 two_over_pi4 = uvec4(0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u);
const uvec4 two_over_pi5 = uvec4(0x835339f4u, 0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu);
const uvec4 two_over_pi6 = uvec4(0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu);
const uvec4 two_over_pi7 = uvec4(0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du, 0x7527bac7u);
const uvec4 two_over_pi8 = uvec4(0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u);
const uvec4 two_over_pi9 = uvec4(0x1f8d5d08u, 0x56033046u, 0xfc7b6babu, 0x00000000u);

uvec4 choose(bool second, uvec4 a, uvec4 b)
{
    return mix(a, b, bvec4(second));
}
// 192 bits of the table from bit `at` on, at within 0 .. 1001. By bisection, since drivers compile
// an indexed constant array to long code.
void find_bits(int at, out uint words[6])
{
    bool by16 = (at & 512) != 0, by8 = (at & 256) != 0, by4 = (at & 128) != 0;
    uvec4 a0 = choose(by16, two_over_pi0, two_over_pi4);
    uvec4 a1 = choose(by16, two_over_pi1, two_over_pi5);
    uvec4 a2 = choose(by16, two_over_pi2, two_over_pi6);
    uvec4 a3 = choose(by16, two_over_pi3, two_over_pi7);
    uvec4 a4 = choose(by16, two_over_pi4, two_over_pi8);
    uvec4 a5 = choose(by16, two_over_pi5, two_over_pi9);
    a0 = choose(by8, a0, a2);
    a1 = choose(by8, a1, a3);
    a2 = choose(by8, a2, a4);
    a3 = choose(by8, a3, a5);
    a0 = choose(by4, a0, a1);
    a1 = choose(by4, a1, a2);
    a2 = choose(by4, a2, a3);
    bool by2 = (at & 64) != 0, by1 = (at & 32) != 0;
    a0 = choose(by2, a0, uvec4(a0.zw, a1.xy));
    a1 = choose(by2, a1, uvec4(a1.zw, a2.xy));
    a0 = choose(by1, a0, uvec4(a0.yzw, a1.x));
    a1 = choose(by1, a1, uvec4(a1.yzw, 0u));
    // (x << bit) | (next >> (32 - bit)), written so that bit 0 shifts by no 32.
    uint bit = uint(at) & 31u;
    uvec4 high = (a0 << bit) | ((uvec4(a0.yzw, a1.x) >> (31u - bit)) >> 1u);
    uvec2 low = (a1.xy << bit) | ((a1.yz >> (31u - bit)) >> 1u);
    words = uint[](high.x, high.y, high.z, high.w, low.x, low.y);
}

// x * 2 / pi modulo 4, times 2^190, in words from the highest down, for x >= 2^22. Bits of 2 / pi
// whose product with x is a multiple of 4 are left out (Payne and Hanek 1983, "Radian reduction for
// trigonometric functions"). The last two words lack the carries of the bits behind them.
void multiply_by_two_over_pi(double x, out uint words[6])
{
    uvec2 bits = unpackDouble2x32(x);
    int e = int(bits.y >> 20) - 1075; // x = m * 2^e
    uint m0 = bits.x, m1 = (bits.y & 0xfffffu) | 0x100000u;
    uint turns[6];
    find_bits(e + 30, turns);
    uint above = 0u; // the carry into the next higher word
    for (int i = 5; i >= 0; i--) {
        uint high, low, carry;
        umulExtended(turns[i], m0, high, low);
        words[i] = uaddCarry(low, above, carry);
        above = high + carry;
    }
    above = 0u;
    for (int i = 5; i >= 1; i--) {
        uint high, low, carry, carry2;
        umulExtended(turns[i], m1, high, low);
        low = uaddCarry(low, above, carry);
        words[i - 1] = uaddCarry(words[i - 1], low, carry2);
        above = high + carry + carry2;
    }
}

pair reduce_large(double x, out int quadrant)
{
    uint words[6];
    multiply_by_two_over_pi(x, words);
    quadrant = int(words[0] >> 30);
    // All ones when x is nearer to the next quadrant: the rest is then negated.
    uint flip = (words[0] & 0x20000000u) != 0u ? 0xffffffffu : 0u;
    for (int i = 0; i < 5; i++)
        words[i] = ((words[i] << 2) | (words[i + 1] >> 30)) ^ flip;
    int exponent = -64;
    for (int n = 0; n < 2 && words[0] == 0u; n++) {
        for (int i = 0; i < 4; i++)
            words[i] = words[i + 1];
        words[4] = 0u;
        exponent -= 32;
    }
    double tail = double(words[2]) * power_of_two(-32) + double(words[3]) * power_of_two(-64);
    pair part = sum_of(double(words[0]) * 4294967296.0LF, double(words[1]));
    pair turn = sum_of(part.high, part.low + tail);
    pair angle = product_of(turn.high, 1.5707963267948966LF);
    double low = angle.low + turn.high * 6.123233995736766e-17LF;
    pair r = sum_of(angle.high, low + turn.low * 1.5707963267948966LF);
    double scale = power_of_two(exponent);
    if (flip != 0u) {
        quadrant++;
        scale = -scale;
    }
    return pair(r.high * scale, r.low * scale);
}

// x = quadrant * pi / 2 + r with |r| a little over pi / 4 at most.
pair reduce_angle(double x, out int quadrant)
{
    double y = abs(x);
    pair r;
    if (y < 4194304.0LF) {
        // pi / 2 in four parts (Cody and Waite); the first three times k are exact.
        double k = nearest(y * 0.6366197723675814LF, quadrant);
        precise double first = y - k * 1.5707963267341256LF;
        pair second = sum_of(first, -(k * 6.07710050359346e-11LF));
        pair third = sum_of(second.high, -(k * 2.9127320548227e-20LF));
        precise double rest = (second.low - k * 1.2706558760139879e-29LF) + third.low;
        r = sum_of(third.high, rest);
    } else {
        r = reduce_large(y, quadrant);
    }
    if (x < 0.0LF) {
        quadrant = -quadrant;
        r = pair(-r.high, -r.low);
    }
    return r;
}
double sin_series(pair r)
{
    double z = r.high * r.high;
    double p = fma(z, 1.0LF / 355687428096000.0LF, -1.0LF / 1307674368000.0LF);
    p = fma(p, z, 1.0LF / 6227020800.0LF);
    p = fma(p, z, -1.0LF / 39916800.0LF);
    p = fma(p, z, 1.0LF / 362880.0LF);
    p = fma(p, z, -1.0LF / 5040.0LF);
    p = fma(p, z, 1.0LF / 120.0LF);
    p = fma(p, z, -1.0LF / 6.0LF);
    return r.high + fma(p * z, r.high, r.low * fma(z, -0.5LF, 1.0LF));
}
double cos_series(pair r)
{
    double z = r.high * r.high;
    double p = fma(z, -1.0LF / 6402373705728000.0LF, 1.0LF / 20922789888000.0LF);
    p = fma(p, z, -1.0LF / 87178291200.0LF);
    p = fma(p, z, 1.0LF / 479001600.0LF);
    p = fma(p, z, -1.0LF / 3628800.0LF);
    p = fma(p, z, 1.0LF / 40320.0LF);
    p = fma(p, z, -1.0LF / 720.0LF);
    p = fma(p, z, 1.0LF / 24.0LF);
    precise double start = 1.0LF - 0.5LF * z;
    precise double lost = (1.0LF - start) - 0.5LF * z;
    return start + (lost + fma(p * z, z, -r.high * r.low));
}
double sine_of_quadrant(pair r, int quadrant)
{
    double y = (quadrant & 1) == 0 ? sin_series(r) : cos_series(r);
    return (quadrant & 2) == 0 ? y : -y;
}
#endif
#ifdef NEED_SIN
double op_SIN(double x)
{
    if (!is_finite(x))
        return not_a_number_f64();
    if (abs(x) < 1e-9LF)
        return x;
    int quadrant;
    pair r = reduce_angle(x, quadrant);
    return sine_of_quadrant(r, quadrant);
}
#endif
#ifdef NEED_COS
double op_COS(double x)
{
    if (!is_finite(x))
        return not_a_number_f64();
    int quadrant;
    pair r = reduce_angle(x, quadrant);
    return sine_of_quadrant(r, quadrant + 1);
}
#endif
#ifdef NEED_TAN
double op_TAN(double x)
{
    if (!is_finite(x))
        return not_a_number_f64();
    if (abs(x) < 1e-9LF)
        return x;
    int quadrant;
    pair r = reduce_angle(x, quadrant);
    double s = sin_series(r), c = cos_series(r);
    return (quadrant & 1) == 0 ? s / c : -c / s;
}
#endif

#ifdef NEED_ATAN
// atan(a / b) for 0 <= a <= b, b > 0: as atan(c) + atan(t) with c the nearest of 0, 1/2 and 1, so
// that |t| <= 1/4, and the series of atan(t), whose first omitted term is below 2^-60.
double atan_below_one(double a, double b)
{
    double c = a < 0.25LF * b ? 0.0LF : a < 0.75LF * b ? 0.5LF : 1.0LF;
    double high = c == 0.0LF ? 0.0LF : c == 0.5LF ? 0.4636476090008061LF : 0.7853981633974483LF;
    double low = c == 0.5LF ? 2.2698777452961687e-17LF : c * 3.061616997868383e-17LF;
    double t = (a - c * b) / (b + c * a);
    double z = t * t;
    double p = fma(z, -1.0LF / 31.0LF, 1.0LF / 29.0LF);
    p = fma(p, z, -1.0LF / 27.0LF);
    p = fma(p, z, 1.0LF / 25.0LF);
    p = fma(p, z, -1.0LF / 23.0LF);
    p = fma(p, z, 1.0LF / 21.0LF);
    p = fma(p, z, -1.0LF / 19.0LF);
    p = fma(p, z, 1.0LF / 17.0LF);
    p = fma(p, z, -1.0LF / 15.0LF);
    p = fma(p, z, 1.0LF / 13.0LF);
    p = fma(p, z, -1.0LF / 11.0LF);
    p = fma(p, z, 1.0LF / 9.0LF);
    p = fma(p, z, -1.0LF / 7.0LF);
    p = fma(p, z, 1.0LF / 5.0LF);
    p = fma(p, z, -1.0LF / 3.0LF);
    return high + (fma(p * z, t, low) + t);
}
// atan(a / b) for a, b >= 0, neither very large nor very small, not both 0.
double atan_of_ratio(double a, double b)
{
    if (a <= b)
        return atan_below_one(a, b);
    return 1.5707963267948966LF - (atan_below_one(b, a) - 6.123233995736766e-17LF);
}
double op_ATAN(double x)
{
    double a = abs(x);
    if (is_nan(x) || a < 1e-9LF)
        return x;
    return with_sign(a > 1e18LF ? 1.5707963267948966LF : atan_of_ratio(a, 1.0LF), x);
}
#endif
#ifdef NEED_ATAN2
// atan(a / b) for any finite a, b > 0.
double atan_of_any(double a, double b, bool obtuse)
{
    int a_exponent, b_exponent;
    double x = significand(a, a_exponent), y = significand(b, b_exponent);
    int n = a_exponent - b_exponent;
    if (n > 60)
        return 1.5707963267948966LF;
    if (n < -60) // less than half an ulp of pi
        return obtuse ? 0.0LF : scale_by(x / y, n);
    return atan_of_ratio(x * power_of_two(n), y);
}
double op_ATAN2(double y, double x)
{
    if (is_nan(x) || is_nan(y))
        return not_a_number_f64();
    bool obtuse = is_negative(x);
    double a = with_sign(y, 1.0LF), b = with_sign(x, 1.0LF), angle;
    if (is_zero(a) || (is_inf(b) && !is_inf(a)))
        angle = 0.0LF;
    else if (is_inf(a))
        angle = is_inf(b) ? 0.7853981633974483LF : 1.5707963267948966LF;
    else
        angle = is_zero(b) ? 1.5707963267948966LF : atan_of_any(a, b, obtuse);
    if (obtuse)
        angle = 3.141592653589793LF - (angle - 1.2246467991473532e-16LF);
    return with_sign(angle, y);
}
#endif
#ifdef NEED_ASIN
double op_ASIN(double x)
{
    double a = abs(x);
    if (!(a <= 1.0LF))
        return not_a_number_f64();
    if (a < 1e-9LF)
        return x;
    return with_sign(atan_of_ratio(a, sqrt((1.0LF - a) * (1.0LF + a))), x);
}
#endif
#ifdef NEED_ACOS
double op_ACOS(double x)
{
    if (!(abs(x) <= 1.0LF))
        return not_a_number_f64();
    return 2.0LF * atan_of_ratio(sqrt(1.0LF - x), sqrt(1.0LF + x));
}
#endif
#endif
