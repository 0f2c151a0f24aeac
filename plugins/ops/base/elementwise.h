// SPDX-License-Identifier: MIT
// The elementwise primitives, each defined by one line. X(name, expression, doc)
//
// Types, derivatives and fused code follow from the expression, in the core and in the
// backends. NumPy's names and meanings; inputs broadcast, dtypes promote.
#ifndef BASE_ELEMENTWISE_H
#define BASE_ELEMENTWISE_H

// Near 0 by the series, as the quotient's derivative would be a difference of close
// numbers.
#define SINC                                                                               \
    "t = pi * x; u = t * t; abs(t) < 0.785 ? 1 - u * (1 / 6.0) * (1 - u * (1 / 20.0) * "   \
    "(1 - u * (1 / 42.0) * (1 - u * (1 / 72.0) * (1 - u * (1 / 110.0) * "                  \
    "(1 - u * (1 / 156.0) * (1 - u * (1 / 210.0) * (1 - u * (1 / 272.0)))))))) : "         \
    "sin(t) / t"

#define BASE_UNARY(X)                                                                      \
    X(negative, "-x", "Minus x.")                                                          \
    X(abs, "abs(x)", "The absolute value; of a complex number its distance from 0.")       \
    X(sign, "sign(x)", "-1, 0 or 1 by the sign of x; NaN for NaN.")                        \
    X(floor, "floor(x)", "The greatest whole number not above x.")                         \
    X(ceil, "ceil(x)", "The least whole number not below x.")                              \
    X(trunc, "trunc(x)", "x without its fraction.")                                        \
    X(sqrt, "sqrt(x)", "The square root.")                                                 \
    X(rsqrt, "rsqrt(x)", "One over the square root.")                                      \
    X(square, "x * x", "x times x.")                                                       \
    X(reciprocal, "1 / x", "One over x, as a float.")                                      \
    X(exp, "exp(x)", "e to the power of x.")                                               \
    X(exp2, "exp2(x)", "2 to the power of x.")                                             \
    X(expm1, "expm1(x)", "exp(x) - 1, exact for small x.")                                 \
    X(log, "log(x)", "The natural logarithm.")                                             \
    X(log2, "log2(x)", "The logarithm to base 2.")                                         \
    X(log10, "log10(x)", "The logarithm to base 10.")                                      \
    X(log1p, "log1p(x)", "log(1 + x), exact for small x.")                                 \
    X(sin, "sin(x)", "The sine of x in radians.")                                          \
    X(cos, "cos(x)", "The cosine of x in radians.")                                        \
    X(tan, "tan(x)", "The tangent of x in radians.")                                       \
    X(arcsin, "asin(x)", "The angle in radians whose sine is x.")                          \
    X(arccos, "acos(x)", "The angle in radians whose cosine is x.")                        \
    X(arctan, "atan(x)", "The angle in radians whose tangent is x.")                       \
    X(sinh, "sinh(x)", "The hyperbolic sine.")                                             \
    X(cosh, "cosh(x)", "The hyperbolic cosine.")                                           \
    X(tanh, "tanh(x)", "The hyperbolic tangent.")                                          \
    X(arcsinh, "asinh(x)", "The number whose hyperbolic sine is x.")                       \
    X(arccosh, "acosh(x)", "The number at or above 0 whose hyperbolic cosine is x.")       \
    X(arctanh, "atanh(x)", "The number whose hyperbolic tangent is x.")                    \
    X(erf, "erf(x)", "The error function.")                                                \
    X(erfinv, "erfinv(x)", "The number whose error function is x.")                        \
    X(positive, "+x", "x itself.")                                                         \
    X(degrees, "x * (180 / pi)", "An angle in radians in degrees.")                        \
    X(radians, "x * (pi / 180)", "An angle in degrees in radians.")                        \
    X(sinc, SINC, "sin(pi x) / (pi x); 1 at 0.")                                           \
    X(isposinf, "x == inf", "Whether x is infinity.")                                      \
    X(isneginf, "x == -inf", "Whether x is minus infinity.")                               \
    X(isnan, "isnan(x)", "Whether x is not a number.")                                     \
    X(isinf, "isinf(x)", "Whether x is infinite.")                                         \
    X(isfinite, "isfinite(x)", "Whether x is neither infinite nor NaN.")                   \
    X(logical_not, "!bool(x)", "Whether x is zero or false.")                              \
    X(invert, "~x", "All bits flipped; of bool: not x.")                                   \
    X(real, "real(x)", "The real part; of a real number x itself.")                        \
    X(imag, "imag(x)", "The imaginary part; of a real number 0.")                          \
    X(conjugate, "conj(x)", "The complex conjugate; of a real number x itself.")           \
    X(angle, "atan2(imag(x), real(x))",                                                    \
      "The angle of a complex number in radians, from -pi to pi, as atan2 has it.")        \
    X(iscomplex, "imag(x) != 0", "Whether the imaginary part is not 0.")                   \
    X(isreal, "imag(x) == 0", "Whether the imaginary part is 0.")                          \
    X(cbrt,                                                                                \
      "m = x == 0 | isinf(x) ? 1.0 : 1.0 * x; y = sign(m) * exp(log(abs(m)) / 3); "        \
      "x == 0 ? sqrt(x == 0 ? 1.0 * x : 1.0) "                                             \
      ": isinf(x) ? 1.0 * x : y - (y - m / (y * y)) / 3",                                  \
      "The cube root, with x's sign.")                                                     \
    X(bitwise_count,                                                                       \
      "u = u64(x & x); a = x < 0 ? ~u + 1 : u; "                                           \
      "b = a - (a >> 1 & 0x5555555555555555); "                                            \
      "c = (b & 0x3333333333333333) + (b >> 2 & 0x3333333333333333); "                     \
      "u8((c + (c >> 4) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 >> 56)",                \
      "How many bits of abs(x) are set: u8.")                                              \
    X(copy, "x", "x in memory of its own, row-major without gaps.")

