// SPDX-License-Identifier: MIT
// The inverse of the error function in double, which the C library does not have: the
// meaning of instruction ERFINV for <tenon/ops/program.h>, and the CPU's function in f64.
//
//   double y = tn_erfinv(0.5); // 0.4769...: erf(y) is 0.5
//
// Threads. Pure functions: any thread. None fails. Link with -lm: the __builtin_ functions
// are calls of the C library.
#ifndef TENON_OPS_ERFINV_H
#define TENON_OPS_ERFINV_H

// erfinv(x) / x as a function of w = -log(1 - x^2), 0 <= w <= 37, with a relative error
// below 3e-8. 37 is beyond the w of every double x below 1.
//
// Two polynomials, in w - 2.5 for w < 5 and in sqrt(w) - 4 from there on, in Horner's
// scheme. The form is that of Giles, "Approximating the erfinv function" (GPU Computing
// Gems, Jade Edition, 2012); the coefficients, of least relative error, are found by
// Remez's exchange algorithm in kernels/vulkan/program/coefficients.py.
// This is the first of them: w is below 5.
static inline double tn_erfinv_near_ratio(double w)
{
    double s = w - 2.5;
    double near = 3.354794382071423e-10 * s - 8.772759437327671e-09;
    near = near * s + 1.8038577885340642e-08;
    near = near * s + 4.6589227349895353e-07;
    near = near * s - 3.4346223698379035e-06;
    near = near * s - 4.961919262478464e-06;
    near = near * s + 0.00021828266493110498;
    near = near * s - 0.001252744631742482;
    near = near * s - 0.004177339442247151;
    near = near * s + 0.24664028760693155;
    return near * s + 1.5014093535192832;
}

// The same for any w, by the second polynomial from 5 on.
static inline double tn_erfinv_ratio(double w)
{
    double t = __builtin_sqrt(w) - 4, near = tn_erfinv_near_ratio(w);
    double far = -3.980044845022253e-07 * t + 1.5999180794054668e-06;
    far = far * t + 1.53877612919488e-06;
    far = far * t - 1.563113172144979e-05;
    far = far * t + 2.521490227143432e-05;
    far = far * t - 2.0796172704548608e-05;
    far = far * t + 4.4918983117161883e-05;
    far = far * t - 0.00012859861100524415;
    far = far * t + 0.00032851893380308355;
    far = far * t - 0.0008644877507801116;
    far = far * t + 0.0012579710079070458;
    far = far * t + 1.0094926803698934;
    far = far * t + 3.839783869177962;
    return w < 5 ? near : far;
}

// ERFINV: the number y with erf(y) = x, as scipy.special.erfinv. Odd; of 1 and -1 infinity
// and minus infinity, beyond and of NaN NaN. Within two units in the last place of a
// double, which a unit test holds.
//
// An estimate y, with the ratio above, and one step of Halley's method on erf(y) - |x|.
// With u = (erf(y) - |x|) / erf'(y) and erf'' / erf' = -2 y, the step is
//
//   y - u / (1 + y * u),    erf'(y) = 2 / sqrt(pi) * exp(-y^2)
//
// and it cubes the relative error: 3e-8 becomes less than the rounding of a double. For y
// >= 1 the step compares 1 - |x|, which is exact there, with erfc(y): erf(y) is so near 1
// that its difference to |x| would lose digits.
static inline double tn_erfinv(double x)
{
    double a = __builtin_fabs(x), rest = 1 - a;
    if (!(a < 1))
        return a == 1 ? __builtin_copysign(__builtin_inf(), x) : __builtin_nan("");
    // 1 - x^2 as a product: rest is exact for a >= 1/2, and no digits cancel.
    double y = a * tn_erfinv_ratio(-__builtin_log(rest * (1 + a)));
    // erf(y) - |x|, by the complement where that keeps more digits.
    double error = y < 1 ? __builtin_erf(y) - a : rest - __builtin_erfc(y);
    double step = error * 0.8862269254527580 * __builtin_exp(y * y); // sqrt(pi) / 2
    return __builtin_copysign(y - step / (1 + y * step), x);
}

#endif // TENON_OPS_ERFINV_H
