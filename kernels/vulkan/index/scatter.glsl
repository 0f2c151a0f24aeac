// SPDX-License-Identifier: MIT
// What an update makes of an element of dtype IN: the sum, or what OP_set, OP_max or OP_min says.
// With the reference's rounding: each addition is stored, so F16 and BF16 are rounded every time.
#define SUM PASTE(C_, IN)
#define LOADED(element) SUM(PASTE(FROM_, IN)(PASTE(W_, IN)(element)))
#define STORED(sum) PASTE(S_, IN)(PASTE(TO_, IN)(sum))

#if defined(OP_max) || defined(OP_min)
#define NEED_MAX
#include "program/scalar.glsl"
#endif

SUM plus(SUM a, SUM b)
{
#if defined(OP_set)
    return b;
#elif defined(OP_max)
    return op_MAX(a, b);
#elif defined(OP_min)
    return op_MIN(a, b);
#else
    return SUM(PASTE(FROM_, IN)(PASTE(W_, IN)(PASTE(TO_, IN)(a + b))));
#endif
}