#define BASE_BINARY(X)                                                                     \
    X(add, "x + y", "The sum.")                                                            \
    X(subtract, "x - y", "The difference.")                                                \
    X(multiply, "x * y", "The product.")                                                   \
    X(divide, "x / y", "The quotient, as a float: 7 / 2 is 3.5.")                          \
    X(floor_divide, "x // y", "The quotient rounded towards minus infinity.")              \
    X(remainder, "x % y", "x - y * floor(x / y): it has the sign of y.")                   \
    X(power, "x ** y", "x to the power of y.")                                             \
    X(maximum, "max(x, y)", "The larger one; NaN when either is.")                         \
    X(minimum, "min(x, y)", "The smaller one; NaN when either is.")                        \
    X(arctan2, "atan2(x, y)",                                                              \
      "The angle in radians of the point with ordinate x and "                             \
      "abscissa y.")                                                                       \
    X(fmax, "isnan(x) ? y : isnan(y) ? x : max(x, y)",                                     \
      "The larger one; NaN when both are.")                                                \
    X(fmin, "isnan(x) ? y : isnan(y) ? x : min(x, y)",                                     \
      "The smaller one; NaN when both are.")                                               \
    X(heaviside, "isnan(x) ? x : x < 0 ? 0.0 : x == 0 ? y : 1.0",                          \
      "0 where x is below 0, y where it is 0, 1 above.")                                   \
    X(logaddexp,                                                                           \
      "m = 1.0 * max(x, y); n = 1.0 * min(x, y); "                                         \
      "m == n ? m / 2 + n / 2 + log(2) : m + log1p(exp(n - m))",                           \
      "log(exp(x) + exp(y)) without overflow.")                                            \
    X(logaddexp2,                                                                          \
      "m = 1.0 * max(x, y); n = 1.0 * min(x, y); "                                         \
      "m == n ? m / 2 + n / 2 + 1 : m + log1p(exp2(n - m)) / log(2)",                      \
      "log2(exp2(x) + exp2(y)) without overflow.")                                         \
    X(hypot,                                                                               \
      "a = abs(1.0 * x); b = abs(1.0 * y); m = max(a, b); r = min(a, b) / m; "             \
      "isinf(x) | isinf(y) ? inf : m == 0 ? x * x + y * y : m * sqrt(1 + r * r)",          \
      "sqrt(x * x + y * y) without overflow.")                                             \
    X(logical_and, "bool(x) & bool(y)", "Whether both are nonzero or true.")               \
    X(logical_or, "bool(x) | bool(y)", "Whether one is nonzero or true.")                  \
    X(logical_xor, "bool(x) ^ bool(y)", "Whether exactly one is nonzero or true.")         \
    X(bitwise_and, "x & y", "The bits set in both.")                                       \
    X(bitwise_or, "x | y", "The bits set in either.")                                      \
    X(bitwise_xor, "x ^ y", "The bits set in exactly one.")                                \
    X(left_shift, "x << y", "Bits moved up by y; by the width or more: 0.")                \
    X(right_shift, "x >> y", "Bits moved down by y, with the sign kept.")                  \
    X(equal, "x == y", "Whether they are equal.")                                          \
    X(not_equal, "x != y", "Whether they differ.")                                         \
    X(less, "x < y", "Whether x is less.")                                                 \
    X(less_equal, "x <= y", "Whether x is not greater.")                                   \
    X(greater, "x > y", "Whether x is greater.")                                           \
    X(greater_equal, "x >= y", "Whether x is not less.")

#endif // BASE_ELEMENTWISE_H
