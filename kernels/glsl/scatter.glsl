// SPDX-License-Identifier: MIT
// Sums of elements of dtype IN, with the reference's rounding: each addition is stored, so F16 and
// BF16 are rounded every time.
#define SUM PASTE(C_, IN)
#define LOADED(element) SUM(PASTE(FROM_, IN)(PASTE(W_, IN)(element)))
#define STORED(sum) PASTE(S_, IN)(PASTE(TO_, IN)(sum))

SUM plus(SUM a, SUM b)
{
    return SUM(PASTE(FROM_, IN)(PASTE(W_, IN)(PASTE(TO_, IN)(a + b))));
}
